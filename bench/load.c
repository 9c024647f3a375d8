/* bench/load.c: the client of the network measurements, the same one for every proxy
 *
 * Reads commands, a line each, and answers each with one line: "ok ..." or "error TEXT". It runs where the client of a
 * proxy runs (in a sandbox, in a network namespace) and stays there, so that rounds of several proxies can alternate.
 *
 *   requests   AT FORM HOST PORT CONNECTIONS MS    -> ok N NS P50_NS P99_NS REOPENED
 *   connects   AT FORM HOST PORT THREADS MS        -> ok N NS P50_NS P99_NS ISSUER
 *   echo       AT FORM HOST PORT 1 MS              -> ok N NS P50_NS P99_NS 0
 *   down, take AT FORM HOST PORT 1 MS              -> ok BYTES NS
 *
 * AT is where to connect to, ADDRESS:PORT or NAME:PORT; "proxy" is what $http_proxy says, with its password. FORM:
 *
 *   origin      GET /                       tls         the same inside TLS
 *   absolute    GET http://HOST:PORT/       tunnel-tls  CONNECT HOST:PORT, then as tls
 *   tunnel      CONNECT HOST:PORT, then as origin
 *
 * `requests` keeps its connections, and opens one anew where the answer ends it; that then counts as part of the next
 * request. `echo` sends a byte and waits for it. `connects` is a new connection, TLS where FORM has it, and one
 * request, again and again. Certificates are not verified: the name of the issuer tells who made them.
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX   256
#define SAMPLES_MAX 4000000     /* of one command; later ones are counted only */
#define CHUNK       (256 * 1024)
#define WORDS       7

