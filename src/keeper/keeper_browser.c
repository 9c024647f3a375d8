/* keeper/keeper_browser.c: a browser in the sandbox, for who speaks Chrome's DevTools protocol (docs/browser.md)
 *
 * It is a program of the sandbox's as every other one, started with the first request for it: Chromium without a
 * screen, with a profile in the sandbox's home, its home in the workspace, so that downloads go there, and a port of
 * the sandbox's loopback that it chooses itself and says on stderr. What is said at that port is between the client and
 * it. Where the sandbox may make user namespaces it keeps its own sandbox around what pages run; elsewhere it would not
 * start with it, and the wall around all of it is the one there is.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/str.h"
#include "keeper/keeper.h"
#include "policy/policy.h"
#include "run/session.h"

#define START_US 60000000               /* for it to listen */
#define WINDOW   (64U * 1024)           /* of what it says */
#define LISTENS  "DevTools listening on ws://127.0.0.1:"
#define ENV_MAX  1024

/* Debian's own start script reads files of /etc, which a private root without an image does not have. */
static const char *const programs[] = {
    "/usr/lib/chromium/chromium", "/usr/bin/chromium-headless-shell", "chromium", "chromium-browser", "google-chrome",
};

static const char *const always[] = {
    "--headless", "--remote-debugging-port=0", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
    "--disable-dev-shm-usage", "--disable-breakpad", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic", "--password-store=basic", "--mute-audio",
};

/* --- who waits for it --------------------------------------------------------------------------------------------- */

static bool
waits(const struct op *o)
{
    return o != NULL && o->kind == OP_BROWSER && !o->said;
}

static void
say_ready(struct op *o)
{
    PROTO_SAY(op_say_last, o, EDGE_DONE, .count = o->k->browser.port);
    op_ended(o);
}

static void
all_ready(struct keeper_live *k)
{
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++)
        if (waits(k->ops[i]))
            say_ready(k->ops[i]);
}

