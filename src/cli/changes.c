/* cli/changes.c: `cloche watch`: what changes in the workspace of a sandbox of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"
#include "workspace/quote.h"

#define LINE_MAX_BYTES (64UL * 1024)   /* two paths, quoted */

struct changes {
    struct api_verb v;
    bool recursive;
    struct err *err;
};

static int
usage(void)
{
    printf("usage: cloche watch [--recursive] [--json] SANDBOX [PATH]\n\n"
           "What changes in a sandbox's workspace, or in a folder of it, as it happens, by the sandbox's id or name.\n"
           "Ends with the sandbox, the folder or the daemon (exit code 125), or by Ctrl-C.\n\n"
           "  %-24s %s\n  %-24s %s\n  %-24s %s\n  %-24s %s\n", "--recursive", "in all folders below it too", "--json",
           "one JSON object a line", "--socket PATH", API_FLAG_HELP, "--help", "print the flags");
    return 0;
}

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
watch(struct changes *c, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    const char *box = c->v.words[0], *below = c->v.n_words > 1 ? c->v.words[1] : ".";
    int r;

    if (buf_puts(&path, "/v1/sandboxes/") < 0 || box[0] == '\0' || api_escape(&path, box) < 0)
        return err_set(err, ERR_USAGE, "cli.sandbox", "that is no sandbox's id or name");
    if (buf_printf(&path, "/watch?recursive=%s&path=", c->recursive ? "true" : "false") < 0 ||
        api_escape(&path, below) < 0)
        return err_set(err, ERR_USAGE, "cli.watch.path", "the folder's path is too long");
    r = api_events(&c->v.api, (const char *)path.p, on_event, c, err);
    if (r == API_NO_EVENT)
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon sent an event that is none");
    if (r == 0)
        return err_set(err, ERR_SYSTEM, "api.cut", "the daemon ended the stream");
    return r == API_UNREAD ? 0 : -1;
}

int
cmd_watch(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct changes c = { .err = &err };
    const struct api_verb_flag flags[] = { { "--recursive", .on = &c.recursive }, { .name = NULL } };

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_verb_words(&c.v, 2, flags, argc, argv, &err) < 0)
        return cli_fail(&err, c.v.json);
    if (c.v.n_words == 0) {
        err_set(&err, ERR_USAGE, "cli.sandbox", "which sandbox?");
        err_hint(&err, "cloche watch NAME; `cloche ps` lists them");
        return cli_fail(&err, c.v.json);
    }
    return watch(&c, &err) < 0 ? cli_fail(&err, c.v.json) : 0;
}
