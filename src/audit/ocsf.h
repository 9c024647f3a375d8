/* audit/ocsf.h: an entry as an event of the Open Cybersecurity Schema Framework (schema.ocsf.io), version 1.5.0
 *
 * | entries | class |
 * | severity critical | Detection Finding (2004) |
 * | decisions about a host with a request's method | HTTP Activity (4002) |
 * | the other ones about a host | Network Activity (4001) |
 * | a sandbox's life, modes, fallbacks, failures | Application Lifecycle (6002) |
 * | everything else: capabilities, rules, approvals, signing | Entity Management (3004) |
 *
 * The profile is security_control. What has no attribute of its own is in "unmapped", the sandbox as sandbox_id.
 * Pure.
 */
#ifndef CLOCHE_AUDIT_OCSF_H
#define CLOCHE_AUDIT_OCSF_H

#include "audit/parse.h"

#define AUDIT_OCSF_VERSION "1.5.0"

/* @line as one JSON object at the end of @out, without a newline. -1: no room. */
int audit_ocsf(const struct audit_line *line, struct buf *out);

#endif
