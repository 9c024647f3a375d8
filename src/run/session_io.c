/* run/session_io.c: the command's streams and what the guest reports */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "program/say.h"
#include "run/session_priv.h"

bool
session_output_waits(const struct live *l)
{
    return l->waiting[0].n > 0 || l->waiting[1].n > 0;
}

/* The descriptor may be blocking, and others may share it, so its mode is not ours to change: a write of PIPE_BUF bytes
 * does not block where poll says that there is room. A reader that is gone is not our failure: the rest of the output
 * is dropped, as it would be without us. */
int
session_flush(struct live *l, size_t i, struct err *err)
{
    struct buf *b = &l->waiting[i];
    int fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    size_t done = 0;

    while (done < b->n) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        size_t n = b->n - done < PIPE_BUF ? b->n - done : PIPE_BUF;
        ssize_t put;
        if (poll(&room, 1, 0) == 0)
            break;
        put = write(fd, b->p + done, n);
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && (errno == EPIPE || errno == EIO))
            put = (ssize_t)(b->n - done);
        if (put < 0)
            return err_sys(err, errno, "cli.output", "write the command's output");
        done += (size_t)put;
    }
    buf_consume(b, done);
    return 0;
}

static int
write_out(struct live *l, size_t i, const uint8_t *p, size_t n, struct err *err)
{
    if (buf_append(&l->waiting[i], p, n) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory for output");
    return session_flush(l, i, err);
}

void
session_warn(struct session_result *r, bool say, const char *fmt, ...)
{
    char text[sizeof(r->warnings[0])];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (say)
        cli_warn("%s", text);
    for (size_t i = 0; i < r->n_warnings; i++)      /* a second try in a weaker mode finds the same again */
        if (strcmp(r->warnings[i], text) == 0)
            return;
    if (r->n_warnings < ARRAY_LEN(r->warnings))
        memcpy(r->warnings[r->n_warnings++], text, sizeof(text));
}

static void
truncation(struct live *l, bool is_err, bool *flag)
{
    if (*flag)
        return;
    *flag = true;
    session_warn(l->r, !l->s->quiet, "%s was cut after %llu bytes (--output raises the limit)",
                 is_err ? "stderr" : "stdout", (unsigned long long)l->s->policy->limits.output.v);
}

static int
session_output(struct live *l, bool is_err, const uint8_t *p, size_t n, struct err *err)
{
    struct session_result *r = l->r;
    uint64_t *count = is_err ? &r->err_bytes : &r->out_bytes;
    bool *cut = is_err ? &r->err_truncated : &r->out_truncated;
    struct buf *into = is_err ? &r->err : &r->out;
    uint64_t limit = l->s->policy->limits.output.v, room;
    size_t keep = n;

    room = limit == 0 ? UINT64_MAX : *count >= limit ? 0 : limit - *count;
    *count += n;
    if (keep > room) {
        keep = (size_t)room;
        truncation(l, is_err, cut);
    }
    if (keep == 0)
        return 0;
    if (!l->s->capture)
        return write_out(l, is_err ? 1 : 0, p, keep, err);
    if (keep > into->max - into->n) {
        keep = into->max - into->n;
        truncation(l, is_err, cut);
    }
    return buf_append(into, p, keep) < 0 ? err_set(err, ERR_SYSTEM, "memory", "out of memory for output") : 0;
}

void
session_note_denied(struct session_result *r, const struct msg_denied *d)
{
    struct session_denied *slot;

    for (size_t i = 0; i < r->n_denied; i++) {
        slot = &r->denied[i];
        if (strcmp(slot->op, d->op) == 0 && strcmp(slot->target, d->target) == 0 && strcmp(slot->rule, d->rule) == 0) {
            slot->count += d->count;
            return;
        }
    }
    if (r->n_denied == SESSION_DENIED_MAX) {
        r->denied_more += d->count;
        return;
    }
    slot = &r->denied[r->n_denied++];
    snprintf(slot->op, sizeof(slot->op), "%s", d->op);
    snprintf(slot->target, sizeof(slot->target), "%s", d->target);
    snprintf(slot->rule, sizeof(slot->rule), "%s", d->rule);
    slot->count = d->count;
}

static int
on_exec_failed(struct live *l, const struct msg_exec_failed *m, struct err *err)
{
    int code = guest_exec_failed_code(m);

    if (code == EXIT_REFUSED)
        return guest_exec_failed_err(m, l->s->argv[0], sandbox_facts(l->sb)->workdir, err);
    /* as a shell: say it, and exit 126 or 127 */
    struct err said = ERR_INIT;
    guest_exec_failed_err(m, l->s->argv[0], sandbox_facts(l->sb)->workdir, &said);
    cli_fail(&said, false);
    l->r->exit_code = code;
    l->ended = true;
    return 0;
}

static void
on_exit_message(struct live *l, const struct msg_exit *m)
{
    l->ended = true;
    if (m->flags & MSG_EXIT_SIGNALED) {
        l->r->signal = (int)(m->status & 0x7f);
        l->r->exit_code = -1;
    } else {
        l->r->exit_code = (int)(m->status & 0xff);
    }
}

static int
on_event(struct live *l, const struct guest_event *ev, struct err *err)
{
    switch (ev->type) {
    case GUEST_EXEC_FAILED:
        return on_exec_failed(l, &ev->exec_failed, err);
    case GUEST_STDOUT:
        return session_output(l, false, ev->data.p, ev->data.n, err);
    case GUEST_STDERR:
        return session_output(l, true, ev->data.p, ev->data.n, err);
    case GUEST_STDIN_READY:
        if (ev->stdin_gone)
            l->in_eof = l->in_closed = true;
        return 0;
    case GUEST_EXIT:
        on_exit_message(l, &ev->exit);
        return 0;
    case GUEST_DENIED:
        session_note_denied(l->r, &ev->denied);
        return 0;
    case GUEST_NOTICE:
        if (ev->notice.kind == NOTICE_MEMORY)
            l->memory = true;
        if (ev->notice.kind == NOTICE_PIDS)
            return err_set(err, ERR_LIMIT, "limits.pids", "more than %llu processes: everything was stopped",
                           (unsigned long long)ev->notice.limit);
        if (ev->notice.kind == NOTICE_BLIND)
            return err_set(err, ERR_SYSTEM, "limits.blind",
                           "the memory limit cannot be watched (/proc cannot be read); everything was stopped");
        if (ev->notice.kind == NOTICE_GUARD)
            return err_set(err, ERR_SYSTEM, "guest.guard", "the name guard failed (errno %llu); everything was stopped",
                           (unsigned long long)ev->notice.value);
        return 0;
    case GUEST_CLOSED:
        l->closed = true;
        return 0;
    default:
        return 0;
    }
}

int
session_take_events(struct live *l, struct err *err)
{
    struct guest_event ev;
    int got;

    while ((got = guest_client_next(l->client, &ev, err)) == 1)
        if (!publish_event(l, &ev) && on_event(l, &ev, err) < 0)
            return -1;
    return got;
}

int
session_feed_stdin(struct live *l, struct err *err)
{
    size_t taken;

    while (l->in_at < l->in_n && !l->in_closed) {
        if (guest_client_stdin(l->client, l->channel, l->in + l->in_at, l->in_n - l->in_at, &taken, err) < 0)
            return -1;
        if (taken == 0)
            return 0;
        l->in_at += taken;
    }
    if (l->in_eof && l->in_at == l->in_n && !l->in_closed) {
        l->in_closed = true;
        return guest_client_close_stdin(l->client, l->channel, err);
    }
    return 0;
}
