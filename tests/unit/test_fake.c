/* egress/fake: a name has one address in each family, an address means one name, for as long as anybody may believe it
 * (R12, R14) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/fake.h"

static const uint8_t key[FAKE_KEY_SIZE] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static struct host
named(const char *text)
{
    struct host host;

    assert_int_equal(host_canonical(str_of(text), &host), HOST_OK);
    return host;
}

static struct host
numbered(unsigned i)
{
    char text[32];

    snprintf(text, sizeof(text), "h%u.example.org", i);
    return named(text);
}

static struct fake_table *
table(void)
{
    struct fake_table *t = fake_new(key, NULL);

    assert_non_null(t);
    return t;
}

static bool
assigned(struct fake_table *t, unsigned i, uint64_t now, struct fake_pair *out)
{
    struct host host = numbered(i);
    struct err err = ERR_INIT;

    if (fake_assign(t, &host, now, out, &err) == 0)
        return true;
    assert_string_equal(err.code, "egress.fake.full");
    return false;
}

static bool
means(const struct fake_table *t, const struct ip *ip, const struct host *want)
{
    struct host host;

    return fake_find(t, ip, &host) && !host.is_ip && host.n == want->n && memcmp(host.name, want->name, want->n) == 0;
}

static void
siphash_gives_the_paper_s_value(void **state)
{
    static const char input[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

    (void)state;
    assert_true(fake_hash(key, (struct str){ input, 15 }) == 0xa129ca6149be45e5);
    /* the first of the reference implementation's vectors: no bytes at all; and one whole word */
    assert_true(fake_hash(key, (struct str){ input, 0 }) == 0x726fdb47dd0e0e31);
    assert_true(fake_hash(key, (struct str){ input, 8 }) == 0x93f5f5799a932462);
}

static void
a_name_has_one_address_in_each_family(void **state)
{
    cleanup_fake struct fake_table *t = table();
    struct host a = named("pypi.example.org"), b = named("B.Example.ORG.");
    struct fake_pair pa, pb, again;
    char text[IP_TEXT_MAX];

    (void)state;
    assert_int_equal(fake_assign(t, &a, 0, &pa, NULL), 0);
    assert_int_equal(fake_assign(t, &b, 0, &pb, NULL), 0);
    ip_format(&pa.v4, text);
    assert_string_equal(text, "198.18.1.0");
    ip_format(&pa.v6, text);
    assert_string_equal(text, "fd63:6c6f:6368::100");
    assert_false(ip_eq(&pa.v4, &pb.v4));
    assert_false(ip_eq(&pa.v6, &pb.v6));
    assert_int_equal(fake_assign(t, &a, UINT64_C(1) << 40, &again, NULL), 0);
    assert_true(ip_eq(&pa.v4, &again.v4) && ip_eq(&pa.v6, &again.v6));
    assert_true(means(t, &pa.v4, &a) && means(t, &pa.v6, &a));
    assert_true(means(t, &pb.v4, &b) && means(t, &pb.v6, &b));
    assert_int_equal(fake_count(t), 2);
}

static void
an_address_is_no_name(void **state)
{
    static const char *const texts[] = { "192.0.2.1", "[2001:db8::1]", "0x7f.1" };
    cleanup_fake struct fake_table *t = table();
    struct host empty = { .n = 0 }, longer = { .n = HOST_NAME_MAX_LEN + 1 };
    struct fake_pair p;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct host host = named(texts[i]);
        struct err err = ERR_INIT;
        assert_int_equal(fake_assign(t, &host, 0, &p, &err), -1);
        assert_string_equal(err.code, "egress.fake.address");
    }
    assert_int_equal(fake_assign(t, &empty, 0, &p, NULL), -1);
    assert_int_equal(fake_assign(t, &longer, 0, &p, NULL), -1);
    assert_int_equal(fake_count(t), 0);
}

static void
the_longest_name_comes_back_whole(void **state)
{
    cleanup_fake struct fake_table *t = table();
    char text[HOST_NAME_MAX_LEN + 1];
    struct fake_pair p;
    struct host host;

    (void)state;
    memset(text, 'a', sizeof(text));
    text[63] = text[127] = text[191] = '.';
    assert_int_equal(host_canonical((struct str){ text, HOST_NAME_MAX_LEN }, &host), HOST_OK);
    assert_int_equal(host.n, HOST_NAME_MAX_LEN);
    assert_int_equal(fake_assign(t, &host, 0, &p, NULL), 0);
    assert_true(means(t, &p.v4, &host) && means(t, &p.v6, &host));
}

