/* probe/attack_calls.c: every system call, prctl option and ioctl request that is to be refused
 *
 * Named attacks find the doors that somebody thought of. Here the whole table is gone through: each call that some mode
 * refuses, with -1 for every argument, so that where it is let through pointers fault, descriptors are bad and flags
 * invalid. What the kernel itself answers then is another error than the wall's.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "probe/attack.h"
#include "refused_calls.h"

#define COUNT(rows) ARRAY_LEN(rows)

/* 0 standard, 1 light, 2 max: the table's columns */
static size_t
column(const struct attempt *a)
{
    if (a->p->mode == NULL)
        return 0;
    return strcmp(a->p->mode, "light") == 0 ? 1 : strcmp(a->p->mode, "max") == 0 ? 2 : 0;
}

#if defined(__x86_64__)
static const struct { long nr; const char *name; int wall[3]; } refused[] = {
#define X(nr, name, standard, light, max) { nr, name, { standard, light, max } },
    REFUSED_CALLS(X)
#undef X
};

/* Calls whose arguments of -1 are refused by the kernel in the wall's own words, with such as it takes from anybody. */
static const struct { long nr; const char *name; long a[3]; int wall; } with_arguments[] = {
    { SYS_fanotify_init, "fanotify_init", { 0x200 /* FAN_REPORT_FID */, 0, 0 }, EPERM },
};

