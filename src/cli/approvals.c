/* cli/approvals.c: `cloche approvals`: what waits for a decision: connections of runs, operations in the daemon */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/approvals_daemon.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "run/net_state.h"

#define LISTED_MAX 1024
#define SHORT_ID   8            /* of a run's id, in a question's */
#define SEEN_MAX   4096         /* questions that watch remembers */

struct options {
    struct api_verb v;
    bool watch, once, sandbox, caller, always;
    const char *scope;          /* which of these four is said; NULL: none */
    const char *expires, *reason;
};

static void
print_question(const char *run, const json_t *q, bool json)
{
    const char *host = json_string_value(json_object_get(q, "host")), *method;
    const char *via = json_string_value(json_object_get(q, "via"));
    const char *reason = json_string_value(json_object_get(q, "reason"));
    const char *path = json_string_value(json_object_get(q, "path"));
    char id[64];

    snprintf(id, sizeof(id), "%.*s.%lld", SHORT_ID, run, (long long)json_integer_value(json_object_get(q, "id")));
    if (json) {
        json_t *o = json_deep_copy(q);
        json_object_set_new(o, "id", json_string(id));
        json_object_set_new(o, "run", json_string(run));
        (void)cli_json(o, JSON_COMPACT);
        return;
    }
    method = json_string_value(json_object_get(q, "method"));
    /* a host is canonical, a method a token, a path printable: no byte of them moves a cursor */
    printf("%-12s  %s%s%s:%lld  %s%s%s%s%s  %s  %lld s left\n", id,
           host != NULL && strchr(host, ':') != NULL ? "[" : "",
           host != NULL ? host : "?", host != NULL && strchr(host, ':') != NULL ? "]" : "",
           (long long)json_integer_value(json_object_get(q, "port")), via != NULL ? via : "?",
           method != NULL ? " " : "", method != NULL ? method : "", path != NULL ? " " : "",
           path != NULL ? path : "", reason != NULL ? reason : "",
           (long long)json_integer_value(json_object_get(q, "ms")) / 1000);
}

/* --- all questions of all runs ------------------------------------------------------------------------------------ */

typedef void each_question(void *ctx, const char *run, const json_t *q);

static int
for_each(int dir, each_question *fn, void *ctx, struct err *err)
{
    cleanup_free struct net_run *runs = calloc(LISTED_MAX, sizeof(*runs));
    json_t *request = json_pack("{s:s}", "do", "questions");
    int n = runs == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : net_runs(dir, runs, LISTED_MAX, err);

    for (int i = 0; i < n; i++) {
        json_t *answer = runs[i].alive ? net_request(dir, runs[i].id, request, NULL) : NULL, *q;
        size_t k;
        json_array_foreach(json_object_get(answer, "questions"), k, q) {
            fn(ctx, runs[i].id, q);
        }
        json_decref(answer);
    }
    json_decref(request);
    return n < 0 ? -1 : 0;
}

struct listing {
    json_t *all;                /* NULL: printed as they come */
};

static void
list_one(void *ctx, const char *run, const json_t *q)
{
    struct listing *l = ctx;
    json_t *o;

    if (l->all == NULL) {
        print_question(run, q, false);
        return;
    }
    o = json_deep_copy(q);
    json_object_set_new(o, "id", json_sprintf("%.*s.%lld", SHORT_ID, run,
                                              (long long)json_integer_value(json_object_get(q, "id"))));
    json_object_set_new(o, "run", json_string(run));
    json_array_append_new(l->all, o);
}

static int
approvals_list(int dir, const struct options *options, struct err *err)
{
    struct listing l = { .all = options->v.json ? json_array() : NULL };
    json_t *approvals = NULL, *one;
    int r = for_each(dir, list_one, &l, err);
    size_t i;

    if (r == 0)
        r = gate_pending(&options->v.api, options->v.api.named, &approvals, err);
    if (options->v.json) {
        json_t *o = json_pack("{s:i, s:o, s:O*}", "version", 1, "questions", l.all, "approvals", approvals);
        if (r == 0)
            (void)cli_json(o, JSON_COMPACT);
        else
            json_decref(o);
    } else {
        json_array_foreach(approvals, i, one) {
            gate_print(one, false);
        }
    }
    json_decref(approvals);
    return r;
}

struct watching {
    bool json;
    char seen[SEEN_MAX][NET_ID_LENGTH + 16];
    size_t n;
};

static bool
is_new(struct watching *w, const char *id)
{
    for (size_t i = 0; i < w->n && i < SEEN_MAX; i++)
        if (strcmp(w->seen[i], id) == 0)
            return false;
    snprintf(w->seen[w->n++ % SEEN_MAX], sizeof(w->seen[0]), "%s", id);
    return true;
}

