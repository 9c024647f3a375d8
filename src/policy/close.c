/* policy/close.c: a network that a later layer closes
 *
 * `network: none` above settings that open hosts means less than the settings do, and asking for less is never an
 * error: what earlier layers said of the network goes. What the same layer says stays, so that validation finds the
 * contradiction.
 */
#include <string.h>

#include "policy/internal.h"

static bool
earlier(const struct origin *from, const struct origin *now)
{
    if (from->kind != now->kind)
        return from->kind != ORIGIN_BUILTIN;
    return now->kind == ORIGIN_FILE && strcmp(from->name, now->name) != 0;
}

/* Entries of a list, or records, that earlier layers said. */
static size_t
drop(char *v, size_t n, size_t size, size_t from, const struct origin *now)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        if (!earlier((const struct origin *)(const void *)(v + i * size + from), now))
            memmove(v + left++ * size, v + i * size, size);
    return left;
}

static void
close_row(struct policy *p, const struct policy_spec *s, const struct origin *now)
{
    struct policy_list *list = spec_at(p, s);
    size_t n;
    char *v;

    if (s->kind == SPEC_LIST) {
        list->n = drop((char *)list->v, list->n, sizeof(*list->v), offsetof(struct policy_entry, from), now);
    } else if (s->kind == SPEC_RECORDS) {
        v = (char *)(uintptr_t)spec_records(p, s, &n);
        n = drop(v, n, s->size, s->from, now);
        memcpy((char *)spec_at(p, s) + sizeof(v), &n, sizeof(n));
    } else if (policy_spec_value(p, s) != 0 && earlier(policy_spec_origin(p, s), now)) {
        if (s->kind == SPEC_TEXT)
            ((struct policy_string *)spec_at(p, s))->p = NULL;
        else
            (void)spec_put(p, s, 0, now);
    }
}

void
close_network(struct policy *p, const struct origin *now)
{
    if (p->srt)
        return;         /* its rules may name hosts of a network that is closed */
    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++)
        if ((s->traits & SPEC_CLOSES) != 0)
            close_row(p, s, now);
}
