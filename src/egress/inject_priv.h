/* egress/inject_priv.h: what inject*.c share */
#ifndef CLOCHE_EGRESS_INJECT_PRIV_H
#define CLOCHE_EGRESS_INJECT_PRIV_H

#include "egress/inject.h"

#define INJECT_BIT(id) (UINT32_C(1) << (id))

void inject_wipe_text(struct inject *j);
void inject_swap_drop(struct swap **s);
/* What a filter returns that refuses: -1. */
int inject_refuse_edit(struct exchange_edit *edit, const char *reason, const char *detail);

/* inject_answer.c: of the filter. */
int inject_response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit);
int inject_response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used);

#endif
