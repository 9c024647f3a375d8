/* front/files.c: /v1/sandboxes/{}/files, dirs, stat: the sandbox's workspace
 *
 * Paths are judged where they lead, by the sandbox's guest; here they only travel.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "front/front.h"
#include "front/range.h"
#include "proto/edge_write.h"

#define FAR (INT64_MAX / 2)     /* behind the end of every file; two of it are no more than the kernel takes */

/* False: not as it has to be; said. @part: one of them is there. */
static bool
part_of(struct request *r, struct edge_op *op, bool *part)
{
    char room[2][32];
    bool bad = false;
    const char *offset = query_get(r, "offset", room[0], sizeof(room[0]), &bad);
    const char *length = query_get(r, "length", room[1], sizeof(room[1]), &bad);

    *part = offset != NULL || length != NULL;
    if (bad || (offset != NULL && !str_parse_u64(str_of(offset), INT64_MAX, &op->offset)) ||
        (length != NULL && (!str_parse_u64(str_of(length), INT64_MAX, &op->length) || op->length == 0)))
        return reply_unfit(r, "files.request", "offset and length are whole numbers, length at least 1");
    if (op->offset > FAR)
        op->offset = FAR;
    if (op->length > FAR)
        op->length = FAR;
    return true;
}

static bool
mode_of(struct request *r, uint32_t *out)
{
    char room[8];
    bool bad = false;
    const char *text = query_get(r, "mode", room, sizeof(room), &bad);
    uint32_t v = 0;

    for (const char *p = text != NULL ? text : ""; *p != '\0'; p++) {
        if (*p < '0' || *p > '7' || p - text >= 4)
            return reply_unfit(r, "files.request", "mode is at most four octal digits");
        v = v << 3 | (uint32_t)(*p - '0');
    }
    *out = v;
    return !bad || reply_unfit(r, "files.request", "mode is at most four octal digits");
}

static struct edge_op *
op_of(struct request *r, enum op_kind kind)
{
    static struct edge_op op;       /* large, used at once, one thread */

    memset(&op, 0, sizeof(op));
    op.kind = kind;
    op.path = r->rest;
    return &op;
}

static bool
path_well(struct request *r)
{
    if (strlen(r->rest) <= EDGE_PATH_MAX)
        return true;
    reply_error(r, MHD_HTTP_URI_TOO_LONG, "files.path", "", "a path has at most %d bytes", EDGE_PATH_MAX);
    return false;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Once, with the first bytes, or when it is known that there are none. */
static void
begin_answer(struct request *r, unsigned status, uint64_t size)
{
    if (r->response != NULL)
        return;
    reply_stream_of(r, status, "application/octet-stream", size);
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
}

static void
on_bytes(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    begin_answer(r, MHD_HTTP_OK, MHD_SIZE_UNKNOWN);
    stream_add(r, p, n);
}

static void
on_read(struct request *r, uint64_t count)
{
    (void)count;
    begin_answer(r, MHD_HTTP_OK, MHD_SIZE_UNKNOWN);
    stream_close(r);
}

/* After its first bytes a failure can only be shown by cutting the answer short: the connection ends without the last
 * chunk, which no client takes for the file's end. */
static void
on_failed(struct request *r, const struct err *err)
{
    if (r->stream)
        stream_break(r);
    else
        reply_err(r, err);
}

static const struct answers plain = { .box = NULL };
static const struct op_answers read_answers = { .out = on_bytes, .done = on_read, .failed = on_failed };

/* --- a part of a file: how large it is, then the part ------------------------------------------------------------- */

static void
on_size(struct request *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    (void)mtime_ns;
    (void)name;
    if (S_ISREG(mode))
        json_array_append_new(r->list, json_integer((json_int_t)size));
}

static uint64_t
noted(const struct request *r, size_t i)
{
    return (uint64_t)json_integer_value(json_array_get(r->list, i));
}

static void
content_range(struct request *r, bool part, uint64_t first, uint64_t last)
{
    char text[80];
    int n = part ? snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)first,
                            (unsigned long long)last, (unsigned long long)noted(r, 0))
                 : snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)noted(r, 0));

    if (n > 0 && r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONTENT_RANGE, text);
}

