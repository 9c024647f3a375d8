/* policy/describe.c: see describe.h */
#include "policy/describe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"
#include "match/proxy.h"
#include "policy/internal.h"
#include "policy/secret_text.h"

struct describer {
    policy_row_fn *fn;
    void *ctx;
    int result;     /* the first that is not 0 stops */
    bool machine;   /* nobody reads what numbers are in words */
};

static void
emit(struct describer *d, const struct policy_row *row)
{
    if (d->result == 0)
        d->result = d->fn(d->ctx, row);
}

static void
text(struct describer *d, const char *key, const char *value, const struct origin *from)
{
    emit(d, &(struct policy_row){ .key = key, .type = ROW_TEXT, .text = value, .from = from });
}

static void
truth(struct describer *d, const char *key, const struct policy_bool *field)
{
    emit(d, &(struct policy_row){ .key = key, .type = ROW_BOOL, .truth = field->v, .text = field->v ? "yes" : "no",
                                  .from = &field->from });
}

static void
human_limit(const struct limit_spec *spec, uint64_t v, char *out, size_t cap)
{
    static const struct { uint64_t size; const char *unit; } sizes[] = {
        { (uint64_t)1 << 40, "TiB" }, { (uint64_t)1 << 30, "GiB" }, { (uint64_t)1 << 20, "MiB" }, { 1 << 10, "KiB" } };

    if (v == 0) {
        snprintf(out, cap, "%s", spec->none);
        return;
    }
    switch (spec->unit) {
    case UNIT_BYTES:
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            if (v < sizes[i].size || (v % sizes[i].size != 0 && v < 8 * sizes[i].size))
                continue;
            snprintf(out, cap, "%s%" PRIu64 " %s", v % sizes[i].size != 0 ? "about " : "", v / sizes[i].size,
                     sizes[i].unit);
            return;
        }
        snprintf(out, cap, "%" PRIu64 " bytes", v);
        return;
    case UNIT_COUNT:
        snprintf(out, cap, "%" PRIu64, v);
        return;
    case UNIT_MILLI:
        snprintf(out, cap, "%" PRIu64 ".%03" PRIu64, v / 1000, v % 1000);
        return;
    case UNIT_MS:
        if (v % 1000 == 0)
            snprintf(out, cap, "%" PRIu64 " s", v / 1000);
        else
            snprintf(out, cap, "%" PRIu64 " ms", v);
        return;
    }
}

static void
limits(struct describer *d, const struct policy *p)
{
    struct policy_limits copy = p->limits;

    for (size_t i = 0; i < n_limit_specs; i++) {
        const struct policy_u64 *field = limit_field(&copy, &limit_specs[i]);
        char key[64], human[64] = "";
        snprintf(key, sizeof(key), "limits.%s", limit_specs[i].key);
        if (!d->machine)
            human_limit(&limit_specs[i], field->v, human, sizeof(human));
        emit(d, &(struct policy_row){ .key = key, .type = ROW_NUMBER, .number = field->v, .text = human,
                                      .from = &field->from });
    }
}

static void
list(struct describer *d, const char *key, const struct policy_list *l)
{
    if (l->n == 0)
        emit(d, &(struct policy_row){ .key = key, .type = ROW_NO_ENTRIES, .from = &l->from });
    for (size_t i = 0; i < l->n; i++) {
        const struct policy_entry *e = &l->v[i];
        emit(d, &(struct policy_row){ .key = key, .type = ROW_ENTRY, .text = e->value, .written = e->written,
                                      .literal = e->literal, .scope = e->scope, .from = &e->from });
    }
}

static void
binds(struct describer *d, const struct policy *p)
{
    char line[2 * POLICY_PATH_MAX + 8];

    if (p->n_binds == 0)
        emit(d, &(struct policy_row){ .key = "binds", .type = ROW_NO_ENTRIES, .from = &p->mode.from });
    for (size_t i = 0; i < p->n_binds; i++) {
        const struct policy_bind *b = &p->binds[i];
        snprintf(line, sizeof(line), "%s:%s:%s", b->source, b->dest, b->writable ? "rw" : "ro");
        emit(d, &(struct policy_row){ .key = "binds", .type = ROW_ENTRY, .text = line, .written = line, .literal = true,
                                      .from = &b->from });
    }
}

