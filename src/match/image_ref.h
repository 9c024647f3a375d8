/* match/image_ref.h: the name of an image: [HOST[:PORT]/]PATH[:TAG][@sha256:HEX], or sha256:HEX alone
 *
 * The rules are those of the registries' API. Names without a host are Docker Hub's, and one word there means
 * "library/WORD", as everywhere; both are left out of what is shown ("python:3.12").
 */
#ifndef CLOCHE_MATCH_IMAGE_REF_H
#define CLOCHE_MATCH_IMAGE_REF_H

#include <stdbool.h>

#include "base/str.h"

#define IMAGE_DIGEST_TEXT 71            /* "sha256:" and 64 digits */
#define IMAGE_REF_MAX     512           /* bytes of a name as it is written */
#define IMAGE_HUB         "docker.io"

struct image_ref {
    char host[264];                     /* "ghcr.io", "localhost:5000"; IMAGE_HUB where none is; "": an id alone */
    char path[256];                     /* "library/python" */
    char tag[129];                      /* "latest" where neither tag nor digest is written; else may be "" */
    char digest[IMAGE_DIGEST_TEXT + 1]; /* "" */
};

/* NULL; or what is wrong. Pure. */
const char *image_ref_parse(struct str text, struct image_ref *out);
/* As people write it, without the digest: "python:3.12". "" of an id alone. */
void image_ref_name(const struct image_ref *ref, char out[IMAGE_REF_MAX + 1]);
/* Whether @text is "sha256:" and 64 lower-case hexadecimal digits. */
bool image_ref_is_digest(struct str text);

#endif
