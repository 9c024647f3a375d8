/* program/agents.c: see agents.h */
#include "program/agents.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "program/drop_in.h"
#include "program/words.h"

#define ARENA_FIRST   16384

void
agents_free(struct agents *a)
{
    arena_free(a->arena);
    free(a->rows);
    *a = (struct agents){ .n = 0 };
}

static int
add(void *ctx, const char *path, const char *name, struct str text, struct err *err)
{
    struct agents *a = ctx;
    size_t i = 0;

    while (i < a->n && strcmp(a->rows[i].name, name) < 0)
        i++;
    if (i < a->n && strcmp(a->rows[i].name, name) == 0)
        return agent_parse(a->arena, path, name, text, &a->rows[i], err);
    if (a->n == AGENTS_MAX)
        return err_set(err, ERR_LIMIT, "agent.many", "%s: more than %d agents", path, AGENTS_MAX);
    memmove(&a->rows[i + 1], &a->rows[i], (a->n++ - i) * sizeof(*a->rows));
    a->rows[i].name = name;         /* until it is read */
    return agent_parse(a->arena, path, name, text, &a->rows[i], err);
}

int
agents_load(struct agents *a, const char *home, struct err *err)
{
    const struct drop_in d = { "agent.read", "agent.unsafe", AGENT_FILE_MAX, 0, add, a };

    *a = (struct agents){ .arena = arena_new(ARENA_FIRST), .rows = calloc(AGENTS_MAX, sizeof(*a->rows)) };
    if (a->arena == NULL || a->rows == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (drop_in_came_with(&d, "agents.d", err) == 0 && drop_in_added(&d, "agents.d", home, err) == 0)
        return 0;
    agents_free(a);
    return -1;
}

const struct agent *
agents_find(const struct agents *a, const char *name, struct err *err)
{
    cleanup_buf struct buf list = BUF_INIT(AGENTS_MAX * 40);
    const char *known[AGENTS_MAX], *nearest;

    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->rows[i].name, name) == 0)
            return &a->rows[i];
        known[i] = a->rows[i].name;
        buf_puts(&list, i > 0 ? ", " : "");
        buf_puts(&list, known[i]);
    }
    nearest = cli_nearest(name, known, a->n);
    err_set(err, ERR_USAGE, "agent.unknown", "no agent is called \"%.64s\"", name);
    if (nearest != NULL)
        err_hint(err, "did you mean `cloche agent %s`?", nearest);
    else
        err_hint(err, "there are %s; `cloche agent new NAME` begins another", buf_nul(&list) == 0 && list.n > 0
                 ? (const char *)list.p : "none");
    return NULL;
}
