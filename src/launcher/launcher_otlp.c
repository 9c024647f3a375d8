/* launcher/launcher_otlp.c: cloche-otlp, which tells a collector what the daemon did, where one is configured
 *
 * Like cloche-webhook it is one of those that the daemon can be without. It outlives a warden: each new source, and all
 * of them when it is itself a new one, get a socket to it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memfile.h"
#include "launcher/launcher.h"
#include "proto/edge_export.h"

#define END_MS   1500   /* it takes a second for what waits */
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

int
start_otlp(struct launcher *l, struct err *err)
{
    char name[] = "cloche-otlp", *argv[] = { name, NULL };
    cleanup_close int theirs = -1, settings = -1;
    int pair[2];

    if (!otlp_wanted(l->plan) || l->otlp > 0)
        return 0;
    settings = settings_file(l->plan);
    if (settings < 0 || launcher_pair(pair, NULL) < 0)
        return err_sys(err, errno, "serve.start", "the exporter's settings");
    theirs = pair[1];
    if (io_set_nonblock(pair[0], true) == 0)
        l->otlp = launcher_make(l, &(struct maker_order){
            .program = MAKE_OTLP, .words = argv, .log = l->log, .fds = { theirs, settings }, .n_fds = 2 }, err);
    if (l->otlp <= 0) {
        l->otlp = 0;
        close(pair[0]);
        return -1;
    }
    l->otlp_edge = pair[0];
    return 0;
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

    if (l->otlp <= 0 || launcher_pair(pair, NULL) < 0)
        return;
    theirs = pair[0];
    if (proto_send(l->otlp_edge, EDGE_EXPORT_FROM, EDGE_EXPORT_FROM_SHAPE(), &from, theirs) < 0)
        close(pair[1]);
    else if (front == NULL)
        (void)launcher_send(l, EDGE_EXPORT, EDGE_EXPORT_SHAPE(), &m, pair[1]);
    else
        (void)launcher_queue(l, &front->door, &front->out, EDGE_EXPORT, EDGE_EXPORT_SHAPE(), &m, pair[1]);
}

static void
otlp_reap(struct launcher *l)
{
    uint64_t now = clock_ms();
    struct err err = ERR_INIT;
    int status;

    if (l->otlp <= 0 || waitpid(l->otlp, &status, WNOHANG) != l->otlp)
        return;
    l->otlp = 0;
    close_fd(&l->otlp_edge);
    if (l->ending)
        return;
    if (clock_since(now, l->otlp_ms) >= DEATHS_MS) {
        l->otlp_ms = now;
        l->otlp_deaths = 0;
    }
    if (++l->otlp_deaths >= DEATHS_MAX) {
        log_say(LEVEL_ERROR, "cloche-otlp ended %u times within a minute; nothing is exported until cloche serve is "
                "restarted", l->otlp_deaths);
        return;
    }
    log_say(LEVEL_WARN, "cloche-otlp ended; it is started again");
    if (start_otlp(l, &err) < 0) {
        log_say(LEVEL_ERROR, "cloche-otlp is not started again: %s [%s]", err.msg, err.code);
        return;
    }
    if (l->warden.fd >= 0)
        otlp_source(l, EXPORT_WARDEN);
    for (enum which_front which = 0; which < FRONTS; which++)
        if (l->fronts[which].door.fd >= 0)
            otlp_source(l, which == FRONT_OWNER ? EXPORT_OWNER : EXPORT_STRANGERS);
}

void
tellers_reap(struct launcher *l)
{
    lessers_reap(l);
    otlp_reap(l);
}

void
tellers_end(struct launcher *l)
{
    lessers_end(l);
    if (l->otlp <= 0)
        return;
    close_fd(&l->otlp_edge);    /* which it sees */
    end_process(&l->otlp, END_MS);
}
