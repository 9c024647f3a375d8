/* warden/ticket.c: see ticket.h */
#include "warden/ticket.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/frame.h"

#define TICKET_TEXT  "cloche_ticket_"
#define WRITES       0x01
#define SCREEN       0x02
#define BOUND        (EDGE_ID / 2)          /* bytes of an id */
#define TICKET_SAYS  (4 * BOUND + 1 + 8 + 4)
#define TICKET_BYTES (TICKET_SAYS + SHA256_SIZE)
_Static_assert(sizeof(TICKET_TEXT) + 2 * (size_t)TICKET_BYTES <= EDGE_TICKET_MAX, "a ticket as text");

/* "" as zeros */
static void
put_id(struct buf *b, const char *id)
{
    uint8_t bytes[BOUND] = { 0 };

    if (id[0] != '\0')
        (void)str_unhex((struct str){ id, EDGE_ID }, bytes);
    buf_append(b, bytes, sizeof(bytes));
}

static void
get_id(struct wire_in *in, char out[EDGE_ID + 1])
{
    const uint8_t *p = wire_bytes(in, BOUND);

    if (p != NULL)
        str_hex(p, BOUND, out);
    if (p == NULL || strspn(out, "0") == EDGE_ID)
        out[0] = '\0';
}

int
ticket_write(const uint8_t key[SHA256_SIZE], const struct ticket *t, char out[EDGE_TICKET_MAX + 1])
{
    uint8_t room[TICKET_BYTES];
    struct buf b = BUF_INIT_IN(room, sizeof(room));

    put_id(&b, t->id);
    put_id(&b, t->box);
    put_id(&b, t->person);
    put_id(&b, t->workspace);
    buf_put_u8(&b, (uint8_t)((t->writes ? WRITES : 0) | (t->screen ? SCREEN : 0)));
    buf_put_be64(&b, t->until_ms);
    buf_put_be32(&b, t->seconds);
    if (!buf_ok(&b) || b.n != TICKET_SAYS)
        return -1;
    sha256_hmac(key, room, TICKET_SAYS, room + TICKET_SAYS);
    memcpy(out, TICKET_TEXT, sizeof(TICKET_TEXT) - 1);
    str_hex(room, sizeof(room), out + sizeof(TICKET_TEXT) - 1);
    return 0;
}

bool
ticket_read(const uint8_t key[SHA256_SIZE], const char *text, struct ticket *t)
{
    uint8_t room[TICKET_BYTES] = { 0 }, mac[SHA256_SIZE];
    struct wire_in in = wire_in_of(room, TICKET_SAYS);
    const char *at = text + sizeof(TICKET_TEXT) - 1;
    uint8_t how;

    if (strncmp(text, TICKET_TEXT, sizeof(TICKET_TEXT) - 1) != 0 || strlen(at) != 2 * sizeof(room) ||
        !str_unhex(str_of(at), room))
        return false;
    sha256_hmac(key, room, TICKET_SAYS, mac);
    if (!mem_same(mac, room + TICKET_SAYS, sizeof(mac)))
        return false;
    get_id(&in, t->id);
    get_id(&in, t->box);
    get_id(&in, t->person);
    get_id(&in, t->workspace);
    how = wire_u8(&in);
    t->writes = (how & WRITES) != 0;
    t->screen = (how & SCREEN) != 0;
    t->until_ms = wire_be64(&in);
    t->seconds = wire_be32(&in);
    return wire_done(&in);
}
