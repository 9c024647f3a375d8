/* front/preview_rules.h: what passes between a browser and a server in a sandbox (preview.c), and what not
 *
 * A preview is content of a stranger's that is reached at an address of ours. In its path form it has the API's own
 * origin, in its host form one of its own (RFC 6454). Nothing that a client holds for us passes in, and nothing that
 * would speak about our origin passes out. Pure.
 */
#ifndef CLOCHE_FRONT_PREVIEW_RULES_H
#define CLOCHE_FRONT_PREVIEW_RULES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "proto/edge.h"

#define PREVIEW_PATH "/preview/"
#define PREVIEW_PATH_N (sizeof(PREVIEW_PATH) - 1)
#define PREVIEW_ROOT (PREVIEW_PATH_N + EDGE_CAPABILITY)     /* bytes of "/preview/CAPABILITY" */

/* Host of the form "CAPABILITY.preview.REST", where digits may be of either case: @capability, in lower case, and @rest
 * ("localhost:7700"), not empty. */
bool preview_host(struct str host, char capability[EDGE_CAPABILITY + 1], struct str *rest);

/* What is asked of the sandbox's server by a request for @uri, as it came: its path, which begins with "/", and its
 * query, with "?" or empty. In the path form the address is "/preview/CAPABILITY" and it may end there: then @bare, and
 * there is no path. False: it is not of that form, or not written as we wrote it (an encoded digit or slash). */
struct preview_target {
    struct str path, query;
    bool bare;
};
bool preview_target(struct str uri, bool host_form, struct preview_target *out);

/* Whether a field of the request goes in; and one of the answer out. Those of one connection (RFC 9110 7.6.1) and those
 * that frame are judged elsewhere. */
bool preview_goes_in(struct str name, struct str value);
bool preview_goes_out(struct str name, bool host_form);
/* Whether what is of that Content-Type has parts with fields of their own, which browsers heed as the answer's. */
bool preview_has_parts(struct str type);

/* Location as the client finds it: @value unless it names a place of the same server, which in the path form is below
 * @root ("/preview/CAPABILITY"), in the host form at "/". Appended to @out, with a NUL. 0 or -1. */
int preview_location(struct str value, const char *root, uint16_t port, struct buf *out);

/* What a browser's DevTools say in @body as JSON, as who came by @base ("ws://HOST/PATH/") can use it: the WebSockets
 * that they name are at "ws://localhost:@port/devtools/browser|page/ID" and become those below @base, and addresses of
 * the DevTools' pages are left out, since nobody serves them. An object, or an array of them. NULL: it is no such JSON,
 * or leads elsewhere. */
json_t *preview_devtools(struct str body, uint16_t port, struct str base);
/* Whether nobody can take it for an object of JSON, in whatever coding of characters that has ASCII in it. */
bool preview_devtools_plain(struct str body);
/* Whether a path of theirs is one that leads on: "/json..." or "/devtools/...". */
bool preview_devtools_path(struct str path);

#endif
