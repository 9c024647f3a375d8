/* keeper/keeper_edits.c: see keeper_edits.h */
#include "keeper/keeper_edits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "keeper/keeper.h"
#include "wall/mnt.h"
#include "workspace/edits.h"
#include "workspace/tree.h"

#define FD_ROOT     3
#define FD_SAY      4
#define WAIT_US     8000000UL           /* for the first look, and for the last: one takes EDITS_LOOK_US at most */
#define MEMORY      (256UL << 20)       /* of who looks */
#define TOLD_MAX    32                  /* messages that are heard before others have their turn */

enum word { WORD_LOOK = 'L', WORD_HIDE = 'H', WORD_FILE = 'F', WORD_DONE = 'D' };

/* What is said of a file, with its path and the diff behind; or that a look is over. */
struct said {
    uint8_t word, how;
    bool incomplete;
    uint16_t path_n;
    uint32_t diff_n, files, more;
    struct edit_state before, after;
};
#define SAID_MAX (sizeof(struct said) + TREE_PATH_MAX + 1 + EDITS_DIFF + 256)

#define NAME_ROOM (MASK_NAME + 1)
struct hide {
    uint8_t word;
    char name[NAME_ROOM];
    char value[MASK_MAX];
};

/* --- who looks ---------------------------------------------------------------------------------------------------- */

struct looker {
    struct masks *known, own;
    const bool *withhold;
    struct edits *edits;
    uint64_t looks;             /* that are asked for */
};

static bool
is_hidden(const struct masks *set, const char *value, size_t n)
{
    struct mask print;

    if (!mask_print(set->key, value, n, &print))
        return true;            /* it is not looked for */
    for (size_t i = 0; i < set->n; i++)
        if (set->v[i].n == print.n && memcmp(set->v[i].sum, print.sum, sizeof(print.sum)) == 0)
            return true;
    return false;
}

/* What the keeper has said, without waiting unless @wait. False: it is gone. */
static bool
hear(struct looker *w, bool wait)
{
    union { uint8_t word; struct hide hide; } m;
    struct pollfd p = { .fd = FD_SAY, .events = POLLIN };

    while (poll(&p, 1, wait ? -1 : 0) > 0) {
        ssize_t n = read(FD_SAY, &m, sizeof(m));
        const size_t head = offsetof(struct hide, value);

        if (n <= 0)
            return false;
        if (m.word == WORD_LOOK)
            w->looks++;
        else if (m.word == WORD_HIDE && (size_t)n > head && !is_hidden(&w->own, m.hide.value, (size_t)n - head))
            masks_add(&w->own, m.hide.name, m.hide.value, (size_t)n - head);
        explicit_bzero(&m, sizeof(m));
        wait = false;
    }
    return true;
}

/* A text was read before: of a command that wrote it, what it had is known by now. */
static int
redact(void *ctx, struct str text, struct buf *out)
{
    struct looker *w = ctx;
    cleanup_buf struct buf once = BUF_INIT(16 * EDITS_TEXT);
    bool known, own;

    if (!hear(w, false) || *(const volatile bool *)w->withhold || w->known->all || w->own.all)
        return -1;
    known = masks_redact(w->known, text, &once);
    if (known && !buf_ok(&once))
        return -1;
    if (known)
        text = (struct str){ (const char *)once.p, once.n };
    own = masks_redact(&w->own, text, out);
    if (known && !own)
        buf_append(out, text.p, text.n);
    return known || own;
}

static void
say(const struct said *head, const char *path, struct str diff)
{
    uint8_t m[SAID_MAX];

    memcpy(m, head, sizeof(*head));
    memcpy(m + sizeof(*head), path, head->path_n);
    if (head->diff_n > 0)
        memcpy(m + sizeof(*head) + head->path_n, diff.p, head->diff_n);
    if (write(FD_SAY, m, sizeof(*head) + head->path_n + head->diff_n) < 0)
        _exit(1);
}

static void
tell(void *ctx, const struct edit *e)
{
    size_t n = strlen(e->path);
    struct said head = { .word = WORD_FILE, .how = (uint8_t)e->how, .path_n = (uint16_t)n,
                         .diff_n = (uint32_t)e->diff.n, .before = e->before, .after = e->after };

    (void)ctx;
    say(&head, e->path, e->diff);
}

static void
look(struct looker *w, edits_tell *fn)
{
    struct edits_said said;

    if (edits_look(w->edits, FD_ROOT, redact, fn, w, &said) < 0)
        said.incomplete = true;
    say(&(struct said){ .word = WORD_DONE, .files = said.files, .more = said.more, .incomplete = said.incomplete }, "",
        STR_LIT(""));
}

