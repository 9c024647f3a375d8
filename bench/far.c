/* bench/far.c: the far end of the network measurements: a small web server, a source and sink of bytes, a name server
 *
 *   far ADDRESS CERTIFICATE KEY
 *
 * On ADDRESS: HTTP/1.1 at 80 and HTTPS at 443, each with a fixed answer of 512 bytes and one thread; at 7777 whatever
 * begins with "down" (gets bytes until it goes away), "take" (sends bytes until one is an 'e', which is answered with
 * one byte) or "echo" (gets back what it sends); at 53 (UDP) every name is at ADDRESS. Prints "ready" once it listens.
 * Measured is what stands between the client (bench/load.c) and this, so it does as little as such a server can.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY       512
#define BATCH      64
#define HEAD_MAX   4096
#define CHUNK      (256 * 1024)
#define WORD       4
#define NAME_BYTES 255          /* of a name in a query (RFC 1035 §2.3.4) */

struct web {
    int listener, epoll;
    SSL_CTX *tls;               /* NULL: plain */
};

struct conn {
    int fd;
    SSL *ssl;
    size_t n;
    char head[HEAD_MAX];
};

static struct in_addr here;
static char stays[BODY + 256], closes[BODY + 256];
static size_t stays_n, closes_n;

static void
fail(const char *what)
{
    fprintf(stderr, "far: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int
listen_at(uint16_t port, int type)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = here };
    const int on = 1;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || (type != SOCK_DGRAM && listen(fd, 4096) < 0))
        fail("listen");
    return fd;
}

/* --- HTTP -------------------------------------------------------------------------------------------------------- */

static void
drop(struct conn *c)
{
    if (c->ssl != NULL)
        SSL_free(c->ssl);
    close(c->fd);
    free(c);
}

