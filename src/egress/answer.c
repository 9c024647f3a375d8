/* egress/answer.c: see answer.h */
#include "egress/answer.h"

#include <string.h>

#include "base/cleanup.h"
#include "match/host.h"
#include "wire/http1.h"

static void
describe(struct buf *body, const struct answer *a)
{
    buf_puts(body, "cloche: ");
    if (a->host.n > 0)
        buf_printf(body, "%.*s:%u: ", (int)a->host.n, a->host.p, a->port);
    buf_printf(body, "%s%s%s", a->reason, a->detail[0] != '\0' ? ": " : "", a->detail);
    if (a->rule.n > 0)
        buf_printf(body, " (rule %.*s)", (int)a->rule.n, a->rule.p);
    buf_puts(body, "\n");
    if (strstr(a->reason, "-no-rule") != NULL)
        buf_printf(body, "the owner of this sandbox can open it with --allow-%s\n",
                   host_is_own_name(a->host) ? "host-port" : "domain");
}

int
answer_write(struct buf *out, const struct answer *a, bool is_head, bool keep)
{
    cleanup_buf struct buf body = BUF_INIT(ANSWER_MAX / 2);
    const struct http1_add add[] = {
        { STR_LIT("Content-Type"), a->srt ? STR_LIT("text/plain") : STR_LIT("text/plain; charset=utf-8") },
        { STR_LIT("X-Cloche-Denied"), str_of(a->reason) },
        { STR_LIT("X-Proxy-Error"), STR_LIT("blocked-by-allowlist") },
    };
    struct http1_response_out r = { .status = a->status, .reason = str_of(a->phrase),
                                    .method = is_head ? STR_LIT("HEAD") : STR_LIT("GET") };

    if (a->srt)
        buf_puts(&body, "Connection blocked by network allowlist");
    else
        describe(&body, a);
    r.out = (struct http1_out){ .add = add, .n_add = a->srt ? 3 : 2, .framing = HTTP1_BODY_LENGTH,
                                .body_length = body.n, .connection = keep ? HTTP1_CONN_DEFAULT : HTTP1_CONN_CLOSE };
    if (http1_write_response(out, &r) < 0)
        return -1;
    return is_head ? 0 : buf_append(out, body.p, body.n);
}
