/* adapters/docker/want.h: what a client of the Docker Engine API asks of a new container, as a policy of ours
 *
 * Each member that the API has is a row: done, or refused with a reason where it is not empty. What has no row is
 * refused as well, so nothing is silently left out. What would weaken the wall has a reason of its own. Pure.
 */
#ifndef CLOCHE_ADAPTERS_DOCKER_WANT_H
#define CLOCHE_ADAPTERS_DOCKER_WANT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define DOCKER_OWN_IMAGE "cloche"       /* the name of no image: the system that the daemon's sandboxes have */

struct docker_want {
    json_t *policy;                     /* to be made with; the caller's */
    const char *image;                  /* as it was said; so too the next ones */
    json_t *cmd, *entrypoint;           /* borrowed: lists, or a text of one word; NULL: the image's */
    const char *workdir;                /* "" the image's */
    bool tty, stdin_open, remove;
    uint8_t stop_signal;
};

/* Why not. */
struct docker_no {
    unsigned status;                    /* 400, 403 or 501 */
    char what[256];
    const char *hint;
};

/* @body of POST /containers/create. False with @no. */
bool docker_want(const json_t *body, struct docker_want *w, struct docker_no *no);
/* @body of POST /containers/{id}/exec, judged the same way. */
bool docker_want_exec(const json_t *body, struct docker_no *no);
/* Labels of the sandbox: ours, and those of @body. False with @no. */
bool docker_labels(const json_t *body, const struct docker_want *w, struct buf *out, struct docker_no *no);
/* "SIGTERM", "TERM", "15"; 0: none of 1 to 31. */
uint8_t docker_signal(const char *name);
/* Whether a member asks for nothing. */
bool docker_empty(const json_t *v);
/* Texts, each without NUL; @v may be one text. */
bool docker_words_well(const json_t *v);

/* The beginning of a piece of a stream that has both (stdcopy). */
#define DOCKER_FRAME 8
void docker_frame(uint8_t out[DOCKER_FRAME], bool is_err, uint32_t n);
/* Of such a stream, p[0..n), whole pieces: where its last @lines lines begin, with a head, which is put there; @n when
 * @lines is 0. */
size_t docker_tail(uint8_t *p, size_t n, uint64_t lines);

#endif
