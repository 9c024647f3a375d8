/* keeper/keeper_snapshot.c: copies of a sandbox's files: what a template is made of
 *
 * A template lies where volumes do (keeper_volume.c), and has one folder for each of engine_places. Its files are
 * copied by a process of its own, so that the keeper hears the warden and the launcher meanwhile; everything inside is
 * paused until that is over, so no file changes under the copy. What is mounted in these folders is not their own, and
 * is left out (workspace/copy.h); so are files with placeholders, which are this sandbox's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "keeper/keeper.h"
#include "policy/policy.h"
#include "wall/mnt.h"
#include "wire/packet.h"
#include "workspace/copy.h"
#include "workspace/tree.h"

#define STILL_TRIES 20000   /* of half a millisecond: until everything inside stands still */
#define WAITS_TRIES 40      /* so often nobody is taken to wait for another one that is stopped */
#define STAT_MAX    1024
/* What has more lies below the folders of sandboxes that begin with it. Copies of less take a few milliseconds, and the
 * sandbox has all of its files in one file system. */
#define COPIED_BYTES   (1024 * 1024)
#define COPIED_ENTRIES 128

struct snapshot_done {
    bool all;
    uint64_t bytes, entries;
};

/* What the warden wants of the sandbox meanwhile, and its descriptor. */
struct snapshot_aside {
    struct snapshot_aside *next;
    struct frame frame;
    int fd;
    uint8_t payload[];
};

/* --- beginning with one ------------------------------------------------------------------------------------------- */

int
snapshot_fill(struct keeper_live *k, const char *id, struct err *err)
{
    struct policy *p = &k->policy;
    char path[PATH_MAX];

    if (id[0] == '\0')
        return 0;
    if (p->workspace.kind != WORKSPACE_TMPFS || p->workspace.kind_given) {
        err_set(err, ERR_POLICY, "template.workspace", "the policy names a workspace, and so does the template");
        return err_hint(err, "leave \"workspace\" out of the policy");
    }
    if (snprintf(path, sizeof(path), "%s/%s", k->daemon.volumes, id) >= (int)sizeof(path))
        return err_set(err, ERR_LIMIT, "template.open", "%s: the path is too long", k->daemon.volumes);
    free(k->snapshot.fill);
    k->snapshot.fill = strdup(path);
    if (k->snapshot.fill == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    p->fill = k->snapshot.fill;
    return 0;
}

/* The guest has run nothing yet, and the keeper may still look into another process. */
int
snapshot_found(struct keeper_live *k, struct err *err)
{
    const struct sandbox_facts *facts = sandbox_facts(k->l.sb);
    char path[64];

    if (!facts->own_files || facts->pid <= 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/root", (int)facts->pid);
    k->snapshot.root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return k->snapshot.root < 0 ? err_sys(err, errno, "template.root", "%s", path) : 0;
}

/* --- the process that copies -------------------------------------------------------------------------------------- */

/* Whether the process of that number in @proc is in one of @states: stopped, or at its end. One that is gone is. */
static bool
stands_still(int proc, const char *number, const char *states)
{
    char path[64], text[STAT_MAX + 1];
    cleanup_close int fd = -1;
    const char *end;
    ssize_t n;

    snprintf(path, sizeof(path), "%.20s/stat", number);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, STAT_MAX) : -1;
    if (n <= 0)
        return errno == ENOENT || errno == ESRCH;
    text[n] = '\0';
    end = strrchr(text, ')');       /* of its name, which may hold anything */
    return end != NULL && end[1] == ' ' && end[2] != '\0' && strchr(states, end[2]) != NULL;
}

static bool
all_stand_still(int proc, const char *states)
{
    struct tree_names names;
    bool still = true;

    if (tree_names_read(proc, &names) < 0)
        return false;
    for (size_t i = 0; i < names.n && still; i++)
        still = names.v[i][0] < '1' || names.v[i][0] > '9' || strcmp(names.v[i], "1") == 0 ||
                stands_still(proc, names.v[i], states);
    tree_names_free(&names);
    return still;
}

/* Where nothing can be frozen, signals are sent by the guest, and each process stops a moment later. One whose child
 * was stopped between vfork(2) and exec stays in the kernel until that goes on ("D"), as in no other call for long. */
static int
wait_until_still(const struct keeper_live *k, int root, struct err *err)
{
    cleanup_close int place = k->by_signal ? mnt_open_beneath(root, "/proc", O_PATH | O_DIRECTORY, false) : -1;
    cleanup_close int proc = place >= 0 ? openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (k->by_signal && proc < 0)
        return err_sys(err, errno, "template.copy", "the processes of the sandbox");
    for (int i = 0; k->by_signal && !all_stand_still(proc, i < WAITS_TRIES ? "TtZXx" : "TtZXxD"); i++) {
        if (i == STILL_TRIES)
            return err_set(err, ERR_SYSTEM, "template.copy", "what runs in it could not be stopped");
        usleep(500);
    }
    return 0;
}

/* A file that only this sandbox's placeholders are in. */
static int
leave_out(const struct policy *p, const struct engine_place *place, int template, struct err *err)
{
    size_t n = strlen(place->path);

    for (size_t i = 0; i < p->n_secret_files; i++) {
        const char *path = p->secret_files[i].path, *name;
        cleanup_close int to = -1, parent = -1;
        if (strncmp(path, place->path, n) != 0 || path[n] != '/')
            continue;
        to = tree_open(template, place->name, O_RDONLY | O_DIRECTORY);
        parent = tree_open_parent(to, path + n + 1, &name);
        if (parent >= 0 && unlinkat(parent, name, 0) < 0 && errno != ENOENT && errno != EISDIR)
            return err_sys(err, errno, "template.copy", "a file with a placeholder");
    }
    return 0;
}

static int
copy_place(const struct keeper_live *k, int root, int template, const struct engine_place *place,
           struct snapshot_done *done, struct err *err)
{
    cleanup_close int place_fd = mnt_open_beneath(root, place->path, O_PATH | O_DIRECTORY, false), from = -1, to = -1;
    struct tree_copy copy = { .owned = geteuid() == 0, .bytes_max = 2 * k->limits.disk.v, .bytes = done->bytes };
    struct stat st;
    int r;

    if (place_fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0;       /* the sandbox has made something else of it */
    if (place_fd < 0 || fstat(template, &st) < 0 || mkdirat(template, place->name, 0700) < 0)
        return err_sys(err, errno, "template.copy", "%s", place->path);
    from = tree_open(place_fd, "", O_RDONLY | O_DIRECTORY);
    to = tree_open(template, place->name, O_RDONLY | O_DIRECTORY);
    if (from < 0 || to < 0 || (copy.owned && fchown(to, st.st_uid, st.st_gid) < 0))
        return err_sys(err, errno, "template.copy", "%s", place->path);
    copy.from = from;
    copy.to = to;
    copy.uid = st.st_uid;
    copy.gid = st.st_gid;
    r = tree_copy(&copy, err);
    done->bytes = copy.bytes;
    done->entries += copy.entries;
    return r < 0 ? -1 : leave_out(&k->policy, place, template, err);
}

/* The note that a large one lies below. */
static int
note_size(int template, const struct snapshot_done *done, struct err *err)
{
    char text[32];

    if (done->bytes <= COPIED_BYTES && done->entries <= COPIED_ENTRIES)
        return 0;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)done->bytes);
    if (symlinkat(text, template, ENGINE_BELOW) < 0)
        return err_sys(err, errno, "template.copy", "the note of its size");
    return 0;
}

