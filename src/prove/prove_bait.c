/* prove/prove_bait.c: see prove.h
 *
 * An attack that finds nothing to attack proves nothing. So there is a file that everyone on this host may read and
 * write, sockets that anyone may connect to, and a process that anyone of this user may signal: all of them closed
 * to the sandbox by nothing but the wall. A janitor removes the files even when this process is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "prove/prove.h"
#include "workspace/tree.h"

#define BAIT_PARENT "/tmp"
#define SECRET "this file belongs to the host\n"

/* Places that a private root has under the same name and must have empty. One where nobody may write has no bait. */
static const char *const more_places[] = { "/var/tmp", "/dev/shm", "/run" };
#define N_MORE ARRAY_LEN(more_places)

static bool
remove_below(const char *parent, const char *name)
{
    cleanup_close int at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (at < 0)
        return errno == ENOENT || errno == EACCES;
    /* attacks without a wall (--bare) have their scratch directories in it too */
    return tree_remove(at, name, NULL) == 0 || !io_present(at, name);
}

static bool
remove_files(void *ctx)
{
    const struct bait *b = ctx;
    bool gone = remove_below(BAIT_PARENT, b->name) && remove_below(BAIT_PARENT, b->name_trials);

    for (size_t i = 0; i < N_MORE; i++)
        gone = remove_below(more_places[i], b->name) && gone;
    return gone;
}

static int
make_names(struct bait *b, struct err *err)
{
    unsigned char raw[4];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return err_sys(err, errno, "prove.bait", "getrandom");
    snprintf(b->name, sizeof(b->name), "clb-%02x%02x%02x%02x", raw[0], raw[1], raw[2], raw[3]);
    snprintf(b->dir, sizeof(b->dir), BAIT_PARENT "/%s", b->name);
    snprintf(b->name_trials, sizeof(b->name_trials), "%s-trials", b->name);
    snprintf(b->trials, sizeof(b->trials), BAIT_PARENT "/%s", b->name_trials);
    snprintf(b->file, sizeof(b->file), "%s/file", b->dir);
    snprintf(b->socket, sizeof(b->socket), "%s/socket", b->dir);
    snprintf(b->abstract, sizeof(b->abstract), "cloche-prove-%s", b->name);
    return 0;
}

/* A file that begins with our name, of the size that prove/prove_trial.c gives its own. */
static void
put_token(const struct bait *b, const char *parent)
{
    char path[128], text[BAIT_TOKEN_SIZE + 1];
    int n = snprintf(text, sizeof(text), "%s:O:%s", b->name, parent);

    memset(text + n, '.', (size_t)(BAIT_TOKEN_SIZE - n));
    snprintf(path, sizeof(path), "%s/%s", parent, b->name);
    if (mkdir(path, 0755) < 0 || chmod(path, 0755) < 0)
        return;
    snprintf(path, sizeof(path), "%s/%s/token", parent, b->name);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && fchmod(fd, 0666) == 0)
        (void)io_write_full(fd, text, BAIT_TOKEN_SIZE);
}

static int
make_files(struct bait *b, struct err *err)
{
    cleanup_close int dir = -1;
    cleanup_close int file = -1;

    if (mkdir(b->dir, 0755) < 0)
        return err_sys(err, errno, "prove.bait", "mkdir %s", b->dir);
    dir = open(b->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    file = dir < 0 ? -1 : openat(dir, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (mkdir(b->trials, 0711) < 0 || chmod(b->trials, 0711) < 0)
        return err_sys(err, errno, "prove.bait", "mkdir %s", b->trials);
    for (size_t i = 0; i < N_MORE; i++)
        put_token(b, more_places[i]);
    /* past the umask: the wall alone shall stand between */
    if (file < 0 || fchmod(dir, 0777) < 0 || fchmod(file, 0666) < 0 ||
        io_write_full(file, SECRET, sizeof(SECRET) - 1) < 0)
        return err_sys(err, errno, "prove.bait", "%s", b->file);
    return 0;
}

static int
listen_unix(const char *name, bool abstract, int *out, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t n = strlen(name);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (n + 1 >= sizeof(at.sun_path))
        return err_set(err, ERR_LIMIT, "prove.bait", "%s is too long for a socket", name);
    memcpy(at.sun_path + abstract, name, n);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1)) < 0 ||
        listen(fd, 64) < 0)
        return err_sys(err, errno, "prove.bait", "listen at %s", name);
    if (!abstract && chmod(name, 0666) < 0)
        return err_sys(err, errno, "prove.bait", "%s", name);
    *out = take_fd(&fd);
    return 0;
}

static int
listen_tcp(struct bait *b, struct err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t n = sizeof(at);
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        return err_sys(err, errno, "prove.bait", "listen on 127.0.0.1");
    b->tcp_port = ntohs(at.sin_port);
    b->tcp_fd = take_fd(&fd);
    return 0;
}

/* The first of an interface that is up: cloche-egress knows what the host's own addresses are. */
static void
find_own_address(struct bait *b)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *i = all; i != NULL && b->own_address[0] == '\0'; i = i->ifa_next) {
        struct sockaddr_in at;

        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&at, i->ifa_addr, sizeof(at));
        if (ntohl(at.sin_addr.s_addr) >> 24 != 127 && ntohl(at.sin_addr.s_addr) >> 16 != 0xa9fe)
            (void)inet_ntop(AF_INET, &at.sin_addr, b->own_address, sizeof(b->own_address));
    }
    freeifaddrs(all);
}

/* A process of this user, with a name of its own. It dies with us. */
static int
start_process(struct bait *b, struct err *err)
{
    pid_t parent = getpid();

    b->process = fork();
    if (b->process < 0)
        return err_sys(err, errno, "prove.bait", "fork");
    if (b->process > 0)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, b->name);
    if (getppid() != parent)
        _exit(0);
    for (;;)
        pause();
}

int
bait_make(struct bait *b, struct err *err)
{
    *b = (struct bait){ .unix_fd = -1, .abstract_fd = -1, .tcp_fd = -1, .process = -1, .janitor = JANITOR_INIT };
    if (make_names(b, err) < 0)
        return -1;
    find_own_address(b);
    if (janitor_start(&b->janitor, remove_files, b, err) < 0 || start_process(b, err) < 0 || make_files(b, err) < 0 ||
        listen_unix(b->socket, false, &b->unix_fd, err) < 0 ||
        listen_unix(b->abstract, true, &b->abstract_fd, err) < 0 || listen_tcp(b, err) < 0) {
        bait_remove(b);
        return -1;
    }
    return 0;
}

void
bait_remove(struct bait *b)
{
    close_fd(&b->unix_fd);
    close_fd(&b->abstract_fd);
    close_fd(&b->tcp_fd);
    if (b->process > 0) {
        kill(b->process, SIGKILL);
        while (waitpid(b->process, NULL, 0) < 0 && errno == EINTR)
            continue;
        b->process = -1;
    }
    janitor_dismiss(&b->janitor, remove_files(b));
}
