/* run/net_rules.c: the rules of a run that goes on change
 *
 * A change is the whole set said anew, which cloche-egress takes over at once or not at all; its word about it is the
 * answer to whoever asked. A cloche-egress that dies meanwhile is started again with the new rules.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "program/caller.h"
#include "program/say.h"
#include "run/net.h"
#include "run/session_priv.h"

#define CONTROL_READ 65536

/* --- one rule more ------------------------------------------------------------------------------------------------ */

/* The word about a change, to whoever asked for it. Takes @answer. */
static void
tell(struct net *n, uint64_t caller, json_t *answer)
{
    if (caller != NET_KEEPER) {
        door_answer(n->door, caller, answer);
        return;
    }
    n->told_keeper(n->keeper, json_string_value(json_object_get(answer, "error")));
    json_decref(answer);
}

static bool
has_rule(const struct policy_list *list, const char *rule)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].written, rule) == 0)
            return true;
    return false;
}

static int
push(struct net *n, uint64_t caller, struct err *err)
{
    if (n->n_updates == NET_UPDATES_MAX)
        return err_set(err, ERR_LIMIT, "net.busy", "too many changes at once");
    if (n->control.fd < 0) {       /* it is being started again, with these; or the network is closed for good */
        tell(n, caller, json_pack("{s:b, s:i}", "ok", 1, "closed", 0));
        return 0;
    }
    n->n_changes++;
    /* one that does not take them may not go on with the old ones: it is ended, and started again with these */
    if (net_say_rules(n, n->n_changes, err) < 0) {
        if (err->kind == ERR_LIMIT)
            return -1;          /* ours: a rule that cannot be said at all */
        kill(n->pid, SIGKILL);
    }
    n->updates[n->n_updates++] = (struct net_update){ n->n_changes, caller };
    return 0;
}

int
net_rules_add(struct net *n, bool deny, const char *rule, uint64_t caller, struct err *err)
{
    static const struct policy_host host = { .cwd = "/" };
    struct policy_list *list;
    size_t before;

    if (n->added.arena == NULL && policy_init(&n->added, MODE_STANDARD, VERB_RUN, &host, err) < 0)
        return -1;
    n->added.srt = n->policy->srt;
    list = deny ? &n->added.deny_domains : &n->added.allow_domains;
    before = list->n;
    if (!has_rule(list, rule)) {
        if (policy_apply_flag(&n->added, deny ? "--deny-domain" : "--allow-domain", rule, &host, err) < 0)
            return -1;
        list->v[list->n - 1].from.name = deny ? "cloche net deny" : "cloche net allow";
    }
    if (push(n, caller, err) == 0)
        return 0;
    list->n = before;
    return -1;
}

int
net_rules_replace(struct net *n, const struct policy *fresh, struct err *err)
{
    const struct policy *was = n->policy;

    n->policy = fresh;
    if (push(n, NET_KEEPER, err) == 0)
        return 0;
    n->policy = was;
    return -1;
}

/* The oldest one whose word is awaited. */
static struct net_update
next_update(struct net *n)
{
    struct net_update first = n->updates[0];

    memmove(n->updates, n->updates + 1, --n->n_updates * sizeof(*n->updates));
    return first;
}

void
net_rules_heard(struct net *n, const json_t *event)
{
    const char *why = json_string_value(json_object_get(event, "error"));
    uint64_t number = (uint64_t)json_integer_value(json_object_get(event, "id"));
    bool ok = json_is_true(json_object_get(event, "ok"));
    uint64_t caller;

    /* a word that was lost on its way is nobody else's; what was said in that change is said in all later ones too */
    while (n->n_updates > 0 && n->updates[0].number < number)
        tell(n, next_update(n).caller,
             ok ? json_pack("{s:b, s:i}", "ok", 1, "closed", 0)
                : json_pack("{s:s, s:s}", "error", "whether cloche-egress took the rule is not known", "code",
                            "net.lost"));
    if (n->n_updates == 0 || n->updates[0].number != number)
        return;
    caller = next_update(n).caller;
    if (ok) {
        n->kept_allow = n->added.allow_domains.n;
        n->kept_deny = n->added.deny_domains.n;
        tell(n, caller, json_pack("{s:b, s:O}", "ok", 1, "closed", json_object_get(event, "closed")));
        return;
    }
    if (n->n_updates == 0) {
        n->added.allow_domains.n = n->kept_allow;
        n->added.deny_domains.n = n->kept_deny;
    }
    tell(n, caller, json_pack("{s:s, s:s}", "error", why != NULL ? why : "refused", "code", "net.rules"));
}

void
net_rules_lost(struct net *n)
{
    for (size_t i = 0; i < n->n_updates; i++)
        tell(n, n->updates[i].caller, json_pack("{s:b, s:i}", "ok", 1, "closed", 0));
    n->n_updates = 0;
}

/* --- SRT's control descriptor ------------------------------------------------------------------------------------- */

static void
invalid(const struct net *n)
{
    fprintf(stderr, "Invalid config on control fd %d: ignored, previous config still in force\n", n->control_in.fd);
}

/* One line: a whole SRT configuration, of which what concerns hosts is taken over. */
static void
on_line(struct net *n, struct str line)
{
    struct policy *fresh = calloc(1, sizeof(*fresh));
    struct policy_host host;
    struct err err = ERR_INIT;

    if (fresh == NULL || cli_host(&host, &err) < 0 ||
        policy_init(fresh, MODE_STANDARD, VERB_SRT, &host, &err) < 0 ||
        policy_load_bytes(fresh, "control fd", line.p, line.n, POLICY_SRT, &host, &err) < 0) {
        invalid(n);
        if (fresh != NULL)
            policy_free(fresh);
        free(fresh);
        return;
    }
    if (n->replaced != NULL)
        policy_free(n->replaced);
    free(n->replaced);
    n->replaced = fresh;
    n->policy = fresh;
    run_audit_rules_replaced(n->live->audit);
    if (push(n, 0, &err) < 0)
        cli_warn("%s [%s]", err.msg, err.code);
}

static bool
is_blank(struct str line)
{
    for (size_t i = 0; i < line.n; i++)
        if (strchr(" \t\r", line.p[i]) == NULL)
            return false;
    return true;
}

static void
take_lines(struct net *n)
{
    struct buf *in = &n->control_text;
    const uint8_t *end;

    while ((end = in->n > 0 ? memchr(in->p, '\n', in->n) : NULL) != NULL) {
        struct str line = { (const char *)in->p, (size_t)(end - in->p) };
        if (n->control_skip)
            invalid(n);
        else if (!is_blank(line))
            on_line(n, line);
        n->control_skip = false;
        buf_consume(in, line.n + 1);
    }
    if (in->n == in->max) {         /* too long for a line: its rest is not another one */
        n->control_skip = true;
        buf_reset(in);
    }
}

bool
net_control_read(struct net *n)
{
    struct buf *in = &n->control_text;
    size_t room = in->max - in->n < CONTROL_READ ? in->max - in->n : CONTROL_READ;
    ssize_t got = buf_reserve(in, room) < 0 ? 0 : read(n->control_in.fd, in->p + in->n, room);

    if (got > 0) {
        in->n += (size_t)got;
        take_lines(n);
        return true;
    }
    if (in->n > 0 && !is_blank((struct str){ (const char *)in->p, in->n }))
        on_line(n, (struct str){ (const char *)in->p, in->n });
    return false;
}
