/* engine/native/holder.c: see holder.h */
#include "engine/native/holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "guest/guest_image.h"
#include "match/path.h"
#include "wire/msg.h"

#define SEARCHED "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LOG_MAX  (4 * 1024 * 1024)
#define FD_HIGH  20
#define KEPT_MAX 8

bool
holder_trusts(const struct policy *p, const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 && (st.st_mode & 022) == 0 &&
           (p == NULL || p->workspace.dir == NULL || !path_within(str_of(path), str_of(p->workspace.dir)));
}

bool
holder_find(const struct policy *p, const char *name, char out[PATH_MAX])
{
    const char *said = getenv("PATH"), *path = said != NULL ? said : SEARCHED;
    struct str folder;

    while (path_list_next(&path, &folder))
        if (folder.p[0] == '/' &&
            snprintf(out, PATH_MAX, "%.*s/%s", (int)folder.n, folder.p, name) < PATH_MAX && holder_trusts(p, out) &&
            access(out, X_OK) == 0)
            return true;
    return false;
}

int
holder_add_guest(struct native_plan *plan, struct err *err)
{
    struct seccomp_code *code = (void *)plan_room(plan, sizeof(*code));
    const struct sock_fprog *program = code != NULL ? &code->program : NULL;
    struct root_item *guest, *filter;

    if (code == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (!seccomp_build(&plan->seccomp, code))
        return err_set(err, ERR_POLICY, "wall.seccomp.plan", "there is no such system call filter");
    guest = plan_item(plan, ROOT_FILE, (const char *)guest_image, HOLDER_GUEST, err);
    filter = guest != NULL ? plan_item(plan, ROOT_FILE, (const char *)program->filter, HOLDER_FILTER, err) : NULL;
    if (filter == NULL || plan_item(plan, ROOT_SYMLINK, plan->workdir, HOLDER_WORKDIR, err) == NULL ||
        plan_item(plan, ROOT_PIN, NULL, HOLDER_FOLDER, err) == NULL)
        return -1;
    guest->size = guest_image_size;
    guest->mode = 0555;
    filter->size = program->len * sizeof(*program->filter);
    filter->mode = 0444;
    plan->root.n_items = plan->n_items;
    if (plan->root.tmpfs_bytes > 0)     /* what the policy gives is the sandbox's */
        plan->root.tmpfs_bytes += (guest->size + filter->size + 2 * 4096) & ~4095UL;
    return 0;
}

int
holder_gone(const struct native *sb, const char *program, struct err *err)
{
    siginfo_t info = { .si_pid = 0 };

    waitid(P_PID, (id_t)sb->pid, &info, WEXITED | WNOWAIT);
    if (info.si_code == CLD_EXITED && info.si_status == GUEST_EXIT_WORKDIR) {
        err_set(err, ERR_SYSTEM, "wall.workdir", "working directory %s: it is not there", sb->base.facts.workdir);
        return err_hint(err, "--workdir must name a folder that exists inside the sandbox");
    }
    if (info.si_code != CLD_EXITED)
        return err_set(err, ERR_SYSTEM, "guest.gone", "%s was ended by signal %d before the command was done", program,
                       info.si_status);
    return err_set(err, ERR_SYSTEM, "guest.gone", "%s or the guest in it ended (%d) before the command was done",
                   program, info.si_status);
}

/* --- in the child ------------------------------------------------------------------------------------------------- */

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "holder.work", "%s", what);
}

