/* program/installed.c: see installed.h */
#include "program/installed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "match/path.h"

#define FIRST_LINE 256      /* as the kernel reads of it */
#define LINKS_MAX  40       /* one behind the other, as the kernel follows them */

struct search {
    const char *home, *project;     /* real paths; NULL: none */
    struct installed *out;
    struct err *err;
};

static bool
within(const char *path, const char *dir)
{
    return dir != NULL && path_within(str_of(path), str_of(dir));
}

static bool
is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool
is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Every private root has these. */
static bool
in_the_system(const char *path)
{
    static const char *const dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (within(path, dirs[i]))
            return true;
    return false;
}

/* A folder of the user's that may be shown as a whole: not the home or what holds it. */
static bool
narrow(const struct search *s, const char *folder)
{
    return folder[0] == '/' && folder[1] != '\0' && !within(s->home != NULL ? s->home : "/", folder);
}

static int
show(const struct search *s, const char *path)
{
    struct installed *out = s->out;

    if (in_the_system(path))
        return 0;
    for (size_t i = 0; i < out->n_shown; i++)
        if (within(path, out->shown[i]))
            return 0;
    if (out->n_shown == INSTALLED_SHOWN_MAX)
        return err_set(s->err, ERR_LIMIT, "agent.program", "%s needs more than %d folders", out->program,
                       INSTALLED_SHOWN_MAX);
    snprintf(out->shown[out->n_shown++], PATH_MAX, "%s", path);
    return 0;
}

static void
parent(const char *path, char out[PATH_MAX])
{
    char *slash;

    snprintf(out, PATH_MAX, "%s", path);
    slash = strrchr(out, '/');
    if (slash != NULL)
        *(slash == out ? slash + 1 : slash) = '\0';
}

static void
on_path(const struct search *s, const char *file)
{
    char folder[PATH_MAX], *all = s->out->folders;
    size_t n = strlen(all);

    parent(file, folder);
    if (!path_list_has(all, folder) && !in_the_system(folder))
        snprintf(all + n, sizeof(s->out->folders) - n, "%s:", folder);
}

/* --- what belongs to a file --------------------------------------------------------------------------------------- */

/* The folder of packages that npm put it in. */
static bool
npm_folder(const struct search *s, const char *real, char out[PATH_MAX])
{
    const char *at = strstr(real, "/node_modules/");

    if (at == NULL)
        return false;
    snprintf(out, PATH_MAX, "%.*s/node_modules", (int)(at - real), real);
    return narrow(s, out);
}

/* The virtual environment that it is a script of. */
static bool
environment(const struct search *s, const char *real, char out[PATH_MAX])
{
    char bin[PATH_MAX], mark[PATH_MAX + 16];

    parent(real, bin);
    parent(bin, out);
    snprintf(mark, sizeof(mark), "%s/pyvenv.cfg", out);
    return access(mark, R_OK) == 0 && narrow(s, out);
}

/* An interpreter's own prefix, with what it loads: PREFIX/bin/python3 and PREFIX/lib. */
static bool
prefix(const struct search *s, const char *real, char out[PATH_MAX])
{
    char bin[PATH_MAX], lib[PATH_MAX + 16];

    parent(real, bin);
    parent(bin, out);
    snprintf(lib, sizeof(lib), "%s/lib", out);
    return str_ends(str_of(bin), STR_LIT("/bin")) && is_folder(lib) && narrow(s, out);
}

/* ~/.local has much beside programs: what applications keep, mail, histories. */
static bool
in_local(const struct search *s, const char *folder)
{
    return s->home != NULL && strncmp(folder, s->home, strlen(s->home)) == 0 &&
           strcmp(folder + strlen(s->home), "/.local") == 0;
}

