/* audit/verify.h: is the record what was written? */
#ifndef CLOCHE_AUDIT_VERIFY_H
#define CLOCHE_AUDIT_VERIFY_H

#include "audit/chain.h"
#include "audit/scan.h"

struct verify_result {
    uint64_t entries, first;    /* how many; the number of the oldest (0: none) */
    struct audit_head head;     /* the newest */
    bool expected;              /* the entry with the hash that was expected is there */
    uint64_t expected_seq;
    uint64_t recoveries;        /* entries that say that a damaged end was set aside */
    uint64_t cuts;              /* entries that say that the end was removed */
    bool partial;               /* it does not begin with the first entry ever, which nothing in it explains */

    const char *bad;            /* what is wrong, as words; NULL: nothing */
    char bad_file[4096];
    uint64_t bad_line;          /* in that file; 0: the file as a whole, or all of it */
    uint64_t bad_seq;           /* the number that the bad entry says, or should have */
};

/* Check every entry of @s. With @whole it is all of a record: what is missing at its beginning must have been removed
 * by the record itself, which says so in a later entry, and full files must begin with the entry that they are named
 * by. @expect (NULL: none) is the hash of an entry that has to be there. 0 (look at @out->bad) or -1 with @err. */
int audit_verify(struct scan *s, bool whole, const uint8_t expect[AUDIT_HASH], struct verify_result *out,
                 struct err *err);

#endif
