/* prove/prove_json.c: the proof for programs (see prove.h, docs/prove.md) */
#include <stdio.h>
#include <string.h>

#include "program/say.h"
#include "prove/prove.h"

static json_t *
check_json(const struct check *c, bool bare)
{
    static const char *const states[] = { "held", "surprise", "not-promised", "not-applicable" };
    static const char *const outcomes[] = { "refused-by-host", "works", "works", "not-applicable" };
    json_t *detail = json_string(c->detail);

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "id", c->id, "wall", c->wall, "requirement", c->requirement,
                     "title", c->title, "when", c->when, "state", bare ? outcomes[c->state] : states[c->state],
                     "detail", detail != NULL ? detail : json_null());
}

static json_t *
proof_json(const struct proof *p, bool bare)
{
    json_t *checks = json_array(), *not_promised = json_array();
    const char *text;

    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(checks, check_json(&p->checks[i], bare));
    for (size_t i = 0; (text = prove_not_promised(p, i)) != NULL; i++)
        json_array_append_new(not_promised, json_string(text));
    return json_pack("{s:s, s:b, s:i, s:i, s:o, s:o}", "mode", p->mode, "wall", !p->bare, "n_checks", (int)p->n,
                     "n_surprises", (int)proof_count(p, CHECK_SURPRISE), "not_promised", not_promised, "checks",
                     checks);
}

int
prove_print_json(const struct proofs *all)
{
    json_t *modes = json_array(), *skipped = json_array(), *out;
    size_t checks = 0, surprises = 0;

    for (size_t i = 0; i < all->n; i++) {
        checks += all->v[i]->n;
        surprises += proof_count(all->v[i], CHECK_SURPRISE);
        json_array_append_new(modes, proof_json(all->v[i], all->bare));
    }
    for (size_t i = 0; i < all->n_skipped; i++)
        json_array_append_new(skipped, json_pack("{s:s, s:s}", "mode", all->skipped[i], "why", all->skipped_why[i]));
    out = json_pack("{s:i, s:s, s:s, s:b, s:i, s:i, s:o, s:o}", "version", 1, "cloche", CLOCHE_VERSION, "engine",
                    engine_name(all->n > 0 ? all->v[0]->policy : NULL), "bare", (int)all->bare, "n_checks",
                    (int)checks, "n_surprises", (int)surprises, "skipped", skipped, "modes", modes);
    return cli_json(out, JSON_INDENT(2)) == 0 && fflush(stdout) == 0 ? 0 : -1;
}
