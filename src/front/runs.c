/* front/runs.c: /v1/sandboxes/{id}/exec and below it: commands that go on without their client
 *
 * Each is kept by its sandbox's keeper and known by its exec_id. Its output is followed as events whose ids say how
 * much of each stream their reader has then: "STDOUT.STDERR", bytes, behind the last one ".end". Who comes again with
 * such an id (Last-Event-ID, ?after=) goes on there; what is not kept any more is an event `gap`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "front/front.h"
#include "proto/edge_limits.h"

static json_t *
json_of_id(uint64_t number)
{
    return json_sprintf("%" PRIu64, number);
}

static json_t *
json_of_run(const struct edge_run *run)
{
    bool ended = (run->state & RUN_ENDED) != 0, signalled = (run->flags & EDGE_SIGNALED) != 0;

    return json_pack("{s:o, s:s, s:o, s:I, s:o, s:I, s:o, s:o, s:b, s:b, s:o, s:b, s:b, s:I, s:I, s:I, s:I}",
                     "exec_id", json_of_id(run->number),
                     "state", ended ? "ended" : (run->state & RUN_ENDING) != 0 ? "ending" : "running",
                     "command", json_of_text((const uint8_t *)run->name, strlen(run->name)),
                     "started_ms", (json_int_t)run->begun_ms,
                     "ended_ms", ended ? json_integer((json_int_t)run->ended_ms) : json_null(),
                     "duration_ms", (json_int_t)run->ms,
                     "exit_code", ended && !signalled ? json_integer(run->code) : json_null(),
                     "signal", signalled ? json_integer(run->code) : json_null(),
                     "timed_out", (run->flags & EDGE_TIMED_OUT) != 0, "oom_killed", (run->flags & EDGE_OOM) != 0,
                     "limit_reached", edge_limit_reached(run->flags),
                     "stdin", (run->state & RUN_STDIN) != 0, "pty", (run->state & RUN_TERMINAL) != 0,
                     "stdout_bytes", (json_int_t)run->bytes[0], "stderr_bytes", (json_int_t)run->bytes[1],
                     "stdout_dropped", (json_int_t)run->gone[0], "stderr_dropped", (json_int_t)run->gone[1]);
}

void
run_not_begun(struct request *r, const struct err *err)
{
    if (edge_shells_code(err) != 0)     /* there is no such program: no such thing of ours */
        reply_error(r, MHD_HTTP_UNPROCESSABLE_CONTENT, err->code, err->hint, "%s", err->msg);
    else
        reply_err(r, err);
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

static void
keep_run(struct request *r, const struct edge_run *run)
{
    json_decref(r->list);       /* of a beginning: the words that were sent */
    r->list = (run->state & RUN_CONTEXT) == 0 ? json_of_run(run) : NULL;     /* contexts.c */
    r->exec = run->number;
}

static void
on_begun(struct request *r, uint64_t count)
{
    char at[96];

    (void)count;
    reply_json(r, MHD_HTTP_ACCEPTED, json_incref(r->list));
    snprintf(at, sizeof(at), "/v1/sandboxes/%s/exec/%" PRIu64, r->id, r->exec);
    reply_location(r, at);
}

static const struct answers plain;
static const struct op_answers begin_answers = { .run = keep_run, .done = on_begun, .failed = run_not_begun };

void
run_begin(struct request *r, const struct edge_op *op)
{
    ask_op(r, r->id, op, &plain, &begin_answers);
}

/* --- one, and all ------------------------------------------------------------------------------------------------- */

static void
add_run(struct request *r, const struct edge_run *run)
{
    if ((run->state & RUN_CONTEXT) == 0)
        json_array_append_new(r->list, json_of_run(run));
}

static void
on_listed(struct request *r, uint64_t count)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "commands", r->list));
}

static void
on_one(struct request *r, uint64_t count)
{
    const char *state = json_string_value(json_object_get(r->list, "state"));

    (void)count;
    if (r->list == NULL) {
        reply_error(r, MHD_HTTP_NOT_FOUND, "exec.unknown", "", "there is no such command in the background");
        return;
    }
    /* told to end, and not so far as to be known to have */
    reply_json(r, strcmp(r->method, MHD_HTTP_METHOD_DELETE) == 0 && state != NULL && strcmp(state, "ended") != 0
               ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK, json_incref(r->list));
}

