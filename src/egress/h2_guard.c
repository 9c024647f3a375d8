/* egress/h2_guard.c: see h2_guard.h */
#include "egress/h2_guard.h"

#include <string.h>

#define PREFACE 24          /* bytes; what they are the library says */

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, PUSH_PROMISE = 5, CONTINUATION = 9 };
enum { FLAG_END_STREAM = 1, FLAG_END_HEADERS = 4 };

void
h2_guard_init(struct h2_guard *g, bool client, uint64_t now_ms)
{
    *g = (struct h2_guard){ .preface = client ? PREFACE : 0, .resets = { H2_RESETS_BURST, now_ms },
                            .small = { H2_SMALL_BURST, now_ms } };
}

static bool
pay(struct h2_bucket *b, uint32_t burst, uint32_t a_second, uint64_t now_ms)
{
    uint64_t new_ones = (now_ms - b->at_ms) * a_second / 1000;

    if (new_ones > 0) {
        b->at_ms = now_ms;
        b->left = new_ones > burst - b->left ? burst : b->left + (uint32_t)new_ones;
    }
    if (b->left == 0)
        return false;
    b->left--;
    return true;
}

const char *
h2_guard_reset(struct h2_guard *g, uint64_t now_ms)
{
    if (g->fault == NULL && !pay(&g->resets, H2_RESETS_BURST, H2_RESETS_A_SECOND, now_ms))
        g->fault = "h2-reset-flood";
    return g->fault;
}

void
h2_guard_sent(struct h2_guard *g)
{
    g->small.left = H2_SMALL_BURST - g->small.left < H2_SMALL_PER_DATA ? H2_SMALL_BURST
                                                                       : g->small.left + H2_SMALL_PER_DATA;
}

static const char *
block(struct h2_guard *g, uint8_t type, uint8_t flags, uint32_t length, uint64_t now_ms)
{
    if (type != CONTINUATION) {
        g->block = g->continuations = 0;
        g->block_ms = now_ms;
    } else if (++g->continuations > H2_CONTINUATIONS_MAX) {
        return "h2-continuation-flood";
    }
    g->block += length;         /* at most H2_FRAME_MAX each: no overflow */
    g->in_block = (flags & FLAG_END_HEADERS) == 0;
    return g->block > H2_BLOCK_MAX ? "h2-continuation-flood" : NULL;
}

/* A frame's head is here. */
static const char *
judge(struct h2_guard *g, uint64_t now_ms)
{
    uint32_t length = (uint32_t)g->head[0] << 16 | (uint32_t)g->head[1] << 8 | g->head[2];
    uint8_t type = g->head[3], flags = g->head[4];

    g->left = length;
    if (length > H2_FRAME_MAX)
        return "h2-frame-size";
    if (g->in_block != (type == CONTINUATION))
        return "h2-protocol";
    switch (type) {
    case HEADERS:
    case CONTINUATION: return block(g, type, flags, length, now_ms);
    case PUSH_PROMISE: return "h2-push";        /* we said that we take none */
    case RST_STREAM: return h2_guard_reset(g, now_ms);
    case DATA:
        if (length > 0 || (flags & FLAG_END_STREAM) != 0)
            return NULL;
        break;
    default: break;
    }
    return pay(&g->small, H2_SMALL_BURST, H2_SMALL_A_SECOND, now_ms) ? NULL : "h2-small-flood";
}

const char *
h2_guard_feed(struct h2_guard *g, const uint8_t *p, size_t n, uint64_t now_ms)
{
    size_t skip = g->preface < n ? g->preface : n;

    g->preface -= (uint32_t)skip;
    for (size_t at = skip; at < n && g->fault == NULL;) {
        size_t rest = n - at;
        if (g->left > 0) {
            size_t take = g->left < rest ? g->left : rest;
            g->left -= (uint32_t)take;
            at += take;
            continue;
        }
        g->head[g->have++] = p[at++];
        if (g->have == sizeof(g->head)) {
            g->have = 0;
            g->fault = judge(g, now_ms);
        }
    }
    return g->fault;
}
