/* front/contexts.c: /v1/sandboxes/{id}/contexts: processes that run code for one call after the other (docs/daemon.md)
 *
 * A context is kept by its sandbox's keeper, as a command in the background is, and known by its number. A call is an
 * operation like any command: its output, its end and its approval are those of exec.c. Results come beside them.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "front/front.h"
#include "match/language.h"

#define CODE "context.request"

static json_t *
json_of_context(const struct edge_run *run)
{
    bool dead = (run->state & RUN_ENDED) != 0, signalled = (run->flags & EDGE_SIGNALED) != 0;

    return json_pack("{s:o, s:s, s:o, s:I, s:o, s:o, s:b}", "context_id", json_sprintf("%" PRIu64, run->number),
                     "state", edge_context_state(run), "language",
                     json_of_text((const uint8_t *)run->name, strlen(run->name)), "started_ms",
                     (json_int_t)run->begun_ms, "exit_code", dead && !signalled ? json_integer(run->code) : json_null(),
                     "signal", signalled ? json_integer(run->code) : json_null(), "oom_killed",
                     (run->flags & EDGE_OOM) != 0);
}

/* --- one, and all ------------------------------------------------------------------------------------------------- */

static const struct answers plain;

static void
keep(struct request *r, const struct edge_run *run)
{
    json_decref(r->list);       /* of a beginning: the words that were sent */
    r->list = (run->state & RUN_CONTEXT) != 0 ? json_of_context(run) : NULL;
    r->exec = run->number;
}

static void
on_one(struct request *r, uint64_t count)
{
    (void)count;
    if (r->list == NULL)
        reply_error(r, MHD_HTTP_NOT_FOUND, "context.unknown", "GET .../contexts lists them",
                    "there is no such context");
    else
        reply_json(r, MHD_HTTP_OK, json_incref(r->list));
}

static void
on_begun(struct request *r, uint64_t count)
{
    char at[96];

    (void)count;
    reply_json(r, MHD_HTTP_CREATED, json_incref(r->list));
    snprintf(at, sizeof(at), "/v1/sandboxes/%s/contexts/%" PRIu64, r->id, r->exec);
    reply_location(r, at);
}

static void
add(struct request *r, const struct edge_run *run)
{
    if ((run->state & RUN_CONTEXT) != 0)
        json_array_append_new(r->list, json_of_context(run));
}

static void
on_listed(struct request *r, uint64_t count)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "contexts", r->list));
}

static const struct op_answers begin_answers = { .run = keep, .done = on_begun, .failed = run_not_begun };
static const struct op_answers list_answers = { .run = add, .done = on_listed, .failed = run_not_begun };
static const struct op_answers one_answers = { .run = keep, .done = on_one, .failed = run_not_begun };

static void
contexts_list(struct request *r)
{
    r->list = json_array();
    ask_run(r, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &list_answers);
}

static void
ask_one(struct request *r, enum run_ask what, uint8_t signo)
{
    ask_run(r, &(struct edge_run_ask){ .what = what, .number = r->exec, .context = true, .signal = signo }, &plain,
            &one_answers);
}

static void
contexts_get(struct request *r)
{
    ask_one(r, RUN_GET, 0);
}

static void
contexts_delete(struct request *r)
{
    ask_one(r, RUN_END, 0);
}

static void
interrupt(struct request *r)
{
    ask_one(r, RUN_SIGNAL, SIGINT);
}

static void
restart(struct request *r)
{
    ask_one(r, RUN_RESTART, 0);
}

/* @command, the words, and the members of r->json that a command has too: as POST .../exec takes it, in its place. */
static bool
command_fits(struct request *r, json_t *command, const char *const known[], const char *said, struct edge_op *op)
{
    const char *name = json_unknown(r->json, known), *key;
    json_t *all = json_pack("{s:o}", "command", command), *value;

    if (name != NULL) {
        json_decref(all);
        return reply_member(r, CODE, name, said);
    }
    json_object_foreach(r->json, key, value)
        if (strcmp(key, known[0]) != 0)
            json_object_set(all, key, value);
    json_decref(r->json);
    r->json = all;
    return exec_request(r, op);
}

