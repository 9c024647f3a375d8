/* policy/describe.c: see describe.h */
#include "policy/describe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
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
human_number(const struct policy_spec *s, uint64_t v, char *out, size_t cap)
{
    static const struct { uint64_t size; const char *unit; } sizes[] = {
        { (uint64_t)1 << 40, "TiB" }, { (uint64_t)1 << 30, "GiB" }, { (uint64_t)1 << 20, "MiB" }, { 1 << 10, "KiB" } };

    if (v == 0 && s->none != NULL) {
        snprintf(out, cap, "%s", s->none);
        return;
    }
    switch (s->unit) {
    case UNIT_BYTES:
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
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
number(struct describer *d, const struct policy_spec *s, const struct policy_u64 *field)
{
    char human[64] = "";

    if (!d->machine)
        human_number(s, field->v, human, sizeof(human));
    emit(d, &(struct policy_row){ .key = s->key, .type = ROW_NUMBER, .number = field->v, .text = human,
                                  .from = &field->from });
}

static void
describe_list(struct describer *d, const struct policy_spec *s, const struct policy_list *l)
{
    if (l->n == 0)
        emit(d, &(struct policy_row){ .key = s->key, .type = ROW_NO_ENTRIES, .from = &l->from });
    for (size_t i = 0; i < l->n; i++) {
        const struct policy_entry *e = &l->v[i];
        emit(d, &(struct policy_row){ .key = s->key, .type = ROW_ENTRY, .text = e->value, .written = e->written,
                                      .literal = e->literal, .scope = e->scope, .from = &e->from });
    }
}

static void
records(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    char line[2 * POLICY_PATH_MAX + 8];
    size_t n;
    const char *record = spec_records(p, s, &n);

    if (n == 0)
        emit(d, &(struct policy_row){ .key = s->key, .type = ROW_NO_ENTRIES, .from = &p->mode.from });
    for (size_t i = 0; i < n; i++, record += s->size) {
        const char *written = s->line(record, line, sizeof(line));
        emit(d, &(struct policy_row){ .key = s->key, .type = ROW_ENTRY, .text = line, .written = written,
                                      .literal = true,
                                      .from = (const struct origin *)(const void *)(record + s->from) });
    }
}

/* --- what hangs on rows ------------------------------------------------------------------------------------------- */

const char *
line_of_bind(const void *record, char *out, size_t cap)
{
    const struct policy_bind *b = record;

    snprintf(out, cap, "%s:%s:%s", b->source, b->dest, b->writable ? "rw" : "ro");
    return out;
}

/* Values may be secrets, and this goes to terminals and tickets: names only. */
const char *
line_of_env(const void *record, char *out, size_t cap)
{
    const struct policy_env *env = record;

    snprintf(out, cap, "%s (%s)", env->name, env->value != NULL ? "set" : "passed");
    return env->name;
}

const char *
line_of_secret(const void *record, char *out, size_t cap)
{
    const struct policy_secret *s = record;

    snprintf(out, cap, "%s%s%s%s%s%s%s", s->name, s->binding != NULL ? "=" : "", s->binding != NULL ? s->binding : "",
             s->env != NULL ? " in " : "", s->env != NULL ? s->env : "", s->add != NULL ? ",add=" : "",
             s->add != NULL ? s->add : "");
    return out;
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
const char *
line_of_secret_file(const void *record, char *out, size_t cap)
{
    const struct policy_secret_file *f = record;
    struct str name;

    if (f->template != NULL)
        snprintf(out, cap, "%s=@%s", f->path, f->template);
    else if (one_name(f->text, &name))
        snprintf(out, cap, "%s=%.*s", f->path, (int)name.n, name.p);
    else
        snprintf(out, cap, "%s (text)", f->path);
    return out;
}

void
show_workspace(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    text(d, "workspace.kind", s->words[p->workspace.kind], &p->workspace.from);
    text(d, "workspace.dir", p->workspace.dir, &p->workspace.from);
}

void
show_user(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    char user[32];

    snprintf(user, sizeof(user), "%u:%u", p->user.uid, p->user.gid);
    text(d, s->key, user, &p->user.from);
}

/* As it is written. */
void
show_ask_timeout(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    bool seconds = p->ask_ms.v % 1000 == 0;
    char value[32];

    snprintf(value, sizeof(value), "%" PRIu64 "%s", seconds ? p->ask_ms.v / 1000 : p->ask_ms.v, seconds ? "s" : "ms");
    text(d, s->key, value, &p->ask_ms.from);
}

/* Without what is to be kept secret in it. */
void
show_parent(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    const struct policy_string *url = spec_in(p, s);
    char shown[PROXY_URL_MAX + 32];
    struct proxy_url parsed;

    if (url->p == NULL || proxy_parse(str_of(url->p), &parsed) != PROXY_OK)
        return;
    snprintf(shown, sizeof(shown), "http://%s%s%s%s:%u", parsed.user_n > 0 ? "***@" : "",
             strchr(parsed.host.name, ':') != NULL ? "[" : "", parsed.host.name,
             strchr(parsed.host.name, ':') != NULL ? "]" : "", parsed.port);
    text(d, s->key, shown, &url->from);
}

static void
show_row(struct describer *d, const struct policy *p, const struct policy_spec *s)
{
    const struct policy_string *string = spec_in(p, s);
    const struct policy_bool *truth = spec_in(p, s);

    switch (s->kind) {
    case SPEC_FLAG:
    case SPEC_OWN:
        return;
    case SPEC_WORD:
        text(d, s->key, s->words[policy_spec_value(p, s)], policy_spec_origin(p, s));
        return;
    case SPEC_TEXT:
        if (string->p != NULL || (s->traits & SPEC_QUIET) == 0)
            text(d, s->key, string->p, &string->from);
        return;
    case SPEC_BOOL:
        emit(d, &(struct policy_row){ .key = s->key, .type = ROW_BOOL, .truth = truth->v,
                                      .text = truth->v ? "yes" : "no", .from = &truth->from });
        return;
    case SPEC_NUMBER:
        number(d, s, spec_in(p, s));
        return;
    case SPEC_LIST:
        describe_list(d, s, spec_in(p, s));
        return;
    case SPEC_RECORDS:
        records(d, p, s);
        return;
    }
}

static int
describe(const struct policy *p, bool machine, policy_row_fn *fn, void *ctx)
{
    struct describer d = { .fn = fn, .ctx = ctx, .result = 0, .machine = machine };

    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++) {
        if (s->show != NULL)
            s->show(&d, p, s);
        else
            show_row(&d, p, s);
    }
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

/* Names and passwords for a parent proxy. */
bool
hide_parent(const struct policy *p, const struct policy_spec *s, struct sha256 *h)
{
    const struct policy_string *url = spec_in(p, s);
    struct proxy_url parsed;

    if (h != NULL)
        add_part(h, url->p);
    return url->p != NULL && proxy_parse(str_of(url->p), &parsed) == PROXY_OK && parsed.user_n > 0;
}

bool
hide_env(const struct policy *p, const struct policy_spec *s, struct sha256 *h)
{
    bool found = false;

    (void)s;
    for (size_t i = 0; i < p->n_env; i++) {
        if (p->env[i].value == NULL || p->env[i].from.kind == ORIGIN_BUILTIN)
            continue;
        found = true;
        if (h == NULL)
            continue;
        add_part(h, p->env[i].name);
        add_part(h, p->env[i].value);
    }
    return found;
}

bool
hide_secret_files(const struct policy *p, const struct policy_spec *s, struct sha256 *h)
{
    bool found = false;
    struct str name;

    (void)s;
    for (size_t i = 0; i < p->n_secret_files; i++) {
        const struct policy_secret_file *f = &p->secret_files[i];
        found = found || f->template != NULL || !one_name(f->text, &name);
        if (h == NULL)
            continue;
        add_part(h, f->path);
        if (f->template != NULL)
            add_template(h, f->template);
        else
            add_part(h, f->text);
    }
    return found;
}

static bool
hidden(const struct policy *p, struct sha256 *h)
{
    bool found = false;

    for (const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++)
        if (s->hide != NULL)
            found = s->hide(p, s, h) || found;
    return found;
}

bool
policy_hides(const struct policy *p)
{
    return hidden(p, NULL);
}

void
policy_add_hidden(const struct policy *p, struct sha256 *h)
{
    (void)hidden(p, h);
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
