/* match/url_host.h: which host and port a URL leads to, as a rule names them */
#ifndef CLOCHE_MATCH_URL_HOST_H
#define CLOCHE_MATCH_URL_HOST_H

#include <stdbool.h>

#include "base/str.h"
#include "match/host.h"

#define URL_HOST_MAX (HOST_NAME_MAX_LEN + 10)      /* "[ADDRESS]:65535" and a NUL */

/* "https://user@Example.ORG/x" is "example.org:443". False for anything but an http or https URL (RFC 3986 §3.2) whose
 * host is a name or an address that rules can name; a user and password are passed over. Pure. */
bool url_host(struct str url, char out[URL_HOST_MAX]);

#endif
