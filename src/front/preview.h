/* front/preview.h: what a server in a sandbox says, at an address of ours */
#ifndef CLOCHE_FRONT_PREVIEW_H
#define CLOCHE_FRONT_PREVIEW_H

#include "front/front.h"

extern const struct route preview_routes[], port_routes[], browser_routes[];
extern const size_t preview_n_routes, port_n_routes, browser_n_routes;

/* By its Host, whatever its path: the route, or NULL when it is no preview. */
const struct route *preview_route(struct request *r);
bool preview_is(const struct request *r);
/* Of the request's body: how much of p[0..n) was taken; and that was all of it. */
size_t preview_upload(struct request *r, const uint8_t *p, size_t n);
void preview_upload_end(struct request *r);
void preview_time(struct front *f);             /* once a second */
void preview_free(struct request *r);
size_t preview_held(const struct request *r);   /* bytes of an answer that waits to be whole */

/* ports.c: a port as JSON; with where it is found when there is a capability. */
bool ports_have_address(const struct request *r);     /* that has a URL */
const char *ports_base(const struct request *r, char room[300]);       /* its beginning; NULL: none */
/* "path", which is taken, and "url", the same behind the beginning or null, into @out. */
void ports_put(const struct request *r, json_t *out, json_t *path);
json_t *json_of_port(const struct request *r, const struct edge_port *p, const char *capability);

#endif
