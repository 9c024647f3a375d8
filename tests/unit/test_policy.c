/* policy: presets, flags, layering, combinations that cannot hold (R03, R04, R40, R43, R65) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "policy_fixture.h"

#define MIB ((uint64_t)1 << 20)

/* R65: the source's own numbers for `code`, and what each mode means for the others (R40). */
static void
preset_limits(void **state)
{
    static const struct {
        enum policy_mode mode;
        enum policy_verb verb;
        uint64_t memory, cpu_milli, pids, disk, time_ms, output, nofile;
    } rows[] = {
        { MODE_STANDARD, VERB_CODE, 512 * MIB, 500, 256, 1024 * MIB, 30000, MIB, 1024 },
        { MODE_LIGHT, VERB_CODE, 512 * MIB, 500, 256, 1024 * MIB, 30000, MIB, 1024 },
        { MODE_STANDARD, VERB_RUN, 4096 * MIB, 0, 4096, 1024 * MIB, 0, 0, 65536 },
        { MODE_LIGHT, VERB_SHELL, 4096 * MIB, 0, 4096, 1024 * MIB, 0, 0, 65536 },
        { MODE_MAX, VERB_RUN, 512 * MIB, 500, 64, 256 * MIB, 30000, MIB, 256 },
        { MODE_MAX, VERB_CODE, 512 * MIB, 500, 64, 256 * MIB, 30000, MIB, 256 },
        { MODE_OFF, VERB_RUN, 0, 0, 0, 0, 0, 0, 0 },
        { MODE_OFF, VERB_CODE, 0, 0, 0, 0, 30000, MIB, 0 },
        { MODE_STANDARD, VERB_SRT, 0, 0, 0, 0, 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        struct policy p;
        assert_int_equal(make_policy(&p, rows[i].mode, rows[i].verb, NULL, POLICY_AUTO, NULL, &err), 0);
        assert_int_equal(p.limits.memory.v, rows[i].memory);
        assert_int_equal(p.limits.cpu_milli.v, rows[i].cpu_milli);
        assert_int_equal(p.limits.pids.v, rows[i].pids);
        assert_int_equal(p.limits.disk.v, rows[i].disk);
        assert_int_equal(p.limits.time_ms.v, rows[i].time_ms);
        assert_int_equal(p.limits.output.v, rows[i].output);
        assert_int_equal(p.limits.nofile.v, rows[i].nofile);
        assert_int_equal(p.limits.grace_ms.v, 2000);
        assert_int_equal(p.limits.memory.from.kind, ORIGIN_MODE);
        policy_free(&p);
    }
}

/* R40: what the modes differ in besides limits; R03: the lists that are there without asking. */
static void
preset_walls(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, NULL, &err), 0);
    assert_int_equal(p.view.v, VIEW_PRIVATE);
    assert_int_equal(p.network.v, NETWORK_NONE);
    assert_int_equal(p.fallback.v, FALLBACK_REFUSE);
    assert_int_equal(p.audit.v, RECORD_TRY);
    assert_int_equal(p.user.uid, 1000);
    assert_false(p.env_inherit.v || p.read_only_root.v || p.all_unix_sockets.v || p.nested_userns.v);
    assert_string_equal(p.workdir.p, "/workspace");
    assert_true(list_has(&p.credentials, "/home/u/.ssh") && list_has(&p.credentials, "/home/u/.aws"));
    assert_true(list_has(&p.credentials, "/home/u/.bash_history") && list_has(&p.credentials, "/home/u/.mozilla"));
    assert_true(list_has(&p.protect, ".git/hooks") && list_has(&p.protect, ".git/config"));
    assert_true(list_has(&p.env_deny, "LD_PRELOAD"));
    policy_free(&p);

    assert_int_equal(make_policy(&p, MODE_MAX, VERB_RUN, NULL, POLICY_AUTO, NULL, &err), 0);
    assert_true(p.read_only_root.v);
    assert_false(p.ptrace.v);
    policy_free(&p);

    assert_int_equal(make_policy(&p, MODE_LIGHT, VERB_RUN, NULL, POLICY_AUTO, NULL, &err), 0);
    assert_int_equal(p.view.v, VIEW_HOST);
    assert_string_equal(p.workdir.p, "/home/u/app");
    policy_free(&p);

    assert_int_equal(make_policy(&p, MODE_OFF, VERB_RUN, NULL, POLICY_AUTO, NULL, &err), 0);
    assert_int_equal(p.network.v, NETWORK_HOST);
    assert_true(p.env_inherit.v);
    policy_free(&p);
}