static void
watch_one(void *ctx, const char *run, const json_t *q)
{
    struct watching *w = ctx;
    char id[sizeof(w->seen[0])];

    snprintf(id, sizeof(id), "%.*s.%lld", NET_ID_LENGTH, run, (long long)json_integer_value(json_object_get(q, "id")));
    if (is_new(w, id))
        print_question(run, q, w->json);
}

static int
watch_daemon(const struct options *o, struct watching *w, struct err *err)
{
    json_t *list, *one;
    size_t i;

    if (gate_pending(&o->v.api, o->v.api.named, &list, err) < 0)
        return -1;
    json_array_foreach(list, i, one) {
        const char *id = json_string_value(json_object_get(one, "id"));
        if (id == NULL || !is_new(w, id))
            continue;
        if (w->json)
            api_verb_line(one);
        else
            gate_print(one, false);
    }
    json_decref(list);
    return 0;
}

/* Until it is ended, or nobody reads. */
static int
watch(int dir, const struct options *o, struct err *err)
{
    const struct timespec pause_time = { 0, 300 * 1000 * 1000 };
    cleanup_free struct watching *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    w->json = o->v.json;
    for (;;) {
        if (for_each(dir, watch_one, w, err) < 0 || watch_daemon(o, w, err) < 0)
            return -1;
        if (fflush(stdout) != 0 || api_nobody_reads())
            return 0;
        nanosleep(&pause_time, NULL);
    }
}

/* --- one question ------------------------------------------------------------------------------------------------- */

/* "RUN.NUMBER" into the run and the number. */
static int
find(int dir, const char *id, struct net_run *run, uint64_t *number, struct err *err)
{
    const char *dot = strchr(id, '.');
    char which[NET_ID_LENGTH + 1];

    if (dot == NULL || dot == id || dot - id > NET_ID_LENGTH || !str_parse_u64(str_of(dot + 1), UINT32_MAX, number)) {
        err_set(err, ERR_USAGE, "cli.approvals.id", "\"%s\" is no question's id, such as 0123abcd.1", id);
        return err_hint(err, "`cloche approvals` lists what waits, each with its id");
    }
    snprintf(which, sizeof(which), "%.*s", (int)(dot - id), id);
    return net_run_find(dir, which, true, run, err);
}

struct wanted {
    uint64_t number;
    const char *run;
    bool json, found;
};

static void
show_one(void *ctx, const char *run, const json_t *q)
{
    struct wanted *w = ctx;

    if (strcmp(run, w->run) != 0 || (uint64_t)json_integer_value(json_object_get(q, "id")) != w->number)
        return;
    w->found = true;
    print_question(run, q, w->json);
}

static int
show(int dir, struct options *o, const char *id, struct err *err)
{
    struct wanted w = { .json = o->v.json };
    struct net_run run;
    json_t *one;

    if (gate_is_id(id)) {
        if (!o->v.api.named)
            gate_seek(&o->v.api, id);
        one = gate_find(&o->v.api, id, err);
        if (one != NULL && o->v.json)
            api_verb_line(one);
        else if (one != NULL)
            gate_print(one, true);
        json_decref(one);
        return one != NULL ? 0 : -1;
    }
    if (find(dir, id, &run, &w.number, err) < 0)
        return -1;
    w.run = run.id;
    if (for_each(dir, show_one, &w, err) < 0)
        return -1;
    if (!w.found)
        return err_set(err, ERR_NOT_FOUND, "cli.approvals.gone", "nobody waits for %s any more", id);
    return 0;
}

