/* front/collect.c: files that a call of POST /v1/execute wants back (docs/daemon.md)
 *
 * When the code has ended: one listing after the other, then one file after the other. Each is an operation, so the
 * sandbox's guest judges where a path leads, and opens regular files and nothing else. What it says of names and sizes
 * is a stranger's word: everything has a ceiling, and a name leads nowhere else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "front/collect.h"
#include "match/path.h"

#define CODE         "execute.collect"
#define FORM         "collect is a list of patterns below the workspace, as out/*.csv or **/*.log"
#define PATTERNS_MAX 8
#define PATTERN_MAX  128
#define DIRS_MAX     256
#define ENTRIES_MAX  4096
#define FILES_MAX    64
#define FILE_MAX     (1024UL * 1024)
#define BYTES_MAX    (8UL * 1024 * 1024)
#define NAME_MAX_ALL 512                    /* of a path: a longer one is not looked at */
#define STEPS_MAX    (64UL * 1024 * 1024)   /* of comparing paths with patterns, for all of them */

/* Paths have a slash before them, which stands for the workspace: of that itself it is all. */
struct collect {
    char *patterns[PATTERNS_MAX];
    char *dirs[DIRS_MAX], *found[FILES_MAX];
    size_t n_patterns, n_dirs, n_found, at_dir, at_found, entries, steps, bytes;
    json_t *files;
    struct buf buf;                         /* of the file at hand */
    bool buf_cut, cut, begun;
    const struct op_answers *said;          /* the command's, which ended so: */
    uint8_t flags;
    uint32_t code;
    uint64_t ms;
};

void
collect_free(struct request *r)
{
    struct collect *c = r->collect;

    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_patterns; i++)
        free(c->patterns[i]);
    for (size_t i = 0; i < c->n_dirs; i++)
        free(c->dirs[i]);
    for (size_t i = 0; i < c->n_found; i++)
        free(c->found[i]);
    json_decref(c->files);
    buf_free(&c->buf);
    free(c);
    r->collect = NULL;
}

size_t
collect_held(const struct request *r)
{
    return r->collect != NULL ? r->collect->buf.cap + 2 * r->collect->bytes : 0;
}

/* "DIR/NAME". NULL: no memory. */
static char *
joined(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = malloc(n);

    if (path != NULL)
        snprintf(path, n, "%s/%s", dir, name);
    return path;
}

/* --- the request -------------------------------------------------------------------------------------------------- */

static const char *
pattern_fault(const char *pattern)
{
    static char room[PATH_TEXT_MAX + 1];
    const char *fault = execute_path_fault(pattern);
    enum path_fault syntax;
    size_t n;

    if (fault != NULL || strlen(pattern) > PATTERN_MAX)
        return fault != NULL ? fault : "has more than 128 bytes";
    syntax = path_normalise(str_of(pattern), str_of("/"), true, room, sizeof(room), &n);
    return syntax != PATH_OK ? path_fault_text(syntax) : NULL;
}

bool
collect_well(struct request *r, const json_t *patterns)
{
    if (patterns == NULL)
        return true;
    if (!json_is_array(patterns) || json_array_size(patterns) > PATTERNS_MAX)
        return reply_unfit(r, CODE, FORM "; at most 8 of them");
    r->collect = calloc(1, sizeof(*r->collect));
    if (r->collect == NULL)
        return reply_unfit(r, "memory", "out of memory");
    r->collect->files = json_array();
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));
        const char *fault = pattern != NULL ? pattern_fault(pattern) : "is no string";
        if (fault != NULL) {
            reply_error(r, MHD_HTTP_BAD_REQUEST, CODE, FORM, "collect[%zu] (\"%.128s\") %s", i,
                        pattern != NULL ? pattern : "", fault);
            return false;
        }
        r->collect->patterns[i] = joined("", pattern);
        r->collect->n_patterns = i + 1;
    }
    return true;
}

/* --- what is looked for ------------------------------------------------------------------------------------------- */

/* Whether something below the folder @path can match. */
static bool
may_hold(const struct collect *c, const char *path)
{
    for (size_t i = 0; i < c->n_patterns; i++) {
        const char *p = c->patterns[i];
        struct str prefix = { p, path_glob_prefix(str_of(p)) };
        if (prefix.n > 0 && !path_within(str_of(path), prefix) && !path_within(prefix, str_of(path)))
            continue;
        if (path_glob_goes_below(p, path))
            return true;
    }
    return false;
}

static bool
is_wanted(struct collect *c, const char *path)
{
    for (size_t i = 0; i < c->n_patterns; i++) {
        c->steps += strlen(c->patterns[i]) * strlen(path);
        if (c->steps > STEPS_MAX) {
            c->cut = true;
            return false;
        }
        if (path_glob_match(str_of(c->patterns[i]), str_of(path)))
            return true;
    }
    return false;
}

static void
add(struct collect *c, char **list, size_t *n, size_t max, const char *path)
{
    char *copy = *n < max ? strdup(path) : NULL;

    if (copy != NULL)
        list[(*n)++] = copy;
    else
        c->cut = true;
}

