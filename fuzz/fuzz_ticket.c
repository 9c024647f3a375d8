/* warden/ticket.c, edge_attach_keys_well: no text that was not signed is a ticket, and no line beside a key is a key
 *
 * Input: the first byte chooses. 0: text that may be a ticket. 1: what a ticket says, which is signed and read again.
 * Else: two keys with a NUL between.
 */
#include "fuzz.h"

#include <string.h>

#include "base/str.h"
#include "warden/ticket.h"

static const uint8_t key[SHA256_SIZE] = { 7 };

static void
as_text(const uint8_t *data, size_t n)
{
    char text[EDGE_TICKET_MAX + 1] = "", again[EDGE_TICKET_MAX + 1];
    struct ticket t;

    memcpy(text, data, n < EDGE_TICKET_MAX ? n : EDGE_TICKET_MAX);
    if (!ticket_read(key, text, &t))
        return;
    /* the key is known here: a seed is signed, and comes out as it went in but for the case of its digits */
    FUZZ_ASSERT(ticket_write(key, &t, again) == 0 && strcasecmp(text, again) == 0);
}

static void
as_said(const uint8_t *data, size_t n)
{
    struct ticket t = { .seconds = 1 }, read;
    char text[EDGE_TICKET_MAX + 1];
    char *const ids[] = { t.id, t.box, t.person, t.workspace };

    for (size_t i = 0; i < 4; i++)
        if (n >= (i + 1) * 16)
            str_hex(data + i * 16, 16, ids[i]);
    t.writes = n > 0 && (data[n - 1] & 1) != 0;
    t.screen = n > 0 && (data[n - 1] & 2) != 0;
    FUZZ_ASSERT(ticket_write(key, &t, text) == 0 && ticket_read(key, text, &read) && read.writes == t.writes);
    FUZZ_ASSERT(read.screen == t.screen);
    text[20 + n % 200] ^= 1;
    FUZZ_ASSERT(!ticket_read(key, text, &read));
}

static void
as_keys(const uint8_t *data, size_t n)
{
    char host[2048] = "", user[2048] = "";
    const uint8_t *nul = memchr(data, 0, n);
    size_t at = nul != NULL ? (size_t)(nul - data) : n;

    memcpy(host, data, at < sizeof(host) ? at : sizeof(host) - 1);
    if (nul != NULL)
        memcpy(user, nul + 1, n - at - 1 < sizeof(user) ? n - at - 1 : sizeof(user) - 1);
    if (!edge_attach_keys_well(host, user))
        return;
    FUZZ_ASSERT(strncmp(user, "ssh-ed25519 ", 12) == 0 && strpbrk(user + 12, " \n\r\t\"\\,") == NULL);
    FUZZ_ASSERT(strncmp(host, "-----BEGIN OPENSSH PRIVATE KEY-----\n", 36) == 0);
    FUZZ_ASSERT(strstr(host, "ssh-") == NULL && host[strlen(host) - 1] == '\n');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] == 0)
        as_text(data + 1, n - 1);
    else if (data[0] == 1)
        as_said(data + 1, n - 1);
    else
        as_keys(data + 1, n - 1);
    return 0;
}
