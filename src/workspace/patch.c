/* workspace/patch.c: see patch.h */
#include "workspace/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/unseen.h"
#include "workspace/overlay.h"
#include "workspace/quote.h"
#include "workspace/tree.h"

#define SNIFF 8000          /* bytes that are looked at for a NUL, as git does */
#define DIFF_SECONDS 20     /* CPU time of one comparison */

enum text_kind { TEXT_NONE, TEXT_LINES, TEXT_BINARY, TEXT_LARGE };

/* One side's content. */
struct side_text {
    enum text_kind kind;
    struct buf bytes;
};

static int
root_of(const struct diff_input *in, bool upper)
{
    return upper ? tree_open(in->layers, OVERLAY_UPPER, O_RDONLY | O_DIRECTORY)
                 : fcntl(in->project, F_DUPFD_CLOEXEC, 0);
}

static int
file_bytes(const struct diff_input *in, const char *path, bool upper, struct buf *out)
{
    const char *name;

    cleanup_close int root = root_of(in, upper);
    cleanup_close int dir = root >= 0 ? tree_open_parent(root, path, &name) : -1;
    cleanup_close int fd = dir >= 0 ? tree_open_file(dir, name, upper) : -1;
    return fd < 0 ? -1 : io_read_all(fd, out);
}

static bool
has_nul(const struct buf *b)
{
    return b->n > 0 && memchr(b->p, 0, b->n < SNIFF ? b->n : SNIFF) != NULL;
}

/* The bytes of one side of a change: content, or a symlink's target. */
static int
side_read(const struct diff_input *in, const struct change *e, const char *path, bool upper, struct side_text *out,
          struct err *err)
{
    const struct change_side *side = upper ? &e->upper : &e->lower;
    struct buf *bytes = &out->bytes;

    *out = (struct side_text){ .kind = TEXT_NONE, .bytes = BUF_INIT(PATCH_FILE_MAX) };
    if (S_ISREG(side->mode) && side->size > PATCH_FILE_MAX) {
        out->kind = TEXT_LARGE;
        return 0;
    }
    if (S_ISREG(side->mode)) {
        if (file_bytes(in, path, upper, bytes) < 0)
            return err_sys(err, errno, "workspace.diff.read", "cannot read a file of the %s",
                           upper ? "upper layer" : "project");
    } else if (S_ISLNK(side->mode)) {
        buf_puts(bytes, side->target);
    }
    if (S_ISREG(side->mode) || S_ISLNK(side->mode))
        out->kind = has_nul(bytes) ? TEXT_BINARY : TEXT_LINES;
    return 0;
}

/* @b in an anonymous file. */
static int
hold(const struct buf *b, struct err *err)
{
    cleanup_close int fd = memfd_create("cloche-diff", MFD_CLOEXEC);

    if (fd < 0 || (b->n > 0 && io_write_full(fd, b->p, b->n) < 0))
        return err_sys(err, errno, "workspace.diff.run", "cannot hold a file's content");
    return take_fd(&fd);
}

/* What diff(1) would say about text against nothing: most of what a run adds, without a process for each. */
static void
one_sided(const struct buf *text, bool added, struct buf *out)
{
    size_t lines = 0;

    for (size_t i = 0; i < text->n; i++)
        lines += text->p[i] == '\n';
    lines += text->n > 0 && text->p[text->n - 1] != '\n';
    if (lines == 0)
        return;
    buf_printf(out, "--- a\n+++ b\n@@ %s1", added ? "-0,0 +" : "-");
    if (lines > 1)
        buf_printf(out, ",%zu", lines);
    buf_puts(out, added ? " @@\n" : " +0,0 @@\n");
    for (size_t at = 0; at < text->n;) {
        const uint8_t *end = memchr(text->p + at, '\n', text->n - at);
        size_t n = end != NULL ? (size_t)(end - text->p) + 1 - at : text->n - at;
        buf_put_u8(out, added ? '+' : '-');
        buf_append(out, text->p + at, n);
        at += n;
    }
    if (text->p[text->n - 1] != '\n')
        buf_puts(out, "\n\\ No newline at end of file\n");
}

