/* engine/native/probe: an errno and the facts of a host become a reason and a remedy */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/native/probe.h"

static struct host_facts
plain_host(void)
{
    struct host_facts f;

    memset(&f, 0, sizeof(f));
    snprintf(f.kernel, sizeof(f.kernel), "6.1.0");
    snprintf(f.self_exe, sizeof(f.self_exe), "/opt/bin/cloche");
    f.uid = 1000;
    f.userns_clone = f.apparmor_restrict = f.memfd_noexec = f.yama = f.selinux_enforcing = -1;
    f.max_user_namespaces = 10000;
    return f;
}

static void
failed(struct feature_state *s, int why, const char *call)
{
    memset(s, 0, sizeof(*s));
    s->status = FEATURE_NO;
    s->sys_errno = why;
    snprintf(s->call, sizeof(s->call), "%s", call);
}

static void
expect(enum feature which, const struct host_facts *f, int why, const char *in_why, const char *in_remedy)
{
    struct feature_state s;

    failed(&s, why, "the-call");
    probe_explain(which, f, &s);
    if (strstr(s.why_not, in_why) == NULL || strstr(s.remedy, in_remedy) == NULL)
        fail_msg("errno %d: \"%s\" / \"%s\" lack \"%s\" / \"%s\"", why, s.why_not, s.remedy, in_why, in_remedy);
}

static void
user_namespace_reasons(void **state)
{
    struct host_facts f = plain_host();

    (void)state;
    expect(FEATURE_USERNS, &f, ENOSYS, "CONFIG_USER_NS", "CONFIG_USER_NS=y");
    expect(FEATURE_USERNS, &f, EPERM, "the-call: Operation not permitted", "--mode light");
    f.userns_clone = 0;
    expect(FEATURE_USERNS, &f, EPERM, "kernel.unprivileged_userns_clone=0", "kernel.unprivileged_userns_clone=1");
    f = plain_host();
    f.max_user_namespaces = 0;
    expect(FEATURE_USERNS, &f, ENOSPC, "user.max_user_namespaces=0", "user.max_user_namespaces=15000");
    f.max_user_namespaces = 5;
    expect(FEATURE_USERNS, &f, ENOSPC, "used up", "now 5");
    f = plain_host();
    f.seccomp_mode = 2;
    snprintf(f.container, sizeof(f.container), "docker");
    expect(FEATURE_USERNS, &f, EPERM, "by docker", "seccomp=unconfined");
    snprintf(f.container, sizeof(f.container), "kubernetes");
    expect(FEATURE_USERNS, &f, EPERM, "by kubernetes", "hostUsers: false");
    f = plain_host();
    f.chrooted = true;
    expect(FEATURE_USERNS, &f, EPERM, "chroot", "pivot_root");
    f = plain_host();
    f.selinux_enforcing = 1;
    expect(FEATURE_USERNS, &f, EACCES, "SELinux", "audit2allow");
}

static void
apparmor_gets_a_profile(void **state)
{
    struct host_facts f = plain_host();
    struct feature_state s;

    (void)state;
    f.apparmor_restrict = 1;
    expect(FEATURE_USERNS, &f, EPERM, "AppArmor", "profile cloche /opt/bin/cloche flags=(unconfined)");
    expect(FEATURE_USERNS_MAP, &f, EPERM, "AppArmor", "apparmor_parser -r");
    expect(FEATURE_NETNS, &f, EACCES, "AppArmor", "apparmor_parser -r");
    failed(&s, EPERM, "x");
    probe_explain(FEATURE_USERNS, &f, &s);
    assert_null(strstr(s.remedy, "%"));
    assert_true(strlen(s.remedy) + 1 < sizeof(s.remedy));     /* a cut command is no command */
    /* root is not restricted by it: the reason must be another one */
    f.uid = 0;
    failed(&s, EPERM, "x");
    probe_explain(FEATURE_USERNS, &f, &s);
    assert_null(strstr(s.why_not, "AppArmor"));
}

