/* cli/changes.c: `cloche watch`: what changes in the workspace of a sandbox of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "workspace/quote.h"

#define LINE_MAX_BYTES (64UL * 1024)   /* two paths, quoted */

struct changes {
    struct api_verb v;
    bool recursive;
    struct err *err;
};

/* Both names are the sandbox's. */
static void
put_path(struct buf *out, const char *path, bool directory)
{
    cleanup_buf struct buf name = BUF_INIT(LINE_MAX_BYTES);

    if (buf_puts(&name, path != NULL ? path : "?") == 0 && (!directory || buf_puts(&name, "/") == 0))
        (void)quote_name(out, "", (struct str){ (const char *)name.p, name.n });
}

static void
print_text(const char *event, const json_t *data)
{
    cleanup_buf struct buf out = BUF_INIT(LINE_MAX_BYTES);
    const char *from = json_string_value(json_object_get(data, "from"));
    bool directory = json_is_true(json_object_get(data, "directory"));
    size_t n;

    (void)quote_name(&out, "", str_of(event));
    for (n = out.n; n < 11; n++)
        buf_put_u8(&out, ' ');
    if (from != NULL) {
        put_path(&out, from, directory);
        buf_puts(&out, " -> ");
    }
    put_path(&out, json_string_value(json_object_get(data, "path")), directory);
    if (strcmp(event, "overflow") == 0)
        buf_puts(&out, "  (something was missed: look at everything again)");
    else if (strcmp(event, "unwatched") == 0)
        buf_puts(&out, "  (what happens in it is not told)");
    buf_put_u8(&out, '\n');
    fwrite(out.p, 1, out.n, stdout);
}

static int
on_event(void *ctx, const char *name, const char *id, const char *bytes, size_t n)
{
    const struct changes *c = ctx;
    json_t *data = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
    int r = 0;

    (void)id;
    if (!json_is_object(data))
        r = API_NO_EVENT;
    else if (strcmp(name, "error") == 0)
        r = API_ENDED;
    else if (c->v.json)
        api_verb_event(name, data);
    else
        print_text(name, data);
    if (r == API_ENDED)
        api_error(data, ERR_DENIED, c->err);
    json_decref(data);
    return r != 0 ? r : fflush(stdout) == 0 ? 0 : API_UNREAD;
}

static int
watch(void *options, const struct verb_words *w, struct err *err)
{
    struct changes *c = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    const char *box = w->v[0], *below = w->n > 1 ? w->v[1] : ".";
    int r;

    c->err = err;
    if (api_verb_sandbox(&path, box, "", err) < 0)
        return -1;
    if (buf_printf(&path, "/watch?recursive=%s&path=", c->recursive ? "true" : "false") < 0 ||
        api_escape(&path, below) < 0)
        return err_set(err, ERR_USAGE, "cli.watch.path", "the folder's path is too long");
    r = api_events(&c->v.api, (const char *)path.p, on_event, c, err);
    if (r == API_NO_EVENT)
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon sent an invalid event");
    if (r == 0)
        return err_set(err, ERR_SYSTEM, "api.cut", "the daemon ended the stream");
    return r == API_UNREAD ? 0 : -1;
}

int
cmd_watch(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--recursive] [--json] SANDBOX [PATH]", 1, 2, "which sandbox?",
          "cloche watch NAME; `cloche ps` lists them", watch },
    };
    static const struct verb_flag flags[] = {
        { "--recursive", 0, NULL, "in all folders below it too", FLAG_ON(struct changes, recursive) },
        API_ROW_JSON("one JSON object a line"), API_ROW_SOCKET,
    };
    static const struct verb changes = {
        .name = "watch", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .lacking = "cli.sandbox",
        .about = "Changes in a sandbox's workspace, or in a folder of it, as they happen. SANDBOX is an id or a "
                 "name.\n"
                 "Ends with the sandbox, the folder or the daemon (exit code 125), or with Ctrl-C.",
    };
    struct changes c = { .recursive = false };

    return verb_main(&changes, &c, argc, argv);
}
