/* run/net_log.h: what was decided in one run, counted, in a file of the state folder
 *
 * Equal decisions are one entry with a count and two times. The file is written anew and renamed, at most once a second
 * while there is something new, so that a run that goes on can be looked at. A file that cannot be written is warned of
 * once; the run goes on.
 */
#ifndef CLOCHE_RUN_NET_LOG_H
#define CLOCHE_RUN_NET_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/session.h"

#define NET_LOG_MAX   1024      /* different decisions of one run; of the others only the number is kept */
#define NET_LOG_US    1000000UL /* between two writings */

struct net_log;

/* @dir is borrowed; -1: it is kept in memory only. NULL where there is no memory: a log of nothing, which all below
 * take. */
struct net_log *net_log_new(int dir, const char *id, struct session_result *r);
/* @decision (borrowed) as cloche-egress says it: verdict, via, host, port, method, rule, reason, by. */
void net_log_add(struct net_log *log, const json_t *decision);
/* @count more that nobody could say. */
void net_log_lost(struct net_log *log, uint64_t count);
/* Call @fn for each decision that it was not called for before; with @last also for those that were made again since,
 * with how often. Returns how many decisions there was no room to keep; 0 without @last. */
typedef void net_log_fn(void *ctx, const json_t *decision, uint64_t count);
uint64_t net_log_told(struct net_log *log, bool last, net_log_fn *fn, void *ctx);
/* When it is to be written (clock_us); 0: nothing is new. */
uint64_t net_log_due(const struct net_log *log);
/* Write it now. */
void net_log_write(struct net_log *log, bool ended);
void net_log_free(struct net_log *log);

#endif
