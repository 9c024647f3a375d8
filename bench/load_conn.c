/* bench/load_conn.c: see load.h */
#include "load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__thread char problem[256];
static SSL_CTX *tls_client;

int
conn_init(void)
{
    tls_client = SSL_CTX_new(TLS_client_method());
    if (tls_client == NULL)
        return -1;
    SSL_CTX_set_session_cache_mode(tls_client, SSL_SESS_CACHE_OFF);
    return 0;
}

int
wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(problem, sizeof(problem), format, args);
    va_end(args);
    problem[strcspn(problem, "\r\n")] = '\0';
    return -1;
}

void
hang_up(struct conn *c)
{
    if (c->ssl != NULL)
        SSL_free(c->ssl);
    if (c->fd >= 0)
        close(c->fd);
    c->ssl = NULL;
    c->fd = -1;
}

int
give(struct conn *c, const char *p, size_t n)
{
    ssize_t sent = c->ssl != NULL ? SSL_write(c->ssl, p, (int)n) : send(c->fd, p, n, MSG_NOSIGNAL);

    return sent == (ssize_t)n ? 1 : wrong("write: %s", strerror(errno));
}

ssize_t
take(struct conn *c)
{
    size_t room = sizeof(c->answer) - 1 - c->n;
    ssize_t n;

    if (room == 0)
        return wrong("an answer of more than %d bytes", ANSWER_MAX);
    if (c->ssl != NULL) {
        n = SSL_read(c->ssl, c->answer + c->n, (int)room);
        int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, (int)n);
        if (why == SSL_ERROR_WANT_READ)
            return -2;
        if (n <= 0)
            return why == SSL_ERROR_ZERO_RETURN ? 0 : wrong("TLS: read");
    } else {
        n = recv(c->fd, c->answer + c->n, room, 0);
        if (n < 0)
            return errno == EAGAIN ? -2 : wrong("read: %s", strerror(errno));
    }
    c->n += (size_t)n;
    c->answer[c->n] = '\0';
    return n;
}

/* The head of the tunnel's answer, byte by byte: what follows belongs to the tunnel. */
static int
enter_tunnel(struct conn *c)
{
    if (give(c, c->to->connect, c->to->connect_n) < 0)
        return -1;
    c->n = 0;
    while (c->n < sizeof(c->answer) - 1) {
        ssize_t n = recv(c->fd, c->answer + c->n, 1, 0);
        if (n <= 0)
            return wrong("CONNECT: %s", n == 0 ? "closed" : strerror(errno));
        c->answer[++c->n] = '\0';
        if (c->n >= 4 && memcmp(c->answer + c->n - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    if (strncmp(c->answer, "HTTP/1.", 7) != 0 || strncmp(c->answer + 8, " 200", 4) != 0)
        return wrong("CONNECT: %s", c->answer);
    return 0;
}

int
open_conn(struct conn *c, const struct target *to)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    const int on = 1;

    *c = (struct conn){ .to = to, .fd = -1 };
    c->fd = socket(to->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return wrong("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(c->fd, (const struct sockaddr *)&to->at, to->at_n) < 0)
        return wrong("connect: %s", strerror(errno));
    if (to->tunnel && enter_tunnel(c) < 0)
        return -1;
    c->n = 0;
    if (!to->tls)
        return 0;
    c->ssl = SSL_new(tls_client);
    if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_set_tlsext_host_name(c->ssl, to->host) != 1)
        return wrong("TLS: set up");
    if (SSL_connect(c->ssl) != 1) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        ERR_clear_error();
        return wrong("TLS: %s", why != NULL ? why : "closed");
    }
    return 0;
}

/* The value of the header @name (with its ": ") in the head that ends at @end, or NULL. */
static const char *
header(const struct conn *c, const char *end, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = strstr(c->answer, "\r\n"); p != NULL && p < end; p = strstr(p + 2, "\r\n"))
        if (strncasecmp(p + 2, name, n) == 0)
            return p + 2 + n;
    return NULL;
}

size_t
number(const char *p)
{
    size_t v = 0;

    for (; *p >= '0' && *p <= '9' && v < 1000000000; p++)
        v = v * 10 + (size_t)(*p - '0');
    return v;
}

int
whole(const struct conn *c, bool eof, bool *closes)
{
    const char *end = strstr(c->answer, "\r\n\r\n"), *value;

    *closes = eof;
    if (end == NULL)
        return eof ? wrong("closed after %zu bytes", c->n) : 0;
    if (strncmp(c->answer, "HTTP/1.", 7) != 0 || strncmp(c->answer + 8, " 200", 4) != 0)
        return wrong("%s", c->answer);
    value = header(c, end, "Connection: ");
    if (strncmp(c->answer, "HTTP/1.0", 8) == 0 || (value != NULL && strncasecmp(value, "close", 5) == 0))
        *closes = true;
    value = header(c, end, "Content-Length: ");
    if (value != NULL)
        return c->n - (size_t)(end + 4 - c->answer) >= number(value) ? 1 : eof ? wrong("cut short") : 0;
    value = header(c, end, "Transfer-Encoding: ");
    if (value != NULL && c->n >= 5 && memcmp(c->answer + c->n - 5, "0\r\n\r\n", 5) == 0)
        return 1;
    return eof ? 1 : 0;
}
