/* engine/microvm/child.c: the process that holds QEMU and virtiofsd (see microvm.h)
 *
 * Most of it is what every holder does (native/holder.h). In order:
 *
 *   1. die with the parent; its mounts to itself; the work folder
 *   2. as the sandbox's user, as far as files are concerned: the tree
 *   3. join the cgroup; QEMU's root: /usr, the kernel, the initramfs
 *   4. virtiofsd, which sees the tree alone; QEMU; each with a user and namespaces of its own
 *   5. wait for the machine's last word, or for the end of either: everything ends with this process
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "engine/microvm/microvm.h"
#include "machine/config.h"
#include "machine/mux.h"
#include "wall/caps.h"
#include "wall/landlock.h"
#include "wall/pivot.h"
#include "wall/rlimit.h"
#include "wall/service.h"
#include "wire/packet.h"

#define TREE_SOCKET HOLDER_WORK "/tree"
#define OWN_SPACES  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "microvm.work", "%s", what);
}

/* The processes and the ends of their descriptors. */
struct held {
    int listener, tree;         /* virtiofsd's, QEMU's */
    int end[2];                 /* ours, QEMU's */
    int net[2];                 /* who carries connections, QEMU */
    int log;
    pid_t virtiofsd, qemu;
    int virtiofsd_fd, qemu_fd;  /* pidfds */
};

/* --- QEMU's root -------------------------------------------------------------------------------------------------- */

static int
bind_read_only(const char *from, const char *to, unsigned long flags, struct err *err)
{
    if (mount(from, to, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags, NULL) < 0)
        return fail(err, to);
    return 0;
}

/* /lib and /lib64: a link where they lie in /usr, as they do in every Debian since 12. */
static int
library_folder(const char *name, struct err *err)
{
    char path[64], to[64], link[64];
    struct stat st;
    ssize_t n;

    snprintf(path, sizeof(path), "/%s", name);
    snprintf(to, sizeof(to), MICROVM_BOX "/%s", name);
    if (lstat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return mkdir(to, 0755) < 0 ? fail(err, to) : bind_read_only(path, to, 0, err);
    n = readlink(path, link, sizeof(link) - 1);
    if (n < 0)
        return fail(err, path);
    link[n] = '\0';
    return symlink(link, to) < 0 ? fail(err, to) : 0;
}

static int
new_file(const char *path, const void *data, size_t n, struct err *err)
{
    cleanup_close int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);

    return fd < 0 || io_write_full(fd, data, n) < 0 ? fail(err, path) : 0;
}

static int
devices(const struct microvm *sb, struct err *err)
{
    static const struct { const char *path; unsigned minor_no; } all[] = {
        { MICROVM_BOX "/dev/null", 3 }, { MICROVM_BOX "/dev/urandom", 9 },
    };

    if (mkdir(MICROVM_BOX "/dev", 0755) < 0)
        return fail(err, "/dev");
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (mknod(all[i].path, S_IFCHR | 0666, makedev(1, all[i].minor_no)) < 0 || chmod(all[i].path, 0666) < 0)
            return fail(err, all[i].path);
    if (sb->kvm && (mknod(MICROVM_BOX "/dev/kvm", S_IFCHR | 0600, makedev(10, 232)) < 0 ||
                    chown(MICROVM_BOX "/dev/kvm", sb->qemu_id, sb->qemu_id) < 0))
        return fail(err, "/dev/kvm");
    return 0;
}

