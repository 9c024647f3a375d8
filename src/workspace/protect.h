/* workspace/protect.h: which of a sandbox's changes are never taken over silently (pure functions)
 *
 * Some files of a project are programs of its owner in disguise: git runs .git/hooks and obeys .git/config, editors
 * obey .vscode. A change to them waits for a person who names the path.
 */
#ifndef CLOCHE_WORKSPACE_PROTECT_H
#define CLOCHE_WORKSPACE_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct protect {
    const char *const *names;       /* "a" or "a/b": protected wherever these names follow each other (those of a home
                                     * directory: planted_of_home()); borrowed */
    size_t n_names;
    const char *const *places;      /* protected at this one place, relative to the project; borrowed */
    size_t n_places;
    size_t n_given;                 /* the last of @names, which a user added: they count wherever they are */
};

enum protect_match {
    PROTECT_NOT,
    PROTECT_ABOVE,      /* a protected name may lie below: it can change inside, but neither go nor be replaced */
    PROTECT_AT,         /* is protected, or lies below something that is */
};

/* What @path (relative, normal) is. Names are compared without regard to ASCII case, since the file system may not
 * regard it either. Beside the given names: what redirects git to another configuration (.git/commondir, and hooks and
 * config below .git/modules). @there: the project has it already. Names that are obeyed in a home directory only count
 * at the project's top; below it only when they are there, and never in node_modules, where the guard does not look. */
enum protect_match protect_test(const struct protect *rules, struct str path, bool there);

/* The same where it is known what the folder is that @path is in (PROTECT_NOT: the project), without looking at all of
 * @path for each rule. */
enum protect_match protect_below(const struct protect *rules, struct str path, enum protect_match above, bool there);

/* Whether no rule but those with a name of git's (".git/config", .git/commondir ...) protects @path. */
bool protect_only_git(const struct protect *rules, struct str path);

/* Whether a symlink with @target in the directory @depth levels below the project surely stays inside: relative, `..`
 * only at its beginning and not more than @depth of them. (After any other component `..` may lead elsewhere, since
 * that component may be a symlink.) */
bool protect_link_inside(struct str target, size_t depth);

#endif