static void
all_failed(struct keeper_live *k, const struct err *err)
{
    for (size_t i = 0; i < KEEPER_OPS_MAX; i++) {
        struct op *o = k->ops[i];
        if (!waits(o))
            continue;
        op_say_failed(o, err);
        op_ended(o);
    }
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

/* The sandbox's variables, with another home and without a bus that nobody is at. */
static void
environment(const struct sandbox_facts *facts, const char *home, char own[4][EDGE_PATH_MAX + 64],
            const char *env[ENV_MAX + 5])
{
    size_t n = 0;

    for (const char *const *e = facts->env; *e != NULL && n < ENV_MAX; e++)
        if (strncmp(*e, "HOME=", 5) != 0 && strncmp(*e, "XDG_", 4) != 0 && strncmp(*e, "DBUS_", 5) != 0)
            env[n++] = *e;
    snprintf(own[0], sizeof(own[0]), "HOME=%s", facts->root[0] != '\0' ? facts->root : home);
    snprintf(own[1], sizeof(own[1]), "XDG_CONFIG_HOME=%s/.config", home);
    snprintf(own[2], sizeof(own[2]), "XDG_CACHE_HOME=%s/.cache", home);
    snprintf(own[3], sizeof(own[3]), "DBUS_SESSION_BUS_ADDRESS=disabled:");
    for (size_t i = 0; i < 4; i++)
        env[n++] = own[i];
    env[n] = NULL;
}

static int
start(struct keeper_live *k, struct err *err)
{
    static const char *env[ENV_MAX + 5];                /* one is started at a time */
    static char own[4][EDGE_PATH_MAX + 64];
    const struct sandbox_facts *facts = sandbox_facts(k->l.sb);
    const char *argv[ARRAY_LEN(always) + 5], *home = keeper_variable(facts->env, "HOME");
    char profile[EDGE_PATH_MAX + 64];
    struct guest_exec x = GUEST_EXEC_INIT;
    size_t n = 0;

    if (home == NULL || home[0] != '/' || strlen(home) > EDGE_PATH_MAX)
        home = "/tmp";
    snprintf(profile, sizeof(profile), "--user-data-dir=%s/.browser", home);
    environment(facts, home, own, env);
    argv[n++] = programs[k->browser.tried];
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        argv[n++] = always[i];
    argv[n++] = profile;
    if (!k->l.s->policy->nested_userns.v)
        argv[n++] = "--no-sandbox";
    argv[n++] = "about:blank";
    argv[n] = NULL;
    x.argv = argv;
    x.env = env;
    x.cwd = "";
    x.umask = 022;
    x.window = WINDOW;
    x.flags = MSG_EXEC_QUIET | MSG_EXEC_NO_STDIN;
    k->browser.port = 0;
    k->browser.last_n = 0;
    k->browser.over = false;
    k->still = false;
    return guest_client_exec(k->l.client, &x, &k->browser.channel, err);
}

int
browser_begin(struct op *o, const struct edge_op *want, struct err *err)
{
    struct keeper_live *k = o->k;

    if (want->offset == BROWSER_CONNECT) {
        o->kind = OP_CONNECT;
        if (k->browser.port == 0)
            return err_set(err, ERR_SYSTEM, "browser.none", "no browser runs in the sandbox");
        return port_connect(o, k->browser.port, err);
    }
    if (!sandbox_facts(k->l.sb)->own_net) {
        err_set(err, ERR_UNSUPPORTED, "browser.network", "the sandbox has no network of its own");
        return err_hint(err, "modes but light, and networks but host, have one");
    }
    if (k->browser.port != 0) {
        say_ready(o);
        return 0;
    }
    if (k->browser.channel != 0)
        return 0;               /* it starts already */
    k->browser.tried = 0;
    if (start(k, err) < 0)
        return -1;
    k->browser.deadline_us = clock_us() + START_US;
    return 0;
}

/* --- what it says ------------------------------------------------------------------------------------------------- */

/* A line of its stderr; bytes that are no text come as "?". */
static void
on_line(struct keeper_live *k)
{
    struct keeper_browser *b = &k->browser;
    struct str line = { b->last, b->last_n }, rest;
    uint64_t port;
    size_t n = 0;

    if (b->port != 0 || !str_starts(line, STR_LIT(LISTENS)))
        return;
    rest = (struct str){ line.p + strlen(LISTENS), line.n - strlen(LISTENS) };
    while (n < rest.n && rest.p[n] != '/')
        n++;
    if (!str_parse_u64((struct str){ rest.p, n }, UINT16_MAX, &port) || port == 0)
        return;
    b->port = (uint16_t)port;
    b->deadline_us = 0;
    all_ready(k);
}

static void
on_said(struct keeper_live *k, enum msg_stream stream, struct str data)
{
    struct keeper_browser *b = &k->browser;

    for (size_t i = 0; stream == MSG_STREAM_ERR && i < data.n; i++) {
        char c = data.p[i];
        if (b->over)
            b->last_n = 0;          /* the last one stays until then, to be told */
        b->over = c == '\n';
        if (b->over)
            on_line(k);
        else if (b->last_n < sizeof(b->last))
            b->last[b->last_n++] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    (void)guest_client_window(k->l.client, b->channel, stream, (uint32_t)data.n, NULL);
}

static void
on_end(struct keeper_live *k)
{
    struct keeper_browser *b = &k->browser;
    struct err err = ERR_INIT;

    b->channel = 0;
    b->port = 0;
    b->deadline_us = 0;
    err_set(&err, ERR_SYSTEM, "browser.ended", "the browser ended: %.*s", (int)b->last_n, b->last);
    err_hint(&err, "it takes an image with Chromium, about 512 MiB of memory and 200 processes");
    all_failed(k, &err);
}

/* It is not there, or cannot be started; maybe another one is. */
static void
on_not_started(struct keeper_live *k, const struct msg_exec_failed *why)
{
    struct keeper_browser *b = &k->browser;
    struct err err = ERR_INIT;

    b->channel = 0;
    while (why->sys_errno == ENOENT && ++b->tried < ARRAY_LEN(programs))
        if (start(k, &err) == 0)
            return;
    b->deadline_us = 0;
    if (why->sys_errno == ENOENT) {
        err_set(&err, ERR_UNSUPPORTED, "browser.missing", "there is no Chromium in the sandbox");
        err_hint(&err, "`cloche image build browser` makes an image with one: image: localhost/browser:bookworm");
    } else {
        err_sys(&err, (int)why->sys_errno, "browser.start", "start %s", programs[b->tried]);
    }
    all_failed(k, &err);
}

bool
browser_event(struct keeper_live *k, const struct guest_event *ev)
{
    if (k->browser.channel == 0 || ev->channel != k->browser.channel ||
        (ev->type >= GUEST_FILE_DATA && ev->type <= GUEST_FILE_FAILED))
        return false;
    if (ev->type == GUEST_STDOUT || ev->type == GUEST_STDERR)
        on_said(k, ev->type == GUEST_STDOUT ? MSG_STREAM_OUT : MSG_STREAM_ERR,
                (struct str){ (const char *)ev->data.p, ev->data.n });
    else if (ev->type == GUEST_EXEC_FAILED)
        on_not_started(k, &ev->exec_failed);
    else if (ev->type == GUEST_EXIT)
        on_end(k);
    return true;
}

void
browser_time(struct keeper_live *k, uint64_t now)
{
    struct err err = ERR_INIT;

    if (k->browser.deadline_us == 0 || now < k->browser.deadline_us)
        return;
    k->browser.deadline_us = 0;
    (void)guest_client_signal(k->l.client, k->browser.channel, SIGKILL, SIGNAL_GROUP, NULL);
    err_set(&err, ERR_LIMIT, "browser.timeout", "the browser did not listen within %d s",
            (int)(START_US / 1000000));
    all_failed(k, &err);
}
