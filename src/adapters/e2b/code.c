/* adapters/e2b/code.c: E2B's code interpreter: code in contexts, and what it shows (e2b.h)
 *
 * Code without a context runs in the sandbox's usual one of its language, which is made when it is wanted first. Which
 * one that is this process keeps while there is room: of each owner's sandboxes the last USUAL_OWN, and nobody pushes
 * out another's unless all room is in use. What is not known, or has ended, is made anew. Two first calls at once make
 * two: the one that is there first is the usual one, and the other is ended.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/e2b/e2b.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "match/language.h"
#include "proto/edge_limits.h"
#include "wire/json_text.h"

#define USUAL     2048
#define USUAL_OWN (USUAL / 8)
#define TRIES     2

/* Written only about a sandbox that the warden let the visit make a context in. */
static struct usual {
    char box[EDGE_ID + 1], owner[EDGE_ID + 1];      /* "" the place is free */
    char language[LANGUAGE_TEXT_MAX + 1];
    uint64_t number, calls, used;                   /* 0: it has ended */
} usual[USUAL];
static uint64_t usual_uses;

static struct usual *
usual_of(const struct visit *r)
{
    for (size_t i = 0; r->e2b->known && i < USUAL && usual[i].box[0] != '\0'; i++)
        if (strcmp(usual[i].box, r->id) == 0 && strcmp(usual[i].language, r->e2b->language) == 0)
            return &usual[i];
    return NULL;
}

/* A place for one more of @owner's: a free one; the one of its own that was used least lately, or of all. */
static struct usual *
usual_place(const char *owner)
{
    struct usual *own = NULL, *any = &usual[0];
    size_t owns = 0, i;

    for (i = 0; i < USUAL && usual[i].box[0] != '\0'; i++) {
        if (usual[i].used < any->used)
            any = &usual[i];
        if (strcmp(usual[i].owner, owner) != 0)
            continue;
        owns++;
        if (own == NULL || usual[i].used < own->used)
            own = &usual[i];
    }
    if (i < USUAL && owns < USUAL_OWN)
        return &usual[i];
    return own != NULL ? own : any;
}

static void
usual_is(const struct visit *r, uint64_t number)
{
    struct usual *u = usual_of(r);

    if (u == NULL)
        u = usual_place(r->e2b->path);
    *u = (struct usual){ .number = number, .used = ++usual_uses };
    snprintf(u->box, sizeof(u->box), "%s", r->id);
    snprintf(u->owner, sizeof(u->owner), "%s", r->e2b->path);
    snprintf(u->language, sizeof(u->language), "%s", r->e2b->language);
}

/* --- what it says: a line of JSON each ---------------------------------------------------------------------------- */

static void
say_line(struct visit *r, json_t *line)
{
    cleanup_free char *text = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_DIGITS) : NULL;

    json_decref(line);
    visit_stream_of(r, ADAPT_LINES);
    if (text == NULL) {
        visit_break(r);
        return;
    }
    visit_add(r, text, strlen(text));
    visit_add(r, "\n", 1);
}

static void
on_out(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    say_line(r, json_pack("{s:s, s:o, s:I}", "type", is_err ? "stderr" : "stdout", "text", json_of_text(p, n),
                          "timestamp", (json_int_t)(clock_wall_ms() * 1000000)));
}

static void
on_rich(struct visit *r, const uint8_t *p, size_t n, bool last)
{
    struct rich *rich = &r->e2b->rich;
    size_t had = rich->values;
    json_t *one = rich_add(rich, p, n, last, visit_room(r, 2 * n)), *line;

    if (!visit_room(r, RICH_VALUE * (rich->values - had)))
        rich->values = RICH_VALUES;     /* no more of them */
    if (one == NULL)
        return;
    line = json_copy(one);
    json_object_set_new(line, "type", json_string("result"));
    json_object_set_new(line, "is_main_result", json_boolean(json_is_true(json_object_get(one, "main"))));
    json_object_del(line, "main");
    say_line(r, line);
}

static void
on_ran(struct visit *r, const struct edge_run *run)
{
    (void)r;
    (void)run;
}

static void
say_error(struct visit *r, const char *name, const char *value, const char *traceback)
{
    say_line(r, json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", name, "value", value, "traceback",
                          traceback));
}

