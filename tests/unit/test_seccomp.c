/* tests/unit/test_seccomp.c: the generated filters do what the lists say
 *
 * The lists are read again and evaluated directly (answer_of); the finished programs are run by a small BPF machine.
 * Both must agree for every variant, every number and every architecture, with arguments taken from around every
 * value that a rule mentions. On top: rows written by hand, which no mistake shared by lists and generator can
 * satisfy, and the kernel's own conditions for treating a call as "allowed whatever the arguments".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "gen_seccomp.h"

#define X32_BIT 0x40000000u
#if defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#endif

#define BAD_PROGRAM 0xdeadbeefu

static struct sc_data lists;
static const struct sock_fprog *under_test;     /* when set: this program instead of the finished ones */

/* One run; *loads says whether an argument was looked at. BAD_PROGRAM when the program is malformed. */
static uint32_t
run_bpf(const struct sock_fprog *prog, const struct seccomp_data *data, bool *loads)
{
    uint32_t a = 0;

    *loads = false;
    for (size_t pc = 0; pc < prog->len; pc++) {
        const struct sock_filter *in = &prog->filter[pc];
        bool yes;

        switch (in->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (in->k % 4 != 0 || in->k > sizeof(*data) - 4)
                return BAD_PROGRAM;
            *loads |= in->k >= offsetof(struct seccomp_data, instruction_pointer);
            memcpy(&a, (const uint8_t *)data + in->k, 4);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= in->k;
            continue;
        case BPF_RET | BPF_K:
            return in->k;
        case BPF_JMP | BPF_JA:
            pc += in->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == in->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            yes = a > in->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= in->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & in->k) != 0;
            break;
        default:
            return BAD_PROGRAM;
        }
        pc += yes ? in->jt : in->jf;
    }
    return BAD_PROGRAM;
}

static bool
cond_holds(const struct sc_cond *cond, const uint64_t args[6])
{
    uint32_t v = (uint32_t)args[cond->arg];

    if (cond->wide)
        return args[cond->arg] == 0;
    if (cond->any)
        return (v & cond->mask) != 0;
    for (size_t i = 0; i < cond->n_ranges; i++) {
        const struct sc_range *r = &lists.ranges[cond->range + i];

        if ((v & cond->mask) >= r->lo && (v & cond->mask) <= r->hi)
            return true;
    }
    return false;
}

/* What the lists say, read naively. */
static int
answer_of(const struct sc_rule *rule, const struct seccomp_plan *plan, const uint64_t args[6])
{
    if (rule == NULL)
        return ENOSYS;
    if (rule->answer[plan->list] != SC_RULES)
        return rule->answer[plan->list];
    for (size_t i = 0; i < rule->n_clauses; i++) {
        const struct sc_clause *cl = &lists.clauses[rule->clause + i];
        bool holds = sc_clause_selected(cl, plan);

        for (size_t k = 0; holds && k < cl->n_conds; k++)
            holds = cond_holds(&lists.conds[cl->cond + k], args);
        if (holds)
            return cl->answer;
    }
    return SC_RULES;    /* no answer: cannot be, the parser insists on an `otherwise` */
}

static uint32_t
return_value(int answer)
{
    if (answer == SC_ALLOW)
        return SECCOMP_RET_ALLOW;
    if (answer == SC_DONE)
        return SECCOMP_RET_ERRNO;
    if (answer == SC_KILL)
        return SECCOMP_RET_KILL_PROCESS;
    return SECCOMP_RET_ERRNO | (uint32_t)answer;
}

static uint32_t
ask(const struct seccomp_plan *plan, uint32_t arch, uint32_t nr, const uint64_t args[6], bool *loads)
{
    struct seccomp_data data = { .nr = (int)nr, .arch = arch, .instruction_pointer = 0x7f0012345678 };

    memcpy(data.args, args, sizeof(data.args));
    return run_bpf(under_test != NULL ? under_test : seccomp_program(plan), &data, loads);
}

static const struct sc_rule *by_number[SC_NR_MAX];

