/* vault/store.c: see store.h */
#include "vault/store.h"

#include <string.h>

#include "base/str.h"
#include "vault/store_priv.h"

static int
refused(struct store *s, struct err *err)
{
    err_wrap(err, "%s/" STORE_FILE, s->path);
    if (err_is(err, "vault.store.corrupt"))
        err_hint(err, "it is left as it is: restore it with its key from a backup, or move both away and set the "
                 "secrets again");
    return -1;
}

/* The whole file under its MAC, then nothing of it is doubted again but record by record. */
static int
check(struct store *s, struct err *err)
{
    uint8_t mac[SEAL_MAC];

    if (store_file_parse(s->bytes.p, s->bytes.n, &s->file, err) < 0)
        return refused(s, err);
    if (seal_mac(&s->key, "cloche store", s->bytes.p, s->file.covered, mac, err) < 0)
        return -1;
    if (!seal_same(mac, s->file.mac, SEAL_MAC)) {
        err_set(err, ERR_POLICY, "vault.store.corrupt", "it is damaged, or " STORE_KEY " is not its key");
        return refused(s, err);
    }
    return 0;
}

static int
read_store(struct store *s, struct err *err)
{
    int r;

    buf_reset(&s->bytes);
    memset(&s->file, 0, sizeof(s->file));
    r = store_read_file(s, STORE_FILE, &s->bytes, err);
    return r <= 0 ? r : check(s, err);
}

int
store_open(struct store *s, bool write, struct err *err)
{
    int have_store, have_key;

    if (secret_memory_init(err) < 0 || store_enter(s, err) < 0 || store_take_lock(s, write, err) < 0)
        return -1;
    have_store = store_exists(s, STORE_FILE, err);
    have_key = have_store < 0 ? -1 : store_read_key(s, err);
    if (have_key < 0)
        return -1;
    if (have_store && !have_key) {
        err_set(err, ERR_POLICY, "vault.key.missing", "%s has a store, and its key is gone", s->path);
        return err_hint(err, "put " STORE_KEY " back; without it nobody can read " STORE_FILE);
    }
    if (!have_key && write && store_make_key(s, err) < 0)
        return -1;
    return have_store ? read_store(s, err) : 0;
}

int
store_meta_at(const struct store *s, size_t index, struct store_meta *meta, struct err *err)
{
    return store_meta_parse(s->file.records[index].meta, meta, err) < 0 ? err_wrap(err, "%s/" STORE_FILE, s->path) : 0;
}

static int
find(const struct store *s, enum store_kind kind, const char *name, struct store_meta *meta, size_t *index,
     struct err *err)
{
    const bool signs = kind == STORE_SIGNING;

    for (size_t i = 0; i < s->file.n; i++) {
        if (s->file.records[i].kind != kind)
            continue;
        if (store_meta_at(s, i, meta, err) < 0)
            return -1;
        *index = i;
        if (strcmp(meta->name, name) == 0)
            return 0;
    }
    err_set(err, ERR_NOT_FOUND, "vault.unknown", "there is no %s \"%.64s\"", signs ? "signing key" : "secret", name);
    return err_hint(err, signs ? "`cloche signer ls` lists them, `cloche signer add %.64s` makes it"
                               : "`cloche secret ls` lists them, `cloche secret set %.64s` makes it", name);
}

int
store_find(const struct store *s, const char *name, struct store_meta *meta, size_t *index, struct err *err)
{
    return find(s, STORE_SECRET, name, meta, index, err);
}

int
store_find_key(const struct store *s, const char *name, struct store_meta *meta, size_t *index, struct err *err)
{
    return find(s, STORE_SIGNING, name, meta, index, err);
}

