/* sign/rules.h: which transactions are signed, which need a person, and which are not signed at all
 *
 * The order of the source's rules, with its names and reasons, and of our own: fees, spending in an hour and a day, and
 * what needs a person whatever the thresholds say. Who has no rules signs nothing. The counts are the caller's to keep:
 * they have to be on the disk before a signature leaves (R46). Pure: the time is an argument.
 */
#ifndef CLOCHE_SIGN_RULES_H
#define CLOCHE_SIGN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sign/calldata.h"
#include "sign/tx.h"

#define RULES_ENTRIES_MAX 256       /* of each list */
#define RULES_PER_DAY_MAX 10000
#define RULES_REASON_MAX  255

struct sign_rules {
    const uint64_t *chains;                     /* none: any */
    size_t n_chains;
    const uint8_t (*allowed)[TX_ADDRESS];       /* contracts and receivers; none: any */
    size_t n_allowed;
    const uint8_t (*denied)[TX_ADDRESS];        /* also as the party of a known call */
    size_t n_denied;
    const uint8_t (*selectors)[CALL_SELECTOR];  /* none: any, and who calls one asks a person */
    size_t n_selectors;
    struct u256 max_value, max_fee;             /* wei, of one transaction; @max_fee of gas times its highest price */
    struct u256 confirm_above;                  /* a value or fee above it needs a person; also see sign_judge() */
    bool confirm_all;
    uint32_t per_hour, per_day;                 /* signatures; 0: none at all */
    struct u256 spend_hour, spend_day;          /* value and fees together; zero: no such limit */
};

/* The source's standard policy: 0.1 ETH, fees as much, a person above 0.01 ETH, 10 an hour, 50 a day. */
struct sign_rules sign_rules_standard(void);

/* One signature that was made. */
struct sign_past {
    uint64_t at_ms;         /* since 1970 */
    struct u256 spent;      /* value and highest fee */
};

struct sign_verdict {
    bool allowed, needs_person;
    const char *rule;                   /* "value_cap" ...: static */
    char reason[RULES_REASON_MAX + 1];
};

/* A person is needed, whatever the thresholds say, for what lets somebody else move tokens, for a delegation
 * (EIP-7702), and for each other call but those that take nothing (calldata.h), unless its selector is in the list:
 * what it is worth is not in wei. @past: all of the last day, in any order; one that lies in the future (a clock was
 * set back) counts as made now. @seen: this request's id came before. */
void sign_judge(const struct sign_rules *rules, const struct sign_past *past, size_t n_past, const struct tx *tx,
                bool seen, uint64_t now_ms, struct sign_verdict *out);
/* The same of a text or typed data, of which a person is always needed: @chain and @contract of its domain; 0 and NULL
 * where it has none, which a text has not. */
void sign_judge_text(const struct sign_rules *rules, const struct sign_past *past, size_t n_past, bool typed,
                     uint64_t chain, const uint8_t *contract, bool seen, uint64_t now_ms, struct sign_verdict *out);
/* What @tx can cost at most: value, and gas at its highest price, blobs too. False: more than 256 bits hold. */
bool sign_cost(const struct tx *tx, struct u256 *fee, struct u256 *all);

#endif
