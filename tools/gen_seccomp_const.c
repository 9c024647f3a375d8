/* tools/gen_seccomp_const.c: the names that the system call lists may use
 *
 * Values that the headers of a supported distribution lack are written out; the others come from the headers of
 * the machine that is built for, because some differ by architecture.
 */
#include <asm/ioctls.h>
#include <fcntl.h>
#include <asm/termbits.h>
#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/str.h"
#include "gen_seccomp.h"

#define CLONE_NEWTIME_ 0x80u
/* In clone() the low byte is the exit signal, so a time namespace cannot be asked for there. */
#define NEW_ANY                                                                                           \
    ((uint32_t)CLONE_NEWNS | (uint32_t)CLONE_NEWCGROUP | (uint32_t)CLONE_NEWUTS | (uint32_t)CLONE_NEWIPC | \
     (uint32_t)CLONE_NEWUSER | (uint32_t)CLONE_NEWPID | (uint32_t)CLONE_NEWNET)

#define C(name) { #name, (uint32_t)(name) }

static const struct constant {
    const char *name;
    uint32_t value;
} constants[] = {
    { "CLONE_NEW_ANY", NEW_ANY },
    { "CLONE_NEW_ANY_UNSHARE", NEW_ANY | CLONE_NEWTIME_ },
    /* files */
    C(S_IFCHR), C(S_IFBLK), C(S_ISUID), C(S_ISGID),
    { "S_SPECIAL", S_ISUID | S_ISGID | S_ISVTX },
    { "O_CREATES", O_CREAT | 020000000 /* O_TMPFILE without the O_DIRECTORY that it carries */ },
    /* terminals and descriptors */
    C(TIOCSTI), C(TIOCLINUX), C(TIOCCONS), C(TIOCSETD), C(TCGETS), C(TCFLSH), C(TIOCNXCL), C(TIOCOUTQ),
    C(TIOCGWINSZ), C(FIONREAD), C(TIOCPKT),
    C(TIOCNOTTY), C(TIOCGETD), C(TIOCGSID), C(TIOCGPTPEER), C(TCGETS2), C(TCSETS2), C(TCSETSW2), C(TCSETSF2),
    C(TIOCGPTN), C(TIOCSPTLCK), C(FIONCLEX), C(FIOASYNC), C(FIOQSIZE),
    /* files and sockets */
    C(FIGETBSZ), C(FICLONE), C(FICLONERANGE), C(FIDEDUPERANGE), C(FS_IOC_GETFLAGS), C(FS_IOC_SETFLAGS),
    C(FS_IOC_FIEMAP), C(FS_IOC_GETVERSION), C(FS_IOC_FSGETXATTR), C(FS_IOC_FSSETXATTR),
    C(RNDGETENTCNT), C(FIOSETOWN), C(SIOCGSTAMPNS_OLD), C(SIOCGIFNAME), C(SIOCGIFCONF), C(SIOCGIFFLAGS),
    C(SIOCGIFADDR), C(SIOCGIFBRDADDR), C(SIOCGIFNETMASK), C(SIOCGIFMTU),
    C(SIOCGIFHWADDR), C(SIOCGIFINDEX), C(SIOCETHTOOL), C(SIOCOUTQNSD),
    /* seccomp */
    C(SECCOMP_IOCTL_NOTIF_RECV), C(SECCOMP_IOCTL_NOTIF_SEND), C(SECCOMP_IOCTL_NOTIF_ID_VALID),
    C(SECCOMP_IOCTL_NOTIF_ADDFD),
    { "SECCOMP_IOCTL_NOTIF_SET_FLAGS", 0x40082104u },
    /* personality */
    C(UNAME26), C(ADDR_NO_RANDOMIZE),
    /* prctl */
    C(PR_SET_MM), C(PR_MCE_KILL), C(PR_MCE_KILL_GET), C(PR_SET_PDEATHSIG), C(PR_SET_DUMPABLE), C(PR_GET_KEEPCAPS),
    C(PR_SET_KEEPCAPS), C(PR_SET_NAME), C(PR_GET_NAME), C(PR_GET_SECCOMP), C(PR_SET_SECUREBITS), C(PR_SET_TIMERSLACK),
    C(PR_GET_TIMERSLACK), C(PR_SET_CHILD_SUBREAPER), C(PR_GET_THP_DISABLE), C(PR_CAP_AMBIENT), C(PR_SVE_SET_VL),
    C(PR_SVE_GET_VL), C(PR_GET_SPECULATION_CTRL), C(PR_GET_TAGGED_ADDR_CTRL), C(PR_GET_TIMING), C(PR_SET_TIMING),
    C(PR_SET_PTRACER),
    { "PR_SET_IO_FLUSHER", 57 },
    { "PR_SET_SYSCALL_USER_DISPATCH", 59 },
    { "PR_PAC_SET_ENABLED_KEYS", 60 },
    { "PR_PAC_GET_ENABLED_KEYS", 61 },
    { "PR_SCHED_CORE", 62 },
    { "PR_SET_MDWE", 65 },
    { "PR_GET_MDWE", 66 },
    { "PR_SET_MEMORY_MERGE", 67 },
    { "PR_GET_AUXV", 0x41555856u },
    { "PR_SET_VMA", 0x53564d41u },
    /* limits and priorities */
    C(RLIMIT_CORE),
    C(PRIO_PROCESS),
    { "IOPRIO_WHO_PROCESS", 1 },
    /* sockets; the type's upper bits are flags */
    C(AF_UNIX), C(AF_INET), C(AF_INET6), C(AF_NETLINK), C(SOCK_STREAM), C(SOCK_SEQPACKET), C(IPPROTO_ICMP),
    C(IPPROTO_TCP), C(IPPROTO_UDP), C(IPPROTO_ICMPV6), C(NETLINK_ROUTE), C(SOL_TCP), C(TCP_ULP), C(SOL_SOCKET),
    C(SO_ATTACH_FILTER), C(SO_ATTACH_BPF), C(SO_ATTACH_REUSEPORT_EBPF),
    { "SOCK_TYPE_MASK", 0xf },
};

