/* wall/caps.c: see caps.h */
#include "wall/caps.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

#define GROUPS_MAX 4096         /* of them; a root with more keeps them */
#define UNTOLD 0xa5a5a5a5u      /* no kernel has that many capabilities */

static int
capget_now(struct __user_cap_data_struct data[2])
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    const struct __user_cap_data_struct untold = { UNTOLD, UNTOLD, UNTOLD };

    data[0] = data[1] = untold;
    if (syscall(SYS_capget, &header, data) < 0)
        return -1;
    /* a success that is none: there are environments that answer so */
    errno = ENOSYS;
    return data[1].effective == UNTOLD && data[1].permitted == UNTOLD && data[1].inheritable == UNTOLD ? -1 : 0;
}

static bool
holds(const struct __user_cap_data_struct data[2], int cap)
{
    return (data[cap / 32].effective >> (cap % 32)) & 1;
}

/* Whether we hold @cap; -1 with @err when that cannot be told: it is no "no". */
static int
held(int cap, struct err *err)
{
    struct __user_cap_data_struct data[2];

    if (capget_now(data) < 0)
        return err_sys(err, errno, "wall.caps", "capget");
    return holds(data, cap);
}

int
caps_can_tell(struct err *err)
{
    return held(CAP_SETPCAP, err) < 0 ? -1 : 0;
}

bool
caps_give_identity(void)
{
    struct __user_cap_data_struct data[2];

    return geteuid() == 0 && capget_now(data) == 0 && holds(data, CAP_SYS_ADMIN) && holds(data, CAP_SETUID) &&
           holds(data, CAP_SETGID);
}

bool
caps_give_user(void)
{
    static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_DAC_OVERRIDE };
    struct __user_cap_data_struct data[2];

    if (geteuid() != 0 || capget_now(data) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!holds(data, needed[i]))
            return false;
    return true;
}

/* By doing it, for nothing: CAP_SETGID alone does not say it (a namespace without setgroups, a filter around us). */
bool
caps_give_groups_up(void)
{
    gid_t groups[GROUPS_MAX];
    int n;

    if (geteuid() != 0)
        return false;
    n = getgroups(GROUPS_MAX, groups);
    return n > 0 && setgroups((size_t)n, groups) == 0;
}

int
caps_raise(struct err *err)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];

    if (capget_now(data) < 0)
        return err_sys(err, errno, "wall.caps", "capget");
    data[0].effective = data[0].permitted;
    data[1].effective = data[1].permitted;
    return syscall(SYS_capset, &header, data) < 0 ? err_sys(err, errno, "wall.caps", "capset") : 0;
}

/* Some environments answer these calls with a success that is none (Charliecloud's, fakeroot's filters). */
static int
nothing_left(struct err *err)
{
    struct __user_cap_data_struct data[2] = { { 0 } };
    uint32_t left = 0;

    if (capget_now(data) < 0)
        return err_sys(err, errno, "wall.caps", "capget");
    for (size_t i = 0; i < 2; i++)
        left |= (uint32_t)(data[i].effective | data[i].permitted | data[i].inheritable);
    if (left == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return 0;
    return err_not_done(err, "wall.caps", "capabilities are still there after they were given up");
}

int
caps_drop_all(struct err *err)
{
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct zero[2] = { { 0 } };
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    int setpcap;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "wall.caps", "no_new_privs");
    setpcap = held(CAP_SETPCAP, err);
    if (setpcap < 0)
        return -1;
    if (setpcap > 0) {
        /* until the kernel says that there is no such capability: it may know more than our headers */
        for (unsigned long cap = 0; cap <= 63; cap++) {
            if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
                if (errno == EINVAL && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0)
                    break;
                return err_sys(err, errno, "wall.caps", "drop capability %lu from the bounding set", cap);
            }
        }
        if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
            return err_sys(err, errno, "wall.caps", "securebits");
    }
    /* absent before Linux 4.3 only */
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return err_sys(err, errno, "wall.caps", "ambient set");
    if (syscall(SYS_capset, &header, zero) < 0)
        return err_sys(err, errno, "wall.caps", "capset");
    return nothing_left(err);
}
