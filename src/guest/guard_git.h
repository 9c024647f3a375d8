/* guest/guard_git.h: the name guard's part about state that git executes
 *
 * Theory: git runs what a repository's configuration, hooks and todo lists name, and takes any directory of the right
 * shape for a repository (match/git_shape.h). So a name alone says nothing, but where it lies does. A directory is a
 * git place when it has the shape, or is called `.git`. Files of a git place that are judged by their content come
 * into being by rename only, as git itself makes them: the guard reads what is to have the name, judges it, and gives
 * the name to a copy that nobody else ever had open. So no descriptor, mapping or hard link from before reaches it. A
 * directory that is to become a git place is looked through first, by the same rules.
 *
 * What is there was judged when it came, or is the host's. Nothing is asked of the file system for a name that cannot
 * matter: the path of its directory, which the guard knows anyhow, tells.
 */
#ifndef CLOCHE_GUEST_GUARD_GIT_H
#define CLOCHE_GUEST_GUARD_GIT_H

#include "guest/guard_priv.h"
#include "match/git_shape.h"

/* What comes to a name. */
enum git_arrival {
    GIT_ARRIVES_FILE,           /* a new file, to be written by who makes it */
    GIT_ARRIVES_DIR,            /* a new directory */
    GIT_ARRIVES_LINK,           /* another name of a file */
    GIT_ARRIVES_OTHER,          /* a symbolic link, a device, a FIFO, a socket */
};

#define GIT_RULE_MAX 160

/* Where a git place lies, for judging what is in it. */
struct git_site {
    struct str path;            /* as rules_path(); "": it cannot be told */
    size_t depth;               /* for git_config_judge() */
};

/* What a directory is to git, for one name in it. */
struct git_spot {
    enum git_state state;       /* of the name */
    bool completes;             /* the directory becomes a git place by the name */
    bool own;                   /* the name is `.git`: what comes there is a git place */
};

/* May @what come to @name (without a '/' behind it) in the directory @dir? 0 or EACCES with @rule said. A directory
 * that becomes a git place by it has had its judged files exchanged for copies then. */
int git_may_make(struct guard *g, int dir, const struct stat *dir_st, struct str name, enum git_arrival what,
                 char rule[GIT_RULE_MAX]);
/* Is @dir a git place, or does @name matter to none? Asked before the name is made, for git_made(). */
bool git_is_whole(struct guard *g, int dir, const struct stat *dir_st, struct str name);
/* @what has come to @name: may it be there? @whole: what git_is_whole() said. 0 or EACCES with @rule said. */
int git_made(struct guard *g, int dir, const struct stat *dir_st, struct str name, enum git_arrival what, bool whole,
             char rule[GIT_RULE_MAX]);
/* The same of what has come from (@from, @from_name) by a rename. */
int git_came(struct guard *g, int from, const char *from_name, const struct stat *st, int dir,
             const struct stat *dir_st, const char *name, bool whole, char rule[GIT_RULE_MAX]);
/* May the file that is at @name be written to where it is? */
int git_may_write(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX]);
/* It was opened for writing, or made for that: the same, but for HEAD at the top, which may be new. */
int git_opened(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX]);
/* Refused by git_may_write() or git_may_make(), may it be written in place all the same, if it is judged when it is
 * complete? Only what nobody reads at once: options of an interrupted command, redirections, an index (git's own comes
 * by rename), and files that are not there yet. */
bool git_may_write_later(struct guard *g, int dir, const struct stat *dir_st, struct str name, bool there);
/* guard_git_move.c. @path below the top of the tree that it is in; false when that cannot be told. */
bool git_below_top(const struct guard *g, struct str path, struct str *below);
/* Do the repositories in the directory @from_name keep their work trees in the project when it comes to @to_name? Else
 * @why. */
bool git_keeps_worktrees(struct guard *g, int from, struct str from_name, int to, const struct stat *to_st,
                         struct str to_name, const char **why);
/* guard_git_own.c. Has nothing on this absolute path a name that matters to git, wherever it is? Then no question
 * about git is. */
bool git_no_name(struct str path);
/* May something that is neither directory nor plain file come to @name in @dir, which lies at @path?
 * Not where git writes by itself: it would follow the link. 0 or EACCES with @rule said. */
int git_may_lead(int dir, struct str path, struct str name, char rule[GIT_RULE_MAX]);
/* The same of what the directory @from_name brings with it to @name in @dir; it is looked through. */
int git_may_bring_leads(int from, const char *from_name, int dir, struct str path, struct str name,
                        char rule[GIT_RULE_MAX]);
/* Each directory of those below @from_name, and it itself, @put with its path, as they come to @path. 0, or what @put
 * said; EACCES with @rule when they cannot be looked through. */