static void
index_rules(void)
{
    memset(by_number, 0, sizeof(by_number));
    for (size_t i = 0; i < lists.n_rules; i++) {
        int n = sc_resolve(&lists, NATIVE_ARCH, lists.rules[i].name);

        if (n >= 0)
            by_number[n] = &lists.rules[i];
    }
}

static const struct sc_rule *
rule_of(uint32_t nr)
{
    return nr < SC_NR_MAX ? by_number[nr] : NULL;
}

static void
check(const struct seccomp_plan *plan, uint32_t nr, const uint64_t args[6])
{
    bool loads;
    const struct sc_rule *rule = rule_of(nr);
    uint32_t want = return_value(answer_of(rule, plan, args));
    uint32_t got = ask(plan, NATIVE_ARCH, nr, args, &loads);

    if (got != want)
        fail_msg("list %d unix %d ptrace %d userns %d closed %d: %s (%u) args %#llx %#llx %#llx: program says %#x, "
                 "list says %#x", (int)plan->list, (int)plan->unix_sockets, plan->ptrace, plan->nested_userns,
                 plan->network_closed, rule != NULL ? rule->name : "unknown", nr, (unsigned long long)args[0],
                 (unsigned long long)args[1], (unsigned long long)args[2], got, want);
}

/* Once each: clauses mention the same values, and all of them are tried with all of the other arguments'. */
static void
add_value(uint32_t *values, size_t *n, uint32_t value)
{
    for (size_t i = 0; i < *n; i++)
        if (values[i] == value)
            return;
    values[(*n)++] = value;
}

/* Values of argument @arg worth trying for @rule: around everything it mentions, with and without high bits. */
static size_t
candidates(const struct sc_rule *rule, unsigned arg, uint64_t *out, size_t max)
{
    static const uint64_t high[] = { 0, 1ull << 32, 0xffffffffull << 32 };
    size_t n = 0;
    uint32_t low[256];
    size_t n_low = 0;

    add_value(low, &n_low, 0);
    add_value(low, &n_low, UINT32_MAX);
    for (size_t i = 0; i < rule->n_clauses; i++) {
        const struct sc_clause *cl = &lists.clauses[rule->clause + i];

        for (size_t k = 0; k < cl->n_conds; k++) {
            const struct sc_cond *cond = &lists.conds[cl->cond + k];

            if (cond->arg != arg)
                continue;
            assert_true(n_low + 3 + 4 * cond->n_ranges < ARRAY_LEN(low));
            if (cond->any)
                for (uint32_t bit = cond->mask; bit != 0 && n_low < 200; bit &= bit - 1)
                    add_value(low, &n_low, bit & -bit);
            for (size_t r = 0; r < cond->n_ranges; r++) {
                const struct sc_range *range = &lists.ranges[cond->range + r];

                add_value(low, &n_low, range->lo - 1);
                add_value(low, &n_low, range->lo);
                add_value(low, &n_low, range->hi);
                add_value(low, &n_low, range->hi + 1);
                if (cond->mask != UINT32_MAX)
                    add_value(low, &n_low, range->lo | ~cond->mask);
            }
        }
    }
    for (size_t i = 0; i < n_low; i++)
        for (size_t h = 0; h < ARRAY_LEN(high) && n < max; h++)
            out[n++] = high[h] | low[i];
    return n;
}

static bool
uses_argument(const struct sc_rule *rule, unsigned arg)
{
    for (size_t i = 0; i < rule->n_clauses; i++) {
        const struct sc_clause *cl = &lists.clauses[rule->clause + i];

        for (size_t k = 0; k < cl->n_conds; k++)
            if (lists.conds[cl->cond + k].arg == arg)
                return true;
    }
    return false;
}

static void
check_rules(const struct seccomp_plan *plan, uint32_t nr, const struct sc_rule *rule)
{
    static uint64_t values[4][1024];
    bool fourth = uses_argument(rule, 3);
    size_t n[4];

    for (unsigned a = 0; a < 4; a++)
        n[a] = candidates(rule, a, values[a], 1024);
    assert_false(uses_argument(rule, 4) || uses_argument(rule, 5));
    for (size_t x = 0; x < n[0]; x++)
        for (size_t y = 0; y < n[1]; y++)
            for (size_t z = 0; z < n[2]; z++)
                for (size_t w = 0; w < (fourth ? n[3] : 1); w++) {
                    uint64_t args[6] = { values[0][x], values[1][y], values[2][z], fourth ? values[3][w] : 7, 8, 9 };

                    check(plan, nr, args);
                }
}

