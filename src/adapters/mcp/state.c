/* adapters/mcp/state.c: what a client keeps for us between two rounds of one call (see message.h)
 *
 * It comes back from whoever holds it, so nothing that it says is believed by itself: EXPIRES.ABOUT.MAC in text, the
 * MAC over what it says, whose it was and what exactly was called. HMAC-SHA256 (RFC 2104).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/str.h"
#include "adapters/mcp/message.h"

#define BLOCK 64

static void
hmac(const uint8_t key[MCP_KEY], const void *p, size_t n, uint8_t out[SHA256_SIZE])
{
    uint8_t pad[BLOCK];
    struct sha256 h;

    for (size_t i = 0; i < BLOCK; i++)
        pad[i] = (uint8_t)((i < MCP_KEY ? key[i] : 0) ^ 0x36);
    sha256_init(&h);
    sha256_add(&h, pad, BLOCK);
    sha256_add(&h, p, n);
    sha256_end(&h, out);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    sha256_init(&h);
    sha256_add(&h, pad, BLOCK);
    sha256_add(&h, out, SHA256_SIZE);
    sha256_end(&h, out);
    explicit_bzero(pad, sizeof(pad));
}

bool
mcp_call_digest(const char *method, const char *name, const json_t *args, uint8_t out[SHA256_SIZE])
{
    cleanup_free char *text = args != NULL ? json_dumps(args, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    struct sha256 h;

    if (args != NULL && text == NULL)
        return false;
    sha256_init(&h);
    sha256_add(&h, method, strlen(method) + 1);
    sha256_add(&h, name, strlen(name) + 1);
    if (text != NULL)
        sha256_add(&h, text, strlen(text));
    sha256_end(&h, out);
    return true;
}

static void
mac_text(const uint8_t key[MCP_KEY], const struct mcp_state *s, const char *said, char out[SHA256_TEXT + 1])
{
    uint8_t mac[SHA256_SIZE], whole[4 + SHA256_SIZE + MCP_STATE_MAX];
    size_t n = strlen(said);

    for (int i = 0; i < 4; i++)
        whole[i] = (uint8_t)(s->who >> (24 - 8 * i));
    memcpy(whole + 4, s->digest, SHA256_SIZE);
    memcpy(whole + 4 + SHA256_SIZE, said, n);
    hmac(key, whole, 4 + SHA256_SIZE + n, mac);
    sha256_text(mac, out);
}

void
mcp_state_make(const uint8_t key[MCP_KEY], const struct mcp_state *s, char out[MCP_STATE_MAX + 1])
{
    char mac[SHA256_TEXT + 1], said[MCP_ABOUT_MAX + 32];

    snprintf(said, sizeof(said), "%llu.%.*s", (unsigned long long)s->expires_ms, MCP_ABOUT_MAX, s->about);
    mac_text(key, s, said, mac);
    snprintf(out, MCP_STATE_MAX + 1, "%s.%s", said, mac);
}

bool
mcp_state_check(const uint8_t key[MCP_KEY], const char *text, uint64_t now_ms, struct mcp_state *s)
{
    const char *first = strchr(text, '.'), *last = strrchr(text, '.');
    char mac[SHA256_TEXT + 1], said[MCP_ABOUT_MAX + 32];
    bool ours;
    size_t n;

    if (first == NULL || last == first || strlen(last + 1) != SHA256_TEXT || (size_t)(last - text) >= sizeof(said) ||
        (size_t)(last - first) - 1 > MCP_ABOUT_MAX ||
        !str_parse_u64((struct str){ text, (size_t)(first - text) }, UINT64_MAX, &s->expires_ms))
        return false;
    n = (size_t)(last - text);
    memcpy(said, text, n);
    said[n] = '\0';
    mac_text(key, s, said, mac);
    ours = mem_same(mac, last + 1, SHA256_TEXT);
    n = (size_t)(last - first) - 1;
    memcpy(s->about, first + 1, n);
    s->about[n] = '\0';
    return ours && now_ms < s->expires_ms;
}