static int
box(const struct microvm *sb, struct err *err)
{
    static const char *const libraries[] = { "lib", "lib64", "lib32" };
    const char *cache = "/etc/ld.so.cache";

    if (mkdir(MICROVM_BOX, 0755) < 0 ||
        mount("cloche", MICROVM_BOX, "tmpfs", MS_NOSUID, "mode=0755,size=96m") < 0)
        return fail(err, MICROVM_BOX);
    if (mkdir(MICROVM_BOX "/usr", 0755) < 0 || mkdir(MICROVM_BOX "/etc", 0755) < 0)
        return fail(err, MICROVM_BOX);
    if (bind_read_only("/usr", MICROVM_BOX "/usr", 0, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
        if (library_folder(libraries[i], err) < 0)
            return -1;
    if (access(cache, R_OK) == 0 && (new_file(MICROVM_BOX "/etc/ld.so.cache", "", 0, err) < 0 ||
                                     bind_read_only(cache, MICROVM_BOX "/etc/ld.so.cache", MS_NOEXEC, err) < 0))
        return -1;
    if (new_file(MICROVM_BOX MICROVM_KERNEL, "", 0, err) < 0 ||
        bind_read_only(sb->kernel.image, MICROVM_BOX MICROVM_KERNEL, MS_NOEXEC, err) < 0 ||
        new_file(MICROVM_BOX MICROVM_INITRD, sb->initrd.p, sb->initrd.n, err) < 0 || devices(sb, err) < 0)
        return -1;
    return mount(NULL, MICROVM_BOX, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0
               ? fail(err, MICROVM_BOX) : 0;
}

/* --- their descriptors -------------------------------------------------------------------------------------------- */

/* The socket between them has a name for a moment, where nobody but us looks. */
static int
sockets(const struct microvm *sb, struct held *h, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = TREE_SOCKET };

    h->log = open(HOLDER_LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (h->log < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, h->end) < 0)
        return fail(err, "socketpair");
    if (sb->native.plan.capture && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, h->net) < 0)
        return fail(err, "socketpair");
    h->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    h->tree = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->listener < 0 || h->tree < 0 || bind(h->listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(h->listener, 1) < 0 || connect(h->tree, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        unlink(TREE_SOCKET) < 0)
        return fail(err, "a socket for the tree");
    return 0;
}

/* What cannot be done in a child is said in the log, as the program would. */
static _Noreturn void
give_up(const char *who, const struct err *err)
{
    dprintf(2, "%s: %s\n", who, err->msg);
    _exit(HOLDER_BROKEN);
}

/* --- virtiofsd ---------------------------------------------------------------------------------------------------- */

/* The sandbox's user, and a root that owns nothing on the host: what virtiofsd is, and may do anything to the former's
 * files with, as the machine's own kernel does. */
static int
virtiofsd_maps(const struct microvm *sb, pid_t pid, struct err *err)
{
    const struct ns_ids *ids = &sb->native.plan.ids;
    const struct { const char *file; uint32_t inside, outside; } both[] = {
        { "uid_map", ids->inside_uid, ids->outside_uid }, { "gid_map", ids->inside_gid, ids->outside_gid },
    };
    char path[64], text[128];

    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        int n = snprintf(text, sizeof(text), "%u %u 1\n", both[i].inside, both[i].outside);
        if (both[i].inside != 0)
            snprintf(text + n, sizeof(text) - (size_t)n, "0 %u 1\n", sb->root_id);
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, both[i].file);
        if (io_write_file(AT_FDCWD, path, text) < 0)
            return fail(err, path);
    }
    return 0;
}

static _Noreturn void
become_virtiofsd(const struct microvm *sb, const struct held *h, int transport)
{
    const struct ns_ids root = { 0, 0, 0, 0, false };
    const char *argv[] = { "virtiofsd", "--fd=3", "-f", "-o", "source=" HOLDER_ROOT, "-o", "cache=auto", "-o",
                           "sandbox=namespace", "-o", "log_level=err", "--rlimit-nofile=0", "--thread-pool-size=0",
                           NULL };
    char *const env[] = { NULL };
    struct err err = ERR_INIT;

    (void)transport;
    if (ns_become(&root, &err) < 0)
        give_up("virtiofsd", &err);
    if (holder_descriptors(h->log, &h->listener, 1) < 0) {
        fail(&err, "descriptors");
        give_up("virtiofsd", &err);
    }
    holder_exec(sb->virtiofsd, argv, env);
    fail(&err, sb->virtiofsd);
    give_up("virtiofsd", &err);
}

/* --- QEMU --------------------------------------------------------------------------------------------------------- */

/* Nothing but what it was given can be opened, whatever becomes of its root. */
static int
landlock(const struct microvm *sb, struct err *err)
{
    const struct landlock_rule rules[] = {
        { .fd = -1, .path = "/usr", .access = LANDLOCK_READ_EXEC },
        { .fd = -1, .path = "/lib", .access = LANDLOCK_READ_EXEC, .optional = true },
        { .fd = -1, .path = "/lib64", .access = LANDLOCK_READ_EXEC, .optional = true },
        { .fd = -1, .path = "/etc", .access = LANDLOCK_READ },
        { .fd = -1, .path = MICROVM_KERNEL, .access = LANDLOCK_READ },
        { .fd = -1, .path = MICROVM_INITRD, .access = LANDLOCK_READ },
        { .fd = -1, .path = "/dev", .access = LANDLOCK_DEVICE },
    };
    const struct landlock_plan plan = { .rules = rules, .n_rules = ARRAY_LEN(rules), .restrict_files = true,
                                        .restrict_tcp = true, .scope_abstract = true, .scope_signal = true,
                                        .ioctl_dev = true };

    /* where the host has none, the other walls hold */
    return sb->native.plan.landlock_support.abi == 0
               ? 0 : landlock_restrict(&plan, &sb->native.plan.landlock_support, err);
}