static const struct op_answers part_answers;

static void
on_size_known(struct request *r, uint64_t count)
{
    const char *header = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_RANGE);
    struct edge_op *op = op_of(r, OP_READ);
    uint64_t first, last;

    (void)count;
    if (json_array_size(r->list) != 1) {
        ask_op(r, r->id, op, &plain, &read_answers);    /* which says what it is instead of a file */
        return;
    }
    if (strcmp(r->method, MHD_HTTP_METHOD_HEAD) == 0) {
        begin_answer(r, MHD_HTTP_OK, noted(r, 0));
        return stream_close(r);
    }
    switch (range_of(header != NULL ? header : "", noted(r, 0), &first, &last)) {
    case RANGE_WHOLE:
        ask_op(r, r->id, op, &plain, &read_answers);
        break;
    case RANGE_OUTSIDE:
        reply_error(r, MHD_HTTP_RANGE_NOT_SATISFIABLE, "files.range", "", "the file has %llu bytes",
                    (unsigned long long)noted(r, 0));
        content_range(r, false, 0, 0);
        break;
    case RANGE_PART:
        json_array_append_new(r->list, json_integer((json_int_t)first));
        json_array_append_new(r->list, json_integer((json_int_t)last));
        op->offset = first;
        op->length = last - first + 1;
        ask_op(r, r->id, op, &plain, &part_answers);
        break;
    }
}

static void
on_part(struct request *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    if (r->response == NULL) {
        begin_answer(r, MHD_HTTP_PARTIAL_CONTENT, noted(r, 2) - noted(r, 1) + 1);
        content_range(r, true, noted(r, 1), noted(r, 2));
    }
    stream_add(r, p, n);
}

static void
on_part_end(struct request *r, uint64_t count)
{
    const struct err err = { .kind = ERR_SYSTEM, .code = "files.changed", .msg = "the file became shorter",
                             .hint = "try again" };

    if (count == noted(r, 2) - noted(r, 1) + 1)
        stream_close(r);
    else
        on_failed(r, &err);
}

static const struct op_answers part_answers = { .out = on_part, .done = on_part_end, .failed = on_failed };
static const struct op_answers size_answers = { .entry = on_size, .done = on_size_known, .failed = on_failed };

static void
read_file(struct request *r)
{
    struct edge_op *op = op_of(r, OP_READ);
    bool by_query, by_header = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_RANGE) != NULL &&
                               /* nothing says for sure that a file did not change: what depends on that is the whole */
                               MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_RANGE) == NULL;

    if (!path_well(r) || !part_of(r, op, &by_query))
        return;
    if ((by_header && !by_query) || strcmp(r->method, MHD_HTTP_METHOD_HEAD) == 0) {
        r->list = json_array();
        op->kind = OP_STAT;
        op->offset = op->length = 0;
        ask_op(r, r->id, op, &plain, &size_answers);
    } else {
        ask_op(r, r->id, op, &plain, &read_answers);
    }
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void
on_written(struct request *r, uint64_t count)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:I}", "path", json_of_text((const uint8_t *)r->rest, strlen(r->rest)),
                                         "size", (json_int_t)count));
}

static const struct op_answers write_answers = { .done = on_written, .failed = on_failed };

static void
on_write_granted(struct request *r)
{
    op_send(r);         /* what was seen of it, and its end when that has come */
    op_flow(r);
}

static const struct answers write_granted = { .granted = on_write_granted };

static bool
flag_of(struct request *r, const char *key, uint8_t flag, struct edge_op *op)
{
    bool bad = false;

    if (query_true(r, key, &bad))
        op->flags |= flag;
    if (bad)
        reply_error(r, MHD_HTTP_BAD_REQUEST, "files.request", "docs/daemon.md has the form",
                    "%s is true or false", key);
    return !bad;
}

/* A form, as clients make one of what they call a file: its boundaries would be in the file. */
static bool
is_multipart(struct request *r)
{
    static const char type[] = "multipart/form-data";
    const char *said = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);

    if (said == NULL || strncasecmp(said, type, sizeof(type) - 1) != 0)
        return false;
    reply_error(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "http.media-type", "send its bytes as the body (curl -T FILE)",
                "the body is what the file is to hold, not a form");
    return true;
}

