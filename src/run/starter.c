/* run/starter.c: see starter.h */
#include "run/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "program/helper.h"
#include "program/say.h"
#include "proto/edge.h"
#include "wall/cgroup.h"
#include "wall/service.h"

#define FD_KEEPER   3
#define PATIENCE_MS 5000

/* What the keeper says: descriptors in the order of give_all(), a START; and the answer. */
#define STARTER_TO(M) \
    M(STARTER_GIVE,    1, nothing)          /* with a descriptor, or without: there is none in its place */ \
    M(STARTER_START,   2, edge_number)      /* kind of the cgroup (enum cgroup_kind) */
PROTO_EDGE(starter_to, STARTER_TO);
#define STARTER_OF(M) \
    M(STARTER_STARTED, 3, edge_number)      /* pid */ \
    M(STARTER_FAILED,  4, edge_number)      /* errno */
PROTO_EDGE(starter_of, STARTER_OF);

#define GIVEN_CGROUP (CGROUP_HIERARCHIES + 1)       /* its `tasks`, and its folder */
#define GIVEN_MAX    (GIVEN_CGROUP + 1 + HELPER_FDS_MAX)    /* and the control socket's end */

/* --- the keeper's side -------------------------------------------------------------------------------------------- */

static _Noreturn void
become(int theirs)
{
    char name[] = "cloche-starter", *argv[] = { name, NULL }, *env[] = { NULL };
    int null, high;

    prctl(PR_SET_PDEATHSIG, SIGKILL);   /* it has nothing to end in order: should it hang, it is not left either */
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    high = fcntl(theirs, F_DUPFD_CLOEXEC, FD_KEEPER + 1);
    if (null < 0 || high < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(high, FD_KEEPER) < 0 ||
        io_close_from(FD_KEEPER + 1) < 0)
        _exit(1);
    execve("/proc/self/exe", argv, env);
    _exit(1);
}

int
starter_open(struct starter *s, struct err *err)
{
    cleanup_close int ours = -1, theirs = -1;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "serve.starter", "socketpair");
    ours = pair[0];
    theirs = pair[1];
    s->pid = fork();
    if (s->pid == 0)
        become(theirs);
    if (s->pid < 0)
        return err_sys(err, errno, "serve.starter", "fork");
    s->fd = take_fd(&ours);
    return 0;
}

static int
say(int socket, uint8_t type, const struct shape *shape, const void *m)
{
    return proto_send(socket, type, shape, m, -1);
}

static int
give(int starter, int fd)
{
    return proto_send(starter, STARTER_GIVE, STARTER_GIVE_SHAPE(), NULL, fd);
}

static int
give_all(int starter, const struct helper *h, int control)
{
    const struct cgroup none = CGROUP_INIT, *cg = h->cgroup != NULL ? h->cgroup : &none;
    int r = 0;

    for (size_t i = 0; r == 0 && i < CGROUP_HIERARCHIES; i++)
        r = give(starter, cg->tasks[i]);
    if (r < 0 || give(starter, cg->dirs[0]) < 0 || give(starter, control) < 0)
        return -1;
    for (size_t i = 0; r == 0 && i < h->n_fds; i++)
        r = give(starter, h->fds[i]);
    return r < 0 ? -1 : PROTO_SAY(say, starter, STARTER_START, .number = (uint32_t)cg->kind);
}

static pid_t
answer(int starter, struct err *err)
{
    struct pollfd p = { .fd = starter, .events = POLLIN };
    uint8_t room[FRAME_HEADER + edge_number_MOST + 1];
    struct edge_number m;
    struct wire_in in;
    struct frame f;
    int r;

    do
        r = poll(&p, 1, PATIENCE_MS);
    while (r < 0 && errno == EINTR);
    if (r <= 0 || packet_receive(starter, room, sizeof(room), &f, NULL, 0) <= 0)
        return err_set(err, ERR_SYSTEM, "serve.starter", "cloche-starter has ended, or stands still");
    in = wire_in_of(f.payload, f.length);
    if (!edge_number_get(&in, &m) || m.number == 0 || m.number > INT32_MAX ||
        (f.type != STARTER_STARTED && f.type != STARTER_FAILED))
        return err_set(err, ERR_PROTOCOL, "serve.starter", "cloche-starter said what it must not");
    return f.type == STARTER_STARTED ? (pid_t)m.number
                                     : err_sys(err, (int)m.number, "serve.starter", "start cloche-egress");
}

pid_t
starter_start(const struct starter *s, const struct helper *h, int *control, struct err *err)
{
    cleanup_close int ours = -1, theirs = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "serve.starter", "socketpair");
    ours = pair[0];
    theirs = pair[1];
    if (give_all(s->fd, h, theirs) < 0) {
        pid = err_sys(err, errno, "serve.starter", "tell cloche-starter");
    } else {
        pid = answer(s->fd, err);
    }
    if (pid < 0) {      /* what was given already, and what is answered late, would be another one's */
        (void)shutdown(s->fd, SHUT_RDWR);
        return -1;
    }
    *control = take_fd(&ours);
    return pid;
}

