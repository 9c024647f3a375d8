/* signer/behind.c: see behind.h */
#include "signer/behind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define FD_SIGNER 3

struct behind {
    const struct behind_program *program;
    int fd;
    bool broken;        /* it said what it should not, or nothing in time: a later word would be about something else */
    uint8_t in[PACKET_ERR_MAX + 64];
};

static void
behind_free(void *ctx)
{
    struct behind *b = ctx;

    if (b->fd >= 0)
        close(b->fd);
    free(b);
}

static bool
behind_lives(const void *ctx)
{
    return !((const struct behind *)ctx)->broken;
}

static int
broken(struct behind *b, const char *how, struct err *err)
{
    b->broken = true;
    return err_set(err, ERR_SYSTEM, "sign.key.gone", "%s %s", b->program->what, how);
}

/* The answer, which is of @type, into @m; or its refusal, as of sign_key_sign(): who says nothing, or nothing that can
 * be understood, may have signed. */
static int
hear(struct behind *b, uint8_t type, const struct shape *shape, void *m, struct err *err)
{
    struct token_why no;
    struct wire_in in;
    struct frame f;
    int r;

    do
        r = packet_receive(b->fd, b->in, sizeof(b->in), &f, NULL, 0);
    while (r < 0 && errno == EINTR);
    if (r <= 0) {
        (void)broken(b, r < 0 && errno == EAGAIN ? "did not answer in time" : "has ended", err);
        return SIGN_PERHAPS;
    }
    in = wire_in_of(f.payload, f.length);
    if (f.type == type && proto_get(&in, shape, m))
        return 0;
    in = wire_in_of(f.payload, f.length);
    if (f.type != TOKEN_REFUSED || !token_why_get(&in, &no)) {
        (void)broken(b, "spoke out of turn", err);
        return SIGN_PERHAPS;
    }
    *err = no.why;
    return no.perhaps ? SIGN_PERHAPS : -1;
}

static int
behind_sign(void *ctx, const uint8_t digest[TX_HASH], uint8_t rs[64], struct err *err)
{
    struct behind *b = ctx;
    struct token_digest ask;
    struct token_rs made;
    int r;

    memcpy(ask.digest, digest, sizeof(ask.digest));
    if (b->broken || proto_send(b->fd, TOKEN_SIGN, TOKEN_SIGN_SHAPE(), &ask, -1) < 0)
        return broken(b, "has ended", err);
    r = hear(b, TOKEN_MADE, TOKEN_MADE_SHAPE(), &made, err);
    if (r < 0) {
        b->broken |= b->program->once;
        return r;
    }
    memcpy(rs, made.rs, 64);
    return 0;
}

static const struct sign_backend backend = { .sign = behind_sign, .lives = behind_lives, .free = behind_free };

/* --- the process -------------------------------------------------------------------------------------------------- */

/* Where it is: false when that cannot be told. */
static bool
find(const struct behind_program *p, char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
    char *slash = n > 0 && n < (ssize_t)sizeof(self) ? memrchr(self, '/', (size_t)n) : NULL;

    if (p->program == NULL)
        return snprintf(out, PATH_MAX, "/proc/self/exe") > 0;
    if (slash == NULL)
        return false;
    *slash = '\0';
    if (snprintf(out, PATH_MAX, "%s/%s", self, p->program) < PATH_MAX && access(out, X_OK) == 0)
        return true;
    return snprintf(out, PATH_MAX, "%s/../%s/%s", self, p->folder, p->program) < PATH_MAX && access(out, X_OK) == 0;
}

