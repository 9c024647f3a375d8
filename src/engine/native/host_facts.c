/* engine/native/host_facts.c: what a failed attempt is explained from (see probe.h)
 *
 * Only reads /proc, /sys and the signs that container runtimes leave. Nothing here decides whether a feature
 * works; a missing file is an unknown, never a "no".
 */
#include "engine/native/probe.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "base/str.h"

#define FACT_FILE_MAX (1024 * 1024)

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

/* The file's text without trailing newline, cut to @n. False when unreadable. */
static bool
read_text(const char *path, char *out, size_t n)
{
    cleanup_buf struct buf b = BUF_INIT(FACT_FILE_MAX);
    size_t len;

    out[0] = '\0';
    if (io_read_file(AT_FDCWD, path, &b) < 0)
        return false;
    len = b.n < n - 1 ? b.n : n - 1;
    if (len > 0)
        memcpy(out, b.p, len);
    while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == '\0'))
        len--;
    out[len] = '\0';
    return true;
}

static int64_t
read_number(const char *path)
{
    char text[32];
    uint64_t v;

    if (!read_text(path, text, sizeof(text)) || !str_parse_u64(str_of(text), INT64_MAX, &v))
        return -1;
    return (int64_t)v;
}

/* "Name:\tvalue" of /proc/self/status. */
static bool
status_field(const char *name, char *out, size_t n)
{
    cleanup_buf struct buf b = BUF_INIT(FACT_FILE_MAX);
    const char *at;
    size_t len = 0;

    if (io_read_file(AT_FDCWD, "/proc/self/status", &b) < 0 || buf_nul(&b) < 0)
        return false;
    at = strstr((char *)b.p, name);
    if (at == NULL)
        return false;
    at += strlen(name);
    while (*at == '\t' || *at == ' ')
        at++;
    while (at[len] != '\n' && at[len] != '\0' && len < n - 1)
        len++;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

static void
read_kernel(struct host_facts *out)
{
    struct utsname u;
    uint64_t major = 0, minor = 0;
    size_t a, b;

    if (uname(&u) < 0)
        return;
    snprintf(out->kernel, sizeof(out->kernel), "%s", u.release);
    snprintf(out->machine, sizeof(out->machine), "%s", u.machine);
    a = strspn(u.release, "0123456789");
    if (str_parse_u64((struct str){ u.release, a }, 1000, &major) && u.release[a] == '.') {
        b = strspn(u.release + a + 1, "0123456789");
        str_parse_u64((struct str){ u.release + a + 1, b }, 1000, &minor);
    }
    out->kernel_major = (unsigned)major;
    out->kernel_minor = (unsigned)minor;
}

static void
read_self(struct host_facts *out)
{
    char text[64];
    uint64_t v;
    struct statx sx;

    out->uid = geteuid();
    if (status_field("\nCapEff:", text, sizeof(text)) && strlen(text) == 16)
        out->cap_sys_admin = (strchr("2367abefABEF", text[10]) != NULL);    /* bit 21: digit 10 of 16, its bit 1 */
    if (status_field("\nSeccomp:", text, sizeof(text)) && str_parse_u64(str_of(text), 2, &v))
        out->seccomp_mode = (int)v;
    out->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    if (read_text("/proc/self/uid_map", text, sizeof(text)))
        out->init_userns = strstr(text, "4294967295") != NULL;
    if (kernel_statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &sx) == 0)
        out->chrooted = (sx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
                        (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0;
}

/* Kept only when it can stand unquoted in a profile and in a shell line. */
static void
read_self_exe(struct host_facts *out)
{
    ssize_t n = readlink("/proc/self/exe", out->self_exe, sizeof(out->self_exe) - 1);

    if (n < 0)
        n = 0;
    out->self_exe[n] = '\0';
    for (ssize_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)out->self_exe[i]) && strchr("/._+-", out->self_exe[i]) == NULL) {
            out->self_exe[0] = '\0';
            return;
        }
}

/* Anything mounted below /proc hides a part of it; the kernel then refuses a fresh, unmasked procfs to those who
 * may not see behind the mask. */
static void
read_proc_mask(struct host_facts *out)
{
    cleanup_buf struct buf b = BUF_INIT(FACT_FILE_MAX);
    const char *line;

    if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", &b) < 0 || buf_nul(&b) < 0)
        return;
    for (line = (const char *)b.p; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t line_n = strcspn(line, "\n");
        const char *at = memmem(line, line_n, " /proc/", 7);
        size_t n;

        if (at == NULL || memmem(line, line_n, " - binfmt_misc ", 15) != NULL ||
            memmem(line, line_n, " - autofs ", 10) != NULL)
            continue;
        n = strcspn(at + 1, " \n");
        if (n >= sizeof(out->proc_mask_example))
            n = sizeof(out->proc_mask_example) - 1;
        memcpy(out->proc_mask_example, at + 1, n);
        out->proc_mask_example[n] = '\0';
        out->proc_masked = true;
        return;
    }
}

