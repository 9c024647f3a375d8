/* tests/unit/test_guard_fold.c: a file system that takes other names for protected ones
 *
 * Folding file systems differ in what they fold, and this kernel may have none. So the test brings one: a FUSE server,
 * a few hundred bytes of memory, for which LATIN SMALL LETTER LONG S is an s, `~` ends a name early (as short names
 * do), and case does not count. The guard cannot know its rules; it must see what came of a name, and undo it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/uio.h>

#include "base/array.h"
#include "test_guard_run.h"

/* --- the file system: nodes in a table, inode number = index */

#define NODES 64
#define ROOT  1

struct node {
    bool used;
    uint32_t parent;
    char name[64];
    char target[64];
    mode_t mode;
    uint32_t real;              /* of a hard link: the node that it is */
};

static struct node nodes[NODES];

/* What this file system compares: the folded name. */
static void
fold_name(const char *name, char out[64])
{
    size_t n = 0;

    for (; *name != '\0' && *name != '~' && n < 63; name++) {
        if (name[0] == '\305' && name[1] == '\277') {
            out[n++] = 's';
            name++;
        } else {
            out[n++] = (char)tolower((unsigned char)*name);
        }
    }
    out[n] = '\0';
}

static uint32_t
find(uint32_t parent, const char *name)
{
    char a[64], b[64];

    fold_name(name, a);
    for (uint32_t i = ROOT + 1; i < NODES; i++) {
        fold_name(nodes[i].name, b);
        if (nodes[i].used && nodes[i].parent == parent && strcmp(a, b) == 0)
            return i;
    }
    return 0;
}

static uint32_t
make_node(uint32_t parent, const char *name, mode_t mode)
{
    for (uint32_t i = ROOT + 1; i < NODES; i++) {
        if (nodes[i].used)
            continue;
        nodes[i] = (struct node){ .used = true, .parent = parent, .mode = mode, .real = i };
        snprintf(nodes[i].name, sizeof(nodes[i].name), "%s", name);
        return i;
    }
    return 0;
}

static struct fuse_attr
attr_of(uint32_t i)
{
    return (struct fuse_attr){ .ino = nodes[i].real, .mode = nodes[nodes[i].real].mode, .nlink = 1, .blksize = 4096,
                               .uid = getuid(), .gid = getgid(), .size = strlen(nodes[i].target) };
}

static void
reply(int fd, uint64_t unique, int error, const void *p, size_t n)
{
    struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + n), .error = -error, .unique = unique };
    struct iovec v[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)p, n } };

    (void)!writev(fd, v, 2);
}

static void
reply_entry(int fd, uint64_t unique, uint32_t i, bool open)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = { .entry = { .nodeid = nodes[i].real, .attr = attr_of(i) } };

    reply(fd, unique, 0, &out, open ? sizeof(out) : sizeof(out.entry));
}

/* The names of mkdir, mknod, symlink and create, behind their fixed parts. */
static void
on_make(int fd, const struct fuse_in_header *h, const char *body)
{
    static const size_t fixed[] = { [FUSE_MKDIR] = sizeof(struct fuse_mkdir_in), [FUSE_MKNOD] = sizeof(struct fuse_mknod_in),
                                    [FUSE_SYMLINK] = 0, [FUSE_CREATE] = sizeof(struct fuse_create_in) };
    const char *name = body + fixed[h->opcode];
    mode_t mode = S_IFDIR | 0755;
    uint32_t i;

    if (h->opcode == FUSE_MKNOD)
        mode = ((const struct fuse_mknod_in *)(const void *)body)->mode;
    else if (h->opcode == FUSE_CREATE)
        mode = ((const struct fuse_create_in *)(const void *)body)->mode;
    else if (h->opcode == FUSE_SYMLINK)
        mode = S_IFLNK | 0777;
    if (find((uint32_t)h->nodeid, name) != 0) {
        reply(fd, h->unique, EEXIST, NULL, 0);
        return;
    }
    i = make_node((uint32_t)h->nodeid, name, mode);
    if (h->opcode == FUSE_SYMLINK)
        snprintf(nodes[i].target, sizeof(nodes[i].target), "%s", name + strlen(name) + 1);
    reply_entry(fd, h->unique, i, h->opcode == FUSE_CREATE);
}

