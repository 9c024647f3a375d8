/* probe/attack_files.c: files of the host, devices */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_WRITE 0x0008
#endif

enum outcome
attack_leaked_descriptors(struct attempt *a)
{
    cleanup_dir DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;

    if (dir == NULL)
        return outcome_of(a, BLOCKED, "/proc/self/fd: %s", strerror(errno));
    while ((e = readdir(dir)) != NULL) {
        struct stat st;
        int fd = -1;

        if (!all_digits(e->d_name))
            continue;
        fd = strlen(e->d_name) == 1 ? e->d_name[0] - '0' : INT_MAX;
        if (fd <= 2 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode))
            continue;
        if (strlen(e->d_name) < 6 && fd != dirfd(dir)) {
            char path[64], target[128];
            ssize_t n;

            snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
            n = readlink(path, target, sizeof(target) - 1);
            target[n < 0 ? 0 : n] = '\0';
            if (n < 0 || strncmp(target, "/proc/", 6) == 0)
                continue;       /* our own listing */
            return outcome_of(a, SUCCEEDED, "descriptor %s is %s", e->d_name, target);
        }
    }
    return outcome_of(a, BLOCKED, "only 0, 1 and 2 are open, and none is a directory");
}

enum outcome
attack_cwd_outside(struct attempt *a)
{
    char path[PATH_MAX], climbed[PATH_MAX];
    long n = syscall(SYS_getcwd, path, sizeof(path));

    if (n <= 0)
        return outcome_of(a, BLOCKED, "getcwd: %s", strerror(errno));
    if (path[0] != '/')
        return outcome_of(a, SUCCEEDED, "the working directory is %.100s", path);
    for (int i = 0; i < 64; i++)
        if (chdir("..") < 0)
            return outcome_of(a, BLOCKED, "..: %s", strerror(errno));
    n = syscall(SYS_getcwd, climbed, sizeof(climbed));
    if (n <= 0 || strcmp(climbed, "/") != 0)
        return outcome_of(a, SUCCEEDED, "climbing from %.60s leads to %.100s", path, n > 0 ? climbed : "?");
    return outcome_of(a, BLOCKED, "%.100s lies inside, and climbing ends at /", path);
}

static bool
is_host_root(const struct attempt *a, const struct stat *st)
{
    return a->p->host_ino != 0 && st->st_dev == a->p->host_dev && st->st_ino == a->p->host_ino;
}

enum outcome
attack_dotdot_root(struct attempt *a)
{
    static const char *const paths[] = { "/", "/..", "/../..", "/proc/1/root", "/proc/self/root/..", "/proc/1/cwd/.." };
    struct stat st;

    if (a->p->host_ino == 0)
        return outcome_of(a, NOT_APPLICABLE, "the host's root is not known");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (stat(paths[i], &st) == 0 && is_host_root(a, &st))
            return outcome_of(a, SUCCEEDED, "%s is the host's root", paths[i]);
    return outcome_of(a, BLOCKED, "every one is the sandbox's own root, or closed");
}

/* Does climbing from the directory @name of @dirfd pass the host's root? */
static bool
climbs_to_host(const struct attempt *a, int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    for (int i = 0; i < 64 && fd >= 0; i++) {
        int up;

        if (fstat(fd, &st) == 0 && is_host_root(a, &st)) {
            close(fd);
            return true;
        }
        up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = up;
    }
    close_fd(&fd);
    return false;
}

static bool
process_leads_out(struct attempt *a, const char *pid)
{
    static const char *const links[] = { "root", "cwd" };
    char path[64];
    struct dirent *e;

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%s/%s", pid, links[i]);
        if (climbs_to_host(a, AT_FDCWD, path)) {
            outcome_of(a, SUCCEEDED, "%s leads to the host's root", path);
            return true;
        }
    }
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    cleanup_dir DIR *dir = opendir(path);
    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (all_digits(e->d_name) && climbs_to_host(a, dirfd(dir), e->d_name)) {
            outcome_of(a, SUCCEEDED, "/proc/%s/fd/%s leads to the host's root", pid, e->d_name);
            return true;
        }
    return false;
}

enum outcome
attack_proc_magic_links(struct attempt *a)
{
    cleanup_dir DIR *dir = opendir("/proc");
    struct dirent *e;
    unsigned seen = 0;

    if (a->p->host_ino == 0)
        return outcome_of(a, NOT_APPLICABLE, "the host's root is not known");
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        if (!all_digits(e->d_name))
            continue;
        seen++;
        if (process_leads_out(a, e->d_name))
            return SUCCEEDED;
    }
    return outcome_of(a, BLOCKED, "%u processes are visible, none leads out", seen);
}

