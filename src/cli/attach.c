/* cli/attach.c: `cloche attach`: a person's editor in a sandbox of cloche serve (docs/attach.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/attach_folder.h"
#include "cli/cli.h"
#include "cli/exec_live.h"
#include "client/api_verb.h"
#include "program/json.h"

struct options {
    struct api_verb v;
    bool inspect, writes;
    const char *lasts, *within, *dir, *user, *proxy;
};

/* --- a new one ---------------------------------------------------------------------------------------------------- */

static void
print_folder(const struct options *o, const struct attach_folder *f, json_t *said)
{
    char host[64];

    attach_folder_host(said, host);
    if (o->v.json) {
        (void)json_object_del(said, "ticket");      /* it is in the folder, and nobody else's */
        json_object_set_new(said, "folder", json_string(f->path));
        json_object_set_new(said, "config", json_sprintf("%s/config", f->path));
        json_object_set_new(said, "host", json_string(host));
        return api_verb_line(said);
    }
    printf("ssh -F %s/config %s\n", f->path, host);
    fprintf(stderr, "cloche: the first connection has to come soon (--within); sftp, scp and rsync -e \"ssh -F ...\" "
            "take the same file,\n        editors an \"Include %s/config\" in ~/.ssh/config\n", f->path);
}

static int
attach_new(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    struct attach_folder f = { .fd = -1 };
    json_t *body = NULL, *said = NULL;
    int r = -1;

    if (o->inspect == o->writes) {
        err_set(err, ERR_USAGE, "cli.attach.mode", "to look, or to write as well?");
        return err_hint(err, "cloche attach SANDBOX --inspect, or --write");
    }
    body = json_pack("{s:s}", "mode", o->writes ? "write" : "inspect");
    if (api_verb_sandbox(&path, w->v[0], "/attach", err) == 0 &&
        api_verb_seconds(body, "seconds", "--for", o->lasts, "12h", err) == 0 &&
        api_verb_seconds(body, "within", "--within", o->within, "10m", err) == 0 &&
        api_ask(&o->v.api, "POST", (const char *)path.p, body, &said, err) == 0 &&
        attach_folder_make(&f, o->dir, said, o->user, &o->v.api, err) == 0) {
        print_folder(o, &f, said);
        r = 0;
    }
    attach_folder_close(&f);
    json_decref(body);
    json_decref(said);
    return r;
}

/* --- a connection ------------------------------------------------------------------------------------------------- */

/* The session of the folder, which is opened if it is not: its ticket is used once, whoever of several comes first. */
static json_t *
session_of(const struct attach_folder *f, const struct api *api, struct err *err)
{
    json_t *session = attach_folder_read(f, "session", err), *ticket = NULL, *body = NULL;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (session != NULL || err->kind != ERR_NONE)
        return session;
    ticket = attach_folder_read(f, "ticket", err);
    if (ticket == NULL && err->kind == ERR_NONE)
        err_set(err, ERR_NOT_FOUND, "attach.folder", "%s has neither a ticket nor a session", f->path);
    if (ticket == NULL)
        return NULL;
    body = json_pack("{s:s}", "ticket", json_text(ticket, "ticket"));
    if (api_verb_sandbox(&path, json_text(ticket, "sandbox"), "/attach/open", err) == 0 &&
        api_ask(api, "POST", (const char *)path.p, body, &session, err) == 0 &&
        attach_folder_session(f, session, err) < 0) {
        json_decref(session);
        session = NULL;
    }
    json_decref(ticket);
    json_decref(body);
    return session;
}

static int
attach_proxy(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *session = NULL, *keys = NULL;
    struct attach_folder f;
    struct api api = o->v.api;
    int r = -1;

    if (attach_folder_open(&f, o->proxy, err) < 0)
        return -1;
    session = session_of(&f, &api, err);
    if (session != NULL)
        keys = attach_folder_keys(&f, err);
    attach_folder_close(&f);
    if (keys != NULL && api_verb_sandbox(&path, json_text(session, "sandbox"), "/attach/ws", err) == 0) {
        /* the connection answers to that alone */
        snprintf(api.token, sizeof(api.token), "%s", json_text(session, "token"));
        r = exec_live(&api, (const char *)path.p, keys, true, false, err);
    }
    json_decref(session);
    json_decref(keys);
    return r;
}

