/* warden/count.h: what the warden counts (see stats.h). Since its own start: another warden begins anew. */
#ifndef CLOCHE_WARDEN_COUNT_H
#define CLOCHE_WARDEN_COUNT_H

#include <stdint.h>

#include "proto/edge.h"
#include "warden/stats.h"

#define COUNT_CODES 64      /* codes of failures that are told apart; others are "other" */

struct warden;

struct counts {
    uint64_t created, recoveries, keeper_deaths, refused, audit_failed;
    uint32_t wardens, fronts;               /* started again, as the launcher says */
    struct { char code[ERR_CODE_MAX + 1]; uint64_t n; } failed[COUNT_CODES];
    size_t n_failed;
    uint64_t other_failed;
    uint64_t ops[OP_KINDS][RESULTS];
    struct histogram create, exec;
    uint64_t in, out;
};

void count_not_created(struct counts *c, const char *code);
void count_op(struct counts *c, const struct edge_op_result *r);
/* All samples, in the order of enum stats_family. */
int count_put(const struct warden *w, struct buf *b);

#endif
