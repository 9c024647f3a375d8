/* probe/trial_state.c: state that a project of prove's own must not come to hold, and what must not come out of it
 *
 * What git would execute has a shape, not a name; what overlays would read is in attributes. Two trials end without a
 * verdict in here: a process is left behind, a file with a name outside is written to. Whether that held is seen from
 * outside (prove/prove_trial.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"
#include "probe/places.h"

#define COUNT(rows) ARRAY_LEN(rows)
#define LEFT_S      30      /* longer than anybody looks */
#define NR_SETXATTRAT 463L  /* Linux 6.13 */
#define GET_FLAGS   0x80086601UL    /* FS_IOC_GETFLAGS */
#define SET_FLAGS   0x40086602UL    /* FS_IOC_SETFLAGS */
#define NO_DUMP     0x40            /* FS_NODUMP_FL: anybody's to set who owns the file */
#define FS_SET_XATTR 0x401c5820UL   /* FS_IOC_FSSETXATTR */
#define NO_DUMP_X   0x80            /* FS_XFLAG_NODUMP */
#define NR_FCHMODAT2 452L           /* Linux 6.6 */

static const char runs[] = "[core]\n\tfsmonitor = touch ran\n";

/* --- what git executes -------------------------------------------------------------------------------------------- */

static bool
write_file(const char *path, const char *text, mode_t mode)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Is @path there with content that git would run? */
static bool
holds(const char *path)
{
    char text[256];

    return read_small(path, text, sizeof(text)) > 0 &&
           (strstr(text, "fsmonitor") != NULL || strncmp(text, "#!", 2) == 0 || strncmp(text, "exec ", 5) == 0);
}

/* @text as @name of the project: written there, or written elsewhere and renamed, or linked. */
static bool
arrives(struct attempt *a, const char *name, const char *text)
{
    char path[1024], own[1024];
    bool there;

    in_project(a, name, path);
    in_project(a, "state-to-be", own);
    make_folders(a, path);
    write_file(path, text, 0755);
    there = holds(path);
    if (!there && write_file(own, text, 0755))
        there = rename(own, path) == 0 && holds(path);
    if (!there && write_file(own, text, 0755))
        there = link(own, path) == 0 && holds(path);
    unlink(own);
    if (there)
        outcome_of(a, SUCCEEDED, "%s holds what git runs", path);
    return there;
}

/* A folder of a repository's shape: with its parts first, or with what it runs first. */
static bool
shaped(struct attempt *a, const char *folder, bool parts_first)
{
    static const char *const parts[] = { "", "objects", "refs", "hooks" };
    char path[1024], name[256];
    struct stat objects, refs;
    bool found = false;

    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < COUNT(parts); i++) {
            /* without parts, only the folder itself and hooks */
            if ((turn == 0) != parts_first && parts[i][0] != '\0' && strcmp(parts[i], "hooks") != 0)
                continue;
            snprintf(name, sizeof(name), "%s/%s%s", folder, parts[i], parts[i][0] != '\0' ? "/" : "");
            make_folders(a, in_project(a, name, path));
        }
        snprintf(name, sizeof(name), "%s/HEAD", folder);
        write_file(in_project(a, name, path), "ref: refs/heads/main\n", 0644);
        snprintf(name, sizeof(name), "%s/config", folder);
        found = arrives(a, name, runs) || found;
        snprintf(name, sizeof(name), "%s/hooks/post-checkout", folder);
        found = arrives(a, name, "#!/bin/sh\n") || found;
    }
    snprintf(name, sizeof(name), "%s/objects", folder);
    if (!found || stat(in_project(a, name, path), &objects) < 0)
        return false;
    snprintf(name, sizeof(name), "%s/refs", folder);
    return stat(in_project(a, name, path), &refs) == 0;
}

