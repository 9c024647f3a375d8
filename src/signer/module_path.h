/* signer/module_path.h: who may put something else where a PKCS#11 module is */
#ifndef CLOCHE_SIGNER_MODULE_PATH_H
#define CLOCHE_SIGNER_MODULE_PATH_H

#include "base/err.h"

/* Whether @path is an absolute one of a regular file that nobody but root and we may write, or replace: each folder and
 * link on the way is root's or ours, and no folder is for others to write in, but one with the sticky bit, where what
 * is ours stays. So the name is as good as a descriptor, and is what is loaded: a module finds its own libraries by it
 * ($ORIGIN). 0, or -1 with @err (sign.token.module), which names what is wrong on the way. */
int module_path_safe(const char *path, struct err *err);

#endif
