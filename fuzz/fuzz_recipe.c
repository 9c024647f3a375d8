/* a file of a folder of recipes: what is taken has no word that a shell would read as more than a word */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(const struct recipe_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i][0] == '-' || strpbrk(list->v[i], " \t\n\r,;&|<>()$`\\\"'*?[]{}#~%") != NULL)
            abort();
    if (list->n > RECIPE_LIST_MAX || list->v[list->n] != NULL)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena *arena = arena_new(1024);
    struct err err = ERR_INIT;
    static struct recipe r;

    if (arena == NULL || n > RECIPE_FILE_MAX)
        abort();
    if (recipe_parse(arena, "own.yaml", "own", (struct str){ (const char *)data, n }, &r, &err) == 0) {
        const struct recipe_list suite = { .v = { r.suite }, .n = 1 };
        check(&suite);
        check(&r.packages);
        check(&r.pip);
        check(&r.npm);
        if (r.packages.n == 0 || (r.workdir[0] != '\0' && r.workdir[0] != '/'))
            abort();
        for (size_t i = 0; i < r.env.n; i++)
            if (strchr(r.env.v[i], '=') == NULL || r.env.v[i][0] == '=')
                abort();
    } else if (err.code[0] == '\0') {
        abort();
    }
    arena_free(arena);
    return 0;
}
