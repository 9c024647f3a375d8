/* run/session_audit_net.c: the audit record of a run: decisions about its network, answers, rules */
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "run/session_audit_priv.h"

static void
put_json(struct audit_entry *e, const char *key, const json_t *value)
{
    if (json_is_integer(value))
        audit_put_number(e, key, json_integer_value(value));
    else if (json_is_string(value))
        audit_put(e, key, (struct str){ json_string_value(value), json_string_length(value) });
}

static bool
is(const json_t *o, const char *key, const char *word)
{
    const char *value = json_string_value(json_object_get(o, key));

    return value != NULL && strcmp(value, word) == 0;
}

/* One decision of the log, @count times. */
static void
on_decision(void *ctx, const json_t *d, uint64_t count)
{
    static const char *const keys[] = { "host", "port", "via", "method", "tool", "rule", "reason", "by", "secret" };
    struct run_audit *a = ctx;
    bool allow = is(d, "verdict", "allow"), secret = json_object_get(d, "secret") != NULL;
    struct audit_entry e;

    if (is(d, "verdict", "failed"))     /* no decision: that it was allowed is on record */
        return;
    audit_policy_decision(&e, a->r->id, allow ? "allow" : "deny", NULL,
                          allow ? "a connection was allowed" : "a connection was refused");
    if (allow && secret && is(d, "reason", "secret-scrubbed")) {
        e.type = AUDIT_SECRET_INBOUND;
        e.summary = STR_LIT("a secret was kept out of an answer");
    } else if (allow && secret) {
        e.type = AUDIT_SECRET_OUTBOUND;
        e.summary = STR_LIT("a secret was put into a request");
    } else if (secret) {
        e.summary = STR_LIT("a secret was kept out of a request");
    }
    e.severity = is(d, "level", "critical") ? AUDIT_CRITICAL : allow ? AUDIT_INFO : AUDIT_WARN;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        put_json(&e, keys[i], json_object_get(d, keys[i]));
    audit_put_number(&e, "count", (int64_t)count);
    run_audit_queue(a, &e);
}

void
run_audit_decisions(struct run_audit *a, struct net_log *log, bool last)
{
    uint64_t more;
    struct audit_entry e;

    if (a == NULL || a->failed)
        return;
    more = net_log_told(log, last, on_decision, a);
    if (more == 0)
        return;
    audit_policy_decision(&e, a->r->id, "unsaid", NULL, "there were more decisions than there was room to name");
    e.severity = AUDIT_WARN;
    audit_put_number(&e, "count", (int64_t)more);
    run_audit_queue(a, &e);
}

void
run_audit_asked(struct run_audit *a, const json_t *question)
{
    struct audit_entry e;

    if (a == NULL)
        return;
    audit_policy_decision(&e, a->r->id, "ask", NULL, "a connection waits for a decision");
    put_json(&e, "host", json_object_get(question, "host"));
    put_json(&e, "port", json_object_get(question, "port"));
    put_json(&e, "method", json_object_get(question, "method"));
    put_json(&e, "id", json_object_get(question, "id"));
    run_audit_queue(a, &e);
}

static void
put_uid(struct audit_entry *e, uid_t uid)
{
    audit_put_number(e, "by_uid", uid);
}

void
run_audit_answer(struct run_audit *a, const json_t *question, bool allow, const char *scope, uid_t uid)
{
    struct audit_entry e;

    if (a == NULL)
        return;
    audit_capability(&e, a->r->id, "approval", allow ? "a connection was approved" : "a connection was denied");
    audit_put_cstr(&e, "decision", allow ? "allow" : "deny");
    put_json(&e, "host", json_object_get(question, "host"));
    put_json(&e, "port", json_object_get(question, "port"));
    put_json(&e, "id", json_object_get(question, "id"));
    audit_put_cstr(&e, "scope", scope);
    put_uid(&e, uid);
    run_audit_queue(a, &e);
}

void
run_audit_rule(struct run_audit *a, bool deny, const char *rule, uid_t uid)
{
    struct audit_entry e;

    if (a == NULL)
        return;
    audit_capability(&e, a->r->id, "network_rule", "a rule about hosts was added to a run");
    audit_put_cstr(&e, "decision", deny ? "deny" : "allow");
    audit_put_cstr(&e, "rule", rule);
    put_uid(&e, uid);
    run_audit_queue(a, &e);
}

void
run_audit_rules_replaced(struct run_audit *a)
{
    struct audit_entry e;

    if (a == NULL)
        return;
    audit_capability(&e, a->r->id, "network_rule", "the rules about hosts were replaced by the control descriptor");
    audit_put_cstr(&e, "decision", "replace");
    put_uid(&e, getuid());
    run_audit_queue(a, &e);
}

void
run_audit_death(struct run_audit *a, const char *how, uint64_t deaths, bool closed)
{
    struct audit_entry e = { .type = AUDIT_FETCH_ERROR, .severity = AUDIT_ERROR };

    if (a == NULL)
        return;
    e.sandbox = str_of(a->r->id);
    e.summary = closed ? STR_LIT("cloche-egress ended too often: the network stays closed")
                       : STR_LIT("cloche-egress ended and is started again");
    audit_put_cstr(&e, "event", closed ? "off" : "restart");
    audit_put_cstr(&e, "how", how);
    audit_put_number(&e, "deaths", (int64_t)deaths);
    run_audit_queue(a, &e);
}
