/* program/toolchains.c: see toolchains.h */
#include "program/toolchains.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "match/path.h"

#define LIST_MAX 5

/* Paths are relative to @root, `*` stands for each, and a `!` before one says: of these the one that the caller's PATH
 * has, or else the newest. An absolute one lies elsewhere; "~/" in the home. */
static const struct toolchain {
    const char *name;
    const char *from;               /* the variable that says where it is */
    const char *root;               /* ... or here */
    const char *mark;               /* what is there if it is installed */
    const char *show[LIST_MAX];
    const char *path[LIST_MAX];
    const char *set;                /* the variable that says it inside, or NULL */
} all[] = {
    { "rustup", "RUSTUP_HOME", "~/.rustup", "toolchains", { "", "~/.cargo/bin" }, { "~/.cargo/bin" }, "RUSTUP_HOME" },
    { "npm", "NPM_CONFIG_PREFIX", "~/.npm-global", "lib/node_modules", { "bin", "lib/node_modules" }, { "bin" }, NULL },
    { "nvm", "NVM_DIR", "~/.nvm", "versions/node", { "versions" }, { "!versions/node/*/bin" }, NULL },
    { "fnm", "FNM_DIR", "~/.local/share/fnm", "node-versions", { "node-versions", "aliases" },
      { "aliases/default/bin" }, NULL },
    { "pyenv", "PYENV_ROOT", "~/.pyenv", "versions", { "" }, { "shims", "bin" }, "PYENV_ROOT" },
    { "uv", "UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python", "",
      { "", "~/.local/share/uv/tools", "~/.local/bin/uv", "~/.local/bin/uvx" }, { "~/.local/bin" },
      "UV_PYTHON_INSTALL_DIR" },
    { "go", "GOROOT", "/usr/local/go", "bin/go", { "", "~/go/bin" }, { "bin", "~/go/bin" }, NULL },
    { "sdkman", "SDKMAN_DIR", "~/.sdkman", "candidates", { "candidates" }, { "candidates/*/current/bin" }, NULL },
    { "homebrew", "HOMEBREW_PREFIX", "/home/linuxbrew/.linuxbrew", "bin/brew", { "" }, { "bin", "sbin" }, NULL },
    { "deno", "DENO_INSTALL", "~/.deno", "bin/deno", { "bin" }, { "bin" }, NULL },
    { "bun", "BUN_INSTALL", "~/.bun", "bin/bun", { "bin", "install/global" }, { "bin" }, NULL },
};

struct finding {
    const char *home, *project;
    struct toolchains *out;
    char root[PATH_MAX];
};

/* Where @path of the toolchain is: false where that is no place. */
static bool
locate(const struct finding *f, const char *path, char out[PATH_MAX])
{
    int n;

    if (strncmp(path, "~/", 2) == 0)
        n = f->home == NULL ? -1 : snprintf(out, PATH_MAX, "%s%s", f->home, path + 1);
    else if (path[0] == '/' || path[0] == '\0')
        n = snprintf(out, PATH_MAX, "%s", path[0] == '/' ? path : f->root);
    else
        n = snprintf(out, PATH_MAX, "%s/%s", f->root, path);
    return n > 1 && n < PATH_MAX;
}

/* There, and nobody's but the user's or root's, by whatever links lead to it: where they do is @real. */
static bool
is_ours(const struct finding *f, const char *path, char real[PATH_MAX])
{
    struct stat st;

    if (realpath(path, real) == NULL || stat(real, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0))
        return false;
    return f->project == NULL || (!path_within(str_of(real), str_of(f->project)) &&
                                  !path_within(str_of(path), str_of(f->project)));
}

static bool
is_shown_anyhow(const char *path)
{
    return path_within(str_of(path), STR_LIT("/usr")) || path_within(str_of(path), STR_LIT("/opt"));
}

static void
show(const struct finding *f, const char *path)
{
    struct toolchains *t = f->out;
    char real[PATH_MAX], home[PATH_MAX];

    if (!is_ours(f, path, real) || is_shown_anyhow(path) || t->n_shown == TOOLCHAINS_SHOWN_MAX ||
        strchr(path, ':') != NULL)
        return;
    /* never the home, or what holds it, whatever a variable says, and however */
    if (f->home != NULL && (realpath(f->home, home) == NULL || path_within(str_of(home), str_of(real))))
        return;
    snprintf(t->shown[t->n_shown++], PATH_MAX, "%s", path);
}

