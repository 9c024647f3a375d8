/* cli/keeper_confine.c: what a keeper has no use for once its sandbox is made
 *
 * Before that it needs every right of its user, and would hand a filter down. From then on it hears its guest, and this
 * is gone for it and what it starts, which is cloche-egress anew and what cleans up: ways into other processes, the
 * machine's own affairs, and the parts of the kernel where most flaws are found. The sandbox lives already: nothing of
 * this reaches it.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "cli/keeper.h"
#include "cli/peer.h"
#include "wall/service.h"

static const unsigned denied[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_move_pages, SYS_migrate_pages,
#if defined(SYS_pidfd_getfd)
    SYS_pidfd_getfd,
#endif
#if defined(SYS_process_madvise)
    SYS_process_madvise,
#endif
    /* much of the kernel at once */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_fanotify_init,
#if defined(SYS_io_uring_setup)
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
#endif
    /* the machine */
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct,
    SYS_quotactl, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_open_by_handle_at,
#if defined(SYS_kexec_file_load)
    SYS_kexec_file_load,
#endif
#if defined(SYS_iopl)
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
};

int
keeper_confine(struct err *err)
{
    /* who may ask over the sandbox's own socket is compared with what we were before */
    if (peer_remember() < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_sys(err, errno, "keeper.confine", "/proc/self/status, or not dumpable");
    return service_deny(denied, sizeof(denied) / sizeof(denied[0]), err);
}
