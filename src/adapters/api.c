/* adapters/api.c: /api/sandbox: one default sandbox, in the words that existing clients match on (docs/daemon.md)
 *
 * ?id= names another one.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "adapters/api.h"
#include "proto/edge_launcher.h"
#include "wire/json_text.h"

#define EVENTS_SHOWN 100
#define EVENTS_ASKED 1000      /* more of them, for some are not shown */

void
api_refuse(struct visit *r, unsigned status, const char *what)
{
    visit_json(r, status, json_pack("{s:o}", "error", json_of_text((const uint8_t *)what, strlen(what))));
}

/* ?id=, or "" for the default one. NULL when it cannot be an id; said. */
const char *
api_which(struct visit *r)
{
    bool bad = false;
    const char *id = visit_query(r, "id", r->id, sizeof(r->id), &bad);

    if (!bad && (id == NULL || edge_is_id(id) || edge_name_well(id)))
        return id != NULL ? id : "";
    api_refuse(r, HTTP_BAD_REQUEST, "id names no sandbox");
    return NULL;
}

/* --- status, start, stop, recover --------------------------------------------------------------------------------- */

/* Two forms of it are in use; this is both. */
static json_t *
status_json(const struct edge_box *box)
{
    struct str mode = edge_line(box != NULL ? box->facts : "", "mode");
    bool runs = false;
    json_t *at = NULL, *id = NULL;

    if (box != NULL && (box->state == BOX_READY || box->state == BOX_DEGRADED)) {
        runs = true;
        at = json_integer((json_int_t)box->started_ms);
        id = json_string(box->id);
    }
    return json_pack("{s:s, s:o, s:o?, s:n, s:b, s:o?, s:n, s:n}", "state",
                     box_state_name(box != NULL ? box->state : BOX_UNINITIALIZED), "mode",
                     mode.p != NULL ? json_stringn(mode.p, mode.n) : json_string("standard"),
                     "containerId", id, "browserContainerId", "running", runs, "startedAt", at, "cdpEndpoint",
                     "wsEndpoint");
}

static void
on_status(struct visit *r, const struct edge_box *box)
{
    visit_json(r, HTTP_OK, status_json(box));
}

static void
on_no_status(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        visit_json(r, HTTP_OK, status_json(NULL));
    else
        visit_err(r, err);
}

static void
failed(struct visit *r, const char *what, const struct err *err)
{
    char text[2048];

    snprintf(text, sizeof(text), "%s: %s", what, err->msg);
    if (err_is(err, "auth.role"))
        visit_err(r, err);
    else
        api_refuse(r, HTTP_INTERNAL, text);
}

static const struct visit_answers status_answers = { .box = on_status, .no = on_no_status };

static void
on_no_start(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.state"))        /* it runs */
        VISIT_ASK(r, EDGE_ASK_GET, &status_answers, .id = r->id);
    else
        failed(r, "Failed to start sandbox", err);
}

static void
on_no_stop(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        visit_json(r, HTTP_OK, status_json(NULL));
    else
        failed(r, "Failed to stop sandbox", err);
}

static void
on_no_recovery(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.state"))        /* it needs none */
        VISIT_ASK(r, EDGE_ASK_GET, &status_answers, .id = r->id);
    else if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        visit_json(r, HTTP_OK, status_json(NULL));
    else
        failed(r, "Recovery failed", err);
}

static const struct visit_answers start_answers = { .box = on_status, .no = on_no_start };
static const struct visit_answers stop_answers = { .box = on_status, .no = on_no_stop };
static const struct visit_answers recover_answers = { .box = on_status, .no = on_no_recovery };

void
api_status(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_GET, &status_answers, .id = id);
}

void
api_start(struct visit *r)
{
    const char *id = api_which(r);

    if (id == NULL)
        return;
    if (id[0] != '\0')          /* one that was made by /v1: it runs, or it is made anew */
        VISIT_ASK(r, EDGE_ASK_RECOVER, &start_answers, .id = id);
    else
        visit_create(r, &(struct edge_create){ .flags = EDGE_DEFAULT, .name = "", .labels = "", .policy = "",
                                          .workspace = "", .volume = "",
                                          .language = "" }, &start_answers);
}

