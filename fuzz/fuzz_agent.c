/* a file of agents.d: what is taken is a profile whose paths stay below where they are */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check(const struct agent_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i][0] == '/' || list->v[i][0] == '\0' || strstr(list->v[i], "..") != NULL)
            abort();
    if (list->n > AGENT_LIST_MAX || list->v[list->n] != NULL)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena *arena = arena_new(1024);
    struct err err = ERR_INIT;
    static struct agent a;

    if (arena == NULL || n > AGENT_FILE_MAX)
        abort();
    if (agent_parse(arena, "own.yaml", "own", (struct str){ (const char *)data, n }, &a, &err) == 0) {
        check(&a.show);
        check(&a.protect);
        for (size_t i = 0; i < a.seed.n; i++)
            if (a.seed.name[i][0] == '/' || strstr(a.seed.name[i], "..") != NULL || a.seed.value[i] == NULL)
                abort();
        if (a.program == NULL || a.program[0] == '\0')
            abort();
    } else if (err.code[0] == '\0') {
        abort();
    }
    arena_free(arena);
    return 0;
}
