/* policy/agent.h: the profile of an agent's program, from one file of a folder agents.d (docs/agents.md)
 *
 * The file's name is the agent's: claude.yaml is `cloche agent claude`. Pure: the folders are read by program/agents.h.
 */
#ifndef CLOCHE_POLICY_AGENT_H
#define CLOCHE_POLICY_AGENT_H

#include "base/err.h"
#include "base/str.h"
#include "policy/doc.h"

#define AGENT_FILE_MAX (64 * 1024)      /* bytes; larger is refused */
#define AGENT_LIST_MAX 64               /* entries of a list */
#define AGENT_PAIRS_MAX 32              /* of a map */

struct agent_list {
    const char *v[AGENT_LIST_MAX + 1];  /* NULL behind the last one */
    size_t n;
};

struct agent_pairs {
    const char *name[AGENT_PAIRS_MAX], *value[AGENT_PAIRS_MAX];     /* a value may be NULL where `null` is one */
    size_t n;
};

struct agent {
    const char *name;
    const char *file;               /* where it is from */
    const char *about;              /* one line; "" */
    const char *program;            /* a name on the caller's PATH, or absolute, or "~/..." */
    const char *install;            /* how to get it; "" */
    struct agent_list find;         /* folders to look in beside PATH: absolute, or "~/..." */
    struct agent_list args;         /* before the caller's */
    struct agent_list hosts;        /* as for --allow-domain */
    struct agent_list secrets;      /* as for --secret */
    struct agent_list show;         /* below the home: the host's, shown read-only in the agent's; without "~/" */
    struct agent_list protect;      /* below a home or project: cannot be written; without "~/" */
    struct agent_pairs env;
    struct agent_pairs seed;        /* file below the home, without "~/", and its first text */
};

/* The file @path, which says @text, as the profile @name. Its texts are in @a. 0, or -1 with @err, which names file,
 * line, key and fix. */
int agent_parse(struct arena *a, const char *path, const char *name, struct str text, struct agent *out,
                struct err *err);
/* Whether @name can name an agent. */
bool agent_name_fits(struct str name);

#endif
