/* machine/main.c: cloche-machine, process 1 of a microvm's kernel
 *
 * It is all of the machine's initramfs, but for modules of the kernel. In order:
 *
 *   1. devices and /proc; what the host has to say (config.h); modules
 *   2. the serial ports; the tree, by virtiofs; a network of its own, which has `lo` alone
 *   3. the guest, in namespaces of its own, as the sandbox's user (enter.c)
 *   4. its status to the host, then the end of the machine
 *
 * It is root of the machine and holds nothing else: who takes it over has the machine's kernel, and is still behind the
 * host's walls (engine/microvm). Nothing that it says is trusted there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "machine/config.h"
#include "machine/enter.h"
#include "machine/mux.h"
#include "wall/capture.h"
#include "wall/ns.h"

#define CONFIG_MAX 65536
#define ROUNDS     6000         /* of 10 ms each, until a device has to be there */
#define DROP_CACHES "/proc/sys/vm/drop_caches"
#define LOOK_MS    50
#define COMPRESSED 4            /* MODULE_INIT_COMPRESSED_FILE, Linux 5.17 */
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "machine.start", "%s", what);
}

static int
first_mounts(struct err *err)
{
    if (mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID | MS_NOEXEC, "mode=755") < 0 && errno != EBUSY)
        return fail(err, "devices");
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? fail(err, "/proc") : 0;
}

static int
read_config(struct machine_config *out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(CONFIG_MAX);

    if (io_read_file(AT_FDCWD, MACHINE_CONFIG, &text) < 0)
        return fail(err, MACHINE_CONFIG);
    return machine_config_read((struct str){ (const char *)text.p, text.n }, out)
               ? 0 : err_set(err, ERR_PROTOCOL, "machine.start", MACHINE_CONFIG " is none");
}

/* Those that the kernel has already, or that it can do without, are no error: what they make is looked for later. */
static void
load_modules(void)
{
    char path[64];

    for (unsigned i = 0; i < 100; i++) {
        cleanup_close int plain = -1, packed = -1;

        snprintf(path, sizeof(path), MACHINE_MODULES "/%02u", i);
        plain = open(path, O_RDONLY | O_CLOEXEC);
        snprintf(path, sizeof(path), MACHINE_MODULES "/%02uz", i);
        packed = plain < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (plain < 0 && packed < 0)
            return;
        if (syscall(SYS_finit_module, plain >= 0 ? plain : packed, "", plain >= 0 ? 0 : COMPRESSED) < 0 &&
            errno != EEXIST)
            fprintf(stderr, "cloche-machine: module %02u: %s\n", i, strerror(errno));
    }
}

/* A port, once it is there and the host listens. */
static int
port_open(unsigned number, struct err *err)
{
    char path[64];
    struct pollfd p = { .fd = -1, .events = POLLOUT };

    snprintf(path, sizeof(path), "/dev/vport0p%u", number);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (p.fd < 0)
            p.fd = open(path, O_RDWR | O_CLOEXEC);
        if (p.fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) == 0)
            return p.fd;
        poll(NULL, 0, 10);
    }
    close_fd(&p.fd);
    return err_set(err, ERR_SYSTEM, "machine.start", "there is no serial port %u: has the kernel virtio_pci and "
                   "virtio_console?", number);
}

static int
tree(struct err *err)
{
    if (mount(MACHINE_TAG, MACHINE_ROOT, "virtiofs", MS_NOSUID | MS_NODEV, NULL) == 0)
        return 0;
    return fail(err, "the tree, by virtiofs");
}

static void
say(int port, const char *text, size_t n)
{
    if (port >= 0)
        (void)io_write_full(port, text, n);
}

static void
say_why(int port, const struct err *err)
{
    char text[sizeof(err->msg) + 2];

    fprintf(stderr, "cloche-machine: %s\n", err->msg);
    say(port, text, (size_t)snprintf(text, sizeof(text), "%c%s", MACHINE_FAILED, err->msg));
}

/* The kernel forgets files only when it wants memory, and what gives the tree has each one open that it remembers. What
 * was used a moment ago is passed over once: hence the rounds. */
static uint64_t
remembered(void)
{
    cleanup_buf struct buf text = BUF_INIT(256);
    const char *end;
    uint64_t n;

    if (io_read_file(AT_FDCWD, "/proc/sys/fs/inode-nr", &text) < 0 ||
        (end = memchr(text.p, '\t', text.n)) == NULL ||
        !str_parse_u64((struct str){ (const char *)text.p, (size_t)(end - (const char *)text.p) }, UINT64_MAX, &n))
        return 0;
    return n;
}