static void
test_every_number_in_every_variant(void **state)
{
    static const uint64_t none[6];
    static const uint64_t ones[6] = { ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull };
    (void)state;

    for (size_t v = 0; v < SC_N_VARIANTS; v++) {
        struct seccomp_plan plan = sc_variant(v);

        for (uint32_t nr = 0; nr < SC_NR_MAX; nr++) {
            const struct sc_rule *rule = rule_of(nr);

            check(&plan, nr, none);
            check(&plan, nr, ones);
            if (rule != NULL && rule->n_clauses > 0)
                check_rules(&plan, nr, rule);
        }
    }
}

/* A call that the lists allow unconditionally must be decided without its arguments: then the kernel answers it from
 * a bitmap and the filter costs nothing. */
static void
test_plain_calls_do_not_look_at_arguments(void **state)
{
    static const uint64_t none[6];
    (void)state;

    for (size_t v = 0; v < SC_N_VARIANTS; v++) {
        struct seccomp_plan plan = sc_variant(v);

        for (uint32_t nr = 0; nr < SC_NR_MAX; nr++) {
            const struct sc_rule *rule = rule_of(nr);
            bool loads;

            ask(&plan, NATIVE_ARCH, nr, none, &loads);
            if (rule == NULL || rule->answer[plan.list] != SC_RULES)
                assert_false(loads);
        }
    }
}

static void
test_other_entries(void **state)
{
    static const uint64_t none[6];
    static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, UINT32_MAX,
                                        NATIVE_ARCH == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64 };
    static const uint32_t beyond[] = { 1024, 4096, 0x7fff, X32_BIT - 1, 0x7fffffff, 0x80000000u, UINT32_MAX };
    bool loads;
    (void)state;

    for (size_t v = 0; v < SC_N_VARIANTS; v++) {
        struct seccomp_plan plan = sc_variant(v);

        for (uint32_t nr = 0; nr < SC_NR_MAX; nr++) {
            for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
                assert_int_equal(ask(&plan, foreign[i], nr, none, &loads), SECCOMP_RET_KILL_PROCESS);
            assert_int_equal(ask(&plan, NATIVE_ARCH, nr | X32_BIT, none, &loads), SECCOMP_RET_ERRNO | ENOSYS);
        }
        for (size_t i = 0; i < ARRAY_LEN(beyond); i++)
            assert_int_equal(ask(&plan, NATIVE_ARCH, beyond[i], none, &loads), SECCOMP_RET_ERRNO | ENOSYS);
    }
}

/* The kernel's checker, as far as it matters: bounded jumps, a return at the end, and a length that stays cheap. */
static void
test_programs_are_well_formed(void **state)
{
    (void)state;
    for (size_t v = 0; v < SC_N_VARIANTS; v++) {
        struct seccomp_plan plan = sc_variant(v);
        const struct sock_fprog *p = seccomp_program(&plan);

        assert_in_range(p->len, 10, 400);
        assert_int_equal(p->filter[p->len - 1].code, BPF_RET | BPF_K);
        assert_int_equal(p->filter[0].k, offsetof(struct seccomp_data, arch));
        for (size_t pc = 0; pc < p->len; pc++) {
            const struct sock_filter *in = &p->filter[pc];

            if (in->code == (BPF_JMP | BPF_JA))
                assert_true(in->k < p->len - pc - 1);
            else if (BPF_CLASS(in->code) == BPF_JMP)
                assert_true(pc + 1 + in->jt < p->len && pc + 1 + in->jf < p->len);
        }
    }
}

static void
test_bad_plans_have_no_program(void **state)
{
    struct seccomp_plan plan = { .list = (enum seccomp_list)3 };
    struct err err = ERR_INIT;
    (void)state;

    assert_null(seccomp_program(&plan));
    assert_int_equal(seccomp_install(&plan, &err), -1);
    assert_string_equal(err.code, "wall.seccomp.plan");
    plan = (struct seccomp_plan){ .unix_sockets = (enum seccomp_unix)-1 };
    assert_null(seccomp_program(&plan));
}