static int
copy_all(const struct keeper_live *k, const char *id, int root, int volumes, struct err *err)
{
    cleanup_close int template = wait_until_still(k, root, err) < 0 ? -1 : keeper_volume_new(volumes, id, err);
    char name[EDGE_ID + 8];

    snprintf(name, sizeof(name), ".new-%s", id);
    for (size_t i = 0; template >= 0 && i < ENGINE_PLACES; i++)
        if (copy_place(k, root, template, &engine_places[i], k->snapshot.done, err) < 0) {
            (void)tree_remove(volumes, name, NULL);
            return -1;
        }
    if (template < 0)
        return -1;
    if (note_size(template, k->snapshot.done, err) < 0) {
        (void)tree_remove(volumes, name, NULL);
        return -1;
    }
    return renameat(volumes, name, volumes, id) < 0 ? err_sys(err, errno, "template.copy", "the template's folder") : 0;
}

_Noreturn static void
copier(const struct keeper_live *k, const char *id, int volumes, int say)
{
    int high[3] = { k->snapshot.root, volumes, say };
    struct err err = ERR_INIT;
    bool well = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;

    for (int i = 0; i < 3 && well; i++)
        well = (high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, 64)) >= 0;
    for (int i = 0; i < 3 && well; i++)
        well = dup2(high[i], 3 + i) >= 0;
    if (!well || io_close_from(6) < 0)
        _exit(2);
    if (copy_all(k, id, 3, 4, &err) < 0) {
        packet_say_err(5, &err);
        _exit(1);
    }
    k->snapshot.done->all = true;
    _exit(0);
}

/* --- what waits meanwhile ----------------------------------------------------------------------------------------- */

/* A command that is begun now would run. */
bool
snapshot_aside(struct keeper_live *k)
{
    struct keeper_snapshot *s = &k->snapshot;
    const struct frame *f = k->heard;
    struct snapshot_aside *one, **at = &s->aside;

    if (s->pid <= 0 || (one = malloc(sizeof(*one) + f->length)) == NULL)
        return false;
    memcpy(one->payload, f->payload, f->length);
    one->frame = *f;
    one->frame.payload = one->payload;
    one->fd = take_fd(&k->passed);
    one->next = NULL;
    while (*at != NULL)
        at = &(*at)->next;
    *at = one;
    return true;
}

