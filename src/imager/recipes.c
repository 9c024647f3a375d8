/* imager/recipes.c: see recipes.h */
#include "imager/recipes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "program/drop_in.h"
#include "program/words.h"

#define FOLDER        "recipes"
#define ARENA_FIRST   16384

void
recipes_free(struct recipes *r)
{
    arena_free(r->arena);
    free(r->rows);
    *r = (struct recipes){ .n = 0 };
}

static int
add(void *ctx, const char *path, const char *name, struct str text, struct err *err)
{
    struct recipes *r = ctx;
    size_t i = 0;

    while (i < r->n && strcmp(r->rows[i].name, name) < 0)
        i++;
    if (i < r->n && strcmp(r->rows[i].name, name) == 0)
        return recipe_parse(r->arena, path, name, text, &r->rows[i], err);
    if (r->n == RECIPES_MAX)
        return err_set(err, ERR_LIMIT, "recipe.many", "%s: more than %d recipes", path, RECIPES_MAX);
    memmove(&r->rows[i + 1], &r->rows[i], (r->n++ - i) * sizeof(*r->rows));
    r->rows[i].name = name;         /* until it is read */
    return recipe_parse(r->arena, path, name, text, &r->rows[i], err);
}

int
recipes_load(struct recipes *r, struct err *err)
{
    const struct drop_in d = { "recipe.read", "recipe.unsafe", RECIPE_FILE_MAX, 0, add, r };

    *r = (struct recipes){ .arena = arena_new(ARENA_FIRST), .rows = calloc(RECIPES_MAX, sizeof(*r->rows)) };
    if (r->arena == NULL || r->rows == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (drop_in_came_with(&d, FOLDER, err) == 0 && drop_in_added(&d, FOLDER, getenv("HOME"), err) == 0)
        return 0;
    recipes_free(r);
    return -1;
}

const struct recipe *
recipes_find(const struct recipes *r, const char *name, struct err *err)
{
    const char *known[RECIPES_MAX], *nearest;

    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->rows[i].name, name) == 0)
            return &r->rows[i];
        known[i] = r->rows[i].name;
    }
    nearest = cli_nearest(name, known, r->n);
    err_set(err, ERR_USAGE, "recipe.unknown", "no recipe is called \"%.64s\"", name);
    if (nearest != NULL)
        err_hint(err, "did you mean `cloche image build %s`?", nearest);
    else
        err_hint(err, "`cloche image build --list` shows those that there are");
    return NULL;
}
