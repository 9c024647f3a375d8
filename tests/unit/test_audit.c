/* the record's pure parts: hash, texts, lines, chain, filter, feed, OCSF */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/chain.h"
#include "audit/feed.h"
#include "audit/filter.h"
#include "audit/ocsf.h"
#include "base/array.h"
#include "base/sha256.h"

static const struct timespec noon = { .tv_sec = 1795262400, .tv_nsec = 123456789 };    /* 2026-11-21T12:00:00Z */

static struct str
of_buf(const struct buf *b)
{
    return (struct str){ (const char *)b->p, b->n };
}

/* --- SHA-256 ------------------------------------------------------------------------------------------------------ */

static const struct { const char *text; unsigned times; const char *hash; } vectors[] = {      /* FIPS 180-4, NIST CAVP */
    { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", 1,
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static void
check_vectors(void)
{
    char hex[SHA256_TEXT + 1];
    uint8_t hash[SHA256_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct sha256 h;
        sha256_init(&h);
        for (unsigned k = 0; k < vectors[i].times; k++)
            sha256_add(&h, vectors[i].text, strlen(vectors[i].text));
        sha256_end(&h, hash);
        sha256_text(hash, hex);
        assert_string_equal(hex, vectors[i].hash);
    }
}

/* The first turn begins without the CPU's instructions and, where there are any, ends with them; the second has them
 * from the start. */
static void
test_sha256_vectors(void **state)
{
    (void)state;
    check_vectors();
    check_vectors();
}

static void
test_sha256_in_any_pieces(void **state)
{
    uint8_t data[300], whole[SHA256_SIZE], pieces[SHA256_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof(data); n++) {
        sha256_of(data, n, whole);
        for (size_t cut = 0; cut <= n; cut += 13) {
            struct sha256 h;
            sha256_init(&h);
            sha256_add(&h, data, cut);
            sha256_add(&h, data + cut, n - cut);
            sha256_end(&h, pieces);
            assert_memory_equal(whole, pieces, sizeof(whole));
        }
    }
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static const struct { const char *text; size_t n; const char *written; } texts[] = {
    { "", 0, "" }, { "plain", 5, "plain" }, { "say \"x\\y\"", 9, "say \\\"x\\\\y\\\"" },
    { "a\nb\t\x7f\0z", 7, "a\\u000ab\\u0009\\u007f\\\\x00z" },
    { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x94" },
    { "\xff", 1, "\\\\xff" }, { "\xc3", 1, "\\\\xc3" }, { "\xc0\xaf", 2, "\\\\xc0\\\\xaf" },
    { "\xed\xa0\x80", 3, "\\\\xed\\\\xa0\\\\x80" }, { "\xf4\x90\x80\x80", 4, "\\\\xf4\\\\x90\\\\x80\\\\x80" },
    { "\xe0\x80\x80", 3, "\\\\xe0\\\\x80\\\\x80" },
};

static void
test_texts_are_escaped(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_buf struct buf out = BUF_INIT(4096);
        assert_int_equal(audit_escape((struct str){ texts[i].text, texts[i].n }, 1024, &out), 0);
        assert_int_equal(buf_nul(&out), 0);
        assert_string_equal((char *)out.p, texts[i].written);
    }
}

static void
test_long_texts_are_cut_between_characters(void **state)
{
    char text[64];

    (void)state;
    for (size_t n = 0; n < sizeof(text); n++) {
        cleanup_buf struct buf out = BUF_INIT(4096);
        memset(text, '\n', n);
        assert_int_equal(audit_escape((struct str){ text, n }, 20, &out), 0);
        assert_true(out.n <= 20);
        if (n <= 3)
            assert_int_equal(out.n, 6 * n);
        else
            assert_memory_equal(out.p, "\\u000a\\u000a...", 15);
    }
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void
make_entry(struct audit_entry *e, int i)
{
    audit_policy_decision(e, "0123456789abcdef", "deny", "network-no-rule", "connection to \"evil\" refused");
    e->when = noon;
    audit_put_cstr(e, "host", "evil.example.org");
    audit_put_number(e, "port", 443 + i);
    audit_put_bool(e, "first", i == 0);
    audit_put_cstr(e, "rule", NULL);
    audit_put_number(e, "delta", -5);
    e->trace_id = STR_LIT("4bf92f3577b34da6a3ce929d0e0e4736");
}

static void
seal_log(struct buf *log, int n)
{
    struct audit_head head = { .seq = 0 };

    for (int i = 0; i < n; i++) {
        cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX);
        struct audit_entry e;
        make_entry(&e, i);
        assert_int_equal(audit_body(&e, NULL, NULL, &body, NULL), 0);
        assert_int_equal(audit_seal(&head, of_buf(&body), log), 0);
    }
}

static void
test_an_entry_is_one_known_line(void **state)
{
    static const char body[] =
        "{\"seq\":1,\"timestamp\":\"2026-11-21T12:00:00.123456Z\",\"type\":\"policy_decision\",\"severity\":\"info\","
        "\"summary\":\"connection to \\\"evil\\\" refused\",\"sandbox\":\"0123456789abcdef\","
        "\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"metadata\":{\"decision\":\"deny\",\"reason\":\"network-no-rule\","
        "\"host\":\"evil.example.org\",\"port\":443,\"first\":true,\"rule\":null,\"delta\":-5},"
        "\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\"";
    cleanup_buf struct buf log = BUF_INIT(AUDIT_LINE_MAX);
    struct audit_member m;
    struct audit_line line;
    uint8_t hash[SHA256_SIZE];
    char hex[SHA256_TEXT + 1];

    (void)state;
    seal_log(&log, 1);
    assert_memory_equal(log.p, body, sizeof(body) - 1);
    sha256_of(body, sizeof(body) - 1, hash);
    sha256_text(hash, hex);
    assert_memory_equal(log.p + sizeof(body) - 1, ",\"hash\":\"", 9);
    assert_memory_equal(log.p + sizeof(body) + 8, hex, 64);
    assert_true(audit_parse((struct str){ (char *)log.p, log.n - 1 }, &line));
    assert_int_equal(line.seq, 1);
    assert_int_equal(line.type, AUDIT_POLICY_DECISION);
    assert_true(str_eq_c(line.sandbox, "0123456789abcdef"));
    assert_true(audit_member(&line, "port", &m) && m.kind == AUDIT_NUMBER && str_eq_c(m.value, "443"));
    assert_true(audit_member(&line, "rule", &m) && m.kind == AUDIT_NULL);
    assert_false(audit_member(&line, "nothing", &m));
    assert_memory_equal(line.hash, hash, sizeof(hash));
}

/* Walk a log as a verifier does. NULL: it holds. */
static const char *
walk(const uint8_t *p, size_t n, struct audit_head *head)
{
    bool any = false;

    *head = (struct audit_head){ .seq = 0 };
    while (n > 0) {
        const uint8_t *end = memchr(p, '\n', n);
        struct audit_line line;
        struct str text;
        const char *why;
        if (end == NULL)
            return "cut";
        text = (struct str){ (const char *)p, (size_t)(end - p) };
        if (!audit_parse(text, &line))
            return "no entry";
        why = audit_follow(head, any, &line, text);
        if (why != NULL)
            return why;
        n -= text.n + 1;
        p = end + 1;
    }
    return NULL;
}

static void
test_every_changed_byte_is_found(void **state)
{
    cleanup_buf struct buf log = BUF_INIT(65536);
    struct audit_head head, end;

    (void)state;
    seal_log(&log, 3);
    assert_null(walk(log.p, log.n, &end));
    assert_int_equal(end.seq, 3);
    for (size_t i = 0; i < log.n; i++) {
        uint8_t was = log.p[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            log.p[i] = (uint8_t)(was ^ 1U << bit);
            assert_non_null(walk(log.p, log.n, &head));
        }
        log.p[i] = '\n';
        if (was != '\n')
            assert_non_null(walk(log.p, log.n, &head));
        log.p[i] = was;
    }
}

static void
test_missing_moved_and_doubled_entries_are_found(void **state)
{
    cleanup_buf struct buf log = BUF_INIT(65536);
    uint8_t other[65536];
    struct audit_head head, end;
    size_t at[5] = { 0 };

    (void)state;
    seal_log(&log, 4);
    for (size_t i = 0, k = 1; i < log.n; i++)
        if (log.p[i] == '\n')
            at[k++] = i + 1;
    assert_null(walk(log.p, log.n, &end));
    for (size_t gone = 0; gone < 3; gone++) {       /* the last one needs somebody who knows it: the head */
        memcpy(other, log.p, at[gone]);
        memcpy(other + at[gone], log.p + at[gone + 1], log.n - at[gone + 1]);
        assert_non_null(walk(other, log.n - (at[gone + 1] - at[gone]), &head));
    }
    assert_null(walk(log.p, at[3], &head));
    assert_memory_not_equal(head.hash, end.hash, sizeof(head.hash));
    memcpy(other, log.p, at[2]);                    /* twice the second */
    memcpy(other + at[2], log.p + at[1], log.n - at[1]);
    assert_non_null(walk(other, log.n + at[2] - at[1], &head));
    for (size_t cut = 1; cut < at[1]; cut++)
        assert_string_equal(walk(log.p, cut, &head), "cut");
}

static const char *const not_lines[] = {
    "", "{}", "{\"seq\":0,", "{\"seq\":01,", "{ \"seq\":1,", "[1]", "{\"seq\":99999999999999999999,",
    "{\"seq\":1,\"timestamp\":\"2026-11-21T12:00:00Z\",",
};

/* One line's text with @from replaced. */
static bool
parses_with(const struct buf *log, const char *from, const char *to)
{
    const char *text = (const char *)log->p, *found = strstr(text, from);
    cleanup_buf struct buf out = BUF_INIT(65536);
    struct audit_line line;

    assert_non_null(found);
    buf_append(&out, text, (size_t)(found - text));
    buf_puts(&out, to);
    buf_puts(&out, found + strlen(from));
    return audit_parse((struct str){ (char *)out.p, out.n - 1 }, &line);
}

static void
test_only_one_form_is_taken(void **state)
{
    static const struct { const char *from, *to; bool ok; } rows[] = {
        { "\"seq\":1", "\"seq\":1", true }, { "\"seq\":1", "\"seq\": 1", false }, { "\"seq\":1", "\"seq\":1.0", false },
        { "\"info\"", "\"fatal\"", false }, { "policy_decision", "policy", false }, { "evil\\\"", "evil\\/", false },
        { "evil.example", "evil\\u0041example", false }, { "evil.example", "evil\\u000aexample", true },
        { "evil.example", "evil\\u000Aexample", false },
        { "evil.example", "evil\\u0000example", false }, { "evil.example", "evil\x01" "example", false },
        { "evil.example", "evil\xff" "example", false }, { "\"port\":443", "\"port\":0443", false },
        { "\"port\":443", "\"port\":-0", false }, { "\"port\":443", "\"port\":{}", false },
        { "\"port\":443", "\"po rt\":443", false }, { ",\"first\":true", ",\"first\":True", false },
        { ",\"sandbox\":\"0123456789abcdef\"", "", true }, { "0123456789abcdef\"", "\"", false },
        { ",\"prev\"", ",\"x\":1,\"prev\"", false }, { "\"}\n", "\"} \n", false }, { "\"}\n", "\"}}\n", false },
        { "2026-11-21T12", "2026-11-21 12", false },
    };
    cleanup_buf struct buf log = BUF_INIT(65536);
    struct audit_line line;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(not_lines); i++)
        assert_false(audit_parse(str_of(not_lines[i]), &line));
    seal_log(&log, 1);
    assert_int_equal(buf_nul(&log), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (parses_with(&log, rows[i].from, rows[i].to) != rows[i].ok)
            fail_msg("row %zu: %s for %s", i, rows[i].to, rows[i].from);
}

static void
test_entries_that_break_a_rule_are_refused(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(AUDIT_LINE_MAX);
    struct audit_entry e;
    struct err err = ERR_INIT;

    (void)state;
    audit_lifecycle(&e, "", "start", "x");
    audit_put_number(&e, "two words", 1);
    assert_int_equal(audit_body(&e, NULL, NULL, &out, &err), -1);
    assert_string_equal(err.code, "audit.entry");
    audit_lifecycle(&e, "", "start", "x");
    audit_put_number(&e, "event", 1);
    assert_int_equal(audit_body(&e, NULL, NULL, &out, &err), -1);
    audit_lifecycle(&e, "", "start", "x");
    for (int i = 0; i < AUDIT_META_MAX; i++)
        audit_put_number(&e, "n", i);
    assert_int_equal(audit_body(&e, NULL, NULL, &out, &err), -1);
    assert_int_equal(out.n, 0);
    audit_lifecycle(&e, "", "start", "x");
    e.type = AUDIT_TYPES;
    assert_int_equal(audit_body(&e, NULL, NULL, &out, &err), -1);
}

static bool
hide(void *ctx, struct str text, struct buf *out)
{
    const char *secret = ctx, *found = memmem(text.p, text.n, secret, strlen(secret));

    if (found == NULL)
        return false;
    buf_append(out, text.p, (size_t)(found - text.p));
    buf_puts(out, "[hidden]");
    buf_append(out, found + strlen(secret), text.n - (size_t)(found - text.p) - strlen(secret));
    return true;
}

static void
test_what_is_redacted_is_nowhere(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(AUDIT_LINE_MAX);
    char secret[] = "s3cr3t-value";
    struct audit_entry e;

    (void)state;
    audit_capability(&e, "0123456789abcdef", "x", "a summary with s3cr3t-value in it");
    audit_put_cstr(&e, "host", "s3cr3t-value.evil.example");
    audit_put_cstr(&e, "other", "nothing");
    assert_int_equal(audit_body(&e, hide, secret, &out, NULL), 0);
    assert_null(memmem(out.p, out.n, secret, strlen(secret)));
    assert_non_null(memmem(out.p, out.n, "[hidden].evil.example", 21));
    assert_non_null(memmem(out.p, out.n, "\"nothing\"", 9));
}

/* --- filter, time, feed, OCSF ------------------------------------------------------------------------------------- */

static void
test_filter(void **state)
{
    const struct { struct audit_filter f; bool match; } rows[] = {
        { { .types = 0 }, true },
        { { .types = 1U << AUDIT_POLICY_DECISION }, true }, { { .types = 1U << AUDIT_LIFECYCLE }, false },
        { { .severities = 1U << AUDIT_INFO }, true }, { { .severities = 1U << AUDIT_WARN | 1U << AUDIT_ERROR }, false },
        { { .sandbox = STR_LIT("0123") }, true }, { { .sandbox = STR_LIT("123") }, false },
        { { .host = STR_LIT("evil.example.org") }, true }, { { .host = STR_LIT("EVIL.example.org") }, true },
        { { .host = STR_LIT(".example.org") }, true }, { { .host = STR_LIT("example.org") }, false },
        { { .since = STR_LIT("2026-11-21T12:00:00") }, true }, { { .since = STR_LIT("2026-11-22") }, false },
        { { .until = STR_LIT("2026-11-21") }, true }, { { .until = STR_LIT("2026-11-20") }, false },
        { { .text = STR_LIT("REFUSED") }, true }, { { .text = STR_LIT("network-no") }, true },
        { { .text = STR_LIT("approved") }, false },
    };
    cleanup_buf struct buf log = BUF_INIT(65536);
    struct audit_line line;

    (void)state;
    seal_log(&log, 1);
    assert_true(audit_parse((struct str){ (char *)log.p, log.n - 1 }, &line));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (audit_filter_match(&rows[i].f, &line) != rows[i].match)
            fail_msg("row %zu", i);
}

static void
test_who_asked(void **state)
{
    static const struct { const char *by; bool match; } rows[] = {
        { "agent 0f builder", true }, { "0f", true }, { "builder", true }, { "agent 0f", true }, { "agent", true },
        { "build", false }, { "f builder", false }, { "Builder", false }, { "agent 0f builder x", false },
        { "gent", false }, { "0f builde", false },
    };
    struct audit_head head = { .seq = 0 };
    cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX), log = BUF_INIT(AUDIT_LINE_MAX);
    struct audit_line line;
    struct audit_entry e;

    (void)state;
    make_entry(&e, 0);
    audit_put_cstr(&e, "by", "agent 0f builder");
    assert_int_equal(audit_body(&e, NULL, NULL, &body, NULL), 0);
    assert_int_equal(audit_seal(&head, of_buf(&body), &log), 0);
    assert_true(audit_parse((struct str){ (char *)log.p, log.n - 1 }, &line));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(audit_filter_match(&(struct audit_filter){ .by = str_of(rows[i].by) }, &line), rows[i].match);
}

static void
test_times(void **state)
{
    static const struct { const char *text; int64_t ms; } rows[] = {
        { "1970-01-01T00:00:00.000000Z", 0 }, { "2026-11-21T12:00:00.123456Z", 1795262400123 },
        { "2000-02-29T23:59:59.999000Z", 951868799999 }, { "2000-03-01T00:00:00.000000Z", 951868800000 },
        { "2024-12-31T00:00:00.000000Z", 1735603200000 }, { "2100-03-01T00:00:00.000000Z", 4107542400000 },
    };
    static const char *const taken[] = { "2026-11", "2026-11-21T1", "10m", "2h", "90", "3d" };
    static const char *const refused[] = { "", "yesterday", "2026/11/21", "-5m", "2026-11-21T12:00:00.123456Zx" };
    char out[AUDIT_TIME_TEXT + 1];
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(audit_time_ms(str_of(rows[i].text), &ms));
        assert_int_equal(ms, rows[i].ms);
    }
    assert_false(audit_time_ms(STR_LIT("2026-13-21T12:00:00.123456Z"), &ms));
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        assert_true(audit_filter_time(str_of(taken[i]), out));
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_false(audit_filter_time(str_of(refused[i]), out));
}

static void
count(void *ctx, struct str text, const struct audit_line *line)
{
    uint64_t *last = ctx;

    (void)text;
    assert_true(*last == 0 || line->seq > *last);
    *last = line->seq;
}

static void
test_feed_keeps_the_newest(void **state)
{
    const struct audit_filter ports = { .text = STR_LIT("\"port\":5442") };
    struct audit_feed *f = audit_feed_new();
    struct audit_head head = { .seq = 0 };
    cleanup_buf struct buf line = BUF_INIT(AUDIT_LINE_MAX);
    uint64_t heard = 0, seen = 0;
    int handle;

    (void)state;
    assert_non_null(f);
    handle = audit_feed_subscribe(f, count, &heard);
    assert_true(handle >= 0);
    for (int i = 0; i <= AUDIT_FEED_MAX; i++) {
        cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX);
        struct audit_entry e;
        make_entry(&e, i);
        buf_reset(&line);
        assert_int_equal(audit_body(&e, NULL, NULL, &body, NULL), 0);
        assert_int_equal(audit_seal(&head, of_buf(&body), &line), 0);
        if (i == AUDIT_FEED_MAX) {
            assert_int_equal(audit_feed_size(f), AUDIT_FEED_MAX);
            audit_feed_unsubscribe(f, handle);
        }
        assert_true(audit_feed_push(f, (struct str){ (char *)line.p, line.n - 1 }));
    }
    assert_int_equal(audit_feed_size(f), AUDIT_FEED_MAX / 2);
    assert_int_equal(heard, AUDIT_FEED_MAX);
    assert_int_equal(audit_feed_query(f, NULL, 10, count, &seen), 10);
    assert_int_equal(seen, AUDIT_FEED_MAX + 1);
    seen = 0;
    assert_int_equal(audit_feed_query(f, &ports, 10, count, &seen), 1);
    assert_int_equal(seen, 5000);
    assert_false(audit_feed_push(f, STR_LIT("no entry")));
    audit_feed_free(f);
}

