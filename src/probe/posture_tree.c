/* probe/posture_tree.c: mounts, and what a walk of the tree finds
 *
 * Walks are bounded in entries and depth and never follow a link. They say when they were cut short: a check on a
 * walk that did not finish is not a proof.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/probe.h"

#define WALK_ENTRIES 400000
#define WALK_DEPTH   12
#define WALK_S       10         /* people wait for it; a machine that is busy has a part of its tree walked, */
#define KERNEL_S     90         /* but all of /proc and /sys: there a part proves nothing */
#define FOUND_MAX    100        /* of each kind */

enum kind { SOCKETS, SETUID, DEVICES, WRITABLE, NEEDLES, KINDS };

struct walk {
    const struct probe *p;
    bool gentle;                /* ask instead of opening */
    bool kernel;                /* below /proc or /sys: what is writable; elsewhere: the other kinds */
    size_t left;                /* entries still to be looked at */
    time_t end;                 /* by the monotonic clock */
    size_t n[KINDS];            /* more than FOUND_MAX are counted, not kept */
    char *found[KINDS][FOUND_MAX];
};

static time_t
seconds(void)
{
    struct timespec now = { 0, 0 };

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void visit_all(struct walk *w, int dirfd, const char *path, unsigned depth);

/* Opened for writing, never written to. */
static bool
is_writable(const struct walk *w, int dirfd, const char *name, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return false;
    if (w->gentle)
        return (st->st_mode & 0222) != 0 && faccessat(dirfd, name, W_OK, AT_EACCESS) == 0;
    cleanup_close int fd = openat(dirfd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0;
}

static enum kind
kind_of_entry(const struct walk *w, int dirfd, const char *name, const struct stat *st)
{
    if (w->kernel)
        return is_writable(w, dirfd, name, st) ? WRITABLE : KINDS;
    if (S_ISSOCK(st->st_mode))
        return SOCKETS;
    if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
        return DEVICES;
    if (S_ISREG(st->st_mode) && (st->st_mode & (S_ISUID | S_ISGID)) != 0 && (st->st_mode & 0111) != 0)
        return SETUID;
    return KINDS;
}

/* Is it one of the host's places that were named by inode, and does it open? A folder opens when something is in it:
 * an empty one of mode 000 is what masks are made of. */
static bool
is_open_needle(const struct walk *w, int dirfd, const char *name, const struct stat *st)
{
    size_t low = 0, high = w->p->n_needles;
    struct dirent *e;

    while (low < high) {
        size_t mid = (low + high) / 2;
        const struct needle *n = &w->p->needles[mid];

        if (n->dev == st->st_dev && n->ino == st->st_ino)
            break;
        if (n->dev < st->st_dev || (n->dev == st->st_dev && n->ino < st->st_ino))
            low = mid + 1;
        else
            high = mid;
    }
    if (low >= high || (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode)))
        return false;
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    if (!S_ISDIR(st->st_mode)) {
        close(fd);
        return true;
    }
    cleanup_dir DIR *dir = fdopendir(fd);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return true;
    return false;
}

static void
note(struct walk *w, enum kind kind, const char *path)
{
    if (kind != KINDS && w->n[kind]++ < FOUND_MAX)
        w->found[kind][w->n[kind] - 1] = strdup(path);
}

/* Processes have posture_processes; /proc and /sys a walk of their own. */
static bool
is_elsewhere(const struct walk *w, const char *path, const char *child, const char *name)
{
    if (!w->kernel)
        return strcmp(child, "/proc") == 0 || strcmp(child, "/sys") == 0;
    return strcmp(path, "/proc") == 0 && (all_digits(name) || strcmp(name, "self") == 0);
}

static void
visit(struct walk *w, int dirfd, const char *path, const char *name, unsigned depth)
{
    char child[1024];
    struct stat st;

    if (--w->left % 256 == 0 && seconds() > w->end)
        w->left = 0;
    if ((size_t)snprintf(child, sizeof(child), "%s/%s", path, name) >= sizeof(child) ||
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    note(w, kind_of_entry(w, dirfd, name, &st), child);
    if (!w->kernel && w->p->n_needles > 0 && is_open_needle(w, dirfd, name, &st))
        note(w, NEEDLES, child);
    if (!S_ISDIR(st.st_mode) || depth == WALK_DEPTH || is_elsewhere(w, path, child, name))
        return;
    cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        visit_all(w, fd, child, depth + 1);
}

static void
visit_all(struct walk *w, int dirfd, const char *path, unsigned depth)
{
    int list = fcntl(dirfd, F_DUPFD_CLOEXEC, 3);
    cleanup_dir DIR *dir = list >= 0 ? fdopendir(list) : NULL;
    struct dirent *e;

    while (dir != NULL && w->left > 0 && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            visit(w, dirfd, path, e->d_name, depth);
}

static void
walk_from(struct walk *w, const char *start)
{
    cleanup_close int fd = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    w->left = WALK_ENTRIES;
    w->end = seconds() + (w->kernel ? KERNEL_S : w->p->walk_s > 0 ? (time_t)(w->p->walk_s % 86400) : WALK_S);
    if (fd >= 0)
        visit_all(w, fd, strcmp(start, "/") == 0 ? "" : start, 1);
}

static void
put_found(struct jw *j, const char *key, struct walk *w, enum kind kind)
{
    jw_array(j, key);
    for (size_t i = 0; i < w->n[kind] && i < FOUND_MAX; i++)
        jw_text(j, NULL, w->found[kind][i]);
    jw_end_array(j);
    for (size_t i = 0; i < w->n[kind] && i < FOUND_MAX; i++)
        free(w->found[kind][i]);
}

void
posture_tree(const struct probe *p, struct jw *j)
{
    static struct walk tree, proc, sys;

    if (!p->no_walk) {
        tree = (struct walk){ .p = p, .gentle = p->bare };
        walk_from(&tree, "/");
        put_found(j, "unix_sockets", &tree, SOCKETS);
        put_found(j, "setuid_files", &tree, SETUID);
        put_found(j, "devices", &tree, DEVICES);
        put_found(j, "needles", &tree, NEEDLES);
        jw_bool(j, "tree_complete", tree.left > 0);
    }
    proc = sys = (struct walk){ .p = p, .gentle = p->bare, .kernel = true };
    walk_from(&proc, "/proc");
    put_found(j, "writable_proc", &proc, WRITABLE);
    walk_from(&sys, "/sys");
    put_found(j, "writable_sys", &sys, WRITABLE);
    jw_bool(j, "kernel_complete", proc.left > 0 && sys.left > 0);
}

bool
posture_opens(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    struct dirent *e;

    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3);
    cleanup_dir DIR *dir = opendir(path);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return true;
    return false;
}

/* One line of mountinfo: id parent major:minor root point options [tags] - type source super */
static void
put_mount(struct jw *j, char *line)
{
    char *words[7] = { NULL }, *at = line, *tail = strstr(line, " - ");
    static const char *const flags[] = { "ro", "nosuid", "nodev", "noexec" };
    char node[32];
    struct stat st;

    if (tail == NULL)
        return;
    *tail = '\0';
    tail += 3;
    for (size_t i = 0; i < 6 && at != NULL; i++) {
        words[i] = at;
        at = strchr(at, ' ');
        if (at != NULL)
            *at++ = '\0';
    }
    if (words[5] == NULL)
        return;
    jw_object(j, NULL);
    jw_text(j, "point", words[4]);
    jw_text(j, "device", words[2]);
    if (stat(words[4], &st) == 0 && S_ISCHR(st.st_mode)) {
        snprintf(node, sizeof(node), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
        jw_text(j, "node", node);       /* of a device of characters, its number */
    }
    jw_bool(j, "opens", posture_opens(words[4]));
    /* what is left of the line: "shared:N", "master:N" */
    jw_bool(j, "linked", at != NULL && *at != '\0');
    jw_bytes(j, "type", tail, strcspn(tail, " "));
    for (size_t f = 0; f < ARRAY_LEN(flags); f++) {
        bool has = false;
        size_t n = strlen(flags[f]);

        for (const char *o = words[5]; o != NULL && *o != '\0'; o = strchr(o, ','), o = o != NULL ? o + 1 : NULL)
            has |= strncmp(o, flags[f], n) == 0 && (o[n] == ',' || o[n] == '\0');
        jw_bool(j, flags[f], has);
    }
    jw_end_object(j);
}

/* Of what is mounted where, the flags that count there; null when nothing is there. */
static void
put_flags(struct jw *j)
{
    static const struct { const char *key, *path; unsigned long flag; } rows[] = {
        { "proc_noexec", "/proc", ST_NOEXEC },
        { "pts_noexec", "/dev/pts", ST_NOEXEC },
        { "proc_sys_read_only", "/proc/sys", ST_RDONLY },
        { "sysrq_read_only", "/proc/sysrq-trigger", ST_RDONLY },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct statvfs fs;

        if (statvfs(rows[i].path, &fs) == 0)
            jw_bool(j, rows[i].key, (fs.f_flag & rows[i].flag) != 0);
        else
            jw_null(j, rows[i].key);
    }
}

void
posture_mounts(struct jw *j)
{
    static char text[1 << 20];
    ssize_t n = read_small("/proc/self/mountinfo", text, sizeof(text));
    char *line = text, *end;

    put_flags(j);
    jw_bool(j, "mounts_listed", n > 0);
    jw_array(j, "mounts");
    while (n > 0 && *line != '\0') {
        end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        put_mount(j, line);
        if (end == NULL)
            break;
        line = end + 1;
    }
    jw_end_array(j);
}

/* O_PATH would prove nothing: the question is whether the content can be had. */
static bool
readable(const char *path)
{
    struct stat st;
    char byte;
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    if (S_ISDIR(st.st_mode)) {
        cleanup_dir DIR *dir = opendir(path);
        struct dirent *e;

        /* an empty directory of mode 000 that masks another one has nothing to read */
        while (dir != NULL && (e = readdir(dir)) != NULL)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                return true;
        return false;
    }
    return read(fd, &byte, 1) == 1;
}

/* An existing file is opened for writing; an absent one is created and removed again. */
static bool
writable(const char *path)
{
    struct stat st;
    char probe_file[1024];

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if ((size_t)snprintf(probe_file, sizeof(probe_file), "%s/.cloche-probe", path) >= sizeof(probe_file))
            return false;
        path = probe_file;
    }
    cleanup_close int old = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (old >= 0)
        return true;
    cleanup_close int fresh = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fresh < 0)
        return false;
    unlink(path);
    return true;
}

void
posture_paths(const struct probe *p, struct jw *j)
{
    jw_array(j, "readable");
    for (size_t i = 0; i < p->n_read; i++)
        if (readable(p->read_paths[i]))
            jw_text(j, NULL, p->read_paths[i]);
    jw_end_array(j);
    jw_array(j, "writable");
    for (size_t i = 0; i < p->n_write; i++)
        if (!p->bare && writable(p->write_paths[i]))
            jw_text(j, NULL, p->write_paths[i]);
    jw_end_array(j);
}
