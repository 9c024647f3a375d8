/* prove/prove_attacks.c: what each attack must have met, by policy (see prove.h, probe/catalog.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "match/calls.h"
#include "match/path.h"
#include "probe/catalog.h"
#include "prove/prove.h"

static const struct attack_row {
    const char *id, *wall;
    unsigned promised, unless;
    const char *requirement, *title;
} rows[] = {
#define ROW(fn, id, wall, promised, unless, requirement, title) { id, wall, promised, unless, requirement, title },
    ATTACKS(ROW)
#undef ROW
};

#define N_ROWS ARRAY_LEN(rows)

static bool
promised(const struct policy *p, const struct attack_row *row)
{
    static const unsigned bit[] = { [MODE_OFF] = IN_STANDARD, [MODE_LIGHT] = IN_LIGHT, [MODE_STANDARD] = IN_STANDARD,
                                    [MODE_MAX] = IN_MAX };

    if (!(row->promised & bit[p->mode.v]))
        return false;
    if (p->mode.v == MODE_OFF)
        return true;    /* measured against what standard would hold */
    return !((row->unless & UNLESS_HOST_NETWORK && p->network.v == NETWORK_HOST) ||
             (row->unless & UNLESS_ALL_SOCKETS && p->all_unix_sockets.v) ||
             (row->unless & UNLESS_NESTED && p->nested_userns.v) ||
             (row->unless & UNLESS_HOST_VIEW && p->view.v == VIEW_HOST));
}

static const json_t *
find(const json_t *result, const char *id)
{
    const json_t *list = json_object_get(result, "attacks"), *item;
    size_t i;

    json_array_foreach(list, i, item) {
        const char *name = json_string_value(json_object_get(item, "id"));
        if (name != NULL && strcmp(name, id) == 0)
            return item;
    }
    return NULL;
}

static enum check_state
judge(const struct proof *p, const struct attack_row *row, const char *outcome)
{
    if (strcmp(outcome, "not-applicable") == 0)
        return CHECK_NOT_APPLICABLE;
    if (strcmp(outcome, "blocked") == 0)
        return CHECK_HELD;
    if (proof_captured(p) && row->unless & UNLESS_BY_NAME)
        return CHECK_NOT_APPLICABLE;
    /* "succeeded", and "undecided" or no answer at all: what cannot be shown to hold does not hold */
    return promised(p->policy, row) ? CHECK_SURPRISE : CHECK_NOT_PROMISED;
}

void
attacks_check(struct proof *p, const json_t *result)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const json_t *got = find(result, rows[i].id);
        const char *outcome = json_string_value(json_object_get(got, "outcome"));
        const char *detail = json_string_value(json_object_get(got, "detail"));
        enum check_state state;
        char id[64];
        struct odd odd = ODD(p, id);

        snprintf(id, sizeof(id), "attack.%s", rows[i].id);
        if (outcome == NULL)
            outcome = "undecided";
        if (detail == NULL)
            detail = "the probe says nothing about it";
        state = judge(p, &rows[i], outcome);
        if (state == CHECK_SURPRISE) {
            odd_note(&odd, "%s", detail);
            proof_add_odd(p, &odd, rows[i].wall, rows[i].requirement, rows[i].title, "attack", true, detail);
        } else {
            proof_add(p, id, rows[i].wall, rows[i].requirement, rows[i].title, "attack", state, "%s", detail);
        }
    }
}

/* --- the probe's arguments ------------------------------------------------------------------------------------- */

/* Can @path (of the host) be reached for writing by what @policy opens? */
static bool
prove_opens(const struct policy *policy, const char *path)
{
    struct str at = str_of(path);

    if (policy->workspace.dir != NULL && policy->workspace.kind == WORKSPACE_RW &&
        path_within(at, str_of(policy->workspace.dir)))
        return true;
    for (size_t i = 0; i < policy->n_binds; i++)
        if (path_within(at, str_of(policy->binds[i].source)))
            return true;
    for (size_t i = 0; i < policy->allow_write.n; i++)
        if (path_within(at, str_of(policy->allow_write.v[i].value)))
            return true;
    return false;
}

struct arguments {
    const char **v;
    size_t n, max;
};

static void
prove_attacks_add(struct arguments *a, const char *name, const char *value)
{
    if (a->n + 3 > a->max)
        return;
    a->v[a->n++] = name;
    if (value != NULL)
        a->v[a->n++] = value;
    a->v[a->n] = NULL;
}

static bool
readable_here(const char *path)
{
    return access(path, R_OK) == 0;
}