/* Users inside pass through, and see nothing. */
int
holder_work_folder(const char *const *folders, size_t n, struct err *err)
{
    static const char *const own[] = { HOLDER_BUNDLE, HOLDER_ROOT, HOLDER_BUNDLE "/scratch" };
    cleanup_close int log = -1;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(err, "keep mounts to itself");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return fail(err, "/proc");
    if (mount("cloche", HOLDER_WORK, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711,size=64m") < 0)
        return fail(err, "a tmpfs over " HOLDER_WORK);
    umask(0022);
    for (size_t i = 0; i < ARRAY_LEN(own) + n; i++)
        if (mkdir(i < ARRAY_LEN(own) ? own[i] : folders[i - ARRAY_LEN(own)], 0755) < 0)
            return fail(err, "folders of the work folder");
    log = open(HOLDER_LOG, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return log < 0 ? fail(err, HOLDER_LOG) : 0;
}

int
holder_descriptors(int log, const int *fds, size_t n)
{
    int ended[2], high[KEPT_MAX];

    log = fcntl(log, F_DUPFD_CLOEXEC, FD_HIGH);
    if (log < 0 || pipe2(ended, O_CLOEXEC) < 0 || n > ARRAY_LEN(high))
        return -1;
    ended[0] = fcntl(ended[0], F_DUPFD_CLOEXEC, FD_HIGH);
    for (size_t i = 0; i < n; i++)
        if ((high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH)) < 0)
            return -1;
    if (dup2(ended[0], 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (dup2(high[i], 3 + (int)i) < 0)
            return -1;
    return io_close_from(3 + (int)n);
}

void
holder_exec(const char *program, const char *const *argv, char *const *env)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(program, (char *const *)(uintptr_t)argv, env);
}

int
holder_keep(int *const *fds, size_t n)
{
    int high[KEPT_MAX];

    if (n > KEPT_MAX)
        return -1;
    for (size_t i = 0; i < n; i++)
        if ((high[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, FD_HIGH)) < 0)
            return -1;
    for (size_t i = 0; i < n; i++) {
        if (dup3(high[i], 3 + (int)i, O_CLOEXEC) < 0)
            return -1;
        *fds[i] = 3 + (int)i;
    }
    return io_close_from(3 + (int)n);
}

int
holder_wait(pid_t pid)
{
    int status;
    pid_t ended;

    do
        ended = waitpid(-1, &status, 0);
    while (ended != pid && (ended > 0 || errno == EINTR));
    return ended != pid ? HOLDER_BROKEN : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool
holder_said(const char *code, const char *program, int status, struct err *err)
{
    cleanup_buf struct buf log = BUF_INIT(LOG_MAX);
    const char *line, *end;

    if (io_read_file(AT_FDCWD, HOLDER_LOG, &log) < 0 || log.n == 0)
        return false;
    end = (const char *)log.p + log.n - (log.p[log.n - 1] == '\n');
    for (line = end; line > (const char *)log.p && line[-1] != '\n'; line--)
        continue;
    err_set(err, ERR_SYSTEM, code, "%s ended with status %d: %.*s", program, status, (int)(end - line), line);
    return true;
}

/* --- which processes it has, as our /proc shows it ---------------------------------------------------------------- */

static bool
is_named(uint64_t pid, const char *name)
{
    cleanup_buf struct buf comm = BUF_INIT(64);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
    return io_read_file(AT_FDCWD, path, &comm) == 0 && comm.n == strlen(name) + 1 &&
           memcmp(comm.p, name, comm.n - 1) == 0;
}

/* By the first word of its command line. */
static bool
calls_itself(uint64_t pid, const char *name)
{
    cleanup_buf struct buf line = BUF_INIT(65536);
    char path[64];

    snprintf(path, sizeof(path), "/proc/%llu/cmdline", (unsigned long long)pid);
    return io_read_file(AT_FDCWD, path, &line) == 0 && line.n > strlen(name) &&
           memcmp(line.p, name, strlen(name) + 1) == 0;
}

/* A child of @thread, in the folder @tasks, by its name; -1: it has none. */
static pid_t
child_of_thread(int tasks, const char *thread, bool (*is)(uint64_t, const char *), const char *name)
{
    cleanup_buf struct buf list = BUF_INIT(4096);
    char path[64];
    uint64_t child;

    snprintf(path, sizeof(path), "%.20s/children", thread);
    if (io_read_file(tasks, path, &list) < 0)
        return -1;
    for (size_t i = 0, start = 0; i < list.n; i++) {    /* "PID PID " */
        if (list.p[i] != ' ')
            continue;
        if (str_parse_u64((struct str){ (char *)list.p + start, i - start }, INT32_MAX, &child) &&
            is(child, name))
            return (pid_t)child;
        start = i + 1;
    }
    return -1;
}

static pid_t
child_of(pid_t pid, bool (*is)(uint64_t pid, const char *name), const char *name)
{
    char path[64];
    pid_t child = -1;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    tasks = pid > 0 ? opendir(path) : NULL;
    for (struct dirent *e; child < 0 && tasks != NULL && (e = readdir(tasks)) != NULL;)
        if (e->d_name[0] != '.')
            child = child_of_thread(dirfd(tasks), e->d_name, is, name);
    if (tasks != NULL)
        closedir(tasks);
    return child;
}

pid_t
holder_child_named(pid_t pid, const char *name)
{
    return child_of(pid, is_named, name);
}

pid_t
holder_child_calling_itself(pid_t pid, const char *name)
{
    return child_of(pid, calls_itself, name);
}
