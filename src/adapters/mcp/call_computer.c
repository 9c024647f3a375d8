/* adapters/mcp/call_computer.c: the tool computer: what is seen is an image beside the text */
#include <string.h>

#include "adapters/computer_run.h"
#include "adapters/mcp/mcp.h"
#include "wire/json_text.h"

static void
on_told(struct visit *r, json_t *said)
{
    json_t *more = NULL;

    if (json_object_get(said, "width") != NULL)
        more = json_pack("[{s:s, s:o, s:s}]", "type", "image", "data", json_of_base64(r->out.p, r->out.n), "mimeType",
                         "image/png");
    json_object_set_new(said, "success", json_true());
    json_object_set_new(said, "sandbox_id", json_string(r->mcp->box));
    json_object_set_new(said, "error", json_null());
    mcp_done_with(r, said, false, more);
}

static void
on_failed(struct visit *r, const char *why)
{
    mcp_fail(r, "ComputerError", "%s", why);
}

static const struct computer_answers answers = { .told = on_told, .failed = on_failed, .no = mcp_fail_err };

void
call_computer(struct visit *r)
{
    const char *wrong;

    if (!call_names_box(r))
        return;
    /* one that was too long to be judged as a call is judged as an action now; its commands say too little */
    wrong = computer_go(r, r->mcp->box, r->mcp->args, r->mcp->judged, &answers);
    if (wrong != NULL)
        mcp_fail(r, "InvalidArguments", "%s", wrong);
}
