/* wire/connect.c: see connect.h */
#include "wire/connect.h"

#include <string.h>

#include "base/array.h"

void
connect_head(uint8_t out[CONNECT_HEAD], uint8_t flags, uint32_t n)
{
    out[0] = flags;
    out[1] = (uint8_t)(n >> 24);
    out[2] = (uint8_t)(n >> 16);
    out[3] = (uint8_t)(n >> 8);
    out[4] = (uint8_t)n;
}

const char *
connect_one(struct str in, struct str *out)
{
    const uint8_t *p = (const uint8_t *)in.p;
    uint32_t n;

    if (in.n < CONNECT_HEAD)
        return "the body ends within the head of a message";
    if (p[0] == CONNECT_COMPRESSED)
        return "the message is compressed, which is not taken";
    if (p[0] != 0)
        return "the message has flags that are not known";
    n = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
    if (n > in.n - CONNECT_HEAD)
        return "the body ends before the message does";
    if (n < in.n - CONNECT_HEAD)
        return "there is more behind the one message that this request has";
    *out = (struct str){ in.p + CONNECT_HEAD, n };
    return NULL;
}

bool
connect_timeout(const char *text, uint64_t *ms)
{
    return strlen(text) <= 10 && str_parse_u64(str_of(text), UINT64_MAX, ms);
}

const char *
connect_code(unsigned status)
{
    static const struct { unsigned status; const char *code; } rows[] = {
        { 400, "invalid_argument" }, { 401, "unauthenticated" }, { 403, "permission_denied" }, { 404, "not_found" },
        { 409, "failed_precondition" }, { 410, "not_found" }, { 412, "failed_precondition" },
        { 413, "resource_exhausted" }, { 415, "invalid_argument" }, { 422, "invalid_argument" },
        { 429, "resource_exhausted" }, { 501, "unimplemented" }, { 502, "unavailable" }, { 503, "unavailable" },
        { 504, "deadline_exceeded" }, { 507, "resource_exhausted" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].code;
    return status < 500 ? "invalid_argument" : "internal";
}
