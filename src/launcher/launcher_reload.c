/* launcher/launcher_reload.c: the configuration, at the start and anew (SIGHUP)
 *
 * A new one is read and judged whole before anything of it counts. Then those that serve are told; a front may still
 * refuse (a key that is not its certificate's), or the warden (a rule of the gate's), and then all go back to the
 * former one. So they do when the warden ends meanwhile: the next one starts with what is known to be good.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/memfile.h"
#include "launcher/launcher.h"
#include "program/say.h"

/* --- telling ------------------------------------------------------------------------------------------------------ */

/* Certificate and key in a file without a name, which nobody can change any more. -1 with errno. */
static int
sealed(const struct serve_plan *plan)
{
    cleanup_close int fd = memfd_create("cloche-tls", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || io_write_full(fd, plan->cert.p, plan->cert.n) < 0 ||
        io_write_full(fd, plan->key.p, plan->key.n) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0 || memfile_seal(fd) < 0)
        return -1;
    return take_fd(&fd);
}

/* Names that lead to us: what is listened on, and what the configuration adds. */
static void
put_hosts(struct launch_settings *m, char ips[LISTENERS_MAX][IP_TEXT_MAX + 2], const struct launcher *l)
{
    m->hosts[m->n_hosts++] = "localhost";
    for (size_t i = 0; i < l->n_listeners; i++) {
        const struct serve_listen *at = &l->listeners[i].at;
        char ip[IP_TEXT_MAX];
        if (!at->tcp)
            continue;
        if (ip_classify(at->ip) == IP_UNSPECIFIED)
            m->flags |= EDGE_ANY_ADDRESS;
        ip_format(&at->ip, ip);
        snprintf(ips[i], IP_TEXT_MAX + 2, at->ip.family == 6 ? "[%s]" : "%s", ip);
        m->hosts[m->n_hosts++] = ips[i];
    }
    for (size_t i = 0; i < l->plan->n_hosts && m->n_hosts < EDGE_SETTINGS_NAMES; i++)
        m->hosts[m->n_hosts++] = l->plan->hosts[i];
}

/* The first address of ours that a browser on this host can be led to. */
static void
put_base(char text[EDGE_BASE_MAX + 1], const struct launcher *l)
{
    char ip[IP_TEXT_MAX];

    text[0] = '\0';
    for (size_t i = 0; i < l->n_listeners && text[0] == '\0'; i++) {
        const struct serve_listen *at = &l->listeners[i].at;
        if (!at->tcp)
            continue;
        ip_format(&at->ip, ip);
        snprintf(text, EDGE_BASE_MAX + 1, at->ip.family == 6 && ip_classify(at->ip) != IP_UNSPECIFIED ? "%s://[%s]:%u"
                 : "%s://%s:%u", l->plan->cert.n > 0 ? "https" : "http",
                 ip_classify(at->ip) == IP_UNSPECIFIED ? "localhost" : ip, (unsigned)at->port);
    }
}

int
say_languages(struct launcher *l, struct watch *edge, struct packet_queue *out)
{
    const struct runtimes *own = &l->plan->runtimes;

    if (launcher_queue(l, edge, out, EDGE_NO_LANGUAGE, EDGE_NO_LANGUAGE_SHAPE(), NULL, -1) < 0)
        return -1;
    for (size_t i = 0; i < own->n; i++) {
        const struct language *row = &own->rows[i];
        struct launch_language said = { .name = row->name, .alias = row->alias, .file = row->file,
                                        .registry = row->registry, .packages = row->packages };

        while (row->argv[said.n_argv] != NULL) {
            said.argv[said.n_argv] = row->argv[said.n_argv];
            said.n_argv++;
        }
        if (launcher_queue(l, edge, out, EDGE_LANGUAGE, EDGE_LANGUAGE_SHAPE(), &said, -1) < 0)
            return -1;
    }
    return 0;
}

