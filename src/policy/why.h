/* policy/why.h: what a policy says about one path, and which rule says it (about a host: egress/why_host.h)
 *
 * Pure but for the one question that the caller answers. Call on a validated policy.
 */
#ifndef CLOCHE_POLICY_WHY_H
#define CLOCHE_POLICY_WHY_H

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "policy/place.h"
#include "policy/policy.h"

enum why_op { WHY_READ, WHY_WRITE, WHY_EXEC };

struct why {
    bool allowed;
    const char *reason;         /* stable code, see docs/policy.md: "credential-place", "not-shown" ... */
    char text[512];             /* one sentence for people */
    char rule[512];             /* the rule as it was written; "" when it is the mode's own */
    struct origin source;       /* where the rule came from */
    char flag[640];             /* the flag that would change the verdict; "" when none can */
    char inside[4096];          /* the path as the sandbox names it; "" when it has no name for it, or for hosts */
};

bool why_op_parse(const char *name, enum why_op *out);

/* The sentence for people; what does not fit is cut. */
void why_say(struct why *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether the host has @path. Protected names deeper down are closed only where they exist. */
typedef bool why_exists(const char *path);

/* 0, or -1 with @err when @path is no path. Relative paths lie below the caller's directory, `~` is its home. @exists
 * may be NULL: then everything exists. */
int policy_why_path(const struct policy *p, const char *path, enum why_op op, why_exists *exists, struct why *out,
                    struct err *err);

/* Whether commands may make the system call @name. 0, or -1 with @err: policy.syscall.unknown. */
int policy_why_call(const struct policy *p, const char *name, struct why *out, struct err *err);

/* Whether the host reaches what listens on @port inside. */
void policy_why_port(const struct policy *p, uint16_t port, struct why *out);

/* The same of a place that is known (policy_place); @path is how messages name it. */
void policy_why_place(const struct policy *p, const struct place *place, const char *path, enum why_op op,
                      why_exists *exists, struct why *out);

#endif
