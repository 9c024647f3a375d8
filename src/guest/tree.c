/* guest/tree.c: see tree.h */
#include "guest/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/str.h"

#define PID_TEXT_MAX 64

/* "/proc/PID/NAME" without stdio: this runs on the way to killing things, when memory may be gone. */
static int
proc_path(pid_t pid, const char *name, char out[PID_TEXT_MAX])
{
    char digits[16];
    size_t n = sizeof(digits), at = 6, name_n = strlen(name);

    for (uint32_t v = (uint32_t)pid; n > 0; v /= 10) {
        digits[--n] = (char)('0' + v % 10);
        if (v < 10)
            break;
    }
    if (at + (sizeof(digits) - n) + 1 + name_n + 1 > PID_TEXT_MAX)
        return -1;
    memcpy(out, "/proc/", 6);
    memcpy(out + at, digits + n, sizeof(digits) - n);
    at += sizeof(digits) - n;
    out[at++] = '/';
    memcpy(out + at, name, name_n + 1);
    return 0;
}

ssize_t
tree_read_file(pid_t pid, const char *name, char *p, size_t room)
{
    char path[PID_TEXT_MAX];
    cleanup_close int fd = -1;
    size_t n = 0;

    errno = 0;
    if (proc_path(pid, name, path) < 0) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    while (n + 1 < room) {
        ssize_t got = read(fd, p + n, room - 1 - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    p[n] = '\0';
    return (ssize_t)n;
}

bool
tree_cannot_look(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* "PID (name) STATE PARENT ... THREADS ...": the name may hold anything, so the last ')' ends it. */
static bool
parse_stat(const char *text, struct tree_proc *out)
{
    const char *p = strrchr(text, ')');
    uint64_t v = 0;

    if (p == NULL || p[1] != ' ' || p[2] == '\0' || p[3] != ' ')
        return false;
    out->zombie = p[2] == 'Z' || p[2] == 'X';
    p += 4;
    for (int field = 4; field <= 20; field++) {
        size_t n = strcspn(p, " ");

        if ((field == 4 || field == 20) && !str_parse_u64((struct str){ p, n }, INT32_MAX, &v))
            return false;
        if (field == 4)
            out->parent = (pid_t)v;
        p += n + (p[n] == ' ');
    }
    out->threads = (uint32_t)v;
    /* the state is its first thread's, which may end alone */
    out->headless = out->zombie && out->threads > 1;
    out->zombie = out->zombie && !out->headless;
    return true;
}

pid_t
tree_thread(pid_t pid)
{
    char path[PID_TEXT_MAX], name[PID_TEXT_MAX], text[512];
    cleanup_close int list = proc_path(pid, "task", path) < 0
                                 ? -1 : openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents d = { .fd = list };
    const char *tid;

    while (list >= 0 && (tid = dirents_next(&d)) != NULL) {
        struct tree_proc thread;
        uint64_t v;

        if (!str_parse_u64(str_of(tid), INT32_MAX, &v) || strlen(tid) > 16)
            continue;
        memcpy(name, "task/", 5);
        memcpy(name + 5, tid, strlen(tid));
        memcpy(name + 5 + strlen(tid), "/stat", 6);
        if (tree_read_file(pid, name, text, sizeof(text)) > 0 && parse_stat(text, &thread) && !thread.zombie &&
            !thread.headless)
            return (pid_t)v;
    }
    return 0;
}

static ssize_t
read_all(int proc, struct tree_proc *v)
{
    struct dirents d = { .fd = proc };
    const char *name;
    size_t n = 0;

    while (n < TREE_MAX && (name = dirents_next(&d)) != NULL) {
        char text[512];
        uint64_t pid;

        if (!str_parse_u64(str_of(name), INT32_MAX, &pid))
            continue;
        v[n] = (struct tree_proc){ .pid = (pid_t)pid };
        /* Gone since the directory was read: not there. */
        if (tree_read_file((pid_t)pid, "stat", text, sizeof(text)) > 0 && parse_stat(text, &v[n]))
            n++;
        else if (tree_cannot_look())
            return -1;
    }
    return d.failed != 0 ? -1 : (ssize_t)n;
}

#define PIDS_MAX (1 << 22)      /* the kernel's own ceiling (PID_MAX_LIMIT) */

static bool
get_bit(const uint8_t *bits, pid_t pid)
{
    return pid >= 0 && pid < PIDS_MAX && (bits[pid >> 3] >> (pid & 7) & 1) != 0;
}

/* Pids wrap around, so a child may come before its parent: repeat until nothing is added. */
static int
mark(struct tree_proc *v, size_t n, pid_t self)
{
    cleanup_free uint8_t *ours = calloc(PIDS_MAX / 8, 1);
    bool grew = true;

    if (ours == NULL)
        return -1;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < n; i++) {
            if (v[i].ours || (v[i].parent != self && !get_bit(ours, v[i].parent)) || v[i].pid >= PIDS_MAX)
                continue;
            v[i].ours = grew = true;
            ours[v[i].pid >> 3] |= (uint8_t)(1 << (v[i].pid & 7));
        }
    }
    return 0;
}

ssize_t
tree_read(pid_t self, struct tree_proc **out)
{
    cleanup_close int proc = openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free struct tree_proc *v = NULL;
    ssize_t n;

    if (proc < 0)
        return -1;
    v = malloc(TREE_MAX * sizeof(*v));
    if (v == NULL)
        return -1;
    n = read_all(proc, v);
    if (n < 0 || mark(v, (size_t)n, self) < 0)
        return -1;
    *out = take_ptr(&v);
    return n;
}
