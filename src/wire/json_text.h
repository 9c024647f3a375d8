/* wire/json_text.h: bytes that somebody said as text in JSON */
#ifndef CLOCHE_WIRE_JSON_TEXT_H
#define CLOCHE_WIRE_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_TEXT_MAX (32UL * 1024 * 1024)      /* bytes */

/* Numbers as they came: 0.1 as 0.1. 17 digits would show 0.10000000000000001, and make of a policy that is written
 * again what is no number of processors. */
#define JSON_DIGITS JSON_REAL_PRECISION(15)

const char *json_cstr(const json_t *v);                 /* a text without NUL; NULL: it is none */
json_t *json_of_text(const uint8_t *p, size_t n);       /* what is no UTF-8 becomes U+FFFD */
json_t *json_of_base64(const uint8_t *p, size_t n);
/* What is whole characters of *half* and p[0..n); the rest stays in @half unless @last. */
json_t *json_of_piece(struct buf *half, const uint8_t *p, size_t n, bool last);

#endif
