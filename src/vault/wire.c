/* vault/wire.c: see wire.h */
#include "vault/wire.h"

_Static_assert(vault_bound_MOST <= VAULT_MESSAGE_MAX && vault_printed_MOST <= VAULT_MESSAGE_MAX &&
               vault_leased_MOST <= VAULT_MESSAGE_MAX, "the longest");

PROTO_SHAPE(vault_bind, VAULT_SAY_BIND)
PROTO_SHAPE(vault_revoke, VAULT_SAY_REVOKE)
PROTO_SHAPE(vault_print, VAULT_SAY_PRINT)
PROTO_SHAPE(vault_ca, VAULT_SAY_CA)
PROTO_SHAPE(vault_part, VAULT_PART)
PROTO_SHAPE(vault_bound, VAULT_SAY_BOUND)
PROTO_SHAPE(vault_form, VAULT_FORM)
PROTO_SHAPE(vault_printed, VAULT_SAY_PRINTED)
PROTO_SHAPE(vault_no, VAULT_SAY_NO)
PROTO_SHAPE(vault_announce, VAULT_SAY_ANNOUNCE)
PROTO_SHAPE(vault_value, VAULT_VALUE)
PROTO_SHAPE(vault_leased, VAULT_SAY_LEASED)
PROTO_SHAPE(vault_certified, VAULT_SAY_CERTIFIED)
PROTO_SHAPE(vault_signed, VAULT_SAY_SIGNED)
PROTO_SHAPE(vault_refused, VAULT_SAY_REFUSED)
PROTO_SHAPE(vault_over, VAULT_SAY_OVER)
PROTO_SHAPE(vault_request, VAULT_REQUEST)
PROTO_SHAPE(vault_ask_lease, VAULT_ASK_OF_LEASE)
PROTO_SHAPE(vault_ask_leaf, VAULT_ASK_OF_LEAF)
PROTO_SHAPE(vault_ask_signature, VAULT_ASK_OF_SIGNATURE)
