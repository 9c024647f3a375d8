/* policy/why: the verdict, its rule, where the rule came from, and the flag that changes it; and that the flag does
 * change it (R03, R30) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "policy/why.h"
#include "policy_fixture.h"

struct row {
    const char *flags[12];
    const char *path;
    enum why_op op;
    bool allowed;
    const char *reason, *rule, *source, *inside;
};

static const struct row path_rows[] = {
    /* a private root without a project */
    { { NULL }, "/usr/bin/env", WHY_EXEC, true, "shown", "", "mode standard", "/usr/bin/env" },
    { { NULL }, "/usr/bin/env", WHY_WRITE, false, "read-only", "", "mode standard", "/usr/bin/env" },
    { { NULL }, "/etc/passwd", WHY_READ, true, "shown", "", "mode standard", "/etc/passwd" },
    { { NULL }, "/etc/shadow", WHY_READ, false, "not-shown", "", "mode standard", "" },
    { { NULL }, "/tmp/x", WHY_WRITE, true, "writable", "", "mode standard", "/tmp/x" },
    { { NULL }, "/home/agent/x", WHY_WRITE, true, "writable", "", "mode standard", "/home/agent/x" },
    { { NULL }, "/workspace/x", WHY_WRITE, true, "writable", "", "mode standard", "/workspace/x" },
    { { NULL }, "~/.ssh/id", WHY_READ, false, "not-shown", "", "mode standard", "" },
    { { NULL }, "README", WHY_READ, false, "not-shown", "", "mode standard", "" },
    { { NULL }, "/dev/null", WHY_WRITE, true, "device", "", "mode standard", "/dev/null" },
    { { NULL }, "/dev/sda", WHY_WRITE, false, "read-only", "", "mode standard", "/dev/sda" },
    { { NULL }, "/proc/self/exe", WHY_EXEC, false, "no-exec", "", "mode standard", "/proc/self/exe" },
    { { "--mode", "light" }, "/dev/null", WHY_WRITE, true, "device", "", "mode light", "/dev/null" },
    { { "--mode", "light" }, "/dev/pts/3", WHY_WRITE, false, "host-device", "", "--mode", "/dev/pts/3" },
    { { "--mode", "light" }, "/dev/kmsg", WHY_READ, false, "host-device", "", "--mode", "/dev/kmsg" },
    { { NULL }, "/sys/kernel", WHY_READ, false, "not-shown", "", "mode standard", "" },
    { { "--mode", "max" }, "/run/x", WHY_WRITE, false, "not-shown", "", "mode max", "" },
    /* a project: both names of a file are one file */
    { { "--workspace", "." }, "/workspace/src/a.c", WHY_WRITE, true, "writable", "/home/u/app", "--workspace",
      "/workspace/src/a.c" },
    { { "--workspace", "." }, "src/a.c", WHY_WRITE, true, "writable", "/home/u/app", "--workspace", "/workspace/src/a.c" },
    { { "--workspace", ".:ro" }, "src/a.c", WHY_WRITE, false, "read-only", "", "--workspace", "/workspace/src/a.c" },
    { { "--workspace", ".:cow" }, ".git/hooks/x", WHY_WRITE, true, "writable", "/home/u/app", "--workspace",
      "/workspace/.git/hooks/x" },
    { { "--workspace", "." }, ".git/hooks/x", WHY_WRITE, false, "protected-name", ".git/hooks", "built in (protected names)",
      "/workspace/.git/hooks/x" },
    { { "--workspace", "." }, "sub/.vscode/tasks.json", WHY_WRITE, false, "protected-name", ".vscode",
      "built in (protected names)", "/workspace/sub/.vscode/tasks.json" },
    { { "--workspace", "." }, ".git/hooks/x", WHY_READ, true, "shown", "", "--workspace", "/workspace/.git/hooks/x" },
    { { "--workspace", "." }, ".git/config", WHY_WRITE, false, "protected-name", ".git/config",
      "built in (protected names)", "/workspace/.git/config" },
    { { "--workspace", ".", "--allow-git-config" }, ".git/config", WHY_WRITE, true, "writable", "/home/u/app",
      "--workspace", "/workspace/.git/config" },
    { { "--workspace", ".", "--deny-read", "/workspace/secret" }, "secret/key", WHY_READ, false, "deny-read",
      "/workspace/secret", "--deny-read", "/workspace/secret/key" },
    { { "--workspace", ".", "--deny-read", "**/*.pem" }, "a/b.pem", WHY_WRITE, false, "deny-read", "**/*.pem",
      "--deny-read", "/workspace/a/b.pem" },
    { { "--workspace", ".", "--deny-read", "s", "--allow-read", "s/open" }, "s/open/x", WHY_READ, true, "allow-read",
      "s/open", "--allow-read", "/workspace/s/open/x" },
    { { "--workspace", ".", "--deny-read", "s", "--allow-read", "s/open", "--deny-read", "s/open/no" }, "s/open/no/x",
      WHY_READ, false, "deny-read", "s/open/no", "--deny-read", "/workspace/s/open/no/x" },
    { { "--workspace", ".", "--deny-write", "lock" }, "lock", WHY_WRITE, false, "deny-write", "lock", "--deny-write",
      "/workspace/lock" },
    { { "--workspace", ".:ro", "--allow-write", "out" }, "out/x", WHY_WRITE, true, "writable", "/home/u/app/out",
      "--allow-write", "/workspace/out/x" },
    { { "--workspace", "~:ro" }, "~/.ssh/id", WHY_READ, false, "credential-place", "/home/u/.ssh",
      "built in (credential places)", "/workspace/.ssh/id" },
    { { "--workspace", "~:ro", "--allow-read", "~/.ssh" }, "~/.ssh/id", WHY_READ, true, "allow-read", "~/.ssh",
      "--allow-read", "/workspace/.ssh/id" },
    { { "--workspace", "~:ro", "--allow-read", "~" }, "~/.ssh/id", WHY_READ, false, "credential-place", "/home/u/.ssh",
      "built in (credential places)", "/workspace/.ssh/id" },
    { { "--bind", "~/.ssh/config" }, "~/.ssh/config", WHY_READ, true, "shown", "", "--bind", "/home/u/.ssh/config" },
    { { "--bind", "/data:/mnt/d" }, "/data/x", WHY_WRITE, false, "read-only", "", "--bind", "/mnt/d/x" },
    { { "--bind", "/data:/mnt/d", "--bind", "/x:/mnt/d/in:rw" }, "/mnt/d/in/y", WHY_WRITE, true, "writable", "/x", "--bind",
      "/mnt/d/in/y" },
    /* the host's tree */
    { { "--view", "host" }, "/etc/shadow", WHY_READ, true, "shown", "", "--view", "/etc/shadow" },
    { { "--view", "host" }, "/etc/x", WHY_WRITE, false, "read-only", "", "--view", "/etc/x" },
    { { "--view", "host" }, "~/.aws/credentials", WHY_READ, false, "credential-place", "/home/u/.aws",
      "built in (credential places)", "/home/u/.aws/credentials" },
    { { "--view", "host", "--allow-write", "." }, "x", WHY_WRITE, true, "allow-write", ".", "--allow-write",
      "/home/u/app/x" },
    { { "--view", "host", "--allow-write", "/srv/*/out" }, "/srv/a/out/x", WHY_WRITE, true, "allow-write", "/srv/*/out",
      "--allow-write", "/srv/a/out/x" },
    { { "--view", "host", "--allow-write", "/srv/*/out" }, "/srv/a/in/x", WHY_WRITE, false, "read-only", "", "--view",
      "/srv/a/in/x" },
    { { "--view", "host", "--workspace", "." }, ".bashrc", WHY_WRITE, false, "protected-name", ".bashrc",
      "built in (protected names)", "/home/u/app/.bashrc" },
    { { "--mode", "light", "--workspace", "." }, "x", WHY_WRITE, true, "writable", "/home/u/app", "--workspace",
      "/home/u/app/x" },
    /* denied beats opened at the same place, below and above; a tree that was named is open in what is closed to reading */
    { { "--view", "host", "--allow-write", ".", "--deny-write", "." }, "x", WHY_WRITE, false, "deny-write", ".",
      "--deny-write", "/home/u/app/x" },
    { { "--view", "host", "--allow-write", "a/b", "--deny-write", "a" }, "a/b/x", WHY_WRITE, false, "deny-write", "a",
      "--deny-write", "/home/u/app/a/b/x" },
    { { "--view", "host", "--allow-write", "a", "--deny-write", "a/*" }, "a/b/x", WHY_WRITE, false, "deny-write", "a/*",
      "--deny-write", "/home/u/app/a/b/x" },
    { { "--bind", "/x:/mnt/x:rw", "--deny-write", "/" }, "/mnt/x/y", WHY_WRITE, false, "deny-write", "/", "--deny-write",
      "/mnt/x/y" },
    { { "--view", "host", "--deny-read", "~", "--allow-write", "." }, "x", WHY_WRITE, true, "allow-write", ".",
      "--allow-write", "/home/u/app/x" },
    { { "--view", "host", "--deny-read", "~", "--allow-write", "." }, "../y", WHY_READ, false, "deny-read", "~",
      "--deny-read", "/home/u/y" },
    { { "--view", "host", "--allow-write", ".", "--deny-read", "s", "--allow-read", "s/o" }, "s/o/x", WHY_READ, true,
      "allow-read", "s/o", "--allow-read", "/home/u/app/s/o/x" },
    { { "--view", "host", "--allow-write", ".", "--deny-read", "s", "--allow-read", "s/o" }, "s/o/x", WHY_WRITE, false,
      "read-only", "s/o", "--allow-read", "/home/u/app/s/o/x" },
    { { "--view", "host", "--allow-write", ".", "--allow-write", ".git/hooks/h" }, ".git/hooks/h", WHY_WRITE, false,
      "protected-name", ".git/hooks", "built in (protected names)", "/home/u/app/.git/hooks/h" },
    { { "--view", "host", "--allow-write", ".git/hooks" }, ".git/hooks/h", WHY_WRITE, true, "allow-write", ".git/hooks",
      "--allow-write", "/home/u/app/.git/hooks/h" },
    { { "--mode", "off" }, "/etc/shadow", WHY_WRITE, true, "mode-off", "", "--mode", "/etc/shadow" },
};

