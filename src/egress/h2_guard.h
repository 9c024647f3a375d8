/* egress/h2_guard.h: how many frames without content a peer of HTTP/2 may send
 *
 * Theory: the attacks on HTTP/2 servers are frames that cost their sender nothing: streams that are reset as soon as
 * they are opened (CVE-2023-44487), header blocks without end (CVE-2024-27316), PING, SETTINGS, PRIORITY, empty
 * frames (CVE-2019-9511 to 9518), and frames that make us reset (CVE-2025-8671). Libraries have limits against some of
 * them, by version. This counts the frames itself, on the bytes before the library sees them, in either direction.
 *
 * There is a token bucket for resets and one for all other frames without content. Both refill with time; the second
 * also with every DATA frame sent to the peer, because a peer that receives much data sends many WINDOW_UPDATE frames.
 * Pure: the caller passes the clock.
 */
#ifndef CLOCHE_EGRESS_H2_GUARD_H
#define CLOCHE_EGRESS_H2_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H2_FRAME_MAX         16384      /* bytes of a frame: we never offer more */
#define H2_BLOCK_MAX         (128 * 1024)   /* bytes of one header block, compressed */
#define H2_CONTINUATIONS_MAX 8          /* frames of one block behind the first */
#define H2_RESETS_BURST      1000
#define H2_RESETS_A_SECOND   33
#define H2_SMALL_BURST       4000       /* frames without content */
#define H2_SMALL_A_SECOND    400
#define H2_SMALL_PER_DATA    4          /* for each DATA frame that the peer was sent */

struct h2_bucket {
    uint32_t left;
    uint64_t at_ms;             /* filled up to then */
};

struct h2_guard {
    uint8_t head[9];
    uint8_t have;               /* bytes of it */
    uint32_t left;              /* bytes of the frame's content that have not come yet */
    uint32_t preface;           /* bytes that come before the first frame */
    bool in_block;              /* header block under way, since */
    uint64_t block_ms;
    uint32_t block, continuations;
    struct h2_bucket resets, small;
    const char *fault;
};

/* @client: what it sees begins with a client's preface. */
void h2_guard_init(struct h2_guard *g, bool client, uint64_t now_ms);
/* Bytes that the peer sent. NULL; or a stable word for what it does: then the connection ends. */
const char *h2_guard_feed(struct h2_guard *g, const uint8_t *p, size_t n, uint64_t now_ms);
/* It has made us reset a stream. */
const char *h2_guard_reset(struct h2_guard *g, uint64_t now_ms);
/* It was sent a DATA frame. */
void h2_guard_sent(struct h2_guard *g);

#endif
