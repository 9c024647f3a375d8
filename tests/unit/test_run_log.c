/* keeper/run_log: what is kept of a command's output, and who reads it at which pace */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "keeper/run_log.h"
#include "proto/edge_run.h"

/* The byte of a stream at a position, so that what is read shows where it was. */
static uint8_t
byte_of(uint8_t stream, uint64_t at)
{
    return (uint8_t)(at * 7 + at / 251 + stream * 101);
}

static void
add(struct run_log *log, uint8_t stream, size_t n)
{
    static uint8_t p[3 * RUN_LOG_BYTES];

    for (size_t i = 0; i < n; i++)
        p[i] = byte_of(stream, log->at[stream] + i);
    assert_int_equal(run_log_add(log, stream, p, n), 0);
}

/* Read what is there: each byte is the one of its position, none comes twice, none that is kept is passed over. */
static void
read_all(const struct run_log *log, struct run_reader *reader, size_t max, uint64_t gap[2])
{
    uint64_t at, want[2] = { reader->at[0], reader->at[1] };
    const uint8_t *p;
    uint8_t stream;
    size_t n;

    while ((n = run_log_read(log, reader, max, &stream, &at, &p)) > 0) {
        assert_true(n <= max && stream < 2 && at >= want[stream] && at + n <= log->at[stream]);
        if (at > want[stream])
            assert_true(want[stream] < run_log_oldest(log, stream));
        gap[stream] += at - want[stream];
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], byte_of(stream, at + i));
        want[stream] = at + n;
        assert_int_equal(reader->at[stream], want[stream]);
    }
    assert_int_equal(run_log_left(log, reader), 0);
}

static void
the_newest_is_kept(void **state)
{
    struct run_log log = { .pieces = NULL };
    struct run_reader reader = { .piece = 0 };
    uint64_t gap[2] = { 0, 0 };

    (void)state;
    read_all(&log, &reader, 10, gap);
    add(&log, 0, 100);
    add(&log, 1, 50);
    read_all(&log, &reader, 7, gap);
    assert_true(gap[0] == 0 && gap[1] == 0 && reader.at[0] == 100 && reader.at[1] == 50);
    add(&log, 0, 2 * RUN_LOG_BYTES);        /* more than there is room for, at once */
    assert_int_equal(run_log_oldest(&log, 0), 100 + RUN_LOG_BYTES);
    assert_int_equal(run_log_oldest(&log, 1), 50);
    assert_int_equal(run_log_left(&log, &reader), RUN_LOG_BYTES);
    read_all(&log, &reader, 1000, gap);
    assert_true(gap[0] == RUN_LOG_BYTES && gap[1] == 0);
    /* one who comes later, or had a part */
    reader = (struct run_reader){ .at = { 100 + RUN_LOG_BYTES + 5, 50 } };
    gap[0] = 0;
    read_all(&log, &reader, 1 << 20, gap);
    assert_int_equal(gap[0], 0);
    run_log_free(&log);
}

static void
streams_that_change_with_every_byte(void **state)
{
    struct run_log log = { .pieces = NULL };
    struct run_reader slow = { .piece = 0 }, quick = { .piece = 0 };
    uint64_t gap[2] = { 0, 0 }, none[2] = { 0, 0 };

    (void)state;
    for (int i = 0; i < 3 * RUN_LOG_PIECES; i++) {
        add(&log, (uint8_t)(i & 1), 1);
        read_all(&log, &quick, 1, none);
    }
    assert_true(none[0] == 0 && none[1] == 0 && quick.at[0] == log.at[0]);
    read_all(&log, &slow, 1, gap);
    assert_true(gap[0] == RUN_LOG_PIECES && gap[1] == RUN_LOG_PIECES);
    run_log_free(&log);
}