static void
put_folder(const struct finding *f, const char *folder)
{
    struct toolchains *t = f->out;
    size_t n = strlen(t->folders), more = strlen(folder);
    char real[PATH_MAX];

    if (is_ours(f, folder, real) && strchr(folder, ':') == NULL && n + more + 2 < sizeof(t->folders))
        snprintf(t->folders + n, sizeof(t->folders) - n, "%s:", folder);
}

/* The caller's own choice, or the newest. */
static const char *
chosen(char **v, size_t n)
{
    const char *newest = n > 0 ? v[0] : NULL, *path = getenv("PATH");

    for (size_t i = 0; i < n; i++) {
        if (path != NULL && path_list_has(path, v[i]))
            return v[i];
        if (strverscmp(v[i], newest) > 0)
            newest = v[i];
    }
    return newest;
}

static void
put_folders(const struct finding *f, const char *path)
{
    bool one = path[0] == '!';
    char pattern[PATH_MAX];
    glob_t found;

    if (!locate(f, path + one, pattern))
        return;
    if (strchr(path, '*') == NULL) {
        put_folder(f, pattern);
        return;
    }
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    if (one)
        put_folder(f, chosen(found.gl_pathv, found.gl_pathc));
    for (size_t i = 0; !one && i < found.gl_pathc; i++)
        put_folder(f, found.gl_pathv[i]);
    globfree(&found);
}

static bool
is_taken(const struct toolchains *t, const struct toolchain *c)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->names[i] == c->name)
            return true;
    return false;
}

/* Whether it is there. */
static bool
take(struct finding *f, const struct toolchain *c)
{
    const char *said = getenv(c->from);
    struct toolchains *t = f->out;
    char mark[PATH_MAX], real[PATH_MAX];

    f->root[0] = '\0';
    if (said != NULL && said[0] == '/' && strlen(said) < sizeof(f->root))
        snprintf(f->root, sizeof(f->root), "%s", said);
    else if (!locate(f, c->root, f->root))
        return false;
    if (!locate(f, c->mark, mark) || !is_ours(f, mark, real))
        return false;
    for (size_t i = 0; i < LIST_MAX && c->show[i] != NULL; i++)
        if (locate(f, c->show[i], mark))
            show(f, mark);
    for (size_t i = 0; i < LIST_MAX && c->path[i] != NULL; i++)
        put_folders(f, c->path[i]);
    if (c->set != NULL && t->n_env < TOOLCHAINS_ENV_MAX)
        snprintf(t->env[t->n_env++], sizeof(t->env[0]), "%s=%s", c->set, f->root);
    t->names[t->n++] = c->name;
    return true;
}

_Static_assert(ARRAY_LEN(all) <= ARRAY_LEN(((struct toolchains *)0)->names) && ARRAY_LEN(all) <= TOOLCHAINS_ENV_MAX,
               "room for each");

static int
take_named(struct finding *f, struct str name, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!str_eq_c(name, all[i].name))
            continue;
        if (is_taken(f->out, &all[i]) || take(f, &all[i]))
            return 0;
        err_set(err, ERR_UNSUPPORTED, "toolchains.absent", "there is no %s here", all[i].name);
        return err_hint(err, "it is looked for in %s, or where the variable %s says", all[i].root, all[i].from);
    }
    err_set(err, ERR_USAGE, "toolchains.unknown", "\"%.*s\" is no toolchain", (int)(name.n < 64 ? name.n : 64), name.p);
    return err_hint(err, TOOLCHAINS_HELP);
}

int
toolchains_find(const char *which, const char *home, const char *project, struct toolchains *out, struct err *err)
{
    char real_project[PATH_MAX];
    struct finding f = { .home = home, .out = out,
                         .project = project != NULL ? realpath(project, real_project) : NULL };

    memset(out, 0, sizeof(*out));
    if (strcmp(which, "none") == 0)
        return 0;
    if (strcmp(which, "auto") == 0) {
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            (void)take(&f, &all[i]);
        return 0;
    }
    for (const char *at = which;; at++) {
        size_t n = strcspn(at, ",");

        if (take_named(&f, (struct str){ at, n }, err) < 0)
            return -1;
        at += n;
        if (*at == '\0')
            return 0;
    }
}
