/* match/git_config.h: git's configuration files: reading them as git does, and whether one is harmless
 *
 * Some sixty keys of a configuration make git run a program, and every release brings more. So a configuration that a
 * sandbox wrote is harmless only when every key in it is on the list of git_config.c and its value is of the kind that
 * the list says. Whatever is not listed, includes another file, or is not certainly read as git reads it, is not.
 */
#ifndef CLOCHE_MATCH_GIT_CONFIG_H
#define CLOCHE_MATCH_GIT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define GIT_CONFIG_MAX       (1u << 20)     /* bytes of a file that is read at all; longer ones are not harmless */
#define GIT_CONFIG_KEY_MAX   1023           /* bytes of "section.subsection.name"; more is a fault */
#define GIT_CONFIG_VALUE_MAX 4095           /* bytes of a value, quotes and escapes undone; more is a fault */

/* One file, entry by entry. Owns nothing, borrows @text. About 5 KiB. */
struct git_config_reader {
    struct str text;
    size_t at;
    size_t stem;                            /* bytes of @key that are "section." or "section.subsection." */
    char key[GIT_CONFIG_KEY_MAX + 1];       /* section and name in lower case, as git has them; NUL-terminated */
    char value[GIT_CONFIG_VALUE_MAX + 1];   /* NUL-terminated */
};

struct git_config_entry {
    struct str key;             /* "remote.origin.url" */
    struct str section;         /* "remote" */
    struct str subsection;      /* "origin", as it stands in the file; empty also when there is none */
    struct str name;            /* "url" */
    struct str value;           /* empty also when there is none ("[a] b", which means true) */
    bool has_subsection, has_value;
};

void git_config_open(struct git_config_reader *r, struct str text);
/* The next entry, in the reader's own memory until the next call. 1: an entry; 0: the end; -1: git would refuse the
 * file here, or may read it otherwise than we (a NUL, a lone CR, a key without a section, something too long). */
int git_config_next(struct git_config_reader *r, struct git_config_entry *e);

/* Where @value, a path as configurations have them, leads: `~/` is @home (NULL: there is none), and so is `~NAME/`:
 * that it may be another's closes more, not less. What is relative lies below @base ("": nowhere). False: nowhere, or
 * @out, with room for @cap bytes, is too small. */
bool git_config_path(struct str value, const char *home, const char *base, char *out, size_t cap);

#define GIT_CONFIG_SAID_MAX 95

/* @key for a person: shortened, unprintable bytes as '?'. */
void git_config_said_key(struct str key, char out[GIT_CONFIG_SAID_MAX + 1]);

/* Why a configuration is not harmless. */
struct git_config_fault {
    char key[GIT_CONFIG_SAID_MAX + 1];  /* "core.fsmonitor", for a person; "" when it cannot be read to its end */
};

/* Whether git can use the configuration @text without running anything that it names. @depth is how many directories
 * core.worktree may lead up (git_worktree_ups). 0: harmless; -1 with the first
 * offence in @fault (may be NULL). */
int git_config_judge(struct str text, size_t depth, struct git_config_fault *fault);

/* The same of one entry. */
bool git_config_entry_harmless(const struct git_config_entry *e, size_t depth);

/* Whether @url is of a kind that fetches and pushes with git's own transports: http, https, ssh, git, file, host:path
 * or a path; no helper (`ext::`), nothing that could be taken for an option. */
bool git_config_url_harmless(struct str url);

#endif
