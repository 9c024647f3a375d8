/* sign/keccak.c: see keccak.h */
#include "sign/keccak.h"

#define ROUNDS 24
#define RATE   136      /* bytes of a block: 1600 bits less twice 256 */
#define LANES  25

static const uint64_t round_constant[ROUNDS] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

/* rho's distances and pi's places, in the order in which pi visits the lanes from lane 1 on. */
static const uint8_t distance[LANES - 1] = { 1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                             27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44 };
static const uint8_t place[LANES - 1] = { 10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                          15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1 };

static uint64_t
left(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

static void
theta(uint64_t a[LANES])
{
    uint64_t column[5];

    for (size_t x = 0; x < 5; x++)
        column[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
    for (size_t x = 0; x < 5; x++)
        for (size_t y = 0; y < LANES; y += 5)
            a[x + y] ^= column[(x + 4) % 5] ^ left(column[(x + 1) % 5], 1);
}

static void
rho_pi(uint64_t a[LANES])
{
    uint64_t moved = a[1];

    for (size_t i = 0; i < LANES - 1; i++) {
        uint64_t there = a[place[i]];

        a[place[i]] = left(moved, distance[i]);
        moved = there;
    }
}

static void
chi(uint64_t a[LANES])
{
    for (size_t y = 0; y < LANES; y += 5) {
        const uint64_t row[5] = { a[y], a[y + 1], a[y + 2], a[y + 3], a[y + 4] };

        for (size_t x = 0; x < 5; x++)
            a[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    }
}

static void
permute(uint64_t a[LANES])
{
    for (size_t round = 0; round < ROUNDS; round++) {
        theta(a);
        rho_pi(a);
        chi(a);
        a[0] ^= round_constant[round];
    }
}

/* Lanes are little-endian, on every machine. */
static void
add_byte(struct keccak *k, size_t at, uint8_t v)
{
    k->lanes[at / 8] ^= (uint64_t)v << (8 * (at % 8));
}

void
keccak_init(struct keccak *k)
{
    *k = (struct keccak){ .at = 0 };
}

void
keccak_add(struct keccak *k, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < n; i++) {
        add_byte(k, k->at++, bytes[i]);
        if (k->at == RATE) {
            permute(k->lanes);
            k->at = 0;
        }
    }
}

void
keccak_end(struct keccak *k, uint8_t out[KECCAK_SIZE])
{
    add_byte(k, k->at, 0x01);
    add_byte(k, RATE - 1, 0x80);
    permute(k->lanes);
    for (size_t i = 0; i < KECCAK_SIZE; i++)
        out[i] = (uint8_t)(k->lanes[i / 8] >> (8 * (i % 8)));
}

void
keccak256(const void *p, size_t n, uint8_t out[KECCAK_SIZE])
{
    struct keccak k;

    keccak_init(&k);
    keccak_add(&k, p, n);
    keccak_end(&k, out);
}
