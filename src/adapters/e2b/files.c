/* adapters/e2b/files.c: E2B's files, and filesystem.Filesystem (e2b.h)
 *
 * They reach what is below the workspace, as /v1's do, judged by the sandbox's guest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "adapters/e2b/e2b.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/json_text.h"
#include "wire/multipart.h"

#define ENTRY_BYTES 1024         /* of memory for an entry, and thrice its path */

static const struct visit_answers plain = { .no = e2b_fail };

/* An operation on what the client calls @said. NULL: too long, which is said. */
static struct edge_op *
op_on(struct visit *r, enum op_kind kind, const char *said)
{
    static char room[EDGE_PATH_MAX + 1];
    struct edge_op *op = e2b_op(kind);

    op->path = said != NULL ? e2b_path(said, room) : NULL;
    if (op->path != NULL)
        return op;
    e2b_unfit(r, "path is a text of at most 4096 bytes without NUL");
    return NULL;
}

/* The member @name, which is kept; NULL: said. */
static bool
keep_path(struct visit *r, const char *name, char **out)
{
    const char *said = json_cstr(json_object_get(r->json, name));

    *out = said != NULL && said[0] != '\0' && strlen(said) <= EDGE_PATH_MAX ? strdup(said) : NULL;
    if (*out == NULL)
        e2b_unfit(r, "a path is a text of at most 4096 bytes without NUL");
    return *out != NULL;
}

/* --- what there is ------------------------------------------------------------------------------------------------ */

static const char *
type_of(uint32_t mode)
{
    return S_ISREG(mode) ? "FILE_TYPE_FILE" : S_ISDIR(mode) ? "FILE_TYPE_DIRECTORY"
           : S_ISLNK(mode) ? "FILE_TYPE_SYMLINK" : "FILE_TYPE_UNSPECIFIED";
}

static void
permissions(uint32_t mode, char out[11])
{
    static const char letters[] = "rwxrwxrwx";

    out[0] = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'L' : '-';
    for (int i = 0; i < 9; i++)
        out[1 + i] = (mode & (0400U >> i)) != 0 ? letters[i] : '-';
    out[10] = '\0';
}

/* @shown: its path. Of the one that is named, its name is the path's last. */
static json_t *
entry_json(const char *shown, uint32_t mode, uint64_t size, uint64_t mtime_ns)
{
    const char *slash = strrchr(shown, '/'), *name = slash != NULL && slash[1] != '\0' ? slash + 1 : shown;
    char allowed[11], when[CLOCK_TEXT + 1];

    permissions(mode, allowed);
    clock_text((int64_t)(mtime_ns / 1000000), when);
    return json_pack("{s:o, s:s, s:o, s:o, s:i, s:s, s:s, s:s, s:s, s:b}", "name",
                     json_of_text((const uint8_t *)name, strlen(name)), "type", type_of(mode), "path",
                     json_of_text((const uint8_t *)shown, strlen(shown)), "size",
                     json_sprintf("%llu", (unsigned long long)size), "mode", (int)(mode & 07777), "permissions",
                     allowed, "owner", "", "group", "", "modifiedTime", when, "isSymlink", S_ISLNK(mode));
}

static void
keep_entry(struct visit *r, const char *said, uint32_t mode, uint64_t size, uint64_t mtime_ns)
{
    static char shown[EDGE_PATH_MAX + 1];

    e2b_shown(said, shown);
    json_decref(r->list);
    r->list = entry_json(shown, mode, size, mtime_ns);
}

static void
on_stat_entry(struct visit *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    (void)name;
    keep_entry(r, r->e2b->to != NULL ? r->e2b->to : r->e2b->path, mode, size, mtime_ns);
}

static void
on_stat(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_pack("{s:O}", "entry", r->list));
}

static const struct visit_op_answers stats = { .entry = on_stat_entry, .done = on_stat, .failed = e2b_fail };

static void
look_at(struct visit *r, const char *said, const struct visit_op_answers *answers)
{
    const struct edge_op *op = op_on(r, OP_STAT, said);

    if (op != NULL)
        visit_op(r, e2b_box(r), op, &plain, answers);
}

static bool
begin(struct visit *r, const char *member)
{
    return e2b_box(r) != NULL && e2b_of(r) != NULL && keep_path(r, member, &r->e2b->path);
}

