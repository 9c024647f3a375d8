/* tests/unit/test_guard.c: no way to make a protected name
 *
 * Every check runs in a child under the filter; the parent is the supervisor. The directory stands for a project that
 * a user works in: its names are protected although they do not exist.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "test_guard_run.h"

static const char *const usual[] = { ".git/hooks", ".git/config", ".bashrc", ".vscode", ".mcp.json",
                                     ".claude/commands", "deep/er/still/name", NULL };

static const char *
in(const char *dir, const char *rest)
{
    static char rooms[4][512];
    static unsigned next;
    char joined[512];

    snprintf(joined, sizeof(joined), "%s%s", dir, rest);
    return memcpy(rooms[next++ % 4], joined, sizeof(joined));
}

static int
xrename(const char *from, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* --- a name, by every call that makes one */

static int
every_call(void *arg)
{
    const char *dir = arg;

    WANT(0, make_file("plain"));
    WANT(0, mkdir(".git", 0755));
    WANT(0, mkdir(".git/objects", 0755));
    WANT(EACCES, make_file(".bashrc"));
#ifdef SYS_creat
    WANT(EACCES, syscall(SYS_creat, ".bashrc", 0644));
#endif
    WANT(EACCES, open(".bashrc", O_CREAT | O_EXCL | O_RDWR, 0644));
    WANT(EACCES, open(".bashrc", O_CREAT | O_RDONLY, 0644));
    WANT(EACCES, mkdir(".bashrc", 0755));
    WANT(EACCES, mkdir(".git/hooks", 0755));
    WANT(EACCES, mkdir(".git/hooks/", 0755));
    WANT(EACCES, mkdir(".vscode", 0755));
    WANT(EACCES, mknod(".mcp.json", S_IFREG | 0644, 0));
    WANT(EACCES, mknod(".mcp.json", S_IFIFO | 0644, 0));
    WANT(EACCES, symlink("plain", ".bashrc"));
    WANT(EACCES, symlink("plain", ".git/hooks"));
    WANT(EACCES, link("plain", ".bashrc"));
    WANT(EACCES, linkat(AT_FDCWD, "plain", AT_FDCWD, ".git/config", 0));
    WANT(EACCES, rename("plain", ".bashrc"));
    WANT(EACCES, renameat(AT_FDCWD, "plain", AT_FDCWD, ".git/config"));
    WANT(EACCES, xrename("plain", ".mcp.json", 1));
    WANT(EACCES, bind_here(".bashrc"));
    WANT(EACCES, bind_here(".git/hooks"));
    WANT(EACCES, make_file(in(dir, "/.bashrc")));
    /* what is near is free */
    WANT(0, make_file(".bashrc2"));
    WANT(0, mkdir("hooks", 0755));
    WANT(0, make_file("hooks/pre-commit"));
    WANT(0, make_file("config"));
    WANT(0, mkdir("sub", 0755));
    WANT(0, make_file("sub/.bashrc"));
    WANT(0, make_file(".git/HEAD"));
    WANT(0, bind_here("sock"));
    WANT(0, mkdir("deep", 0755));
    WANT(0, mkdir("deep/er", 0755));
    WANT(0, mkdir("deep/er/still", 0755));
    WANT(EACCES, mkdir("deep/er/still/name", 0755));
    WANT(0, make_file("deep/er/name"));
    return run_failures;
}

static void
after_every_call(struct guard *g, const char *dir)
{
    struct guard_denial d;
    struct stat st;
    bool hooks = false;
    size_t n = 0;

    assert_int_equal(stat(in(dir, "/.bashrc"), &st), -1);
    assert_int_equal(stat(in(dir, "/.git/hooks"), &st), -1);
    assert_int_equal(stat(in(dir, "/.mcp.json"), &st), -1);
    while (guard_next_denial(g, &d)) {
        n++;
        if (strcmp(d.op, "mkdir") == 0 && strcmp(d.target, in(dir, "/.git/hooks")) == 0) {
            hooks = true;
            assert_int_equal(d.count, 2);
            assert_string_equal(d.rule, in(dir, "/.git/hooks"));
        }
    }
    assert_true(hooks);
    assert_true(n > 8);
}

/* --- one name, by every way to it */

