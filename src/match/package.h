/* match/package.h: packages as registries' clients take them, and what a client that failed said
 */
#ifndef CLOCHE_MATCH_PACKAGE_H
#define CLOCHE_MATCH_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

enum package_fault {
    PACKAGE_FAILED,             /* none of the others */
    PACKAGE_NOT_FOUND,          /* no such package, or no such version */
    PACKAGE_OTHER_HASH,         /* the archive is not what was promised */
    PACKAGE_NO_WAY,             /* the registry, or something that it needs, was not reached */
};

#define PACKAGES_PYTHON "/workspace/.packages"      /* where what pip installs lies */

/* The client that installs packages of a registry into /workspace. */
struct package_client {
    const char *registry;
    const char *folder;             /* where they are then, below /workspace */
    const char *variable;           /* which names that folder to their language; NULL: it looks there */
    const char *words[16];          /* its command line without the packages, ended by NULL */
};
/* NULL: none is known. */
const struct package_client *package_client_of(const char *registry);

/* A name with its version as pip ("pypi") and npm ("npm") take them from their registry: no option, no path, no URL,
 * nothing that a file of theirs could mean. */
bool package_well(const char *registry, const char *package);
/* One that is well and names one version. */
bool package_pinned(const char *registry, const char *package);
/* A package of PyPI as that names it (PEP 503: small letters, one dash for what is between words), in its place, its
 * versions as they are; one that is not well stays. */
void package_settle(char *package);

/* The hash of an archive, as pip ("sha256:HEX") and npm ("sha512-BASE64") write it: none that can be made to fit. */
bool package_hash_well(const char *registry, const char *hash);

/* Which of them the output out[0..n) of a client that failed tells of. What ran meanwhile can have said it too. */
enum package_fault package_fault_of(const void *out, size_t n);

#endif
