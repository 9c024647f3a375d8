/* policy/recipe.h: what an image is built from, from one file of a folder of recipes (docs/images.md)
 *
 * The file's name is the recipe's: python.yaml is `cloche image build python`. Pure: the folders are read by
 * imager/recipes.h. Names of packages end in a shell's words (mmdebstrap's hooks), so what could be anything else there
 * is no name.
 */
#ifndef CLOCHE_POLICY_RECIPE_H
#define CLOCHE_POLICY_RECIPE_H

#include "base/err.h"
#include "base/str.h"
#include "policy/doc.h"

#define RECIPE_FILE_MAX (64 * 1024)     /* bytes; larger is refused */
#define RECIPE_LIST_MAX 128             /* entries of a list */
#define RECIPE_TEXT_MAX 4095

struct recipe_list {
    const char *v[RECIPE_LIST_MAX + 1]; /* NULL behind the last one */
    size_t n;
};

struct recipe {
    const char *name;
    const char *file;                   /* where it is from */
    const char *about;                  /* one line; "" */
    const char *suite;                  /* of Debian: "bookworm" */
    const char *workdir;                /* absolute, or "" */
    struct recipe_list packages;        /* Debian's */
    struct recipe_list pip, npm;        /* PyPI's and npm's, "NAME" or with a version */
    struct recipe_list cmd;             /* what runs where no command is said */
    struct recipe_list env;             /* "NAME=value" */
};

/* The file @path, which says @text, as the recipe @name. Its texts are in @a. 0, or -1 with @err, which names file,
 * line, key and fix. */
int recipe_parse(struct arena *a, const char *path, const char *name, struct str text, struct recipe *out,
                 struct err *err);

#endif