static void
opened_too_many(void)
{
    static struct seccomp_code code;
    struct seccomp_plan plan = { .n_opened = SECCOMP_OPENED_MAX };

    assert_true(seccomp_build(&plan, &code));
    plan.n_opened++;
    assert_false(seccomp_build(&plan, &code));
    plan = (struct seccomp_plan){ .list = (enum seccomp_list)3 };
    assert_false(seccomp_build(&plan, &code));
}

/* Opened calls pass by their own number and entry; every other answer is the list's. */
static void
test_opened_calls_and_no_other(void **state)
{
    static const uint64_t args[6] = { UINT64_MAX, 1, 2, 3, 4, 5 };
    static struct seccomp_code code;
    const uint32_t entries[] = { NATIVE_ARCH, AUDIT_ARCH_I386, AUDIT_ARCH_ARM };
    bool loads;

    (void)state;
    for (size_t v = 0; v < SC_N_VARIANTS; v++) {
        struct seccomp_plan plan = sc_variant(v), opened = plan;

        opened.opened[0] = SYS_kcmp;
        opened.opened[1] = SYS_move_pages;
        opened.n_opened = 2;
        assert_true(seccomp_build(&opened, &code));
        for (size_t e = 0; e < ARRAY_LEN(entries); e++)
            for (uint32_t nr = 0; nr < 2 * SC_NR_MAX; nr++) {
                uint32_t number = nr < SC_NR_MAX ? nr : (nr - SC_NR_MAX) | X32_BIT, want, got;
                struct seccomp_data data = { .nr = (int)number, .arch = entries[e] };

                memcpy(data.args, args, sizeof(args));
                want = ask(&plan, entries[e], number, args, &loads);
                if (entries[e] == NATIVE_ARCH && (number == SYS_kcmp || number == SYS_move_pages))
                    want = SECCOMP_RET_ALLOW;
                got = run_bpf(&code.program, &data, &loads);
                assert_int_equal(got, want);
            }
    }
    opened_too_many();
}

#define STD  .list = SECCOMP_LIST_STANDARD
#define LITE .list = SECCOMP_LIST_LIGHT
#define MAXI .list = SECCOMP_LIST_MAX
#define HIGH (1ull << 32)
#define ANYWHERE 0xabcdef0100000000ull

