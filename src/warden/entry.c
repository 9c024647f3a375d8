/* warden/entry.c: see entry.h */
#include "warden/entry.h"

#include <string.h>

static void
put_text(struct buf *b, struct str text)
{
    char room[AUDIT_TEXT_MAX + 1];
    size_t n = text.n < AUDIT_TEXT_MAX ? text.n : AUDIT_TEXT_MAX;

    if (n > 0)
        memcpy(room, text.p, n);
    room[n] = '\0';
    wire_put_cstr(b, room, AUDIT_TEXT_MAX);
}

int
entry_put(struct buf *b, const struct audit_entry *e)
{
    buf_put_u8(b, (uint8_t)e->type);
    buf_put_u8(b, (uint8_t)e->severity);
    put_text(b, e->summary);
    buf_put_u8(b, (uint8_t)e->n_meta);
    for (size_t i = 0; i < e->n_meta; i++) {
        const struct audit_meta *m = &e->meta[i];
        wire_put_cstr(b, m->key, AUDIT_KEY_MAX);
        buf_put_u8(b, (uint8_t)m->kind);
        if (m->kind == AUDIT_STRING)
            put_text(b, m->text);
        else
            buf_put_be64(b, (uint64_t)m->number);
    }
    return buf_ok(b) && !e->full ? 0 : -1;
}

static bool
key_well(const char *key)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return key[0] != '\0' && key[strspn(key, fit)] == '\0';
}

static bool
get_member(struct wire_in *in, struct audit_meta *m)
{
    uint32_t n;

    m->key = wire_cstr(in, AUDIT_KEY_MAX, NULL);
    uint8_t kind = wire_u8(in);
    if (in->bad || kind > AUDIT_NULL || !key_well(m->key))
        return false;
    m->kind = (enum audit_kind)kind;
    if (m->kind == AUDIT_STRING) {
        m->text.p = wire_cstr(in, AUDIT_TEXT_MAX, &n);
        m->text.n = n;
    } else {
        m->number = (int64_t)wire_be64(in);
    }
    return !in->bad;
}

bool
entry_get(struct wire_in *in, struct audit_entry *e)
{
    uint8_t type = wire_u8(in), severity = wire_u8(in), n;
    uint32_t length = 0;

    *e = (struct audit_entry){ .type = AUDIT_LIFECYCLE };
    e->summary.p = wire_cstr(in, AUDIT_TEXT_MAX, &length);
    e->summary.n = length;
    n = wire_u8(in);
    if (in->bad || type >= AUDIT_TYPES || severity >= AUDIT_SEVERITIES || n > AUDIT_META_MAX)
        return false;
    e->type = (enum audit_type)type;
    e->severity = (enum audit_severity)severity;
    for (; e->n_meta < n; e->n_meta++) {
        if (!get_member(in, &e->meta[e->n_meta]))
            return false;
        for (size_t i = 0; i < e->n_meta; i++)
            if (strcmp(e->meta[i].key, e->meta[e->n_meta].key) == 0)
                return false;
    }
    return true;
}
