/* probe/posture.c: this process's own standing */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/probe.h"

extern char **environ;

static void
put_ids(struct json *j)
{
    gid_t groups[1024];
    uid_t r, e, s;
    gid_t gr, ge, gs;
    int n = getgroups(1024, groups);

    json_array(j, "uid");
    if (getresuid(&r, &e, &s) == 0) {
        json_uint(j, NULL, r);
        json_uint(j, NULL, e);
        json_uint(j, NULL, s);
    }
    json_end_array(j);
    json_array(j, "gid");
    if (getresgid(&gr, &ge, &gs) == 0) {
        json_uint(j, NULL, gr);
        json_uint(j, NULL, ge);
        json_uint(j, NULL, gs);
    }
    json_end_array(j);
    json_array(j, "groups");
    for (int i = 0; i < n; i++)
        json_uint(j, NULL, groups[i]);
    json_end_array(j);
}

static void
put_namespaces(struct json *j)
{
    static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

    json_object(j, "namespaces");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64], target[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0) {
            json_null(j, names[i]);
            continue;
        }
        target[n] = '\0';
        json_text(j, names[i], target);
    }
    json_end_object(j);
}

static void
put_limits(struct json *j)
{
    static const struct { const char *name; int which; } limits[] = {
        { "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "core", RLIMIT_CORE }, { "memlock", RLIMIT_MEMLOCK },
        { "fsize", RLIMIT_FSIZE },   { "as", RLIMIT_AS },       { "rtprio", RLIMIT_RTPRIO }, { "nice", RLIMIT_NICE },
        { "msgqueue", RLIMIT_MSGQUEUE }, { "sigpending", RLIMIT_SIGPENDING },
    };

    json_object(j, "rlimits");      /* null: unlimited */
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit r;

        if (getrlimit(limits[i].which, &r) < 0)
            continue;
        json_array(j, limits[i].name);
        for (int k = 0; k < 2; k++) {
            rlim_t v = k == 0 ? r.rlim_cur : r.rlim_max;

            if (v == RLIM_INFINITY)
                json_null(j, NULL);
            else
                json_uint(j, NULL, v);
        }
        json_end_array(j);
    }
    json_end_object(j);
}

static void
put_environment(struct json *j)
{
    json_array(j, "environment");
    for (char **e = environ; *e != NULL; e++)
        json_bytes(j, NULL, *e, strcspn(*e, "="));
    json_end_array(j);
}

static void
put_text_file(struct json *j, const char *key, const char *path)
{
    char text[4096];
    ssize_t n = read_small(path, text, sizeof(text));

    if (n < 0) {
        json_null(j, key);
        return;
    }
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\0'))
        n--;
    json_bytes(j, key, text, (size_t)n);
}

/* Can it be opened for reading at all? Nothing is read; of a directory something must be there. */
static bool
opens(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    struct dirent *e;

    if (fd < 0 || fstat(fd, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return true;
    cleanup_dir DIR *dir = opendir(path);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return true;
    return false;
}

static void
put_kernel_windows(struct json *j)
{
    static const char *const paths[] = {
        "/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/key-users", "/proc/timer_list",
        "/proc/sched_debug", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/kpagecount",
        "/proc/kpageflags", "/proc/kpagecgroup", "/proc/interrupts", "/proc/scsi",
        "/proc/latency_stats", "/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware", "/sys/fs/bpf",
        "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vhost-vsock",
    };

    json_array(j, "kernel_windows");    /* those that open */
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (opens(paths[i]))
            json_text(j, NULL, paths[i]);
    json_end_array(j);
}

static void
put_keyrings(struct json *j)
{
    long id = syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* SESSION */, 0);

    if (id < 0)
        json_null(j, "session_keyring");    /* closed: what is wanted */
    else
        json_int(j, "session_keyring", id);
}

void
posture_self(const struct probe *p, struct json *j)
{
    struct utsname u;
    struct stat st;
    char cwd[PATH_MAX];

    (void)p;
    json_int(j, "pid", getpid());
    json_int(j, "ppid", getppid());
    put_ids(j);
    put_namespaces(j);
    put_limits(j);
    put_environment(j);
    json_text(j, "cwd", getcwd(cwd, sizeof(cwd)));
    json_object(j, "root");
    if (stat("/", &st) == 0) {
        json_uint(j, "dev", st.st_dev);
        json_uint(j, "ino", st.st_ino);
    }
    json_end_object(j);
    json_text(j, "hostname", uname(&u) == 0 ? u.nodename : NULL);
    put_text_file(j, "cgroup", "/proc/self/cgroup");
    put_text_file(j, "uid_map", "/proc/self/uid_map");
    put_text_file(j, "gid_map", "/proc/self/gid_map");
    json_bool(j, "kernel_command_line", opens("/proc/cmdline"));
    put_kernel_windows(j);
    put_keyrings(j);
    json_int(j, "landlock_abi", syscall(SYS_landlock_create_ruleset, NULL, 0, 1));
}

int
posture_write(const struct probe *p, int fd)
{
    static struct json j;

    json_open(&j, fd);
    json_object(&j, NULL);
    json_int(&j, "probe", 1);
    posture_descriptors(&j);    /* first: before anything here opens one */
    posture_self(p, &j);
    posture_processes(p, &j);
    posture_mounts(&j);
    posture_network(&j);
    posture_paths(p, &j);
    posture_tree(p, &j);
    json_end_object(&j);
    return json_finish(&j);
}