/* Written by hand from the kernel's headers and manual pages, not from the lists. */
static const struct {
    struct seccomp_plan plan;
    long nr;
    uint64_t a0, a1, a2;
    int want;
} rows[] = {
    /* terminal injection, also with bits that the kernel drops */
    { { STD }, SYS_ioctl, 0, 0x5412, 0, EPERM },
    { { STD }, SYS_ioctl, 0, HIGH | 0x5412, 0, EPERM },
    { { STD }, SYS_ioctl, 0, ANYWHERE | 0x541c, 0, EPERM },
    { { STD }, SYS_ioctl, 0, 0x5413, 0, SC_ALLOW },
    { { MAXI }, SYS_ioctl, 0, ANYWHERE | 0x5412, 0, EPERM },
    { { MAXI }, SYS_ioctl, 0, 0x5413, 0, SC_ALLOW },
    { { MAXI }, SYS_ioctl, 0, 0xc0502100, 0, SC_ALLOW },     /* seccomp notification */
    { { MAXI }, SYS_ioctl, 0, 0x89e0, 0, ENOTTY },
    { { STD }, SYS_ioctl, 0, 0x8933, 0, SC_ALLOW },            /* SIOCGIFINDEX */
    { { STD }, SYS_ioctl, 0, 0x8914, 0, ENOTTY },              /* SIOCSIFFLAGS */
    { { STD }, SYS_ioctl, 0, 0x40049409, 0, SC_ALLOW },        /* FICLONE */
    { { STD }, SYS_ioctl, 0, 0x5000940e, 0, ENOTTY },          /* BTRFS_IOC_SUBVOL_CREATE: makes a name */
    { { STD }, SYS_ioctl, 0, 0x50009417, 0, ENOTTY },          /* BTRFS_IOC_SNAP_CREATE_V2 */
    { { LITE }, SYS_ioctl, 0, 0x4020bc10, 0, ENOTTY },         /* BCH_IOCTL_SUBVOLUME_CREATE */
    { { STD }, SYS_ioctl, 0, 0xae01, 0, ENOTTY },              /* KVM_CREATE_VM */
    /* namespaces */
    { { STD }, SYS_clone, 0x11, 0, 0, SC_ALLOW },
    { { STD }, SYS_clone, 0x3d0f00, 0, 0, SC_ALLOW },          /* pthread_create */
    { { STD }, SYS_clone, 0x10000011, 0, 0, EPERM },
    { { STD }, SYS_clone, HIGH | 0x20000000, 0, 0, EPERM },
    { { STD, .nested_userns = true }, SYS_clone, 0x10000011, 0, 0, SC_ALLOW },
    { { STD }, SYS_clone3, 0, 0, 0, ENOSYS },
    { { STD }, SYS_unshare, 0x400, 0, 0, SC_ALLOW },           /* CLONE_FILES */
    { { STD }, SYS_unshare, 0x80, 0, 0, EPERM },               /* CLONE_NEWTIME */
    { { STD }, SYS_unshare, HIGH | 0x40000000, 0, 0, EPERM },
    { { STD }, SYS_setns, 3, 0, 0, EPERM },
    { { STD }, SYS_mount, 0, 0, 0, EPERM },
    { { STD, .nested_userns = true }, SYS_mount, 0, 0, 0, SC_ALLOW },
    /* sockets */
    { { STD }, SYS_socket, AF_UNIX, SOCK_DGRAM, 0, SC_ALLOW },
    { { STD }, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, SC_ALLOW },
    { { STD }, SYS_socket, AF_INET, SOCK_STREAM, 262, EPROTONOSUPPORT },      /* MPTCP */
    { { STD }, SYS_socket, AF_PACKET, SOCK_RAW, 0, EAFNOSUPPORT },
    { { STD }, SYS_socket, HIGH | 40, SOCK_STREAM, 0, EAFNOSUPPORT },         /* vsock */
    { { STD }, SYS_socket, 38, SOCK_SEQPACKET, 0, EAFNOSUPPORT },             /* AF_ALG */
    { { STD }, SYS_socket, AF_NETLINK, SOCK_RAW, 0, SC_ALLOW },
    { { STD }, SYS_socket, AF_NETLINK, SOCK_RAW, 12, EAFNOSUPPORT },          /* netfilter */
    { { MAXI }, SYS_socket, AF_NETLINK, SOCK_RAW, 0, EAFNOSUPPORT },
    { { STD, .unix_sockets = SECCOMP_UNIX_PAIRS }, SYS_socket, AF_UNIX, SOCK_STREAM, 0, EPERM },
    { { STD, .unix_sockets = SECCOMP_UNIX_PAIRS }, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, SC_ALLOW },
    { { STD, .unix_sockets = SECCOMP_UNIX_PAIRS }, SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, EPERM },
    { { STD, .unix_sockets = SECCOMP_UNIX_PAIRS }, SYS_socket, AF_INET, SOCK_STREAM, 6, SC_ALLOW },
    { { STD, .unix_sockets = SECCOMP_UNIX_CONNECTED }, SYS_socket, AF_UNIX, SOCK_STREAM | 02004000, 0, SC_ALLOW },
    { { STD, .unix_sockets = SECCOMP_UNIX_CONNECTED }, SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0, SC_ALLOW },
    { { STD, .unix_sockets = SECCOMP_UNIX_CONNECTED }, SYS_socket, AF_UNIX, SOCK_DGRAM, 0, EPERM },
    { { STD, .unix_sockets = SECCOMP_UNIX_CONNECTED }, SYS_socket, AF_UNIX, SOCK_RAW, 0, EPERM },    /* is datagram */
    { { STD, .unix_sockets = SECCOMP_UNIX_CONNECTED }, SYS_socketpair, AF_UNIX, HIGH | 2, 0, SC_ALLOW },     /* the guard's */
    { { LITE, .network_closed = true }, SYS_socket, AF_INET, SOCK_STREAM, 0, EAFNOSUPPORT },
    { { LITE, .network_closed = true }, SYS_socket, AF_NETLINK, SOCK_RAW, 0, EAFNOSUPPORT },
    { { LITE, .network_closed = true }, SYS_socket, AF_UNIX, SOCK_STREAM, 0, SC_ALLOW },
    { { LITE }, SYS_socket, AF_INET, SOCK_STREAM, 0, SC_ALLOW },
    { { STD }, SYS_setsockopt, 3, 6, 31, ENOPROTOOPT },        /* TCP_ULP */
    { { STD }, SYS_setsockopt, 3, 6, 1, SC_ALLOW },            /* TCP_NODELAY */
    { { STD }, SYS_setsockopt, 3, 1, 31, SC_ALLOW },           /* the same number, another level */
    { { STD }, SYS_setsockopt, 3, 1, 26, SC_ALLOW },           /* SO_ATTACH_FILTER */
    { { MAXI }, SYS_setsockopt, 3, HIGH | 1, 26, EPERM },
    { { MAXI }, SYS_setsockopt, 3, 1, 2, SC_ALLOW },           /* SO_REUSEADDR */
    /* without a PID namespace: only oneself */
    { { LITE }, SYS_prlimit64, 0, 7, 0x7fff0000, SC_ALLOW },
    { { LITE }, SYS_prlimit64, 4711, 7, 0, SC_ALLOW },
    { { LITE }, SYS_prlimit64, 4711, 7, 0x7fff0000, EPERM },
    { { LITE }, SYS_prlimit64, 4711, 7, HIGH, EPERM },         /* a pointer whose low half is zero */
    { { STD }, SYS_prlimit64, 4711, 7, 0x7fff0000, SC_ALLOW },
    /* process 1 is the guest */
    { { STD }, SYS_prlimit64, 1, 7, 0x7fff0000, EPERM },
    { { MAXI }, SYS_prlimit64, HIGH | 1, 7, 0x7fff0000, EPERM },
    { { STD }, SYS_prlimit64, 1, 7, 0, SC_ALLOW },
    { { STD }, SYS_sched_setscheduler, 1, 5, 0x7fff0000, EPERM },
    { { STD }, SYS_sched_setscheduler, 2, 5, 0x7fff0000, SC_ALLOW },
    { { STD }, SYS_setpriority, 0, 1, 19, EPERM },
    { { STD }, SYS_setpriority, 0, 0, 19, SC_ALLOW },
    { { STD }, SYS_ioprio_set, 1, 1, 0, EPERM },
    { { LITE }, SYS_shmget, 0, 0, 0, ENOSYS },
    /* files */
    { { STD }, SYS_fchmodat, 0, 0, 0100755, SC_ALLOW },
    { { STD }, SYS_fchmodat, 0, 0, 04755, EPERM },
    { { STD }, SYS_fchmodat, 0, 0, 02755, SC_ALLOW },
    { { MAXI }, SYS_fchmodat, 0, 0, 02755, EPERM },
    { { STD }, SYS_openat, 0, 0, O_RDONLY, SC_ALLOW },
    { { STD }, SYS_openat, 0, 0, O_CREAT | O_WRONLY, SC_ALLOW },
    { { STD }, SYS_mknodat, 0, 0, 0104755, EPERM },
    { { STD }, SYS_mknodat, 0, 0, 0102755, EPERM },
#ifdef SYS_open
    { { STD }, SYS_open, 0, O_CREAT | O_WRONLY, 0755, SC_ALLOW },
    { { STD }, SYS_open, 0, O_CREAT | O_WRONLY, 04755, EPERM },
    { { LITE }, SYS_open, 0, O_CREAT | O_RDONLY, 02755, EPERM },
    { { MAXI }, SYS_open, 0, O_CREAT | O_RDONLY, 01644, EPERM },
    { { STD }, SYS_open, 0, O_TMPFILE | O_RDWR, 06755, EPERM },
    { { STD }, SYS_open, 0, O_WRONLY, 06755, SC_ALLOW },       /* nothing is made: no mode */
    { { STD }, SYS_creat, 0, 0644, 0, SC_ALLOW },
    { { STD }, SYS_creat, 0, 06755, 0, EPERM },
#endif
    { { STD }, SYS_mknodat, 0, 0, 0010644, SC_ALLOW },         /* FIFO */
    { { STD }, SYS_mknodat, 0, 0, 0020644, EPERM },            /* character device */
    { { STD }, SYS_mknodat, 0, 0, 0060644, EPERM },            /* block device */
    { { STD }, SYS_mknodat, 0, 0, 0140644, SC_ALLOW },         /* socket: shares a bit with both */
    /* the rest */
    { { STD }, SYS_personality, 0xffffffff, 0, 0, SC_ALLOW },
    { { STD }, SYS_personality, 0x0400000, 0, 0, EPERM },      /* READ_IMPLIES_EXEC */
    { { STD }, SYS_prctl, 38, 1, 0, SC_ALLOW },                /* no_new_privs */
    { { STD }, SYS_prctl, 35, 0, 0, EPERM },                   /* PR_SET_MM */
    { { STD }, SYS_prctl, 0x12345678, 0, 0, EINVAL },
    { { STD }, SYS_ptrace, 0, 0, 0, EPERM },
    { { STD, .ptrace = true }, SYS_ptrace, 0, 0, 0, SC_ALLOW },
    { { MAXI }, SYS_seccomp, 1, 8, 0, SC_ALLOW },              /* the guard's listener */
    { { MAXI }, SYS_openat2, 0, 0, 0, SC_ALLOW },
    { { MAXI }, SYS_pidfd_getfd, 0, 0, 0, SC_ALLOW },
    { { STD }, SYS_bpf, 0, 0, 0, EPERM },
    { { STD }, 425, 0, 0, 0, ENOSYS },                         /* io_uring_setup */
    { { STD, .nested_userns = true, .ptrace = true }, SYS_keyctl, 0, 0, 0, EPERM },
    { { STD }, SYS_open_by_handle_at, 0, 0, 0, EPERM },
    { { STD }, 499, 0, 0, 0, ENOSYS },
};

