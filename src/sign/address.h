/* sign/address.h: addresses as people write them
 *
 * "0x" and 40 hexadecimal digits; the case of the letters is their checksum (EIP-55). Pure.
 */
#ifndef CLOCHE_SIGN_ADDRESS_H
#define CLOCHE_SIGN_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "sign/tx.h"

#define SIGN_ADDRESS_TEXT (2 + 2 * TX_ADDRESS)

/* With the checksum, NUL-terminated. */
void sign_address_text(const uint8_t address[TX_ADDRESS], char out[SIGN_ADDRESS_TEXT + 1]);
/* The same back: all letters small, all large, or with the right checksum. */
bool sign_address_parse(struct str s, uint8_t out[TX_ADDRESS]);

#endif
