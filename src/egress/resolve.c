/* egress/resolve.c: see resolve.h */
#include "egress/resolve.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <ares.h>

#include "base/clock.h"
#include "wall/sockaddr.h"

#define SOCKETS_MAX 64
#define TIMEOUT_MS  3000
#define TRIES       2
#define ASKING_MAX  4096

struct asking {
    struct resolver *r;
    resolve_fn *fn;             /* NULL: forgotten */
    void *ctx;
    char name[HOST_NAME_MAX_LEN + 1];
    struct asking *next;
};

/* An answer that is good for a while. */
struct known {
    char name[HOST_NAME_MAX_LEN + 1];
    uint64_t until_ms;          /* 0: a free place */
    struct ip addresses[RESOLVE_MAX];
    size_t n;
};

struct resolver {
    struct loop *loop;
    ares_channel channel;
    struct watch sockets[SOCKETS_MAX];  /* c-ares opens and closes the descriptors; here they are only watched */
    struct timer late;                  /* a server's answer */
    struct asking *asking;
    size_t n;
    struct known known[RESOLVE_KNOWN];
};

/* After all that begins a question or takes an answer. */
static void
wait_on(struct resolver *r)
{
    struct timeval room;
    const struct timeval *t = ares_timeout(r->channel, NULL, &room);

    loop_at(r->loop, &r->late, t == NULL ? 0 : clock_ms() + (uint64_t)t->tv_sec * 1000 +
                                                   ((uint64_t)t->tv_usec + 999) / 1000);
}

static void
process(struct resolver *r, ares_socket_t in, ares_socket_t out)
{
    ares_process_fd(r->channel, in, out);
    wait_on(r);
}

static void
on_late(struct timer *t)
{
    process(t->owner, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void
on_socket(struct watch *w, uint32_t events)
{
    process(w->owner, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? w->fd : ARES_SOCKET_BAD,
            events & EPOLLOUT ? w->fd : ARES_SOCKET_BAD);
}

/* c-ares says what it wants of one of its sockets; nothing: it is about to close it. */
static void
on_state(void *data, ares_socket_t fd, int readable, int writable)
{
    struct resolver *r = data;
    struct watch *free_one = NULL, *w = NULL;
    uint32_t events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);

    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (r->sockets[i].fd == fd)
            w = &r->sockets[i];
        else if (r->sockets[i].fd < 0 && free_one == NULL)
            free_one = &r->sockets[i];
    }
    if (w == NULL && events != 0 && free_one != NULL) {
        w = free_one;
        *w = (struct watch){ .fd = fd, .ready = on_socket, .owner = r };
    }
    if (w == NULL)
        return;     /* no room: that query times out */
    loop_watch(r->loop, w, events);
    if (events == 0)
        w->fd = -1;
}

