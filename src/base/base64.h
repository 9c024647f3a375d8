/* base/base64.h: bytes as base64 (RFC 4648, 4), with padding */
#ifndef CLOCHE_BASE_BASE64_H
#define CLOCHE_BASE_BASE64_H

#include "base/buf.h"

/* Append p[0..n) so. 0, or -1 with @out broken. */
int base64_put(struct buf *out, const void *p, size_t n);

#endif
