/* cli/helper.c: cloche's other programs */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/session_priv.h"

int
helper_find(const char *folder, const char *name, char out[PATH_MAX], struct err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return err_sys(err, errno, "cli.program", "/proc/self/exe");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    if ((snprintf(out, PATH_MAX, "%s/../%s/%s", self, folder, name) < PATH_MAX && access(out, X_OK) == 0) ||
        (snprintf(out, PATH_MAX, "%s/../libexec/cloche/%s", self, name) < PATH_MAX && access(out, X_OK) == 0))
        return 0;
    err_set(err, ERR_UNSUPPORTED, "cli.program", "%s is not beside %s, nor in ../libexec/cloche", name, self);
    return err_hint(err, "install cloche whole");
}
