/* adapters/mcp/call_run.c: tools that run something: make a sandbox if none is named, run, tell what came of it */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"
#include "match/language.h"
#include "match/package.h"
#include "proto/edge_limits.h"

#define TIMEOUT_S    30

/* --- output ------------------------------------------------------------------------------------------------------- */

json_t *
mcp_output(struct buf *b, bool cut)
{
    if (cut) {
        b->max += sizeof(MCP_CUT);
        (void)buf_puts(b, MCP_CUT);
    }
    return json_of_text(b->p, b->n);
}

void
call_output(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    visit_keep(r, is_err ? &r->mcp->err : &r->mcp->out, &r->mcp->cut[is_err ? 1 : 0], p, n);
    mcp_progress(r, p, n, is_err);
}

const char *
call_error_of(uint8_t flags)
{
    return (flags & EDGE_TIMED_OUT) != 0 ? "TimeoutError" : (flags & EDGE_OOM) != 0 ? "MemoryError" : NULL;
}

/* stdout, stderr and error of a result; what is about the time is said where programs say such things */
void
call_add_output(struct visit *r, json_t *body, uint8_t flags)
{
    struct mcp_call *call = r->mcp;
    const char *error = call_error_of(flags);
    bool cut_err = call->cut[1] || (flags & EDGE_ERR_CUT) != 0;

    if ((flags & EDGE_TIMED_OUT) != 0) {
        call->err.max += 128;
        if (call->err.n > 0 && call->err.p[call->err.n - 1] != '\n')
            buf_put_u8(&call->err, '\n');
        buf_printf(&call->err, "Execution timeout after %llds", (long long)call->timeout_s);
    }
    json_object_set_new(body, "stdout", mcp_output(&call->out, call->cut[0] || (flags & EDGE_OUT_CUT) != 0));
    json_object_set_new(body, "stderr", mcp_output(&call->err, cut_err));
    json_object_set_new(body, "error", error != NULL ? json_string(error) : json_null());
}

int
call_code_of(uint8_t flags, uint32_t code)
{
    return (flags & EDGE_TIMED_OUT) != 0 ? -1 : (flags & EDGE_SIGNALED) != 0 ? 128 + (int)code : (int)code;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void
on_granted(struct visit *r)
{
    if (r->mcp->token != NULL)
        mcp_begin_stream(r);
}

const struct visit_answers call_granted = { .granted = on_granted, .no = mcp_fail_err };

static void
on_executed(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    int exit_code = call_code_of(flags, code);
    json_t *body = json_pack("{s:b, s:s, s:i, s:f}", "success", exit_code == 0, "sandbox_id", r->mcp->box, "exit_code",
                             exit_code, "execution_time", (double)ms / 1000);

    json_object_set_new(body, "limit_reached", edge_limit_reached(flags));
    call_add_output(r, body, flags);
    mcp_done_with(r, body, exit_code != 0, mcp_text(r, "context_id") != NULL ? context_put(r, body) : NULL);
}

static const struct visit_op_answers executed = { .out = call_output, .exit = on_executed, .failed = mcp_fail_err,
                                                  .rich = context_result, .run = context_ran };

static void
execute(struct visit *r)
{
    static struct edge_op op;
    const struct language *l = language_find(mcp_text(r, "language"));

    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = "";
    op.flags = OP_STDIN;
    (void)edge_limits(json_object_get(r->mcp->args, "limits"), &op);    /* well: call_execute() */
    op.timeout_ms = (uint64_t)r->mcp->timeout_s * 1000;
    if (l == NULL) {            /* the schema let its name through: it was taken away since */
        mcp_fail(r, "UnsupportedLanguage", "there is no such language any more: ask for the tools again");
        return;
    }
    if (mcp_text(r, "context_id") != NULL) {
        if (!context_of(r, &op.context))
            return;
        op.flags = 0;
        op.argv[0] = l->name;
        op.argv[1] = mcp_text(r, "code");
        op.n_argv = 2;
        visit_op(r, r->mcp->box, &op, &call_granted, &executed);
        return;
    }
    while (l->argv[op.n_argv] != NULL) {
        op.argv[op.n_argv] = l->argv[op.n_argv];
        op.n_argv++;
    }
    adapters_packages(l, &op);
    visit_op(r, r->mcp->box, &op, &call_granted, &executed);
}

static void
on_made(struct visit *r, const struct edge_box *box)
{
    memcpy(r->mcp->box, box->id, sizeof(box->id));
    r->mcp->made = true;
    execute(r);
}

static const struct visit_answers made = { .box = on_made, .no = mcp_fail_err };

bool
call_has_network(const struct edge_box *box)
{
    struct str network = edge_line(box->facts, "network");

    return str_eq_c(network, "allowlist") || str_eq_c(network, "host");
}

/* A sandbox's network is settled when it is made: asking for one in a sandbox that exists asks if it is there. */
static void
on_networked(struct visit *r, const struct edge_box *box)
{
    if (!call_has_network(box))
        mcp_fail(r, "NetworkDisabled",
                 "this sandbox was made without a network: leave out sandbox_id for one that has it");
    else
        execute(r);
}

static const struct visit_answers networked = { .box = on_networked, .no = mcp_fail_err };

void
call_execute(struct visit *r)
{
    const json_t *code = json_object_get(r->mcp->args, "code"), *timeout = json_object_get(r->mcp->args, "timeout");
    static struct edge_op op;
    const char *wrong;

    memset(&op, 0, sizeof(op));
    r->mcp->timeout_s = timeout != NULL ? json_integer_value(timeout) : TIMEOUT_S;
    wrong = edge_limits(json_object_get(r->mcp->args, "limits"), &op);
    if (wrong != NULL || op.timed) {
        mcp_fail(r, "InvalidArguments", "%s", wrong != NULL ? wrong : "the time of an execution is its timeout");
        return;
    }
    if (mcp_text(r, "context_id") != NULL) {    /* its code is no standard input, and its limits are the context's */
        if (mcp_text(r, "sandbox_id") == NULL || (op.flags & OP_LIMITS) != 0) {
            mcp_fail(r, "InvalidArguments", "context_id goes with its sandbox_id, and without limits");
            return;
        }
    } else if (!visit_input(r, json_string_value(code), json_string_length(code))) {
        mcp_fail(r, "http.body-too-large", "the code is too large");
        return;
    }
    if (mcp_text(r, "sandbox_id") == NULL) {
        (void)call_make(r, "", mcp_text(r, "language"), &made);
        return;
    }
    if (!call_names_box(r))
        return;
    if (json_array_size(json_object_get(r->mcp->args, "allowed_domains")) > 0)
        mcp_fail(r, "InvalidArguments",
                 "allowed_domains is for a new sandbox: one that exists keeps what it was made with");
    else if (mcp_true(r, "network_enabled"))
        VISIT_ASK(r, EDGE_ASK_GET, &networked, .id = r->mcp->box);
    else
        execute(r);
}
