/* cli/code_kept.h: packages that an earlier `cloche code --package` installed, taken again
 *
 * An installation runs what strangers wrote, so what it left is taken again only for exactly what it was asked for: it
 * lies under a digest of the whole command line (registry, packages in their order, wall) and of what the registry's
 * client says of its registry. So a package can spoil what is installed together with it, as it could anyway, and
 * nothing else. Only packages with a version are kept, for KEPT_SETS_S at most: what they need beside them may have a
 * newer version by then.
 *
 * The folders lie in cloche's state folder, which no sandbox has; the code sees one of them, read-only.
 */
#ifndef CLOCHE_CLI_CODE_KEPT_H
#define CLOCHE_CLI_CODE_KEPT_H

#include <limits.h>
#include <stdbool.h>

#include "match/package.h"
#include "policy/policy.h"

#define KEPT_SETS_S   (7 * 24 * 3600)
#define KEPT_SETS_MAX 32

struct kept_set {
    char path[PATH_MAX];    /* of the folder with client->folder in it; "" there is none */
    int lock;               /* held while it is used; -1 */
};

/* The set that the command line @words, ended by NULL, would install now; false: there is none, or that cannot be
 * told. @p: the code's policy. */
bool code_kept_find(struct kept_set *set, const struct package_client *client, const struct policy *p,
                    const char *const *words);
/* Keep a copy of the folder @installed/client->folder as what @words installed, in the place of an earlier one. Nobody
 * writes to it any more. What cannot be kept is not. */
void code_kept_keep(const struct package_client *client, const struct policy *p, const char *const *words,
                    const char *installed);

#endif
