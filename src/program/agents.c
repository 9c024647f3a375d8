/* program/agents.c: see agents.h */
#include "program/agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "program/drop_in.h"
#include "program/words.h"

#define SYSTEM_FOLDER "/etc/cloche/agents.d"
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

/* Beside the program, where it is installed, or built. */
static int
came_with(struct agents *a, struct err *err)
{
    static const char *const places[] = { "../share/cloche/agents.d", "../../share/agents.d" };
    struct drop_in d = { "agent.read", "agent.unsafe", AGENT_FILE_MAX, 0, add, a };
    char self[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct stat st;

    if (n <= 0 || stat("/proc/self/exe", &st) < 0)
        return err_sys(err, errno, "agent.read", "/proc/self/exe");
    d.owner = st.st_uid;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (snprintf(folder, sizeof(folder), "%s/%s", self, places[i]) < PATH_MAX && realpath(folder, real) != NULL)
            return drop_in_read(&d, real, err);
    return 0;
}

int
agents_load(struct agents *a, const char *home, struct err *err)
{
    const struct drop_in d = { "agent.read", "agent.unsafe", AGENT_FILE_MAX, 0, add, a };
    char own[PATH_MAX];

    *a = (struct agents){ .arena = arena_new(ARENA_FIRST), .rows = calloc(AGENTS_MAX, sizeof(*a->rows)) };
    if (a->arena == NULL || a->rows == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (came_with(a, err) == 0 && drop_in_read(&d, SYSTEM_FOLDER, err) == 0 &&
             (drop_in_own("agents.d", home, own) < 0 || drop_in_read(&d, own, err) == 0))
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
