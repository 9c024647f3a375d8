/* sign/calldata.c: see calldata.h */
#include "sign/calldata.h"

#include <string.h>

#include "base/array.h"
#include "sign/keccak.h"

#define WORD U256_SIZE
#define NO   0xff       /* no such argument */

/* A row a call: its signature (of which the selector is made), how a person reads it, what it does, which of its words
 * is who, and which how much. @words: that many at least; more belong to arguments without a fixed size. */
static const struct known {
    const char *signature, *text;
    enum call_class class;
    uint8_t party, amount, words;
} known[] = {
    { "transfer(address,uint256)", "transfer(to, amount)", CALL_MOVES, 0, 1, 2 },
    { "transferFrom(address,address,uint256)", "transferFrom(from, to, amount)", CALL_MOVES, 1, 2, 3 },
    { "safeTransferFrom(address,address,uint256)", "safeTransferFrom(from, to, id)", CALL_MOVES, 1, NO, 3 },
    { "safeTransferFrom(address,address,uint256,bytes)", "safeTransferFrom(from, to, id, data)", CALL_MOVES, 1, NO, 4 },
    { "safeTransferFrom(address,address,uint256,uint256,bytes)", "safeTransferFrom(from, to, id, amount, data)",
      CALL_MOVES, 1, 3, 5 },
    { "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)",
      "safeBatchTransferFrom(from, to, ids, amounts, data)", CALL_MOVES, 1, NO, 5 },
    { "approve(address,uint256)", "approve(spender, amount)", CALL_ALLOWS, 0, 1, 2 },
    { "increaseAllowance(address,uint256)", "increaseAllowance(spender, amount)", CALL_ALLOWS, 0, 1, 2 },
    { "increaseApproval(address,uint256)", "increaseApproval(spender, amount)", CALL_ALLOWS, 0, 1, 2 },
    { "decreaseAllowance(address,uint256)", "decreaseAllowance(spender, amount)", CALL_HARMLESS, 0, 1, 2 },
    { "setApprovalForAll(address,bool)", "setApprovalForAll(operator, approved)", CALL_ALLOWS, 0, NO, 2 },
    { "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
      "permit(owner, spender, amount, deadline, v, r, s)", CALL_ALLOWS, 1, 2, 7 },
    { "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)",
      "permit(holder, spender, nonce, expiry, allowed, v, r, s)", CALL_ALLOWS, 1, NO, 8 },
    { "approve(address,address,uint160,uint48)", "approve(token, spender, amount, expiration)", CALL_ALLOWS, 1, 2, 4 },
    { "deposit()", "deposit()", CALL_HARMLESS, NO, NO, 0 },
    { "withdraw(uint256)", "withdraw(amount)", CALL_HARMLESS, NO, 0, 1 },
};

static const struct known *
known_of(const uint8_t selector[CALL_SELECTOR])
{
    uint8_t hash[KECCAK_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        keccak256(known[i].signature, strlen(known[i].signature), hash);
        if (memcmp(hash, selector, CALL_SELECTOR) == 0)
            return &known[i];
    }
    return NULL;
}

/* An address has twelve zeros in front: a contract that ignores other bytes there would read what we do not. */
static bool
address_at(const uint8_t *args, size_t i, uint8_t out[TX_ADDRESS])
{
    static const uint8_t zeros[WORD - TX_ADDRESS];
    const uint8_t *word = args + i * WORD;

    memcpy(out, word + sizeof(zeros), TX_ADDRESS);
    return memcmp(word, zeros, sizeof(zeros)) == 0;
}

bool
call_read(const uint8_t *data, size_t n, struct call *out)
{
    const struct known *k;

    *out = (struct call){ .class = CALL_NONE };
    if (n == 0)
        return true;
    if (n < CALL_SELECTOR)
        return false;
    memcpy(out->selector, data, CALL_SELECTOR);
    out->class = CALL_UNKNOWN;
    k = known_of(out->selector);
    if (k == NULL)
        return true;
    if (n - CALL_SELECTOR < (size_t)k->words * WORD)
        return false;
    out->class = k->class;
    out->text = k->text;
    if (k->party != NO && !address_at(data + CALL_SELECTOR, k->party, out->party))
        return false;
    out->has_party = k->party != NO;
    out->has_amount = k->amount != NO;
    if (out->has_amount)
        memcpy(out->amount.b, data + CALL_SELECTOR + k->amount * (size_t)WORD, WORD);
    return true;
}
