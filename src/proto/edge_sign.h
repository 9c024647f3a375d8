/* proto/edge_sign.h: signing: what is asked of the warden about it, and what the warden and cloche-signer say to each
 * other (edge.h; docs/signing.md)
 *
 * A request is the texts of a client's; a transaction is its fields. A hash that somebody else made is in neither.
 */
#ifndef CLOCHE_PROTO_EDGE_SIGN_H
#define CLOCHE_PROTO_EDGE_SIGN_H

#include "proto/edge.h"

#define SIGN_REQUEST_MAX 128                /* bytes of a request's id */
#define SIGN_WORD_MAX    100                /* of an amount as text */
#define SIGN_DATA_BYTES  (16 * 1024)        /* of a call */
#define SIGN_TEXT_MAX    (16 * 1024)        /* of a message, or typed data */
#define SIGN_NUMBER_MAX  INT64_MAX          /* chain and nonce: as JSON has them */
#define SIGN_ADDRESS     20
#define SIGN_AMOUNT      32                 /* of 256 bits, the highest first */
#define SIGN_POLICY_MAX  (64 * 1024)
#define SIGN_RAW_MAX     (SIGN_DATA_BYTES + SIGN_TEXT_MAX + 1024)
#define SIGN_JSON_MAX    (100 * 1024)

/* --- of a front --------------------------------------------------------------------------------------------------- */

#define ASK_SIGN(F) \
    F(TEXT, request, SIGN_REQUEST_MAX) \
    F(U64_IN, chain, 0, SIGN_NUMBER_MAX) \
    F(TEXT, to, 2 + 2 * SIGN_ADDRESS) \
    F(TEXT, value, SIGN_WORD_MAX)           /* wei; what is no amount is the policy's to refuse */ \
    F(TEXT, data, 2 + 2 * SIGN_DATA_BYTES) \
    F(BOOL, has_nonce) \
    F(U64_IN, nonce, 0, SIGN_NUMBER_MAX) \
    F(TEXT, gas, SIGN_WORD_MAX)             /* "": not said; of these too: */ \
    F(TEXT, gas_price, SIGN_WORD_MAX)       /* it is a legacy one then */ \
    F(TEXT, max_fee, SIGN_WORD_MAX) \
    F(TEXT, tip, SIGN_WORD_MAX) \
    F(TEXT, access, SIGN_TEXT_MAX)          /* its access list, as JSON */ \
    F(U64_IN, created_ms, 0, SIGN_NUMBER_MAX)
PROTO_STRUCT(ask_sign, ASK_SIGN);

/* A message (EIP-191), or typed data (EIP-712) as JSON. */
enum sign_form { SIGN_TX, SIGN_MESSAGE, SIGN_TYPED };
#define ASK_SIGN_TEXT(F) \
    F(ENUM, sign_form, form, SIGN_MESSAGE, SIGN_TYPED) \
    F(TEXT, request, SIGN_REQUEST_MAX) \
    F(TEXT, text, SIGN_TEXT_MAX)
PROTO_STRUCT(ask_sign_text, ASK_SIGN_TEXT);

#define ASK_SIGN_DECIDE(F) \
    F(BOOL, approve) \
    F(TEXT, request, SIGN_REQUEST_MAX) \
    F(TEXT, hash, 66)                       /* of what that is, as who decides has seen it; "": they do not say */
PROTO_STRUCT(ask_sign_decide, ASK_SIGN_DECIDE);

/* What waits: SIGN_ITEMs, and END; or whose key it is. */
enum sign_look { SIGN_PENDING = 1, SIGN_WHOSE };
#define ASK_SIGN_LOOK(F) F(ENUM, sign_look, what, SIGN_PENDING, SIGN_WHOSE)
PROTO_STRUCT(ask_sign_look, ASK_SIGN_LOOK);

/* In the words of /api: a result, something that waits, an address. */
#define TELL_SIGNED(F) F(U32, ticket) F(BOOL, done) F(TEXT, json, SIGN_JSON_MAX)
PROTO_STRUCT(tell_signed, TELL_SIGNED);

/* --- warden and signer -------------------------------------------------------------------------------------------- */

#define EDGE_TX_FIELDS(F) \
    F(U8_IN, type, 0, 4)                    /* enum tx_type: 0 to 2 are signed */ \
    F(U64_IN, chain, 1, SIGN_NUMBER_MAX) \
    F(U64_IN, nonce, 0, SIGN_NUMBER_MAX) \
    F(U64, gas) \
    F(RAW, gas_price, SIGN_AMOUNT) \
    F(RAW, max_fee, SIGN_AMOUNT) \
    F(RAW, tip, SIGN_AMOUNT) \
    F(RAW, to, SIGN_ADDRESS) \
    F(RAW, value, SIGN_AMOUNT) \
    F(BYTES, data, SIGN_DATA_BYTES) \
    F(BYTES, access, SIGN_TEXT_MAX)         /* what is in its access list, as it is signed */
