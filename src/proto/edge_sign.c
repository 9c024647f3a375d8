/* proto/edge_sign.c: see edge_sign.h */
#include "proto/edge_sign.h"

PROTO_SHAPE(ask_sign, ASK_SIGN)
PROTO_SHAPE(ask_sign_text, ASK_SIGN_TEXT)
PROTO_SHAPE(ask_sign_decide, ASK_SIGN_DECIDE)
PROTO_SHAPE(ask_sign_look, ASK_SIGN_LOOK)
PROTO_SHAPE(tell_signed, TELL_SIGNED)
PROTO_SHAPE(edge_tx, EDGE_TX_FIELDS)
PROTO_SHAPE(signer_ask, SIGNER_ASK)
PROTO_SHAPE(signer_ask_text, SIGNER_ASK_TEXT)
PROTO_SHAPE(signer_is, SIGNER_IS)
PROTO_SHAPE(signer_raw, SIGNER_RAW)
PROTO_SHAPE(signer_no, SIGNER_NO)
PROTO_SHAPE(token_where, TOKEN_WHERE)
PROTO_SHAPE(token_digest, TOKEN_DIGEST)
PROTO_SHAPE(token_point, TOKEN_POINT)
PROTO_SHAPE(token_rs, TOKEN_RS)
PROTO_SHAPE(token_why, TOKEN_WHY)
