/* egress/strip.c: see strip.h */
#include "egress/strip.h"

#include <string.h>

static char
fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '_' || c == '.' ? '-' : c;
}

static bool
same(const char *ours, struct str name)
{
    if (strlen(ours) != name.n)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (ours[i] != fold(name.p[i]))
            return false;
    return true;
}

int
strip_add(struct strip *s, struct str name)
{
    if (s->n == POLICY_STRIP_MAX || name.n > POLICY_STRIP_NAME_MAX || !http1_is_token(name))
        return -1;
    for (size_t i = 0; i < name.n; i++)
        s->names[s->n][i] = fold(name.p[i]);
    s->names[s->n++][name.n] = '\0';
    return 0;
}

const struct http1_head *
strip_head(const struct strip *s, const struct http1_head *head, struct http1_head *room)
{
    if (s == NULL || s->n == 0)
        return head;
    *room = *head;
    room->n_fields = 0;
    for (size_t i = 0; i < head->n_fields; i++) {
        bool out = false;
        for (size_t k = 0; k < s->n && !out; k++)
            out = same(s->names[k], head->fields[i].name);
        if (!out)
            room->fields[room->n_fields++] = head->fields[i];
    }
    return room;
}