static void
other_reasons(void **state)
{
    struct host_facts f = plain_host();

    (void)state;
    expect(FEATURE_LANDLOCK, &f, ENOSYS, "without Landlock", "CONFIG_SECURITY_LANDLOCK");
    expect(FEATURE_LANDLOCK, &f, EOPNOTSUPP, "not started", "lsm=landlock,");
    snprintf(f.lsm, sizeof(f.lsm), "capability,yama,apparmor");
    expect(FEATURE_LANDLOCK, &f, EOPNOTSUPP, "capability,yama,apparmor", "lsm=landlock,capability,yama,apparmor");
    expect(FEATURE_OPENAT2, &f, ENOSYS, "kernel 6.1.0", "Linux 5.6");
    f.seccomp_mode = 2;
    expect(FEATURE_OPENAT2, &f, ENOSYS, "outer filter", "Linux 5.6");
    f = plain_host();
    f.memfd_noexec = 2;
    expect(FEATURE_MEMFD_EXEC, &f, EACCES, "vm.memfd_noexec=2", "vm.memfd_noexec=1");
    f.proc_masked = true;
    snprintf(f.proc_mask_example, sizeof(f.proc_mask_example), "/proc/kcore");
    expect(FEATURE_PROC_MOUNT, &f, EPERM, "/proc/kcore", "--mode light");
    f.user_manager = f.cgroup_v2 = true;
    expect(FEATURE_LIMIT_MEMORY, &f, 0, "samples memory", "systemd-run --user --scope -p Delegate=yes");
    f.user_manager = false;
    expect(FEATURE_LIMIT_CPU, &f, 0, "CPU time is not limited", "loginctl enable-linger 1000");
}

/* Whatever fails on whatever host: there is always a reason, and it is never cut in the middle of a word. */
static void
every_failure_is_explained(void **state)
{
    static const int errnos[] = { 0, EPERM, EACCES, ENOSYS, EINVAL, ENOSPC, EUSERS, EOPNOTSUPP, ENOENT, EBUSY, EMFILE };
    struct host_facts f = plain_host();
    struct feature_state s;

    (void)state;
    for (int which = 0; which < FEATURE_N; which++)
        for (size_t e = 0; e < ARRAY_LEN(errnos); e++) {
            failed(&s, errnos[e], "unshare(CLONE_NEWSOMETHING)");
            probe_explain((enum feature)which, &f, &s);
            assert_true(s.why_not[0] != '\0');
            assert_true(strlen(s.why_not) + 1 < sizeof(s.why_not));
            assert_true(strlen(s.remedy) + 1 < sizeof(s.remedy));
        }
}

static void
working_features_have_no_reason(void **state)
{
    struct host_facts f = plain_host();
    struct feature_state s;

    (void)state;
    failed(&s, EPERM, "x");
    snprintf(s.why_not, sizeof(s.why_not), "stale");
    s.status = FEATURE_YES;
    probe_explain(FEATURE_USERNS, &f, &s);
    assert_string_equal(s.why_not, "");
    assert_string_equal(s.remedy, "");
}

static bool
allows(const struct host_features *h, enum policy_mode mode, size_t *missing)
{
    static struct engine_report report;

    features_to_report(h, &report);
    return engine_allows(&report, mode, missing);
}

static void
modes_need_their_features(void **state)
{
    static struct host_features h;
    size_t missing;

    (void)state;
    for (int i = 0; i < FEATURE_N; i++)
        h.f[i].status = FEATURE_YES;
    assert_true(allows(&h, MODE_STANDARD, &missing));
    assert_true(allows(&h, MODE_MAX, &missing));
    assert_true(allows(&h, MODE_LIGHT, &missing));
    h.f[FEATURE_USERNS].status = FEATURE_NO;
    assert_false(allows(&h, MODE_STANDARD, &missing));
    assert_int_equal(missing, FEATURE_USERNS);
    assert_true(allows(&h, MODE_LIGHT, &missing));
    h.f[FEATURE_SECCOMP].status = FEATURE_NO;
    assert_false(allows(&h, MODE_LIGHT, &missing));
    assert_true(allows(&h, MODE_OFF, &missing));
}