/* The policy knows of no engine itself. */
static void
engines_are_those_of_the_program(void **state)
{
    static const char *const other[] = { "--engine", "other", NULL }, *const automatic[] = { "--engine", "auto", NULL };
    static const struct policy_host none = { .home = "/home/u", .cwd = "/home/u/app" };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, other, &err), 0);
    assert_string_equal(p.engine.p, "other");
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, automatic, &err), 0);
    policy_free(&p);
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &none, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--engine", "native", &none, &err), -1);
    assert_string_equal(err.code, "policy.engine.unknown");
    assert_string_equal(err.hint, "use one of: auto");
    policy_free(&p);
}

static void
flag_values(void **state)
{
    static const char *const flags[] = {
        "--memory", "1536m", "--cpus", "0.25", "--pids", "7", "--disk", "2g", "--timeout", "500ms", "--grace", "none",
        "--output", "10k", "--nofile", "64", "--workspace", "../lib:cow", "--workdir", "sub", "--bind", "data",
        "--bind", "~/in:/mnt/in:rw", "--env", "A=1=2", "--env", "B", "--env", "A=3", "--user", "1234:99",
        "--hostname", "box-1", "--deny-read", "./x/**", "--deny-write", "**/*.lock", "--allow-unix-socket",
        "/run/docker.sock", "--allow-git-config", "--engine", "native", "--fallback", "warn", "--network", "host", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    if (make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(p.limits.memory.v, 1536 * MIB);
    assert_int_equal(p.limits.cpu_milli.v, 250);
    assert_int_equal(p.limits.pids.v, 7);
    assert_int_equal(p.limits.time_ms.v, 500);
    assert_int_equal(p.limits.grace_ms.v, 0);
    assert_int_equal(p.limits.output.v, 10240);
    assert_int_equal(p.limits.nofile.v, 64);
    assert_int_equal(p.limits.memory.from.kind, ORIGIN_FLAG);
    assert_string_equal(p.limits.memory.from.name, "--memory");
    assert_int_equal(p.workspace.kind, WORKSPACE_COW);
    assert_string_equal(p.workspace.dir, "/home/u/lib");
    assert_string_equal(p.workdir.p, "/workspace/sub");
    assert_int_equal(p.n_binds, 2);
    assert_string_equal(p.binds[0].source, "/home/u/app/data");
    assert_string_equal(p.binds[0].dest, "/home/u/app/data");
    assert_false(p.binds[0].writable);
    assert_string_equal(p.binds[1].source, "/home/u/in");
    assert_string_equal(p.binds[1].dest, "/mnt/in");
    assert_true(p.binds[1].writable);
    assert_int_equal(p.n_env, 2);
    assert_string_equal(p.env[0].value, "3");
    assert_null(p.env[1].value);
    assert_int_equal(p.user.uid, 1234);
    assert_int_equal(p.user.gid, 99);
    assert_string_equal(p.deny_read.v[0].value, "/home/u/app/x");
    assert_true(p.deny_read.v[0].literal);
    assert_string_equal(p.deny_write.v[0].value, "/home/u/app/**/*.lock");
    assert_false(p.deny_write.v[0].literal);
    assert_false(list_has(&p.protect, ".git/config"));
    assert_true(list_has(&p.protect, ".git/hooks"));
    policy_free(&p);
}

static void
flag_table_is_complete(void **state)
{
    (void)state;
    for (const struct policy_flag *flag = policy_flag_next(NULL); flag != NULL; flag = policy_flag_next(flag)) {
        struct err err = ERR_INIT;
        struct policy p;
        const char *name = flag->name;
        assert_ptr_equal(policy_flag_lookup(name), flag);
        assert_true(strlen(flag->help) > 0);
        if (strcmp(name, "--settings") == 0)
            continue;
        assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
        /* every row reaches a setter: an empty value is refused by the setter, never "unknown flag" */
        if (flag->value != NULL) {
            assert_int_equal(policy_apply_flag(&p, name, "", &caller, &err), -1);
            assert_string_not_equal(err.code, "policy.flag.unknown");
            assert_int_equal(policy_apply_flag(&p, name, NULL, &caller, &err), -1);
            assert_string_equal(err.code, "policy.flag.value");
        } else {
            assert_int_equal(policy_apply_flag(&p, name, NULL, &caller, &err), 0);
            assert_int_equal(policy_apply_flag(&p, name, "x", &caller, &err), -1);
            assert_string_equal(err.code, "policy.flag.no-value");
        }
        policy_free(&p);
    }
    assert_null(policy_flag_lookup("--nope"));
}

/* One refusal per row: the code is stable, and the message names the flag. */
static void
refusals(void **state)
{
    static const struct { const char *code; const char *flags[8]; } rows[] = {
        { "policy.limit.syntax", { "--memory", "lots" } },
        { "policy.limit.syntax", { "--memory", "" } },
        { "policy.limit.syntax", { "--memory", "-1" } },
        { "policy.limit.syntax", { "--memory", "0m" } },
        { "policy.limit.syntax", { "--memory", "99999999999g" } },
        { "policy.limit.too-small", { "--memory", "512" } },
        { "policy.limit.syntax", { "--cpus", "0.0" } },
        { "policy.limit.too-small", { "--cpus", "0.001" } },
        { "policy.limit.syntax", { "--pids", "1.5" } },
        { "policy.limit.too-small", { "--pids", "1" } },
        { "policy.limit.syntax", { "--timeout", "5 m" } },
        { "policy.limit.too-small", { "--nofile", "3" } },
        { "policy.mode", { "--mode", "strict" } },
        { "policy.view", { "--view", "all" } },
        { "policy.engine.unknown", { "--engine", "magic" } },
        { "policy.engine.not-yet", { "--engine", "apple" } },
        { "policy.fallback", { "--fallback", "maybe" } },
        { "policy.audit", { "--audit", "maybe" } },
        { "policy.network.mode", { "--network", "bridge" } },
        { "policy.network.light", { "--mode", "light", "--network", "allowlist" } },
        { "policy.network.light", { "--mode", "light", "--allow-domain", "example.org" } },
        { "policy.network.closed", { "--deny-domain", "example.org" } },
        { "policy.network.closed", { "--network", "none", "--allow-domain", "example.org" } },
        { "policy.network.both", { "--network", "host", "--deny-domain", "example.org" } },
        { "policy.network.both", { "--network", "host", "--allow-domain", "example.org" } },
        { "policy.network.extra-ca", { "--extra-ca", "/etc/ca.pem" } },
        { "policy.network.extra-ca", { "--network", "host", "--extra-ca", "/etc/ca.pem" } },
        { "policy.host.too-wide", { "--allow-domain", "*.com" } },
        { "policy.host.any", { "--allow-domain", "*" } },
        { "policy.host.any", { "--deny-domain", "*" } },
        { "policy.host.url", { "--allow-domain", "https://example.org" } },
        { "policy.user.root", { "--user", "0:1000" } },
        { "policy.user.root", { "--user", "1000:0" } },
        { "policy.user.syntax", { "--user", "root" } },
        { "policy.user.syntax", { "--user", "1:2:3" } },
        { "policy.hostname", { "--hostname", "-x" } },
        { "policy.hostname", { "--hostname", "a..b" } },
        { "policy.path", { "--deny-read", "/a/[b" } },
        { "policy.path", { "--deny-read", "/a*/../b" } },
        { "policy.path", { "--deny-read", "../../../../etc" } },
        { "policy.path.user", { "--deny-read", "~root/x" } },
        { "policy.bind.syntax", { "--bind", "a:/b:ro:x" } },
        { "policy.bind.syntax", { "--bind", "a::ro" } },
        { "policy.bind.syntax", { "--bind", "" } },
        { "policy.bind.access", { "--bind", "a:/b:z" } },
        { "policy.bind.dest", { "--bind", "a:b" } },
        { "policy.bind.source", { "--bind", "/:/mnt" } },
        { "policy.bind.source", { "--bind", "/proc/1:/mnt/p" } },
        { "policy.bind.reserved", { "--bind", "a:/dev/x" } },
        { "policy.bind.reserved", { "--bind", "a:/proc" } },
        { "policy.bind.reserved", { "--bind", "a:/" } },
        { "policy.bind.reserved", { "--bind", "a:/workspace" } },
        { "policy.bind.reserved", { "--bind", "a:/usr" } },
        { "policy.bind.twice", { "--bind", "a:/mnt/x", "--bind", "b:/mnt/x" } },
        { "policy.bind.host-view", { "--view", "host", "--bind", "a:/mnt/x" } },
        { "policy.workspace.system", { "--workspace", "/" } },
        { "policy.workspace.system", { "--workspace", "/:ro" } },
        { "policy.workspace.system", { "--workspace", "/etc" } },
        { "policy.workspace.system", { "--workspace", "/proc/self:ro" } },
        { "policy.workspace.home", { "--workspace", "~" } },
        { "policy.workspace.home", { "--workspace", "/home" } },
        { "policy.workspace.kind", { "--workspace", "x:wr" } },
        { "policy.workspace.host-view", { "--view", "host", "--workspace", ".:cow" } },
        { "policy.view.asks", { "--view", "host", "--disk", "1g" } },
        { "policy.socket.glob", { "--allow-unix-socket", "/run/*.sock" } },
        { "policy.env.name", { "--env", "1X=y" } },
        { "policy.env.name", { "--env", "=y" } },
        { "policy.env.name", { "--env", "A-B" } },
        { "policy.write.root", { "--allow-write", "/" } },
        { "policy.write.root", { "--view", "host", "--allow-write", "/**" } },
        { "policy.write.system", { "--allow-write", "/etc/x" } },
        { "policy.write.workspace", { "--workspace", ".:ro", "--allow-write", "." } },
        { "policy.path.glob", { "--allow-write", "/srv/*/x" } },
        { "policy.path.reserved", { "--allow-read", "/" } },
        { "policy.path.reserved", { "--allow-read", "/sys/x" } },
        { "policy.light.asks", { "--mode", "light", "--workspace", ".:cow" } },
        { "policy.light.asks", { "--mode", "light", "--hostname", "x" } },
        { "policy.light.asks", { "--mode", "light", "--boundary", "kernel" } },
        { "policy.light.asks", { "--mode", "light", "--user", "1001" } },
        { "policy.light.asks", { "--mode", "light", "--disk", "1g" } },
        { "policy.light.asks", { "--mode", "light", "--view", "private" } },
        { "policy.max.asks", { "--mode", "max", "--network", "host" } },
        { "policy.max.asks", { "--mode", "max", "--view", "host" } },
        { "policy.max.asks", { "--mode", "max", "--fallback", "warn" } },
        { "policy.max.asks", { "--mode", "max", "--fallback", "no-sandbox" } },
        { "policy.max.asks", { "--mode", "max", "--allow-all-unix-sockets" } },
        { "policy.max.unlimited", { "--mode", "max", "--timeout", "none" } },
        { "policy.max.unlimited", { "--mode", "max", "--memory", "0" } },
        { "policy.off.asks", { "--mode", "off", "--memory", "1g" } },
        { "policy.off.asks", { "--mode", "off", "--boundary", "process" } },
        { "policy.boundary.fallback", { "--boundary", "kernel", "--fallback", "warn" } },
        { "policy.boundary.fallback", { "--boundary", "process", "--fallback", "no-sandbox" } },
        { "policy.off.asks", { "--mode", "off", "--deny-read", "/x" } },
        { "policy.off.asks", { "--mode", "off", "--allow-write", "/x" } },
        { "policy.off.asks", { "--mode", "off", "--network", "none" } },
        { "policy.off.asks", { "--mode", "off", "--workspace", ".:cow" } },
        { "policy.off.asks", { "--mode", "off", "--bind", "a" } },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        struct policy p;
        int r = make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, rows[i].flags, &err);
        if (r == 0 || strcmp(err.code, rows[i].code) != 0)
            fail_msg("%s %s: got \"%s\" [%s], want [%s]", rows[i].flags[0], rows[i].flags[1], err.msg, err.code, rows[i].code);
        if (strstr(err.msg, "--") == NULL)
            fail_msg("the message names no flag: %s", err.msg);
        policy_free(&p);
    }
}

/* The same words without what makes them impossible: the refusals above are not refusing everything. */
static void
near_misses_pass(void **state)
{
    static const char *const rows[][12] = {
        { "--memory", "4m" }, { "--pids", "2" }, { "--cpus", "0.01" }, { "--memory", "none", "--pids", "0" },
        { "--workspace", "~:ro" }, { "--workspace", "~:cow" }, { "--workspace", "/etc:ro" }, { "--workspace", "~/x" },
        { "--workspace", "tmpfs" }, { "--bind", "a:/mnt/x", "--bind", "b:/mnt/x/y" }, { "--bind", "a:/workspace/a" },
        { "--bind", "/usr/share/x:/mnt/x" }, { "--bind", "/run/x.sock" }, { "--user", "1" }, { "--hostname", "a.b-c" },
        { "--mode", "light", "--workspace", "." }, { "--mode", "light", "--network", "host" },
        { "--mode", "light", "--bind", "a:rw" }, { "--network", "allowlist" }, { "--allow-domain", "example.org" },
        { "--network", "allowlist", "--deny-domain", "example.org" }, { "--mode", "max", "--allow-domain", "example.org" },
        { "--network", "allowlist", "--allow-domain", "**.example.org:8443", "--deny-domain", "a.example.org" },
        { "--mode", "max", "--timeout", "8h", "--memory", "2g" }, { "--mode", "max", "--workspace", ".:cow" },
        { "--mode", "off", "--workspace", ".", "--timeout", "5s", "--env", "A=1", "--output", "1k" },
        { "--view", "host", "--workspace", ".:ro", "--bind", "x:rw" }, { "--view", "host", "--allow-write", "/srv/*/x" },
        { "--deny-read", "/a/\\[b" }, { "--deny-read", "/**" }, { "--env", "_=" }, { "--allow-write", "/tmp" },
        { "--workspace", ".", "--allow-read", "/workspace/**" }, { "--deny-write", "/etc" }, { "--boundary", "vm" },
        { "--boundary", "process", "--fallback", "warn" }, { "--mode", "light", "--boundary", "process" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        struct policy p;
        if (make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, rows[i], &err) < 0)
            fail_msg("%s %s: %s [%s]", rows[i][0], rows[i][1], err.msg, err.code);
        policy_free(&p);
    }
}

/* Presets lie under everything that was set, whenever they come. */
static void
mode_never_overrides_what_was_set(void **state)
{
    static const char *const flags[] = { "--memory", "1g", "--mode", "max", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, "limits: {pids: 20}\n", POLICY_YAML, flags, &err), 0);
    assert_int_equal(p.mode.v, MODE_MAX);
    assert_int_equal(p.limits.memory.v, 1024 * MIB);
    assert_int_equal(p.limits.pids.v, 20);
    assert_int_equal(p.limits.disk.v, 256 * MIB);
    assert_true(p.read_only_root.v);
    policy_free(&p);

    /* --mode was read first, then the file: the flag is still the upper layer */
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--mode", "max", &caller, &err), 0);
    assert_int_equal(policy_load_bytes(&p, "s.yaml", "mode: light\n", 12, POLICY_YAML, &caller, &err), 0);
    assert_int_equal(p.mode.v, MODE_MAX);
    assert_int_equal(p.view.v, VIEW_PRIVATE);
    policy_free(&p);
}

