/* sign/key.c: see key.h */
#include "sign/key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <secp256k1.h>
#include <secp256k1_recovery.h>

struct sign_key {
    secp256k1_context *context;     /* blinded for this key */
    uint8_t bytes[SIGN_KEY_SIZE];
    uint8_t address[TX_ADDRESS];
};

static void
address_of(const secp256k1_context *c, const secp256k1_pubkey *point, uint8_t out[TX_ADDRESS])
{
    uint8_t plain[65], hash[KECCAK_SIZE];
    size_t n = sizeof(plain);

    (void)secp256k1_ec_pubkey_serialize(c, plain, &n, point, SECP256K1_EC_UNCOMPRESSED);
    keccak256(plain + 1, n - 1, hash);
    memcpy(out, hash + KECCAK_SIZE - TX_ADDRESS, TX_ADDRESS);
}

void
sign_key_free(struct sign_key *k)
{
    if (k == NULL)
        return;
    if (k->context != NULL)
        secp256k1_context_destroy(k->context);
    explicit_bzero(k, sizeof(*k));
    (void)munmap(k, sizeof(*k));
}

/* Pages of its own, which are not swapped out as far as that can be had, and on no core file. */
static struct sign_key *
pages(void)
{
    void *p = mmap(NULL, sizeof(struct sign_key), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    (void)mlock(p, sizeof(struct sign_key));
    (void)madvise(p, sizeof(struct sign_key), MADV_DONTDUMP);
    return p;
}

struct sign_key *
sign_key_new(const uint8_t bytes[SIGN_KEY_SIZE], struct err *err)
{
    struct sign_key *k = pages();
    uint8_t blind[32];
    secp256k1_pubkey point;

    if (k == NULL || (k->context = secp256k1_context_create(SECP256K1_CONTEXT_NONE)) == NULL) {
        sign_key_free(k);
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    memcpy(k->bytes, bytes, SIGN_KEY_SIZE);
    if (getrandom(blind, sizeof(blind), 0) != sizeof(blind) || !secp256k1_context_randomize(k->context, blind) ||
        !secp256k1_ec_pubkey_create(k->context, &point, k->bytes)) {
        sign_key_free(k);
        (void)err_set(err, ERR_POLICY, "sign.key.invalid", "these 32 bytes are no private key of secp256k1");
        return NULL;
    }
    explicit_bzero(blind, sizeof(blind));
    address_of(k->context, &point, k->address);
    return k;
}

void
sign_key_address(const struct sign_key *k, uint8_t out[TX_ADDRESS])
{
    memcpy(out, k->address, TX_ADDRESS);
}

int
sign_key_sign(const struct sign_key *k, const uint8_t digest[TX_HASH], struct tx_signature *out, struct err *err)
{
    secp256k1_ecdsa_recoverable_signature made;
    uint8_t compact[64], by[TX_ADDRESS];
    int parity;

    if (!secp256k1_ecdsa_sign_recoverable(k->context, &made, digest, k->bytes, NULL, NULL))
        return err_set(err, ERR_SYSTEM, "sign.failed", "libsecp256k1 did not sign");
    (void)secp256k1_ecdsa_recoverable_signature_serialize_compact(k->context, compact, &parity, &made);
    memcpy(out->r, compact, sizeof(out->r));
    memcpy(out->s, compact + sizeof(out->r), sizeof(out->s));
    out->parity = (uint8_t)parity;
    /* a fault of the machine while it signs could tell the key: what comes out is checked first */
    if (parity > 1 || !sign_recover(digest, out, by) || memcmp(by, k->address, TX_ADDRESS) != 0) {
        explicit_bzero(out, sizeof(*out));
        return err_set(err, ERR_SYSTEM, "sign.failed", "the signature is not valid");
    }
    return 0;
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
