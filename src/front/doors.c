/* front/doors.c: what the launcher says of the doors, and who is let through them
 *
 * Host and Origin are judged before anything else of a request. A connection that waits for its client is in a list,
 * the longest-waiting first: it is closed when its time is over, or when there is no room for another one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "front/front.h"
#include "front/preview_rules.h"

/* --- settings ----------------------------------------------------------------------------------------------------- */

static bool
read_names(const struct launch_settings *m, struct front_doors *d)
{
    for (; d->n_hosts < m->n_hosts; d->n_hosts++)
        if (host_pattern_cloche(str_of(m->hosts[d->n_hosts]), &d->hosts[d->n_hosts]) != HOST_OK)
            return false;
    for (; d->n_origins < m->n_origins; d->n_origins++)
        if (!door_origin(str_of(m->origins[d->n_origins]), &d->origins[d->n_origins]))
            return false;
    memcpy(d->base, m->base, strlen(m->base) + 1);
    return true;
}

int
doors_say(struct front *f, uint8_t type, const struct err *err)
{
    if (err == NULL)
        return proto_send(f->door.fd, type, &nothing_shape, NULL, -1);
    return proto_send(f->door.fd, type, &edge_why_shape, &(struct edge_why){ .why = *err }, -1);
}

int
doors_settings(struct front *f, const struct frame *message, int pem)
{
    static struct front_doors new;
    struct wire_in in = wire_in_of(message->payload, message->length);
    struct launch_settings m;
    struct err err = ERR_INIT;

    if (!launch_settings_get(&in, &m))
        return -1;
    new = (struct front_doors){ .any_address = (m.flags & EDGE_ANY_ADDRESS) != 0, .rate = m.rate,
                                .client_ms = (uint64_t)m.client_s * 1000 };
    if (!read_names(&m, &new) || f->tls != (m.cert > 0 && m.key > 0 && pem >= 0))
        return -1;
    if (f->tls && tls_take(pem, m.cert, m.key, &err) < 0)
        return doors_say(f, EDGE_UNSETTLED, &err);
    f->doors = new;
    doors_expire(&f->idle);
    return doors_say(f, EDGE_SETTLED, NULL);
}

/* --- where a request came to, and from ---------------------------------------------------------------------------- */

static enum MHD_Result
on_header(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value, size_t size)
{
    struct header *h = ctx;

    (void)kind;
    if (name_size == strlen(h->name) && strncasecmp(name, h->name, name_size) == 0) {
        h->n++;
        h->value = value != NULL ? value : "";
        h->size = value != NULL ? size : 0;
    }
    return MHD_YES;
}

struct header
header_of(const struct request *r, const char *name)
{
    struct header h = { .name = name };

    (void)MHD_get_connection_values_n(r->c, MHD_HEADER_KIND, on_header, &h);
    /* blanks around a value are none of it (RFC 9110, 5.5), and the library leaves those behind */
    while (h.size > 0 && (h.value[h.size - 1] == ' ' || h.value[h.size - 1] == '\t'))
        h.size--;
    return h;
}

static void
doors_refuse(struct request *r, const char *code, const char *why)
{
    r->early = MHD_HTTP_FORBIDDEN;
    r->early_code = code;
    r->early_why = why;
}

void
doors_judge(struct request *r)
{
    const struct front_doors *d = &r->f->doors;
    struct header host = header_of(r, MHD_HTTP_HEADER_HOST), origin = header_of(r, MHD_HTTP_HEADER_ORIGIN);
    struct str at = { host.value, host.size };
    char capability[EDGE_CAPABILITY + 1];
    struct door_origin said, own;

    /* a preview of its own name is one of ours if what that is made of is */
    if (r->host_form)
        (void)preview_host(at, capability, &at);
    /* a client of a unix socket writes anything there */
    if (r->f->strangers &&
        (host.n != 1 || !door_host(at, r->f->tls ? 443 : 80, d->hosts, d->n_hosts, d->any_address)))
        return doors_refuse(r, "http.host", "this server has no such name (Host)");
    if (origin.n == 0 || (r->route != NULL && r->route->foreign))
        return;
    if (origin.n > 1 || !door_origin((struct str){ origin.value, origin.size }, &said))
        return doors_refuse(r, "http.origin", "the request comes from a page that may not ask here (Origin)");
    if (r->f->strangers && door_origin_of_host(at, r->f->tls, &own) && door_origin_eq(&said, &own))
        return;
    for (size_t i = 0; i < d->n_origins; i++)
        if (door_origin_eq(&said, &d->origins[i])) {
            r->shared = true;
            return;
        }
    doors_refuse(r, "http.origin", "the request comes from a page that may not ask here (Origin)");
}

