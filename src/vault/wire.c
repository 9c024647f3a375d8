/* vault/wire.c: see wire.h */
#include "vault/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int
vault_put_bytes(struct buf *b, const void *p, size_t n)
{
    if (n > UINT32_MAX)
        return -1;
    buf_put_be32(b, (uint32_t)n);
    return n > 0 ? buf_append(b, p, n) : buf_ok(b) ? 0 : -1;
}

const uint8_t *
vault_get_bytes(struct wire_in *in, size_t max, size_t *n)
{
    uint32_t length = wire_be32(in);

    *n = 0;
    if (in->bad || length > max) {
        in->bad = true;
        return NULL;
    }
    *n = length;
    return wire_bytes(in, length);
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
    union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct iovec iov = { .iov_base = frame->p, .iov_len = frame->n };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    ssize_t n;

    if (!buf_ok(frame)) {
        errno = EMSGSIZE;
        return -1;
    }
    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
    }
    do
        n = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)frame->n ? 0 : -1;
}

/* The one descriptor of @m, if it has one and only one; all others are closed. musl's CMSG_NXTHDR mixes signs. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static int
passed(struct msghdr *m, bool *more)
{
    int found = -1;

    *more = (m->msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
                       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (found < 0) {
                found = fd;
            } else {
                *more = true;
                close(fd);
            }
        }
    }
    return found;
}
#pragma GCC diagnostic pop

int
vault_receive(int socket, uint8_t *p, struct frame *f, int *fd, int flags)
{
    union { struct cmsghdr h; char room[CMSG_SPACE(4 * sizeof(int))]; } control;
    struct iovec iov = { .iov_base = p, .iov_len = VAULT_RECEIVE_ROOM };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
                        .msg_controllen = sizeof(control.room) };
    bool more;
    ssize_t n;
    int got;

    if (fd != NULL)
        *fd = -1;
    do
        n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return (int)n;
    got = passed(&m, &more);
    if (more || (got >= 0 && fd == NULL) || (m.msg_flags & MSG_TRUNC) || !frame_header_decode(p, (size_t)n, f) ||
        (size_t)n != (size_t)FRAME_HEADER + f->length) {
        if (got >= 0)
            close(got);
        errno = EPROTO;
        return -1;
    }
    f->payload = p + FRAME_HEADER;
    if (fd != NULL)
        *fd = got;
    return 1;
}

int
vault_put_err(struct buf *b, const struct err *err)
{
    buf_put_u8(b, (uint8_t)err->kind);
    buf_put_be32(b, (uint32_t)err->sys_errno);
    wire_put_cstr(b, err->code, 64);
    wire_put_cstr(b, err->msg, ERR_MSG_MAX);
    return wire_put_cstr(b, err->hint, ERR_HINT_MAX);
}

bool
vault_get_err(struct wire_in *in, struct err *err)
{
    uint8_t kind = wire_u8(in);
    uint32_t number = wire_be32(in);
    const char *code = wire_cstr(in, 64, NULL), *msg = wire_cstr(in, ERR_MSG_MAX, NULL);
    const char *hint = wire_cstr(in, ERR_HINT_MAX, NULL);

    if (!wire_done(in) || kind == ERR_NONE || kind > ERR_DENIED || number > 4095)
        return false;
    err_set(err, (enum err_kind)kind, vault_code(code), "%s", msg);
    if (err != NULL)
        err->sys_errno = (int)number;
    err_hint(err, "%s", hint);
    return true;
}

const char *
vault_code(const char *text)
{
    static const char *const codes[] = {
        "vault.ended", "vault.revoked", "vault.expired", "vault.not-bound", "vault.date", "vault.name",
        "vault.unknown", "vault.unbound", "vault.bound-already", "vault.too-many", "vault.memory", "vault.crypto",
        "vault.store.corrupt", "vault.binding.unknown", "vault.binding.other", "vault.binding.no-host", "vault.env",
        "vault.value", "vault.value.lines", "vault.store.version", "vault.store.where", "vault.store.owner",
        "vault.store.mode", "vault.store.file", "vault.store.lock", "vault.store.write", "vault.store.full",
        "vault.key.missing", "vault.key.damaged", "vault.ca.damaged", "vault.ca.expired", "vault.random",
        "service.rights", "service.filter", "memory",
    };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(codes[i], text) == 0)
            return codes[i];
    return "vault.refused";
}
