/* machine/docker.c: see docker.h */
#include "machine/docker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "machine/config.h"

#define QUIET    (MS_NOSUID | MS_NODEV | MS_NOEXEC)
#define LOG      "/run/docker.log"
#define SOCKET   "/run/docker.sock"
#define CONTAINERD "/run/containerd.sock"
#define STORE    "/run/docker-data"     /* a tmpfs: virtiofs cannot be what an overlay is written to */
#define LOG_MAX  (1024 * 1024)
#define LOOK_MS  100
#define START_S  600            /* of each; where machines are emulated it takes a minute */
#define ANSWER   "HTTP/1."
#define ANSWER_MS 1000

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "machine.docker", "Docker Engine: %s", what);
}

int
machine_docker_mounts(struct err *err)
{
    static const struct { const char *type, *path; unsigned long flags; const char *options; } all[] = {
        { "sysfs", "/sys", QUIET, NULL },
        { "cgroup2", "/sys/fs/cgroup", QUIET, NULL },
        { "tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755,size=16m" },
        { "tmpfs", STORE, 0, "mode=710,size=75%" },     /* what containers have may be set-user-ID, and devices */
    };
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        snprintf(path, sizeof(path), MACHINE_ROOT "%s", all[i].path);
        if ((mkdir(path, 0755) < 0 && errno != EEXIST) ||
            mount(all[i].type, path, all[i].type, all[i].flags, all[i].options) < 0)
            return fail(err, all[i].path);
    }
    return 0;
}

/* What is started, one after the other; each is asked until it answers. dockerd would start containerd by itself, and
 * gives it 15 s, which are too few where the machine is emulated. */
static const struct service {
    const char *const *places;
    const char *const *argv;
    const char *socket, *question;      /* NULL: to be connected to is an answer */
} services[] = {
    { (const char *const[]){ "/usr/bin/containerd", "/usr/local/bin/containerd", NULL },
      (const char *const[]){ "containerd", "--root=" STORE "/containerd", "--state=/run/containerd",
                             "--address=" CONTAINERD, NULL },
      CONTAINERD, NULL },
    { (const char *const[]){ "/usr/sbin/dockerd", "/usr/bin/dockerd", "/usr/local/bin/dockerd", NULL },
      (const char *const[]){ "dockerd", "--host=unix://" SOCKET, "--group=0", "--containerd=" CONTAINERD,
                             "--data-root=" STORE, "--storage-driver=overlay2",
                             "--exec-opt=native.cgroupdriver=cgroupfs", NULL },
      SOCKET, "GET /_ping HTTP/1.0\r\n\r\n" },
};

static _Noreturn void
become(const struct service *s)
{
    static const char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                       "HOME=/root", NULL };
    cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cleanup_close int log = open(LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    sigset_t none;

    sigemptyset(&none);
    if (null < 0 || log < 0 || setsid() < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(1);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (const char *const *place = s->places; *place != NULL; place++)
        execve(*place, (char *const *)(uintptr_t)s->argv, (char *const *)(uintptr_t)env);
    dprintf(2, "the image has no %s: Debian's package docker.io has it\n", s->argv[0]);
    _exit(1);
}

/* Whether it answers by now. */
static bool
answers(const struct service *s)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval wait = { .tv_sec = ANSWER_MS / 1000 };
    char got[sizeof(ANSWER) - 1];

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", s->socket);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return false;
    return s->question == NULL ||
           (io_write_full(fd, s->question, strlen(s->question)) == 0 &&
            recv(fd, got, sizeof(got), MSG_WAITALL) == (ssize_t)sizeof(got) && memcmp(got, ANSWER, sizeof(got)) == 0);
}

/* Its last line is why. */
static int
ended(const struct service *s, struct err *err)
{
    cleanup_buf struct buf log = BUF_INIT(LOG_MAX);
    size_t start;

    (void)io_read_file(AT_FDCWD, LOG, &log);
    while (log.n > 0 && log.p[log.n - 1] == '\n')
        log.n--;
    for (start = log.n; start > 0 && log.p[start - 1] != '\n'; start--)
        continue;
    return err_set(err, ERR_SYSTEM, "machine.docker", "%s ended: %.*s", s->argv[0],
                   (int)(log.n - start > 180 ? 180 : log.n - start), log.n > 0 ? (const char *)log.p + start : "");
}

static int
start(const struct service *s, struct err *err)
{
    const uint64_t end = clock_us() + START_S * 1000000ULL;
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return fail(err, "fork");
    if (pid == 0)
        become(s);
    while (clock_us() < end) {
        if (answers(s))
            return 0;
        if (waitpid(pid, &status, WNOHANG) == pid)
            return ended(s, err);
        poll(NULL, 0, LOOK_MS);
    }
    return err_set(err, ERR_SYSTEM, "machine.docker", "%s does not answer", s->argv[0]);
}

int
machine_docker_start(struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        if (start(&services[i], err) < 0)
            return -1;
    return 0;
}
