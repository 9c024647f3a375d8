/* policy/agent.c: see agent.h */
#include "policy/agent.h"

#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"
#include "policy/runtime.h"

#define TEXT_MAX PATH_TEXT_MAX

struct reader {
    struct arena *arena;
    const char *path;
    struct agent *out;
    struct err *err;
};

/* What each entry of a list has to be. */
enum shape { ANY_TEXT, MAYBE_NONE, BELOW_HOME, A_FOLDER, A_NAME };

static int
refuse(const struct reader *r, const struct node *n, const char *key, const char *code, const char *text)
{
    return node_refuse(r->path, n, key, code, text, r->err);
}

bool
agent_name_fits(struct str name)
{
    static const char *const words[] = { "ls", "show", "new", "help" };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq_c(name, words[i]))
            return false;
    return runtime_name_fits(name);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static int
copy(const struct reader *r, struct str text, const char **out)
{
    *out = arena_copy(r->arena, text);
    return *out != NULL ? 0 : policy_no_memory(r->err);
}

/* A relative path that stays below where it is. */
static bool
is_below(struct str s)
{
    char room[TEXT_MAX + 2];
    size_t n;

    return s.n > 0 && s.p[0] != '/' && s.p[s.n - 1] != '/' && strstr(s.p, "..") == NULL &&
           path_normalise(s, STR_LIT("/"), false, room, sizeof(room), &n) == PATH_OK && n == s.n + 1 &&
           memcmp(room + 1, s.p, s.n) == 0;
}

static int
put_text(const struct reader *r, const struct node *n, const char *key, enum shape shape, const char **out)
{
    struct str s = n->text;
    bool home;

    if ((n->type != NODE_STRING && n->type != NODE_NUMBER) || (s.n == 0 && shape != MAYBE_NONE) ||
        s.n > TEXT_MAX)
        return refuse(r, n, key, "agent.value", "a text of at most 4095 bytes is wanted");
    home = str_starts(s, STR_LIT("~/"));
    if (home && (shape == BELOW_HOME || shape == A_NAME))
        s = (struct str){ s.p + 2, s.n - 2 };
    if (shape == BELOW_HOME && !home)
        return refuse(r, n, key, "agent.value", "a path below the home is wanted, as ~/.config/NAME");
    if ((shape == BELOW_HOME || shape == A_NAME) && !is_below(s))
        return refuse(r, n, key, "agent.value", "a plain path is wanted, without \"..\", \"//\" and a last \"/\"");
    if (shape == A_FOLDER && !home && s.p[0] != '/')
        return refuse(r, n, key, "agent.value", "a folder is absolute, or begins with ~/");
    return copy(r, s, out);
}

static int
put_list(const struct reader *r, const struct node *n, enum shape shape, struct agent_list *out)
{
    if (n->type != NODE_LIST || n->n > AGENT_LIST_MAX)
        return refuse(r, n, n->key.p, "agent.value", "a list of at most 64 texts is wanted");
    for (const struct node *e = n->first; e != NULL; e = e->next)
        if (put_text(r, e, n->key.p, shape, &out->v[out->n++]) < 0)
            return -1;
    return 0;
}

static int
put_pairs(const struct reader *r, const struct node *n, enum shape shape, struct agent_pairs *out)
{
    if (n->type != NODE_MAP || n->n > AGENT_PAIRS_MAX)
        return refuse(r, n, n->key.p, "agent.value", "a map of at most 32 names is wanted");
    for (const struct node *e = n->first; e != NULL; e = e->next) {
        const struct node name = { .type = NODE_STRING, .line = e->line, .text = e->key };
        out->value[out->n] = NULL;
        if (put_text(r, &name, n->key.p, shape, &out->name[out->n]) < 0)
            return -1;
        if (e->type == NODE_LIST || e->type == NODE_MAP || (e->type == NODE_NULL && shape == BELOW_HOME))
            return refuse(r, e, n->key.p, "agent.value", "a text is wanted");
        if (e->type != NODE_NULL && copy(r, e->text, &out->value[out->n]) < 0)
            return -1;
        out->n++;
    }
    return 0;
}

static int
put_program(const struct reader *r, const struct node *n)
{
    if (put_text(r, n, "program", ANY_TEXT, &r->out->program) < 0)
        return -1;
    if (strchr(r->out->program, '/') == NULL || r->out->program[0] == '/' ||
        strncmp(r->out->program, "~/", 2) == 0)
        return 0;
    return refuse(r, n, "program", "agent.value", "a name on the PATH is wanted, or an absolute path, or one below ~/");
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int
read_key(const struct reader *r, const struct node *n)
{
    struct agent *a = r->out;
    const struct { const char *key; struct agent_list *list; enum shape shape; } lists[] = {
        { "args", &a->args, ANY_TEXT }, { "hosts", &a->hosts, ANY_TEXT }, { "secrets", &a->secrets, ANY_TEXT },
        { "find", &a->find, A_FOLDER }, { "show", &a->show, BELOW_HOME }, { "protect", &a->protect, A_NAME },
    };
    const struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->path, .line = n->key_line } };
    char shown[SHOW_MAX];

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (str_eq_c(n->key, lists[i].key))
            return put_list(r, n, lists[i].shape, lists[i].list);
    if (str_eq(n->key, STR_LIT("program")))
        return put_program(r, n);
    if (str_eq(n->key, STR_LIT("about")))
        return put_text(r, n, "about", MAYBE_NONE, &a->about);
    if (str_eq(n->key, STR_LIT("install")))
        return put_text(r, n, "install", MAYBE_NONE, &a->install);
    if (str_eq(n->key, STR_LIT("env")))
        return put_pairs(r, n, ANY_TEXT, &a->env);
    if (str_eq(n->key, STR_LIT("seed")))
        return put_pairs(r, n, BELOW_HOME, &a->seed);
    where_fail(&w, r->err, "agent.key", "%s is not a key of an agent's profile", show(n->key, shown));
    return err_hint(r->err, "about, program, install, find, args, hosts, secrets, show, protect, env, seed");
}

int
agent_parse(struct arena *a, const char *path, const char *name, struct str text, struct agent *out, struct err *err)
{
    const struct reader r = { a, path, out, err };
    const struct node *root;

    *out = (struct agent){ .about = "", .install = "" };
    if (!agent_name_fits(str_of(name))) {
        err_set(err, ERR_POLICY, "agent.name", "%s: the file's name is the agent's, and that cannot be one", path);
        return err_hint(err, "lower-case letters, digits and \"+-_#\", a letter first, and not ls, show, new or help");
    }
    if (copy(&r, str_of(name), &out->name) < 0 || copy(&r, str_of(path), &out->file) < 0)
        return -1;
    root = doc_parse_yaml(a, path, text.p, text.n, err);
    if (root == NULL)
        return -1;
    if (root->type != NODE_MAP)
        return refuse(&r, root, NULL, "agent.key", "a map of keys is wanted");
    for (const struct node *n = root->first; n != NULL; n = n->next)
        if (read_key(&r, n) < 0)
            return -1;
    if (out->program != NULL)
        return 0;
    refuse(&r, root, "program", "agent.missing", "is missing");
    return err_hint(err, "program: the name that it has on your PATH");
}
