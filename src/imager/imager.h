/* imager/imager.h: what the verbs of `cloche image` share */
#ifndef CLOCHE_IMAGER_IMAGER_H
#define CLOCHE_IMAGER_IMAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "imager/store.h"
#include "imager/work.h"
#include "program/verb.h"

#define IMAGE_ALLOW_MAX 32

struct image_options {
    struct image_platform platform;
    uint64_t max_size, max_files;
    const char *ca;             /* file of certificates; NULL: the host's */
    /* of build */
    const char *allow[IMAGE_ALLOW_MAX + 1];     /* --allow-domain, NULL behind the last one */
    size_t n_allow;
    uint64_t time_s;
    bool list, show, verbose;
    /* of build, with a folder */
    const char *file, *target, *builder, *memory;   /* NULL: the usual ones */
    const char *args[IMAGE_ALLOW_MAX + 1];      /* --build-arg NAME=VALUE, NULL behind the last one */
    size_t n_args;
    const char *output;         /* of save: its file; NULL: standard output */
    bool json;
};

/* Unpack @source in @stage and take it into @s, under @name or, without one, the name that it has in itself; say so.
 * @what: the archive or folder, which of several there, and what is known of its configuration. @from: where it is
 * from, for the record. 0 or -1 with @err. */
struct image_source {
    int fd;
    bool folder;
    const char *select, *config;        /* as "name" and "config" of work.h; may be NULL */
};
int image_take(struct image_options *o, struct store *s, struct stage *stage, const struct image_source *what,
               const char *name, const char *from, struct err *err);
/* @written as the store has it; -1 with @err. */
int image_name_of(const char *written, char out[IMAGE_REF_MAX + 1], struct err *err);
/* pull.c: `cloche image pull` */
int image_pull(void *options, const struct verb_words *w, struct err *err);

/* build.c: `cloche image build`, by a recipe; */
int image_build(void *options, const struct verb_words *w, struct err *err);
/* build_folder.c: and by a Containerfile, where the first word is a folder's path: it has a "/", or is "." or "..". */
bool image_is_folder(const char *word);
int image_build_folder(struct image_options *o, const struct verb_words *w, struct err *err);
/* save.c: `cloche image save` */
int image_save(void *options, const struct verb_words *w, struct err *err);

#endif
