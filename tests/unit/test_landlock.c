/* tests/unit/test_landlock.c: what a Landlock domain of ours lets through, tried for real in child processes
 *
 * Each attack is first done without the domain, in the same child: a refusal afterwards is then the domain's work.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "wall/landlock.h"

static char top[64];                    /* a fresh folder with open/, closed/, tool */
static struct landlock_support support;

/* In a child: a failed check prints itself and ends the child with 1. */
#define CHECK(expr)                                                                       \
    do {                                                                                  \
        if (!(expr)) {                                                                    \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #expr, errno);  \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (0)

#define REFUSED(expr, why) CHECK((expr) < 0 && errno == (why))

static void
in_child(void (*body)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const char *
at(const char *name)
{
    static char path[8][128];
    static unsigned turn;

    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, name);
    return path[turn];
}

static void
need(unsigned features)
{
    if ((support.features & features) != features)
        skip();
}

static void
restrict_or_exit(const struct landlock_plan *plan)
{
    struct err err = ERR_INIT;

    if (landlock_restrict(plan, &support, &err) < 0) {
        fprintf(stderr, "landlock_restrict: %s [%s]\n", err.msg, err.code);
        _exit(1);
    }
}

static int
create(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
    return fd;
}

static int
open_close(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd;
}

/* the exit code of @path run as a program, 200 when it cannot be executed */
static int
run(const char *path)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        execl(path, path, (char *)NULL);
        _exit(200);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void
body_classes(void)
{
    const struct landlock_rule rules[] = {
        { .fd = -1, .path = "/usr", .access = LANDLOCK_READ_EXEC },
        { .fd = -1, .path = "/lib64", .access = LANDLOCK_READ_EXEC, .optional = true },
        { .fd = -1, .path = "/lib", .access = LANDLOCK_READ_EXEC, .optional = true },
        { .fd = -1, .path = at("read"), .access = LANDLOCK_READ },
        { .fd = -1, .path = at("exec"), .access = LANDLOCK_READ_EXEC },
        { .fd = -1, .path = at("write"), .access = LANDLOCK_WRITE },
        { .fd = -1, .path = at("full"), .access = LANDLOCK_FULL },
    };
    const struct landlock_plan plan = { .rules = rules, .n_rules = 7, .restrict_files = true,
                                        .required = LANDLOCK_HAS_FILES };
    int before = open(at("closed/secret"), O_RDWR | O_CLOEXEC);
    char c;

    CHECK(before >= 0);
    CHECK(open_close("/etc/passwd", O_RDONLY) >= 0);
    CHECK(create(at("closed/new")) >= 0 && unlink(at("closed/new")) == 0);
    CHECK(run(at("write/tool")) == 7);
    restrict_or_exit(&plan);

    REFUSED(open_close("/etc/passwd", O_RDONLY), EACCES);
    REFUSED(open_close(at("closed/secret"), O_RDONLY), EACCES);
    REFUSED(open_close(at("read/way-out"), O_RDONLY), EACCES);      /* a symlink to closed/secret */
    REFUSED(create(at("closed/new")), EACCES);
    REFUSED(open_close(at("closed"), O_RDONLY | O_DIRECTORY), EACCES);
    CHECK(read(before, &c, 1) == 1);            /* descriptors that were open keep working */

    CHECK(open_close(at("read/file"), O_RDONLY) >= 0);
    REFUSED(open_close(at("read/file"), O_WRONLY), EACCES);
    REFUSED(create(at("read/new")), EACCES);
    REFUSED(mkdir(at("read/dir"), 0755), EACCES);
    REFUSED(unlink(at("read/file")), EACCES);
    CHECK(run(at("read/tool")) == 200);
    CHECK(run(at("exec/tool")) == 7);
    REFUSED(open_close(at("exec/file"), O_WRONLY), EACCES);

    CHECK(create(at("write/new")) >= 0 && rename(at("write/new"), at("write/newer")) == 0);
    CHECK(mkdir(at("write/dir"), 0755) == 0 && rmdir(at("write/dir")) == 0);
    CHECK(symlink("x", at("write/link")) == 0 && mkfifo(at("write/fifo"), 0600) == 0);
    CHECK(run(at("write/tool")) == 200);
    REFUSED(mknod(at("write/null"), S_IFCHR | 0666, (1 << 8) | 3), EACCES);
    CHECK(link(at("read/file"), at("write/hard")) < 0);             /* would make it writable */
    CHECK(rename(at("write/newer"), at("read/newer")) < 0);
    CHECK(run(at("full/tool")) == 7 && create(at("full/new")) >= 0);
}

static void
test_classes(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_FILES);
    in_child(body_classes);
}

static void
body_truncate(void)
{
    const struct landlock_rule rule = { .fd = -1, .path = top, .access = LANDLOCK_READ };
    const struct landlock_plan plan = { .rules = &rule, .n_rules = 1, .restrict_files = true,
                                        .required = LANDLOCK_HAS_TRUNCATE };

    CHECK(truncate(at("full/file"), 3) == 0);
    restrict_or_exit(&plan);
    REFUSED(truncate(at("full/file"), 2), EACCES);
}

static void
test_truncate_needs_write(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_TRUNCATE);
    in_child(body_truncate);
}

