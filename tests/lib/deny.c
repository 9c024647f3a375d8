/* tests/lib/deny.c: take system calls away from a command, to see how it copes with an older or stricter host
 *
 *   deny RULE[,RULE...] -- COMMAND...
 *
 *   RULE    NAME                     ENOSYS
 *           NAME:ERRNO
 *           NAME:KILL_THREAD         the calling thread ends, and its process goes on without it
 *           NAME:ARG&MASK=ERRNO      when a bit of MASK is set in the low half of ARG (arg0 to arg5; flags = arg0)
 *           NAME:ARG==VALUE=ERRNO
 *           @userns @landlock @newmount @notify @seccomp     groups, see below
 *
 * NAME may be a number. Without privilege no_new_privs is set as well, because the kernel demands it. Exit codes: 125
 * for a mistake of ours, 126/127 as a shell's.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"

#if defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#endif

#define INSN_MAX 1024

static struct sock_filter insn[INSN_MAX];
static unsigned short n_insn;

static const struct {
    const char *name, *rules;
} groups[] = {
    { "@userns",
      "clone:flags&0x10000000=EPERM,unshare:flags&0x10000000=EPERM,clone3:EPERM" },
    { "@landlock",
      "landlock_create_ruleset:EOPNOTSUPP,landlock_add_rule:EOPNOTSUPP,landlock_restrict_self:EOPNOTSUPP" },
    { "@newmount", "open_tree,move_mount,fsopen,fsconfig,fsmount,fspick,mount_setattr" },
    { "@notify", "seccomp:arg1&8=EINVAL" },
    { "@seccomp", "prctl:arg0==22=EINVAL,seccomp" },
};

static const struct {
    const char *name;
    uint32_t value;
} errnos[] = {
    { "EPERM", EPERM },   { "ENOSYS", ENOSYS },         { "EINVAL", EINVAL }, { "EACCES", EACCES },
    { "ENOSPC", ENOSPC }, { "EOPNOTSUPP", EOPNOTSUPP }, { "EAGAIN", EAGAIN }, { "ENOMEM", ENOMEM },
    { "EMFILE", EMFILE }, { "EIO", EIO },               { "EBUSY", EBUSY },   { "EUSERS", EUSERS },         { "ENODEV", ENODEV }, { "EXDEV", EXDEV },
    { "SUCCESS", 0 },     /* said, not done: what an emulation of root answers */
};

static void
die(const char *what, struct str at)
{
    fprintf(stderr, "deny: %s: \"%.*s\"\n", what, (int)at.n, at.p);
    exit(125);
}

static void
add(uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (n_insn == INSN_MAX)
        die("too many rules", STR_LIT(""));
    insn[n_insn++] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

/* Cut at the first @sep; *rest.p is NULL when there is none. */
static struct str
cut(struct str s, const char *sep, struct str *rest)
{
    size_t n = strlen(sep);

    for (size_t i = 0; i + n <= s.n; i++)
        if (memcmp(s.p + i, sep, n) == 0) {
            *rest = (struct str){ .p = s.p + i + n, .n = s.n - i - n };
            return (struct str){ .p = s.p, .n = i };
        }
    *rest = (struct str){ .p = NULL, .n = 0 };
    return s;
}

static uint32_t
number(struct str s)
{
    uint64_t v = 0;

    bool ok = str_starts(s, STR_LIT("0x")) ? str_parse_hex((struct str){ .p = s.p + 2, .n = s.n - 2 }, UINT32_MAX, &v)
                                           : str_parse_u64(s, UINT32_MAX, &v);

    if (!ok)
        die("not a number", s);
    return (uint32_t)v;
}

static uint32_t
system_call(struct str name)
{
    char text[64];
    int nr;

    if (name.n > 0 && name.p[0] >= '0' && name.p[0] <= '9')
        return number(name);
    if (name.n >= sizeof(text))
        die("unknown system call", name);
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    nr = seccomp_syscall_resolve_name(text);
    if (nr < 0)
        die("unknown system call", name);
    return (uint32_t)nr;
}

/* What the filter returns for @name. */
static uint32_t
action(struct str name)
{
    if (str_eq_c(name, "KILL_THREAD"))
        return SECCOMP_RET_KILL_THREAD;
    for (size_t i = 0; i < ARRAY_LEN(errnos); i++)
        if (str_eq_c(name, errnos[i].name))
            return SECCOMP_RET_ERRNO | errnos[i].value;
    die("unknown errno", name);
    return 0;
}

static uint32_t
argument(struct str name)
{
    uint32_t i = 0;

    if (!str_eq_c(name, "flags")) {
        if (name.n != 4 || !str_starts(name, STR_LIT("arg")) || name.p[3] < '0' || name.p[3] > '5')
            die("expected arg0 to arg5, or flags", name);
        i = (uint32_t)(name.p[3] - '0');
    }
    return (uint32_t)offsetof(struct seccomp_data, args) + 8 * i;
}

/* `ARG&MASK` or `ARG==VALUE`: skip the following return unless it holds; the number is loaded again at the end. */
static void
condition(struct str s, uint32_t answer)
{
    struct str value;
    struct str arg = cut(s, "==", &value);
    bool equal = value.p != NULL;

    if (!equal)
        arg = cut(s, "&", &value);
    if (value.p == NULL)
        die("expected ARG&MASK or ARG==VALUE", s);
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, argument(arg));
    add((uint16_t)(BPF_JMP | (equal ? BPF_JEQ : BPF_JSET) | BPF_K), 0, 1, number(value));
    add(BPF_RET | BPF_K, 0, 0, answer);
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
}

static void
rule(struct str s)
{
    struct str answer, error = { .p = NULL, .n = 0 };
    struct str name = cut(s, ":", &answer);
    struct str cond = answer;
    uint32_t nr = system_call(name);

    /* the errno follows the last "=", which may itself follow an "==" */
    for (size_t i = answer.n; answer.p != NULL && i-- > 0;)
        if (answer.p[i] == '=') {
            error = (struct str){ .p = answer.p + i + 1, .n = answer.n - i - 1 };
            cond.n = i;
            break;
        }
    if (error.p == NULL) {
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr);
        add(BPF_RET | BPF_K, 0, 0, answer.p != NULL ? action(answer) : SECCOMP_RET_ERRNO | (uint32_t)ENOSYS);
        return;
    }
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, nr);
    condition(cond, action(error));
}

static void
rules(struct str s)
{
    while (s.p != NULL) {
        struct str rest;
        struct str one = cut(s, ",", &rest);
        bool group = one.n > 0 && one.p[0] == '@';
        bool known = false;

        for (size_t i = 0; group && i < ARRAY_LEN(groups); i++)
            if (str_eq_c(one, groups[i].name)) {
                known = true;
                rules(str_of(groups[i].rules));
            }
        if (group && !known)
            die("unknown group", one);
        if (!group)
            rule(one);
        s = rest;
    }
}

static int
install(void)
{
    const struct sock_fprog program = { .len = n_insn, .filter = insn };

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &program) == 0)
        return 0;
    if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &program);
}

int
main(int argc, char **argv)
{
    if (argc < 4 || strcmp(argv[2], "--") != 0) {
        fprintf(stderr, "usage: deny RULE[,RULE...] -- COMMAND...\n");
        return 125;
    }
    /* other architectures' calls have other numbers: let them pass */
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    rules(str_of(argv[1]));
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    if (install() < 0) {
        perror("deny: seccomp");
        return 125;
    }
    execvp(argv[3], &argv[3]);
    fprintf(stderr, "deny: %s: %s\n", argv[3], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
