/* base/sha1.c: see sha1.h (FIPS 180-4) */
#include "base/sha1.h"

#include <string.h>

void
sha1_begin(struct sha1 *s)
{
    *s = (struct sha1){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

static uint32_t
rotate(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

static void
sha1_block(struct sha1 *s)
{
    static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t w[80], v[5];

    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(v, s->h, sizeof(v));
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (v[1] & v[2]) | (~v[1] & v[3])
                     : i >= 40 && i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3]) : v[1] ^ v[2] ^ v[3];
        uint32_t next = rotate(v[0], 5) + f + v[4] + k[i / 20] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (size_t i = 0; i < 5; i++)
        s->h[i] += v[i];
}

void
sha1_add(struct sha1 *s, const void *data, size_t n)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < n; i++) {
        s->block[s->n++ % 64] = p[i];
        if (s->n % 64 == 0)
            sha1_block(s);
    }
}

void
sha1_end(struct sha1 *s, uint8_t out[20])
{
    uint64_t bits = s->n * 8;
    uint8_t length[8];

    for (size_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha1_add(s, "\x80", 1);
    while (s->n % 64 != 56)
        sha1_add(s, "", 1);
    sha1_add(s, length, sizeof(length));
    for (size_t i = 0; i < 20; i++)
        out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
