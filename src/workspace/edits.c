/* workspace/edits.c: see edits.h */
#include "workspace/edits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirents.h"
#include "workspace/lines.h"
#include "workspace/tree.h"

#define SLOTS    (1U << 17)             /* more than twice EDITS_FILES */
#define SOON_NS  50000000ULL            /* a change time this close to the look may be that of a later change too */

struct seen {
    char *path;                 /* owned */
    uint64_t ino, changed_ns;
    struct edit_state state;
    char *text;                 /* owned, of a text that is kept; NULL */
    uint32_t text_n, round;
    bool again;                 /* it may have changed after it was read */
};

struct edits {
    struct seen *slots[SLOTS];
    size_t n;
    uint64_t kept;
    uint32_t round;
    uint8_t key[16];
    bool as;                    /* ... this user and group */
    uid_t uid;
    gid_t gid;
};

struct look {
    struct edits *x;
    int root;
    edits_redact *redact;
    edits_tell *tell;
    void *ctx;
    struct edits_said *said;
    uint64_t end_us, read, begun_ns;
    char **folders;             /* that are to be looked into; owned */
    size_t n_folders, room;
    uint8_t *bytes;             /* of one file; EDITS_TEXT + 1 */
};

struct edits *
edits_new(void)
{
    struct edits *x = calloc(1, sizeof(*x));

    if (x != NULL && getrandom(x->key, sizeof(x->key), 0) != (ssize_t)sizeof(x->key)) {
        free(x);
        return NULL;
    }
    return x;
}

static void
forget(struct edits *x, struct seen *s)
{
    x->kept -= s->text_n;
    free(s->text);
    free(s->path);
    free(s);
}

void
edits_free(struct edits *x)
{
    for (size_t i = 0; x != NULL && i < SLOTS; i++)
        if (x->slots[i] != NULL)
            forget(x, x->slots[i]);
    free(x);
}

/* The slot of @path, or the free one where it would be. Names are the sandbox's: by a key that it does not know none
 * of them fall together. */
static struct seen **
slot_of(struct edits *x, const char *path)
{
    uint8_t sum[SHA256_SIZE];
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, x->key, sizeof(x->key));
    sha256_add(&h, path, strlen(path));
    sha256_end(&h, sum);
    for (size_t i = ((size_t)sum[0] << 16 | (size_t)sum[1] << 8 | sum[2]) & (SLOTS - 1);; i = (i + 1) & (SLOTS - 1))
        if (x->slots[i] == NULL || strcmp(x->slots[i]->path, path) == 0)
            return &x->slots[i];
}

void
edits_as(struct edits *x, uid_t uid, gid_t gid)
{
    x->as = true;
    x->uid = uid;
    x->gid = gid;
}

static bool
may_read(const struct edits *x, const struct stat *st)
{
    unsigned shift = st->st_uid == x->uid ? 6 : st->st_gid == x->gid ? 3 : 0, want = S_ISDIR(st->st_mode) ? 5 : 4;

    return !x->as || ((unsigned)st->st_mode >> shift & want) == want;
}

