/* Limits of a sandbox that lives: which files are written, in which order, and undone when one of them cannot be (R26) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "wall/cgroup_live.h"

static char root[] = "/tmp/cloche-unit-cgroup-XXXXXX";
static int at = -1;

/* --- a tree that is none of the kernel's: what is written there stays ------------------------------------------------ */

static void
put(const char *file, const char *text)
{
    cleanup_close int fd = -1;

    (void)unlinkat(at, file, 0);
    (void)unlinkat(at, file, AT_REMOVEDIR);
    fd = openat(at, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && io_write_full(fd, text, strlen(text)) == 0);
}

/* One that cannot be read or written, and is there. */
static void
break_it(const char *file)
{
    assert_int_equal(unlinkat(at, file, 0), 0);
    assert_int_equal(mkdirat(at, file, 0700), 0);
}

/* Nothing shortens a file there: all values of a test have as many characters, or this looks at their beginning. */
static void
is(const char *file, const char *text)
{
    struct buf b = BUF_INIT(4096);

    assert_int_equal(io_read_file(at, file, &b), 0);
    if (b.n < strlen(text) || memcmp(b.p, text, strlen(text)) != 0)
        fail_msg("%s is %.*s, not %s", file, (int)b.n, (const char *)b.p, text);
    buf_free(&b);
}

static struct cgroup
v1(void)
{
    struct cgroup cg = { .kind = CGROUP_V1, .memory = true, .cpu = true, .pids = true, .dirs = { at, at, at } };

    put("memory.limit_in_bytes", "200000000\n");
    put("memory.memsw.limit_in_bytes", "200000000\n");
    put(CGROUP_V1_SOCKETS, "20000000\n");
    put("memory.usage_in_bytes", "123456789\n");
    put("cpu.cfs_quota_us", "50000\n");
    put("pids.max", "101\n");
    return cg;
}

static struct cgroup
v2(void)
{
    struct cgroup cg = { .kind = CGROUP_V2, .memory = true, .cpu = true, .pids = true, .dirs = { at, -1, -1 } };

    put("memory.max", "200000000\n");
    put("memory.high", "max\n");
    put("memory.current", "123456789\n");
    put("cpu.max", "50000 100000\n");
    put("pids.max", "101\n");
    return cg;
}

static const struct cgroup_limits was = { .memory = 200000000, .sockets = 20000000, .cpu_milli = 500, .pids = 101 };

/* --- the order ----------------------------------------------------------------------------------------------------- */

