/* policy/append.h: one more host into a settings file, the rest of it byte for byte as it was
 *
 * Pure: text in, text out. For settings of cloche's own, YAML or JSON, where `network.allow` is a list, or can be
 * added.
 */
#ifndef CLOCHE_POLICY_APPEND_H
#define CLOCHE_POLICY_APPEND_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* @text with @rule (a host as in a list of hosts, without quotes) at the end of network.allow, into @out. -1 with @err
 * where there is no place for it that would leave all else as it is. What comes out is a settings file only as far as
 * @text was one: load it again. */
int policy_append_allow(struct str text, struct str rule, struct buf *out, struct err *err);

#endif