/* a rule on one file, given as a descriptor: the rights that only folders have are left out */
static void
body_file_rule(void)
{
    const struct landlock_rule rule = { .fd = open(at("full/file"), O_PATH | O_CLOEXEC), .access = LANDLOCK_FULL };
    const struct landlock_plan plan = { .rules = &rule, .n_rules = 1, .restrict_files = true };

    CHECK(rule.fd >= 0);
    restrict_or_exit(&plan);
    CHECK(open_close(at("full/file"), O_RDWR) >= 0);
    REFUSED(open_close(at("full/tool"), O_RDONLY), EACCES);
}

static void
test_rule_on_a_file(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_FILES);
    in_child(body_file_rule);
}

static int
abstract_socket(const char *name, bool listening)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(sa.sun_path + 1, name, strlen(name));
    if (fd >= 0 && listening && (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, 8) < 0))
        return -1;
    if (fd >= 0 && !listening && connect(fd, (struct sockaddr *)&sa, len) < 0)
        return -1;
    return fd;
}

static void
body_abstract(void)
{
    const struct landlock_plan plan = { .scope_abstract = true, .required = LANDLOCK_HAS_ABSTRACT };
    char outside[64], inside[64];

    snprintf(outside, sizeof(outside), "cloche-test-out-%d", (int)getpid());
    snprintf(inside, sizeof(inside), "cloche-test-in-%d", (int)getpid());
    CHECK(abstract_socket(outside, true) >= 0);
    CHECK(abstract_socket(outside, false) >= 0);
    restrict_or_exit(&plan);
    REFUSED(abstract_socket(outside, false), EPERM);
    CHECK(abstract_socket(inside, true) >= 0);
    CHECK(abstract_socket(inside, false) >= 0);
    CHECK(open_close("/etc/passwd", O_RDONLY) >= 0);    /* nothing else was restricted */
}

static void
test_abstract_sockets_outside(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_ABSTRACT);
    in_child(body_abstract);
}

static void
body_signal(void)
{
    const struct landlock_plan plan = { .scope_signal = true, .required = LANDLOCK_HAS_SIGNAL };
    pid_t before, child;

    before = fork();
    if (before == 0) {
        pause();
        _exit(0);
    }
    CHECK(kill(before, 0) == 0 && kill(getppid(), 0) == 0);
    restrict_or_exit(&plan);
    REFUSED(kill(getppid(), 0), EPERM);
    REFUSED(kill(before, SIGKILL), EPERM);      /* made before: outside, although our child */
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

/* The process that body_signal may no longer end is ended here, outside the domain: it is in the child's group. */
static void
test_signals_outside(void **state)
{
    int status;
    pid_t child;
    (void)state;

    need(LANDLOCK_HAS_SIGNAL);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        body_signal();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    kill(-child, SIGKILL);
    assert_int_equal(status, 0);
}

static int
tcp(uint16_t port, bool binding)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (binding)
        return bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    return connect(fd, (struct sockaddr *)&sa, sizeof(sa));
}