static void
on_entry(struct request *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    struct collect *c = r->collect;
    cleanup_free char *path = NULL;

    (void)size;
    (void)mtime_ns;
    /* who writes what comes back to where it was would write elsewhere */
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || name[0] == '\0')
        return;
    if (!S_ISDIR(mode) && !S_ISREG(mode))
        return;
    path = joined(c->dirs[c->at_dir], name);
    if (path == NULL || strlen(path) > NAME_MAX_ALL || ++c->entries > ENTRIES_MAX)
        c->cut = true;
    else if (S_ISDIR(mode) && may_hold(c, path))
        add(c, c->dirs, &c->n_dirs, DIRS_MAX, path);
    else if (S_ISREG(mode) && is_wanted(c, path))
        add(c, c->found, &c->n_found, FILES_MAX, path);
}

/* --- what is found ------------------------------------------------------------------------------------------------ */

/* Text that JSON has as it is, or nearly. */
static bool
is_text(const struct buf *b)
{
    for (size_t i = 0, took; i < b->n; i += took) {
        uint32_t c;
        took = utf8_char(b->p + i, b->n - i, &c);
        if (took == 0 || c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
            return false;
    }
    return true;
}

static json_t *
named(const char *path)         /* without its slash */
{
    struct buf b = { .p = (uint8_t *)(uintptr_t)path, .n = strlen(path) };
    json_t *file = json_pack("{s:o}", "path", json_of_text(b.p, b.n));

    if (!is_text(&b))
        json_object_set_new(file, "path_base64", json_of_base64(b.p, b.n));
    return file;
}

static void next(struct request *r);

static void
on_bytes(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    waits_keep(r, &r->collect->buf, &r->collect->buf_cut, p, n);
}

static void
on_read(struct request *r, uint64_t count)
{
    struct collect *c = r->collect;
    const char *path = c->found[c->at_found++];
    json_t *file;

    (void)count;
    if (c->buf_cut || !execute_files_same(r, path + 1, &c->buf)) {
        file = named(path + 1);
        if (is_text(&c->buf))
            json_object_set_new(file, "content", json_of_text(c->buf.p, c->buf.n));
        else
            json_object_set_new(file, "content_base64", json_of_base64(c->buf.p, c->buf.n));
        json_object_set_new(file, "truncated", json_boolean(c->buf_cut));
        json_array_append_new(c->files, file);
        c->bytes += c->buf.n;
        c->cut = c->cut || c->buf_cut;
    }
    next(r);
}

static void
on_unread(struct request *r, const struct err *err)
{
    struct collect *c = r->collect;
    json_t *file = named(c->found[c->at_found++] + 1);

    json_object_set_new(file, "error", json_string(err->code));
    json_array_append_new(c->files, file);
    next(r);
}

static void
on_listed(struct request *r, uint64_t count)
{
    (void)count;
    r->collect->at_dir++;
    next(r);
}

static void
on_unlisted(struct request *r, const struct err *err)
{
    (void)err;
    r->collect->cut = true;
    r->collect->at_dir++;
    next(r);
}

static const struct answers list_asked = { .no = on_unlisted };
static const struct op_answers list_said = { .entry = on_entry, .done = on_listed, .failed = on_unlisted };
static const struct answers read_asked = { .no = on_unread };
static const struct op_answers read_said = { .out = on_bytes, .done = on_read, .failed = on_unread };

static void
next(struct request *r)
{
    static struct edge_op op;       /* large, used at once, one thread */
    struct collect *c = r->collect;
    size_t left = BYTES_MAX - c->bytes;

    memset(&op, 0, sizeof(op));
    r->n_entries = r->entry_bytes = 0;
    buf_free(&c->buf);
    if (c->at_dir < c->n_dirs) {
        op.kind = OP_LIST;
        op.path = c->at_dir > 0 ? c->dirs[c->at_dir] + 1 : ".";
        ask_op(r, r->id, &op, &list_asked, &list_said);
    } else if (c->at_found < c->n_found && left > 0) {
        c->buf = (struct buf)BUF_INIT(left < FILE_MAX ? left : FILE_MAX);
        c->buf_cut = false;
        op.kind = OP_READ;
        op.path = c->found[c->at_found] + 1;
        op.length = c->buf.max + 1;         /* one more tells whether there is more */
        ask_op(r, r->id, &op, &read_asked, &read_said);
    } else {
        c->cut = c->cut || c->at_found < c->n_found;
        c->said->exit(r, c->flags, c->code, c->ms);
    }
}

bool
collect_begins(struct request *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    struct collect *c = r->collect;

    if (c == NULL || c->begun)
        return false;
    c->begun = true;
    c->said = r->op_answers;
    c->flags = flags;
    c->code = code;
    c->ms = ms;
    add(c, c->dirs, &c->n_dirs, DIRS_MAX, "");
    next(r);
    return true;
}

json_t *
collect_files(const struct request *r, bool *cut)
{
    *cut = r->collect != NULL && r->collect->cut;
    return r->collect != NULL ? r->collect->files : NULL;
}
