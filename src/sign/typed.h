/* sign/typed.h: typed structured data (EIP-712), as wallets are asked to sign it
 *
 *   {"types": {"EIP712Domain": [...], "Mail": [{"name": "from", "type": "Person"}, ...], ...},
 *    "primaryType": "Mail", "domain": {...}, "message": {...}}
 *
 * Strict: a member that no type names, one that is missing, a type that nothing leads to, and a value outside of its
 * type's range are refused, so that a person who reads the message reads all that is signed and nothing else. The chain
 * has to be named. Pure.
 */
#ifndef CLOCHE_SIGN_TYPED_H
#define CLOCHE_SIGN_TYPED_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "sign/tx.h"

#define TYPED_TYPES_MAX   64
#define TYPED_MEMBERS_MAX 64        /* of one type */
#define TYPED_NAME_MAX    64
#define TYPED_DEPTH_MAX   16        /* of structs and arrays within each other */
#define TYPED_VALUES_MAX  20000     /* in the whole message */
#define TYPED_BYTES_MAX   (256 * 1024)

struct typed {
    uint8_t words[2 * TX_HASH];     /* hashes of the domain and of the message, */
    uint8_t digest[TX_HASH];        /* and of both: what is signed */
    uint64_t chain;
    bool has_contract;
    uint8_t contract[TX_ADDRESS];   /* the domain's verifyingContract */
    const char *primary;            /* borrowed from the JSON */
};

/* Of the two hashes: with the prefix that makes it neither a transaction nor a message. */
void typed_digest(const uint8_t words[2 * TX_HASH], uint8_t out[TX_HASH]);
/* 0, or -1 with @err (sign.typed.*), which names the member. */
int typed_read(const json_t *data, struct typed *out, struct err *err);

#endif
