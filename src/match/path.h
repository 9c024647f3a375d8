/* match/path.h: path arithmetic on text
 *
 * Nothing here asks the file system: symbolic links do not exist at this level. Whoever opens a path afterwards
 * resolves it with openat2 and its RESOLVE_ flags (wall/). Lengths are carried and a NUL byte is a fault, so that
 * "/safe\0/etc" never means two things.
 *
 * Globs: `*` and `?` within one name, `[a-z]` and `[!a-z]` sets, a name of exactly `**` for any number of names
 * (none included), `\` before a special character takes its meaning away. `*` matches names that begin with a dot.
 */
#ifndef CLOCHE_MATCH_PATH_H
#define CLOCHE_MATCH_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define PATH_TEXT_MAX 4095      /* bytes of a path, as PATH_MAX less its NUL */
#define PATH_NAME_MAX 255       /* bytes of one name */

enum path_fault {
    PATH_OK = 0,
    PATH_EMPTY,
    PATH_NUL,               /* holds a NUL byte */
    PATH_TOO_LONG,
    PATH_NAME_TOO_LONG,
    PATH_RELATIVE,          /* relative, and no base was given */
    PATH_ESCAPES,           /* `..` leads above the root */
    PATH_GLOB_PARENT,       /* `..` after a wildcard: which directory it means depends on the tree */
    PATH_GLOB_SYNTAX,       /* unclosed `[`, or a lone `\` at the end */
};

/* "holds a NUL byte", for messages. */
const char *path_fault_text(enum path_fault fault);

/* Make @path absolute and lexically normal (no `.`, `..`, empty names, trailing `/`) into @out, NUL-terminated, its
 * length in @n. A relative @path is taken below @base, which must be absolute, or empty for "refuse". With @glob the
 * text is a pattern: its syntax is checked, @base (a place, never a pattern) is escaped, and a trailing `**` is
 * dropped, since a rule on a directory covers everything below it. @cap must be at least PATH_TEXT_MAX + 1. */
enum path_fault path_normalise(struct str path, struct str base, bool glob, char *out, size_t cap, size_t *n);

/* @path, as something below the folder @root is asked for, in one form, in its own place (which has room for "."):
 * relative to @root, "." of @root itself; one slash between two names, none at the end, no `.`, and each `..` taken
 * together with the name before it. A `..` that leads out stays in front, and what is absolute and not below @root
 * stays absolute. @root is absolute; what is not, as "", has nothing below it but what is relative. Never fails. */
void path_below(const char *root, char *path);

/* Whether a normal @path is @dir or lies below it, by whole names: "/a/bc" is not within "/a/b". */
bool path_within(struct str path, struct str dir);

/* The next folder of *@list (NULL: there is none), which has ':' between them, as PATH; it may be empty. */
bool path_list_next(const char **list, struct str *folder);
/* Whether @folder is one of them. */
bool path_list_has(const char *list, const char *folder);

/* Whether @text has a character that is special in a glob. */
bool path_has_glob(struct str text);

/* Bytes of the longest leading directory of @pattern without any special character ("/a/b" of "/a/b/x*y/z"); the
 * rest starts after the following slash. The whole length when nothing is special. */
size_t path_glob_prefix(struct str pattern);

/* Whether the normal @path matches the whole of @pattern. Time is polynomial in the lengths, whatever the pattern. */
bool path_glob_match(struct str pattern, struct str path);

/* Whether @pattern has more names than @path, or any number ("**"): below @path something may match it. */
bool path_glob_goes_below(const char *pattern, const char *path);

/* Whether @pattern (a glob, or plain text with @literal) matches @path or one of the directories above it. @depth
 * (may be NULL) is how many bytes of @path the longest such match takes: the measure of "more specific". */
bool path_covers(struct str pattern, bool literal, struct str path, size_t *depth);

#endif
