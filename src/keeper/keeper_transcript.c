/* keeper/keeper_transcript.c: see keeper_transcript.h */
#include "keeper/keeper_transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/parse.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/io.h"
#include "keeper/keeper.h"

#define PIECE     8192              /* bytes of output in one line */
#define LINE_MAX_ (192 * 1024)      /* of a line: less than a page that is read at a time (scribe/scribe.h) */
#define WORD_MAX_ 4096              /* bytes of a word, a path; what is cut ends in "..." */
#define WORDS_MAX_ (128 * 1024)     /* of all words */

struct op_trace {
    struct masks masks;             /* of the command's own variables */
    struct buf pending[2];          /* output that is not in a line yet */
    uint64_t kept[2];
    bool cut[2];
    struct sha256 sum;              /* of a file that is written */
    uint64_t written;
};

/* --- lines -------------------------------------------------------------------------------------------------------- */

static void
put_text(struct buf *out, const struct transcript *t, const struct op_trace *trace, struct str text, size_t max)
{
    cleanup_buf struct buf once = BUF_INIT(LINE_MAX_), twice = BUF_INIT(LINE_MAX_);

    if (text.n > 0 && masks_redact(t->masks, text, &once))
        text = buf_ok(&once) ? (struct str){ (const char *)once.p, once.n } : STR_LIT("[redacted]");
    if (text.n > 0 && trace != NULL && masks_redact((void *)(uintptr_t)&trace->masks, text, &twice))
        text = buf_ok(&twice) ? (struct str){ (const char *)twice.p, twice.n } : STR_LIT("[redacted]");
    buf_put_u8(out, '"');
    (void)audit_escape(text, max, out);
    buf_put_u8(out, '"');
}

static void
begin_line(struct buf *out, uint64_t number, const char *event)
{
    char date[CLOCK_TEXT + 1];

    clock_text((int64_t)clock_wall_ms(), date);
    buf_printf(out, "{\"at\":\"%s\"", date);
    if (number != 0)
        buf_printf(out, ",\"operation\":%llu", (unsigned long long)number);
    buf_printf(out, ",\"event\":\"%s\"", event);
}

static int
append(struct transcript *t, const void *p, size_t n)
{
    if (io_write_full(t->fd, p, n) < 0) {
        (void)!ftruncate(t->fd, (off_t)t->size);        /* no half line */
        return -1;
    }
    t->size += n;
    return 0;
}

/* What is written before all else: whose it is. 0 or -1. */
static int
say_owner(struct transcript *t)
{
    char line[sizeof(TRANSCRIPT_OWNER) + EDGE_ID + 4];

    if (t->size > 0 || t->owner[0] == '\0')
        return 0;
    return append(t, line, (size_t)snprintf(line, sizeof(line), TRANSCRIPT_OWNER "%s\"}\n", t->owner));
}