_Noreturn static void
looker(struct keeper_live *k, int root, int sock)
{
    struct looker w = { .known = &k->masks, .withhold = k->edits.withhold };
    int high[2] = { fcntl(root, F_DUPFD_CLOEXEC, 64), fcntl(sock, F_DUPFD_CLOEXEC, 64) };
    struct err err = ERR_INIT;

    prctl(PR_SET_NAME, "cloche-edits");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || high[0] < 0 || high[1] < 0 || dup2(high[0], FD_ROOT) < 0 ||
        dup2(high[1], FD_SAY) < 0 || io_close_from(FD_SAY + 1) < 0)
        _exit(2);
#if !defined(CLOCHE_SANITIZED)
    if (!k->made && setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY, MEMORY }) < 0)
        _exit(2);
#endif
    if (!k->made && keeper_confine(&err) < 0)   /* later the keeper has it already */
        _exit(2);
    masks_init(&w.own);
    w.edits = edits_new();
    if (w.edits == NULL)
        _exit(2);
    /* its commands are run by whose folder it is; where it has mounts of its own, these map owners */
    if (k->policy.mode.v == MODE_LIGHT && sandbox_facts(k->l.sb)->other_user)
        edits_as(w.edits, sandbox_facts(k->l.sb)->uid, sandbox_facts(k->l.sb)->gid);
    look(&w, NULL);
    while (hear(&w, w.looks == 0))
        if (w.looks > 0) {
            w.looks--;
            look(&w, tell);
        }
    _exit(0);
}

/* --- the keeper's side -------------------------------------------------------------------------------------------- */

static bool
wanted(const struct keeper_live *k)
{
    return strcmp(k->daemon.transcript, "edits") == 0;
}

/* As the sandbox sees it: what is closed to it is so by mounts there, and not in the host's own folder. */
static int
find_inside(struct keeper_edits *x, const struct sandbox_facts *facts)
{
    cleanup_close int root = -1;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/root", (int)facts->pid);
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)facts->pid);
    x->mounts = root >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return x->mounts >= 0 ? mnt_open_beneath(root, facts->root, O_PATH | O_DIRECTORY, false) : -1;
}

