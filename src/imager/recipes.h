/* imager/recipes.h: the recipes of images, from the folders of recipes (docs/images.md)
 *
 * Those that came with cloche, then /etc/cloche/recipes, then $XDG_CONFIG_HOME/cloche/recipes: a later one replaces
 * an earlier one of the same name.
 */
#ifndef CLOCHE_IMAGER_RECIPES_H
#define CLOCHE_IMAGER_RECIPES_H

#include "base/err.h"
#include "policy/recipe.h"

#define RECIPES_MAX 64

struct recipes {
    struct arena *arena;            /* owns the texts */
    struct recipe *rows;            /* in the order of their names */
    size_t n;
};

/* All of them; a file that cannot be used is refused, and so are all. 0, or -1 with @err and nothing loaded. */
int recipes_load(struct recipes *r, struct err *err);
void recipes_free(struct recipes *r);       /* harmless on one that is all zero */
/* The one of that name, or NULL with @err, which names all. */
const struct recipe *recipes_find(const struct recipes *r, const char *name, struct err *err);

#endif
