/* program/policy_json.h: a policy as JSON, each value with where it was said */
#ifndef CLOCHE_PROGRAM_POLICY_JSON_H
#define CLOCHE_PROGRAM_POLICY_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/sha256.h"
#include "policy/policy.h"

/* What policy_describe says, as members of @object: "limits.memory" is the member "memory" of the object "limits";
 * a value is {"value", "from": {"kind", "name", "line"}}, a list an array of these. The entries of the built-in lists
 * only when @builtin. */
void policy_json(const struct policy *p, bool builtin, json_t *object);

/* A string that need not be UTF-8: "?" for each byte above ASCII where it is not. NULL: null. */
json_t *policy_json_text(const char *s);

/* The digest that is shown and recorded of @p, in hexadecimal. Values count under a key of this user's (digest.key in
 * the state folder), so it says which are equal to nobody else. */
void cli_policy_digest(const struct policy *p, char hex[SHA256_TEXT + 1]);
void cli_policy_hash(const struct policy *p, uint8_t digest[SHA256_SIZE]);      /* the same in bytes */

#endif
