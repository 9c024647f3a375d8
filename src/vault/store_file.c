/* vault/store_file.c: see store_file.h */
#include "vault/store_file.h"

#include <inttypes.h>
#include <string.h>

#include "wire/frame.h"

#define MAGIC   "cloche-store"
#define MAGIC_N 12
#define VERSION 1

static int
corrupt(struct err *err, const char *what)
{
    return err_set(err, ERR_POLICY, "vault.store.corrupt", "%s", what);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static bool
three_zeros(struct wire_in *in)
{
    const uint8_t *z = wire_bytes(in, 3);

    return z != NULL && z[0] == 0 && z[1] == 0 && z[2] == 0;
}

static int
parse_record(struct wire_in *in, struct store_record *r, struct err *err)
{
    uint8_t kind = wire_u8(in);
    uint32_t meta_n, sealed_n;

    if (!three_zeros(in) || (kind < STORE_SECRET || kind > STORE_SIGNING))
        return corrupt(err, "a record of no known kind");
    meta_n = wire_be32(in);
    if (in->bad || meta_n > STORE_META_MAX)
        return corrupt(err, "a record's description is too long");
    r->kind = (enum store_kind)kind;
    r->meta = (struct str){ (const char *)wire_bytes(in, meta_n), meta_n };
    r->salt = wire_bytes(in, SEAL_SALT);
    sealed_n = wire_be32(in);
    if (in->bad || sealed_n < SEAL_TAG || sealed_n > STORE_PLAIN_MAX + SEAL_TAG)
        return corrupt(err, "a record's length cannot be");
    r->sealed = wire_bytes(in, sealed_n);
    r->sealed_n = sealed_n;
    return in->bad ? corrupt(err, "it ends within a record") : 0;
}

int
store_file_parse(const uint8_t *p, size_t n, struct store_file *out, struct err *err)
{
    struct wire_in in = wire_in_of(p, n);
    const uint8_t *magic = wire_bytes(&in, MAGIC_N);
    uint8_t version = wire_u8(&in);
    uint32_t records;
    bool zeros = three_zeros(&in);

    if (magic == NULL || in.bad || memcmp(magic, MAGIC, MAGIC_N) != 0)
        return corrupt(err, "it does not begin as a store");
    if (version != VERSION) {
        err_set(err, ERR_UNSUPPORTED, "vault.store.version", "its version is %u, this cloche reads %d", version,
                VERSION);
        return err_hint(err, "a newer cloche wrote it; use that one");
    }
    out->generation = wire_be64(&in);
    records = wire_be32(&in);
    if (in.bad || !zeros || records > STORE_RECORDS_MAX)
        return corrupt(err, "its header is damaged");
    out->n = 0;
    for (uint32_t i = 0; i < records; i++) {
        if (parse_record(&in, &out->records[i], err) < 0)
            return -1;
        out->n++;
    }
    out->covered = n - in.n;
    out->mac = wire_bytes(&in, SEAL_MAC);
    return wire_done(&in) ? 0 : corrupt(err, "it is cut short, or something follows its end");
}

int
store_file_extra(const struct store_file *file, size_t index, struct buf *out)
{
    const struct store_record *r = &file->records[index];

    buf_append(out, MAGIC, MAGIC_N);
    buf_put_u8(out, VERSION);
    buf_put_be64(out, file->generation);
    buf_put_be32(out, (uint32_t)index);
    buf_put_u8(out, (uint8_t)r->kind);
    buf_put_be32(out, (uint32_t)r->meta.n);
    return buf_append(out, r->meta.p, r->meta.n);
}

int
store_file_header(struct buf *out, uint64_t generation, uint32_t records)
{
    buf_append(out, MAGIC, MAGIC_N);
    buf_put_be32(out, (uint32_t)VERSION << 24);
    buf_put_be64(out, generation);
    return buf_put_be32(out, records);
}

int
store_file_record(struct buf *out, const struct store_record *r)
{
    buf_put_be32(out, (uint32_t)r->kind << 24);
    buf_put_be32(out, (uint32_t)r->meta.n);
    buf_append(out, r->meta.p, r->meta.n);
    buf_append(out, r->salt, SEAL_SALT);
    buf_put_be32(out, (uint32_t)r->sealed_n);
    return buf_append(out, r->sealed, r->sealed_n);
}

/* --- a secret's metadata ------------------------------------------------------------------------------------------ */

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool
store_name_valid(struct str name)
{
    if (name.n == 0 || name.n > VAULT_NAME_MAX || name.p[0] == '-' || name.p[0] == '.')
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_alnum(name.p[i]) && name.p[i] != '-' && name.p[i] != '_' && name.p[i] != '.')
            return false;
    return true;
}

