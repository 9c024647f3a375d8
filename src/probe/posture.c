/* probe/posture.c: this process's own standing */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/probe.h"

extern char **environ;

static void
put_ids(struct jw *j)
{
    gid_t groups[1024];
    uid_t r, e, s;
    gid_t gr, ge, gs;
    int n = getgroups(1024, groups);

    jw_array(j, "uid");
    if (getresuid(&r, &e, &s) == 0) {
        jw_uint(j, NULL, r);
        jw_uint(j, NULL, e);
        jw_uint(j, NULL, s);
    }
    jw_end_array(j);
    jw_array(j, "gid");
    if (getresgid(&gr, &ge, &gs) == 0) {
        jw_uint(j, NULL, gr);
        jw_uint(j, NULL, ge);
        jw_uint(j, NULL, gs);
    }
    jw_end_array(j);
    jw_array(j, "groups");
    for (int i = 0; i < n; i++)
        jw_uint(j, NULL, groups[i]);
    jw_end_array(j);
}

static void
put_namespaces(struct jw *j)
{
    static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };

    jw_object(j, "namespaces");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64], target[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0) {
            jw_null(j, names[i]);
            continue;
        }
        target[n] = '\0';
        jw_text(j, names[i], target);
    }
    jw_end_object(j);
}

static void
put_limits(struct jw *j)
{
    static const struct { const char *name; int which; } limits[] = {
        { "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "core", RLIMIT_CORE }, { "memlock", RLIMIT_MEMLOCK },
        { "fsize", RLIMIT_FSIZE },   { "as", RLIMIT_AS },       { "rtprio", RLIMIT_RTPRIO }, { "nice", RLIMIT_NICE },
        { "msgqueue", RLIMIT_MSGQUEUE }, { "sigpending", RLIMIT_SIGPENDING },
    };

    jw_object(j, "rlimits");      /* null: unlimited */
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r;

        if (getrlimit(limits[i].which, &r) < 0)
            continue;
        jw_array(j, limits[i].name);
        for (int k = 0; k < 2; k++) {
            rlim_t v = k == 0 ? r.rlim_cur : r.rlim_max;

            if (v == RLIM_INFINITY)
                jw_null(j, NULL);
            else
                jw_uint(j, NULL, v);
        }
        jw_end_array(j);
    }
    jw_end_object(j);
}

static void
put_environment(struct jw *j)
{
    jw_array(j, "environment");
    for (char **e = environ; *e != NULL; e++)
        jw_bytes(j, NULL, *e, strcspn(*e, "="));
    jw_end_array(j);
}

/* Those that tell who the caller is, or where; of the others the names are enough. */
static void
put_telling(struct jw *j)
{
    static const char *const names[] = { "USER", "LOGNAME", "HOME", "PATH", "SHELL" };

    jw_object(j, "telling");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        jw_text(j, names[i], getenv(names[i]));
    jw_end_object(j);
}

static void
put_text_file(struct jw *j, const char *key, const char *path)
{
    char text[4096];
    ssize_t n = read_small(path, text, sizeof(text));

    if (n < 0) {
        jw_null(j, key);
        return;
    }
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\0'))
        n--;
    jw_bytes(j, key, text, (size_t)n);
}

static void
put_kernel_windows(struct jw *j)
{
    static const char *const paths[] = {
        "/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/key-users", "/proc/timer_list",
        "/proc/sched_debug", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/kpagecount",
        "/proc/kpageflags", "/proc/kpagecgroup", "/proc/interrupts", "/proc/scsi",
        "/proc/latency_stats", "/proc/pressure", "/sys/kernel/debug", "/sys/kernel/security", "/sys/firmware",
        "/sys/fs/bpf",
        "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vhost-vsock",
    };

    jw_array(j, "kernel_windows");    /* those that open */
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (posture_opens(paths[i]))
            jw_text(j, NULL, paths[i]);
    jw_end_array(j);
}

static void
put_keyrings(struct jw *j)
{
    long id = syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* SESSION */, 0);

    if (id < 0)
        jw_null(j, "session_keyring");    /* closed: what is wanted */
    else
        jw_int(j, "session_keyring", id);
}

/* Every word of @path but those of comments. */
static void
put_words(struct jw *j, const char *path)
{
    static char text[65536];
    const char *at = text;

    if (read_small(path, text, sizeof(text)) <= 0)
        return;
    while (*(at += strspn(at, " \t\n")) != '\0') {
        size_t n = strcspn(at, *at == '#' ? "\n" : " \t\n");

        if (*at != '#')
            jw_bytes(j, NULL, at, n);
        at += n;
    }
}

/* Who else may enter the folder for temporary files. */
static void
put_own_folder(struct jw *j)
{
    const char *path = getenv("TMPDIR");
    struct stat st;

    if (path != NULL && stat(path, &st) == 0)
        jw_uint(j, "own_folder_mode", st.st_mode & 07777);
    else
        jw_null(j, "own_folder_mode");
}

/* The names in /etc, and whose accounts, which hosts are told there. */
static void
put_etc(struct jw *j)
{
    static char text[65536];
    cleanup_dir DIR *dir = opendir("/etc");
    struct dirent *e;

    jw_array(j, "etc");
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            jw_text(j, NULL, e->d_name);
    jw_end_array(j);
    jw_array(j, "names");
    put_words(j, "/etc/hosts");
    put_words(j, "/etc/resolv.conf");
    jw_end_array(j);
    jw_array(j, "accounts");
    if (read_small("/etc/passwd", text, sizeof(text)) > 0)
        for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
            jw_bytes(j, NULL, line, strcspn(line, ":\n"));
    jw_end_array(j);
}

/* Ids, namespaces, limits, environment ... */
static void
posture_self(const struct probe *p, struct jw *j)
{
    struct utsname u;
    struct stat st;
    char cwd[PATH_MAX];

    (void)p;
    jw_int(j, "pid", getpid());
    jw_int(j, "ppid", getppid());
    put_ids(j);
    put_namespaces(j);
    put_limits(j);
    put_environment(j);
    put_telling(j);
    jw_text(j, "cwd", getcwd(cwd, sizeof(cwd)));
    jw_object(j, "root");
    if (stat("/", &st) == 0) {
        jw_uint(j, "dev", st.st_dev);
        jw_uint(j, "ino", st.st_ino);
    }
    jw_end_object(j);
    jw_text(j, "hostname", uname(&u) == 0 ? u.nodename : NULL);
    put_text_file(j, "cgroup", "/proc/self/cgroup");
    put_text_file(j, "boot", "/proc/sys/kernel/random/boot_id");
    put_text_file(j, "uid_map", "/proc/self/uid_map");
    put_text_file(j, "gid_map", "/proc/self/gid_map");
    put_etc(j);
    put_own_folder(j);
    jw_bool(j, "kernel_command_line", posture_opens("/proc/cmdline"));
    put_kernel_windows(j);
    put_keyrings(j);
    jw_int(j, "securebits", prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    jw_int(j, "landlock_abi", syscall(SYS_landlock_create_ruleset, NULL, 0, 1));
}

int
posture_write(const struct probe *p, int fd)
{
    static struct jw j;

    jw_open(&j, fd);
    jw_object(&j, NULL);
    jw_int(&j, "probe", 1);
    posture_descriptors(&j);    /* first: before anything here opens one */
    posture_self(p, &j);
    posture_processes(p, &j);
    posture_mounts(&j);
    posture_network(&j);
    posture_paths(p, &j);
    posture_tree(p, &j);
    jw_end_object(&j);
    return jw_finish(&j);
}
