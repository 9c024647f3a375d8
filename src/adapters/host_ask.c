/* adapters/host_ask.c: what a visit asked, and what is asked for it (proto/edge_adapter.h) */
#include <string.h>

#include "adapters/host.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "proto/edge_write.h"
#include "wire/form.h"
#include "wire/json_text.h"

#define SAY(h, number, ...) PROTO_SAY(host_say, h, number, __VA_ARGS__)

/* --- what was asked ----------------------------------------------------------------------------------------------- */

const char *
visit_header(const struct visit *v, const char *name)
{
    static const char *const names[] = ADAPT_HEADERS;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return host_of(v)->headers[i];
    return NULL;
}

const char *
visit_query(const struct visit *v, const char *key, char *room, size_t size, bool *bad)
{
    return form_get(host_of(v)->query, key, room, size, bad);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

void
visit_ask(struct visit *v, uint8_t type, const struct shape *shape, const void *m, const struct visit_answers *answers)
{
    struct hosted *h = host_of(v);
    cleanup_buf struct buf b = BUF_INIT(EDGE_MESSAGE_MAX);

    v->answers = answers;
    if (proto_put(&b, shape, m) < 0) {
        visit_refuse(v, HTTP_TOO_LARGE, "http.request-too-large", "docs/daemon.md has the limits",
               "what is asked takes more bytes than one question can have");
        return;
    }
    h->asks = true;
    SAY(h, EDGE_VISIT_ASK, .number = type, .async = v->async, .hears = answers->gate != NULL, .message = b.p,
        .n_message = b.n);
}

void
visit_create(struct visit *v, const struct edge_create *create, const struct visit_answers *answers)
{
    visit_ask(v, EDGE_ASK_CREATE, EDGE_ASK_CREATE_SHAPE(), create, answers);
}

void
visit_gate(struct visit *v, const char *id, const char *tool, const json_t *params, bool hold,
           const struct visit_answers *answers)
{
    cleanup_free char *text = json_dumps(params, JSON_COMPACT);

    v->async = !hold;
    VISIT_ASK(v, EDGE_ASK_GATE, answers, .id = id, .tool = tool, .params = text);
}

bool
visit_input(struct visit *v, const void *p, size_t n)
{
    host_of(v)->has_input = true;
    return buf_append(&host_of(v)->input, p, n) == 0;
}

void
visit_content(struct visit *v, struct edge_op *op)
{
    edge_content_of(op, host_of(v)->input.p, host_of(v)->input.n, true);
}

void
visit_op(struct visit *v, const char *id, const struct edge_op *op, const struct visit_answers *answers,
         const struct visit_op_answers *said)
{
    cleanup_buf struct buf b = BUF_INIT(EDGE_OP_BYTES);
    struct err err = ERR_INIT;

    v->op_answers = said;
    if (!edge_words_fit(op, &err))
        visit_refuse(v, HTTP_TOO_LARGE, err.code, err.hint, err.msg);
    else if (edge_op_put(&b, op) < 0)
        visit_refuse(v, HTTP_TOO_LARGE, "http.request-too-large", "docs/daemon.md has the limits",
               "what is asked takes more bytes than one question can have");
    else
        VISIT_ASK(v, EDGE_ASK_OP, answers, .id = id, .op = b.p, .n_op = b.n);
}

void
visit_run(struct visit *v, const char *id, const struct edge_run_ask *ask, const struct visit_answers *answers,
          const struct visit_op_answers *said)
{
    v->op_answers = said;
    VISIT_ASK(v, EDGE_ASK_RUN, answers, .id = id, .ask = *ask);
}

void
visit_told(struct visit *v)
{
    SAY(host_of(v), EDGE_VISIT_TOLD, .none = 0);
}

void
visit_drop(struct visit *v)
{
    if (host_of(v)->asks)
        SAY(host_of(v), EDGE_VISIT_DROP, .none = 0);
    host_of(v)->asks = false;
    host_op_drop(host_of(v));
}