static void
on_rename(int fd, const struct fuse_in_header *h, const char *body)
{
    size_t fixed = h->opcode == FUSE_RENAME2 ? sizeof(struct fuse_rename2_in) : sizeof(struct fuse_rename_in);
    uint32_t dir = (uint32_t)((const struct fuse_rename_in *)(const void *)body)->newdir;
    const char *from = body + fixed, *to = from + strlen(from) + 1;
    uint32_t i = find((uint32_t)h->nodeid, from), old = find(dir, to);

    if (i == 0) {
        reply(fd, h->unique, ENOENT, NULL, 0);
        return;
    }
    if (old != 0 && old != i)
        nodes[old].used = false;
    nodes[i].parent = dir;
    snprintf(nodes[i].name, sizeof(nodes[i].name), "%s", to);
    reply(fd, h->unique, 0, NULL, 0);
}

static void
on_link(int fd, const struct fuse_in_header *h, const char *body)
{
    const struct fuse_link_in *in = (const void *)body;
    uint32_t i;

    if (find((uint32_t)h->nodeid, body + sizeof(*in)) != 0) {
        reply(fd, h->unique, EEXIST, NULL, 0);
        return;
    }
    i = make_node((uint32_t)h->nodeid, body + sizeof(*in), S_IFREG | 0644);
    nodes[i].real = (uint32_t)in->oldnodeid;
    reply_entry(fd, h->unique, i, false);
}

static void
on_request(int fd, const struct fuse_in_header *h, const char *body)
{
    struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096 };
    struct fuse_attr_out attr = { .attr = attr_of((uint32_t)h->nodeid % NODES) };
    const struct fuse_open_out opened = { .fh = 0 };
    const struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 63 } };
    uint32_t i;

    switch (h->opcode) {
    case FUSE_INIT: reply(fd, h->unique, 0, &init, sizeof(init)); return;
    case FUSE_LOOKUP:
        i = find((uint32_t)h->nodeid, body);
        if (i != 0)
            reply_entry(fd, h->unique, i, false);
        else
            reply(fd, h->unique, ENOENT, NULL, 0);
        return;
    case FUSE_GETATTR:
    case FUSE_SETATTR: reply(fd, h->unique, 0, &attr, sizeof(attr)); return;
    case FUSE_MKDIR:
    case FUSE_MKNOD:
    case FUSE_SYMLINK:
    case FUSE_CREATE: on_make(fd, h, body); return;
    case FUSE_RENAME:
    case FUSE_RENAME2: on_rename(fd, h, body); return;
    case FUSE_LINK: on_link(fd, h, body); return;
    case FUSE_UNLINK:
    case FUSE_RMDIR:
        i = find((uint32_t)h->nodeid, body);
        nodes[i].used = false;
        reply(fd, h->unique, i != 0 ? 0 : ENOENT, NULL, 0);
        return;
    case FUSE_READLINK:
        reply(fd, h->unique, 0, nodes[h->nodeid % NODES].target, strlen(nodes[h->nodeid % NODES].target));
        return;
    case FUSE_OPEN:
    case FUSE_OPENDIR: reply(fd, h->unique, 0, &opened, sizeof(opened)); return;
    case FUSE_STATFS: reply(fd, h->unique, 0, &fs, sizeof(fs)); return;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_READDIR:
    case FUSE_FLUSH: reply(fd, h->unique, 0, NULL, 0); return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: return;
    default: reply(fd, h->unique, ENOSYS, NULL, 0); return;
    }
}

static void __attribute__((noreturn))
serve_files(int fd)
{
    static _Alignas(8) char room[65536];

    nodes[ROOT] = (struct node){ .used = true, .mode = S_IFDIR | 0755, .real = ROOT };
    for (;;) {
        ssize_t n = read(fd, room, sizeof(room) - 1);

        if (n < (ssize_t)sizeof(struct fuse_in_header)) {
            if (n < 0 && (errno == EINTR || errno == ENOENT))
                continue;
            _exit(0);
        }
        room[n] = '\0';
        on_request(fd, (const struct fuse_in_header *)(const void *)room, room + sizeof(struct fuse_in_header));
    }
}

/* --- */

static pid_t server = -1;

