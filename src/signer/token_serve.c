/* signer/token_serve.c: the process that has a PKCS#11 module, and nothing else of ours
 *
 * A module is somebody else's code. So this process gives up what it can before it loads one: every capability,
 * the right to gain any, to be dumped or debugged, to make processes and start programs, to look into others and to
 * signal them, and to change what is mounted, its user or its namespaces. It keeps its user, files and sockets: a
 * module reads its token's files, or talks to a device or a server. So one that is malicious has the key, by the PIN
 * and the session, and the files of that user. It has no memory of the signer's, and no transaction: 32 bytes come,
 * 64 go.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "signer/pkcs11.h"
#include "signer/token.h"
#include "wall/service.h"
#include "wire/table.h"

enum { FRESH = 1, OPEN = 2 };

struct token {
    int signer;
    struct pkcs11 *p;
    struct msg_gate gate;
    uint8_t in[EDGE_ROOM];
};

static void
say(struct token *t, uint8_t type, const struct shape *shape, const void *m)
{
    (void)proto_send(t->signer, type, shape, m, -1);    /* its end is noticed where it is read */
}

/* Nothing was made; or, perhaps, it was. */
static int
refuse(struct token *t, bool perhaps, const struct err *why)
{
    PROTO_SAY(say, t, TOKEN_REFUSED, .perhaps = perhaps, .why = *why);
    return 0;
}

static int
on_open(struct token *t, const struct token_where *m)
{
    struct token_point is = { .point = { 0 } };
    struct err err = ERR_INIT;

    t->p = pkcs11_open(m, is.point, &err);
    explicit_bzero(t->in, sizeof(t->in));
    if (t->p == NULL)
        return refuse(t, false, &err);
    t->gate.state = OPEN;
    say(t, TOKEN_IS, TOKEN_IS_SHAPE(), &is);
    return 0;
}

static int
on_digest(struct token *t, const struct token_digest *m)
{
    struct token_rs made = { .rs = { 0 } };
    struct err err = ERR_INIT;
    bool perhaps = false;

    if (pkcs11_sign(t->p, m->digest, made.rs, &perhaps, &err) < 0)
        return refuse(t, perhaps, &err) - 1;    /* the session may be gone for good: another process has another one */
    say(t, TOKEN_MADE, TOKEN_MADE_SHAPE(), &made);
    return 0;
}

#define HEARS(R) \
    R(TOKEN_OPEN, on_open, true, FRESH) \
    R(TOKEN_SIGN, on_digest, false, OPEN)
PROTO_RULES(rules, HEARS)

static int
give_up(struct err *err)
{
    static const unsigned never[] = {
        SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen,
        SYS_mount_setattr, SYS_setns, SYS_unshare, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl,
        SYS_add_key, SYS_request_key, SYS_io_uring_setup, SYS_init_module, SYS_finit_module, SYS_kexec_load,
        SYS_setuid, SYS_setreuid, SYS_setresuid, SYS_setfsuid, SYS_setgid, SYS_setregid, SYS_setresgid, SYS_setfsgid,
        SYS_setgroups, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
        SYS_pidfd_send_signal,
#if defined(SYS_fork)
        SYS_fork, SYS_vfork,
#endif
    };
    const struct service_plan plan = { .dies = true, .keep_user = true, .all_files = true };
    /* which keeps it out of /proc/PID/mem of others, too; where the kernel has none of it, the calls below are all */
    const struct landlock_plan scope = { .scope_signal = true };

    return service_give_up(&plan, err) < 0 || landlock_restrict(&scope, NULL, err) < 0 ||
                   service_deny_module(never, ARRAY_LEN(never), err) < 0 ? -1 : 0;
}

int
token_serve(int signer)
{
    static struct token t;
    struct err err = ERR_INIT;
    struct frame f;
    int r;

    t = (struct token){ .signer = signer,
                        .gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = FRESH } };
    if (give_up(&err) < 0)
        return refuse(&t, false, &err) - 1;
    while ((r = packet_receive(signer, t.in, sizeof(t.in), &f, NULL, 0)) != 0) {
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 || msg_dispatch(&t.gate, &f, &t) != MSG_OK)
            return -1;
    }
    pkcs11_close(t.p);
    return 0;
}
