/* policy/set_list.c: paths, lists, binds, the workspace and variables (see set.c) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/host.h"
#include "match/path.h"
#include "policy/internal.h"

#define LIST_FIRST 8
#define BINDS_MAX 256
#define ENV_MAX 1024
#define SECRETS_MAX 16     /* as the vault has of one run (vault/client.h) */
#define SECRET_NAME_MAX 64
#define SECRET_ADD_MAX 322     /* likewise */

/* Entries that a list of @n has room for: a power of two, so that no capacity needs to be stored. */
static size_t
list_room(size_t n)
{
    size_t room = LIST_FIRST;

    while (room < n)
        room *= 2;
    return n == 0 ? 0 : room;
}

int
list_reserve(struct policy *p, struct policy_list *list, size_t n, struct err *err)
{
    struct policy_entry *v = arena_raw(p->arena, list_room(list->n + n) * sizeof(*v));

    if (v == NULL)
        return policy_no_memory(err);
    if (list->n > 0)
        memcpy(v, list->v, list->n * sizeof(*v));
    list->v = v;
    return 0;
}

/* Room for one more element of @size in the array @v of @n; the new array, or NULL. */
static void *
grow(struct policy *p, void *v, size_t n, size_t size)
{
    void *more;

    if (n < list_room(n))
        return v;
    more = arena_raw(p->arena, list_room(n + 1) * size);
    if (more != NULL && n > 0)
        memcpy(more, v, n * size);
    return more;
}

int
list_push(struct policy *p, struct policy_list *list, struct policy_entry entry, struct err *err)
{
    struct policy_entry *v;

    if (list->n >= POLICY_LIST_MAX)
        return err_set(err, ERR_LIMIT, "policy.list.too-long", "more than %d entries in one list", POLICY_LIST_MAX);
    v = grow(p, list->v, list->n, sizeof(*v));
    if (v == NULL)
        return policy_no_memory(err);
    list->v = v;
    list->v[list->n++] = entry;
    return 0;
}

void
list_begin(struct policy_list *list, const struct where *w)
{
    size_t floor = 0;

    /* what is built in is a floor: whichever layer says something adds to it */
    while (floor < list->n && list->v[floor].from.kind == ORIGIN_BUILTIN)
        floor++;
    list->n = floor;
    if (floor == 0)
        list->v = NULL;
    list->set = true;
    list->from = w->from;
}

static int
path_refused(struct str text, enum path_fault fault, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];

    return where_fail(w, err, "policy.path", "path %s %s", show(text, shown), path_fault_text(fault));
}

int
resolve_path(struct policy *p, struct str text, struct str base, bool glob, const struct where *w, char **out,
             struct err *err)
{
    char normal[PATH_TEXT_MAX + 1], shown[SHOW_MAX];
    enum path_fault fault;
    size_t n;

    if (text.n > 0 && text.p[0] == '~') {
        if (text.n > 1 && text.p[1] != '/') {
            where_fail(w, err, "policy.path.user", "%s: another user's home is not looked up", show(text, shown));
            return err_hint(err, "write the path out, or \"./~name\" for a file of that name");
        }
        if (p->home == NULL) {
            where_fail(w, err, "policy.path.home", "%s: the home directory is not known", show(text, shown));
            return err_hint(err, "set HOME, or write the path out");
        }
        base = str_of(p->home);
        text = text.n <= 2 ? STR_LIT(".") : (struct str){ text.p + 2, text.n - 2 };
        while (text.n > 1 && text.p[0] == '/')
            text = (struct str){ text.p + 1, text.n - 1 };
    }
    fault = path_normalise(text, base, glob, normal, sizeof(normal), &n);
    if (fault != PATH_OK)
        return path_refused(text, fault, w, err);
    *out = arena_copy(p->arena, (struct str){ normal, n });
    return *out != NULL ? 0 : policy_no_memory(err);
}

static int
entry_path(struct policy *p, struct str text, bool literal, struct policy_entry *entry, const struct where *w,
           struct err *err)
{
    struct str stem = text;

    /* "dir/" followed by any number of stars-for-everything is the directory itself */
    while (!literal && str_ends(stem, STR_LIT("/**")) && stem.n > 3)
        stem.n -= 3;
    entry->literal = literal || !path_has_glob(stem);
    return resolve_path(p, entry->literal ? stem : text, str_of(p->cwd), !entry->literal, w, &entry->value, err);
}

