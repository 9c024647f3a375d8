/* front/changes.c: /v1/sandboxes/{}/watch: what changes below a directory, as events (text/event-stream)
 *
 * It is watched in the sandbox, which says what it likes: names are bytes, shown as a listing shows them.
 */
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "front/front.h"

static json_t *
text(const char *p)
{
    return json_of_text((const uint8_t *)p, strlen(p));
}

/* @path below the directory that is watched, or that itself. */
static json_t *
place(const struct request *r, const char *path)
{
    bool root = strcmp(r->below, ".") == 0;
    cleanup_buf struct buf b = BUF_INIT(2 * EDGE_PATH_MAX + 2);

    if (path[0] == '\0' || root)
        return text(path[0] == '\0' ? r->below : path);
    return buf_puts(&b, r->below) == 0 && buf_put_u8(&b, '/') == 0 && buf_puts(&b, path) == 0 ? json_of_text(b.p, b.n)
                                                                                              : NULL;
}

static bool
on_change(struct request *r, const struct edge_change *c)
{
    static const char alive[] = ":\n\n";
    static const char *const names[EDGE_CHANGE_KINDS] = {
        "", "watching", "created", "modified", "deleted", "renamed", "unwatched", "overflow",
    };

    if (r->below == NULL) {     /* the first */
        r->below = c->kind == EDGE_CHANGE_NONE && c->path[0] != '\0' ? strdup(c->path) : NULL;
        return r->below != NULL;
    }
    if (r->response == NULL && c->kind != EDGE_CHANGE_WATCHING && c->kind != EDGE_CHANGE_UNWATCHED)
        return false;           /* its keeper says what it must not */
    reply_stream(r, "text/event-stream");
    switch (c->kind) {
    case EDGE_CHANGE_NONE: stream_add(r, alive, sizeof(alive) - 1); break;
    case EDGE_CHANGE_WATCHING:
    case EDGE_CHANGE_OVERFLOW:
        stream_event(r, NULL, names[c->kind], json_pack("{s:o}", "path", place(r, c->path)));
        break;
    case EDGE_CHANGE_RENAMED:
        stream_event(r, NULL, names[c->kind], json_pack("{s:o, s:b, s:o}", "path", place(r, c->path), "directory",
                                                        c->directory, "from", place(r, c->from)));
        break;
    default:
        stream_event(r, NULL, names[c->kind], json_pack("{s:o, s:b}", "path", place(r, c->path), "directory",
                                                        c->directory));
        break;
    }
    return true;
}

static const struct answers plain;
static const struct op_answers watch_answers = { .change = on_change, .failed = stream_refuse };

static void
watch(struct request *r)
{
    static char path[EDGE_PATH_MAX + 1];    /* used at once, one thread */
    static struct edge_op op;
    bool bad = false;
    const char *given = query_get(r, "path", path, sizeof(path), &bad);

    op = (struct edge_op){ .kind = OP_WATCH, .path = given != NULL && given[0] != '\0' ? given : "." };
    if (query_true(r, "recursive", &bad))
        op.flags = OP_RECURSIVE;
    if (bad)
        reply_error(r, MHD_HTTP_BAD_REQUEST, "files.request", "docs/daemon.md has the form",
                    "path is at most %d bytes, and recursive is true or false", EDGE_PATH_MAX);
    else
        ask_op(r, r->id, &op, &plain, &watch_answers);
}

const struct route change_routes[] = {
    { "GET", "/v1/sandboxes/{}/watch", watch, false, false, .endless = true },
};
const size_t change_n_routes = ARRAY_LEN(change_routes);
