/* bench/load.h: one connection of load.c */
#ifndef CLOCHE_BENCH_LOAD_H
#define CLOCHE_BENCH_LOAD_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PATIENCE_S 20           /* without a byte */
#define ANSWER_MAX 16384

struct target {
    struct sockaddr_storage at;
    socklen_t at_n;
    bool tls, tunnel;
    const char *host;
    char request[2048], connect[2048];
    size_t request_n, connect_n;
};

struct conn {
    const struct target *to;
    int fd;
    SSL *ssl;
    uint64_t began;
    bool kept, again;           /* it has answered before; the request has to be sent once more */
    size_t n;
    char answer[ANSWER_MAX];
};

/* Of this thread: why something returned -1. */
extern __thread char problem[256];
/* -1, with what went wrong kept; the first line of it only. */
__attribute__((format(printf, 1, 2))) int wrong(const char *format, ...);

/* Once, before anything else. 0 or -1. */
int conn_init(void);
/* Connect as @to says, through the tunnel and into TLS; @c is overwritten. 0 or -1; hang_up() is due either way. */
int open_conn(struct conn *c, const struct target *to);
void hang_up(struct conn *c);
/* 1, or -1 when not all of it went out: what we say is far smaller than a socket's buffer. */
int give(struct conn *c, const char *p, size_t n);
/* Append to the answer: bytes read; 0: the end; -1: broken; -2: nothing now. */
ssize_t take(struct conn *c);
/* 1: the answer is whole (@closes: and the connection over); 0: more is to come; -1: it is not what was asked for. */
int whole(const struct conn *c, bool eof, bool *closes);

/* The decimal number at @p's beginning. */
size_t number(const char *p);

#endif