/* Whole, or not at all. */
static void
end_line(struct transcript *t, struct buf *line)
{
    char gap[128];
    int n;

    buf_puts(line, "}\n");
    if (t->full || !buf_ok(line) || say_owner(t) < 0) {
        t->lost++;
        return;
    }
    if (t->lost > 0) {
        n = snprintf(gap, sizeof(gap), "{\"event\":\"gap\",\"lines\":%llu}\n", (unsigned long long)t->lost);
        if (append(t, gap, (size_t)n) < 0) {
            t->lost++;
            return;
        }
        t->lost = 0;
    }
    if (t->size + line->n > TRANSCRIPT_BYTES) {
        static const char full[] = "{\"event\":\"full\"}\n";
        t->full = true;
        (void)append(t, full, sizeof(full) - 1);
    } else if (append(t, line->p, line->n) < 0) {
        t->lost++;
    }
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

int
transcript_open(struct transcript *t, const struct keeper_settings *daemon, const char *id, const char *owner,
                struct masks *masks, struct err *err)
{
    char path[4096];
    struct stat st;
    char last = '\n';

    *t = (struct transcript){ .fd = -1, .output = strcmp(daemon->transcript, "commands") != 0, .masks = masks };
    snprintf(t->owner, sizeof(t->owner), "%s", owner);
    if (strcmp(daemon->transcript, "off") == 0)
        return 0;
    if (snprintf(path, sizeof(path), "%s/%s.jsonl", daemon->transcripts, id) >= (int)sizeof(path))
        return err_set(err, ERR_LIMIT, "transcript.open", "%s: the path is too long", daemon->transcripts);
    t->fd = open_and_hold(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
    if (t->fd < 0 || fstat(t->fd, &st) < 0) {
        err_sys(err, errno, "transcript.open", "keep the transcript %s", path);
        close_fd(&t->fd);
        return -1;
    }
    t->size = (uint64_t)st.st_size;
    /* one that was killed in the middle of a line */
    if (st.st_size > 0 && pread(t->fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
        (void)append(t, "\n", 1);
    (void)say_owner(t);
    return 0;
}

void
transcript_close(struct transcript *t)
{
    close_fd(&t->fd);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* Values of a command's own variables are left out of its output, where secrets turn up by themselves. Not out of its
 * words: who chooses both would choose what is known of the command. For the same reason values that there is no room
 * for are not left out, instead of everything being so. */
void
transcript_hide(struct op *o, const struct edge_op *want)
{
    struct op_trace *trace = o->trace;
    char name[MASK_NAME + 1];

    edits_hide(o->k, want);
    for (size_t i = 0; trace != NULL && i < want->n_env && trace->masks.n < MASKS_FORMS; i++) {
        const char *eq = strchr(want->env[i], '=');
        snprintf(name, sizeof(name), "[variable %.*s]", (int)(eq - want->env[i] < 48 ? eq - want->env[i] : 48),
                 want->env[i]);
        masks_add(&trace->masks, name, eq + 1, strlen(eq + 1));
    }
}

static void
put_words(struct buf *line, const struct transcript *t, const struct edge_op *want)
{
    uint8_t hash[SHA256_SIZE];
    char hex[SHA256_TEXT + 1];
    struct sha256 h;
    size_t n = 0;

    sha256_init(&h);
    for (size_t i = 0; i < want->n_argv; i++)
        sha256_add(&h, want->argv[i], strlen(want->argv[i]) + 1);
    sha256_end(&h, hash);
    sha256_text(hash, hex);
    buf_puts(line, ",\"argv\":[");
    for (size_t i = 0; i < want->n_argv && n < WORDS_MAX_; i++) {
        size_t at = line->n;
        if (i > 0)
            buf_put_u8(line, ',');
        put_text(line, t, NULL, str_of(want->argv[i]), WORD_MAX_);
        n += line->n - at;
    }
    buf_puts(line, "],\"words\":");
    buf_printf(line, "%zu,\"argv_sha256\":\"%s\",\"variables\":[", want->n_argv, hex);
    n = 0;
    for (size_t i = 0; i < want->n_env && n < WORD_MAX_; i++) {
        size_t at = line->n;
        if (i > 0)
            buf_put_u8(line, ',');
        put_text(line, t, NULL, (struct str){ want->env[i], strcspn(want->env[i], "=") }, 256);
        n += line->n - at;
    }
    buf_put_u8(line, ']');
}

void
transcript_begin(struct transcript *t, struct op *o, const struct edge_op *want, const char *by)
{
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);

    if (t->fd < 0 || (o->trace = calloc(1, sizeof(*o->trace))) == NULL)
        return;
    for (size_t i = 0; i < 2; i++)
        o->trace->pending[i] = (struct buf)BUF_INIT(2 * PIECE + 2 * MASK_MAX);
    sha256_init(&o->trace->sum);
    masks_init(&o->trace->masks);
    transcript_hide(o, want);
    begin_line(&line, o->number, op_name(o->kind));
    buf_puts(&line, ",\"by\":");
    put_text(&line, t, NULL, str_of(by), EDGE_WHO_MAX);
    if (want->n_argv > 0)
        put_words(&line, t, want);
    if (want->path[0] != '\0') {
        buf_puts(&line, want->n_argv > 0 ? ",\"cwd\":" : ",\"path\":");
        put_text(&line, t, NULL, str_of(want->path), WORD_MAX_);
    }
    end_line(t, &line);
}

/* How much of what is pending goes into the next line: no value is cut in two. */
static size_t
piece_of(const struct transcript *t, const struct op_trace *trace, const struct buf *pending, size_t most)
{
    struct str text = { (const char *)pending->p, pending->n };
    size_t n = masks_cut(t->masks, text, most < PIECE ? most : PIECE), other;

    while ((other = masks_cut(&trace->masks, text, n)) < n && (n = masks_cut(t->masks, text, other)) < other)
        ;
    return other > n ? other : n;
}

/* What is pending of @stream, but for so much of its end as may be the beginning of something that is to be hidden. */
static void
flush(struct transcript *t, struct op *o, size_t stream, bool last)
{
    struct op_trace *trace = o->trace;
    struct buf *pending = &trace->pending[stream];
    size_t own = masks_tail(&trace->masks), tail = masks_tail(t->masks);

    tail = last && !trace->cut[stream] ? 0 : own > tail ? own : tail;
    while (pending->n > tail) {
        cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);
        size_t n = piece_of(t, trace, pending, pending->n - tail);
        begin_line(&line, o->number, o->kind == OP_WRITE ? "content" : "output");
        if (o->kind != OP_WRITE)
            buf_printf(&line, ",\"stream\":\"%s\"", stream == 0 ? "stdout" : "stderr");
        buf_puts(&line, ",\"text\":");
        put_text(&line, t, trace, (struct str){ (const char *)pending->p, n }, LINE_MAX_ / 2);
        end_line(t, &line);
        buf_consume(pending, n);
    }
}

void
transcript_output(struct transcript *t, struct op *o, size_t stream, const uint8_t *p, size_t n)
{
    struct op_trace *trace = o->trace;
    uint64_t room;

    if (t->fd < 0 || trace == NULL || !t->output)
        return;
    room = TRANSCRIPT_OUTPUT - trace->kept[stream];
    trace->cut[stream] = trace->cut[stream] || n > room;
    n = n < room ? n : (size_t)room;
    trace->kept[stream] += n;
    for (size_t take; n > 0; p += take, n -= take) {
        take = n < PIECE ? n : PIECE;
        buf_append(&trace->pending[stream], p, take);
        if (trace->pending[stream].n >= PIECE)
            flush(t, o, stream, false);
    }
}

void
transcript_written(struct transcript *t, struct op *o, const uint8_t *p, size_t n)
{
    if (o->trace == NULL || o->kind != OP_WRITE)
        return;
    transcript_output(t, o, 0, p, n);
    sha256_add(&o->trace->sum, p, n);
    o->trace->written += n;
}

static void
put_result(struct buf *line, const struct op *o)
{
    const struct op_result *r = &o->result;
    uint8_t hash[SHA256_SIZE];
    struct sha256 sum = o->trace->sum;
    char hex[SHA256_TEXT + 1];

    if (r->error[0] != '\0')
        buf_printf(line, ",\"error\":\"%s\"", r->error);
    else if (o->kind == OP_EXEC)
        buf_printf(line, ",\"%s\":%u", (r->flags & EDGE_SIGNALED) != 0 ? "signal" : "exit_code", (unsigned)r->code);
    if ((r->flags & EDGE_TIMED_OUT) != 0)
        buf_puts(line, ",\"timed_out\":true");
    if ((r->flags & EDGE_OOM) != 0)
        buf_puts(line, ",\"oom_killed\":true");
    buf_printf(line, ",\"duration_ms\":%llu", (unsigned long long)((clock_us() - o->begin_us) / 1000));
    if (o->kind == OP_EXEC)
        buf_printf(line, ",\"stdout_bytes\":%llu,\"stderr_bytes\":%llu,\"output_cut\":%s",
                   (unsigned long long)o->bytes[0], (unsigned long long)o->bytes[1],
                   o->trace->cut[0] || o->trace->cut[1] ? "true" : "false");
    else if (r->error[0] == '\0')
        buf_printf(line, ",\"count\":%llu", (unsigned long long)r->bytes);
    if (o->kind == OP_WRITE)
        buf_printf(line, ",\"content_cut\":%s", o->trace->cut[0] ? "true" : "false");
    if (o->kind == OP_WRITE && r->error[0] == '\0') {
        sha256_end(&sum, hash);
        sha256_text(hash, hex);
        buf_printf(line, ",\"sha256\":\"%s\"", hex);
    }
}

void
transcript_end(struct transcript *t, struct op *o)
{
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);

    if (o->trace == NULL)
        return;
    for (size_t i = 0; i < 2 && t->fd >= 0; i++)
        flush(t, o, i, true);
    begin_line(&line, o->number, "result");
    put_result(&line, o);
    if (t->fd >= 0)
        end_line(t, &line);
    buf_free(&o->trace->pending[0]);
    buf_free(&o->trace->pending[1]);
    masks_free(&o->trace->masks);
    free(o->trace);
    o->trace = NULL;
}

/* --- edits -------------------------------------------------------------------------------------------------------- */

static void
put_state(struct buf *line, const char *name, const struct edit_state *s)
{
    char hex[SHA256_TEXT + 1];

    if (s->kind == 0)
        return;
    buf_printf(line, ",\"%s\":{\"kind\":\"%s\",\"size\":%llu,\"mode\":\"%04o\"", name,
               s->kind == 'f' ? "file" : s->kind == 'l' ? "link" : "other", (unsigned long long)s->size,
               (unsigned)s->mode & 07777);
    if (s->hashed) {
        sha256_text(s->sum, hex);
        buf_printf(line, ",\"sha256\":\"%s\"", hex);
    }
    buf_put_u8(line, '}');
}

void
transcript_edit(struct transcript *t, uint64_t number, uint32_t operations, const struct edit *e)
{
    static const char *const how[] = { [EDIT_DIFF_NONE] = "none", [EDIT_DIFF_WHOLE] = "whole", [EDIT_DIFF_CUT] = "cut",
                                       [EDIT_DIFF_BINARY] = "binary", [EDIT_DIFF_WITHHELD] = "withheld" };
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);

    begin_line(&line, number, "edit");
    if (operations > 1)
        buf_printf(&line, ",\"operations\":%u", (unsigned)operations);
    buf_puts(&line, ",\"path\":");
    put_text(&line, t, NULL, str_of(e->path), WORD_MAX_);
    buf_printf(&line, ",\"change\":\"%s\"",
               e->before.kind == 0 ? "created" : e->after.kind == 0 ? "removed" : "modified");
    put_state(&line, "before", &e->before);
    put_state(&line, "after", &e->after);
    buf_printf(&line, ",\"compared\":\"%s\"", how[e->how]);
    if (e->diff.n > 0) {
        buf_puts(&line, ",\"diff\":");
        put_text(&line, t, NULL, e->diff, LINE_MAX_ / 2);
    }
    end_line(t, &line);
}

void
transcript_edits(struct transcript *t, uint64_t number, uint32_t more, bool incomplete, bool over)
{
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);

    if (t->fd < 0)
        return;
    begin_line(&line, number, "edits");
    buf_printf(&line, ",\"more\":%u,\"incomplete\":%s,\"over\":%s", (unsigned)more, incomplete ? "true" : "false",
               over ? "true" : "false");
    end_line(t, &line);
}