static void
on_finished(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    static const char cut[] = "[cloche: there was more output than the sandbox's limit]\n";
    const json_t *raised = r->e2b->rich.error;
    struct usual *u = usual_of(r);

    (void)code;
    (void)ms;
    if ((flags & (EDGE_OUT_CUT | EDGE_ERR_CUT)) != 0)
        on_out(r, true, (const uint8_t *)cut, sizeof(cut) - 1);
    if ((flags & EDGE_TIMED_OUT) != 0)
        say_error(r, "TimeoutError", "the code's time was over", "");
    else if ((flags & EDGE_OOM) != 0)
        say_error(r, "MemoryError", "out of memory", "");
    else if (raised != NULL)
        say_error(r, json_string_value(json_object_get(raised, "name")),
                  json_string_value(json_object_get(raised, "value")),
                  json_string_value(json_object_get(raised, "traceback")));
    say_line(r, json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count",
                          (json_int_t)(u != NULL ? ++u->calls : 1)));
    visit_close(r);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void run_it(struct visit *r);

static void
on_not_run(struct visit *r, const struct err *err)
{
    struct usual *u = usual_of(r);
    bool gone = err_is(err, "context.unknown") || err_is(err, "context.dead");

    if (visit_answered(r)) {
        say_error(r, "SandboxError", err->msg, "");
        visit_close(r);
    } else if (gone && u != NULL && r->e2b->tries++ < TRIES) {
        u->number = 0;
        run_it(r);
    } else {
        visit_err(r, err);
    }
}

static const struct visit_answers plain = { .no = e2b_fail };
static const struct visit_op_answers runs = { .out = on_out, .rich = on_rich, .run = on_ran, .exit = on_finished,
                                              .failed = on_not_run };

static void
on_context(struct visit *r, const struct edge_run *run)
{
    r->e2b->number = run->number;
}

static void
on_spare_ended(struct visit *r, uint64_t count)
{
    (void)count;
    run_it(r);
}

static void
on_spare_gone(struct visit *r, const struct err *err)
{
    (void)err;
    run_it(r);
}

static const struct visit_op_answers spare = { .run = on_ran, .done = on_spare_ended, .failed = on_spare_gone };

static void
on_made(struct visit *r, uint64_t count)
{
    const struct usual *u = usual_of(r);
    struct edge_run_ask end = { .what = RUN_END, .context = true, .number = r->e2b->number };

    (void)count;
    if (u != NULL && u->number != 0) {
        visit_run(r, r->id, &end, &plain, &spare);
        return;
    }
    usual_is(r, r->e2b->number);
    run_it(r);
}

static const struct visit_op_answers makes = { .run = on_context, .done = on_made, .failed = e2b_fail };

static void
make_context(struct visit *r, const struct language *l, const struct visit_op_answers *said)
{
    struct edge_op *op = e2b_op(OP_EXEC);

    op->flags = OP_BACKGROUND;
    op->context = EDGE_CONTEXT_NEW;
    op->argv[0] = l->name;
    op->n_argv = 1;
    adapters_packages(l, op);
    visit_op(r, r->id[0] != '\0' ? r->id : e2b_box(r), op, &plain, said);
}

/* It is this caller's to use: by its id, and its owner's. */
static void
on_known(struct visit *r, const struct edge_box *box)
{
    snprintf(r->id, sizeof(r->id), "%s", box->id);
    r->e2b->path = strdup(box->owner);
    if (r->e2b->path == NULL)
        visit_no_memory(r);
    else
        run_it(r);
}

static const struct visit_answers knows = { .box = on_known, .no = e2b_fail };

/* In the context at hand, or the usual one. */
static void
run_it(struct visit *r)
{
    const struct language *l = language_find(r->e2b->language);
    struct usual *u;
    struct edge_op *op;

    if (r->id[0] == '\0')
        snprintf(r->id, sizeof(r->id), "%s", e2b_box(r));
    u = usual_of(r);
    if (r->e2b->known && (u == NULL || u->number == 0)) {
        if (l == NULL)
            e2b_unfit(r, "there is no such language here any more");
        else if (r->e2b->path == NULL)
            VISIT_ASK(r, EDGE_ASK_GET, &knows, .id = r->id);
        else
            make_context(r, l, &makes);
        return;
    }
    if (u != NULL)
        u->used = ++usual_uses;
    op = e2b_op(OP_EXEC);
    op->context = u != NULL ? u->number : r->e2b->number;
    op->timeout_ms = EDGE_TIME_MAX_MS;          /* it ends with its client, who has the time in hand */
    op->argv[0] = r->e2b->language;
    op->argv[1] = json_cstr(json_object_get(r->json, "code"));
    op->n_argv = 2;
    visit_op(r, r->id, op, &plain, &runs);
}

/* The table of languages may be another one by the next answer. */
static void
keep_language(struct visit *r, const struct language *l)
{
    free(r->e2b->to);
    r->e2b->to = strdup(l->name);
    r->e2b->language = r->e2b->to;
}

/* A named context's language is what its list says. */
static void
on_find(struct visit *r, const struct edge_run *run)
{
    const struct language *l = run->number == r->e2b->number && (run->state & RUN_CONTEXT) != 0
                               ? language_find(run->name) : NULL;

    if (l != NULL)
        keep_language(r, l);
}