static int
every_way(void *arg)
{
    const char *dir = arg;
    int top = open(".", O_RDONLY | O_DIRECTORY), git, path_git, root = open("/", O_PATH);
    char text[128];

    WANT(0, mkdir(".git", 0755));
    WANT(0, mkdir("d", 0755));
    git = open(".git", O_RDONLY | O_DIRECTORY);
    path_git = open(".git", O_PATH);
    WANT(EACCES, mkdirat(git, "hooks", 0755));
    WANT(EACCES, mkdirat(path_git, "hooks", 0755));
    WANT(EACCES, openat(top, ".bashrc", O_CREAT | O_WRONLY, 0600));
    WANT(EACCES, openat(git, "../.bashrc", O_CREAT | O_WRONLY, 0600));
    WANT(EACCES, openat(root, in(dir + 1, "/.bashrc"), O_CREAT | O_WRONLY, 0600));
    WANT(EACCES, make_file("./d/.././.bashrc"));
    WANT(EACCES, make_file(".//.bashrc"));
    WANT(0, symlink(".", "here"));
    WANT(EACCES, make_file("here/here/.bashrc"));
    WANT(0, symlink(".git", "g"));
    WANT(EACCES, mkdir("g/hooks", 0755));
    WANT(0, symlink(".bashrc", "dangling"));
    WANT(EACCES, make_file("dangling"));
    WANT(0, symlink(in(dir, "/.git/config"), "far"));
    WANT(0, symlink("far", "farther"));
    WANT(EACCES, make_file("farther"));
    WANT(EACCES, make_file("/proc/self/cwd/.bashrc"));
    WANT(EACCES, make_file("/proc/thread-self/cwd/.bashrc"));
    WANT(EACCES, make_file(in("/proc/self/root", in(dir, "/.bashrc"))));
    snprintf(text, sizeof(text), "/proc/self/fd/%d/hooks", git);
    WANT(EACCES, mkdir(text, 0755));
    snprintf(text, sizeof(text), "/dev/fd/%d/hooks", path_git);
    WANT(EACCES, mkdir(text, 0755));
    snprintf(text, sizeof(text), "/proc/%d/task/%d/cwd/.bashrc", getpid(), getpid());
    WANT(EACCES, make_file(text));
    WANT(0, chdir(".git"));
    WANT(EACCES, mkdir("hooks", 0755));
    WANT(EACCES, make_file("../.bashrc"));
    WANT(0, chdir(".."));
    /* by another letter case, on any file system */
    WANT(EACCES, make_file(".BashRC"));
    WANT(EACCES, mkdir(".git/HOOKS", 0755));
    WANT(EACCES, symlink("d", ".GIT"));
    return run_failures;
}

/* A child of the command is under the same filter and listener; its directory is its own. */
static int
another_process(void *arg)
{
    int to_child[2], status;
    char text[64];
    pid_t pid;

    (void)arg;
    CHECK(pipe(to_child) == 0);
    WANT(0, mkdir("d", 0755));
    pid = fork();
    if (pid == 0) {
        char c;

        close(to_child[1]);
        (void)!read(to_child[0], &c, 1);
        CHECK(chdir("d") == 0);
        WANT(0, make_file(".bashrc"));
        WANT(EACCES, make_file("../.bashrc"));
        _exit(run_failures);
    }
    close(to_child[0]);
    snprintf(text, sizeof(text), "/proc/%d/cwd/.bashrc", pid);
    WANT(EACCES, make_file(text));
    snprintf(text, sizeof(text), "/proc/%d/cwd/free", pid);
    WANT(0, make_file(text));
    close(to_child[1]);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return run_failures;
}

/* --- the way to a protected name */

