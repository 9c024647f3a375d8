/* adapters/desktop.c: see desktop.h */
#include "adapters/desktop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

#define LOOK_MS     10000       /* for a look whether it is there */
#define ACTION_MS   30000
#define SERVER_MS   86400000UL  /* for what is started: the longest that a command may have; then it is started anew */
#define AGAIN_MS    100         /* between looks, */
#define LOOKS_MS    20000       /* ... which go on so long; then it fails, or is done without a window manager */
#define WHY_MAX     256
#define PIECE       262144UL    /* of a file that is read: less than limits.output mostly is */
#define PIECE_TEXT  "262144"
#define PULSE       "unix:/tmp/.cloche-pulse"

static const char *const variables[] = { "DISPLAY=" DESKTOP_DISPLAY, "PULSE_SERVER=" PULSE, "LC_ALL=C.UTF-8" };

#define WORDS_MAX 20

/* A part: how to see that it is there, what is started, what is started when that is there, and how to see that. */
static const struct {
    const char *none, *look[WORDS_MAX], *server[WORDS_MAX], *companion[WORDS_MAX], *settled[WORDS_MAX];
} parts[] = {
    [DESKTOP_SCREEN] = {
        "this sandbox has no screen", { "xdotool", "getdisplaygeometry" },
        { "Xvnc", DESKTOP_DISPLAY, "-geometry", "1280x800", "-depth", "24", "-nolisten", "tcp", "-rfbport",
          DESKTOP_PORT_TEXT, "-localhost", "-SecurityTypes", "None", "-AlwaysShared", "-SendCutText=0",
          "-UseBlacklist=0" },
        { "openbox" }, { "wmctrl", "-l" } },
    [DESKTOP_SOUND] = {
        "this sandbox has no audio", { "pactl", "info" },
        { "pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "-L",
          "module-native-protocol-unix auth-anonymous=1 socket=/tmp/.cloche-pulse", "-L",
          "module-null-sink sink_name=cloche" }, { NULL }, { NULL } },
};

struct desktop {
    enum desktop_part part;
    desktop_done *done;
    desktop_failed *failed;
    void (*no)(struct visit *r, const struct err *err);
    json_t *params;             /* for the gate, or NULL */
    struct edge_op op;
    char room[DESKTOP_WORD_MAX];
    size_t used;
    bool full;                  /* its words are too many */
    struct buf in;
    struct desktop_stretch stretch;
    char id[EDGE_NAME_MAX + 1];
    const char *running;        /* the program that runs now, for what is said of it */
    bool acts;                  /* what runs is the action, */
    bool writes, to_file;       /* ... which writes much, to a file */
    char file[48];
    size_t before;              /* bytes of it before the piece at hand */
    bool started;               /* the server; */
    bool accompanied;           /* and what goes with it */
    uint64_t until_ms;          /* it is looked for */
    struct timer again;
};

/* --- what it is made of ------------------------------------------------------------------------------------------- */

struct edge_op *
desktop_action(struct visit *r, enum desktop_part part, desktop_done *done, desktop_failed *failed)
{
    struct desktop *d = calloc(1, sizeof(*d));

    r->desktop = d;
    if (d == NULL) {
        visit_no_memory(r);
        return NULL;
    }
    d->part = part;
    d->done = done;
    d->failed = failed;
    d->no = visit_err;
    d->op.kind = OP_EXEC;
    d->op.path = "";
    d->op.timeout_ms = ACTION_MS;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        d->op.env[d->op.n_env++] = variables[i];
    d->in = (struct buf)BUF_INIT(DESKTOP_OUT_MAX);
    return &d->op;
}

void
desktop_refused(struct visit *r, void (*no)(struct visit *r, const struct err *err))
{
    r->desktop->no = no;
}

void
desktop_word(struct visit *r, const char *fmt, ...)
{
    struct desktop *d = r->desktop;
    size_t left = sizeof(d->room) - d->used;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(d->room + d->used, left, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= left || d->op.n_argv == EDGE_WORDS_MAX) {
        d->full = true;
        return;
    }
    d->op.argv[d->op.n_argv++] = d->room + d->used;
    d->used += (size_t)n + 1;
}

void
desktop_words(struct visit *r, const char *const list[])
{
    for (; *list != NULL; list++)
        desktop_word(r, "%s", *list);
}

void
desktop_input(struct visit *r, struct buf *in)
{
    struct desktop *d = r->desktop;

    buf_free(&d->in);
    d->in = *in;
    *in = (struct buf)BUF_INIT(0);
    d->op.flags |= OP_STDIN;
}

struct desktop_stretch *
desktop_stretch(struct visit *r)
{
    return &r->desktop->stretch;
}

static void
to_file(struct desktop *d)
{
    d->to_file = true;
    if (d->op.n_argv > 0)
        d->op.argv[d->op.n_argv - 1] = d->file;
}

