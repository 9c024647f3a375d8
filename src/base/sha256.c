/* base/sha256.c: see sha256.h */
#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define HAVE_SHA_NI 1
#endif

#define BLOCK    64
#define ASK_FROM 4096   /* bytes from which on the CPU is asked what it can: in a virtual machine that traps */

static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static uint32_t
be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
blocks_plain(uint32_t state[8], const uint8_t *p, size_t n)
{
    uint32_t w[64];

    for (; n > 0; n--, p += BLOCK) {
        uint32_t s[8];
        for (size_t i = 0; i < 16; i++)
            w[i] = be32(p + 4 * i);
        for (size_t i = 16; i < 64; i++) {
            uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
        }
        memcpy(s, state, sizeof(s));
        /* instead of moving the eight words on after each round, their names move */
#define S(k) s[((k) - i) & 7]
#pragma GCC unroll 8
        for (size_t i = 0; i < 64; i++) {
            uint32_t e = S(4), a = S(0);
            uint32_t t1 = S(7) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & S(5)) ^ (~e & S(6))) +
                          round_constants[i] + w[i];
            uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & S(1)) ^ (a & S(2)) ^ (S(1) & S(2)));
            S(3) += t1;
            S(7) = t1 + t2;
        }
#undef S
        for (size_t i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#ifdef HAVE_SHA_NI

#define WORDS(p) ((__m128i *)(void *)(p))
#define CONST_WORDS(p) ((const __m128i *)(const void *)(p))

/* Intel's SHA extensions: the state as two registers ABEF and CDGH, four rounds for each step of the loop. */
__attribute__((target("sha,sse4.1,ssse3"))) static void
blocks_ni(uint32_t state[8], const uint8_t *p, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128(CONST_WORDS(state)), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(CONST_WORDS(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);

    for (; n > 0; n--, p += BLOCK) {
        __m128i m[4], abef_before = abef, cdgh_before = cdgh;
        for (size_t i = 0; i < 4; i++)
            m[i] = _mm_shuffle_epi8(_mm_loadu_si128(CONST_WORDS(p + 16 * i)), swap);
#pragma GCC unroll 16
        for (size_t i = 0; i < 16; i++) {
            __m128i k = _mm_add_epi32(m[i % 4], _mm_load_si128(CONST_WORDS(round_constants + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
            if (i < 12) {       /* the words of four rounds on take the place of these */
                __m128i seven = _mm_alignr_epi8(m[(i + 3) % 4], m[(i + 2) % 4], 4);
                __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m[i % 4], m[(i + 1) % 4]), seven);
                m[i % 4] = _mm_sha256msg2_epu32(sum, m[(i + 3) % 4]);
            }
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    dcba = _mm_shuffle_epi32(abef, 0x1b);       /* FEBA */
    hgfe = _mm_shuffle_epi32(cdgh, 0xb1);       /* DCHG */
    _mm_storeu_si128(WORDS(state), _mm_blend_epi16(dcba, hgfe, 0xf0));
    _mm_storeu_si128(WORDS(state + 4), _mm_alignr_epi8(hgfe, dcba, 8));
}

static bool
cpu_has_sha(void)
{
    unsigned a, b, c, d;

    /* leaf 7, EBX bit 29. There is no processor that has this and not SSE4.1 */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1U << 29) != 0;
}

#endif

static void
blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
#ifdef HAVE_SHA_NI
    static int known = -1;      /* whether the CPU has it; -1: not asked. A race asks twice and learns the same */
    static size_t hashed;

    hashed += known < 0 ? n * BLOCK : 0;
    if (known < 0 && hashed >= ASK_FROM)
        known = cpu_has_sha();
    if (known > 0) {
        blocks_ni(state, p, n);
        return;
    }
#endif
    blocks_plain(state, p, n);
}

void
sha256_init(struct sha256 *h)
{
    *h = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19 } };
}

void
sha256_add(struct sha256 *h, const void *data, size_t n)
{
    size_t have = h->n % BLOCK, whole;
    const uint8_t *p = data;

    h->n += n;
    if (have > 0) {
        size_t take = BLOCK - have < n ? BLOCK - have : n;
        memcpy(h->rest + have, p, take);
        p += take;
        n -= take;
        if (have + take < BLOCK)
            return;
        blocks(h->state, h->rest, 1);
    }
    whole = n / BLOCK;
    if (whole > 0)
        blocks(h->state, p, whole);
    if (n > whole * BLOCK)
        memcpy(h->rest, p + whole * BLOCK, n - whole * BLOCK);
}

void
sha256_end(struct sha256 *h, uint8_t out[SHA256_SIZE])
{
    uint64_t bits = h->n * 8;
    uint8_t tail[2 * BLOCK] = { 0x80 };
    size_t have = h->n % BLOCK, pad = (have < 56 ? 56 : 120) - have;

    for (size_t i = 0; i < 8; i++)
        tail[pad + i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, tail, pad + 8);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        out[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void
sha256_of(const void *data, size_t n, uint8_t out[SHA256_SIZE])
{
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, data, n);
    sha256_end(&h, out);
}

void
sha256_hmac(const uint8_t key[SHA256_SIZE], const void *data, size_t n, uint8_t out[SHA256_SIZE])
{
    uint8_t inner[BLOCK], outer[BLOCK];
    struct sha256 h;

    memset(inner, 0x36, sizeof(inner));
    memset(outer, 0x5c, sizeof(outer));
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        inner[i] ^= key[i];
        outer[i] ^= key[i];
    }
    sha256_init(&h);
    sha256_add(&h, inner, sizeof(inner));
    sha256_add(&h, data, n);
    sha256_end(&h, out);
    sha256_init(&h);
    sha256_add(&h, outer, sizeof(outer));
    sha256_add(&h, out, SHA256_SIZE);
    sha256_end(&h, out);
    explicit_bzero(inner, sizeof(inner));
    explicit_bzero(outer, sizeof(outer));
    explicit_bzero(&h, sizeof(h));
}

void
sha256_text(const uint8_t hash[SHA256_SIZE], char out[SHA256_TEXT + 1])
{
    str_hex(hash, SHA256_SIZE, out);
}
