/* imager/fetch.h: an image from a registry, as an OCI layout in a folder
 *
 * A process of its own speaks to the registry (HTTPS; plain HTTP with this machine's loopback alone). Files are out of
 * its reach but that folder and what names are looked up by (Landlock), it starts no program and has no capability.
 * What it brings is read again, and compared with its digests, by the process that unpacks (work.h).
 */
#ifndef CLOCHE_IMAGER_FETCH_H
#define CLOCHE_IMAGER_FETCH_H

#include "base/buf.h"
#include "image/image.h"

struct fetch {
    const struct image_ref *ref;
    struct image_platform platform;
    int place;                  /* the folder; what is in it whole from before is not fetched again */
    int trees;                  /* the store's trees: of one that is there no layer is fetched */
    uint64_t max;               /* bytes of all layers together, as they are fetched */
    const char *ca;             /* certificates (PEM) that the registry's is judged by */
    size_t ca_n;
    const char *login;          /* "USER:PASSWORD"; NULL: none */
    bool progress;              /* on standard error */
};

/* 0, or -1 with @err (image.registry, image.unknown, image.login, image.digest ...). */
int fetch_run(const struct fetch *f, struct err *err);

/* fetch.c: what that process does. */
int fetch_now(const struct fetch *f, struct err *err);

/* auth.c, pure: what WWW-Authenticate asks for. */
struct fetch_challenge {
    bool bearer, basic;
    char realm[1024], service[256], scope[512];
};
void fetch_challenge_read(struct str header, struct fetch_challenge *out);
/* The login of @host in a config.json of docker's; "" none. False where the file is none. */
bool fetch_login_of(const char *text, size_t n, const char *host, char out[1024]);

#endif