void
desktop_output(struct visit *r, bool large)
{
    static unsigned count;
    struct desktop *d = r->desktop;

    d->writes = true;
    snprintf(d->file, sizeof(d->file), "/tmp/.cloche-said-%u", ++count);
    if (large)
        to_file(d);
}

void
desktop_gone(struct visit *r)
{
    if (r->desktop == NULL)
        return;
    visits_at(&r->desktop->again, 0);
    buf_free(&r->desktop->in);
    json_decref(r->desktop->params);
    free(r->desktop);
    r->desktop = NULL;
}

/* --- what it does ------------------------------------------------------------------------------------------------- */

static void look(struct visit *r);
static void companion(struct visit *r);

static void
fail(struct visit *r, const char *why)
{
    r->desktop->failed(r, why);
}

static void
fail_none(struct visit *r, const char *because)
{
    char text[WHY_MAX];

    snprintf(text, sizeof(text), "%s: %s", parts[r->desktop->part].none, because);
    fail(r, text);
}

/* The first line of what a program says is wrong, as far as it can be shown. */
static void
fail_said(struct visit *r, const char *otherwise)
{
    char text[WHY_MAX];
    size_t n = 0;

    while (n < r->err_out.n && n < sizeof(text) - 1 && r->err_out.p[n] >= 0x20 && r->err_out.p[n] < 0x7f) {
        text[n] = (char)r->err_out.p[n];
        n++;
    }
    text[n] = '\0';
    fail(r, n > 0 ? text : otherwise);
}

static void
on_no(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found"))
        fail_none(r, r->desktop->id[0] != '\0' ? "there is no such sandbox" : "there is no default sandbox");
    else if (err_is(err, "sandbox.state"))
        fail_none(r, err->msg);
    else
        r->desktop->no(r, err);
}

static void
on_failed(struct visit *r, const struct err *err)
{
    char text[WHY_MAX];

    if (edge_shells_code(err) == 0) {
        fail(r, err->msg);
        return;
    }
    /* a window manager that is not there is missed by nobody but who moves windows */
    if (r->desktop->accompanied && !r->desktop->acts) {
        desktop_act(r);
        return;
    }
    snprintf(text, sizeof(text), "it has no %s", r->desktop->running);
    fail_none(r, text);
}

static void
on_output(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    struct buf *b = is_err ? &r->err_out : &r->out;

    if (is_err)
        n = n < WHY_MAX - b->n ? n : WHY_MAX - b->n;
    if (b->n + n > DESKTOP_OUT_MAX)
        r->cut_out = true;
    else
        visit_keep(r, b, is_err ? &r->cut_err : &r->cut_out, p, n);
    if (!r->cut_out)
        return;
    visit_drop(r);
    fail(r, "the sandbox says more than 16 MiB");
}

static const struct visit_answers answers = { .no = on_no };

static void
run(struct visit *r, const char *const *words, uint8_t flags, const struct visit_op_answers *said)
{
    static struct edge_op op;

    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = "";
    op.flags = flags;
    op.timeout_ms = (flags & OP_BACKGROUND) != 0 ? SERVER_MS : LOOK_MS;
    while (words[op.n_argv] != NULL) {
        op.argv[op.n_argv] = words[op.n_argv];
        op.n_argv++;
    }
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        op.env[op.n_env++] = variables[i];
    r->desktop->running = words[0];
    visit_op(r, r->desktop->id, &op, &answers, said);
}

static void
on_run(struct visit *r, const struct edge_run *ran)
{
    (void)r;
    (void)ran;
}

static void
again_later(struct visit *r)
{
    struct desktop *d = r->desktop;

    if (clock_ms() < d->until_ms)
        visits_at(&d->again, clock_ms() + AGAIN_MS);
    else if (d->accompanied)
        desktop_act(r);
    else
        fail_none(r, "what was started does not answer");
}

static void
on_again(struct timer *t)
{
    look(t->owner);
}

static void
on_begun(struct visit *r, uint64_t count)
{
    (void)count;
    look(r);
}

static const struct visit_op_answers begun = { .run = on_run, .done = on_begun, .failed = on_failed };

static void
on_looked(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    struct desktop *d = r->desktop;

    (void)ms;
    buf_free(&r->out);
    buf_free(&r->err_out);
    if (flags == 0 && code == 0 && (d->accompanied || !d->started))
        desktop_act(r);
    else if (flags == 0 && code == 0)
        companion(r);
    else if (d->started)
        again_later(r);
    else {
        d->started = true;
        d->until_ms = clock_ms() + LOOKS_MS;
        run(r, parts[d->part].server, OP_BACKGROUND, &begun);
    }
}

static const struct visit_op_answers looked = { .out = on_output, .exit = on_looked, .failed = on_failed };

static void
look(struct visit *r)
{
    const struct desktop *d = r->desktop;

    run(r, d->accompanied ? parts[d->part].settled : parts[d->part].look, 0, &looked);
}

