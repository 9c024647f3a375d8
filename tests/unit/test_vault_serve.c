/* vault/serve and vault/client: the dialogue on both edges with the real process behind it, and what is left to that
 * process (R12, R16) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "attack.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "vault/client.h"
#include "vault/serve.h"
#include "vault/sigv4.h"
#include "vault/store.h"
#include "vault/wire.h"

#define VALUE "sk-ant-api03-TheRealValue-0123456789"

static char root[] = "/tmp/cloche-serve-XXXXXX";

/* One vault with one supervisor. */
struct run {
    pid_t pid;
    int fd;
    uint8_t in[VAULT_RECEIVE_ROOM];
    struct frame f;
    char pem[VAULT_CA_PEM_MAX];
    char id[VAULT_ID_TEXT + 1];
};
static struct run run;

static void
put(const char *name, const char *value, const char *binding)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_secret struct secret v = { NULL, 0 };
    static struct store_meta m;
    struct err err = ERR_INIT;

    memset(&m, 0, sizeof(m));
    memcpy(m.name, name, strlen(name) + 1);
    memcpy(m.env, "KEY", 4);
    m.bound = true;
    if (binding_parse(str_of(binding), &m.binding, &err) < 0 || store_new_id(m.id, &err) < 0 ||
        store_open(&s, true, &err) < 0 || secret_copy(&v, value, strlen(value), &err) < 0 ||
        store_put(&s, &m, &v, &err) < 0)
        fail_msg("%s", err.msg);
}

static void
say(uint8_t type, const struct buf *payload, int fd)
{
    cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);

    assert_int_equal(frame_append(&b, type, 0, 0, payload != NULL ? payload->p : NULL, payload != NULL ? payload->n : 0), 0);
    assert_int_equal(packet_send(run.fd, &b, fd), 0);
}

/* The next message's type; 0 at the end. */
static int
hear(void)
{
    return packet_receive(run.fd, run.in, sizeof(run.in), &run.f, NULL, 0) == 1 ? run.f.type : 0;
}

static int
begin(void **state)
{
    int pair[2];
    struct wire_in in;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    run.pid = fork();
    if (run.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        _exit(vault_serve(pair[1], NULL) == 0 ? 0 : 1);
    }
    close(pair[1]);
    run.fd = pair[0];
    if (hear() != VAULT_CA)
        return -1;
    in = wire_in_of(run.f.payload, run.f.length);
    snprintf(run.pem, sizeof(run.pem), "%s", wire_cstr(&in, VAULT_CA_PEM_MAX, NULL));
    return 0;
}

/* How it ended: what waitpid says. */
static int
finish(void)
{
    int status;

    close_fd(&run.fd);
    assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
    return status;
}

static int
end(void **state)
{
    (void)state;
    if (run.fd >= 0)
        finish();
    return 0;
}

static void
bind_secret(const char *name)
{
    cleanup_buf struct buf b = BUF_INIT(256);
    struct wire_in in;

    wire_put_cstr(&b, name, 64);
    for (int i = 0; i < 3; i++)
        wire_put_cstr(&b, "", 64);
    say(VAULT_BIND, &b, -1);
    assert_int_equal(hear(), VAULT_BOUND);
    in = wire_in_of(run.f.payload, run.f.length);
    snprintf(run.id, sizeof(run.id), "%s", wire_cstr(&in, VAULT_ID_TEXT, NULL));
    assert_null(memmem(run.f.payload, run.f.length, VALUE, sizeof(VALUE) - 1));
}

static uint32_t revoked_mask;

static void
on_revoked(void *ctx, uint32_t mask)
{
    (void)ctx;
    revoked_mask |= mask;
}

static int
raw_edge(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    say(VAULT_EGRESS, NULL, pair[1]);
    close(pair[1]);
    return pair[0];
}

static struct vault_client *
open_edge(void)
{
    const struct vault_client_events events = { .revoked = on_revoked };
    struct err err = ERR_INIT;
    struct vault_client *c = vault_client_new(raw_edge(), &events, &err);

    if (c == NULL)
        fail_msg("%s", err.msg);
    return c;
}