static ssize_t
take(struct conn *c)
{
    size_t room = sizeof(c->head) - 1 - c->n;

    if (c->ssl == NULL)
        return recv(c->fd, c->head + c->n, room, MSG_DONTWAIT);
    int n = SSL_read(c->ssl, c->head + c->n, (int)room);
    if (n > 0)
        return n;
    int why = SSL_get_error(c->ssl, n);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* Answer every whole request in @c; false: the connection is over. */
static bool
answer(struct conn *c)
{
    char *end;

    c->head[c->n] = '\0';
    while ((end = strstr(c->head, "\r\n\r\n")) != NULL) {
        size_t used = (size_t)(end + 4 - c->head);
        *end = '\0';
        bool last = strcasestr(c->head, "\r\nConnection: close") != NULL;
        const char *text = last ? closes : stays;
        size_t n = last ? closes_n : stays_n;
        ssize_t sent = c->ssl != NULL ? SSL_write(c->ssl, text, (int)n) : send(c->fd, text, n, MSG_NOSIGNAL);
        if (sent != (ssize_t)n || last) {
            if (c->ssl != NULL)
                SSL_shutdown(c->ssl);
            return false;
        }
        c->n -= used;
        memmove(c->head, c->head + used, c->n + 1);
    }
    return c->n < sizeof(c->head) - 1;
}

static void
arrive(struct web *w)
{
    const int on = 1;
    int fd;

    while ((fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct conn *c = calloc(1, sizeof(*c));
        struct epoll_event e = { .events = EPOLLIN, .data = { .ptr = c } };
        if (c == NULL)
            fail("calloc");
        c->fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (w->tls != NULL) {
            c->ssl = SSL_new(w->tls);
            SSL_set_fd(c->ssl, fd);
            SSL_set_accept_state(c->ssl);
        }
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

static _Noreturn void *
web(void *arg)
{
    struct web *w = arg;
    struct epoll_event came[BATCH], e = { .events = EPOLLIN };

    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->listener, &e) < 0)
        fail("epoll");
    for (;;) {
        int n = epoll_wait(w->epoll, came, BATCH, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = came[i].data.ptr;
            if (c == NULL) {
                arrive(w);
                continue;
            }
            ssize_t got = take(c);
            while (got > 0) {
                c->n += (size_t)got;
                if (!answer(c))
                    break;
                /* TLS may hold more that epoll does not know of */
                got = c->ssl != NULL ? take(c) : -1;
                if (c->ssl == NULL)
                    errno = EAGAIN;
            }
            if (got >= 0 || errno != EAGAIN)
                drop(c);
        }
    }
}

static void
serve_web(uint16_t port, SSL_CTX *tls)
{
    struct web *w = calloc(1, sizeof(*w));
    pthread_t thread;

    if (w == NULL)
        fail("calloc");
    w->tls = tls;
    w->listener = listen_at(port, SOCK_STREAM | SOCK_NONBLOCK);
    if (pthread_create(&thread, NULL, web, w) != 0)
        fail("thread");
}

/* --- bytes ------------------------------------------------------------------------------------------------------- */

static void *
stream(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *chunk = calloc(1, CHUNK), what[WORD];
    const int on = 1;
    ssize_t n = 1;

    if (chunk == NULL)
        fail("calloc");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (recv(fd, what, WORD, MSG_WAITALL) != WORD) {
        n = 0;
    } else if (memcmp(what, "down", WORD) == 0) {
        while (n > 0)
            n = send(fd, chunk, CHUNK, MSG_NOSIGNAL);
    } else if (memcmp(what, "echo", WORD) == 0) {
        while (n > 0) {
            n = recv(fd, chunk, CHUNK, 0);
            n = n > 0 ? send(fd, chunk, (size_t)n, MSG_NOSIGNAL) : 0;
        }
    } else {
        do
            n = recv(fd, chunk, CHUNK, 0);
        while (n > 0 && chunk[n - 1] != 'e');
        if (n > 0)
            (void)send(fd, "e", 1, MSG_NOSIGNAL);
    }
    free(chunk);
    close(fd);
    return NULL;
}

static _Noreturn void *
streams(void *arg)
{
    int listener = (int)(intptr_t)arg, fd;
    pthread_t thread;

    for (;;) {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (pthread_create(&thread, NULL, stream, (void *)(intptr_t)fd) != 0)
            fail("thread");
        pthread_detach(thread);
    }
}

/* --- names ------------------------------------------------------------------------------------------------------- */

/* Turn the query in @m (@n bytes, room for 64 more) into its answer: A is here, of other types there is none. How many
 * bytes it has, 0: not a query. */
static size_t
name_answer(unsigned char *m, size_t n)
{
    static const unsigned char record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4 };
    size_t at = 12;

    while (at < n && m[at] != 0 && at < 12 + NAME_BYTES)
        at += 1u + m[at];
    if (at + 5 > n || m[at] != 0)
        return 0;
    bool is_a = m[at + 1] == 0 && m[at + 2] == 1;
    n = at + 5;                                     /* an EDNS record is not answered */
    m[2] = 0x81;
    m[3] = 0x80;
    memset(m + 6, 0, 6);
    if (!is_a)
        return n;
    m[7] = 1;
    memcpy(m + n, record, sizeof(record));
    memcpy(m + n + sizeof(record), &here, 4);
    return n + sizeof(record) + 4;
}

static _Noreturn void *
names(void *arg)
{
    int fd = (int)(intptr_t)arg;
    unsigned char m[576];

    for (;;) {
        struct sockaddr_in who;
        socklen_t size = sizeof(who);
        ssize_t n = recvfrom(fd, m, sizeof(m) - 64, 0, (struct sockaddr *)&who, &size);
        size_t out = n > 12 ? name_answer(m, (size_t)n) : 0;
        if (out > 0)
            (void)sendto(fd, m, out, 0, (struct sockaddr *)&who, size);
    }
}

int
main(int argc, char **argv)
{
    char body[BODY + 1];
    pthread_t thread;
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    const struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGPIPE, &ignore, NULL);      /* OpenSSL writes without MSG_NOSIGNAL */
    if (argc != 4 || inet_pton(AF_INET, argv[1], &here) != 1) {
        fprintf(stderr, "usage: far ADDRESS CERTIFICATE KEY\n");
        return 2;
    }
    if (tls == NULL || SSL_CTX_use_certificate_chain_file(tls, argv[2]) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, argv[3], SSL_FILETYPE_PEM) != 1)
        fail(argv[2]);
    memset(body, 'x', BODY);
    body[BODY] = '\0';
    stays_n = (size_t)snprintf(stays, sizeof(stays), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                               "Content-Length: %d\r\n\r\n%s", BODY, body);
    closes_n = (size_t)snprintf(closes, sizeof(closes), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                "Connection: close\r\nContent-Length: %d\r\n\r\n%s", BODY, body);
    serve_web(80, NULL);
    serve_web(443, tls);
    if (pthread_create(&thread, NULL, streams, (void *)(intptr_t)listen_at(7777, SOCK_STREAM)) != 0 ||
        pthread_create(&thread, NULL, names, (void *)(intptr_t)listen_at(53, SOCK_DGRAM)) != 0)
        fail("thread");
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
}
