/* vault/client: whatever the vault's end says, the client's callbacks come once for a question, with what fits the
 * announced placeholders, and the dialogue ends in order
 *
 * Input: messages, each a be16 length and that many bytes, the frame's header included.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vault/client.h"
#include "vault/wire.h"

static const struct vault_secret *secrets;
static size_t n_secrets;
static int calls[3];

static void
on_lease(void *ctx, struct vault_lease *lease, const struct err *why)
{
    (void)ctx;
    calls[0]++;
    FUZZ_ASSERT((lease == NULL) == (why != NULL));
    for (size_t i = 0; lease != NULL && i < VAULT_SECRETS_MAX; i++) {
        FUZZ_ASSERT((lease->value[i] != NULL) == ((lease->search >> i & 1) != 0));
        FUZZ_ASSERT(lease->value[i] == NULL || (i < n_secrets && lease->value[i] >= lease->memory &&
                                                lease->value[i] + secrets[i].n <= lease->memory + lease->size));
    }
    vault_lease_free(lease);
}

static void
on_leaf(void *ctx, const struct vault_leaf *leaf, const struct err *why)
{
    (void)ctx;
    calls[1]++;
    FUZZ_ASSERT((leaf == NULL) == (why != NULL));
}

static void
on_signature(void *ctx, const char *authorization, const struct err *why)
{
    (void)ctx;
    calls[2]++;
    FUZZ_ASSERT((authorization == NULL) == (why != NULL));
    FUZZ_ASSERT(authorization == NULL || strlen(authorization) <= VAULT_AUTHORIZATION_MAX);
}

static void
put(int fd, const uint8_t **data, size_t *n, size_t most)
{
    while (*n >= 2 && most-- > 0) {
        size_t length = (size_t)(*data)[0] << 8 | (*data)[1];
        length = length > *n - 2 ? *n - 2 : length;
        if (send(fd, *data + 2, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            return;
        *data += 2 + length;
        *n -= 2 + length;
    }
}

static void
talk(int theirs, struct vault_client *c, const uint8_t *data, size_t n)
{
    static const uint8_t hash[32];
    struct binding_request r = { .tls = true, .port = 443, .method = STR_LIT("GET"), .path = STR_LIT("/") };
    const struct vault_to_sign what = { STR_LIT("20260102T030405Z"), STR_LIT("r"), STR_LIT("s"), STR_LIT("host"),
                                        hash };

    secrets = vault_client_secrets(c, &n_secrets);
    FUZZ_ASSERT(n_secrets <= VAULT_SECRETS_MAX);
    FUZZ_ASSERT(host_canonical(STR_LIT("a.example"), &r.host) == HOST_OK);
    FUZZ_ASSERT(vault_ask_lease(c, &r, 3, on_lease, NULL, NULL) == 1);
    FUZZ_ASSERT(vault_ask_leaf(c, &r.host, on_leaf, NULL, NULL) == 2);
    FUZZ_ASSERT(vault_ask_signature(c, &r, 0, &what, on_signature, NULL, NULL) == 3);
    put(theirs, &data, &n, 64);
    shutdown(theirs, SHUT_WR);
    while (vault_client_fd(c) >= 0)
        (void)vault_client_ready(c, NULL);
    vault_client_free(c);
    for (size_t i = 0; i < 3; i++)
        FUZZ_ASSERT(calls[i] == 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct vault_client_events events = { .revoked = NULL };
    struct vault_client *c;
    int pair[2];
    size_t most = n > 0 ? data[0] % 20 : 0;

    memset(calls, 0, sizeof(calls));
    FUZZ_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    if (n > 0) {
        data++;
        n--;
    }
    put(pair[1], &data, &n, most);
    /* the introduction is over, or the peer is: it never waits */
    if (most % 2 == 0)
        shutdown(pair[1], SHUT_WR);
    else
        (void)send(pair[1], "\x21\0\0\0\0\0\0\0", 8, MSG_NOSIGNAL);
    c = vault_client_new(pair[0], &events, NULL);
    if (c != NULL)
        talk(pair[1], c, data, n);
    close(pair[1]);
    return 0;
}