static void
start(const char *name)
{
    if (name != NULL)
        bind_secret(name);
    say(VAULT_START, NULL, -1);
    assert_int_equal(hear(), VAULT_STARTED);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

struct answer {
    struct vault_lease *lease;
    char code[64], text[1200];
    uint8_t der[VAULT_LEAF_MAX], key[VAULT_LEAF_MAX];
    size_t der_n, key_n;
    int calls;
};

static void
on_lease(void *ctx, struct vault_lease *lease, const struct err *why)
{
    struct answer *a = ctx;

    a->calls++;
    a->lease = lease;
    if (lease == NULL)
        snprintf(a->code, sizeof(a->code), "%s", why->code);
}

static void
on_leaf(void *ctx, const struct vault_leaf *leaf, const struct err *why)
{
    struct answer *a = ctx;

    a->calls++;
    assert_true((leaf == NULL) != (why == NULL));
    if (leaf == NULL)
        return;
    memcpy(a->der, leaf->certificate, leaf->certificate_n);
    memcpy(a->key, leaf->key, leaf->key_n);
    a->der_n = leaf->certificate_n;
    a->key_n = leaf->key_n;
}

static void
on_signature(void *ctx, const char *authorization, const struct err *why)
{
    struct answer *a = ctx;

    a->calls++;
    snprintf(a->code, sizeof(a->code), "%s", why != NULL ? why->code : "");
    snprintf(a->text, sizeof(a->text), "%s", authorization != NULL ? authorization : "");
}

static void
wait_answer(struct vault_client *c, const struct answer *a)
{
    while (a->calls == 0) {
        struct pollfd p = { .fd = vault_client_fd(c), .events = POLLIN };
        assert_true(poll(&p, 1, 60000) > 0);
        if (vault_client_ready(c, NULL) < 0)
            return;
    }
}

static struct binding_request
request(const char *host, const char *path)
{
    struct binding_request r = { .tls = true, .port = 443, .method = STR_LIT("POST"), .path = str_of(path) };

    assert_int_equal(host_canonical(str_of(host), &r.host), HOST_OK);
    return r;
}

static void
lease(struct vault_client *c, const char *host, const char *path, struct answer *a)
{
    struct binding_request r = request(host, path);

    memset(a, 0, sizeof(*a));
    assert_int_not_equal(vault_ask_lease(c, &r, 1, on_lease, a, NULL), 0);
    wait_answer(c, a);
}

/* It goes into nothing any more, and answers are still searched for it. */
static void
assert_searched(struct answer *a)
{
    assert_non_null(a->lease);
    assert_int_equal(a->lease->mask, 0);
    assert_int_equal(a->lease->search, 1);
    assert_memory_equal(a->lease->value[0], VALUE, sizeof(VALUE) - 1);
    vault_lease_free(a->lease);
}

static void
leases(void **state)
{
    struct vault_client *c;
    struct answer a;
    size_t n;
    const struct vault_secret *s;
    struct host host;

    (void)state;
    start("key");
    c = open_edge();
    s = vault_client_secrets(c, &n);
    assert_int_equal(n, 1);
    assert_int_equal(s->n, sizeof(VALUE) - 1);
    assert_memory_equal(s->placeholder, "sk-ant-api03-", 13);
    assert_memory_not_equal(s->placeholder, VALUE, s->n);
    host_canonical(STR_LIT("api.example.org"), &host);
    assert_int_equal(vault_client_concerned(c, true, &host, 443), 1);
    assert_int_equal(vault_client_concerned(c, false, &host, 80), 0);
    lease(c, "api.example.org", "/v1/messages", &a);
    assert_non_null(a.lease);
    assert_int_equal(a.lease->mask, 1);
    assert_memory_equal(a.lease->value[0], VALUE, sizeof(VALUE) - 1);
    vault_lease_free(a.lease);
    lease(c, "evil.example.org", "/v1/messages", &a);
    assert_null(a.lease);
    assert_string_equal(a.code, "vault.not-bound");
    /* not for such a request, but its host may say it */
    lease(c, "api.example.org", "/v2/messages", &a);
    assert_searched(&a);
    vault_client_free(c);
}

static void
forgotten(void **state)
{
    struct binding_request r = request("api.example.org", "/v1/x");
    struct answer first = { 0 }, second = { 0 };
    struct vault_client *c;
    uint32_t ticket;

    (void)state;
    start("key");
    c = open_edge();
    ticket = vault_ask_lease(c, &r, 1, on_lease, &first, NULL);
    vault_forget(c, ticket);
    vault_forget(c, ticket);
    vault_forget(c, 0);
    assert_int_not_equal(vault_ask_lease(c, &r, 1, on_lease, &second, NULL), 0);
    wait_answer(c, &second);
    assert_int_equal(first.calls, 0);
    assert_non_null(second.lease);
    vault_lease_free(second.lease);
    vault_client_free(c);
}

static void
revocation(void **state)
{
    cleanup_buf struct buf b = BUF_INIT(64);
    struct vault_client *c;
    struct answer a;
    size_t n;

    (void)state;
    start("key");
    c = open_edge();
    revoked_mask = 0;
    wire_put_cstr(&b, run.id, VAULT_ID_TEXT);
    say(VAULT_REVOKE, &b, -1);
    while (revoked_mask == 0) {
        struct pollfd p = { .fd = vault_client_fd(c), .events = POLLIN };
        assert_true(poll(&p, 1, 60000) > 0);
        assert_int_equal(vault_client_ready(c, NULL), 0);
    }
    assert_int_equal(revoked_mask, 1);
    assert_true(vault_client_secrets(c, &n)->revoked);
    lease(c, "api.example.org", "/v1/x", &a);
    assert_searched(&a);
    vault_client_free(c);
    /* and who comes later is told at once */
    c = open_edge();
    assert_true(vault_client_secrets(c, &n)->revoked);
    lease(c, "api.example.org", "/v1/x", &a);
    assert_searched(&a);
    vault_client_free(c);
}

static X509 *
pem_certificate(void)
{
    BIO *b = BIO_new_mem_buf(run.pem, -1);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);

    BIO_free(b);
    assert_non_null(x);
    return x;
}

