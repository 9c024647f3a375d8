/* policy/calls.c: system calls that a policy opens or closes beside its mode's list (match/calls.h) */
#include "match/calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "policy/internal.h"
#include "policy/why.h"

static enum call_list
list_of(const struct policy *p)
{
    return p->mode.v == MODE_LIGHT ? CALLS_LIGHT : p->mode.v == MODE_MAX ? CALLS_MAX : CALLS_STANDARD;
}

int
entry_call(struct policy *p, struct str text, bool allow, struct policy_entry *entry, const struct where *w,
           struct err *err)
{
    const struct call *c = call_find(text);
    char shown[SHOW_MAX];

    if (c == NULL) {
        where_fail(w, err, "policy.syscall.unknown", "%s is not a system call that is known here", show(text, shown));
        return err_hint(err, "its name as in syscalls(2), such as \"kcmp\"; docs/syscalls.md lists them");
    }
    if (!allow && call_is_vital(c)) {
        where_fail(w, err, "policy.syscall.vital", "without %s nothing could start or end", c->name);
        return err_hint(err, "leave it out");
    }
    if (allow && !call_opens(c) && c->answer[CALLS_STANDARD] != 0) {
        where_fail(w, err, "policy.syscall.never", "no policy opens %s: %s", c->name, c->why);
        return err_hint(err, "docs/syscalls.md#calls-of-your-own has those that a policy may open, and why not others");
    }
    entry->value = arena_copy(p->arena, text);
    return entry->value != NULL ? 0 : policy_no_memory(err);
}

static const struct policy_entry *entry_of(const struct policy_list *list, const struct call *c);

/* What System V IPC holds is memory, also when nobody has it attached any more. The guest counts it, where no cgroup
 * does, by the call of each kind that asks for that, behind the same list (guest/watch.c). */
static int
check_counted(const struct policy *p, const struct policy_entry *e, const struct call *c, enum call_list list,
              struct err *err)
{
    static const char *const counts[] = { "shmctl", "semctl", "msgctl" };

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const struct call *with = call_find(str_of(counts[i]));
        if (strncmp(c->name, counts[i], 3) != 0 || with == NULL || with->answer[list] == 0 ||
            entry_of(&p->allow_calls, with) != NULL)
            continue;
        REFUSE(&e->from, NULL, "policy.syscall.with", "%s is opened only together with %s, which counts what it holds",
               c->name, counts[i]);
        return err_hint(err, "open %s too", counts[i]);
    }
    return 0;
}

/* In a mode where no list may let it through; in others it passed (set_list.c). */
int
check_calls(const struct policy *p, struct err *err)
{
    const enum call_list list = list_of(p);

    for (size_t i = 0; p->mode.v != MODE_OFF && i < p->allow_calls.n; i++) {
        const struct policy_entry *e = &p->allow_calls.v[i];
        const struct call *c = call_find(str_of(e->value));

        if (c == NULL || c->answer[list] == 0)
            continue;
        if (c->opens[list]) {
            if (check_counted(p, e, c, list, err) < 0)
                return -1;
            continue;
        }
        REFUSE(&e->from, NULL, "policy.syscall.mode", "mode %s never opens %s: %s", policy_mode_name(p->mode.v),
               e->value, list == CALLS_LIGHT ? "without namespaces it would reach what is the host's" : c->why);
        return err_hint(err, "leave it out, or use --mode standard");
    }
    return 0;
}

static const struct policy_entry *
entry_of(const struct policy_list *list, const struct call *c)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].value, c->name) == 0)
            return &list->v[i];
    return NULL;
}

static void
why_listed(const struct policy *p, const struct call *c, enum call_list list, struct why *out)
{
    const int answer = c->answer[list];

    out->source = p->mode.from;
    out->allowed = answer == 0 || answer == CALLS_RULES;
    out->reason = answer == 0 ? "syscall-list" : answer == CALLS_RULES ? "syscall-arguments" : "syscall-refused";
    if (answer == CALLS_RULES)
        why_say(out, "its arguments, and what else the policy opens, decide (%s)", c->why);
    else
        why_say(out, "mode %s %s (%s)", policy_mode_name(p->mode.v), answer == 0 ? "has it on its list" :
                answer == ENOSYS ? "answers ENOSYS" : "answers EPERM", c->why);
    if (answer > 0 && c->opens[list])
        snprintf(out->flag, sizeof(out->flag), "--allow-syscall %s", c->name);
}

int
policy_why_call(const struct policy *p, const char *name, struct why *out, struct err *err)
{
    const struct call *c = call_find(str_of(name));
    const struct policy_entry *denied, *opened;
    const enum call_list list = list_of(p);
    const struct where w = { .from = p->mode.from };
    char shown[SHOW_MAX];

    *out = (struct why){ .allowed = true, .reason = "off", .source = p->mode.from };
    if (c == NULL) {
        where_fail(&w, err, "policy.syscall.unknown", "%s is not a system call that is known here",
                   show(str_of(name), shown));
        return err_hint(err, "its name as in syscalls(2), such as \"kcmp\"");
    }
    denied = entry_of(&p->deny_calls, c);
    opened = c->opens[list] ? entry_of(&p->allow_calls, c) : NULL;
    if (p->mode.v == MODE_OFF) {
        why_say(out, "mode off has no filter");
    } else if (denied != NULL || opened != NULL) {
        out->allowed = denied == NULL;
        out->reason = denied != NULL ? "syscall-denied" : "syscall-opened";
        out->source = (denied != NULL ? denied : opened)->from;
        snprintf(out->rule, sizeof(out->rule), "%s", c->name);
        why_say(out, denied != NULL ? "syscalls.deny names it" : "syscalls.allow names it");
    } else {
        why_listed(p, c, list, out);
    }
    return 0;
}