static void
create(struct request *r)
{
    static const char *const known[] = { "language", "cwd", "env", "limits", NULL };
    const char *name = json_string_value(json_object_get(r->json, "language"));
    const struct language *l = language_find(name);
    static struct edge_op op;

    if (name == NULL) {
        reply_unfit(r, CODE, "the body is an object with a language");
        return;
    }
    if (l == NULL) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, "context.language", "python, javascript, shell",
                    "there are no contexts of that language");
        return;
    }
    if (!command_fits(r, json_pack("[s]", l->name), known, "known members: language, cwd, env, limits", &op))
        return;
    if (op.timed || op.output != 0) {
        reply_unfit(r, CODE, "limits of a context are memory, cpus and pids: the time of a call is its timeout_ms, "
                             "its output's limit the policy's");
        return;
    }
    op.flags |= OP_BACKGROUND;
    op.context = EDGE_CONTEXT_NEW;
    ask_op(r, r->id, &op, &plain, &begin_answers);
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

/* The language that it is judged by is the context's. */
static void
on_known(struct request *r, uint64_t count)
{
    static const char *const known[] = { "code", "timeout_ms", "encoding", NULL };
    static struct edge_op op;
    json_t *command;

    if (r->list == NULL) {
        on_one(r, count);
        return;
    }
    command = json_pack("[O, O]", json_object_get(r->list, "language"), json_object_get(r->json, "code"));
    json_decref(r->list);
    r->list = NULL;
    r->rich = calloc(1, sizeof(*r->rich));
    if (!command_fits(r, command, known, "known members: code, timeout_ms, encoding", &op))
        return;
    if (r->rich == NULL) {
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "try again", "out of memory");
        return;
    }
    op.context = r->exec;
    exec_run(r, r->id, &op, wants_events(r));
}

static const struct op_answers known_answers = { .run = keep, .done = on_known, .failed = run_not_begun };

static void
execute(struct request *r)
{
    if (!json_is_string(json_object_get(r->json, "code")))
        reply_unfit(r, CODE, "the body is an object with code, a string");
    else
        ask_run(r, &(struct edge_run_ask){ .what = RUN_GET, .number = r->exec, .context = true }, &plain,
                &known_answers);
}

void
contexts_ran(struct request *r, const struct edge_run *run)
{
    r->context_state = edge_context_state(run);
}

json_t *
contexts_result(struct request *r, const uint8_t *p, size_t n, bool last)
{
    json_t *one = r->rich != NULL ? rich_add(r->rich, p, n, last, waits_room(r, 2 * n)) : NULL;

    waits_count(r);
    return one;
}

void
contexts_put(const struct request *r, json_t *answer, bool results)
{
    if (r->rich == NULL)
        return;
    json_object_set_new(answer, "context_state", json_string(r->context_state != NULL ? r->context_state : "dead"));
    rich_put(r->rich, answer);
    if (!results)
        json_object_del(answer, "results");
}

void
contexts_free(struct request *r)
{
    if (r->rich != NULL)
        rich_free(r->rich);
    free(r->rich);
    r->rich = NULL;
}

const struct route context_routes[] = {
    { "POST",   "/v1/sandboxes/{}/contexts",               create,          true,  false },
    { "GET",    "/v1/sandboxes/{}/contexts",               contexts_list,   false, false },
    { "GET",    "/v1/sandboxes/{}/contexts/{#}",           contexts_get,    false, false },
    { "DELETE", "/v1/sandboxes/{}/contexts/{#}",           contexts_delete, false, false },
    { "POST",   "/v1/sandboxes/{}/contexts/{#}/execute",   execute,         true,  false },
    { "POST",   "/v1/sandboxes/{}/contexts/{#}/interrupt", interrupt,       true,  false },
    { "POST",   "/v1/sandboxes/{}/contexts/{#}/restart",   restart,         true,  false },
};
const size_t context_n_routes = ARRAY_LEN(context_routes);
