/* cli/discard.c: cloche discard */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/cow_common.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/words.h"
#include "run/session_audit.h"
#include "workspace/apply.h"

/* An interrupted apply has parts of the project in the state: they go back before the state goes. */
static int
give_back(const struct cow_state *state, struct err *err)
{
    if (!io_present(state->state_fd, JOURNAL_FILE))
        return 0;
    cleanup_close int project = state->project != NULL ? cow_project_open(state, err) : -1;
    if (state->project == NULL)
        err_set(err, ERR_PROTOCOL, "workspace.state.meta", "meta.json of the state %s is damaged", state->id);
    if (project < 0 || apply_recover(state, project, err) < 0) {
        err_wrap(err, "an interrupted apply cannot be undone");
        return err_hint(err,
                        "the state's stage directory holds parts of the project: look there before removing %s",
                        state->path);
    }
    cli_warn("an apply was interrupted; what it had done to the project is undone");
    return 0;
}

static void
note(const char *id, const char *project)
{
    struct audit_entry e;

    audit_capability(&e, NULL, "workspace_discard", "changes of a sandbox were thrown away");
    audit_put_cstr(&e, "changes", id);
    audit_put_cstr(&e, "project", project);
    audit_put_number(&e, "by_uid", getuid());
    audit_note(&e);
}

static int
discard(const char *which, bool json, struct err *err)
{
    cleanup_cow struct cow_state state = COW_STATE_INIT;
    char id[COW_ID_MAX + 1];
    struct policy_host host;

    if (cli_host(&host, err) < 0 || cow_find(which, host.cwd, id, err) < 0 ||
        cow_open(id, COW_LOCK_DISCARD, &state, err) < 0 || give_back(&state, err) < 0)
        return -1;
    json_t *out = json_pack("{s:i, s:b}", "version", 1, "discarded", true);
    cow_json_state(out, &state);
    cleanup_free char *project = state.project != NULL ? strdup(state.project) : NULL;
    if (cow_discard(&state, err) < 0) {
        json_decref(out);
        return -1;
    }
    note(id, project);
    if (json)
        return cli_json_print(out, err);
    json_decref(out);
    fprintf(stderr, "cloche: discarded %.12s\n", id);
    return 0;
}

int
cmd_discard(int argc, char **argv)
{
    bool json = false;
    const struct cow_flag flags[] = { { "--json", &json, "one JSON object" } };
    struct err err = ERR_INIT;
    int n, after, r = cow_args(argc, argv, flags, 1, &n, &after, &err);

    if (r > 0) {
        cow_usage("discard", "[ID|DIR]",
                  "Throw away what a copy-on-write run changed. The project is not touched.\n"
                  "Without ID or DIR: the newest run on the current directory.", flags, 1);
        return 0;
    }
    if (r == 0 && n > 1) {
        r = err_set(&err, ERR_USAGE, "cli.operands", "too many operands: %s", argv[2]);
        err_hint(&err, "cloche discard [--json] [ID|DIR]");
    }
    if (r == 0)
        r = discard(n > 0 ? argv[1] : NULL, json, &err);
    return r < 0 ? cli_fail(&err, json || cli_asks_json(argc, argv, false)) : COW_DONE;
}
