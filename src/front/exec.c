/* front/exec.c: commands: the request's JSON to words, and the result, whole or as events (text/event-stream) */
#include <stdio.h>
#include <string.h>

#include "front/collect.h"
#include "front/front.h"
#include "proto/edge_limits.h"

/* --- the request -------------------------------------------------------------------------------------------------- */

static bool
command_of(struct request *r, const json_t *command, struct edge_op *op)
{
    const char *text = json_cstr(command);

    if (text != NULL) {         /* one line, for the sandbox's own shell */
        op->argv[0] = "/bin/sh";
        op->argv[1] = "-c";
        op->argv[2] = text;
        op->n_argv = 3;
        return true;
    }
    if (!json_is_array(command) || json_array_size(command) == 0)
        return reply_unfit(r, "exec.request", "command is a list of words, or one string for /bin/sh");
    if (json_array_size(command) > EDGE_WORDS_MAX)
        return reply_unfit(r, "exec.request", "command has more than 1024 words");
    for (size_t i = 0; i < json_array_size(command); i++) {
        op->argv[i] = json_cstr(json_array_get(command, i));
        if (op->argv[i] == NULL)
            return reply_unfit(r, "exec.request", "command holds something that is not a string, or a NUL");
    }
    op->n_argv = json_array_size(command);
    return op->argv[0][0] != '\0' || reply_unfit(r, "exec.request", "command begins with an empty word");
}

/* The pairs are kept in the request until it is over. */
static bool
env_of(struct request *r, json_t *env, struct edge_op *op)
{
    const char *name;
    json_t *value;

    if (env == NULL)
        return true;
    if (!json_is_object(env) || json_object_size(env) > EDGE_WORDS_MAX)
        return reply_unfit(r, "exec.request", "env is an object of at most 1024 strings");
    r->list = json_array();
    json_object_foreach(env, name, value) {
        json_t *pair;
        if (json_cstr(value) == NULL || name[0] == '\0' || strchr(name, '=') != NULL)
            return reply_unfit(r, "exec.request", "env holds a name or value that a variable cannot have");
        pair = json_sprintf("%s=%s", name, json_cstr(value));
        if (pair == NULL || json_array_append_new(r->list, pair) < 0)
            return reply_unfit(r, "exec.request", "env holds a name or value that a variable cannot have");
        op->env[op->n_env++] = json_string_value(pair);
    }
    return true;
}

/* A string is all of it. In the background it is none, or stays open. */
static bool
stdin_of(struct request *r, const json_t *input, struct edge_op *op)
{
    if ((op->flags & OP_BACKGROUND) != 0) {
        if (input != NULL && !json_is_boolean(input))
            return reply_unfit(r, "exec.request",
                               "stdin of a command in the background is true (it stays open, for .../stdin) or false");
        if (json_is_true(input) || (op->flags & OP_PTY) != 0)
            op->flags |= OP_STDIN;
        return true;
    }
    if (input == NULL)
        return true;
    if (!json_is_string(input) || buf_append(&r->in, json_string_value(input), json_string_length(input)) < 0)
        return reply_unfit(r, "exec.request", "stdin is a string");
    op->flags |= OP_STDIN;
    return true;
}

static bool
side_of(const json_t *v, uint16_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > EXEC_SIDE_MAX)
        return false;
    *out = (uint16_t)json_integer_value(v);
    return true;
}

bool
exec_size(const json_t *v, uint16_t *rows, uint16_t *cols)
{
    return side_of(json_object_get(v, "rows"), rows) && side_of(json_object_get(v, "cols"), cols);
}

int
exec_signal(const json_t *v)
{
    const char *name = json_string_value(v);

    if (json_is_integer(v))
        return json_integer_value(v) >= 1 && json_integer_value(v) <= 31 ? (int)json_integer_value(v) : -1;
    if (name != NULL && strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 1; name != NULL && i < 32; i++)
        if (sigabbrev_np(i) != NULL && strcmp(sigabbrev_np(i), name) == 0)
            return i;
    return -1;
}

static bool
pty_of(struct request *r, const json_t *pty, struct edge_op *op)
{
    bool named = false;

    if (pty == NULL || json_is_false(pty))
        return true;
    if (!json_is_object(pty) || json_object_size(pty) != 2 || !exec_size(pty, &op->rows, &op->cols))
        return reply_unfit(r, "exec.request", "pty is false, or an object of rows and cols from 1 to 4096");
    op->flags |= OP_PTY;
    for (size_t i = 0; i < op->n_env; i++)
        named = named || strncmp(op->env[i], "TERM=", 5) == 0;
    if (!named && op->n_env < EDGE_WORDS_MAX)
        op->env[op->n_env++] = "TERM=xterm-256color";
    return true;
}

