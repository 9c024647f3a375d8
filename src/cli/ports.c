/* cli/ports.c: `cloche ports`: ports of the daemon's sandboxes that are reached from outside (docs/daemon.md) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/say.h"

#define TTL_MAX_MS (365UL * 86400 * 1000)

struct options {
    struct api_verb v;
    const char *name, *ttl;
};

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
path_of(const char *box, const char *more, struct buf *path, struct err *err)
{
    buf_puts(path, "/v1/sandboxes/");
    if (api_escape(path, box) < 0)
        return err_set(err, ERR_USAGE, "cli.ports.sandbox", "that is not a sandbox's name or id");
    buf_puts(path, "/ports");
    if (more != NULL)
        buf_put_u8(path, '/');
    if (more != NULL && api_escape(path, more) < 0)
        return err_set(err, ERR_USAGE, "cli.ports.id", "that is not an id of a port");
    return buf_nul(path) < 0 ? err_set(err, ERR_USAGE, "cli.ports.sandbox", "that is too long") : 0;
}

/* What only a new one has. */
static int
refuse_making(const struct options *o, const char *verb, struct err *err)
{
    if (o->name == NULL && o->ttl == NULL)
        return 0;
    err_set(err, ERR_USAGE, "cli.ports.verb", "--name and --ttl are not for `cloche ports SANDBOX %s`", verb);
    return err_hint(err, "`cloche ports --help` shows how it is called");
}

static int
ports_add(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    uint64_t port, ms = 0;
    json_t *body;
    int r;

    if (!str_parse_u64(str_of(w->v[1]), 65535, &port) || port == 0)
        return err_set(err, ERR_USAGE, "cli.ports.port", "%s is not a port: 1 to 65535", w->v[1]);
    if (o->ttl != NULL && (!str_parse_duration_ms(str_of(o->ttl), TTL_MAX_MS, &ms) || ms < 1000 || ms % 1000 != 0)) {
        err_set(err, ERR_USAGE, "cli.ports.ttl", "--ttl %s is not a whole number of seconds", o->ttl);
        return err_hint(err, "90s, 30m, 12h; at most a year");
    }
    if (path_of(w->v[0], NULL, &path, err) < 0)
        return -1;
    body = json_pack("{s:I, s:I}", "port", (json_int_t)port, "ttl", (json_int_t)(ms / 1000));
    if (o->name != NULL)
        json_object_set_new(body, "name", json_string(o->name));
    r = api_verb_ask(&o->v, "POST", (const char *)path.p, body, print_added, err);
    json_decref(body);
    return r;
}

static int
ports_list(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (refuse_making(o, "ls", err) < 0 || path_of(w->v[0], NULL, &path, err) < 0)
        return -1;
    return api_verb_ask(&o->v, "GET", (const char *)path.p, NULL, print_list, err);
}

static int
delete(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);

    if (refuse_making(o, "rm", err) < 0 || path_of(w->v[0], w->v[1], &path, err) < 0)
        return -1;
    return api_verb_ask(&o->v, "DELETE", (const char *)path.p, NULL, NULL, err);
}

int
cmd_ports(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "ls", "SANDBOX [ls] [--json]", 1, 1, "which sandbox?", "cloche ports NAME; `cloche ps` lists them",
          ports_list },
        { "add", "SANDBOX add PORT [--name NAME] [--ttl TIME] [--json]", 2, 2, .run = ports_add },
        { "rm", "SANDBOX rm ID [--json]", 2, 2, .run = delete },
    };
    static const struct verb_flag flags[] = {
        { "--name", 0, "NAME", "a name for your own use", FLAG_TEXT(struct options, name) },
        { "--ttl", 0, "TIME", "when it ends: 90s, 30m, 12h (with the sandbox)", FLAG_TEXT(struct options, ttl) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb ports = {
        .name = "ports", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .before = "SANDBOX",
        .misused = "cli.ports.verb", .lacking = "cli.sandbox",
        .about = "Expose ports of a sandbox of cloche serve. Whoever knows the address of an exposed port may "
                 "connect; the\n"
                 "address is printed once.",
    };
    struct options o = { .name = NULL };

    return verb_main(&ports, &o, argc, argv);
}
