/* cli/desktop.c: `cloche desktop`: a person at the desktop of a sandbox of cloche serve (docs/desktop.md)
 *
 * It sees that the desktop runs, has a session made for it as `cloche attach` has one for an editor, and prints the
 * address of the daemon's page, which has the session's credential in it.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "client/api_verb.h"

struct options {
    struct api_verb v;
    bool control;
    const char *lasts;
};

/* A look at its windows starts it. */
static int
start(const struct api *api, const char *box, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    json_t *said = NULL;
    const char *why;

    if (buf_puts(&path, "/api/sandbox/screen/windows?id=") < 0 || box[0] == '\0' || api_escape(&path, box) < 0 ||
        buf_nul(&path) < 0)
        return err_set(err, ERR_USAGE, "cli.sandbox", "that is not a sandbox's id or name");
    if (api_ask(api, "GET", (const char *)path.p, NULL, &said, err) < 0)
        return -1;
    why = json_string_value(json_object_get(said, "error"));
    if (why != NULL) {
        err_set(err, ERR_UNSUPPORTED, "desktop.none", "%s", why);
        err_hint(err, "`cloche image build desktop` makes an image that has what it takes: image: "
                 "localhost/desktop:bookworm");
    }
    json_decref(said);
    return why != NULL ? -1 : 0;
}

/* A ticket, used at once: the session's credential is for the browser. */
static json_t *
session(const struct options *o, const char *box, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX), open = BUF_INIT(API_PATH_MAX);
    json_t *body = json_pack("{s:s}", "mode", o->control ? "control" : "view"), *ticket = NULL, *said = NULL;

    if (api_verb_seconds(body, "seconds", "--for", o->lasts, "12h", err) == 0 &&
        api_verb_sandbox(&path, box, "/attach", err) == 0 &&
        api_verb_sandbox(&open, box, "/attach/open", err) == 0 &&
        api_ask(&o->v.api, "POST", (const char *)path.p, body, &ticket, err) == 0) {
        json_decref(body);
        body = json_pack("{s:O}", "ticket", json_object_get(ticket, "ticket"));
        (void)api_ask(&o->v.api, "POST", (const char *)open.p, body, &said, err);
    }
    json_decref(ticket);
    json_decref(body);
    return said;
}

static void
print_session(const struct options *o, const char *box, const json_t *said)
{
    const char *url = json_string_value(json_object_get(said, "url"));
    struct cli_time over = api_verb_time(said, "expires_ms");

    if (o->v.json)
        return api_verb_line(said);
    puts(api_verb_word(said, url != NULL ? "url" : "path", ":/#=[]"));
    if (url == NULL)
        fprintf(stderr, "cloche: no browser reaches it: the daemon listens at no TCP address "
                "(cloche serve --listen tcp:127.0.0.1:7700)\n");
    fprintf(stderr, "cloche: whoever has this address %s until %.19s; `cloche attach %s rm %s` ends it\n",
            o->control ? "sees the desktop and types there" : "sees the desktop", over.text, box,
            api_verb_word(said, "id", ""));
}

static int
desktop(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    json_t *said;

    if (start(&o->v.api, w->v[0], err) < 0)
        return -1;
    said = session(o, w->v[0], err);
    if (said == NULL)
        return -1;
    print_session(o, w->v[0], said);
    json_decref(said);
    return 0;
}

int
cmd_desktop(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "SANDBOX [--control] [--for TIME] [--json]", 1, 1, "which sandbox?",
          "cloche desktop NAME; `cloche ps` lists them", desktop },
    };
    static const struct verb_flag flags[] = {
        { "--control", 0, NULL, "use the pointer and the keyboard, too", FLAG_ON(struct options, control) },
        { "--for", 0, "TIME", "how long the address is good, at most 12h (30m)", FLAG_TEXT(struct options, lasts) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb verb = {
        .name = "desktop", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .misused = "cli.desktop.verb", .lacking = "cli.sandbox",
        .about = "Print the address of a page on which a person sees the desktop of a sandbox of cloche serve, or sits "
                 "at it.",
    };
    struct options o = { .lasts = NULL };

    return verb_main(&verb, &o, argc, argv);
}
