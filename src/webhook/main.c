/* webhook/main.c: cloche-webhook: its settings, the warden's words, the loop (webhook.h) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "webhook/webhook.h"
#include "wire/table.h"

#define FD_WARDEN    3
#define FD_SETTINGS  4
#define SETTINGS_MAX (HOOK_URL_MAX * 2 + 8192 + WEBHOOK_SECRET_MAX)
#define AT_ONCE      16

struct from_warden {
    struct webhook *h;
    struct watch edge;
    bool ended;
    uint8_t in[EDGE_ROOM];
};

static int
on_hook(struct from_warden *w, const struct edge_hook *m)
{
    webhook_put(w->h, &m->approval, m->decided ? "approval.decided" : "approval.requested");
    return 0;
}

#define HEARS(R) R(EDGE_HOOK, on_hook, false, 1)
PROTO_RULES(rules, HEARS)

/* Its end is ours: the launcher starts another one for the next warden. */
static void
on_edge(struct watch *watch, uint32_t events)
{
    struct from_warden *w = watch->owner;
    struct msg_gate gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 };

    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame f;
        int r = packet_receive(FD_WARDEN, w->in, sizeof(w->in), &f, NULL, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r <= 0 || msg_dispatch(&gate, &f, w) != MSG_OK) {
            w->ended = true;
            return;
        }
    }
}

static int
read_settings(struct webhook_settings *s, struct err *err)
{
    static struct buf text = BUF_INIT(SETTINGS_MAX);
    cleanup_close int fd = FD_SETTINGS;
    struct wire_in in;
    const char *url, *why = "is malformed";
    uint32_t seconds;

    if (io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "webhook.settings", "the settings");
    in = wire_in_of(text.p, text.n);
    url = wire_cstr(&in, HOOK_URL_MAX, NULL);
    s->page = wire_cstr(&in, HOOK_URL_MAX, NULL);
    s->ca = wire_cstr(&in, EDGE_PATH_MAX, NULL);
    seconds = wire_be32(&in);
    s->secret = packet_get_bytes(&in, WEBHOOK_SECRET_MAX, &s->n_secret);
    s->timeout_ms = (uint64_t)seconds * 1000;
    if (!wire_done(&in) || seconds == 0 || !hook_url(str_of(url), &s->url, &why))
        return err_set(err, ERR_USAGE, "webhook.settings", "the URL %s", why);
    return 0;
}

static int
start(struct webhook *h, struct err *err)
{
    h->post.url = &h->s->url;
    h->post.timeout_ms = h->s->timeout_ms;
    return post_open(&h->post, h->s->ca, err) < 0 ? -1 : post_confine(err);
}

int
main(int argc, char **argv)
{
    static struct webhook_settings s;
    static struct webhook h = { .s = &s, .loop = { .epoll = -1 }, .post = {
        .loop = &h.loop, .server = WATCH_INIT, .out = BUF_INIT(WEBHOOK_BODY_MAX + 8192), .done = webhook_answered,
        .owner = &h } };
    static struct from_warden w = { .h = &h, .edge = { .fd = FD_WARDEN, .ready = on_edge, .owner = &w } };
    struct err err = ERR_INIT;
    int r;

    (void)argv;
    if (argc != 1 || fcntl(FD_WARDEN, F_GETFD) < 0 || fcntl(FD_SETTINGS, F_GETFD) < 0) {
        fprintf(stderr, "cloche-webhook is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    log_open("cloche-webhook");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    r = read_settings(&s, &err) < 0 || start(&h, &err) < 0 ? -1 : loop_watch(&h.loop, &w.edge, EPOLLIN);
    while (r == 0 && !w.ended) {
        r = loop_round(&h.loop, -1, &err) < 0 ? -1 : 0;
        webhook_turn(&h);
    }
    if (r < 0)
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
    return r < 0;
}
