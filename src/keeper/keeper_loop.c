/* keeper/keeper_loop.c: the keeper's process: whom it hears, and what time brings (see keeper.h) */
#include "keeper/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "launcher/serve.h"
#include "program/say.h"

#define FD_WARDEN    3
#define FD_CONTROL   4
#define FD_SETTINGS  5
#define FD_IMAGE     6          /* or none */
#define STILL_MS     10000      /* there is nothing to look at; the warden's questions come more often */
#define ALONE_US     60000000   /* without a warden: nobody could end the sandbox, so it ends */

static void
on_vault(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;

    (void)events;
    (void)loop_forget(&k->loop, w);     /* it may be closed now */
    vault_look(&k->l);
}

static void
time_passes(struct keeper_live *k)
{
    uint64_t now = clock_us();

    if (k->warden.fd < 0 && clock_since(now, k->alone_us) >= ALONE_US)
        keeper_gone(k, "its warden is gone, and no other one came");
    if (k->made && !k->ending)
        watch_time(k, now);
    if (!k->made || k->ending || k->paused)
        return;
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        if (k->ops[i] != NULL && op_overdue(k->ops[i], now))
            return keeper_died(k, "its guest did not end what it was told to end");
        if (k->ops[i] != NULL)
            op_time(k->ops[i], now);
    }
    asker_time(k, now);
    browser_time(k, now);
    sandbox_tend(k->l.sb);
    if (k->check_us > 0 && clock_since(now, k->check_us) >= KEEPER_GUEST_US)
        keeper_say_health(k, false);
    keeper_volume_look(k, now);
    keeper_look_at_memory(k, now);
}

static int
wait_ms(const struct keeper_live *k)
{
    if (k->park.waits && k->warden.fd >= 0)
        return -1;
    if (k->still && !k->paused && k->check_us == 0 && k->volume_fd < 0 && k->warden.fd >= 0 && k->hosts.asker.pid <= 0)
        return STILL_MS;
    return k->hosts.asker.pid > 0 ? 1000 : !k->made && k->warden.fd >= 0 ? -1 : !k->made || k->paused ? 1000
           : op_count(k) - watch_count(k) - context_idle(k) + asker_count(k) > 0 ? 50 : 1000;
}

void
keeper_watch_edge(struct keeper_live *k, struct watch *edge, bool full, const struct packet_queue *out)
{
    uint32_t events = EPOLLHUP;

    if (!full)
        events |= EPOLLIN;
    if (packet_queue_waits(out))
        events |= EPOLLOUT;
    (void)loop_watch(&k->loop, edge, events);
}

/* One whose descriptor is somebody else's. */
static void
look(struct keeper_live *k, struct watch *w, int fd, uint32_t events)
{
    if (loop_look(&k->loop, w, fd, events) < 0)
        keeper_died(k, "a descriptor could not be watched");
}

static void
step(struct keeper_live *k)
{
    look(k, &k->control, k->control.fd, EPOLLIN);
    look(k, &k->warden, k->warden.fd, packet_queue_waits(&k->to_warden) ? EPOLLIN | EPOLLOUT : EPOLLIN);
    look(k, &k->hosts.heard, k->hosts.asker.fd, EPOLLIN);
    look(k, &k->snapshot.edge, k->snapshot.edge.fd, EPOLLIN);
    look(k, &k->edits.edge, k->edits.edge.fd, EPOLLIN);
    if (k->made) {
        look(k, &k->guest, k->l.transport, (uint32_t)guest_client_poll_events(k->l.client));    /* as epoll's */
        look(k, &k->vault, vault_fd(&k->l), EPOLLIN);
        net_arm(k->l.net);
    }
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        if (k->ops[i] != NULL)
            op_watch(k->ops[i]);
    for (size_t i = 0; i < RUN_ASKERS_MAX; i++)
        if (k->askers[i] != NULL)
            asker_watch(k->askers[i]);
    if (k->ending)
        return;
    if (loop_round(&k->loop, wait_ms(k), NULL) < 0)
        return keeper_died(k, "poll failed");
    if (!k->ending)
        keeper_hosts_turn(k);
    time_passes(k);
}

/* What the launcher put into a file for us, which is closed. 0 or -1. */
static int
read_settings(struct keeper_live *k)
{
    static struct buf text = BUF_INIT(KEEPER_SETTINGS_MAX);     /* borrowed of until the end */
    cleanup_close int fd = FD_SETTINGS;
    struct wire_in in;

    if (io_read_all(fd, &text) < 0)
        return -1;
    in = wire_in_of(text.p, text.n);
    return keeper_settings_get(&in, &k->daemon) ? 0 : -1;
}

int
keeper_main(int argc, char **argv)
{
    static struct keeper_live k = {
        .l = { .loop = &k.loop, .copies = { { -1, -1 }, { -1, -1 } }, .feed = -1, .vault_for_egress = -1 },
        .control = { .fd = FD_CONTROL, .ready = keeper_on_launcher, .owner = &k },
        .warden = { .fd = FD_WARDEN, .ready = keeper_on_warden, .owner = &k },
        .guest = { .fd = -1, .ready = keeper_on_guest, .owner = &k },
        .vault = { .fd = -1, .ready = on_vault, .owner = &k },
        .hosts = { .asker = ASKER_INIT, .heard = WATCH_INIT }, .passed = -1, .spare = -1, .volume_fd = -1,
        .edits = { .root = -1, .mounts = -1, .edge = { .fd = -1, .ready = edits_on_said, .owner = &k } },
        .snapshot = { .root = -1, .edge = { .fd = -1, .ready = snapshot_on_end, .owner = &k } },
        .to_warden = PACKET_QUEUE_INIT(EDGE_QUEUE_MAX), .gate = { .state = ST_FRESH } };
    int named;

    if (io_set_cloexec(FD_IMAGE, true) == 0)    /* before anything else may have that number */
        engine_have_image(FD_IMAGE);
    if (argc != 2 || strlen(argv[1]) != EDGE_ID || fcntl(FD_CONTROL, F_GETFD) < 0 ||
        io_set_cloexec(FD_WARDEN, true) < 0 || io_set_cloexec(FD_CONTROL, true) < 0 ||
        io_set_nonblock(FD_WARDEN, true) < 0 || read_settings(&k) < 0 || loop_init(&k.loop, NULL) < 0) {
        fprintf(stderr, "cloche-keeper is started by cloche serve\n");
        return EXIT_REFUSED;
    }
    prctl(PR_SET_NAME, KEEPER_VACANT);
    log_open(KEEPER_NAME);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    named = keeper_vacant(&k, argv);
    if (named <= 0)         /* nobody needed it */
        return named < 0 ? EXIT_REFUSED : 0;
    k.transcript.fd = -1;
    k.r.exit_code = -1;
    while (!k.ending)
        step(&k);
    keeper_unmake(&k);
    return 0;
}
