/* guest/guard_rules.h: what guard_rules*.c share
 *
 * A name is in the table once, with the roots in which a rule speaks of it: hundreds of writable folders have the same
 * names. A directory of a rule is one place in each of these roots.
 */
#ifndef CLOCHE_GUEST_GUARD_RULES_H
#define CLOCHE_GUEST_GUARD_RULES_H

#include "guest/guard_priv.h"

#define UP_MAX PATH_MAX         /* levels up from a directory; deeper is refused */

/* One name in one directory that a rule speaks of, and in which roots it does. */
struct name_entry {
    char *name;
    uint32_t hash;
    uint32_t dir;               /* index of the directory */
    uint32_t child;             /* PLACE_INTERIOR: the directory that this name is; else UINT32_MAX */
    struct guard_roots protect, allow, interior;
    struct guard_roots own;     /* protected, and it may be that a file of the sandbox's own lies over it */
    char *rule;                 /* the path of the rule, for reports */
};

/* A directory whose names matter: the roots themselves, or a place below them. Looked up anew for each decision: it may
 * not exist yet, and it may be replaced from outside. */
struct name_dir {
    char *path;                 /* relative to the root; "" is the root itself */
    struct guard_roots in;      /* that have such rules */
};

/* What a path of the rules leads to at this moment. Links on the way are followed: only the host can have made them. */
enum now {
    NOW_ABSENT,
    NOW_THERE,
    NOW_SHUT,                   /* cannot be told: behind a directory that may not be searched, which is told instead */
};

/* The directory that @index stands for in the root @root. */
enum now rules_dir_now(const struct rules *r, uint32_t index, size_t root, struct ident *out);
/* Walk the entries of one hash, from @step 0 on; NULL at the end. */
const struct name_entry *rules_next_entry(const struct rules *r, uint32_t hash, const char *name, size_t n,
                                          size_t *step);
/* The first root from @from on in which @dir_st is the directory of @e and @in has it; the number of roots: none. */
size_t rules_root_of(const struct rules *r, const struct name_entry *e, const struct guard_roots *in, size_t from,
                     const struct stat *dir_st);
/* "ROOT/PATH" of the rule, in @text. */
const char *rules_text(const struct rules *r, const struct name_entry *e, size_t root, char text[RULE_TEXT_MAX]);
/* Might a file system take @p for another name? Non-ASCII folding, short names, streams, cut dots and blanks. */
bool rules_is_ambiguous(const char *p, size_t n);

#endif
