/* egress/unpack.c: see unpack.h */
#include "egress/unpack.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include <zlib.h>

#include "wire/http1.h"

#define GZIP_ONLY (16 + MAX_WBITS)

struct unpack {
    z_stream z;
    enum unpack_kind kind;
    bool begun;
    bool done;
};

enum unpack_kind
unpack_kind(struct str value)
{
    if (value.n == 0 || http1_equal(value, STR_LIT("identity")))
        return UNPACK_PLAIN;
    if (http1_equal(value, STR_LIT("gzip")) || http1_equal(value, STR_LIT("x-gzip")))
        return UNPACK_GZIP;
    return http1_equal(value, STR_LIT("deflate")) ? UNPACK_DEFLATE : UNPACK_UNKNOWN;
}

struct unpack *
unpack_new(enum unpack_kind kind)
{
    struct unpack *u = calloc(1, sizeof(*u));

    if (u == NULL)
        return NULL;
    u->kind = kind;
    if (inflateInit2(&u->z, kind == UNPACK_GZIP ? GZIP_ONLY : MAX_WBITS) != Z_OK) {
        free(u);
        return NULL;
    }
    return u;
}

void
unpack_free(struct unpack *u)
{
    if (u == NULL)
        return;
    inflateEnd(&u->z);
    free(u);
}

bool
unpack_done(const struct unpack *u)
{
    return u->done;
}

/* The first byte of zlib's frame names method 8 and a window of at most 32 KiB (RFC 1950); a bare stream that begins so
 * would have to begin with a stored block of a reserved shape. */
static int
unpack_begin(struct unpack *u, const unsigned char *p)
{
    u->begun = true;
    if (u->kind == UNPACK_DEFLATE && ((*p & 15) != 8 || *p >> 4 > 7))
        return inflateReset2(&u->z, -MAX_WBITS) == Z_OK ? 0 : -1;
    return 0;
}

/* Inflate what u->z has, until it is used up and all that it gives has come out, or some @most bytes have. 1: used up;
 * 0: not yet; -1. */
static int
inflate_some(struct unpack *u, size_t most, struct buf *out)
{
    unsigned char room[16384];
    size_t made = 0;

    while (!u->done) {
        int r;
        u->z.next_out = room;
        u->z.avail_out = sizeof(room);
        r = inflate(&u->z, Z_NO_FLUSH);
        if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) ||
            buf_append(out, room, sizeof(room) - u->z.avail_out) < 0)
            return -1;
        made += sizeof(room) - u->z.avail_out;
        u->done = r == Z_STREAM_END;
        if (u->z.avail_out > 0)
            break;
        if (made >= most)
            return 0;
    }
    return u->z.avail_in == 0;
}

int
unpack_feed(struct unpack *u, const void *p, size_t n, bool end, struct buf *out, size_t *used)
{
    int r;

    *used = 0;
    if (n > UINT_MAX || (n > 0 && !u->begun && unpack_begin(u, p) < 0))
        return -1;
    if (n > 0 && !u->done) {
        u->z.next_in = (unsigned char *)(uintptr_t)p;
        u->z.avail_in = (unsigned)n - 1;
        r = inflate_some(u, UNPACK_STEP, out);
        /* the last byte is taken when everything before it has come out: what it adds are some kilobytes */
        if (r == 1) {
            u->z.avail_in = 1;
            r = inflate_some(u, SIZE_MAX, out);
        } else {
            u->z.avail_in++;
        }
        if (r < 0)
            return -1;
        *used = n - u->z.avail_in;
    }
    /* behind its end nothing is expected: a second member or padding would be somebody's hiding place */
    if (u->done && *used < n)
        return -1;
    return end && *used == n && !u->done && u->begun ? -1 : 0;
}