static void
test_rows_written_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t args[6] = { rows[i].a0, rows[i].a1, rows[i].a2, 0, 0, 0 };
        bool loads;
        uint32_t got = ask(&rows[i].plan, NATIVE_ARCH, (uint32_t)rows[i].nr, args, &loads);

        if (got != return_value(rows[i].want))
            fail_msg("row %zu (system call %ld): program says %#x, expected %#x", i, rows[i].nr, got,
                     return_value(rows[i].want));
    }
}

/* A list much larger than ours, so that jumps become too long for their eight bits: every second call has rules of its
 * own, of every kind that the grammar has. */
static int
write_large_list(char *path)
{
    cleanup_buf struct buf b = BUF_INIT(1024 * 1024);
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);

    for (size_t i = 0; i < lists.n_rules && i < 240; i++) {
        unsigned n = (unsigned)i;

        if (i % 2 == 0) {
            buf_printf(&b, "%s %s ENOSYS allow # x\n", lists.rules[i].name, i % 4 == 0 ? "allow" : "EPERM");
            continue;
        }
        buf_printf(&b, "%s rules allow rules # x\n", lists.rules[i].name);
        buf_printf(&b, "    arg0 & 0xff0 == %u, ptr2 == 0 -> EACCES\n", (n % 16) << 4);
        buf_printf(&b, "    arg0 in { %u-%u, %u } -> EPERM\n", n, n + 40, n + 1000);
        buf_printf(&b, "    [max] arg1 & %u, arg1 == %u -> EINVAL\n", 1u << n % 31, 3u << n % 30);
        buf_printf(&b, "    otherwise -> allow\n");
    }
    return fd >= 0 && buf_ok(&b) ? io_write_full(fd, b.p, b.n) : -1;
}

