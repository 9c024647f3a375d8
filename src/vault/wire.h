/* vault/wire.h: what is said over the vault's two sockets
 *
 * One SOCK_SEQPACKET message is one frame (wire/packet.h), and a list of fields (proto/field.h). Who may say what and
 * when is in the tables of serve.c and client.c. The supervisor is cloche run, the egress edge is cloche-egress.
 */
#ifndef CLOCHE_VAULT_WIRE_H
#define CLOCHE_VAULT_WIRE_H

#include <limits.h>

#include "base/mask.h"
#include "proto/field.h"
#include "vault/client.h"

#define VAULT_MESSAGE_MAX (VAULT_SECRETS_MAX * (VAULT_VALUE_MAX + 16) + BINDING_TEXT_MAX + 1024)
#define VAULT_RECEIVE_ROOM (VAULT_MESSAGE_MAX + FRAME_HEADER + 1)
#define VAULT_CA_PEM_MAX  8192
#define VAULT_ADD_MAX     (BINDING_WORD_MAX + 2 + BINDING_ADD_MAX)
#define VAULT_ID_TEXT     32        /* hexadecimal digits */
#define VAULT_PRINTS_MAX  (VAULT_SECRETS_MAX * MASK_FORMS)
#define VAULT_SEARCH_ONLY 0x80      /* with an id: it may not go into the request, its answer is searched for it */

enum vault_state { VAULT_STATE_USABLE, VAULT_STATE_REVOKED, VAULT_STATE_EXPIRED };

/* --- supervisor and vault ----------------------------------------------------------------------------------------- */

/* Each "" as it is stored. */
#define VAULT_SAY_BIND(F) \
    F(TEXT, name, VAULT_NAME_MAX) \
    F(TEXT, binding, BINDING_WORD_MAX) \
    F(TEXT, add, VAULT_ADD_MAX)             /* a header */ \
    F(TEXT, env, BINDING_WORD_MAX)          /* a variable */
PROTO_STRUCT(vault_bind, VAULT_SAY_BIND);

#define VAULT_SAY_REVOKE(F) F(TEXT, id, VAULT_ID_TEXT)
PROTO_STRUCT(vault_revoke, VAULT_SAY_REVOKE);

#define VAULT_SAY_PRINT(F) F(REF, key, MASK_KEY)
PROTO_STRUCT(vault_print, VAULT_SAY_PRINT);

#define VAULT_SUPERVISOR_TO(M) \
    M(VAULT_BIND,     1,  vault_bind) \
    M(VAULT_START,    2,  nothing)          /* no more binds: the store's key is wiped */ \
    M(VAULT_EGRESS,   3,  nothing)          /* with the vault's end of a new egress edge; the one before is closed */ \
    M(VAULT_REVOKE,   4,  vault_revoke) \
    M(VAULT_PRINT,    5,  vault_print)      /* what can the values be recognised by (base/mask.h)? */
PROTO_EDGE(vault_of_supervisor, VAULT_SUPERVISOR_TO);

#define VAULT_SAY_CA(F) \
    F(TEXT, pem, VAULT_CA_PEM_MAX)          /* the certificate */ \
    F(TEXT, folder, PATH_MAX - 1)           /* of the store */
PROTO_STRUCT(vault_ca, VAULT_SAY_CA);

#define VAULT_PART(F) \
    F(ENUM, vault_role, role, VAULT_ROLE_VALUE, VAULT_ROLE_AWS_TOKEN) \
    F(TEXT, env, BINDING_WORD_MAX)          /* the variable; "" none */ \
    F(BYTES, placeholder, VAULT_VALUE_MAX)
PROTO_STRUCT(vault_part, VAULT_PART);

#define VAULT_SAY_BOUND(F) \
    F(TEXT, id, VAULT_ID_TEXT) \
    F(LIST, vault_part, part, 1, VAULT_SECRETS_MAX) \
    F(STR, binding, BINDING_TEXT_MAX)       /* as text */
PROTO_STRUCT(vault_bound, VAULT_SAY_BOUND);

/* Of a value, or of a form of it. */
#define VAULT_FORM(F) \
    F(TEXT, name, VAULT_NAME_MAX) \
    F(U32, n) \
    F(U64, roll) \
    F(RAW, sum, SHA256_SIZE)
PROTO_STRUCT(vault_form, VAULT_FORM);

#define VAULT_SAY_PRINTED(F) F(LIST, vault_form, form, 1, VAULT_PRINTS_MAX)
PROTO_STRUCT(vault_printed, VAULT_SAY_PRINTED);

#define VAULT_SAY_NO(F) F(ERR, why)
PROTO_STRUCT(vault_no, VAULT_SAY_NO);

#define VAULT_TO_SUPERVISOR(M) \
    M(VAULT_CA,       6,  vault_ca)         /* the first message, unless it is NO */ \
    M(VAULT_BOUND,    7,  vault_bound) \
    M(VAULT_STARTED,  8,  nothing) \
    M(VAULT_PRINTED,  9,  vault_printed)    /* the answer to PRINT */ \
    M(VAULT_NO,       10, vault_no)         /* the answer to BIND, or instead of CA */
