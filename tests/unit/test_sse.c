/* Server-sent events, in whatever pieces they come (R47) */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "client/sse.h"

struct heard {
    char text[1024];
    int stop_after;
};

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    struct heard *h = ctx;
    size_t used = strlen(h->text);

    assert_true(strlen(data) == n);
    snprintf(h->text + used, sizeof(h->text) - used, "%s|%s|%s;", name, id, data);
    return h->stop_after > 0 && --h->stop_after == 0 ? 7 : 0;
}

static const struct { const char *in, *out; } rows[] = {
    { "data: a\n\n", "message||a;" },
    { "data:a\n\n", "message||a;" },
    { "data:  a\n\n", "message|| a;" },
    { "event: x\ndata: a\ndata: b\n\n", "x||a\nb;" },
    { "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", "x||a;message||b;" },
    { "event: x\rdata: a\r\rdata: b\r\r", "x||a;message||b;" },
    { "id: 5\ndata: a\n\ndata: b\n\n", "message|5|a;message|5|b;" },
    { ": comment\n\nretry: 5\nother\nevent: lost\n\ndata: a\n\n", "message||a;" },
    { "data\n\n", "message||;" },
    { "data: cut off", "" },
    { "data: a\n", "" },
};

static void
events(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t piece = 1; piece < 5; piece++) {
            struct heard h = { .text = "" };
            struct sse s = SSE_INIT;
            size_t n = strlen(rows[i].in);
            for (size_t at = 0; at < n; at += piece)
                assert_int_equal(sse_feed(&s, rows[i].in + at, n - at < piece ? n - at : piece, on_event, &h), 0);
            assert_string_equal(h.text, rows[i].out);
            sse_free(&s);
        }
    }
}

static void
stops(void **state)
{
    static const char text[] = "data: a\n\ndata: b\n\n";
    struct heard h = { .stop_after = 1 };
    struct sse s = SSE_INIT;

    (void)state;
    assert_int_equal(sse_feed(&s, text, sizeof(text) - 1, on_event, &h), 7);
    assert_string_equal(h.text, "message||a;");
    sse_free(&s);
}

static void
ceilings(void **state)
{
    static const size_t n = 1024 * 1024;
    char *many = malloc(n);
    struct heard h = { .text = "" };
    struct sse s = SSE_INIT;
    int r = 0;

    (void)state;
    assert_non_null(many);
    memset(many, 'a', n);
    for (size_t i = 0; r == 0 && i < 2 * SSE_DATA_MAX / n; i++)
        r = sse_feed(&s, many, n, on_event, &h);
    assert_int_equal(r, -1);
    assert_int_equal(errno, EMSGSIZE);
    sse_free(&s);
    s = (struct sse)SSE_INIT;
    for (size_t i = 0, last = 0; last == 0 && i < 2 * SSE_DATA_MAX / n; i++) {
        memcpy(many, "data: ", 6);
        many[n - 1] = '\n';
        r = sse_feed(&s, many, n, on_event, &h);
        last = r != 0;
    }
    assert_int_equal(r, -1);
    assert_int_equal(errno, EMSGSIZE);
    sse_free(&s);
    free(many);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events), cmocka_unit_test(stops), cmocka_unit_test(ceilings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
