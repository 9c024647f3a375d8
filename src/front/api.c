/* front/api.c: /api/sandbox: one default sandbox, in the words that existing clients match on (docs/daemon.md)
 *
 * ?id= names another one. What there is nothing for here (a screen, audio, a browser, a signer) says so, after the
 * request was judged as it would be with it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "front/api.h"

#define EVENTS_SHOWN 100
#define EVENTS_ASKED 1000      /* more of them, for some are not shown */

void
api_refuse(struct request *r, unsigned status, const char *what)
{
    reply_error(r, status, "api", "", "%s", what);
}

/* ?id=, or "" for the default one. NULL when it cannot be an id; said. */
static const char *
which(struct request *r)
{
    bool bad = false;
    const char *id = query_get(r, "id", r->id, sizeof(r->id), &bad);

    if (!bad && (id == NULL || edge_is_id(id) || edge_name_well(id)))
        return id != NULL ? id : "";
    api_refuse(r, MHD_HTTP_BAD_REQUEST, "id names no sandbox");
    return NULL;
}

/* --- status, start, stop, recover --------------------------------------------------------------------------------- */

/* Two forms of it are in use; this is both. */
static json_t *
status_json(const struct edge_box *box)
{
    const char *mode = box != NULL ? strstr(box->facts, "\nmode=") : NULL;
    bool runs = false;
    json_t *at = NULL, *id = NULL;

    if (box != NULL && (box->state == BOX_READY || box->state == BOX_DEGRADED)) {
        runs = true;
        at = json_integer((json_int_t)box->started_ms);
        id = json_string(box->id);
    }
    return json_pack("{s:s, s:o, s:o?, s:n, s:b, s:o?, s:n, s:n}", "state",
                     box_state_name(box != NULL ? box->state : BOX_UNINITIALIZED), "mode",
                     mode != NULL ? json_stringn(mode + 6, strcspn(mode + 6, "\n")) : json_string("standard"),
                     "containerId", id, "browserContainerId", "running", runs, "startedAt", at, "cdpEndpoint",
                     "wsEndpoint");
}

static void
on_status(struct request *r, const struct edge_box *box)
{
    reply_json(r, MHD_HTTP_OK, status_json(box));
}

static void
on_no_status(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        reply_json(r, MHD_HTTP_OK, status_json(NULL));
    else
        reply_err(r, err);
}

static void
failed(struct request *r, const char *what, const struct err *err)
{
    if (err_is(err, "auth.role"))
        reply_err(r, err);
    else
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "api", "", "%s: %s", what, err->msg);
}

static const struct answers status_answers = { .box = on_status, .no = on_no_status };

static void
on_no_start(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.state"))        /* it runs */
        ASK(r, EDGE_ASK_GET, &status_answers, .id = r->id);
    else
        failed(r, "Failed to start sandbox", err);
}

static void
on_no_stop(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        reply_json(r, MHD_HTTP_OK, status_json(NULL));
    else
        failed(r, "Failed to stop sandbox", err);
}

static void
on_no_recovery(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.state"))        /* it needs none */
        ASK(r, EDGE_ASK_GET, &status_answers, .id = r->id);
    else if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        reply_json(r, MHD_HTTP_OK, status_json(NULL));
    else
        failed(r, "Recovery failed", err);
}

static const struct answers start_answers = { .box = on_status, .no = on_no_start };
static const struct answers stop_answers = { .box = on_status, .no = on_no_stop };
static const struct answers recover_answers = { .box = on_status, .no = on_no_recovery };

/* Asked for far more often than it changes: remembered until the warden counts on (warden/epoch.h). */
static void
tell(struct request *r, const struct edge_box *box)
{
    struct told_status *s = who_status(r);
    json_t *json = status_json(box);

    if (s != NULL) {
        free(s->text);
        *s = (struct told_status){ .text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL, .epoch = r->epoch };
        s->n = s->text != NULL ? strlen(s->text) : 0;
    }
    reply_json(r, MHD_HTTP_OK, json);
}

static void
on_default(struct request *r, const struct edge_box *box)
{
    tell(r, box);
}

static void
on_no_default(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found"))
        tell(r, NULL);
    else
        reply_err(r, err);
}

static const struct answers default_answers = { .box = on_default, .no = on_no_default };

static void
status(struct request *r)
{
    const char *id = which(r);
    const struct told_status *s;

    if (id == NULL)
        return;
    if (id[0] != '\0') {
        ASK(r, EDGE_ASK_GET, &status_answers, .id = id);
        return;
    }
    s = who_status(r);
    r->epoch = s != NULL ? atomic_load(&r->f->epochs->defaults) : 0;
    if (s != NULL && s->text != NULL && s->epoch == r->epoch)
        reply_text(r, MHD_HTTP_OK, "application/json", s->text, s->n);
    else
        ASK(r, EDGE_ASK_GET, &default_answers, .id = "");
}

