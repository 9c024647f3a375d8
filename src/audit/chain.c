/* audit/chain.c: see chain.h */
#include "audit/chain.h"

#include <string.h>

#include "base/sha256.h"

_Static_assert(AUDIT_HASH == SHA256_SIZE && AUDIT_HASH_TEXT == SHA256_TEXT, "the chain is of SHA-256");

int
audit_seal(struct audit_head *head, struct str body, struct buf *out)
{
    static const char before_prev[] = ",\"prev\":\"", before_hash[] = ",\"hash\":\"";
    size_t begin = out->n;
    char hex[SHA256_TEXT + 1];
    uint8_t hash[SHA256_SIZE];

    sha256_text(head->hash, hex);
    buf_printf(out, "{\"seq\":%llu", (unsigned long long)head->seq + 1);
    buf_append(out, body.p, body.n);
    buf_append(out, before_prev, sizeof(before_prev) - 1);
    buf_append(out, hex, SHA256_TEXT);
    buf_puts(out, "\"");
    if (!buf_ok(out))
        return -1;
    sha256_of(out->p + begin, out->n - begin, hash);
    sha256_text(hash, hex);
    buf_append(out, before_hash, sizeof(before_hash) - 1);
    buf_append(out, hex, SHA256_TEXT);
    if (buf_puts(out, "\"}\n") < 0)
        return -1;
    head->seq++;
    memcpy(head->hash, hash, sizeof(hash));
    return 0;
}

bool
audit_hash_holds(const struct audit_line *line, struct str text)
{
    uint8_t hash[SHA256_SIZE];

    sha256_of(text.p, line->hashed, hash);
    return memcmp(hash, line->hash, sizeof(hash)) == 0;
}

const char *
audit_follow(struct audit_head *head, bool any, const struct audit_line *line, struct str text)
{
    static const uint8_t none[AUDIT_HASH];

    if (!audit_hash_holds(line, text))
        return "its bytes do not have the hash that it says";
    if (!any && line->seq != head->seq + 1)
        return "its number does not follow the one before";
    if (!any && memcmp(line->prev, head->hash, AUDIT_HASH) != 0)
        return "it does not follow the entry before: that one had another hash";
    if ((line->seq == 1) != (memcmp(line->prev, none, AUDIT_HASH) == 0))
        return "only the first entry has none before it";
    head->seq = line->seq;
    memcpy(head->hash, line->hash, AUDIT_HASH);
    return NULL;
}
