/* tests/unit/test_guard_plan.c: the name guard's plan on the wire, and the filter that its flags make */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "guest/guard.h"

/* --- the plan */

static void
round_trip(void **state)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT, back = GUARD_PLAN_INIT;
    struct buf wire = BUF_INIT(GUARD_WIRE_MAX), again = BUF_INIT(GUARD_WIRE_MAX);
    struct err err = ERR_INIT;

    (void)state;
    plan.flags = GUARD_NAMES | GUARD_CONNECT;
    assert_int_equal(guard_plan_protect(&plan, "/workspace", ".git/hooks", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, "/workspace", ".git/hooks", &err), 0);
    assert_int_equal(guard_plan_allow(&plan, "/workspace", ".git/hooks/mine", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, "/other", ".bashrc", &err), 0);
    assert_int_equal(guard_plan_own(&plan, "/other", ".bashrc", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, "/other", ".bashrc", &err), 0);
    assert_int_equal(guard_plan_socket(&plan, "/run/agent.sock", &err), 0);
    assert_int_equal(guard_plan_socket_tree(&plan, "/", &err), 0);
    assert_int_equal(guard_plan_tree(&plan, "/workspace", &err), 0);
    assert_int_equal(plan.n_roots, 2);
    assert_int_equal(plan.n_rules, 4);
    assert_int_equal(guard_plan_emit(&plan, &wire, &err), 0);
    assert_int_equal(guard_plan_parse(wire.p, wire.n, &back, &err), 0);
    assert_int_equal(back.flags, plan.flags);
    assert_int_equal(back.n_rules, 4);
    assert_string_equal(back.rules[1].path, ".git/hooks/mine");
    assert_true(back.rules[1].allow && back.rules[1].in.word[0] == 1);
    assert_string_equal(back.roots[1], "/other");
    assert_string_equal(back.rules[2].path, ".bashrc");
    assert_true(!back.rules[2].own && !back.rules[2].allow && back.rules[2].in.word[0] == 2);
    assert_string_equal(back.rules[3].path, ".bashrc");
    assert_true(back.rules[3].own && !back.rules[3].allow && back.rules[3].in.word[0] == 2);
    assert_string_equal(back.sockets[0], "/run/agent.sock");
    assert_string_equal(back.socket_trees[0], "/");
    assert_string_equal(back.trees[0], "/workspace");
    assert_int_equal(guard_plan_emit(&back, &again, &err), 0);
    assert_int_equal(again.n, wire.n);
    assert_memory_equal(again.p, wire.p, wire.n);
    /* whole or not at all: every cut, and every excess */
    for (size_t n = 0; n < wire.n; n++) {
        cleanup_guard_plan struct guard_plan cut = GUARD_PLAN_INIT;

        assert_int_equal(guard_plan_parse(wire.p, n, &cut, &err), -1);
        assert_string_equal(err.code, "guard.plan.wire");
    }
    {
        cleanup_guard_plan struct guard_plan more = GUARD_PLAN_INIT;

        assert_int_equal(buf_put_u8(&wire, 0), 0);
        assert_int_equal(guard_plan_parse(wire.p, wire.n, &more, &err), -1);
    }
    buf_free(&wire);
    buf_free(&again);
}

