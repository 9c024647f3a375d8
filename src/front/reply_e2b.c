/* front/reply_e2b.c: refusals as E2B's clients read them (docs/e2b.md)
 *
 * Of its API: {"code": STATUS, "message": TEXT}; of Connect, {"code": "not_found", "message": TEXT}, and where a stream
 * was asked for that is its one message (but about who comes: proxies look at the status). The code that is ours stands
 * behind the text. By a key that is none any more no sandbox is found: clients know that of theirs by 502, as from the
 * proxy that is in front of E2B's.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "front/front.h"
#include "wire/connect.h"

static bool
is_gone(const struct request *r, const char *code, const char *text)
{
    return r->route != NULL && r->route->credential == CREDENTIAL_BOX_KEY &&
           (strcmp(code, "auth.unknown") == 0 || strcmp(code, "auth.ended") == 0 ||
            strcmp(code, "sandbox.not-found") == 0 || strcmp(code, "sandbox.gone") == 0 ||
            (strcmp(code, "sandbox.state") == 0 && strstr(text, "is stop") != NULL));
}

static void
in_stream(struct request *r, json_t *error)
{
    json_t *all = json_pack("{s:o}", "error", error);
    cleanup_free char *text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    struct buf b = BUF_INIT(16384);
    uint8_t head[CONNECT_HEAD];

    json_decref(all);
    if (text == NULL)
        text = strdup("{}");
    connect_head(head, CONNECT_END, text != NULL ? (uint32_t)strlen(text) : 0);
    if (buf_append(&b, head, sizeof(head)) == 0 && text != NULL && buf_puts(&b, text) == 0)
        reply_text(r, MHD_HTTP_OK, "application/connect+json", b.p, b.n);
    else
        r->f->ended = true;     /* no memory: it comes anew */
    buf_free(&b);
}

/* What has no route is told by its path, and by the form that it is asked in. */
static enum words
words_of(const struct request *r, enum words words)
{
    struct header type = header_of(r, MHD_HTTP_HEADER_CONTENT_TYPE);

    if (words != WORDS_OURS)
        return words;
    if (strncmp(r->path, "/e2b/process.", 13) != 0 && strncmp(r->path, "/e2b/filesystem.", 16) != 0)
        return WORDS_E2B;
    return type.n == 1 && str_starts((struct str){ type.value, type.size }, STR_LIT("application/connect+"))
           ? WORDS_RPC_STREAM : WORDS_RPC;
}

void
reply_e2b(struct request *r, enum words words, unsigned status, const char *code, const char *detail, const char *text)
{
    bool gone = is_gone(r, code, text), exists = strcmp(code, "files.exists") == 0;
    json_t *message;
    char all[4096];

    words = words_of(r, words);
    if (gone)
        status = MHD_HTTP_BAD_GATEWAY;
    snprintf(all, sizeof(all), "%s%s%s%s [%s]", gone ? "The sandbox was not found: " : "", text,
             detail[0] != '\0' ? "; " : "", detail, code);
    message = json_of_text((const uint8_t *)all, strlen(all));
    if (words == WORDS_E2B)
        reply_json(r, status, json_pack("{s:i, s:o, s:s}", "code", (int)status, "message", message, "request_id",
                                        r->number));
    else if (words == WORDS_RPC || status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        reply_json(r, status, json_pack("{s:s, s:o}", "code", exists ? "already_exists" : connect_code(status),
                                        "message", message));
    else
        in_stream(r, json_pack("{s:s, s:o}", "code", connect_code(status), "message", message));
}