static int
attach(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;

    if (o->proxy == NULL && w->n == 0) {
        err_set(err, ERR_USAGE, "cli.sandbox", "which sandbox?");
        return err_hint(err, "cloche attach NAME --inspect; `cloche ps` lists them");
    }
    if (o->proxy != NULL && (w->n > 0 || o->inspect || o->writes || o->lasts != NULL || o->within != NULL ||
                             o->dir != NULL || o->user != NULL))
        return err_set(err, ERR_USAGE, "cli.attach.verb", "--proxy is for a session that is there, and goes alone");
    return o->proxy != NULL ? attach_proxy(o, err) : attach_new(o, w, err);
}

/* --- those that there are ----------------------------------------------------------------------------------------- */

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "sessions"), *one;
    size_t i;

    printf("%-32s  %-7s  %-20s  %s\n", "ID", "MODE", "EXPIRES", "PERSON");
    json_array_foreach(list, i, one) {
        struct cli_time over = api_verb_time(one, "expires_ms");
        printf("%-32s  %-7s  %-20.19s  %s\n", api_verb_word(one, "id", ""), api_verb_word(one, "mode", ""), over.text,
               api_verb_word(one, "person", " "));
    }
}

static int
attach_list(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    return api_verb_sandbox(&path, w->v[0], "/attach", err) < 0
               ? -1 : api_verb_ask(&o->v, "GET", (const char *)path.p, NULL, print_list, err);
}

static int
attach_end(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (api_verb_sandbox(&path, w->v[0], "/attach/sessions/", err) < 0)
        return -1;
    if (api_escape(&path, w->v[1]) < 0)
        return err_set(err, ERR_USAGE, "cli.attach.id", "that is not an id of a session");
    return api_verb_ask(&o->v, "DELETE", (const char *)path.p, NULL, NULL, err);
}

int
cmd_attach(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "SANDBOX --inspect|--write [--for TIME] [--within TIME] [--dir DIR] [--user NAME] [--json]",
          .run = NULL },
        { NULL, "--proxy DIR", .run = NULL },
        { "ls", "SANDBOX ls [--json]", 1, 1, .run = attach_list },
        { "rm", "SANDBOX rm ID [--json]", 2, 2, .run = attach_end },
        { NULL, NULL, 0, 1, .run = attach },
    };
    static const struct verb_flag flags[] = {
        { "--inspect", 0, NULL, "look at the workspace's files, and nothing else", FLAG_ON(struct options, inspect) },
        { "--write", 0, NULL, "change files and run commands, as the sandbox does", FLAG_ON(struct options, writes) },
        { "--for", 0, "TIME", "how long the session lasts, at most 12h (30m)", FLAG_TEXT(struct options, lasts) },
        { "--within", 0, "TIME", "when the first connection has to come, at most 10m (2m)",
          FLAG_TEXT(struct options, within) },
        { "--dir", 0, "DIR", "a new folder for the session's keys and configuration (one of cloche's own)",
          FLAG_TEXT(struct options, dir) },
        { "--user", 0, "NAME", "what the sandbox's user is called inside", FLAG_TEXT(struct options, user) },
        { "--proxy", 0, "DIR", "be the connection of that session's ssh, which calls this by itself",
          FLAG_TEXT(struct options, proxy) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb verb = {
        .name = "attach", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .before = "SANDBOX",
        .needs_word = true,
        .misused = "cli.attach.verb", .lacking = "cli.sandbox",
        .about = "Open a sandbox of cloche serve in your editor, over SSH: a session of your own, with an end.",
    };
    struct options o = { .dir = NULL };

    return verb_main(&verb, &o, argc, argv);
}
