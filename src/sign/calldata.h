/* sign/calldata.h: what a transaction's data asks a contract to do, as far as it is one of the usual calls
 *
 * ERC-20, 721, 1155, 2612, Permit2 and wrapped ether: a person is shown the call with its arguments, and what moves
 * somebody's assets, or lets somebody else move them, is known as that. What is not in the table is an unknown call,
 * never a harmless one. Pure.
 */
#ifndef CLOCHE_SIGN_CALLDATA_H
#define CLOCHE_SIGN_CALLDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sign/tx.h"

#define CALL_SELECTOR 4

enum call_class {
    CALL_NONE,          /* no data: a plain transfer of ether */
    CALL_UNKNOWN,
    CALL_HARMLESS,      /* takes away what somebody else was allowed */
    CALL_MOVES,         /* tokens to somebody */
    CALL_ALLOWS,        /* lets somebody else move tokens, up to an amount or without limit */
};

struct call {
    enum call_class class;
    const char *text;               /* "transfer(address to, uint256 amount)"; NULL: unknown, or none */
    uint8_t selector[CALL_SELECTOR];
    bool has_party;
    uint8_t party[TX_ADDRESS];      /* who gets it, or may move it from then on */
    bool has_amount;
    struct u256 amount;
};

/* False: @n is 1 to 3, so no contract would take it as a call; or the arguments of a known call are not all there, or
 * not as they have to be. */
bool call_read(const uint8_t *data, size_t n, struct call *out);

#endif
