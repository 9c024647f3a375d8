/* front/framing.c: see framing.h */
#include "front/framing.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"

#define HEAD_MAX 32768          /* more is not in the library's own room */
#define FDS_MAX  65536

struct framing {
    int fd;
    struct buf part;            /* of a head that has not come whole; what was handed on of it, too */
    struct http1_body body;
    bool in_body;
    bool other;                 /* that request would have the connection speak something else */
    bool over;                  /* nothing is judged any more */
    bool begun;                 /* the library has the beginning of a head that is not whole */
    enum http1_result fault;    /* that is why */
    uint64_t heads, asked;      /* good ones that came, and those that the library has */
};

static struct framing *of[FDS_MAX];
static ssize_t (*tls_recv)(gnutls_session_t, void *, size_t);
static bool under_tls;          /* what recv(2) reads is not the plain text */

int
framing_open(bool tls)
{
    void *found = dlsym(RTLD_NEXT, "gnutls_record_recv");

    under_tls = tls;
    memcpy(&tls_recv, &found, sizeof(tls_recv));
    return found != NULL ? 0 : -1;
}

struct framing *
framing_begin(int fd)
{
    struct framing *g = fd >= 0 && fd < FDS_MAX ? calloc(1, sizeof(*g)) : NULL;

    if (g == NULL)
        return NULL;
    g->fd = fd;
    g->part = (struct buf)BUF_INIT(HEAD_MAX);
    of[fd] = g;
    return g;
}

void
framing_end(struct framing *g)
{
    if (g == NULL)
        return;
    of[g->fd] = NULL;
    buf_free(&g->part);
    free(g);
}

enum http1_result
framing_next(struct framing *g)
{
    if (g == NULL)
        return HTTP1_BAD_CONNECTION;
    if (g->asked < g->heads) {
        g->asked++;
        return HTTP1_OK;
    }
    return g->fault != HTTP1_OK ? g->fault : HTTP1_BAD_CONNECTION;
}

bool
framing_unread(const struct framing *g)
{
    return g != NULL && (g->in_body || g->over);
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* How many bytes of @p, which a head begins or goes on with, are good: all of them, or those until it ends. */
static size_t
take_head(struct framing *g, const uint8_t *p, size_t n)
{
    static struct http1_head head;      /* 4 KiB that is only looked at here */
    const size_t had = g->part.n;
    const uint8_t *all = p;
    size_t all_n = n;

    g->begun = had > 0;
    if (had > 0) {
        /* one byte more than the ceiling is never appended: the codec says that it is too large */
        size_t take = n < HEAD_MAX - had ? n : HEAD_MAX - had;
        if (buf_append(&g->part, p, take) < 0) {
            g->fault = HTTP1_HEAD_TOO_LARGE;
            return 0;
        }
        all = g->part.p;
        all_n = g->part.n;
        if (!http1_worth_parsing(all, all_n, had, HEAD_MAX))
            return n;
    }
    g->fault = http1_parse_request_any_host(all, all_n, HEAD_MAX, &head);
    if (g->fault == HTTP1_MORE) {
        g->fault = had == 0 && buf_append(&g->part, p, n) < 0 ? HTTP1_HEAD_TOO_LARGE : HTTP1_OK;
        return g->fault == HTTP1_OK ? n : 0;
    }
    if (g->fault == HTTP1_OK)
        g->fault = http1_body_begin(&g->body, &head, UINT64_MAX);
    if (g->fault != HTTP1_OK)
        return 0;
    g->heads++;
    g->other = head.upgrade.n > 0;
    g->in_body = head.framing != HTTP1_BODY_NONE && !(head.framing == HTTP1_BODY_LENGTH && head.body_length == 0);
    n = head.length - had;
    buf_free(&g->part);
    g->part = (struct buf)BUF_INIT(HEAD_MAX);
    return n;
}

static size_t
take_body(struct framing *g, const uint8_t *p, size_t n)
{
    struct str data;
    size_t used = 0;
    enum http1_result r = http1_body_next(&g->body, p, n, &data, &used);

    if (r == HTTP1_OK)
        g->in_body = false;
    else if (r != HTTP1_MORE)
        g->fault = r;
    return used;
}

/* What the library gets of the @n bytes at @p, which have room for @room: how many; -1 with errno. */
static ssize_t
judge(struct framing *g, uint8_t *p, size_t n, size_t room)
{
    static const char end[] = "\r\n\r\n", whole[] = "GET / HTTP/1.1\r\nHost: none\r\n\r\n";
    const char *rest;
    size_t at = 0, take;

    while (at < n && g->fault == HTTP1_OK) {
        take = g->in_body ? take_body(g, p + at, n - at) : take_head(g, p + at, n - at);
        if (g->fault == HTTP1_OK)
            at += take;
    }
    if (g->fault == HTTP1_OK)
        return (ssize_t)n;
    g->over = true;
    if (g->in_body) {
        errno = ECONNRESET;
        return -1;
    }
    if (g->other)               /* frames of a WebSocket, if it has become one; if not, no request comes of it */
        return (ssize_t)n;
    /* the library may have the beginning of the head in which the fault is: that ends here. Its answer says why */
    rest = g->begun ? end : whole;
    if (room - at < strlen(rest)) {
        errno = ECONNRESET;
        return -1;
    }
    memcpy(p + at, rest, strlen(rest));
    return (ssize_t)(at + strlen(rest));
}

static ssize_t
passed(int fd, void *p, ssize_t n, size_t room)
{
    struct framing *g = fd >= 0 && fd < FDS_MAX ? of[fd] : NULL;

    if (g == NULL || n <= 0 || (g->over && g->other))
        return n;
    return g->over ? 0 : judge(g, p, (size_t)n, room);
}

/* --- in the libraries' place -------------------------------------------------------------------------------------- */

#define IN_PLACE_OF(name) __asm__(name) __attribute__((used, visibility("default")))

ssize_t plain_read(int fd, void *p, size_t n, int flags) IN_PLACE_OF("recv");
ssize_t tls_read(gnutls_session_t session, void *p, size_t n) IN_PLACE_OF("gnutls_record_recv");

ssize_t
plain_read(int fd, void *p, size_t n, int flags)
{
    ssize_t got = recvfrom(fd, p, n, flags, NULL, NULL);    /* which recv(2) is */

    return under_tls || (flags & MSG_PEEK) != 0 ? got : passed(fd, p, got, n);
}

ssize_t
tls_read(gnutls_session_t session, void *p, size_t n)
{
    ssize_t got = passed(gnutls_transport_get_int(session), p, tls_recv(session, p, n), n);

    return got == -1 && errno == ECONNRESET ? GNUTLS_E_PUSH_ERROR : got;
}
