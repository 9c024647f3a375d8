/* launcher/launcher_scribe.c: cloche-scribe, which writes the daemon's audit record for the warden
 *
 * Each belongs to one warden and ends with it, after it has written what it was sent; a new one may begin meanwhile.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "launcher/launcher.h"
#include "program/state.h"

#define END_PATIENCE_MS 15000       /* another process may have the record's lock for ten seconds */
#define WARDEN_END_MS   500         /* between the end of its files and its own */

static int
folder(const char *path, char out[PATH_MAX], struct err *err)
{
    cleanup_close int fd = state_make_path(path);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || realpath(path, out) == NULL)
        return err_sys(err, errno, "audit.open", "the folder %s", path);
    if (st.st_uid == geteuid() && (st.st_mode & 022) == 0)
        return 0;
    err_set(err, ERR_DENIED, "audit.folder", "%s is not yours alone", path);
    return err_hint(err, "chown it to the user who runs cloche serve, and chmod go-w");
}

/* That of `cloche run`, unless the state folder is not the usual one. */
static int
record_path(const struct launcher *l, char out[PATH_MAX], struct err *err)
{
    char usual[PATH_MAX], serve[PATH_MAX];
    int n;

    if (state_dir_path(usual, err) < 0)
        return -1;
    n = snprintf(serve, sizeof(serve), "%s/serve", usual);
    n = snprintf(out, PATH_MAX, "%s/audit", n < PATH_MAX && strcmp(serve, l->plan->state) == 0 ? usual : l->state);
    return n < PATH_MAX ? 0 : err_set(err, ERR_LIMIT, "audit.open", "%s: the path is too long", l->state);
}

int
scribe_folders(struct launcher *l, struct err *err)
{
    char path[PATH_MAX];
    struct err why = ERR_INIT;

    if (snprintf(path, sizeof(path), "%s/transcripts", l->state) >= (int)sizeof(path) ||
        (l->plan->transcript != SERVE_TRANSCRIPT_OFF && folder(path, l->transcripts, err) < 0))
        return err->kind != ERR_NONE ? -1 : err_set(err, ERR_LIMIT, "audit.open", "%s: the path is too long", l->state);
    if (snprintf(path, sizeof(path), "%s/volumes", l->state) >= (int)sizeof(path) || folder(path, l->volumes, err) < 0)
        return err->kind != ERR_NONE ? -1 : err_set(err, ERR_LIMIT, "volume.open", "%s: the path is too long",
                                                    l->state);
    if (record_path(l, path, err) < 0)
        return -1;
    if (folder(path, l->audit, &why) == 0)
        return 0;
    if (l->plan->audit == SERVE_AUDIT_REQUIRED) {
        *err = why;
        return err_wrap(err, "the audit record is required");
    }
    if (l->plan->audit != SERVE_AUDIT_OFF)
        log_say(LEVEL_WARN, "nothing will be in the audit record: %s [%s]", why.msg, why.code);
    snprintf(l->audit, sizeof(l->audit), "%s", path);
    return 0;
}

int
start_scribe(struct launcher *l, struct err *err)
{
    char name[] = "cloche-scribe", age[24], keep[24], keep_age[24], room[24];
    char *argv[] = { name, l->audit, age, l->transcripts, keep, keep_age, room, NULL };
    cleanup_close int theirs = -1;
    int pair[2];
    pid_t pid;

    snprintf(age, sizeof(age), "%llu", (unsigned long long)l->plan->audit_keep_s);
    snprintf(keep, sizeof(keep), "%llu", (unsigned long long)l->plan->transcript_keep);
    snprintf(keep_age, sizeof(keep_age), "%llu", (unsigned long long)l->plan->transcript_keep_s);
    snprintf(room, sizeof(room), "%llu", (unsigned long long)l->plan->transcript_mib << 20);
    if (launcher_pair(pair, err) < 0)
        return -1;
    theirs = pair[1];
    pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_SCRIBE, .words = argv, .log = l->log, .fds = { theirs }, .n_fds = 1 }, err);
    if (pid < 0) {
        close(pair[0]);
        return -1;
    }
    if (l->scribes[SCRIBES_MAX - 1] > 0) {      /* a disk that answers nothing: it has had its time */
        end_process(&l->scribes[SCRIBES_MAX - 1], 0);
    }
    memmove(l->scribes + 1, l->scribes, (SCRIBES_MAX - 1) * sizeof(l->scribes[0]));
    l->scribes[0] = pid;
    l->scribe_late = 0;
    (void)launcher_say(l, EDGE_SCRIBE, NULL, pair[0]);
    return 0;
}

bool
launcher_warden_lives(const struct launcher *l, int status)
{
    const struct timespec pause = { 0, 2000000 };
    const bool saw_its_end = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    siginfo_t info;

    for (int ms = 0;; ms += 2) {
        info.si_pid = 0;
        if (l->warden.fd < 0 || l->warden_pid <= 0 ||
            waitid(P_PID, (id_t)l->warden_pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0)
            return false;
        if (!saw_its_end || ms >= WARDEN_END_MS)
            return true;
        nanosleep(&pause, NULL);
    }
}

int
scribe_reap(struct launcher *l, struct err *err)
{
    bool newest = false;
    int status = 0, ended;

    for (size_t i = 0; i < SCRIBES_MAX; i++) {
        if (l->scribes[i] <= 0 || waitpid(l->scribes[i], &ended, WNOHANG) != l->scribes[i])
            continue;
        if (i == 0) {
            newest = true;
            status = ended;
        }
        l->scribes[i] = 0;
    }
    if (!newest || !launcher_warden_lives(l, status) || (l->ending && l->quiet))
        return 0;
    return launcher_count_death(l, "cloche-scribe", err) < 0 ? -1 : start_scribe(l, err);
}

void
scribe_end(struct launcher *l)
{
    const struct timespec pause = { 0, 2000000 };
    bool left = true;

    for (int ms = 0; left && ms < END_PATIENCE_MS; ms += 2) {
        left = false;
        for (size_t i = 0; i < SCRIBES_MAX; i++) {
            if (l->scribes[i] > 0 && waitpid(l->scribes[i], NULL, WNOHANG) != 0)
                l->scribes[i] = 0;
            left = left || l->scribes[i] > 0;
        }
        if (left)
            nanosleep(&pause, NULL);
    }
    for (size_t i = 0; i < SCRIBES_MAX; i++)
        if (l->scribes[i] > 0)
            kill(l->scribes[i], SIGKILL);
}
