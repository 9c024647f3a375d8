/* tests/lib/look_attack: try to change a byte of the working directory, or anything else, in every way
 *
 * Prints a line "NAME ok" or "NAME ERRNO" for each, and "read CONTENT" for what may be done. The directory has been
 * prepared: a file f, an empty folder e, a FIFO p that somebody reads, a socket s at which somebody listens, a program
 * prog, a file `victim` with the number of a process. As an editor's server that only looks is what this is bound in the
 * place of (its words are that one's), and as any command, to see that the attacks are ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"

#define TRY(name, expr) \
    do { \
        errno = 0; \
        long r_ = (long)(expr); \
        int e_ = errno; \
        printf("%s %s\n", name, r_ >= 0 ? "ok" : e_ == 0 ? "no" : strerrorname_np(e_)); \
    } while (0)

/* creat(2) */
#if defined(SYS_creat)
#define LOOK_CREATE SYS_creat, "new3", 0600
#else
#define LOOK_CREATE SYS_openat, AT_FDCWD, "new3", O_CREAT | O_WRONLY | O_TRUNC, 0600
#endif

static const struct timespec long_ago[2] = { { 1, 0 }, { 1, 0 } };

static void
opens(void)
{
    struct { uint64_t flags, mode, resolve; } how = { O_WRONLY, 0, 0 };

    TRY("open-write", open("f", O_WRONLY));
    TRY("open-both", open("f", O_RDWR));
    TRY("open-append", open("f", O_WRONLY | O_APPEND));
    TRY("open-truncate", open("f", O_RDONLY | O_TRUNC));
    TRY("open-create", open("new", O_RDONLY | O_CREAT, 0600));
    TRY("open-exclusive", open("new2", O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY("open-nameless", open(".", O_WRONLY | O_TMPFILE, 0600));
    TRY("openat2", syscall(SYS_openat2, AT_FDCWD, "f", &how, sizeof(how)));
    TRY("create", syscall(LOOK_CREATE));
    TRY("open-tmp", open("/tmp/new", O_WRONLY | O_CREAT, 0600));
    TRY("open-shm", open("/dev/shm/new", O_WRONLY | O_CREAT, 0600));
    TRY("open-fifo", open("p", O_WRONLY | O_NONBLOCK));
    TRY("open-tty", open("/dev/tty", O_RDWR));
    TRY("open-ptmx", open("/dev/ptmx", O_RDWR));
    TRY("memfd", memfd_create("m", 0));
}

static void
by_descriptor(void)
{
    int fd = open("f", O_RDONLY), value = 0;
    struct f_owner_ex owner = { F_OWNER_PID, getpid() };
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1 };
    char path[64];
    void *at;

    if (fd < 0)
        return;
    TRY("write", write(fd, "x", 1));
    TRY("pwrite", pwrite(fd, "x", 1, 0));
    TRY("ftruncate", ftruncate(fd, 0));
    TRY("fallocate", fallocate(fd, 0, 0, 4096));
    TRY("fchmod", fchmod(fd, 0777));
    TRY("fchown", fchown(fd, getuid(), getgid()));
    TRY("futimens", futimens(fd, long_ago));
    TRY("fsetxattr", fsetxattr(fd, "user.x", "y", 1, 0));
    TRY("flock", flock(fd, LOCK_EX | LOCK_NB));
    TRY("lock", fcntl(fd, F_SETLK, &lock));
    TRY("ofd-lock", fcntl(fd, F_OFD_SETLK, &lock));
    TRY("lease", fcntl(fd, F_SETLEASE, F_RDLCK));
    TRY("owner", fcntl(fd, F_SETOWN, getppid()));
    TRY("owner-ex", fcntl(fd, F_SETOWN_EX, &owner));
    TRY("flags", ioctl(fd, FS_IOC_SETFLAGS, &value));
    TRY("clone", ioctl(fd, FICLONE, fd));
    at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRY("map", at == MAP_FAILED ? -1 : 0);
    at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        TRY("map-later", mprotect(at, 4096, PROT_READ | PROT_WRITE));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    TRY("open-again", open(path, O_WRONLY));
    TRY("link-descriptor", linkat(AT_FDCWD, path, AT_FDCWD, "again", AT_SYMLINK_FOLLOW));
    TRY("copy", copy_file_range(fd, NULL, fd, NULL, 1, 0));
}

static void
by_name(void)
{
    TRY("truncate", truncate("f", 0));
    TRY("chmod", chmod("f", 0777));
    TRY("fchmodat", fchmodat(AT_FDCWD, "f", 0700, 0));
    TRY("fchmodat2", syscall(452, AT_FDCWD, "f", 0700, 0));
    TRY("chown", chown("f", getuid(), getgid()));
    TRY("lchown", lchown("f", getuid(), getgid()));
    TRY("utimensat", utimensat(AT_FDCWD, "f", long_ago, 0));
    TRY("setxattr", setxattr("f", "user.x", "y", 1, 0));
    TRY("lsetxattr", lsetxattr("f", "user.x", "z", 1, 0));
    TRY("removexattr", removexattr("f", "user.kept"));
    TRY("mkdir", mkdir("newdir", 0700));
    TRY("mknod", mknod("newpipe", S_IFIFO | 0600, 0));
    TRY("symlink", symlink("f", "newlink"));
    TRY("link", link("f", "newname"));
    TRY("rename", rename("f", "moved"));
    TRY("renameat2", renameat2(AT_FDCWD, "moved", AT_FDCWD, "f", RENAME_NOREPLACE));
    TRY("exchange", renameat2(AT_FDCWD, "f", AT_FDCWD, "prog", RENAME_EXCHANGE));
    TRY("rmdir", rmdir("e"));
    TRY("unlink", unlink("f"));
    TRY("unlinkat", unlinkat(AT_FDCWD, "prog", 0));
}

static void
speaks(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "s" };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];

    TRY("socket", fd);
    TRY("connect", connect(fd, (struct sockaddr *)&at, sizeof(at)));
    TRY("socket-datagram", socket(AF_UNIX, SOCK_DGRAM, 0));
    TRY("socket-ip", socket(AF_INET, SOCK_STREAM, 0));
    TRY("socket-netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    TRY("pair-datagram", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {      /* which it may have */
        TRY("bind-pair", bind(pair[0], (struct sockaddr *)&(struct sockaddr_un){ AF_UNIX, "newsocket" }, sizeof(at)));
        TRY("connect-pair", connect(pair[0], (struct sockaddr *)&at, sizeof(at)));
    }
}