void
api_stop(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_DELETE, &stop_answers, .id = id);
}

void
api_recover(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_RECOVER, &recover_answers, .id = id);
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
on_event(struct visit *r, const struct edge_event *event)
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

static void
on_events_end(struct visit *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    visit_json(r, HTTP_OK, json_pack("{s:O}", "events", r->list));
}

static const struct visit_answers event_answers = { .event = on_event, .end = on_events_end };

static void
on_whose_events(struct visit *r, const struct edge_box *box)
{
    r->list = json_array();
    VISIT_ASK(r, EDGE_ASK_EVENTS, &event_answers, .limit = EVENTS_ASKED, .id = box->id);
}

static void
on_nobodys_events(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        visit_json(r, HTTP_OK, json_pack("{s:[]}", "events"));
    else
        visit_err(r, err);
}

static const struct visit_answers whose_answers = { .box = on_whose_events, .no = on_nobodys_events };

void
api_events(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_GET, &whose_answers, .id = id);
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
refused_result(struct visit *r, const char *why)
{
    visit_json(r, HTTP_UNPROCESSABLE,
               json_pack("{s:i, s:s, s:s, s:i, s:b}", "exitCode", 1, "stdout", "", "stderr", why, "durationMs", 0,
                         "executedInSandbox", 0));
}

static void
keep_output(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    visit_keep(r, is_err ? &r->err_out : &r->out, is_err ? &r->cut_err : &r->cut_out, p, n);
}

/* A signal is what a shell makes of it. */
static void
on_executed(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    json_int_t status = (flags & EDGE_TIMED_OUT) != 0 ? 124 : (flags & EDGE_SIGNALED) != 0 ? 128 + (json_int_t)code
                                                                                           : (json_int_t)code;

    visit_json(r, status != 0 ? HTTP_UNPROCESSABLE : HTTP_OK,
               json_pack("{s:I, s:o, s:o, s:I, s:b}", "exitCode", status, "stdout", json_of_text(r->out.p, r->out.n),
                         "stderr", json_of_text(r->err_out.p, r->err_out.n), "durationMs", (json_int_t)ms,
                         "executedInSandbox", 1));
}

static void
on_failed(struct visit *r, const struct err *err)
{
    uint32_t code = edge_shells_code(err);

    if (code == 0) {
        visit_err(r, err);
        return;
    }
    keep_output(r, true, (const uint8_t *)err->msg, strlen(err->msg));
    keep_output(r, true, (const uint8_t *)"\n", 1);
    on_executed(r, 0, code, 0);
}

/* A refusal is a result. */
static void
on_no_exec(struct visit *r, const struct err *err)
{
    char text[128];

    if (!err_is(err, "sandbox.not-found") && !err_is(err, "sandbox.state") && !err_is(err, "sandbox.paused")) {
        visit_err(r, err);
        return;
    }
    /* "the sandbox is STATE" */
    snprintf(text, sizeof(text), "Sandbox not ready (state=%.32s)", err_is(err, "sandbox.state") &&
             strlen(err->msg) > 15 ? err->msg + 15 : err_is(err, "sandbox.paused") ? "paused" : "uninitialized");
    refused_result(r, text);
}

static const struct visit_answers exec_answers = { .no = on_no_exec };
static const struct visit_op_answers exec_said = { .out = keep_output, .exit = on_executed, .failed = on_failed };