static void
many_paces(void **state)
{
    struct run_log log = { .pieces = NULL };
    struct run_reader readers[3] = { { .piece = 0 }, { .piece = 0 }, { .piece = 0 } };
    uint64_t gap[3][2] = { { 0, 0 }, { 0, 0 }, { 0, 0 } };
    uint32_t seed = 1;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1103515245 + 12345;
        add(&log, (uint8_t)(seed >> 16 & 1), seed >> 8 & 1023);
        for (size_t k = 0; k < 3; k++)
            if (i % (k == 0 ? 1 : k == 1 ? 13 : 1500) == 0)
                read_all(&log, &readers[k], 1 + (seed >> 4 & 4095), gap[k]);
        assert_true(log.end - log.begin <= RUN_LOG_BYTES && log.next - log.first <= RUN_LOG_PIECES);
    }
    assert_true(gap[0][0] == 0 && gap[0][1] == 0 && gap[1][0] == 0 && gap[2][0] > 0);
    run_log_free(&log);
}

/* --- the edge ----------------------------------------------------------------------------------------------------- */

static void
questions(void **state)
{
    static const struct { struct edge_run_ask ask; bool well; } rows[] = {
        { { .what = RUN_LIST }, true }, { { .what = RUN_LIST, .number = 1 }, false },
        { { .what = RUN_GET, .number = 1 }, true }, { { .what = RUN_GET }, false },
        { { .what = RUN_GET, .number = UINT64_MAX }, false }, { { .what = RUN_ASKS, .number = 1 }, false },
        { { .what = RUN_FOLLOW, .number = 1, .at = { 5, 6 } }, true }, { { .what = RUN_GET, .number = 1, .at = { 5, 0 } }, false },
        { { .what = RUN_INPUT, .number = 1, .last = true }, true }, { { .what = RUN_END, .number = 1, .last = true }, false },
        { { .what = RUN_SIGNAL, .number = 1, .signal = 31 }, true }, { { .what = RUN_SIGNAL, .number = 1 }, false },
        { { .what = RUN_SIGNAL, .number = 1, .signal = 32 }, false }, { { .what = RUN_END, .number = 1, .signal = 9 }, false },
        { { .what = RUN_RESIZE, .number = 1, .rows = 1, .cols = 1 }, true },
        { { .what = RUN_GET, .number = 1, .context = true }, true }, { { .what = RUN_LIST, .context = true }, false },
        { { .what = RUN_END, .number = 1, .context = true }, true },
        { { .what = RUN_INPUT, .number = 1, .context = true }, false },
        { { .what = RUN_FOLLOW, .number = 1, .context = true }, false },
        { { .what = RUN_RESTART, .number = 1, .context = true }, true }, { { .what = RUN_RESTART, .number = 1 }, false },
        { { .what = RUN_RESIZE, .number = 1, .rows = 1 }, false }, { { .what = RUN_GET, .number = 1, .cols = 1 }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t room[edge_run_ask_MOST];
        struct buf b = BUF_INIT_IN(room, sizeof(room));
        struct edge_run_ask back;
        struct wire_in in;
        assert_int_equal(edge_run_ask_put(&b, &rows[i].ask), 0);
        in = wire_in_of(b.p, b.n);
        assert_int_equal(edge_run_ask_get(&in, &back), rows[i].well);
        for (size_t n = 0; n < b.n; n++) {
            in = wire_in_of(b.p, n);
            assert_false(edge_run_ask_get(&in, &back));
        }
    }
}

static void
records(void **state)
{
    const struct edge_run run = { .number = 7, .state = RUN_ENDED | RUN_TERMINAL, .flags = EDGE_SIGNALED, .code = 9,
                                  .begun_ms = 1, .ended_ms = 2, .ms = 1, .bytes = { 10, 20 }, .gone = { 10, 0 },
                                  .name = "sh" };
    uint8_t room[edge_run_MOST];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    struct edge_run back;
    struct wire_in in;

    (void)state;
    assert_int_equal(edge_run_put(&b, &run), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(edge_run_get(&in, &back));
    assert_true(back.number == 7 && back.code == 9 && back.bytes[1] == 20 && back.gone[0] == 10);
    assert_string_equal(back.name, "sh");
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(edge_run_get(&in, &back));
    }
    b.p[8] = 0;             /* one that runs has no end */
    in = wire_in_of(b.p, b.n);
    assert_false(edge_run_get(&in, &back));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_kept), cmocka_unit_test(streams_that_change_with_every_byte),
        cmocka_unit_test(many_paces), cmocka_unit_test(questions), cmocka_unit_test(records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