/* B9: what others can use up, and what was not tried to its end, is no reason for a weaker wall. */
static void
only_what_the_host_is_counts(void **state)
{
    static const struct { enum feature which; int sys_errno; const char *call; int64_t most; bool lacks; } rows[] = {
        { FEATURE_USERNS, EPERM, "unshare", 15000, true },      { FEATURE_USERNS, ENOSYS, "unshare", 15000, true },
        { FEATURE_USERNS, ENOSPC, "unshare", 15000, false },    { FEATURE_USERNS, ENOSPC, "unshare", 0, true },
        { FEATURE_USERNS, EAGAIN, "unshare", 15000, false },    { FEATURE_USERNS, ENOMEM, "unshare", 0, false },
        { FEATURE_NETNS, EUSERS, "unshare", 0, true },          { FEATURE_NETNS, EUSERS, "unshare", -1, false },
        { FEATURE_FSOPEN, ENOSPC, "fsopen", 0, false },         { FEATURE_FSOPEN, EMFILE, "fsopen", 0, false },
        { FEATURE_PROC_MOUNT, EPERM, "fsmount(proc)", 0, true }, { FEATURE_SECCOMP, 0, "", 0, false },
        { FEATURE_SECCOMP, 0, "accepted, but does not filter", 0, true },
    };
    static struct host_features h;
    enum feature which = FEATURE_N;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        memset(&h, 0, sizeof(h));
        for (int k = 0; k < FEATURE_N; k++)
            h.f[k].status = FEATURE_YES;
        h.f[rows[i].which].status = FEATURE_NO;
        h.f[rows[i].which].sys_errno = rows[i].sys_errno;
        snprintf(h.f[rows[i].which].call, sizeof(h.f[0].call), "%s", rows[i].call);
        if (rows[i].which <= FEATURE_CGROUPNS)
            h.facts.max_namespaces[rows[i].which] = rows[i].most;
        assert_int_equal(feature_lacks(&h, rows[i].which), rows[i].lacks);
        assert_int_equal(features_lack(&h, MODE_STANDARD, &which), rows[i].lacks);
        assert_false(features_lack(&h, MODE_OFF, &which));
    }
    memset(&h, 0, sizeof(h));   /* nothing was tried: every child of the probe was killed */
    assert_false(features_lack(&h, MODE_STANDARD, &which));
    assert_false(features_lack(&h, MODE_LIGHT, &which));
    h.f[FEATURE_LANDLOCK].status = FEATURE_YES;     /* an old one */
    assert_true(feature_lacks(&h, FEATURE_LANDLOCK_SCOPE));
}

static void
report_names_every_promise(void **state)
{
    static struct host_features h;
    static struct engine_report report;

    (void)state;
    for (int i = 0; i < FEATURE_N; i++)
        h.f[i].status = FEATURE_YES;
    h.f[FEATURE_LIMIT_MEMORY].status = FEATURE_PARTIAL;
    h.f[FEATURE_LIMIT_CPU].status = FEATURE_NO;
    features_to_report(&h, &report);
    for (int p = 0; p < PROMISE_N; p++) {
        assert_string_not_equal(promise_name((enum promise)p), "");
        assert_string_not_equal(promise_describe((enum promise)p), "");
    }
    assert_int_equal(report.promises[PROMISE_MEMORY_LIMIT].state, SUPERVISED);
    assert_int_equal(report.promises[PROMISE_CPU_LIMIT].state, NOT_ENFORCED);
    assert_int_equal(report.promises[PROMISE_OWN_ROOT].state, ENFORCED);
    assert_int_equal(report.promises[PROMISE_NO_CAPABILITIES].state, ENFORCED);
    assert_int_equal(report.promises[PROMISE_KERNEL_BOUNDARY].state, NOT_ENFORCED);   /* never by this engine */
}

static void
this_host_can_be_probed(void **state)
{
    static struct host_features h;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(features_probe(&h, &err), 0);
    for (int i = 0; i < FEATURE_N; i++)
        if (h.f[i].status == FEATURE_NO || h.f[i].status == FEATURE_PARTIAL)
            assert_true(h.f[i].why_not[0] != '\0');
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_namespace_reasons),
        cmocka_unit_test(apparmor_gets_a_profile),
        cmocka_unit_test(other_reasons),
        cmocka_unit_test(every_failure_is_explained),
        cmocka_unit_test(working_features_have_no_reason),
        cmocka_unit_test(modes_need_their_features),
        cmocka_unit_test(only_what_the_host_is_counts),
        cmocka_unit_test(report_names_every_promise),
        cmocka_unit_test(this_host_can_be_probed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
