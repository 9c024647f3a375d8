/* launcher/launcher_webhook.c: cloche-webhook, which tells a server of approvals, where the configuration names one
 *
 * It belongs to one warden and ends with it. It is the least of the daemon's processes: when it dies again and again
 * the daemon goes on without it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
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
    cleanup_close int theirs = -1, settings = -1;
    int pair[2];

    if (l->plan->webhook_url[0] == '\0')
        return 0;
    lesser_end(&l->webhook);
    settings = settings_file(l->plan);
    if (settings < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "serve.start", "the webhook's settings");
    theirs = pair[1];
    l->webhook.pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_WEBHOOK, .words = argv, .log = l->log, .fds = { theirs, settings }, .n_fds = 2 }, err);
    if (l->webhook.pid < 0) {
        close(pair[0]);
        return -1;
    }
    (void)launcher_say(l, EDGE_WEBHOOK, NULL, pair[0]);
    return 0;
}

static void
lesser_reap(struct launcher *l, struct lesser *p, const char *name, const char *gone,
            int (*start)(struct launcher *l, struct err *err))
{
    uint64_t now = clock_ms();
    struct err err = ERR_INIT;
    int status;

    if (p->pid <= 0 || waitpid(p->pid, &status, WNOHANG) != p->pid)
        return;
    p->pid = 0;
    if (l->ending || !launcher_warden_lives(l, status))
        return;         /* its warden's end was its own */
    if (clock_since(now, p->ms) >= DEATHS_MS) {
        p->ms = now;
        p->deaths = 0;
    }
    if (++p->deaths >= DEATHS_MAX) {
        log_say(LEVEL_ERROR, "%s ended %u times within a minute; %s until cloche serve is restarted", name, p->deaths,
                gone);
        return;
    }
    log_say(LEVEL_WARN, "%s ended; it is started again", name);
    if (start(l, &err) < 0)
        log_say(LEVEL_ERROR, "%s is not started again: %s [%s]", name, err.msg, err.code);
}

void
lessers_reap(struct launcher *l)
{
    lesser_reap(l, &l->webhook, "cloche-webhook", "nobody is told of approvals", start_webhook);
    lesser_reap(l, &l->signer, "cloche-signer", "nothing is signed", start_signer);
}

void
lesser_end(struct lesser *p)
{
    if (p->pid > 0)
        end_process(&p->pid, 0);
}

void
lessers_end(struct launcher *l)
{
    lesser_end(&l->webhook);
    lesser_end(&l->signer);
}
