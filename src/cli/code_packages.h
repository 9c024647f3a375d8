/* cli/code_packages.h: packages for one run of `cloche code` (--package)
 */
#ifndef CLOCHE_CLI_CODE_PACKAGES_H
#define CLOCHE_CLI_CODE_PACKAGES_H

#include "base/err.h"
#include "cli/code_kept.h"
#include "match/language.h"
#include "policy/policy.h"
#include "wall/janitor.h"

#define PACKAGES_MAX   64
#define PACKAGES_WORDS 4        /* that code_packages_show() adds */

struct packages {
    const char *v[PACKAGES_MAX];        /* as they were said */
    size_t n;
    char folder[64];                    /* where they are installed; "" they are not */
    struct janitor janitor;             /* removes it when this process is killed */
    struct kept_set kept;               /* or where they lie already */
    char bind[PATH_MAX + 128], env[128];
    int ended_by;                       /* a signal that came while they were installed; 0: none */
};

int code_packages_check(const struct packages *packages, const struct language *l, struct err *err);
/* Into a folder of their own, which code_packages_remove() removes, whatever this returns; or they are found where an
 * earlier call has left them (code_kept.h). @p: the code's policy. */
int code_packages_install(struct packages *packages, const struct language *l, const struct policy *p, struct err *err);
/* The command line @argv with flags that show them in @folder, where the code lies, into @words, which has room for
 * PACKAGES_WORDS more and a NULL. How many words it has. */
int code_packages_show(struct packages *packages, const struct language *l, const char *folder, int argc, char **argv,
                       char **words);
/* The policy @p of that command line may have the folder that was found, which lies among cloche's own. */
void code_packages_own(const struct packages *packages, struct policy *p);
/* Does not return where a signal ended the installation: that ends this process now. */
void code_packages_remove(struct packages *packages);

#endif