/* What goes with a server that this visit started. */
static void
companion(struct visit *r)
{
    r->desktop->accompanied = true;
    r->desktop->until_ms = clock_ms() + LOOKS_MS;
    if (parts[r->desktop->part].companion[0] != NULL)
        run(r, parts[r->desktop->part].companion, OP_BACKGROUND, &begun);
    else
        desktop_act(r);
}

/* --- much that an action says ------------------------------------------------------------------------------------- */

static void read_piece(struct visit *r);

static void
on_removed(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)flags;
    (void)code;
    (void)ms;
    r->desktop->done(r);
}

static void
on_piece(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    static const struct visit_op_answers removed = { .out = on_output, .exit = on_removed, .failed = on_failed };
    struct desktop *d = r->desktop;

    (void)ms;
    if ((flags & EDGE_OUT_CUT) != 0)
        fail(r, "the sandbox's limits.output is less than a piece of it (256 KiB)");
    else if (flags != 0 || code != 0)
        fail_said(r, "what it wrote cannot be read");
    else if (r->out.n - d->before == PIECE)
        read_piece(r);
    else
        run(r, (const char *const[]){ "rm", "-f", d->file, NULL }, 0, &removed);
}

static const struct visit_op_answers piece = { .out = on_output, .exit = on_piece, .failed = on_failed };

static void
read_piece(struct visit *r)
{
    struct desktop *d = r->desktop;
    char from[64], skip[32];

    d->before = r->out.n;
    snprintf(from, sizeof(from), "if=%s", d->file);
    snprintf(skip, sizeof(skip), "skip=%zu", r->out.n / PIECE);
    run(r, (const char *const[]){ "dd", from, "bs=" PIECE_TEXT, skip, "count=1", "status=none", NULL }, 0, &piece);
}

/* The same again, to a file. */
static void
again_to_file(struct visit *r)
{
    struct desktop *d = r->desktop;

    buf_free(&r->out);
    buf_free(&r->err_out);
    to_file(d);
    desktop_act(r);
}

static void
on_acted(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)ms;
    if ((flags & EDGE_TIMED_OUT) != 0)
        fail(r, "it takes too long");
    else if ((flags & EDGE_OUT_CUT) != 0 && r->desktop->writes && !r->desktop->to_file)
        again_to_file(r);
    else if ((flags & EDGE_OUT_CUT) != 0)
        fail(r, "it is larger than the sandbox's limits.output, which cut it");
    else if ((flags & EDGE_SIGNALED) != 0 || code != 0)
        fail_said(r, "the program inside failed");
    else if (r->desktop->to_file)
        read_piece(r);
    else
        r->desktop->done(r);
}

static const struct visit_op_answers acted = { .out = on_output, .exit = on_acted, .failed = on_failed };

void
desktop_next(struct visit *r, desktop_done *done)
{
    struct desktop *d = r->desktop;

    d->done = done;
    buf_free(&r->out);
    buf_free(&r->err_out);
    d->op.flags = 0;
    d->op.n_argv = 0;
    d->used = 0;
}

void
desktop_act(struct visit *r)
{
    struct desktop *d = r->desktop;

    d->acts = true;
    if (d->full) {
        fail(r, "it has more words than an action can have");
        return;
    }
    d->running = d->op.argv[0];
    if ((d->op.flags & OP_STDIN) != 0 && !visit_input(r, d->in.p, d->in.n))
        fail(r, "it is too large");
    else
        visit_op(r, d->id, &d->op, &answers, &acted);
}

static void
on_verdict(struct visit *r, const struct edge_verdict *v)
{
    struct err err = ERR_INIT;

    if (v->says == GATE_ALLOWED) {
        look(r);
        return;
    }
    err_set(&err, ERR_DENIED, "gate.denied", "%s", v->reason[0] != '\0' ? v->reason : "nobody approved it in time");
    r->desktop->no(r, &err);
}

static const struct visit_answers gate_answers = { .gate = on_verdict, .no = on_no };

/* The host's network has the host's displays in it. */
static void
on_box(struct visit *r, const struct edge_box *box)
{
    if (str_eq_c(edge_line(box->facts, "network"), "host"))
        fail_none(r, "it shares the host's network, where the host's own displays are");
    else if (r->desktop->params != NULL)
        visit_gate(r, r->desktop->id, "computer", r->desktop->params, true, &gate_answers);
    else
        look(r);
}

static const struct visit_answers box_answers = { .box = on_box, .no = on_no };

void
desktop_go(struct visit *r, const char *id, json_t *params)
{
    struct desktop *d = r->desktop;

    d->params = params;
    d->again = (struct timer){ .due = on_again, .owner = r };
    snprintf(d->id, sizeof(d->id), "%s", id);
    if (d->full)
        fail(r, "it has more words than an action can have");
    else
        VISIT_ASK(r, EDGE_ASK_GET, &box_answers, .id = d->id);
}