static void
test_programs_longer_than_a_jump(void **state)
{
    static struct sock_filter insn[BPF_MAXINSNS];
    static struct sc_data ours;
    char path[] = "/tmp/cloche-syscalls-XXXXXX";
    struct err err = ERR_INIT;
    (void)state;

    assert_int_equal(write_large_list(path), 0);
    ours = lists;
    memset(&lists, 0, sizeof(lists));
    if (sc_parse_list(&lists, path, &err) < 0)
        fail_msg("%s", err.msg);
    unlink(path);
    index_rules();
    for (size_t v = 0; v < SC_N_VARIANTS; v += 24) {
        struct seccomp_plan plan = sc_variant(v);
        int n = sc_emit(&lists, NATIVE_ARCH, &plan, insn, &err);
        const struct sock_fprog prog = { .len = (unsigned short)n, .filter = insn };

        if (n < (plan.list == SECCOMP_LIST_LIGHT ? 60 : 600))
            fail_msg("%d instructions: %s", n, err.msg);
        under_test = &prog;
        for (uint32_t nr = 0; nr < SC_NR_MAX; nr++)
            if (rule_of(nr) != NULL && rule_of(nr)->n_clauses > 0)
                check_rules(&plan, nr, rule_of(nr));
            else
                check(&plan, nr, (const uint64_t[6]){ 0 });
        under_test = NULL;
    }
    lists = ours;
    index_rules();
}

