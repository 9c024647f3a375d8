/* workspace/overlay: a real overlay, mounted by a child in its own user and mount namespace, both ways, with the
 * project owned by ourselves and (as root) by others. Also the example of what the parent and the child have to do. */
#include "test_cow_fixture.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "workspace/overlay.h"

#define INSIDE  1000u
#define OUTSIDE 2000777u    /* as root: the sandbox's own uid, which owns nothing */

struct child {
    struct fixture *f;
    struct overlay_plan plan;
    int go;                 /* a byte when the maps are written */
    bool root;
};

static bool
write_text(const char *path, const char *text)
{
    return io_write_file(AT_FDCWD, path, text) == 0;
}

static pid_t
clone_into(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);
}

/* A user namespace in which @from on disk is @to. */
static int
idmap_userns(uid_t from_uid, gid_t from_gid, uid_t to)
{
    char path[64], map[64];
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = clone_into(CLONE_NEWUSER);
    if (pid == 0) {
        char c;
        close(fds[1]);
        _exit(read(fds[0], &c, 1) != 0);
    }
    assert_true(pid > 0);
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    snprintf(map, sizeof(map), "%u %u 1", from_uid, to);
    assert_true(write_text(path, map));
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    snprintf(map, sizeof(map), "%u %u 1", from_gid, to);
    assert_true(write_text(path, map));
    snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    close(fds[0]);
    close(fds[1]);
    waitpid(pid, NULL, 0);
    return fd;
}

/* What the command would do. Exits with the line of the first thing that is wrong. */
#define MUST(x) do { if (!(x)) _exit(__LINE__ % 250 + 1); } while (0)

static void
work_inside(void)
{
    struct stat st;
    char text[8] = "";

    MUST(stat(".", &st) == 0 && st.st_uid == INSIDE);
    int fd = open("dir/file", O_RDWR | O_APPEND | O_CLOEXEC);       /* copied up */
    MUST(fd >= 0 && read(fd, text, 3) == 3 && memcmp(text, "old", 3) == 0 && write(fd, "+new", 4) == 4);
    MUST(unlink("gone") == 0);
    MUST(rename("dir/other", "renamed") == 0);
    MUST(rename("tree", "moved") < 0 && errno == EXDEV);            /* redirect_dir=nofollow */
    MUST(unlink("tree/leaf") == 0 && rmdir("tree") == 0 && mkdir("tree", 0755) == 0);   /* opaque */
    MUST(chmod("mode", 0700) == 0);
    MUST(mkdir("fresh", 0755) == 0 && link("mode", "fresh/hard") == 0);
    MUST(mknod("white", S_IFCHR, makedev(0, 0)) < 0);               /* nobody plants a whiteout */
    MUST(setxattr("mode", "user.overlay.opaque", "y", 1, 0) < 0 || getxattr("mode", "user.overlay.opaque", text,
                                                                            8) == 1);
}