void
api_exec(struct visit *r)
{
    static struct edge_op op;
    static char room[EDGE_OP_MAX];
    const json_t *workdir = json_object_get(r->json, "workdir"), *ms = json_object_get(r->json, "timeoutMs");
    const json_t *command = json_object_get(r->json, "command");
    const char *text = json_cstr(command), *id = api_which(r);

    if (id == NULL)
        return;
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = workdir != NULL ? json_cstr(workdir) : "";
    if (text == NULL || text[0] == '\0') {
        api_refuse(r, HTTP_BAD_REQUEST, "Missing 'command' field");
    } else if (op.path == NULL || (ms != NULL && (!json_is_integer(ms) || json_integer_value(ms) < 1 ||
                                                  json_integer_value(ms) > 86400000))) {
        api_refuse(r, HTTP_BAD_REQUEST, "workdir is a string, timeoutMs a positive number of milliseconds");
    } else if (strlen(text) >= sizeof(room)) {
        refused_result(r, "the command is too long: at most 124 KiB are taken");
    } else if (!words(text, room, &op) || op.argv[0][0] == '\0') {
        refused_result(r, "unsupported shell syntax: the command is split into words, no shell reads it");
    } else {
        op.timeout_ms = ms != NULL ? (uint64_t)json_integer_value(ms) : 0;
        visit_op(r, id, &op, &exec_answers, &exec_said);
    }
}

/* --- the host ----------------------------------------------------------------------------------------------------- */

static json_t *facts;

void
api_platform_look(const char *engine)
{
    struct utsname host;
    const char *arch;

    facts = json_object();
    if (uname(&host) < 0)
        return;
    arch = strcmp(host.machine, "x86_64") == 0 ? "x64" : strcmp(host.machine, "aarch64") == 0 ? "arm64" : host.machine;
    json_decref(facts);
    facts = json_pack("{s:s, s:s, s:b, s:b, s:s}", "platform", "linux", "arch", arch, "appleContainerAvailable", 0,
                      "wsl2", strstr(host.release, "WSL2") != NULL || strstr(host.release, "microsoft") != NULL,
                      "recommended", engine);
}

static void
platform_told(struct visit *r, uint8_t is)
{
    json_t *all = json_deep_copy(facts);
    bool runs = (is & LAUNCH_DOCKER_RUNNING) != 0;

    json_object_set_new(all, "dockerInstalled", json_boolean((is & LAUNCH_DOCKER_INSTALLED) != 0));
    json_object_set_new(all, "dockerRunning", json_boolean(runs));
    json_object_set_new(all, "dockerAvailable", json_boolean(runs && (is & LAUNCH_DOCKER_OURS) != 0));
    visit_json(r, HTTP_OK, all);
}

void
api_platform(struct visit *r)
{
    visit_docker(r, platform_told);
}

#define NO_START "Failed to start Docker: "

static void
start_told(struct visit *r, uint8_t is)
{
    const char *why = (is & LAUNCH_DOCKER_INSTALLED) != 0
        ? NO_START "cloche starts no services of the host, and no daemon answers. Start it yourself (systemctl start "
          "docker; Podman: systemctl start podman.socket), or start cloche serve with DOCKER_HOST=unix:///PATH"
        : NO_START "it is not installed: there is no docker and no podman, and no daemon answers";

    if ((is & LAUNCH_DOCKER_RUNNING) != 0)
        visit_json(r, HTTP_OK, json_pack("{s:b, s:s, s:i}", "success", 1, "message", "Docker is already running",
                                         "waitMs", 0));
    else
        visit_json(r, HTTP_INTERNAL,
                   json_pack("{s:b, s:s, s:s, s:i}", "success", 0, "message", why, "error", why, "waitMs", 0));
}

void
api_docker_start(struct visit *r)
{
    visit_docker(r, start_told);
}

/* --- what a sandbox can do ---------------------------------------------------------------------------------------- */

static const struct { const char *name, *tool[3]; } can[] = {
    { "screenshot", { "ffmpeg", "Xvnc", "xdotool" } },
    { "audioRecord", { "ffmpeg", "pulseaudio", "pactl" } },
    { "audioPlay", { "ffmpeg", "pulseaudio", "pactl" } },
    { "computerUse", { "xdotool", "Xvnc", "xkbcomp" } },
    { "windowList", { "wmctrl", "Xvnc", "xdotool" } },
};

