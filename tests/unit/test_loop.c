/* base/loop, by epoll and by poll: what was dropped in a round is not told of it, whoever has its memory or its
 * descriptor now; and times */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"

static struct loop loop;
static int told;

/* One end of a pair, of which the other has something to read. */
static int
ready_fd(int *other)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(write(pair[1], "x", 1), 1);
    *other = pair[1];
    return pair[0];
}

static void
on_ready(struct watch *w, uint32_t events)
{
    assert_true((events & EPOLLIN) != 0 && w->fd >= 0);
    told++;
}

/* Of two that are ready the first that is told ends the other. */
static void
end_other(struct watch *w, uint32_t events)
{
    struct watch **other = w->owner;

    on_ready(w, events);
    loop_drop(&loop, *other);
    memset(*other, 0xff, sizeof(**other));
    free(*other);
    *other = NULL;
}

static void
one_ends_another(void **state)
{
    struct watch *both[2];
    int others[2];

    (void)state;
    told = 0;
    for (size_t i = 0; i < 2; i++) {
        both[i] = calloc(1, sizeof(*both[i]));
        *both[i] = (struct watch){ .fd = ready_fd(&others[i]), .ready = end_other, .owner = &both[1 - i] };
        assert_int_equal(loop_watch(&loop, both[i], EPOLLIN), 0);
    }
    assert_int_equal(loop_round(&loop, 0, NULL), 2);
    assert_int_equal(told, 1);
    for (size_t i = 0; i < 2; i++) {
        if (both[i] != NULL)
            loop_drop(&loop, both[i]);
        free(both[i]);
        close(others[i]);
    }
}

static struct watch second;
static int kept = -1, spare = -1;

/* The same watch with another descriptor, of which nothing came in this round. */
static void
replace_second(struct watch *w, uint32_t events)
{
    on_ready(w, events);
    if (kept >= 0)
        return;
    kept = loop_forget(&loop, &second);
    assert_true(kept >= 0 && second.fd == -1);
    second.fd = spare;
    assert_int_equal(loop_watch(&loop, &second, EPOLLIN), 0);
}

static void
one_gets_another_descriptor(void **state)
{
    struct watch first = WATCH_INIT, last = WATCH_INIT;
    int others[3];

    (void)state;
    told = 0;
    kept = -1;
    first = (struct watch){ .fd = ready_fd(&others[0]), .ready = replace_second };
    second = (struct watch){ .fd = ready_fd(&others[1]), .ready = on_ready };
    spare = ready_fd(&others[2]);
    assert_int_equal(loop_watch(&loop, &first, EPOLLIN), 0);
    assert_int_equal(loop_watch(&loop, &second, EPOLLIN), 0);
    assert_int_equal(loop_round(&loop, 0, NULL), 2);
    assert_int_equal(told, 1);
    assert_int_equal(loop_round(&loop, 0, NULL), 2);
    assert_int_equal(told, 3);
    last.ready = on_ready;
    assert_int_equal(loop_move(&loop, &second, &last, EPOLLIN), 0);
    assert_true(second.fd == -1 && last.fd == spare);
    assert_int_equal(loop_watch(&loop, &first, 0), 0);
    assert_int_equal(loop_round(&loop, 0, NULL), 1);
    assert_int_equal(told, 4);
    loop_drop(&loop, &first);
    loop_drop(&loop, &last);
    assert_int_equal(loop_round(&loop, 0, NULL), 0);
    close(kept);
    for (size_t i = 0; i < 3; i++)
        close(others[i]);
}

/* --- by poll alone ------------------------------------------------------------------------------------------------- */

static struct watch *order[4];

static void
note_order(struct watch *w, uint32_t events)
{
    assert_true(events != 0);
    order[told++] = w;
}

static void
they_are_told_in_the_order_in_which_they_were_watched(void **state)
{
    struct watch all[4];
    int others[4];

    (void)state;
    told = 0;
    for (size_t i = 0; i < 4; i++)
        all[i] = (struct watch){ .fd = ready_fd(&others[i]), .ready = note_order };
    for (size_t i = 4; i-- > 0;)
        assert_int_equal(loop_watch(&loop, &all[i], EPOLLIN), 0);
    /* a pause is no loss of the place, another descriptor is */
    assert_int_equal(loop_watch(&loop, &all[3], 0), 0);
    assert_int_equal(loop_watch(&loop, &all[2], EPOLLIN | EPOLLOUT), 0);
    assert_int_equal(loop_round(&loop, 0, NULL), 3);
    assert_int_equal(loop_watch(&loop, &all[3], EPOLLIN), 0);
    assert_int_equal(loop_look(&loop, &all[1], all[1].fd, EPOLLIN), 0);
    assert_int_equal(loop_look(&loop, &all[2], loop_forget(&loop, &all[2]), EPOLLIN), 0);
    told = 0;
    assert_int_equal(loop_round(&loop, 0, NULL), 4);
    assert_true(order[0] == &all[3] && order[1] == &all[1] && order[2] == &all[0] && order[3] == &all[2]);
    for (size_t i = 0; i < 4; i++) {
        loop_drop(&loop, &all[i]);
        close(others[i]);
    }
    assert_null(loop.watches);
}