int
settings_say(struct launcher *l, enum which_front which)
{
    const struct serve_plan *plan = l->plan;
    struct front_end *front = &l->fronts[which];
    bool tls = which == FRONT_STRANGERS && plan->cert.n > 0;
    cleanup_close int pem = tls ? sealed(plan) : -1;
    char ips[LISTENERS_MAX][IP_TEXT_MAX + 2], base[EDGE_BASE_MAX + 1];
    struct launch_settings m = { .rate = (uint32_t)plan->rate, .client_s = (uint32_t)plan->client_s, .base = base,
                                 .cert = tls ? (uint32_t)plan->cert.n : 0, .key = tls ? (uint32_t)plan->key.n : 0 };

    if (front->door.fd < 0 || (tls && pem < 0) || say_languages(l, &front->door, &front->out) < 0)
        return -1;
    put_hosts(&m, ips, l);
    for (; m.n_origins < plan->n_origins; m.n_origins++)
        m.origins[m.n_origins] = plan->origins[m.n_origins];
    put_base(base, l);
    front->said.waits++;
    return launcher_queue(l, &front->door, &front->out, EDGE_SETTINGS, EDGE_SETTINGS_SHAPE(), &m, take_fd(&pem));
}

static int
say_limits(struct launcher *l)
{
    const struct serve_plan *plan = l->plan;
    const struct launch_limits m = {
        .max = (uint32_t)plan->max_sandboxes, .each = (uint32_t)plan->max_per_agent, .idle_s = (uint32_t)plan->idle_s,
        .life_s = (uint32_t)plan->life_s, .after_s = (uint32_t)plan->recover_s,
        .tries = (uint32_t)plan->recover_tries, .window_s = (uint32_t)plan->recover_window_s,
    };

    if (launcher_send(l, EDGE_LIMITS, EDGE_LIMITS_SHAPE(), &m, -1) < 0)
        return -1;
    l->limits.waits++;
    return 0;
}

static void
say_front(struct launcher *l, enum which_front which)
{
    struct adapter_end *adapter = &l->fronts[which].adapter;

    if (adapter->door.fd >= 0 && say_languages(l, &adapter->door, &adapter->out) < 0)
        (void)shutdown(adapter->door.fd, SHUT_RDWR);
    if (l->fronts[which].door.fd >= 0 && settings_say(l, which) < 0)
        (void)shutdown(l->fronts[which].door.fd, SHUT_RDWR);
}

static void
say_all(struct launcher *l)
{
    /* one that cannot be told ends, and the next one is told; the limits last, for their answer is that to both */
    if (l->warden.fd >= 0 && (say_rules(l) < 0 || say_pool(l) < 0 || say_limits(l) < 0))
        (void)shutdown(l->warden.fd, SHUT_RDWR);
    for (enum which_front which = 0; which < FRONTS; which++)
        say_front(l, which);
}

/* --- what is heard ------------------------------------------------------------------------------------------------ */

static void
say_serving(const struct launcher *l)
{
    cleanup_buf struct buf said = BUF_INIT(SERVE_LISTEN_MAX * (SERVE_VALUE_MAX + 2));
    json_t *list = l->json ? json_array() : NULL;
    char room[SERVE_VALUE_MAX];

    for (size_t i = 0; i < l->n_listeners; i++) {
        const char *text = serve_listen_text(&l->listeners[i].at, room);
        buf_printf(&said, "%s %s", i > 0 ? "," : "", text);
        if (list != NULL)
            json_array_append_new(list, json_string(text));
    }
    if (buf_nul(&said) == 0)
        log_say(LEVEL_NOTICE, "serving on%s", (const char *)said.p);
    if (list == NULL)
        return;
    json_t *top = json_pack("{s:o, s:i}", "listening", list, "pid", (int)getpid());
    if (top != NULL)
        json_dumpf(top, stdout, 0);
    putchar('\n');
    fflush(stdout);
    json_decref(top);
}

static void
settle(struct launcher *l)
{
    if (l->limits.waits > 0)
        return;
    for (enum which_front which = 0; which < FRONTS; which++)
        if (l->fronts[which].said.waits > 0)
            return;
    /* all that were told have answered */
    if (!l->told)
        say_serving(l);
    else if (l->former != NULL) {
        (void)launcher_say(l, EDGE_COUNTS, NULL, -1);
        log_say(LEVEL_NOTICE, "the configuration was read again");
    }
    if (!l->told || l->former != NULL)
        launcher_notify(l, "READY=1");
    l->told = true;
    serve_plan_free(l->former);
    l->former = NULL;
    if (l->read_again)
        settings_reload(l);
}