static int
qemu_maps(const struct microvm *sb, pid_t pid, struct err *err)
{
    const struct ns_ids ids = { sb->qemu_id, sb->qemu_id, sb->qemu_id, sb->qemu_id, false };

    return ns_write_maps(pid, &ids, err);
}

static int
qemu_walls(const struct microvm *sb, struct err *err)
{
    const struct ns_ids ids = { sb->qemu_id, sb->qemu_id, sb->qemu_id, sb->qemu_id, false };
    cleanup_close int root = -1;

    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return fail(err, MICROVM_BOX);
    if (ns_become(&ids, err) < 0 || caps_raise(err) < 0)
        return -1;
    /* what another user namespace has mounted cannot be made the root, but a mount of it can */
    if (mount(MICROVM_BOX, MICROVM_BOX, NULL, MS_BIND | MS_REC, NULL) < 0)
        return fail(err, MICROVM_BOX);
    root = open(MICROVM_BOX, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return fail(err, MICROVM_BOX);
    if (pivot_into(root, sb->native.plan.root.by_chroot, err) < 0 || caps_drop_all(err) < 0)
        return -1;
    return landlock(sb, err);
}

static _Noreturn void
become_qemu(const struct microvm *sb, const struct held *h, int transport)
{
    const int fds[] = { transport, h->end[1], h->tree, h->net[1] };
    const char *argv[MICROVM_ARGS];
    struct buf room = BUF_INIT(4096);
    char *const env[] = { NULL };
    struct err err = ERR_INIT;

    _Static_assert(ARRAY_LEN(fds) == MICROVM_FDS - MICROVM_FD_GUEST, "in the order of microvm.h");
    microvm_qemu_argv(sb, &room, argv);
    if (holder_descriptors(h->log, fds, ARRAY_LEN(fds) - (h->net[1] < 0)) < 0)
        _exit(HOLDER_BROKEN);
    if (setsid() < 0)
        fail(&err, "setsid");
    else if (qemu_walls(sb, &err) == 0) {
        holder_exec(sb->qemu, argv, env);
        fail(&err, sb->qemu);
    }
    give_up("qemu", &err);
}

/* --- who carries connections -------------------------------------------------------------------------------------- */

static int
net_maps(const struct microvm *sb, pid_t pid, struct err *err)
{
    const struct ns_ids ids = { sb->net_id, sb->net_id, sb->net_id, sb->net_id, false };

    return ns_write_maps(pid, &ids, err);
}

/* It reads what the machine says, so it can do nothing but connect, in the sandbox's network. */
static int
net_walls(const struct microvm *sb, struct err *err)
{
    static const unsigned calls[] = {
        SYS_read, SYS_write, SYS_recvfrom, SYS_sendto, SYS_connect, SYS_getsockopt, SYS_shutdown, SYS_close, SYS_fcntl,
        SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, SYS_exit_group, SERVICE_POLL,
    };
    const struct service_plan plan = { .calls = calls, .n_calls = ARRAY_LEN(calls), .inet_sockets = true,
                                       .dies = true };
    const struct landlock_plan nothing = { .restrict_files = true, .scope_abstract = true, .scope_signal = true };
    const struct ns_ids ids = { sb->net_id, sb->net_id, sb->net_id, sb->net_id, false };

    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return fail(err, "user");
    if (ns_become(&ids, err) < 0 || caps_raise(err) < 0 || caps_drop_all(err) < 0 ||
        (sb->native.plan.landlock_support.abi > 0 &&
         landlock_restrict(&nothing, &sb->native.plan.landlock_support, err) < 0))
        return -1;
    return service_filter(&plan, err);
}

static void
become_net(const struct microvm *sb, const struct held *h, int transport)
{
    struct err err = ERR_INIT;

    (void)transport;
    if (holder_descriptors(h->log, &h->net[0], 1) < 0)
        fail(&err, "descriptors");
    else if (net_walls(sb, &err) == 0 && mux_run(3, NULL, &err) == 0)
        _exit(0);
    give_up("the carrier of connections", &err);
}

/* --- all --------------------------------------------------------------------------------------------------------- */

typedef void become(const struct microvm *sb, const struct held *h, int transport);
typedef int map(const struct microvm *sb, pid_t pid, struct err *err);

/* A child with namespaces of its own, which waits for the map of its ids. Its pid, or -1 with @err. */
static pid_t
start_one(const struct microvm *sb, const struct held *h, uint64_t spaces, int transport, become *what, map *ids,
          int *pidfd, struct err *err)
{
    cleanup_close int hear = -1, say = -1;
    int go[2];
    pid_t pid;
    char c;

    if (pipe2(go, O_CLOEXEC) < 0)
        return fail(err, "pipe");
    hear = go[0];
    say = go[1];
    pid = ns_clone(spaces, -1, pidfd, err);
    if (pid == 0) {
        close_fd(&say);
        if (io_read_full(hear, &c, 1) < 0)
            _exit(HOLDER_BROKEN);
        what(sb, h, transport);
        _exit(HOLDER_BROKEN);
    }
    if (pid < 0 || ids(sb, pid, err) < 0)
        return -1;
    return io_write_full(say, "g", 1) < 0 ? fail(err, "tell a child") : pid;
}

static int
start(const struct microvm *sb, struct held *h, int transport, struct err *err)
{
    const struct rlimit files = { sb->files, sb->files };
    cleanup_close int net = -1;

    if (h->net[0] >= 0 && start_one(sb, h, OWN_SPACES & ~(uint64_t)CLONE_NEWNET, transport, become_net, net_maps, &net,
                                    err) < 0)
        return -1;
    (void)kernel_prlimit(RLIMIT_NOFILE, &files, NULL);
    h->virtiofsd = start_one(sb, h, OWN_SPACES, transport, become_virtiofsd, virtiofsd_maps, &h->virtiofsd_fd, err);
    if (h->virtiofsd < 0)
        return -1;
    h->qemu = start_one(sb, h, OWN_SPACES, transport, become_qemu, qemu_maps, &h->qemu_fd, err);
    if (h->qemu < 0)
        return -1;
    close_fd(&h->end[1]);
    close_fd(&h->tree);
    close_fd(&h->listener);
    close_fd(&h->net[0]);
    close_fd(&h->net[1]);
    return 0;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* The machine's last word: true with the status of the guest, or -1 and why. What comes is the sandbox's to say: a
 * status is a status, and a text is shown as what it is. */
static bool
last_word(int end, int *status, struct err *err)
{
    char said[256];
    ssize_t n = recv(end, said, sizeof(said) - 1, 0);

    if (n < 2 || (said[0] != MACHINE_ENDED && said[0] != MACHINE_FAILED))
        return false;
    said[n] = '\0';
    *status = said[0] == MACHINE_ENDED ? (unsigned char)said[1]
                                       : err_set(err, ERR_SYSTEM, "microvm.machine", "in the machine: %s", said + 1);
    return true;
}

static int
ended(pid_t pid)
{
    int status;

    return waitpid(pid, &status, WNOHANG) != pid ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the machine has ended, in whichever way. The guest's status, or -1 with @err. */
static int
wait_for(const struct held *h, struct err *err)
{
    struct pollfd p[] = { { .fd = h->end[0], .events = POLLIN }, { .fd = h->qemu_fd, .events = POLLIN },
                          { .fd = h->virtiofsd_fd, .events = POLLIN } };
    int status;

    while (poll(p, ARRAY_LEN(p), -1) < 0)
        if (errno != EINTR)
            return fail(err, "poll");
    if ((p[0].revents & POLLIN) != 0 && last_word(h->end[0], &status, err))
        return status;
    /* one of both has ended, and the other follows */
    poll(p + 1, 2, 5000);
    status = ended(h->qemu);
    if (status != 0 && holder_said("microvm.machine", "QEMU", status, err))
        return -1;
    status = ended(h->virtiofsd);
    if (status != 0 && holder_said("microvm.machine", "virtiofsd", status, err))
        return -1;
    return err_set(err, ERR_SYSTEM, "microvm.machine", "the machine ended without a word");
}

_Noreturn void
microvm_child(const struct native *native, const struct launch *l)
{
    const struct microvm *sb = (const struct microvm *)native;
    char name[] = "cloche-vm";
    const struct rlimit_plan none = { .nofile = 0 };
    struct held h = { -1, -1, { -1, -1 }, { -1, -1 }, -1, -1, -1, -1, -1 };
    struct err err = ERR_INIT;
    int guest, status, say = l->status;
    int *kept[] = { &say, &h.end[0], &h.qemu_fd, &h.virtiofsd_fd };

    prctl(PR_SET_NAME, name);
    if (launch_first_steps(l, &err) < 0 || holder_work_folder(NULL, 0, &err) < 0 ||
        launch_as_user(l, launch_surroundings, &err) < 0 || (guest = launch_meet_parent(l, &err)) < 0 ||
        rlimit_apply(&none, &err) < 0 || box(sb, &err) < 0 || sockets(sb, &h, &err) < 0 ||
        start(sb, &h, l->transport, &err) < 0)
        launch_give_up(l->status, &err);
    close(guest);       /* the tree has it */
    if (holder_keep(kept, ARRAY_LEN(kept)) < 0)
        _exit(HOLDER_BROKEN);
    status = wait_for(&h, &err);
    if (status < 0) {
        packet_say_err(say, &err);
        _exit(HOLDER_BROKEN);
    }
    _exit(status);
}