/* Whether a line of what `which` says ends in /NAME. */
static bool
says(const struct visit *r, const char *name)
{
    char line[64];

    snprintf(line, sizeof(line), "/%s\n", name);
    return r->out.n > 0 && memmem(r->out.p, r->out.n, line, strlen(line)) != NULL;
}

static void
tell_capabilities(struct visit *r)
{
    json_t *all = json_pack("{s:{s:b, s:s}, s:{s:b, s:s}}", "browser", "available", 0, "tool", "none", "shell",
                            "available", 1, "tool", "cloche");

    for (size_t i = 0; i < ARRAY_LEN(can); i++) {
        bool there_is = !r->cut_out && says(r, can[i].tool[0]) && says(r, can[i].tool[1]) && says(r, can[i].tool[2]);
        json_object_set_new(all, can[i].name, json_pack("{s:b, s:s}", "available", there_is, "tool",
                                                        there_is ? can[i].tool[0] : "none"));
    }
    visit_json(r, HTTP_OK, all);
}

static void
on_which(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)flags;
    (void)code;
    (void)ms;
    tell_capabilities(r);
}

/* Without a sandbox, or without what looks, nothing is there. */
static void
on_no_which(struct visit *r, const struct err *err)
{
    (void)err;
    buf_free(&r->out);
    tell_capabilities(r);
}

static const struct visit_op_answers which_said = { .out = keep_output, .exit = on_which, .failed = on_no_which };
static const struct visit_answers which_answers = { .no = on_no_which };

#define WHICH_MS 10000

static void
on_can_box(struct visit *r, const struct edge_box *box)
{
    static const char *const words[] = { "which", "ffmpeg", "Xvnc", "xdotool", "wmctrl", "pulseaudio", "pactl",
                                         "xkbcomp" };
    static struct edge_op op;

    if (str_eq_c(edge_line(box->facts, "network"), "host")) {
        tell_capabilities(r);
        return;
    }
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = "";
    op.timeout_ms = WHICH_MS;
    while (op.n_argv < ARRAY_LEN(words)) {
        op.argv[op.n_argv] = words[op.n_argv];
        op.n_argv++;
    }
    r->async = true;        /* nobody is waited for */
    visit_op(r, r->id, &op, &which_answers, &which_said);
}

static const struct visit_answers can_answers = { .box = on_can_box, .no = on_no_which };

void
api_capabilities(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_GET, &can_answers, .id = id);
}

/* Where the sandbox's browser is reached (front/browser.c), as this client came here. By the owner's socket there is no
 * address. The WebSocket's has a part that the browser chooses: /json/version below the first one says it. */
static json_t *
browser_json(const struct visit *r, const char *id)
{
    const char *host = r->strangers ? visit_header(r, "Host") : NULL;
    json_t *cdp = host != NULL && id != NULL ? json_sprintf("%s://%.260s/v1/sandboxes/%s/browser",
                                                            r->tls ? "https" : "http", host, id) : NULL;

    return json_pack("{s:o?, s:n, s:n}", "cdpEndpoint", cdp, "wsEndpoint", "noVncEndpoint");
}

static void
on_browser(struct visit *r, const struct edge_box *box)
{
    bool runs = box->state == BOX_READY || box->state == BOX_DEGRADED;

    visit_json(r, HTTP_OK, browser_json(r, runs ? box->id : NULL));
}

static void
on_no_browser(struct visit *r, const struct err *err)
{
    if (err_is(err, "sandbox.not-found") && r->id[0] == '\0')
        visit_json(r, HTTP_OK, browser_json(r, NULL));
    else
        visit_err(r, err);
}

static const struct visit_answers browser_answers = { .box = on_browser, .no = on_no_browser };

void
api_browser(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        VISIT_ASK(r, EDGE_ASK_GET, &browser_answers, .id = id);
}