static void
other_addresses_mean_nothing(void **state)
{
    static const char *const texts[] = {
        "198.18.0.0", "198.18.0.1", "198.18.0.255", "198.18.1.1", "198.19.1.0", "198.19.255.255", "198.18.17.0", "198.17.1.0",
        "198.20.1.0", "127.0.0.1", "8.8.8.8", "0.0.0.0",
        "fd63:6c6f:6368::", "fd63:6c6f:6368::1", "fd63:6c6f:6368::101", "fd63:6c6f:6368::1100", "fd63:6c6f:6368:1::100",
        "fd63:6c6f:6368::1:0:100", "fd63:6c6f:6368::1:100",
        "fd63:6c6f:6368::100:100", "fd63:6c6f:6368::ffff:ffff", "fd63:6c6f:6369::100", "::100",
        "::ffff:198.18.1.0", "::198.18.1.0", "64:ff9b::198.18.1.0",
    };
    cleanup_fake struct fake_table *t = table();
    struct fake_pair p;
    struct host host;

    (void)state;
    assert_true(assigned(t, 0, 0, &p));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct ip ip;
        assert_true(ip_parse(str_of(texts[i]), &ip));
        if (fake_find(t, &ip, &host) || fake_hold(t, &ip, &host) || fake_release(t, &ip))
            fail_msg("%s means a name", texts[i]);
    }
    p.v4.family = 6;
    assert_false(fake_find(t, &p.v4, &host));
    p.v6.family = 4;
    assert_false(fake_find(t, &p.v6, &host));
    p.v6.family = 0;
    assert_false(fake_find(t, &p.v6, &host));
}

/* Whatever a policy allows by name, the classes refuse a fake as a real destination; and nothing unwraps it. */
static void
every_fake_is_refused_as_a_real_destination(void **state)
{
    cleanup_fake struct fake_table *t = table();

    (void)state;
    for (unsigned i = 0; i < FAKE_NAMES_MAX * FAKE_GENERATIONS; i++) {
        struct fake_pair p;
        assert_true(assigned(t, i, 0, &p));
        if (ip_classify(p.v4) != IP_SPECIAL || ip_classify(p.v6) != IP_PRIVATE)
            fail_msg("name %u: %s, %s", i, ip_class_name(ip_classify(p.v4)), ip_class_name(ip_classify(p.v6)));
        assert_true(fake_in_range(&p.v4) && fake_in_range(&p.v6));
    }
}