static const struct op_answers list_answers = { .run = add_run, .done = on_listed, .failed = run_not_begun };
static const struct op_answers one_answers = { .run = keep_run, .done = on_one, .failed = run_not_begun };

static void
runs_list(struct request *r)
{
    r->list = json_array();
    ask_run(r, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &list_answers);
}

static void
get(struct request *r)
{
    ask_run(r, &(struct edge_run_ask){ .what = RUN_GET, .number = r->exec }, &plain, &one_answers);
}

static void
end(struct request *r)
{
    ask_run(r, &(struct edge_run_ask){ .what = RUN_END, .number = r->exec }, &plain, &one_answers);
}

static void
send_signal(struct request *r)
{
    int signo = json_object_size(r->json) == 1 ? exec_signal(json_object_get(r->json, "signal")) : -1;

    if (signo < 0)
        reply_unfit(r, "exec.request", "{\"signal\": \"INT\"}: a name, or a number from 1 to 31");
    else
        ask_run(r, &(struct edge_run_ask){ .what = RUN_SIGNAL, .number = r->exec, .signal = (uint8_t)signo }, &plain,
                &one_answers);
}

static void
resize(struct request *r)
{
    struct edge_run_ask ask = { .what = RUN_RESIZE, .number = r->exec };

    if (json_object_size(r->json) != 2 || !exec_size(r->json, &ask.rows, &ask.cols))
        reply_unfit(r, "exec.request", "{\"rows\": 24, \"cols\": 80}: each from 1 to 4096");
    else
        ask_run(r, &ask, &plain, &one_answers);
}

/* --- stdin -------------------------------------------------------------------------------------------------------- */

static void
on_taken(struct request *r, uint64_t count)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:I}", "bytes", (json_int_t)count));
}

static void
on_input_granted(struct request *r)
{
    if (r->in_end) {            /* the body had ended before */
        r->in_end = false;
        op_upload_end(r);
    }
}

static const struct answers input_granted = { .granted = on_input_granted };
static const struct op_answers input_answers = { .done = on_taken, .failed = run_not_begun };

