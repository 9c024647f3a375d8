/* guest/client_events.c: what the guest says, judged and turned into events (see client.h) */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "guest/client_priv.h"

static int
client_events_refuse(struct guest_client *c, const char *why)
{
    c->why = why;
    return -1;
}

static int
on_hello(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;

    if (!msg_get_hello(f, &c->event->hello) || f->channel != 0)
        return client_events_refuse(c, "malformed HELLO");
    if (c->event->hello.version != GUEST_PROTOCOL_VERSION)
        return client_events_refuse(c, "another protocol version");
    c->event->type = GUEST_HELLO;
    c->gate.state = CLIENT_READY;
    return 0;
}

static int
on_started(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_exec *e = client_exec_of(c, f->channel);

    if (e == NULL || e->started || !msg_get_u32(f, &c->event->pid))
        return client_events_refuse(c, "STARTED out of place");
    e->started = true;
    c->event->type = GUEST_STARTED;
    return 0;
}

static int
on_exec_failed(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_exec *e = client_exec_of(c, f->channel);

    if (e == NULL || e->started || !msg_get_exec_failed(f, &c->event->exec_failed))
        return client_events_refuse(c, "EXEC_FAILED out of place");
    *e = (struct client_exec){ .id = 0 };
    c->event->type = GUEST_EXEC_FAILED;
    return 0;
}

static int
on_output(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_exec *e = client_exec_of(c, f->channel);
    size_t stream = f->type == MSG_STDERR;

    if (e == NULL || e->stdio == EXEC_STDIO_FDS || (stream == 1 && e->stdio != EXEC_STDIO_STREAM))
        return client_events_refuse(c, "output of a command that has none here");
    if (e->window != 0) {
        if (f->length > e->output_room[stream])
            return client_events_refuse(c, "more output than was asked for");
        e->output_room[stream] -= f->length;
    }
    c->event->type = stream == 0 ? GUEST_STDOUT : GUEST_STDERR;
    c->event->data.p = f->payload;
    c->event->data.n = f->length;
    return 0;
}

static int
on_stdin_window(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_exec *e = client_exec_of(c, f->channel);
    struct msg_stdin_window m;

    if (e == NULL || e->stdio == EXEC_STDIO_FDS || !msg_get_stdin_window(f, &m))
        return client_events_refuse(c, "STDIN_WINDOW out of place");
    /* Credit comes back only for what was sent. */
    if (m.bytes > MSG_STDIN_WINDOW_START - e->stdin_room)
        return client_events_refuse(c, "more stdin credit than was used");
    e->stdin_room += m.bytes;
    if ((m.flags & MSG_STDIN_GONE) != 0)
        e->stdin_closed = true;
    c->event->type = GUEST_STDIN_READY;
    c->event->stdin_gone = (m.flags & MSG_STDIN_GONE) != 0;
    return 0;
}

static int
on_exit(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_exec *e = client_exec_of(c, f->channel);

    if (e == NULL || !msg_get_exit(f, &c->event->exit))
        return client_events_refuse(c, "EXIT out of place");
    *e = (struct client_exec){ .id = 0 };
    c->event->type = GUEST_EXIT;
    return 0;
}

static int
on_denied(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;

    if (f->channel != 0 || !msg_get_denied(f, &c->event->denied))
        return client_events_refuse(c, "malformed DENIED");
    c->event->type = GUEST_DENIED;
    return 0;
}

static int
on_notice(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;

    if (f->channel != 0 || !msg_get_notice(f, &c->event->notice))
        return client_events_refuse(c, "malformed NOTICE");
    c->event->type = GUEST_NOTICE;
    return 0;
}

static int
on_file_data(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_file *r = client_file_of(c, f->channel);

    if (r == NULL || r->type != MSG_FILE_READ)
        return client_events_refuse(c, "file contents that nobody asked for");
    if (f->length > r->left)
        return client_events_refuse(c, "more of a file than was asked for");
    r->left -= f->length;
    r->said += f->length;
    c->event->type = GUEST_FILE_DATA;
    c->event->data.p = f->payload;
    c->event->data.n = f->length;
    return 0;
}

static int
on_file_entries(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    const struct client_file *r = client_file_of(c, f->channel);
    struct wire_in in = wire_in_of(f->payload, f->length);
    struct msg_file_info info;

    if (r == NULL || r->type != MSG_FILE_LIST)
        return client_events_refuse(c, "a listing that nobody asked for");
    while (msg_next_entry(&in, &info))
        if (info.name[0] == '\0')
            return client_events_refuse(c, "a listed entry without a name");
    if (in.bad)
        return client_events_refuse(c, "malformed FILE_ENTRIES");
    c->event->type = GUEST_FILE_ENTRIES;
    c->event->entries = wire_in_of(f->payload, f->length);
    return 0;
}

static int
on_file_change(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_file *r = client_file_of(c, f->channel);
    struct msg_change *m = &c->event->change;

    if (r == NULL || r->type != MSG_FILE_WATCH)
        return client_events_refuse(c, "a change that nobody watches for");
    if (!msg_get_change(f, m))
        return client_events_refuse(c, "malformed FILE_CHANGE");
    if (f->length > r->room)
        return client_events_refuse(c, "more changes than were asked for");
    if (m->kind == CHANGE_WATCHING ? r->watching : !r->watching && m->kind != CHANGE_UNWATCHED)
        return client_events_refuse(c, "FILE_CHANGE out of place");
    r->room -= f->length;
    r->watching = r->watching || m->kind == CHANGE_WATCHING;
    c->event->type = GUEST_FILE_CHANGE;
    return 0;
}

