/* base/loop: what was dropped in a round is not told of it, whoever has its memory or its descriptor now */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ends_another),
        cmocka_unit_test(one_gets_another_descriptor),
    };
    int failed;

    if (loop_init(&loop, NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    loop_close(&loop);
    return failed;
}
