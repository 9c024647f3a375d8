/* probe/posture_processes.c: every thread of every process that can be seen, and its descriptors */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "probe/probe.h"

#define THREADS_MAX 20000

static void
put_thread(struct jw *j, const char *pid, const char *tid)
{
    static const struct { const char *key, *field; } texts[] = {
        { "name", "Name" },     { "uids", "Uid" },    { "ppid", "PPid" },   { "cap_inh", "CapInh" },
        { "cap_prm", "CapPrm" }, { "cap_eff", "CapEff" }, { "cap_bnd", "CapBnd" }, { "cap_amb", "CapAmb" },
        { "no_new_privs", "NoNewPrivs" }, { "seccomp", "Seccomp" }, { "filters", "Seccomp_filters" },
        { "groups", "Groups" },
    };
    char path[128], text[8192], value[256];

    snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
    if (read_small(path, text, sizeof(text)) <= 0)
        return;
    jw_object(j, NULL);
    jw_text(j, "pid", pid);
    jw_text(j, "tid", tid);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        jw_text(j, texts[i].key, field_of(text, texts[i].field, value, sizeof(value)) ? value : NULL);
    jw_end_object(j);
}

static void
put_threads_of(struct jw *j, const char *pid, size_t *left)
{
    char path[64];
    struct dirent *e;

    snprintf(path, sizeof(path), "/proc/%s/task", pid);
    cleanup_dir DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    while (*left > 0 && (e = readdir(dir)) != NULL)
        if (all_digits(e->d_name)) {
            put_thread(j, pid, e->d_name);
            (*left)--;
        }
}

/* Which of its private files open: memory and environment of other processes are theirs. */
static void
put_access(struct jw *j, const char *pid)
{
    static const struct { const char *name; int flags; } files[] = {
        { "exe", O_RDONLY }, { "environ", O_RDONLY }, { "maps", O_RDONLY }, { "mem", O_RDONLY },
        { "root", O_PATH | O_DIRECTORY }, { "cwd", O_PATH | O_DIRECTORY }, { "fd/0", O_PATH },
    };

    jw_object(j, NULL);
    jw_text(j, "pid", pid);
    jw_array(j, "opens");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%s/%s", pid, files[i].name);
        cleanup_close int fd = open(path, files[i].flags | O_CLOEXEC);
        if (fd >= 0)
            jw_text(j, NULL, files[i].name);
    }
    jw_end_array(j);
    jw_end_object(j);
}

void
posture_processes(const struct probe *p, struct jw *j)
{
    cleanup_dir DIR *dir = opendir("/proc");
    size_t left = THREADS_MAX;
    struct dirent *e;
    char parent[16], outside[16];

    jw_array(j, "threads");
    while (dir != NULL && left > 0 && (e = readdir(dir)) != NULL)
        if (all_digits(e->d_name))
            put_threads_of(j, e->d_name, &left);
    jw_end_array(j);
    jw_bool(j, "threads_complete", left > 0);
    snprintf(parent, sizeof(parent), "%d", (int)getppid());
    snprintf(outside, sizeof(outside), "%d", (int)p->host_pid);
    jw_array(j, "others");
    put_access(j, "1");
    if (strcmp(parent, "1") != 0 && strcmp(parent, "0") != 0)
        put_access(j, parent);
    if (p->host_pid > 1 && strcmp(outside, parent) != 0)
        put_access(j, outside);
    jw_end_array(j);
}

static const char *
kind_of(const struct stat *st, const char *target)
{
    if (strncmp(target, "/memfd:", 7) == 0)
        return "memfd";
    if (strncmp(target, "anon_inode:", 11) == 0)
        return "anon";
    switch (st->st_mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFIFO: return "pipe";
    case S_IFSOCK: return "socket";
    case S_IFCHR: return isatty(0) && strncmp(target, "/dev/pts/", 9) == 0 ? "terminal" : "character";
    case S_IFBLK: return "block";
    default: return "other";
    }
}

static void
put_descriptor(struct jw *j, const char *name)
{
    static const char *const access_modes[] = { "read", "write", "both", "other" };
    char path[64], target[256];
    struct stat st;
    uint64_t number;
    ssize_t n;
    int fd, flags, close_flag;

    if (!str_parse_u64(str_of(name), 1 << 30, &number))
        return;
    fd = (int)number;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof(target) - 1);
    target[n < 0 ? 0 : n] = '\0';
    flags = fcntl(fd, F_GETFL);
    close_flag = fcntl(fd, F_GETFD);
    if (flags < 0 || fstat(fd, &st) < 0)
        return;
    jw_object(j, NULL);
    jw_int(j, "fd", fd);
    jw_text(j, "kind", kind_of(&st, target));
    jw_text(j, "target", target);
    jw_text(j, "access", flags & O_PATH ? "path" : access_modes[flags & O_ACCMODE]);
    jw_bool(j, "close_on_exec", (close_flag & FD_CLOEXEC) != 0);
    jw_end_object(j);
}

void
posture_descriptors(struct jw *j)
{
    cleanup_dir DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    char own[16];

    jw_bool(j, "descriptors_listed", dir != NULL);
    jw_array(j, "descriptors");
    snprintf(own, sizeof(own), "%d", dir != NULL ? dirfd(dir) : -1);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (all_digits(e->d_name) && strcmp(e->d_name, own) != 0)
            put_descriptor(j, e->d_name);
    jw_end_array(j);
}