static void
a_file_is_always_ready(void **state)
{
    int fd = memfd_create("cloche-test", MFD_CLOEXEC);
    struct watch w = WATCH_INIT;

    (void)state;
    told = 0;
    assert_true(fd >= 0);
    w.ready = on_ready;
    assert_int_equal(loop_look(&loop, &w, fd, EPOLLIN), 0);
    assert_int_equal(loop_round(&loop, -1, NULL), 1);
    assert_int_equal(told, 1);
    /* closed by whoever it belongs to: it is not looked at any more */
    close(fd);
    assert_int_equal(loop_look(&loop, &w, -1, EPOLLIN), 0);
    assert_int_equal(loop_round(&loop, 0, NULL), 0);
    assert_null(loop.watches);
}

static void
there_is_a_most(void **state)
{
    static struct watch all[LOOP_BATCH + 1];

    (void)state;
    for (size_t i = 0; i <= LOOP_BATCH; i++) {
        all[i].fd = STDERR_FILENO;
        assert_int_equal(loop_watch(&loop, &all[i], EPOLLPRI), i < LOOP_BATCH ? 0 : -1);
    }
    assert_int_equal(all[LOOP_BATCH].events, 0);
    for (size_t i = 0; i <= LOOP_BATCH; i++)
        (void)loop_forget(&loop, &all[i]);
}

/* --- times --------------------------------------------------------------------------------------------------------- */

static char came[16], letters[] = "abcdefghijklmnopqrstuvwxyz";

#define LETTER(c) (&letters[(c) - 'a'])

/* Its letter. */
static void
note_time(struct timer *t)
{
    size_t n = strlen(came);

    assert_int_equal(t->at_ms, 0);
    assert_true(n + 1 < sizeof(came));
    came[n] = *(const char *)t->owner;
    came[n + 1] = '\0';
}

static void
times_come_in_their_order_and_once(void **state)
{
    struct timer t[4];
    uint64_t now = clock_ms();

    (void)state;
    came[0] = '\0';
    for (size_t i = 0; i < 4; i++)
        t[i] = (struct timer){ .due = note_time, .owner = &letters[i] };
    loop_at(&loop, &t[2], now - 1);
    loop_at(&loop, &t[0], now + 3600000);
    loop_at(&loop, &t[1], now - 2);
    loop_at(&loop, &t[3], now - 1);
    loop_at(&loop, &t[0], now - 3);
    loop_at(&loop, &t[1], 0);
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "acd");
    assert_int_equal(loop_round(&loop, 0, NULL), 0);
    assert_string_equal(came, "acd");
    assert_null(loop.timers);
}

static void
a_round_waits_for_the_first_time_and_no_longer(void **state)
{
    struct timer soon = { .due = note_time, .owner = LETTER('s') }, late = { .owner = LETTER('l') };
    uint64_t begun = clock_ms();

    (void)state;
    came[0] = '\0';
    loop_at(&loop, &late, begun + 3600000);
    loop_at(&loop, &soon, begun + 20);
    assert_int_equal(loop_round(&loop, 0, NULL), 0);
    assert_string_equal(came, "");
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "s");
    assert_true(clock_ms() >= begun + 20 && loop.now_ms >= begun + 20);
    /* without a callback it only ends the wait, and less patience than until then is kept */
    loop_at(&loop, &late, clock_ms() + 20);
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_int_equal(late.at_ms, 0);
    loop_at(&loop, &late, clock_ms() + 3600000);
    assert_int_equal(loop_round(&loop, 5, NULL), 0);
    loop_at(&loop, &late, 0);
}

static void
set_again(struct timer *t)
{
    note_time(t);
    loop_at(&loop, t, 1);
}

static void
one_that_is_set_again_waits_for_the_next_round(void **state)
{
    struct timer t = { .due = set_again, .owner = LETTER('x') };

    (void)state;
    came[0] = '\0';
    loop_at(&loop, &t, 1);
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "x");
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "xx");
    loop_at(&loop, &t, 0);
}

static struct timer *other_time;

static void
free_other(struct timer *t)
{
    note_time(t);
    loop_at(&loop, other_time, 0);
    memset(other_time, 0xff, sizeof(*other_time));
    free(other_time);
}

static void
one_may_free_another_that_is_due(void **state)
{
    struct timer t = { .due = free_other, .owner = LETTER('f') };

    (void)state;
    came[0] = '\0';
    other_time = calloc(1, sizeof(*other_time));
    assert_non_null(other_time);
    *other_time = (struct timer){ .due = note_time, .owner = LETTER('o') };
    loop_at(&loop, &t, 1);
    loop_at(&loop, other_time, 2);
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "f");
    assert_null(loop.timers);
}

