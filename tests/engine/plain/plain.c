/* tests/engine/plain/plain.c: an engine without any wall, never installed: the guest is a process like any other
 *
 * It shows that engine/ops.h is all that an engine has to know: whatever is no wall (commands, streams, files, limits on
 * time, output, and what the guest watches) works on it as on any other. Its sandboxes keep the host's user, files and
 * network.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/memfile.h"
#include "base/str.h"
#include "engine/ops.h"
#include "guest/guest_image.h"
#include "wall/rlimit.h"
#include "wire/msg.h"

#define ENV_MAX     64
#define FD_HIGH     10
#define PATIENCE_MS 5000    /* for the guest to end what it started */

const struct engine engine_plain;

struct plain {
    struct sandbox base;        /* first */
    const struct policy *policy;
    char id[33];
    char folder[32];            /* the workspace, where the policy names none: "/tmp/plain-..."; "" */
    char *env[ENV_MAX + 1];
    pid_t pid;
    int transport;
    uint64_t cpu_us, peak;
};

static struct plain *
plain_of(struct sandbox *base)
{
    return (struct plain *)base;
}

static int
plain_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    (void)runtime;
    static const struct feature_info process = { "process", "a process", "nothing else", NEED_MUST, NEED_MUST, NEED_MUST };

    (void)err;
    out->info = &process;
    out->n_features = 1;
    out->features[0].status = FEATURE_YES;
    for (int p = 0; p < PROMISE_N; p++)
        snprintf(out->promises[p].why_not, sizeof(out->promises[p].why_not), "this engine has no walls");
    return 0;
}

static int
put(struct plain *sb, size_t *n, const char *name, const char *value, struct err *err)
{
    if (value == NULL)
        return 0;
    if (*n == ENV_MAX || asprintf(&sb->env[*n], "%s=%s", name, value) < 0)
        return err_set(err, ERR_LIMIT, "plain.env", "no room for %s", name);
    ++*n;
    return 0;
}

