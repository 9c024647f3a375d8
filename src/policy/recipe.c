/* policy/recipe.c: see recipe.h */
#include "policy/recipe.h"

#include <string.h>

#include "base/array.h"
#include "match/package.h"
#include "policy/internal.h"
#include "policy/runtime.h"

struct reader {
    struct arena *arena;
    const char *path;
    struct recipe *out;
    struct err *err;
};

static int
refuse(const struct reader *r, const struct node *n, const char *key, const char *code, const char *text)
{
    return node_refuse(r->path, n, key, code, text, r->err);
}

/* --- what a text has to be ---------------------------------------------------------------------------------------- */

/* @s is @least to 127 bytes of a-z, 0-9 and @more, the first one a-z, 0-9 or of @first. */
static bool
is_name(struct str s, size_t least, const char *first, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) &&
            (c == '\0' || strchr(i == 0 ? first : more, c) == NULL))
            return false;
    }
    return s.n >= least && s.n <= 127;
}

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool
any_text(struct str s)
{
    return s.n > 0;
}

static bool
a_suite(struct str s)
{
    return is_name(s, 2, "", "-");
}

/* Debian policy, 5.6.1 */
static bool
a_package(struct str s)
{
    return is_name(s, 2, "", "+-.");
}

/* "NAME" or "NAME==VERSION" */
static bool
a_pip_package(struct str s)
{
    return is_name(s, 1, CAPITALS, CAPITALS "._-=+!") && package_well("pypi", s.p);
}

/* "[@SCOPE/]NAME[@VERSION]" */
static bool
an_npm_package(struct str s)
{
    return is_name(s, 1, "@", CAPITALS "._-@/+") && package_well("npm", s.p);
}

static bool
a_folder(struct str s)
{
    return s.n > 0 && s.p[0] == '/';
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static const struct text_key {
    const char *key;
    size_t at;                      /* in struct recipe */
    bool (*fits)(struct str s);
    const char *wanted;
} texts[] = {
    { "about", offsetof(struct recipe, about), any_text, "a line of text is wanted" },
    { "suite", offsetof(struct recipe, suite), a_suite, "the name of a suite of Debian is wanted, as bookworm" },
    { "workdir", offsetof(struct recipe, workdir), a_folder, "an absolute path is wanted" },
}, lists[] = {
    { "packages", offsetof(struct recipe, packages), a_package,
      "the name of a Debian package is wanted: lower-case letters, digits and \"+-.\"" },
    { "pip", offsetof(struct recipe, pip), a_pip_package, "NAME or NAME==VERSION is wanted" },
    { "npm", offsetof(struct recipe, npm), an_npm_package, "[@SCOPE/]NAME[@VERSION] is wanted" },
    { "cmd", offsetof(struct recipe, cmd), any_text, "a list of words is wanted, the program first" },
};

static int
take(const struct reader *r, const struct node *n, const struct text_key *k, const char **out)
{
    if ((n->type != NODE_STRING && n->type != NODE_NUMBER) || n->text.n > RECIPE_TEXT_MAX || !k->fits(n->text))
        return refuse(r, n, k->key, "recipe.value", k->wanted);
    *out = arena_copy(r->arena, n->text);
    return *out != NULL ? 0 : policy_no_memory(r->err);
}

static int
take_list(const struct reader *r, const struct node *n, const struct text_key *k)
{
    struct recipe_list *list = (struct recipe_list *)(void *)((char *)r->out + k->at);

    if (n->type != NODE_LIST || n->n > RECIPE_LIST_MAX)
        return refuse(r, n, k->key, "recipe.value", "a list of at most 128 texts is wanted");
    for (const struct node *e = n->first; e != NULL; e = e->next)
        if (take(r, e, k, &list->v[list->n++]) < 0)
            return -1;
    return 0;
}

static int
take_env(const struct reader *r, const struct node *n)
{
    struct recipe_list *list = &r->out->env;

    if (n->type != NODE_MAP || n->n > RECIPE_LIST_MAX)
        return refuse(r, n, "env", "recipe.value", "a map of at most 128 names is wanted");
    for (const struct node *e = n->first; e != NULL; e = e->next) {
        const char *name;
        if ((e->type != NODE_STRING && e->type != NODE_NUMBER) || e->key.n == 0 || e->key.n > RECIPE_TEXT_MAX ||
            memchr(e->key.p, '=', e->key.n) != NULL || e->text.n > RECIPE_TEXT_MAX)
            return refuse(r, e, "env", "recipe.value", "NAME: text is wanted");
        name = arena_join(r->arena, e->key, STR_LIT("="));
        list->v[list->n] = name != NULL ? arena_join(r->arena, str_of(name), e->text) : NULL;
        if (list->v[list->n++] == NULL)
            return policy_no_memory(r->err);
    }
    return 0;
}

static int
read_key(const struct reader *r, const struct node *n)
{
    const struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->path, .line = n->key_line } };
    char shown[SHOW_MAX];

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (str_eq_c(n->key, texts[i].key))
            return take(r, n, &texts[i], (const char **)(void *)((char *)r->out + texts[i].at));
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (str_eq_c(n->key, lists[i].key))
            return take_list(r, n, &lists[i]);
    if (str_eq(n->key, STR_LIT("env")))
        return take_env(r, n);
    where_fail(&w, r->err, "recipe.key", "%s is not a key of a recipe", show(n->key, shown));
    return err_hint(r->err, "about, suite, packages, pip, npm, env, workdir, cmd");
}

int
recipe_parse(struct arena *a, const char *path, const char *name, struct str text, struct recipe *out,
             struct err *err)
{
    const struct reader r = { a, path, out, err };
    const struct node *root;

    *out = (struct recipe){ .about = "", .suite = "bookworm", .workdir = "" };
    if (!runtime_name_fits(str_of(name)) || strpbrk(name, "#+") != NULL) {
        err_set(err, ERR_POLICY, "recipe.name", "%s: the file's name is the recipe's, and that cannot be one", path);
        return err_hint(err, "lower-case letters, digits and \"-_\", a letter first, at most 31");
    }
    out->name = arena_copy(a, str_of(name));
    out->file = arena_copy(a, str_of(path));
    if (out->name == NULL || out->file == NULL)
        return policy_no_memory(err);
    root = doc_parse_yaml(a, path, text.p, text.n, err);
    if (root == NULL)
        return -1;
    if (root->type != NODE_MAP)
        return refuse(&r, root, NULL, "recipe.key", "a map of keys is wanted");
    for (const struct node *n = root->first; n != NULL; n = n->next)
        if (read_key(&r, n) < 0)
            return -1;
    if (out->packages.n > 0)
        return 0;
    refuse(&r, root, "packages", "recipe.missing", "is missing");
    return err_hint(err, "packages: [python3]");
}
