/* wall/trust.c: see trust.h */
#include "wall/trust.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/array.h"

const char *
trust_bundle(void)
{
    /* Debian and most others, Fedora and RHEL, SUSE, Alpine */
    static const char *const places[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                          "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
    static char found[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (realpath(places[i], found) != NULL)
            return found;
    return NULL;
}