static bool
late(const struct look *l)
{
    return clock_us() >= l->end_us;
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

static void
keep_text(struct edits *x, struct seen *s, const uint8_t *p, size_t n)
{
    x->kept -= s->text_n;
    free(s->text);
    s->text = p != NULL && x->kept + n <= EDITS_KEPT ? malloc(n + 1) : NULL;
    s->text_n = s->text != NULL ? (uint32_t)n : 0;
    if (s->text != NULL && n > 0)
        memcpy(s->text, p, n);
    x->kept += s->text_n;
}

/* What is in the file, at most as much as is hashed: to @state, and, if it is short, to l->bytes. How much is there,
 * SIZE_MAX: it is not all there, or could not be read. */
static size_t
read_file(struct look *l, const char *path, const struct stat *was, struct edit_state *state, bool *moved)
{
    cleanup_close int fd = -1;
    uint8_t piece[16384];
    struct sha256 h;
    struct stat st;
    uint64_t n = 0;
    ssize_t got = 1;

    if ((uint64_t)was->st_size > EDITS_HASHED || l->read + (uint64_t)was->st_size > EDITS_READ)
        return SIZE_MAX;
    fd = tree_open(l->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != was->st_ino) {
        *moved = true;
        return SIZE_MAX;
    }
    if (!may_read(l->x, &st))
        return SIZE_MAX;
    sha256_init(&h);
    while (n <= EDITS_HASHED && (got = read(fd, piece, sizeof(piece))) > 0) {
        if (n + (uint64_t)got <= EDITS_TEXT)
            memcpy(l->bytes + n, piece, (size_t)got);
        sha256_add(&h, piece, (size_t)got);
        n += (uint64_t)got;
    }
    l->read += n;
    *moved = fstat(fd, &st) < 0 || st.st_size != was->st_size || st.st_ctim.tv_sec != was->st_ctim.tv_sec ||
             st.st_ctim.tv_nsec != was->st_ctim.tv_nsec;
    if (got != 0)
        return SIZE_MAX;
    sha256_end(&h, state->sum);
    state->hashed = true;
    state->size = n;
    return n <= EDITS_TEXT ? (size_t)n : SIZE_MAX;
}

static size_t
read_link(struct look *l, int dir, const char *name, struct edit_state *state)
{
    ssize_t n = readlinkat(dir, name, (char *)l->bytes, PATH_MAX);
    struct sha256 h;

    if (n < 0)
        return SIZE_MAX;
    sha256_init(&h);
    sha256_add(&h, l->bytes, (size_t)n);
    sha256_end(&h, state->sum);
    state->hashed = true;
    return (size_t)n;
}

/* One side of a change: a text, or none that is at hand (@p NULL). */
struct side {
    struct str text;
    bool binary, shut;          /* shut: nothing of it may be shown */
    struct buf room;            /* for the text without values */
};

/* @side without values, and @state without a digest where it has any: who has the digest of a file that holds a short
 * secret and little else can guess that. So has what is short enough to be looked through and was not. */
static void
clean(const struct look *l, struct side *side, struct edit_state *state)
{
    const struct str text = side->text;
    int r = text.p == NULL ? state->size <= EDITS_TEXT : text.n > 0 ? l->redact(l->ctx, text, &side->room) : 0;

    side->binary = text.p != NULL && memchr(text.p, '\0', text.n) != NULL;
    side->shut = r < 0 || !buf_ok(&side->room);
    if (text.p != NULL && r > 0)
        side->text = (struct str){ (const char *)side->room.p, side->room.n };
    if (r != 0 || side->shut) {
        state->hashed = false;
        memset(state->sum, 0, sizeof(state->sum));
    }
}

/* Values were taken out of whole texts, before lines of them are told apart: one may have several. */
static void
diff(struct edit *e, const struct side *before, const struct side *after, struct buf *out)
{
    int r;

    if (before->binary || after->binary) {
        e->how = EDIT_DIFF_BINARY;
    } else if (before->shut || after->shut) {
        e->how = EDIT_DIFF_WITHHELD;
    } else {
        r = lines_diff(before->text, after->text, EDITS_DIFF, out);
        e->how = r < 0 ? EDIT_DIFF_NONE : r > 0 ? EDIT_DIFF_CUT : EDIT_DIFF_WHOLE;
        e->diff = (struct str){ (const char *)out->p, out->n };
    }
}

static bool
same(const struct edit_state *a, const struct edit_state *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->size == b->size && a->hashed == b->hashed &&
           (!a->hashed || memcmp(a->sum, b->sum, sizeof(a->sum)) == 0);
}

static void
tell(struct look *l, const struct seen *s, const struct edit_state *now, const uint8_t *p, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(EDITS_DIFF + 256);
    struct edit e = { .path = s->path, .before = s->state, .after = *now };
    /* what was not there, or is not, is an empty text */
    struct side before = { .text = { s->state.kind == 0 ? "" : s->text, s->text_n },
                           .room = BUF_INIT(16 * EDITS_TEXT) };
    struct side after = { .text = { now->kind == 0 ? "" : (const char *)p, p != NULL ? n : 0 },
                          .room = BUF_INIT(16 * EDITS_TEXT) };

    if (l->said->files >= EDITS_SAID || late(l)) {
        l->said->more++;
        return;
    }
    l->said->files++;
    clean(l, &before, &e.before);
    clean(l, &after, &e.after);
    if (before.text.p != NULL && after.text.p != NULL && (s->text != NULL || p != NULL))
        diff(&e, &before, &after, &out);
    l->tell(l->ctx, &e);
    buf_free(&before.room);
    buf_free(&after.room);
}

/* @name in @dir, which is @path, is there, and no folder. */
static void
look_at(struct look *l, int dir, const char *name, const char *path, const struct stat *st)
{
    struct seen **slot = slot_of(l->x, path), *s = *slot;
    uint64_t changed = (uint64_t)st->st_ctim.tv_sec * 1000000000ULL + (uint64_t)st->st_ctim.tv_nsec;
    struct edit_state now = { .kind = S_ISREG(st->st_mode) ? 'f' : S_ISLNK(st->st_mode) ? 'l' : 'o',
                              .mode = (uint32_t)st->st_mode, .size = (uint64_t)st->st_size };
    size_t n = SIZE_MAX;
    bool moved = false;

    if (s != NULL)
        s->round = l->x->round;
    if (s != NULL && !s->again && s->ino == st->st_ino && s->changed_ns == changed && s->state.mode == now.mode)
        return;
    if (s == NULL) {
        if (l->x->n >= EDITS_FILES || (s = calloc(1, sizeof(*s))) == NULL || (s->path = strdup(path)) == NULL) {
            free(s);
            l->said->incomplete = true;
            return;
        }
        *slot = s;
        l->x->n++;
        s->round = l->x->round;
    }
    if (now.kind == 'f')
        n = read_file(l, path, st, &now, &moved);
    else if (now.kind == 'l')
        n = read_link(l, dir, name, &now);
    /* of what is too large to be hashed its time alone tells */
    if (l->tell != NULL && (!same(&s->state, &now) || (now.kind == 'f' && !now.hashed && s->changed_ns != changed)))
        tell(l, s, &now, n != SIZE_MAX ? l->bytes : NULL, n);
    keep_text(l->x, s, n != SIZE_MAX ? l->bytes : NULL, n);
    s->state = now;
    s->ino = st->st_ino;
    s->changed_ns = changed;
    s->again = moved || changed + SOON_NS >= l->begun_ns;
}

/* --- the tree ----------------------------------------------------------------------------------------------------- */

static bool
push(struct look *l, const char *path)
{
    if (l->n_folders == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        char **v = room > 2 * EDITS_FILES ? NULL : reallocarray(l->folders, room, sizeof(*v));

        if (v == NULL)
            return false;
        l->folders = v;
        l->room = room;
    }
    l->folders[l->n_folders] = strdup(path);
    return l->folders[l->n_folders] != NULL && ++l->n_folders > 0;
}

static void
look_into(struct look *l, const char *folder, size_t *entries)
{
    cleanup_close int fd = tree_open(l->root, folder, O_RDONLY | O_DIRECTORY);
    struct dirents names = { .fd = fd };
    char path[TREE_PATH_MAX + 1];
    const char *name;
    struct stat st;

    if (fd < 0) {       /* shut, a mount of somebody else's, or gone */
        l->said->incomplete |= errno != ENOENT && errno != EXDEV && errno != ELOOP && errno != ENOTDIR;
        return;
    }
    if (fstat(fd, &st) < 0 || !may_read(l->x, &st)) {
        l->said->incomplete = true;
        return;
    }
    while ((name = dirents_next(&names)) != NULL) {
        int n = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);

        if (n >= (int)sizeof(path) || ++*entries > EDITS_FILES || late(l)) {
            l->said->incomplete = true;
            if (n < (int)sizeof(path))
                return;
            continue;
        }
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;       /* gone meanwhile */
        if (!S_ISDIR(st.st_mode))
            look_at(l, fd, name, path, &st);
        else if (!push(l, path))
            l->said->incomplete = true;
    }
    l->said->incomplete |= names.failed != 0;
}

