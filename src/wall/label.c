/* wall/label.c: see label.h */
#include "wall/label.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LINE_MAX_ 512

const char *
label_name(enum label which)
{
    static const char *const names[LABELS] = { [LABEL_APPARMOR] = "AppArmor", [LABEL_SELINUX] = "SELinux" };

    return names[which];
}

bool
label_is_there(enum label which)
{
    cleanup_close int fd = -1;
    char on = 'N';

    if (which == LABEL_SELINUX)     /* the file system is there only while it is on */
        return access("/sys/fs/selinux/enforce", F_OK) == 0;
    fd = open("/sys/module/apparmor/parameters/enabled", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &on, 1) == 1 && on == 'Y';
}

/* AppArmor has a folder of its own since Linux 5.8; before, and of SELinux, it is the one that all share. */
static int
open_attribute(enum label which)
{
    int fd = -1;

    if (which == LABEL_APPARMOR)
        fd = open("/proc/thread-self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);
    return fd >= 0 ? fd : open("/proc/thread-self/attr/exec", O_WRONLY | O_CLOEXEC);
}

static int
next_exec(enum label which, const char *label, struct err *err)
{
    cleanup_close int fd = open_attribute(which);
    char line[LINE_MAX_];
    int n = snprintf(line, sizeof(line), "%s%s", which == LABEL_APPARMOR ? "exec " : "", label);

    if (fd < 0)
        return err_sys(err, errno, "wall.label", "%s %s: the attribute of this process", label_name(which), label);
    if (n > 0 && n < (int)sizeof(line) && write(fd, line, (size_t)n) == n)
        return 0;
    if (errno == ENOENT || errno == EINVAL) {
        err_set(err, ERR_NOT_FOUND, "wall.label.unknown", "%s has nothing called %s (%s)", label_name(which), label,
                strerror(errno));
        return err_hint(err, which == LABEL_APPARMOR
                        ? "load the profile: apparmor_parser -r FILE; aa-status lists them"
                        : "`seinfo -t` lists types; user:role:type:level, as `id -Z` has it");
    }
    if (errno == EACCES || errno == EPERM) {
        err_set(err, ERR_DENIED, "wall.label.refused", "%s does not let this process go over to %s", label_name(which),
                label);
        return err_hint(err, "its policy must allow the change, under no_new_privs as well (SELinux: nnp_transition)");
    }
    return err_sys(err, errno, "wall.label", "%s %s", label_name(which), label);
}

int
label_next_exec(const char *const labels[LABELS], struct err *err)
{
    for (enum label which = 0; which < LABELS; which++)
        if (labels[which] != NULL && next_exec(which, labels[which], err) < 0)
            return -1;
    return 0;
}
