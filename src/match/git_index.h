/* match/git_index.h: git's index: whether a checkout of its paths stays in the work tree
 *
 * `git checkout .` and `git restore .` write what the index names, where it says: git judges a path when it comes from
 * a tree or a command, and believes its own file. A path in there that leads up, is absolute or has a `.git` in it is a
 * hook at the owner's next command, or a file of his elsewhere.
 */
#ifndef CLOCHE_MATCH_GIT_INDEX_H
#define CLOCHE_MATCH_GIT_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define GIT_INDEX_MAX  (256u << 20)     /* bytes of a file that is read at all: some two million paths */
#define GIT_OID_BYTES  20               /* of an object's name, where nothing says otherwise */
#define GIT_INDEX_PATH 4096             /* bytes of a path; more is refused */

/* Whether the index @text (versions 2 to 4; also the shared part of a split one) is well-formed for object names of
 * @oid bytes (20 or 32), and has only paths that git itself would have put there. */
bool git_index_harmless(struct str text, size_t oid);

/* How long the object names of a repository with the configuration @text are, in bytes. */
size_t git_oid_bytes(struct str text);

#endif
