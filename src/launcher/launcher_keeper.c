/* launcher/launcher_keeper.c: keepers, which are started before anybody asks for one
 *
 * To start a program takes longer than to make a sandbox. So a few keepers are there already, as `cloche-vacant`: one
 * has read the daemon's settings, has prepared what every sandbox needs (keeper/keeper_vacant.c), belongs to nobody,
 * and waits for an id. It gets one and is the keeper of that sandbox; it is never vacant again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memfile.h"
#include "launcher/keeper_settings.h"
#include "launcher/launcher.h"

#define VACANT_MAX 2
#define VACANT_MS    8        /* from one that was taken to the next: it would take time of the sandbox that is made */

/* A file without a name: arguments are everybody's to read. -1 with @err. */
static int
keeper_settings_file(const struct launcher *l, struct err *err)
{
    const struct keeper_settings settings = {
        .settings = l->plan->settings, .config = l->plan->config, .security = l->plan->security,
        .audit = serve_audit_words[l->plan->audit], .transcript = serve_transcript_words[l->plan->transcript],
        .transcripts = l->transcripts, .volumes = l->volumes, .leavings = l->leavings.folder,
    };
    cleanup_buf struct buf b = BUF_INIT(KEEPER_SETTINGS_MAX);
    int fd = keeper_settings_put(&b, &settings) == 0 ? memfile_sealed("cloche-keeper", false, b.p, b.n) : -1;

    if (fd < 0)
        err_sys(err, errno, "serve.start", "the keeper's settings");
    if (b.p != NULL)
        explicit_bzero(b.p, b.n);
    return fd;
}

/* A new one, vacant; NULL with @err. */
static struct keeper *
vacant_make(struct launcher *l, struct err *err)
{
    struct keeper *k = calloc(1, sizeof(*k));
    cleanup_close int settings = -1;
    char name[] = KEEPER_VACANT, room[EDGE_ID + 1], *argv[] = { name, room, NULL };
    int warden[2] = { -1, -1 }, control[2] = { -1, -1 };

    if (k == NULL)
        return (void)err_set(err, ERR_SYSTEM, "memory", "out of memory"), NULL;
    memset(room, '-', EDGE_ID);
    room[EDGE_ID] = '\0';
    settings = keeper_settings_file(l, err);
    if (settings >= 0 && launcher_pair(warden, err) == 0 && launcher_pair(control, err) == 0) {
        k->pid = launcher_make(l, &(struct maker_order){
            .program = MAKE_KEEPER, .words = argv, .log = l->log, .fds = { warden[1], control[1], settings, l->image },
            .n_fds = l->image >= 0 ? 4 : 3, .files = &l->files }, err);
    }
    close_fd(&warden[1]);
    close_fd(&control[1]);
    if (k->pid <= 0) {
        close_fd(&warden[0]);
        close_fd(&control[0]);
        free(k);
        return NULL;
    }
    k->control = control[0];
    k->edge = warden[0];
    k->next = l->keepers;
    l->keepers = k;
    l->n_keepers++;
    l->n_vacant++;
    return k;
}

/* It ends by that, and is waited for like others. */
static void
vacant_end(struct launcher *l, struct keeper *k)
{
    close_fd(&k->edge);
    close_fd(&k->control);
    l->n_vacant--;
}

static struct keeper *
vacant(const struct launcher *l)
{
    struct keeper *k = l->n_vacant > 0 ? l->keepers : NULL;

    while (k != NULL && k->edge < 0)
        k = k->next;
    return k;
}

static bool
name_it(const struct keeper *k, const char *id)
{
    struct edge_only_id m;

    memcpy(m.id, id, sizeof(m.id));
    return proto_send(k->control, EDGE_NAMED, EDGE_NAMED_SHAPE(), &m, -1) == 0;
}

int
start_keeper(struct launcher *l, const char *id, int *out, struct err *err)
{
    struct keeper *k;

    vacant_after(l, VACANT_MS);
    /* one that has ended meanwhile hears nothing */
    while ((k = vacant(l)) != NULL && !name_it(k, id))
        vacant_end(l, k);
    if (k == NULL) {
        k = vacant_make(l, err);
        if (k == NULL)
            return -1;
        if (!name_it(k, id)) {
            err_sys(err, errno, "serve.keeper.ended", "a keeper ended as soon as it was started");
            vacant_end(l, k);
            return -1;
        }
    }
    memcpy(k->id, id, EDGE_ID + 1);
    *out = take_fd(&k->edge);
    l->n_vacant--;
    return 0;
}

void
vacant_drop(struct launcher *l)
{
    struct keeper *k;

    while ((k = vacant(l)) != NULL)
        vacant_end(l, k);
    vacant_after(l, VACANT_MS);
}

/* One at a time: what comes meanwhile goes first. Where none can be had, whoever asks for one is told. Not while a
 * warden starts, which may have a record to mend: when it is ready it is time again. */
static void
on_vacant(struct timer *t)
{
    struct launcher *l = t->owner;

    if (l->ready && !l->ending && l->n_vacant < VACANT_MAX && l->maker.late == 0 && vacant_make(l, NULL) != NULL &&
        l->n_vacant < VACANT_MAX)
        vacant_after(l, 0);
}

void
vacant_after(struct launcher *l, uint64_t ms)
{
    l->vacant.due = on_vacant;
    l->vacant.owner = l;
    loop_at(&l->loop, &l->vacant, clock_ms() + ms);
}
