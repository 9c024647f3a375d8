/* launcher/launcher_adapter.c: cloche-adapter, one for each front: started with it, and anew when it ends */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/engine.h"
#include "launcher/launcher.h"

#define AFTER_MS 20         /* an adapter's end is looked at so long after it */

static int
edge(int pair[2], struct err *err)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0
               ? err_sys(err, errno, "serve.start", "socketpair") : 0;
}

int
start_adapter(struct launcher *l, enum which_front which, struct err *err)
{
    char name[] = "cloche-adapter", engine[32], *argv[] = { name, engine, NULL };
    struct front_end *front = &l->fronts[which];
    struct adapter_end *adapter = &front->adapter;
    cleanup_close int theirs = -1, far = -1, ours = -1, near = -1;
    int pair[2], door[2];

    snprintf(engine, sizeof(engine), "%s", engine_name(NULL));
    if (edge(pair, err) < 0)
        return -1;
    ours = pair[0];
    theirs = pair[1];
    if (edge(door, err) < 0)
        return -1;
    near = door[0];
    far = door[1];
    adapter->pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_ADAPTER, .words = argv, .log = l->log, .fds = { theirs, far }, .n_fds = 2 }, err);
    if (adapter->pid < 0) {     /* nothing is asked, and signalled, that is not there */
        adapter->pid = 0;
        return -1;
    }
    adapter->door.fd = take_fd(&near);
    pulse_heard(&adapter->pulse);
    if (io_set_nonblock(adapter->door.fd, true) < 0 || loop_watch(&l->loop, &adapter->door, EPOLLIN) < 0)
        return err_sys(err, errno, "serve.start", "watch the adapter");
    /* one that has gone already is noticed where it is read */
    (void)say_languages(l, &adapter->door, &adapter->out);
    (void)launcher_queue(l, &front->door, &front->out, EDGE_ADAPTER, EDGE_ADAPTER_SHAPE(), NULL, take_fd(&ours));
    return 0;
}

void
lose_adapter(struct launcher *l, enum which_front which)
{
    struct adapter_end *adapter = &l->fronts[which].adapter;

    loop_drop(&l->loop, &adapter->door);
    packet_queue_clear(&adapter->out);
    end_process(&adapter->pid, 0);
    loop_at(&l->loop, &adapter->rest, 0);
    adapter->ended = false;
}

/* A client may have found what kills it: then those who speak so are without it for a while, and nothing else ends. */
static int
again(struct launcher *l, enum which_front which)
{
    struct adapter_end *adapter = &l->fronts[which].adapter;
    uint64_t now = clock_ms();

    if (clock_since(now, adapter->deaths_ms) >= DEATHS_MS) {
        adapter->deaths_ms = now;
        adapter->deaths = 0;
    }
    if (++adapter->deaths < DEATHS_MAX) {
        log_say(LEVEL_WARN, "cloche-adapter ended; it is started again");
        return start_adapter(l, which, l->err);
    }
    log_say(LEVEL_ERROR, "cloche-adapter ended %u times within a minute; it is started again in a minute",
            adapter->deaths);
    loop_at(&l->loop, &adapter->rest, now + DEATHS_MS);
    return 0;
}

/* It has ended a moment ago, or rested: it is started. */
static void
on_rested(struct timer *t)
{
    struct launcher *l = t->owner;
    enum which_front which = t == &l->fronts[FRONT_OWNER].adapter.rest ? FRONT_OWNER : FRONT_STRANGERS;
    struct front_end *front = &l->fronts[which];
    bool ended = front->adapter.ended;

    front->adapter.ended = false;
    if (front->door.fd >= 0 && !l->ending)
        loop_done(&l->loop, ended ? again(l, which) : start_adapter(l, which, l->err));
}

/* What it says: that it is there; and what it asks. */
void
hear_adapter(struct launcher *l, enum which_front which)
{
    struct adapter_end *adapter = &l->fronts[which].adapter;
    struct frame f;
    int r = packet_receive(adapter->door.fd, l->in, sizeof(l->in), &f, NULL, MSG_DONTWAIT);

    if (r < 0 && errno == EAGAIN)
        return;
    if (r > 0 && f.type == EDGE_PONG && f.length == 0) {
        pulse_heard(&adapter->pulse);
        return;
    }
    if (r > 0 && f.type == EDGE_DOCKER_ASK && f.length == 0) {
        docker_wanted(l, which);
        return;
    }
    /* It ends with its front, which closes what it had in no order that counts: when that is heard of, this is no death
     * of the adapter's own (lose_front). */
    lose_adapter(l, which);
    adapter->rest = (struct timer){ .due = on_rested, .owner = l };
    loop_at(&l->loop, &adapter->rest, clock_ms() + AFTER_MS);
    adapter->ended = true;
}