static void
body_tcp(void)
{
    const struct landlock_tcp_port port = { .port = 9, .connect = true };
    const struct landlock_plan plan = { .restrict_tcp = true, .ports = &port, .n_ports = 1,
                                        .required = LANDLOCK_HAS_TCP };

    CHECK(tcp(0, true) == 0);
    CHECK(tcp(10, false) == 0 || errno == ECONNREFUSED);
    restrict_or_exit(&plan);
    REFUSED(tcp(0, true), EACCES);
    REFUSED(tcp(10, false), EACCES);
    CHECK(tcp(9, false) == 0 || errno == ECONNREFUSED);
}

static void
test_tcp(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_TCP);
    in_child(body_tcp);
}

static void
body_ioctl(void)
{
    const struct landlock_rule rules[] = {
        { .fd = -1, .path = "/dev", .access = LANDLOCK_READ },
        { .fd = -1, .path = "/dev/null", .access = LANDLOCK_DEVICE },
    };
    const struct landlock_plan plan = { .rules = rules, .n_rules = 2, .restrict_files = true, .ioctl_dev = true,
                                        .required = LANDLOCK_HAS_IOCTL_DEV };
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    int bits;

    CHECK(fd >= 0 && ioctl(fd, 0x80045200, &bits) == 0);        /* RNDGETENTCNT */
    restrict_or_exit(&plan);
    CHECK(ioctl(fd, 0x80045200, &bits) == 0);
    fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    REFUSED(ioctl(fd, 0x80045200, &bits), EACCES);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    REFUSED(ioctl(fd, 0x80045200, &bits), ENOTTY);              /* reaches the device, which has none */
}

static void
test_ioctl_on_devices(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_IOCTL_DEV);
    in_child(body_ioctl);
}

static void
body_bad_plans(void)
{
    struct landlock_rule rule = { .fd = -1, .path = "/nonexistent/x", .access = LANDLOCK_READ };
    struct landlock_plan plan = { .rules = &rule, .n_rules = 1, .restrict_files = true };
    struct err err = ERR_INIT;

    CHECK(landlock_restrict(&plan, NULL, &err) == -1 && strcmp(err.code, "wall.landlock.rule") == 0);
    CHECK(strstr(err.msg, "/nonexistent/x") != NULL);
    rule.path = NULL;
    CHECK(landlock_restrict(&plan, NULL, &err) == -1 && strcmp(err.code, "wall.landlock.plan") == 0);
    rule = (struct landlock_rule){ .fd = -1, .path = "/", .access = (enum landlock_access)9 };
    CHECK(landlock_restrict(&plan, NULL, &err) == -1 && strcmp(err.code, "wall.landlock.plan") == 0);
    plan.n_rules = LANDLOCK_RULES_MAX + 1;
    CHECK(landlock_restrict(&plan, NULL, &err) == -1 && err.kind == ERR_LIMIT);
    plan = (struct landlock_plan){ .required = 1u << 20 };
    CHECK(landlock_restrict(&plan, NULL, &err) == -1 && strcmp(err.code, "wall.landlock.plan") == 0);
    CHECK(open_close("/etc/passwd", O_RDONLY) >= 0);            /* all or nothing */

    rule = (struct landlock_rule){ .fd = -1, .path = "/nonexistent/x", .access = LANDLOCK_READ, .optional = true };
    plan = (struct landlock_plan){ .rules = &rule, .n_rules = 1, .restrict_files = true,
                                   .log = (support.features & LANDLOCK_HAS_LOG) != 0 };
    CHECK(landlock_restrict(&plan, NULL, &err) == 0);
    REFUSED(open_close("/etc/passwd", O_RDONLY), EACCES);
}

