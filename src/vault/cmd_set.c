/* vault/cmd_set.c: cloche secret set, rotate, import */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vault/cmd.h"
#include "vault/placeholder.h"

#define IMPORT_MAX (128 * 1024)
#define EXPIRES_MAX_MS (10ULL * 365 * 24 * 3600 * 1000)

/* --- the binding that the flags say ------------------------------------------------------------------------------- */

/* Whether @lines has one of the key that @line begins with: the user's own lines replace the built-in ones of a
 * kind. */
static bool
overridden(const struct buf *lines, struct str line)
{
    size_t key = 0;
    struct str rest = { (const char *)lines->p, lines->n };

    while (key < line.n && line.p[key] != ' ')
        key++;
    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end != NULL ? (size_t)(end - rest.p) + 1 : rest.n;
        if (n > key && strncmp(rest.p, line.p, key + 1) == 0)
            return true;
        rest = (struct str){ rest.p + n, rest.n - n };
    }
    return false;
}

static int
add_builtin(const struct cmd_options *o, struct buf *text, struct err *err)
{
    const struct binding_builtin *b = binding_builtin(o->builtin);
    struct str rest;

    if (b == NULL) {
        err_set(err, ERR_USAGE, "vault.binding.unknown", "there is no binding \"%.40s\"", o->builtin);
        return err_hint(err, "anthropic, openai, github, gitlab, npm, pypi, aws; or --host and --place for your own");
    }
    for (rest = str_of(b->text); rest.n > 0;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end != NULL ? (size_t)(end - rest.p) + 1 : rest.n;
        if (!overridden(&o->lines, (struct str){ rest.p, n }))
            buf_append(text, rest.p, n);
        rest = (struct str){ rest.p + n, rest.n - n };
    }
    return 0;
}

/* Then nothing has to be inside, and no variable is there unless it is asked for. */
static bool
added(const struct store_meta *meta)
{
    return (meta->binding.places & BINDING_ADD) != 0;
}

/* --binding, --host and the like into @meta; as it was when there are none. */
static int
bind_by_flags(const struct cmd_options *o, struct store_meta *meta, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
    const struct binding_builtin *b = o->builtin != NULL ? binding_builtin(o->builtin) : NULL;

    if (o->builtin != NULL || o->lines.n > 0) {
        if (o->builtin != NULL && add_builtin(o, &text, err) < 0)
            return -1;
        buf_append(&text, o->lines.p, o->lines.n);
        if (binding_parse((struct str){ (const char *)text.p, text.n }, &meta->binding, err) < 0)
            return -1;
        meta->bound = true;
        memset(meta->builtin, 0, sizeof(meta->builtin));
        if (b != NULL)
            memcpy(meta->builtin, b->name, strlen(b->name));
        if (b != NULL || added(meta))
            memset(meta->env, 0, sizeof(meta->env));
        if (b != NULL && !added(meta))
            memcpy(meta->env, b->env, strlen(b->env));
    }
    if (o->env != NULL) {
        if (o->env[0] != '\0' && !store_env_valid(str_of(o->env)))
            return err_set(err, ERR_USAGE, "vault.env", "--env \"%.60s\" is not a variable's name", o->env);
        memcpy(meta->env, o->env, strlen(o->env) + 1);
    } else if (meta->env[0] == '\0' && meta->bound && !added(meta) && store_env_valid(str_of(meta->name))) {
        memcpy(meta->env, meta->name, strlen(meta->name) + 1);
    }
    return 0;
}

static int
set_expiry(const struct cmd_options *o, struct store_meta *meta, struct err *err)
{
    uint64_t ms;

    if (o->expires == NULL || strcmp(o->expires, "never") == 0) {
        meta->expires = 0;
        return 0;
    }
    if (!str_parse_duration_ms(str_of(o->expires), EXPIRES_MAX_MS, &ms) || ms < 1000) {
        err_set(err, ERR_USAGE, "vault.expires", "--expires \"%.40s\" is not a time", o->expires);
        return err_hint(err, "such as 30m or 12h from now, or never");
    }
    meta->expires = meta->updated + ms / 1000;
    return 0;
}

/* --- one value into the store ------------------------------------------------------------------------------------- */

