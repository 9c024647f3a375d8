/* adapters/api.h: what the parts of /api/sandbox share (adapters/api.c, adapters/api_devices.c) */
#ifndef CLOCHE_ADAPTERS_API_H
#define CLOCHE_ADAPTERS_API_H

#include "adapters/adapters.h"

void api_refuse(struct visit *r, unsigned status, const char *what);
const char *api_which(struct visit *r);          /* ?id=, "" the default one; NULL: none, and said */
struct str api_trimmed(const char *text);       /* without blanks at its ends */

#endif
