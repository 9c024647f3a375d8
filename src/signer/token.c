/* signer/token.c: see token.h */
#include "signer/token.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proto/edge_sign.h"

#define FD_SIGNER 3

struct token_end {
    int fd;
    bool broken;        /* it said what it should not, or nothing in time: a later word would be about something else */
    uint8_t in[PACKET_ERR_MAX + 64];
};

static void
token_free(void *ctx)
{
    struct token_end *e = ctx;

    if (e->fd >= 0)
        close(e->fd);
    free(e);
}

static bool
token_lives(const void *ctx)
{
    return !((const struct token_end *)ctx)->broken;
}

/* The answer, which is of @type, into @m; or its refusal. */
static int
hear(struct token_end *e, uint8_t type, const struct shape *shape, void *m, struct err *err)
{
    struct token_why no;
    struct wire_in in;
    struct frame f;
    int r;

    do
        r = packet_receive(e->fd, e->in, sizeof(e->in), &f, NULL, 0);
    while (r < 0 && errno == EINTR);
    if (r <= 0) {
        e->broken = true;
        return err_set(err, ERR_SYSTEM, "sign.token.ended", "%s", r < 0 && errno == EAGAIN
                       ? "the PKCS#11 module did not answer in time" : "the process with the PKCS#11 module has ended");
    }
    in = wire_in_of(f.payload, f.length);
    if (f.type == type && proto_get(&in, shape, m))
        return 0;
    in = wire_in_of(f.payload, f.length);
    if (f.type == TOKEN_REFUSED && token_why_get(&in, &no)) {
        *err = no.why;
        return -1;
    }
    e->broken = true;
    return err_set(err, ERR_PROTOCOL, "sign.token.ended", "the process with the PKCS#11 module spoke out of turn");
}

static int
token_sign(void *ctx, const uint8_t digest[TX_HASH], uint8_t rs[64], struct err *err)
{
    struct token_end *e = ctx;
    struct token_digest ask;
    struct token_rs made;

    memcpy(ask.digest, digest, sizeof(ask.digest));
    if (e->broken || proto_send(e->fd, TOKEN_SIGN, TOKEN_SIGN_SHAPE(), &ask, -1) < 0) {
        e->broken = true;
        return err_set(err, ERR_SYSTEM, "sign.token.ended", "the process with the PKCS#11 module has ended");
    }
    if (hear(e, TOKEN_MADE, TOKEN_MADE_SHAPE(), &made, err) < 0)
        return -1;
    memcpy(rs, made.rs, 64);
    return 0;
}

static const struct sign_backend backend = { .sign = token_sign, .lives = token_lives, .free = token_free };

/* --- the process -------------------------------------------------------------------------------------------------- */

/* HOME, where modules have their configuration, and nothing else of our environment. */
static _Noreturn void
become(int fd)
{
    char name[] = "cloche-signer", word[] = "token", home[4200] = "HOME=", *argv[] = { name, word, NULL };
    char *env[] = { home, NULL };
    const char *at = getenv("HOME");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (at != NULL && strlen(at) < sizeof(home) - 5)
        memcpy(home + 5, at, strlen(at) + 1);
    else
        env[0] = NULL;
    /* @fd may be 3 already, and one of ours may be there that is not the child's */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
        (fd == FD_SIGNER ? fcntl(fd, F_SETFD, 0) : dup2(fd, FD_SIGNER)) < 0 ||
        close_range(FD_SIGNER + 1, ~0U, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    execve("/proc/self/exe", argv, env);
    _exit(1);
}

static int
start(struct token_end *e, struct err *err)
{
    const struct timeval patience = { .tv_sec = TOKEN_WAIT_S };
    cleanup_close int theirs = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "sign.token.start", "socketpair");
    e->fd = pair[0];
    theirs = pair[1];
    (void)setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    pid = fork();
    if (pid == 0)
        become(theirs);
    return pid < 0 ? err_sys(err, errno, "sign.token.start", "fork") : 0;
}

/* --- where it is -------------------------------------------------------------------------------------------------- */

/* The next line of @rest into @out; false: there is none, it is empty, or too long. */
static bool
line(struct str *rest, char *out, size_t cap)
{
    const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    size_t n = end != NULL ? (size_t)(end - rest->p) : rest->n;

    if (n == 0 || n >= cap || memchr(rest->p, '\0', n) != NULL)
        return false;
    memcpy(out, rest->p, n);
    out[n] = '\0';
    *rest = (struct str){ rest->p + n + (end != NULL), rest->n - n - (end != NULL) };
    return true;
}

struct sign_key *
token_key(const uint8_t *text, size_t n, struct err *err)
{
    struct str rest = { (const char *)text + sizeof(TOKEN_FORM) - 1, n - (sizeof(TOKEN_FORM) - 1) };
    struct token_end *e = calloc(1, sizeof(*e));
    char module[4096], token[TOKEN_WORD_MAX + 1], object[TOKEN_WORD_MAX + 1], pin[TOKEN_WORD_MAX + 1];
    struct token_where where = { .module = module, .token = token, .object = object, .pin = pin };
    struct token_point is;
    int r;

    if (e == NULL) {
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    e->fd = -1;
    r = line(&rest, module, sizeof(module)) && line(&rest, token, sizeof(token)) &&
        line(&rest, object, sizeof(object)) && line(&rest, pin, sizeof(pin)) && rest.n == 0
            ? start(e, err) : err_set(err, ERR_USAGE, "sign.key.invalid", "that does not say where a key is");
    if (r == 0 && proto_send(e->fd, TOKEN_OPEN, TOKEN_OPEN_SHAPE(), &where, -1) < 0)
        r = err_sys(err, errno, "sign.token.ended", "the process with the PKCS#11 module");
    explicit_bzero(pin, sizeof(pin));
    if (r == 0)
        r = hear(e, TOKEN_IS, TOKEN_IS_SHAPE(), &is, err);
    if (r == 0)
        return sign_key_of(&backend, e, is.point, err);
    token_free(e);
    return NULL;
}
