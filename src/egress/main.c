/* egress/main.c: cloche-egress starts: rules from the supervisor, rights away, then the loop
 *
 * Started by the supervisor with the control socket at descriptor 3 (SOCK_SEQPACKET) and the listeners from 4 on, in
 * the order of wall/capture.h. The supervisor says its rules, one message each ("A" or "D", the pattern, a NUL, the
 * origin's name), "S" when they are in the SRT dialect (before any rule), "P" and a line of parent.h for a parent
 * proxy, "V" when the vault's socket follows the listeners, with "C" a file of certificates to trust beside the host's,
 * then "G". From then on it only listens, and its end is ours: connections close, nothing opens.
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
#include <unistd.h>

#include "base/cleanup.h"
#include "egress/confine.h"
#include "egress/egress.h"
#include "egress/vault_end.h"
#include "wall/addresses.h"

#define FD_CONTROL   3
#define FD_LISTENERS 4
#define FD_VAULT     (FD_LISTENERS + CAPTURE_LISTENERS)
#define MESSAGE_MAX  8192
#define EXTRA_MAX    64
#define TICK_MS      500

static struct egress egress;
static struct decide_rules rules = DECIDE_RULES_INIT;
static struct ip own[ADDRESSES_MAX];
static const char *extra[EXTRA_MAX];        /* files of certificates */
static size_t n_extra;
static bool with_vault;

static int
add_rule(const char *message, size_t n, struct err *err)
{
    const char *end = memchr(message + 1, '\0', n - 1);
    struct origin from = { .kind = ORIGIN_FILE };
    char *text, *name;

    if (end == NULL)
        return err_set(err, ERR_PROTOCOL, "egress.rules", "a rule without an origin");
    /* rules borrow their text: these live as long as the process */
    text = strndup(message + 1, (size_t)(end - message - 1));
    name = strndup(end + 1, n - (size_t)(end + 1 - message));
    if (text == NULL || name == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    from.name = name;
    return decide_rules_add(&rules, message[0] == 'D', str_of(text), &from, NULL, err);
}

static int
add_extra(const char *message, size_t n, struct err *err)
{
    if (n_extra == EXTRA_MAX)
        return err_set(err, ERR_LIMIT, "egress.trust", "more than %d files of certificates to trust", EXTRA_MAX);
    extra[n_extra] = strndup(message + 1, n - 1);
    return extra[n_extra++] != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static int
read_rules(struct err *err)
{
    char message[MESSAGE_MAX];

    rules.closed = false;
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
        else if (n == 1 && message[0] == 'V')
            with_vault = true;
        else if (n > 1 && (size_t)n < sizeof(message) && message[0] == 'C') {
            if (add_extra(message, (size_t)n, err) < 0)
                return -1;
        } else if (n > 2 && message[0] == 'P') {
            if (parents_add(&egress.parents, message + 1, (size_t)n - 1, err) < 0)
                return -1;
        } else if (n < 3 || (size_t)n == sizeof(message) || (message[0] != 'A' && message[0] != 'D'))
            return err_set(err, ERR_PROTOCOL, "egress.rules", "a message that is no rule");
        else if (add_rule(message, (size_t)n, err) < 0)
            return -1;
    }
}

static void
on_control(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    char message[MESSAGE_MAX];

    (void)events;
    if (recv(w->fd, message, sizeof(message), MSG_DONTWAIT) == 0)
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
    e->fakes = fake_new(key, err);
    e->resolver = e->fakes == NULL ? NULL : resolver_new(&e->loop, err);
    if (e->resolver == NULL)
        return -1;
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++) {
        e->listeners[i] = (struct watch){ .fd = FD_LISTENERS + (int)i, .owner = e,
                                          .ready = i == CAPTURE_DNS_UDP ? dns_on_udp : conn_on_listener };
        if (loop_watch(&e->loop, &e->listeners[i], EPOLLIN) < 0)
            return err_sys(err, errno, "egress.listeners", "descriptor %d", FD_LISTENERS + (int)i);
    }
    e->control = (struct watch){ .fd = FD_CONTROL, .owner = e, .ready = on_control };
    if (loop_watch(&e->loop, &e->control, EPOLLIN) < 0)
        return err_sys(err, errno, "egress.control", "descriptor %d", FD_CONTROL);
    if (with_vault && vault_end_open(e, FD_VAULT, extra, n_extra, err) < 0)
        return -1;
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
    log_tick(e);
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
    vault_end_close(&egress);
    resolver_free(egress.resolver);
    buf_free(&egress.parents.no_proxy);
    fake_free(egress.fakes);
    decide_rules_free(&rules);
    loop_close(&egress.loop);
    return r < 0 ? 1 : 0;
}
