/* sign/key.c: see key.h */
#include "sign/key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <secp256k1.h>
#include <secp256k1_recovery.h>

struct sign_key {
    const struct sign_backend *backend;
    void *ctx;
    uint8_t point[SIGN_POINT], address[TX_ADDRESS];
};

static void
address_of(const secp256k1_context *c, const secp256k1_pubkey *point, uint8_t out[TX_ADDRESS])
{
    uint8_t plain[SIGN_POINT], hash[KECCAK_SIZE];
    size_t n = sizeof(plain);

    (void)secp256k1_ec_pubkey_serialize(c, plain, &n, point, SECP256K1_EC_UNCOMPRESSED);
    keccak256(plain + 1, n - 1, hash);
    memcpy(out, hash + KECCAK_SIZE - TX_ADDRESS, TX_ADDRESS);
}

/* --- a key in this process ---------------------------------------------------------------------------------------- */

struct own_key {
    secp256k1_context *context;     /* blinded for this key */
    uint8_t bytes[SIGN_KEY_SIZE];
};

static void
own_free(void *ctx)
{
    struct own_key *k = ctx;

    if (k == NULL)
        return;
    if (k->context != NULL)
        secp256k1_context_destroy(k->context);
    explicit_bzero(k, sizeof(*k));
    (void)munmap(k, sizeof(*k));
}

/* Pages of its own, which are not swapped out as far as that can be had, and on no core file. */
static struct own_key *
pages(void)
{
    void *p = mmap(NULL, sizeof(struct own_key), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    (void)mlock(p, sizeof(struct own_key));
    (void)madvise(p, sizeof(struct own_key), MADV_DONTDUMP);
    return p;
}

static int
own_sign(void *ctx, const uint8_t digest[TX_HASH], uint8_t rs[64], struct err *err)
{
    const struct own_key *k = ctx;
    secp256k1_ecdsa_signature made;

    if (!secp256k1_ecdsa_sign(k->context, &made, digest, k->bytes, NULL, NULL))
        return err_set(err, ERR_SYSTEM, "sign.failed", "libsecp256k1 did not sign");
    (void)secp256k1_ecdsa_signature_serialize_compact(k->context, rs, &made);
    return 0;
}

static const struct sign_backend own_backend = { .sign = own_sign, .free = own_free };

struct sign_key *
sign_key_new(const uint8_t bytes[SIGN_KEY_SIZE], struct err *err)
{
    struct own_key *k = pages();
    uint8_t blind[32], plain[SIGN_POINT];
    secp256k1_pubkey point;
    size_t n = sizeof(plain);

    if (k == NULL || (k->context = secp256k1_context_create(SECP256K1_CONTEXT_NONE)) == NULL) {
        own_free(k);
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    memcpy(k->bytes, bytes, SIGN_KEY_SIZE);
    if (getrandom(blind, sizeof(blind), 0) != sizeof(blind) || !secp256k1_context_randomize(k->context, blind) ||
        !secp256k1_ec_pubkey_create(k->context, &point, k->bytes)) {
        own_free(k);
        (void)err_set(err, ERR_POLICY, "sign.key.invalid", "these 32 bytes are no private key of secp256k1");
        return NULL;
    }
    explicit_bzero(blind, sizeof(blind));
    (void)secp256k1_ec_pubkey_serialize(k->context, plain, &n, &point, SECP256K1_EC_UNCOMPRESSED);
    return sign_key_of(&own_backend, k, plain, err);
}

/* --- of any backend ----------------------------------------------------------------------------------------------- */

bool
sign_point_address(const uint8_t point[SIGN_POINT], uint8_t out[TX_ADDRESS])
{
    secp256k1_pubkey read;

    if (!secp256k1_ec_pubkey_parse(secp256k1_context_static, &read, point, SIGN_POINT))
        return false;
    address_of(secp256k1_context_static, &read, out);
    return true;
}

struct sign_key *
sign_key_of(const struct sign_backend *backend, void *ctx, const uint8_t point[SIGN_POINT], struct err *err)
{
    struct sign_key *k = calloc(1, sizeof(*k));

    if (k == NULL)
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (!sign_point_address(point, k->address))
        (void)err_set(err, ERR_POLICY, "sign.key.invalid", "its public point is none of secp256k1");
    else {
        k->backend = backend;
        k->ctx = ctx;
        memcpy(k->point, point, SIGN_POINT);
        return k;
    }
    free(k);
    backend->free(ctx);
    return NULL;
}

void
sign_key_free(struct sign_key *k)
{
    if (k != NULL)
        k->backend->free(k->ctx);
    free(k);
}

bool
sign_key_lives(const struct sign_key *k)
{
    return k->backend->lives == NULL || k->backend->lives(k->ctx);
}

void
sign_key_point(const struct sign_key *k, uint8_t out[SIGN_POINT])
{
    memcpy(out, k->point, SIGN_POINT);
}

void
sign_key_address(const struct sign_key *k, uint8_t out[TX_ADDRESS])
{
    memcpy(out, k->address, TX_ADDRESS);
}

void
sign_key_address_text(const struct sign_key *k, char out[SIGN_ADDRESS_TEXT + 1])
{
    sign_address_text(k->address, out);
}

/* The two forms of s are of one signature, and networks take the low one (EIP-2). */
static bool
make_low(uint8_t rs[64])
{
    secp256k1_ecdsa_signature read;

    if (!secp256k1_ecdsa_signature_parse_compact(secp256k1_context_static, &read, rs))
        return false;
    (void)secp256k1_ecdsa_signature_normalize(secp256k1_context_static, &read, &read);
    (void)secp256k1_ecdsa_signature_serialize_compact(secp256k1_context_static, rs, &read);
    return true;
}

int
sign_key_sign(const struct sign_key *k, const uint8_t digest[TX_HASH], struct tx_signature *out, struct err *err)
{
    uint8_t rs[64] = { 0 }, by[TX_ADDRESS];

    const int r = k->backend->sign(k->ctx, digest, rs, err);

    if (r < 0)
        return r;
    if (make_low(rs)) {
        memcpy(out->r, rs, sizeof(out->r));
        memcpy(out->s, rs + sizeof(out->r), sizeof(out->s));
        /* a fault of the machine while it signs could tell the key: what comes out is checked first */
        for (out->parity = 0; out->parity < 2; out->parity++)
            if (sign_recover(digest, out, by) && memcmp(by, k->address, TX_ADDRESS) == 0)
                return 0;
    }
    explicit_bzero(out, sizeof(*out));
    (void)err_set(err, ERR_SYSTEM, "sign.failed", "the signature is not valid");
    return SIGN_PERHAPS;        /* who signed something else may have signed this too */
}

bool
sign_recover(const uint8_t digest[TX_HASH], const struct tx_signature *s, uint8_t out[TX_ADDRESS])
{
    const secp256k1_context *c = secp256k1_context_static;
    secp256k1_ecdsa_recoverable_signature read;
    secp256k1_pubkey point;
    uint8_t compact[64];

    memcpy(compact, s->r, sizeof(s->r));
    memcpy(compact + sizeof(s->r), s->s, sizeof(s->s));
    if (s->parity > 1 || !secp256k1_ecdsa_recoverable_signature_parse_compact(c, &read, compact, s->parity) ||
        !secp256k1_ecdsa_recover(c, &point, &read, digest))
        return false;
    address_of(c, &point, out);
    return true;
}
