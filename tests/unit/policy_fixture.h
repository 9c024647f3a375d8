/* what the policy tests share: a made-up caller, and one call that builds a policy from text and flags */
#ifndef CLOCHE_TESTS_POLICY_FIXTURE_H
#define CLOCHE_TESTS_POLICY_FIXTURE_H

#include <string.h>

#include "base/array.h"
#include "policy/policy.h"

#define N(a) ARRAY_LEN(a)

static const struct policy_host caller = {
    .home = "/home/u", .cwd = "/home/u/app", .memory_total = (uint64_t)8 << 30,
    .engines = (const char *const[]){ "native", "other", NULL } };

/* @flags: "--memory", "1g", "--allow-git-config", NULL ... A flag's value follows it when it takes one. */
static inline int
apply_flags(struct policy *p, const char *const *flags, struct err *err)
{
    for (size_t i = 0; flags != NULL && flags[i] != NULL; i++) {
        const struct policy_flag *flag = policy_flag_lookup(flags[i]);
        const char *name = flags[i];
        if (flag != NULL && flag->value != NULL)
            i++;
        if (policy_apply_flag(p, name, flag != NULL && flag->value != NULL ? flags[i] : NULL, &caller, err) < 0)
            return -1;
    }
    return 0;
}

/* A preset, then @text (may be NULL) in @format, then @flags, then validation. */
static inline int
make_policy(struct policy *p, enum policy_mode mode, enum policy_verb verb, const char *text,
            enum policy_format format, const char *const *flags, struct err *err)
{
    static const char *const names[] = { [POLICY_AUTO] = "settings", [POLICY_YAML] = "s.yaml",
                                         [POLICY_JSON] = "s.json", [POLICY_SRT] = "srt.json" };

    if (policy_init(p, mode, verb, &caller, err) < 0)
        return -1;
    if (text != NULL && policy_load_bytes(p, names[format], text, strlen(text), format, &caller, err) < 0)
        return -1;
    if (apply_flags(p, flags, err) < 0)
        return -1;
    return policy_validate(p, err);
}

static inline bool
list_has(const struct policy_list *list, const char *value)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].value, value) == 0)
            return true;
    return false;
}

#endif
