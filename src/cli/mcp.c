/* cli/mcp.c: cloche mcp: whose daemon, whose token, and what is tidied up in the end */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/mcp.h"
#include "client/api_verb.h"
#include "program/json.h"
#include "program/say.h"

#define LIVES_S (30L * 24 * 3600)       /* of our token, should nobody be there to end it */

struct options {
    struct api api;
    const char *token_file;
    struct mcp_flags own;       /* of a daemon of our own */
};

static int
read_token(struct options *o, struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(sizeof(o->api.token) - 1);

    if (io_read_file(AT_FDCWD, o->token_file, &b) < 0)
        return err_sys(err, errno, "mcp.token", "%s", o->token_file);
    while (b.n > 0 && (b.p[b.n - 1] == '\n' || b.p[b.n - 1] == '\r'))
        b.n--;
    if (b.n == 0 || memchr(b.p, '\0', b.n) != NULL)
        return err_set(err, ERR_USAGE, "mcp.token", "%s holds no token", o->token_file);
    snprintf(o->api.token, sizeof(o->api.token), "%.*s", (int)b.n, (const char *)b.p);
    explicit_bzero(b.p, b.n);
    return 0;
}

/* --- a token for this session ------------------------------------------------------------------------------------- */

/* We are the owner, who speaks to us is an agent: what it asks is asked with no more than an agent's rights. */
static int
make_token(struct api *api, char id[64], struct err *err)
{
    json_t *body = json_pack("{s:s, s:s, s:I}", "role", "agent", "name", "cloche-mcp", "expires", (json_int_t)LIVES_S);
    json_t *said = NULL;
    int r = api_ask(api, "POST", "/v1/tokens", body, &said, err);

    json_decref(body);
    if (r == 0) {
        snprintf(api->token, sizeof(api->token), "%s", json_text(said, "token"));
        snprintf(id, 64, "%s", json_text(said, "id"));
    }
    json_decref(said);
    return r;
}

static void
delete_at(const struct api *api, const char *path, const char *id)
{
    char whole[128];

    snprintf(whole, sizeof(whole), "%s/%.63s", path, id);
    (void)api_ask(api, "DELETE", whole, NULL, NULL, &(struct err)ERR_INIT);
}

/* Nobody else can reach the sandboxes that this token made. */
static void
end_token(const struct api *api, const char *id)
{
    struct api owner = *api;
    json_t *said = NULL;

    for (;;) {
        const json_t *list;
        if (api_ask(api, "GET", "/v1/sandboxes?limit=200", NULL, &said, &(struct err)ERR_INIT) < 0)
            break;
        list = json_object_get(said, "sandboxes");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *box = json_string_value(json_object_get(json_array_get(list, i), "id"));
            if (box != NULL)
                delete_at(api, "/v1/sandboxes", box);
        }
        if (json_array_size(list) == 0 || !json_is_string(json_object_get(said, "next")))
            break;
        json_decref(said);
        said = NULL;
    }
    json_decref(said);
    memset(owner.token, 0, sizeof(owner.token));
    delete_at(&owner, "/v1/tokens", id);
}

/* --- the session -------------------------------------------------------------------------------------------------- */

static int
watch_signals(struct signals *s, struct err *err)
{
    sigset_t set;

    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP }, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);           /* our own daemon's end */
    return signals_open(s, &set, NULL) < 0 ? err_sys(err, errno, "mcp.signals", "signalfd") : 0;
}

static int
run(struct options *o, struct mcp_daemon *d, struct signals *signals, struct err *err)
{
    char id[64] = "";
    struct err why = ERR_INIT;
    int r;

    if (api_ask(&o->api, "GET", "/v1/health", NULL, NULL, &why) < 0) {
        if (o->api.named || o->api.token[0] != '\0' || o->token_file != NULL || !err_is(&why, "api.down"))
            return *err = why, -1;
        if (mcp_daemon_start(d, &o->own, &o->api, err) < 0)
            return -1;
    } else if (o->own.gate != NULL || o->own.settings != NULL) {
        cli_warn("--gate and --settings need a daemon that this starts: the one at %s has its own", o->api.socket);
    }
    if (o->api.token[0] == '\0' && make_token(&o->api, id, err) < 0)
        return -1;
    r = mcp_bridge(&o->api, signals, err);
    if (id[0] != '\0' && d->pid == 0)
        end_token(&o->api, id);
    return r;
}

static int
cli_mcp_begin(void *options, struct err *err)
{
    return api_init(&((struct options *)options)->api, err);
}

static int
serve(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;
    struct mcp_daemon d = MCP_DAEMON_INIT;
    struct signals signals = { .watch = WATCH_INIT };
    int r;

    (void)w;
    if (o->token_file != NULL && read_token(o, err) < 0)
        return -1;
    r = watch_signals(&signals, err) < 0 ? -1 : run(o, &d, &signals, err);
    close_fd(&signals.watch.fd);
    mcp_daemon_stop(&d);
    explicit_bzero(o->api.token, sizeof(o->api.token));
    return r < 0 ? -1 : 0;
}

int
cmd_mcp(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[flags]", 0, 0, .run = serve } };
    static const struct verb_flag flags[] = {
        API_ROW_SOCKET,
        { "--token-file", 0, "FILE", "file with a token to use (default: one of role agent, made for this session)",
          FLAG_TEXT(struct options, token_file) },
        { "--gate", 0, "FILE|off", "what needs approval, if it starts its own daemon (docs/gate.md)",
          FLAG_TEXT(struct options, own.gate) },
        { "--settings", 0, "FILE", "what its sandboxes may have, if it starts its own daemon",
          FLAG_TEXT(struct options, own.settings) },
    };
    static const struct verb verb = {
        .name = "mcp", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = cli_mcp_begin,
        .about = "The Model Context Protocol over stdin and stdout, for a client that starts its servers: tools that "
                 "run\n"
                 "code in sandboxes. Uses your daemon (cloche serve); if none runs, it starts its own. Ends when "
                 "stdin\n"
                 "ends.",
        .after = "docs/mcp.md",
    };
    struct options o = { .token_file = NULL };

    return verb_main(&verb, &o, argc, argv);
}
