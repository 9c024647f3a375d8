/* policy/field.c: names of header fields
 */
#include <string.h>

#include "policy/internal.h"

/* A token of RFC 9110 5.6.2. */
static bool
is_name(struct str text)
{
    if (text.n == 0 || text.n > POLICY_STRIP_NAME_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", text.p[i]) != NULL)
            return false;
    return true;
}

int
entry_field(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];

    if (!is_name(text)) {
        where_fail(w, err, "policy.network.header", "%s is not a header's name", show(text, shown));
        return err_hint(err, "such as set-cookie, up to %d bytes", POLICY_STRIP_NAME_MAX);
    }
    entry->value = arena_copy(p->arena, text);
    return entry->value != NULL ? 0 : policy_no_memory(err);
}