static void
lists_from_flags_add(void **state)
{
    static const char *const flags[] = { "--deny-read", "/b", "--deny-read", "/c", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, "filesystem: {deny-read: [/a]}\n", POLICY_YAML, flags, &err),
                     0);
    assert_int_equal(p.deny_read.n, 3);
    assert_int_equal(p.deny_read.v[0].from.line, 1);
    assert_string_equal(p.deny_read.v[2].from.name, "--deny-read");
    policy_free(&p);
}

/* After validation the engine meets one meaning: rules are host paths, holes are binds. */
static void
settling_private_view(void **state)
{
    static const char *const flags[] = {
        "--workspace", ".:ro", "--bind", "/data:/mnt/data", "--deny-read", "/workspace/secret", "--deny-read",
        "/mnt/data/**/*.key", "--deny-write", "./locked", "--allow-write", "/workspace/out", "--allow-write", "/tmp",
        "--allow-write", "/mnt/data", "--allow-write", "/srv/cache", "--allow-read", "/usr/share", "--allow-read",
        "~/.config/tool", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    if (make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err) < 0)
        fail_msg("%s", err.msg);
    assert_true(list_has(&p.deny_read, "/home/u/app/secret"));
    assert_true(list_has(&p.deny_read, "/data/**/*.key"));
    assert_true(list_has(&p.deny_write, "/home/u/app/locked"));
    assert_int_equal(p.n_binds, 2);
    assert_string_equal(p.binds[0].dest, "/mnt/data");
    assert_true(p.binds[0].writable);
    assert_string_equal(p.binds[1].dest, "/workspace/out");
    assert_string_equal(p.binds[1].source, "/home/u/app/out");
    assert_true(p.binds[1].writable);
    assert_int_equal(p.allow_write.n, 1);
    assert_string_equal(p.allow_write.v[0].value, "/srv/cache");
    assert_int_equal(p.allow_read.n, 1);
    assert_string_equal(p.allow_read.v[0].value, "/home/u/.config/tool");
    policy_free(&p);
}

