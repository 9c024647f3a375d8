/* adapters/e2b/e2b.c: what E2B's calls have in common (e2b.h) */
#include "adapters/e2b/e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "wire/connect.h"
#include "wire/json_text.h"

struct e2b *
e2b_of(struct visit *r)
{
    if (r->e2b == NULL)
        r->e2b = calloc(1, sizeof(*r->e2b));
    if (r->e2b == NULL)
        visit_no_memory(r);
    return r->e2b;
}

void
e2b_gone(struct visit *r)
{
    if (r->e2b == NULL)
        return;
    free(r->e2b->path);
    free(r->e2b->to);
    json_decref(r->e2b->left);
    json_decref(r->e2b->keep);
    rich_free(&r->e2b->rich);
    free(r->e2b);
    r->e2b = NULL;
}

const char *
e2b_box(struct visit *r)
{
    const char *id = r->path_id[0] != '\0' ? r->path_id : visit_header(r, "E2b-Sandbox-Id");

    if (id != NULL && (edge_is_id(id) || edge_name_well(id)))
        return id;
    visit_refuse(r, HTTP_BAD_REQUEST, "e2b.sandbox", "E2b-Sandbox-Id: ID, which the SDK says",
                 "the request names no sandbox");
    return NULL;
}

void
e2b_unfit(struct visit *r, const char *what)
{
    visit_refuse(r, HTTP_BAD_REQUEST, "e2b.request", "docs/e2b.md has what is taken", what);
}

void
e2b_message(struct visit *r, json_t *message, bool last)
{
    cleanup_free char *text = message != NULL ? json_dumps(message, JSON_COMPACT) : NULL;
    uint8_t head[CONNECT_HEAD];

    json_decref(message);
    if (text == NULL) {
        visit_break(r);
        return;
    }
    connect_head(head, last ? CONNECT_END : 0, (uint32_t)strlen(text));
    visit_add(r, head, sizeof(head));
    visit_add(r, text, strlen(text));
    if (last)
        visit_close(r);
}

void
e2b_fail(struct visit *r, const struct err *err)
{
    const char *code = (err->kind == ERR_NOT_FOUND) ? "not_found" : err->kind == ERR_DENIED ? "permission_denied"
                       : err->kind == ERR_LIMIT ? "resource_exhausted" : "unavailable";

    if (r->e2b == NULL || !r->e2b->streams)
        visit_err(r, err);
    else
        e2b_message(r, json_pack("{s:{s:s, s:o}}", "error", "code", code, "message",
                                 json_of_text((const uint8_t *)err->msg, strlen(err->msg))), true);
}

struct edge_op *
e2b_op(enum op_kind kind)
{
    static struct edge_op op;       /* large, used at once, one thread */

    memset(&op, 0, sizeof(op));
    op.kind = kind;
    op.path = "";
    return &op;
}

/* Bytes of it that stand for the workspace: its own name inside, what E2B's is called, and a shell's word for home. */
static size_t
root_of(const char *said)
{
    static const char *const roots[] = { "/workspace", "/home/user", "~" };

    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        size_t n = strlen(roots[i]);
        if (strncmp(said, roots[i], n) == 0 && (said[n] == '/' || said[n] == '\0'))
            return n;
    }
    return 0;
}

const char *
e2b_path(const char *said, char *room)
{
    const char *at = said + root_of(said);

    if (at != said)
        at += strspn(at, "/");
    if (at[0] == '\0')
        at = ".";
    if (strlen(at) > EDGE_PATH_MAX)
        return NULL;
    memcpy(room, at, strlen(at) + 1);
    return room;
}

void
e2b_shown(const char *said, char *room)
{
    if (said[0] == '/')
        snprintf(room, EDGE_PATH_MAX + 1, "%s", said);
    else
        snprintf(room, EDGE_PATH_MAX + 1, "/workspace/%s", said[0] == '~' ? said + 1 + strspn(said + 1, "/")
                 : strncmp(said, "./", 2) == 0 ? said + 2 : strcmp(said, ".") == 0 ? "" : said);
}
