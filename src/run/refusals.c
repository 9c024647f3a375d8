/* run/refusals.c: see refusals.h */
#include "run/refusals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "egress/why_host.h"
#include "match/path.h"
#include "wall/addresses.h"
#include "workspace/quote.h"

#define TOLD      5         /* lines; the rest is counted */
#define TEXT_MAX  8192

/* The host's, looked up once. */
struct addresses {
    struct ip v[ADDRESSES_MAX];
    size_t n;
    bool known;
};

/* By the rules at the start, in the words of `cloche why --host`. False where they say nothing about it: a rule that
 * looks at methods or tools refused it, or rules were changed since. */
static bool
explain_connection(const struct policy *p, const struct addresses *own, const char *target, struct buf *line)
{
    struct err err = ERR_INIT;
    struct why why;

    if (!own->known || egress_why_host(p, own->v, own->n, target, NULL, &why, &err) < 0 || why.allowed ||
        !quote_harmless(str_of(why.text)) || !quote_harmless(str_of(why.flag)))
        return false;
    buf_printf(line, ": %s%s%s%s", why.text, why.flag[0] != '\0' ? " (" : "", why.flag,
               why.flag[0] != '\0' ? " would open it)" : "");
    return true;
}

static void
tell(const struct policy *p, const struct addresses *own, const struct session_denied *d)
{
    cleanup_buf struct buf line = BUF_INIT(TEXT_MAX);

    buf_puts(&line, "  ");
    quote_name(&line, "", str_of(d->op));
    buf_puts(&line, " ");
    quote_name(&line, "", str_of(d->target));
    if (d->count > 1)
        buf_printf(&line, ", %llu times", (unsigned long long)d->count);
    if (strcmp(d->op, "connect") != 0 || !explain_connection(p, own, d->target, &line)) {
        buf_puts(&line, strcmp(d->op, "connect") == 0 ? ": " : ": rule ");
        quote_name(&line, "", str_of(d->rule));
    }
    fprintf(stderr, "%.*s\n", (int)line.n, (const char *)line.p);
}

/* Below a folder that was bound to be written to. */
static const struct policy_bind *
bind_around(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && !p->binds[i].own && strcmp(p->binds[i].source, path) != 0 &&
            path_within(str_of(path), str_of(p->binds[i].source)))
            return &p->binds[i];
    return NULL;
}

static bool
is_opened(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->allow_read.n; i++)
        if (path_within(str_of(path), str_of(p->allow_read.v[i].value)))
            return true;
    return false;
}

/* A login that a run saves in a folder that was bound is a place for credentials to the next one, which cannot read it:
 * no call of it is seen. */
static void
tell_closed(const struct policy *p)
{
    size_t told = 0;

    for (size_t i = 0; i < p->credentials.n; i++) {
        const char *path = p->credentials.v[i].value;
        cleanup_buf struct buf line = BUF_INIT(TEXT_MAX);

        if (bind_around(p, path) == NULL || is_opened(p, path) || access(path, F_OK) < 0)
            continue;
        if (told++ == 0)
            fprintf(stderr, "cloche: a run cannot read these logins that it finds in what is bound:\n");
        if (told > TOLD)
            break;
        buf_puts(&line, "  ");
        quote_name(&line, "", str_of(path));
        buf_puts(&line, ": --allow-read ");
        quote_name(&line, "", str_of(path));
        fprintf(stderr, "%.*s would open it\n", (int)line.n, (const char *)line.p);
    }
}

void
refusals_tell(const struct session *s, const struct session_result *r)
{
    const struct policy *p = r->weakened ? &r->weaker : s->policy;
    struct addresses own;
    struct err err = ERR_INIT;
    uint64_t rest = r->denied_more;
    size_t told = r->n_denied < TOLD ? r->n_denied : TOLD;

    if (p->mode.v != MODE_OFF)
        tell_closed(p);
    if (r->n_denied == 0)
        return;
    own.known = interface_addresses(own.v, &own.n, &err) == 0;
    fprintf(stderr, "cloche: this was refused (--quiet does not tell):\n");
    for (size_t i = 0; i < told; i++)
        tell(p, &own, &r->denied[i]);
    for (size_t i = told; i < r->n_denied; i++)
        rest += r->denied[i].count;
    if (rest > 0)
        fprintf(stderr, "  and %llu more: --report FILE has them%s\n", (unsigned long long)rest,
                r->network ? ", `cloche net log` the connections" : "");
}