static const struct {
    const char *name;
    int value;
} answers[] = {
    { "allow", SC_ALLOW },
    { "kill", SC_KILL },
    { "rules", SC_RULES },
    { "done", SC_DONE },
    { "EPERM", EPERM },
    { "ENOSYS", ENOSYS },
    { "EINVAL", EINVAL },
    { "ENOTTY", ENOTTY },
    { "EACCES", EACCES },
    { "EAFNOSUPPORT", EAFNOSUPPORT },
    { "EPROTONOSUPPORT", EPROTONOSUPPORT },
    { "ENOPROTOOPT", ENOPROTOOPT },
};

/* 0x… hexadecimal, 0… octal (file modes), else decimal; at most 32 bits */
static bool
number(struct str s, uint32_t *out)
{
    uint64_t v = 0;

    if (str_starts(s, STR_LIT("0x"))) {
        if (!str_parse_hex((struct str){ .p = s.p + 2, .n = s.n - 2 }, UINT32_MAX, &v))
            return false;
    } else if (s.n > 1 && s.p[0] == '0') {
        for (size_t i = 1; i < s.n; i++) {
            if (s.p[i] < '0' || s.p[i] > '7' || v > UINT32_MAX >> 3)
                return false;
            v = v << 3 | (uint64_t)(s.p[i] - '0');
        }
    } else if (!str_parse_u64(s, UINT32_MAX, &v)) {
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

bool
sc_constant(const char *name, size_t n, uint32_t *out)
{
    struct str s = { .p = name, .n = n };

    if (number(s, out))
        return true;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (str_eq_c(s, constants[i].name)) {
            *out = constants[i].value;
            return true;
        }
    return false;
}

bool
sc_answer(const char *name, size_t n, int *out)
{
    struct str s = { .p = name, .n = n };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (str_eq_c(s, answers[i].name)) {
            *out = answers[i].value;
            return true;
        }
    return false;
}
