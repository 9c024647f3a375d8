/* wire/msg.c: see msg.h; requests and answers about processes (files: msg_file.c) */
#include "wire/msg.h"

#include <signal.h>
#include <string.h>

static struct wire_in
payload_of(const struct frame *f)
{
    return wire_in_of(f->payload, f->length);
}

int
msg_put_u32(struct buf *b, uint8_t type, uint16_t channel, uint32_t v)
{
    size_t at = frame_begin(b, type, 0, channel);

    (void)buf_put_be32(b, v);
    return frame_end(b, at);
}

bool
msg_get_u32(const struct frame *f, uint32_t *v)
{
    struct wire_in in = payload_of(f);

    *v = wire_be32(&in);
    return wire_done(&in);
}

int
msg_put_u64(struct buf *b, uint8_t type, uint16_t channel, uint64_t v)
{
    size_t at = frame_begin(b, type, 0, channel);

    (void)buf_put_be64(b, v);
    return frame_end(b, at);
}

bool
msg_get_u64(const struct frame *f, uint64_t *v)
{
    struct wire_in in = payload_of(f);

    *v = wire_be64(&in);
    return wire_done(&in);
}

int
msg_put_hello(struct buf *b, const struct msg_hello *m)
{
    size_t at = frame_begin(b, MSG_HELLO, 0, 0);

    (void)buf_put_be16(b, m->version);
    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be32(b, m->pid);
    return frame_end(b, at);
}

bool
msg_get_hello(const struct frame *f, struct msg_hello *m)
{
    struct wire_in in = payload_of(f);

    m->version = wire_be16(&in);
    m->flags = wire_u8(&in);
    m->pid = wire_be32(&in);
    return wire_done(&in) && (m->flags & ~MSG_HELLO_PID1) == 0;
}

int
msg_put_setup(struct buf *b, const struct msg_setup *m)
{
    size_t at = frame_begin(b, MSG_SETUP, 0, 0);

    (void)buf_put_be16(b, m->version);
    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be64(b, m->memory_limit);
    (void)buf_put_be32(b, m->pids_limit);
    (void)buf_put_be32(b, m->sample_ms);
    (void)wire_put_cstr(b, m->root, MSG_PATH_MAX);
    if (m->guard_n > MSG_GUARD_MAX || m->n_denied > MSG_DENIED_MAX)
        b->broken = true;
    (void)buf_put_be16(b, m->n_denied);
    (void)buf_append(b, m->denied, 2U * m->n_denied);
    (void)buf_put_be32(b, m->guard_n);
    (void)buf_append(b, m->guard, m->guard_n);
    return frame_end(b, at);
}

bool
msg_get_setup(const struct frame *f, struct msg_setup *m)
{
    struct wire_in in = payload_of(f);

    m->version = wire_be16(&in);
    m->flags = wire_u8(&in);
    m->memory_limit = wire_be64(&in);
    m->pids_limit = wire_be32(&in);
    m->sample_ms = wire_be32(&in);
    m->root = wire_cstr(&in, MSG_PATH_MAX, NULL);
    m->n_denied = wire_be16(&in);
    m->denied = wire_bytes(&in, 2U * m->n_denied);
    m->guard_n = wire_be32(&in);
    m->guard = wire_bytes(&in, m->guard_n);
    if (!wire_done(&in) || (m->flags & ~MSG_SETUP_LIGHT) != 0 || m->guard_n > MSG_GUARD_MAX ||
        m->n_denied > MSG_DENIED_MAX)
        return false;
    if (m->n_denied == 0)
        m->denied = NULL;
    if (m->guard_n == 0)
        m->guard = NULL;
    return (m->root[0] == '\0' || m->root[0] == '/') &&
           ((m->memory_limit == 0 && m->pids_limit == 0) || m->sample_ms > 0);
}

static void
put_strings(struct buf *b, const char *const *v)
{
    uint32_t n = 0;

    while (v[n] != NULL && n < MSG_STRINGS_MAX)
        n++;
    if (v[n] != NULL)
        b->broken = true;
    (void)buf_put_be32(b, n);
    for (uint32_t i = 0; i < n && buf_ok(b); i++)
        (void)wire_put_cstr(b, v[i], MSG_STRING_MAX);
}

/* The strings are walked once here, so that whoever uses them later need not check anything. */
static bool
get_strings(struct wire_in *in, struct msg_strings *s)
{
    s->count = wire_be32(in);
    s->p = in->p;
    if (s->count > MSG_STRINGS_MAX)
        in->bad = true;
    for (uint32_t i = 0; i < s->count && !in->bad; i++)
        (void)wire_cstr(in, MSG_STRING_MAX, NULL);
    s->n = in->bad ? 0 : (size_t)(in->p - s->p);
    return !in->bad;
}

void
msg_strings_fill(const struct msg_strings *s, const char **out)
{
    struct wire_in in = wire_in_of(s->p, s->n);

    for (uint32_t i = 0; i < s->count; i++)
        out[i] = wire_cstr(&in, MSG_STRING_MAX, NULL);
    out[s->count] = NULL;
}

