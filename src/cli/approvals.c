/* cli/approvals.c: `cloche approvals`: connections that wait for their owner's decision */
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
#include "cli/cli.h"
#include "cli/net_state.h"

#define LISTED_MAX 1024
#define SHORT_ID   8            /* of a run's id, in a question's */
#define SEEN_MAX   4096         /* questions that watch remembers */

struct options {
    bool json;
    const char *scope;
    const char *words[4];
    size_t n_words;
};

static int
usage(void)
{
    printf("usage: cloche approvals [ls] [--json]\n"
           "       cloche approvals show ID [--json]\n"
           "       cloche approvals approve ID [--once | --sandbox | --always]\n"
           "       cloche approvals deny ID [--once | --sandbox]\n"
           "       cloche approvals watch [--json]\n\n"
           "What runs wait for that ask about hosts. ID is what ls prints.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n", "--once",
           "the connections that wait now (default)", "--sandbox", "and all further ones of this run", "--always",
           "and those of later runs: into the settings file that the run was started with", "--json",
           "one JSON object; with watch, one a line", "--help", "print the flags");
    return 0;
}

static void
print_question(const char *run, const json_t *q, bool json)
{
    const char *host = json_string_value(json_object_get(q, "host")), *method;
    const char *via = json_string_value(json_object_get(q, "via"));
    const char *reason = json_string_value(json_object_get(q, "reason"));
    char id[64];

    snprintf(id, sizeof(id), "%.*s.%lld", SHORT_ID, run, (long long)json_integer_value(json_object_get(q, "id")));
    if (json) {
        json_t *o = json_deep_copy(q);
        cleanup_free char *text = NULL;
        json_object_set_new(o, "id", json_string(id));
        json_object_set_new(o, "run", json_string(run));
        text = json_dumps(o, JSON_COMPACT);
        json_decref(o);
        puts(text != NULL ? text : "{}");
        return;
    }
    method = json_string_value(json_object_get(q, "method"));
    /* a host is canonical, and a method a token: no byte of them moves a cursor */
    printf("%-12s  %s%s%s:%lld  %s%s%s  %s  %lld s left\n", id, host != NULL && strchr(host, ':') != NULL ? "[" : "",
           host != NULL ? host : "?", host != NULL && strchr(host, ':') != NULL ? "]" : "",
           (long long)json_integer_value(json_object_get(q, "port")), via != NULL ? via : "?",
           method != NULL ? " " : "", method != NULL ? method : "", reason != NULL ? reason : "",
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
list(int dir, bool json, struct err *err)
{
    struct listing l = { .all = json ? json_array() : NULL };
    int r = for_each(dir, list_one, &l, err);

    if (json) {
        json_t *o = json_pack("{s:i, s:o}", "version", 1, "questions", l.all);
        cleanup_free char *text = json_dumps(o, JSON_COMPACT);
        json_decref(o);
        if (r == 0)
            puts(text != NULL ? text : "{}");
    }
    return r;
}

struct watching {
    bool json;
    char seen[SEEN_MAX][NET_ID_LENGTH + 16];
    size_t n;
};

static void
watch_one(void *ctx, const char *run, const json_t *q)
{
    struct watching *w = ctx;
    char id[sizeof(w->seen[0])];

    snprintf(id, sizeof(id), "%.*s.%lld", NET_ID_LENGTH, run, (long long)json_integer_value(json_object_get(q, "id")));
    for (size_t i = 0; i < w->n && i < SEEN_MAX; i++)
        if (strcmp(w->seen[i], id) == 0)
            return;
    memcpy(w->seen[w->n++ % SEEN_MAX], id, sizeof(id));
    print_question(run, q, w->json);
}

/* Until it is ended, or nobody reads. */
static int
watch(int dir, bool json, struct err *err)
{
    const struct timespec pause_time = { 0, 300 * 1000 * 1000 };
    cleanup_free struct watching *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    w->json = json;
    for (;;) {
        if (for_each(dir, watch_one, w, err) < 0)
            return -1;
        if (fflush(stdout) != 0)
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

    if (dot == NULL || dot == id || dot - id > NET_ID_LENGTH || !str_parse_u64(str_of(dot + 1), UINT32_MAX, number))
        return err_set(err, ERR_USAGE, "cli.approvals.id", "\"%s\" is no question's id, such as 0123abcd.1", id);
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
show(int dir, const struct options *o, struct err *err)
{
    struct wanted w = { .json = o->json };
    struct net_run run;

    if (find(dir, o->words[1], &run, &w.number, err) < 0)
        return -1;
    w.run = run.id;
    if (for_each(dir, show_one, &w, err) < 0)
        return -1;
    return w.found ? 0 : err_set(err, ERR_NOT_FOUND, "cli.approvals.gone", "nobody waits for %s any more", o->words[1]);
}

static int
decide(int dir, const struct options *o, bool allow, struct err *err)
{
    struct net_run run;
    uint64_t number;
    json_t *request, *answer;

    if (find(dir, o->words[1], &run, &number, err) < 0)
        return -1;
    request = json_pack("{s:s, s:I, s:b, s:s}", "do", "answer", "id", (json_int_t)number, "allow", allow, "scope",
                        o->scope != NULL ? o->scope + 2 : "once");
    answer = net_request(dir, run.id, request, err);
    json_decref(request);
    if (answer == NULL)
        return -1;
    if (o->json) {
        cleanup_free char *text = json_dumps(answer, JSON_COMPACT);
        puts(text != NULL ? text : "{}");
    }
    json_decref(answer);
    return 0;
}

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    for (int i = 1; i < argc; i++) {
        bool scope = strcmp(argv[i], "--once") == 0 || strcmp(argv[i], "--sandbox") == 0 ||
                     strcmp(argv[i], "--always") == 0;
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (scope && o->scope == NULL)
            o->scope = argv[i];
        else if (argv[i][0] != '-' && o->n_words < 4)
            o->words[o->n_words++] = argv[i];
        else
            return err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag or operand, or one too many: %s", argv[i]);
    }
    return 0;
}

int
cmd_approvals(int argc, char **argv)
{
    struct options o = { .scope = NULL };
    cleanup_close int dir = -1;
    struct err err = ERR_INIT;
    const char *verb;
    int r;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return usage();
    if (take_words(&o, argc, argv, &err) < 0 || (dir = net_state_open(&err)) < 0)
        return cli_fail(&err, o.json);
    verb = o.n_words > 0 ? o.words[0] : "ls";
    if (strcmp(verb, "ls") == 0 && o.n_words <= 1 && o.scope == NULL)
        r = list(dir, o.json, &err);
    else if (strcmp(verb, "watch") == 0 && o.n_words == 1 && o.scope == NULL)
        r = watch(dir, o.json, &err);
    else if (strcmp(verb, "show") == 0 && o.n_words == 2 && o.scope == NULL)
        r = show(dir, &o, &err);
    else if ((strcmp(verb, "approve") == 0 || strcmp(verb, "deny") == 0) && o.n_words == 2)
        r = decide(dir, &o, verb[0] == 'a', &err);
    else
        r = err_set(&err, ERR_USAGE, "cli.approvals.verb", "`cloche approvals --help` shows how it is called");
    return r < 0 ? cli_fail(&err, o.json) : 0;
}