static bool
limits_of(struct request *r, const json_t *limits, struct edge_op *op)
{
    const char *wrong = edge_limits(limits, op);

    return wrong == NULL || reply_unfit(r, "exec.request", wrong);
}

bool
exec_request(struct request *r, struct edge_op *op)
{
    static const char *const whole_members[] = { "command", "cwd", "env", "timeout_ms", "limits", "background",
                                                 "stdin", "encoding", NULL };
    static const char *const live_members[] = { "command", "cwd", "env", "timeout_ms", "limits", "pty", NULL };
    static const char *const behind_members[] = { "command", "cwd", "env", "timeout_ms", "limits", "background",
                                                  "stdin", "pty", NULL };
    const json_t *background = json_object_get(r->json, "background");
    const char *const *known = r->live != NULL ? live_members : json_is_true(background) ? behind_members
                                                                                         : whole_members;
    const json_t *cwd = json_object_get(r->json, "cwd"), *ms = json_object_get(r->json, "timeout_ms");
    const json_t *encoding = json_object_get(r->json, "encoding");
    const char *name = json_unknown(r->json, known);
    const char *form = encoding != NULL ? json_string_value(encoding) : "text";
    struct err err = ERR_INIT;

    *op = (struct edge_op){ .kind = OP_EXEC, .path = "",
                            .flags = known == behind_members ? OP_BACKGROUND : 0 };
    if (!json_is_object(r->json))
        return reply_unfit(r, "exec.request", "the body is an object with a command");
    if (name != NULL)
        return reply_member(r, "exec.request", name, known == live_members
                          ? "known members: command, cwd, env, timeout_ms, limits, pty"
                          : known == behind_members
                          ? "known members: command, cwd, env, timeout_ms, limits, background, stdin, pty"
                          : "known members: command, cwd, env, stdin, timeout_ms, limits, encoding, background");
    if (background != NULL && !json_is_boolean(background))
        return reply_unfit(r, "exec.request", "background is true or false");
    if (cwd != NULL && (op->path = json_cstr(cwd)) == NULL)
        return reply_unfit(r, "exec.request", "cwd is a path");
    if (cwd != NULL && strlen(op->path) > EDGE_PATH_MAX) {
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "exec.too-long", "a command can go on from a folder to another one",
                    "cwd has %zu bytes; at most %d are taken", strlen(op->path), EDGE_PATH_MAX);
        return false;
    }
    if (!edge_cwd_well(op, &err)) {
        reply_err(r, &err);
        return false;
    }
    if (ms != NULL && (!json_is_integer(ms) || json_integer_value(ms) < 1 ||
                       json_integer_value(ms) > (json_int_t)EDGE_TIME_MAX_MS))
        return reply_unfit(r, "exec.request", "timeout_ms is a whole number from 1 to 86400000");
    op->timeout_ms = ms != NULL ? (uint64_t)json_integer_value(ms) : 0;
    if (form == NULL || (strcmp(form, "text") != 0 && strcmp(form, "base64") != 0))
        return reply_unfit(r, "exec.request", "encoding is text or base64");
    r->base64 = strcmp(form, "base64") == 0;
    return command_of(r, json_object_get(r->json, "command"), op) &&
           env_of(r, json_object_get(r->json, "env"), op) && pty_of(r, json_object_get(r->json, "pty"), op) &&
           limits_of(r, json_object_get(r->json, "limits"), op) && stdin_of(r, json_object_get(r->json, "stdin"), op);
}

/* --- the result, whole -------------------------------------------------------------------------------------------- */

static json_t *
text(const struct request *r, const struct buf *b)
{
    return r->base64 ? json_of_base64(b->p, b->n) : json_of_text(b->p, b->n);
}

static void
keep_output(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    /* above our own ceiling it is cut, as above the policy's */
    waits_keep(r, is_err ? &r->err_out : &r->out, is_err ? &r->cut_err : &r->cut_out, p, n);
}

json_t *
exec_exit_json(const struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    bool signalled = (flags & EDGE_SIGNALED) != 0;

    return json_pack("{s:o, s:o, s:I, s:b, s:b, s:o, s:b, s:b}", "exit_code",
                     signalled ? json_null() : json_integer((json_int_t)code), "signal",
                     signalled ? json_integer((json_int_t)code) : json_null(), "duration_ms", (json_int_t)ms,
                     "timed_out", (flags & EDGE_TIMED_OUT) != 0, "oom_killed", (flags & EDGE_OOM) != 0,
                     "limit_reached", edge_limit_reached(flags), "stdout_truncated",
                     (flags & EDGE_OUT_CUT) != 0 || r->cut_out, "stderr_truncated",
                     (flags & EDGE_ERR_CUT) != 0 || r->cut_err);
}