void
e2b_stat(struct visit *r)
{
    if (begin(r, "path"))
        look_at(r, r->e2b->path, &stats);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

static void list_next(struct visit *r);

/* No more of it is read. */
static void
stop_listing(struct visit *r, unsigned status, const char *code, const char *detail, const char *text)
{
    visit_drop(r);
    visit_refuse(r, status, code, detail, text);
}

/* One more, which is told of, and perhaps looked into. False: there is no room for it, which is said. */
static bool
room_for(struct visit *r, const char *path, bool inside)
{
    const size_t n = 3 * strlen(path) + ENTRY_BYTES;

    if (json_array_size(r->list) >= EDGE_ENTRIES_MAX)
        stop_listing(r, HTTP_TOO_LARGE, "files.too-many-entries", "list less of it: a folder below, a smaller depth",
                     "there are more than 10000 entries");
    else if (!visit_room(r, inside ? 2 * n : n))
        stop_listing(r, HTTP_UNAVAILABLE, "http.busy", "list less of it, or try again later",
                     "there is no memory for so long a list");
    else
        return true;
    return false;
}

/* Of the folder at hand, the first of r->e2b->left: {"path", "depth"}. */
static void
on_list_entry(struct visit *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    json_t *folder = json_array_get(r->e2b->left, 0);
    json_int_t depth = json_integer_value(json_object_get(folder, "depth"));
    const char *above = json_string_value(json_object_get(folder, "path"));
    const bool inside = S_ISDIR(mode) && depth > 1;
    cleanup_free char *path = NULL;

    if (asprintf(&path, "%s%s%s", above, above[strlen(above) - 1] == '/' ? "" : "/", name) < 0) {
        path = NULL;
        visit_no_memory(r);
        return;
    }
    if (!room_for(r, path, inside))
        return;
    json_array_append_new(r->list, entry_json(path, mode, size, mtime_ns));
    if (inside)
        json_array_append_new(r->e2b->left, json_pack("{s:s, s:I}", "path", path, "depth", depth - 1));
}

static void
on_listed(struct visit *r, uint64_t count)
{
    (void)count;
    json_array_remove(r->e2b->left, 0);
    if (json_array_size(r->e2b->left) == 0)
        visit_json(r, HTTP_OK, json_pack("{s:O}", "entries", r->list));
    else if (++r->e2b->tries < E2B_FOLDERS_MAX)
        list_next(r);
    else
        visit_refuse(r, HTTP_TOO_LARGE, "files.too-many-entries", "list less of it: a folder below, a smaller depth",
                     "there are more than 256 folders to look into");
}

/* One below what was named may be gone by now, or have a name that is no text. */
static void
on_not_listed(struct visit *r, const struct err *err)
{
    if (json_array_size(r->list) == 0 || !err_is(err, "files.not-found"))
        e2b_fail(r, err);
    else
        on_listed(r, 0);
}

static const struct visit_op_answers lists = { .entry = on_list_entry, .done = on_listed, .failed = on_not_listed };

static void
list_next(struct visit *r)
{
    const json_t *folder = json_array_get(r->e2b->left, 0);
    const struct edge_op *op = op_on(r, OP_LIST, json_string_value(json_object_get(folder, "path")));

    if (op != NULL)
        visit_op(r, e2b_box(r), op, &plain, &lists);
}

void
e2b_list_dir(struct visit *r)
{
    static char shown[EDGE_PATH_MAX + 1];
    const json_t *depth = json_object_get(r->json, "depth");
    json_int_t n = depth != NULL ? json_integer_value(depth) : 1;

    if (!begin(r, "path"))
        return;
    if (depth != NULL && (!json_is_integer(depth) || n < 0 || n > E2B_DEPTH_MAX)) {
        e2b_unfit(r, "depth is a number from 1 to 16");
        return;
    }
    e2b_shown(r->e2b->path, shown);
    r->list = json_array();
    r->e2b->left = json_pack("[{s:s, s:I}]", "path", shown, "depth", n > 0 ? n : (json_int_t)1);
    list_next(r);
}

/* --- making folders, removing ------------------------------------------------------------------------------------- */

static void
on_made(struct visit *r, uint64_t count)
{
    (void)count;
    look_at(r, r->e2b->path, &stats);
}

static const struct visit_op_answers makes = { .done = on_made, .failed = e2b_fail };

static void
on_there(struct visit *r, uint64_t count)
{
    (void)count;
    visit_refuse(r, HTTP_CONFLICT, "files.exists", "", "it is there already");
}

static void
on_not_there(struct visit *r, const struct err *err)
{
    struct edge_op *op;

    if (!err_is(err, "files.not-found")) {
        e2b_fail(r, err);
        return;
    }
    op = op_on(r, OP_MKDIR, r->e2b->path);
    if (op == NULL)
        return;
    op->flags = OP_PARENTS;
    visit_op(r, e2b_box(r), op, &plain, &makes);
}

static const struct visit_op_answers before_making = { .entry = on_stat_entry, .done = on_there,
                                                       .failed = on_not_there };

void
e2b_make_dir(struct visit *r)
{
    if (begin(r, "path"))
        look_at(r, r->e2b->path, &before_making);
}

static void
on_removed(struct visit *r, uint64_t count)
{
    (void)count;
    visit_json(r, HTTP_OK, json_object());
}

static const struct visit_op_answers removes = { .done = on_removed, .failed = e2b_fail };

void
e2b_remove(struct visit *r)
{
    struct edge_op *op = begin(r, "path") ? op_on(r, OP_REMOVE, r->e2b->path) : NULL;

    if (op == NULL)
        return;
    op->flags = OP_RECURSIVE;
    visit_op(r, e2b_box(r), op, &plain, &removes);
}

/* --- moving: no operation of the guest's, so the sandbox's own mv does it, in its own walls ----------------------- */

static void
keep_words(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    if (is_err)
        visit_keep(r, &r->err_out, &r->cut_err, p, n);
}

static void
on_mv(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    char text[400];

    (void)ms;
    if (flags == 0 && code == 0) {
        look_at(r, r->e2b->to, &stats);
        return;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(r->err_out.n < 300 ? r->err_out.n : 300),
             r->err_out.n > 0 ? (const char *)r->err_out.p : "mv failed");
    visit_refuse(r, HTTP_CONFLICT, "e2b.move", "", text);
}

static const struct visit_op_answers moves = { .out = keep_words, .exit = on_mv, .failed = e2b_fail };

/* Below the working directory, which is the workspace, and no option. */
static char *
word_of(const char *said, char *room, size_t size)
{
    char path[EDGE_PATH_MAX + 1];
    const char *at = e2b_path(said, path);

    if (at == NULL || at[0] == '/')
        return NULL;
    snprintf(room, size, "./%s", at);
    return room;
}

static void
on_folder(struct visit *r, uint64_t count)
{
    static char from[EDGE_PATH_MAX + 3], to[EDGE_PATH_MAX + 3];
    struct edge_op *op = e2b_op(OP_EXEC);

    (void)count;
    op->argv[0] = "mv";
    op->argv[1] = "-T";
    op->argv[2] = "--";
    op->argv[3] = word_of(r->e2b->path, from, sizeof(from));
    op->argv[4] = word_of(r->e2b->to, to, sizeof(to));
    op->n_argv = 5;
    op->env[op->n_env++] = "LC_ALL=C";
    if (op->argv[3] == NULL || op->argv[4] == NULL)
        visit_refuse(r, HTTP_FORBIDDEN, "files.path-escapes", "use a path below the workspace",
                     "Path escapes workspace.");
    else
        visit_op(r, e2b_box(r), op, &plain, &moves);
}

static const struct visit_op_answers folders = { .done = on_folder, .failed = e2b_fail };

/* What is moved is there; where it goes, folders are made. */
static void
on_source(struct visit *r, uint64_t count)
{
    static char room[EDGE_PATH_MAX + 1];
    struct edge_op *op = e2b_op(OP_MKDIR);
    char *slash;

    if (e2b_path(r->e2b->to, room) == NULL || (slash = strrchr(room, '/')) == NULL || slash == room) {
        on_folder(r, count);
        return;
    }
    *slash = '\0';
    op->path = room;
    op->flags = OP_PARENTS;
    visit_op(r, e2b_box(r), op, &plain, &folders);
}

static const struct visit_op_answers before_moving = { .entry = on_stat_entry, .done = on_source, .failed = e2b_fail };

void
e2b_move(struct visit *r)
{
    if (begin(r, "source") && keep_path(r, "destination", &r->e2b->to))
        look_at(r, r->e2b->path, &before_moving);
}

/* --- what is in them ---------------------------------------------------------------------------------------------- */

static void
on_bytes(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    visit_stream_of(r, ADAPT_BYTES);
    visit_add(r, p, n);
}

static void
on_read(struct visit *r, uint64_t count)
{
    (void)count;
    visit_stream_of(r, ADAPT_BYTES);
    visit_close(r);
}

/* After the first bytes it can only be shown by an end that is none. */
static void
on_not_read(struct visit *r, const struct err *err)
{
    if (visit_answered(r))
        visit_break(r);
    else
        visit_err(r, err);
}

static const struct visit_op_answers reads = { .out = on_bytes, .done = on_read, .failed = on_not_read };

static const char *
path_asked(struct visit *r)
{
    static char room[EDGE_PATH_MAX + 1];
    bool bad = false;
    const char *said = visit_query(r, "path", room, sizeof(room), &bad);

    return !bad && said != NULL && said[0] != '\0' ? said : NULL;
}

void
e2b_download(struct visit *r)
{
    const char *id = e2b_box(r);
    const struct edge_op *op = id != NULL ? op_on(r, OP_READ, path_asked(r)) : NULL;

    if (op != NULL)
        visit_op(r, id, op, &plain, &reads);
}

static void upload_next(struct visit *r);

static void
on_written(struct visit *r, uint64_t count)
{
    static char shown[EDGE_PATH_MAX + 1];
    const char *name;

    (void)count;
    e2b_shown(r->e2b->path, shown);
    name = strrchr(shown, '/') + 1;
    json_array_append_new(r->list, json_pack("{s:o, s:s, s:o}", "name",
                                             json_of_text((const uint8_t *)name, strlen(name)), "type", "file", "path",
                                             json_of_text((const uint8_t *)shown, strlen(shown))));
    if (r->e2b->files == 0)
        visit_json(r, HTTP_OK, json_incref(r->list));
    else
        upload_next(r);
}

static const struct visit_op_answers writes = { .done = on_written, .failed = e2b_fail };

static void
write_one(struct visit *r, const char *said, struct str content)
{
    struct edge_op *op = op_on(r, OP_WRITE, said);

    if (op == NULL)
        return;
    free(r->e2b->path);
    r->e2b->path = strdup(said);
    if (r->e2b->path == NULL || !visit_input(r, content.p, content.n)) {
        visit_no_memory(r);
        return;
    }
    op->flags = OP_PARENTS;
    visit_content(r, op);
    visit_op(r, e2b_box(r), op, &plain, &writes);
}

/* The next file of the form, which is well and has one more. */
static void
upload_next(struct visit *r)
{
    static struct multipart_part part;
    const char *said = r->e2b->known ? path_asked(r) : NULL;

    while (multipart_next(&r->e2b->form, &part) > 0 && !part.is_file)
        ;
    r->e2b->files--;
    write_one(r, said != NULL ? said : part.file, part.content);
}

/* How many files the form has, all of which have names. -1: it is none, which is said. */
static int
files_in(struct visit *r)
{
    static struct multipart_part part;
    const char *wrong, *type = visit_header(r, "Content-Type");
    struct multipart m;
    int n = 0, got;

    wrong = multipart_begin(&m, type != NULL ? type : "", r->body);
    while (wrong == NULL && (got = multipart_next(&m, &part)) != 0) {
        if (got < 0)
            wrong = m.fault;
        else if (strcmp(part.name, "file") != 0 || !part.is_file || ++n > E2B_FILES_MAX)
            wrong = "its parts are files, at most 64, each called \"file\"";
        else if (path_asked(r) == NULL && part.file[0] == '\0')
            wrong = "a file has no name, and there is no path";
    }
    if (wrong == NULL && n > 0)
        return n;
    e2b_unfit(r, wrong != NULL ? wrong : "there is no file in it");
    return -1;
}

void
e2b_upload(struct visit *r)
{
    static const char bytes[] = "application/octet-stream";
    const char *type = visit_header(r, "Content-Type");
    int n;

    if (e2b_box(r) == NULL || e2b_of(r) == NULL)
        return;
    r->list = json_array();
    if (type != NULL && strncasecmp(type, bytes, sizeof(bytes) - 1) == 0) {
        if (path_asked(r) == NULL)
            e2b_unfit(r, "path says where the file goes");
        else
            write_one(r, path_asked(r), r->body);
        return;
    }
    n = files_in(r);
    if (n < 0)
        return;
    visit_keep(r, &r->out, &r->cut_out, (const uint8_t *)r->body.p, r->body.n);
    if (r->cut_out) {
        visit_refuse(r, HTTP_UNAVAILABLE, "http.busy", "try again", "there is no room for the files");
        return;
    }
    (void)multipart_begin(&r->e2b->form, type, (struct str){ (const char *)r->out.p, r->out.n });
    r->e2b->files = (unsigned)n;
    r->e2b->known = n == 1;         /* of one file, its place is the path */
    upload_next(r);
}