/* What the parts of a value have to be like; those of an AWS credential are judged when they are bound. */
static int
check_value(const struct store_meta *meta, const struct secret *value, struct err *err)
{
    if (!meta->bound || (meta->binding.places & BINDING_SIGV4) == 0)
        return placeholder_fit(value->p, value->n, err) < 0 ||
                       (meta->bound && placeholder_fit_places(value->p, value->n, &meta->binding, err) < 0)
                   ? -1 : 0;
    if (memchr(value->p, ':', value->n) != NULL)
        return 0;
    err_set(err, ERR_POLICY, "vault.value", "an AWS credential is ID:KEY or ID:KEY:TOKEN");
    return err_hint(err, "access key id, secret access key and session token, with colons between them");
}

/* @fresh: it may be a new name. @old_id gets the id of the value before, "" when there was none. */
static int
keep(const struct cmd_options *o, const char *name, const struct secret *value, bool fresh, char old_id[33],
     struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_free struct store_meta *m = calloc(1, sizeof(*m));
    struct err unknown = ERR_INIT;
    size_t index;
    int r = -1;

    old_id[0] = '\0';
    if (m == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    /* the lock is taken only now: whoever types a value slowly keeps nobody waiting */
    if (store_open(&s, true, err) < 0)
        return -1;
    if (store_find(&s, name, m, &index, &unknown) == 0) {
        memcpy(old_id, m->id, sizeof(m->id));
    } else if (!fresh || strcmp(unknown.code, "vault.unknown") != 0) {
        *err = unknown;
        return -1;
    } else {
        memset(m, 0, sizeof(*m));
        memcpy(m->name, name, strlen(name) + 1);
    }
    m->updated = (uint64_t)time(NULL);
    m->created = m->created != 0 ? m->created : m->updated;
    m->revoked = false;
    if (bind_by_flags(o, m, err) == 0 && set_expiry(o, m, err) == 0 && check_value(m, value, err) == 0 &&
        store_new_id(m->id, err) == 0)
        r = store_put(&s, m, value, err);
    if (r == 0 && !o->keep && old_id[0] != '\0')
        r = store_revoke(&s, old_id, err);
    if (r == 0 && !m->bound)
        printf("%s is kept; it is bound to no host yet: `--secret %s=BINDING`, or set it again with --host\n", name,
               name);
    else if (r == 0)
        printf("%s is kept\n", name);
    return r;
}

int
cmd_set(struct cmd_options *o, struct err *err)
{
    cleanup_secret struct secret value = { NULL, 0 };
    char old_id[33];

    if (secret_memory_init(err) < 0 || value_read(o, &value, err) < 0)
        return -1;
    return keep(o, o->name, &value, true, old_id, err);
}

int
cmd_rotate(struct cmd_options *o, struct err *err)
{
    cleanup_secret struct secret value = { NULL, 0 };
    char old_id[33];

    if (secret_memory_init(err) < 0 || value_read(o, &value, err) < 0)
        return -1;
    return keep(o, o->name, &value, false, old_id, err);
}

/* --- import ------------------------------------------------------------------------------------------------------- */

/* NAME=VALUE, as .env files have it: "export " in front, quotes around the value (*@quote says which), "#" begins a
 * comment line. False when it is none. */
static bool
split_line(struct str line, struct str *name, struct str *value, char *quote)
{
    const char *equals;

    while (line.n > 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    if (str_starts(line, STR_LIT("export ")))
        line = (struct str){ line.p + 7, line.n - 7 };
    equals = line.n > 0 ? memchr(line.p, '=', line.n) : NULL;
    if (equals == NULL)
        return false;
    *name = (struct str){ line.p, (size_t)(equals - line.p) };
    *value = (struct str){ equals + 1, line.n - name->n - 1 };
    *quote = '\0';
    if (value->n >= 2 && (value->p[0] == '"' || value->p[0] == '\'') && value->p[value->n - 1] == value->p[0]) {
        *quote = value->p[0];
        *value = (struct str){ value->p + 1, value->n - 2 };
    }
    return store_name_valid(*name);
}

/* How long the entry at the beginning of @rest is: a line, or more when a quote that its value begins with is closed at
 * the end of a later one. */
static size_t
entry_length(struct str rest)
{
    const char *end = memchr(rest.p, '\n', rest.n), *equals;
    size_t line = end != NULL ? (size_t)(end - rest.p) : rest.n, at;
    char quote;

    for (at = 0; at < line && (rest.p[at] == ' ' || rest.p[at] == '\t'); at++)
        ;
    equals = at < line && rest.p[at] != '#' ? memchr(rest.p, '=', line) : NULL;
    at = equals != NULL ? (size_t)(equals - rest.p) + 1 : line;
    if (at >= line || (rest.p[at] != '"' && rest.p[at] != '\''))
        return line;
    quote = rest.p[at];
    for (size_t i = at + 1; i < rest.n; i++) {
        size_t next = i + 1 < rest.n && rest.p[i + 1] == '\r' ? i + 2 : i + 1;
        if (rest.p[i] == quote && (next == rest.n || rest.p[next] == '\n'))
            return next;
    }
    return line;
}

/* In double quotes "\n" is the end of a line. */
static void
unescape_lines(struct secret *value)
{
    size_t n = 0;

    for (size_t i = 0; i < value->n; i++) {
        bool escape = value->p[i] == '\\' && i + 1 < value->n && value->p[i + 1] == 'n';
        value->p[n++] = escape ? '\n' : value->p[i];
        i += escape;
    }
    explicit_bzero(value->p + n, value->n - n);
    value->n = n;
}

static const struct binding_builtin *
builtin_of_variable(const char *name)
{
    for (size_t i = 0; i < binding_n_builtins; i++)
        if (strcmp(binding_builtins[i].env, name) == 0 && strncmp(binding_builtins[i].text, "host ", 5) == 0)
            return &binding_builtins[i];
    return NULL;
}

static int
import_line(const struct cmd_options *o, struct str line, size_t number, struct err *err)
{
    cleanup_secret struct secret copy = { NULL, 0 };
    struct cmd_options own = { .builtin = o->builtin, .lines = BUF_INIT(0), .keep = o->keep };
    char name_text[VAULT_NAME_MAX + 1], old_id[33];
    struct str name, value;
    char quote;

    if (!split_line(line, &name, &value, &quote)) {
        err_set(err, ERR_USAGE, "vault.import", "line %zu is not NAME=VALUE", number);
        return err_hint(err, "fix it and import the file again; the lines before it are already stored");
    }
    memcpy(name_text, name.p, name.n);
    name_text[name.n] = '\0';
    if (str_starts(name, STR_LIT("AWS_"))) {
        err_set(err, ERR_USAGE, "vault.import", "line %zu: the parts of an AWS credential belong together", number);
        return err_hint(err, "`cloche secret set aws --binding aws` takes ID:KEY or ID:KEY:TOKEN");
    }
    if (own.builtin == NULL && builtin_of_variable(name_text) != NULL)
        own.builtin = builtin_of_variable(name_text)->name;
    own.env = store_env_valid(name) ? name_text : NULL;
    if (secret_copy(&copy, value.p, value.n, err) < 0)
        return -1;
    if (quote == '"')
        unescape_lines(&copy);
    if (keep(&own, name_text, &copy, true, old_id, err) < 0)
        return err_wrap(err, "line %zu", number);
    return 0;
}

int
cmd_import(struct cmd_options *o, struct err *err)
{
    cleanup_secret struct secret text = { NULL, 0 };
    cleanup_close int file = strcmp(o->name, "-") == 0 ? -1 : open(o->name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t number = 0;
    struct str rest;

    if (file < 0 && strcmp(o->name, "-") != 0)
        return err_sys(err, errno, "vault.input", "%s", o->name);
    if (secret_memory_init(err) < 0 ||
        value_read_fd(file >= 0 ? file : STDIN_FILENO, IMPORT_MAX, o->name, &text, err) < 0)
        return -1;
    for (rest = (struct str){ (const char *)text.p, text.n }; rest.n > 0;) {
        struct str line = { rest.p, entry_length(rest) };
        size_t blank = 0, first = number + 1;
        for (size_t i = 0; i < line.n; i++)
            number += line.p[i] == '\n';
        number++;
        rest = (struct str){ rest.p + line.n, rest.n - line.n };
        if (rest.n > 0)
            rest = (struct str){ rest.p + 1, rest.n - 1 };
        while (blank < line.n && (line.p[blank] == ' ' || line.p[blank] == '\t' || line.p[blank] == '\r'))
            blank++;
        line = (struct str){ line.p + blank, line.n - blank };
        if (line.n > 0 && line.p[0] != '#' && import_line(o, line, first, err) < 0)
            return -1;
    }
    return 0;
}
