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
#include "proto/edge.h"
#include "wall/service.h"

#define FD_PARENT   3
#define ANSWER_MAX  (128 * 1024)
#define MEMORY      (UINT64_C(4) << 30)         /* of it, and of each client: Java takes a quarter of the machine's */

/* Its one message. */
#define ASKER_ANSWER(F) F(STR, json, ANSWER_MAX)        /* {NAME: answer} */
PROTO_STRUCT(asker_answer, ASKER_ANSWER);
PROTO_SHAPE(asker_answer, ASKER_ANSWER)
#define ASKER_SAYS(M) \
    M(ASKER_FOUND,  1, asker_answer) \
    M(ASKER_FAILED, 2, edge_why)
PROTO_EDGE(asker_says, ASKER_SAYS);

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

static void
say(int socket, uint8_t type, const struct shape *shape, const void *m)
{
    (void)proto_send(socket, type, shape, m, -1);
}

static _Noreturn void
ask(const struct policy *p, json_t *answers, int socket, pid_t parent)
{
    struct err err = ERR_INIT;
    char *text = NULL;

    settle(parent);
    if (socket != FD_PARENT && dup2(socket, FD_PARENT) < 0)
        _exit(1);
    (void)fcntl(FD_PARENT, F_SETFD, FD_CLOEXEC);
    (void)io_close_from(FD_PARENT + 1);
    if (registry_ask(p, answers, &err) == 0 && (text = json_dumps(answers, JSON_COMPACT)) == NULL)
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
    if (text != NULL && strlen(text) > ANSWER_MAX)
        err_set(&err, ERR_LIMIT, "policy.registry.answer", "clients of registries say too much");
    if (err.kind == ERR_NONE)
        PROTO_SAY(say, FD_PARENT, ASKER_FOUND, .json = str_of(text));
    else
        PROTO_SAY(say, FD_PARENT, ASKER_FAILED, .why = err);
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
    struct asker_answer answer;
    struct edge_why no;
    json_t *found = NULL;
    int r;

    if (f->type == ASKER_FAILED && edge_why_get(&in, &no)) {
        if (err != NULL)
            *err = no.why;
        return -1;
    }
    if (f->type == ASKER_FOUND && asker_answer_get(&in, &answer))
        found = json_loadb(answer.json.p, answer.json.n, JSON_REJECT_DUPLICATES, NULL);
    r = found != NULL && json_object_update(answers, found) == 0
            ? 1 : err_set(err, ERR_SYSTEM, "cli.registry", "what asks registries' clients said what it must not");
    json_decref(found);
    return r;
}

int
asker_hear(struct asker *a, json_t *answers, struct err *err)
{
    static uint8_t room[FRAME_HEADER + asker_answer_MOST + 1];
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
