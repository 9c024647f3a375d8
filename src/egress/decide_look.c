/* egress/decide_look.c: see decide_look.h. Its reason: path-moves. */
#include "egress/decide_look.h"

#include "match/url_path.h"

static bool
is_kept(const struct decide_rules *rules, const struct host *host, uint16_t port)
{
    for (size_t i = 0; i < rules->kept.n; i++)
        if (host_match(&rules->kept.v[i].pattern, host, port))
            return true;
    return false;
}

/* A field that names another path counts like a path that moves; so do words about the method that cannot all be
 * meant, for who sends them wants servers to differ. */
static bool
moves(const struct decide_request *request)
{
    return url_path_moves(request->path) || request->meant.unclear;
}

/* @out is what the rules say, ALLOW or ASK: say what has to be opened, or deny a path that moves. */
static void
look_into(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out)
{
    const struct decide_look *look = &rules->look;

    if (request->via == DECIDE_HTTP && look->refuse_moving && moves(request)) {
        out->kind = DECIDE_DENY;
        out->reason = "path-moves";
        out->detail = "servers differ in which path is meant";
        out->rule = (struct str){ "", 0 };
    } else if (request->via != DECIDE_HTTP && request->via != DECIDE_DNS) {
        out->open = look->open_tls && !is_kept(rules, &out->host, request->port);
        out->clear = look->refuse_opaque;
    }
}

void
decide(const struct decide_rules *rules, const struct decide_request *request, struct decide_verdict *out)
{
    decide_judge(rules, request, out);
    if (out->kind != DECIDE_DENY)
        look_into(rules, request, out);
}