static void
paths_are_refused(void **state)
{
    static const char *const relative[] = { "", "/", "/abs", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b" };
    static const char *const absolute[] = { "", "rel", "./x" };
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;
    struct err err = ERR_INIT;
    char deep[2 * (GUARD_DEPTH_MAX + 2)], longer[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(relative); i++) {
        assert_int_equal(guard_plan_protect(&plan, "/r", relative[i], &err), -1);
        assert_string_equal(err.code, "guard.plan.path");
    }
    for (size_t i = 0; i < ARRAY_LEN(absolute); i++) {
        assert_int_equal(guard_plan_protect(&plan, absolute[i], "a", &err), -1);
        assert_int_equal(guard_plan_socket(&plan, absolute[i], &err), -1);
        assert_int_equal(guard_plan_socket_tree(&plan, absolute[i], &err), -1);
    }
    memset(longer, 'x', sizeof(longer));
    longer[256] = '\0';
    assert_int_equal(guard_plan_protect(&plan, "/r", longer, &err), -1);
    for (size_t i = 0; i <= GUARD_DEPTH_MAX; i++)
        memcpy(deep + 2 * i, "a/", 2);
    deep[2 * GUARD_DEPTH_MAX + 1] = '\0';
    assert_int_equal(guard_plan_protect(&plan, "/r", deep, &err), -1);
    deep[2 * GUARD_DEPTH_MAX - 1] = '\0';
    assert_int_equal(guard_plan_protect(&plan, "/r", deep, &err), 0);
}

static void
wire_is_refused(void **state)
{
    static const struct { const char *bytes; size_t n; const char *why; } rows[] = {
        { "\2\0\0\0\1\0\0\0\0\0\0\0\0\0\0", 15, "version" },
        { "\3\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 15, "flag" },
        { "\3\0\0\0\1\0\1\0\1/\0\1\3\0\1a\1\0\0\0\0\0\0", 23, "kind" },
        { "\3\0\0\0\1\0\1\0\1/\0\1\0\0\1/\1\0\0\0\0\0\0", 23, "path" },
        { "\3\0\0\0\1\0\1\0\1/\0\1\0\0\1a\0\0\0\0\0\0\0", 23, "in no root" },
        { "\3\0\0\0\1\0\1\0\1/\0\1\0\0\1a\3\0\0\0\0\0\0", 23, "in a root that is not there" },
        { "\3\0\0\0\1\0\1\0\1/\0\1\0\0\1a\200\0\0\0\0\0\0", 23, "the same, further up" },
        { "\3\0\0\0\1\0\0\0\1\0\0\1a\0\0\0\0\0\0", 19, "there is no root" },
        { "\3\0\0\0\1\0\1\0\1/\0\2\0\0\1a\1\0\0\1a\1\0\0\0\0\0\0", 28, "name twice" },
        { "\3\0\0\0\1\0\1\0\1r\0\0\0\0\0\0\0\0", 18, "root" },
        { "\3\0\0\0\1\0\2\0\1/\0\1/\0\0\0\0\0\0\0\0", 21, "root twice" },
        { "\3\0\0\0\1\0\0\0\0\0\1\0\2/\0\0\0\0\0", 19, "NUL in a socket" },
    };
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;

        if (guard_plan_parse(rows[i].bytes, rows[i].n, &plan, &err) == 0)
            fail_msg("%s was accepted", rows[i].why);
    }
}

static void
limits(void **state)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;
    struct err err = ERR_INIT;
    char name[32];

    (void)state;
    for (size_t i = 0; i < GUARD_PATHS_MAX; i++) {
        snprintf(name, sizeof(name), "/s%zu", i);
        assert_int_equal(guard_plan_socket(&plan, name, &err), 0);
    }
    assert_int_equal(guard_plan_socket(&plan, "/more", &err), -1);
    assert_string_equal(err.code, "guard.plan.limit");
    for (size_t i = 0; i < GUARD_ROOTS_MAX; i++) {
        snprintf(name, sizeof(name), "/r%zu", i);
        assert_int_equal(guard_plan_protect(&plan, name, "x", &err), 0);
    }
    assert_int_equal(guard_plan_protect(&plan, "/more", "x", &err), -1);
    assert_string_equal(err.code, "guard.plan.limit");
}

/* One set of names in as many roots as there may be, with one beside it in the last: as much as they are, not so many
 * times over. */
static void
names_are_shared(void **state)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT, back = GUARD_PLAN_INIT, copy = GUARD_PLAN_INIT;
    struct buf wire = BUF_INIT(GUARD_WIRE_MAX), again = BUF_INIT(GUARD_WIRE_MAX);
    struct err err = ERR_INIT;
    char root[32], name[32];

    (void)state;
    for (size_t i = 0; i < GUARD_ROOTS_MAX; i++)
        for (size_t k = 0; k < 140; k++) {
            snprintf(root, sizeof(root), "/r%zu", i);
            snprintf(name, sizeof(name), ".n%zu/x", k);
            assert_int_equal(guard_plan_protect(&plan, root, name, &err), 0);
        }
    assert_int_equal(guard_plan_protect(&plan, root, "more", &err), 0);
    assert_int_equal(plan.n_rules, 141);
    assert_int_equal(guard_plan_emit(&plan, &wire, &err), 0);
    assert_true(wire.n < 32 * 1024);
    assert_int_equal(guard_plan_parse(wire.p, wire.n, &back, &err), 0);
    assert_int_equal(guard_plan_copy(&copy, &back, &err), 0);
    assert_int_equal(copy.n_rules, 141);
    for (size_t i = 0; i < GUARD_ROOTS_MAX; i++) {
        assert_true(guard_roots_has(&copy.rules[0].in, i) && guard_roots_has(&copy.rules[139].in, i));
        assert_int_equal(guard_roots_has(&copy.rules[140].in, i), i == GUARD_ROOTS_MAX - 1);
    }
    assert_int_equal(guard_roots_next(&copy.rules[140].in, 0, GUARD_ROOTS_MAX), GUARD_ROOTS_MAX - 1);
    assert_int_equal(guard_roots_next(&copy.rules[140].in, GUARD_ROOTS_MAX, GUARD_ROOTS_MAX), GUARD_ROOTS_MAX);
    assert_int_equal(guard_plan_emit(&copy, &again, &err), 0);
    assert_int_equal(again.n, wire.n);
    assert_memory_equal(again.p, wire.p, wire.n);
    buf_free(&wire);
    buf_free(&again);
}

