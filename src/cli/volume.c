/* cli/volume.c: `cloche volume`: durable workspaces of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "proto/edge.h"
#include "workspace/quote.h"

/* A name is its caller's text, and this is a terminal. */
static void
print_text(const char *text)
{
    cleanup_buf struct buf out = BUF_INIT(4 * EDGE_WORKSPACE_MAX + 8);

    (void)quote_name(&out, "", str_of(text != NULL ? text : "?"));
    buf_put_u8(&out, '\n');
    fwrite(out.p, 1, out.n, stdout);
}

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "volumes"), *v;
    size_t i;

    printf("%-32s  %-32s  %10s  %10s  %s\n", "ID", "SANDBOX", "UNUSED S", "KEPT S", "NAME");
    json_array_foreach(list, i, v) {
        const char *id = json_string_value(json_object_get(v, "id"));
        const char *box = json_string_value(json_object_get(v, "sandbox"));
        printf("%-32.32s  %-32.32s  %10lld  %10lld  ", id != NULL ? id : "?", box != NULL ? box : "-",
               (long long)(json_integer_value(json_object_get(v, "unused_ms")) / 1000),
               (long long)json_integer_value(json_object_get(v, "retention")));
        print_text(json_string_value(json_object_get(v, "name")));
    }
}

static int
volume_list(void *options, const struct verb_words *w, struct err *err)
{
    (void)w;
    return api_verb_ask(options, "GET", "/v1/volumes", NULL, print_list, err);
}

static int
delete(void *options, const struct verb_words *w, struct err *err)
{
    (void)err;
    return api_verb_remove(options, w, "/v1/volumes/");
}

int
cmd_volume(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "ls", "ls [--json]", 0, 0, .run = volume_list },
        { "rm", "rm [--json] ID...", 1, VERB_ANY, "which volume?", "`cloche volume ls` shows their ids", delete },
    };
    static const struct verb_flag flags[] = { API_ROW_SOCKET, API_ROW_JSON("one JSON object") };
    static const struct verb volume = {
        .name = "volume", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .needs_word = true,
        .misused = "cli.volume", .surplus = "cli.operand",
        .about = "Durable workspaces of a running cloche serve: folders that stay when their sandbox ends.",
    };
    struct api_verb v = { .json = false };

    return verb_main(&volume, &v, argc, argv);
}