static void
paths(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(path_rows); i++) {
        const struct row *row = &path_rows[i];
        struct err err = ERR_INIT;
        struct policy p;
        struct why why;
        char origin[POLICY_ORIGIN_TEXT_MAX];
        if (make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, row->flags, &err) < 0)
            fail_msg("row %zu: %s", i, err.msg);
        assert_int_equal(policy_why_path(&p, row->path, row->op, NULL, &why, &err), 0);
        policy_origin_text(&why.source, origin);
        if (why.allowed != row->allowed || strcmp(why.reason, row->reason) != 0 || strcmp(why.rule, row->rule) != 0 ||
            strcmp(origin, row->source) != 0 || strcmp(why.inside, row->inside) != 0)
            fail_msg("row %zu %s %s: %d %s rule=%s from=%s inside=%s", i, row->flags[1], row->path, why.allowed, why.reason,
                     why.rule, origin, why.inside);
        assert_true(why.text[0] != '\0');
        policy_free(&p);
    }
}

/* For every denied row with a suggestion: with that flag added, the answer is "allowed". */
static void
suggestions_work(void **state)
{
    size_t tried = 0;

    (void)state;
    for (size_t i = 0; i < N(path_rows); i++) {
        const struct row *row = &path_rows[i];
        const char *flags[16] = { NULL };
        struct err err = ERR_INIT;
        struct policy p;
        struct why why;
        char flag[sizeof(why.flag)], *value;
        size_t n = 0;
        if (row->allowed)
            continue;
        assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, row->flags, &err), 0);
        assert_int_equal(policy_why_path(&p, row->path, row->op, NULL, &why, &err), 0);
        policy_free(&p);
        /* kernel trees cannot be shown, whatever the flag */
        if (why.flag[0] == '\0' || strncmp(row->path, "/sys", 4) == 0)
            continue;
        memcpy(flag, why.flag, sizeof(flag));
        value = strchr(flag, ' ');
        if (value != NULL)
            *value++ = '\0';
        while (row->flags[n] != NULL) {
            flags[n] = row->flags[n];
            n++;
        }
        /* a bind of the same place, or another workspace, takes the earlier one's place */
        if (n >= 2 && (strcmp(flag, "--workspace") == 0 || strcmp(flag, "--bind") == 0))
            n = 0;
        flags[n++] = flag;
        flags[n++] = value;
        flags[n] = NULL;
        if (make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err) < 0)
            fail_msg("row %zu: %s %s: %s", i, flag, value, err.msg);
        assert_int_equal(policy_why_path(&p, row->path, row->op, NULL, &why, &err), 0);
        if (!why.allowed)
            fail_msg("row %zu: with %s %s still %s", i, flag, value, why.reason);
        policy_free(&p);
        tried++;
    }
    assert_true(tried >= 10);
}

