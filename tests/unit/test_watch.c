/* What the daemon says of itself: trace contexts, log settings, numbers (R89) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "front/trace.h"
#include "warden/stats.h"

#define ID   "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void
traceparents(void **state)
{
    static const struct { const char *text; bool well, sampled; } rows[] = {
        { "00-" ID "-" SPAN "-01", true, true }, { "00-" ID "-" SPAN "-00", true, false },
        { "00-" ID "-" SPAN "-03", true, true }, { "00-" ID "-" SPAN "-02", true, false },
        { "cc-" ID "-" SPAN "-01", true, true }, { "cc-" ID "-" SPAN "-01-what", true, true },
        { "cc-" ID "-" SPAN "-01-", true, true },
        { "00-" ID "-" SPAN "-01-what", false, false }, { "00-" ID "-" SPAN "-01-", false, false },
        { "cc-" ID "-" SPAN "-01what", false, false }, { "cc-" ID "-" SPAN "-01.x", false, false },
        { "ff-" ID "-" SPAN "-01", false, false }, { "0-" ID "-" SPAN "-01", false, false },
        { "00-00000000000000000000000000000000-" SPAN "-01", false, false },
        { "00-" ID "-0000000000000000-01", false, false }, { "00-" ID "-" SPAN "-0", false, false },
        { "00-" ID "-" SPAN "-0x", false, false }, { "00-" ID "-" SPAN "-011", false, false },
        { "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false, false },
        { "00-" ID "-B7AD6B7169203331-01", false, false }, { "00-" ID "-" SPAN "-0A", false, false },
        { " 00-" ID "-" SPAN "-01", false, false }, { "00-" ID "-" SPAN "-01 ", false, false },
        { "00_" ID "-" SPAN "-01", false, false }, { "00-" ID SPAN "-01", false, false },
        { "", false, false }, { "00", false, false }, { "00-" ID "-" SPAN, false, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct trace t = { .sampled = false };
        char text[TRACE_TEXT + 1];
        if (trace_parse(str_of(rows[i].text), &t) != rows[i].well || t.sampled != rows[i].sampled)
            fail_msg("%s", rows[i].text);
        if (!rows[i].well)
            continue;
        assert_string_equal(t.id, ID);
        assert_string_equal(t.span, SPAN);
        trace_print(&t, text);
        assert_string_equal(text, t.sampled ? "00-" ID "-" SPAN "-01" : "00-" ID "-" SPAN "-00");
    }
    /* a NUL among them, and a view that is longer than its string */
    assert_false(trace_parse((struct str){ "00-" ID "\0" SPAN "-01", TRACE_TEXT }, &(struct trace){ .sampled = false }));
}

static void
trace_ids(void **state)
{
    static const uint8_t some[8] = { 0, 1, 2, 0xab, 0xff, 0, 0, 9 }, none[16] = { 0 };
    char text[TRACE_ID + 1];

    (void)state;
    trace_digits(some, sizeof(some), text);
    assert_string_equal(text, "000102abff000009");
    trace_digits(none, sizeof(none), text);
    assert_string_equal(text, "00000000000000000000000000000001");
}

static void
log_settings(void **state)
{
    static const struct { const char *text; bool well, json; enum log_level level; } rows[] = {
        { "json:info", true, true, LEVEL_INFO }, { "text:warn", true, false, LEVEL_WARN },
        { "text:error", true, false, LEVEL_ERROR }, { "json:notice", true, true, LEVEL_NOTICE },
        { "json", false, false, 0 }, { "json:", false, false, 0 }, { "xml:info", false, false, 0 },
        { "json:all", false, false, 0 }, { ":info", false, false, 0 }, { "", false, false, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum log_level level = LEVELS;
        bool json;
        if (log_setting_parse(rows[i].text, &json, &level) != rows[i].well)
            fail_msg("%s", rows[i].text);
        if (rows[i].well)
            assert_true(json == rows[i].json && level == rows[i].level);
    }
}

static void
histograms(void **state)
{
    struct histogram h = { .sum_us = 0 };

    (void)state;
    assert_int_equal(histogram_bound_us(0), 250);
    histogram_add(&h, 0);
    histogram_add(&h, 250);         /* an upper bound belongs to its own bucket */
    histogram_add(&h, 251);
    histogram_add(&h, UINT64_MAX);
    assert_int_equal(h.bucket[0], 2);
    assert_int_equal(h.bucket[1], 1);
    assert_int_equal(h.bucket[HISTOGRAM_BOUNDS], 1);
    for (size_t i = 1; i < HISTOGRAM_BOUNDS; i++)
        assert_true(histogram_bound_us(i) > histogram_bound_us(i - 1));
}

static void
samples(void **state)
{
    static const struct stat_sample some[] = {
        { .which = STAT_SANDBOXES, .label = { "ready", "" }, .value = 3 },
        { .which = STAT_OPERATIONS, .label = { "exec", "ok" }, .value = UINT64_MAX },
    };
    struct histogram h = { .bucket = { [2] = 5, [HISTOGRAM_BOUNDS] = 1 }, .sum_us = 77 };
    cleanup_buf struct buf b = BUF_INIT(65536);
    struct stat_sample back;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        stats_put(&b, &some[i]);
    stats_put_histogram(&b, STAT_EXEC_SECONDS, "", "", &h);
    for (size_t n = 0; n < b.n; n++) {
        struct wire_in in = wire_in_of(b.p, n);
        bool well = true;
        while (in.n > 0 && well)
            well = stats_get(&in, &back);
        if (well && n != 0 && !wire_done(&in))
            fail_msg("cut at %zu", n);
    }
    struct wire_in in = wire_in_of(b.p, b.n);
    assert_true(stats_get(&in, &back) && back.which == STAT_SANDBOXES && back.value == 3);
    assert_true(stats_get(&in, &back) && strcmp(back.label[1], "ok") == 0 && back.value == UINT64_MAX);
    assert_true(stats_get(&in, &back) && back.histogram.bucket[2] == 5 && back.histogram.sum_us == 77);
    assert_true(wire_done(&in));
}

static void
text_form(void **state)
{
    static const struct stat_sample some[] = {
        { .which = STAT_SANDBOXES, .label = { "ready", "" }, .value = 3 },
        { .which = STAT_CREATE_FAILED, .label = { "a\"b\\c\nd\x01", "" }, .value = 1 },
        { .which = STAT_PROCESS_CPU, .label = { "warden", "" }, .value = 1500000 },
    };
    cleanup_buf struct buf text = BUF_INIT(65536);
    struct stats_text t = { .out = &text };

    (void)state;
    for (size_t i = 0; i < 3; i++)
        stats_text(&t, &some[i]);
    stats_text_end(&t);
    assert_int_equal(buf_nul(&text), 0);
    assert_non_null(strstr((char *)text.p, "# TYPE cloche_sandboxes gauge\ncloche_sandboxes{state=\"ready\"} 3\n"));
    assert_non_null(strstr((char *)text.p, "{code=\"a\\\"b\\\\c\\nd?\"} 1\n"));
    assert_non_null(strstr((char *)text.p, "# TYPE cloche_process_cpu_seconds_total counter\n"
                                           "cloche_process_cpu_seconds_total{process=\"warden\"} 1.500000\n"));
    assert_null(strstr((char *)text.p, "EOF"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traceparents), cmocka_unit_test(trace_ids), cmocka_unit_test(log_settings),
        cmocka_unit_test(histograms), cmocka_unit_test(samples), cmocka_unit_test(text_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
