/* cli/net_cmd.c: `cloche net`: what is decided about a run's network */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "program/say.h"
#include "program/verb.h"
#include "run/net_state.h"

#define LOG_FILE_MAX (8UL * 1024 * 1024)
#define LISTED_MAX   1024

struct options {
    bool json;
};

/* A string of the sandbox's, for a terminal. */
static const char *
shown(const json_t *entry, const char *field, char out[512])
{
    const char *s = json_string_value(json_object_get(entry, field));
    char least = strcmp(field, "detail") == 0 ? ' ' : '!';
    size_t n = 0;

    for (; s != NULL && *s != '\0' && n + 1 < 512; s++)
        out[n++] = *s >= least && *s < 0x7f ? *s : '?';
    out[n] = '\0';
    return out;
}

static json_t *
read_log(int dir, const struct net_run *run, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(LOG_FILE_MAX);
    char name[NET_ID_LENGTH + 8];
    json_t *log;

    if (run->alive) {       /* what it has not written yet */
        json_t *flush = json_pack("{s:s}", "do", "flush");
        json_decref(net_request(dir, run->id, flush, NULL));
        json_decref(flush);
    }
    snprintf(name, sizeof(name), "%s.json", run->id);
    if (io_read_file(dir, name, &text) < 0) {
        err_sys(err, errno, "cli.net.log", "the log of %.12s", run->id);
        return NULL;
    }
    log = json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(log)) {
        json_decref(log);
        err_set(err, ERR_PROTOCOL, "cli.net.log", "the log of %.12s is damaged", run->id);
        return NULL;
    }
    return log;
}

static void
print_log(const struct net_run *run, const json_t *log)
{
    const json_t *list = json_object_get(log, "decisions"), *entry;
    long long more = json_integer_value(json_object_get(log, "more"));
    long long deaths = json_integer_value(json_object_get(log, "egress_deaths"));
    size_t i;

    bool ended = json_is_true(json_object_get(log, "ended"));

    printf("run %s%s\n", run->id, run->alive ? ", going on" : ended ? "" : ", killed");
    json_array_foreach(list, i, entry) {
        char a[512], b[512], c[512], d[512], e[512], f[512], g[512], h[512], t[512], w[512];
        long long port = json_integer_value(json_object_get(entry, "port"));
        char where[600];
        if (port > 0)
            snprintf(where, sizeof(where), "%s:%lld", shown(entry, "host", c), port);
        else
            snprintf(where, sizeof(where), "%s", shown(entry, "host", c));
        char asked[1100];
        const char *method = shown(entry, "method", d), *tool = shown(entry, "tool", t);
        snprintf(asked, sizeof(asked), "%s%s%s%s", method, *method != '\0' ? " " : "", tool, *tool != '\0' ? " " : "");
        printf("%-6s %6lld  %-7s %-40s %s%s %s%s%s%s%s%s\n", shown(entry, "verdict", a),
               (long long)json_integer_value(json_object_get(entry, "count")), shown(entry, "via", b), where, asked,
               shown(entry, "reason", e), shown(entry, "rule", f), shown(entry, "detail", w),
               *shown(entry, "by", g) != '\0' ? " by " : "", g,
               *shown(entry, "secret", h) != '\0' ? " secret " : "", h);
    }
    if (more > 0)
        printf("and %lld more that had no room\n", more);
    if (deaths > 0)
        printf("cloche-egress died %lld times\n", deaths);
}

static int
print_json(json_t *o, struct err *err)
{
    return cli_json(json_incref(o), JSON_COMPACT) < 0 || fflush(stdout) != 0
               ? err_sys(err, errno, "cli.output", "write the output") : 0;
}

static int
log_verb(int dir, const char *which, bool json, struct err *err)
{
    struct net_run run;
    json_t *log = net_run_find(dir, which, false, &run, err) == 0 ? read_log(dir, &run, err) : NULL;
    int r = 0;

    if (log == NULL)
        return -1;
    json_object_set_new(log, "alive", json_boolean(run.alive));
    if (json)
        r = print_json(log, err);
    else
        print_log(&run, log);
    json_decref(log);
    return r;
}

static int
list_verb(int dir, bool json, struct err *err)
{
    cleanup_free struct net_run *runs = calloc(LISTED_MAX, sizeof(*runs));
    int n = runs == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : net_runs(dir, runs, LISTED_MAX, err);
    json_t *list = json_array(), *all;
    int r = 0;

    for (int i = 0; i < n; i++) {
        if (json)
            json_array_append_new(list, json_pack("{s:s, s:b}", "id", runs[i].id, "alive", runs[i].alive));
        else
            printf("%s%s\n", runs[i].id, runs[i].alive ? " going on" : "");
    }
    all = json_pack("{s:i, s:o}", "version", 1, "runs", list);
    if (n < 0 || (json && print_json(all, err) < 0))
        r = -1;
    json_decref(all);
    return r;
}

static int
rule_verb(int dir, bool deny, const char *which, const char *rule, bool json, struct err *err)
{
    json_t *request = json_pack("{s:s, s:b, s:s}", "do", "rule", "deny", deny, "rule", rule), *answer = NULL;
    struct net_run run;
    int r = -1;

    if (request == NULL)
        err_set(err, ERR_USAGE, "cli.net.rule", "the rule is not text");
    else if (net_run_find(dir, which, true, &run, err) == 0)
        answer = net_request(dir, run.id, request, err);
    if (answer != NULL)
        r = json ? print_json(answer, err) : 0;
    json_decref(request);
    json_decref(answer);
    return r;
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

static int
run_log(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = net_state_open(err);

    return dir < 0 ? -1 : log_verb(dir, w->v[0], ((struct options *)options)->json, err);
}

static int
run_ls(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = net_state_open(err);

    (void)w;
    return dir < 0 ? -1 : list_verb(dir, ((struct options *)options)->json, err);
}

static int
run_allow(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = net_state_open(err);

    return dir < 0 ? -1 : rule_verb(dir, false, w->v[0], w->v[1], ((struct options *)options)->json, err);
}

static int
run_deny(void *options, const struct verb_words *w, struct err *err)
{
    cleanup_close int dir = net_state_open(err);

    return dir < 0 ? -1 : rule_verb(dir, true, w->v[0], w->v[1], ((struct options *)options)->json, err);
}

int
cmd_net(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "log", "log [--json] [RUN]", 0, 1, .run = run_log },
        { "ls", "ls [--json]", 0, 0, .run = run_ls },
        { "allow", "allow [--json] RUN HOST[:PORT]", 2, 2, .run = run_allow },
        { "deny", "deny [--json] RUN HOST[:PORT]", 2, 2, .run = run_deny },
    };
    static const struct verb_flag flags[] = { { "--json", 0, NULL, "one JSON object", FLAG_ON(struct options, json) } };
    static const struct verb verb = {
        .name = "net", VERB_FORMS(forms), VERB_FLAGS(flags), .needs_word = true, .misused = "cli.net.verb",
        .about = "log: the decisions about a run's connections, with counts; RUN is an id or its beginning (default: "
                 "the\n"
                 "newest run). ls: the runs that had a network by name. allow, deny: add a rule for a run that is "
                 "still\n"
                 "going on; deny closes the connections that it matches.",
    };
    struct options o = { .json = false };

    return verb_main(&verb, &o, argc, argv);
}
