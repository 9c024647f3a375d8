/* run/fallback.c: see fallback.h */
#include "run/fallback.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/engine.h"
#include "guest/client.h"
#include "program/caller.h"
#include "program/say.h"
#include "run/session_priv.h"

/* Root's folder, which was named as the workspace, can be written by a sandbox only with a mount that light mode does
 * not have: it is as good as the mode that has it. As a rule that is a job in a container. */
static enum policy_mode
mode_to_ask(const struct policy *policy, const struct err *why)
{
    return err_is(why, "wall.light.root-folder") && policy->workspace.kind == WORKSPACE_RW
               ? MODE_STANDARD : policy->mode.v;
}

/* Whether a sandbox starts in @mode that has nothing of a project's: then all is there that the mode is built of, in
 * whatever way, and a run that failed did so for a reason of its own. */
static bool
plain_starts(const struct policy *like, enum policy_mode mode)
{
    cleanup_policy struct policy plain = { 0 };
    struct guest_client *client = NULL;
    struct sandbox *sb = NULL;
    struct policy_host host;
    struct err err = ERR_INIT;
    bool starts;
    int transport;

    if (cli_host(&host, &err) < 0 || policy_init(&plain, mode, like->verb, &host, &err) < 0 ||
        policy_apply_flag(&plain, "--engine", engine_name(like), &host, &err) < 0)
        return true;        /* that says nothing of the host: no weaker mode */
    if (sandbox_create(&plain, NULL, &sb, &err) < 0)
        return false;
    starts = sandbox_begin(sb, &transport, &client, &err) == 0;
    guest_client_free(client);
    sandbox_abandon(sb);
    sandbox_destroy(sb);
    return starts;
}

bool
fallback_lacks(const struct policy *policy, const struct err *why, char text[256])
{
    enum policy_mode mode = mode_to_ask(policy, why);
    enum lack lack = engine_lacks(policy, mode, why->code, text);

    return lack == LACK_OF_STEP || (lack == LACK_OF_MODE && !plain_starts(policy, mode));
}

/* What mode light refuses because it is light, and has the host's tree. Nothing else may be wrong with a policy that
 * was right in mode standard. */
static bool
light_cannot(const struct err *err)
{
    static const char *const codes[] = { "policy.light.asks", "policy.network.light", "policy.view.asks",
                                         "policy.bind.host-view", "policy.workspace.host-view" };

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (strcmp(err->code, codes[i]) == 0)
            return true;
    return false;
}

int
fallback_light(const struct session *s, struct session_result *r, const char *why, struct err *err)
{
    const char *url = s->policy->fallback_url.p;
    struct err cannot = ERR_INIT;

    /* code is put into a root of the sandbox's own */
    if (s->policy->mode.v != MODE_STANDARD || s->weaker == NULL || s->file != NULL)
        return 0;
    if (s->weaker(s->weaker_ctx, MODE_LIGHT, &r->weaker, &cannot) < 0) {
        policy_free(&r->weaker);
        *err = cannot;
        err_wrap(err, "mode standard cannot be built here (%s), and mode light cannot stand in for it", why);
        return light_cannot(&cannot) ? 0 : -1;
    }
    session_warn(r, true, "WEAKER WALL: mode standard cannot be built here (%.150s); the command runs in mode light",
                 why);
    cli_warn("what mode light does not hold: docs/security.md; what is missing and how to get it: `cloche doctor`%s%s",
             url != NULL ? "; guidance: " : "", url != NULL ? url : "");
    r->weakened = true;
    return 1;
}
