/* cli/volume.c: `cloche volume`: durable workspaces of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"
#include "proto/edge.h"
#include "workspace/quote.h"

static int
usage(void)
{
    printf("usage: cloche volume ls [--json]\n"
           "       cloche volume rm [--json] ID...\n\n"
           "Durable workspaces of a running cloche serve: folders that stay when their sandbox goes.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n", "--socket PATH", API_FLAG_HELP, "--json", "one JSON object",
           "--help", "print the flags");
    return 0;
}

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
ls(const struct api_verb *v, struct err *err)
{
    if (v->n_words > 1)
        return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", v->words[1]);
    return api_verb_ask(v, "GET", "/v1/volumes", NULL, print_list, err);
}

static int
rm(const struct api_verb *v, struct err *err)
{
    json_t *failed;
    json_int_t n;
    int r;

    if (v->n_words < 2) {
        err_set(err, ERR_USAGE, "cli.volume", "which volume?");
        return err_hint(err, "`cloche volume ls` shows their ids");
    }
    failed = json_array();
    n = api_verb_delete(v, 1, "/v1/volumes/", failed);
    r = json_array_size(failed) > 0 ? EXIT_REFUSED : 0;
    if (v->json)
        (void)cli_json(json_pack("{s:i, s:I, s:O}", "version", 1, "removed", n, "failed", failed), JSON_COMPACT);
    json_decref(failed);
    return r;
}

int
cmd_volume(int argc, char **argv)
{
    static const char *const words[] = { "ls", "rm", NULL };
    struct api_verb v;
    struct err err = ERR_INIT;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_verb_words(&v, API_VERB_WORDS, NULL, argc, argv, &err) < 0)
        return cli_fail(&err, v.json);
    if (v.n_words > 0 && strcmp(v.words[0], "ls") == 0) {
        r = ls(&v, &err);
    } else if (v.n_words > 0 && strcmp(v.words[0], "rm") == 0) {
        r = rm(&v, &err);
    } else {
        r = cli_misused("cli.volume", "volume", v.n_words > 0 ? v.words[0] : "", words, &err);
    }
    return r < 0 ? cli_fail(&err, v.json) : r;
}
