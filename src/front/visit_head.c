/* front/visit_head.c: whether the beginning of an adapter's answer is well, and keys in it (visit.c) */
#include <string.h>

#include "base/array.h"
#include "front/visit_priv.h"

/* "NAME: VALUE": one of those that adapters' answers have, in visible characters. */
const char *
visit_put_name(const char *put)
{
    static const char *const names[] = { "Allow", "Mcp-Session-Id", "X-Accel-Buffering", "X-Next-Token", "Api-Version",
                                         "Ostype", "Docker-Experimental", "X-Docker-Container-Path-Stat" };
    size_t n = strcspn(put, ":");

    for (const char *p = put; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            return NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == n && strncmp(names[i], put, n) == 0 && strncmp(put + n, ": ", 2) == 0)
            return names[i];
    return NULL;
}

bool
visit_head_well(const struct request *r, const struct adapt_head *m)
{
    for (size_t i = 0; i < m->n_puts; i++)
        if (visit_put_name(m->puts[i]) == NULL)
            return false;
    if (m->size == ADAPT_STREAM)
        return r->response == NULL && m->type != ADAPT_PNG && !m->keyed;
    return !m->upgrade && r->response == NULL && m->n_body <= m->size && (!m->keyed || m->n_body == m->size);
}

/* Its body, with the key that came with the sandbox in its places. */
void
visit_reply_keyed(struct request *r, const struct adapt_head *m, const char *type)
{
    static const char mark[] = ADAPT_KEY;
    struct buf b = BUF_INIT(EDGE_CHUNK * 4);
    const uint8_t *at = m->body, *end = at + m->n_body, *next;
    int bad = 0;

    for (; (next = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1)) != NULL; at = next + sizeof(mark) - 1) {
        bad |= buf_append(&b, at, (size_t)(next - at));
        bad |= buf_puts(&b, r->key);
    }
    bad |= buf_append(&b, at, (size_t)(end - at));
    if (bad == 0)
        reply_text(r, m->status, type, b.p, b.n);
    else
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "there is no room for the answer");
    if (b.p != NULL)
        explicit_bzero(b.p, b.n);
    buf_free(&b);
}
