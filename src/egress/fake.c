/* egress/fake.c: see fake.h */
#include "egress/fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NONE    UINT16_MAX
#define BUCKETS 4096            /* a power of two */

_Static_assert(FAKE_NAMES_MAX < NONE, "a slot's index fits in 16 bits beside NONE");
_Static_assert(FAKE_FIRST + FAKE_GENERATIONS * FAKE_NAMES_MAX < 1 << 17, "every number lies in the /15, less its last");
_Static_assert((BUCKETS & (BUCKETS - 1)) == 0, "the hash is masked");
_Static_assert(FAKE_REUSE_S >= FAKE_TTL_S, "an address outlives what was said of it");

struct slot {
    char name[HOST_NAME_MAX_LEN];
    uint8_t name_n;             /* 0: never used */
    uint8_t generation;
    uint16_t bucket;
    uint16_t chain;             /* the next slot of the same bucket */
    uint16_t newer, older;      /* neighbours in the order of use; only while refs == 0 */
    uint32_t refs;              /* live connections */
    uint64_t fresh_until_ms;    /* the latest address that this slot gave out may not mean another name before */
};

struct fake_table {
    uint8_t key[FAKE_KEY_SIZE];
    uint64_t now_ms;            /* the latest time that was passed in */
    uint16_t n;                 /* slots in use: the first @n */
    uint16_t held;              /* of them with refs > 0 */
    uint16_t newest, oldest;    /* ends of the order of use */
    uint16_t buckets[BUCKETS];
    struct slot slots[FAKE_NAMES_MAX];
};

static const uint8_t v6_prefix[12] = { 0xfd, 0x63, 0x6c, 0x6f, 0x63, 0x68 };

static uint64_t
rotl(uint64_t v, unsigned by)
{
    return v << by | v >> (64 - by);
}

static void
sip_rounds(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotl(v[1], 13) ^ v[0];
        v[3] = rotl(v[3], 16) ^ v[2];
        v[0] = rotl(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotl(v[1], 17) ^ v[2];
        v[3] = rotl(v[3], 21) ^ v[0];
        v[2] = rotl(v[2], 32);
    }
}