/* A caller whose own directory is called /workspace: relative rules mean the host's files, absolute ones both. */
static void
settling_when_names_collide(void **state)
{
    static const struct policy_host host = { .home = "/home/u", .cwd = "/workspace/p", .memory_total = 1 << 30 };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--workspace", ".", &host, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--deny-read", "./a", &host, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--deny-read", "/workspace/p/b", &host, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--deny-read", "/workspace/c", &host, &err), 0);
    assert_int_equal(policy_validate(&p, &err), 0);
    assert_true(list_has(&p.deny_read, "/workspace/p/a"));
    assert_true(list_has(&p.deny_read, "/workspace/p/b") && list_has(&p.deny_read, "/workspace/p/p/b"));
    assert_true(list_has(&p.deny_read, "/workspace/p/c"));
    assert_int_equal(p.deny_read.n, 4);
    policy_free(&p);
}

static void
settling_host_view(void **state)
{
    static const char *const flags[] = { "--view", "host", "--workspace", ".", "--bind", "./vendor", "--bind", "/data", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err), 0);
    assert_true(list_has(&p.deny_write, "/home/u/app/vendor"));     /* read-only below the writable workspace */
    assert_false(list_has(&p.deny_write, "/data"));                 /* read-only like all around it */
    assert_string_equal(p.workdir.p, "/home/u/app");
    policy_free(&p);
}