static void
start(struct request *r)
{
    const char *id = which(r);

    if (id == NULL)
        return;
    if (id[0] != '\0')          /* one that was made by /v1: it runs, or it is made anew */
        ASK(r, EDGE_ASK_RECOVER, &start_answers, .id = id);
    else
        ask_create(r, &(struct edge_create){ .flags = EDGE_DEFAULT, .name = "", .labels = "", .policy = "",
                                          .workspace = "", .volume = "" }, &start_answers);
}

static void
stop(struct request *r)
{
    const char *id = which(r);

    if (id != NULL)
        ASK(r, EDGE_ASK_DELETE, &stop_answers, .id = id);
}

static void
recover(struct request *r)
{
    const char *id = which(r);

    if (id != NULL)
        ASK(r, EDGE_ASK_RECOVER, &recover_answers, .id = id);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* A closed list is what clients know; what only /v1/events tells is not there. */
static const struct { const char *ours, *theirs; } kinds[] = {
    { "state_change", "state_change" }, { "paused", "state_change" }, { "resumed", "state_change" },
    { "recovery", "state_change" }, { "reattached", "state_change" }, { "exec", "exec" },
    { "exec_denied", "exec_denied" }, { "gate_denied", "exec_denied" }, { "gate_timeout", "exec_denied" },
    { "container_start", "container_start" }, { "container_stop", "container_stop" },
    { "health_check", "health_check" }, { "error", "error" },
};

static void
on_event(struct request *r, const struct edge_event *event)
{
    json_t *said = json_of_text((const uint8_t *)event->detail, strlen(event->detail));
    const char *type = NULL;

    for (size_t i = 0; i < ARRAY_LEN(kinds) && type == NULL; i++)
        type = strcmp(kinds[i].ours, event->type) == 0 ? kinds[i].theirs : NULL;
    if (type != NULL)
        json_array_append_new(r->list, json_pack("{s:I, s:s, s:O, s:O, s:{s:s}}", "timestamp",
                                                 (json_int_t)event->at_ms, "type", type, "detail", said, "message",
                                                 said, "metadata", "sandbox", event->id));
    json_decref(said);
    if (json_array_size(r->list) > EVENTS_SHOWN)
        json_array_remove(r->list, 0);
}

static const struct answers event_answers = { .event = on_event, .end = reply_events };

static void
on_whose_events(struct request *r, const struct edge_box *box)
{
    r->list = json_array();
    ASK(r, EDGE_ASK_EVENTS, &event_answers, .limit = EVENTS_ASKED, .id = box->id);
}

static void
on_nobodys_events(struct request *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        reply_json(r, MHD_HTTP_OK, json_pack("{s:[]}", "events"));
    else
        reply_err(r, err);
}

static const struct answers whose_answers = { .box = on_whose_events, .no = on_nobodys_events };

static void
events(struct request *r)
{
    const char *id = which(r);

    if (id != NULL)
        ASK(r, EDGE_ASK_GET, &whose_answers, .id = id);
}

/* --- exec --------------------------------------------------------------------------------------------------------- */

static bool
is_shell(char c)
{
    return strchr("&|;<>$`(){}\n", c) != NULL;
}

/* Words between blanks, with '...' and "..." as in a shell and nothing else of one. False: it is more than that. */
static bool
words(const char *text, char *room, struct edge_op *op)
{
    for (;;) {
        char quote = 0;
        text += strspn(text, " \t");
        if (*text == '\0')
            return op->n_argv > 0;
        if (op->n_argv == EDGE_WORDS_MAX)
            return false;
        op->argv[op->n_argv++] = room;
        for (; *text != '\0' && (quote != 0 || (*text != ' ' && *text != '\t')); text++) {
            if (is_shell(*text))
                return false;
            if (quote == 0 && (*text == '\'' || *text == '"'))
                quote = *text;
            else if (quote != 0 && *text == quote)
                quote = 0;
            else if (quote != '\'' && *text == '\\' && text[1] != '\0')
                *room++ = *++text;
            else
                *room++ = *text;
        }
        if (quote != 0)
            return false;
        *room++ = '\0';
    }
}

static void
refused_result(struct request *r, const char *why)
{
    reply_json(r, MHD_HTTP_UNPROCESSABLE_CONTENT,
               json_pack("{s:i, s:s, s:s, s:i, s:b}", "exitCode", 1, "stdout", "", "stderr", why, "durationMs", 0,
                         "executedInSandbox", 0));
}

static void
exec(struct request *r)
{
    static struct edge_op op;
    static char room[EDGE_OP_MAX];
    const json_t *workdir = json_object_get(r->json, "workdir"), *ms = json_object_get(r->json, "timeoutMs");
    const json_t *command = json_object_get(r->json, "command");
    const char *text = json_string_value(command), *id = which(r);

    if (id == NULL)
        return;
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    workdir = json_is_null(workdir) ? NULL : workdir;
    ms = json_is_null(ms) ? NULL : ms;
    op.path = workdir != NULL ? json_string_value(workdir) : "";
    if (text == NULL || text[0] == '\0' || strlen(text) != json_string_length(command)) {
        api_refuse(r, MHD_HTTP_BAD_REQUEST, "Missing 'command' field");
    } else if (op.path == NULL || (workdir != NULL && strlen(op.path) != json_string_length(workdir)) ||
               (ms != NULL && (!json_is_integer(ms) || json_integer_value(ms) < 1 ||
                               json_integer_value(ms) > 86400000))) {
        api_refuse(r, MHD_HTTP_BAD_REQUEST, "workdir is a string, timeoutMs a positive number of milliseconds");
    } else if (strlen(text) >= sizeof(room)) {
        refused_result(r, "the command is too long: at most 124 KiB are taken");
    } else if (!words(text, room, &op) || op.argv[0][0] == '\0') {
        refused_result(r, "unsupported shell syntax: the command is split into words, no shell reads it");
    } else {
        op.timeout_ms = ms != NULL ? (uint64_t)json_integer_value(ms) : 0;
        exec_run(r, id, &op, false);
    }
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static bool
there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

json_t *
platform_facts(const char *engine)
{
    bool docker = there("/usr/bin/docker") || there("/usr/local/bin/docker");
    bool runs = there("/var/run/docker.sock") || there("/run/docker.sock");
    struct utsname host;
    const char *arch;

    if (uname(&host) < 0)
        return json_object();
    arch = strcmp(host.machine, "x86_64") == 0 ? "x64" : strcmp(host.machine, "aarch64") == 0 ? "arm64" : host.machine;
    return json_pack("{s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:s}", "platform", "linux", "arch", arch, "dockerInstalled",
                     docker, "dockerRunning", runs, "dockerAvailable", docker && runs, "appleContainerAvailable", 0,
                     "wsl2", strstr(host.release, "WSL2") != NULL || strstr(host.release, "microsoft") != NULL,
                     "recommended", engine);
}

static void
platform(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_deep_copy(r->f->platform));
}

static void
docker_start(struct request *r)
{
    static const char why[] = "Failed to start Docker: cloche starts no services of the host";

    reply_json(r, MHD_HTTP_INTERNAL_SERVER_ERROR,
               json_pack("{s:b, s:s, s:s, s:i}", "success", 0, "message", why, "error", why, "waitMs", 0));
}

static json_t *
absent(void)
{
    return json_pack("{s:b, s:s}", "available", 0, "tool", "none");
}

static void
capabilities(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:b, s:s}}", "screenshot", absent(),
                                         "audioRecord", absent(), "audioPlay", absent(), "computerUse", absent(),
                                         "windowList", absent(), "browser", absent(), "shell", "available", 1, "tool",
                                         "cloche"));
}