/* A protected name is compared name by name, at any depth: it has to be relative and plain. */
static int
entry_names(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1], shown[SHOW_MAX];
    enum path_fault fault;
    size_t n;

    if (text.n > 0 && (text.p[0] == '/' || text.p[0] == '~' || path_has_glob(text))) {
        where_fail(w, err, "policy.protect", "%s is not a plain relative name", show(text, shown));
        return err_hint(err, "protect takes names such as \".git/hooks\", found at any depth; deny-write takes paths "
                        "and globs");
    }
    fault = path_normalise(text, STR_LIT("/"), false, normal, sizeof(normal), &n);
    if (fault != PATH_OK)
        return path_refused(text, fault, w, err);
    if (n == 1)
        return path_refused(text, PATH_EMPTY, w, err);
    entry->literal = true;
    entry->value = arena_copy(p->arena, (struct str){ normal + 1, n - 1 });
    return entry->value != NULL ? 0 : policy_no_memory(err);
}

static int
entry_host(struct policy *p, struct str text, enum entry_kind kind, struct policy_entry *entry,
           const struct where *w, struct err *err)
{
    struct host_pattern pattern;
    enum host_fault fault = kind == ENTRY_HOST || kind == ENTRY_HOST_PLAIN
                                ? host_pattern_cloche(text, &pattern)
                                : host_pattern_srt(text, kind == ENTRY_HOST_SRT_DENY, &pattern);
    char shown[SHOW_MAX];

    if (fault != HOST_OK) {
        where_fail(w, err, host_fault_code(fault), "%s %s", show(text, shown), host_fault_text(fault));
        if (fault == HOST_TOO_WIDE || fault == HOST_BARE_STAR)
            return err_hint(err, "use a registrable name such as \"*.example.com\"");
        if (fault == HOST_URL)
            return err_hint(err, "write the host only: \"example.com\", or \"example.com:443\"");
        if (fault == HOST_COLONS)
            return err_hint(err, "write an IPv6 address in brackets: \"[2001:db8::1]:443\"");
        return -1;
    }
    entry->value = arena_copy(p->arena, text);
    return entry->value != NULL ? 0 : policy_no_memory(err);
}

static bool
env_name_is_valid(struct str name)
{
    if (name.n == 0 || name.n > 255 || (name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return true;
}

static int
bad_env_name(struct str name, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];

    where_fail(w, err, "policy.env.name", "%s is not a variable's name", show(name, shown));
    return err_hint(err, "up to 255 letters, digits and \"_\", not beginning with a digit");
}

static const char *const registries[] = { "npm", "pypi", "go", "debian", "cargo", "maven" };

bool
policy_knows_registry(struct str text)
{
    for (size_t i = 0; i < ARRAY_LEN(registries); i++)
        if (str_eq_c(text, registries[i]))
            return true;
    return false;
}

int
policy_no_registry(struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];

    where_fail(w, err, "policy.registry.unknown", "%s is not a registry that is known here", show(text, shown));
    return err_hint(err, "one of npm, pypi, go, debian, cargo, maven; others by host: --allow-domain HOST");
}

static int
entry_registry(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    if (!policy_knows_registry(text))
        return policy_no_registry(text, w, err);
    entry->value = arena_copy(p->arena, text);
    return entry->value != NULL ? 0 : policy_no_memory(err);
}

static int
entry_with(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX], choice[ERR_HINT_MAX + 1];

    for (size_t i = 0; policy_with_names[i] != NULL; i++) {
        if (str_eq_c(text, policy_with_names[i])) {
            entry->value = arena_copy(p->arena, text);
            return entry->value != NULL ? 0 : policy_no_memory(err);
        }
    }
    where_fail(w, err, "policy.with", "%s is not left out by anything", show(text, shown));
    return err_hint(err, "one of %s; other programs are there", policy_words(policy_with_names, choice));
}

int
list_add(struct policy *p, struct policy_list *list, enum entry_kind kind, struct str text, const struct where *w,
         struct err *err)
{
    struct policy_entry entry = { .from = w->from };
    int r = 0;