void
starter_close(struct starter *s)
{
    close_fd(&s->fd);
    if (s->pid > 0 && kill(s->pid, SIGKILL) == 0)
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    s->pid = 0;
}

/* --- its own ------------------------------------------------------------------------------------------------------ */

/* What neither it nor what it starts has a use for: ways into other processes, the machine's own affairs, and the parts
 * of the kernel where most flaws are found. What is left to cloche-egress is its own to say, once it has begun
 * (egress/confine.c). */
static const unsigned denied[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_move_pages, SYS_migrate_pages,
#if defined(SYS_pidfd_getfd)
    SYS_pidfd_getfd,
#endif
#if defined(SYS_process_madvise)
    SYS_process_madvise,
#endif
    /* namespaces and mounts */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot,
#if defined(SYS_open_tree)
    SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsmount,
#endif
#if defined(SYS_mount_setattr)
    SYS_mount_setattr,
#endif
    /* much of the kernel at once */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_fanotify_init,
#if defined(SYS_io_uring_setup)
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
#endif
    /* the machine */
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct,
    SYS_quotactl, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_open_by_handle_at,
#if defined(SYS_kexec_file_load)
    SYS_kexec_file_load,
#endif
#if defined(SYS_iopl)
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};

struct its {
    char program[PATH_MAX];
    int given[GIVEN_MAX];       /* -1: none in its place */
    size_t n_given;
    bool no_place;              /* for one that was to be given */
    int passed;                 /* the descriptor that came with the message at hand; -1 */
    struct msg_gate gate;
    uint8_t in[FRAME_HEADER + edge_number_MOST + 1];
};

static int
on_give(struct its *s, const struct nothing *m)
{
    (void)m;
    if (s->n_given == GIVEN_MAX)
        return -1;
    s->no_place |= s->passed == PACKET_FULL;
    s->given[s->n_given++] = take_fd(&s->passed);
    return 0;
}

static int
on_start(struct its *s, const struct edge_number *m)
{
    char *env[] = { NULL };
    struct cgroup cg = CGROUP_INIT;
    const struct helper h = { .folder = "egress", .name = "cloche-egress", .env = env,
                              .fds = s->given + GIVEN_CGROUP + 1, .n_fds = s->n_given - GIVEN_CGROUP - 1,
                              .cgroup = &cg };
    struct err err = ERR_INIT;
    pid_t pid;

    if (s->passed >= 0 || s->n_given <= GIVEN_CGROUP || m->number > CGROUP_SCOPE)
        return -1;
    cg.kind = (enum cgroup_kind)m->number;
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        cg.tasks[i] = s->given[i];
    cg.dirs[0] = s->given[CGROUP_HIERARCHIES];
    pid = s->no_place ? err_sys(&err, EMFILE, "serve.start", "descriptors")
                      : helper_spawn(&h, s->program, s->given[GIVEN_CGROUP], true, &err);
    s->no_place = false;
    for (; s->n_given > 0; s->n_given--)
        close_fd(&s->given[s->n_given - 1]);
    if (pid > 0)
        return PROTO_SAY(say, FD_KEEPER, STARTER_STARTED, .number = (uint32_t)pid);
    return PROTO_SAY(say, FD_KEEPER, STARTER_FAILED,
                     .number = err.sys_errno > 0 ? (uint32_t)err.sys_errno : (uint32_t)EPERM);
}

#define HEARD(R) \
    R(STARTER_GIVE,  on_give,  false, 1) \
    R(STARTER_START, on_start, false, 1)
PROTO_RULES(rules, HEARD)

/* 1; 0 at the keeper's end, -1 when it says what it must not. */
static int
step(struct its *s)
{
    struct frame f;
    int r = packet_receive(FD_KEEPER, s->in, sizeof(s->in), &f, &s->passed, 0);

    if (r < 0 && errno == EINTR)
        return 1;
    if (r > 0 && msg_dispatch(&s->gate, &f, s) != MSG_OK)
        r = -1;
    close_fd(&s->passed);
    return r;
}

int
starter_main(int argc, char **argv)
{
    static struct its s = { .passed = -1,
                            .gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 } };
    struct err err = ERR_INIT;
    sigset_t all;
    int r;

    (void)argv;
    sigfillset(&all);
    if (argc != 1 || fcntl(FD_KEEPER, F_GETFD) < 0 || io_set_cloexec(FD_KEEPER, true) < 0 ||
        sigprocmask(SIG_BLOCK, &all, NULL) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        helper_find("egress", "cloche-egress", s.program, &err) < 0 ||
        service_deny(denied, ARRAY_LEN(denied), &err) < 0) {
        fprintf(stderr, "cloche-starter is started by a keeper of cloche serve\n");
        return EXIT_REFUSED;
    }
    prctl(PR_SET_NAME, "cloche-starter");
    do
        r = step(&s);
    while (r > 0);
    return r < 0 ? EXIT_REFUSED : 0;
}
