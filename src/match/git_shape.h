/* match/git_shape.h: which directory git takes for a repository, and what in it makes git run something
 *
 * Git asks for a shape, not for a name: a directory is a repository when it has HEAD, objects and refs, or HEAD and
 * a commondir that leads to the other two. Any directory may be given that shape, so every rule here is about it.
 *
 * Pure: the caller looks at the tree. Names are compared without regard to ASCII case, since the file system may not
 * regard it either.
 */
#ifndef CLOCHE_MATCH_GIT_SHAPE_H
#define CLOCHE_MATCH_GIT_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "match/git_config.h"

/* What of a repository's shape a directory entry is. */
enum git_part {
    GIT_PART_NONE = 0,
    GIT_PART_HEAD = 1 << 0,
    GIT_PART_OBJECTS = 1 << 1,
    GIT_PART_REFS = 1 << 2,
    GIT_PART_COMMONDIR = 1 << 3,
};

/* The part that an entry called @name would be, of whatever type it is. */
enum git_part git_part_of(struct str name);
/* Whether a directory with these @parts (ORed) is a git place: objects and refs, or HEAD and commondir. HEAD is not
 * asked for beside objects and refs, and what it holds is never asked: it can be written later. */
bool git_parts_place(unsigned parts);

/* @name against @want, which is in lower case. */
bool git_named(struct str name, const char *want);

/* What an entry of a git place is to git. */
enum git_state {
    GIT_STATE_NONE = 0,     /* no matter */
    GIT_STATE_CONFIG,       /* config, config.worktree: a plain file; git_config_judge */
    GIT_STATE_HOOKS,        /* hooks: must be a plain directory */
    GIT_STATE_HOOK,         /* hooks/NAME, at any depth below: git may run it; must not be */
    GIT_STATE_SAMPLE,       /* hooks/NAME.sample: git never runs it; may be a plain file, not a directory or link */
    GIT_STATE_FILE,         /* a `.git` that is a plain file, anywhere: git_file_harmless */
    GIT_STATE_COMMONDIR,    /* a plain file that says where the rest of the repository is: git_common_harmless */
    GIT_STATE_REDIRECT,     /* gitdir: must be a plain file; says where the `.git` of a work tree is */
    GIT_STATE_DIR,          /* rebase-merge, sequencer, remotes, branches, gitweb ...: must be a plain directory */
    GIT_STATE_TODO,         /* what an interrupted rebase or pick does next: a plain file; git_todo_harmless */
    GIT_STATE_OPTION,       /* with which options it goes on: a plain file; git_option_harmless */
    GIT_STATE_REMOTE,       /* remotes/NAME, branches/NAME: a remote in the old form; must not be */
    GIT_STATE_SERVER,       /* what git instaweb runs, or signals: gitweb/NAME, pid; must not be */
    GIT_STATE_INDEX,        /* index, sharedindex.*: a plain file; git_index_harmless() */
    GIT_STATE_RERERE,       /* MERGE_RR: files that git copies, whatever they are, into rr-cache; must be empty */
    GIT_STATE_COPY,         /* GIT_COPY_NAME…: nobody may make it, write it or put another in its place */
    GIT_STATE_LEAD,         /* a symbolic link where git writes (git_writes); must not be */
};

/* What the entry at @path below a git place is ("config", "hooks/pre-commit", "rebase-merge/git-rebase-todo"); @path is
 * relative and normal. Never GIT_STATE_FILE, which is not about places. */
enum git_state git_state_of(struct str path);
/* The same, for the entry @name of the git place's subdirectory @dir ("" for the place itself). */
enum git_state git_state_in(struct str dir, struct str name);
/* git_lock.c. Whether @name is one of a file which git renames into place when it is complete (`index.lock`,
 * `sharedindex_…`): what git_state_in() says of it is what it says of the file that it becomes, whoever renames it. */
