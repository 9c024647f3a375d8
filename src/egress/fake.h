/* egress/fake.h: the addresses that stand for names inside one sandbox
 *
 * The responder answers an allowed name with an address that exists nowhere; the connection that follows arrives at
 * that address, and this table says which name was meant. So a decision is about a name even for programs that know
 * only addresses.
 *
 * IPv4 from 198.18.0.0/15 (RFC 2544, benchmarking: never routed), IPv6 from fd63:6c6f:6368::/48 (RFC 4193, a local
 * prefix; the forty bits read "cloch" and are fixed, because nothing with these addresses ever leaves a sandbox whose
 * only interface is its loopback). Both are classes that ip_classify() refuses for real destinations; that is meant: a
 * fake is never dialled, and an answer from the real DNS that lies in one of these ranges is a trick. A name has the
 * same number in both families. The first 256 numbers are never given to a name: they are the sandbox's own services'
 * (198.18.0.1, fd63:6c6f:6368::1 ...).
 *
 * The table holds up to FAKE_NAMES_MAX names in slots. An address is made of its slot and of how often the slot has
 * changed its name, so that it is found without a second index and an old address of a slot is simply unknown. Where
 * all slots are taken, the least recently used name without a live connection gives way. Every operation is O(1)
 * (names by a keyed hash: the sandbox chooses them). One table per sandbox, one thread; memory grows with use to
 * 1.1 MiB. No I/O and no clock: the caller passes a monotonic time in, and one that runs backwards counts as standing.
 *
 * Programs keep addresses longer than a process may live, so a table can lie in a file that outlives it (fake_adopt):
 * an address must never come to mean another name because cloche-egress was started again.
 */
#ifndef CLOCHE_EGRESS_FAKE_H
#define CLOCHE_EGRESS_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "match/host.h"
#include "match/ip.h"

#define FAKE_NAMES_MAX   4096
#define FAKE_GENERATIONS 31     /* addresses that a slot uses in turn before the first comes again */
#define FAKE_FIRST       256    /* the first number that a name gets */
#define FAKE_TTL_S       60     /* what an answer says */
#define FAKE_REUSE_S     90     /* after the last answer an address means no other name for this long: the TTL, and
                                 * room for an answer under way */
#define FAKE_KEY_SIZE    16

struct fake_table;

struct fake_pair {
    struct ip v4, v6;
};

/* A table that the caller frees. @key is secret and random (getrandom). NULL with @err set when there is no memory. */
struct fake_table *fake_new(const uint8_t key[FAKE_KEY_SIZE], struct err *err);
/* The same in the file @fd (a memfd, shared), which is made as long as is needed and is the caller's: what a process
 * that ended left there keeps its names and addresses. That process may have been stopped anywhere, or broken into:
 * whatever is no name in its place becomes one that nobody has, and nothing counts as connected. */
struct fake_table *fake_adopt(int fd, const uint8_t key[FAKE_KEY_SIZE], uint64_t now_ms, struct err *err);
void fake_free(struct fake_table *t);
void fake_freep(struct fake_table **t);
#define cleanup_fake __attribute__((cleanup(fake_freep)))

/* The addresses of @host, made up when it has none, to be given out now with FAKE_TTL_S. -1 with @err set when @host is
 * an address ("egress.fake.address") or no address can be had (ERR_LIMIT, "egress.fake.full": all names have live
 * connections, or every address of the slot that would give way is too fresh): answer SERVFAIL. */
int fake_assign(struct fake_table *t, const struct host *host, uint64_t now_ms, struct fake_pair *out, struct err *err);

/* The name that @ip stands for now, for PTR and for decisions. False: for none. @ip as it is: a caller whose socket
 * gives mapped addresses unwraps them. */
bool fake_find(const struct fake_table *t, const struct ip *ip, struct host *out);

/* As fake_find, and count a live connection: the name keeps its addresses until as many fake_release() calls with the
 * same name's address. False also where 2^32-1 are counted. */
bool fake_hold(struct fake_table *t, const struct ip *ip, struct host *out);
/* The end of a connection that fake_hold() counted. False: @ip is not held, and nothing was done. */
bool fake_release(struct fake_table *t, const struct ip *ip);

/* Whether @ip, or the address embedded in it, lies in the ranges above, given to a name or not. */
bool fake_in_range(const struct ip *ip);

size_t fake_count(const struct fake_table *t);          /* names in the table */
size_t fake_held(const struct fake_table *t);           /* those with a live connection */

/* SipHash-2-4 of @s (Aumasson, Bernstein 2012). */
uint64_t fake_hash(const uint8_t key[FAKE_KEY_SIZE], struct str s);

#endif