static bool
never_exists(const char *path)
{
    (void)path;
    return false;
}

static const char *asked_about;

static bool
note_and_exist(const char *path)
{
    static char copy[256];

    snprintf(copy, sizeof(copy), "%s", path);
    asked_about = copy;
    return true;
}

/* At the top of a tree the names are closed whether they exist or not; deeper down, where they exist; not deeper. */
static void
protected_names_by_depth(void **state)
{
    static const char *const flags[] = { "--workspace", ".", "--bind", "/x/.git/hooks:/mnt/hooks:rw", NULL };
    struct err err = ERR_INIT;
    struct policy p;
    struct why why;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, NULL, POLICY_AUTO, flags, &err), 0);
    assert_int_equal(policy_why_path(&p, ".git/hooks/x", WHY_WRITE, never_exists, &why, &err), 0);
    assert_false(why.allowed);
    assert_int_equal(policy_why_path(&p, "a/.git/hooks/x", WHY_WRITE, never_exists, &why, &err), 0);
    assert_true(why.allowed);
    assert_int_equal(policy_why_path(&p, "a/b/.git/hooks/x", WHY_WRITE, note_and_exist, &why, &err), 0);
    assert_false(why.allowed);
    assert_string_equal(asked_about, "/home/u/app/a/b/.git/hooks");
    assert_int_equal(policy_why_path(&p, "a/b/c/.git/hooks/x", WHY_WRITE, note_and_exist, &why, &err), 0);
    assert_true(why.allowed);
    assert_int_equal(policy_why_path(&p, ".git/hooks2", WHY_WRITE, never_exists, &why, &err), 0);
    assert_true(why.allowed);
    /* a tree that was opened by name is open */
    assert_int_equal(policy_why_path(&p, "/mnt/hooks/pre-commit", WHY_WRITE, NULL, &why, &err), 0);
    assert_true(why.allowed);
    policy_free(&p);
}

static void
source_lines(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;
    struct why why;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, "workspace: .\nfilesystem:\n  deny-read:\n    - secret\n",
                                 POLICY_YAML, NULL, &err), 0);
    assert_int_equal(policy_why_path(&p, "secret/x", WHY_READ, NULL, &why, &err), 0);
    assert_false(why.allowed);
    assert_string_equal(why.source.name, "s.yaml");
    assert_int_equal(why.source.line, 4);
    assert_int_equal(policy_why_path(&p, "a\001/../../../../../x", WHY_READ, NULL, &why, &err), -1);
    assert_string_equal(err.code, "policy.path");
    policy_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths), cmocka_unit_test(suggestions_work), cmocka_unit_test(source_lines),
        cmocka_unit_test(protected_names_by_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
