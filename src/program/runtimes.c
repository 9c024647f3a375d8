/* program/runtimes.c: see runtimes.h */
#include "program/runtimes.h"

#include "base/cleanup.h"
#include "program/caller.h"
#include "program/drop_in.h"

#define ARENA_FIRST   4096

void
runtimes_free(struct runtimes *r)
{
    arena_free(r->arena);
    *r = (struct runtimes){ .n = 0 };
}

/* --- the folders -------------------------------------------------------------------------------------------------- */

static int
add(void *ctx, const char *path, const char *name, struct str text, struct err *err)
{
    struct runtimes *r = ctx;

    if (r->n == LANGUAGES_MORE)
        return err_set(err, ERR_LIMIT, "runtime.many", "%s: more than %d languages", path, LANGUAGES_MORE);
    if (runtime_parse(r->arena, path, name, text, &r->rows[r->n], err) < 0)
        return -1;
    if (language_in(r->rows, r->n, name) != NULL || language_in(r->rows, r->n, r->rows[r->n].alias) != NULL)
        return err_set(err, ERR_POLICY, "runtime.taken", "%s: another file has that name or alias", path);
    r->n++;
    return 0;
}

int
runtimes_load(struct runtimes *r, struct err *err)
{
    const struct drop_in d = { "runtime.read", "runtime.unsafe", RUNTIME_FILE_MAX, 0, add, r };
    struct policy_host host;

    *r = (struct runtimes){ .arena = arena_new(ARENA_FIRST) };
    if (r->arena == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (cli_host(&host, err) == 0 && drop_in_added(&d, "runtimes.d", host.home, err) == 0)
        return 0;
    runtimes_free(r);
    return -1;
}

/* The user's own are read once, when cloche's rows were not enough. */
static int
with_own(struct err *err)
{
    static struct runtimes own;

    if (own.arena != NULL)
        return 0;
    if (runtimes_load(&own, err) < 0)
        return -1;
    language_more(own.rows, own.n);
    return 0;
}

static const struct language *
no_language(const char *said, struct err *err)
{
    uint8_t room[256];
    cleanup_buf struct buf list = BUF_INIT_IN(room, LANGUAGES_MORE * (RUNTIME_NAME_MAX + 2) + sizeof(room));

    language_names(&list, ", ");
    if (buf_nul(&list) < 0)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (said == NULL)
        err_set(err, ERR_USAGE, "cli.language", "which language? --language is one of %s", (const char *)list.p);
    else
        err_set(err, ERR_USAGE, "cli.language", "--language \"%s\" is not one of %s", said, (const char *)list.p);
    return NULL;
}

const struct language *
runtimes_find(const char *name, struct err *err)
{
    const struct language *found = language_find(name);

    if (found != NULL)
        return found;
    if (with_own(err) < 0)
        return NULL;
    found = language_find(name);
    return found != NULL ? found : no_language(name, err);
}

const struct language *
runtimes_of_path(const char *path, struct err *err)
{
    const struct language *found = language_of_path(path);

    if (found != NULL)
        return found;
    if (with_own(err) < 0)
        return NULL;
    found = language_of_path(path);
    return found != NULL ? found : no_language(NULL, err);
}