/* Up to eight bytes, least significant first; what is missing counts as zero. */
static uint64_t
word(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint64_t
fake_hash(const uint8_t key[FAKE_KEY_SIZE], struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    uint64_t k0 = word(key, 8), k1 = word(key + 8, 8);
    uint64_t v[4] = {
        k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573,
    };

    for (size_t at = 0;; at += 8) {
        bool last = s.n - at < 8;
        uint64_t m = word(p + at, s.n - at);
        if (last)
            m |= (uint64_t)(s.n & 0xff) << 56;
        v[3] ^= m;
        sip_rounds(v, 2);
        v[0] ^= m;
        if (last)
            break;
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Everything but the slots, for a table in which none is in a list. */
static void
fake_begin(struct fake_table *t, const uint8_t key[FAKE_KEY_SIZE], uint64_t now_ms)
{
    memcpy(t->key, key, FAKE_KEY_SIZE);
    t->now_ms = now_ms;
    t->held = 0;
    t->newest = t->oldest = NONE;
    memset(t->buckets, 0xff, sizeof(t->buckets));       /* NONE */
}

static struct fake_table *
map(int fd, struct err *err)
{
    void *p = mmap(NULL, sizeof(struct fake_table), PROT_READ | PROT_WRITE,
                   fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

    if (p != MAP_FAILED)
        return p;
    err_sys(err, errno, "egress.fake.memory", "no memory for a table of names");
    return NULL;
}

struct fake_table *
fake_new(const uint8_t key[FAKE_KEY_SIZE], struct err *err)
{
    struct fake_table *t = map(-1, err);

    if (t != NULL)
        fake_begin(t, key, 0);
    return t;
}

void
fake_free(struct fake_table *t)
{
    if (t != NULL)
        munmap(t, sizeof(*t));
}

void
fake_freep(struct fake_table **t)
{
    fake_free(*t);
}

static uint32_t
number_of(const struct fake_table *t, uint16_t i)
{
    return FAKE_FIRST + (uint32_t)t->slots[i].generation * FAKE_NAMES_MAX + i;
}

static void
addresses_of(const struct fake_table *t, uint16_t i, struct fake_pair *out)
{
    uint32_t number = number_of(t, i);
    uint8_t low[4] = { 0, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };

    *out = (struct fake_pair){
        .v4 = { .family = 4, .b = { 198, (uint8_t)(18 + low[1]), low[2], low[3] } },
        .v6 = { .family = 6 },
    };
    memcpy(out->v6.b, v6_prefix, sizeof(v6_prefix));
    memcpy(out->v6.b + sizeof(v6_prefix), low, sizeof(low));
}

/* The number that @ip carries, given out or not. */
static bool
number_in(const struct ip *ip, uint32_t *out)
{
    if (ip->family == 4 && ip->b[0] == 198 && (ip->b[1] & 0xfe) == 18) {
        *out = (uint32_t)(ip->b[1] & 1) << 16 | (uint32_t)ip->b[2] << 8 | ip->b[3];
        return true;
    }
    if (ip->family == 6 && memcmp(ip->b, v6_prefix, sizeof(v6_prefix)) == 0) {
        *out = (uint32_t)ip->b[12] << 24 | (uint32_t)ip->b[13] << 16 | (uint32_t)ip->b[14] << 8 | ip->b[15];
        return true;
    }
    return false;
}

/* The slot whose present address is @ip, or NONE. */
static uint16_t
slot_of(const struct fake_table *t, const struct ip *ip)
{
    uint32_t number;
    uint16_t i;

    if (!number_in(ip, &number) || number < FAKE_FIRST)
        return NONE;
    i = (uint16_t)((number - FAKE_FIRST) % FAKE_NAMES_MAX);
    return i < t->n && number_of(t, i) == number ? i : NONE;
}

static uint16_t
bucket_of(const struct fake_table *t, struct str name)
{
    return (uint16_t)(fake_hash(t->key, name) & (BUCKETS - 1));
}

static uint16_t
slot_named(const struct fake_table *t, struct str name, uint16_t bucket)
{
    uint16_t i = t->buckets[bucket];

    while (i != NONE && !str_eq((struct str){ t->slots[i].name, t->slots[i].name_n }, name))
        i = t->slots[i].chain;
    return i;
}

static void
chain_remove(struct fake_table *t, uint16_t i)
{
    uint16_t *link = &t->buckets[t->slots[i].bucket];

    while (*link != i)
        link = &t->slots[*link].chain;
    *link = t->slots[i].chain;
}

static void
order_remove(struct fake_table *t, uint16_t i)
{
    struct slot *s = &t->slots[i];

    if (s->newer != NONE)
        t->slots[s->newer].older = s->older;
    else
        t->newest = s->older;
    if (s->older != NONE)
        t->slots[s->older].newer = s->newer;
    else
        t->oldest = s->newer;
}

static void
order_push(struct fake_table *t, uint16_t i)
{
    struct slot *s = &t->slots[i];

    s->newer = NONE;
    s->older = t->newest;
    if (t->newest != NONE)
        t->slots[t->newest].newer = i;
    else
        t->oldest = i;
    t->newest = i;
}

/* A slot without a name, in no list, whose next address means nothing to anybody any more; or NONE.
 *
 * A slot moves to another address with each name, so an address comes again after FAKE_GENERATIONS names. Time is
 * looked at only there, and for the whole round: the next begins FAKE_REUSE_S after the last answer of this one. */
static uint16_t
take_slot(struct fake_table *t)
{
    uint16_t i = t->oldest;
    struct slot *s;

    if (t->n < FAKE_NAMES_MAX) {
        t->slots[t->n] = (struct slot){ .name_n = 0 };      /* in an adopted file anything may lie there */
        return t->n++;
    }
    if (i == NONE)
        return NONE;
    s = &t->slots[i];
    if (s->generation == FAKE_GENERATIONS - 1 && t->now_ms < s->fresh_until_ms)
        return NONE;
    s->generation = (uint8_t)((s->generation + 1) % FAKE_GENERATIONS);
    order_remove(t, i);
    chain_remove(t, i);
    return i;
}

/* What was left in slot @i: a name as this table would have put it there, or else a name that nobody has. */
static void
settle_slot(struct fake_table *t, uint16_t i)
{
    struct slot *s = &t->slots[i];
    struct host host;

    if (s->name_n == 0 || s->name_n > HOST_NAME_MAX_LEN ||
        host_canonical((struct str){ s->name, s->name_n }, &host) != HOST_OK || host.is_ip ||
        !str_eq((struct str){ s->name, s->name_n }, (struct str){ host.name, host.n }))
        s->name_n = (uint8_t)snprintf(s->name, sizeof(s->name), "lost-%u.invalid", i);
    s->generation %= FAKE_GENERATIONS;
    s->refs = 0;
    if (s->fresh_until_ms > t->now_ms + FAKE_REUSE_S * 1000)
        s->fresh_until_ms = t->now_ms + FAKE_REUSE_S * 1000;
    s->bucket = bucket_of(t, (struct str){ s->name, s->name_n });
    s->chain = t->buckets[s->bucket];
    t->buckets[s->bucket] = i;
    order_push(t, i);
}

struct fake_table *
fake_adopt(int fd, const uint8_t key[FAKE_KEY_SIZE], uint64_t now_ms, struct err *err)
{
    struct fake_table *t;

    if (ftruncate(fd, sizeof(*t)) < 0) {
        err_sys(err, errno, "egress.fake.memory", "no memory for a table of names");
        return NULL;
    }
    t = map(fd, err);
    if (t == NULL)
        return NULL;
    fake_begin(t, key, now_ms);
    if (t->n > FAKE_NAMES_MAX)
        t->n = FAKE_NAMES_MAX;
    for (uint16_t i = 0; i < t->n; i++)
        settle_slot(t, i);
    return t;
}

int
fake_assign(struct fake_table *t, const struct host *host, uint64_t now_ms, struct fake_pair *out, struct err *err)
{
    struct str name = { host->name, host->n };
    uint16_t bucket, i;
    struct slot *s;

    if (host->is_ip || host->n == 0 || host->n > HOST_NAME_MAX_LEN)
        return err_set(err, ERR_PROTOCOL, "egress.fake.address", "only names have addresses made up for them");
    if (now_ms > t->now_ms)
        t->now_ms = now_ms;
    bucket = bucket_of(t, name);
    i = slot_named(t, name, bucket);
    if (i == NONE) {
        i = take_slot(t);
        if (i == NONE)
            return err_set(err, ERR_LIMIT, "egress.fake.full",
                           "%d names at once is the limit; %d of them are connected", FAKE_NAMES_MAX, t->held);
        s = &t->slots[i];
        memcpy(s->name, name.p, name.n);
        s->name_n = (uint8_t)name.n;
        s->bucket = bucket;
        s->chain = t->buckets[bucket];
        t->buckets[bucket] = i;
        order_push(t, i);
    } else if (t->slots[i].refs == 0) {
        order_remove(t, i);
        order_push(t, i);
    }
    if (__builtin_add_overflow(t->now_ms, FAKE_REUSE_S * 1000, &t->slots[i].fresh_until_ms))
        t->slots[i].fresh_until_ms = UINT64_MAX;
    addresses_of(t, i, out);
    return 0;
}

static void
name_of(const struct slot *s, struct host *out)
{
    *out = (struct host){ .n = s->name_n };
    memcpy(out->name, s->name, s->name_n);
}

bool
fake_find(const struct fake_table *t, const struct ip *ip, struct host *out)
{
    uint16_t i = slot_of(t, ip);

    if (i == NONE)
        return false;
    name_of(&t->slots[i], out);
    return true;
}

bool
fake_hold(struct fake_table *t, const struct ip *ip, struct host *out)
{
    uint16_t i = slot_of(t, ip);
    struct slot *s;

    if (i == NONE)
        return false;
    s = &t->slots[i];
    if (s->refs == UINT32_MAX)
        return false;
    if (s->refs++ == 0) {
        order_remove(t, i);
        t->held++;
    }
    name_of(s, out);
    return true;
}

bool
fake_release(struct fake_table *t, const struct ip *ip)
{
    uint16_t i = slot_of(t, ip);

    if (i == NONE || t->slots[i].refs == 0)
        return false;
    if (--t->slots[i].refs == 0) {
        order_push(t, i);       /* just used */
        t->held--;
    }
    return true;
}

bool
fake_in_range(const struct ip *ip)
{
    struct ip inner = ip_unwrap(*ip);

    /* the whole /48, not only the numbers that are given out */
    return (inner.family == 4 && inner.b[0] == 198 && (inner.b[1] & 0xfe) == 18) ||
        (inner.family == 6 && memcmp(inner.b, v6_prefix, 6) == 0);
}

size_t
fake_count(const struct fake_table *t)
{
    return t->n;
}

size_t
fake_held(const struct fake_table *t)
{
    return t->held;
}