/* In the child: become diff(1) on descriptors 3 and 4, writing to @to. */
static void
exec_diff(int to, int a, int b)
{
    static const char *const argv[] = { "diff", "-u", "-a", "--label", "a", "--label", "b",
                                        "/proc/self/fd/3", "/proc/self/fd/4", NULL };
    static const char *const env[] = { "LC_ALL=C", NULL };
    static const char *const places[] = { "/usr/bin/diff", "/bin/diff", "/usr/local/bin/diff" };
    struct rlimit seconds = { DIFF_SECONDS, DIFF_SECONDS };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* above the numbers that they are about to take */
    int high_to = fcntl(to, F_DUPFD_CLOEXEC, 16);
    int high_a = fcntl(a, F_DUPFD_CLOEXEC, 16), high_b = fcntl(b, F_DUPFD_CLOEXEC, 16);

    if (dup2(null, 0) < 0 || dup2(high_to, 1) < 0 || dup2(null, 2) < 0 || dup2(high_a, 3) < 0 || dup2(high_b, 4) < 0)
        _exit(2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CPU, &seconds);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        execve(places[i], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    if (errno == ENOENT)
        execvpe("diff", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(errno == ENOENT ? 127 : 126);
}

static int
diff_status(int status, struct err *err)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        err_set(err, ERR_UNSUPPORTED, "workspace.diff.no-diff", "diff(1) is not installed");
        return err_hint(err, "install GNU diffutils, or use --name-only or --json, which need no diff");
    }
    return 1;   /* too much for it: the files differ, no more is known */
}

/* Run diff(1) on the two sides. 0 with the hunks in @out, 1 when diff gave up, -1 with @err. */
static int
run_diff(const struct side_text *a, const struct side_text *b, struct buf *out, struct err *err)
{
    int fds[2], status;

    cleanup_close int old = hold(&a->bytes, err);
    cleanup_close int new = hold(&b->bytes, err);
    if (old < 0 || new < 0)
        return -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(err, errno, "workspace.diff.run", "pipe");
    cleanup_close int from = fds[0];
    cleanup_close int to = fds[1];
    pid_t pid = fork();
    if (pid == 0)
        exec_diff(to, old, new);
    if (pid < 0)
        return err_sys(err, errno, "workspace.diff.run", "fork");
    close_fd(&to);
    int r = io_read_all(from, out);
    if (r < 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r < 0 ? 1 : diff_status(status, err);
}

/* --- text -------------------------------------------------------------------------------------------------------- */

int
patch_visible(struct buf *out, const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint8_t c = text[i];
        uint32_t cp = 0;
        size_t size = utf8_char(text + i, n - i, &cp);
        if (size == 0)
            buf_printf(out, "<%02X>", c);       /* among them the C1 controls of older terminals' sets */
        else if (c == '\n' || c == '\t' || !utf8_unseen(cp))
            buf_append(out, text + i, size);
        else if (size == 1)
            buf_printf(out, "^%c", c ^ 0x40);
        else
            buf_printf(out, "<U+%04X>", (unsigned)cp);
        i += size > 0 ? size : 1;
    }
    return buf_ok(out) ? 0 : -1;
}

static void
line(struct buf *out, const struct patch_style *style, const char *colour, const uint8_t *text, size_t n)
{
    if (style->colour && colour[0] != '\0')
        buf_puts(out, colour);
    if (style->terminal)
        patch_visible(out, text, n);
    else
        buf_append(out, text, n);
    if (style->colour && colour[0] != '\0')
        buf_puts(out, "\033[m");
    buf_puts(out, "\n");
}

/* The hunks that diff(1) wrote, without its two lines of names. */
static void
hunks(struct buf *out, const struct patch_style *style, const struct buf *diff)
{
    size_t at = 0, number = 0;

    while (at < diff->n) {
        const uint8_t *p = diff->p + at;
        const uint8_t *end = memchr(p, '\n', diff->n - at);
        size_t n = end != NULL ? (size_t)(end - p) : diff->n - at;
        const char *colour = *p == '+' ? "\033[32m" : *p == '-' ? "\033[31m" : *p == '@' ? "\033[36m" : "";
        if (number++ >= 2)
            line(out, style, colour, p, n);
        at += n + 1;
    }
}

static unsigned
git_mode(mode_t mode)
{
    return S_ISLNK(mode) ? 0120000U : (mode & 0111) != 0 ? 0100755U : 0100644U;
}