static void
contained(struct host_facts *out, const char *runtime, const char *sign)
{
    if (out->container[0] != '\0')
        return;
    snprintf(out->container, sizeof(out->container), "%s", runtime);
    snprintf(out->container_sign, sizeof(out->container_sign), "%s", sign);
}

static void
read_container(struct host_facts *out)
{
    static const struct { const char *word, *runtime; } cgroup_words[] = {
        { "kubepods", "kubernetes" }, { "/docker/", "docker" },   { "docker-", "docker" },
        { "/libpod", "podman" },      { "/lxc", "lxc" },          { "/machine.slice", "systemd-nspawn" },
    };
    char text[4096], line[128];

    if (access("/var/run/secrets/kubernetes.io/serviceaccount", F_OK) == 0)
        contained(out, "kubernetes", "/var/run/secrets/kubernetes.io/serviceaccount");
    if (access("/.dockerenv", F_OK) == 0)
        contained(out, "docker", "/.dockerenv");
    if (access("/run/.containerenv", F_OK) == 0)
        contained(out, "podman", "/run/.containerenv");
    if (read_text("/run/systemd/container", text, sizeof(text)) && text[0] != '\0') {
        snprintf(line, sizeof(line), "/run/systemd/container says %.40s", text);
        contained(out, text, line);
    }
    if (read_text("/proc/1/cgroup", text, sizeof(text)))
        for (size_t i = 0; i < ARRAY_LEN(cgroup_words); i++)
            if (strstr(text, cgroup_words[i].word) != NULL)
                contained(out, cgroup_words[i].runtime, "/proc/1/cgroup");
    if (read_text("/proc/sys/kernel/osrelease", text, sizeof(text)) &&
        (strstr(text, "microsoft") != NULL || strstr(text, "Microsoft") != NULL))
        contained(out, "wsl", "/proc/sys/kernel/osrelease");
    if (!out->init_userns)
        contained(out, "unknown", "/proc/self/uid_map maps only a part of the ids");
}

/* Where systemd's user manager of this user listens. */
static bool
user_manager_answers(uid_t uid)
{
    static const char *const sockets[] = { "systemd/private", "bus" };

    for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(addr.sun_path, sizeof(addr.sun_path), "/run/user/%u/%s", (unsigned)uid, sockets[i]);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
            return true;
    }
    return false;
}

static void
read_namespace_limits(struct host_facts *out)
{
    static const char *const files[] = {
        [FEATURE_USERNS] = "/proc/sys/user/max_user_namespaces",
        [FEATURE_MOUNTNS] = "/proc/sys/user/max_mnt_namespaces",
        [FEATURE_PIDNS] = "/proc/sys/user/max_pid_namespaces",
        [FEATURE_NETNS] = "/proc/sys/user/max_net_namespaces",
        [FEATURE_IPCNS] = "/proc/sys/user/max_ipc_namespaces",
        [FEATURE_UTSNS] = "/proc/sys/user/max_uts_namespaces",
        [FEATURE_CGROUPNS] = "/proc/sys/user/max_cgroup_namespaces",
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        out->max_namespaces[i] = files[i] != NULL ? read_number(files[i]) : -1;
    out->max_user_namespaces = out->max_namespaces[FEATURE_USERNS];
}

void
host_facts_read(struct host_facts *out)
{
    memset(out, 0, sizeof(*out));
    read_kernel(out);
    read_self(out);
    read_self_exe(out);
    read_proc_mask(out);
    read_container(out);
    out->user_manager = user_manager_answers(out->uid);
    out->cgroup_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    out->userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone");
    read_namespace_limits(out);
    out->apparmor_restrict = read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    out->memfd_noexec = read_number("/proc/sys/vm/memfd_noexec");
    out->yama = read_number("/proc/sys/kernel/yama/ptrace_scope");
    out->selinux_enforcing = read_number("/sys/fs/selinux/enforce");
    read_text("/sys/kernel/security/lsm", out->lsm, sizeof(out->lsm));
    if (access("/sys/module/apparmor/parameters/enabled", R_OK) == 0 &&
        !read_text("/proc/self/attr/apparmor/current", out->apparmor, sizeof(out->apparmor)))
        read_text("/proc/self/attr/current", out->apparmor, sizeof(out->apparmor));
}
