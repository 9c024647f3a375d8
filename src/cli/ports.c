/* cli/ports.c: `cloche ports`: ports of the daemon's sandboxes that are reached from outside (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"
#include "program/words.h"

#define TTL_MAX_MS (365UL * 86400 * 1000)

struct options {
    struct api_verb v;
    const char *name, *ttl;
};

static int
usage(void)
{
    printf("usage: cloche ports SANDBOX [ls] [--json]\n"
           "       cloche ports SANDBOX add PORT [--name NAME] [--ttl TIME] [--json]\n"
           "       cloche ports SANDBOX rm ID [--json]\n\n"
           "Ports of a sandbox of cloche serve at which it is reached from outside. Whoever knows the address of one\n"
           "that was added gets in; it is printed once.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n", "--name NAME", "for your own list",
           "--ttl TIME", "ends it after 90s, 30m, 12h (with the sandbox)", "--socket PATH", API_FLAG_HELP, "--json",
           "one JSON object", "--help", "print the flags");
    return 0;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

/* An address is shown as well. */
static const char *
text_of(const json_t *port, const char *member)
{
    return api_verb_word(port, member, ":/[]");
}

static void
print_list(const json_t *said)
{
    const json_t *list = json_object_get(said, "ports"), *port;
    size_t i;

    printf("%-32s  %5s  %11s  %-20.20s  %s\n", "ID", "PORT", "CONNECTIONS", "EXPIRES", "NAME");
    json_array_foreach(list, i, port) {
        struct cli_time over = api_verb_time(port, "expires_ms");
        printf("%-32s  %5lld  %11lld  %-20.19s  %s\n", text_of(port, "id"),
               (long long)json_integer_value(json_object_get(port, "port")),
               (long long)json_integer_value(json_object_get(port, "connections")), over.text, text_of(port, "name"));
    }
}

static void
print_added(const json_t *said)
{
    bool reached = json_is_string(json_object_get(said, "url"));

    puts(text_of(said, reached ? "url" : "path"));
    if (json_is_string(json_object_get(said, "host_url")))
        puts(text_of(said, "host_url"));
    if (!reached)
        fprintf(stderr, "cloche: no browser reaches it: the daemon listens at no TCP address "
                "(cloche serve --listen tcp:127.0.0.1:7700)\n");
    fprintf(stderr, "cloche: this is shown once; its id is %s\n", text_of(said, "id"));
}

/* --- verbs -------------------------------------------------------------------------------------------------------- */

static int
path_of(const struct options *o, const char *more, struct buf *path, struct err *err)
{
    buf_puts(path, "/v1/sandboxes/");
    if (api_escape(path, o->v.words[0]) < 0)
        return err_set(err, ERR_USAGE, "cli.ports.sandbox", "that is no sandbox's name or id");
    buf_puts(path, "/ports");
    if (more != NULL)
        buf_put_u8(path, '/');
    if (more != NULL && api_escape(path, more) < 0)
        return err_set(err, ERR_USAGE, "cli.ports.id", "that is no id of a port");
    return buf_nul(path) < 0 ? err_set(err, ERR_USAGE, "cli.ports.sandbox", "that is too long") : 0;
}

static int
add(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    uint64_t port, ms = 0;
    json_t *body;
    int r;

    if (!str_parse_u64(str_of(o->v.words[2]), 65535, &port) || port == 0)
        return err_set(err, ERR_USAGE, "cli.ports.port", "%s is no port: 1 to 65535", o->v.words[2]);
    if (o->ttl != NULL && (!str_parse_duration_ms(str_of(o->ttl), TTL_MAX_MS, &ms) || ms < 1000 || ms % 1000 != 0)) {
        err_set(err, ERR_USAGE, "cli.ports.ttl", "--ttl %s is no whole number of seconds", o->ttl);
        return err_hint(err, "90s, 30m, 12h; at most a year");
    }
    if (path_of(o, NULL, &path, err) < 0)
        return -1;
    body = json_pack("{s:I, s:I}", "port", (json_int_t)port, "ttl", (json_int_t)(ms / 1000));
    if (o->name != NULL)
        json_object_set_new(body, "name", json_string(o->name));
    r = api_verb_ask(&o->v, "POST", (const char *)path.p, body, print_added, err);
    json_decref(body);
    return r;
}

static int
list(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (path_of(o, NULL, &path, err) < 0)
        return -1;
    return api_verb_ask(&o->v, "GET", (const char *)path.p, NULL, print_list, err);
}

static int
end_it(struct options *o, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (path_of(o, o->v.words[2], &path, err) < 0)
        return -1;
    return api_verb_ask(&o->v, "DELETE", (const char *)path.p, NULL, NULL, err);
}

int
cmd_ports(int argc, char **argv)
{
    struct options o = { .name = NULL };
    const struct api_verb_flag flags[] = {
        { "--name", .value = &o.name }, { "--ttl", .value = &o.ttl }, { .name = NULL },
    };
    static const char *const words[] = { "ls", "add", "rm", NULL };
    struct err err = ERR_INIT;
    const char *verb;
    bool making;
    int r;

    if (cli_wants_help(argc, argv))
        return usage();
    if (api_verb_words(&o.v, 4, flags, argc, argv, &err) < 0)
        return cli_fail(&err, o.v.json);
    verb = o.v.n_words > 1 ? o.v.words[1] : "ls";
    making = o.name != NULL || o.ttl != NULL;
    if (strcmp(verb, "add") == 0 && o.v.n_words == 3)
        r = add(&o, &err);
    else if (strcmp(verb, "ls") == 0 && o.v.n_words >= 1 && o.v.n_words <= 2 && !making)
        r = list(&o, &err);
    else if (strcmp(verb, "rm") == 0 && o.v.n_words == 3 && !making)
        r = end_it(&o, &err);
    else if (o.v.n_words > 0)
        r = cli_misused("cli.ports.verb", "ports SANDBOX", verb, words, &err);
    else {
        err_set(&err, ERR_USAGE, "cli.sandbox", "which sandbox?");
        r = err_hint(&err, "cloche ports NAME; `cloche ps` lists them");
    }
    return r < 0 ? cli_fail(&err, o.v.json) : 0;
}