enum outcome
attack_symlink_escape(struct attempt *a)
{
    char link_path[300], target[1200];

    if (a->p->host_file == NULL || a->scratch[0] == '\0')
        return outcome_of(a, NOT_APPLICABLE, "no bait, or nowhere to put a link");
    for (int absolute = 0; absolute < 2; absolute++) {
        snprintf(link_path, sizeof(link_path), "%s/link%d", a->scratch, absolute);
        snprintf(target, sizeof(target), "%s%s", absolute ? "" : "../../../../../../../..", a->p->host_file);
        if (symlink(target, link_path) < 0)
            return outcome_of(a, BLOCKED, "symlink: %s", strerror(errno));
        if (try_open(a, link_path, O_RDONLY) == SUCCEEDED)
            return SUCCEEDED;
    }
    return BLOCKED;
}

static enum outcome
bait(struct attempt *a, const char **path)
{
    *path = a->p->host_file;
    return *path != NULL ? BLOCKED
                         : outcome_of(a, NOT_APPLICABLE, "no bait (the policy opens the place where it lies)");
}

enum outcome
attack_host_file_read(struct attempt *a)
{
    const char *path;

    return bait(a, &path) == NOT_APPLICABLE ? NOT_APPLICABLE : try_open(a, path, O_RDONLY);
}

enum outcome
attack_host_file_write(struct attempt *a)
{
    const char *path;

    return bait(a, &path) == NOT_APPLICABLE ? NOT_APPLICABLE : try_open(a, path, O_WRONLY);
}

enum outcome
attack_host_file_truncate(struct attempt *a)
{
    const char *path;

    return bait(a, &path) == NOT_APPLICABLE ? NOT_APPLICABLE : judge(a, "truncate", truncate(path, 0));
}

enum outcome
attack_host_file_attributes(struct attempt *a)
{
    const char *path;

    if (bait(a, &path) == NOT_APPLICABLE)
        return NOT_APPLICABLE;
    if (judge(a, "chmod", chmod(path, 0666)) == SUCCEEDED)
        return SUCCEEDED;
    return judge(a, "utimensat", utimensat(AT_FDCWD, path, NULL, 0));
}

/* Each name is ours, and goes at once. */
enum outcome
attack_host_folder(struct attempt *a)
{
    const char *path, *how = NULL;
    char name[1200];

    if (bait(a, &path) == NOT_APPLICABLE)
        return NOT_APPLICABLE;
    snprintf(name, sizeof(name), "%s.made", path);
    if (mkdir(name, 0755) == 0)
        how = "mkdir";
    else if (symlink("/", name) == 0)
        how = "symlink";
    else if (mknod(name, S_IFIFO | 0644, 0) == 0 || mknod(name, S_IFREG | 0644, 0) == 0)
        how = "mknod";
    else if (rename(path, name) == 0 && rename(name, path) == 0)
        how = "rename";
    if (how == NULL)
        return outcome_of(a, BLOCKED, "%s: %s", name, strerror(errno));
    if (unlink(name) < 0)
        rmdir(name);
    return outcome_of(a, SUCCEEDED, "%s worked beside %s", how, path);
}

enum outcome
attack_hard_link(struct attempt *a)
{
    const char *path;
    char beside[1200], here[300];

    if (bait(a, &path) == NOT_APPLICABLE)
        return NOT_APPLICABLE;
    snprintf(here, sizeof(here), "%s/hard", a->scratch);
    snprintf(beside, sizeof(beside), "%s.hard", path);
    if (a->scratch[0] != '\0' && judge(a, "link into the own directory", link(path, here)) == SUCCEEDED)
        return SUCCEEDED;
    if (judge(a, "link beside it", link(path, beside)) == SUCCEEDED) {
        unlink(beside);
        return SUCCEEDED;
    }
    return BLOCKED;
}