static void
explicit_variables_are_kept(void **state)
{
    static const char *const flags[] = { "--env", "NODE_OPTIONS=--max-old-space-size=99", "--env", "LD_PRELOAD", NULL };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err), 0);
    assert_false(list_has(&p.env_deny, "NODE_OPTIONS"));
    assert_true(list_has(&p.env_deny, "LD_PRELOAD"));   /* passed, not set: still dropped */
    policy_free(&p);
}

static void
no_home_and_odd_homes(void **state)
{
    struct policy_host host = caller;
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    host.home = NULL;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), 0);
    assert_int_equal(p.credentials.n, 0);
    assert_int_equal(policy_apply_flag(&p, "--deny-read", "~/x", &host, &err), -1);
    assert_string_equal(err.code, "policy.path.home");
    policy_free(&p);
    host.home = "relative";
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), -1);
    assert_string_equal(err.code, "policy.home");
    host.home = "/";
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), 0);
    assert_true(list_has(&p.credentials, "/.ssh"));
    policy_free(&p);
    host.home = "/home/[u]";
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--deny-read", "~/*.key", &host, &err), 0);
    assert_string_equal(p.deny_read.v[0].value, "/home/\\[u]/*.key");
    policy_free(&p);
}

static void
list_limits(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;
    char value[64];
    int r = 0;

    (void)state;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    for (int i = 0; i <= 256 && r == 0; i++) {
        snprintf(value, sizeof(value), "x:/mnt/%d", i);
        r = policy_apply_flag(&p, "--bind", value, &caller, &err);
    }
    assert_int_equal(r, -1);
    assert_string_equal(err.code, "policy.bind.too-many");
    assert_int_equal(p.n_binds, 256);
    r = 0;
    for (int i = 0; i <= POLICY_LIST_MAX && r == 0; i++)
        r = policy_apply_flag(&p, "--deny-read", "/x", &caller, &err);
    assert_int_equal(r, -1);
    assert_string_equal(err.code, "policy.list.too-long");
    assert_int_equal(p.deny_read.n, POLICY_LIST_MAX);
    policy_free(&p);
}

static void
messages_do_not_carry_control_bytes(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    assert_int_equal(policy_apply_flag(&p, "--memory", "\033[2J\n\001", &caller, &err), -1);
    for (const char *c = err.msg; *c != '\0'; c++)
        assert_true((unsigned char)*c >= 0x20);
    assert_non_null(strstr(err.msg, "\\x1b"));
    policy_free(&p);
}

static void
origins_in_words(void **state)
{
    static const struct { struct origin from; const char *text; } rows[] = {
        { { ORIGIN_DEFAULT, "default", 0 }, "default" },   { { ORIGIN_MODE, "max", 0 }, "mode max" },
        { { ORIGIN_FILE, "s.yaml", 12 }, "s.yaml:12" },    { { ORIGIN_FLAG, "--memory", 0 }, "--memory" },
        { { ORIGIN_BUILTIN, "names", 0 }, "built in (names)" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char out[POLICY_ORIGIN_TEXT_MAX];
        assert_string_equal(policy_origin_text(&rows[i].from, out), rows[i].text);
    }
}

/* --- variables that move places, as a caller has them ---- */

