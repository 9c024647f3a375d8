/* run/session_setup.c: make the sandbox and send it its first command */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "program/tty.h"
#include "run/net_state.h"
#include "run/session_priv.h"

#define SETUP_PATIENCE_MS  30000    /* signals wait meanwhile: not for ever */

static int
send_setup(struct live *l, struct err *err)
{
    cleanup_buf struct buf guard = BUF_INIT(MSG_GUARD_MAX);
    struct msg_setup setup;

    if (sandbox_setup(l->sb, &guard, &setup, err) < 0)
        return -1;
    if (l->s->file != NULL)
        setup.root = l->s->file->folder;
    return guest_client_setup(l->client, &setup, err);
}

/* Put the code file where the command will look for it; it must be there before the command starts. */
static int
send_file(struct live *l, struct err *err)
{
    const struct session_file *f = l->s->file;
    struct msg_file m = { .flags = MSG_FILE_CREATE | MSG_FILE_TRUNCATE, .mode = 0644, .path = f->name };
    const uint8_t *at = f->data;
    size_t left = f->n, taken;
    bool ended = false;
    uint16_t request;

    if (guest_client_file(l->client, MSG_FILE_WRITE, &m, &request, err) < 0)
        return -1;
    for (;;) {
        struct guest_event ev;
        int got;
        if (left > 0) {
            if (guest_client_file_chunk(l->client, request, at, left, &taken, err) < 0)
                return -1;
            at += taken;
            left -= taken;
        }
        if (left == 0 && !ended) {
            ended = true;
            if (guest_client_file_end(l->client, request, err) < 0)
                return -1;
        }
        struct pollfd p = { .fd = l->transport, .events = guest_client_poll_events(l->client) };
        int ready = poll(&p, 1, SETUP_PATIENCE_MS);
        if (ready == 0)
            return err_set(err, ERR_SYSTEM, "guest.slow", "the guest did not take %s within %d s", f->name,
                           SETUP_PATIENCE_MS / 1000);
        if ((ready < 0 && errno != EINTR) || guest_client_pump(l->client, err) < 0)
            return sandbox_setup_failed(l->sb, err) < 0 ? -1 : err_set(err, ERR_SYSTEM, "cli.poll", "poll");
        while ((got = guest_client_next(l->client, &ev, err)) == 1) {
            if (ev.type == GUEST_FILE_DONE)
                return 0;
            if (ev.type == GUEST_FILE_FAILED)
                return guest_file_err(&ev.file_error, f->name, err);
            if (ev.type == GUEST_CLOSED)
                return sandbox_lost(l->sb, err);
        }
        if (got < 0)
            return -1;
    }
}

static int
send_exec(struct live *l, struct err *err)
{
    const struct session *s = l->s;
    struct guest_exec x = GUEST_EXEC_INIT;
    int r;

    x.argv = s->argv;
    x.env = sandbox_facts(l->sb)->env;
    /* the guest is there already; in light mode its user may not be able to reach the place by path */
    x.cwd = "";
    x.flags = MSG_EXEC_QUIET | MSG_EXEC_LAST;
    x.umask = 022;
    l->relay = s->io != SESSION_PASS || s->policy->limits.output.v > 0 || sandbox_facts(l->sb)->streams_only;
    l->r->counted = l->relay;
    if (s->io == SESSION_PTY) {
        x.stdio = EXEC_STDIO_PTY;
        if (tty_size(STDIN_FILENO, &x.rows, &x.cols) < 0)
            x.rows = 24, x.cols = 80;
    } else if (l->relay) {
        x.stdio = EXEC_STDIO_STREAM;
        if (s->no_stdin)
            x.flags |= MSG_EXEC_NO_STDIN;
    } else {
        x.stdio = EXEC_STDIO_FDS;
        x.fds[0] = s->no_stdin ? open("/dev/null", O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
        if (x.fds[0] < 0)
            return err_sys(err, errno, "cli.stdio", "/dev/null");
        if (pass_open(l, x.fds, err) < 0)
            return -1;
    }
    l->in_eof = s->no_stdin || !l->relay;
    l->in_closed = s->no_stdin || !l->relay;
    r = guest_client_exec(l->client, &x, &l->channel, err);
    l->sent = r == 0;
    if (x.stdio == EXEC_STDIO_FDS)
        pass_sent(x.fds);
    return r;
}

static void
say_who_enforces(struct live *l)
{
    const struct sandbox_facts *facts = sandbox_facts(l->sb);
    struct session_result *r = l->r;

    r->choice = *facts->choice;
    r->memory_by = facts->memory_by;
    r->cpu_by = facts->cpu_by;
    r->pids_by = facts->pids_by;
    r->disk_by = facts->disk_by;
    for (size_t i = 0; i < facts->n_warnings; i++)
        session_warn(r, true, "%s", facts->warnings[i]);
}

int
session_make(struct live *l, const char *id, struct err *err)
{
    const struct sandbox_facts *facts;
    int fd;

    /* what hides it from the sandbox has to find it there */
    if (l->s->policy->network.v == NETWORK_ALLOWLIST && (fd = net_state_open(NULL)) >= 0)
        close(fd);
    if (sandbox_create(l->s->policy, id, &l->sb, err) < 0)
        return -1;
    facts = sandbox_facts(l->sb);
    memcpy(l->r->id, facts->id, sizeof(l->r->id));
    snprintf(l->r->cow_id, sizeof(l->r->cow_id), "%s", facts->cow_id);
    say_who_enforces(l);
    if (sandbox_connect(l->sb, &l->transport, err) < 0 || guest_client_new(l->transport, &l->client, err) < 0 ||
        send_setup(l, err) < 0)
        return -1;
    return facts->captured ? net_start(l, err) : 0;
}

int
session_open(struct live *l, struct err *err)
{
    if (session_make(l, NULL, err) < 0)
        return -1;
    if (l->s->file != NULL && send_file(l, err) < 0)
        return -1;
    if (run_audit_hides(l->audit) != NULL)
        vault_masks(l, run_audit_hides(l->audit));
    if (run_audit_start(l->audit, l->asked, l->s->policy, l->r, err) < 0)
        return -1;
    if (l->s->policy->limits.time_ms.v > 0)
        loop_at(l->loop, &l->deadline, clock_ms() + l->s->policy->limits.time_ms.v);
    return send_exec(l, err);
}
