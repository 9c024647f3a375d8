/* hosts/asker.c: see asker.h */
#include "hosts/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "hosts/registry.h"
#include "hosts/registry_priv.h"
#include "wall/service.h"
#include "wire/packet.h"

#define FD_PARENT   3
#define ANSWER_MAX  (128 * 1024)
#define MEMORY      (UINT64_C(4) << 30)         /* of it, and of each client: Java takes a quarter of the machine's */

/* Its one message. */
enum asker_message {
    ASKER_FOUND = 1,        /* JSON: {NAME: answer} */
    ASKER_FAILED,           /* error */
};

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* It leads a session, and all clients are in it. */
static _Noreturn void
end_all(int signo)
{
    (void)signo;
    kill(0, SIGKILL);
    _exit(1);
}

/* What it is bounded by. Clients inherit that, and no signal's state of ours. */
static void
settle(pid_t parent)
{
    const struct rlimit core = { 0, 0 };
    struct rlimit memory;
    sigset_t none;

    sigemptyset(&none);
    if (setsid() < 0)           /* before any end_all: that of our parent's group is not meant */
        _exit(1);
    for (int signo = 1; signo < 32; signo++)
        (void)sigaction(signo, &(struct sigaction){ .sa_handler = signo == SIGTERM ? end_all : SIG_DFL }, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(1);
    /* a sanitizer's shadow would count */
    if (!SERVICE_SANITIZED && getrlimit(RLIMIT_DATA, &memory) == 0 && memory.rlim_max > MEMORY)
        (void)setrlimit(RLIMIT_DATA, &(struct rlimit){ MEMORY, MEMORY });
    (void)setrlimit(RLIMIT_CORE, &core);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void
ask(const struct policy *p, json_t *answers, int socket, pid_t parent)
{
    struct buf frame = BUF_INIT(ANSWER_MAX);
    struct err err = ERR_INIT;
    char *text = NULL;
    size_t at;

    settle(parent);
    if (socket != FD_PARENT && dup2(socket, FD_PARENT) < 0)
        _exit(1);
    (void)fcntl(FD_PARENT, F_SETFD, FD_CLOEXEC);
    (void)io_close_from(FD_PARENT + 1);
    if (registry_ask(p, answers, &err) == 0 && (text = json_dumps(answers, JSON_COMPACT)) == NULL)
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
    if (text != NULL && strlen(text) > ANSWER_MAX - 64)
        err_set(&err, ERR_LIMIT, "policy.registry.answer", "clients of registries say too much");
    at = frame_begin(&frame, err.kind == ERR_NONE ? ASKER_FOUND : ASKER_FAILED, 0, 0);
    if (err.kind == ERR_NONE)
        packet_put_bytes(&frame, text, strlen(text));
    else
        packet_put_err(&frame, &err);
    if (frame_end(&frame, at) == 0)
        (void)packet_send(FD_PARENT, &frame, -1);
    end_all(0);
}

/* --- ours --------------------------------------------------------------------------------------------------------- */

int
asker_start(struct asker *a, const struct policy *p, json_t *answers, uint64_t ms, struct err *err)
{
    cleanup_close int ours = -1, theirs = -1;
    pid_t parent = getpid(), pid;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "cli.registry", "socketpair");
    ours = pair[0];
    theirs = pair[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "cli.registry", "fork");
    if (pid == 0)
        ask(p, answers, theirs, parent);
    *a = (struct asker){ .pid = pid, .fd = take_fd(&ours), .end_ms = clock_ms() + ms };
    return 0;
}

/* It first, so that it begins nothing more; its number, and so its session's, is nobody else's until it is reaped. */
void
asker_stop(struct asker *a)
{
    siginfo_t info;

    if (a->pid <= 0)
        return;
    kill(a->pid, SIGKILL);
    while (waitid(P_PID, (id_t)a->pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    kill(-a->pid, SIGKILL);
    while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    registry_tidy(a->pid);
    close_fd(&a->fd);
    a->pid = 0;
}

static int
take(const struct frame *f, json_t *answers, struct err *err)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    const uint8_t *text;
    struct err said;
    json_t *found;
    size_t n;
    int r;

    if (f->type == ASKER_FAILED && packet_get_err(&in, &said)) {
        if (err != NULL)
            *err = said;
        return -1;
    }
    text = packet_get_bytes(&in, ANSWER_MAX, &n);
    found = f->type == ASKER_FOUND && wire_done(&in) ? json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, NULL)
                                                     : NULL;
    r = found != NULL && json_object_update(answers, found) == 0
            ? 1 : err_set(err, ERR_SYSTEM, "cli.registry", "what asks registries' clients said what it must not");
    json_decref(found);
    return r;
}

int
asker_hear(struct asker *a, json_t *answers, struct err *err)
{
    static uint8_t room[ANSWER_MAX + 64];
    struct frame f;
    int r = packet_receive(a->fd, room, sizeof(room), &f, NULL, MSG_DONTWAIT);

    if (r < 0 && errno == EAGAIN && clock_ms() < a->end_ms)
        return 0;
    if (r > 0) {
        r = take(&f, answers, err);
    } else if (r < 0 && errno == EAGAIN) {
        err_set(err, ERR_SYSTEM, "policy.registry.late", "the clients of registries did not answer in time");
        r = err_hint(err, "see why they take so long on this host, or name the hosts: --allow-domain HOST");
    } else {
        r = err_set(err, ERR_SYSTEM, "cli.registry", "what asks registries' clients ended without an answer");
    }
    asker_stop(a);
    return r;
}

int
asker_wait(const struct policy *p, json_t *answers, struct err *err)
{
    struct asker a = ASKER_INIT;
    int r = asker_start(&a, p, answers, ASKER_MS, err);

    while (r == 0) {
        struct pollfd wait = { .fd = a.fd, .events = POLLIN };
        uint64_t now = clock_ms();
        (void)poll(&wait, 1, now < a.end_ms ? (int)(a.end_ms - now) : 0);
        r = asker_hear(&a, answers, err);
    }
    return r < 0 ? -1 : 0;
}
