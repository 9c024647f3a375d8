/* engine/oci/child.c: the process that holds the runtime (see oci.h)
 *
 * It is process 1 of a pid namespace in which the runtime, what the runtime starts, and the sandbox are; it has root's
 * rights, as the runtime needs them, and reads nothing of the sandbox. In order:
 *
 *   1. die with the parent; keep its mounts to itself; /proc of its own; the work folder, over /sys
 *   2. as the sandbox's user, as far as files are concerned: the tree (wall/root.h), and the network beside it
 *   3. join the cgroup; the bundle's config.json
 *   4. start the runtime with descriptors 0 to 2 of its own and 3 the guest's; wait for it
 *   5. the runtime's own words, where it did not get as far as the guest
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/oci/oci.h"
#include "wall/rlimit.h"
#include "wire/packet.h"

#define FD_HIGH     20
#define LOG_MAX     65536
#define EXIT_BROKEN 125

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "oci.work", "%s", what);
}

/* Where everything lies that the runtime reads and writes. Users inside pass through, and see nothing. */
static int
work_folder(struct err *err)
{
    static const char *const folders[] = { OCI_BUNDLE, OCI_BUNDLE "/root", OCI_BUNDLE "/scratch", OCI_STATE,
                                           OCI_WORK "/fs", OCI_WORK "/fs/cgroup" };
    cleanup_close int log = -1;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(err, "keep mounts to itself");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return fail(err, "/proc");
    if (mount("cloche", OCI_WORK, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=64m") < 0)
        return fail(err, "a tmpfs over " OCI_WORK);
    umask(0022);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mkdir(folders[i], strcmp(folders[i], OCI_STATE) == 0 ? 0700 : 0755) < 0)
            return fail(err, folders[i]);
    /* runtimes look for cgroups whatever they are told; they may only look */
    if (mount("cgroup2", OCI_WORK "/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0)
        return fail(err, "a cgroup2 to look at");
    log = open(OCI_LOG, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return log < 0 ? fail(err, OCI_LOG) : 0;
}

static int
bundle(const struct oci *sb, struct err *err)
{
    cleanup_close int fd = open(OCI_BUNDLE "/config.json", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    return fd < 0 || io_write_full(fd, sb->config.p, sb->config.n) < 0 ? fail(err, OCI_BUNDLE "/config.json") : 0;
}

/* Descriptor 0 is at its end, 1 and 2 are the log, 3 is the guest's; nothing else is left. None of them is a file of
 * the host's: crun gives its first three to the sandbox's user (fchown(2)), who would then own the host's /dev/null. */
static _Noreturn void
become_runtime(const struct oci *sb, int transport)
{
    char path[] = "PATH=" OCI_PATH, home[] = "HOME=/", *const env[] = { path, home, NULL };
    int high = fcntl(transport, F_DUPFD_CLOEXEC, FD_HIGH), log = open(OCI_LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    int ended[2] = { -1, -1 };
    char *argv[OCI_ARGS];
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    oci_runtime_argv(sb, argv);
    if (log >= 0 && high >= 0 && pipe2(ended, O_CLOEXEC) == 0 && setsid() >= 0 && dup2(ended[0], 0) == 0 &&
        dup2(log, 1) == 1 && dup2(log, 2) == 2 && dup2(high, 3) == 3 && io_close_from(4) == 0)
        execve(sb->program, argv, env);
    _exit(EXIT_BROKEN);
}

/* Until @pid has ended; others that become ours are reaped. Its exit status. */
static int
wait_for(pid_t pid)
{
    int status;
    pid_t ended;

    do
        ended = waitpid(-1, &status, 0);
    while (ended != pid && (ended > 0 || errno == EINTR));
    return ended != pid ? EXIT_BROKEN : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last line of the runtime's log, if there is any. */
static bool
said(const struct oci *sb, int code, struct err *err)
{
    cleanup_buf struct buf log = BUF_INIT(LOG_MAX);
    const char *line, *end;

    if (io_read_file(AT_FDCWD, OCI_LOG, &log) < 0 || log.n == 0)
        return false;
    end = (const char *)log.p + log.n - (log.p[log.n - 1] == '\n');
    for (line = end; line > (const char *)log.p && line[-1] != '\n'; line--)
        continue;
    err_set(err, ERR_SYSTEM, "oci.runtime.failed", "%s ended with status %d: %.*s", sb->runtime->name, code,
            (int)(end - line), line);
    return true;
}

_Noreturn void
oci_child(const struct native *native, const struct launch *l)
{
    const struct oci *sb = (const struct oci *)native;
    char name[] = "cloche-oci";
    const struct rlimit_plan none = { .nofile = 0 };
    struct err err = ERR_INIT;
    int guest, code;
    pid_t pid;

    prctl(PR_SET_NAME, name);
    if (launch_first_steps(l, &err) < 0 || work_folder(&err) < 0 || launch_as_user(l, launch_surroundings, &err) < 0 ||
        (guest = launch_meet_parent(l, &err)) < 0 || bundle(sb, &err) < 0 || rlimit_apply(&none, &err) < 0)
        launch_give_up(l->status, &err);
    close(guest);       /* the tree has it */
    pid = fork();
    if (pid < 0) {
        fail(&err, "fork");
        launch_give_up(l->status, &err);
    }
    if (pid == 0)
        become_runtime(sb, l->transport);
    close(l->transport);
    code = wait_for(pid);
    if (code != 0 && said(sb, code, &err))
        packet_say_err(l->status, &err);
    _exit(code);
}
