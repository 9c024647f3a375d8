/* front/preview_priv.h: one request to a preview; for preview.c and preview_request.c only */
#ifndef CLOCHE_FRONT_PREVIEW_PRIV_H
#define CLOCHE_FRONT_PREVIEW_PRIV_H

#include "front/preview.h"
#include "front/preview_rules.h"
#include "wire/http1.h"

struct preview {
    enum { PREVIEW_ASKED, PREVIEW_WAITS, PREVIEW_BODY, PREVIEW_TUNNEL, PREVIEW_OVER } state;
    bool host_form;
    bool websocket;                     /* it asks for one */
    char root[PREVIEW_ROOT + 1];        /* "/preview/CAPABILITY"; of the host form "" */
    struct preview_target target;       /* of r->uri */
    uint16_t port;
    enum http1_framing framing;         /* of the request's body */
    uint64_t length;
    bool ended;                         /* of the body all is in r->in */
    struct buf head;                    /* of the answer, until it is whole */
    size_t seen;
    unsigned interim;
    struct http1_body body;
    bool browser;                       /* its answer is kept until it is whole, and said anew (browser.c) */
    unsigned status;                    /* of that, and */
    struct buf text;                    /* what there is of its body */
    size_t early;                       /* of front.early: what of it is this answer's */
    uint64_t heard_ms;                  /* when something happened last */
};

/* preview.c, for browser.c. new: NULL: no memory, and the front ends. */
struct preview *preview_new(struct request *r);
void preview_over(struct request *r);       /* nothing more is heard of it */
void preview_fail(struct request *r, unsigned status, const char *code, const char *hint, const char *why);
void preview_fail_err(struct request *r, const struct err *err);
extern const struct answers preview_answers;
extern const struct op_answers preview_said;
/* browser.c, for answers of browsers. begin and keep: false: it is refused, which is said. answer: it is whole. */
bool browser_begin(struct request *r, const struct http1_head *head);
bool browser_keep(struct request *r, struct str piece);
void browser_answer(struct request *r);

/* preview_request.c: the request's head as the server is to have it, into r->in; and how its body goes there, into the
 * preview's framing and length. False: it cannot be passed on. */
bool preview_write_head(struct request *r);
/* False where a WebSocket is asked for as none can be, which is said. */
bool preview_upgrades(struct request *r);

#endif