/* Values may be secrets, and this goes to terminals and tickets: names only. */
static void
env(struct describer *d, const struct policy *p)
{
    char line[512];

    if (p->n_env == 0)
        emit(d, &(struct policy_row){ .key = "env", .type = ROW_NO_ENTRIES, .from = &p->mode.from });
    for (size_t i = 0; i < p->n_env; i++) {
        snprintf(line, sizeof(line), "%s (%s)", p->env[i].name, p->env[i].value != NULL ? "set" : "passed");
        emit(d, &(struct policy_row){ .key = "env", .type = ROW_ENTRY, .text = line, .written = p->env[i].name,
                                      .literal = true, .from = &p->env[i].from });
    }
}

static void
secrets(struct describer *d, const struct policy *p)
{
    char line[1024];

    if (p->n_secrets == 0)
        emit(d, &(struct policy_row){ .key = "secrets", .type = ROW_NO_ENTRIES, .from = &p->mode.from });
    for (size_t i = 0; i < p->n_secrets; i++) {
        const struct policy_secret *s = &p->secrets[i];
        snprintf(line, sizeof(line), "%s%s%s%s%s%s%s", s->name, s->binding != NULL ? "=" : "",
                 s->binding != NULL ? s->binding : "", s->env != NULL ? " in " : "", s->env != NULL ? s->env : "",
                 s->add != NULL ? ",add=" : "", s->add != NULL ? s->add : "");
        emit(d, &(struct policy_row){ .key = "secrets", .type = ROW_ENTRY, .text = line, .written = line,
                                      .literal = true, .from = &s->from });
    }
}

/* The name in a text that is "${NAME}" and nothing else, which everybody may see. False: there is more in it. */
static bool
one_name(const char *text, struct str *name)
{
    size_t n = text != NULL ? strlen(text) : 0;

    if (n < 4 || strncmp(text, "${", 2) != 0 || strchr(text, '}') != text + n - 1)
        return false;
    *name = (struct str){ text + 2, n - 3 };
    return true;
}

/* What is in them may be more than placeholders: names and paths only. */
static void
secret_files(struct describer *d, const struct policy *p)
{
    char line[2 * POLICY_PATH_MAX + 8];

    if (p->n_secret_files == 0)
        emit(d, &(struct policy_row){ .key = "secret-files", .type = ROW_NO_ENTRIES, .from = &p->mode.from });
    for (size_t i = 0; i < p->n_secret_files; i++) {
        const struct policy_secret_file *f = &p->secret_files[i];
        struct str name;
        if (f->template != NULL)
            snprintf(line, sizeof(line), "%s=@%s", f->path, f->template);
        else if (one_name(f->text, &name))
            snprintf(line, sizeof(line), "%s=%.*s", f->path, (int)name.n, name.p);
        else
            snprintf(line, sizeof(line), "%s (text)", f->path);
        emit(d, &(struct policy_row){ .key = "secret-files", .type = ROW_ENTRY, .text = line, .written = line,
                                      .literal = true, .from = &f->from });
    }
}

static void
scalars(struct describer *d, const struct policy *p)
{
    static const char *const workspaces[] = {
        [WORKSPACE_TMPFS] = "tmpfs", [WORKSPACE_RW] = "rw", [WORKSPACE_RO] = "ro", [WORKSPACE_COW] = "cow" };
    static const char *const records[] = {
        [RECORD_OFF] = "off", [RECORD_TRY] = "try", [RECORD_REQUIRED] = "required" };
    char user[32];

    text(d, "mode", policy_mode_name(p->mode.v), &p->mode.from);
    text(d, "engine", p->engine.p, &p->engine.from);
    text(d, "fallback", policy_fallback_name(p->fallback.v), &p->fallback.from);
    text(d, "audit", records[p->audit.v], &p->audit.from);
    text(d, "view", p->view.v == VIEW_HOST ? "host" : "private", &p->view.from);
    text(d, "workspace.kind", workspaces[p->workspace.kind], &p->workspace.from);
    text(d, "workspace.dir", p->workspace.dir, &p->workspace.from);
    text(d, "workdir", p->workdir.p, &p->workdir.from);
    truth(d, "read-only-root", &p->read_only_root);
    snprintf(user, sizeof(user), "%u:%u", p->user.uid, p->user.gid);
    text(d, "user", user, &p->user.from);
    text(d, "hostname", p->hostname.p, &p->hostname.from);
}