static void
unknown(struct visit *r)
{
    visit_refuse(r, HTTP_NOT_FOUND, "context.unknown", "list the contexts", "there is no such context");
}

static void
on_found(struct visit *r, uint64_t count)
{
    (void)count;
    if (r->e2b->language == NULL)
        unknown(r);
    else
        run_it(r);
}

static const struct visit_op_answers finds = { .run = on_find, .done = on_found, .failed = e2b_fail };

static bool
number_of(const char *text, uint64_t *out)
{
    return text != NULL && str_parse_u64(str_of(text), INT64_MAX, out) && *out > EDGE_CONTEXT_NEW;
}

/* The language of the body; python where it says none. NULL: said. */
static const struct language *
language_of(struct visit *r)
{
    const json_t *v = json_object_get(r->json, "language");
    const char *name = v != NULL ? json_cstr(v) : "python";
    const struct language *l = name == NULL ? NULL : language_find(strcmp(name, "bash") == 0 ? "shell" : name);

    if (l == NULL)
        e2b_unfit(r, "there is no such language here: `cloche doctor` lists them");
    return l;
}

void
e2b_execute(struct visit *r)
{
    const json_t *context = json_object_get(r->json, "context_id"), *env = json_object_get(r->json, "env_vars");
    const char *id = e2b_box(r), *code = json_cstr(json_object_get(r->json, "code"));
    const struct language *l;

    if (id == NULL || e2b_of(r) == NULL)
        return;
    if (code == NULL) {
        e2b_unfit(r, "code is a text without NUL");
    } else if (json_object_size(env) > 0) {
        visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "os.environ in the code; or envs of the sandbox",
                     "a context's variables are not changed for one call");
    } else if (context != NULL) {
        if (number_of(json_cstr(context), &r->e2b->number))
            visit_run(r, id, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &finds);
        else
            unknown(r);
    } else if ((l = language_of(r)) != NULL) {
        r->e2b->known = true;
        keep_language(r, l);
        run_it(r);
    }
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static json_t *
context_json(const struct edge_run *run)
{
    return json_pack("{s:o, s:o, s:s}", "id", json_sprintf("%" PRIu64, run->number), "language",
                     json_of_text((const uint8_t *)run->name, strlen(run->name)), "cwd", "/workspace");
}

static void
on_item(struct visit *r, const struct edge_run *run)
{
    if ((run->state & RUN_CONTEXT) != 0 && (run->state & RUN_ENDED) == 0)
        json_array_append_new(r->list, context_json(run));
}

static void
on_listed(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_incref(r->list));
}

static void
on_one(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_incref(json_array_get(r->list, 0)));
}

static void
on_ended(struct visit *r, uint64_t count)
{
    (void)count;
    visit_empty(r, HTTP_NO_CONTENT);
}

static const struct visit_op_answers lists = { .run = on_item, .done = on_listed, .failed = e2b_fail };
static const struct visit_op_answers news = { .run = on_item, .done = on_one, .failed = e2b_fail };
static const struct visit_op_answers ends = { .run = on_ran, .done = on_ended, .failed = e2b_fail };

void
e2b_contexts(struct visit *r)
{
    const char *id = e2b_box(r);

    r->list = json_array();
    if (id != NULL)
        visit_run(r, id, &(struct edge_run_ask){ .what = RUN_LIST }, &plain, &lists);
}

void
e2b_context_new(struct visit *r)
{
    const char *cwd = json_string_value(json_object_get(r->json, "cwd"));
    const struct language *l = e2b_box(r) != NULL ? language_of(r) : NULL;
    char room[EDGE_PATH_MAX + 1];

    if (l == NULL)
        return;
    if (cwd != NULL && (e2b_path(cwd, room) == NULL || strcmp(room, ".") != 0)) {
        visit_refuse(r, HTTP_NOT_OFFERED, "e2b.not-offered", "os.chdir in its first call",
                     "a context begins in the workspace");
        return;
    }
    r->list = json_array();
    make_context(r, l, &news);
}

/* The header says the sandbox, and the path the context. */
static void
ask_one(struct visit *r, enum run_ask what)
{
    struct edge_run_ask ask = { .what = what, .context = true };
    const char *id = visit_header(r, "E2b-Sandbox-Id");

    if (!number_of(r->path_id, &ask.number))
        unknown(r);
    else if (id == NULL || (!edge_is_id(id) && !edge_name_well(id)))
        e2b_unfit(r, "E2b-Sandbox-Id names no sandbox");
    else
        visit_run(r, id, &ask, &plain, &ends);
}

void
e2b_context_end(struct visit *r)
{
    ask_one(r, RUN_END);
}

void
e2b_context_restart(struct visit *r)
{
    ask_one(r, RUN_RESTART);
}