static int
on_file_info(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_file *r = client_file_of(c, f->channel);

    if (r == NULL || r->type != MSG_FILE_STAT || !msg_get_file_info(f, &c->event->info))
        return client_events_refuse(c, "FILE_INFO out of place");
    r->id = 0;
    c->event->type = GUEST_FILE_INFO;
    return 0;
}

static int
on_file_ok(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_file *r = client_file_of(c, f->channel);

    if (r == NULL || r->type == MSG_FILE_STAT || r->type == MSG_FILE_WATCH ||
        (r->type == MSG_FILE_WRITE && !r->ended) || !msg_get_u64(f, &c->event->count))
        return client_events_refuse(c, "FILE_OK out of place");
    if (r->type == MSG_FILE_READ && c->event->count != r->said)
        return client_events_refuse(c, "another number of bytes than it sent");
    r->id = 0;
    c->event->type = GUEST_FILE_DONE;
    return 0;
}

static int
on_file_error(void *ctx, const struct frame *f)
{
    struct guest_client *c = ctx;
    struct client_file *r = client_file_of(c, f->channel);

    if (r == NULL || !msg_get_file_error(f, &c->event->file_error))
        return client_events_refuse(c, "FILE_ERROR out of place");
    /* A write that failed half-way: chunks may be on their way, and the guest drops them until its END. */
    if (r->type == MSG_FILE_WRITE && !r->ended)
        (void)frame_append(&c->out, MSG_FILE_CANCEL, 0, r->id, NULL, 0);
    r->id = 0;
    c->event->type = GUEST_FILE_FAILED;
    return 0;
}

#define READY CLIENT_READY
#define ENTRY (4 * 4 + 2 * 8 + 4 + 1)

/* What the guest may say. Anything else: it is broken or hostile, and its sandbox is destroyed. */
const struct msg_rule client_rules[] = {
    /* type              once   flags  permitted      shortest  longest          handler */
    { MSG_HELLO,         true,  0,     CLIENT_FRESH,  7,        7,               on_hello },
    { MSG_STARTED,       false, 0,     READY,         4,        4,               on_started },
    { MSG_EXEC_FAILED,   false, 0,     READY,         5,        5,               on_exec_failed },
    { MSG_STDOUT,        false, 0,     READY,         1,        MSG_DATA_MAX,    on_output },
    { MSG_STDERR,        false, 0,     READY,         1,        MSG_DATA_MAX,    on_output },
    { MSG_STDIN_WINDOW,  false, 0,     READY,         5,        5,               on_stdin_window },
    { MSG_EXIT,          false, 0,     READY,         37,       37,              on_exit },
    { MSG_DENIED,        false, 0,     READY,         19,       MSG_LABEL_MAX + 2 * MSG_PATH_MAX + 19, on_denied },
    { MSG_NOTICE,        false, 0,     READY,         17,       17,              on_notice },
    { MSG_FILE_OK,       false, 0,     READY,         8,        8,               on_file_ok },
    { MSG_FILE_ERROR,    false, 0,     READY,         5,        5,               on_file_error },
    { MSG_FILE_DATA,     false, 0,     READY,         1,        MSG_DATA_MAX,    on_file_data },
    { MSG_FILE_INFO,     false, 0,     READY,         ENTRY,    ENTRY,           on_file_info },
    { MSG_FILE_ENTRIES,  false, 0,     READY,         ENTRY,    MSG_DATA_MAX,    on_file_entries },
    { MSG_FILE_CHANGE,   false, 0,     READY,         2 + 2 * 5, MSG_CHANGE_MAX, on_file_change },
};
const size_t client_n_rules = ARRAY_LEN(client_rules);

static int
broken(struct guest_client *c, uint8_t type, enum msg_verdict v, struct err *err)
{
    const char *why = v == MSG_HANDLER && c->why != NULL ? c->why : msg_verdict_text(v);

    c->failed = true;
    return err_set(err, ERR_PROTOCOL, "guest.protocol", "the guest broke the protocol (message 0x%02x: %s)", type, why);
}

int
guest_client_next(struct guest_client *c, struct guest_event *ev, struct err *err)
{
    struct frame f = { .type = 0 };
    enum msg_verdict v = MSG_OK;
    size_t need = 0;
    int rc = 0;

    if (c->failed)
        return err_set(err, ERR_PROTOCOL, "guest.protocol",
                       "the guest broke the protocol: its sandbox must be destroyed");
    if (c->in_at < c->in.n)
        rc = msg_next(&c->gate, c->in.p + c->in_at, c->in.n - c->in_at, &f, &need, &v);
    if (rc < 0)
        return broken(c, f.type, v, err);
    if (rc == 0 && c->closed && !c->closed_told) {
        c->closed_told = true;
        *ev = (struct guest_event){ .type = GUEST_CLOSED };
        return 1;
    }
    if (rc == 0)
        return 0;
    memset(ev, 0, sizeof(*ev));
    ev->channel = f.channel;
    c->event = ev;
    c->why = NULL;
    v = msg_dispatch(&c->gate, &f, c);
    c->event = NULL;
    if (v != MSG_OK)
        return broken(c, f.type, v, err);
    c->in_at += need;
    return 1;
}