    switch (kind) {
    case ENTRY_SOCKET:
        if (path_has_glob(text)) {
            char shown[SHOW_MAX];
            where_fail(w, err, "policy.socket.glob", "%s: a socket is named exactly", show(text, shown));
            return err_hint(err, "write one entry per socket; {path: ..., literal: true} for a name with brackets");
        }
        r = entry_path(p, text, true, &entry, w, err);
        break;
    case ENTRY_PATH:
    case ENTRY_LITERAL:
        r = entry_path(p, text, kind == ENTRY_LITERAL, &entry, w, err);
        break;
    case ENTRY_NAMES:
        r = entry_names(p, text, &entry, w, err);
        break;
    case ENTRY_HOST:
    case ENTRY_HOST_PLAIN:
    case ENTRY_HOST_SRT:
    case ENTRY_HOST_SRT_DENY:
        r = entry_host(p, text, kind, &entry, w, err);
        break;
    case ENTRY_ENV_NAME:
        if (!env_name_is_valid(text))
            return bad_env_name(text, w, err);
        entry.value = arena_copy(p->arena, text);
        break;
    case ENTRY_REGISTRY:
        r = entry_registry(p, text, &entry, w, err);
        break;
    case ENTRY_WITH:
        r = entry_with(p, text, &entry, w, err);
        break;
    case ENTRY_ENGINE:
        r = entry_engine(p, text, &entry, w, err);
        break;
    case ENTRY_PUBLISH:
        r = entry_publish(p, text, &entry, w, err);
        break;
    case ENTRY_PORT:
        r = entry_port(p, text, &entry, w, err);
        break;
    case ENTRY_ADDRESS:
        r = entry_address(p, text, &entry, w, err);
        break;
    case ENTRY_FIELD:
        r = entry_field(p, text, &entry, w, err);
        break;
    case ENTRY_CALL_ALLOW:
    case ENTRY_CALL_DENY:
        r = entry_call(p, text, kind == ENTRY_CALL_ALLOW, &entry, w, err);
        break;
    }
    if (r < 0)
        return -1;
    entry.written = arena_copy(p->arena, text);
    if (entry.value == NULL || entry.written == NULL)
        return policy_no_memory(err);
    list->set = true;
    if (list->n == 0 || list->from.kind != ORIGIN_FILE)
        list->from = w->from;
    return list_push(p, list, entry, err);
}

int
set_workdir(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    struct str base = p->view.v == VIEW_PRIVATE ? STR_LIT("/workspace") : str_of(p->cwd);

    (void)s;
    p->workdir.from = w->from;
    return resolve_path(p, text, base, false, w, &p->workdir.p, err);
}

int
set_workspace_kind(struct policy *p, const struct policy_spec *s, struct str kind, const struct where *w,
                   struct err *err)
{
    char shown[SHOW_MAX];

    for (unsigned i = WORKSPACE_RW; s->words[i] != NULL; i++) {
        if (!str_eq_c(kind, s->words[i]))
            continue;
        p->workspace.kind = (enum workspace_kind)i;
        p->workspace.from = w->from;
        p->workspace.kind_given = true;
        return 0;
    }
    where_fail(w, err, "policy.workspace.kind", "%s is not a kind of workspace", show(kind, shown));
    return err_hint(err, "rw (writes go to the folder), ro (no writes), cow (writes go to a copy: cloche diff, apply, "
                    "discard)");
}

int
set_workspace_dir(struct policy *p, struct str dir, const struct where *w, struct err *err)
{
    char *path;

    if (resolve_path(p, dir, str_of(p->cwd), false, w, &path, err) < 0)
        return -1;
    p->workspace.dir = path;
    p->workspace.from = w->from;
    p->workspace.kind = WORKSPACE_RW;
    p->workspace.kind_given = false;
    return 0;
}

int
set_workspace(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    struct str dir = text, kind;

    if (str_eq(text, STR_LIT("tmpfs"))) {
        p->workspace.dir = NULL;
        p->workspace.kind = WORKSPACE_TMPFS;
        p->workspace.kind_given = true;
        p->workspace.from = w->from;
        return 0;
    }
    if (colon == NULL)
        return set_workspace_dir(p, dir, w, err);
    dir.n = (size_t)(colon - text.p);
    kind = (struct str){ colon + 1, text.n - dir.n - 1 };
    if (set_workspace_dir(p, dir, w, err) < 0)
        return -1;
    return set_workspace_kind(p, s, kind, w, err);
}

