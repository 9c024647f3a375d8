/* policy/flags.c: the policy's command line flags
 *
 * They are rows of the table (spec.h). Single values replace what the settings file said; flags that name a list's
 * entry add to it.
 */
#include "policy/internal.h"

const struct policy_flag *
policy_flag_next(const struct policy_flag *flag)
{
    const struct policy_spec *s = policy_specs;

    if (flag != NULL)
        s = SPEC_OF_FLAG(flag) + 1;
    for (; s < policy_specs + policy_n_specs; s++)
        if (s->flag.name != NULL)
            return &s->flag;
    return NULL;
}

const struct policy_flag *
policy_flag_lookup(const char *name)
{
    const struct policy_flag *flag = NULL;

    while ((flag = policy_flag_next(flag)) != NULL)
        if (strcmp(flag->name, name) == 0)
            return flag;
    return NULL;
}

/* @from with a name of the policy's own. */
static int
keep_origin(struct policy *p, const struct origin *from, struct where *out, struct err *err)
{
    *out = (struct where){ .from = *from };
    out->from.name = from->name != NULL ? arena_copy(p->arena, str_of(from->name)) : NULL;
    return from->name != NULL && out->from.name == NULL ? policy_no_memory(err) : 0;
}

int
policy_give_env(struct policy *p, const char *name, const char *value, const struct origin *from, struct err *err)
{
    struct str text = str_of(value);
    struct where w;

    for (size_t i = 0; i < p->n_env; i++)
        if (strcmp(p->env[i].name, name) == 0)
            return 0;
    return keep_origin(p, from, &w, err) < 0 ? -1 : set_env(p, str_of(name), &text, &w, err);
}

int
policy_allow_host(struct policy *p, const char *host, const struct origin *from, struct err *err)
{
    struct where w;

    if (keep_origin(p, from, &w, err) < 0)
        return -1;
    return list_add(p, &p->allow_domains, p->srt ? ENTRY_HOST_SRT : ENTRY_HOST, str_of(host), &w, err);
}

int
policy_trust_file(struct policy *p, const char *file, const struct origin *from, struct err *err)
{
    struct where w;

    if (keep_origin(p, from, &w, err) < 0)
        return -1;
    return list_add(p, &p->extra_ca, ENTRY_LITERAL, str_of(file), &w, err);
}

int
policy_put_image(struct policy *p, const char *name, struct err *err)
{
    p->image.p = arena_copy(p->arena, str_of(name));
    return p->image.p != NULL ? 0 : policy_no_memory(err);
}

int
policy_apply_flag(struct policy *p, const char *name, const char *value, const struct policy_host *host,
                  struct err *err)
{
    const struct policy_flag *flag = policy_flag_lookup(name);
    const struct policy_spec *s = flag != NULL ? SPEC_OF_FLAG(flag) : NULL;
    struct where w = { .from = { .kind = ORIGIN_FLAG }, .key = NULL };

    (void)host;     /* its facts were kept by policy_init */
    if (s == NULL || s->kind == SPEC_FLAG)
        return err_set(err, ERR_USAGE, "policy.flag.unknown", "%s is not a flag of the policy", name);
    w.from.name = flag->name;
    if ((value != NULL) != (flag->value != NULL)) {
        return err_set(err, ERR_USAGE, value != NULL ? "policy.flag.no-value" : "policy.flag.value",
                       value != NULL ? "%s takes no value" : "%s needs a value", name);
    }
    if (s->kind == SPEC_BOOL) {
        set_bool(p, s, true, &w);
        return 0;
    }
    return spec_set(p, s, str_of(value), &w, err);
}
