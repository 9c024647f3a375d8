/* sign/tx.h: Ethereum's transactions: as fields, and as the bytes that are hashed and signed
 *
 * Legacy with EIP-155, EIP-2930, 1559, 4844 and 7702. One table (tx.c) has the order of each type's fields; reading and
 * writing both walk it, so what was read, shown and judged is what is signed, byte for byte. Pure.
 */
#ifndef CLOCHE_SIGN_TX_H
#define CLOCHE_SIGN_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "sign/keccak.h"
#include "sign/rlp.h"
#include "sign/u256.h"

#define TX_ADDRESS      20
#define TX_HASH         KECCAK_SIZE
#define TX_DATA_MAX     (128 * 1024)    /* what nodes pass on (EIP-4844 aside) */
#define TX_BYTES_MAX    (256 * 1024)    /* a whole transaction */
#define TX_CHAIN_MAX    (UINT64_MAX / 2 - 36)   /* EIP-2294: `v` fits in 64 bits */
#define TX_NONCE_MAX    (UINT64_MAX - 1)        /* EIP-2681 */
#define TX_ENTRIES_MAX  4096            /* addresses and keys of an access list; authorisations; blobs */

enum tx_type { TX_LEGACY, TX_ACCESS_LIST, TX_DYNAMIC_FEE, TX_BLOB, TX_SET_CODE, TX_TYPES };

/* What a list of fields points to is borrowed. A field that its type does not have is zero. */
struct tx {
    enum tx_type type;
    uint64_t chain;             /* 0 (legacy only): any chain could replay it; read, never signed */
    uint64_t nonce, gas;
    struct u256 gas_price;      /* legacy and 2930 */
    struct u256 tip, max_fee;   /* per gas */
    bool creates;               /* a contract: there is no @to */
    uint8_t to[TX_ADDRESS];
    struct u256 value;          /* wei */
    const uint8_t *data;
    size_t n_data;
    struct rlp access;          /* the items of the access list: [address, [key, ...]], ... */
    struct u256 max_blob_fee;
    struct rlp blobs;           /* hashes of 32 bytes that begin with 01 */
    struct rlp authorizations;  /* [chain, address, nonce, y parity, r, s], ... */
};

struct tx_signature {
    uint8_t r[32], s[32];
    uint8_t parity;             /* 0 or 1: of the point's y */
};

/* Append @tx as it is hashed (@s NULL) or as it is sent. 0, or -1 with @err: a field is out of its range (sign.tx.*),
 * or it does not fit. */
int tx_write(const struct tx *tx, const struct tx_signature *s, struct buf *out, struct err *err);
/* What is signed: Keccak-256 of the unsigned form. As tx_write. */
int tx_digest(const struct tx *tx, uint8_t out[TX_HASH], struct err *err);

/* Read p[0..n), which is a transaction as it is sent, and nothing else. 0, or -1 with @err (sign.tx.*). */
int tx_read(const uint8_t *p, size_t n, struct tx *tx, struct tx_signature *s, struct err *err);

/* Gas that @tx takes before it does anything, more of which it has to bring (EIP-2, 2028, 2930, 3860, 7702); false
 * when that is more than 64 bits hold. */
bool tx_intrinsic_gas(const struct tx *tx, uint64_t *out);

#endif
