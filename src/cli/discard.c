/* cli/discard.c: cloche discard */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/cow_common.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/verb.h"
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

struct options {
    bool json;
};

static int
discard(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_cow struct cow_state state = COW_STATE_INIT;
    char id[COW_ID_MAX + 1];
    struct policy_host host;

    if (cli_host(&host, err) < 0 || cow_find(w->v[0], host.cwd, id, err) < 0 ||
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
    if (o->json)
        return cli_json_print(out, err) < 0 ? -1 : COW_DONE;
    json_decref(out);
    fprintf(stderr, "cloche: discarded %.12s\n", id);
    return COW_DONE;
}

int
cmd_discard(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[flags] [ID|DIR]", 0, 1, .run = discard } };
    static const struct verb_flag flags[] = { { "--json", 0, NULL, "one JSON object", FLAG_ON(struct options, json) } };
    static const struct verb verb = {
        .name = "discard", VERB_FORMS(forms), VERB_FLAGS(flags), .surplus = "cli.operands",
        .about = "Discard what a copy-on-write run changed. The project is not touched.\n"
                 "Without ID or DIR: the newest run on the current directory.",
    };
    struct options o = { .json = false };

    return verb_main(&verb, &o, argc, argv);
}