static void
child_main(struct child *c)
{
    struct err err = ERR_INIT;
    char byte;

    MUST(read(c->go, &byte, 1) == 1);
    /* become the mapped user first, capabilities in the namespace kept */
    MUST(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
    if (c->root) {
        struct { uint32_t version; int pid; } header = { 0x20080522, 0 };
        struct { uint32_t effective, permitted, inheritable; } data[2];
        MUST(setgroups(0, NULL) == 0 && setresgid(INSIDE, INSIDE, INSIDE) == 0 && setresuid(INSIDE, INSIDE,
                INSIDE) == 0);
        MUST(syscall(SYS_capget, &header, data) == 0);
        data[0].effective = data[0].permitted;
        data[1].effective = data[1].permitted;
        MUST(syscall(SYS_capset, &header, data) == 0);
    }
    MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    int tree = overlay_mount_detached(&c->plan, &err);
    if (tree < 0) {
        fprintf(stderr, "%s: %s\n", err.code, err.msg);
        _exit(strcmp(err.code, "wall.overlay.unsupported") == 0 ? 250 : 251);
    }
    MUST(err.kind == ERR_NONE);
    /* nothing of the staging is left */
    MUST(access("/usr/bin", F_OK) == 0 && access("/usr/lower", F_OK) < 0);
    MUST(move_mount(tree, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) == 0 && chdir("/mnt") == 0);
    work_inside();
    _exit(0);
}

static int
run_child(struct child *c)
{
    char path[64], map[64];
    int fds[2], status;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    c->go = fds[0];
    pid_t pid = clone_into(CLONE_NEWUSER | CLONE_NEWNS);
    if (pid == 0)
        child_main(c);
    if (pid < 0)
        return 250;
    if (!c->root) {
        snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
        assert_true(write_text(path, "deny"));
    }
    snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
    snprintf(map, sizeof(map), "%u %u 1", INSIDE, c->root ? OUTSIDE : getuid());
    assert_true(write_text(path, map));
    snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
    snprintf(map, sizeof(map), "%u %u 1", INSIDE, c->root ? OUTSIDE : getgid());
    assert_true(write_text(path, map));
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    close(fds[1]);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
give(struct fixture *f, uid_t owner)
{
    static const char *const paths[] = { ".", "dir", "dir/file", "dir/other", "gone", "tree", "tree/leaf", "mode" };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        assert_int_equal(fchownat(f->project, paths[i], owner, owner, AT_SYMLINK_NOFOLLOW), 0);
}

static struct overlay_dir
dir_at(int fd, const char *path)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return (struct overlay_dir){ .tree = -1, .path = path, .dev = st.st_dev, .ino = st.st_ino };
}

static void
mounted_by(struct fixture *f, uid_t owner, bool no_fd_options)
{
    struct child c = { .f = f, .root = geteuid() == 0, .plan = { .no_fd_options = no_fd_options } };
    struct err err = ERR_INIT;
    struct stat st;

    folder(f->project, "dir");
    put(f->project, "dir/file", "old");
    put(f->project, "dir/other", "other");
    put(f->project, "gone", "g");
    folder(f->project, "tree");
    put(f->project, "tree/leaf", "l");
    put(f->project, "mode", "m");
    if (c.root)
        give(f, owner);
    fixture_run(f);
    c.plan.lower = dir_at(f->project, f->state.project);
    c.plan.layers = dir_at(f->state.dir_fd, f->state.path);
    if (c.root) {
        cleanup_close int userns = idmap_userns(owner, owner, OUTSIDE);
        c.plan.lower.tree = overlay_clone_idmapped(f->project, userns, true, &err);
        c.plan.layers.tree = overlay_clone_idmapped(f->state.dir_fd, userns, false, &err);
        if (c.plan.lower.tree < 0 || c.plan.layers.tree < 0)
            fail_msg("%s", err.msg);
    }
    int status = run_child(&c);
    close_fd(&c.plan.lower.tree);
    close_fd(&c.plan.layers.tree);
    if (status == 250) {
        print_message("no overlay in a user namespace here: skipped\n");
        skip();
    }
    assert_int_equal(status, 0);

    expect(f->project, "dir/file", "old");
    expect(f->project, "gone", "g");
    assert_int_equal(fstatat(f->upper, "dir/file", &st, 0), 0);
    assert_int_equal(st.st_uid, c.root ? owner : getuid());
    scan(f);
    assert_int_equal(change(f, "dir/file")->kind, CHANGE_MODIFIED);
    assert_int_equal(change(f, "gone")->kind, CHANGE_DELETED);
    assert_int_equal(change(f, "renamed")->pair, find(f, "dir/other"));
    assert_int_equal(change(f, "tree/leaf")->kind, CHANGE_DELETED);
    assert_int_equal(change(f, "mode")->kind, CHANGE_MODE);
    assert_int_equal(count_changes(f), 8);

    struct apply_plan plan;
    const struct apply_options everything = { .n_paths = 0 };
    assert_int_equal(apply_decide(&f->c, &everything, &plan, &err), 0);
    if (apply_commit(&f->state, &f->in, &f->c, &plan, &err) < 0)
        fail_msg("%s", err.msg);
    apply_plan_free(&plan);
    expect(f->project, "dir/file", "old+new");
    expect(f->project, "tree/leaf", NULL);
    expect(f->project, "renamed", "other");
    assert_int_equal(fstatat(f->project, "dir/file", &st, 0), 0);
    assert_int_equal(st.st_uid, c.root ? owner : getuid());
    scan(f);
    assert_int_equal(count_changes(f), 0);
}

static void
by_descriptor(void **state)
{
    mounted_by(*state, 1000, false);
}

static void
by_path(void **state)
{
    mounted_by(*state, 1000, true);
}

static void
project_of_root(void **state)
{
    if (geteuid() != 0)
        skip();
    mounted_by(*state, 0, false);
}

static void
project_of_root_by_path(void **state)
{
    if (geteuid() != 0)
        skip();
    mounted_by(*state, 0, true);
}

static void
replaced_directory_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    fixture_run(f);
    struct overlay_plan plan = { .lower = dir_at(f->project, f->state.project), .layers = dir_at(f->project, f->root) };
    assert_int_equal(overlay_mount_detached(&plan, &err), -1);
    assert_string_equal(err.code, "wall.overlay.changed");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(by_descriptor), T(by_path), T(project_of_root), T(project_of_root_by_path), T(replaced_directory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
