/* adapters/e2b/process.c: E2B's process.Process: commands that go on without their client, and what they say (e2b.h)
 *
 * Each is a command in the background, and who starts one follows it from its beginning. Its number has more bits than
 * their pids, so the pid is what is left of it, and of those that the sandbox keeps the one is looked for that has it.
 * Output that is not kept any more before it was told is no gap here, for clients have no word for one: the stream ends
 * with `data_loss`.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "adapters/e2b/e2b.h"
#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "proto/edge_limits.h"
#include "wire/connect.h"
#include "wire/json_text.h"
#include "wire/whole.h"

#define SIDE_MAX  4096
#define INPUT_MAX (10UL * 1024 * 1024)     /* a body has no more */

static uint32_t
pid_of(uint64_t number)
{
    return (uint32_t)(number % INT32_MAX) + 1;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static void
begin_stream(struct visit *r)
{
    r->e2b->streams = true;
    visit_stream_of(r, ADAPT_CONNECT);
    e2b_message(r, json_pack("{s:{s:{s:I}}}", "event", "start", "pid", (json_int_t)pid_of(r->e2b->number)), false);
}

static void
lost(struct visit *r)
{
    e2b_message(r, json_pack("{s:{s:s, s:s}}", "error", "code", "data_loss", "message",
                             "output came faster than it was read, and is not kept: write it to a file"), true);
    visit_drop(r);
}

static void
on_out(struct visit *r, const struct edge_run_out *out)
{
    const char *name = r->e2b->terminal ? "pty" : out->stream == 0 ? "stdout" : "stderr";

    if (!r->e2b->streams) {
        visit_drop(r);
        visit_refuse(r, HTTP_INTERNAL, "sandbox.protocol", "", "the sandbox's keeper says what it must not");
        return;
    }
    if (out->at != r->e2b->had[out->stream]) {
        lost(r);
        return;
    }
    r->e2b->had[out->stream] += out->n_bytes;
    e2b_message(r, json_pack("{s:{s:{s:o}}}", "event", "data", name, json_of_base64(out->bytes, out->n_bytes)), false);
}

static json_t *
end_of(const struct edge_run *run)
{
    bool signalled = (run->flags & EDGE_SIGNALED) != 0;
    const char *name = signalled ? sigdescr_np(run->code) : NULL;
    char status[80];

    if (!signalled)
        snprintf(status, sizeof(status), "exit status %u", run->code);
    else
        snprintf(status, sizeof(status), "signal: %s", name != NULL ? name : "unknown");
    return json_pack("{s:{s:{s:i, s:b, s:s, s:o*}}}", "event", "end", "exitCode", signalled ? -1 : (int)run->code,
                     "exited", !signalled, "status", status, "error",
                     run->code != 0 ? json_string((run->flags & EDGE_OOM) != 0 ? "out of memory" : status) : NULL);
}

/* First what it is, before its output; behind that once more, when it has ended. */
static void
on_followed(struct visit *r, const struct edge_run *run)
{
    if (!r->e2b->streams) {
        r->e2b->terminal = (run->state & RUN_TERMINAL) != 0;
        begin_stream(r);
        return;
    }
    if (run->bytes[0] != r->e2b->had[0] || run->bytes[1] != r->e2b->had[1])
        lost(r);
    else if ((run->flags & EDGE_TIMED_OUT) != 0)
        e2b_message(r, json_pack("{s:{s:s, s:s}}", "error", "code", "deadline_exceeded", "message",
                                 "the command's time was over, and it was ended"), true);
    else {
        e2b_message(r, end_of(run), false);
        e2b_message(r, json_object(), true);
    }
}

static void
on_over(struct visit *r, uint64_t count)
{
    (void)count;
    visit_close(r);
}

static const struct visit_answers plain = { .no = e2b_fail };
static const struct visit_op_answers follows = { .run = on_followed, .run_out = on_out, .done = on_over,
                                                 .failed = e2b_fail };

/* --- starting ----------------------------------------------------------------------------------------------------- */

static void
on_begun(struct visit *r, const struct edge_run *run)
{
    r->e2b->number = run->number;
}

static void
on_running(struct visit *r, uint64_t count)
{
    (void)count;
    visit_run(r, e2b_box(r), &(struct edge_run_ask){ .what = RUN_FOLLOW, .number = r->e2b->number }, &plain, &follows);
}

static const struct visit_op_answers begins = { .run = on_begun, .done = on_running, .failed = e2b_fail };

/* The one message of a request with one, as JSON. False: said. */
static bool
read_one(struct visit *r)
{
    struct str text;
    const char *wrong = connect_one(r->body, &text);

    if (wrong == NULL && r->no_room)
        wrong = "the message has too many values";
    if (wrong == NULL)
        r->json = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    json_whole_numbers(r->json);
    json_drop_nulls(r->json, NULL);
    if (wrong == NULL && !json_is_object(r->json))
        wrong = "the message is no JSON object";
    if (wrong != NULL)
        e2b_unfit(r, wrong);
    return wrong == NULL;
}

static bool
env_of(struct visit *r, json_t *env, struct edge_op *op)
{
    const char *name;
    json_t *value;

    r->e2b->keep = json_array();
    json_object_foreach(env, name, value) {
        json_t *pair = json_cstr(value) != NULL && strchr(name, '=') == NULL && name[0] != '\0'
                       ? json_sprintf("%s=%s", name, json_cstr(value)) : NULL;
        if (pair == NULL || op->n_env == EDGE_WORDS_MAX - 1 || json_array_append_new(r->e2b->keep, pair) < 0)
            return false;
        op->env[op->n_env++] = json_string_value(pair);
    }
    return env == NULL || json_is_object(env);
}

static bool
words_of(const json_t *process, struct edge_op *op)
{
    const json_t *args = json_object_get(process, "args");

    op->argv[op->n_argv++] = json_cstr(json_object_get(process, "cmd"));
    for (size_t i = 0; i < json_array_size(args) && op->n_argv < EDGE_WORDS_MAX; i++)
        op->argv[op->n_argv++] = json_cstr(json_array_get(args, i));
    for (size_t i = 0; i < op->n_argv; i++)
        if (op->argv[i] == NULL)
            return false;
    return op->argv[0][0] != '\0' && json_array_size(args) < EDGE_WORDS_MAX;
}

static bool
side_of(const json_t *size, const char *name, uint16_t *out)
{
    const json_t *v = json_object_get(size, name);

    *out = (uint16_t)json_integer_value(v);
    return json_is_integer(v) && json_integer_value(v) >= 1 && json_integer_value(v) <= SIDE_MAX;
}

static bool
terminal_of(const json_t *pty, struct edge_op *op)
{
    const json_t *size = json_object_get(pty, "size");
    bool named = false;

    if (pty == NULL)
        return true;
    op->flags |= OP_PTY | OP_STDIN;
    for (size_t i = 0; i < op->n_env; i++)
        named = named || strncmp(op->env[i], "TERM=", 5) == 0;
    if (!named)
        op->env[op->n_env++] = "TERM=xterm-256color";
    return side_of(size, "rows", &op->rows) && side_of(size, "cols", &op->cols);
}

/* Their home is the workspace; another folder is told as it is. */
static bool
folder_of(const json_t *process, char *room, struct edge_op *op)
{
    const json_t *v = json_object_get(process, "cwd");
    const char *said = v != NULL ? json_cstr(v) : "";

    if (said == NULL || e2b_path(said, room) == NULL)
        return false;
    op->path = said[0] == '\0' || strcmp(room, ".") == 0 ? "" : room;
    return true;
}

void
e2b_start(struct visit *r)
{
    static char room[EDGE_PATH_MAX + 1];
    struct edge_op *op = e2b_op(OP_EXEC);
    const char *id = e2b_box(r), *timeout = visit_header(r, "Connect-Timeout-Ms");
    const json_t *process;

    if (id == NULL || e2b_of(r) == NULL || !read_one(r))
        return;
    process = json_object_get(r->json, "process");
    op->flags = OP_BACKGROUND | (json_is_false(json_object_get(r->json, "stdin")) ? 0 : OP_STDIN);
    if (!words_of(process, op) || !env_of(r, json_object_get(process, "envs"), op) || !folder_of(process, room, op)) {
        e2b_unfit(r, "process is an object of cmd, args, envs and cwd: texts without NUL");
    } else if (!terminal_of(json_object_get(r->json, "pty"), op)) {
        e2b_unfit(r, "pty.size is rows and cols, each from 1 to 4096");
    } else if (timeout != NULL && !connect_timeout(timeout, &op->timeout_ms)) {
        e2b_unfit(r, "Connect-Timeout-Ms is a number of milliseconds");
    } else {
        if (op->timeout_ms == 0 || op->timeout_ms > EDGE_TIME_MAX_MS)       /* 0: clients mean that there is none */
            op->timeout_ms = EDGE_TIME_MAX_MS;
        visit_op(r, id, op, &plain, &begins);
    }
}

/* --- one that runs ------------------------------------------------------------------------------------------------ */

static void
no_process(struct visit *r)
{
    visit_refuse(r, HTTP_NOT_FOUND, "exec.unknown", "", "there is no such command");
}

static void
on_candidate(struct visit *r, const struct edge_run *run)
{
    if ((run->state & RUN_CONTEXT) != 0 || pid_of(run->number) != r->e2b->pid)
        return;
    r->e2b->matches++;
    r->e2b->number = run->number;
}

static void
on_candidates(struct visit *r, uint64_t count)
{
    (void)count;
    if (r->e2b->matches == 1)
        r->e2b->found(r);
    else
        no_process(r);
}

static const struct visit_op_answers candidates = { .run = on_candidate, .done = on_candidates, .failed = e2b_fail };

/* Find the one that the request is about; then @found. */
static void
find(struct visit *r, void (*found)(struct visit *r))
{
    const json_t *selector = json_object_get(r->json, "process"), *pid = json_object_get(selector, "pid");
    const char *id = e2b_box(r);

    if (id == NULL || e2b_of(r) == NULL)
        return;
    if (json_object_get(selector, "tag") != NULL) {
        visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "name it by its pid", "commands have no tags here");
    } else if (!json_is_integer(pid) || json_integer_value(pid) < 1 || json_integer_value(pid) > UINT32_MAX) {
        e2b_unfit(r, "process.pid is a number, as the start of a command told it");
    } else {
        r->e2b->pid = (uint32_t)json_integer_value(pid);
        r->e2b->found = found;
        visit_run(r, id, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &candidates);
    }
}

