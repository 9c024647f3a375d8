/* cli/volume.c: `cloche volume`: durable workspaces of cloche serve (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/api_client.h"
#include "cli/cli.h"
#include "warden/edge.h"
#include "workspace/quote.h"

#define WORDS_MAX 64

struct options {
    struct api api;
    bool json;
    const char *words[WORDS_MAX];
    size_t n_words;
};

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

/* How many words, -1 with @err. */
static int
flag(struct options *o, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int r;

    if (cli_flag_at(&f, argc, argv, i, err) < 0 || (r = api_flag(&o->api, f.name, f.value, err)) < 0)
        return -1;
    if (r > 0)
        return cli_flag_words(&f, err);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", f.name);
    return err_hint(err, "`cloche volume --help` lists the flags");
}

static int
take_words(struct options *o, int argc, char **argv, struct err *err)
{
    int n;

    for (int i = 1; i < argc; i += n) {
        n = 1;
        if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (argv[i][0] == '-' && (n = flag(o, argc, argv, i, err)) < 0)
            return -1;
        else if (argv[i][0] != '-' && o->n_words == WORDS_MAX)
            return err_set(err, ERR_USAGE, "cli.operand", "more than %d operands", WORDS_MAX);
        else if (argv[i][0] != '-')
            o->words[o->n_words++] = argv[i];
    }
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
ls(const struct options *o, struct err *err)
{
    cleanup_free char *text = NULL;
    json_t *said;

    if (o->n_words > 1)
        return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", o->words[1]);
    if (api_ask(&o->api, "GET", "/v1/volumes", NULL, &said, err) < 0)
        return -1;
    if (o->json)
        json_object_set_new(said, "version", json_integer(1));
    text = o->json ? json_dumps(said, JSON_COMPACT) : NULL;
    if (o->json)
        puts(text != NULL ? text : "{}");
    else
        print_list(said);
    json_decref(said);
    return 0;
}

static int
rm(const struct options *o, struct err *err)
{
    if (o->n_words < 2) {
        err_set(err, ERR_USAGE, "cli.volume", "which volume?");
        return err_hint(err, "`cloche volume ls` shows their ids");
    }
    for (size_t i = 1; i < o->n_words; i++) {
        cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
        buf_puts(&path, "/v1/volumes/");
        if (api_escape(&path, o->words[i]) < 0 || buf_nul(&path) < 0)
            return err_set(err, ERR_USAGE, "cli.volume", "that is no volume's id");
        if (api_ask(&o->api, "DELETE", (const char *)path.p, NULL, NULL, err) < 0)
            return -1;
    }
    if (o->json)
        printf("{\"version\":1,\"removed\":%zu}\n", o->n_words - 1);
    return 0;
}

int
cmd_volume(int argc, char **argv)
{
    struct options o = { .json = false };
    struct err err = ERR_INIT;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_init(&o.api, &err) < 0 || take_words(&o, argc, argv, &err) < 0)
        return cli_fail(&err, o.json);
    if (o.n_words > 0 && strcmp(o.words[0], "ls") == 0) {
        r = ls(&o, &err);
    } else if (o.n_words > 0 && strcmp(o.words[0], "rm") == 0) {
        r = rm(&o, &err);
    } else {
        err_set(&err, ERR_USAGE, "cli.volume", o.n_words == 0 ? "what about volumes?%s" : "there is no \"volume %s\"",
                o.n_words == 0 ? "" : o.words[0]);
        r = err_hint(&err, "cloche volume ls, or cloche volume rm ID");
    }
    return r < 0 ? cli_fail(&err, o.json) : 0;
}