/* Out of reach of what ends us. */
static int
own_group(void)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(setsid() < 0 && setpgid(0, 0) < 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

static void
others(pid_t victim)
{
    struct iovec iov = { &victim, sizeof(victim) };
    struct sched_param none = { 0 };
    struct rlimit limit = { 1, 1 };
    siginfo_t info = { .si_code = SI_QUEUE };
    cpu_set_t cpus;
    int fd;

    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    TRY("kill-nothing", kill(victim, 0));
    TRY("tgkill", syscall(SYS_tgkill, victim, victim, 0));
    TRY("tkill", syscall(SYS_tkill, victim, 0));
    TRY("queue", syscall(SYS_rt_sigqueueinfo, victim, SIGCONT, &info));
    fd = (int)syscall(SYS_pidfd_open, victim, 0);
    TRY("pidfd", fd);
    TRY("pidfd-signal", syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0));
    TRY("pidfd-take", syscall(SYS_pidfd_getfd, fd, 0, 0));
    TRY("ptrace", ptrace(PTRACE_SEIZE, victim, NULL, NULL));
    TRY("read-memory", process_vm_readv(victim, &iov, 1, &(struct iovec){ (void *)0x400000, 1 }, 1, 0));
    TRY("priority", setpriority(PRIO_PROCESS, (id_t)victim, 19));
    TRY("scheduler", sched_setscheduler(victim, SCHED_BATCH, &none));
    TRY("affinity", sched_setaffinity(victim, sizeof(cpus), &cpus));
    TRY("prlimit", prlimit(victim, RLIMIT_FSIZE, &limit, NULL));
    TRY("shm", shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    TRY("sem", semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
    TRY("msg", msgget(IPC_PRIVATE, IPC_CREAT | 0600));
    TRY("mq", mq_open("/new", O_CREAT | O_RDWR, 0600, NULL));
    TRY("group", own_group());
    TRY("kill", kill(victim, SIGTERM));
}

/* Started: 126 and 127 are this one's own. */
static int
runs(const char *path, const char *const argv[])
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execv(path, (char *const *)(uintptr_t)argv);
        _exit(errno & 0x7f);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return -1;
    errno = WEXITSTATUS(status);
    return status == 0 ? 0 : -1;
}

static void
programs(void)
{
    const char *const words[] = { "true", NULL };

    TRY("exec", runs("/bin/true", words));
    TRY("exec-own", runs("./prog", words));
    TRY("exec-shell", runs("/bin/sh", (const char *const[]){ "sh", "-c", "true", NULL }));
    TRY("unshare", unshare(CLONE_NEWUSER));
    TRY("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    TRY("read-home", open("/home/agent/secret", O_RDONLY));
    TRY("read-memory-file", open("/proc/1/mem", O_RDWR));
}

static int
first_of(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, out, size - 1) > 0 ? close(fd) : -1;
}

int
main(void)
{
    char text[64] = "", number[32] = "";
    uint64_t victim;

    setvbuf(stdout, NULL, _IONBF, 0);
    if (first_of("f", text, sizeof(text)) < 0 || first_of("victim", number, sizeof(number)) < 0 ||
        !str_parse_u64((struct str){ number, strcspn(number, "\n") }, INT32_MAX, &victim))
        return 1;
    printf("read %s", text);
    opens();
    by_descriptor();
    speaks();
    programs();
    by_name();
    others((pid_t)victim);
    puts("over");
    return 0;
}
