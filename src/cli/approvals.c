/* cli/approvals.c: `cloche approvals`: what waits for a decision: connections of runs, operations in the daemon */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/approvals_daemon.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"
#include "run/net_state.h"

#define LISTED_MAX 1024
#define SHORT_ID   8            /* of a run's id, in a question's */
#define WORDS_MAX  2
#define SEEN_MAX   4096         /* questions that watch remembers */

struct options {
    struct api_verb v;
    bool watch;
    const char *scope, *expires, *reason;
};

static int
usage(void)
{
    printf("usage: cloche approvals [ls] [--watch] [--json]\n"
           "       cloche approvals show ID [--json]\n"
           "       cloche approvals approve ID [--once | --sandbox | --always]\n"
           "       cloche approvals approve ID [--once | --sandbox | --caller] [--expires TIME] [--reason TEXT]\n"
           "       cloche approvals deny ID [--once | --sandbox] [--reason TEXT]\n"
           "       cloche approvals watch [--json]\n\n"
           "What waits for a decision: connections of runs that ask about hosts (an ID with a point), and what agents\n"
           "ask of cloche serve (docs/gate.md). ID is what ls prints.\n\n");
    printf("  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n"
           "  %-32s %s\n  %-32s %s\n", "--once", "what waits now (default)", "--sandbox",
           "and all further ones of this run, or sandbox", "--always",
           "and those of later runs: into the settings file that the run was started with", "--caller",
           "and in all sandboxes of this caller", "--expires TIME",
           "ends a wider approval in the daemon: 90s, 30m, 12h",
           "--reason TEXT", "what the caller is told", "--watch", "with ls: as watch", "--socket PATH", API_FLAG_HELP,
           "--json",
           "one JSON object; with watch, one a line", "--help", "print the flags");
    return 0;
}

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
list(int dir, const struct options *options, struct err *err)
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
show(int dir, struct options *o, struct err *err)
{
    struct wanted w = { .json = o->v.json };
    struct net_run run;
    json_t *one;

    if (gate_is_id(o->v.words[1])) {
        if (!o->v.api.named)
            gate_seek(&o->v.api, o->v.words[1]);
        one = gate_find(&o->v.api, o->v.words[1], err);
        if (one != NULL && o->v.json)
            api_verb_line(one);
        else if (one != NULL)
            gate_print(one, true);
        json_decref(one);
        return one != NULL ? 0 : -1;
    }
    if (find(dir, o->v.words[1], &run, &w.number, err) < 0)
        return -1;
    w.run = run.id;
    if (for_each(dir, show_one, &w, err) < 0)
        return -1;
    if (!w.found)
        return err_set(err, ERR_NOT_FOUND, "cli.approvals.gone", "nobody waits for %s any more", o->v.words[1]);
    return 0;
}

static int
decide(int dir, struct options *o, bool allow, struct err *err)
{
    struct gate_decision d = { .approve = allow, .scope = o->scope != NULL ? o->scope + 2 : "once",
                               .expires = o->expires, .reason = o->reason };
    struct net_run run;
    uint64_t number;
    json_t *request, *answer = NULL;

    if (gate_is_id(o->v.words[1])) {
        if (strcmp(d.scope, "always") == 0 || (!allow && strcmp(d.scope, "once") != 0))
            return err_set(err, ERR_USAGE, "cli.approvals.scope", "--%s is not for what agents ask of cloche serve",
                           d.scope);
        if (!o->v.api.named)
            gate_seek(&o->v.api, o->v.words[1]);
        if (gate_decide(&o->v.api, o->v.words[1], &d, &answer, err) < 0)
            return -1;
        if (o->v.json)
            api_verb_line(answer);
        json_decref(answer);
        return 0;
    }
    if (o->expires != NULL || o->reason != NULL || strcmp(d.scope, "caller") == 0)
        return err_set(err, ERR_USAGE, "cli.approvals.scope",
                       "--caller, --expires and --reason are for what agents ask of cloche serve");
    if (find(dir, o->v.words[1], &run, &number, err) < 0)
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

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    bool scopes[4] = { false };
    const struct api_verb_flag flags[] = {
        { "--once", .on = &scopes[0] }, { "--sandbox", .on = &scopes[1] }, { "--caller", .on = &scopes[2] },
        { "--always", .on = &scopes[3] }, { "--watch", .on = &o->watch }, { "--expires", .value = &o->expires },
        { "--reason", .value = &o->reason }, { .name = NULL },
    };

    if (api_verb_words(&o->v, WORDS_MAX, flags, argc, argv, err) < 0)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        if (scopes[i] && o->scope != NULL)
            return err_set(err, ERR_USAGE, "cli.approvals.scope", "%s and %s: one of them", o->scope, flags[i].name);
        if (scopes[i])
            o->scope = flags[i].name;
    }
    return 0;
}

int
cmd_approvals(int argc, char **argv)
{
    static const char *const words[] = { "ls", "show", "approve", "deny", "watch", NULL };
    struct options o = { .scope = NULL };
    cleanup_close int dir = -1;
    struct err err = ERR_INIT;
    const char *verb;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (take_words(&o, argc, argv, &err) < 0 || (dir = net_state_open(&err)) < 0)
        return cli_fail(&err, o.v.json);
    verb = o.v.n_words > 0 ? o.v.words[0] : "ls";
    if (strcmp(verb, "ls") == 0 && o.v.n_words <= 1 && o.scope == NULL && !o.watch)
        r = list(dir, &o, &err);
    else if (o.v.n_words <= 1 && o.scope == NULL && strcmp(verb, o.watch ? "ls" : "watch") == 0)
        r = watch(dir, &o, &err);
    else if (strcmp(verb, "show") == 0 && o.v.n_words == 2 && o.scope == NULL)
        r = show(dir, &o, &err);
    else if ((strcmp(verb, "approve") == 0 || strcmp(verb, "deny") == 0) && o.v.n_words == 2)
        r = decide(dir, &o, verb[0] == 'a', &err);
    else
        r = cli_misused("cli.approvals.verb", "approvals", verb, words, &err);
    return r < 0 ? cli_fail(&err, o.v.json) : 0;
}