int git_each_directory(int from, const char *from_name, const char *path,
                       int (*put)(void *ctx, int dir, struct str path, char rule[GIT_RULE_MAX]), void *ctx,
                       char rule[GIT_RULE_MAX]);
/* The same of what is in @dir, which is or becomes a git place. */
int git_place_leads(int dir, char rule[GIT_RULE_MAX]);
/* guard_git_look.c: @dir is, or becomes, @sub ("" for itself) of a git place at @path. May it be, with what is in it?
 * Its judged files have been exchanged for copies then. */
int git_may_become(struct guard *g, int dir, struct str sub, struct str path, char rule[GIT_RULE_MAX]);
/* guard_git.c: EACCES, with @rule said. */
int guard_git_refuse(char rule[GIT_RULE_MAX], const char *what, const char *why);
struct git_site git_site_of(const struct guard *g, struct str path);
/* guard_git.c: whether @dir, which lies at @path, is a git place, or one in the making; which parts of one are there
 * (ORed); and the directory @levels above @dir, -1: none. */
bool git_is_place(int dir, struct str path);
unsigned git_parts_there(int dir);
int git_open_above(int dir, unsigned levels);
/* guard_git_move.c: whether @dir, which lies at @path, is or may become what git has for a submodule or a worktree: the
 * owner's git makes that name by name, and it is no git place before the last. */
bool git_is_begun(int dir, struct str path);
/* Whether what a directory brings that comes to @name in @dir is, or may become, such. */
bool git_brings_begun(int dir, struct str path, struct str name);
/* May the file at @name get another name? */
int git_may_link(struct guard *g, int dir, const struct stat *dir_st, struct str name, char rule[GIT_RULE_MAX]);
/* The same for an object that was reached without its directory. */
int git_may_use_object(struct guard *g, int object, char rule[GIT_RULE_MAX]);

/* May what is at (@from, @from_name) come to (@to, @to_name)? GIT_BY_COPY: only by git_rename_copy(). */
#define GIT_BY_COPY 1
int git_may_rename(struct guard *g, int from, const char *from_name, const struct stat *st, int to,
                   const struct stat *to_st, struct str to_name, char rule[GIT_RULE_MAX]);
/* Give the name @to_name to a judged copy of the regular file @from_name, which is removed. @flags: as renameat2, not
 * exchange. 0, or an errno; EACCES with @rule said: it is not harmless, or is not what it was. */
int git_rename_copy(struct guard *g, int from, const char *from_name, int to, const struct stat *to_st,
                    const char *to_name, unsigned flags, char rule[GIT_RULE_MAX]);
/* The same from an open file (for reading), which keeps its names; the copy stays open in @copy (-1 before; at HEAD of
 * the top it stays so), unless that is NULL. */
int git_copy_to(struct guard *g, int file, int to, const struct stat *to_st, const char *to_name, unsigned flags,
                char rule[GIT_RULE_MAX], int *copy);

/* guard_git_top.c. Is this the `.git` at the top of a guarded tree? */
bool git_is_top(const struct guard *g, struct ident id);
/* `.git/HEAD` there: without it git looks for another repository. It may be replaced only. */
bool git_is_top_head(const struct guard *g, int dir, const struct stat *dir_st, struct str name);
/* Would git look for another repository without @name in @dir? HEAD, objects and refs of such a `.git`, or of one in a
 * folder that has the shape of a repository itself; and that one. */
bool git_keeps(const struct guard *g, int dir, const struct stat *dir_st, struct str name);
/* Is @dir, which is @id, such a `.git`? */
bool git_is_needed(const struct guard *g, int dir, struct ident id);
/* The same of @object (O_PATH will do), or of such a `.git` itself, if its owner could not read it. */
bool git_keeps_open(const struct guard *g, int object, const struct stat *st);

/* guard_git_copy.c: all of @file, which is for reading, into @to. 0 or an errno. */
int git_copy_text(int file, int to);
/* guard_git_copy.c: a judged copy of @file (open for reading) at (@to, @to_name), open in @copy unless that is NULL. 0,
 * errno, or EACCES with @rule. */
int git_copy_file(int file, int to, const char *to_name, enum git_state state, const struct git_site *site,
                  unsigned flags, char rule[GIT_RULE_MAX], int *copy);
/* The same into the open file @to, which is at @name in @dir. */
int git_fill_file(int file, int dir, const char *name, enum git_state state, const struct git_site *site, int to,
                  char rule[GIT_RULE_MAX]);
/* guard_git.c: the same, of whatever state it is by now. */
int git_fill(struct guard *g, int file, int dir, const struct stat *dir_st, const char *name, int to,
             char rule[GIT_RULE_MAX]);

#endif
