/* warden/entry.h: an entry of the audit record on its way from a keeper to the warden
 *
 *     type u8, severity u8, summary, n u8, and for each member: key, kind u8, a string or be64
 *
 * Which sandbox it is about, when it was, and who said it is nobody's to say but the warden's.
 */
#ifndef CLOCHE_WARDEN_ENTRY_H
#define CLOCHE_WARDEN_ENTRY_H

#include "proto/edge_keeper.h"

/* Texts are cut at AUDIT_TEXT_MAX, which the record would do anyway; NUL bytes end them. -1: @b is broken. */
int entry_put(struct buf *b, const struct audit_entry *e);

/* @e is overwritten; its texts are borrowed from @in. False when malformed: an unknown type, severity or kind, a key
 * that the record would refuse. */
bool entry_get(struct wire_in *in, struct audit_entry *e);

#endif