static void
leaves(void **state)
{
    static const char *const names[] = { "api.example.org", "10.1.2.3", "2001:db8::1" };
    X509 *ca;
    struct vault_client *c;

    (void)state;
    start(NULL);
    c = open_edge();
    ca = pem_certificate();
    for (size_t i = 0; i < 3; i++) {
        static struct answer a;
        const unsigned char *p = a.der, *k = a.key;
        struct host host;
        X509 *x;
        EVP_PKEY *key;
        memset(&a, 0, sizeof(a));
        assert_int_equal(host_canonical(str_of(names[i]), &host), HOST_OK);
        assert_int_not_equal(vault_ask_leaf(c, &host, on_leaf, &a, NULL), 0);
        wait_answer(c, &a);
        x = d2i_X509(NULL, &p, (long)a.der_n);
        key = d2i_AutoPrivateKey(NULL, &k, (long)a.key_n);
        assert_non_null(x);
        assert_non_null(key);
        assert_int_equal(X509_verify(x, X509_get0_pubkey(ca)), 1);
        assert_int_equal(X509_check_private_key(x, key), 1);
        assert_int_equal(i == 0 ? X509_check_host(x, names[i], 0, 0, NULL) : X509_check_ip_asc(x, names[i], 0), 1);
        assert_int_equal(X509_check_host(x, "other.example.org", 0, 0, NULL), 0);
        assert_int_equal(X509_check_ca(x), 0);
        X509_free(x);
        EVP_PKEY_free(key);
    }
    assert_int_equal(X509_check_ca(ca), 1);
    assert_int_equal(X509_get_pathlen(ca), 0);
    X509_free(ca);
    vault_client_free(c);
}

static void
signatures(void **state)
{
    uint8_t canonical[SIGV4_HASH] = { 1 };
    struct binding_request r = request("s3.eu-west-1.example.org", "/bucket");
    struct vault_to_sign what = { .region = STR_LIT("eu-west-1"), .service = STR_LIT("s3"),
                                  .signed_headers = STR_LIT("host;x-amz-date"), .canonical = canonical };
    struct vault_client *c;
    struct answer a = { 0 };
    char date[20];
    time_t now = time(NULL);
    struct tm tm;
    size_t n;

    (void)state;
    start("aws");
    c = open_edge();
    assert_non_null(vault_client_secrets(c, &n));
    assert_int_equal(n, 3);
    strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    what.date = str_of(date);
    assert_int_not_equal(vault_ask_signature(c, &r, 0, &what, on_signature, &a, NULL), 0);
    wait_answer(c, &a);
    assert_int_equal(strncmp(a.text, "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/", 48), 0);
    assert_null(strstr(a.text, "wJalr"));
    what.region = STR_LIT("us-east-1");     /* not of this binding */
    memset(&a, 0, sizeof(a));
    vault_ask_signature(c, &r, 0, &what, on_signature, &a, NULL);
    wait_answer(c, &a);
    assert_string_equal(a.code, "vault.not-bound");
    what.region = STR_LIT("eu-west-1");
    what.date = STR_LIT("20150830T123600Z");
    memset(&a, 0, sizeof(a));
    vault_ask_signature(c, &r, 0, &what, on_signature, &a, NULL);
    wait_answer(c, &a);
    assert_string_equal(a.code, "vault.date");
    /* the key itself is never leased, nor the id; the token is */
    memset(&a, 0, sizeof(a));
    vault_ask_lease(c, &r, 7, on_lease, &a, NULL);
    wait_answer(c, &a);
    assert_non_null(a.lease);
    assert_int_equal(a.lease->mask, 4);
    vault_lease_free(a.lease);
    vault_client_free(c);
}