struct samples {
    uint32_t *ns;
    size_t n, count, opened;
};

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
sample(struct samples *s, uint64_t ns)
{
    s->count++;
    if (s->n < SAMPLES_MAX)
        s->ns[s->n++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static int
by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static uint32_t
percentile(struct samples *s, unsigned percent)
{
    qsort(s->ns, s->n, sizeof(*s->ns), by_size);
    return s->n == 0 ? 0 : s->ns[s->n * percent / 100];
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

/* Send the next request on @c; on a new connection when there is none, or when it turns out to be gone. */
static int
ask(struct conn *c, const struct target *to, int epoll, struct samples *s)
{
    struct epoll_event e = { .events = EPOLLIN, .data = { .ptr = c } };
    uint64_t began = c->again ? c->began : now();

    for (;;) {
        bool kept = c->fd >= 0;
        if (!kept) {
            s->opened++;
            if (open_conn(c, to) < 0)
                return -1;
            /* epoll sees records, not what is in them: a session ticket is no answer */
            if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e) < 0 ||
                (c->ssl != NULL && fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0))
                return wrong("epoll: %s", strerror(errno));
        }
        c->began = began;
        c->again = false;
        c->n = 0;
        if (give(c, to->request, to->request_n) > 0)
            return 1;
        if (!kept)
            return -1;
        hang_up(c);
    }
}

/* 1: @c is ready for its next request, or for the same one @again; 0: more is to come. */
static int
on_answer(struct conn *c, struct samples *s)
{
    bool closes;
    ssize_t n = take(c);
    int done;

    if (n == -2)
        return 0;
    if (n <= 0 && c->n == 0 && c->kept) {       /* RFC 9112 §9.3.1: it had been closed when we asked */
        hang_up(c);
        c->again = true;
        return 1;
    }
    if (n < 0)
        return -1;
    done = whole(c, n == 0, &closes);
    if (done <= 0)
        return done;
    sample(s, now() - c->began);
    c->kept = true;
    if (closes)
        hang_up(c);
    return 1;
}

static int
requests(const struct target *to, size_t n_conns, uint64_t ms, struct samples *s)
{
    static struct conn conns[CONNS_MAX];
    struct epoll_event came[CONNS_MAX];
    int epoll = epoll_create1(EPOLL_CLOEXEC), r = 1;
    uint64_t began, end;

    for (size_t i = 0; i < n_conns; i++)
        conns[i] = (struct conn){ .fd = -1 };
    for (size_t i = 0; i < n_conns && r > 0; i++)
        r = ask(&conns[i], to, epoll, s);
    began = now();
    end = began + ms * 1000000;
    while (r >= 0 && now() < end) {
        int n = epoll_wait(epoll, came, CONNS_MAX, PATIENCE_S * 1000);
        if (n == 0)
            r = wrong("no answer for %d s", PATIENCE_S);
        for (int i = 0; i < n && r >= 0; i++) {
            r = on_answer(came[i].data.ptr, s);
            if (r > 0)
                r = ask(came[i].data.ptr, to, epoll, s);
        }
    }
    end = now();
    for (size_t i = 0; i < n_conns; i++)
        hang_up(&conns[i]);
    close(epoll);
    if (r < 0)
        return -1;
    printf("ok %zu %llu %u %u %zu\n", s->count, (unsigned long long)(end - began), percentile(s, 50),
           percentile(s, 99), s->opened - n_conns);
    return 0;
}

struct worker {
    pthread_t thread;
    const struct target *to;
    uint64_t end;
    struct samples samples;
    bool failed;
    char problem[256], issuer[256];
};

static int
connect_once(struct worker *w, struct conn *c)
{
    bool closes;
    uint64_t began = now();
    int done = 0;

    if (open_conn(c, w->to) < 0 || give(c, w->to->request, w->to->request_n) < 0)
        return -1;
    while (done == 0) {
        ssize_t n = take(c);
        if (n < 0)
            return n == -2 ? wrong("no answer for %d s", PATIENCE_S) : -1;
        done = whole(c, n == 0, &closes);
    }
    if (done < 0)
        return -1;
    sample(&w->samples, now() - began);
    if (c->ssl != NULL && w->issuer[0] == '\0') {
        X509 *x = SSL_get1_peer_certificate(c->ssl);
        if (x != NULL)
            X509_NAME_get_text_by_NID(X509_get_issuer_name(x), NID_commonName, w->issuer, sizeof(w->issuer));
        X509_free(x);
    }
    return 0;
}

static void *
worker(void *arg)
{
    struct worker *w = arg;
    struct conn *c = calloc(1, sizeof(*c));

    if (c == NULL)
        abort();
    while (!w->failed && now() < w->end) {
        w->failed = connect_once(w, c) < 0;
        hang_up(c);
    }
    memcpy(w->problem, problem, sizeof(problem));
    free(c);
    return NULL;
}

static int
connects(const struct target *to, size_t n, uint64_t ms, struct samples *s)
{
    static struct worker workers[CONNS_MAX];
    uint64_t began = now();
    int r = 0;

    for (size_t i = 0; i < n; i++) {
        workers[i] = (struct worker){ .to = to, .end = began + ms * 1000000,
                                      .samples = { .ns = calloc(SAMPLES_MAX / CONNS_MAX, sizeof(uint32_t)) } };
        if (workers[i].samples.ns == NULL || pthread_create(&workers[i].thread, NULL, worker, &workers[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < n; i++) {
        struct worker *w = &workers[i];
        pthread_join(w->thread, NULL);
        for (size_t k = 0; k < w->samples.n; k++)
            sample(s, w->samples.ns[k]);
        free(w->samples.ns);
        if (w->failed)
            r = wrong("%s", w->problem);
    }
    if (r == 0)
        printf("ok %zu %llu %u %u %s\n", s->count, (unsigned long long)(now() - began), percentile(s, 50),
               percentile(s, 99), workers[0].issuer[0] != '\0' ? workers[0].issuer : "-");
    return r;
}

static int
stream(struct conn *c, const struct target *to, const char *word, uint64_t ms)
{
    static char chunk[CHUNK];
    uint64_t bytes = 0, began, end;
    bool up = strcmp(word, "take") == 0;
    ssize_t n = 1;

    if (open_conn(c, to) < 0 || give(c, word, strlen(word)) < 0)
        return -1;
    began = now();
    end = began + ms * 1000000;
    while (n > 0 && now() < end) {
        n = up ? send(c->fd, chunk, CHUNK, MSG_NOSIGNAL) : recv(c->fd, chunk, CHUNK, 0);
        bytes += n > 0 ? (uint64_t)n : 0;
    }
    /* what still lies in buffers has not been transported: the far end says when it has all */
    if (n > 0 && up)
        n = send(c->fd, "e", 1, MSG_NOSIGNAL) == 1 ? recv(c->fd, chunk, 1, 0) : -1;
    if (n <= 0)
        return wrong("stream: %s after %llu bytes", n == 0 ? "closed" : strerror(errno), (unsigned long long)bytes);
    printf("ok %llu %llu\n", (unsigned long long)bytes, (unsigned long long)(now() - began));
    return 0;
}

static int
echo(struct conn *c, const struct target *to, uint64_t ms, struct samples *s)
{
    uint64_t began, sent;
    char byte = 'x';

    if (open_conn(c, to) < 0 || give(c, "echo", 4) < 0)
        return -1;
    for (began = sent = now(); sent < began + ms * 1000000; sent = now()) {
        if (send(c->fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(c->fd, &byte, 1, 0) != 1)
            return wrong("echo: %s", strerror(errno));
        sample(s, now() - sent);
    }
    printf("ok %zu %llu %u %u 0\n", s->count, (unsigned long long)(sent - began), percentile(s, 50),
           percentile(s, 99));
    return 0;
}

/* --- where to ---------------------------------------------------------------------------------------------------- */

static unsigned
hex(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : ((unsigned)c | 32) - 'a' + 10;
}

/* "user:password" of a URL, where %XX is a byte, as it goes into Proxy-Authorization. */
static void
base64(const char *text, size_t n, char *out, size_t room)
{
    unsigned char plain[512];
    size_t m = 0;

    for (size_t i = 0; i < n && m < sizeof(plain); i++) {
        plain[m++] = (unsigned char)text[i];
        if (text[i] == '%' && i + 2 < n) {
            plain[m - 1] = (unsigned char)(hex(text[i + 1]) << 4 | hex(text[i + 2]));
            i += 2;
        }
    }
    if (room > 4 * ((m + 2) / 3))
        EVP_EncodeBlock((unsigned char *)out, plain, (int)m);
}

static int
find(struct target *to, char *at, char *password, size_t room)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
    struct addrinfo *found = NULL;
    char *port, *sign;
    int r;

    password[0] = '\0';
    if (strncmp(at, "http://", 7) == 0)
        at += 7;
    at[strcspn(at, "/")] = '\0';
    sign = strrchr(at, '@');
    if (sign != NULL) {
        base64(at, (size_t)(sign - at), password, room);
        at = sign + 1;
    }
    port = strrchr(at, ':');
    if (port == NULL)
        return wrong("%s has no port", at);
    *port++ = '\0';
    r = getaddrinfo(at, port, &hints, &found);
    if (r != 0)
        return wrong("%s: %s", at, gai_strerror(r));
    memcpy(&to->at, found->ai_addr, found->ai_addrlen);
    to->at_n = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int
aim(struct target *to, char **word)
{
    const char *form = word[2], *proxy = getenv("http_proxy");
    char at[1024], password[800], line[900] = "", where[300] = "";
    int n, m;

    *to = (struct target){ .host = word[3], .tls = strstr(form, "tls") != NULL,
                           .tunnel = strncmp(form, "tunnel", 6) == 0 };
    if (strcmp(word[1], "proxy") == 0 && proxy == NULL)
        return wrong("no http_proxy here");
    snprintf(at, sizeof(at), "%s", strcmp(word[1], "proxy") == 0 ? proxy : word[1]);
    if (find(to, at, password, sizeof(password)) < 0)
        return -1;
    if (password[0] != '\0')
        snprintf(line, sizeof(line), "Proxy-Authorization: Basic %s\r\n", password);
    if (strcmp(form, "absolute") == 0)
        snprintf(where, sizeof(where), "http://%s:%s", word[3], word[4]);
    n = snprintf(to->request, sizeof(to->request), "GET %s/ HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: load\r\n%s\r\n",
                 where, word[3], word[4], where[0] != '\0' ? line : "");
    m = snprintf(to->connect, sizeof(to->connect), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n%s\r\n", word[3], word[4],
                 word[3], word[4], line);
    if (n < 0 || m < 0 || (size_t)n >= sizeof(to->request) || (size_t)m >= sizeof(to->connect))
        return wrong("too long");
    to->request_n = (size_t)n;
    to->connect_n = (size_t)m;
    return 0;
}

static int
command(char *line, struct samples *s)
{
    static struct conn c;
    struct target to;
    char *word[WORDS], *rest = line;
    size_t n = 0, count;
    uint64_t ms;
    int r;

    line[strcspn(line, "\n")] = '\0';
    while (n < WORDS && (word[n] = strsep(&rest, " ")) != NULL)
        n++;
    if (n != WORDS || rest != NULL)
        return wrong("not a command");
    count = number(word[5]);
    ms = number(word[6]);
    if (count < 1 || count > CONNS_MAX)
        return wrong("1 to %d connections", CONNS_MAX);
    if (aim(&to, word) < 0)
        return -1;
    s->n = s->count = s->opened = 0;
    if (strcmp(word[0], "requests") == 0)
        return requests(&to, count, ms, s);
    if (strcmp(word[0], "connects") == 0)
        return connects(&to, count, ms, s);
    r = strcmp(word[0], "echo") == 0 ? echo(&c, &to, ms, s) : stream(&c, &to, word[0], ms);
    hang_up(&c);
    return r;
}

int
main(void)
{
    struct samples s = { .ns = calloc(SAMPLES_MAX, sizeof(uint32_t)) };
    char line[2048];
    const struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGPIPE, &ignore, NULL);      /* OpenSSL writes without MSG_NOSIGNAL */
    if (s.ns == NULL || conn_init() < 0)
        return 1;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (command(line, &s) < 0)
            printf("error %s\n", problem);
        fflush(stdout);
    }
    return 0;
}