static int
decide(int dir, struct options *o, const char *id, bool allow, struct err *err)
{
    struct gate_decision d = { .approve = allow, .scope = o->scope != NULL ? o->scope + 2 : "once",
                               .expires = o->expires, .reason = o->reason };
    struct net_run run;
    uint64_t number;
    json_t *request, *answer = NULL;

    if (gate_is_id(id)) {
        if (strcmp(d.scope, "always") == 0 || (!allow && strcmp(d.scope, "once") != 0))
            return err_set(err, ERR_USAGE, "cli.approvals.scope", "--%s is not for what agents ask of cloche serve",
                           d.scope);
        if (!o->v.api.named)
            gate_seek(&o->v.api, id);
        if (gate_decide(&o->v.api, id, &d, &answer, err) < 0)
            return -1;
        if (o->v.json)
            api_verb_line(answer);
        json_decref(answer);
        return 0;
    }
    if (o->expires != NULL || o->reason != NULL || strcmp(d.scope, "caller") == 0)
        return err_set(err, ERR_USAGE, "cli.approvals.scope",
                       "--caller, --expires and --reason are for what agents ask of cloche serve");
    if (find(dir, id, &run, &number, err) < 0)
        return -1;
    request = json_pack("{s:s, s:I, s:b, s:s}", "do", "answer", "id", (json_int_t)number, "allow", allow, "scope",
                        o->scope != NULL ? o->scope + 2 : "once");
    answer = net_request(dir, run.id, request, err);
    json_decref(request);
    if (answer == NULL)
        return -1;
    if (o->v.json)
        api_verb_line(answer);
    json_decref(answer);
    return 0;
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

/* Which scope is said, if any: one at most. */
static int
take_scope(struct options *o, struct err *err)
{
    const struct { bool said; const char *flag; } scopes[] = {
        { o->once, "--once" }, { o->sandbox, "--sandbox" }, { o->caller, "--caller" }, { o->always, "--always" },
    };

    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        if (scopes[i].said && o->scope != NULL)
            return err_set(err, ERR_USAGE, "cli.approvals.scope", "%s and %s: one of them", o->scope, scopes[i].flag);
        if (scopes[i].said)
            o->scope = scopes[i].flag;
    }
    return 0;
}

/* The runs' folder for a form that decides nothing; -1 with @err. */
static int
open_to_look(struct options *o, bool watch, const char *form, struct err *err)
{
    if (take_scope(o, err) < 0)
        return -1;
    if (o->scope == NULL && (watch || !o->watch))
        return net_state_open(err);
    err_set(err, ERR_USAGE, "cli.approvals.verb", "%s is not for `cloche approvals %s`",
            o->scope != NULL ? o->scope : "--watch", form);
    return err_hint(err, "`cloche approvals --help` shows how it is called");
}

static int
run_ls(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;
    cleanup_close int dir = open_to_look(o, true, "ls", err);

    (void)w;
    return dir < 0 ? -1 : o->watch ? watch(dir, o, err) : approvals_list(dir, o, err);
}

static int
run_watch(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = open_to_look(options, false, "watch", err);

    (void)w;
    return dir < 0 ? -1 : watch(dir, options, err);
}

static int
run_show(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = open_to_look(options, false, "show", err);

    return dir < 0 ? -1 : show(dir, options, w->v[0], err);
}

static int
answer_with(struct options *o, const struct verb_words *w, bool allow, struct err *err)
{
    cleanup_close int dir = take_scope(o, err) < 0 ? -1 : net_state_open(err);

    return dir < 0 ? -1 : decide(dir, o, w->v[0], allow, err);
}

static int
run_approve(void *options, const struct verb_words *w, struct err *err)
{
    return answer_with(options, w, true, err);
}

static int
run_deny(void *options, const struct verb_words *w, struct err *err)
{
    return answer_with(options, w, false, err);
}

int
cmd_approvals(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "ls", "[ls] [--watch] [--json]", 0, 0, .run = run_ls },
        { "show", "show ID [--json]", 1, 1, .run = run_show },
        { "approve", "approve ID [--once | --sandbox | --always]", 1, 1, .run = run_approve },
        { "", "approve ID [--once | --sandbox | --caller] [--expires TIME] [--reason TEXT]", .run = NULL },
        { "deny", "deny ID [--once | --sandbox] [--reason TEXT]", 1, 1, .run = run_deny },
        { "watch", "watch [--json]", 0, 0, .run = run_watch },
    };
    static const struct verb_flag flags[] = {
        { "--once", 0, NULL, "only what waits now (default)", FLAG_ON(struct options, once) },
        { "--sandbox", 0, NULL, "also all later ones of this run or sandbox", FLAG_ON(struct options, sandbox) },
        { "--always", 0, NULL, "also later runs: add a rule to the settings file that the run was started with",
          FLAG_ON(struct options, always) },
        { "--caller", 0, NULL, "also in all sandboxes of this caller", FLAG_ON(struct options, caller) },
        { "--expires", 0, "TIME", "when a wider approval of the daemon ends: 90s, 30m, 12h",
          FLAG_TEXT(struct options, expires) },
        { "--reason", 0, "TEXT", "the reason, shown to the caller", FLAG_TEXT(struct options, reason) },
        { "--watch", 0, NULL, "with ls: the same as watch", FLAG_ON(struct options, watch) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object; with watch, one a line"),
    };
    static const struct verb verb = {
        .name = "approvals", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .misused = "cli.approvals.verb", .surplus = "cli.operand",
        .about = "What waits for a decision: connections of runs that ask about hosts (an ID with a dot), and what "
                 "agents\n"
                 "ask of cloche serve (docs/gate.md). ls prints the ID.",
    };
    struct options o = { .scope = NULL };

    return verb_main(&verb, &o, argc, argv);
}
