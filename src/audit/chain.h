/* audit/chain.h: what makes entries a chain
 *
 * A line is {"seq":N BODY ,"prev":"P","hash":"H"} and a newline, without blanks; BODY is `,"timestamp":...` to the end
 * of the metadata. H is the SHA-256, in hexadecimal, of the line's bytes from the first one up to the comma before
 * "hash"; P is the H of the line before, 64 zeros in the very first. So nobody has to bring JSON into a normal form to
 * check it: what is hashed are the bytes as they lie there. Pure.
 */
#ifndef CLOCHE_AUDIT_CHAIN_H
#define CLOCHE_AUDIT_CHAIN_H

#include "audit/audit.h"
#include "audit/parse.h"

#define AUDIT_SEAL_MAX 256      /* bytes that a line has beside its body */

/* The last entry. All zero: there is none yet. */
struct audit_head {
    uint64_t seq;
    uint8_t hash[AUDIT_HASH];
};

/* The body of @e into @out, with a time and within AUDIT_LINE_MAX - AUDIT_SEAL_MAX. 0, or -1 with @err (audit.entry,
 * memory) and @out as it was. */
int audit_body(const struct audit_entry *e, audit_redact_fn *redact, void *ctx, struct buf *out, struct err *err);

/* The line that continues @head with @body, at the end of @out; @head moves on. -1: @out is full. */
int audit_seal(struct audit_head *head, struct str body, struct buf *out);

/* Whether @line (of @text, without its newline) has the hash that it says. */
bool audit_hash_holds(const struct audit_line *line, struct str text);

/* What is wrong with @line behind @head, as words; NULL: nothing, and @head moves on. With @any @head is not known, and
 * @line may be anywhere in a chain. */
const char *audit_follow(struct audit_head *head, bool any, const struct audit_line *line, struct str text);

#endif
