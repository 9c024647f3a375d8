/* egress/conn_look.c: what is still looked at of bytes that pass
 *
 * The first bytes of a connection named its host, or were of no protocol that does. Two things may come behind them and
 * name another:
 *
 *   LOOK_LINE     a request that its first bytes do not show: a method is any token, some servers take other blanks,
 *                 and it may come byte by byte. Until the first line has ended, what could be its version waits; the
 *                 rest passes at once, for a client may wait for an answer to half a line.
 *   LOOK_ANSWER   a second ClientHello. Only the server's first message asks for it (HelloRetryRequest, RFC 8446
 *                 4.1.4): until that has begun, nothing of the client's passes but the first one.
 *   LOOK_HELLO    it was asked for: it has to name the same host.
 */
#include <errno.h>
#include <sys/socket.h>

#include "egress/conn.h"
#include "egress/sniff.h"
#include "egress/tls_hello.h"

#define TLS_CHANGE_CIPHER_SPEC 20
#define TLS_HANDSHAKE 22
#define TLS_DATA 23
#define RECORD_HEADER 5

void
conn_look_answer(struct conn *c)
{
    struct tls_hello hello;

    if (c->in.n == 0 || tls_hello_parse(c->in.p, c->in.n, &hello) != TLS_HELLO_OK)
        return;
    c->look = LOOK_ANSWER;
    c->may = hello.consumed;
}

static void
pass_all(struct conn *c)
{
    c->look = LOOK_NONE;
    c->may = 0;
}

bool
conn_look_line(struct conn *c)
{
    size_t safe;
    enum sniff_line line = sniff_line(c->in.p, c->in.n, &safe);

    c->look = line == SNIFF_LINE_MORE ? LOOK_LINE : LOOK_NONE;
    c->may = line == SNIFF_LINE_MORE ? safe : 0;
    return line != SNIFF_LINE_REQUEST;
}

/* A ClientHello that follows the first one is at @p, or its beginning. True: it may pass. Else it is incomplete, or
 * refused. */
static bool
hello_again(struct conn *c, const uint8_t *p, size_t n)
{
    struct tls_hello hello;
    enum tls_hello_status status = tls_hello_parse(p, n, &hello);
    const char *fault, *detail = "";

    if (status == TLS_HELLO_MORE || status == TLS_HELLO_TYPE)
        return status == TLS_HELLO_TYPE;        /* of an older version another message follows */
    fault = status != TLS_HELLO_OK ? tls_hello_word(status) : conn_hello_fault(c, &hello, &detail);
    if (fault == NULL)
        return true;
    c->speech = SPEECH_TLS;
    conn_deny(c, DECIDE_TLS_SNI, fault, detail);
    return false;
}

/* Records of the client's: what may come before its second ClientHello are dummies and early data. */
static void
look_for_hello(struct conn *c)
{
    const uint8_t *p = c->in.p;
    size_t n;

    while (c->may + RECORD_HEADER <= c->in.n && (p[c->may] == TLS_CHANGE_CIPHER_SPEC || p[c->may] == TLS_DATA)) {
        n = RECORD_HEADER + ((size_t)p[c->may + 3] << 8 | p[c->may + 4]);
        if (n > c->in.n - c->may)
            return;
        c->may += n;
    }
    n = c->in.n - c->may;
    if (n == 0 || p[c->may] == TLS_CHANGE_CIPHER_SPEC || p[c->may] == TLS_DATA)
        return;
    /* anything else (an alert) is no hello, and the handshake ends with it */
    if (p[c->may] != TLS_HANDSHAKE || hello_again(c, p + c->may, n))
        pass_all(c);
}

bool
conn_look_wants(const struct conn *c)
{
    return !c->client_eof && c->in.n < CONN_LOOK_MAX;
}

void
conn_look_up(struct conn *c)
{
    if (!conn_look_wants(c))
        return;
    if (conn_read(c) < 0) {
        conn_end(c);
        return;
    }
    if (c->look == LOOK_LINE && !conn_look_line(c)) {
        conn_deny(c, DECIDE_TLS_SNI, "tunnel-protocol", "a request that hides its host");
        return;
    }
    if (c->look == LOOK_HELLO)
        look_for_hello(c);
    if (c->look == LOOK_HELLO && c->state == CONN_RELAY && c->may == 0 && !conn_look_wants(c))
        conn_end(c);            /* it ends within its hello, or that is longer than any */
    else if (c->look == LOOK_LINE && c->client_eof)
        pass_all(c);
}

int
conn_look_down(struct conn *c)
{
    uint8_t *p = c->answer + c->answer_n;
    ssize_t n = recv(c->server.fd, p, sizeof(c->answer) - c->answer_n, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    c->answer_n += (size_t)n;
    if (n > 0 && conn_say(c, p, (size_t)n) < 0)
        return -1;
    if (n == 0 || tls_retry(c->answer, c->answer_n) == TLS_RETRY_NO) {
        pass_all(c);
    } else if (tls_retry(c->answer, c->answer_n) == TLS_RETRY_YES) {
        c->look = LOOK_HELLO;
        look_for_hello(c);
    }
    return 0;
}