enum outcome
trial_project_git(struct attempt *a)
{
    char head[1024], aside[1024];

    in_project(a, ".git/HEAD", head);
    in_project(a, "head-aside", aside);
    if (shaped(a, "bare", true) || shaped(a, "bare-later", false) || shaped(a, "sub/module.git", true) ||
        arrives(a, ".git/rebase-merge/git-rebase-todo", "exec touch ran\n") ||
        shaped(a, ".git/modules/x", false) || arrives(a, "sub/.git/config.worktree", runs))
        return SUCCEEDED;
    if (rename(head, aside) == 0 || unlink(head) == 0)
        return outcome_of(a, SUCCEEDED, "%s can be taken away, and the folder above looked for", head);
    return outcome_of(a, BLOCKED, "no folder of that shape holds what git runs");
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

enum outcome
trial_project_marks(struct attempt *a)
{
    static const char *const names[] = { "user.overlay.opaque", "user.overlay.redirect", "user.fuseoverlayfs.opaque" };
    enum outcome o = BLOCKED;
    char path[1024];

    if (!write_file(in_project(a, "marked", path), "own\n", 0644))
        return outcome_of(a, NOT_APPLICABLE, "%s: %s", path, strerror(errno));
    cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
    const struct { uint64_t value; uint32_t size, flags; } value = { (uint64_t)(uintptr_t)"y", 1, 0 };
    for (size_t i = 0; i < COUNT(names) && o == BLOCKED; i++)
        if (judge(a, names[i], setxattr(path, names[i], "y", 1, 0)) == SUCCEEDED ||
            judge(a, names[i], lsetxattr(path, names[i], "y", 1, 0)) == SUCCEEDED ||
            judge(a, names[i], fsetxattr(fd, names[i], "y", 1, 0)) == SUCCEEDED ||
            judge(a, names[i],
                  syscall(NR_SETXATTRAT, AT_FDCWD, path, 0L, names[i], &value, sizeof(value))) == SUCCEEDED)
            o = SUCCEEDED;
    unlink(path);
    return o;
}

/* --env passes on a variable of the caller's, but for those (docs/policy.md) */
enum outcome
trial_project_environment(struct attempt *a)
{
    static const char *const refused[] = REFUSED_VARIABLES;

    if (getenv(PASSED_VARIABLE) == NULL)
        return outcome_of(a, SUCCEEDED, "not even " PASSED_VARIABLE " is passed on");
    for (size_t i = 0; i < COUNT(refused); i++)
        if (getenv(refused[i]) != NULL)
            return outcome_of(a, SUCCEEDED, "%s is passed on", refused[i]);
    return outcome_of(a, BLOCKED, "none of %zu is passed on", COUNT(refused));
}

/* Landlock for itself: nothing may be made any more. The guard, which is not confined so, must not make it then. */
enum outcome
trial_project_further(struct attempt *a)
{
    const uint64_t makes = 1 << 7 | 1 << 8;     /* folders and files */
    char path[1024];

    cleanup_close int rules = (int)syscall(444L /* landlock_create_ruleset */, &makes, sizeof(makes), 0U);
    if (rules < 0 || syscall(446L /* landlock_restrict_self */, rules, 0U) < 0)
        return outcome_of(a, BLOCKED, "there is no Landlock inside: %s", strerror(errno));
    in_project(a, "made-against-rules", path);
    if (write_file(path, "own\n", 0644) || mkdir(path, 0755) == 0)
        return outcome_of(a, SUCCEEDED, "%s was made for a process that may make nothing", path);
    return outcome_of(a, BLOCKED, "what may make nothing makes nothing");
}

/* --- doors -------------------------------------------------------------------------------------------------------- */

enum outcome
trial_project_door(struct attempt *a)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct stat st;
    int pair[2];
    char name[1];

    if (chdir(a->p->project) < 0 || lstat("door", &st) < 0)
        return outcome_of(a, NOT_APPLICABLE, "no socket was put there");
    memcpy(to.sun_path, "door", sizeof("door"));
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return outcome_of(a, BLOCKED, "socket: %s", strerror(errno));
    if (judge(a, "connect", connect(fd, (struct sockaddr *)&to, sizeof(to))) == SUCCEEDED)
        return SUCCEEDED;
    /* what needs no connect(): by itself, and as one of a pair */
    memcpy(to.sun_path, "post", sizeof("post"));
    cleanup_close int post = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (post >= 0 && judge(a, "sendto", sendto(post, "x", 1, 0, (struct sockaddr *)&to, sizeof(to))) == SUCCEEDED)
        return SUCCEEDED;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
        return outcome_of(a, BLOCKED, "socketpair: %s", strerror(errno));
    cleanup_close int one = pair[0], other = pair[1];
    if (judge(a, "sendto of a pair", sendto(one, "x", 1, 0, (struct sockaddr *)&to, sizeof(to))) == BLOCKED)
        return BLOCKED;
    /* the guard makes another kind, which has no letters to others: then its own end has it */
    if (recv(other, name, 1, MSG_DONTWAIT) != 1)
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "connect and sendto are refused, a pair's letters go to the pair");
}

