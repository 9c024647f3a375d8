/* egress/rule_wire.h: one rule as one message, from the supervisor to cloche-egress
 *
 * One JSON object: {"list": "allow", "deny", "host-port" or "keep-tls", "host": pattern or port, "text": as written,
 * "origin": name, "methods": [...], "path": glob, "tools": [...]}. The last three may be missing; anything else, and
 * anything missing, is refused.
 */
#ifndef CLOCHE_EGRESS_RULE_WIRE_H
#define CLOCHE_EGRESS_RULE_WIRE_H

#include <jansson.h>

#include "base/err.h"
#include "egress/decide.h"

#define RULE_WIRE_MAX 16384     /* bytes of one message */

/* The message for @entry into @out: its length, or -1 with @err (out of memory, longer than RULE_WIRE_MAX). What is not
 * UTF-8 in the origin's name becomes "?". */
int rule_write(const struct policy_entry *entry, enum decide_which which, char out[RULE_WIRE_MAX], struct err *err);

/* Add the rule that @message of @n bytes is to @rules. The rules borrow its text from @keep, an array that has to live
 * as long as they do. 0, or -1 with @err and @rules as they were. */
int rule_read(const char *message, size_t n, json_t *keep, struct decide_rules *rules, struct err *err);

#endif
