/* keeper/keeper_policy.c: the policy of a sandbox that lives: what it is held to, and changes of it
 *
 * A change is the whole policy said anew. It is read as the first one was, and what it says is compared with what that
 * said: only where the two differ in rules about hosts, in limits that each command has for itself, or in those that a
 * cgroup holds, can the sandbox be held to it. Everything else is built into its walls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sha256.h"
#include "keeper/keeper.h"
#include "policy/policy.h"
#include "policy/spec.h"
#include "policy/within.h"
#include "program/policy_json.h"

/* --- what a policy says ------------------------------------------------------------------------------------------- */

static void
without_origins(json_t *value)
{
    const char *name;
    json_t *member;
    size_t i;

    json_object_del(value, "from");
    json_object_foreach(value, name, member) {
        without_origins(member);
    }
    json_array_foreach(value, i, member) {
        without_origins(member);
    }
}

static void
add_text(struct sha256 *h, const char *text)
{
    sha256_add(h, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
    sha256_add(h, text != NULL ? "\1" : "\0", 2);
}

static json_t *
hash(struct sha256 *h)
{
    uint8_t digest[SHA256_SIZE];
    char text[SHA256_TEXT + 1];

    sha256_end(h, digest);
    sha256_text(digest, text);
    return json_string(text);
}

/* Values that a description leaves out, by their hash. */
static void
add_hidden(const struct policy *p, json_t *out)
{
    struct sha256 h;

    sha256_init(&h);
    for (size_t i = 0; i < p->n_env; i++) {
        add_text(&h, p->env[i].name);
        add_text(&h, p->env[i].value);
    }
    json_array_append_new(json_object_get(out, "env"), hash(&h));
    sha256_init(&h);
    for (size_t i = 0; i < p->n_secret_files; i++) {
        add_text(&h, p->secret_files[i].text);
        add_text(&h, p->secret_files[i].template);
    }
    json_array_append_new(json_object_get(out, "secret-files"), hash(&h));
    sha256_init(&h);
    add_text(&h, p->parent_proxy.http.p);
    add_text(&h, p->parent_proxy.https.p);
    json_object_set_new(json_object_get(out, "network"), "parent-proxy", hash(&h));
}

json_t *
keeper_profile(const struct policy *p)
{
    json_t *out = json_object();

    policy_json(p, false, out);
    without_origins(out);
    add_hidden(p, out);
    return out;
}

static bool
may_differ(const struct keeper_live *k, const char *key)
{
    const struct policy_spec *s = policy_spec_by_key(str_of(key));

    if (s != NULL && (s->traits & SPEC_LIVE) != 0)
        return true;
    /* without any rule it is "none"; where the way for names is there, that is the same as no rule */
    return k != NULL && k->l.net != NULL && strcmp(key, "network.mode") == 0;
}

/* Whether some key of @a is not as in @b, and may not be; the first into @key. @k NULL: none may. */
static bool
differs(const struct keeper_live *k, json_t *a, json_t *b, const char *group, char key[128])
{
    const char *name;
    json_t *mine;

    json_object_foreach(a, name, mine) {
        const json_t *other = json_object_get(b, name);
        if (json_equal(mine, other))
            continue;
        if (group[0] == '\0' && json_is_object(mine) && json_is_object(other) &&
            json_object_get(mine, "value") == NULL) {
            if (differs(k, mine, json_object_get(b, name), name, key))
                return true;
            continue;
        }
        snprintf(key, 128, "%s%s%s", group, group[0] != '\0' ? "." : "", name);
        if (k == NULL || !may_differ(k, key))
            return true;
    }
    return false;
}

/* The first key in which two differ, but for those that can change while @k lives; @k NULL: any. */
static bool
keeper_differs(const struct keeper_live *k, json_t *a, json_t *b, char key[128])
{
    return differs(k, a, b, "", key) || differs(k, b, a, "", key);
}

/* --- saying it ---------------------------------------------------------------------------------------------------- */

static void
say_changed(struct keeper_live *k, uint32_t number, const struct err *why_not)
{
    if (number != 0)
        PROTO_SAY(keeper_say, k, EDGE_CHANGED, .number = number, .done = why_not == NULL,
                  .why = why_not != NULL ? *why_not : (struct err)ERR_INIT);
}

/* What `cloche net allow` and `deny` added. */
static void
add_added(const struct policy_list *list, json_t *out)
{
    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(out, json_pack("{s:o, s:o, s:b, s:{s:s, s:s}}", "value",
                                             policy_json_text(list->v[i].value), "written",
                                             policy_json_text(list->v[i].written), "literal", list->v[i].literal,
                                             "from", "kind", "flag", "name", list->v[i].from.name));
}

static const struct policy *
in_force(const struct keeper_live *k)
{
    return k->changed != NULL ? k->changed : &k->policy;
}

void
keeper_policy_show(struct keeper_live *k, uint32_t number)
{
    json_t *out = json_object(), *network;
    cleanup_free char *text = NULL;
    size_t n;

    policy_json(in_force(k), true, out);
    network = json_object_get(out, "network");
    if (k->l.net != NULL) {
        add_added(&k->l.net->added.allow_domains, json_object_get(network, "allow"));
        add_added(&k->l.net->added.deny_domains, json_object_get(network, "deny"));
    }
    text = json_dumps(out, JSON_COMPACT);
    json_decref(out);
    n = text != NULL ? strlen(text) : 0;
    if (n > EDGE_SHOWN_MAX)
        n = 0;          /* said as nothing; lists of that size are no settings of people's */
    for (size_t done = 0, take; ; done += take) {
        take = n - done < EDGE_CHUNK ? n - done : EDGE_CHUNK;
        PROTO_SAY(keeper_say, k, EDGE_SHOWN, .number = number, .last = done + take == n,
                  .json = (const uint8_t *)(text != NULL ? text + done : ""), .n_json = take);
        if (done + take == n)
            return;
    }
}

/* --- changing it -------------------------------------------------------------------------------------------------- */

static int
fixed(const char *key, const char *why, struct err *err)
{
    err_set(err, ERR_POLICY, "policy.fixed", "%s cannot change while the sandbox lives%s%s", key,
            why[0] != '\0' ? ": " : "", why);
    return err_hint(err, "stop it, change its policy, and recover it: it is made again, empty");
}

/* Registries and presets were asked once; what they said goes on. */
static int
keep_found_hosts(const struct keeper_live *k, struct policy *p, struct err *err)
{
    const struct policy_list *all = &k->policy.allow_domains;

    for (size_t i = k->n_asked_hosts; i < all->n; i++)
        if (policy_allow_host(p, all->v[i].written, &all->v[i].from, err) < 0)
            return -1;
    return 0;
}

static int
ports_open(const struct keeper_live *k, const struct policy *p, struct err *err)
{
    uint16_t new[POLICY_TCP_PORTS_MAX], old[POLICY_TCP_PORTS_MAX];
    const struct policy_entry *over;
    size_t n = 0, n_old = 0;
    char why[64];

    (void)policy_tcp_ports(&k->policy, old, &n_old, &over);
    (void)policy_tcp_ports(p, new, &n, &over);
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < n_old && old[j] != new[i])
            j++;
        if (j < n_old)
            continue;
        snprintf(why, sizeof(why), "port %u is not listened on inside", new[i]);
        return fixed("network.allow", why, err);
    }
    return 0;
}

