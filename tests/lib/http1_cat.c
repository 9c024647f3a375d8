/* http1_cat: what our HTTP/1 codec makes of the bytes on stdin, in one line
 *
 *   http1_cat request              http1_cat response METHOD
 *
 * refused WORD | more | ok METHOD-OR-STATUS TARGET FIELDS FRAMING STATED BODY HASH END, where STATED is Content-Length
 * or "-", BODY counts the body's bytes, HASH is their FNV-1a and END is "whole", "cut" or the word of the refusal. The
 * end of stdin is the peer's close. tests/conformance/test_http1_node.py compares it with Node.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/http1.h"

#define INPUT_MAX (4 * 1024 * 1024)

static int
read_all(struct buf *in)
{
    for (;;) {
        ssize_t got;
        if (buf_reserve(in, 65536) < 0)
            return -1;
        got = read(STDIN_FILENO, in->p + in->n, 65536);
        if (got < 0)
            return -1;
        if (got == 0)
            return 0;
        in->n += (size_t)got;
    }
}

static uint32_t
hash(uint32_t h, struct str data)
{
    for (size_t i = 0; i < data.n; i++)
        h = (h ^ (uint8_t)data.p[i]) * 16777619u;
    return h;
}

static void
print_body(const struct http1_head *head, const struct buf *in)
{
    struct http1_body body;
    enum http1_result result = http1_body_begin(&body, head, UINT64_MAX);
    size_t at = head->length, used, bytes = 0;
    uint32_t h = 2166136261u;
    struct str data;

    if (result == HTTP1_OK)
        result = HTTP1_MORE;
    while (result == HTTP1_MORE && at < in->n) {
        result = http1_body_next(&body, in->p + at, in->n - at, &data, &used);
        at += used;
        bytes += data.n;
        h = hash(h, data);
    }
    if (result == HTTP1_MORE || result == HTTP1_OK)
        result = http1_body_end(&body);
    printf(" %zu %08x %s\n", bytes, h,
           result == HTTP1_OK ? "whole" : result == HTTP1_BODY_CUT ? "cut" : http1_word(result));
}

static void
print_head(const struct http1_head *head)
{
    static const char *const framings[] = { "none", "length", "chunked", "until-close" };

    if (head->status != 0)
        printf("ok %u -", head->status);
    else
        printf("ok %.*s %.*s", (int)head->method.n, head->method.p, (int)head->target.n, head->target.p);
    printf(" %zu %s ", head->n_fields, framings[head->framing]);
    if (head->length_stated)
        printf("%llu", (unsigned long long)head->stated_length);
    else
        printf("-");
}

int
main(int argc, char **argv)
{
    struct buf cleanup_buf in = BUF_INIT(INPUT_MAX);
    struct http1_head head;
    enum http1_result result;
    bool response = argc == 3 && strcmp(argv[1], "response") == 0;

    if (!response && (argc != 2 || strcmp(argv[1], "request") != 0)) {
        fprintf(stderr, "usage: http1_cat request | response METHOD\n");
        return 2;
    }
    if (read_all(&in) < 0)
        return 2;
    result = response ? http1_parse_response(in.p, in.n, str_of(argv[2]), &head)
                      : http1_parse_request(in.p, in.n, &head);
    if (result == HTTP1_MORE) {
        printf("more\n");
    } else if (result != HTTP1_OK) {
        printf("refused %s\n", http1_word(result));
    } else {
        print_head(&head);
        print_body(&head, &in);
    }
    return 0;
}