/* --- broken peers ------------------------------------------------------------------------------------------------- */

/* On the supervisor's edge: it ends. */
static void
supervisor_table(void **state)
{
    static const struct { uint8_t type; size_t n; bool started; } rows[] = {
        { 0, 0, false }, { 255, 0, false }, { VAULT_CA, 0, false }, { VAULT_ASK_LEASE, 30, false },
        { VAULT_EGRESS, 0, false }, { VAULT_REVOKE, 37, false }, { VAULT_BIND, 3, false }, { VAULT_BIND, 24, false },
        { VAULT_BIND, 4000, false }, { VAULT_START, 1, false }, { VAULT_START, 0, true }, { VAULT_BIND, 20, true },
        { VAULT_EGRESS, 0, true }, { VAULT_REVOKE, 4, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t zeros[4096] = { 0 };
        struct buf payload = { .p = zeros, .n = rows[i].n, .lent = true };
        int status;
        if (rows[i].started)
            start(NULL);
        say(rows[i].type, &payload, -1);
        if (hear() != 0)
            fail_msg("row %zu: answered with %u", i, run.f.type);
        status = finish();
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
            fail_msg("row %zu: status %d", i, status);
        begin(state);
    }
}

/* On the egress edge: that edge ends, the vault lives. */
static void
egress_table(void **state)
{
    static const struct { uint8_t type; size_t n; } rows[] = {
        { 0, 0 }, { VAULT_BIND, 20 }, { VAULT_REVOKE, 37 }, { VAULT_EGRESS, 0 }, { VAULT_LEASED, 30 },
        { VAULT_ASK_LEASE, 5 }, { VAULT_ASK_LEASE, 40 }, { VAULT_ASK_LEASE, 9000 }, { VAULT_ASK_LEAF, 9 },
        { VAULT_ASK_LEAF, 300 }, { VAULT_ASK_SIGNATURE, 67 }, { VAULT_ASK_SIGNATURE, 90 },
    };
    struct vault_client *c;
    struct answer a;

    (void)state;
    start("key");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_close int fd = raw_edge();
        cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);
        static uint8_t in[VAULT_RECEIVE_ROOM], zeros[9000];
        struct frame f;
        while (packet_receive(fd, in, sizeof(in), &f, NULL, 0) == 1 && f.type != VAULT_ANNOUNCED)
            ;
        frame_append(&b, rows[i].type, 0, 0, zeros, rows[i].n);
        assert_int_equal(packet_send(fd, &b, -1), 0);
        if (packet_receive(fd, in, sizeof(in), &f, NULL, 0) == 1)
            fail_msg("row %zu: answered with %u", i, f.type);
    }
    c = open_edge();
    lease(c, "api.example.org", "/v1/x", &a);
    assert_non_null(a.lease);
    vault_lease_free(a.lease);
    vault_client_free(c);
}

static bool
readable(int fd, int ms)
{
    return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) > 0;
}