/* What @text says, where the sandbox can be held to it. */
static int
read_change(struct keeper_live *k, const char *text, struct err *err)
{
    struct policy *p = k->next = calloc(1, sizeof(*p));
    char key[128];

    if (p == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    /* whoever may change it may let it reach more than the settings do; limits above them it could not be made anew
     * with */
    if (keeper_policy_read(k, p, text, k->bounds, err) < 0 ||
        keeper_policy_within(k, p, text, k->bounds, WITHIN_NETWORK, err) < 0)
        return -1;
    k->next_profile = keeper_profile(p);
    if (keeper_differs(k, k->profile, k->next_profile, key))
        return fixed(key, "", err);
    if (keep_found_hosts(k, p, err) < 0 || policy_validate(p, err) < 0)
        return -1;
    if (vault_wanted(p) && k->l.vault == NULL)
        return fixed("network.allow", "rules about methods and paths need one from the beginning, to open TLS", err);
    return k->l.net != NULL ? ports_open(k, p, err) : 0;
}

/* Limits were changed first, and the rest of it is refused: they are the former ones again. Memory that was taken
 * meanwhile the kernel may not let go of: then its limit alone stays the new one there, and the former one is what
 * look_at_memory() in keeper.c ends the sandbox for. */
static void
limits_back(struct keeper_live *k)
{
    struct err err = ERR_INIT;

    if (sandbox_limits_back(k->l.sb, k->next, in_force(k), &err) < 0)
        log_say(LEVEL_ERROR, "limits that were not to change: %s [%s]", err.msg, err.code);
}

static void
drop_next(struct keeper_live *k)
{
    if (k->next != NULL)
        policy_free(k->next);
    free(k->next);
    k->next = NULL;
    json_decref(k->next_profile);
    k->next_profile = NULL;
}

static void
take_next(struct keeper_live *k)
{
    if (k->changed != NULL)
        policy_free(k->changed);
    free(k->changed);
    json_decref(k->profile);
    k->changed = k->next;
    k->profile = k->next_profile;
    k->next = NULL;
    k->next_profile = NULL;
    k->limits = k->changed->limits;
    memcpy(k->digest, k->next_digest, sizeof(k->digest));
}

/* cloche-egress has taken the rules, or not. */
static void
told(void *ctx, const char *why_not)
{
    struct keeper_live *k = ctx;
    struct err err = ERR_INIT;

    if (why_not == NULL) {
        take_next(k);
        say_changed(k, k->next_number, NULL);
        return;
    }
    k->l.net->policy = k->changed != NULL ? k->changed : k->l.s->policy;
    limits_back(k);
    drop_next(k);
    err_set(&err, ERR_SYSTEM, "net.rules", "the network's rules were not changed: %s", why_not);
    say_changed(k, k->next_number, &err);
}

void
keeper_policy_change(struct keeper_live *k, uint32_t number, const char *text)
{
    struct err err = ERR_INIT;

    if (k->next != NULL) {
        err_set(&err, ERR_LIMIT, "sandbox.busy", "another change of the policy is under way");
        say_changed(k, number, &err);
        return;
    }
    k->next_number = number;
    sha256_of(text, strlen(text), k->next_digest);
    /* a new warden says what is on record; what the settings have become since then is nothing to this sandbox */
    if (memcmp(k->next_digest, k->digest, sizeof(k->digest)) == 0) {
        say_changed(k, number, NULL);
        return;
    }
    if (read_change(k, text, &err) < 0) {
        drop_next(k);
        say_changed(k, number, &err);
        return;
    }
    if (sandbox_limits(k->l.sb, in_force(k), k->next, &err) < 0) {
        drop_next(k);
        say_changed(k, number, &err);
        return;
    }
    if (k->l.net == NULL) {
        told(k, NULL);
        return;
    }
    k->l.net->told_keeper = told;
    k->l.net->keeper = k;
    if (net_rules_replace(k->l.net, k->next, &err) < 0) {
        limits_back(k);
        drop_next(k);
        say_changed(k, number, &err);
    }
}

void
keeper_policy_free(struct keeper_live *k)
{
    drop_next(k);
    if (k->changed != NULL)
        policy_free(k->changed);
    free(k->changed);
    k->changed = NULL;
    json_decref(k->profile);
    k->profile = NULL;
}
