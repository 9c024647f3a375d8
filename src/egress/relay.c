/* egress/relay.c: see relay.h */
#include "egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PAGE   4096
/* A fast stream gives way to others after that many fillings of its pipe, or that many bytes. */
#define ROUNDS 16
#define TURN   ((uint64_t)1 << 20)
#define FEW    4096             /* who sends so little has probably no more: epoll says so if it has */
#define SMALL  (64 * 1024)
#define LARGE  (1024 * 1024)    /* what /proc/sys/fs/pipe-max-size lets everybody have */

static unsigned n_large;

static struct { int in, out; size_t full; } store[RELAY_STORE];
static size_t n_store, n_used;

static int
relay_open(struct relay *r)
{
    int ends[2], size;

    if (n_store > 0) {
        n_store--;
        r->in = store[n_store].in;
        r->out = store[n_store].out;
        r->full = store[n_store].full;
        n_used++;
        return 0;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    r->in = ends[1];
    r->out = ends[0];
    if (n_used >= RELAY_MANY)
        (void)fcntl(r->out, F_SETPIPE_SZ, PAGE);
    size = fcntl(r->out, F_GETPIPE_SZ);
    r->full = size > 0 ? (size_t)size : SMALL;
    n_used++;
    return 0;
}

/* Every piece that goes out wakes its reader, which costs more than moving it: a fast stream goes in large pieces. */
static void
grow(struct relay *r)
{
    int size;

    if (r->large || n_large == RELAY_LARGE_MAX)
        return;
    size = fcntl(r->out, F_SETPIPE_SZ, LARGE);
    if (size < 0)
        return;         /* the user's pipes have no room for it */
    r->full = (size_t)size;
    r->large = true;
    n_large++;
}

static void
shrink(struct relay *r)
{
    int size;

    if (!r->large)
        return;
    size = fcntl(r->out, F_SETPIPE_SZ, SMALL);
    if (size < 0)
        return;
    r->full = (size_t)size;
    r->large = false;
    n_large--;
}

void
relay_close(struct relay *r)
{
    shrink(r);
    if (r->large)
        n_large--;
    r->large = false;
    if (r->in >= 0)
        n_used--;
    /* one that may still hold bytes is nobody else's */
    if (r->in >= 0 && r->held == 0 && n_store < RELAY_STORE && r->full > PAGE) {
        store[n_store].in = take_fd(&r->in);
        store[n_store].out = take_fd(&r->out);
        store[n_store++].full = r->full;
    }
    close_fd(&r->in);
    close_fd(&r->out);
}

bool
relay_wants_input(const struct relay *r)
{
    return !r->eof && !r->stuck && !r->starved && (r->in < 0 || r->held < r->full);
}

bool
relay_wants_output(const struct relay *r)
{
    return r->held > 0;
}

/* 1: something moved; 0: would block or nothing to do; -1: broken. */
static int
fill(struct relay *r, int from)
{
    ssize_t n;

    if (!relay_wants_input(r))
        return 0;
    n = splice(from, NULL, r->in, NULL, r->full - r->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EAGAIN) {
        /* nothing came, or there is no slot: which of the two is known only when the pipe is empty. Waiting for input
         * while there is no slot would never sleep. */
        r->stuck = r->held > 0;
        return 0;
    }
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    if (n == 0)
        r->eof = true;
    r->held += (size_t)n;
    return n > 0;
}

static int
drain(struct relay *r, int to)
{
    ssize_t n;

    if (r->held == 0)
        return 0;
    /* never SPLICE_F_MORE: TCP would hold a short last piece back for 200 ms */
    n = splice(r->out, NULL, to, NULL, r->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    r->stuck = false;
    r->held -= (size_t)n;
    r->moved += (uint64_t)n;
    return 1;
}

int
relay_pump(struct relay *r, int from, int to)
{
    uint64_t before = r->moved;
    int i;

    if (r->done)
        return 0;
    if (r->in < 0 && relay_open(r) < 0) {
        r->starved = errno == EMFILE || errno == ENFILE;
        return r->starved ? 0 : -1;
    }
    r->starved = false;
    for (i = 0; i < ROUNDS && r->moved - before < TURN; i++) {
        size_t had = r->held;
        int got = fill(r, from);
        bool few = got > 0 && r->held - had < FEW;
        int gave = got < 0 ? -1 : drain(r, to);

        if (gave < 0)
            return -1;
        if ((got == 0 && gave == 0) || (few && r->held == 0))
            break;
    }
    if (i == ROUNDS || r->moved - before >= TURN)
        grow(r);
    else if (r->held == 0 && r->moved - before < SMALL)
        shrink(r);
    if (r->eof && r->held == 0) {
        r->done = true;
        /* half-close: the other direction goes on */
        if (shutdown(to, SHUT_WR) < 0 && errno != ENOTCONN)
            return -1;
    }
    if (r->held == 0 && !r->large)      /* a fast stream would have to grow the next one again */
        relay_close(r);
    return 0;
}
