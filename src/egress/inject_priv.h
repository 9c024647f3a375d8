/* egress/inject_priv.h: what inject*.c share */
#ifndef CLOCHE_EGRESS_INJECT_PRIV_H
#define CLOCHE_EGRESS_INJECT_PRIV_H

#include "egress/inject.h"

#define INJECT_BIT(id) (UINT32_C(1) << (id))

void inject_wipe_text(struct inject *j);
void inject_swap_drop(struct swap **s);
/* What a filter returns that refuses: -1. */
int inject_refuse_edit(struct exchange_edit *edit, const char *reason, const char *detail);

/* What requests' bodies are searched for, and what answers are, into *@out (NULL before). 0, or -1. */
int inject_make_up(struct inject *j, struct swap **out);
int inject_make_down(struct inject *j, struct swap **out);
/* Of those that were @seen in a body, is one not for it? Then it is said. */
bool inject_forbidden(struct inject *j, uint32_t seen);

/* The values of those that were @seen were taken out of an answer: that is said, where it was not yet. */
void inject_scrubbed(struct inject *j, uint32_t seen);

/* inject_ws.c. prepare: the handshake goes out with what was leased, and frames are looked at if it succeeds. begins:
 * the answer, 101, keeps to what was asked for. */
int inject_ws_prepare(struct inject *j);
bool inject_ws_begins(const struct inject *j, const struct http1_head *head);
int inject_ws_up(void *ctx, struct str data, struct buf *out);
int inject_ws_down(void *ctx, struct str data, struct buf *out);
void inject_ws_free(struct inject *j);

/* inject_add.c. added: ids of those whose header is put into the request to @r. kept: of those that are not for what
 * @head's own fields say that it means. clash: two of them, or one and AWS's
 * signature, want the same header. trailer: what is behind the body has none of them; -1: too many of them are. */
uint32_t inject_added(const struct inject *j, const struct binding_request *r);
uint32_t inject_kept(const struct inject *j, const struct http1_head *head, const struct binding_request *r);
bool inject_add_clash(const struct inject *j);
int inject_add_trailer(const struct inject *j, const struct http1_head *trailer, struct exchange_edit *edit);

/* inject_answer.c: of the filter. */
int inject_response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit);
int inject_response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used);
int inject_response_trailer(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit);

#endif