struct resolver *
resolver_new(struct loop *l, const char *servers, struct err *err)
{
    struct resolver *r = calloc(1, sizeof(*r));
    /* no search list: "name.its-domain" is another name, which no rule allowed; no HOSTALIASES */
    struct ares_options options = { .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES, .timeout = TIMEOUT_MS,
                                    .tries = TRIES, .sock_state_cb = on_state, .sock_state_cb_data = r };
    int status;

    if (r == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    r->loop = l;
    r->late = (struct timer){ .due = on_late, .owner = r };
    for (size_t i = 0; i < SOCKETS_MAX; i++)
        r->sockets[i].fd = -1;
    status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status == ARES_SUCCESS)
        status = ares_init_options(&r->channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (status == ARES_SUCCESS && servers != NULL)
        status = ares_set_servers_csv(r->channel, servers);
    if (status == ARES_SUCCESS)
        return r;
    err_set(err, ERR_SYSTEM, "egress.resolver", "the host's resolver: %s", ares_strerror(status));
    free(r);
    return NULL;
}

void
resolver_free(struct resolver *r)
{
    if (r == NULL)
        return;
    loop_at(r->loop, &r->late, 0);
    for (struct asking *a = r->asking; a != NULL; a = a->next)
        a->fn = NULL;
    ares_destroy(r->channel);
    ares_library_cleanup();
    free(r);
}

static void
unlink_asking(struct asking *gone)
{
    for (struct asking **at = &gone->r->asking; *at != NULL; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            gone->r->n--;
            return;
        }
}

/* --- what is known already ---------------------------------------------------------------------------------------- */

static struct known *
known_find(struct resolver *r, const char *name)
{
    for (size_t i = 0; i < RESOLVE_KNOWN; i++)
        if (r->known[i].until_ms > r->loop->now_ms && strcmp(r->known[i].name, name) == 0)
            return &r->known[i];
    return NULL;
}

/* Seconds for which all of it is good. */
static uint64_t
good_for(const struct ares_addrinfo *answer)
{
    int least = RESOLVE_KNOWN_S;

    for (const struct ares_addrinfo_node *node = answer->nodes; node != NULL; node = node->ai_next)
        least = node->ai_ttl < least ? node->ai_ttl : least;
    for (const struct ares_addrinfo_cname *alias = answer->cnames; alias != NULL; alias = alias->next)
        least = alias->ttl < least ? alias->ttl : least;
    return least > 0 ? (uint64_t)least : 0;
}

static void
known_put(struct resolver *r, const char *name, const struct ip *addresses, size_t n, uint64_t seconds)
{
    struct known *place = known_find(r, name);

    if (seconds == 0)
        return;
    /* else the one that is good for the shortest time: a free one, or one that is over, before all */
    for (size_t i = 0; i < RESOLVE_KNOWN && (place == NULL || strcmp(place->name, name) != 0); i++)
        if (place == NULL || r->known[i].until_ms < place->until_ms)
            place = &r->known[i];
    memcpy(place->name, name, strlen(name) + 1);
    memcpy(place->addresses, addresses, n * sizeof(*addresses));
    place->n = n;
    place->until_ms = r->loop->now_ms + seconds * 1000;
}

static void
on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *answer)
{
    struct asking *a = arg;
    struct ip addresses[RESOLVE_MAX];
    size_t n = 0;
    uint64_t seconds = answer != NULL ? good_for(answer) : 0;
    bool too_many = false;

    (void)timeouts;
    for (struct ares_addrinfo_node *node = answer != NULL ? answer->nodes : NULL; node != NULL; node = node->ai_next) {
        if (n == RESOLVE_MAX)
            too_many = true;
        else if (sockaddr_ip(node->ai_addr, node->ai_addrlen, &addresses[n], NULL))
            n++;
    }
    ares_freeaddrinfo(answer);
    unlink_asking(a);
    if (n > 0 && !too_many)
        known_put(a->r, a->name, addresses, n, seconds);
    if (a->fn != NULL)
        a->fn(a->ctx, addresses, too_many ? 0 : n,
              too_many ? "too many addresses" : status == ARES_SUCCESS ? "no address" : ares_strerror(status));
    free(a);
}

void
resolver_ask(struct resolver *r, const char *name, resolve_fn *fn, void *ctx)
{
    const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    const struct known *known = known_find(r, name);
    size_t length = strlen(name);
    struct asking *a;

    if (known != NULL) {
        fn(ctx, known->addresses, known->n, "");
        return;
    }
    a = r->n < ASKING_MAX && length <= HOST_NAME_MAX_LEN ? calloc(1, sizeof(*a)) : NULL;
    if (a == NULL) {
        fn(ctx, NULL, 0, "too many names are being asked for");
        return;
    }
    *a = (struct asking){ .r = r, .fn = fn, .ctx = ctx, .next = r->asking };
    memcpy(a->name, name, length);
    r->asking = a;
    r->n++;
    ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, a);
    wait_on(r);
}

void
resolver_forget(struct resolver *r, void *ctx)
{
    for (struct asking *a = r->asking; a != NULL; a = a->next)
        if (a->ctx == ctx)
            a->fn = NULL;
}