static void
mount_folding(const char *dir)
{
    char options[128];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", fd);
    if (fd < 0 || mount("fold", dir, "fuse", 0, options) < 0) {
        close(fd);
        return;
    }
    server = fork();
    if (server == 0)
        serve_files(fd);
    close(fd);
}

#define LONG_S "\305\277"

static bool is_checked;     /* by a guard with rules */

/* What each way does, bare: the file system is as bad as it was meant to be. */
static int
is_fooled(void *arg)
{
    CHECK(chdir(arg) == 0);
    WANT(0, make_file(".ba" LONG_S "hrc"));
    CHECK(access(".bashrc", F_OK) == 0);
    WANT(0, unlink(".bashrc"));
    WANT(0, mkdir(".git", 0755));
    WANT(0, mkdir(".git/hook" LONG_S, 0755));
    CHECK(access(".git/hooks", F_OK) == 0);
    return run_failures;
}

static int
is_not_fooled(void *arg)
{
    static const char *const names[] = { ".ba" LONG_S "hrc", ".BA" LONG_S "HRC", ".bashrc~1" };

    CHECK(chdir(arg) == 0);
    WANT(0, make_file("mine"));
    WANT(0, mkdir(".git", 0755));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        WANT(EACCES, make_file(names[i]));
        WANT(EACCES, open(names[i], O_CREAT | O_EXCL | O_RDWR, 0600));
        WANT(EACCES, mkdir(names[i], 0755));
        WANT(EACCES, mknod(names[i], S_IFIFO | 0600, 0));
        WANT(EACCES, symlink("x", names[i]));
        WANT(EACCES, link("mine", names[i]));
        WANT(EACCES, bind_here(names[i]));
        WANT(EACCES, rename("mine", names[i]));
        CHECK(access("mine", F_OK) == 0);
        CHECK(access(".bashrc", F_OK) < 0);
    }
    WANT(EACCES, mkdir(".git/hook" LONG_S, 0755));
    WANT(EACCES, mkdir(".git/HOOKS", 0755));
    CHECK(access(".git/hooks", F_OK) < 0);
    /* the way to it, under another name */
    WANT(0, mkdir("evil", 0755));
    WANT(0, mkdir("evil/hooks", 0755));
    WANT(0, rmdir(".git"));
    WANT(EACCES, rename("evil", ".git~2"));
    CHECK(access(".git", F_OK) < 0);
    /* and what only looks dangerous */
    WANT(0, make_file(LONG_S "ober"));
    WANT(0, make_file("draft~"));
    return run_failures;
}

/* The guest's own requests: they ask before, and of what they made. */
static void
requests_are_not_fooled(struct guard *g, const char *dir)
{
    static const char name[] = ".ba" LONG_S "hrc";
    int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(top, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(top >= 0 && fd >= 0);
    assert_int_equal(guard_aliased(g, top, name, "write"), EACCES);
    assert_int_equal(guard_check(g, top, name, "write"), EACCES);
    assert_int_equal(unlinkat(top, name, 0), 0);
    assert_int_equal(guard_check(g, top, name, "write"), 0);
    assert_int_equal(guard_aliased(g, top, "draft~", "write"), 0);
    close(fd);
    close(top);
}

static void
unmount_folding(struct guard *g, const char *dir)
{
    if (g != NULL && is_checked)
        requests_are_not_fooled(g, dir);
    if (server > 0) {
        (void)umount2(dir, MNT_DETACH);
        kill(server, SIGKILL);
        (void)waitpid(server, NULL, 0);
        server = -1;
    }
}

static void
folding(void **state)
{
    static const char *const rules[] = { ".git/hooks", ".bashrc", NULL };
    static const char *const others[] = { "unrelated", NULL };
    struct run_case bare = { GUARD_NAMES, others, mount_folding, is_fooled, unmount_folding, NULL };
    struct run_case guarded = { GUARD_NAMES, rules, mount_folding, is_not_fooled, unmount_folding, NULL };
    char room[64], *dir;
    bool can;

    (void)state;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        skip();
    dir = run_tmpdir(room);
    mount_folding(dir);
    can = server > 0;
    unmount_folding(NULL, dir);
    run_remove(dir);
    if (!can)
        skip();
    assert_true(run_one(&bare));
    is_checked = true;
    assert_true(run_one(&guarded));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
