/* vault/placeholder.h: what the sandbox gets to see in a secret's place
 *
 * As long as the value, beginning as tools expect it to begin ("sk-ant-api03-", "ghp_"), and character by character of
 * the same class: an upper case letter for one, a digit for one, the rest as it is. So it passes for a key wherever the
 * form of a key is checked, and every encoding of it has the length of the value's. Of values of several lines their
 * form stays too: lines, the "-----BEGIN ...-----" of PEM (RFC 7468), and what JSON (RFC 8259) consists of but for its
 * strings, of which the names stay, and those values that say which kind of key it is. Pure but for the random bytes it
 * is given.
 */
#ifndef CLOCHE_VAULT_PLACEHOLDER_H
#define CLOCHE_VAULT_PLACEHOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "vault/binding.h"

#define PLACEHOLDER_FRESH_MIN 8     /* characters that are made anew: fewer could be guessed, or met by chance */

/* Whether @value can be a secret here: its length, printable ASCII, tabs and line ends only, and enough letters and
 * digits that are made anew. 0, or -1 with @err (vault.value), which never has the value in it. */
int placeholder_fit(const uint8_t *value, size_t n, struct err *err);
/* Whether it can go into the places of @b: what has lines goes into no header. As above. */
int placeholder_fit_places(const uint8_t *value, size_t n, const struct binding *b, struct err *err);

/* @out (n bytes) becomes a placeholder for @value, from @n * 2 bytes @random. False when by chance it resembles the
 * value too much (a run of eight characters of it that are not its prefix): try again with other random bytes. @value
 * must be fit. */
bool placeholder_make(const uint8_t *value, size_t n, const uint8_t *random, uint8_t *out);

/* Which bytes of @value stay as they are: kept[0..@n). */
void placeholder_kept(const uint8_t *value, size_t n, bool *kept);
/* Bytes of @value's beginning that are kept: a known prefix, and what stands between it and the first character that is
 * secret. */
size_t placeholder_prefix(const uint8_t *value, size_t n);

#endif