static void
forget_files(uint64_t most)
{
    for (int i = 0; i < 3 && remembered() > most; i++)
        if (io_write_file(AT_FDCWD, DROP_CACHES, "2") < 0)
            return;
}

/* Until @pidfd, of the guest, is readable. Others that became ours are reaped meanwhile. */
static int
wait_for(pid_t pid, int pidfd, uint64_t inodes)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };
    int status = -1, ready;
    pid_t ended;

    for (;;) {
        ready = poll(&p, 1, LOOK_MS);
        if (ready < 0 && errno != EINTR)
            return -1;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == pid)
                return status;
        if (ready == 0)
            forget_files(inodes);
    }
}

/* Everything up to the guest's end; its status, or -1 with @err. */
static int
run(const struct machine_config *c, int port, int last, struct err *err)
{
    cleanup_close int ours = -1, theirs = -1;
    uint64_t before = remembered();     /* the kernel's own */
    int pidfd = -1, status, pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(err, "socketpair");
    ours = pair[0];
    theirs = pair[1];
    pid = ns_clone(NAMESPACES, -1, &pidfd, err);
    if (pid < 0)
        return -1;
    if (pid == 0) {
        int high = fcntl(last, F_DUPFD_CLOEXEC, MACHINE_FD_HIGH);      /* the guest has the low ones */

        close_fd(&ours);
        machine_enter(c, port, theirs, err);
        say_why(high >= 0 ? high : last, err);
        _exit(1);
    }
    close(port);
    close_fd(&theirs);
    if (machine_map(c, pid, ours, err) < 0)
        return -1;
    close_fd(&ours);
    status = wait_for(pid, pidfd, before + c->inodes);
    if (status < 0)
        return fail(err, "wait for the guest");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A port of the machine's that connections are captured on, by words; -1: not such words. */
static int
read_ports(const char *text, uint16_t ports[CAPTURE_PORTS_MAX])
{
    size_t n = 0;
    uint64_t port;

    for (const char *end; (end = strchr(text, ' ')) != NULL; text = end + 1) {
        if (n == CAPTURE_PORTS_MAX || !str_parse_u64((struct str){ text, (size_t)(end - text) }, UINT16_MAX, &port))
            return -1;
        ports[n++] = (uint16_t)port;
    }
    return (int)n;
}

/* A process of its own carries connections to the host; who kills it has none. */
static int
start_net(const struct machine_config *c, struct err *err)
{
    int listeners[CAPTURE_LISTENERS], n, port;
    uint16_t ports[CAPTURE_PORTS_MAX];
    pid_t pid;

    if (c->net == 0)
        return 0;
    n = read_ports(c->ports, ports);
    if (n < 0)
        return err_set(err, ERR_PROTOCOL, "machine.start", MACHINE_CONFIG " has wrong ports");
    port = port_open(MACHINE_PORT_NET, err);
    if (port < 0 ||
        capture_open(ports, (size_t)n, c->docker ? CAPTURE_LAST : CAPTURE_FIRST, listeners, err) < 0)
        return -1;
    pid = fork();
    if (pid < 0)
        return fail(err, "fork");
    if (pid == 0)
        _exit(mux_run(port, listeners, err) < 0);
    close(port);
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&listeners[i]);
    return 0;
}

/* *@last is the port for the last word, once it is there. */
static int
machine(int *last, struct err *err)
{
    struct machine_config c;
    int guest, ns;

    if (first_mounts(err) < 0 || read_config(&c, err) < 0)
        return -1;
    load_modules();
    (void)io_write_file(AT_FDCWD, DROP_CACHES, "4");        /* from now on without a line in the log */
    *last = port_open(MACHINE_PORT_END, err);
    guest = *last < 0 ? -1 : port_open(MACHINE_PORT_GUEST, err);
    if (guest < 0 || tree(err) < 0)
        return -1;
    ns = ns_network(err);
    if (ns < 0)
        return -1;
    close(ns);
    if (start_net(&c, err) < 0)
        return -1;
    return run(&c, guest, *last, err);
}

int
main(void)
{
    struct err err = ERR_INIT;
    int last = -1, status;

    if (getpid() != 1) {
        fprintf(stderr, "cloche-machine is process 1 of a microvm of cloche's, and does nothing else\n");
        return 2;
    }
    umask(0022);
    status = machine(&last, &err);
    if (status < 0)
        say_why(last, &err);
    else
        say(last, (const char[]){ MACHINE_ENDED, (char)status }, 2);
    sync();
    reboot(RB_AUTOBOOT);
    return 1;
}