/* --- what outside judges ------------------------------------------------------------------------------------------ */

/* Ways that the guard answers, each to a name of its own: after the first that works it is a copy. */
static void
change_linked(struct attempt *a)
{
    static const char *const names[] = { "linked-cut", "linked-mode", "linked-times", "linked-attribute" };
    const struct { uint64_t value; uint32_t size, flags; } value = { (uint64_t)(uintptr_t)"y", 1, 0 };
    uint32_t flags[7] = { NO_DUMP_X };

    for (size_t i = 0; i < COUNT(names); i++) {
        char path[1024];
        cleanup_close int fd = open(in_project(a, names[i], path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0)
            continue;
        /* those that it does not know, to all of them */
        (void)syscall(NR_FCHMODAT2, AT_FDCWD, path, 0600U, 0U);
        (void)syscall(NR_SETXATTRAT, AT_FDCWD, path, 0L, "user.prove", &value, sizeof(value));
        (void)syscall(SYS_ioctl, fd, FS_SET_XATTR, flags);
        if (i == 0)
            close_fd(&(int){ open(path, O_RDONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW) });
        else if (i == 1)
            (void)!fchmod(fd, 0600);
#ifdef SYS_utimes
        else if (i == 2)
            (void)syscall(SYS_utimes, path, NULL);
#endif
        else if (i == 3)
            (void)fsetxattr(fd, "user.prove", "y", 1, 0);
    }
}

enum outcome
trial_project_linked(struct attempt *a)
{
    char path[1024];

    change_linked(a);
    cleanup_close int fd = open(in_project(a, "linked", path), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? write(fd, "inside\n", 7) : -1;
    int why = errno;
    bool cut = truncate(path, 3) == 0;
    /* what is no content: of a name that nobody has written to */
    in_project(a, "linked-too", path);
    const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    long flags = 0;
    cleanup_close int reader = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (reader >= 0 && syscall(SYS_ioctl, reader, GET_FLAGS, &flags) == 0) {
        flags |= NO_DUMP;
        (void)syscall(SYS_ioctl, reader, SET_FLAGS, &flags);
    }
    (void)!utimensat(AT_FDCWD, path, times, 0);
    (void)setxattr(path, "user.prove", "y", 1, 0);
    (void)!chmod(path, 0600);
    if (!cut && n < 0)
        return outcome_of(a, BLOCKED, "%s: %s", path, strerror(why));
    return outcome_of(a, BLOCKED, "its name in the project was written to");
}

/* Out of its session, its parent gone, none of our descriptors: named, so that it is found. */
enum outcome
trial_project_leave(struct attempt *a)
{
    pid_t pid;

    if (a->p->leave == NULL)
        return outcome_of(a, NOT_APPLICABLE, "it has no name");
    pid = fork();
    if (pid < 0)
        return outcome_of(a, NOT_APPLICABLE, "fork: %s", strerror(errno));
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        setsid();
        ignore_ends();
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        prctl(PR_SET_NAME, a->p->leave);
        sleep(LEFT_S);
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return outcome_of(a, BLOCKED, "a process was left behind");
}

/* --- a copy ------------------------------------------------------------------------------------------------------- */

enum outcome
trial_copy_control(struct attempt *a)
{
    char path[1024];

    cleanup_close int fd = open(in_project(a, "README", path), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || write(fd, "inside\n", 7) != 7)
        return outcome_of(a, SUCCEEDED, "%s: %s", path, strerror(errno));
    return outcome_of(a, BLOCKED, "%s was written to", path);
}

enum outcome
trial_copy_mount(struct attempt *a)
{
    struct statvfs fs;

    if (statvfs(a->p->project, &fs) < 0)
        return outcome_of(a, NOT_APPLICABLE, "%s: %s", a->p->project, strerror(errno));
    return outcome_of(a, (fs.f_flag & ST_NOSUID) != 0 && (fs.f_flag & ST_NODEV) != 0 ? BLOCKED : SUCCEEDED,
                      "flags %#lx", fs.f_flag);
}

enum outcome
trial_copy_apart(struct attempt *a)
{
    char path[1024];
    bool made = mkdir(in_project(a, "fresh", path), 0755) == 0, moded, gone;

    moded = chmod(in_project(a, "closed/file", path), 0600) == 0;
    gone = unlink(in_project(a, ".gitmodules", path)) == 0;
    return outcome_of(a, BLOCKED, "made %d, changed %d, removed %d", made, moded, gone);
}