/* As it is written. */
static void
ask_timeout(struct describer *d, const struct policy *p)
{
    bool seconds = p->ask_ms.v % 1000 == 0;
    char value[32];

    snprintf(value, sizeof(value), "%" PRIu64 "%s", seconds ? p->ask_ms.v / 1000 : p->ask_ms.v, seconds ? "s" : "ms");
    text(d, "network.ask-timeout", value, &p->ask_ms.from);
}

/* Without what is to be kept secret in it. */
static void
parent(struct describer *d, const char *key, const struct policy_string *url)
{
    char shown[PROXY_URL_MAX + 32];
    struct proxy_url parsed;

    if (url->p == NULL || proxy_parse(str_of(url->p), &parsed) != PROXY_OK)
        return;
    snprintf(shown, sizeof(shown), "http://%s%s%s%s:%u", parsed.user_n > 0 ? "***@" : "",
             strchr(parsed.host.name, ':') != NULL ? "[" : "", parsed.host.name,
             strchr(parsed.host.name, ':') != NULL ? "]" : "", parsed.port);
    text(d, key, shown, &url->from);
}

static int
describe(const struct policy *p, bool machine, policy_row_fn *fn, void *ctx)
{
    static const char *const networks[] = {
        [NETWORK_NONE] = "none", [NETWORK_ALLOWLIST] = "allowlist", [NETWORK_HOST] = "host" };
    struct describer d = { .fn = fn, .ctx = ctx, .result = 0, .machine = machine };

    scalars(&d, p);
    text(&d, "preset", p->preset.p, &p->preset.from);
    text(&d, "network.mode", networks[p->network.v], &p->network.from);
    list(&d, "network.allow", &p->allow_domains);
    list(&d, "network.deny", &p->deny_domains);
    list(&d, "network.registries", &p->registries);
    truth(&d, "network.ask", &p->ask);
    ask_timeout(&d, p);
    list(&d, "network.extra-ca", &p->extra_ca);
    truth(&d, "network.allow-local-binding", &p->allow_local_binding);
    parent(&d, "network.parent-proxy.http", &p->parent_proxy.http);
    parent(&d, "network.parent-proxy.https", &p->parent_proxy.https);
    if (p->parent_proxy.no_proxy.p != NULL)
        text(&d, "network.parent-proxy.no-proxy", p->parent_proxy.no_proxy.p, &p->parent_proxy.no_proxy.from);
    list(&d, "unix-sockets.allow", &p->unix_sockets);
    truth(&d, "unix-sockets.all", &p->all_unix_sockets);
    limits(&d, p);
    binds(&d, p);
    list(&d, "filesystem.deny-read", &p->deny_read);
    list(&d, "filesystem.allow-read", &p->allow_read);
    list(&d, "filesystem.allow-write", &p->allow_write);
    list(&d, "filesystem.deny-write", &p->deny_write);
    truth(&d, "filesystem.allow-git-config", &p->allow_git_config);
    truth(&d, "filesystem.deny-hard-links", &p->deny_hard_links);
    emit(&d, &(struct policy_row){ .key = "filesystem.protect-depth", .type = ROW_NUMBER, .number = p->protect_depth.v,
                                   .from = &p->protect_depth.from });
    list(&d, "filesystem.protect", &p->protect);
    list(&d, "credentials", &p->credentials);
    env(&d, p);
    secrets(&d, p);
    secret_files(&d, p);
    list(&d, "env-deny", &p->env_deny);
    truth(&d, "env-inherit", &p->env_inherit);
    truth(&d, "allow-nested-user-namespaces", &p->nested_userns);
    truth(&d, "ptrace", &p->ptrace);
    return d.result;
}

int
policy_describe(const struct policy *p, policy_row_fn *fn, void *ctx)
{
    return describe(p, false, fn, ctx);
}

/* Key, value and scope of one row, each behind its length. */
static void
add_part(struct sha256 *h, const char *text)
{
    size_t n = text != NULL ? strlen(text) : 0;
    const uint8_t length[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n };

    sha256_add(h, length, sizeof(length));
    sha256_add(h, text != NULL ? text : "", n);
}