static int
interior(void *arg)
{
    (void)arg;
    /* may only be plain directories */
    WANT(EACCES, make_file(".git"));
    WANT(EACCES, symlink("elsewhere", ".git"));
    WANT(EACCES, mknod(".git", S_IFIFO | 0600, 0));
    WANT(EACCES, bind_here(".git"));
    WANT(0, make_file("file"));
    WANT(0, symlink("file", "link"));
    WANT(EACCES, link("file", ".git"));
    WANT(EACCES, rename("file", ".git"));
    WANT(EACCES, rename("link", ".git"));
    /* and bring nothing along */
    WANT(0, mkdir("evil", 0755));
    WANT(0, mkdir("evil/hooks", 0755));
    WANT(EACCES, rename("evil", ".git"));
    WANT(EACCES, xrename("evil", ".git", 1));
    WANT(0, rmdir("evil/hooks"));
    WANT(0, symlink("d", "evil/hooks"));
    WANT(EACCES, rename("evil", ".git"));
    WANT(0, unlink("evil/hooks"));
    WANT(0, make_file("evil/description"));
    WANT(0, rename("evil", ".git"));
    /* and stay where they are */
    WANT(EBUSY, rename(".git", "moved"));
    WANT(EBUSY, rename("./.git/", "moved"));
    WANT(0, mkdir("other", 0755));
    WANT(0, make_file("other/hooks"));
    WANT(EBUSY, xrename(".git", "other", 2));
    WANT(EACCES, xrename("other", ".git", 2));
    /* three deep: any part of the way */
    WANT(0, mkdir("x", 0755));
    WANT(0, mkdir("x/still", 0755));
    WANT(0, mkdir("x/still/name", 0755));
    WANT(0, mkdir("deep", 0755));
    WANT(EACCES, rename("x", "deep/er"));
    WANT(0, mkdir("y", 0755));
    WANT(0, rename("x", "y/er"));
    WANT(EACCES, rename("y", "deep"));
    WANT(0, rmdir("deep"));
    WANT(EACCES, rename("y", "deep"));
    WANT(0, rmdir("y/er/still/name"));
    WANT(0, symlink("../x", "y/er/still2"));
    WANT(0, xrename("y/er/still2", "y/er/still", 2));
    /* a link on the way may lead anywhere */
    WANT(EACCES, rename("y", "deep"));
    WANT(0, unlink("y/er/still"));
    WANT(0, rename("y", "deep"));
    WANT(EBUSY, rename("deep/er", "z"));
    WANT(EBUSY, rename("deep", "z"));
    WANT(EPERM, xrename("file", "whiteout", 4));
    return run_failures;
}

/* The project itself, and what holds it, stay too (where a mount point would not see to it). */
static int
root_stays(void *arg)
{
    const char *dir = arg;

    WANT(EBUSY, rename(dir, "/tmp/cloche-guard-moved"));
    WANT(0, mkdir("/tmp/cloche-guard-other", 0755));
    WANT(EBUSY, xrename(dir, "/tmp/cloche-guard-other", 2));
    WANT(0, rmdir("/tmp/cloche-guard-other"));
    return run_failures;
}

/* --- what exists already, made by the host */

static void
host_made(const char *dir)
{
    run_dir(dir, ".git");
    run_dir(dir, ".git/hooks");
    run_file(dir, ".git/hooks/pre-commit", "host");
    run_file(dir, ".bashrc", "host");
}

static int
existing(void *arg)
{
    char text[8] = "";
    int fd;

    (void)arg;
    /* in this mode a mount protects contents; opening what exists is the kernel's matter, flags and all */
    fd = open(".bashrc", O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && read(fd, text, 4) == 4 && strcmp(text, "host") == 0);
    close(fd);
    WANT(EEXIST, open(".bashrc", O_CREAT | O_EXCL | O_RDWR, 0644));
    WANT(EEXIST, mkdir(".git/hooks", 0755));
    WANT(EISDIR, open(".git/hooks", O_CREAT | O_RDONLY, 0644));
    WANT(EEXIST, symlink("x", ".bashrc"));
    WANT(0, make_file("mine"));
    WANT(EACCES, rename("mine", ".bashrc"));
    WANT(EACCES, rename(".bashrc", "mine"));
    WANT(EACCES, xrename("mine", ".bashrc", 2));
    WANT(EACCES, rename(".git/hooks", "hooks"));
    WANT(EACCES, link(".bashrc", "alias"));
    WANT(EACCES, link(".git/hooks/pre-commit", "alias"));
    WANT(EADDRINUSE, bind_here(".bashrc"));
    /* below a protected directory */
    WANT(EACCES, make_file(".git/hooks/post-merge"));
    WANT(EACCES, mkdir(".git/hooks/d", 0755));
    WANT(EACCES, rename("mine", ".git/hooks/post-merge"));
    WANT(EACCES, symlink("mine", ".git/hooks/post-merge"));
    WANT(EACCES, rename(".git/hooks/pre-commit", "gone"));
    /* removed, it does not come back */
    WANT(0, unlink(".bashrc"));
    WANT(EACCES, make_file(".bashrc"));
    return run_failures;
}

static void
plan_open_again(struct guard_plan *plan, const char *dir)
{
    struct err err = ERR_INIT;

    assert_int_equal(guard_plan_protect(plan, dir, ".claude", &err), 0);
    assert_int_equal(guard_plan_allow(plan, dir, ".claude/logs", &err), 0);
    assert_int_equal(guard_plan_protect(plan, dir, ".claude/logs/private", &err), 0);
}

