/* policy/describe.h: a policy as rows of key, value and origin, for `cloche policy show` */
#ifndef CLOCHE_POLICY_DESCRIBE_H
#define CLOCHE_POLICY_DESCRIBE_H

#include "base/sha256.h"
#include "policy/policy.h"

enum row_type { ROW_TEXT, ROW_NUMBER, ROW_BOOL, ROW_ENTRY, ROW_NO_ENTRIES };

struct policy_row {
    const char *key;            /* canonical: "limits.memory", "filesystem.deny-read" */
    enum row_type type;
    const char *text;           /* for people; of ROW_TEXT and ROW_ENTRY the value itself; NULL: not set */
    uint64_t number;            /* of ROW_NUMBER: in the unit of struct policy (bytes, ms, thousandths) */
    bool truth;
    const char *written;        /* of ROW_ENTRY: as the user wrote it */
    bool literal;
    const struct policy_scope *scope;   /* of ROW_ENTRY; may be NULL */
    const struct origin *from;
};

typedef int policy_row_fn(void *ctx, const struct policy_row *row);

/* Call @fn for every value, in the order of docs/policy.md; a list gives one ROW_ENTRY per entry, or ROW_NO_ENTRIES.
 * Stops at, and returns, the first result that is not 0. */
int policy_describe(const struct policy *p, policy_row_fn *fn, void *ctx);

#define POLICY_DIGEST_KEY 32

/* Whether there are values in @p that its rows leave out: of variables, in files with placeholders (unless they hold
 * one and nothing else), names and passwords for a parent proxy. */
bool policy_hides(const struct policy *p);
/* Add those values to @h, each behind its length. A hash of them alone could be tried out: it is for nobody to see. */
void policy_add_hidden(const struct policy *p, struct sha256 *h);

/* The SHA-256 of all of that but the origins, and of the version in place of the built-in entries: what was said in
 * the same words has the same digest, whatever files and flags it came from. Values that no row says are counted under
 * @key, which nobody has who sees the digest: without it they could be guessed until it fits. It is not read of a
 * policy that hides nothing. */
void policy_digest(const struct policy *p, const uint8_t key[POLICY_DIGEST_KEY], uint8_t out[SHA256_SIZE]);

#endif
