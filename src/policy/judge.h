/* policy/judge.h: may this path be read, may it be written: the one evaluation
 *
 * The engine asks it for each place that it mounts or grants, and `cloche why` for the place that somebody asks about,
 * so that what is said and what is done are one thing. Pure. The order:
 *
 *   read    closed by deny-read, or as a place for credentials; a tree that was shown by name (workspace, bind,
 *           allow-read, allow-write) is open whatever wider rule closes its surroundings; below that the longer of
 *           deny-read and allow-read wins, allow-read where they are alike
 *   write   where it can be read, in a tree that is shown writable: closed by deny-write (that place or any above it,
 *           above the tree too), by a protected name of any writable tree around it or where one leads, and where
 *           only allow-read opened it again
 */
#ifndef CLOCHE_POLICY_JUDGE_H
#define CLOCHE_POLICY_JUDGE_H

#include "policy/place.h"
#include "policy/policy.h"
#include "policy/why.h"

enum judged_read {
    READ_ABSENT,            /* not in the sandbox */
    READ_CREDENTIAL,        /* @read_rule: a place for credentials */
    READ_DENIED,            /* @read_rule of deny-read */
    READ_DEVICE,            /* mode light: a device of the host's, or a terminal that is somebody else's */
    READ_REOPENED,          /* @read_rule of allow-read, below what is closed */
    READ_SHOWN,
};

enum judged_write {
    WRITE_ABSENT,
    WRITE_CLOSED,           /* not even readable */
    WRITE_DEVICE,           /* one of the sandbox's devices: allowed */
    WRITE_READ_ONLY,        /* shown read-only */
    WRITE_REOPENED,         /* allow-read opened it again, for reading */
    WRITE_DENIED,           /* @write_rule of deny-write */
    WRITE_PROTECTED,        /* @write_rule: a protected name */
    WRITE_OPENED,           /* @write_rule of allow-write, or NULL: by what shows it */
};

struct judged {
    bool read, write;
    enum judged_read read_why;
    enum judged_write write_why;
    const struct policy_entry *read_rule, *write_rule;
};

/* What @p says about @place, which is one of its own (policy_place). @exists as for policy_why_path; NULL: all does. */
void policy_judge(const struct policy *p, const struct place *place, why_exists *exists, struct judged *out);

/* What is left of the protected @name in the folder @tree, whose path ends with its first names (".claude/hooks" in
 * /home/u/.claude: "hooks"); NULL: nothing. What is in a ".git" the name guard knows by its shape. */
const char *policy_name_rest(struct str tree, const char *name);
/* Whether the host's @path lies in a folder of cloche's own that @p gives: a volume, an agent's home. */
bool policy_gives(const struct policy *p, const char *path);

#endif
