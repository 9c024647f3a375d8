/* match/language.c: see language.h */
#include "match/language.h"

#include <string.h>

#include "match/parked.h"

const struct language languages[] = { LANGUAGE_ROWS(LANGUAGE_ROW, LANGUAGE_COMMA) };

static struct {
    const struct language *rows;
    size_t n;
} more;

void
language_more(const struct language *rows, size_t n)
{
    more.rows = rows;
    more.n = n;
}

const struct language *
language_at(size_t i)
{
    if (i < LANGUAGES)
        return &languages[i];
    return i - LANGUAGES < more.n ? &more.rows[i - LANGUAGES] : NULL;
}

const struct language *
language_in(const struct language *rows, size_t n, const char *name)
{
    if (name == NULL || name[0] == '\0')        /* there are languages without an alias */
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0 || strcmp(rows[i].alias, name) == 0)
            return &rows[i];
    return NULL;
}

const struct language *
language_find(const char *name)
{
    const struct language *l = language_in(languages, LANGUAGES, name);

    return l != NULL ? l : language_in(more.rows, more.n, name);
}

const struct language *
language_of_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path, *dot = strrchr(name, '.');
    const struct language *l;

    if (dot == NULL || dot == name)
        return NULL;
    for (size_t i = 0; (l = language_at(i)) != NULL; i++)
        if (strcmp(strrchr(l->file, '.'), dot) == 0)
            return l;
    return NULL;
}

void
language_names(struct buf *out, const char *between)
{
    const struct language *l;

    for (size_t i = 0; (l = language_at(i)) != NULL; i++)
        buf_printf(out, "%s%s", i > 0 ? between : "", l->name);
}

void
language_words(const struct language *l, const char *path, const char *out[LANGUAGE_ARGV_MAX + 1])
{
    size_t n = 0;

    if (l->file_argv[0] == NULL) {
        out[n++] = l->program;
        out[n++] = path;
    }
    for (size_t i = 0; l->file_argv[i] != NULL; i++)
        out[n++] = strcmp(l->file_argv[i], LANGUAGE_FILE) == 0 ? path : l->file_argv[i];
    out[n] = NULL;
}
