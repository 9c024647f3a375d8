/* front/trace.c: see trace.h */
#include "front/trace.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

/* @n lower case digits at p[at..) and then @end, or the end of all. */
static bool
field(struct str s, size_t at, size_t n, char end)
{
    if (s.n < at + n)
        return false;
    for (size_t i = at; i < at + n; i++)
        if (s.p[i] == '\0' || strchr(digits, s.p[i]) == NULL)
            return false;
    return s.n == at + n ? end == '\0' : end != '\0' && s.p[at + n] == end;
}

static bool
zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != '0')
            return false;
    return true;
}

bool
trace_parse(struct str s, struct trace *out)
{
    uint64_t flags;

    if (!field(s, 0, 2, '-') || !field(s, 3, TRACE_ID, '-') || !field(s, 36, TRACE_SPAN, '-'))
        return false;
    /* ff is no version; what a later one adds comes after another dash */
    if (memcmp(s.p, "ff", 2) == 0 ||
        !(field(s, 53, 2, '\0') || (memcmp(s.p, "00", 2) != 0 && field(s, 53, 2, '-'))))
        return false;
    if (zero(s.p + 3, TRACE_ID) || zero(s.p + 36, TRACE_SPAN) ||
        !str_parse_hex((struct str){ s.p + 53, 2 }, 0xff, &flags))
        return false;
    memcpy(out->id, s.p + 3, TRACE_ID);
    out->id[TRACE_ID] = '\0';
    memcpy(out->span, s.p + 36, TRACE_SPAN);
    out->span[TRACE_SPAN] = '\0';
    out->sampled = (flags & 1) != 0;
    return true;
}

void
trace_print(const struct trace *t, char out[TRACE_TEXT + 1])
{
    memcpy(out, "00-", 3);
    memcpy(out + 3, t->id, TRACE_ID);
    out[35] = '-';
    memcpy(out + 36, t->span, TRACE_SPAN);
    memcpy(out + 52, t->sampled ? "-01" : "-00", 4);
}

void
trace_bytes(const char *id, size_t n, uint8_t *out)
{
    (void)str_unhex((struct str){ id, 2 * n }, out);
}
