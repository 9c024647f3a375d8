/* engine/oci/child.c: the process that holds the runtime (see oci.h)
 *
 * Most of it is what every holder does (native/holder.h). In order:
 *
 *   1. die with the parent; keep its mounts to itself; /proc of its own; the work folder, over /sys
 *   2. as the sandbox's user, as far as files are concerned: the tree, and the network beside it
 *   3. join the cgroup; the bundle's config.json
 *   4. start the runtime with descriptors 0 to 2 of its own and 3 the guest's; wait for it
 *   5. the runtime's own words, where it did not get as far as the guest
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "engine/oci/oci.h"
#include "wall/rlimit.h"
#include "wire/packet.h"

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "oci.work", "%s", what);
}

/* What is a runtime's own of the work folder. */
static int
work_folder(struct err *err)
{
    static const char *const folders[] = { OCI_STATE, HOLDER_WORK "/fs", HOLDER_WORK "/fs/cgroup" };

    if (holder_work_folder(folders, ARRAY_LEN(folders), err) < 0)
        return -1;
    if (chmod(OCI_STATE, 0700) < 0)
        return fail(err, OCI_STATE);
    /* runtimes look for cgroups whatever they are told; they may only look */
    if (mount("cgroup2", HOLDER_WORK "/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) < 0)
        return fail(err, "a cgroup2 to look at");
    return 0;
}

static int
bundle(const struct oci *sb, struct err *err)
{
    cleanup_close int fd = open(HOLDER_BUNDLE "/config.json", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    return fd < 0 || io_write_full(fd, sb->config.p, sb->config.n) < 0 ? fail(err, HOLDER_BUNDLE "/config.json") : 0;
}

static _Noreturn void
become_runtime(const struct oci *sb, int transport)
{
    char path[] = "PATH=" OCI_PATH, home[] = "HOME=/", *const env[] = { path, home, NULL };
    int log = open(HOLDER_LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    const char *argv[OCI_ARGS];

    oci_runtime_argv(sb, argv);
    if (log >= 0 && setsid() >= 0 && holder_descriptors(log, &transport, 1) == 0)
        holder_exec(sb->program, argv, env);
    _exit(HOLDER_BROKEN);
}

_Noreturn void
oci_child(const struct native *native, const struct launch *l)
{
    const struct oci *sb = (const struct oci *)native;
    char name[] = "cloche-oci";
    const struct rlimit_plan none = { .nofile = 0 };
    struct err err = ERR_INIT;
    int guest, code, status = l->status, *kept[] = { &status };
    pid_t pid;

    prctl(PR_SET_NAME, name);
    if (launch_first_steps(l, &err) < 0 || work_folder(&err) < 0 || launch_as_user(l, launch_surroundings, &err) < 0 ||
        (guest = launch_meet_parent(l, &err)) < 0 || bundle(sb, &err) < 0 || rlimit_apply(&none, &err) < 0)
        launch_give_up(l->status, &err);
    close(guest);       /* the tree has it */
    pid = fork();
    if (pid < 0) {
        fail(&err, "fork");
        launch_give_up(l->status, &err);
    }
    if (pid == 0)
        become_runtime(sb, l->transport);
    if (holder_keep(kept, ARRAY_LEN(kept)) < 0)
        _exit(HOLDER_BROKEN);
    code = holder_wait(pid);
    if (code != 0 && holder_said("oci.runtime.failed", sb->runtime->name, code, &err))
        packet_say_err(status, &err);
    _exit(code);
}