PROTO_EDGE(vault_to_supervisor, VAULT_TO_SUPERVISOR);

/* --- egress and vault --------------------------------------------------------------------------------------------- */

#define VAULT_SAY_ANNOUNCE(F) \
    F(U8_IN, id, 0, VAULT_SECRETS_MAX - 1) \
    F(ENUM, vault_role, role, VAULT_ROLE_VALUE, VAULT_ROLE_AWS_TOKEN) \
    F(ENUM, vault_state, state, VAULT_STATE_USABLE, VAULT_STATE_EXPIRED) \
    F(STR, name, VAULT_NAME_MAX) \
    F(BYTES, placeholder, VAULT_VALUE_MAX) \
    F(STR, binding, BINDING_TEXT_MAX)
PROTO_STRUCT(vault_announce, VAULT_SAY_ANNOUNCE);

#define VAULT_VALUE(F) \
    F(U8, id)                               /* | VAULT_SEARCH_ONLY */ \
    F(BYTES, value, VAULT_VALUE_MAX)
PROTO_STRUCT(vault_value, VAULT_VALUE);

#define VAULT_SAY_LEASED(F) \
    F(U32, ticket) \
    F(U32, ms) \
    F(LIST, vault_value, value, 1, VAULT_SECRETS_MAX)
PROTO_STRUCT(vault_leased, VAULT_SAY_LEASED);

#define VAULT_SAY_CERTIFIED(F) \
    F(U32, ticket) \
    F(U32, ms) \
    F(BYTES, certificate, VAULT_LEAF_MAX) \
    F(BYTES, key, VAULT_LEAF_MAX)
PROTO_STRUCT(vault_certified, VAULT_SAY_CERTIFIED);

#define VAULT_SAY_SIGNED(F) F(U32, ticket) F(TEXT, authorization, VAULT_AUTHORIZATION_MAX)
PROTO_STRUCT(vault_signed, VAULT_SAY_SIGNED);

#define VAULT_SAY_REFUSED(F) F(U32, ticket) F(ERR, why)
PROTO_STRUCT(vault_refused, VAULT_SAY_REFUSED);

#define VAULT_SAY_OVER(F) F(U32, mask)
PROTO_STRUCT(vault_over, VAULT_SAY_OVER);

#define VAULT_TO_EGRESS(M) \
    M(VAULT_ANNOUNCE, 32, vault_announce) \
    M(VAULT_ANNOUNCED, 33, nothing) \
    M(VAULT_LEASED,   34, vault_leased) \
    M(VAULT_CERTIFIED, 35, vault_certified) \
    M(VAULT_SIGNED,   36, vault_signed) \
    M(VAULT_REFUSED,  37, vault_refused) \
    M(VAULT_REVOKED,  38, vault_over) \
    M(VAULT_EXPIRED,  39, vault_over)
PROTO_EDGE(vault_to_egress, VAULT_TO_EGRESS);

/* A struct binding_request. */
#define VAULT_REQUEST(F) \
    F(BOOL, tls) \
    F(STR, host, HOST_NAME_MAX_LEN) \
    F(U16, port) \
    F(STR, method, BINDING_WORD_MAX) \
    F(STR, path, VAULT_PATH_MAX)
PROTO_STRUCT(vault_request, VAULT_REQUEST);

#define VAULT_ASK_OF_LEASE(F) F(U32, ticket) F(U32, want) F(STRUCT_IN, vault_request, request)
PROTO_STRUCT(vault_ask_lease, VAULT_ASK_OF_LEASE);

#define VAULT_ASK_OF_LEAF(F) F(U32, ticket) F(STR, host, HOST_NAME_MAX_LEN)
PROTO_STRUCT(vault_ask_leaf, VAULT_ASK_OF_LEAF);

#define VAULT_ASK_OF_SIGNATURE(F) \
    F(U32, ticket) \
    F(U8, id) \
    F(STRUCT_IN, vault_request, request) \
    F(STR, date, VAULT_DATE_MAX) \
    F(STR, region, BINDING_WORD_MAX) \
    F(STR, service, BINDING_WORD_MAX) \
    F(STR, signed_headers, VAULT_AUTHORIZATION_MAX) \
    F(REF, canonical, SHA256_SIZE)
PROTO_STRUCT(vault_ask_signature, VAULT_ASK_OF_SIGNATURE);

#define VAULT_EGRESS_TO(M) \
    M(VAULT_ASK_LEASE,     64, vault_ask_lease) \
    M(VAULT_ASK_LEAF,      65, vault_ask_leaf) \
    M(VAULT_ASK_SIGNATURE, 66, vault_ask_signature)
PROTO_EDGE(vault_of_egress, VAULT_EGRESS_TO);

#endif