/* --- what is no operation ----------------------------------------------------------------------------------------- */

int
transcript_message(struct transcript *t, const struct keep_run_ask *m, struct err *err)
{
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);
    const uint64_t lost = t->lost;

    if (t->fd < 0) {
        err_set(err, ERR_DENIED, "transcript.off", "no transcript of this sandbox is kept");
        return err_hint(err, "cloche serve --transcript commands|full keeps them");
    }
    begin_line(&line, m->ask.number, "message");
    buf_puts(&line, ",\"by\":");
    put_text(&line, t, NULL, str_of(m->by), EDGE_WHO_MAX);
    buf_printf(&line, ",\"role\":\"%s\"%s,\"text\":", m->ask.role, m->ask.json ? ",\"json\":true" : "");
    put_text(&line, t, NULL, str_of(m->ask.text), LINE_MAX_ / 2);
    end_line(t, &line);
    if (t->full || t->lost > lost)
        return err_set(err, ERR_LIMIT, "transcript.full", "the sandbox's transcript is full, or cannot be written");
    return 0;
}

void
transcript_call(struct transcript *t, const struct keep_call *m)
{
    cleanup_buf struct buf line = BUF_INIT(LINE_MAX_);

    if (t->fd < 0)
        return;
    begin_line(&line, 0, "call");
    buf_puts(&line, ",\"by\":");
    put_text(&line, t, NULL, str_of(m->by), EDGE_WHO_MAX);
    buf_puts(&line, ",\"tool\":");
    put_text(&line, t, NULL, str_of(m->tool), GATE_NAME_MAX);
    if (m->params[0] != '\0') {
        buf_puts(&line, ",\"arguments\":");
        put_text(&line, t, NULL, str_of(m->params), LINE_MAX_ / 2);
    }
    end_line(t, &line);
}
