/* run/net_ask.c: questions of a run, and what its owner asks of its supervisor
 *
 * The questions are cloche-egress's: it holds the connections that wait, it knows when nobody answered in time. Here
 * they are kept to be shown, and the answers are passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "match/path.h"
#include "policy/append.h"
#include "program/caller.h"
#include "program/say.h"
#include "run/net.h"
#include "run/session_priv.h"

#define RULE_MAX 320

/* --- what is asked ------------------------------------------------------------------------------------------------ */

void
net_ask_heard(struct net *n, const json_t *event)
{
    uint64_t ms = (uint64_t)json_integer_value(json_object_get(event, "ms"));

    if (!json_is_string(json_object_get(event, "host")) || !json_is_integer(json_object_get(event, "port")))
        return;
    for (size_t i = 0; i < NET_QUESTIONS_MAX; i++) {
        if (n->questions[i].event != NULL)
            continue;
        n->questions[i].number = json_integer_value(json_object_get(event, "id"));
        n->questions[i].event = json_deep_copy(event);
        json_object_set_new(n->questions[i].event, "id", json_integer(++n->n_questions));
        n->questions[i].until_us = clock_us() + ms * 1000;
        run_audit_asked(n->live->audit, n->questions[i].event);
        if (n->ask != NULL)
            n->ask(n->keeper, &n->questions[i]);
        break;
    }
    if (!n->told && n->ask == NULL)
        cli_warn("a connection waits for your decision: `cloche approvals` (said once)");
    n->told = true;
}

static struct net_question *
question(struct net *n, json_int_t id)
{
    for (size_t i = 0; i < NET_QUESTIONS_MAX; i++)
        if (n->questions[i].event != NULL && json_integer_value(json_object_get(n->questions[i].event, "id")) == id)
            return &n->questions[i];
    return NULL;
}

static void
forget(struct net_question *q)
{
    if (q == NULL || q->event == NULL)
        return;
    json_decref(q->event);
    q->event = NULL;
}

static void
over(struct net *n, struct net_question *q)
{
    if (n->ask_over != NULL)
        n->ask_over(n->keeper, q);
    forget(q);
}

void
net_ask_over(struct net *n, const json_t *event)
{
    json_int_t number = json_integer_value(json_object_get(event, "id"));

    for (size_t i = 0; i < NET_QUESTIONS_MAX; i++)
        if (n->questions[i].event != NULL && n->questions[i].number == number)
            over(n, &n->questions[i]);
}

void
net_ask_lost(struct net *n)
{
    for (size_t i = 0; i < NET_QUESTIONS_MAX; i++)
        if (n->questions[i].event != NULL)
            over(n, &n->questions[i]);
}

static json_t *
list_questions(const struct net *n)
{
    json_t *list = json_array();
    uint64_t now = clock_us();

    for (size_t i = 0; i < NET_QUESTIONS_MAX; i++) {
        json_t *o;
        if (n->questions[i].event == NULL || n->ask != NULL)
            continue;
        o = json_deep_copy(n->questions[i].event);
        json_object_del(o, "event");
        json_object_set_new(o, "ms", json_integer(n->questions[i].until_us > now
                                                      ? (json_int_t)(n->questions[i].until_us - now) / 1000 : 0));
        json_array_append_new(list, o);
    }
    return json_pack("{s:o}", "questions", list);
}

/* --- always ------------------------------------------------------------------------------------------------------- */

/* The file as it would be is a settings file, which says what it said and this one thing more. */
static int
check_new(const char *path, struct str old, const struct buf *new, const char *rule, struct err *err)
{
    struct policy before = { 0 }, after = { 0 };
    struct policy_host host;
    const struct policy_list *list = &after.allow_domains;
    int r = -1;

    if (cli_host(&host, err) == 0 && policy_init(&before, MODE_STANDARD, VERB_RUN, &host, err) == 0 &&
        policy_init(&after, MODE_STANDARD, VERB_RUN, &host, err) == 0 &&
        policy_load_bytes(&before, path, old.p, old.n, POLICY_AUTO, &host, err) == 0 &&
        policy_load_bytes(&after, path, new->p, new->n, POLICY_AUTO, &host, err) == 0) {
        if (list->n == before.allow_domains.n + 1 && strcmp(list->v[list->n - 1].written, rule) == 0 && !after.srt)
            r = 0;
        else
            err_set(err, ERR_POLICY, "policy.append", "%s has no place for one more host", path);
    }
    if (before.arena != NULL)
        policy_free(&before);
    if (after.arena != NULL)
        policy_free(&after);
    return r;
}

