/* program/logins.c: see logins.h */
#include "program/logins.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Below what is shown: a prefix or a virtual environment, a folder of them, pyenv's, nvm's and fnm's. */
static const char *const places[] = {
    "/etc/npmrc", "/pip.conf", "/*/pip.conf", "/versions/*/pip.conf", "/versions/*/envs/*/pip.conf",
    "/node/*/etc/npmrc", "/*/installation/etc/npmrc", "/var",
};

/* As a pattern that means @path itself, and then @more. False: too long. */
static bool
literal(const char *path, const char *more, char out[PATH_MAX])
{
    size_t n = 0, rest = strlen(more);

    for (; *path != '\0'; path++) {
        if (n + rest + 3 > PATH_MAX)
            return false;
        if (strchr("*?[\\", *path) != NULL)
            out[n++] = '\\';
        out[n++] = *path;
    }
    memcpy(out + n, more, rest + 1);
    return true;
}

static int
add(struct logins *l, const char *path, struct err *err)
{
    char pattern[PATH_MAX];

    if (l->n == LOGINS_MAX || !literal(path, "", pattern))
        return err_set(err, ERR_LIMIT, "toolchains.logins", "there are more logins than %d in what would be shown: %s",
                       LOGINS_MAX, path);
    if ((l->v[l->n] = strdup(pattern)) == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    l->n++;
    return 0;
}

int
logins_find(struct logins *l, const char *folder, struct err *err)
{
    char pattern[PATH_MAX];
    glob_t found;
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(places) && rc == 0; i++) {
        if (!literal(folder, places[i], pattern) || glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t k = 0; k < found.gl_pathc && rc == 0; k++)
            rc = add(l, found.gl_pathv[k], err);
        globfree(&found);
    }
    return rc;
}

void
logins_free(struct logins *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    l->n = 0;
}
