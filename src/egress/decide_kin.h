/* egress/decide_kin.h: which of many patterns cannot match a host, at a glance (decide.c's own)
 *
 * A pattern is a whole name or what follows a star, so a name can match only the patterns that are made of itself or of
 * one of its ends behind a dot. Each such text stands for one bit of 64. Two that share no bit do not match; two that
 * share one are to be compared (host_match).
 */
#ifndef CLOCHE_EGRESS_DECIDE_KIN_H
#define CLOCHE_EGRESS_DECIDE_KIN_H

#include <stdint.h>

#include "match/host.h"

#define KIN_ALL UINT64_MAX      /* addresses, and patterns for every host: always to be compared */

uint64_t decide_kin_of_host(const struct host *host);
uint64_t decide_kin_of_pattern(const struct host_pattern *pattern);

#endif