bool
store_env_valid(struct str name)
{
    if (name.n == 0 || name.n > BINDING_WORD_MAX || (name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_alnum(name.p[i]) && name.p[i] != '_')
            return false;
    return true;
}

static bool
id_valid(struct str id)
{
    for (size_t i = 0; i < id.n; i++)
        if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
            return false;
    return id.n == 32;
}

static void
take(char *into, struct str value)
{
    memcpy(into, value.p, value.n);
    into[value.n] = '\0';
}

/* One line of the head. False when it is not one. */
static bool
meta_line(struct store_meta *m, struct str key, struct str value)
{
    uint64_t flag;

    /* each once */
    if (str_eq_c(key, "name") && m->name[0] == '\0' && store_name_valid(value)) {
        take(m->name, value);
    } else if (str_eq_c(key, "id") && m->id[0] == '\0' && id_valid(value)) {
        take(m->id, value);
    } else if (str_eq_c(key, "builtin") && m->builtin[0] == '\0' && store_name_valid(value)) {
        take(m->builtin, value);
    } else if (str_eq_c(key, "env") && m->env[0] == '\0' && store_env_valid(value)) {
        take(m->env, value);
    } else if (str_eq_c(key, "created")) {
        return str_parse_u64(value, INT64_MAX, &m->created);
    } else if (str_eq_c(key, "updated")) {
        return str_parse_u64(value, INT64_MAX, &m->updated);
    } else if (str_eq_c(key, "expires")) {
        return str_parse_u64(value, INT64_MAX, &m->expires);
    } else if (str_eq_c(key, "revoked")) {
        m->revoked = str_parse_u64(value, 1, &flag) && flag == 1;
        return m->revoked;
    } else {
        return false;
    }
    return true;
}

/* The head's lines, then (after an empty one) the binding's. */
int
store_meta_parse(struct str text, struct store_meta *out, struct err *err)
{
    memset(out, 0, sizeof(*out));
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n), *blank;
        struct str line = { text.p, end != NULL ? (size_t)(end - text.p) : 0 };
        if (end == NULL)
            return corrupt(err, "a secret's description is cut short");
        text = (struct str){ end + 1, text.n - line.n - 1 };
        if (line.n == 0) {
            if (out->name[0] == '\0' || out->id[0] == '\0')
                break;
            out->bound = text.n > 0;
            return out->bound ? binding_parse(text, &out->binding, err) : 0;
        }
        blank = memchr(line.p, ' ', line.n);
        if (blank == NULL || !meta_line(out, (struct str){ line.p, (size_t)(blank - line.p) },
                                        (struct str){ blank + 1, line.n - (size_t)(blank - line.p) - 1 }))
            return corrupt(err, "a secret's description is invalid");
    }
    return corrupt(err, "a secret without a name");
}

int
store_meta_text(const struct store_meta *m, struct buf *out)
{
    buf_printf(out, "name %s\nid %s\n", m->name, m->id);
    if (m->builtin[0] != '\0')
        buf_printf(out, "builtin %s\n", m->builtin);
    if (m->env[0] != '\0')
        buf_printf(out, "env %s\n", m->env);
    buf_printf(out, "created %" PRIu64 "\nupdated %" PRIu64 "\n", m->created, m->updated);
    if (m->expires != 0)
        buf_printf(out, "expires %" PRIu64 "\n", m->expires);
    if (m->revoked)
        buf_puts(out, "revoked 1\n");
    buf_puts(out, "\n");
    return m->bound ? binding_text(&m->binding, out) : buf_ok(out) ? 0 : -1;
}
