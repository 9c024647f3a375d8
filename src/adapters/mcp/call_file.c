/* adapters/mcp/call_file.c: tools about files: one operation each */
#include <string.h>
#include <sys/stat.h>

#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"

/* Where @name leads, relative to the workspace: clients know it as /workspace. What leads out is refused inside. */
static const char *
path_of(const struct visit *r, const char *name)
{
    static const char root[] = "/workspace";
    const char *path = mcp_text(r, name);

    if (path == NULL || path[0] == '\0')
        return ".";
    if (strncmp(path, root, sizeof(root) - 1) == 0 && (path[sizeof(root) - 1] == '/' || path[sizeof(root) - 1] == '\0'))
        path += sizeof(root) - 1;
    else
        return path;
    path += strspn(path, "/");
    return *path != '\0' ? path : ".";
}

static struct edge_op *
op_of(const struct visit *r, enum op_kind kind, const char *name)
{
    static struct edge_op op;       /* large, used at once, one thread */

    memset(&op, 0, sizeof(op));
    op.kind = kind;
    op.path = path_of(r, name);
    return &op;
}

static json_t *
result(const struct visit *r, const char *path)
{
    return json_pack("{s:b, s:s, s:s, s:n}", "success", 1, "sandbox_id", r->mcp->box, "path", path, "error");
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void
on_written(struct visit *r, uint64_t count)
{
    (void)count;
    mcp_done(r, result(r, mcp_text(r, "file_path")), false);
}

static const struct visit_answers plain = { .no = mcp_fail_err };
static const struct visit_op_answers write_answers = { .done = on_written, .failed = mcp_fail_err };

void
call_write(struct visit *r)
{
    const json_t *content = json_object_get(r->mcp->args, "content");
    struct edge_op *op = op_of(r, OP_WRITE, "file_path");

    if (!call_names_box(r))
        return;
    op->flags = OP_PARENTS;
    if (!visit_input(r, json_string_value(content), json_string_length(content))) {
        mcp_fail(r, "http.body-too-large", "the file is too large");
    } else {
        visit_content(r, op);
        visit_op(r, r->mcp->box, op, &plain, &write_answers);
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void
on_bytes(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    (void)is_err;
    visit_keep(r, &r->mcp->out, &r->mcp->cut[0], p, n);
}

static void
on_read(struct visit *r, uint64_t count)
{
    json_t *body = result(r, mcp_text(r, "file_path"));

    (void)count;
    json_object_set_new(body, "content", mcp_output(&r->mcp->out, r->mcp->cut[0]));
    json_object_set_new(body, "truncated", json_boolean(r->mcp->cut[0]));
    mcp_done(r, body, false);
}

static const struct visit_op_answers read_answers = { .out = on_bytes, .done = on_read, .failed = mcp_fail_err };

void
call_read(struct visit *r)
{
    struct edge_op *op = op_of(r, OP_READ, "file_path");

    op->length = MCP_OUTPUT_MAX + 1;        /* one more tells whether there is more */
    if (call_names_box(r))
        visit_op(r, r->mcp->box, op, &plain, &read_answers);
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static void
on_entry(struct visit *r, uint32_t mode, uint64_t size, uint64_t mtime_ns, const char *name)
{
    json_t *text;

    (void)size;
    (void)mtime_ns;
    if (json_array_size(r->list) >= MCP_FILES_MAX) {
        r->mcp->cut[0] = true;
        return;
    }
    text = json_of_text((const uint8_t *)name, strlen(name));
    if (S_ISDIR(mode) && text != NULL) {
        json_t *folder = json_sprintf("%s/", json_string_value(text));
        json_decref(text);
        text = folder;
    }
    json_array_append_new(r->list, text);
}

static void
on_listed(struct visit *r, uint64_t count)
{
    const char *path = mcp_text(r, "path");
    json_t *body = result(r, path != NULL ? path : ".");

    (void)count;
    json_object_set(body, "files", r->list);
    json_object_set_new(body, "truncated", json_boolean(r->mcp->cut[0]));
    mcp_done(r, body, false);
}

static const struct visit_op_answers list_answers = { .entry = on_entry, .done = on_listed, .failed = mcp_fail_err };

void
call_list_files(struct visit *r)
{
    r->list = json_array();
    if (call_names_box(r))
        visit_op(r, r->mcp->box, op_of(r, OP_LIST, "path"), &plain, &list_answers);
}