/* A running program is "busy", which is no wall: the attack of CVE-2019-5736 just waits. A sealed memory file is. */
static enum outcome
overwrite(struct attempt *a, const char *path)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    int why = errno;

    if (fd >= 0)
        return outcome_of(a, SUCCEEDED, "%s opens for writing", path);
    if (why != ETXTBSY)
        return outcome_of(a, BLOCKED, "%s: %s", path, strerror(why));
    struct statvfs fs;
    if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0)
        return outcome_of(a, BLOCKED, "%s lies on a read-only mount", path);
    cleanup_close int reader = open(path, O_RDONLY | O_CLOEXEC);
    if (reader >= 0 && fcntl(reader, F_GET_SEALS) > 0 && (fcntl(reader, F_GET_SEALS) & F_SEAL_WRITE) != 0)
        return outcome_of(a, BLOCKED, "%s is sealed against writing", path);
    return outcome_of(a, SUCCEEDED, "%s may be written, and is only busy now", path);
}

enum outcome
attack_write_exe(struct attempt *a)
{
    pid_t pids[2] = { first_process(a), host_process_here(a) ? a->p->host_pid : 0 };
    enum outcome o = outcome_of(a, NOT_APPLICABLE, "no process to attack");
    char path[64];

    for (size_t i = 0; i < 2 && o != SUCCEEDED; i++) {
        if (pids[i] <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pids[i]);
        o = overwrite(a, path);
    }
    return o;
}

enum outcome
attack_write_cloche(struct attempt *a)
{
    if (a->p->exe_path == NULL)
        return outcome_of(a, NOT_APPLICABLE, "its path is not known");
    return overwrite(a, a->p->exe_path);
}

enum outcome
attack_shadow(struct attempt *a)
{
    return try_open(a, "/etc/shadow", O_RDONLY);
}

enum outcome
attack_file_handle(struct attempt *a)
{
    struct { unsigned bytes; int type; unsigned char data[128]; } handle = { .bytes = sizeof(handle.data) };
    cleanup_close int mount = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int fd = -1;
    int mount_id;

    if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0) < 0) {
        if (errno == EOPNOTSUPP || errno == EOVERFLOW)
            return outcome_of(a, NOT_APPLICABLE, "name_to_handle_at: %s", strerror(errno));
        return outcome_of(a, BLOCKED, "name_to_handle_at: %s", strerror(errno));
    }
    fd = (int)syscall(SYS_open_by_handle_at, mount, &handle, O_RDONLY | O_CLOEXEC);
    return judge(a, "open_by_handle_at", fd);
}

enum outcome
attack_device_node(struct attempt *a)
{
    /* the host's own disk when it is one, else the first loop device; only opened for reading, and only if made */
    unsigned major_no = a->p->host_dev != 0 && major(a->p->host_dev) != 0 ? major(a->p->host_dev) : 7;
    unsigned minor_no = major_no == 7 ? 0 : minor(a->p->host_dev);
    char path[300];

    snprintf(path, sizeof(path), "%s/disk", a->scratch[0] != '\0' ? a->scratch : "/tmp");
    if (mknod(path, S_IFBLK | 0600, makedev(major_no, minor_no)) < 0)
        return outcome_of(a, BLOCKED, "mknod: %s", strerror(errno));
    enum outcome o = try_open(a, path, O_RDONLY);
    unlink(path);
    if (o == SUCCEEDED || errno == ENXIO || errno == ENODEV)
        return outcome_of(a, SUCCEEDED, "a block device node %u:%u can be made and reaches the driver", major_no,
                          minor_no);
    return o;
}

/* They are the host's own, and everybody's: to what they are already. */
enum outcome
attack_device_modes(struct attempt *a)
{
    static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                           "/dev/tty" };
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (stat(devices[i], &st) == 0 && S_ISCHR(st.st_mode) && chmod(devices[i], st.st_mode & 07777) == 0)
            return outcome_of(a, SUCCEEDED, "the mode of %s can be set", devices[i]);
    return outcome_of(a, BLOCKED, "chmod: %s", strerror(errno));
}

enum outcome
attack_raw_disk(struct attempt *a)
{
    static const char *const disks[] = {
        "/dev/sda", "/dev/vda", "/dev/xvda", "/dev/nvme0n1", "/dev/mmcblk0", "/dev/dm-0", "/dev/mapper/control",
        "/dev/loop0", "/dev/loop-control", "/dev/root", "/dev/hda",
    };
    enum outcome o = absent(a, "any disk");

    for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
        if (access(disks[i], F_OK) < 0)
            continue;
        o = try_open(a, disks[i], O_RDONLY);
        if (o == SUCCEEDED)
            return o;
    }
    return o;
}