int
msg_put_exec(struct buf *b, uint16_t channel, const struct msg_exec *m, const char *const *argv,
             const char *const *env)
{
    size_t at = frame_begin(b, MSG_EXEC, 0, channel);

    (void)buf_put_u8(b, (uint8_t)m->stdio);
    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be16(b, m->rows);
    (void)buf_put_be16(b, m->cols);
    (void)buf_put_be32(b, m->umask);
    (void)buf_put_be32(b, m->uid);
    (void)buf_put_be32(b, m->gid);
    (void)buf_put_be32(b, m->window);
    if (m->n_rlimits > MSG_RLIMITS_MAX) {
        b->broken = true;
        return -1;
    }
    (void)buf_put_u8(b, (uint8_t)m->n_rlimits);
    for (size_t i = 0; i < m->n_rlimits; i++) {
        (void)buf_put_be32(b, m->rlimits[i].resource);
        (void)buf_put_be64(b, m->rlimits[i].soft);
        (void)buf_put_be64(b, m->rlimits[i].hard);
    }
    (void)wire_put_cstr(b, m->cwd, MSG_PATH_MAX);
    put_strings(b, argv);
    put_strings(b, env);
    if (buf_ok(b) && b->n - at - FRAME_HEADER > MSG_EXEC_MAX)
        b->broken = true;
    return frame_end(b, at);
}

bool
msg_get_exec(const struct frame *f, struct msg_exec *m)
{
    struct wire_in in = payload_of(f);
    uint8_t stdio = wire_u8(&in);

    m->stdio = (enum exec_stdio)stdio;
    m->flags = wire_u8(&in);
    m->rows = wire_be16(&in);
    m->cols = wire_be16(&in);
    m->umask = wire_be32(&in);
    m->uid = wire_be32(&in);
    m->gid = wire_be32(&in);
    m->window = wire_be32(&in);
    m->n_rlimits = wire_u8(&in);
    if (m->n_rlimits > MSG_RLIMITS_MAX)
        return false;
    for (size_t i = 0; i < m->n_rlimits; i++) {
        m->rlimits[i].resource = wire_be32(&in);
        m->rlimits[i].soft = wire_be64(&in);
        m->rlimits[i].hard = wire_be64(&in);
        if (m->rlimits[i].soft > m->rlimits[i].hard || m->rlimits[i].resource > 15)
            return false;
    }
    m->cwd = wire_cstr(&in, MSG_PATH_MAX, NULL);
    if (!get_strings(&in, &m->argv) || !get_strings(&in, &m->env) || !wire_done(&in))
        return false;
    return stdio <= EXEC_STDIO_PTY && m->argv.count > 0 && (m->umask == MSG_KEEP || m->umask <= 0777) &&
           (stdio != EXEC_STDIO_FDS || MSG_EXEC_JOINS(m->flags) == 0) &&
           (stdio == EXEC_STDIO_STREAM || (m->flags & MSG_EXEC_NOTE) == 0) &&
           ((m->flags & MSG_EXEC_LOOK) == 0 || (m->flags & MSG_EXEC_NO_GUARD) != 0);
}

int
msg_put_connect(struct buf *b, uint16_t channel, const struct msg_connect *m)
{
    size_t at = frame_begin(b, MSG_CONNECT, 0, channel);

    (void)buf_put_be16(b, m->port);
    (void)buf_put_be32(b, m->window);
    return frame_end(b, at);
}

bool
msg_get_connect(const struct frame *f, struct msg_connect *m)
{
    struct wire_in in = payload_of(f);

    m->port = wire_be16(&in);
    m->window = wire_be32(&in);
    return wire_done(&in) && m->port > 0 && m->window > 0;
}

int
msg_put_window(struct buf *b, uint16_t channel, const struct msg_window *m)
{
    size_t at = frame_begin(b, MSG_WINDOW, 0, channel);

    (void)buf_put_u8(b, m->stream);
    (void)buf_put_be32(b, m->bytes);
    return frame_end(b, at);
}

bool
msg_get_window(const struct frame *f, struct msg_window *m)
{
    struct wire_in in = payload_of(f);

    m->stream = wire_u8(&in);
    m->bytes = wire_be32(&in);
    return wire_done(&in) && (m->stream == MSG_STREAM_OUT || m->stream == MSG_STREAM_ERR);
}

int
msg_put_resize(struct buf *b, uint16_t channel, const struct msg_resize *m)
{
    size_t at = frame_begin(b, MSG_RESIZE, 0, channel);

    (void)buf_put_be16(b, m->rows);
    (void)buf_put_be16(b, m->cols);
    return frame_end(b, at);
}

bool
msg_get_resize(const struct frame *f, struct msg_resize *m)
{
    struct wire_in in = payload_of(f);

    m->rows = wire_be16(&in);
    m->cols = wire_be16(&in);
    return wire_done(&in);
}