int
set_bind_parts(struct policy *p, struct str source, struct str dest, bool writable, const struct where *w,
               struct err *err)
{
    struct policy_bind bind = { .writable = writable, .from = w->from };
    struct policy_bind *v;
    char shown[SHOW_MAX];

    if (p->n_binds >= BINDS_MAX)
        return where_fail(w, err, "policy.bind.too-many", "more than %d binds", BINDS_MAX);
    if (resolve_path(p, source, str_of(p->cwd), false, w, &bind.source, err) < 0)
        return -1;
    if (dest.n == 0) {
        bind.dest = bind.source;
    } else if (dest.p[0] != '/') {
        where_fail(w, err, "policy.bind.dest", "destination %s is not absolute", show(dest, shown));
        return err_hint(err, "write where it appears inside: \"data:/workspace/data\"");
    } else if (resolve_path(p, dest, STR_LIT("/"), false, w, &bind.dest, err) < 0) {
        return -1;
    }
    /* the same folder at the same place: the layer above says how */
    for (size_t i = 0; i < p->n_binds; i++) {
        v = &p->binds[i];
        if (v->from.kind == ORIGIN_FILE && strcmp(v->source, bind.source) == 0 && strcmp(v->dest, bind.dest) == 0 &&
            (bind.from.kind != ORIGIN_FILE || strcmp(v->from.name, bind.from.name) != 0)) {
            *v = bind;
            return 0;
        }
    }
    v = grow(p, p->binds, p->n_binds, sizeof(*v));
    if (v == NULL)
        return policy_no_memory(err);
    p->binds = v;
    p->binds[p->n_binds++] = bind;
    return 0;
}

int
set_bind(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    struct str parts[3] = { { NULL, 0 } };
    size_t n = 0, start = 0;
    bool writable = false;
    char shown[SHOW_MAX];

    (void)s;
    for (size_t i = 0; i <= text.n; i++) {
        if (i < text.n && text.p[i] != ':')
            continue;
        if (n == 3 || i == start) {
            where_fail(w, err, "policy.bind.syntax", "%s is not SRC[:DEST][:ro|:rw]", show(text, shown));
            return err_hint(err, "in a settings file {source: ..., dest: ...} takes names with \":\"");
        }
        parts[n++] = (struct str){ text.p + start, i - start };
        start = i + 1;
    }
    if (n > 1 && (str_eq(parts[n - 1], STR_LIT("ro")) || str_eq(parts[n - 1], STR_LIT("rw")))) {
        writable = str_eq(parts[n - 1], STR_LIT("rw"));
        parts[--n] = (struct str){ NULL, 0 };
    }
    if (n == 3) {
        where_fail(w, err, "policy.bind.access", "%s: the last part must be ro or rw", show(text, shown));
        return err_hint(err, "SRC:DEST:ro, or SRC:DEST:rw");
    }
    return set_bind_parts(p, parts[0], parts[1], writable, w, err);
}

int
set_env(struct policy *p, struct str name, const struct str *value, const struct where *w, struct err *err)
{
    struct policy_env env = { .from = w->from };
    struct policy_env *v;
    size_t at = 0;

    if (!env_name_is_valid(name))
        return bad_env_name(name, w, err);
    if (value != NULL && (value->n > POLICY_STRING_MAX || (value->n > 0 && memchr(value->p, '\0', value->n) != NULL)))
        return where_fail(w, err, "policy.env.value", "the value of %.*s holds a NUL byte or is longer than %d bytes",
                          (int)name.n, name.p, POLICY_STRING_MAX);
    env.name = arena_copy(p->arena, name);
    env.value = value != NULL ? arena_copy(p->arena, *value) : NULL;
    if (env.name == NULL || (value != NULL && env.value == NULL))
        return policy_no_memory(err);
    while (at < p->n_env && !str_eq_c(name, p->env[at].name))
        at++;
    if (at == p->n_env) {
        if (p->n_env >= ENV_MAX)
            return where_fail(w, err, "policy.env.too-many", "more than %d variables", ENV_MAX);
        v = grow(p, p->env, p->n_env, sizeof(*v));
        if (v == NULL)
            return policy_no_memory(err);
        p->env = v;
        p->n_env++;
    }
    p->env[at] = env;
    return 0;
}

