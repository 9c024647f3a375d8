/* otlp/main.c: cloche-otlp: its settings, its sources, the loop (otlp.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "otlp/otlp.h"
#include "wire/table.h"

#define FD_LAUNCHER  3
#define FD_SETTINGS  4
#define SETTINGS_MAX (2 * HOOK_URL_MAX + EDGE_PATH_MAX + OTLP_HEADERS_MAX + 3 * OTLP_PAIRS_MAX + 256)
#define AT_ONCE      16

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* Of variables that other programs read too: what is malformed in one is said, and the rest counts. */
static void
headers(struct otlp_settings *s, struct str lines, const char *variable)
{
    unsigned line;

    if (!otlp_header_lines(lines, &s->headers, &line))
        log_say(LEVEL_ERROR, "otlp-headers: line %u is no \"NAME: VALUE\"; it and what is below do not count", line);
    if (variable[0] != '\0' && lines.n == 0 && !otlp_header_pairs(str_of(variable), &s->headers))
        log_say(LEVEL_WARN, "$OTEL_EXPORTER_OTLP_HEADERS has something that is no header; it and the rest do not "
                "count");
}

static int
read_settings(struct otlp_settings *s, struct err *err)
{
    static struct buf text = BUF_INIT(SETTINGS_MAX);
    cleanup_close int fd = FD_SETTINGS;
    const char *variable, *attributes;
    struct wire_in in;
    struct str lines;

    if (io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "otlp.settings", "the settings");
    in = wire_in_of(text.p, text.n);
    s->traces = wire_cstr(&in, HOOK_URL_MAX, NULL);
    s->metrics = wire_cstr(&in, HOOK_URL_MAX, NULL);
    s->ca = wire_cstr(&in, EDGE_PATH_MAX, NULL);
    s->timeout_ms = wire_be64(&in);
    s->delay_ms = wire_be64(&in);
    lines.p = (const char *)packet_get_bytes(&in, OTLP_HEADERS_MAX, &lines.n);
    variable = wire_cstr(&in, OTLP_PAIRS_MAX, NULL);
    s->name = wire_cstr(&in, OTLP_PAIRS_MAX, NULL);
    attributes = wire_cstr(&in, OTLP_PAIRS_MAX, NULL);
    if (!wire_done(&in) || s->timeout_ms == 0)
        return err_set(err, ERR_USAGE, "otlp.settings", "the settings are malformed");
    headers(s, lines, variable);
    s->attributes = str_of(attributes);
    return buf_ok(&s->headers) ? 0 : err_set(err, ERR_USAGE, "otlp.settings", "the headers are too long");
}

static int
open_lane(struct lane *l, const char *url, struct err *err)
{
    const struct otlp_settings *s = &l->o->s;
    const char *why;

    l->url.path.p = NULL;
    if (url[0] == '\0')
        return 0;
    if (!hook_url(str_of(url), &l->url, &why))
        return err_set(err, ERR_USAGE, "otlp.settings", "the URL %s", why);
    l->post.url = &l->url;
    l->post.timeout_ms = s->timeout_ms;
    return post_open(&l->post, s->ca, err);
}

static int
start(struct otlp *o, struct err *err)
{
    uint8_t random[16];
    char instance[33];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_sys(err, errno, "otlp.random", "getrandom");
    str_hex(random, sizeof(random), instance);
    if (otlp_resource(&o->resource, o->s.name, o->s.attributes, instance) < 0)
        log_say(LEVEL_WARN, "$OTEL_RESOURCE_ATTRIBUTES has something that is no NAME=VALUE; it and the rest do not "
                "count");
    if (loop_init(&o->loop, err) < 0 || open_lane(&o->traces, o->s.traces, err) < 0 ||
        open_lane(&o->metrics, o->s.metrics, err) < 0)
        return -1;
    o->since_us = clock_wall_us();
    return post_confine(err);
}

/* --- sources ------------------------------------------------------------------------------------------------------ */

static void
on_source(struct watch *w, uint32_t events)
{
    struct otlp_source *s = w->owner;

    (void)events;
    if (otlp_hear(s) < 0) {
        loop_drop(&s->o->loop, w);
        buf_reset(&s->samples);
    }
}

static void
on_from(struct otlp *o, const struct export_from *m, int fd)
{
    struct otlp_source *s = &o->sources[m->source];

    loop_drop(&o->loop, &s->watch);
    buf_reset(&s->samples);
    s->watch = (struct watch){ .fd = fd, .ready = on_source, .owner = s };
    if (loop_watch(&o->loop, &s->watch, EPOLLIN) < 0)
        loop_drop(&o->loop, &s->watch);
}

/* The launcher's end is the daemon's. */
static void
on_launcher(struct watch *w, uint32_t events)
{
    struct otlp *o = w->owner;

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        cleanup_close int fd = -1;
        struct export_from m;
        struct wire_in in;
        struct frame f;
        int r = packet_receive(w->fd, o->in, sizeof(o->in), &f, &fd, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r > 0)
            in = wire_in_of(f.payload, f.length);
        if (r > 0 && f.type == EDGE_EXPORT_FROM && fd >= 0 && export_from_get(&in, &m)) {
            on_from(o, &m, take_fd(&fd));
            continue;
        }
        loop_drop(&o->loop, w);
        o->ending = true;
        o->end_ms = o->loop.now_ms + OTLP_END_MS;
        return;
    }
}

int
main(int argc, char **argv)
{
    static struct otlp o = {
        .s.headers = BUF_INIT(2 * OTLP_HEADERS_MAX),
        .launcher = { .fd = FD_LAUNCHER, .ready = on_launcher, .owner = &o },
        .resource = BUF_INIT(4 * OTLP_PAIRS_MAX), .spans = BUF_INIT(OTLP_SPANS_BYTES),
    };
    struct err err = ERR_INIT;
    int r;

    (void)argv;
    if (argc != 1 || fcntl(FD_LAUNCHER, F_GETFD) < 0 || fcntl(FD_SETTINGS, F_GETFD) < 0) {
        fprintf(stderr, "cloche-otlp is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-otlp");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    for (size_t i = 0; i < EXPORT_SOURCES; i++) {
        o.sources[i] = (struct otlp_source){ .o = &o, .watch = WATCH_INIT, .samples = BUF_INIT(OTLP_BODY_MAX) };
        o.numbers[i] = (struct buf)BUF_INIT(OTLP_BODY_MAX);
    }
    for (size_t i = 0; i < 2; i++) {
        struct lane *l = i == 0 ? &o.traces : &o.metrics;
        *l = (struct lane){ .what = i == 0 ? "spans" : "reports of numbers", .o = &o, .body = BUF_INIT(OTLP_BODY_MAX) };
        l->post = (struct post){ .loop = &o.loop, .server = WATCH_INIT, .whole = true, .done = lane_answered,
                                 .out = BUF_INIT(OTLP_BODY_MAX + 2 * OTLP_HEADERS_MAX + 8192), .owner = l };
    }
    r = read_settings(&o.s, &err) < 0 || start(&o, &err) < 0 ? -1 : loop_watch(&o.loop, &o.launcher, EPOLLIN);
    while (r == 0 && !o.over) {
        r = loop_round(&o.loop, -1, &err) < 0 ? -1 : 0;
        otlp_turn(&o);
    }
    if (r < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
    return r < 0;
}
