/* policy/engines.c: names of engines and runtimes in lists, and what "auto" came to */
#include <string.h>

#include "policy/internal.h"
#include "policy/spec.h"

#define TOKEN_ID 32     /* hexadecimal digits, as cloche serve has them */

/* One that can be named: not "auto". Behind it may be "@" and the id of an agent's token. */
static bool
is_engine(const struct policy *p, struct str text)
{
    const char *at = text.n > TOKEN_ID ? text.p + text.n - TOKEN_ID - 1 : NULL;

    if (at != NULL && *at == '@') {
        size_t n = 0;
        while (n < TOKEN_ID && at[1 + n] != '\0' && strchr("0123456789abcdef", at[1 + n]) != NULL)
            n++;
        text.n -= n == TOKEN_ID ? TOKEN_ID + 1 : 0;
    }
    for (size_t i = 0; p->engines != NULL && p->engines[i] != NULL; i++)
        if (str_eq_c(text, p->engines[i]))
            return true;
    for (size_t i = 1; policy_runtime_words[i] != NULL; i++)
        if (str_eq_c(text, policy_runtime_words[i]))
            return true;
    return false;
}

int
entry_engine(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX], engines[ERR_HINT_MAX + 1] = "", runtimes[ERR_HINT_MAX + 1];

    if (is_engine(p, text)) {
        entry->value = arena_copy(p->arena, text);
        return entry->value != NULL ? 0 : policy_no_memory(err);
    }
    where_fail(w, err, "policy.engine.unknown", "%s is no engine, no runtime of one, and neither for an agent",
               show(text, shown));
    return err_hint(err, "engines: %.100s; runtimes: %.100s; for one agent with \"@\" and its token's id behind it",
                    p->engines != NULL ? policy_words(p->engines, engines) : "none",
                    policy_words(policy_runtime_words + 1, runtimes));
}

int
policy_choose(struct policy *p, const char *engine, const char *runtime, struct err *err)
{
    p->engine.p = arena_copy(p->arena, str_of(engine));
    p->runtime.p = arena_copy(p->arena, str_of(runtime != NULL ? runtime : "auto"));
    return p->engine.p != NULL && p->runtime.p != NULL ? 0 : policy_no_memory(err);
}