static const char *only;            /* the one variable that is set; NULL: none is, and @page is asked for each */
static const char *described;

static const char *
variable(const char *name)
{
    char want[64];

    if (only != NULL)
        return strcmp(name, only) == 0 ? "/moved/there" : NULL;
    snprintf(want, sizeof(want), "`%s`", name);
    if (strstr(described, want) == NULL)
        fail_msg("docs/policy.md does not name the variable %s", want);
    return NULL;
}

static size_t
places_with(const char *name, const struct policy_host *base)
{
    struct policy_host host = *base;
    struct err err = ERR_INIT;
    struct policy p;
    size_t n;

    host.variable = variable;
    only = name;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &host, &err), 0);
    n = p.credentials.n;
    policy_free(&p);
    return n;
}

/* Each place and variable that the page names is one. */
static void
page_names_no_other(const char *page, const struct policy *p, const struct policy_host *host)
{
    const char *at = strstr(page, "### Credential places"), *end = strstr(page, "* **cloche's own state**");
    const char *vars = strstr(page, "* **moved**"), *last = strstr(page, "* **elsewhere**");
    char name[300];
    size_t none;

    assert_true(at != NULL && end != NULL && vars != NULL && last != NULL);
    described = page;
    none = places_with(NULL, host);
    while ((at = strstr(at, "`~/")) != NULL && at < vars) {
        snprintf(name, sizeof(name), "/home/u%.*s", (int)strcspn(at + 2, "`"), at + 2);
        if (!list_has(&p->credentials, name))
            fail_msg("docs/policy.md names %s, which is no place", name);
        at += 3;
    }
    for (at = vars; (at = strchr(at, '`')) != NULL && at < last; at = strchr(at + 1, '`') + 1) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "`"), at + 1);
        if (places_with(name, host) == none)
            fail_msg("docs/policy.md names %s, which moves nothing", name);
    }
}