/* Places that the policy closes and this user could read: literal ones (a glob is the engine's to expand). */
static void
add_closed_places(struct arguments *a, const struct policy *p)
{
    const struct policy_list *lists[] = { &p->credentials, &p->deny_read };

    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0, given = 0; i < lists[l]->n && given < 100; i++) {
            const struct policy_entry *e = &lists[l]->v[i];
            bool reopened = false;

            for (size_t k = 0; k < p->allow_read.n; k++)
                reopened |= path_within(str_of(e->value), str_of(p->allow_read.v[k].value)) ||
                            path_within(str_of(p->allow_read.v[k].value), str_of(e->value));
            if (reopened || e->value[0] != '/' || (!e->literal && strpbrk(e->value, "*?[{") != NULL) ||
                !readable_here(e->value))
                continue;
            prove_attacks_add(a, "--read", e->value);
            given++;
        }
}

static bool
bound_at(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && path_within(str_of(path), str_of(p->binds[i].dest)))
            return true;
    return false;
}

/* Trees of the host that nobody opened for writing, and what the policy closes for writing. */
static void
add_readonly_places(struct arguments *a, const struct policy *p)
{
    static const char *const system[] = { "/usr", "/usr/bin", "/usr/lib", "/bin", "/lib", "/sbin", "/opt" };
    static const char *const host[] = { "/etc", "/etc/passwd", "/var", "/home", "/root", "/boot", "/" };
    for (size_t i = 0; i < ARRAY_LEN(system); i++)
        if (!prove_opens(p, system[i]))
            prove_attacks_add(a, "--write", system[i]);
    /* of a private root too: it is the sandbox's own, and stays as it was made */
    for (size_t i = 0; i < ARRAY_LEN(host); i++)
        if (!prove_opens(p, host[i]) && !bound_at(p, host[i]))
            prove_attacks_add(a, "--write", host[i]);
    for (size_t i = 0, given = 0; i < p->deny_write.n && given < 100; i++)
        if (p->deny_write.v[i].value[0] == '/' && strpbrk(p->deny_write.v[i].value, "*?[{") == NULL) {
            prove_attacks_add(a, "--write", p->deny_write.v[i].value);
            given++;
        }
}

/* "1,20,300,": the numbers of what @list names, where it says anything in this mode. */
static void
add_calls(struct arguments *a, const char *name, const struct policy_list *list, char *text, size_t max)
{
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list->n && n + 8 < max; i++) {
        const struct call *c = call_find(str_of(list->v[i].value));

        if (c != NULL && c->nr >= 0)
            n += (size_t)snprintf(text + n, max - n, "%d,", c->nr);
    }
    if (n > 0)
        prove_attacks_add(a, name, text);
}

size_t
prove_arguments(const struct proof *p, const struct bait *b, const char *word, const char **args, size_t max)
{
    const struct policy *policy = p->policy;
    static char opened[1024], denied[4096], pid[16], port[16], root[48], exe[4096], needles[65536];
    struct arguments a = { .v = args, .n = 0, .max = max };
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    struct stat st;

    exe[n < 0 ? 0 : n] = '\0';
    snprintf(pid, sizeof(pid), "%d", (int)b->process);
    snprintf(port, sizeof(port), "%u", b->tcp_port);
    prove_attacks_add(&a, word, NULL);
    prove_attacks_add(&a, "--mode", policy_mode_name(policy->mode.v));
    if (p->bare) {
        prove_attacks_add(&a, "--bare", NULL);
        prove_attacks_add(&a, "--scratch", b->dir);       /* goes when the baits go, even when we are killed */
    }
    if (p->quick || strcmp(word, "posture") != 0)     /* once is enough: activity moves no files of the host */
        prove_attacks_add(&a, "--no-walk", NULL);
    add_calls(&a, "--opened", &policy->allow_calls, opened, sizeof(opened));
    add_calls(&a, "--denied", &policy->deny_calls, denied, sizeof(denied));
    prove_attacks_add(&a, "--host-pid", pid);
    prove_attacks_add(&a, "--host-name", b->name);
    prove_attacks_add(&a, "--tcp-port", port);
    prove_attacks_add(&a, "--unix-abstract", b->abstract);
    if (p->bare || !prove_opens(policy, b->file)) {
        prove_attacks_add(&a, "--unix-path", b->socket);
        prove_attacks_add(&a, "--host-file", b->file);
    }
    if (exe[0] == '/' && (p->bare || !prove_opens(policy, exe)))
        prove_attacks_add(&a, "--exe-path", exe);
    if (stat("/", &st) == 0) {
        snprintf(root, sizeof(root), "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
        prove_attacks_add(&a, "--host-root", root);
    }
    if (strcmp(word, "attacks") == 0)
        return a.n;
    if (strcmp(word, "posture") == 0 && !p->quick && !p->bare) {
        prove_needles(policy, needles, sizeof(needles));
        if (needles[0] != '\0')
            prove_attacks_add(&a, "--needles", needles);
    }
    add_closed_places(&a, policy);
    add_readonly_places(&a, policy);
    return a.n;
}