static void
break_round(struct watch *w, uint32_t events)
{
    on_ready(w, events);
    loop_break(&loop);
}

/* What is ready is told before times are, and what a round has no more room for stays. */
static void
a_round_that_is_broken_off_tells_no_times(void **state)
{
    struct timer t = { .due = note_time, .owner = LETTER('t') };
    struct watch w = WATCH_INIT;
    int other;

    (void)state;
    told = 0;
    came[0] = '\0';
    w = (struct watch){ .fd = ready_fd(&other), .ready = break_round };
    assert_int_equal(loop_watch(&loop, &w, EPOLLIN), 0);
    loop_at(&loop, &t, 1);
    assert_int_equal(loop_round(&loop, -1, NULL), 1);
    assert_int_equal(told, 1);
    assert_string_equal(came, "");
    loop_drop(&loop, &w);
    close(other);
    assert_int_equal(loop_round(&loop, -1, NULL), 0);
    assert_string_equal(came, "t");
}

static void
fail_round(struct timer *t)
{
    note_time(t);
    loop_done(&loop, 0);
    loop_done(&loop, *(const char *)t->owner == 'b' ? -1 : 1);
}

static void
what_failed_ends_the_rounds(void **state)
{
    struct timer t[3];

    (void)state;
    came[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        t[i] = (struct timer){ .due = fail_round, .owner = &letters[i] };
        loop_at(&loop, &t[i], i + 1);
    }
    assert_int_equal(loop_round(&loop, -1, NULL), -1);
    assert_int_equal(loop_round(&loop, -1, NULL), -1);
    assert_string_equal(came, "ab");
    loop_at(&loop, &t[2], 0);
    loop.failed = false;
}

#define TIMES                                                      \
    cmocka_unit_test(times_come_in_their_order_and_once),          \
    cmocka_unit_test(a_round_waits_for_the_first_time_and_no_longer), \
    cmocka_unit_test(one_that_is_set_again_waits_for_the_next_round), \
    cmocka_unit_test(one_may_free_another_that_is_due),            \
    cmocka_unit_test(a_round_that_is_broken_off_tells_no_times),   \
    cmocka_unit_test(what_failed_ends_the_rounds)

/* The longest of turns, in which something comes for the one that is told first. */
static void
take_long(struct watch *w, uint32_t events)
{
    const struct timespec while_ago = { .tv_nsec = 50000000 };

    on_ready(w, events);
    assert_int_equal(write(*(int *)w->owner, "x", 1), 1);
    (void)nanosleep(&while_ago, NULL);
}

static void
be_first(struct watch *w, uint32_t events)
{
    char byte;

    on_ready(w, events);
    assert_int_equal(told, 2);
    assert_int_equal(read(w->fd, &byte, 1), 1);
}

static void
one_is_told_first(void **state)
{
    int others[3];
    struct watch slow[2] = { WATCH_INIT, WATCH_INIT };
    struct watch first = { .fd = ready_fd(&others[2]), .ready = be_first };
    char byte;

    (void)state;
    assert_int_equal(read(first.fd, &byte, 1), 1);
    for (int i = 0; i < 2; i++) {
        slow[i] = (struct watch){ .fd = ready_fd(&others[i]), .ready = i == 0 ? take_long : on_ready, .owner = &others[2] };
        assert_int_equal(loop_watch(&loop, &slow[i], EPOLLIN), 0);
    }
    assert_int_equal(loop_watch(&loop, &first, EPOLLIN), 0);
    assert_int_equal(loop_first(&loop, &first), 0);
    told = 0;
    assert_int_equal(loop_round(&loop, 0, NULL), 2);
    assert_int_equal(told, 3);
    for (int i = 0; i < 2; i++)
        loop_drop(&loop, &slow[i]);
    loop_drop(&loop, &first);
    for (int i = 0; i < 3; i++)
        close(others[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ends_another),
        cmocka_unit_test(one_gets_another_descriptor),
        cmocka_unit_test(one_is_told_first),
        TIMES,
    };
    const struct CMUnitTest polled[] = {
        cmocka_unit_test(one_ends_another),
        cmocka_unit_test(one_gets_another_descriptor),
        cmocka_unit_test(they_are_told_in_the_order_in_which_they_were_watched),
        cmocka_unit_test(a_file_is_always_ready),
        cmocka_unit_test(there_is_a_most),
        TIMES,
    };
    int failed;

    if (loop_init(&loop, NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    loop_close(&loop);
    loop_init_polled(&loop);
    failed += cmocka_run_group_tests(polled, NULL, NULL);
    loop_close(&loop);
    return failed;
}
