/* front/ask_more.c: questions to the warden that hold a policy */
#include <string.h>

#include "front/ask_priv.h"

/* False: it is answered. */
static bool
policy_fits(struct request *r, const char *policy)
{
    size_t n = strlen(policy);

    if (n <= EDGE_POLICY_MAX)
        return true;
    reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "policy.too-long", "long lists, and what all sandboxes share, belong "
                "into the daemon's --settings", "the policy has %zu bytes as JSON; at most %d are taken", n,
                EDGE_POLICY_MAX);
    return false;
}

void
ask_create(struct request *r, const struct edge_create *create, const struct answers *answers)
{
    if (policy_fits(r, create->policy))
        ask(r, EDGE_ASK_CREATE, EDGE_ASK_CREATE_SHAPE(), create, answers);
}

void
ask_change(struct request *r, const char *id, const uint8_t *was, const char *policy, const struct answers *answers)
{
    if (policy_fits(r, policy))
        ASK(r, EDGE_ASK_CHANGE, answers, .id = id, .was = was, .policy = policy);
}