/* An answer that waits for who asked stays what it is while the supervisor is answered. */
static void
an_answer_that_waits(void **state)
{
    struct vault_ask_leaf ask = { .ticket = 0, .host = STR_LIT("api.example.org") };
    uint8_t key[MASK_KEY] = { 1 };
    struct buf payload = { .p = key, .n = sizeof(key), .lent = true };
    cleanup_close int fd = -1;
    uint32_t n = 0;

    (void)state;
    start("key");
    fd = raw_edge();
    for (int blocked = 0; blocked < 10; ) {
        cleanup_buf struct buf b = BUF_INIT(VAULT_MESSAGE_MAX);
        ask.ticket = n + 1;
        assert_int_equal(proto_frame(&b, VAULT_ASK_LEAF, VAULT_ASK_LEAF_SHAPE(), &ask), 0);
        if (send(fd, b.p, b.n, MSG_DONTWAIT) > 0) {
            n++;
            blocked = 0;
        } else {
            usleep(20000);
            blocked++;
        }
    }
    say(VAULT_PRINT, &payload, -1);
    assert_int_equal(hear(), VAULT_PRINTED);
    for (uint32_t answered = 0; answered < n; ) {
        static uint8_t in[VAULT_RECEIVE_ROOM];
        struct frame f;
        struct wire_in w;
        assert_true(readable(fd, 60000));
        if (packet_receive(fd, in, sizeof(in), &f, NULL, 0) != 1)
            fail_msg("the edge ended after %u of %u answers", answered, n);
        if (f.type == VAULT_ANNOUNCE || f.type == VAULT_ANNOUNCED)
            continue;
        assert_int_equal(f.type, VAULT_CERTIFIED);
        w = wire_in_of(f.payload, f.length);
        assert_int_equal(wire_be32(&w), ++answered);
    }
}

/* A vault that goes away refuses whoever waits, and whoever comes. */
static void
vault_ends(void **state)
{
    struct binding_request r = request("api.example.org", "/v1/x");
    struct answer a = { 0 };
    struct err err = ERR_INIT;
    struct vault_client *c;

    (void)state;
    start("key");
    c = open_edge();
    kill(run.pid, SIGSTOP);
    assert_int_not_equal(vault_ask_lease(c, &r, 1, on_lease, &a, NULL), 0);
    kill(run.pid, SIGKILL);
    finish();
    run.fd = -1;
    wait_answer(c, &a);
    assert_int_equal(a.calls, 1);
    assert_string_equal(a.code, "vault.ended");
    assert_int_equal(vault_client_fd(c), -1);
    assert_int_equal(vault_ask_lease(c, &r, 1, on_lease, &a, &err), 0);
    assert_string_equal(err.code, "vault.ended");
    vault_client_free(c);
}

/* --- what is left to the process ----------------------------------------------------------------------------------- */

static void try_open(void) { (void)open("/etc/passwd", O_RDONLY | O_CLOEXEC); }
static void try_create(void) { (void)open("/tmp/x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }
static void try_inet(void) { (void)socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_unix(void) { (void)socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static void try_pair(void) { int p[2]; (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p); }
static void try_fork(void) { (void)fork(); }
static void try_exec(void) { (void)execl("/bin/true", "true", NULL); }
static void try_kill(void) { (void)kill(getppid(), 0); }
static void try_dumpable(void) { (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static void try_unlink(void) { (void)unlink("/tmp/x"); }
static void try_chdir(void) { (void)!chdir("/"); }

static void
confined(void **state)
{
    static void (*const attempts[])(void) = { try_open, try_create, try_inet, try_unix, try_pair, try_fork, try_exec, try_kill,
                                              try_dumpable, try_unlink, try_chdir };

    (void)state;
#if defined(CLOCHE_SANITIZED)
    skip();     /* then there is no filter */
#endif
    attack(vault_confine, attempts, ARRAY_LEN(attempts));
}

static int
group_begin(void **state)
{
    (void)state;
    if (mkdtemp(root) == NULL || setenv("XDG_DATA_HOME", root, 1) < 0 || secret_memory_init(NULL) < 0)
        return -1;
    put("key", VALUE, "host api.example.org\nplace header x-api-key\npath /v1/**\n");
    put("aws", "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY:IQoJb3JpZ2luX2VjEXAMPLETOKEN0",
        "host **.example.org\nplace sigv4\nregion eu-west-1\n");
    return 0;
}

static int
group_end(void **state)
{
    static const char *const names[] = { "secrets", "secrets.key", "secrets.lock", "ca.pem", "" };
    char path[256];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/cloche/%s", root, names[i]);
        if (names[i][0] != '\0' ? unlink(path) < 0 : rmdir(path) < 0)
            return -1;
    }
    return rmdir(root);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(leases), WITH(forgotten), WITH(revocation), WITH(leaves), WITH(signatures), WITH(supervisor_table),
        WITH(egress_table), WITH(an_answer_that_waits), WITH(vault_ends), cmocka_unit_test(confined),
    };

    return cmocka_run_group_tests(tests, group_begin, group_end);
}