static int
digest_row(void *ctx, const struct policy_row *row)
{
    struct sha256 *h = ctx;
    char number[24] = "";

    if (row->from->kind == ORIGIN_BUILTIN)
        return 0;
    if (row->type == ROW_NUMBER)
        snprintf(number, sizeof(number), "%" PRIu64, row->number);
    add_part(h, row->key);
    add_part(h, row->type == ROW_NUMBER ? number : row->text);
    add_part(h, row->literal ? "literal" : "");
    for (size_t i = 0; row->scope != NULL && i < row->scope->n_methods; i++)
        add_part(h, row->scope->methods[i]);
    add_part(h, row->scope != NULL ? row->scope->path : NULL);
    for (size_t i = 0; row->scope != NULL && i < row->scope->n_tools; i++)
        add_part(h, row->scope->tools[i]);
    return 0;
}

/* --- what no row says --------------------------------------------------------------------------------------------- */

/* @url has a name or password in it. */
static bool
has_user(const struct policy_string *url)
{
    struct proxy_url parsed;

    return url->p != NULL && proxy_parse(str_of(url->p), &parsed) == PROXY_OK && parsed.user_n > 0;
}

bool
policy_hides(const struct policy *p)
{
    bool found = has_user(&p->parent_proxy.http) || has_user(&p->parent_proxy.https);
    struct str name;

    for (size_t i = 0; i < p->n_env; i++)
        found = found || (p->env[i].value != NULL && p->env[i].from.kind != ORIGIN_BUILTIN);
    for (size_t i = 0; i < p->n_secret_files; i++)
        found = found || p->secret_files[i].template != NULL || !one_name(p->secret_files[i].text, &name);
    return found;
}

/* What the file says now. One that a run would refuse counts as that. */
static void
add_template(struct sha256 *h, const char *path)
{
    cleanup_buf struct buf text = BUF_INIT(SECRET_TEXT_MAX);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    bool read = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && io_read_all(fd, &text) == 0;
    uint8_t digest[SHA256_SIZE];

    sha256_of(read ? text.p : (const uint8_t *)"", read ? text.n : 0, digest);
    sha256_add(h, read ? "\1" : "\0", 1);
    sha256_add(h, digest, sizeof(digest));
}

void
policy_add_hidden(const struct policy *p, struct sha256 *h)
{
    for (size_t i = 0; i < p->n_env; i++) {
        if (p->env[i].value == NULL || p->env[i].from.kind == ORIGIN_BUILTIN)
            continue;
        add_part(h, p->env[i].name);
        add_part(h, p->env[i].value);
    }
    for (size_t i = 0; i < p->n_secret_files; i++) {
        add_part(h, p->secret_files[i].path);
        if (p->secret_files[i].template != NULL)
            add_template(h, p->secret_files[i].template);
        else
            add_part(h, p->secret_files[i].text);
    }
    add_part(h, p->parent_proxy.http.p);
    add_part(h, p->parent_proxy.https.p);
}

/* The hash of a hash: who sees the digest of the whole cannot try values without the key, nor go on from it. */
static void
add_keyed(struct sha256 *h, const struct policy *p, const uint8_t key[POLICY_DIGEST_KEY])
{
    uint8_t block[64] = { 0 }, digest[SHA256_SIZE];
    struct sha256 hidden;

    memcpy(block, key, POLICY_DIGEST_KEY);
    sha256_init(&hidden);
    sha256_add(&hidden, block, sizeof(block));
    policy_add_hidden(p, &hidden);
    sha256_end(&hidden, digest);
    explicit_bzero(block, sizeof(block));
    add_part(h, "hidden");
    sha256_add(h, digest, sizeof(digest));
}

void
policy_digest(const struct policy *p, const uint8_t key[POLICY_DIGEST_KEY], uint8_t out[SHA256_SIZE])
{
    struct sha256 h;

    sha256_init(&h);
    add_part(&h, CLOCHE_VERSION);       /* stands for what is built in */
    (void)describe(p, true, digest_row, &h);
    if (policy_hides(p))
        add_keyed(&h, p, key);
    sha256_end(&h, out);
}