static void
order(void **state)
{
    static const struct cgroup_limits more = { .memory = 300000000, .sockets = 30000000, .cpu_milli = 700, .pids = 102 },
                                      less = { .memory = 100000000, .sockets = 10000000, .cpu_milli = 300, .pids = 50 }, none = { .pids = 0 };
    static const struct { enum cgroup_kind kind; const struct cgroup_limits *from, *to; const char *files; } rows[] = {
        /* memory and swap is never below memory */
        { CGROUP_V1, &was, &more, "cpu.cfs_quota_us=70000 pids.max=102 memory.memsw.limit_in_bytes=300000000 "
                                  "memory.kmem.tcp.limit_in_bytes=30000000 memory.limit_in_bytes=300000000 " },
        { CGROUP_V1, &was, &less, "memory.limit_in_bytes=100000000 memory.memsw.limit_in_bytes=100000000 "
                                  "memory.kmem.tcp.limit_in_bytes=10000000 "
                                  "cpu.cfs_quota_us=30000 pids.max=50 " },
        { CGROUP_V1, &was, &none, "cpu.cfs_quota_us=-1 pids.max=max memory.memsw.limit_in_bytes=-1 "
                                  "memory.kmem.tcp.limit_in_bytes=-1 memory.limit_in_bytes=-1 " },
        { CGROUP_V1, &none, &was, "memory.limit_in_bytes=200000000 memory.memsw.limit_in_bytes=200000000 "
                                  "memory.kmem.tcp.limit_in_bytes=20000000 "
                                  "cpu.cfs_quota_us=50000 pids.max=101 " },
        { CGROUP_V2, &was, &more, "cpu.max=70000 100000 pids.max=102 memory.max=300000000 " },
        /* pressed below it first, for the limit itself kills */
        { CGROUP_V2, &was, &less, "memory.high=100000000 memory.max=100000000 memory.high=max cpu.max=30000 100000 "
                                  "pids.max=50 " },
        { CGROUP_V2, &was, &none, "cpu.max=max 100000 pids.max=max memory.max=max " },
        { CGROUP_V2, &was, &was, "" }, { CGROUP_V1, &none, &none, "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cgroup cg = { .kind = rows[i].kind, .dirs = { 1, 2, 3 } };
        struct cgroup_step steps[CGROUP_STEPS];
        struct buf b = BUF_INIT(4096);
        size_t n = cgroup_steps(&cg, rows[i].from, rows[i].to, steps);
        for (size_t j = 0; j < n; j++) {
            buf_printf(&b, "%s=%s ", steps[j].file, steps[j].text);
            assert_int_equal(steps[j].dir, rows[i].kind == CGROUP_V2 || steps[j].file[0] == 'm' ? 1
                                           : steps[j].file[0] == 'c' ? 2 : 3);
        }
        assert_true(n <= CGROUP_STEPS && buf_nul(&b) == 0);
        assert_string_equal((const char *)b.p, rows[i].files);
        buf_free(&b);
    }
}

/* --- writing and undoing --------------------------------------------------------------------------------------------- */

static void
all_are_written(void **state)
{
    const struct cgroup_limits to = { .memory = 150000000, .sockets = 15000000, .cpu_milli = 700, .pids = 999 };
    struct cgroup cg = v1();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(cgroup_change(&cg, &was, &to, &err), 0);
    is("memory.limit_in_bytes", "150000000");
    is("memory.memsw.limit_in_bytes", "150000000");
    is(CGROUP_V1_SOCKETS, "15000000");
    is("cpu.cfs_quota_us", "70000");
    is("pids.max", "999");
    cg = v2();
    assert_int_equal(cgroup_change(&cg, &was, &to, &err), 0);
    is("memory.max", "150000000");
    is("memory.high", "max");
    is("cpu.max", "70000 100000");
    is("pids.max", "999");
}

/* Whichever of them cannot be written, the others are as they were. */
static void
or_none_is(void **state)
{
    static const char *const old[] = { "memory.limit_in_bytes", CGROUP_V1_SOCKETS, "cpu.cfs_quota_us", "pids.max" },
                      *const new[] = { "memory.max", "memory.high", "cpu.max", "pids.max" },
                      *const old_text[] = { "200000000", "20000000", "50000", "101" },
                      *const new_text[] = { "200000000", "max", "50000 100000", "101" };
    static const struct cgroup_limits tos[] = { { .memory = 150000000, .sockets = 15000000, .cpu_milli = 700, .pids = 999 },
                                                { .memory = 250000000, .sockets = 25000000, .cpu_milli = 300, .pids = 555 } };

    (void)state;
    for (size_t i = 0; i < 16; i++) {
        size_t broken = i % 4;
        bool one = i / 4 % 2 == 0;
        const char *const *files = one ? old : new, *const *texts = one ? old_text : new_text;
        struct cgroup cg = one ? v1() : v2();
        struct err err = ERR_INIT;
        if (files == new && i / 8 == 1 && broken == 1)
            continue;       /* raising needs no memory.high */
        break_it(files[broken]);
        assert_int_equal(cgroup_change(&cg, &was, &tos[i / 8], &err), -1);
        assert_string_equal(err.code, "wall.cgroup");
        assert_non_null(strstr(err.msg, files[broken]));
        for (size_t j = 0; j < 4; j++)
            if (j != broken)
                is(files[j], texts[j]);
    }
}

static void
without_swap_accounting(void **state)
{
    const struct cgroup_limits to = { .memory = 150000000, .cpu_milli = 500, .pids = 101 };
    struct cgroup cg = v1();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(unlinkat(at, "memory.memsw.limit_in_bytes", 0), 0);
    assert_int_equal(cgroup_change(&cg, &was, &to, &err), 0);
    is("memory.limit_in_bytes", "150000000");
    assert_int_equal(faccessat(at, "memory.memsw.limit_in_bytes", F_OK, 0), -1);
}

/* v2 would kill for it; the processor's limit is not changed either. */
static void
memory_in_use(void **state)
{
    const struct cgroup_limits to = { .memory = 100000000, .cpu_milli = 700, .pids = 101 };
    struct cgroup cg = v2();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(cgroup_change(&cg, &was, &to, &err), -1);
    assert_string_equal(err.code, "limits.in-use");
    assert_non_null(strstr(err.msg, "123456789"));
    is("memory.max", "200000000");
    is("memory.high", "max");
    is("cpu.max", "50000 100000");
}

/* What no cgroup of ours holds is refused before anything is written, and the rest with it. */
static void
not_held(void **state)
{
    static const struct { enum cgroup_kind kind; bool memory, cpu, pids; const char *what; } rows[] = {
        { CGROUP_NONE, false, false, false, "memory" }, { CGROUP_V1, true, true, false, "process" },
        { CGROUP_V1, true, false, true, "processor" }, { CGROUP_V2, false, true, true, "memory" },
        { CGROUP_SCOPE, true, true, true, "systemd" },
    };
    const struct cgroup_limits to = { .memory = 150000000, .cpu_milli = 700, .pids = 999 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cgroup cg = rows[i].kind == CGROUP_V1 ? v1() : v2();
        struct err err = ERR_INIT;
        cg.kind = rows[i].kind;
        cg.memory = rows[i].memory;
        cg.cpu = rows[i].cpu;
        cg.pids = rows[i].pids;
        snprintf(cg.why_not, sizeof(cg.why_not), "because");
        assert_int_equal(cgroup_change(&cg, &was, &to, &err), -1);
        assert_string_equal(err.code, "limits.no-cgroup");
        assert_non_null(strstr(err.msg, rows[i].what));
        assert_non_null(strstr(err.msg, rows[i].kind == CGROUP_SCOPE ? "systemd" : "because"));
        is(rows[i].kind == CGROUP_V1 ? "memory.limit_in_bytes" : "memory.max", "200000000");
        assert_int_equal(cgroup_change(&cg, &was, &was, &err), 0);      /* nothing is asked for */
    }
}

/* --- pausing --- */

#define BUSY 12

/* A cgroup v2 of the kernel's with BUSY processes that count; a negative number: none can be had here. */
static int
real_cgroup(char path[64], atomic_ulong *counter, pid_t pids[BUSY])
{
    static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    struct statfs fs;

    path[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
        if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
            snprintf(path, 64, "%s/cloche-unit-%d", mounts[i], getpid());
    if (path[0] == '\0' || mkdir(path, 0755) < 0)
        return -1;
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < BUSY; i++)
        if ((pids[i] = fork()) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (io_write_file(dir, "cgroup.procs", "0") < 0)
                _exit(1);
            for (;;)
                atomic_fetch_add(counter, 1);
        }
    return dir;
}

/* Those that wait for a processor are not frozen when the file is written. */
static void
nothing_runs_when_it_is_frozen(void **state)
{
    atomic_ulong *counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[BUSY];
    char path[64];
    struct cgroup cg = { .kind = CGROUP_V2 };
    struct err err = ERR_INIT;

    (void)state;
    cg.dirs[0] = real_cgroup(path, counter, pids);
    if (cg.dirs[0] < 0)
        skip();
    for (int round = 0; round < 20; round++) {
        unsigned long began = atomic_load(counter);
        while (atomic_load(counter) < began + 1000)
            usleep(100);
        assert_int_equal(cgroup_freeze(&cg, true, &err), 0);
        unsigned long at_rest = atomic_load(counter);
        usleep(3000);
        assert_int_equal(atomic_load(counter), at_rest);
        assert_int_equal(cgroup_freeze(&cg, false, &err), 0);
    }
    for (size_t i = 0; i < BUSY; i++)
        assert_true(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
    close(cg.dirs[0]);
    assert_int_equal(rmdir(path), 0);
    munmap(counter, sizeof(*counter));
}

/* What does not come to rest goes on, and whoever asked stops it otherwise. */
static void
what_cannot_be_frozen(void **state)
{
    struct cgroup cg = { .kind = CGROUP_V2, .dirs = { at } };
    struct err err = ERR_INIT;

    (void)state;
    put("cgroup.freeze", "0\n");
    put("cgroup.events", "populated 1\nfrozen 0\n");
    assert_int_equal(cgroup_freeze(&cg, true, &err), -1);
    assert_string_equal(err.code, "wall.cgroup.freeze");
    is("cgroup.freeze", "0");
    put("cgroup.events", "populated 1\nfrozen 1\n");
    assert_int_equal(cgroup_freeze(&cg, true, &err), 0);
    is("cgroup.freeze", "1");
    cg.kind = CGROUP_V1;
    assert_int_equal(cgroup_freeze(&cg, true, &err), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(all_are_written),
        cmocka_unit_test(or_none_is),
        cmocka_unit_test(without_swap_accounting),
        cmocka_unit_test(memory_in_use),
        cmocka_unit_test(not_held),
        cmocka_unit_test(nothing_runs_when_it_is_frozen),
        cmocka_unit_test(what_cannot_be_frozen),
    };
    static const char *const files[] = {
        "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.usage_in_bytes", "cpu.cfs_quota_us", "pids.max",
        CGROUP_V1_SOCKETS, "memory.max", "memory.high", "memory.current", "cpu.max",
        "cgroup.freeze", "cgroup.events",
    };
    int failed;

    if (mkdtemp(root) == NULL || (at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (unlinkat(at, files[i], 0) < 0)
            (void)unlinkat(at, files[i], AT_REMOVEDIR);
    close(at);
    (void)rmdir(root);
    return failed;
}