static void
write_file(struct request *r)
{
    struct edge_op *op = op_of(r, OP_WRITE);

    if (is_multipart(r))
        return;
    /* who sends a part means the rest to stay (curl -C -): RFC 9110, 14.5 */
    if (MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_RANGE) != NULL)
        reply_unfit(r, "files.request", "a file is written whole: there is no Content-Range");
    else if (flag_of(r, "parents", OP_PARENTS, op) && flag_of(r, "exclusive", OP_EXCLUSIVE, op) && path_well(r) &&
             mode_of(r, &op->mode)) {
        edge_content_of(op, r->in.p, r->in.n, r->whole);
        ask_op(r, r->id, op, &write_granted, &write_answers);
    }
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static const char *
type_of(uint32_t mode)
{
    return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "symlink" : "other";
}

static void
on_entry(struct request *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    char octal[8];

    snprintf(octal, sizeof(octal), "%04o", mode & 07777);
    json_array_append_new(r->list, json_pack("{s:o, s:s, s:I, s:s, s:I}", "name",
                                             json_of_text((const uint8_t *)name, strlen(name)), "type", type_of(mode),
                                             "size", (json_int_t)size, "mode", octal, "mtime_ms",
                                             (json_int_t)(mtime_ns / 1000000)));
}

static void
on_listed(struct request *r, uint64_t count)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:O}", "entries", r->list));
}

static void
on_stat(struct request *r, uint64_t count)
{
    (void)count;
    reply_json(r, MHD_HTTP_OK, json_incref(json_array_get(r->list, 0)));
}

static const struct op_answers list_answers = { .entry = on_entry, .done = on_listed, .failed = on_failed };
static const struct op_answers stat_answers = { .entry = on_entry, .done = on_stat, .failed = on_failed };

static void
list_dir(struct request *r)
{
    r->list = json_array();
    if (path_well(r))
        ask_op(r, r->id, op_of(r, OP_LIST), &plain, &list_answers);
}

static void
stat_file(struct request *r)
{
    r->list = json_array();
    if (path_well(r))
        ask_op(r, r->id, op_of(r, OP_STAT), &plain, &stat_answers);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

static void
on_removed(struct request *r, uint64_t count)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:I}", "removed", (json_int_t)count));
}

static const struct op_answers remove_answers = { .done = on_removed, .failed = on_failed };

static void
remove_file(struct request *r)
{
    struct edge_op *op = op_of(r, OP_REMOVE);

    if (flag_of(r, "recursive", OP_RECURSIVE, op) && path_well(r))
        ask_op(r, r->id, op, &plain, &remove_answers);
}

static void
on_made(struct request *r, uint64_t count)
{
    (void)count;
    reply_json(r, MHD_HTTP_CREATED,
               json_pack("{s:o}", "path", json_of_text((const uint8_t *)r->rest, strlen(r->rest))));
}

static const struct op_answers made_answers = { .done = on_made, .failed = on_failed };

static void
make_dir(struct request *r)
{
    struct edge_op *op = op_of(r, OP_MKDIR);

    if (flag_of(r, "parents", OP_PARENTS, op) && path_well(r) && mode_of(r, &op->mode))
        ask_op(r, r->id, op, &plain, &made_answers);
}

const struct route files_routes[] = {
    { "GET",    "/v1/sandboxes/{}/files/~", read_file,   false, false },
    { "PUT",    "/v1/sandboxes/{}/files/~", write_file,  false, true, .seen = true },
    { "DELETE", "/v1/sandboxes/{}/files/~", remove_file, false, false },
    { "GET",    "/v1/sandboxes/{}/dirs/~",  list_dir,    false, false },
    { "POST",   "/v1/sandboxes/{}/dirs/~",  make_dir,    true,  false },
    { "GET",    "/v1/sandboxes/{}/stat/~",  stat_file,   false, false },
};
const size_t files_n_routes = ARRAY_LEN(files_routes);