static void
test_bad_plans_restrict_nothing(void **state)
{
    (void)state;
    need(LANDLOCK_HAS_FILES);
    in_child(body_bad_plans);
}

/* Older kernels, by what they would say. */
static void
test_missing_features_are_refused(void **state)
{
    const struct landlock_support old = { .abi = 2, .features = LANDLOCK_HAS_FILES | LANDLOCK_HAS_REFER };
    const struct landlock_support none = { .abi = 0, .why_not = "disabled at boot" };
    const struct landlock_plan plan = { .restrict_files = true, .scope_signal = true,
                                        .required = LANDLOCK_HAS_FILES | LANDLOCK_HAS_SIGNAL };
    const struct landlock_plan lenient = { .scope_signal = true };
    struct err err = ERR_INIT;
    pid_t outsider;
    (void)state;

    assert_int_equal(landlock_restrict(&plan, &old, &err), -1);
    assert_int_equal(err.kind, ERR_UNSUPPORTED);
    assert_string_equal(err.code, "wall.landlock.unsupported");
    assert_non_null(strstr(err.msg, "signals"));
    assert_non_null(strstr(err.hint, "6.12"));
    assert_int_equal(landlock_restrict(&plan, &none, &err), -1);
    assert_non_null(strstr(err.msg, "disabled at boot"));
    assert_non_null(strstr(err.hint, "5.13"));
    outsider = fork();
    if (outsider == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(landlock_restrict(&lenient, &old, &err), 0);   /* nothing that kernel could enforce */
    assert_int_equal(kill(outsider, SIGKILL), 0);
    assert_int_equal(waitpid(outsider, NULL, 0), outsider);
}

static void
test_features_there_or_missing(void **state)
{
    struct landlock_support s;
    (void)state;

    landlock_probe(&s);
    assert_int_equal(s.features & s.missing, 0);
    assert_int_equal(s.features | s.missing, LANDLOCK_ALL_FEATURES);
    assert_true((s.abi == 0) == (s.why_not != NULL));
    assert_true((s.abi >= 3) == ((s.features & LANDLOCK_HAS_TRUNCATE) != 0));
    assert_string_equal(landlock_feature_name(LANDLOCK_HAS_TCP), "tcp");
    assert_string_equal(landlock_feature_kernel(LANDLOCK_HAS_TCP), "Linux 6.7");
}

static int
make_tree(void **state)
{
    static const char *const dirs[] = { "read", "exec", "write", "full", "closed" };
    (void)state;

    landlock_probe(&support);
    snprintf(top, sizeof(top), "/tmp/cloche-landlock-XXXXXX");
    if (mkdtemp(top) == NULL)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        cleanup_close int dir = -1, tool = -1, file = -1;

        if (mkdir(at(dirs[i]), 0755) < 0)
            return -1;
        dir = open(at(dirs[i]), O_PATH | O_CLOEXEC);
        tool = openat(dir, "tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        file = openat(dir, i == 4 ? "secret" : "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (tool < 0 || io_write_full(tool, "#!/bin/sh\nexit 7\n", 17) < 0 || io_write_full(file, "12345", 5) < 0)
            return -1;
    }
    return symlink(at("closed/secret"), at("read/way-out"));
}

static int
remove_tree(void **state)
{
    int status;
    pid_t child = fork();
    (void)state;

    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", "--", top, (char *)NULL);
        _exit(1);
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_truncate_needs_write),
        cmocka_unit_test(test_rule_on_a_file),
        cmocka_unit_test(test_abstract_sockets_outside),
        cmocka_unit_test(test_signals_outside),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_ioctl_on_devices),
        cmocka_unit_test(test_bad_plans_restrict_nothing),
        cmocka_unit_test(test_missing_features_are_refused),
        cmocka_unit_test(test_features_there_or_missing),
    };

    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
