/* launcher/launcher_webhook.c: cloche-webhook, which tells a server of approvals, where the configuration names one */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memfile.h"
#include "launcher/launcher.h"

/* A file without a name: a URL and a secret are nobody's business who lists processes. -1 with errno. */
static int
settings_file(const struct serve_plan *plan)
{
    cleanup_buf struct buf b = BUF_INIT(SERVE_URL_MAX * 2 + PATH_MAX + SERVE_SECRET_MAX + 64);
    int fd;

    wire_put_cstr(&b, plan->webhook_url, SERVE_URL_MAX);
    wire_put_cstr(&b, plan->public_url, SERVE_URL_MAX);
    wire_put_cstr(&b, plan->webhook_ca, PATH_MAX);
    buf_put_be32(&b, (uint32_t)plan->webhook_s);
    packet_put_bytes(&b, plan->hook_secret.p, plan->hook_secret.n);
    fd = buf_ok(&b) ? memfile_sealed("cloche-webhook", false, b.p, b.n) : -1;
    if (b.n > 0)
        explicit_bzero(b.p, b.n);
    return fd;
}

int
start_webhook(struct launcher *l, struct err *err)
{
    char name[] = "cloche-webhook", *argv[] = { name, NULL };
    cleanup_close int settings = -1;
    int edge;

    if (l->plan->webhook_url[0] == '\0')
        return 0;
    lesser_end(l, LESSER_WEBHOOK);
    settings = settings_file(l->plan);
    if (settings < 0)
        return err_sys(err, errno, "serve.start", "the webhook's settings");
    edge = lesser_make(l, LESSER_WEBHOOK, argv, settings, err);
    if (edge < 0)
        return -1;
    (void)launcher_say(l, EDGE_WEBHOOK, NULL, edge);
    return 0;
}