static int
environment(struct plain *sb, struct err *err)
{
    static const char *const passed[] = { "PATH", "HOME", "TERM", "LANG" };
    const struct policy *p = sb->policy;
    size_t n = 0;

    if (put(sb, &n, "CLOCHE_SANDBOX", sb->id, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(passed); i++)
        if (put(sb, &n, passed[i], getenv(passed[i]), err) < 0)
            return -1;
    for (size_t i = 0; i < p->n_env; i++)
        if (put(sb, &n, p->env[i].name, p->env[i].value != NULL ? p->env[i].value : getenv(p->env[i].name), err) < 0)
            return -1;
    return 0;
}

/* Descriptors 0 to 2 lead nowhere, 3 is the transport; the guest closes the rest. */
static _Noreturn void
child(const struct plain *sb, const char *workdir, int guest, int transport, int null)
{
    char name[] = "cloche-guest";
    char *const argv[] = { name, NULL }, *const env[] = { NULL };
    int high = fcntl(guest, F_DUPFD_CLOEXEC, FD_HIGH), high_end = fcntl(transport, F_DUPFD_CLOEXEC, FD_HIGH);
    const struct rlimit_plan limits = { .nofile = sb->policy->limits.nofile.v };
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (rlimit_apply(&limits, NULL) < 0 || high < 0 || high_end < 0 || setsid() < 0 || chdir(workdir) < 0 ||
        dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || dup2(high_end, 3) < 0)
        _exit(1);
    syscall(SYS_execveat, high, "", argv, env, AT_EMPTY_PATH);
    _exit(1);
}

static int
start(struct plain *sb, const char *workdir, struct err *err)
{
    cleanup_close int guest = memfile_sealed("cloche-guest", true, guest_image, guest_image_size);
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    cleanup_close int end = -1;
    int pair[2];

    if (guest < 0 || null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "plain.start", "descriptors");
    sb->transport = pair[0];
    end = pair[1];
    sb->pid = fork();
    if (sb->pid < 0)
        return err_sys(err, errno, "plain.start", "fork");
    if (sb->pid == 0)
        child(sb, workdir, guest, end, null);
    return 0;
}

static int
build(struct plain *sb, const char *id, struct err *err)
{
    const struct policy *p = sb->policy;
    const char *workspace = p->workspace.dir;
    unsigned char raw[16];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return err_sys(err, errno, "plain.id", "getrandom");
    str_hex(raw, sizeof(raw), sb->id);
    if (id != NULL)
        snprintf(sb->id, sizeof(sb->id), "%s", id);
    if (p->workspace.kind == WORKSPACE_TMPFS || workspace == NULL) {
        snprintf(sb->folder, sizeof(sb->folder), "/tmp/plain-XXXXXX");
        workspace = mkdtemp(sb->folder);
        if (workspace == NULL)
            return err_sys(err, errno, "plain.workspace", "%s", sb->folder);
    }
    if (environment(sb, err) < 0 || start(sb, workspace, err) < 0)
        return -1;
    sb->base.facts = (struct sandbox_facts){
        .id = sb->id, .cow_id = "", .pid = sb->pid, .root = workspace, .workdir = workspace,
        .env = (const char *const *)sb->env,
        .memory_by = p->limits.memory.v > 0 ? "supervised" : "none", .cpu_by = "none",
        .pids_by = p->limits.pids.v > 0 ? "supervised" : "none", .disk_by = "none",
    };
    return 0;
}

static int
plain_create(const struct policy *p, const char *id, struct sandbox **out, struct err *err)
{
    struct plain *sb = calloc(1, sizeof(*sb));

    if (sb == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    sb->policy = p;
    sb->pid = sb->transport = -1;
    if (build(sb, id, err) < 0) {
        engine_plain.destroy(&sb->base);
        return -1;
    }
    *out = &sb->base;
    return 0;
}

static int
plain_connect(struct sandbox *base, int *guest_fd, struct err *err)
{
    (void)err;
    *guest_fd = plain_of(base)->transport;
    return 0;
}

static int
plain_setup(struct sandbox *base, struct buf *guard, struct msg_setup *out, struct err *err)
{
    const struct policy_limits *limits = &plain_of(base)->policy->limits;

    (void)guard;
    (void)err;
    out->flags = MSG_SETUP_LIGHT;       /* it is not process 1 */
    out->memory_limit = limits->memory.v;
    out->pids_limit = (uint32_t)limits->pids.v;
    return 0;
}

static void
plain_usage(struct sandbox *base, struct sandbox_usage *out)
{
    out->cpu_us = plain_of(base)->cpu_us;
    out->peak_memory = plain_of(base)->peak;
}

static int
plain_gone(struct sandbox *base, struct err *err)
{
    siginfo_t info = { .si_pid = 0 };

    waitid(P_PID, (id_t)plain_of(base)->pid, &info, WEXITED | WNOWAIT);
    return err_set(err, ERR_SYSTEM, "guest.gone", "the guest ended (%d) before its command did", info.si_status);
}

static void
plain_kill(struct sandbox *base)
{
    struct plain *sb = plain_of(base);
    struct rusage used;
    int pidfd;

    if (sb->pid <= 0)
        return;
    close_fd(&sb->transport);   /* its sign to end what it started */
    pidfd = (int)syscall(SYS_pidfd_open, sb->pid, 0);
    poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, PATIENCE_MS);
    close_fd(&pidfd);
    kill(sb->pid, SIGKILL);
    while (wait4(sb->pid, NULL, 0, &used) < 0 && errno == EINTR)
        continue;
    sb->cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                 (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    sb->peak = (uint64_t)used.ru_maxrss * 1024;
    sb->pid = base->facts.pid = -1;
}

/* What the workspace holds is a test's, and small. */
static void
remove_folder(char *folder)
{
    char rm[] = "rm", flags[] = "-rf";
    char *const argv[] = { rm, flags, folder, NULL };
    pid_t pid = folder[0] != '\0' ? fork() : -1;

    if (pid == 0) {
        execvp(rm, argv);
        _exit(1);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void
plain_destroy(struct sandbox *base)
{
    struct plain *sb = plain_of(base);

    plain_kill(base);
    close_fd(&sb->transport);
    remove_folder(sb->folder);
    for (size_t i = 0; i < ENV_MAX; i++)
        free(sb->env[i]);
    free(sb);
}

const struct engine engine_plain = {
    .name = "plain",
    .probe = plain_probe,
    .create = plain_create,
    .connect = plain_connect,
    .setup = plain_setup,
    .usage = plain_usage,
    .gone = plain_gone,
    .kill = plain_kill,
    .destroy = plain_destroy,
};
