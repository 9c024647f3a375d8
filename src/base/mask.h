/* base/mask.h: finding secret values in a text, in a process that must not know them
 *
 * A value is recognized by its print: its length, a rolling hash, and its SHA-256 under the set's own key, which
 * decides. Letters are compared without case (ASCII), because host names are lower case, and "-" and "_" as "+" and
 * "/", which they are in the base64 of URLs. Each form in which a value may appear has its own print.
 * A print does not reveal its value. But with a print and its key one can test guesses, so give it to no untrusted
 * process: a value that can be guessed is known to everyone who has the print.
 */
#ifndef CLOCHE_BASE_MASK_H
#define CLOCHE_BASE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"

#define MASK_MIN   8            /* bytes of a value; a shorter one, found in other words too, is not looked for */
#define MASK_MAX   4096         /* and of the longest */
#define MASK_KEY   32
#define MASK_FORMS 7            /* of one value at most */
#define MASK_NAME  63           /* bytes of what is written instead */
#define MASKS_MAX  1024         /* in a set */
#define MASKS_FORMS 512         /* above which a set gets no more forms of values: room for the values themselves */

struct mask {
    char name[MASK_NAME + 1];   /* "[variable TOKEN]" */
    uint32_t n;
    uint64_t roll;
    uint8_t sum[SHA256_SIZE];
};

/* A set with v NULL and n 0 is empty. */
struct masks {
    uint8_t key[MASK_KEY];
    struct mask *v;             /* owned */
    size_t n;
    bool all;                   /* there was no room for one: everything is hidden */
};

/* An empty set with a key of its own. Without random numbers it hides everything. */
void masks_init(struct masks *set);

/* The print of a value under @key. False: it is shorter than MASK_MIN or longer than MASK_MAX. */
bool mask_print(const uint8_t key[MASK_KEY], const void *value, size_t n, struct mask *out);

/* Tells the forms of value[0..n): first as it is, then where they differ and are not too long in percent, as JSON's
 * strings have it, in hexadecimal, and in base64 at each of its three places. Nothing is told of one that is not looked
 * for. */
typedef void mask_form_fn(void *ctx, const void *form, size_t n);
void mask_forms(const void *value, size_t n, mask_form_fn *fn, void *ctx);

/* A value with its forms, or a print under the set's key. One that is not looked for is no mistake; one that there is
 * no room for makes the set hide everything. */
void masks_add(struct masks *set, const char *name, const void *value, size_t n);
void masks_add_print(struct masks *set, const struct mask *print);

/* Whether @text holds a value: then @out (empty when it is called) gets it with their names in their places. As
 * audit_redact_fn, with the set as its context. */
bool masks_redact(void *set, struct str text, struct buf *out);
/* Where @text may be cut in two, at @cut or a little before, so that no value is: behind a value when @text begins with
 * one that is cut at 0 otherwise. @cut is above 0 and at most text.n. */
size_t masks_cut(const struct masks *set, struct str text, size_t cut);
/* The longest value less one byte: so much of a text's end may be the beginning of one. */
size_t masks_tail(const struct masks *set);

void masks_free(struct masks *set);     /* empty again, key wiped */

#endif
