/* image/image.h: images as they lie in the store, and what their documents say
 *
 * The store is the folder "images" in a user's state folder (0700, as all of it):
 *
 *   names.json           {"version": 1, "names": {"python:3.12": ID}, "digests": {DIGEST OF A MANIFEST: ID}}
 *   records/HEX.json     what is known of the image ID, "sha256:HEX", which is the digest of its configuration
 *   trees/HEX/           its files, all layers in one tree; HEX is the digest of the list of its layers' digests
 *   tmp/                 what is under way
 *
 * Only cloche-image writes there (imager/). Everything but tmp/ comes to its name whole, by rename(2), and is not
 * changed any more: who has a tree open holds a shared lock of its folder, and a tree that is locked is not removed.
 * The documents' readers are pure: they get bytes of strangers.
 */
#ifndef CLOCHE_IMAGE_IMAGE_H
#define CLOCHE_IMAGE_IMAGE_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "match/image_ref.h"

#define IMAGE_LAYERS_MAX   128
#define IMAGE_DOC_MAX      (4UL * 1024 * 1024)      /* bytes of one document, an index, a manifest, a configuration */
#define IMAGE_RECORD_MAX   (1024UL * 1024)
#define IMAGE_NAMES_MAX    (16UL * 1024 * 1024)
#define IMAGE_ENV_MAX      512
#define IMAGE_WORDS_MAX    256                      /* of an entry point, of a command */

/* --- documents ---------------------------------------------------------------------------------------------------- */

struct image_platform {
    char os[32], architecture[32], variant[32];     /* variant "": any */
};

/* This machine's. */
void image_platform_here(struct image_platform *out);
/* OS/ARCHITECTURE[/VARIANT]. False when it is not. */
bool image_platform_parse(struct str text, struct image_platform *out);

struct image_blob {
    char digest[IMAGE_DIGEST_TEXT + 1];
    uint64_t size;
};

struct image_manifest {
    struct image_blob config, layers[IMAGE_LAYERS_MAX];
    size_t n_layers;
};

/* Whether the document is a list of manifests rather than one; -1 with @err where it is neither. */
int image_is_index(const void *text, size_t n, struct err *err);
/* Of a list: the manifest for @platform, and, of several, the one whose annotation names it @name (NULL: there may be
 * only one). @found (NULL: nobody asks) gets the name that it has there, or "". 0 or -1 with @err. */
int image_index_pick(const void *text, size_t n, const struct image_platform *platform, const char *name,
                     struct image_blob *out, char found[IMAGE_REF_MAX + 1], struct err *err);
int image_manifest_read(const void *text, size_t n, struct image_manifest *out, struct err *err);

/* manifest.json of `docker save`: names of files in the archive. */
struct image_archive {
    char config[512], layers[IMAGE_LAYERS_MAX][512];
    size_t n_layers;
    char name[IMAGE_REF_MAX + 1];       /* the first one that it has there; or "" */
};
int image_archive_read(const void *text, size_t n, const char *name, struct image_archive *out, struct err *err);

/* A configuration as a record without what only the store knows: "os", "architecture", "created", "layers" (digests of
 * what is in them unpacked), "env", "entrypoint", "cmd", "user", "workdir". The caller's; NULL with @err. */
json_t *image_config_read(const void *text, size_t n, const struct image_platform *platform, struct err *err);
/* HEX of trees/. */
void image_tree_of(const json_t *record, char out[65]);

/* The digest of what @h was given, which ends it, and of a text. */
void image_digest_end(struct sha256 *h, char out[IMAGE_DIGEST_TEXT + 1]);
void image_digest_of(const struct buf *text, char out[IMAGE_DIGEST_TEXT + 1]);
/* Where an OCI layout has what a digest names. */
#define IMAGE_BLOB_PATH 96
void image_blob_path(const char *digest, char out[IMAGE_BLOB_PATH]);

/* --- the store ---------------------------------------------------------------------------------------------------- */

struct image {
    json_t *record;
    char id[IMAGE_DIGEST_TEXT + 1];
    char path[PATH_MAX];                /* of its tree */
    int tree;                           /* its folder (O_RDONLY), locked as long as it is open; -1 */
};
#define IMAGE_INIT { .record = NULL, .tree = -1 }

/* The image that @name (of image_ref_parse()) means in the store at @path, its files held. 0 or -1 with @err. */
int image_find(const char *path, const char *name, struct image *out, struct err *err);
/* The same without its tree: *@id is its id. */
int image_resolve(const char *path, const char *name, char id[IMAGE_DIGEST_TEXT + 1], struct err *err);
void image_close(struct image *image);

const char *image_text(const struct image *image, const char *key);        /* "" where there is none */
/* Word @i of "env", "entrypoint", "cmd"; NULL behind the last one. */
const char *image_word(const struct image *image, const char *key, size_t i);

/* Whether its files have a file at @path (no "/" before it), links of the image followed within it. */
bool image_has(const struct image *image, const char *path);

/* A document of the store; NULL with @err. */
json_t *image_doc_load(int dir, const char *name, size_t max, struct err *err);

#endif
