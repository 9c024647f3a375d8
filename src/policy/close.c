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

static void
drop_entries(struct policy_list *list, const struct origin *now)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (!earlier(&list->v[i].from, now))
            list->v[n++] = list->v[i];
    list->n = n;
}

void
close_network(struct policy *p, const struct origin *now)
{
    struct policy_list *const lists[] = { &p->allow_domains, &p->deny_domains, &p->registries, &p->extra_ca };
    size_t n = 0;

    if (p->srt)
        return;         /* its rules may name hosts of a network that is closed */
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        drop_entries(lists[i], now);
    if (p->preset.p != NULL && earlier(&p->preset.from, now))
        p->preset.p = NULL;
    if (p->ask.v && earlier(&p->ask.from, now))
        p->ask = (struct policy_bool){ .v = false, .from = *now };
    /* a placeholder is exchanged in a network by name only */
    for (size_t i = 0; i < p->n_secrets; i++)
        if (!earlier(&p->secrets[i].from, now))
            p->secrets[n++] = p->secrets[i];
    p->n_secrets = n;
    n = 0;
    for (size_t i = 0; i < p->n_secret_files; i++)
        if (!earlier(&p->secret_files[i].from, now))
            p->secret_files[n++] = p->secret_files[i];
    p->n_secret_files = n;
}