static int
write_beside(const char *real, const struct stat *st, const struct buf *text, struct err *err)
{
    char temporary[PATH_MAX];
    cleanup_close int fd = -1;

    if (snprintf(temporary, sizeof(temporary), "%s.cloche-XXXXXX", real) >= (int)sizeof(temporary))
        return err_set(err, ERR_LIMIT, "policy.append", "%s: the path is too long", real);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, errno, "policy.append", "write beside %s", real);
    if (io_write_full(fd, text->p, text->n) == 0 && fchmod(fd, st->st_mode & 07777) == 0 &&
        (geteuid() != 0 || fchown(fd, st->st_uid, st->st_gid) == 0) && fsync(fd) == 0 &&
        rename(temporary, real) == 0)
        return 0;
    err_sys(err, errno, "policy.append", "write %s", real);
    unlink(temporary);
    return -1;
}

/* Whether what is inside may write at @path or below: then it could put its own file in the place of ours while we
 * write. */
static bool
is_inside(const char *path, const char *place)
{
    cleanup_free char *real = place != NULL ? realpath(place, NULL) : NULL;

    return real != NULL && path_within(str_of(path), str_of(real));
}

static bool
sandbox_may_write(const struct policy *p, const char *path)
{
    char place[PATH_TEXT_MAX + 1];

    if (p->workspace.kind == WORKSPACE_RW && is_inside(path, p->workspace.dir))
        return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && is_inside(path, p->binds[i].source))
            return true;
    for (size_t i = 0; i < p->allow_write.n; i++) {
        const struct policy_entry *e = &p->allow_write.v[i];
        snprintf(place, sizeof(place), "%.*s",
                 (int)(e->literal ? strlen(e->value) : path_glob_prefix(str_of(e->value))), e->value);
        if (is_inside(path, place[0] != '\0' ? place : "/"))
            return true;
    }
    return false;
}

/* @rule at the end of network.allow in the settings file that the run was started with. */
static int
always(const struct net *n, const char *rule, struct err *err)
{
    const char *path = n->policy->settings.p;
    cleanup_buf struct buf old = BUF_INIT(POLICY_FILE_MAX), new = BUF_INIT(POLICY_FILE_MAX);
    cleanup_free char *real = NULL;
    struct stat st;

    if (path == NULL || n->policy->srt) {
        err_set(err, ERR_POLICY, "policy.append", path == NULL ? "the run was started without a settings file"
                                                               : "the run's settings are SRT's, which are not changed");
        return err_hint(err, "approve it with --sandbox, and add \"%s\" where the run's rules are written", rule);
    }
    real = realpath(path, NULL);
    if (real == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode) || io_read_file(AT_FDCWD, real, &old) < 0)
        return err_sys(err, real == NULL ? errno : EINVAL, "policy.append", "read %s", path);
    if (sandbox_may_write(n->policy, real)) {
        err_set(err, ERR_POLICY, "policy.append", "%s lies where the sandbox may write", path);
        return err_hint(err, "approve it with --sandbox, and add \"%s\" to the file when the run has ended", rule);
    }
    if (policy_append_allow((struct str){ (const char *)old.p, old.n }, str_of(rule), &new, err) < 0 ||
        check_new(real, (struct str){ (const char *)old.p, old.n }, &new, rule, err) < 0)
        return err_wrap(err, "%s", path);
    return write_beside(real, &st, &new, err);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static json_t *
failed(const struct err *err)
{
    return json_pack("{s:s, s:s, s:s}", "error", err->msg, "code", err->code, "hint", err->hint);
}

bool
net_ask_is_narrow(const struct net_question *q)
{
    const char *reason = json_string_value(json_object_get(q->event, "reason"));

    return reason != NULL && strcmp(reason, "scope-no-rule") == 0;
}