static void
different_names_have_a_limit(void **state)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT;
    struct err err = ERR_INIT;
    char name[32];

    (void)state;
    for (size_t i = 0; i < GUARD_RULES_MAX; i++) {
        snprintf(name, sizeof(name), "n%zu", i);
        assert_int_equal(guard_plan_protect(&plan, i % 2 == 0 ? "/a" : "/b", name, &err), 0);
    }
    assert_int_equal(guard_plan_protect(&plan, "/b", "n0", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, "/b", "more", &err), -1);
    assert_string_equal(err.code, "guard.plan.limit");
}

/* --- the filter, run by a small machine */

static uint32_t
run(const struct guard_filter *f, const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t pc = 0; pc < f->n; pc++) {
        const struct guard_insn *i = &f->insn[pc];

        switch (i->code) {
        case 0x20:
            assert_true(i->k + 4 <= sizeof(*data) && i->k % 4 == 0);
            memcpy(&a, (const char *)data + i->k, 4);
            break;
        case 0x15: pc += a == i->k ? i->jt : i->jf; break;
        case 0x35: pc += a >= i->k ? i->jt : i->jf; break;
        case 0x45: pc += (a & i->k) != 0 ? i->jt : i->jf; break;
        case 0x54: a &= i->k; break;
        case 0x06: return i->k;
        default: fail_msg("instruction %#x", i->code);
        }
    }
    fail_msg("ran off the end");
    return 0;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_I386
#else
#define ARCH AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_ARM
#endif

#define TRAP  SECCOMP_RET_USER_NOTIF
#define PASS  SECCOMP_RET_ALLOW
#define ERR(e) (SECCOMP_RET_ERRNO | (e))