/* HOME, where modules have their configuration, and nothing else of our environment. */
static _Noreturn void
become(const struct behind_program *p, const char *path, int fd)
{
    char name[] = "cloche-signer", word[32] = "", other[64] = "", home[PATH_MAX + 8] = "HOME=";
    char *argv[] = { p->program != NULL ? other : name, p->word != NULL ? word : NULL, NULL };
    char *env[] = { home, NULL };
    const char *at = getenv("HOME");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    snprintf(word, sizeof(word), "%s", p->word != NULL ? p->word : "");
    snprintf(other, sizeof(other), "%s", p->program != NULL ? p->program : "");
    if (at != NULL && strlen(at) < PATH_MAX)
        memcpy(home + 5, at, strlen(at) + 1);
    else
        env[0] = NULL;
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
        (fd == FD_SIGNER ? fcntl(fd, F_SETFD, 0) : dup2(fd, FD_SIGNER)) < 0 ||
        io_close_from(FD_SIGNER + 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(1);
    execve(path, argv, env);
    _exit(1);
}

static int
start(struct behind *b, struct err *err)
{
    const struct timeval patience = { .tv_sec = BEHIND_WAIT_S };
    cleanup_close int theirs = -1;
    char path[PATH_MAX];
    int pair[2];
    pid_t pid;

    if (!find(b->program, path))
        return err_set(err, ERR_SYSTEM, "sign.key.start", "%s is not installed", b->program->program);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "sign.key.start", "socketpair");
    b->fd = pair[0];
    theirs = pair[1];
    (void)setsockopt(b->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    pid = fork();
    if (pid == 0)
        become(b->program, path, theirs);
    return pid < 0 ? err_sys(err, errno, "sign.key.start", "fork") : 0;
}

/* --- which key it is ---------------------------------------------------------------------------------------------- */

static bool
read_point(struct str text, uint8_t out[SIGN_POINT])
{
    return text.n == BEHIND_POINT && memcmp(text.p, "0x", 2) == 0 &&
           str_unhex((struct str){ text.p + 2, text.n - 2 }, out);
}

bool
behind_kept(const uint8_t *text, size_t n, uint8_t out[SIGN_POINT])
{
    const uint8_t *end = n > 0 ? memrchr(text, '\n', n) : NULL, *before;

    before = end != NULL && end > text ? memrchr(text, '\n', (size_t)(end - text)) : NULL;
    return before != NULL && read_point((struct str){ (const char *)before + 1, (size_t)(end - before) - 1 }, out);
}

int
behind_other(const char *where, const uint8_t wanted[TX_ADDRESS], const struct sign_key *is, struct err *err)
{
    char was[SIGN_ADDRESS_TEXT + 1], now[SIGN_ADDRESS_TEXT + 1];

    sign_address_text(wanted, was);
    sign_key_address_text(is, now);
    err_set(err, ERR_DENIED, "sign.key.other", "%s: the key that is there is not the one of %s: its address is %s",
            where, was, now);
    return err_hint(err, "find out who has put it there; if that was you, `cloche signer rm` the key's name, and add "
                         "it again");
}

/* @key, if it is the one; else it is freed. */
static struct sign_key *
judge(struct sign_key *key, const char *point, const char *where, struct err *err)
{
    uint8_t kept[SIGN_POINT], is[SIGN_POINT], address[TX_ADDRESS];

    if (key == NULL || strcmp(point, BEHIND_NEW) == 0)
        return key;
    sign_key_point(key, is);
    if (!read_point(str_of(point), kept) || !sign_point_address(kept, address)) {
        (void)err_set(err, ERR_USAGE, "sign.key.invalid", "%s: it is not known which key that is", where);
        (void)err_hint(err, "`cloche signer rm` it, and add it again");
    } else if (memcmp(kept, is, sizeof(kept)) == 0) {
        return key;
    } else {
        (void)behind_other(where, address, key, err);
    }
    sign_key_free(key);
    return NULL;
}

struct sign_key *
behind_key(const struct behind_program *program, uint8_t type, const struct shape *shape, const void *m,
           const char *point, const char *where, struct err *err)
{
    struct behind *b = calloc(1, sizeof(*b));
    struct token_point is;

    if (b == NULL) {
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    *b = (struct behind){ .program = program, .fd = -1 };
    if (start(b, err) < 0)
        ;
    else if (proto_send(b->fd, type, shape, m, -1) < 0)
        (void)broken(b, "has ended", err);
    else if (hear(b, TOKEN_IS, TOKEN_IS_SHAPE(), &is, err) == 0)
        return judge(sign_key_of(&backend, b, is.point, err), point, where, err);
    behind_free(b);
    return NULL;
}

bool
behind_line(struct str *rest, char *out, size_t cap)
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
