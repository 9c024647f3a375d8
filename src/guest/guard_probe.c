/* guest/guard_probe.c: can the name guard work on this kernel? Used on the host's side (see guard.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "base/str.h"
#include "guest/guard.h"
#include "guest/guard_sys.h"

/* "6.1.0-rc2" → 6, 1 */
static bool
kernel_version(uint64_t *major, uint64_t *minor)
{
    struct utsname u;
    struct str s;
    size_t dot, end;

    if (uname(&u) < 0)
        return false;
    s = str_of(u.release);
    dot = strcspn(u.release, ".");
    if (dot == s.n)
        return false;
    end = strspn(s.p + dot + 1, "0123456789");
    return str_parse_u64((struct str){ s.p, dot }, UINT32_MAX, major) &&
           str_parse_u64((struct str){ s.p + dot + 1, end }, UINT32_MAX, minor);
}

/* Yama may forbid looking into one's own descendants. */
static int
probe_yama(struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(16);

    if (io_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &b) < 0 || b.n == 0 || b.p[0] < '2')
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED, "guard.unsupported",
                  "kernel.yama.ptrace_scope is %c: a process may not read the memory of its own children", b.p[0]);
    return err_hint(err, "sysctl kernel.yama.ptrace_scope=1");
}

int
guard_probe(struct err *err)
{
    const uint32_t action = GS_RET_USER_NOTIF;
    struct gs_notif_sizes sizes = { 0, 0, 0 };
    uint64_t major = 0, minor = 0;

    if (syscall(SYS_seccomp, GS_GET_ACTION_AVAIL, 0, &action) < 0)
        return err_sys(err, errno, "guard.unsupported", "seccomp user notification (Linux 5.0)");
    if (syscall(SYS_seccomp, GS_GET_NOTIF_SIZES, 0, &sizes) < 0)
        return err_sys(err, errno, "guard.unsupported", "seccomp notification sizes");
    if (sizes.notif != sizeof(struct gs_notif) || sizes.resp != sizeof(struct gs_resp))
        return err_set(err, ERR_UNSUPPORTED, "guard.unsupported",
                       "seccomp notifications of %u and %u bytes; this build knows %zu and %zu", sizes.notif,
                       sizes.resp, sizeof(struct gs_notif), sizeof(struct gs_resp));
    /* Only a live listener could tell whether SECCOMP_ADDFD_FLAG_SEND is there. */
    if (!kernel_version(&major, &minor) || major < 5 || (major == 5 && minor < 14)) {
        (void)err_set(err, ERR_UNSUPPORTED, "guard.unsupported",
                      "descriptors cannot be handed over with an answer (SECCOMP_ADDFD_FLAG_SEND)");
        return err_hint(err, "Linux 5.14 or newer");
    }
    return probe_yama(err);
}
