/* bench/api.c: requests over kept connections, as many at a time as there are connections
 *
 *   api unix:PATH|tcp:ADDRESS:PORT CONNECTIONS MS PATH [HEADER]    -> N NS P50_NS P99_NS
 *
 * Each connection has one request under way; its answer is read whole (Content-Length), and has to be a 200. Anything
 * else ends the program with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX   256
#define SAMPLES_MAX 4000000
#define ANSWER_MAX  16384

struct conn {
    int fd;
    uint64_t began;
    size_t n;
    char answer[ANSWER_MAX + 1];
};

static struct conn conns[CONNS_MAX];
static char request[2048];
static size_t request_n;

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Decimal digits, after blanks. */
static size_t
number(const char *text)
{
    size_t n = 0;

    for (text += strspn(text, " "); *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (size_t)(*text - '0');
    return n;
}

static void
die(const char *what)
{
    fprintf(stderr, "api: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int
open_at(const char *at)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct sockaddr_in in = { .sin_family = AF_INET };
    const char *colon = strrchr(at, ':');
    char host[64] = "";
    int fd, one = 1, r;

    if (strncmp(at, "unix:", 5) == 0) {
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", at + 5);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = connect(fd, (struct sockaddr *)&un, sizeof(un));
    } else {
        snprintf(host, sizeof(host), "%.*s", (int)(colon - at - 4), at + 4);
        in.sin_port = htons((uint16_t)number(colon + 1));
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
            die("address");
        r = connect(fd, (struct sockaddr *)&in, sizeof(in));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    if (fd < 0 || r < 0)
        die(at);
    return fd;
}

static void
ask(struct conn *c)
{
    c->n = 0;
    c->began = now();
    if (send(c->fd, request, request_n, MSG_NOSIGNAL) != (ssize_t)request_n)
        die("send");
}

/* True when the answer is there whole. */
static int
hear(struct conn *c)
{
    ssize_t got = recv(c->fd, c->answer + c->n, ANSWER_MAX - c->n, 0);
    const char *end, *length;

    if (got <= 0)
        die("an answer was cut off");
    c->n += (size_t)got;
    c->answer[c->n] = '\0';
    end = strstr(c->answer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    length = strcasestr(c->answer, "\r\ncontent-length:");
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 || length == NULL)
        die("the answer is no 200");
    return c->n >= (size_t)(end + 4 - c->answer) + number(length + 17);
}

static int
compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int
main(int argc, char **argv)
{
    static uint32_t samples[SAMPLES_MAX];
    struct epoll_event events[CONNS_MAX];
    size_t n = argc > 2 ? number(argv[2]) : 0, count = 0;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t begin, end;

    if (argc < 5 || n == 0 || n > CONNS_MAX || epoll < 0)
        die("usage: api AT CONNECTIONS MS PATH [HEADER]");
    request_n = (size_t)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", argv[4],
                                 argc > 5 ? argv[5] : "", argc > 5 ? "\r\n" : "");
    for (size_t i = 0; i < n; i++) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = &conns[i] };
        conns[i].fd = open_at(argv[1]);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, conns[i].fd, &event) < 0)
            die("epoll");
    }
    begin = now();
    end = begin + number(argv[3]) * 1000000u;
    for (size_t i = 0; i < n; i++)
        ask(&conns[i]);
    while (now() < end) {
        int got = epoll_wait(epoll, events, CONNS_MAX, 1000);
        for (int i = 0; i < got; i++) {
            struct conn *c = events[i].data.ptr;
            if (!hear(c))
                continue;
            if (count < SAMPLES_MAX)
                samples[count] = (uint32_t)(now() - c->began);
            count++;
            ask(c);
        }
    }
    end = now();
    if (count == 0)
        die("no answer");
    n = count < SAMPLES_MAX ? count : SAMPLES_MAX;
    qsort(samples, n, sizeof(samples[0]), compare);
    printf("%zu %llu %u %u\n", count, (unsigned long long)(end - begin), samples[n / 2], samples[n * 99 / 100]);
    return 0;
}