static void
text_line(struct buf *out, const struct patch_style *style, struct buf *text)
{
    line(out, style, "\033[1m", text->p, text->n);
    buf_reset(text);
}

/* "diff --git", and what git says about modes and names. @from is the old name's path. */
static void
header(struct buf *out, const struct patch_style *style, const struct change *e, struct str from, struct str path)
{
    cleanup_buf struct buf t = BUF_INIT(12 * TREE_PATH_MAX);
    bool was = e->kind != CHANGE_ADDED || e->pair != CHANGE_NOT, is = e->kind != CHANGE_DELETED;

    buf_puts(&t, "diff --git ");
    quote_name(&t, "a/", from);
    buf_puts(&t, " ");
    quote_name(&t, "b/", path);
    text_line(out, style, &t);
    if (!was) {
        buf_printf(&t, "new file mode %06o", git_mode(e->upper.mode));
        text_line(out, style, &t);
    } else if (!is) {
        buf_printf(&t, "deleted file mode %06o", git_mode(e->lower.mode));
        text_line(out, style, &t);
    } else if (e->pair != CHANGE_NOT) {
        buf_puts(&t, "similarity index 100%");
        text_line(out, style, &t);
        buf_puts(&t, "rename from ");
        quote_name(&t, "", from);
        text_line(out, style, &t);
        buf_puts(&t, "rename to ");
        quote_name(&t, "", path);
        text_line(out, style, &t);
    } else if (git_mode(e->lower.mode) != git_mode(e->upper.mode)) {
        buf_printf(&t, "old mode %06o", git_mode(e->lower.mode));
        text_line(out, style, &t);
        buf_printf(&t, "new mode %06o", git_mode(e->upper.mode));
        text_line(out, style, &t);
    }
}

static void
file_line(struct buf *out, const struct patch_style *style, const char *mark, const char *prefix, struct str path)
{
    cleanup_buf struct buf t = BUF_INIT(6 * TREE_PATH_MAX);

    buf_puts(&t, mark);
    if (path.p == NULL)
        buf_puts(&t, "/dev/null");
    else
        quote_name(&t, prefix, path);
    /* patch(1) takes the name to end at a blank otherwise */
    if (path.p != NULL && memchr(path.p, ' ', path.n) != NULL && t.p[t.n - 1] != '"')
        buf_puts(&t, "\t");
    text_line(out, style, &t);
}

static void
differ(struct buf *out, const struct patch_style *style, bool binary, const struct change *e, struct str from,
       struct str path)
{
    cleanup_buf struct buf t = BUF_INIT(12 * TREE_PATH_MAX);

    buf_puts(&t, binary ? "Binary files " : "Files too large to compare: ");
    if (e->kind == CHANGE_ADDED)
        buf_puts(&t, "/dev/null");
    else
        quote_name(&t, "a/", from);
    buf_puts(&t, " and ");
    if (e->kind == CHANGE_DELETED)
        buf_puts(&t, "/dev/null");
    else
        quote_name(&t, "b/", path);
    buf_puts(&t, " differ");
    text_line(out, style, &t);
}

/* --- one change -------------------------------------------------------------------------------------------------- */

/* Both sides' hunks. 0 with text, 1 when there is none to be had (*binary says why), -1 with @err. */
static int
compare(const struct diff_input *in, const struct change *e, const char *path, struct buf *diff, bool *binary,
        struct err *err)
{
    struct side_text a = { .kind = TEXT_NONE }, b = { .kind = TEXT_NONE };
    int r = side_read(in, e, path, false, &a, err);

    *binary = true;
    if (r == 0)
        r = side_read(in, e, path, true, &b, err);
    if (r == 0) {
        *binary = a.kind == TEXT_BINARY || b.kind == TEXT_BINARY;
        if (*binary || a.kind == TEXT_LARGE || b.kind == TEXT_LARGE)
            r = 1;
        else if (a.kind == TEXT_LINES && b.kind == TEXT_LINES)
            r = run_diff(&a, &b, diff, err);
        else
            one_sided(a.kind == TEXT_LINES ? &a.bytes : &b.bytes, a.kind != TEXT_LINES, diff);
    }
    buf_free(&a.bytes);
    buf_free(&b.bytes);
    return r;
}