bool
doors_own_page(struct request *r)
{
    struct header host = header_of(r, MHD_HTTP_HEADER_HOST), origin = header_of(r, MHD_HTTP_HEADER_ORIGIN);
    struct header site = header_of(r, "Sec-Fetch-Site");     /* W3C Fetch Metadata */
    struct door_origin said, own;

    if (site.n > 0 && (site.n > 1 || site.size != 11 || memcmp(site.value, "same-origin", 11) != 0))
        return false;
    return origin.n == 0 ||
           (origin.n == 1 && host.n == 1 && door_origin((struct str){ origin.value, origin.size }, &said) &&
            door_origin_of_host((struct str){ host.value, host.size }, r->f->tls, &own) &&
            door_origin_eq(&said, &own));
}

const char *
doors_hint(const char *code)
{
    return strcmp(code, "http.host") == 0 ? "allowed-hosts in the daemon's configuration lists other names"
           : strcmp(code, "http.origin") == 0 ? "allowed-origins in the daemon's configuration lists such pages"
           : strcmp(code, "e2b.not-offered") == 0 ? "docs/e2b.md says what is offered, and what to use instead"
           : strcmp(code, "http.encoding") == 0 ? "send it as it is, without gzip or the like"
                                                : "docs/openapi.yaml lists the routes";
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static void
list_add(struct front *f, struct link *k)
{
    if (k->listed)
        return;
    k->listed = true;
    k->since_ms = clock_ms();
    k->next = NULL;
    k->prev = f->idle_last;
    *(f->idle_last != NULL ? &f->idle_last->next : &f->idle_first) = k;
    f->idle_last = k;
    if (f->idle.at_ms == 0)
        loop_at(&f->loop, &f->idle, k->since_ms + f->doors.client_ms);
}

static void
list_remove(struct front *f, struct link *k)
{
    if (!k->listed)
        return;
    k->listed = false;
    *(k->prev != NULL ? &k->prev->next : &f->idle_first) = k->next;
    *(k->next != NULL ? &k->next->prev : &f->idle_last) = k->prev;
}

/* The library finds it closed in its next round, and says so. */
static void
cut(struct front *f, struct link *k)
{
    list_remove(f, k);
    (void)shutdown(k->fd, SHUT_RDWR);
}

static void
on_peer(const struct sockaddr *from, struct ip *out)
{
    if (from->sa_family == AF_INET) {
        out->family = 4;
        memcpy(out->b, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        out->family = 6;
        memcpy(out->b, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    }
}

void
doors_notify(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_ConnectionNotificationCode what)
{
    struct front *f = ctx;
    struct link *k = *slot;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        f->n_links++;
        metrics_connection(f);
        *slot = k = calloc(1, sizeof(*k));
        if (k == NULL || fd == NULL)
            return;
        k->fd = fd->connect_fd;
        k->framing = framing_begin(k->fd);
        if (from != NULL && from->client_addr != NULL)
            on_peer(from->client_addr, &k->peer);
        list_add(f, k);
        return;
    }
    f->n_links--;
    *slot = NULL;
    if (k == NULL)
        return;
    list_remove(f, k);
    framing_end(k->framing);
    if (k->unread)
        linger_begin(f, k->fd);
    free(k);
}

struct link *
doors_link(struct request *r)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

void
doors_busy(struct request *r, bool busy)
{
    struct link *k = doors_link(r);

    if (k == NULL)
        return;
    list_remove(r->f, k);
    if (!busy)
        list_add(r->f, k);      /* from now on */
}

int
doors_connection(struct front *f, const struct frame *message, int fd)
{
    struct wire_in in = wire_in_of(message->payload, message->length);
    struct launch_connection m;
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    const struct sockaddr_un un = { .sun_family = AF_UNIX };

    if (!launch_connection_get(&in, &m) || fd == -1 || (m.family != 0) != f->strangers || f->doors.client_ms == 0) {
        close_fd(&fd);
        return -1;
    }
    if (fd == PACKET_FULL) {    /* it is closed */
        log_say(LEVEL_WARN, "a connection was refused: too many open files");
        return 0;
    }
    if (f->n_links >= f->max_links && f->idle_first != NULL)
        cut(f, f->idle_first);
    memcpy(&v4.sin_addr, m.address, 4);
    memcpy(&v6.sin6_addr, m.address, 16);
    if ((m.family == 4 ? http_connection(f, fd, (const struct sockaddr *)&v4, sizeof(v4))
         : m.family == 6 ? http_connection(f, fd, (const struct sockaddr *)&v6, sizeof(v6))
         : http_connection(f, fd, (const struct sockaddr *)&un, sizeof(sa_family_t))) < 0)
        log_say(LEVEL_WARN, "a connection was refused: too many");
    return 0;
}

void
doors_expire(struct timer *t)
{
    struct front *f = t->owner;
    uint64_t now = clock_ms();

    while (f->idle_first != NULL && clock_since(now, f->idle_first->since_ms) >= f->doors.client_ms)
        cut(f, f->idle_first);
    if (f->idle_first != NULL)
        loop_at(&f->loop, t, f->idle_first->since_ms + f->doors.client_ms);
}