void
settings_back(struct launcher *l)
{
    log_say(LEVEL_WARN, "the former configuration stays");
    serve_plan_free(l->plan);
    l->plan = take_ptr(&l->former);
    vacant_drop(l);
    launcher_notify(l, "READY=1");
}

static void
refused(struct launcher *l, const struct err *why)
{
    if (l->former == NULL) {
        *l->err = *why;
        l->failed = true;
        return;
    }
    (void)cli_fail(why, false);
    settings_back(l);
    for (enum which_front which = 0; which < FRONTS; which++)
        l->fronts[which].said.over = l->fronts[which].said.waits;
    l->limits.over = l->limits.waits;
    say_all(l);
}

int
settings_answer(struct launcher *l, struct settings_said *said, const struct err *why_not)
{
    bool over = said->over > 0;

    if (said->waits == 0)
        return -1;
    said->waits--;
    said->over -= over;
    if (why_not == NULL)
        settle(l);
    else if (!over && l->told && l->former == NULL)
        return -1;              /* the same was taken before */
    else if (!over)
        refused(l, why_not);
    return 0;
}

/* --- anew --------------------------------------------------------------------------------------------------------- */

static bool
same(const struct serve_key *key, const struct serve_plan *a, const struct serve_plan *b)
{
    char room[2][SERVE_VALUE_MAX];

    for (size_t i = 0;; i++) {
        const char *x = serve_value(a, key, i, room[0]), *y = serve_value(b, key, i, room[1]);
        if (x == NULL || y == NULL)
            return x == y;
        if (strcmp(x, y) != 0)
            return false;
    }
}

static void
keep(const char *name, const char *why)
{
    log_say(LEVEL_WARN, "%s: %s; until cloche serve is restarted the old value stays", name, why);
}

static void
keep_bytes(struct buf *new, const struct buf *old)
{
    if (new->p != NULL)
        explicit_bzero(new->p, new->n);
    buf_reset(new);
    buf_append(new, old->p, old->n);
}

/* What cannot change alive stays as it is in @new too. 0 or -1 with @err. */
static int
keep_the_fixed(struct serve_plan *new, const struct serve_plan *old, struct err *err)
{
    for (size_t i = 0; i < serve_n_keys; i++) {
        if (!serve_keys[i].restart || same(&serve_keys[i], new, old))
            continue;
        keep(serve_keys[i].name, "it needs a restart");
        serve_copy(new, old, &serve_keys[i]);
    }
    /* what was read is another file's, or what its own holds by now */
    keep_bytes(&new->hook_secret, &old->hook_secret);
    memcpy(new->otlp_traces, old->otlp_traces, sizeof(new->otlp_traces));
    memcpy(new->otlp_metrics, old->otlp_metrics, sizeof(new->otlp_metrics));
    keep_bytes(&new->otlp_lines, &old->otlp_lines);
    if ((new->cert.n > 0) != (old->cert.n > 0)) {
        keep("tls-cert", "TLS is switched on and off at the start only");
        memcpy(new->tls_cert, old->tls_cert, sizeof(new->tls_cert));
        memcpy(new->tls_key, old->tls_key, sizeof(new->tls_key));
        keep_bytes(&new->cert, &old->cert);
        keep_bytes(&new->key, &old->key);
    }
    return buf_ok(&new->hook_secret) && buf_ok(&new->otlp_lines) && buf_ok(&new->cert) && buf_ok(&new->key)
           ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static void
say_reloading(const struct launcher *l)
{
    struct timespec t;
    char text[64];

    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000);
    launcher_notify(l, text);
}

void
settings_reload(struct launcher *l)
{
    struct err err = ERR_INIT;
    struct serve_plan *new;

    l->read_again = !l->told || l->former != NULL;
    if (l->ending || l->read_again)
        return;     /* when that is done */
    say_reloading(l);
    new = serve_plan_load(l->argc, l->argv, l->plan->cwd, &err);
    if (new == NULL || launcher_room(new, l->files.rlim_max, &err) < 0 || keep_the_fixed(new, l->plan, &err) < 0) {
        serve_plan_free(new);
        (void)cli_fail(&err, false);
        log_say(LEVEL_WARN, "the former configuration stays");
        launcher_notify(l, "READY=1");
        return;
    }
    l->former = l->plan;
    l->plan = new;
    vacant_drop(l);
    say_all(l);
}
