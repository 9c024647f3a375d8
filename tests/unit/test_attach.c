/* Tickets' signatures, and what an editor's connection may bring along. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "proto/edge.h"
#include "warden/ticket.h"

#define PEM  "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBB==\n-----END OPENSSH PRIVATE KEY-----\n"
#define USER "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"

/* RFC 4231, test cases 1 to 3: a key that is shorter is filled up with zeros. */
static void
test_hmac(void **state)
{
    static const struct { uint8_t byte; size_t key_n; const char *data; size_t n; const char *mac; } rows[] = {
        { 0x0b, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { 0, 0, "what do ya want for nothing?", 28,
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { 0xaa, 20, "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd"
          "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", 50,
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t key[SHA256_SIZE] = { 0 }, mac[SHA256_SIZE];
        char text[SHA256_TEXT + 1];

        memset(key, rows[i].byte, rows[i].key_n);
        if (rows[i].key_n == 0)
            memcpy(key, "Jefe", 4);
        sha256_hmac(key, rows[i].data, rows[i].n, mac);
        sha256_text(mac, text);
        assert_string_equal(text, rows[i].mac);
    }
}

static void
test_keys(void **state)
{
    static const struct { const char *host, *user; } no[] = {
        { PEM, USER " comment" }, { PEM, USER "\n" USER }, { PEM, "command=\"x\" " USER }, { PEM, "ssh-ed25519 " }, { PEM, "" },
        { PEM, "ssh-rsa AAAA" }, { PEM, " " USER }, { PEM USER "\n", USER }, { USER "\n" PEM, USER }, { "", USER },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\n-----END OPENSSH PRIVATE KEY-----", USER },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nAA-----END OPENSSH PRIVATE KEY-----\n", USER },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nAA A\n-----END OPENSSH PRIVATE KEY-----\n", USER },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nssh-ed25519 A\n-----END OPENSSH PRIVATE KEY-----\n", USER },
        { "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", USER },
    };
    char large[EDGE_ATTACH_KEY_MAX + 64];

    (void)state;
    assert_true(edge_attach_keys_well(PEM, USER));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        if (edge_attach_keys_well(no[i].host, no[i].user))
            fail_msg("row %zu is taken", i);
    memset(large, 'A', sizeof(large));
    memcpy(large, "ssh-ed25519 ", 12);
    large[sizeof(large) - 1] = '\0';
    assert_false(edge_attach_keys_well(PEM, large));
}

/* What a keeper takes for an editor's connection: keys that are keys, an end, and nothing of other operations. */
static void
test_operation(void **state)
{
    static struct edge_op op, out;
    const struct edge_op good = { .kind = OP_ATTACH, .flags = OP_WRITES, .path = "0123456789abcdef0123456789abcdef",
                                  .n_argv = 2, .argv = { PEM, USER }, .timeout_ms = 1000 };

    (void)state;
    for (int i = 0; i < 8; i++) {
        cleanup_buf struct buf b = BUF_INIT(65536);
        struct wire_in in;

        op = good;
        switch (i) {
        case 1: op.argv[1] = "ssh-ed25519 A\nB"; break;
        case 2: op.timeout_ms = 0; break;
        case 3: op.timeout_ms = EDGE_ATTACH_FOR_MAX * 1000ULL + 1; break;
        case 4: op.path = "x"; break;
        case 5: op.n_argv = 1; break;
        case 6: op.flags = OP_WRITES | OP_LIVE; break;
        case 7: op.n_env = 1; op.env[0] = "A=b"; break;
        default: break;
        }
        if (edge_op_put(&b, &op) < 0) {
            assert_int_not_equal(i, 0);
            continue;
        }
        in = wire_in_of(b.p, b.n);
        if (edge_op_get(&in, &out) != (i == 0))
            fail_msg("row %d", i);
    }
}

static void
test_ticket(void **state)
{
    const struct ticket t = { .id = "0123456789abcdef0123456789abcdef", .box = "1123456789abcdef0123456789abcdef",
                              .workspace = "2123456789abcdef0123456789abcdef", .until_ms = 1795911342416, .seconds = 60 };
    const uint8_t key[SHA256_SIZE] = { 1 }, other[SHA256_SIZE] = { 2 };
    char text[EDGE_TICKET_MAX + 1], forged[EDGE_TICKET_MAX + 1];
    struct ticket read;

    (void)state;
    assert_int_equal(ticket_write(key, &t, text), 0);
    assert_true(ticket_read(key, text, &read));
    assert_string_equal(read.id, t.id);
    assert_string_equal(read.box, t.box);
    assert_string_equal(read.person, "");
    assert_string_equal(read.workspace, t.workspace);
    assert_false(read.writes);
    assert_true(read.until_ms == t.until_ms && read.seconds == t.seconds);
    assert_false(ticket_read(other, text, &read));
    for (size_t i = 0; text[i] != '\0'; i++) {          /* no digit of it can be another one */
        memcpy(forged, text, sizeof(forged));
        forged[i] = text[i] == '1' ? '2' : '1';
        assert_false(ticket_read(key, forged, &read));
        forged[i] = '\0';
        assert_false(ticket_read(key, forged, &read));
    }
    memcpy(forged, text, sizeof(forged));
    strcat(forged, "0");
    assert_false(ticket_read(key, forged, &read));
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hmac), cmocka_unit_test(test_keys),
                                        cmocka_unit_test(test_operation), cmocka_unit_test(test_ticket) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