static int
open_record(const struct store *s, size_t index, struct secret *out, struct err *err)
{
    const struct store_record *r = &s->file.records[index];
    cleanup_buf struct buf extra = BUF_INIT(STORE_META_MAX + 64);

    if (store_file_extra(&s->file, index, &extra) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return unseal(&s->key, r->salt, extra.p, extra.n, r->sealed, r->sealed_n, out, err);
}

int
store_value(const struct store *s, size_t index, struct secret *out, struct err *err)
{
    return open_record(s, index, out, err) < 0 ? err_wrap(err, "%s/" STORE_FILE, s->path) : 0;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Append @plain as the next record of @next, whose bytes so far are @out. */
static int
append(const struct store *s, struct store_file *next, struct buf *out, enum store_kind kind, struct str meta,
       const struct secret *plain, struct err *err)
{
    cleanup_buf struct buf extra = BUF_INIT(STORE_META_MAX + 64);
    uint8_t salt[SEAL_SALT], sealed[STORE_PLAIN_MAX + SEAL_TAG];
    struct store_record *r = &next->records[next->n];

    if (next->n == STORE_RECORDS_MAX || plain->n > STORE_PLAIN_MAX || meta.n > STORE_META_MAX) {
        err_set(err, ERR_LIMIT, "vault.store.full", "the store holds up to %d secrets", STORE_RECORDS_MAX - 1);
        return err_hint(err, "`cloche secret rm` takes one away");
    }
    *r = (struct store_record){ .kind = kind, .meta = meta, .salt = salt, .sealed = sealed,
                                .sealed_n = plain->n + SEAL_TAG };
    if (store_file_extra(next, next->n, &extra) < 0 || seal_random(salt, sizeof(salt), err) < 0 ||
        seal(&s->key, salt, extra.p, extra.n, plain->p, plain->n, sealed, err) < 0)
        return -1;
    next->n++;
    if (store_file_record(out, r) < 0)
        return err_set(err, ERR_LIMIT, "vault.store.full", "the store would be larger than %lu bytes", STORE_FILE_MAX);
    return 0;
}

struct change {
    size_t replaces;            /* index of the record; SIZE_MAX: none */
    enum store_kind kind;
    struct str meta;
    const struct secret *plain; /* NULL: the record is dropped */
};

static int
compose(const struct store *s, const struct change *c, struct store_file *next, struct buf *out, struct err *err)
{
    size_t n = s->file.n - (c->replaces != SIZE_MAX) + (c->plain != NULL);
    uint8_t mac[SEAL_MAC];

    next->n = 0;
    next->generation = s->file.generation + 1;
    store_file_header(out, next->generation, (uint32_t)n);
    for (size_t i = 0; i < s->file.n; i++) {
        cleanup_secret struct secret plain = { NULL, 0 };
        if (i == c->replaces)
            continue;
        if (open_record(s, i, &plain, err) < 0 ||
            append(s, next, out, s->file.records[i].kind, s->file.records[i].meta, &plain, err) < 0)
            return -1;
    }
    if (c->plain != NULL && append(s, next, out, c->kind, c->meta, c->plain, err) < 0)
        return -1;
    if (!buf_ok(out) || seal_mac(&s->key, "cloche store", out->p, out->n, mac, err) < 0)
        return -1;
    return buf_append(out, mac, sizeof(mac));
}

static int
change(struct store *s, const struct change *c, struct err *err)
{
    struct buf out = BUF_INIT(STORE_FILE_MAX);
    struct store_file *next = calloc(1, sizeof(*next));
    int r;

    if (next == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    r = compose(s, c, next, &out, err) < 0 ? -1 : store_write_file(s, STORE_FILE, 0600, &out, err);
    free(next);
    buf_free(&out);
    return r < 0 ? -1 : read_store(s, err);
}

static int
put(struct store *s, enum store_kind kind, const struct store_meta *meta, const struct secret *value, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(STORE_META_MAX);
    struct store_meta *old = malloc(sizeof(*old));
    struct change c = { .replaces = SIZE_MAX, .kind = kind, .plain = value };
    struct err ignored = ERR_INIT;
    size_t index;

    if (old == NULL || store_meta_text(meta, &text) < 0) {
        free(old);
        return err_set(err, ERR_LIMIT, "vault.store.full", "the description of %s is too long", meta->name);
    }
    if (find(s, kind, meta->name, old, &index, &ignored) == 0)
        c.replaces = index;
    free(old);
    c.meta = (struct str){ (const char *)text.p, text.n };
    return change(s, &c, err);
}

int
store_put(struct store *s, const struct store_meta *meta, const struct secret *value, struct err *err)
{
    return put(s, STORE_SECRET, meta, value, err);
}

int
store_put_key(struct store *s, const struct store_meta *meta, const struct secret *value, struct err *err)
{
    return put(s, STORE_SIGNING, meta, value, err);
}

static int
take_away(struct store *s, enum store_kind kind, const char *name, struct err *err)
{
    struct store_meta *meta = malloc(sizeof(*meta));
    struct change c = { .plain = NULL };
    int r = meta == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory")
                         : find(s, kind, name, meta, &c.replaces, err);

    free(meta);
    return r < 0 ? -1 : change(s, &c, err);
}

int
store_remove(struct store *s, const char *name, struct err *err)
{
    return take_away(s, STORE_SECRET, name, err);
}

int
store_remove_key(struct store *s, const char *name, struct err *err)
{
    return take_away(s, STORE_SIGNING, name, err);
}

static size_t
ca_index(const struct store *s)
{
    for (size_t i = 0; i < s->file.n; i++)
        if (s->file.records[i].kind == STORE_CA)
            return i;
    return SIZE_MAX;
}

int
store_ca(const struct store *s, struct secret *out, struct err *err)
{
    size_t index = ca_index(s);

    if (index == SIZE_MAX)
        return 0;
    return store_value(s, index, out, err) < 0 ? -1 : 1;
}

int
store_put_ca(struct store *s, const struct secret *packed, const struct buf *pem, struct err *err)
{
    const struct change c = { .replaces = ca_index(s), .kind = STORE_CA, .meta = STR_LIT("ca\n"), .plain = packed };

    return change(s, &c, err) < 0 ? -1 : store_write_file(s, STORE_CA_PEM, 0644, pem, err);
}

int
store_new_id(char id[33], struct err *err)
{
    uint8_t bytes[16];

    if (seal_random(bytes, sizeof(bytes), err) < 0)
        return -1;
    str_hex(bytes, sizeof(bytes), id);
    return 0;
}

void
store_forget_key(struct store *s)
{
    secret_free(&s->key);
}
