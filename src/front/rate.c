/* front/rate.c: how many requests one credential gets through in a second
 *
 * A token bucket for each, found by a keyed hash of the client's address and what it presented. A stranger can present
 * a new one each time: new ones are drawn from a bucket of their address, so that they neither cost the warden more
 * questions than that nor push those who ask rightly out of the table. Of an IPv6 address the network counts (the first
 * 64 bits), for whoever has that has all of its addresses.
 */
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "front/front.h"

#define BURST_S 2       /* a full bucket holds what so many seconds bring */

static uint64_t
key_of(const struct rate *rate, char kind, const struct ip *peer, const char *credential)
{
    struct ip from = *peer;
    struct sha256 h;
    uint8_t out[SHA256_SIZE];
    uint64_t key;

    if (from.family == 6)
        memset(from.b + 8, 0, 8);
    sha256_init(&h);
    sha256_add(&h, rate->secret, sizeof(rate->secret));
    sha256_add(&h, &kind, 1);
    sha256_add(&h, &from, sizeof(from));
    sha256_add(&h, credential, strlen(credential));
    sha256_end(&h, out);
    memcpy(&key, out, sizeof(key));
    return key | 1;         /* 0 is an empty place */
}

static struct rate_bucket *
find(struct rate *rate, uint64_t key)
{
    struct rate_bucket *set = rate->buckets[key % RATE_SETS];

    for (size_t i = 0; i < RATE_WAYS; i++)
        if (set[i].key == key)
            return &set[i];
    return NULL;
}

/* In the place of the one that was longest unused. */
static struct rate_bucket *
rate_add(struct rate *rate, uint64_t key, uint64_t now, uint64_t full)
{
    struct rate_bucket *set = rate->buckets[key % RATE_SETS], *oldest = &set[0];

    for (size_t i = 1; i < RATE_WAYS; i++)
        if (set[i].key == 0 || (oldest->key != 0 && set[i].at_ms < oldest->at_ms))
            oldest = &set[i];
    *oldest = (struct rate_bucket){ key, full, now };
    return oldest;
}

/* 0 when there was one to take; otherwise seconds until there is. */
static unsigned
take(struct rate_bucket *b, uint64_t now, uint64_t per_s)
{
    uint64_t full = BURST_S * per_s * 1000, gone = clock_since(now, b->at_ms);

    b->thousandths = gone > BURST_S * 1000 ? full : b->thousandths + gone * per_s;
    if (b->thousandths > full)
        b->thousandths = full;
    b->at_ms = now;
    if (b->thousandths >= 1000) {
        b->thousandths -= 1000;
        return 0;
    }
    return 1;       /* a bucket gets at least one a second */
}

unsigned
rate_take(struct rate *rate, const struct ip *peer, const char *credential, uint32_t per_s)
{
    uint64_t now = clock_ms(), full = (uint64_t)BURST_S * per_s * 1000, key = key_of(rate, 'c', peer, credential);
    struct rate_bucket *b = find(rate, key), *new;
    uint64_t arrivals;

    if (b != NULL)
        return take(b, now, per_s);
    arrivals = key_of(rate, 'n', peer, "");
    new = find(rate, arrivals);
    if (take(new != NULL ? new : rate_add(rate, arrivals, now, full), now, per_s) > 0)
        return 1;
    return take(rate_add(rate, key, now, full), now, per_s);
}
