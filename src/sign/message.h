/* sign/message.h: a text that a person or a service asked to be signed (EIP-191, version 0x45: "personal_sign")
 *
 * The prefix makes it no transaction and no typed data. Pure.
 */
#ifndef CLOCHE_SIGN_MESSAGE_H
#define CLOCHE_SIGN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "sign/keccak.h"

void message_digest(const void *text, size_t n, uint8_t out[KECCAK_SIZE]);

#endif
