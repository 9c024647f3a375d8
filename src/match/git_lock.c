/* match/git_lock.c: names of files that git renames into place (see git_shape.h) */
#include "match/git_shape.h"

static const struct str lock_end = STR_LIT(".lock"), shared = STR_LIT("sharedindex_"),
    next_index = STR_LIT("next-index-");

/* @with is in lower case. */
static bool
same(const char *p, struct str with)
{
    for (size_t i = 0; i < with.n; i++)
        if (ascii_lower(p[i]) != with.p[i])
            return false;
    return true;
}

bool
git_name_begins(struct str name, struct str with)
{
    return name.n > with.n && same(name.p, with);
}

bool
git_name_ends(struct str name, struct str with)
{
    return name.n > with.n && same(name.p + name.n - with.n, with);
}

bool
git_is_lock(struct str name)
{
    return git_name_ends(name, lock_end) || git_name_begins(name, shared);
}

struct str
git_without_lock(struct str name)
{
    while (git_name_ends(name, lock_end))
        name.n -= lock_end.n;
    return name;
}

bool
git_is_index_lock(struct str name)
{
    return git_name_begins(name, shared) ||
           (git_name_ends(name, lock_end) && git_name_begins(git_without_lock(name), next_index));
}
