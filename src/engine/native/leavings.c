/* engine/native/leavings.c: see leavings.h */
#include "engine/leavings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/native/light_folder.h"
#include "engine/native/native.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1      /* linux/fs.h */
#endif

#define NOTE_MAX  4096      /* bytes of one: two cgroups of three paths, and a folder */
#define CGROUPS   "/sys/fs/cgroup/"
#define OURS      "cloche-"

static char kept_in[PATH_MAX];      /* "": no notes are kept */

void
leavings_keep(const char *folder)
{
    snprintf(kept_in, sizeof(kept_in), "%s", folder);
}

static void
put_cgroup(struct buf *b, const struct cgroup *cg)
{
    /* a scope is systemd's to remove */
    for (size_t h = 0; h < CGROUP_HIERARCHIES && (cg->kind == CGROUP_V1 || cg->kind == CGROUP_V2); h++) {
        const char *path = cg->paths[h][0] != '\0' ? cg->paths[h] : cg->more[h];
        if (path[0] != '\0')
            buf_printf(b, "%s %s\n", cg->kind == CGROUP_V1 ? "v1" : "v2", path);
    }
}

/* --- notes -------------------------------------------------------------------------------------------------------- */

/* ext4 gives no inode again that was freed within the last seconds, and looks at all of those for each new file: with
 * hundreds of sandboxes a minute that takes longer than the sandbox's namespaces. So a note that is not needed any more
 * is emptied and kept for another sandbox, a few dozen of them. */
#define SPARES 32

static bool
spare_path(unsigned slot, char out[PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s" LEAVINGS_SPARE "/%u", kept_in, slot % SPARES) < PATH_MAX;
}

/* A file with another name too (a snapshot by hard links) is somebody else's as well. */
static bool
is_own(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink == 1;
}

/* Whoever renames it has it. An empty note names nothing. A descriptor; -1: there is none. */
static int
take_spare(const char *note)
{
    unsigned first = (unsigned)getpid();
    cleanup_close int fd = -1;
    char path[PATH_MAX];

    /* not in the place of a note that is there: somebody is about to remove what that one names */
    for (unsigned i = 0; i < SPARES && fd < 0; i++)
        if (spare_path(first + i, path) &&
            syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, note, RENAME_NOREPLACE) == 0)
            fd = open(note, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !is_own(fd)) {
        (void)unlink(note);
        return -1;
    }
    return take_fd(&fd);
}

