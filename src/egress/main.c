/* egress/main.c: cloche-egress starts: rules from the supervisor, rights away, then the loop
 *
 * Started by the supervisor with the control socket at descriptor 3 (SOCK_SEQPACKET), the listeners from 4 on, in the
 * order of wall/capture.h (/dev/null where there is none), and after them the file in which names have their addresses
 * (fake.h). The supervisor says its rules, one message each (rule_wire.h), "S" when they are in the SRT dialect (before
 * any rule), "P" and a line of parent.h for a parent proxy, then "G". From then on it only listens, and its end is ours:
 * connections close, nothing opens. When only its writing side ends, the sandbox has ended: what still waits in the
 * listeners' queues is decided, so that it is in the log, and not carried.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/confine.h"
#include "egress/egress.h"
#include "egress/rule_wire.h"
#include "wall/addresses.h"

#define FD_CONTROL   3
#define FD_LISTENERS 4
#define FD_NAMES     (FD_LISTENERS + CAPTURE_LISTENERS)
#define TICK_MS      500
#define LAST_MS      500        /* for what waits when the sandbox ends; and for the supervisor to hear of it */

static struct egress egress;
static struct decide_rules rules = DECIDE_RULES_INIT;
static json_t *rule_texts;      /* what the rules borrow */
static struct ip own[ADDRESSES_MAX];

static int
read_rules(struct err *err)
{
    char message[RULE_WIRE_MAX];

    rules.closed = false;
    rule_texts = json_array();
    for (;;) {
        ssize_t n = recv(FD_CONTROL, message, sizeof(message), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, ERR_PROTOCOL, "egress.rules", "the supervisor ended before its rules did");
        if (n == 1 && message[0] == 'G')
            return 0;
        if (n == 1 && message[0] == 'S')
            rules.srt = true;
        else if (message[0] == 'P' ? parents_add(&egress.parents, message + 1, (size_t)n - 1, err) < 0
                                   : rule_read(message, (size_t)n, rule_texts, &rules, err) < 0)
            return -1;
    }
}

static void
on_control(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    char message[64];

    if (events & EPOLLOUT)
        log_flush(e);
    if ((events & (EPOLLIN | EPOLLHUP)) && recv(w->fd, message, sizeof(message), MSG_DONTWAIT) == 0)
        e->over = true;
}

static int
set_up(struct egress *e, struct err *err)
{
    uint8_t key[FAKE_KEY_SIZE];
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* the host's own addresses are never dialled: its services would take the sandbox for a neighbour */
    if (read_rules(err) < 0 || interface_addresses(own, &rules.n_own, err) < 0 || loop_init(&e->loop, err) < 0)
        return -1;
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return err_sys(err, errno, "egress.random", "getrandom");
    rules.own = own;
    e->rules = &rules;
    e->waiting = (struct buf)BUF_INIT(LOG_WAITING_MAX);
    e->conns_max = confine_limits();
    e->fakes = fake_adopt(FD_NAMES, key, e->loop.now_ms, err);
    close(FD_NAMES);
    e->resolver = e->fakes == NULL ? NULL : resolver_new(&e->loop, err);
    if (e->resolver == NULL)
        return -1;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++) {
        struct stat st;
        e->listeners[i] = (struct watch)WATCH_INIT;
        if (i >= CAPTURE_PORT && (fstat(FD_LISTENERS + (int)i, &st) < 0 || !S_ISSOCK(st.st_mode))) {
            close(FD_LISTENERS + (int)i);       /* fewer ports than there is room for */
            continue;
        }
        e->listeners[i] = (struct watch){ .fd = FD_LISTENERS + (int)i, .owner = e,
                                          .ready = i == CAPTURE_DNS_UDP ? dns_on_udp : conn_on_listener };
        if (loop_watch(&e->loop, &e->listeners[i], EPOLLIN) < 0)
            return err_sys(err, errno, "egress.listeners", "descriptor %d", FD_LISTENERS + (int)i);
    }
    e->control = (struct watch){ .fd = FD_CONTROL, .owner = e, .ready = on_control };
    if (loop_watch(&e->loop, &e->control, EPOLLIN) < 0)
        return err_sys(err, errno, "egress.control", "descriptor %d", FD_CONTROL);
    if (confine(err) < 0)
        return -1;
    /* from here on there is nothing to say that the supervisor does not hear over the control socket */
    return null < 0 || dup3(null, STDERR_FILENO, O_CLOEXEC) < 0 ? err_sys(err, errno, "egress.stderr", "/dev/null") : 0;
}

static int
serve(struct egress *e, struct err *err)
{
    uint64_t ticked = e->loop.now_ms;

    while (!e->over) {
        if (loop_round(&e->loop, resolver_patience(e->resolver, TICK_MS), err) < 0)
            return -1;
        resolver_tick(e->resolver);
        if (e->loop.now_ms - ticked >= TICK_MS) {
            ticked = e->loop.now_ms;
            conn_tick(e);
            log_tick(e);
        }
        conn_free_ended(e);
        conn_make_room(e);
    }
    conn_close_all(e);
    loop_watch(&e->loop, &e->control, 0);
    /* what was asked for in the sandbox's last moment */
    for (uint64_t end = e->loop.now_ms + LAST_MS; e->loop.now_ms < end; conn_free_ended(e))
        if (loop_round(&e->loop, 0, err) <= 0)
            break;
    conn_close_all(e);
    log_tick(e);
    log_finish(e, LAST_MS);
    return 0;
}

int
main(void)
{
    struct err err = ERR_INIT;
    int r;

    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    r = set_up(&egress, &err) < 0 ? -1 : serve(&egress, &err);
    if (r < 0)
        fprintf(stderr, "cloche-egress: %s [%s]\n", err.msg, err.code);
    resolver_free(egress.resolver);
    buf_free(&egress.parents.no_proxy);
    fake_free(egress.fakes);
    decide_rules_free(&rules);
    buf_free(&egress.waiting);
    json_decref(rule_texts);
    loop_close(&egress.loop);
    return r < 0 ? 1 : 0;
}