static const struct filter_row {
    uint32_t flags;
    long nr;
    uint64_t args[3];
    uint32_t want;
} filter_rows[] = {
    /* reads never trap, whatever else they ask for */
    { GUARD_NAMES, SYS_openat, { 0, 0, O_RDONLY | O_CLOEXEC }, PASS },
    { GUARD_NAMES, SYS_openat, { 0, 0, O_RDWR | O_TRUNC }, PASS },
    { GUARD_NAMES, SYS_openat, { 0, 0, O_TMPFILE | O_RDWR }, PASS },
    { GUARD_NAMES, SYS_openat, { 0, 0, O_CREAT }, TRAP },
    { GUARD_NAMES, SYS_openat, { 0, 0, O_CREAT | 0xffffffff00000000ULL }, TRAP },
    { GUARD_NAMES, SYS_openat, { 0, 0, O_CREAT | O_PATH }, PASS },
    { GUARD_EXISTING, SYS_openat, { 0, 0, O_RDONLY | O_DIRECTORY }, PASS },
    { GUARD_EXISTING, SYS_openat, { 0, 0, O_WRONLY }, TRAP },
    { GUARD_EXISTING, SYS_openat, { 0, 0, O_RDONLY | O_TRUNC }, TRAP },
    { GUARD_EXISTING, SYS_openat, { 0, 0, O_TMPFILE | O_RDWR }, TRAP },
    { GUARD_CONNECT, SYS_openat, { 0, 0, O_CREAT }, PASS },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW }, PASS },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_WRONLY }, TRAP },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_RDWR | O_APPEND }, TRAP },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_RDONLY | O_TRUNC }, TRAP },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_PATH | O_RDWR | O_TRUNC }, PASS },
    { GUARD_WRITES, SYS_openat, { 0, 0, O_TMPFILE | O_RDWR }, PASS },
    { GUARD_WRITES, SYS_mkdirat, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, SYS_unlinkat, { 0, 0, 0 }, PASS },
    { GUARD_GIT, SYS_unlinkat, { 0, 0, 0 }, TRAP },
    { GUARD_REMOVES, SYS_unlinkat, { 0, 0, 0 }, TRAP },
    { GUARD_REMOVES, SYS_truncate, { 0, 0, 0 }, TRAP },
    { GUARD_REMOVES, SYS_mkdirat, { 0, 0, 0 }, TRAP },
    { GUARD_REMOVES, SYS_openat, { 0, 0, O_TMPFILE | O_RDWR }, PASS },
    { GUARD_WRITES, SYS_truncate, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, SYS_fchmod, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, SYS_fchownat, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, SYS_utimensat, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, SYS_fsetxattr, { 0, 0, 0 }, TRAP },
    { GUARD_WRITES, 452 /* fchmodat2 */, { 0, 0, 0 }, ERR(ENOSYS) },
    { GUARD_WRITES, 463 /* setxattrat */, { 0, 0, 0 }, ERR(ENOSYS) },
    { GUARD_NAMES, SYS_mkdirat, { 0, 0, 0 }, TRAP },
    { GUARD_EXISTING, SYS_mkdirat, { 0, 0, 0 }, TRAP },
    { GUARD_DEVICES, SYS_openat, { 0, 0, O_WRONLY }, TRAP },
    { GUARD_DEVICES, SYS_unlinkat, { 0, 0, 0 }, TRAP },
    { GUARD_CONNECT, SYS_mkdirat, { 0, 0, 0 }, PASS },
    { GUARD_NAMES, SYS_renameat2, { 0, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_linkat, { 0, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_unlinkat, { 0, 0, 0 }, PASS },
    { GUARD_EXISTING, SYS_unlinkat, { 0, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_fchmod, { 0, 0, 0 }, PASS },
    { GUARD_EXISTING, SYS_fchmod, { 0, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_connect, { 0, 0, 0 }, PASS },
    { GUARD_CONNECT, SYS_connect, { 0, 0, 0 }, TRAP },
    { GUARD_CONNECT, SYS_bind, { 0, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_bind, { 0, 0, 0 }, TRAP },
    { GUARD_CONNECT, SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 }, PASS },
    { GUARD_CONNECT, SYS_socket, { AF_UNIX, SOCK_SEQPACKET, 0 }, PASS },
    { GUARD_CONNECT, SYS_socket, { AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0 }, ERR(EPERM) },
    { GUARD_CONNECT, SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, PASS },
    { GUARD_CONNECT, SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0 }, TRAP },
    { GUARD_CONNECT, SYS_socketpair, { AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0 }, TRAP },
    { GUARD_CONNECT, SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0 }, PASS },
    { GUARD_NAMES, SYS_socket, { AF_UNIX, SOCK_DGRAM, 0 }, PASS },
    { GUARD_NAMES, 437 /* openat2 */, { 0, 0, 0 }, ERR(ENOSYS) },
    { GUARD_CONNECT, 437, { 0, 0, 0 }, PASS },
    { GUARD_CONNECT, 425 /* io_uring_setup */, { 0, 0, 0 }, ERR(ENOSYS) },
    { GUARD_NAMES, 446 /* landlock_restrict_self */, { 0, 0, 0 }, ERR(EOPNOTSUPP) },
    { GUARD_NAMES, SYS_chroot, { 0, 0, 0 }, ERR(EPERM) },
    { GUARD_NAMES, SYS_umask, { 022, 0, 0 }, TRAP },
    { GUARD_CONNECT, SYS_umask, { 022, 0, 0 }, PASS },
    { GUARD_NAMES, SYS_unshare, { CLONE_FS | CLONE_FILES, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_unshare, { CLONE_NEWUSER, 0, 0 }, TRAP },
    { GUARD_NAMES, SYS_unshare, { CLONE_FILES, 0, 0 }, PASS },
    { GUARD_CONNECT, SYS_unshare, { CLONE_FS, 0, 0 }, PASS },
    { GUARD_NAMES, SYS_prctl, { PR_SET_DUMPABLE, 0, 0 }, ERR(0) },
    { GUARD_NAMES, SYS_prctl, { PR_GET_DUMPABLE, 0, 0 }, PASS },
    { GUARD_NAMES, SYS_ioctl, { 0, 0x5401, 0 }, PASS },
    { GUARD_NAMES, SYS_ioctl, { 0, 0x40049409, 0 }, PASS },             /* FICLONE */
    { GUARD_NAMES, SYS_ioctl, { 0, 0x5000940e, 0 }, ERR(ENOTTY) },      /* BTRFS_IOC_SUBVOL_CREATE */
    { GUARD_NAMES, SYS_ioctl, { 0, 0x4018bc10, 0 }, ERR(ENOTTY) },      /* BCH_IOCTL_SUBVOLUME_CREATE */
    { GUARD_NAMES, SYS_ioctl, { 0, 0x40806685, 0 }, PASS },             /* FS_IOC_ENABLE_VERITY */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x40806685, 0 }, ERR(ENOTTY) },
    { GUARD_WRITES, SYS_ioctl, { 0, 0x40086602, 0 }, ERR(ENOTTY) },     /* FS_IOC_SETFLAGS */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x401c5820, 0 }, ERR(ENOTTY) },     /* FS_IOC_FSSETXATTR */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x80086601, 0 }, PASS },            /* FS_IOC_GETFLAGS */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x40049409, 0 }, PASS },
    { GUARD_WRITES, SYS_ioctl, { 0, 0x5000940e, 0 }, ERR(ENOTTY) },
    { GUARD_WRITES, SYS_ioctl, { 0, 0x4018bc10, 0 }, ERR(ENOTTY) },
    { GUARD_CONNECT, SYS_ioctl, { 0, 0x5000940e, 0 }, PASS },
    { GUARD_NAMES, SYS_ioctl, { 0, 0x40086602, 0 }, PASS },             /* FS_IOC_SETFLAGS */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x40086602, 0 }, ERR(ENOTTY) },
    { GUARD_WRITES, SYS_ioctl, { 0, 0x401c5820, 0 }, ERR(ENOTTY) },     /* FS_IOC_FSSETXATTR */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x80086601, 0 }, PASS },            /* FS_IOC_GETFLAGS */
    { GUARD_WRITES, SYS_ioctl, { 0, 0x5000940e, 0 }, ERR(ENOTTY) },
    { GUARD_WRITES, SYS_ioctl, { 0, 0x40049409, 0 }, PASS },
    { GUARD_FLAGS_ALL, SYS_read, { 0, 0, 0 }, PASS },
    { GUARD_FLAGS_ALL, SYS_execve, { 0, 0, 0 }, PASS },
    { GUARD_FLAGS_ALL, SYS_sendmsg, { 0, 0, 0 }, PASS },
};