int
msg_put_signal(struct buf *b, uint16_t channel, const struct msg_signal *m)
{
    size_t at = frame_begin(b, MSG_SIGNAL, 0, channel);

    (void)buf_put_be32(b, m->signo);
    (void)buf_put_u8(b, m->target);
    return frame_end(b, at);
}

bool
msg_get_signal(const struct frame *f, struct msg_signal *m)
{
    struct wire_in in = payload_of(f);

    m->signo = wire_be32(&in);
    m->target = wire_u8(&in);
    return wire_done(&in) && m->signo > 0 && m->signo <= 64 && m->target <= SIGNAL_LEADER;
}

int
msg_put_exec_failed(struct buf *b, uint16_t channel, const struct msg_exec_failed *m)
{
    size_t at = frame_begin(b, MSG_EXEC_FAILED, 0, channel);

    (void)buf_put_be32(b, m->sys_errno);
    (void)buf_put_u8(b, m->stage);
    return frame_end(b, at);
}

bool
msg_get_exec_failed(const struct frame *f, struct msg_exec_failed *m)
{
    struct wire_in in = payload_of(f);

    m->sys_errno = wire_be32(&in);
    m->stage = wire_u8(&in);
    return wire_done(&in) && m->sys_errno > 0 && m->sys_errno < 4096 &&
           m->stage >= EXEC_STAGE_SPAWN && m->stage <= EXEC_STAGE_DENY;
}

int
msg_put_exit(struct buf *b, uint16_t channel, const struct msg_exit *m)
{
    size_t at = frame_begin(b, MSG_EXIT, 0, channel);

    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be32(b, m->status);
    (void)buf_put_be64(b, m->utime_us);
    (void)buf_put_be64(b, m->stime_us);
    (void)buf_put_be64(b, m->maxrss_bytes);
    (void)buf_put_be64(b, m->run_us);
    return frame_end(b, at);
}

bool
msg_get_exit(const struct frame *f, struct msg_exit *m)
{
    struct wire_in in = payload_of(f);

    m->flags = wire_u8(&in);
    m->status = wire_be32(&in);
    m->utime_us = wire_be64(&in);
    m->stime_us = wire_be64(&in);
    m->maxrss_bytes = wire_be64(&in);
    m->run_us = wire_be64(&in);
    if (!wire_done(&in) || (m->flags & ~(MSG_EXIT_SIGNALED | MSG_EXIT_CORE)) != 0)
        return false;
    return (m->flags & MSG_EXIT_SIGNALED) != 0 ? m->status > 0 && m->status <= 64 : m->status <= 255;
}

int
msg_put_stdin_window(struct buf *b, uint16_t channel, const struct msg_stdin_window *m)
{
    size_t at = frame_begin(b, MSG_STDIN_WINDOW, 0, channel);

    (void)buf_put_u8(b, m->flags);
    (void)buf_put_be32(b, m->bytes);
    return frame_end(b, at);
}

bool
msg_get_stdin_window(const struct frame *f, struct msg_stdin_window *m)
{
    struct wire_in in = payload_of(f);

    m->flags = wire_u8(&in);
    m->bytes = wire_be32(&in);
    return wire_done(&in) && (m->flags & ~MSG_STDIN_GONE) == 0;
}

int
msg_put_notice(struct buf *b, const struct msg_notice *m)
{
    size_t at = frame_begin(b, MSG_NOTICE, 0, 0);

    (void)buf_put_u8(b, m->kind);
    (void)buf_put_be64(b, m->value);
    (void)buf_put_be64(b, m->limit);
    return frame_end(b, at);
}

bool
msg_get_notice(const struct frame *f, struct msg_notice *m)
{
    struct wire_in in = payload_of(f);

    m->kind = wire_u8(&in);
    m->value = wire_be64(&in);
    m->limit = wire_be64(&in);
    return wire_done(&in) && m->kind >= NOTICE_MEMORY && m->kind <= NOTICE_PIDS;
}

int
msg_put_denied(struct buf *b, const struct msg_denied *m)
{
    size_t at = frame_begin(b, MSG_DENIED, 0, 0);

    (void)buf_put_be32(b, m->count);
    (void)wire_put_cstr(b, m->op, MSG_LABEL_MAX);
    (void)wire_put_cstr(b, m->target, MSG_PATH_MAX);
    (void)wire_put_cstr(b, m->rule, MSG_PATH_MAX);
    return frame_end(b, at);
}

bool
msg_get_denied(const struct frame *f, struct msg_denied *m)
{
    struct wire_in in = payload_of(f);

    m->count = wire_be32(&in);
    m->op = wire_cstr(&in, MSG_LABEL_MAX, NULL);
    m->target = wire_cstr(&in, MSG_PATH_MAX, NULL);
    m->rule = wire_cstr(&in, MSG_PATH_MAX, NULL);
    return wire_done(&in) && m->count > 0;
}