static bool
give_spare(const char *note)
{
    cleanup_close int fd = open(note, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    char path[PATH_MAX];

    return fd >= 0 && is_own(fd) && ftruncate(fd, 0) == 0 && spare_path((unsigned)getpid(), path) &&
           rename(note, path) == 0;
}

/* Which folder it is in. What a copy of it names is a living sandbox's of the daemon that the copy is of. */
static int
put_own(struct buf *b, int dir)
{
    struct stat st;

    return fstat(dir, &st) < 0 ? -1 : buf_printf(b, "of %llx:%llx\n", (unsigned long long)st.st_dev,
                                                (unsigned long long)st.st_ino);
}

void
leavings_note(struct native *sb)
{
    cleanup_buf struct buf text = BUF_INIT(NOTE_MAX), own = BUF_INIT(64);
    cleanup_close int fd = -1, dir = -1;

    if (kept_in[0] == '\0' ||
        snprintf(sb->note, sizeof(sb->note), "%s/%s", kept_in, sb->id) >= (int)sizeof(sb->note)) {
        sb->note[0] = '\0';
        return;
    }
    put_cgroup(&text, &sb->cgroup);
    put_cgroup(&text, &sb->net_cgroup);
    if (sb->plan.light_folder != NULL)
        buf_printf(&text, "light %s\n", sb->plan.light_folder);
    if (text.n == 0 || !buf_ok(&text)) {
        sb->note[0] = '\0';
        return;
    }
    dir = open(kept_in, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (put_own(&own, dir) == 0 && (fd = take_spare(sb->note)) < 0)
        fd = open(sb->note, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        sb->note[0] = '\0';
        return;
    }
    /* half a line names nothing (take_line) */
    if (io_write_full(fd, own.p, own.n) == 0)
        (void)io_write_full(fd, text.p, text.n);
}

void
leavings_forget(const struct native *sb)
{
    if (sb->note[0] != '\0' && !give_spare(sb->note))
        (void)unlink(sb->note);
}

/* --- the next daemon ---------------------------------------------------------------------------------------------- */

/* What still runs in it is of a sandbox that nobody keeps. */
static void
end_in(const char *cgroup)
{
    cleanup_buf struct buf text = BUF_INIT(1024UL * 1024);
    char path[600];

    snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return;
    for (size_t at = 0; at < text.n;) {
        const uint8_t *end = memchr(text.p + at, '\n', text.n - at);
        size_t n = end != NULL ? (size_t)(end - text.p) - at : text.n - at;
        uint64_t pid;
        if (str_parse_u64((struct str){ (const char *)text.p + at, n }, INT32_MAX, &pid) && pid > 1)
            (void)kill((pid_t)pid, SIGKILL);
        at += n + 1;
    }
}

/* In those of its commands too. */
static void
end_processes(const char *cgroup)
{
    cleanup_dir DIR *names = opendir(cgroup);
    const struct dirent *e;
    char path[600];

    end_in(cgroup);
    while (names != NULL && (e = readdir(names)) != NULL)
        if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
            (size_t)snprintf(path, sizeof(path), "%s/%.80s", cgroup, e->d_name) < sizeof(path))
            end_in(path);
}

static bool
remove_cgroup(const char *path, enum cgroup_kind kind)
{
    struct cgroup cg = CGROUP_INIT;
    const char *name = strrchr(path, '/');

    if (strncmp(path, CGROUPS, strlen(CGROUPS)) != 0 || strncmp(name + 1, OURS, strlen(OURS)) != 0 ||
        strstr(path, "/../") != NULL || (size_t)snprintf(cg.paths[0], sizeof(cg.paths[0]), "%s", path) >=
                                            sizeof(cg.paths[0]))
        return true;        /* not what we write: it names nothing */
    cg.kind = kind;
    if (cgroup_remove(&cg))
        return true;
    end_processes(path);
    return false;
}

/* One line of a note. True: nothing is left of it. */
static bool
take_line(const char *line, const char *id)
{
    struct native_plan plan;
    bool gone;

    if (strncmp(line, "v1 ", 3) == 0)
        return remove_cgroup(line + 3, CGROUP_V1);
    if (strncmp(line, "v2 ", 3) == 0)
        return remove_cgroup(line + 3, CGROUP_V2);
    if (strncmp(line, "light ", 6) != 0)
        return true;
    plan_init(&plan);
    gone = light_folder_plan(&plan, id, NULL) == 0 && light_folder_remove(&plan, NULL) == 0;
    plan_free(&plan);
    return gone;
}

/* True: it is done with. */
static bool
take_note(int dir, const char *id)
{
    cleanup_buf struct buf text = BUF_INIT(NOTE_MAX), own = BUF_INIT(64);
    cleanup_close int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    bool gone = true;

    if (fd < 0 && errno == ENOENT)
        return true;
    /* what is no file of ours, or a copy, names nothing */
    if (fd < 0 || io_read_all(fd, &text) < 0 || put_own(&own, dir) < 0 || text.n < own.n ||
        memcmp(text.p, own.p, own.n) != 0)
        text.n = 0;
    for (size_t at = 0; at < text.n;) {
        uint8_t *end = memchr(text.p + at, '\n', text.n - at);
        if (end == NULL)
            break;
        *end = '\0';
        gone = take_line((const char *)text.p + at, id) && gone;
        at = (size_t)(end - text.p) + 1;
    }
    return gone && (unlinkat(dir, id, 0) == 0 || errno == EISDIR);
}

static bool
is_note(const char *name)
{
    return strlen(name) == LEAVINGS_ID && strspn(name, "0123456789abcdef") == LEAVINGS_ID;
}

size_t
leavings_list(const char *folder, struct leavings *l)
{
    cleanup_dir DIR *names = opendir(folder);
    const struct dirent *e;

    l->n = 0;
    if ((size_t)snprintf(l->folder, sizeof(l->folder), "%s", folder) >= sizeof(l->folder))
        return 0;
    while (names != NULL && l->n < LEAVINGS_MAX && (e = readdir(names)) != NULL)
        if (is_note(e->d_name))
            memcpy(l->ids[l->n++], e->d_name, LEAVINGS_ID + 1);
    return l->n;
}

bool
leavings_sweep(struct leavings *l)
{
    cleanup_close int dir = open(l->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size_t left = 0;

    for (size_t i = 0; dir >= 0 && i < l->n; i++)
        if (!take_note(dir, l->ids[i]))
            memmove(l->ids[left++], l->ids[i], LEAVINGS_ID + 1);
    l->n = left;
    return left == 0;
}