static void
in_range_rows(void **state)
{
    static const struct { const char *text; bool in; } rows[] = {
        { "198.17.255.255", false }, { "198.18.0.0", true }, { "198.19.255.255", true }, { "198.20.0.0", false },
        { "::ffff:198.18.0.1", true }, { "64:ff9b::c612:1", true }, { "2002:c612:1::", true }, { "::ffff:8.8.8.8", false },
        { "fd63:6c6f:6367:ffff::", false }, { "fd63:6c6f:6368::", true }, { "fd63:6c6f:6368:ffff:ffff:ffff:ffff:ffff", true },
        { "fd63:6c6f:6369::", false }, { "fc63:6c6f:6368::", false }, { "8.8.8.8", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ip ip;
        assert_true(ip_parse(str_of(rows[i].text), &ip));
        if (fake_in_range(&ip) != rows[i].in)
            fail_msg("%s", rows[i].text);
    }
}

static void
the_least_recently_used_name_gives_way(void **state)
{
    cleanup_fake struct fake_table *t = table();
    struct fake_pair first, second, p;
    struct host a = numbered(0), b = numbered(1), c = numbered(FAKE_NAMES_MAX), host;

    (void)state;
    assert_true(assigned(t, 0, 0, &first));
    assert_true(assigned(t, 1, 0, &second));
    for (unsigned i = 2; i < FAKE_NAMES_MAX; i++)
        assert_true(assigned(t, i, 0, &p));
    assert_true(means(t, &first.v4, &a));
    assert_true(assigned(t, 0, 1, &p));             /* asked again: used */
    assert_true(assigned(t, FAKE_NAMES_MAX, 1, &p));
    assert_int_equal(fake_count(t), FAKE_NAMES_MAX);
    assert_true(means(t, &first.v4, &a));
    assert_false(fake_find(t, &second.v4, &host) || fake_find(t, &second.v6, &host));
    assert_true(means(t, &p.v4, &c) && means(t, &p.v6, &c));
    assert_false(ip_eq(&p.v4, &second.v4));
    /* the name that gave way comes back, somewhere else, and its old address stays unknown */
    assert_true(assigned(t, 1, 1, &p));
    assert_true(means(t, &p.v4, &b));
    assert_false(fake_find(t, &second.v4, &host));
}

static void
a_connected_name_stays(void **state)
{
    cleanup_fake struct fake_table *t = table();
    struct fake_pair held, p;
    struct host a = numbered(0), host;

    (void)state;
    assert_true(assigned(t, 0, 0, &held));
    assert_true(fake_hold(t, &held.v4, &host) && fake_hold(t, &held.v6, &host));    /* one count for both families */
    assert_int_equal(host.n, a.n);
    assert_memory_equal(host.name, a.name, a.n);
    assert_int_equal(fake_held(t), 1);
    for (unsigned i = 1; i < 3 * FAKE_NAMES_MAX; i++)
        assert_true(assigned(t, i, 0, &p));
    assert_true(means(t, &held.v4, &a) && means(t, &held.v6, &a));
    assert_true(fake_release(t, &held.v6));
    for (unsigned i = 0; i < FAKE_NAMES_MAX; i++)
        assert_true(assigned(t, 100000 + i, 0, &p));
    assert_true(means(t, &held.v4, &a));
    assert_true(fake_release(t, &held.v4));
    assert_int_equal(fake_held(t), 0);
    assert_false(fake_release(t, &held.v4));        /* counts never go below nothing */
    assert_int_equal(fake_held(t), 0);
    /* the end of its connection was a use: all others give way before it */
    for (unsigned i = 0; i < FAKE_NAMES_MAX - 1; i++)
        assert_true(assigned(t, 200000 + i, 0, &p));
    assert_true(means(t, &held.v4, &a));
    assert_true(assigned(t, 300000, 0, &p));
    assert_false(fake_find(t, &held.v4, &host));
    assert_false(fake_release(t, &held.v4));
}

static void
a_table_of_connected_names_is_full(void **state)
{
    cleanup_fake struct fake_table *t = table();
    static struct fake_pair pairs[FAKE_NAMES_MAX];
    struct fake_pair p;
    struct host host;

    (void)state;
    for (unsigned i = 0; i < FAKE_NAMES_MAX; i++)
        assert_true(assigned(t, i, 0, &pairs[i]) && fake_hold(t, &pairs[i].v4, &host));
    assert_int_equal(fake_held(t), FAKE_NAMES_MAX);
    assert_false(assigned(t, FAKE_NAMES_MAX, UINT64_C(1) << 40, &p));
    assert_true(assigned(t, 7, 0, &p));             /* those that are there go on */
    assert_true(ip_eq(&p.v4, &pairs[7].v4));
    assert_true(fake_release(t, &pairs[9].v4));
    assert_true(assigned(t, FAKE_NAMES_MAX, 0, &p));
    assert_false(fake_find(t, &pairs[9].v4, &host));
    assert_true(fake_hold(t, &p.v6, &host));
    assert_false(assigned(t, FAKE_NAMES_MAX + 1, 0, &p));
    for (unsigned i = 0; i < FAKE_NAMES_MAX; i++)   /* and nothing of it was mixed up */
        if (i != 9) {
            struct host want = numbered(i);
            assert_true(means(t, &pairs[i].v4, &want) && means(t, &pairs[i].v6, &want));
        }
}

/* All slots but one are held, so that one slot goes through all of its addresses. */
static void
an_address_is_not_reused_while_it_is_fresh(void **state)
{
    static const uint64_t ms = 1000;
    cleanup_fake struct fake_table *t = table();
    struct fake_pair seen[FAKE_GENERATIONS], p;
    struct host host;

    (void)state;
    for (unsigned i = 0; i < FAKE_NAMES_MAX - 1; i++)
        assert_true(assigned(t, i, 0, &p) && fake_hold(t, &p.v4, &host));
    for (unsigned g = 0; g < FAKE_GENERATIONS; g++) {
        assert_true(assigned(t, 10000 + g, 10 * ms + g, &seen[g]));
        for (unsigned before = 0; before < g; before++)
            assert_false(ip_eq(&seen[before].v4, &seen[g].v4) || ip_eq(&seen[before].v6, &seen[g].v6));
    }
    /* the next name would get the first one's address back */
    assert_false(assigned(t, 20000, 11 * ms, &p));
    assert_true(assigned(t, 10000 + FAKE_GENERATIONS - 1, 20 * ms, &p));    /* an answer makes it fresh again */
    assert_true(assigned(t, 10000 + FAKE_GENERATIONS - 1, 0, &p));      /* a clock that runs backwards buys nothing */
    assert_false(assigned(t, 20000, 10 * ms + FAKE_REUSE_S * ms + FAKE_GENERATIONS, &p));
    assert_false(assigned(t, 20000, 20 * ms + FAKE_REUSE_S * ms - 1, &p));
    assert_false(assigned(t, 20000, 0, &p));
    assert_true(assigned(t, 20000, 20 * ms + FAKE_REUSE_S * ms, &p));
    assert_true(ip_eq(&p.v4, &seen[0].v4) && ip_eq(&p.v6, &seen[0].v6));
    host = numbered(20000);
    assert_true(means(t, &p.v4, &host));
}

static void
the_end_of_time_is_no_way_round(void **state)
{
    cleanup_fake struct fake_table *t = table();
    struct fake_pair p;
    struct host host;

    (void)state;
    for (unsigned i = 0; i < FAKE_NAMES_MAX - 1; i++)
        assert_true(assigned(t, i, 0, &p) && fake_hold(t, &p.v4, &host));
    for (unsigned g = 0; g < FAKE_GENERATIONS; g++)
        assert_true(assigned(t, 10000 + g, UINT64_MAX - 1, &p));
    assert_false(assigned(t, 20000, UINT64_MAX - 1, &p));
}

/* What the table claims, kept as a plain list, against the table: a hundred thousand steps that any sandbox can cause,
 * over few enough free slots that every one is reused many times. */
#define MODEL_NAMES 60
#define MODEL_FREE 24

struct claim {
    struct fake_pair pair;
    uint64_t until;             /* the pair may mean no other name before */
    unsigned refs;
    bool known;
};

static uint64_t
step(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void
model_assign(struct fake_table *t, struct claim *claims, unsigned who, uint64_t now, unsigned *full)
{
    struct fake_pair p;
    struct host host = numbered(10000 + who);

    if (!assigned(t, 10000 + who, now, &p)) {
        assert_int_equal(claims[who].refs, 0);
        (*full)++;
        return;
    }
    assert_true(means(t, &p.v4, &host) && means(t, &p.v6, &host));
    if (claims[who].refs > 0)
        assert_true(ip_eq(&p.v4, &claims[who].pair.v4));
    for (unsigned i = 0; i < MODEL_NAMES; i++)
        if (i != who && claims[i].known && ip_eq(&claims[i].pair.v4, &p.v4)) {
            assert_true(claims[i].refs == 0 && now >= claims[i].until);
            claims[i].known = false;
        }
    claims[who].pair = p;
    claims[who].known = true;
    claims[who].until = now + FAKE_TTL_S * 1000;
}

static void
a_random_walk_keeps_the_rules(void **state)
{
    cleanup_fake struct fake_table *t = table();
    struct claim claims[MODEL_NAMES] = { 0 };
    uint64_t seed = 88172645463325252, now = 0;
    unsigned full = 0, lost = 0, connected = 0;
    struct fake_pair p;
    struct host host;

    (void)state;
    for (unsigned i = 0; i < FAKE_NAMES_MAX - MODEL_FREE; i++)
        assert_true(assigned(t, i, 0, &p) && fake_hold(t, &p.v4, &host));
    for (unsigned i = 0; i < 100000; i++) {
        unsigned who = (unsigned)(step(&seed) % MODEL_NAMES);
        struct claim *c = &claims[who];
        const struct ip *ip = step(&seed) & 1 ? &c->pair.v4 : &c->pair.v6;
        struct host want = numbered(10000 + who);
        now += step(&seed) % 400;
        switch (step(&seed) % 4) {
        case 0:
        case 1:
            model_assign(t, claims, who, now, &full);
            break;
        case 2:
            if (!c->known)
                break;
            if (fake_hold(t, ip, &host)) {
                assert_true(host.n == want.n && memcmp(host.name, want.name, want.n) == 0);
                connected++;
                c->refs++;
            } else {
                assert_int_equal(c->refs, 0);
                lost++;
            }
            break;
        default:
            if (c->known)
                assert_int_equal(fake_release(t, ip), c->refs > 0);
            c->refs -= c->refs > 0;
        }
        if (c->refs > 0)
            assert_true(means(t, &c->pair.v4, &want) && means(t, &c->pair.v6, &want));
    }
    /* the walk went where it hurts */
    assert_true(full > 100 && lost > 100 && connected > 1000);
    assert_int_equal(fake_count(t), FAKE_NAMES_MAX);
}

/* --- a table that outlives its process ---------------------------------------------------------------------------- */

static void
an_adopted_table_keeps_its_names(void **state)
{
    int fd = memfd_create("names", MFD_CLOEXEC);
    struct fake_table *t = fake_adopt(fd, key, 1000, NULL);
    struct fake_pair one, two, other;
    struct host host;

    (void)state;
    assert_non_null(t);
    assert_true(assigned(t, 1, 1000, &one) && assigned(t, 2, 1000, &two));
    assert_true(fake_hold(t, &one.v4, &host));
    fake_free(t);

    t = fake_adopt(fd, (const uint8_t[FAKE_KEY_SIZE]){ 9 }, 2000, NULL);
    host = numbered(1);
    assert_true(means(t, &one.v4, &host) && means(t, &one.v6, &host));
    host = numbered(2);
    assert_true(means(t, &two.v4, &host));
    assert_int_equal(fake_count(t), 2);
    assert_int_equal(fake_held(t), 0);
    assert_true(assigned(t, 1, 2000, &other) && ip_eq(&other.v4, &one.v4));
    assert_true(assigned(t, 3, 2000, &other) && !ip_eq(&other.v4, &one.v4) && !ip_eq(&other.v4, &two.v4));
    fake_free(t);
    close(fd);
}

/* Whatever lies in the file, what comes of it is a table: every address means a name that is one, or nothing. */
static void
a_broken_table_is_adopted_all_the_same(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 50; round++) {
        int fd = memfd_create("names", MFD_CLOEXEC);
        struct fake_table *t = fake_adopt(fd, key, 0, NULL);
        struct fake_pair pair;
        struct host host, again;
        struct stat st;
        uint8_t *raw;

        for (unsigned i = 0; i < 40; i++)
            assert_true(assigned(t, i, 0, &pair));
        fake_free(t);
        assert_int_equal(fstat(fd, &st), 0);
        raw = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(raw != MAP_FAILED);
        for (int i = 0; i < 20000; i++) {
            seed = seed * 1664525 + 1013904223;
            raw[(round < 25 ? seed % 20000 : seed % (uint32_t)st.st_size)] = (uint8_t)(seed >> 24);
        }
        munmap(raw, (size_t)st.st_size);
        t = fake_adopt(fd, key, 1000, NULL);
        assert_non_null(t);
        assert_true(fake_count(t) <= FAKE_NAMES_MAX && fake_held(t) == 0);
        for (uint32_t number = 0; number < 1 << 17; number++) {
            struct ip ip = { .family = 4, .b = { 198, (uint8_t)(18 + (number >> 16)), (uint8_t)(number >> 8),
                                                 (uint8_t)number } };
            if (!fake_find(t, &ip, &host))
                continue;
            assert_int_equal(host_canonical((struct str){ host.name, host.n }, &again), HOST_OK);
            assert_true(!again.is_ip && again.n == host.n && memcmp(again.name, host.name, host.n) == 0);
        }
        for (unsigned i = 0; i < 100; i++) {
            assert_true(assigned(t, i, 1000 + FAKE_REUSE_S * 1000, &pair));
            host = numbered(i);
            assert_true(means(t, &pair.v4, &host));
        }
        fake_free(t);
        close(fd);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_gives_the_paper_s_value),
        cmocka_unit_test(a_name_has_one_address_in_each_family),
        cmocka_unit_test(an_address_is_no_name),
        cmocka_unit_test(the_longest_name_comes_back_whole),
        cmocka_unit_test(other_addresses_mean_nothing),
        cmocka_unit_test(every_fake_is_refused_as_a_real_destination),
        cmocka_unit_test(in_range_rows),
        cmocka_unit_test(the_least_recently_used_name_gives_way),
        cmocka_unit_test(a_connected_name_stays),
        cmocka_unit_test(a_table_of_connected_names_is_full),
        cmocka_unit_test(an_address_is_not_reused_while_it_is_fresh),
        cmocka_unit_test(the_end_of_time_is_no_way_round),
        cmocka_unit_test(a_random_walk_keeps_the_rules),
        cmocka_unit_test(an_adopted_table_keeps_its_names),
        cmocka_unit_test(a_broken_table_is_adopted_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
