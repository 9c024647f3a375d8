/* hosts/registry_open.c: see registry.h */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "hosts/ask.h"
#include "hosts/asker.h"
#include "hosts/registry.h"
#include "hosts/registry_kept.h"
#include "hosts/registry_priv.h"

/* Where it is not, policy_validate has something to say. */
static bool
wanted(const struct policy *p)
{
    return p->registries.n > 0 && p->network.v == NETWORK_ALLOWLIST && p->mode.v != MODE_OFF && p->mode.v != MODE_LIGHT;
}

/* --- recall ------------------------------------------------------------------------------------------------------- */

static bool
hosts_well(const json_t *answer)
{
    const json_t *hosts = json_object_get(answer, "hosts");
    struct host_pattern pattern;
    json_t *value;
    size_t i;

    json_array_foreach(hosts, i, value) {
        const char *host = json_string_value(value);
        if (host == NULL || strlen(host) >= URL_HOST_MAX || host_pattern_cloche(str_of(host), &pattern) != HOST_OK)
            return false;
    }
    return json_array_size(hosts) > 0 && json_array_size(hosts) <= REGISTRY_HOSTS_MAX;
}

/* Whether the answer about @name is known, or was kept. */
static bool
recalled(const struct policy *p, const char *name, json_t *answers)
{
    const struct registry_client *client = registry_client(name);
    json_t *kept;

    if (client == NULL || json_object_get(answers, name) != NULL)
        return true;
    kept = client->slow ? registry_kept(p, name, client->program) : NULL;
    if (hosts_well(kept))
        return json_object_set_new(answers, name, kept) == 0;
    json_decref(kept);
    return false;
}

int
registry_recall(const struct policy *p, json_t *answers, struct err *err)
{
    bool all = true;

    if (!wanted(p))
        return 1;
    if (p->home != NULL && ask_writable(p, p->home)) {
        err_set(err, ERR_POLICY, "policy.registry.config",
                "--allow-registry %s: the home directory %s, where clients have their configuration, is open inside",
                p->registries.v[0].value, p->home);
        return err_hint(err, "name the project's directory only, or the hosts: --allow-domain HOST");
    }
    for (size_t i = 0; i < p->registries.n; i++)
        all &= recalled(p, p->registries.v[i].value, answers);
    return all;
}

/* --- ask ---------------------------------------------------------------------------------------------------------- */

static json_t *
answer_of(const struct registry *r)
{
    json_t *hosts = json_array();

    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(hosts, json_string(r->hosts[i]));
    return json_pack("{s:o, s:O, s:O, s:O, s:O}", "hosts", hosts, "env", r->env, "files", r->files, "cas", r->cas,
                     "inner", r->inner);
}

static int
ask_one(const struct policy *p, const char *name, json_t *answers, struct err *err)
{
    const struct registry_client *client = registry_client(name);
    struct registry r = { .p = p, .err = err, .env = json_object(), .files = json_object(), .cas = json_array(),
                          .inner = json_object() };
    json_t *answer = NULL;
    struct timespec began;
    int result;

    snprintf(r.origin, sizeof(r.origin), "--allow-registry %s", name);
    clock_gettime(CLOCK_REALTIME, &began);
    result = client->ask(&r);
    if (result == 0) {
        registry_look_up(&r);
        answer = answer_of(&r);
        if (answer != NULL && client->slow && !r.in_part)
            registry_keep(p, name, client->program, &began, answer);
        if (json_object_set_new(answers, name, answer) < 0)
            result = err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    json_decref(r.env);
    json_decref(r.files);
    json_decref(r.cas);
    json_decref(r.inner);
    return result;
}

int
registry_ask(const struct policy *p, json_t *answers, struct err *err)
{
    for (size_t i = 0; i < p->registries.n; i++) {
        const char *name = p->registries.v[i].value;
        cleanup_close int lock = -1;
        if (recalled(p, name, answers))
            continue;
        lock = registry_lock(p, name);
        if (!recalled(p, name, answers) && ask_one(p, name, answers, err) < 0)
            return -1;
    }
    return 0;
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

/* Where what is found comes from, as it is shown. */
static struct origin
origin_of(const struct policy_entry *entry, const json_t *answer, char text[96])
{
    time_t at = (time_t)json_integer_value(json_object_get(answer, "at"));
    struct origin from = entry->from;
    char when[32];
    struct tm utc;

    snprintf(text, 96, "--allow-registry %s", entry->value);
    if (at > 0 && gmtime_r(&at, &utc) != NULL && strftime(when, sizeof(when), "%FT%TZ", &utc) > 0)
        snprintf(text, 96, "--allow-registry %s (asked %s)", entry->value, when);
    if (from.kind == ORIGIN_FLAG)
        from.name = text;
    return from;
}

/* The same checks for what is said now and what was said before, under another policy maybe. */
static int
apply_one(struct policy *p, const struct policy_entry *entry, const json_t *answer, struct err *err)
{
    struct registry r = { .p = p, .err = err, .files = json_object(), .cas = json_array() };
    struct origin from = origin_of(entry, answer, r.origin);
    const char *name;
    json_t *value;
    size_t i;
    int result = hosts_well(answer) ? 0 : registry_refuse(&r, "policy.registry.answer", "there is no answer", "");

    json_object_foreach(json_object_get(answer, "files"), name, value)
        if (result == 0)
            result = registry_check_config(&r, name);
    json_array_foreach(json_object_get(answer, "cas"), i, value)
        if (result == 0 && (result = registry_trust(&r, json_string_value(value))) == 0)
            result = policy_trust_file(p, json_string_value(value), &from, err);
    json_object_foreach(json_object_get(answer, "env"), name, value)
        if (result == 0 && json_is_string(value))
            result = policy_give_env(p, name, json_string_value(value), &from, err);
    if (result == 0)
        registry_say_inner(r.origin, json_object_get(answer, "inner"));
    json_array_foreach(json_object_get(answer, "hosts"), i, value)
        if (result == 0)
            result = policy_allow_host(p, json_string_value(value), &from, err);
    json_decref(r.files);
    json_decref(r.cas);
    return result;
}

int
registry_apply(struct policy *p, const json_t *answers, struct err *err)
{
    for (size_t i = 0; wanted(p) && i < p->registries.n; i++)
        if (apply_one(p, &p->registries.v[i], json_object_get(answers, p->registries.v[i].value), err) < 0)
            return -1;
    return 0;
}

int
registry_open(struct policy *p, struct err *err)
{
    json_t *answers = json_object();
    int r = registry_recall(p, answers, err);

    if (r == 0)
        r = asker_wait(p, answers, err);
    if (r >= 0)
        r = registry_apply(p, answers, err);
    json_decref(answers);
    return r;
}