static void
test_ocsf_of_a_refused_connection(void **state)
{
    cleanup_buf struct buf log = BUF_INIT(65536), out = BUF_INIT(65536);
    struct audit_line line;

    (void)state;
    seal_log(&log, 1);
    assert_true(audit_parse((struct str){ (char *)log.p, log.n - 1 }, &line));
    assert_int_equal(audit_ocsf(&line, &out), 0);
    assert_int_equal(buf_nul(&out), 0);
    assert_non_null(strstr((char *)out.p, "\"class_uid\":4001"));
    assert_non_null(strstr((char *)out.p, "\"type_uid\":400105"));
    assert_non_null(strstr((char *)out.p, "\"dst_endpoint\":{\"hostname\":\"evil.example.org\",\"port\":443}"));
    assert_non_null(strstr((char *)out.p, "\"time\":1795262400123"));
    assert_non_null(strstr((char *)out.p, "\"action_id\":2"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_vectors),
        cmocka_unit_test(test_sha256_in_any_pieces),
        cmocka_unit_test(test_texts_are_escaped),
        cmocka_unit_test(test_long_texts_are_cut_between_characters),
        cmocka_unit_test(test_an_entry_is_one_known_line),
        cmocka_unit_test(test_every_changed_byte_is_found),
        cmocka_unit_test(test_missing_moved_and_doubled_entries_are_found),
        cmocka_unit_test(test_only_one_form_is_taken),
        cmocka_unit_test(test_entries_that_break_a_rule_are_refused),
        cmocka_unit_test(test_what_is_redacted_is_nowhere),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_who_asked),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_feed_keeps_the_newest),
        cmocka_unit_test(test_ocsf_of_a_refused_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
