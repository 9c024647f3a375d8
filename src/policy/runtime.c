/* policy/runtime.c: see runtime.h */
#include "policy/runtime.h"

#include <string.h>

#include "base/array.h"
#include "policy/internal.h"

struct reader {
    struct arena *arena;
    const char *path;
    struct language *out;
    struct err *err;
};

static int
runtime_refuse(const struct reader *r, const struct node *n, const char *key, const char *code, const char *text)
{
    return node_refuse(r->path, n, key, code, text, r->err);
}

static bool
is_word(struct str s, size_t max, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr(more, c) == NULL))
            return false;
    }
    return s.n > 0 && s.n <= max;
}

bool
runtime_name_fits(struct str name)
{
    return is_word(name, RUNTIME_NAME_MAX, "+-_#") && name.p[0] >= 'a' && name.p[0] <= 'z';
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static int
copy(const struct reader *r, struct str text, const char **out)
{
    *out = arena_copy(r->arena, text);
    return *out != NULL ? 0 : policy_no_memory(r->err);
}

/* The words of a command, with LANGUAGE_FILE among them @files times. */
static int
read_words(const struct reader *r, const struct node *n, size_t files, const char *out[LANGUAGE_ARGV_MAX + 1])
{
    size_t count = 0, found = 0;

    if (n->type != NODE_LIST || n->n == 0)
        return runtime_refuse(r, n, n->key.p, "runtime.command", "a list of words is wanted, the program first");
    if (n->n > LANGUAGE_ARGV_MAX)
        return runtime_refuse(r, n, n->key.p, "runtime.command", "more than 16 words");
    for (const struct node *w = n->first; w != NULL; w = w->next) {
        if ((w->type != NODE_STRING && w->type != NODE_NUMBER) || w->text.n > LANGUAGE_TEXT_MAX ||
            (count == 0 && w->text.n == 0))
            return runtime_refuse(r, w, n->key.p, "runtime.command", "each word is a string of at most 255 bytes");
        found += str_eq_c(w->text, LANGUAGE_FILE);
        if (copy(r, w->text, &out[count++]) < 0)
            return -1;
    }
    if (found == files && strcmp(out[0], LANGUAGE_FILE) != 0)
        return 0;
    if (files == 0)
        return runtime_refuse(r, n, n->key.p, "runtime.command",
                              "\"{file}\" has no place where code is standard input");
    runtime_refuse(r, n, n->key.p, "runtime.command",
                   "\"{file}\" stands for the file with the code, once, behind the program");
    return err_hint(r->err, "command: [lua, \"{file}\"]");
}

static int
read_command(const struct reader *r, const struct node *n)
{
    if (read_words(r, n, 1, r->out->file_argv) < 0)
        return -1;
    r->out->program = r->out->file_argv[0];
    if (strchr(r->out->program, '/') == NULL || r->out->program[0] == '/')
        return 0;
    return runtime_refuse(r, n->first, "command", "runtime.command",
                          "the program is a name on the PATH inside, or absolute");
}

static int
read_stdin(const struct reader *r, const struct node *n)
{
    return read_words(r, n, 0, r->out->argv);
}

static int
read_extension(const struct reader *r, const struct node *n)
{
    if (n->type == NODE_LIST || n->type == NODE_MAP || !is_word(n->text, 15, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        return runtime_refuse(r, n, "extension", "runtime.extension",
                              "up to 15 letters and digits are wanted, as \"lua\"");
    r->out->file = arena_join(r->arena, STR_LIT("script."), n->text);
    return r->out->file != NULL ? 0 : policy_no_memory(r->err);
}

static int
read_alias(const struct reader *r, const struct node *n)
{
    if (n->type != NODE_STRING || !runtime_name_fits(n->text))
        return runtime_refuse(r, n, "alias", "runtime.name",
                              "lower-case letters, digits and \"+-_#\" are wanted, a letter first");
    if (copy(r, n->text, &r->out->alias) < 0)
        return -1;
    return language_in(languages, LANGUAGES, r->out->alias) == NULL ? 0
           : runtime_refuse(r, n, "alias", "runtime.taken", "a language of cloche's has that name");
}

static int
read_registry(const struct reader *r, const struct node *n)
{
    const struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->path, .line = n->line }, .key = "registry" };

    return n->type == NODE_STRING && policy_knows_registry(n->text) ? copy(r, n->text, &r->out->registry)
           : policy_no_registry(n->text, &w, r->err);
}

static int
read_packages(const struct reader *r, const struct node *n)
{
    if (n->type != NODE_STRING || !is_word(n->text, LANGUAGE_TEXT_MAX, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"))
        return runtime_refuse(r, n, "packages", "runtime.packages", "the name of a variable is wanted, as LUA_PATH");
    return copy(r, n->text, &r->out->packages);
}

static int
read_later(const struct reader *r, const struct node *n)
{
    runtime_refuse(r, n, n->key.p, "runtime.not-yet", "is not in this release");
    return err_hint(r->err, "a runtime is what the sandbox's own PATH has, or a bind shows");
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    int (*read)(const struct reader *r, const struct node *n);
} keys[] = {
    { "command", read_command }, { "extension", read_extension }, { "stdin", read_stdin }, { "alias", read_alias },
    { "registry", read_registry }, { "packages", read_packages },
    { "image", read_later }, { "paths", read_later }, { "warm", read_later },
};

static int
unknown(const struct reader *r, const struct node *n)
{
    char shown[SHOW_MAX];
    const struct where w = { .from = { .kind = ORIGIN_FILE, .name = r->path, .line = n->key_line } };

    where_fail(&w, r->err, "runtime.key", "%s is not a key of a runtime", show(n->key, shown));
    return err_hint(r->err, "command, extension, stdin, alias, registry, packages");
}

static int
read_keys(const struct reader *r, const struct node *root)
{
    for (const struct node *n = root->first; n != NULL; n = n->next) {
        size_t i = 0;
        while (i < ARRAY_LEN(keys) && !str_eq_c(n->key, keys[i].key))
            i++;
        if (i == ARRAY_LEN(keys) ? unknown(r, n) < 0 : keys[i].read(r, n) < 0)
            return -1;
    }
    return 0;
}

int
runtime_parse(struct arena *a, const char *path, const char *name, struct str text, struct language *out,
              struct err *err)
{
    const struct reader r = { a, path, out, err };
    const struct node *root;

    *out = (struct language){ .alias = "" };
    if (!runtime_name_fits(str_of(name))) {
        err_set(err, ERR_POLICY, "runtime.name", "%s: the file's name is the language's, and that cannot be one", path);
        return err_hint(err, "lower-case letters, digits and \"+-_#\", a letter first, then .yaml: lua.yaml");
    }
    if (language_in(languages, LANGUAGES, name) != NULL)
        return err_set(err, ERR_POLICY, "runtime.taken", "%s: a language of cloche's has that name", path);
    if (copy(&r, str_of(name), &out->name) < 0)
        return -1;
    root = doc_parse_yaml(a, path, text.p, text.n, err);
    if (root == NULL)
        return -1;
    if (root->type != NODE_MAP)
        return runtime_refuse(&r, root, NULL, "runtime.key", "a map of keys is wanted");
    if (read_keys(&r, root) < 0)
        return -1;
    if (out->program == NULL || out->file == NULL) {
        runtime_refuse(&r, root, out->program == NULL ? "command" : "extension", "runtime.missing", "is missing");
        return err_hint(err, "two lines are enough: command: [lua, \"{file}\"] and extension: lua");
    }
    if (out->argv[0] == NULL)       /* most interpreters read standard input by that name */
        language_words(out, "/dev/stdin", out->argv);
    return 0;
}