static void
host_claude(const char *dir)
{
    run_dir(dir, ".claude");
    run_dir(dir, ".claude/logs");
}

static int
open_again(void *arg)
{
    (void)arg;
    WANT(EACCES, make_file(".claude/settings"));
    WANT(0, make_file(".claude/logs/today"));
    WANT(0, mkdir(".claude/logs/d", 0755));
    WANT(0, make_file(".claude/logs/d/x"));
    WANT(EACCES, make_file(".claude/logs/private"));
    WANT(EACCES, rename(".claude/logs/today", ".claude/today"));
    return run_failures;
}

/* --- one tree, two mounts */

static char second[64];

static void
mount_twice(const char *dir)
{
    run_tmpdir(second);
    if (mount(dir, second, NULL, MS_BIND, NULL) < 0)
        second[0] = '\0';
}

static int
two_mounts(void *arg)
{
    char other[128];

    (void)arg;
    if (second[0] == '\0')
        return 0;
    WANT(0, mkdir(".git", 0755));
    snprintf(other, sizeof(other), "%s/.bashrc", second);
    WANT(EACCES, make_file(other));
    snprintf(other, sizeof(other), "%s/.git/hooks", second);
    WANT(EACCES, mkdir(other, 0755));
    snprintf(other, sizeof(other), "%s/.git/free", second);
    WANT(0, mkdir(other, 0755));
    return run_failures;
}

static void
unmount_again(struct guard *g, const char *dir)
{
    (void)g;
    (void)dir;
    if (second[0] != '\0') {
        (void)umount2(second, MNT_DETACH);
        (void)rmdir(second);
    }
}

/* --- a file system that folds letters beyond ASCII */

static bool folds;

static void
mount_folding(const char *dir)
{
    int fd, flags = 0x40000000 /* FS_CASEFOLD_FL */;

    folds = mount("none", dir, "tmpfs", 0, "casefold") == 0;
    if (!folds)
        return;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folds = ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
    close(fd);
}

static int
folding(void *arg)
{
    const char *dir = arg;

    if (!folds)
        return 0;
    /* enter the mount that came after the directory was opened */
    CHECK(chdir(dir) == 0);
    WANT(EACCES, make_file(".BASHRC"));
    WANT(EACCES, make_file(".ba\305\277hrc"));                 /* LATIN SMALL LETTER LONG S folds to s */
    WANT(EACCES, open(".ba\305\277hrc", O_CREAT | O_EXCL | O_RDWR, 0600));
    WANT(EACCES, mkdir(".ba\305\277hrc", 0755));
    WANT(EACCES, symlink("x", ".ba\305\277hrc"));
    WANT(EACCES, bind_here(".ba\305\277hrc"));
    WANT(0, make_file("mine"));
    WANT(EACCES, rename("mine", ".ba\305\277hrc"));
    CHECK(access("mine", F_OK) == 0);
    WANT(EACCES, link("mine", ".ba\305\277hrc"));
    WANT(0, make_file("\305\277ober"));
    CHECK(access(".bashrc", F_OK) < 0);
    return run_failures;
}

static void
unmount_folding(struct guard *g, const char *dir)
{
    (void)g;
    if (folds)
        (void)umount2(dir, MNT_DETACH);
}

/* --- */

static void
names(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, every_call, after_every_call, NULL }));
}

static void
ways(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, every_way, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, another_process, NULL, NULL }));
}

static void
ways_to_protected(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, interior, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, NULL, root_stays, NULL, NULL }));
}

static void
made_by_host(void **state)
{
    (void)state;
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, host_made, existing, NULL, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, NULL, host_claude, open_again, NULL, plan_open_again }));
}

/* Mounts need privilege of some kind: an ordinary user gets it in a user namespace, where it is allowed. */
static bool
own_mounts(void)
{
    if (geteuid() != 0)
        return false;
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void
mounts(void **state)
{
    (void)state;
    if (!own_mounts())
        skip();
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, mount_twice, two_mounts, unmount_again, NULL }));
    assert_true(run_one(&(struct run_case){ GUARD_NAMES, usual, mount_folding, folding, unmount_folding, NULL }));
    if (!folds)
        print_message("this kernel has no folding tmpfs: names beyond ASCII were not tried\n");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(ways),
        cmocka_unit_test(ways_to_protected),
        cmocka_unit_test(made_by_host),
        cmocka_unit_test(mounts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