static void
input(struct request *r)
{
    struct edge_run_ask ask = { .what = RUN_INPUT, .number = r->exec };
    bool bad = false;

    ask.last = query_true(r, "end", &bad);
    if (bad)
        reply_unfit(r, "exec.request", "end is true or false");
    else
        ask_run(r, &ask, &input_granted, &input_answers);
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static const char *
name_of(uint8_t stream)
{
    return stream == 0 ? "stdout" : "stderr";
}

/* Its id says what was said up to here: the beginning of a character was not. @data is taken. */
static void
event(struct request *r, const char *name, const char *tail, json_t *data)
{
    char id[64];

    snprintf(id, sizeof(id), "%" PRIu64 ".%" PRIu64 "%s", r->had[0] - r->half[0].n, r->had[1] - r->half[1].n, tail);
    stream_event(r, id, name, data);
}

/* The beginning of a character whose rest does not come. */
static void
flush_half(struct request *r, uint8_t stream)
{
    json_t *text;

    if (r->half[stream].n == 0)
        return;
    text = json_of_piece(&r->half[stream], (const uint8_t *)"", 0, true);
    event(r, name_of(stream), "", json_pack("{s:o}", "data", text));
}

static bool
on_out(struct request *r, uint8_t stream, uint64_t at, const uint8_t *p, size_t n)
{
    json_t *text;

    if (r->response == NULL || at < r->had[stream])
        return false;           /* its keeper says what it must not */
    if (at > r->had[stream]) {
        uint64_t missing = at - r->had[stream];
        flush_half(r, stream);
        r->had[stream] = at;
        event(r, "gap", "", json_pack("{s:s, s:I}", "stream", name_of(stream), "bytes", (json_int_t)missing));
    }
    r->had[stream] = at + n;
    text = r->base64 ? json_of_base64(p, n) : json_of_piece(&r->half[stream], p, n, false);
    if (json_string_length(text) > 0 || r->half[stream].n == 0)
        event(r, name_of(stream), "", json_pack("{s:o}", "data", text));
    else
        json_decref(text);      /* the beginning of a character: with the next piece */
    return true;
}

static void
on_followed(struct request *r, const struct edge_run *run)
{
    static const char hello[] = ": following\n\n";

    if (r->response != NULL) {          /* the second time, behind all of its output: how it ended */
        flush_half(r, 0);
        flush_half(r, 1);
        for (uint8_t i = 0; i < 2; i++) {
            uint64_t missing = run->bytes[i] > r->had[i] ? run->bytes[i] - r->had[i] : 0;
            r->had[i] += missing;
            if (missing > 0)            /* the newest, for which there was no memory */
                event(r, "gap", "", json_pack("{s:s, s:I}", "stream", name_of(i), "bytes", (json_int_t)missing));
        }
        event(r, "exit", ".end", exec_exit_json(r, run->flags, run->code, run->ms));
        return;
    }
    if (r->had_exit && (run->state & RUN_ENDED) != 0) {
        reply_empty(r, MHD_HTTP_NO_CONTENT);    /* which ends an EventSource */
        op_drop(r);
        return;
    }
    reply_stream(r, "text/event-stream");
    stream_add(r, hello, sizeof(hello) - 1);
}

static void
on_followed_to_its_end(struct request *r, uint64_t count)
{
    (void)count;
    stream_close(r);
}

static void
on_follow_failed(struct request *r, const struct err *err)
{
    if (r->response == NULL) {
        reply_err(r, err);
        return;
    }
    event(r, "error", "", json_pack("{s:o, s:s, s:o}", "error",
                                    json_of_text((const uint8_t *)err->msg, strlen(err->msg)), "code", err->code,
                                    "detail", json_of_text((const uint8_t *)err->hint, strlen(err->hint))));
    stream_close(r);
}

static const struct op_answers follow_answers = { .run = on_followed, .run_out = on_out,
                                                  .done = on_followed_to_its_end, .failed = on_follow_failed };

/* "STDOUT.STDERR", and maybe ".end". */
static bool
position(const char *text, uint64_t at[2], bool *end_too)
{
    const char *dot = strchr(text, '.'), *rest = dot != NULL ? strchrnul(dot + 1, '.') : NULL;

    if (rest == NULL || !str_parse_u64((struct str){ text, (size_t)(dot - text) }, INT64_MAX, &at[0]) ||
        !str_parse_u64((struct str){ dot + 1, (size_t)(rest - dot) - 1 }, INT64_MAX, &at[1]))
        return false;
    *end_too = strcmp(rest, ".end") == 0;
    return rest[0] == '\0' || *end_too;
}

static void
follow(struct request *r)
{
    /* who connects again by itself asks for the same, and says in the header how far it is now */
    const char *last = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, "Last-Event-ID");
    struct edge_run_ask ask = { .what = RUN_FOLLOW, .number = r->exec };
    char room[64], form_room[16];
    bool bad = false;
    const char *after = query_get(r, "after", room, sizeof(room), &bad);
    const char *form = query_get(r, "encoding", form_room, sizeof(form_room), &bad);

    if (last != NULL)
        after = last;
    r->base64 = form != NULL && strcmp(form, "base64") == 0;
    if (bad || (after != NULL && !position(after, ask.at, &r->had_exit)) ||
        (form != NULL && !r->base64 && strcmp(form, "text") != 0)) {
        reply_unfit(r, "exec.request", "after=ID of an event, encoding=text or base64");
        return;
    }
    r->had[0] = ask.at[0];
    r->had[1] = ask.at[1];
    ask_run(r, &ask, &plain, &follow_answers);
}

const struct route run_routes[] = {
    { "GET",    "/v1/sandboxes/{}/exec",            runs_list,   false, false },
    { "GET",    "/v1/sandboxes/{}/exec/{#}",        get,         false, false },
    { "DELETE", "/v1/sandboxes/{}/exec/{#}",        end,         false, false },
    { "GET",    "/v1/sandboxes/{}/exec/{#}/stream", follow,      false, false, .endless = true },
    { "POST",   "/v1/sandboxes/{}/exec/{#}/stdin",  input,       false, true },
    { "POST",   "/v1/sandboxes/{}/exec/{#}/signal", send_signal, true,  false },
    { "POST",   "/v1/sandboxes/{}/exec/{#}/resize", resize,      true,  false },
};
const size_t run_n_routes = ARRAY_LEN(run_routes);