static void
filter(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(filter_rows); i++) {
        const struct filter_row *row = &filter_rows[i];
        struct seccomp_data data = { .nr = (int)row->nr, .arch = ARCH };
        struct guard_filter f;
        uint32_t got;

        guard_filter_build(row->flags, &f);
        memcpy(data.args, row->args, sizeof(row->args));
        got = run(&f, &data);
        if (got != row->want)
            fail_msg("row %zu: %#x, want %#x", i, got, row->want);
        data.arch = OTHER_ARCH;
        assert_int_equal(run(&f, &data), ERR(ENOSYS));
#if defined(__x86_64__)
        data.arch = ARCH;
        data.nr |= 0x40000000;
        assert_int_equal(run(&f, &data), ERR(ENOSYS));
#endif
    }
}

/* Whatever the flags: it ends, within the ceiling, for every number. */
static void
filter_is_whole(void **state)
{
    (void)state;
    for (uint32_t flags = 1; flags <= GUARD_FLAGS_ALL; flags++) {
        struct guard_filter f;

        guard_filter_build(flags, &f);
        assert_true(f.n > 0 && f.n < GUARD_FILTER_MAX);
        for (int nr = 0; nr < 600; nr++) {
            struct seccomp_data data = { .nr = nr, .arch = ARCH };

            (void)run(&f, &data);
        }
    }
    {
        struct guard_filter none;

        guard_filter_build(0, &none);
        assert_int_equal(none.n, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(paths_are_refused),
        cmocka_unit_test(wire_is_refused),
        cmocka_unit_test(limits), cmocka_unit_test(names_are_shared), cmocka_unit_test(different_names_have_a_limit),
        cmocka_unit_test(filter),
        cmocka_unit_test(filter_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