static void
browser(struct request *r)
{
    reply_json(r, MHD_HTTP_OK, json_pack("{s:n, s:n, s:n}", "cdpEndpoint", "wsEndpoint", "noVncEndpoint"));
}

/* --- what belongs to other parts ---------------------------------------------------------------------------------- */

static void
no_signer(struct request *r)
{
    api_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, "Signing service not configured");
}

const struct route api_routes[] = {
    { "GET",  "/api/sandbox/platform",          platform,          false, false },
    { "POST", "/api/sandbox/docker/start",      docker_start,      true,  false },
    { "GET",  "/api/sandbox/status",            status,            false, false },
    { "GET",  "/api/sandbox/events",            events,            false, false },
    { "POST", "/api/sandbox/start",             start,             true,  false },
    { "POST", "/api/sandbox/stop",              stop,              true,  false },
    { "POST", "/api/sandbox/recover",           recover,           true,  false },
    { "POST", "/api/sandbox/exec",              exec,              true,  false },
    { "GET",  "/api/sandbox/browser",           browser,           false, false },
    { "POST", "/api/sandbox/sign",              no_signer,         false, false },
    { "POST", "/api/sandbox/sign/approve",      no_signer,         false, false },
    { "POST", "/api/sandbox/sign/reject",       no_signer,         false, false },
    { "GET",  "/api/sandbox/sign/pending",      no_signer,         false, false },
    { "GET",  "/api/sandbox/sign/address",      no_signer,         false, false },
    { "GET",  "/api/sandbox/capabilities",      capabilities,      false, false },
};
const size_t api_n_routes = ARRAY_LEN(api_routes);
