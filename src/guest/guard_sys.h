/* guest/guard_sys.h: the kernel's side of the name guard, spelled out
 *
 * cloche-guest is built against musl, where the kernel's own headers are not at hand, and these interfaces are newer
 * than the oldest headers that we build with. Everything here is ABI and does not change.
 */
#ifndef CLOCHE_GUEST_GUARD_SYS_H
#define CLOCHE_GUEST_GUARD_SYS_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* seccomp(2) */
#define GS_SET_MODE_FILTER      1
#define GS_GET_ACTION_AVAIL     2
#define GS_GET_NOTIF_SIZES      3
#define GS_FLAG_NEW_LISTENER    (1UL << 3)
#define GS_FLAG_WAIT_KILLABLE   (1UL << 5)      /* Linux 5.19 */
#define GS_RET_USER_NOTIF       0x7fc00000u
#define GS_RET_ALLOW            0x7fff0000u
#define GS_RET_ERRNO            0x00050000u

struct gs_prog {
    unsigned short len;
    const void *filter;
};

struct gs_notif_sizes {
    uint16_t notif, resp, data;
};

struct gs_notif {               /* struct seccomp_notif with its seccomp_data */
    uint64_t id;
    uint32_t pid, flags;
    int32_t nr;
    uint32_t arch;
    uint64_t ip;
    uint64_t args[6];
};

struct gs_resp {
    uint64_t id;
    int64_t val;
    int32_t error;
    uint32_t flags;
};

struct gs_addfd {
    uint64_t id;
    uint32_t flags, srcfd, newfd, newfd_flags;
};

_Static_assert(sizeof(struct gs_notif) == 80 && sizeof(struct gs_resp) == 24 && sizeof(struct gs_addfd) == 24, "ABI");

#define GS_GO_ON                1u              /* SECCOMP_USER_NOTIF_FLAG_CONTINUE, Linux 5.5 */
#define GS_ADDFD_SEND           2u              /* Linux 5.14 */
#define GS_NOTIF_RECV           0xc0502100ul
#define GS_NOTIF_SEND           0xc0182101ul
#define GS_NOTIF_ID_VALID       0x40082102ul
#define GS_NOTIF_ADDFD          0x40182103ul
#define GS_NOTIF_SET_FLAGS      0x40082104ul    /* Linux 6.6 */
#define GS_SYNC_WAKE_UP         1ul

/* openat2(2) */
struct gs_open_how {
    uint64_t flags, mode, resolve;
};
#define GS_RESOLVE_NO_MAGICLINKS 0x02u
#define GS_RESOLVE_NO_SYMLINKS   0x04u

#define GS_PROC_MAGIC           0x9fa0
#define GS_TMPFS_MAGIC          0x01021994
#define GS_ST_NOSYMFOLLOW       0x2000          /* statfs f_flags */
#define GS_PIDFD_THREAD         0200u           /* O_EXCL, Linux 6.9 */
#define GS_OPEN_TMPFILE         020000000       /* O_TMPFILE without the O_DIRECTORY that it carries */
#define GS_RENAME_NOREPLACE     1u
#define GS_RENAME_EXCHANGE      2u
#define GS_RENAME_WHITEOUT      4u

/* Numbers of calls that libc headers may not know; from 424 on they are the same on every architecture. */
#define GS_NR_pidfd_send_signal 424
#define GS_NR_io_uring_setup    425
#define GS_NR_io_uring_enter    426
#define GS_NR_io_uring_register 427
#define GS_NR_open_tree         428
#define GS_NR_move_mount        429
#define GS_NR_fsopen            430
#define GS_NR_fsmount           432
#define GS_NR_fspick            433
#define GS_NR_pidfd_open        434
#define GS_NR_openat2           437
#define GS_NR_pidfd_getfd       438
#define GS_NR_mount_setattr     442
#define GS_NR_landlock_create_ruleset 444
#define GS_NR_landlock_restrict_self  446
#define GS_NR_fchmodat2         452
#define GS_NR_setxattrat        463
#define GS_NR_removexattrat     466
#define GS_NR_open_tree_attr    467
#define GS_NR_file_setattr      469

#if defined(__x86_64__)
#define GS_ARCH 0xc000003eu     /* AUDIT_ARCH_X86_64 */
#define GS_X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define GS_ARCH 0xc00000b7u     /* AUDIT_ARCH_AARCH64 */
#else
#error "the name guard's filter is not written for this architecture"
#endif

#endif