bool git_is_lock(struct str name);
/* One that is an index: of a split one, or what `git commit -- PATH` shows its hooks. */
bool git_is_index_lock(struct str name);
/* The name that a file called @name gets when it is complete, as far as that is said by `.lock`: git makes a lock of a
 * lock too, where GIT_INDEX_FILE leads it to one (in a hook). */
struct str git_without_lock(struct str name);
/* Whether there is more of @name than this beginning or end, which is in lower case. */
bool git_name_begins(struct str name, struct str with);
bool git_name_ends(struct str name, struct str with);
/* A judged copy that has not got its name yet is called so, with 16 hexadecimal digits behind: GIT_STATE_COPY. */
#define GIT_COPY_NAME   "judged-copy-"
#define GIT_COPY_DIGITS 16
/* "git configuration", "git hook" ...: for messages. NULL for GIT_STATE_NONE. */
const char *git_state_name(enum git_state state);

/* Whether git by itself writes, renames over or removes what is at @path below a git place (the index, messages, logs,
 * refs, worktrees ...), following a symbolic link that it finds there: so there must be none. @path is relative and
 * normal. */
bool git_writes(struct str path);
/* Whether that is so of everything below the directory @path of a git place. */
bool git_writes_below(struct str path);

/* Of @path, relative to the tree's top, the last part that begins with ".git/modules": how many names it has (".git" is
 * one, ".git/modules/lib" three). 0: it is in no such place, where git keeps the repositories of submodules. */
size_t git_modules_depth(struct str path);
/* How many directories core.worktree may lead up from the git place at @path: from a submodule's to the repository that
 * holds it, from any other to what lies around it; from the tree's top itself nowhere. So it stays in the tree also
 * when the place is moved with what holds it (the guard sees to the rest). For git_config_judge(). */
size_t git_worktree_ups(struct str path);

/* Whether a regular file that is @state may hold @text: a hook and an old remote never, a sample always; configuration,
 * lists, options and redirections are judged; an index never, for that git_index_harmless() is asked. @name is the
 * entry's own name (an option file's rule depends on it), @depth as for git_config_judge. Where a commondir leads
 * depends on the place: git_common_harmless() besides; here it only must be well-formed. @fault (may be NULL) says the
 * key of a configuration, else it is "". */
bool git_state_harmless(enum git_state state, struct str name, struct str text, size_t depth,
                        struct git_config_fault *fault);

/* Whether a todo list holds only commands that change commits: none that runs a program. */
bool git_todo_harmless(struct str text);
/* The same of GIT_STATE_OPTION, by the name of the file without `.lock`. */
bool git_option_harmless(struct str name, struct str text);

/* Where a `.git` file ("gitdir: PATH\n"), a commondir or a gitdir file ("PATH\n") leads, as git reads it: a view into
 * @text. False when git would not take it. */
bool git_file_target(struct str text, struct str *target);
bool git_redirect_target(struct str text, struct str *target);

/* Whether a repository may be led to by such a file. What the owner's git checks out can become a repository of any
 * content, by any name but one: git takes no `.git` from a tree. So what a file leads to is a `.git`, or one of the
 * submodules and worktrees that it holds, where every configuration was judged and no link is (guest/guard_git.h).
 * @place is where the git place lies that has the commondir; one that is in no `.git` may share what git itself would
 * find above it. */
bool git_file_harmless(struct str text);
bool git_common_harmless(struct str text, struct str place);
/* What git writes into a worktree's commondir. */
#define GIT_COMMON_TEXT "../..\n"
/* Whether a component of @path is `.git`. */
bool git_below_dot_git(struct str path);

/* Whether HEAD may hold @text: "ref: refs/..." or an object's name, one line. */
bool git_head_harmless(struct str text);

#define GIT_HEAD_MAX  4096          /* bytes of HEAD, of a redirect, of an option file that are read */
#define GIT_TODO_MAX  (1u << 20)    /* bytes of a todo list */

#endif
