/* probe/attack.c: run the attacks, each in a child of its own (see attack.h) */
#include "probe/attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

#define ATTACK_MS 20000     /* one that hangs; a busy machine takes its time */

static const struct {
    attack_fn *fn;
    const char *id;
    enum trial_stage stage;
} attacks[] = {
#define ROW(fn, id, wall, promised, unless, requirement, title) { attack_##fn, id, STAGE_ATTACKS },
    ATTACKS(ROW)
#undef ROW
#define ROW(fn, id, stage, wall, requirement, title) { trial_##fn, id, stage },
    TRIALS(ROW)
#undef ROW
};

/* What a child leaves for its parent, in shared memory: no descriptor that an attack could find. */
struct verdict {
    bool done;
    enum outcome outcome;
    char detail[256];
};

enum outcome
outcome_of(struct attempt *a, enum outcome o, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->detail, sizeof(a->detail), fmt, ap);
    va_end(ap);
    return o;
}

enum outcome
judge(struct attempt *a, const char *what, long rc)
{
    if (rc >= 0)
        return outcome_of(a, SUCCEEDED, "%s was permitted", what);
    return outcome_of(a, BLOCKED, "%s: %s", what, strerror(errno));
}

enum outcome
judge_reached(struct attempt *a, const char *what, long rc)
{
    if (rc >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS))
        return outcome_of(a, SUCCEEDED, "%s reached the kernel's code (%s)", what,
                          rc >= 0 ? "it worked" : strerror(errno));
    return outcome_of(a, BLOCKED, "%s: %s", what, strerror(errno));
}

char *
in_project(const struct attempt *a, const char *name, char out[1024])
{
    return (size_t)snprintf(out, 1024, "%s/%s", a->p->project, name) < 1024 ? out : NULL;
}

void
make_folders(const struct attempt *a, char *path)
{
    for (char *at = path + strlen(a->p->project) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(path, 0755);
    }
}

enum outcome
try_open(struct attempt *a, const char *path, int flags)
{
    cleanup_close int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const char *how = (flags & O_ACCMODE) == O_RDONLY ? "reading" : "writing";

    if (fd >= 0)
        return outcome_of(a, SUCCEEDED, "%s opens for %s", path, how);
    return outcome_of(a, BLOCKED, "%s: %s", path, strerror(errno));
}

enum outcome
first_hole(struct attempt *a, enum outcome (*const rows[])(struct attempt *), size_t n)
{
    enum outcome all = NOT_APPLICABLE;

    for (size_t i = 0; i < n; i++) {
        enum outcome o = rows[i](a);

        if (o == SUCCEEDED)
            return o;
        if (o == BLOCKED)
            all = BLOCKED;
    }
    return all;
}

enum outcome
absent(struct attempt *a, const char *what)
{
    return outcome_of(a, a->p->bare ? NOT_APPLICABLE : BLOCKED, "%s is not there", what);
}

void
own_mounts(const struct attempt *a)
{
    /* when this does not work, mounting will not work either: the kernel asks for the same privilege */
    if (a->p->bare && unshare(CLONE_NEWNS) == 0)
        mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

bool
host_process_here(const struct attempt *a)
{
    char path[64], name[64];

    if (a->p->host_pid == 0 || a->p->host_name == NULL)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)a->p->host_pid);
    if (read_small(path, name, sizeof(name)) <= 0)
        return true;    /* hidden or gone: trying tells */
    name[strcspn(name, "\n")] = '\0';
    return strcmp(name, a->p->host_name) == 0;
}

pid_t
first_process(const struct attempt *a)
{
    return a->p->bare ? a->p->host_pid : a->p->guest_pid;
}

static void
empty_scratch(const char *path)
{
    cleanup_dir DIR *dir = opendir(path);
    struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlinkat(dirfd(dir), e->d_name, 0) < 0)
            unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    rmdir(path);
}

static void
child(const struct probe *p, size_t which, const char *scratch, struct verdict *v)
{
    struct attempt a = { .p = p };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(a.scratch, sizeof(a.scratch), "%s", scratch);
    v->outcome = attacks[which].fn(&a);
    memcpy(v->detail, a.detail, sizeof(v->detail));
    v->done = true;
    _exit(0);
}

/* Wait for @pid, at most ATTACK_MS. -1 when it had to be killed. */
static int
wait_for(pid_t pid)
{
    const struct timespec pause_time = { 0, 1000 * 1000 };
    int status;

    for (int ms = 0; ms < ATTACK_MS; ms++) {
        pid_t got = waitpid(pid, &status, WNOHANG);

        if (got == pid)
            return status;
        if (got < 0 && errno != EINTR)
            return -1;
        nanosleep(&pause_time, NULL);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return -1;
}

/* Children of the attack that outlived it are ours to end (we are a subreaper). */
static void
reap_orphans(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void
run_one(const struct probe *p, size_t which, struct verdict *v, struct jw *j)
{
    static const char *const names[] = { "blocked", "succeeded", "not-applicable" };
    const char *outcome = "undecided";
    char scratch[256];
    int status;
    pid_t pid;

    memset(v, 0, sizeof(*v));
    scratch_dir(p->scratch, scratch, sizeof(scratch));
    pid = fork();
    if (pid == 0)
        child(p, which, scratch, v);
    status = pid < 0 ? -1 : wait_for(pid);
    reap_orphans();
    if (scratch[0] != '\0')
        empty_scratch(scratch);
    if (v->done) {
        outcome = names[v->outcome];
    } else if (pid < 0) {
        snprintf(v->detail, sizeof(v->detail), "fork: %s", strerror(errno));
    } else if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
        outcome = names[BLOCKED];
        snprintf(v->detail, sizeof(v->detail), "killed by the system call filter");
    } else {
        snprintf(v->detail, sizeof(v->detail), "%s", status < 0 ? "no end" : "died without a verdict");
    }
    jw_object(j, NULL);
    jw_text(j, "id", attacks[which].id);
    jw_text(j, "outcome", outcome);
    jw_text(j, "detail", v->detail);
    jw_end_object(j);
}

int
attacks_write(const struct probe *p, enum trial_stage stage, int fd)
{
    static struct jw j;
    struct verdict *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (v == MAP_FAILED)
        return -1;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    jw_open(&j, fd);
    jw_object(&j, NULL);
    jw_int(&j, "probe", 1);
    jw_array(&j, "attacks");
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++)
        if (attacks[i].stage == stage)
            run_one(p, i, v, &j);
    jw_end_array(&j);
    jw_end_object(&j);
    munmap(v, sizeof(*v));
    return jw_finish(&j);
}
