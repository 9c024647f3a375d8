/* launcher/launcher_otlp.c: cloche-otlp, which tells a collector what the daemon did, where one is configured
 *
 * It outlives a warden: each new source, and all of them when it is itself a new one, get a socket to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/memfile.h"
#include "launcher/launcher.h"
#include "proto/edge_export.h"

#define DELAY_MS 5000

static const char *
variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && strlen(value) <= SERVE_OTLP_PAIRS ? value : "";
}

/* How long a span may wait for others. */
static uint64_t
delay_ms(void)
{
    uint64_t ms;

    return str_parse_u64(str_of(variable("OTEL_BSP_SCHEDULE_DELAY")), 3600000, &ms) && ms > 0 ? ms : DELAY_MS;
}

/* A file without a name, like a webhook's: a header may be a credential. -1 with errno. */
static int
settings_file(const struct serve_plan *plan)
{
    cleanup_buf struct buf b = BUF_INIT(2 * SERVE_URL_MAX + PATH_MAX + SERVE_OTLP_HEADERS + 3 * SERVE_OTLP_PAIRS + 128);
    int fd;

    wire_put_cstr(&b, plan->otlp_traces, SERVE_URL_MAX);
    wire_put_cstr(&b, plan->otlp_metrics, SERVE_URL_MAX);
    wire_put_cstr(&b, plan->otlp_ca, PATH_MAX);
    buf_put_be64(&b, plan->otlp_s * 1000);
    buf_put_be64(&b, delay_ms());
    packet_put_bytes(&b, plan->otlp_lines.p, plan->otlp_lines.n);
    wire_put_cstr(&b, variable("OTEL_EXPORTER_OTLP_HEADERS"), SERVE_OTLP_PAIRS);
    wire_put_cstr(&b, variable("OTEL_SERVICE_NAME"), SERVE_OTLP_PAIRS);
    wire_put_cstr(&b, variable("OTEL_RESOURCE_ATTRIBUTES"), SERVE_OTLP_PAIRS);
    fd = buf_ok(&b) ? memfile_sealed("cloche-otlp", false, b.p, b.n) : -1;
    if (b.n > 0)
        explicit_bzero(b.p, b.n);
    return fd;
}

bool
otlp_wanted(const struct serve_plan *plan)
{
    return plan->otlp_traces[0] != '\0' || plan->otlp_metrics[0] != '\0';
}

/* A new one. */
static int
make(struct launcher *l, struct err *err)
{
    char name[] = "cloche-otlp", *argv[] = { name, NULL };
    cleanup_close int settings = settings_file(l->plan);

    if (settings < 0)
        return err_sys(err, errno, "serve.start", "the exporter's settings");
    close_fd(&l->otlp_edge);
    l->otlp_edge = lesser_make(l, LESSER_OTLP, argv, settings, err);
    if (l->otlp_edge < 0)
        return -1;
    if (io_set_nonblock(l->otlp_edge, true) == 0)
        return 0;
    err_sys(err, errno, "serve.start", "the exporter");
    close_fd(&l->otlp_edge);
    lesser_end(l, LESSER_OTLP);
    return -1;
}

/* What does not work here costs nothing but what would be told. */
void
otlp_source(struct launcher *l, enum export_source source)
{
    const struct launch_export m = { .every_s = l->plan->otlp_metrics[0] != '\0' ? (uint32_t)l->plan->otlp_every_s : 0,
                                     .commands = l->plan->otlp_commands == 1 };
    const struct export_from from = { .source = source };
    struct front_end *front = source == EXPORT_WARDEN ? NULL
                              : &l->fronts[source == EXPORT_OWNER ? FRONT_OWNER : FRONT_STRANGERS];
    cleanup_close int theirs = -1;
    int pair[2];

    if (l->lessers[LESSER_OTLP].pid <= 0 || launcher_pair(pair, NULL) < 0)
        return;
    theirs = pair[0];
    if (proto_send(l->otlp_edge, EDGE_EXPORT_FROM, EDGE_EXPORT_FROM_SHAPE(), &from, theirs) < 0)
        close(pair[1]);
    else if (front == NULL)
        (void)launcher_send(l, EDGE_EXPORT, EDGE_EXPORT_SHAPE(), &m, pair[1]);
    else
        (void)launcher_queue(l, &front->door, &front->out, EDGE_EXPORT, EDGE_EXPORT_SHAPE(), &m, pair[1]);
}

int
start_otlp(struct launcher *l, struct err *err)
{
    const bool there = l->lessers[LESSER_OTLP].pid > 0;

    if (!otlp_wanted(l->plan))
        return 0;
    if (!there && make(l, err) < 0)
        return -1;
    if (l->warden.fd >= 0)
        otlp_source(l, EXPORT_WARDEN);
    for (enum which_front which = 0; which < FRONTS && !there; which++)
        if (l->fronts[which].door.fd >= 0)
            otlp_source(l, which == FRONT_OWNER ? EXPORT_OWNER : EXPORT_STRANGERS);
    return 0;
}