/* One that ended is no process, as clients tell that apart from failures. */
static void
on_no_process(struct visit *r, const struct err *err)
{
    if (err_is(err, "exec.ended") || err_is(err, "exec.unknown"))
        no_process(r);
    else
        visit_err(r, err);
}

static void
follow(struct visit *r)
{
    on_running(r, 0);
}

void
e2b_follow(struct visit *r)
{
    if (read_one(r))
        find(r, follow);
}

static void
on_one(struct visit *r, const struct edge_run *run)
{
    (void)r;
    (void)run;
}

static void
on_did(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_object());
}

static const struct visit_op_answers one = { .run = on_one, .done = on_did, .failed = on_no_process };

static void
ask_one(struct visit *r, struct edge_run_ask ask)
{
    ask.number = r->e2b->number;
    visit_run(r, e2b_box(r), &ask, &plain, &one);
}

static void
send_signal(struct visit *r)
{
    static const struct { const char *name; int number; uint8_t signo; } rows[] = {
        { "SIGNAL_SIGTERM", 15, SIGTERM }, { "SIGNAL_SIGKILL", 9, SIGKILL },
    };
    const json_t *signal = json_object_get(r->json, "signal");

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if ((json_is_string(signal) && strcmp(json_string_value(signal), rows[i].name) == 0) ||
            (json_is_integer(signal) && json_integer_value(signal) == rows[i].number)) {
            ask_one(r, (struct edge_run_ask){ .what = RUN_SIGNAL, .signal = rows[i].signo });
            return;
        }
    }
    e2b_unfit(r, "signal is SIGNAL_SIGTERM or SIGNAL_SIGKILL");
}

