/* post/answer.c: what an answer's first bytes say (post.h) */
#include <string.h>
#include <strings.h>

#include "post/post.h"

int
post_status(const char *p, size_t n)
{
    static const char begin[] = "HTTP/1.";
    const char *end = memchr(p, '\n', n);
    int status = 0;

    if (memcmp(p, begin, n < sizeof(begin) - 1 ? n : sizeof(begin) - 1) != 0)
        return -1;
    if (end == NULL)
        return 0;
    if (end - p < 13 || (p[7] != '0' && p[7] != '1') || p[8] != ' ' || (p[12] != ' ' && p[12] != '\r'))
        return -1;
    for (size_t i = 9; i < 12; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        status = status * 10 + (p[i] - '0');
    }
    return status >= 100 && status <= 599 ? status : -1;
}

/* The value of the field @name (with its colon) in the lines of @head; NULL pointer: there is none. */
static struct str
field(struct str head, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = head.p, *end = head.p + head.n; at < end;) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t length = next != NULL ? (size_t)(next - at) : (size_t)(end - at);
        if (length > n && strncasecmp(at, name, n) == 0) {
            struct str value = { at + n, length - n };
            while (value.n > 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
                value = (struct str){ value.p + 1, value.n - 1 };
            while (value.n > 0 && strchr(" \t\r", value.p[value.n - 1]) != NULL)
                value.n--;
            return value;
        }
        at += length + 1;
    }
    return (struct str){ NULL, 0 };
}

int
post_answer(const char *p, size_t n, struct post_answer *out)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    uint64_t number;
    struct str head;

    *out = (struct post_answer){ .status = post_status(p, n) };
    if (out->status < 0)
        return -1;
    if (end == NULL)            /* a head that is longer than that is none of a server that is meant */
        return n >= POST_ANSWER_MAX ? -1 : 0;
    head = (struct str){ p, (size_t)(end - p) + 2 };
    if (str_parse_u64(field(head, "Retry-After:"), 24UL * 3600, &number))
        out->after_s = (uint32_t)number;
    out->body = (struct str){ end + 4, 0 };
    if (!str_parse_u64(field(head, "Content-Length:"), UINT32_MAX, &number) ||
        number > POST_ANSWER_MAX - (size_t)(end + 4 - p))
        return 1;               /* nobody reads that */
    if (n - (size_t)(end + 4 - p) < number)
        return 0;
    out->body.n = (size_t)number;
    return 1;
}