PROTO_STRUCT(edge_tx, EDGE_TX_FIELDS);

#define SIGNER_ASK(F) \
    F(U32_IN, number, 1, UINT32_MAX) \
    F(BOOL, confirmed)                      /* by a person */ \
    F(STRUCT_IN, edge_tx, tx)
PROTO_STRUCT(signer_ask, SIGNER_ASK);

/* Always confirmed by a person: a message; of typed data the hashes of its domain and its message. */
#define SIGNER_ASK_TEXT(F) \
    F(U32_IN, number, 1, UINT32_MAX) \
    F(ENUM, sign_form, form, SIGN_MESSAGE, SIGN_TYPED) \
    F(U64_IN, chain, 0, SIGN_NUMBER_MAX)    /* of its domain, as is the contract */ \
    F(BOOL, has_contract) \
    F(RAW, contract, SIGN_ADDRESS) \
    F(RAW, words, 64) \
    F(TEXT, text, SIGN_TEXT_MAX)
PROTO_STRUCT(signer_ask_text, SIGNER_ASK_TEXT);

#define EDGE_TO_SIGNER(M) \
    M(SIGNER_SIGN,       170, signer_ask) \
    M(SIGNER_SIGN_TEXT,  174, signer_ask_text)
PROTO_EDGE(edge_to_signer, EDGE_TO_SIGNER);

#define SIGNER_IS(F) F(RAW, address, SIGN_ADDRESS) F(BYTES, policy, SIGN_POLICY_MAX)
PROTO_STRUCT(signer_is, SIGNER_IS);

#define SIGNER_RAW(F) F(U32, number) F(BYTES, raw, SIGN_RAW_MAX)
PROTO_STRUCT(signer_raw, SIGNER_RAW);

#define SIGNER_NO(F) \
    F(U32, number) \
    F(BOOL, perhaps) \
    F(BOOL, ends)                           /* so does it, and reads nothing more */ \
    F(ERR, why)
PROTO_STRUCT(signer_no, SIGNER_NO);

#define EDGE_OF_SIGNER(M) \
    M(SIGNER_READY,      171, signer_is)    /* first: whose key it has, and the policy as its owner wrote it */ \
    M(SIGNER_MADE,       172, signer_raw)   /* the transaction as it is sent, with its signature; or 65 bytes */ \
    M(SIGNER_REFUSED,    173, signer_no)    /* there is none; or, perhaps, there is one that nobody here has */
PROTO_EDGE(edge_of_signer, EDGE_OF_SIGNER);

/* How cloche-signer ends when the token does not take the PIN: to start it again would be one wrong try more, and a few
 * of these lock a token. And when another key is there than it is to sign with. */
#define SIGNER_EXIT_LAST 3

/* --- the signer and the process that asks for signatures: of a PKCS#11 module, or a server ------------------------ */

#define TOKEN_WORD_MAX 255
#define TOKEN_WHERE(F) \
    F(TEXT, module, 4095)                   /* of PKCS#11: a file */ \
    F(TEXT, token, TOKEN_WORD_MAX)          /* its label */ \
    F(TEXT, object, TOKEN_WORD_MAX)         /* the key's */ \
    F(TEXT, pin, TOKEN_WORD_MAX)
PROTO_STRUCT(token_where, TOKEN_WHERE);

#define TOKEN_DIGEST(F) F(RAW, digest, 32)
PROTO_STRUCT(token_digest, TOKEN_DIGEST);

/* The same of a server: by cloche-remote. */
#define REMOTE_URL_MAX 1024
#define REMOTE_WHERE(F) \
    F(TEXT, url, REMOTE_URL_MAX) \
    F(TEXT, ca, 4095)                       /* a file of certificates besides the host's; "": none */ \
    F(TEXT, bearer, TOKEN_WORD_MAX)         /* what the server knows its caller by */
PROTO_STRUCT(remote_where, REMOTE_WHERE);

#define EDGE_TO_TOKEN(M) \
    M(TOKEN_OPEN,        180, token_where)  /* first, and once; or */ \
    M(REMOTE_OPEN,       185, remote_where) \
    M(TOKEN_SIGN,        181, token_digest)
PROTO_EDGE(edge_to_token, EDGE_TO_TOKEN);

#define TOKEN_POINT(F) F(RAW, point, 65)
PROTO_STRUCT(token_point, TOKEN_POINT);
#define TOKEN_RS(F) F(RAW, rs, 64)
PROTO_STRUCT(token_rs, TOKEN_RS);
#define TOKEN_WHY(F) F(BOOL, perhaps) F(ERR, why)       /* there may be a signature all the same */
PROTO_STRUCT(token_why, TOKEN_WHY);

#define EDGE_OF_TOKEN(M) \
    M(TOKEN_IS,          182, token_point)  /* the key is there; its public point */ \
    M(TOKEN_MADE,        183, token_rs) \
    M(TOKEN_REFUSED,     184, token_why)
PROTO_EDGE(edge_of_token, EDGE_OF_TOKEN);

#endif