static void
test_lists_with_mistakes_are_refused(void **state)
{
    static const char *const bad[] = {
        "read allow allow # two answers\n",
        "read allow allow allow\n",                                     /* no reason */
        "read allow allow EWHAT # unknown answer\n",
        "read allow allow allow # x\nread allow allow allow # twice\n",
        "read rules rules rules # nothing below\n",
        "read rules rules rules # x\n  arg0 == 1 -> EPERM\n",           /* falls off the end */
        "read rules rules rules # x\n  [max] otherwise -> EPERM\n",     /* so does this, elsewhere */
        "read allow allow allow # x\n  otherwise -> EPERM\n",
        "read rules rules rules # x\n  arg6 == 1 -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  arg0 == WHAT -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  arg0 == 0x100000000 -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  arg0 in { 3-1 } -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  ptr0 == 1 -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  [tuesday] arg0 == 1 -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  [max light] arg0 == 1 -> EPERM\n  otherwise -> allow\n",
        "read rules rules rules # x\n  arg0 == 1 EPERM\n  otherwise -> allow\n",
    };
    static struct sc_data d;
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char path[] = "/tmp/cloche-syscalls-XXXXXX";
        cleanup_close int fd = mkostemp(path, O_CLOEXEC);
        struct err err = ERR_INIT;
        int r;

        assert_int_equal(io_write_full(fd, bad[i], strlen(bad[i])), 0);
        memset(&d, 0, sizeof(d));
        r = sc_parse_list(&d, path, &err);
        unlink(path);
        if (r == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_string_equal(err.code, "seccomp.syntax");
    }
}

static int
setup(void **state)
{
    static const char *const names[] = { "files", "processes", "network", "system" };
    char path[4][512];
    struct err err = ERR_INIT;
    int r;
    (void)state;

    r = sc_parse_numbers(&lists, SYSCALL_LISTS "/numbers.list", &err);
    for (size_t i = 0; r == 0 && i < 4; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%s.list", SYSCALL_LISTS, names[i]);
        r = sc_parse_list(&lists, path[i], &err);
    }
    if (r == 0)
        r = sc_check_complete(&lists, NATIVE_ARCH, &err);
    if (r != 0)
        print_error("%s\n", err.msg);
    for (size_t i = 0; i < lists.n_rules; i++)      /* the paths above go out of scope */
        lists.rules[i].file = "";
    index_rules();
    return r;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number_in_every_variant),
        cmocka_unit_test(test_plain_calls_do_not_look_at_arguments),
        cmocka_unit_test(test_other_entries),
        cmocka_unit_test(test_programs_are_well_formed),
        cmocka_unit_test(test_bad_plans_have_no_program),
        cmocka_unit_test(test_rows_written_by_hand),
        cmocka_unit_test(test_opened_calls_and_no_other),
        cmocka_unit_test(test_programs_longer_than_a_jump),
        cmocka_unit_test(test_lists_with_mistakes_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