static void
on_exit_whole(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    json_t *body, *files;
    bool cut;

    if (collect_begins(r, flags, code, ms))
        return;
    execute_over(r);
    files = collect_files(r, &cut);
    body = exec_exit_json(r, flags, code, ms);
    json_object_set_new(body, "stdout", text(r, &r->out));
    json_object_set_new(body, "stderr", text(r, &r->err_out));
    if (files != NULL) {
        json_object_set(body, "files", files);
        json_object_set_new(body, "files_truncated", json_boolean(cut));
    }
    contexts_put(r, body, true);
    reply_json(r, MHD_HTTP_OK, body);
}

static void
on_failed_whole(struct request *r, const struct err *err)
{
    uint32_t code = edge_shells_code(err);

    if (code == 0) {
        reply_err(r, err);
        return;
    }
    keep_output(r, true, (const uint8_t *)err->msg, strlen(err->msg));
    keep_output(r, true, (const uint8_t *)"\n", 1);
    on_exit_whole(r, 0, code, 0);
}

static void
keep_result(struct request *r, const uint8_t *p, size_t n, bool last)
{
    (void)contexts_result(r, p, n, last);
}

static const struct op_answers whole = { .out = keep_output, .exit = on_exit_whole, .failed = on_failed_whole,
                                         .rich = keep_result, .run = contexts_ran };

/* --- the result, as events ---------------------------------------------------------------------------------------- */

static void
flush_half(struct request *r, size_t i)
{
    if (r->half[i].n > 0)
        stream_event(r, NULL, i == 0 ? "stdout" : "stderr",
                     json_pack("{s:o}", "data", json_of_piece(&r->half[i], (const uint8_t *)"", 0, true)));
}

static void
on_output_event(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    json_t *data = r->base64 ? json_of_base64(p, n) : json_of_piece(&r->half[is_err ? 1 : 0], p, n, false);

    if (data != NULL && json_string_length(data) == 0)
        json_decref(data);      /* the beginning of a character: with the next piece */
    else
        stream_event(r, NULL, is_err ? "stderr" : "stdout", json_pack("{s:o}", "data", data));
}

static void
on_exit_event(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    json_t *files, *body;
    bool cut;

    if (collect_begins(r, flags, code, ms))
        return;
    execute_over(r);
    flush_half(r, 0);
    flush_half(r, 1);
    files = collect_files(r, &cut);
    for (size_t i = 0; i < json_array_size(files); i++)
        stream_event(r, NULL, "file", json_incref(json_array_get(files, i)));
    body = exec_exit_json(r, flags, code, ms);
    if (files != NULL)
        json_object_set_new(body, "files_truncated", json_boolean(cut));
    contexts_put(r, body, false);
    stream_event(r, NULL, "exit", body);
    stream_close(r);
}

static void
on_failed_event(struct request *r, const struct err *err)
{
    uint32_t code = edge_shells_code(err);

    if (code == 0) {
        stream_refuse(r, err);
        return;
    }
    stream_event(r, NULL, "stderr", json_pack("{s:o}", "data", json_of_text((const uint8_t *)err->msg,
                                                                            strlen(err->msg))));
    on_exit_event(r, 0, code, 0);
}

static void
on_result_event(struct request *r, const uint8_t *p, size_t n, bool last)
{
    json_t *one = contexts_result(r, p, n, last);

    if (one != NULL && json_object_get(one, "name") == NULL)
        stream_event(r, NULL, "result", json_incref(one));
}

static const struct op_answers events_of = { .out = on_output_event, .exit = on_exit_event, .failed = on_failed_event,
                                             .rich = on_result_event, .run = contexts_ran };

/* --- running ------------------------------------------------------------------------------------------------------ */

static void
on_granted(struct request *r)
{
    if (r->op_answers == &events_of)
        reply_stream(r, "text/event-stream");
    if (r->has_stdin) {
        r->in_end = true;
        op_hear(r, EPOLLOUT);
    }
}

static const struct answers answers = { .granted = on_granted };

void
exec_run(struct request *r, const char *id, const struct edge_op *op, bool events)
{
    r->has_stdin = (op->flags & OP_STDIN) != 0;
    ask_op(r, id, op, &answers, events ? &events_of : &whole);
}