/* Its errno, 0 for success, -1 when the child was killed by the filter or did not come back. */
static int
answer_of(long nr, const long a[3])
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        return EAGAIN;
    if (pid == 0) {
        long rc = syscall(nr, a[0], a[1], a[2], -1L, -1L, -1L);
        _exit(rc >= 0 || errno > 254 ? 0 : errno);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The next number of "1,20,300,", -1 at its end. */
static long
next_number(const char **text)
{
    struct str word = { *text, *text != NULL ? strcspn(*text, ",") : 0 };
    uint64_t v;

    if (word.n == 0 || !str_parse_u64(word, 1023, &v))
        return -1;
    *text += word.n + 1;
    return (long)v;
}

static bool
names(const char *text, long nr)
{
    for (long v; (v = next_number(&text)) >= 0;)
        if (v == nr)
            return true;
    return false;
}

/* What the policy denies: how many, or -1 and the outcome of one that is let through. */
static int
denied_hold(struct attempt *a)
{
    static const long all[3] = { -1, -1, -1 };
    const char *text = a->p->denied;
    int n = 0;

    for (long nr; (nr = next_number(&text)) >= 0; n++) {
        int got = answer_of(nr, all);

        if (got == EPERM)
            continue;
        outcome_of(a, SUCCEEDED, "system call %ld, which the policy denies, answers %s", nr,
                   got == 0 ? "success" : got < 0 ? "with the end of its process" : strerror(got));
        return -1;
    }
    return n;
}

enum outcome
attack_call_table(struct attempt *a)
{
    int denied;
    size_t mode = column(a), tried = 0;

    if (a->p->bare)
        return outcome_of(a, NOT_APPLICABLE, "the table says what a wall refuses");
    for (size_t i = 0; i < COUNT(refused); i++) {
        /* with every flag set msgget would make a queue that outlives us */
        const long all[3] = { -1, refused[i].nr == SYS_msgget ? 0 : -1, -1 };
        int wall = refused[i].wall[mode], got;

        if (wall == 0 || names(a->p->opened, refused[i].nr) || names(a->p->denied, refused[i].nr))
            continue;
        got = answer_of(refused[i].nr, all);
        tried++;
        /* ENOSYS refuses too, and so does the guard's word about Landlock (it is closed below the guard) */
        if (got == wall || got == ENOSYS || got == -1 || (got == EOPNOTSUPP && strstr(refused[i].name, "landlock")))
            continue;
        return outcome_of(a, SUCCEEDED, "%s (%ld) answers %s, and %s is the wall's word", refused[i].name,
                          refused[i].nr, got == 0 ? "success" : strerror(got), strerror(wall));
    }
    for (size_t i = 0; i < COUNT(with_arguments); i++, tried++) {
        int got = answer_of(with_arguments[i].nr, with_arguments[i].a);

        if (got != with_arguments[i].wall && got != ENOSYS && got != -1)
            return outcome_of(a, SUCCEEDED, "%s is let through: %s", with_arguments[i].name,
                              got == 0 ? "it worked" : strerror(got));
    }
    denied = denied_hold(a);
    return denied < 0 ? SUCCEEDED : outcome_of(a, BLOCKED, "all %zu answer as they should", tried + (size_t)denied);
}
#else
enum outcome
attack_call_table(struct attempt *a)
{
    return outcome_of(a, NOT_APPLICABLE, "there is no table for this architecture");
}
#endif

/* --- prctl -------------------------------------------------------------------------------------------------------- */

/* What the kernel does for anybody. Options that it has no use for answer as the wall does, and prove nothing. */
enum outcome
attack_prctl_table(struct attempt *a)
{
    static const struct { const char *name; int option; unsigned long v; bool in_max_only; } options[] = {
        { "PR_TASK_PERF_EVENTS_DISABLE", 31, 0, false },
        { "PR_MCE_KILL (PR_MCE_KILL_CLEAR)", 33, 0, false },
        { "PR_SET_MEMORY_MERGE", 67, 1, false },
        { "PR_GET_MEMORY_MERGE", 68, 0, false },
        { "PR_GET_IO_FLUSHER", 58, 0, false },
        { "PR_GET_TIMING", 13, 0, true },
        { "PR_MCE_KILL_GET", 34, 0, true },
        { "PR_SET_SYSCALL_USER_DISPATCH", 59, 0, true },
    };
    unsigned long long cookie = 0;

    for (size_t i = 0; i < COUNT(options); i++) {
        if (options[i].in_max_only && column(a) != 2)
            continue;
        if (syscall(SYS_prctl, options[i].option, options[i].v, 0UL, 0UL, 0UL) >= 0)
            return outcome_of(a, SUCCEEDED, "%s takes effect", options[i].name);
    }
    /* asking for the own cookie needs nothing: EPERM is the wall's */
    if (syscall(SYS_prctl, 62L /* PR_SCHED_CORE */, 0L, 0L, 0L, &cookie) >= 0 || errno == ENODEV || errno == EFAULT)
        return outcome_of(a, SUCCEEDED, "PR_SCHED_CORE reaches the kernel");
    return outcome_of(a, BLOCKED, "none of %zu does anything", COUNT(options) + 1);
}

/* --- ioctl -------------------------------------------------------------------------------------------------------- */

struct range { unsigned long first, last; bool not_in_max; };

/* Requests that are on the list of src/wall/syscalls/files.list, of the families that are gone through. */
static const struct range allowed_requests[] = {
    { 0x5401, 0x540b, false },      /* TCGETS ... TCFLSH; not TIOCEXCL */
    { 0x540d, 0x5411, false },      /* TIOCNXCL ... TIOCOUTQ */
    { 0x5413, 0x541b, false },      /* TIOCGWINSZ ... FIONREAD */
    { 0x5420, 0x5422, false },      /* TIOCPKT ... TIOCNOTTY */
    { 0x5424, 0x5429, false },      /* TIOCGETD ... TIOCGSID */
    { 0x5441, 0x5441, false },      /* TIOCGPTPEER */
    { 0x5450, 0x5452, false },      /* FIONCLEX ... FIOASYNC */
    { 0x5460, 0x5460, false },      /* FIOQSIZE */
    { 0x8901, 0x8907, false },      /* FIOSETOWN ... SIOCGSTAMPNS */
    { 0x8910, 0x8910, true },       /* SIOCGIFNAME */
    { 0x8912, 0x8913, true },       /* SIOCGIFCONF, SIOCGIFFLAGS */
    { 0x8915, 0x8915, true },       /* SIOCGIFADDR */
    { 0x8919, 0x8919, true },       /* SIOCGIFBRDADDR */
    { 0x891b, 0x891b, true },       /* SIOCGIFNETMASK */
    { 0x8921, 0x8921, true },       /* SIOCGIFMTU */
    { 0x8927, 0x8927, true },       /* SIOCGIFHWADDR */
    { 0x8933, 0x8933, true },       /* SIOCGIFINDEX */
    { 0x8946, 0x8946, true },       /* SIOCETHTOOL */
    { 0x894b, 0x894b, true },       /* SIOCOUTQNSD */
};

static bool
is_allowed(const struct attempt *a, unsigned long request)
{
    for (size_t i = 0; i < COUNT(allowed_requests); i++)
        if (request >= allowed_requests[i].first && request <= allowed_requests[i].last)
            return !(allowed_requests[i].not_in_max && column(a) == 2);
    return false;
}

/* True when the kernel's own code was reached: it knows the request, and answers by what the argument is. Where it does
 * not know it, ENOTTY is its answer too. @why_not: an errno of the wall beside ENOTTY. */
static bool
reaches(struct attempt *a, int fd, const char *what, unsigned long request, void *argument, bool privileged)
{
    long rc;

    errno = 0;
    rc = syscall(SYS_ioctl, fd, request, argument);
    /* what needs a capability is refused by the kernel as the wall's four are: then nothing is shown */
    if (rc < 0 && (errno == ENOTTY || errno == ENOSYS || errno == EOPNOTSUPP || (privileged && errno == EPERM)))
        return false;
    outcome_of(a, SUCCEEDED, "request %#lx on %s: %s", request, what, rc >= 0 ? "it worked" : strerror(errno));
    return true;
}

static bool
family_reaches(struct attempt *a, int fd, const char *what, unsigned long first, unsigned long last)
{
    for (unsigned long request = first; request <= last; request++) {
        /* the four that are answered by EPERM have attacks of their own */
        bool own_attack = request == 0x5412 || request == 0x541c || request == 0x541d || request == 0x5423;

        if (!own_attack && !is_allowed(a, request) && reaches(a, fd, what, request, (void *)-1L, true))
            return true;
    }
    return false;
}

static int
terminal_pair(int *slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    *slave = -1;
    if (master < 0 || unlockpt(master) < 0 || ptsname_r(master, name, sizeof(name)) != 0)
        return master;
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return master;
}

enum outcome
attack_ioctl_table(struct attempt *a)
{
    static const struct { const char *name; unsigned long request; } of_files[] = {
        { "FIBMAP", 1 },                        { "FS_IOC_GETFSLABEL", 0x81009431 },
        { "FS_IOC_MEASURE_VERITY", 0xc0046686 }, { "FS_IOC_GET_ENCRYPTION_POLICY", 0x400c6615 },
        { "BTRFS_IOC_SUBVOL_CREATE", 0x5000940e }, { "FITRIM", 0xc0185879 }, { "FIFREEZE", 0xc0045877 },
    };
    cleanup_close int slave = -1, space = -1, link = -1, file = -1;
    cleanup_close int master = terminal_pair(&slave);
    unsigned int number = 0;
    struct ifreq lo = { .ifr_name = "lo" };

    if (a->p->bare)
        return outcome_of(a, NOT_APPLICABLE, "the list says what a wall lets through");
    /* without a socket (light) there is none to ask */
    link = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (slave >= 0 && (family_reaches(a, slave, "a terminal", 0x5400, 0x54ff) ||
                       reaches(a, slave, "a terminal", 0x80045432 /* TIOCGDEV */, &number, true)))
        return SUCCEEDED;
    if (master >= 0 && (reaches(a, master, "a terminal's master", 0x80045439 /* TIOCGPTLCK */, &number, true) ||
                        reaches(a, master, "a terminal's master", 0x80045438 /* TIOCGPKT */, &number, true)))
        return SUCCEEDED;
    if (link >= 0 && (family_reaches(a, link, "a socket", 0x8900, 0x89df) ||
                      reaches(a, link, "a socket", 0x8942 /* SIOCGIFTXQLEN */, &lo, true) ||
                      reaches(a, link, "a socket", 0x8914 /* SIOCSIFFLAGS */, &lo, false)))
        return SUCCEEDED;
    space = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    if (space >= 0 && (reaches(a, space, "a namespace", 0xb703 /* NS_GET_NSTYPE */, NULL, true) ||
                       reaches(a, space, "a namespace", 0xb701 /* NS_GET_USERNS */, NULL, false)))
        return SUCCEEDED;
    file = open(a->scratch[0] != '\0' ? a->scratch : "/", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; file >= 0 && i < COUNT(of_files); i++)
        if (reaches(a, file, of_files[i].name, of_files[i].request, (void *)-1L, true))
            return SUCCEEDED;
    return outcome_of(a, BLOCKED, "nothing but what is on the list is answered%s",
                      slave < 0 ? " (no terminal to be had)" : "");
}

/* --- modes -------------------------------------------------------------------------------------------------------- */

/* Does the mode stand in the file, whatever the call said? */
static bool
has_bit(const char *path, mode_t bit)
{
    struct stat st;

    return stat(path, &st) == 0 && (st.st_mode & bit) != 0;
}

/* Calls that make a file with a mode; those that this architecture has not are told by -1. */
static const char *const makers[] = { "open", "openat", "creat", "mknod", "mknodat", "open(O_TMPFILE)", "openat2" };
enum { BY_OPEN, BY_OPENAT, BY_CREAT, BY_MKNOD, BY_MKNODAT, BY_TMPFILE, BY_OPENAT2 };

static long
make_by(size_t how, const char *folder, const char *path, long mode)
{
    const struct { uint64_t flags, mode, resolve; } at = { O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (uint64_t)mode, 0 };
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;

    switch (how) {
#ifdef SYS_open
    case BY_OPEN: return syscall(SYS_open, path, flags, mode);
    case BY_CREAT: return syscall(SYS_creat, path, mode);
    case BY_MKNOD: return syscall(SYS_mknod, path, S_IFREG | mode, 0L);
#endif
    case BY_OPENAT: return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    case BY_MKNODAT: return syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | mode, 0L);
    case BY_TMPFILE: return syscall(SYS_openat, AT_FDCWD, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    case BY_OPENAT2: return syscall(437L, AT_FDCWD, path, &at, sizeof(at));
    default: return -1;
    }
}

/* Made so from the start: no call that makes a file may give it one of these bits. openat2, whose mode no filter sees,
 * is closed where the host's files are. */
static bool
made_set_id(struct attempt *a, const char *folder, const char *path)
{
    const mode_t bits[] = { S_ISUID, S_ISGID };
    size_t n = a->p->project != NULL ? COUNT(makers) : COUNT(makers) - 1;
    struct stat st = { .st_mode = 0 };

    for (size_t i = 0; i < COUNT(bits); i++)
        for (size_t how = 0; how < n; how++) {
            bool file = how != BY_MKNOD && how != BY_MKNODAT;
            long rc = make_by(how, folder, path, (long)(bits[i] | 0644));
            bool has = rc >= 0 && (file ? fstat((int)rc, &st) : stat(path, &st)) == 0 && (st.st_mode & bits[i]) != 0;

            if (rc >= 0 && file)
                close((int)rc);
            unlink(path);
            if (has) {
                outcome_of(a, SUCCEEDED, "%s made a set-%s-ID file", makers[how], i == 0 ? "user" : "group");
                return true;
            }
        }
    return false;
}

enum outcome
make_set_id(struct attempt *a, const char *folder)
{
    const mode_t bits[] = { S_ISUID, S_ISGID };
    size_t n = a->p->mode != NULL && strcmp(a->p->mode, "max") == 0 ? 2 : 1;    /* set-group-ID: refused in max */
    static const char *const names[] = { "chmod", "fchmod", "fchmodat", "fchmodat2" };
    char path[600];

    if (folder[0] == '\0')
        return outcome_of(a, BLOCKED, "nothing is writable here");
    snprintf(path, sizeof(path), "%s/set-id", folder);
    if (made_set_id(a, folder, path))
        return SUCCEEDED;
    cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
    if (fd < 0)
        return outcome_of(a, NOT_APPLICABLE, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < n; i++)
        for (size_t how = 0; how < COUNT(names); how++) {
            long mode = (long)(bits[i] | 0755);
            long rc = how == 0   ? syscall(SYS_chmod, path, mode)
                      : how == 1 ? syscall(SYS_fchmod, fd, mode)
                      : how == 2 ? syscall(SYS_fchmodat, AT_FDCWD, path, mode)
                                 : syscall(452L, AT_FDCWD, path, mode, 0L);

            if (rc < 0 || !has_bit(path, bits[i]))
                continue;
            syscall(SYS_fchmod, fd, 0600L);
            unlink(path);
            return outcome_of(a, SUCCEEDED, "%s made a set-%s-ID file", names[how], i == 0 ? "user" : "group");
        }
    unlink(path);
    return outcome_of(a, BLOCKED, "chmod, fchmod, fchmodat and fchmodat2 are refused, and so is making one");
}

enum outcome
attack_set_user_id(struct attempt *a)
{
    return make_set_id(a, a->scratch);
}
