/* front/execute_files.c: files that a call of POST /v1/execute brings along (docs/daemon.md)
 *
 * Each is a write of its own into the sandbox, as PUT .../files/... is one: where its path leads is judged by the
 * sandbox's guest. What it holds is part of what somebody is asked about (proto/edge_write.h): the warden lets those
 * bytes through and no others.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "front/front.h"
#include "proto/edge_write.h"

#define BYTES_MAX (8UL * 1024 * 1024)       /* of all files of one call */
#define CODE      "execute.files"
#define FORM      "files is a list of {path, content} or {path, content_base64}, paths as src/main.py"

/* --- the request -------------------------------------------------------------------------------------------------- */

static const char *
path_of(const json_t *file)
{
    return json_string_value(json_object_get(file, "path"));
}

const char *
execute_path_fault(const char *path)
{
    size_t n;

    if (path[0] == '\0' || path[0] == '/')
        return "is empty or begins with a slash: give it relative to the workspace";
    if (strlen(path) > EDGE_PATH_MAX)
        return "has more than 4096 bytes";
    for (const char *p = path; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return "holds a control character";
    for (const char *p = path;; p += n + 1) {
        n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return "has a part that is empty, . or ..: name each folder";
        if (p[n] == '\0')
            return NULL;
    }
}

/* What the file is to hold, in place of what is in @out. False: it is not said well. */
static bool
content_of(const json_t *file, struct buf *out)
{
    const json_t *text = json_object_get(file, "content"), *coded = json_object_get(file, "content_base64");

    buf_reset(out);
    if ((text == NULL) == (coded == NULL))
        return false;
    if (text != NULL)
        return json_is_string(text) && buf_append(out, json_string_value(text), json_string_length(text)) == 0;
    return json_is_string(coded) && base64_get(out, json_string_value(coded), json_string_length(coded)) == 0;
}

static bool
file_well(struct request *r, size_t i, size_t *bytes)
{
    static const char *const known[] = { "path", "content", "content_base64", NULL };
    const json_t *file = json_array_get(r->files, i);
    const char *path = path_of(file), *fault;

    if (!json_is_object(file) || path == NULL || json_unknown(file, known) != NULL) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, CODE, FORM, "files[%zu] has no path, or a member that is not known", i);
        return false;
    }
    fault = execute_path_fault(path);
    for (size_t k = 0; k < i && fault == NULL; k++)
        if (strcmp(path_of(json_array_get(r->files, k)), path) == 0)
            fault = "is there twice";
    if (fault != NULL) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, CODE, FORM, "files[%zu]: the path \"%.200s\" %s", i, path, fault);
        return false;
    }
    if (!content_of(file, &r->in)) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, CODE, FORM, "files[%zu] (%.200s): it takes content, a string, or "
                    "content_base64, base64 with its padding, and not both", i, path);
        return false;
    }
    *bytes += r->in.n;
    return true;
}

bool
execute_files_well(struct request *r)
{
    size_t bytes = 0;

    if (r->files == NULL)
        return true;
    if (!json_is_array(r->files))
        return reply_unfit(r, CODE, FORM);
    if (json_array_size(r->files) > EDGE_GIVEN_MAX) {
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, CODE, "make a sandbox for more, or give an archive that the code "
                    "unpacks", "files has %zu entries; at most %d are taken", json_array_size(r->files),
                    EDGE_GIVEN_MAX);
        return false;
    }
    for (size_t i = 0; i < json_array_size(r->files); i++)
        if (!file_well(r, i, &bytes))
            return false;
    buf_reset(&r->in);
    if (bytes > BYTES_MAX)
        reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, CODE, "make a sandbox, and write them by PUT .../files/...",
                    "the files have %zu bytes; at most %lu are taken", bytes, BYTES_MAX);
    return bytes <= BYTES_MAX;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* The write of the file @i, whose content is r->in. */
static struct edge_op *
op_of(struct request *r, size_t i)
{
    static struct edge_op op;       /* large, used at once, one thread */
    const json_t *file = json_array_get(r->files, i);

    memset(&op, 0, sizeof(op));
    op.kind = OP_WRITE;
    op.flags = OP_PARENTS;
    op.path = path_of(file);
    (void)content_of(file, &r->in);
    edge_content_of(&op, r->in.p, r->in.n, true);
    return &op;
}

json_t *
execute_files_params(struct request *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(r->files); i++) {
        if (json_array_append_new(list, edge_write_params(op_of(r, i))) < 0) {
            json_decref(list);
            list = NULL;
            break;
        }
    }
    buf_reset(&r->in);
    return list;
}

static void
on_granted(struct request *r)
{
    r->in_end = true;
    op_hear(r, EPOLLOUT);
}

static void
on_no(struct request *r, const struct err *err)
{
    struct err e = *err;

    err_wrap(&e, "files[%zu] (%.200s)", r->n_written, path_of(json_array_get(r->files, r->n_written)));
    reply_err(r, &e);
}

static void
on_written(struct request *r, uint64_t count)
{
    (void)count;
    r->n_written++;
    execute_files_write(r, r->files_then);
}

static const struct answers granted = { .granted = on_granted, .no = on_no };
static const struct op_answers written = { .done = on_written, .failed = on_no };

void
execute_files_write(struct request *r, void (*then)(struct request *r))
{
    r->files_then = then;
    if (r->n_written < json_array_size(r->files))
        ask_op(r, r->id, op_of(r, r->n_written), &granted, &written);
    else
        then(r);
}

bool
execute_files_same(struct request *r, const char *path, const struct buf *content)
{
    cleanup_buf struct buf given = BUF_INIT(BYTES_MAX);

    for (size_t i = 0; i < json_array_size(r->files); i++) {
        const json_t *file = json_array_get(r->files, i);
        if (strcmp(path_of(file), path) == 0)
            return content_of(file, &given) && given.n == content->n &&
                   (given.n == 0 || memcmp(given.p, content->p, given.n) == 0);
    }
    return false;
}
