/* vault/wire.c: see wire.h */
#include "vault/wire.h"

#include <string.h>

#include "wire/packet.h"

int
vault_put_bytes(struct buf *b, const void *p, size_t n)
{
    return packet_put_bytes(b, p, n);
}

const uint8_t *
vault_get_bytes(struct wire_in *in, size_t max, size_t *n)
{
    return packet_get_bytes(in, max, n);
}

int
vault_put_request(struct buf *b, const struct binding_request *r)
{
    buf_put_u8(b, r->tls);
    vault_put_bytes(b, r->host.name, r->host.n);
    buf_put_be16(b, r->port);
    vault_put_bytes(b, r->method.p, r->method.n);
    return vault_put_bytes(b, r->path.p, r->path.n);
}

bool
vault_get_request(struct wire_in *in, struct binding_request *out)
{
    uint8_t tls = wire_u8(in);
    struct str host;

    host.p = (const char *)vault_get_bytes(in, HOST_NAME_MAX_LEN, &host.n);
    out->tls = tls == 1;
    out->port = wire_be16(in);
    out->method.p = (const char *)vault_get_bytes(in, BINDING_WORD_MAX, &out->method.n);
    out->path.p = (const char *)vault_get_bytes(in, VAULT_PATH_MAX, &out->path.n);
    return !in->bad && tls <= 1 && host_canonical(host, &out->host) == HOST_OK;
}

int
vault_send(int socket, const struct buf *frame, int fd)
{
    return packet_send(socket, frame, fd);
}

int
vault_receive(int socket, uint8_t *p, struct frame *f, int *fd, int flags)
{
    return packet_receive(socket, p, VAULT_RECEIVE_ROOM, f, fd, flags);
}
