/* sign/policy.h: the rules as their owner writes them: a JSON object
 *
 *   {"allowedChainIds": [1], "maxTransactionValueWei": "100000000000000000", "requireHumanConfirmation": false, ...}
 *
 * The members of the source's signing policy, and our own beside them; what is left out is as in the standard policy.
 * Two processes read the same bytes by this. Pure.
 */
#ifndef CLOCHE_SIGN_POLICY_H
#define CLOCHE_SIGN_POLICY_H

#include <jansson.h>

#include "base/err.h"
#include "sign/rules.h"

#define POLICY_TEXT_MAX (64 * 1024)

struct sign_policy {
    struct sign_rules rules;        /* its lists are these: */
    uint64_t chains[RULES_ENTRIES_MAX];
    uint8_t allowed[RULES_ENTRIES_MAX][TX_ADDRESS], denied[RULES_ENTRIES_MAX][TX_ADDRESS];
    uint8_t selectors[RULES_ENTRIES_MAX][CALL_SELECTOR];
    /* for a request that does not say; zero: there is none, and it is refused */
    uint64_t gas;
    struct u256 max_fee, tip;
};

/* @out points into itself: it stays where it is. 0, or -1 with @err (sign.policy), which names the member. */
int sign_policy_read(const void *text, size_t n, struct sign_policy *out, struct err *err);
/* The standard one, as text: the caller frees it; NULL without memory. */
char *sign_policy_text(void);

#endif
