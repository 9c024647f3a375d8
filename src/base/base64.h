/* base/base64.h: bytes as base64 (RFC 4648, 4), with padding */
#ifndef CLOCHE_BASE_BASE64_H
#define CLOCHE_BASE_BASE64_H

#include "base/buf.h"

/* Append p[0..n) so. 0, or -1 with @out broken. */
int base64_put(struct buf *out, const void *p, size_t n);
/* Append what p[0..n) is: with its padding, and no other character. 0; -1: it is none, or @out is broken. */
int base64_get(struct buf *out, const char *p, size_t n);

#endif