static void
rule_of(const struct net_question *q, char out[RULE_MAX])
{
    const char *host = json_string_value(json_object_get(q->event, "host"));

    snprintf(out, RULE_MAX, strchr(host, ':') != NULL ? "[%s]:%d" : "%s:%d", host,
             (int)json_integer_value(json_object_get(q->event, "port")));
}

void
net_ask_answer(struct net *n, json_int_t id, enum ask_says says, bool sandbox)
{
    struct net_question *q = question(n, id);
    struct err err = ERR_INIT;
    char rule[RULE_MAX];

    if (q == NULL)
        return;
    rule_of(q, rule);
    /* who it was is in the daemon's record */
    if (net_say_answer(n, q->number, says, "cloche serve", &err) < 0)
        return;
    forget(q);
    if (sandbox && says != ASK_NO && net_rules_add(n, false, rule, 0, &err) < 0)
        cli_warn("%s was approved for this sandbox, and is asked about again: %s", rule, err.msg);
}

static json_t *
answer(struct net *n, const json_t *request, uid_t uid, uint64_t caller)
{
    json_int_t id = json_integer_value(json_object_get(request, "id"));
    bool allow = json_is_true(json_object_get(request, "allow"));
    const char *scope = json_string_value(json_object_get(request, "scope"));
    struct net_question *q = question(n, id);
    struct err err = ERR_INIT;
    enum ask_says says;
    char rule[RULE_MAX], by[32];

    if (n->ask != NULL)
        return json_pack("{s:s, s:s}", "error", "this is asked in the daemon's queue (cloche approvals)", "code",
                         "net.question");
    if (q == NULL || scope == NULL)
        return json_pack("{s:s, s:s}", "error", "nobody waits for that any more", "code", "net.question");
    rule_of(q, rule);
    snprintf(by, sizeof(by), "uid %u", (unsigned)uid);
    if (strcmp(scope, "always") == 0 && !allow)
        return json_pack("{s:s, s:s}", "error", "only what is allowed is written into a settings file", "code",
                         "net.always");
    if (allow && strcmp(scope, "once") != 0 && net_ask_is_narrow(q)) {
        err_set(&err, ERR_POLICY, "net.scope", "rules name requests to %s, and a yes to the host would be one to all "
                "others too", rule);
        err_hint(&err, "approve it --once, or write a rule about what is meant: docs/policy.md");
        return failed(&err);
    }
    says = !allow ? ASK_NO : strcmp(scope, "once") == 0 ? ASK_YES : ASK_HOST;
    if ((strcmp(scope, "always") == 0 && always(n, rule, &err) < 0) || net_say_answer(n, q->number, says, by, &err) < 0)
        return failed(&err);
    run_audit_answer(n->live->audit, q->event, allow, scope, uid);
    forget(q);
    if (strcmp(scope, "once") == 0)
        return json_pack("{s:b, s:s}", "ok", 1, "rule", rule);
    return net_rules_add(n, !allow, rule, caller, &err) < 0 ? failed(&err) : NULL;
}

static json_t *
change(struct net *n, const json_t *request, uid_t uid, uint64_t caller)
{
    const char *rule = json_string_value(json_object_get(request, "rule"));
    bool deny = json_is_true(json_object_get(request, "deny"));
    struct err err = ERR_INIT;

    if (rule == NULL)
        return json_pack("{s:s, s:s}", "error", "no rule", "code", "net.request");
    if (net_rules_add(n, deny, rule, caller, &err) < 0)
        return failed(&err);
    run_audit_rule(n->live->audit, deny, rule, uid);
    return NULL;
}

json_t *
net_asked(struct net *n, const json_t *request, uid_t uid, uint64_t caller)
{
    const char *what = json_string_value(json_object_get(request, "do"));

    if (what != NULL && strcmp(what, "flush") == 0) {
        net_log_write(n->log, false);
        return json_pack("{s:b}", "ok", 1);
    }
    if (what != NULL && strcmp(what, "questions") == 0)
        return list_questions(n);
    if (what != NULL && strcmp(what, "answer") == 0)
        return answer(n, request, uid, caller);
    if (what != NULL && strcmp(what, "rule") == 0)
        return change(n, request, uid, caller);
    return json_pack("{s:s, s:s}", "error", "a request that this version does not know", "code", "net.request");
}
