/* imager/fetch_process.c: the process that speaks to a registry, and its walls (see fetch.h) */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "imager/fetch.h"
#include "wall/service.h"
#include "wire/packet.h"

static const unsigned denied_calls[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kill, SYS_pidfd_open,
    SYS_pidfd_send_signal, SYS_pidfd_getfd, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
    SYS_bpf, SYS_perf_event_open, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_io_uring_setup, SYS_io_uring_enter,
    SYS_io_uring_register, SYS_open_by_handle_at, SYS_userfaultfd, SYS_fsopen, SYS_open_tree, SYS_move_mount,
};

static int
confine(const struct fetch *f, struct err *err)
{
    struct landlock_rule rules[SERVICE_RESOLVER_FILES + 4] = {
        { .fd = f->place, .path = "the folder for it", .access = LANDLOCK_WRITE },
        { .fd = -1, .path = "/etc/ssl/openssl.cnf", .access = LANDLOCK_READ, .optional = true },
        { .fd = -1, .path = "/usr/lib", .access = LANDLOCK_READ_EXEC, .optional = true },    /* name service */
        { .fd = -1, .path = "/etc/gai.conf", .access = LANDLOCK_READ, .optional = true },
    };
    const struct service_plan plan = { .files = rules, .n_files = ARRAY_LEN(rules), .dies = true, .keep_user = true };

    for (size_t i = 0; i < SERVICE_RESOLVER_FILES; i++)
        rules[4 + i] = service_resolver_files[i];
    return service_give_up(&plan, err) < 0 ? -1 : service_deny(denied_calls, ARRAY_LEN(denied_calls), err);
}

static _Noreturn void
child(const struct fetch *f, int status)
{
    struct err err = ERR_INIT;

    prctl(PR_SET_NAME, "cloche-fetch");
    json_object_seed(0);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
        err_set(&err, ERR_SYSTEM, "image.registry", "libcurl does not start");
    else if (confine(f, &err) == 0 && fetch_now(f, &err) == 0)
        _exit(0);
    packet_say_err(status, &err);
    _exit(1);
}

int
fetch_run(const struct fetch *f, struct err *err)
{
    cleanup_close int said = -1, say = -1;
    struct err why = ERR_INIT;
    int status, ends[2];
    pid_t pid;

    if ((mkdirat(f->place, "blobs", 0700) < 0 && errno != EEXIST) ||
        (mkdirat(f->place, "blobs/sha256", 0700) < 0 && errno != EEXIST) || pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "image.store", "a folder for the image");
    said = ends[0];
    say = ends[1];
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "image.registry", "fork");
    if (pid == 0) {
        close(said);
        child(f, say);
    }
    close_fd(&say);
    status = packet_hear_err(said, &why);
    if (status == 1 && err != NULL)
        *err = why;
    while (waitpid(pid, &ends[0], 0) < 0 && errno == EINTR)
        continue;
    if (status == 1)
        return -1;
    if (!WIFEXITED(ends[0]) || WEXITSTATUS(ends[0]) != 0)
        return err_set(err, ERR_SYSTEM, "image.registry", "the process that speaks to the registry ended by itself");
    return 0;
}
