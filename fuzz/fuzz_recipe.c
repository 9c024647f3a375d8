/* a file of a folder of recipes: what is taken has no word that a shell would read as more than a word */
#include "fuzz.h"

#include <string.h>

#include "policy/recipe.h"

static void
check(const struct recipe_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        FUZZ_ASSERT(list->v[i][0] != '-' && strpbrk(list->v[i], " \t\n\r,;&|<>()$`\\\"'*?[]{}#~%") == NULL);
    FUZZ_ASSERT(list->n <= RECIPE_LIST_MAX && list->v[list->n] == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena *arena = arena_new(1024);
    struct err err = ERR_INIT;
    static struct recipe r;

    FUZZ_ASSERT(arena != NULL && n <= RECIPE_FILE_MAX);
    if (recipe_parse(arena, "own.yaml", "own", (struct str){ (const char *)data, n }, &r, &err) == 0) {
        const struct recipe_list suite = { .v = { r.suite }, .n = 1 };
        check(&suite);
        check(&r.packages);
        check(&r.pip);
        check(&r.npm);
        FUZZ_ASSERT(r.packages.n > 0 && (r.workdir[0] == '\0' || r.workdir[0] == '/'));
        for (size_t i = 0; i < r.env.n; i++)
            FUZZ_ASSERT(strchr(r.env.v[i], '=') != NULL && r.env.v[i][0] != '=');
    } else {
        FUZZ_ASSERT(err.code[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