static void
go_on(struct keeper_live *k)
{
    for (struct snapshot_aside *one; (one = k->snapshot.aside) != NULL;) {
        k->snapshot.aside = one->next;
        k->passed = one->fd;
        if (!k->ending && !keeper_hear(k, &one->frame))
            keeper_died(k, "its warden said what it must not");
        close_fd(&k->passed);
        free(one);
    }
}

/* --- the keeper's side -------------------------------------------------------------------------------------------- */

static void
over(struct keeper_live *k)
{
    struct keeper_snapshot *s = &k->snapshot;

    if (s->pid > 0)
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    s->pid = 0;
    if (s->edge.fd >= 0)
        loop_drop(&k->loop, &s->edge);
    if (s->done != NULL)
        (void)munmap(s->done, sizeof(*s->done));
    s->done = NULL;
}

static int
not_copied(struct keeper_live *k, const struct err *err)
{
    PROTO_SAY(keeper_say, k, EDGE_NOT_COPIED, .why = *err);
    return 0;
}

void
snapshot_on_end(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;
    struct keeper_snapshot *s = &k->snapshot;
    struct err err = ERR_INIT;
    struct snapshot_done done;
    int said = packet_hear_err(w->fd, &err);
    uint64_t us = clock_since(clock_us(), s->begun_us);
    bool resumes = s->resumes;

    (void)events;
    done = *s->done;
    s->resumes = false;
    over(k);
    if (said != 1 && !done.all)
        err_set(&err, ERR_SYSTEM, "template.copy", "who copied its files ended early");
    if (resumes && keeper_hold(k, false, &err) < 0)
        return keeper_died(k, "it could not go on after its files were copied");
    go_on(k);
    if (!s->asked)
        return;         /* the warden that wanted it is gone, and the next one removes what there is of it */
    if (err.kind != ERR_NONE)
        (void)not_copied(k, &err);
    else
        PROTO_SAY(keeper_say, k, EDGE_COPIED, .bytes = done.bytes, .us = us);
}

static int
can_be_copied(const struct keeper_live *k, struct err *err)
{
    if (k->snapshot.pid > 0) {
        err_set(err, ERR_LIMIT, "sandbox.busy", "the files of this sandbox are being copied already");
        return err_hint(err, "try again when that is over");
    }
    if (k->snapshot.root >= 0 && (k->policy.workspace.kind == WORKSPACE_TMPFS || k->volume_fd >= 0))
        return 0;
    err_set(err, ERR_UNSUPPORTED, "template.view", "this sandbox has folders of the host's in the place of its own");
    return err_hint(err, "what can be copied: mode standard or max, view private, engine native, and a workspace that "
                    "is the sandbox's own or a volume");
}

static int
start(struct keeper_live *k, const char *id, struct err *err)
{
    struct keeper_snapshot *s = &k->snapshot;
    cleanup_close int volumes = keeper_volumes_folder(k, err);
    void *shared;
    int fds[2];

    if (volumes < 0)
        return -1;
    shared = mmap(NULL, sizeof(*s->done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_sys(err, errno, "template.copy", "mmap");
    s->done = shared;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "template.copy", "pipe2");
    s->edge.fd = fds[0];
    s->pid = fork();
    if (s->pid == 0)
        copier(k, id, volumes, fds[1]);
    close(fds[1]);
    return s->pid < 0 ? err_sys(err, errno, "template.copy", "fork") : 0;
}

int
snapshot_on_ask(struct keeper_live *k, const struct edge_only_id *m)
{
    struct keeper_snapshot *s = &k->snapshot;
    bool was = k->paused;
    struct err err = ERR_INIT;

    if (can_be_copied(k, &err) < 0)
        return not_copied(k, &err);
    s->begun_us = clock_us();
    if (keeper_hold(k, true, &err) < 0)
        return not_copied(k, &err);
    s->resumes = !was;
    s->asked = true;
    if (start(k, m->id, &err) == 0)
        return 0;
    s->pid = s->pid < 0 ? 0 : s->pid;
    over(k);
    if (!was && keeper_hold(k, false, NULL) < 0)
        keeper_died(k, "it could not go on");
    return not_copied(k, &err);
}

void
snapshot_free(struct keeper_live *k)
{
    struct keeper_snapshot *s = &k->snapshot;

    if (s->pid > 0)
        (void)kill(s->pid, SIGKILL);
    over(k);
    k->ending = true;
    go_on(k);
    close_fd(&s->root);
    free(s->fill);
    s->fill = NULL;
}