static int
show_file(const struct search *s, const char *real, bool interpreter)
{
    char folder[PATH_MAX], lib[PATH_MAX];

    if (in_the_system(real))
        return 0;
    if (npm_folder(s, real, folder) || environment(s, real, folder))
        return show(s, folder);
    if (!interpreter || !prefix(s, real, folder))
        return show(s, real);
    if (!in_local(s, folder))
        return show(s, folder);
    snprintf(lib, sizeof(lib), "%.*s/lib", PATH_MAX - 5, folder);
    return show(s, real) < 0 ? -1 : show(s, lib);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Whether the way to @path, link by link, leads through the project: then what was inside may say where it ends. */
static bool
by_the_project(const struct search *s, const char *path)
{
    char at[PATH_MAX] = "", next[PATH_MAX], to[PATH_MAX], rest[2 * PATH_MAX], more[2 * PATH_MAX];
    int links = 0;

    snprintf(rest, sizeof(rest), "%s", path);
    for (char *name = rest; *(name += strspn(name, "/")) != '\0';) {
        size_t n = strcspn(name, "/");
        ssize_t length = -1;
        if (n == 2 && memcmp(name, "..", 2) == 0) {
            *(strrchr(at, '/') != NULL ? strrchr(at, '/') : at) = '\0';
        } else if (n != 1 || *name != '.') {
            if (snprintf(next, sizeof(next), "%s/%.*s", at, (int)n, name) >= PATH_MAX || within(next, s->project))
                return true;
            length = readlink(next, to, sizeof(to));
            if (length < 0)
                memcpy(at, next, sizeof(at));
        }
        name += n;
        if (length < 0)
            continue;
        if (++links > LINKS_MAX || snprintf(more, sizeof(more), "%.*s%s", (int)length, to, name) >= (int)sizeof(more))
            return true;
        if (to[0] == '/')
            at[0] = '\0';
        name = memcpy(rest, more, sizeof(rest));
    }
    return false;
}

/* Into @out where @folder has @name and it may be used. */
static bool
take(const struct search *s, struct str folder, const char *name, char out[PATH_MAX])
{
    return folder.n > 0 && folder.p[0] == '/' && !str_ends(folder, STR_LIT("/shims")) &&
           snprintf(out, PATH_MAX, "%.*s/%s", (int)folder.n, folder.p, name) < PATH_MAX && is_file(out) &&
           !by_the_project(s, out);
}

static bool
look(const struct search *s, const char *name, const char *const *more, char out[PATH_MAX])
{
    const char *path = getenv("PATH");
    char folder[PATH_MAX];
    struct str one;

    while (path_list_next(&path, &one))
        if (take(s, one, name, out))
            return true;
    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        bool home = strncmp(more[i], "~/", 2) == 0;
        snprintf(folder, sizeof(folder), "%s%s", home && s->home != NULL ? s->home : "", more[i] + (home ? 1 : 0));
        if (take(s, str_of(folder), name, out))
            return true;
    }
    return false;
}

/* "" at the end. */
static char *
next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t"), *end = word + strcspn(word, " \t");

    *rest = *end != '\0' ? end + 1 : end;
    *end = '\0';
    return word;
}

/* What the first line of @real names, as it is found from here: "" for a program without one. */
static void
interpreter_of(const struct search *s, const char *real, char out[PATH_MAX])
{
    cleanup_close int fd = open(real, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char line[FIRST_LINE + 1], *rest = line + 2, *word;
    ssize_t n = fd >= 0 ? read(fd, line, FIRST_LINE) : -1;

    out[0] = '\0';
    if (n < 3 || memcmp(line, "#!", 2) != 0)
        return;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    word = next_word(&rest);
    if (strcmp(word, "/usr/bin/env") != 0 && strcmp(word, "/bin/env") != 0) {
        snprintf(out, PATH_MAX, "%s", word);
        return;
    }
    do
        word = next_word(&rest);
    while (word[0] == '-' || strchr(word, '=') != NULL);
    if (word[0] == '\0' || !look(s, word, NULL, out))
        out[0] = '\0';
}

static int
show_interpreter(const struct search *s)
{
    char named[PATH_MAX], real[PATH_MAX];

    interpreter_of(s, s->out->program, named);
    if (named[0] != '/')
        return 0;
    if (realpath(named, real) == NULL)
        return err_set(s->err, ERR_UNSUPPORTED, "agent.program", "%s is run by %s, which is not there",
                       s->out->program, named);
    if (by_the_project(s, named))
        return 0;       /* it is there as far as the project has it */
    on_path(s, named);
    return show_file(s, named, false) < 0 ? -1 : show_file(s, real, true);
}

int
installed_find(const char *name, const char *const *more, const char *home, const char *project,
               struct installed *out, struct err *err)
{
    char real_home[PATH_MAX], real_project[PATH_MAX], found[PATH_MAX];
    const struct search s = { home != NULL ? realpath(home, real_home) : NULL,
                              project != NULL ? realpath(project, real_project) : NULL, out, err };
    bool below = strncmp(name, "~/", 2) == 0;

    *out = (struct installed){ .n_shown = 0 };
    if (name[0] == '/' || below) {
        snprintf(found, sizeof(found), "%s%s", below && home != NULL ? home : "", name + (below ? 1 : 0));
        if (!is_file(found))
            return err_set(err, ERR_UNSUPPORTED, "agent.not-installed", "%s is not there", found);
    } else if (!look(&s, name, more, found)) {
        return err_set(err, ERR_UNSUPPORTED, "agent.not-installed", "%s is not installed: it is not on your PATH",
                       name);
    }
    if (realpath(found, out->program) == NULL)
        return err_sys(err, errno, "agent.program", "%s", found);
    on_path(&s, found);
    return show_file(&s, out->program, false) < 0 ? -1 : show_interpreter(&s);
}
