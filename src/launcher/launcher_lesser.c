/* launcher/launcher_lesser.c: processes that the daemon can be without: cloche-webhook, cloche-signer, cloche-otlp
 *
 * When one of them dies again and again the daemon goes on without it. Two belong to one warden and end with it;
 * cloche-otlp outlives wardens.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "launcher/launcher.h"
#include "proto/edge_sign.h"

static const struct {
    const char *name;
    const char *gone;           /* what is so without it */
    bool outlives;              /* wardens */
    uint64_t end_ms;            /* that it has for its end */
    int last;                   /* the exit status after which it is not started again; 0: none */
    enum maker_program program;
    int (*start)(struct launcher *l, struct err *err);
} kinds[LESSERS] = {
    [LESSER_WEBHOOK] = { "cloche-webhook", "nobody is told of approvals", false, 0, 0, MAKE_WEBHOOK, start_webhook },
    [LESSER_SIGNER] = { "cloche-signer", "nothing is signed", false, 0, SIGNER_EXIT_LAST, MAKE_SIGNER,
                        start_signer },
    /* which takes a second for what waits */
    [LESSER_OTLP] = { "cloche-otlp", "nothing is exported", true, 1500, 0, MAKE_OTLP, start_otlp },
};

int
lesser_make(struct launcher *l, enum which_lesser which, char *const argv[], int settings, struct err *err)
{
    cleanup_close int theirs = -1;
    int pair[2];
    pid_t pid;

    if (launcher_pair(pair, err) < 0)
        return -1;
    theirs = pair[1];
    pid = launcher_make(l, &(struct maker_order){
        .program = kinds[which].program, .words = argv, .log = l->log, .fds = { theirs, settings },
        .n_fds = settings >= 0 ? 2 : 1 }, err);
    if (pid < 0) {
        close(pair[0]);
        return -1;
    }
    l->lessers[which].pid = pid;
    return pair[0];
}

static void
reap(struct launcher *l, enum which_lesser which)
{
    struct lesser *p = &l->lessers[which];
    const char *name = kinds[which].name;
    uint64_t now = clock_ms();
    struct err err = ERR_INIT;
    int status;

    if (p->pid <= 0 || waitpid(p->pid, &status, WNOHANG) != p->pid)
        return;
    p->pid = 0;
    if (kinds[which].last != 0 && WIFEXITED(status) && WEXITSTATUS(status) == kinds[which].last) {
        p->given_up = true;
        log_say(LEVEL_ERROR, "%s is not started again after that; %s until cloche serve is restarted", name,
                kinds[which].gone);
        return;
    }
    if (l->ending || (!kinds[which].outlives && !launcher_warden_lives(l, status)))
        return;         /* its warden's end was its own */
    if (clock_since(now, p->ms) >= DEATHS_MS) {
        p->ms = now;
        p->deaths = 0;
    }
    if (++p->deaths >= DEATHS_MAX) {
        log_say(LEVEL_ERROR, "%s ended %u times within a minute; %s until cloche serve is restarted", name, p->deaths,
                kinds[which].gone);
        return;
    }
    log_say(LEVEL_WARN, "%s ended; it is started again", name);
    if (kinds[which].start(l, &err) < 0)
        log_say(LEVEL_ERROR, "%s is not started again: %s [%s]", name, err.msg, err.code);
}

void
lessers_reap(struct launcher *l)
{
    for (enum which_lesser which = 0; which < LESSERS; which++)
        reap(l, which);
}

void
lesser_end(struct launcher *l, enum which_lesser which)
{
    end_process(&l->lessers[which].pid, kinds[which].end_ms);
}

void
lessers_end(struct launcher *l)
{
    close_fd(&l->otlp_edge);    /* which it sees */
    for (enum which_lesser which = 0; which < LESSERS; which++)
        lesser_end(l, which);
}