/* What was there and was not met is gone: asked once more, for a look may not have come to it. The table is made anew,
 * for a slot that is emptied would hide those behind it. */
static void
look_for_gone(struct look *l)
{
    struct edits *x = l->x;
    cleanup_free struct seen **all = NULL;
    size_t n = 0, at = 0;

    while (at < SLOTS && (x->slots[at] == NULL || x->slots[at]->round == x->round))
        at++;
    if (at == SLOTS)
        return;     /* all were met: no path need be digested again */
    all = calloc(x->n + 1, sizeof(*all));
    if (all == NULL) {
        l->said->incomplete = true;
        return;
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (x->slots[i] != NULL)
            all[n++] = x->slots[i];
    memset(x->slots, 0, sizeof(x->slots));
    x->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct seen *s = all[i];
        bool gone = false;

        if (s->round != x->round && late(l)) {      /* with the next look */
            l->said->incomplete = true;
        } else if (s->round != x->round) {
            const char *name;
            cleanup_close int dir = tree_open_parent(l->root, s->path, &name);
            struct stat st;

            gone = dir < 0 ? errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                           : fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno == ENOENT : S_ISDIR(st.st_mode);
        }
        if (!gone) {
            *slot_of(x, s->path) = s;
            x->n++;
            continue;
        }
        if (l->tell != NULL)
            tell(l, s, &(struct edit_state){ .kind = 0 }, NULL, 0);
        forget(x, s);
    }
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int
edits_look(struct edits *x, int root, edits_redact *redact, edits_tell *tell_fn, void *ctx, struct edits_said *said)
{
    struct look l = { .x = x, .root = root, .redact = redact, .tell = tell_fn, .ctx = ctx, .said = said,
                      .end_us = clock_us() + EDITS_LOOK_US, .begun_ns = now_ns() };
    cleanup_close int top = tree_open(root, "", O_RDONLY | O_DIRECTORY);
    size_t entries = 0;

    *said = (struct edits_said){ .files = 0 };
    l.bytes = malloc(EDITS_TEXT + 1 + PATH_MAX);
    if (top < 0 || l.bytes == NULL || !push(&l, "")) {
        free(l.bytes);
        return -1;
    }
    x->round++;
    while (l.n_folders > 0) {
        cleanup_free char *folder = l.folders[--l.n_folders];

        if (late(&l))
            said->incomplete = true;
        else
            look_into(&l, folder, &entries);
    }
    look_for_gone(&l);
    free(l.folders);
    free(l.bytes);
    return 0;
}