int
edits_find(struct keeper_live *k, struct err *err)
{
    const struct sandbox_facts *facts = sandbox_facts(k->l.sb);
    bool bound = k->policy.workspace.dir != NULL && k->policy.workspace.kind == WORKSPACE_RW;

    k->edits.root = -1;
    if (!wanted(k))
        return 0;
    if (facts->own_mounts && facts->root[0] != '\0') {
        k->edits.root = find_inside(&k->edits, facts);
    } else if (bound && facts->covered) {
        err_set(err, ERR_UNSUPPORTED, "transcript.edits", "a part of %s is closed to this sandbox, or hidden by "
                "another file, and would be read from outside all the same", k->policy.workspace.dir);
        return err_hint(err, "engine native looks at the folder as the sandbox sees it");
    } else if (bound) {
        k->edits.root = open(k->policy.workspace.dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    } else {
        err_set(err, ERR_UNSUPPORTED, "transcript.edits", "the workspace of this sandbox is not seen from outside");
        return err_hint(err, "a folder of the host's that is the workspace is (\"workspace\": \"FOLDER:rw\")");
    }
    return k->edits.root >= 0 ? 0 : err_sys(err, errno, "transcript.edits", "the workspace %s", facts->root);
}

static void
stop(struct keeper_live *k)
{
    struct keeper_edits *x = &k->edits;

    if (x->pid > 0) {
        (void)kill(x->pid, SIGKILL);
        while (waitpid(x->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    x->pid = 0;
    x->looking = false;
    if (x->edge.fd >= 0)
        loop_drop(&k->loop, &x->edge);
    close_fd(&x->root);
    close_fd(&x->mounts);
}

static void
ask(struct keeper_live *k)
{
    struct keeper_edits *x = &k->edits;
    const uint8_t word = WORD_LOOK;

    if (x->pid <= 0 || x->looking || x->n_due == 0)
        return;
    if (write(x->edge.fd, &word, 1) != 1)
        return;         /* it has much to hear: with the next operation */
    x->looking = true;
    x->number = x->due;
    x->n = x->n_due;
    x->n_due = 0;
}

static void
record(struct keeper_live *k, const struct said *s, const char *path, struct str diff)
{
    struct keeper_edits *x = &k->edits;
    const struct edit e = { .path = path, .before = s->before, .after = s->after, .how = (enum edit_diff)s->how,
                            .diff = diff };
    uint64_t was = k->transcript.size;

    if (x->full)
        return;
    if (s->word == WORD_FILE)
        transcript_edit(&k->transcript, x->number, x->n, &e);
    else if (s->more > 0 || s->incomplete)
        transcript_edits(&k->transcript, x->number, s->more, s->incomplete, false);
    x->bytes += k->transcript.size - was;
    x->full = x->bytes > EDITS_BYTES;
    if (x->full)
        transcript_edits(&k->transcript, x->number, 0, false, true);
}

/* One message. 0: there is none now, -1: it said what it cannot say, or is gone. */
static int
hear_one(struct keeper_live *k)
{
    static uint8_t m[SAID_MAX + 1];
    struct keeper_edits *x = &k->edits;
    ssize_t n = read(x->edge.fd, m, sizeof(m));
    char path[TREE_PATH_MAX + 1];
    struct said s;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < (ssize_t)sizeof(s))
        return -1;
    memcpy(&s, m, sizeof(s));
    if ((s.word != WORD_FILE && s.word != WORD_DONE) || s.path_n > TREE_PATH_MAX || s.diff_n > EDITS_DIFF + 256 ||
        s.how > EDIT_DIFF_WITHHELD || (size_t)n != sizeof(s) + s.path_n + s.diff_n)
        return -1;
    memcpy(path, m + sizeof(s), s.path_n);
    path[s.path_n] = '\0';
    record(k, &s, path, (struct str){ (const char *)m + sizeof(s) + s.path_n, s.diff_n });
    if (s.word == WORD_DONE)
        x->looking = false;
    return 1;
}

static void
lost(struct keeper_live *k)
{
    stop(k);
    transcript_edits(&k->transcript, k->edits.number, 0, true, true);
}

void
edits_on_said(struct watch *w, uint32_t events)
{
    struct keeper_live *k = w->owner;
    int r = 1;

    (void)events;
    for (int i = 0; i < TOLD_MAX && r > 0; i++)
        r = hear_one(k);
    if (r < 0)
        return lost(k);
    ask(k);
}

/* Until it has looked. False: it did not in time, or is gone. */
static bool
wait_for_it(struct keeper_live *k, uint64_t until_us)
{
    struct keeper_edits *x = &k->edits;

    while (x->looking) {
        struct pollfd p = { .fd = x->edge.fd, .events = POLLIN };
        uint64_t now = clock_us();

        if (now >= until_us || (poll(&p, 1, (int)((until_us - now) / 1000) + 1) < 0 && errno != EINTR) ||
            (p.revents != 0 && hear_one(k) < 0))
            return false;
    }
    return true;
}

int
edits_begin(struct keeper_live *k, struct err *err)
{
    struct keeper_edits *x = &k->edits;
    int fds[2];

    if (x->root < 0 || k->transcript.fd < 0)
        return 0;
    x->withhold = mmap(NULL, sizeof(*x->withhold), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (x->withhold == MAP_FAILED) {
        x->withhold = NULL;
        return err_sys(err, errno, "transcript.edits", "mmap");
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(err, errno, "transcript.edits", "socketpair");
    x->pid = fork();
    if (x->pid == 0)
        looker(k, x->root, fds[1]);
    close(fds[1]);
    x->edge.fd = fds[0];
    if (x->pid < 0 || io_set_nonblock(fds[0], true) < 0) {
        err_sys(err, errno, "transcript.edits", "fork");
        stop(k);
        return -1;
    }
    x->looking = true;
    if (wait_for_it(k, clock_us() + WAIT_US))
        return 0;
    stop(k);
    return err_set(err, ERR_SYSTEM, "transcript.edits", "who looks at the workspace did not come to its end");
}

void
edits_hide(struct keeper_live *k, const struct edge_op *want)
{
    struct keeper_edits *x = &k->edits;
    struct hide m = { .word = WORD_HIDE };

    for (size_t i = 0; x->pid > 0 && i < want->n_env; i++) {
        const char *eq = strchr(want->env[i], '=');
        size_t n = strlen(eq + 1);

        if (n < MASK_MIN || n > MASK_MAX)
            continue;           /* it is not looked for */
        snprintf(m.name, sizeof(m.name), "[variable %.*s]", (int)(eq - want->env[i] < 48 ? eq - want->env[i] : 48),
                 want->env[i]);
        memcpy(m.value, eq + 1, n);
        if (write(x->edge.fd, &m, offsetof(struct hide, value) + n) < 0)
            *x->withhold = true;    /* for good: the value stays in files */
    }
    explicit_bzero(&m, sizeof(m));
}

void
edits_after(struct op *o)
{
    struct keeper_live *k = o->k;

    if (o->kind == OP_READ || o->kind == OP_LIST || o->kind == OP_STAT || o->kind == OP_CONNECT || o->kind == OP_WATCH)
        return;
    k->edits.due = o->number;
    k->edits.n_due++;
    ask(k);
}

void
edits_end(struct keeper_live *k)
{
    struct keeper_edits *x = &k->edits;
    uint64_t until = clock_us() + WAIT_US;

    if (x->pid > 0 && wait_for_it(k, until)) {
        x->due = 0;             /* of what went on in the background */
        x->n_due = 1;
        ask(k);
        if (!x->looking || !wait_for_it(k, until))
            transcript_edits(&k->transcript, 0, 0, true, false);
    }
    stop(k);
    if (x->withhold != NULL)
        (void)munmap(x->withhold, sizeof(*x->withhold));
    x->withhold = NULL;
}