static bool
has_text(mode_t mode)
{
    return S_ISREG(mode) || S_ISLNK(mode);
}

static bool
shown(const struct change *e)
{
    bool old_name = e->kind == CHANGE_DELETED && e->pair != CHANGE_NOT;
    return !old_name && (has_text(e->upper.mode) || has_text(e->lower.mode)) &&
           (e->flags & (CHANGE_UNREADABLE | CHANGE_TOO_DEEP)) == 0;
}

/* A change as git sees it: a change of type is a deletion and an addition. */
static int
write_as(const struct diff_input *in, const struct changes *c, size_t i, enum change_kind kind,
         const struct patch_style *style, struct buf *out, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    cleanup_buf struct buf from = BUF_INIT(TREE_PATH_MAX + 1);
    cleanup_buf struct buf diff = BUF_INIT(PATCH_TEXT_MAX);
    const struct str nothing = { .p = NULL };
    struct change view = c->v[i];
    bool renamed = kind == CHANGE_ADDED && view.pair != CHANGE_NOT, binary = false;
    int r;

    if (change_path(c, i, &path) < 0 || change_path(c, renamed ? view.pair : i, &from) < 0)
        return err_set(err, ERR_LIMIT, "workspace.diff.too-large", "a path is too long");
    struct str old_name = { .p = (char *)from.p, .n = from.n }, new_name = { .p = (char *)path.p, .n = path.n };

    /* the other side of a change of type is not there */
    view.kind = kind;
    if (kind == CHANGE_DELETED)
        view.upper.mode = 0;
    if (kind == CHANGE_ADDED)
        view.lower.mode = 0;
    header(out, style, &view, old_name, new_name);
    r = renamed ? 0 : compare(in, &view, (const char *)path.p, &diff, &binary, err);
    if (r == 1)
        differ(out, style, binary, &view, old_name, new_name);
    if (r == 0 && diff.n > 0) {
        file_line(out, style, "--- ", "a/", kind == CHANGE_ADDED ? nothing : old_name);
        file_line(out, style, "+++ ", "b/", kind == CHANGE_DELETED ? nothing : new_name);
        hunks(out, style, &diff);
    }
    if (r >= 0 && !buf_ok(out))
        return err_set(err, ERR_LIMIT, "workspace.diff.too-large", "a patch exceeds %lu MiB", PATCH_TEXT_MAX >> 20);
    return r < 0 ? -1 : 0;
}

int
patch_write(const struct diff_input *in, const struct changes *c, size_t i, const struct patch_style *style,
            struct buf *out, struct err *err)
{
    const struct change *e = &c->v[i];

    if (!shown(e))
        return 0;
    if (e->kind != CHANGE_TYPE)
        return write_as(in, c, i, e->kind, style, out, err);
    if (has_text(e->lower.mode) && write_as(in, c, i, CHANGE_DELETED, style, out, err) < 0)
        return -1;
    return has_text(e->upper.mode) ? write_as(in, c, i, CHANGE_ADDED, style, out, err) : 0;
}

int
patch_count(const struct diff_input *in, const struct changes *c, size_t i, struct patch_count *out, struct err *err)
{
    cleanup_buf struct buf diff = BUF_INIT(PATCH_TEXT_MAX);
    cleanup_buf struct buf path = BUF_INIT(TREE_PATH_MAX + 1);
    const struct change *e = &c->v[i];
    bool binary;

    *out = (struct patch_count){ .binary = false };
    if (!shown(e) || e->pair != CHANGE_NOT)
        return 0;
    if (change_path(c, i, &path) < 0)
        return err_set(err, ERR_LIMIT, "workspace.diff.too-large", "a path is too long");
    int r = compare(in, e, (const char *)path.p, &diff, &binary, err);
    if (r < 0)
        return -1;
    out->binary = r == 1;
    size_t number = 0;
    for (size_t at = 0; at < diff.n && r == 0; number++) {
        const uint8_t *end = memchr(diff.p + at, '\n', diff.n - at);
        if (number >= 2 && diff.p[at] == '+')
            out->added++;
        else if (number >= 2 && diff.p[at] == '-')
            out->removed++;
        at = end != NULL ? (size_t)(end - diff.p) + 1 : diff.n;
    }
    return 0;
}