void
e2b_signal(struct visit *r)
{
    find(r, send_signal);
}

static void
send_input(struct visit *r)
{
    const json_t *input = json_object_get(r->json, "input"), *text = json_object_get(input, "stdin");
    cleanup_buf struct buf bytes = BUF_INIT(INPUT_MAX);

    if (text == NULL)
        text = json_object_get(input, "pty");
    if (!json_is_string(text) || base64_get(&bytes, json_string_value(text), json_string_length(text)) < 0 ||
        !visit_input(r, bytes.p, bytes.n))
        e2b_unfit(r, "input.stdin, or input.pty, is bytes in base64");
    else
        ask_one(r, (struct edge_run_ask){ .what = RUN_INPUT });
}

void
e2b_input(struct visit *r)
{
    find(r, send_input);
}

static void
close_stdin(struct visit *r)
{
    if (visit_input(r, "", 0))
        ask_one(r, (struct edge_run_ask){ .what = RUN_INPUT, .last = true });
}

void
e2b_close_stdin(struct visit *r)
{
    find(r, close_stdin);
}

static void
resize(struct visit *r)
{
    const json_t *size = json_object_get(json_object_get(r->json, "pty"), "size");
    struct edge_run_ask ask = { .what = RUN_RESIZE };

    if (!side_of(size, "rows", &ask.rows) || !side_of(size, "cols", &ask.cols))
        e2b_unfit(r, "pty.size is rows and cols, each from 1 to 4096");
    else
        ask_one(r, ask);
}

void
e2b_update(struct visit *r)
{
    find(r, resize);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void
on_item(struct visit *r, const struct edge_run *run)
{
    if ((run->state & (RUN_CONTEXT | RUN_ENDED)) == 0)
        json_array_append_new(r->list, json_pack("{s:{s:o, s:[], s:{}}, s:I}", "config", "cmd",
                                                 json_of_text((const uint8_t *)run->name, strlen(run->name)), "args",
                                                 "envs", "pid", (json_int_t)pid_of(run->number)));
}

static void
on_listed(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_pack("{s:O}", "processes", r->list));
}

static const struct visit_op_answers all = { .run = on_item, .done = on_listed, .failed = e2b_fail };

void
e2b_processes(struct visit *r)
{
    const char *id = e2b_box(r);

    r->list = json_array();
    if (id != NULL)
        visit_run(r, id, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &all);
}
