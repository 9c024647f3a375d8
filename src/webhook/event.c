/* webhook/event.c: what is told, and how it is signed (webhook.h) */
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "webhook/webhook.h"

static json_t *
text_or_null(const char *text)
{
    json_t *out = text[0] != '\0' ? json_string(text) : NULL;   /* NULL too: it is no UTF-8 */

    return out != NULL ? out : json_null();
}

static json_t *
url_of(const struct edge_approval *a, const char *page)
{
    return page[0] != '\0' ? json_sprintf("%s/approvals/%s", page, a->id) : json_null();
}

int
webhook_body(const struct edge_approval *a, const char *name, const char *page, struct buf *out)
{
    json_t *o = json_pack("{s:i, s:s, s:{s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:s, s:I, s:I, s:o, s:o, s:o, "
                          "s:o}}", "version", 1, "event", name, "approval", "id", a->id, "state",
                          approval_state_name(a->state), "risk", gate_risk_name(a->risk), "tool", a->tool, "sandbox",
                          text_or_null(a->box), "caller", a->caller, "caller_name", text_or_null(a->caller_text),
                          "rule", text_or_null(a->rule), "description", text_or_null(a->description), "digest",
                          a->digest, "created_ms", (json_int_t)a->created_ms, "expires_ms", (json_int_t)a->until_ms,
                          "decided_ms", a->decided_ms > 0 ? json_integer((json_int_t)a->decided_ms) : json_null(),
                          "decided_by", text_or_null(a->by), "reason", text_or_null(a->reason), "url",
                          url_of(a, page));
    cleanup_free char *text = o != NULL ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

    json_decref(o);
    return text != NULL ? buf_puts(out, text) : -1;
}

bool
webhook_sign(const void *secret, size_t n_secret, uint64_t seconds, const void *body, size_t n,
             char out[WEBHOOK_SIGNATURE + 1])
{
    cleanup_buf struct buf all = BUF_INIT(WEBHOOK_BODY_MAX + 64);
    uint8_t hash[SHA256_SIZE];
    char text[SHA256_TEXT + 1];
    unsigned size = 0;

    if (buf_printf(&all, "%llu.", (unsigned long long)seconds) < 0 || buf_append(&all, body, n) < 0 ||
        HMAC(EVP_sha256(), secret, (int)n_secret, all.p, all.n, hash, &size) == NULL || size != sizeof(hash))
        return false;
    sha256_text(hash, text);
    snprintf(out, WEBHOOK_SIGNATURE + 1, "t=%llu,v1=%s", (unsigned long long)seconds, text);
    return true;
}
