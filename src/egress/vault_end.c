/* egress/vault_end.c: see vault_end.h */
#include "egress/vault_end.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "egress/tls_end.h"
#include "vault/client.h"

static void
on_revoked(void *ctx, uint32_t mask)
{
    conn_revoked(ctx, mask);
}

static void
on_vault(struct watch *w, uint32_t events)
{
    struct egress *e = w->owner;
    struct err err = ERR_INIT;

    (void)events;
    /* without it nothing is opened any more, and what asks it is refused; the descriptor is already closed */
    if (vault_client_ready(e->vault, &err) < 0)
        *w = (struct watch)WATCH_INIT;
}

int
vault_end_open(struct egress *e, int fd, const char *const *extra, size_t n, struct err *err)
{
    const struct vault_client_events events = { .ctx = e, .revoked = on_revoked };

    e->vault_watch = (struct watch)WATCH_INIT;
    e->tls = tls_ctx_new(err);
    if (e->tls == NULL) {
        close(fd);
        return -1;
    }
    e->vault = vault_client_new(fd, &events, err);
    if (e->vault == NULL || tls_trust_system(e->tls, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (tls_trust_file(e->tls, extra[i], err) < 0)
            return -1;
    e->vault_watch = (struct watch){ .fd = vault_client_fd(e->vault), .owner = e, .ready = on_vault };
    return loop_watch(&e->loop, &e->vault_watch, EPOLLIN) < 0 || loop_first(&e->loop, &e->vault_watch) < 0
               ? err_sys(err, errno, "egress.vault", "descriptor %d", fd) : 0;
}

void
vault_end_close(struct egress *e)
{
    vault_client_free(e->vault);
    tls_ctx_free(e->tls);
    e->vault = NULL;
    e->tls = NULL;
}
