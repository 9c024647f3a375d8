/* keeper/keeper_attach.c: an editor's connection: OpenSSH's own server, inside the sandbox (docs/attach.md)
 *
 * Nobody outside of the sandbox reads what the editor's client and the server say to each other. The server is one
 * process for one connection, as the sandbox's own user, with nothing but what is said here: it reads no configuration.
 * It has the keys in a memory file that nobody can change, as its standard error. The sandbox's code may look into a
 * server that runs beside it, and take its place; what it gains is what is typed there, which it could have anyway.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/memfile.h"
#include "keeper/keeper.h"

#define SSHD     "/usr/sbin/sshd"
#define KEYS     "/proc/self/fd/2"
#define ARGS_MAX (24UL * 1024)

/* What it never does, whoever asks: what would lead out of the sandbox, or ask a person for something. */
static const char *const always[] = {
    "HostKey=" KEYS, "AuthorizedKeysFile=" KEYS, "AuthorizedKeysCommand=none", "StrictModes=no",
    "AuthenticationMethods=publickey", "PasswordAuthentication=no", "KbdInteractiveAuthentication=no", "UsePAM=no",
    "AllowAgentForwarding=no", "X11Forwarding=no", "PermitTunnel=no", "GatewayPorts=no", "AllowTcpForwarding=no",
    "AllowStreamLocalForwarding=no", "PermitListen=none", "PermitUserRC=no", "PermitUserEnvironment=no", "PrintMotd=no",
    "PrintLastLog=no", "UseDNS=no", "PidFile=none", "LogLevel=QUIET", "Banner=none", "Subsystem=sftp internal-sftp",
};

/* Whoever looks gets files, by the server itself: it starts no program, and could not (guest/look.h). */
static const char begin_look[] = "ForceCommand=internal-sftp -R";

/* A session begins in the workspace, as all of cloche's commands. The server itself begins in the user's home. */
static const char begin_write[] =
    "ForceCommand=c=$SSH_ORIGINAL_COMMAND; unset SSH_ORIGINAL_COMMAND; cd %s || exit; "
    "case $c in '') exec \"$SHELL\" -l;; internal-sftp*) for s in /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh "
    "/usr/libexec; do [ -x $s/sftp-server ] && exec $s/sftp-server; done; echo no sftp-server in the sandbox >&2; exit "
    "127;; *) exec \"$SHELL\" -c \"$c\";; esac";

/* @text as one word of a shell, or of the server's configuration (@quote). */
static void
put_quoted(struct buf *out, const char *text, char quote)
{
    buf_put_u8(out, (uint8_t)quote);
    for (; *text != '\0'; text++) {
        if (quote == '\'' && *text == '\'')
            buf_puts(out, "'\\'");
        if (quote == '"' && (*text == '"' || *text == '\\'))
            buf_put_u8(out, '\\');
        buf_put_u8(out, (uint8_t)*text);
    }
    buf_put_u8(out, (uint8_t)quote);
}

static bool
is_line(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

/* The sandbox's variables, which the server does not hand on by itself. */
static void
put_environment(struct buf *out, const char *const *env)
{
    buf_puts(out, "SetEnv=");
    for (; *env != NULL; env++) {
        if (!is_line(*env))
            continue;
        put_quoted(out, *env, '"');
        buf_put_u8(out, ' ');
    }
    buf_put_u8(out, '\0');
}

/* The server refuses a key of its own user's that others may read; of another user's it must be able to read it. */
static int
keys_file(const struct edge_op *want, bool others)
{
    cleanup_buf struct buf text = BUF_INIT(4UL * EDGE_ATTACH_KEY_MAX);
    cleanup_close int fd = memfd_create("attach", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    buf_printf(&text, "%s\nrestrict%s %s\n", want->argv[0], (want->flags & OP_WRITES) != 0 ? ",pty" : "",
               want->argv[1]);
    if (fd < 0 || !buf_ok(&text) || io_write_full(fd, text.p, text.n) < 0 || fchmod(fd, others ? 0444 : 0400) < 0 ||
        memfile_seal(fd) < 0)
        return -1;
    return take_fd(&fd);
}

/* Each option behind a "-o". */
static void
put_options(struct buf *texts, const struct sandbox_facts *facts, bool writes)
{
    cleanup_buf struct buf place = BUF_INIT(EDGE_PATH_MAX * 4UL);

    if (writes) {
        put_environment(texts, facts->env);
        put_quoted(&place, facts->root, '\'');
        (void)buf_nul(&place);
        buf_printf(texts, begin_write, (const char *)place.p);
    } else {
        buf_puts(texts, begin_look);
        if (facts->root[strcspn(facts->root, " \t\"'\\")] == '\0')     /* the server splits it at blanks */
            buf_printf(texts, " -d %s", facts->root);
    }
    buf_put_u8(texts, '\0');
}

int
attach_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    const struct sandbox_facts *facts = sandbox_facts(o->k->l.sb);
    cleanup_buf struct buf texts = BUF_INIT(ARGS_MAX);
    const char *argv[5 + 2 * ARRAY_LEN(always) + 4 + 1];
    cleanup_close int keys = -1;
    bool writes = (want->flags & OP_WRITES) != 0;
    struct guest_exec x = GUEST_EXEC_INIT;
    size_t n = 0;

    if (facts->boundary > BOUNDARY_PROCESS) {
        err_set(err, ERR_UNSUPPORTED, "attach.engine", "no editor reaches a sandbox with a kernel of its own yet");
        return err_hint(err, "`cloche exec` does, and an engine that shares the host's kernel");
    }
    put_options(&texts, facts, writes);
    keys = keys_file(want, facts->other_user);
    if (!buf_ok(&texts) || keys < 0)
        return err_sys(err, buf_ok(&texts) ? errno : ENOMEM, "attach.keys", "an editor's keys in memory");
    argv[n++] = SSHD;
    argv[n++] = "-ief";
    argv[n++] = "none";
    for (size_t i = 0; i < ARRAY_LEN(always); i++) {
        argv[n++] = "-o";
        argv[n++] = always[i];
    }
    for (const char *at = (const char *)texts.p; at < (const char *)texts.p + texts.n; at += strlen(at) + 1) {
        argv[n++] = "-o";
        argv[n++] = at;
    }
    argv[n] = NULL;
    x.argv = argv;
    x.env = facts->env;
    x.cwd = writes ? "" : facts->root;
    x.umask = 022;
    x.window = OP_WINDOW;
    x.flags = MSG_EXEC_QUIET | (writes ? 0 : MSG_EXEC_NO_GUARD | MSG_EXEC_LOOK);
    x.note = keys;
    o->deadline_us = o->begin_us + want->timeout_ms * 1000;
    return guest_client_exec(o->k->l.client, &x, &o->channel, err);
}

void
attach_failed(struct op *o, const struct msg_exec_failed *why)
{
    struct err err = ERR_INIT;

    if (guest_exec_failed_code(why) == 127) {
        err_set(&err, ERR_UNSUPPORTED, "attach.no-server", "there is no " SSHD " in the sandbox");
        err_hint(&err, "an editor needs OpenSSH's server there: openssh-server, on the host or in the image");
    } else {
        (void)guest_exec_failed_err(why, SSHD, "", &err);
    }
    op_say_failed(o, &err);
    op_ended(o);
}