/* The page that people read and the tables that decide say the same. */
static void
page_and_tables_agree(void **state)
{
    static const char *const candidates[] = { "docs/policy.md", "../docs/policy.md", "../../docs/policy.md",
                                              "../../../docs/policy.md" };
    struct err err = ERR_INIT;
    struct policy p;
    char page[65536], want[300];
    FILE *f = NULL;
    size_t n;

    (void)state;
    for (size_t i = 0; f == NULL && i < N(candidates); i++)
        f = fopen(candidates[i], "re");
    if (f == NULL)
        fail_msg("run from the source or the build directory: docs/policy.md is not found");
    n = fread(page, 1, sizeof(page) - 1, f);
    fclose(f);
    page[n] = '\0';
    for (const struct policy_flag *flag = policy_flag_next(NULL); flag != NULL; flag = policy_flag_next(flag)) {
        snprintf(want, sizeof(want), "`%s`", flag->name);
        if (strstr(page, want) == NULL && strcmp(flag->name, "--settings") != 0)
            fail_msg("docs/policy.md does not name %s", want);
    }
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    for (size_t i = 0; i < p.credentials.n; i++) {
        snprintf(want, sizeof(want), "`~%s`", p.credentials.v[i].value + strlen("/home/u"));
        if (strstr(page, want) == NULL)
            fail_msg("docs/policy.md does not name %s", want);
    }
    page_names_no_other(page, &p, &caller);
    for (size_t i = 0; i < p.protect.n + p.env_deny.n; i++) {
        const struct policy_entry *e = i < p.protect.n ? &p.protect.v[i] : &p.env_deny.v[i - p.protect.n];
        snprintf(want, sizeof(want), "`%s`", e->value);
        if (strstr(page, want) == NULL)
            fail_msg("docs/policy.md does not name %s", want);
    }
    policy_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preset_limits),
        cmocka_unit_test(preset_walls),
        cmocka_unit_test(flag_values),
        cmocka_unit_test(engines_are_those_of_the_program),
        cmocka_unit_test(flag_table_is_complete),
        cmocka_unit_test(refusals),
        cmocka_unit_test(near_misses_pass),
        cmocka_unit_test(mode_never_overrides_what_was_set),
        cmocka_unit_test(lists_from_flags_add),
        cmocka_unit_test(settling_private_view),
        cmocka_unit_test(settling_when_names_collide),
        cmocka_unit_test(settling_host_view),
        cmocka_unit_test(explicit_variables_are_kept),
        cmocka_unit_test(no_home_and_odd_homes),
        cmocka_unit_test(list_limits),
        cmocka_unit_test(messages_do_not_carry_control_bytes),
        cmocka_unit_test(origins_in_words),
        cmocka_unit_test(page_and_tables_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
