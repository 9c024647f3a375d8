/* proto/edge_write.c: see edge_write.h */
#include "proto/edge_write.h"

#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/str.h"

/* What the kernel, or a usual interpreter, would run. */
static bool
is_program(const uint8_t *p, size_t n)
{
    static const struct str starts[] = {
        STR_LIT("#!"), STR_LIT("\x7f" "ELF"), STR_LIT("MZ"), STR_LIT("\0asm"), STR_LIT("\xca\xfe\xba\xbe"),
        STR_LIT("\xfe\xed\xfa\xce"), STR_LIT("\xfe\xed\xfa\xcf"), STR_LIT("\xce\xfa\xed\xfe"),
        STR_LIT("\xcf\xfa\xed\xfe"), STR_LIT("!<arch>\n"), STR_LIT("PK\3\4"),
    };

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (n >= starts[i].n && memcmp(p, starts[i].p, starts[i].n) == 0)
            return true;
    return false;
}

/* The first bytes as text: what is none is shown as U+FFFD. */
static json_t *
text_of(const uint8_t *p, size_t n)
{
    cleanup_buf struct buf b = BUF_INIT(4 * EDGE_HEAD_MAX);

    while (n > 0) {
        uint32_t c;
        size_t took = utf8_char(p, n, &c);
        if (took == 0 || c == 0)
            buf_puts(&b, "\xef\xbf\xbd");
        else
            buf_append(&b, p, took);
        took = took == 0 ? 1 : took;
        p += took;
        n -= took;
    }
    return buf_nul(&b) == 0 ? json_string((const char *)b.p) : NULL;
}

static void
add_content(json_t *params, const struct edge_content *c)
{
    char hash[SHA256_TEXT + 1];

    sha256_text(c->sha256, hash);
    json_object_set_new(params, "content_start", text_of(c->head, c->n_head));
    json_object_set_new(params, "program", json_boolean(is_program(c->head, c->n_head)));
    json_object_set_new(params, "content_unseen", json_boolean(!c->whole));
    if (c->whole) {
        json_object_set_new(params, "content_sha256", json_string(hash));
        json_object_set_new(params, "content_bytes", json_integer((json_int_t)c->size));
    }
}

json_t *
edge_write_params(const struct edge_op *op)
{
    json_t *params = json_pack("{s:s}", "file_path", op->path);

    if (params == NULL)
        return NULL;
    add_content(params, &op->content);
    json_object_set_new(params, "executable", json_boolean((op->mode & 0111) != 0));
    json_object_set_new(params, "exclusive", json_boolean((op->flags & OP_EXCLUSIVE) != 0));
    return params;
}

void
edge_content_of(struct edge_op *op, const uint8_t *p, size_t n, bool whole)
{
    struct edge_content *c = &op->content;

    *c = (struct edge_content){ .whole = whole, .size = n, .head = p, .n_head = n < EDGE_HEAD_MAX ? n : EDGE_HEAD_MAX };
    if (!whole && getrandom(c->sha256, sizeof(c->sha256), 0) == (ssize_t)sizeof(c->sha256))
        return;
    sha256_of(p, n, c->sha256);
}
