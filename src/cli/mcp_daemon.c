/* cli/mcp_daemon.c: a cloche serve of our own, with a state folder of its own, that ends with us (see mcp.h) */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/mcp.h"
#include "program/state.h"
#include "workspace/tree.h"

#define HOME        "mcp"
#define PATIENCE_MS 60000

static void
nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000000 }, NULL);
}

/* Folders whose owner was killed: nobody holds their lock. */
static void
sweep(int home)
{
    cleanup_close int again = openat(home, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *e;

    if (dir != NULL)
        (void)take_fd(&again);
    while (dir != NULL && (e = readdir(dir)) != NULL) {
        cleanup_close int fd = -1;
        if (e->d_name[0] == '.')
            continue;
        fd = openat(home, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)tree_remove(home, e->d_name, NULL);
    }
}

static int
make_folder(struct mcp_daemon *d, struct err *err)
{
    uint64_t random;

    d->home = state_own_open(HOME, "mcp.folder", err);
    if (d->home < 0)
        return -1;
    sweep(d->home);
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_sys(err, errno, "mcp.folder", "getrandom");
    snprintf(d->name, sizeof(d->name), "%016llx", (unsigned long long)random);
    if (mkdirat(d->home, d->name, 0700) < 0 ||
        (d->folder = openat(d->home, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
        flock(d->folder, LOCK_EX | LOCK_NB) < 0)
        return err_sys(err, errno, "mcp.folder", "a folder for a daemon of our own");
    return 0;
}

/* In the child: its words go where ours for people go, never among the messages. */
static void
become(const char *state, const char *listen, const struct mcp_flags *flags, pid_t parent)
{
    char self[] = "/proc/self/exe";
    const char *argv[11] = { "cloche", "serve", "--state-dir", state, "--listen", listen };
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    size_t n = 6;
    sigset_t none;

    if (flags->gate != NULL) {
        argv[n++] = "--gate";
        argv[n++] = flags->gate;
    }
    if (flags->settings != NULL) {
        argv[n++] = "--settings";
        argv[n++] = flags->settings;
    }
    argv[n] = NULL;

    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(1);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    execv(self, (char **)(uintptr_t)argv);
    _exit(127);
}

static int
wait_until_it_answers(struct mcp_daemon *d, const struct api *api, struct err *err)
{
    uint64_t end = clock_ms() + PATIENCE_MS;
    int status;

    for (;;) {
        struct err why = ERR_INIT;
        if (api_ask(api, "GET", "/v1/health", NULL, NULL, &why) == 0)
            return 0;
        if (waitpid(d->pid, &status, WNOHANG) == d->pid) {
            d->pid = 0;
            return err_set(err, ERR_SYSTEM, "mcp.daemon", "the daemon that was started has ended; it has said why");
        }
        if (clock_ms() >= end)
            return err_set(err, ERR_SYSTEM, "mcp.daemon", "the daemon that was started does not answer");
        nap();
    }
}

int
mcp_daemon_start(struct mcp_daemon *d, const struct mcp_flags *flags, struct api *api, struct err *err)
{
    char base[PATH_MAX], state[PATH_MAX], listen[PATH_MAX + 8];
    pid_t parent = getpid(), pid;

    if (make_folder(d, err) < 0 || state_dir_path(base, err) < 0)
        return -1;
    if (snprintf(state, sizeof(state), "%s/" HOME "/%s", base, d->name) >= (int)sizeof(state) ||
        snprintf(api->socket, sizeof(api->socket), "%s/api.sock", state) >= (int)sizeof(api->socket))
        return err_set(err, ERR_USAGE, "mcp.folder", "the state folder's path is too long");
    snprintf(listen, sizeof(listen), "unix:%s", api->socket);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "mcp.daemon", "fork");
    if (pid == 0)
        become(state, listen, flags, parent);
    d->pid = pid;
    return wait_until_it_answers(d, api, err);
}

void
mcp_daemon_stop(struct mcp_daemon *d)
{
    if (d->pid > 0) {
        kill(d->pid, SIGTERM);
        while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    d->pid = 0;
    if (d->folder >= 0)
        (void)tree_remove(d->home, d->name, NULL);
    close_fd(&d->folder);
    close_fd(&d->home);
}

size_t
mcp_daemons(struct api *out, size_t max)
{
    char base[PATH_MAX], home[PATH_MAX];
    cleanup_dir DIR *dir = NULL;
    const struct dirent *e;
    size_t n = 0;

    if (state_dir_path(base, &(struct err)ERR_INIT) < 0 || state_dir_check(base, &(struct err)ERR_INIT) < 0 ||
        snprintf(home, sizeof(home), "%s/" HOME, base) >= (int)sizeof(home))
        return 0;
    dir = opendir(home);
    while (dir != NULL && n < max && (e = readdir(dir)) != NULL) {
        out[n].token[0] = '\0';
        if (e->d_name[0] != '.' && snprintf(out[n].socket, sizeof(out[n].socket), "%s/%s/api.sock", home, e->d_name) <
            (int)sizeof(out[n].socket))
            n++;
    }
    return n;
}