/* As the vault judges it (vault/store_file.h): what is not a name is said here, with its line or flag. */
static bool
secret_name_is_valid(struct str name)
{
    if (name.n == 0 || name.n > SECRET_NAME_MAX || name.p[0] == '-' || name.p[0] == '.')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
              c == '.'))
            return false;
    }
    return true;
}

/* Its form; the vault knows which headers may be. The text may be a value by mistake: it is not shown. */
static int
check_added(struct str add, const struct where *w, struct err *err)
{
    bool well = add.n == 0 || (add.n <= SECRET_ADD_MAX && memchr(add.p, ':', add.n) != NULL &&
                               memmem(add.p, add.n, "{}", 2) != NULL);

    for (size_t i = 0; i < add.n; i++)
        well = well && add.p[i] >= ' ' && add.p[i] <= '~';
    if (well)
        return 0;
    where_fail(w, err, "policy.secret.add", "not a header to be added to requests");
    return err_hint(err, "such as \"Authorization: Bearer {}\": {} is where the value goes");
}

static int
copy_part(struct policy *p, struct str text, char **out)
{
    *out = text.n > 0 ? arena_copy(p->arena, text) : NULL;
    return text.n > 0 && *out == NULL ? -1 : 0;
}

int
set_secret_parts(struct policy *p, const struct secret_parts *s, const struct where *w, struct err *err)
{
    struct policy_secret secret = { .from = w->from }, *v;

    /* the text may be a value by mistake: it is not shown */
    if (!secret_name_is_valid(s->name) || (s->binding.n > 0 && !secret_name_is_valid(s->binding))) {
        where_fail(w, err, "policy.secret.name", "not the name of a secret, or of a binding");
        return err_hint(err, "up to %d letters, digits, \"-\", \"_\" and \".\": NAME or NAME=BINDING; `cloche secret "
                        "ls` lists them", SECRET_NAME_MAX);
    }
    if (check_added(s->add, w, err) < 0)
        return -1;
    if (s->env.n > 0 && (!env_name_is_valid(s->env) || s->env.n > SECRET_NAME_MAX))
        return bad_env_name(s->env, w, err);
    for (size_t i = 0; i < p->n_secrets; i++)
        if (str_eq_c(s->name, p->secrets[i].name)) {
            where_fail(w, err, "policy.secret.twice", "the secret %s is named twice", p->secrets[i].name);
            return err_hint(err, "name it once");
        }
    if (p->n_secrets >= SECRETS_MAX)
        return where_fail(w, err, "policy.secret.too-many", "more than %d secrets", SECRETS_MAX);
    v = grow(p, p->secrets, p->n_secrets, sizeof(*v));
    if (v == NULL || copy_part(p, s->name, &secret.name) < 0 || copy_part(p, s->binding, &secret.binding) < 0 ||
        copy_part(p, s->add, &secret.add) < 0 || copy_part(p, s->env, &secret.env) < 0)
        return policy_no_memory(err);
    p->secrets = v;
    p->secrets[p->n_secrets++] = secret;
    return 0;
}

int
set_env_text(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    const char *equals = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    struct str name = text, value;

    (void)s;
    if (equals == NULL)
        return set_env(p, name, NULL, w, err);
    name.n = (size_t)(equals - text.p);
    value = (struct str){ equals + 1, text.n - name.n - 1 };
    return set_env(p, name, &value, w, err);
}

int
set_secret(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    static const struct str adds = { ",add=", 5 };
    const char *add = text.n > 0 ? memmem(text.p, text.n, adds.p, adds.n) : NULL, *equals;
    struct secret_parts parts = { .name = text };

    (void)s;
    if (add != NULL) {
        parts.add = (struct str){ add + adds.n, text.n - (size_t)(add - text.p) - adds.n };
        parts.name.n = (size_t)(add - text.p);
        if (parts.add.n == 0)
            parts.add = STR_LIT("-");       /* refused: an empty one is not "as stored" */
    }
    equals = parts.name.n > 0 ? memchr(parts.name.p, '=', parts.name.n) : NULL;
    if (equals != NULL) {
        parts.binding = (struct str){ equals + 1, parts.name.n - (size_t)(equals - text.p) - 1 };
        parts.name.n = (size_t)(equals - text.p);
        if (parts.binding.n == 0)
            parts.binding = STR_LIT("-");   /* likewise */
    }
    return set_secret_parts(p, &parts, w, err);
}
