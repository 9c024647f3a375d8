/* launcher/serve_config.c: the keys of cloche serve, from a YAML file and from flags */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "launcher/serve.h"
#include "policy/doc.h"
#include "program/words.h"
#include "proto/edge.h"

#define AT(member) offsetof(struct serve_plan, member)

const char *const serve_audit_words[] = { "off", "try", "required", NULL };
const char *const serve_transcript_words[] = { "off", "commands", "full", "edits", NULL };
static const char *const off_on[] = { "off", "on", NULL };
static const char *const log_formats[] = { "text", "json", NULL };
static const char *const log_levels[] = { "error", "warn", "notice", "info", NULL };

const struct serve_key serve_keys[] = {
    { "listen", "ADDRESS", "unix:PATH, tcp:127.0.0.1:PORT or tcp:[::1]:PORT; may be repeated", SERVE_LISTEN,
      .list = true, .restart = true },
    { "state-dir", "DIR", "where the records are kept", SERVE_PATH, .restart = true, .at = AT(state) },
    { "settings", "FILE", "settings file that every sandbox starts from", SERVE_PATH,
      .at = AT(settings) },
    { "gate", "FILE|off", "which operations of agents need approval (docs/gate.md)", SERVE_GATE,
      .at = AT(gate) },
    { "max-sandboxes", "N", "at a time (256)", SERVE_NUMBER, .min = 1, .max = 10000, .at = AT(max_sandboxes) },
    { "max-sandboxes-per-agent", "N", "at a time, for one agent's token (a quarter of all)", SERVE_NUMBER, .min = 1,
      .max = 10000, .at = AT(max_per_agent) },
    { "pool", "N", "sandboxes made ahead for code, at a time (4); 0: none", SERVE_NUMBER, .max = 1000,
      .at = AT(pool) },
    { "pool-memory", "N", "MiB that all of these may hold (256)", SERVE_NUMBER, .min = 1, .max = 1000000,
      .at = AT(pool_memory) },
    { "pool-idle", "TIME", "end those whose like nobody asked for so long (5m)", SERVE_SECONDS, .min = 1,
      .max = 86400, .at = AT(pool_s) },
    { "idle-timeout", "TIME", "default for sandboxes: end when nothing ran for so long (none)",
      SERVE_SECONDS, .max = UINT32_MAX, .zero = "never", .at = AT(idle_s) },
    { "max-lifetime", "TIME", "default for sandboxes: end at this age (none)", SERVE_SECONDS, .max = UINT32_MAX,
      .zero = "no limit", .at = AT(life_s) },
    { "recover-after", "TIME",
      "default for sandboxes: recover when degraded for so long, or dead (do not)", SERVE_SECONDS,
      .max = EDGE_RECOVER_AFTER, .zero = "not at all", .at = AT(recover_s) },
    { "recover-tries", "N", "how often within recover-window (3)", SERVE_NUMBER, .min = 1, .max = EDGE_RECOVER_TRIES,
      .at = AT(recover_tries) },
    { "recover-window", "TIME", "from the first try on (1h)", SERVE_SECONDS, .min = EDGE_RECOVER_WINDOW_MIN,
      .max = EDGE_RECOVER_WINDOW, .at = AT(recover_window_s) },
    { "client-timeout", "TIME", "close a connection without a complete request for so long (60s)",
      SERVE_SECONDS, .min = 1, .max = 3600, .at = AT(client_s) },
    { "rate-limit", "N", "requests a second for one credential (1000); 0: no limit", SERVE_NUMBER, .max = 1000000,
      .at = AT(rate) },
    { "allowed-hosts", "HOST", "another name that TCP clients may use (Host); may be repeated", SERVE_HOSTS,
      .list = true },
    { "allowed-origins", "ORIGIN", "a site whose pages may send requests: https://HOST; may be repeated", SERVE_ORIGINS,
      .list = true },
    { "audit", "off|try|required", "if the audit record cannot be written (try)", SERVE_WORD, .restart = true,
      .words = serve_audit_words, .at = AT(audit) },
    { "audit-retention", "TIME", "keep full files of the record so long (by number only)", SERVE_SECONDS,
      .max = UINT32_MAX, .zero = "any age", .restart = true, .at = AT(audit_keep_s) },
    { "transcript", "off|commands|full|edits",
      "what to keep of each sandbox's operations; full: output too; edits: diffs of the workspace too (full)",
      SERVE_WORD, .restart = true, .words = serve_transcript_words, .at = AT(transcript) },
    { "transcript-keep", "N", "keep transcripts of the newest N sandboxes (1000)", SERVE_NUMBER, .min = 1, .max = 20000,
      .restart = true, .at = AT(transcript_keep) },
    { "transcript-retention", "TIME", "of these, keep those used within that time (720h); 0: all", SERVE_SECONDS,
      .max = UINT32_MAX, .zero = "any age", .restart = true, .at = AT(transcript_keep_s) },
    { "transcript-space", "N", "MiB that those of ended sandboxes may hold (4096): the oldest go first",
      SERVE_NUMBER, .min = 1, .max = 1UL << 30, .restart = true, .at = AT(transcript_mib) },
    { "tls-cert", "FILE", "PEM: TLS on TCP, with this certificate and its chain", SERVE_PATH, .at = AT(tls_cert) },
    { "tls-key", "FILE", "PEM: its private key", SERVE_PATH, .at = AT(tls_key) },
    { "webhook-url", "URL", "notify this server of approvals: https://, or http:// to this host (docs/gate.md)",
      SERVE_URL, .restart = true, .at = AT(webhook_url) },
    { "webhook-secret", "FILE", "file with the key that signs the notices, at least 16 bytes", SERVE_PATH,
      .restart = true, .at = AT(webhook_secret) },
    { "webhook-ca", "FILE", "PEM: certificates to trust for it, besides the host's", SERVE_PATH, .restart = true,
      .at = AT(webhook_ca) },
    { "webhook-timeout", "TIME", "limit of one attempt (10s)", SERVE_SECONDS, .min = 1, .max = 300, .restart = true,
      .at = AT(webhook_s) },
    { "otlp-endpoint", "URL", "export traces and metrics to this collector: https://, or http:// to this host",
      SERVE_URL, .restart = true, .at = AT(otlp_endpoint) },
    { "otlp-headers", "FILE", "file with lines NAME: VALUE that each request to it has", SERVE_PATH, .restart = true,
      .at = AT(otlp_headers) },
    { "otlp-ca", "FILE", "PEM: certificates to trust for it, besides the host's", SERVE_PATH, .restart = true,
      .at = AT(otlp_ca) },
    { "otlp-timeout", "TIME", "limit of one attempt (10s)", SERVE_SECONDS, .min = 1, .max = 300, .restart = true,
      .at = AT(otlp_s) },
    { "otlp-interval", "TIME", "between two reports of metrics (1m)", SERVE_SECONDS, .min = 1, .max = 86400,
      .restart = true, .at = AT(otlp_every_s) },
    { "otlp-commands", "off|on", "export the words of commands too (off)", SERVE_WORD, .restart = true,
      .words = off_on, .at = AT(otlp_commands) },
    { "signing-key", "NAME", "sign transactions that agents ask for with this key (cloche signer; docs/signing.md)",
      SERVE_NAME, .restart = true, .at = AT(signing_key) },
    { "signing-policy", "FILE", "JSON: which of them, and what a person is asked about", SERVE_PATH, .restart = true,
      .at = AT(signing_policy) },
    { "public-url", "URL", "this daemon's address, for links: https://HOST[:PORT]", SERVE_URL, .restart = true,
      .at = AT(public_url) },
    { "log-format", "text|json", "format of the log on stderr (text)", SERVE_WORD, .restart = true,
      .words = log_formats, .at = AT(log_json) },
    { "log-level", "LEVEL", "error, warn, notice or info: a line for each request (notice)", SERVE_WORD,
      .restart = true, .words = log_levels, .at = AT(log_level) },
};
const size_t serve_n_keys = ARRAY_LEN(serve_keys);

const struct serve_key *
serve_key(const char *name)
{
    for (size_t i = 0; i < serve_n_keys; i++)
        if (strcmp(serve_keys[i].name, name) == 0)
            return &serve_keys[i];
    return NULL;
}

const char *
serve_key_nearest(const char *name)
{
    const char *known[64];
    size_t n = 0;

    for (; n < serve_n_keys && n < ARRAY_LEN(known); n++)
        known[n] = serve_keys[n].name;
    return cli_nearest(name, known, n);
}

static char *
path_at(const struct serve_plan *plan, const struct serve_key *key)
{
    return (char *)(uintptr_t)plan + key->at;
}

static uint64_t *
number_at(const struct serve_plan *plan, const struct serve_key *key)
{
    return (uint64_t *)((uintptr_t)plan + key->at);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Made absolute: what comes later has another working directory. */
static int
put_path(const struct serve_plan *plan, char out[PATH_MAX], const char *where, const char *path, struct err *err)
{
    int n;

    if (path[0] == '\0')
        return err_set(err, ERR_USAGE, "serve.path", "%s is empty", where);
    n = path[0] == '/' ? snprintf(out, PATH_MAX, "%s", path) : snprintf(out, PATH_MAX, "%s/%s", plan->cwd, path);
    return n < PATH_MAX ? 0 : err_set(err, ERR_USAGE, "serve.path", "%s is longer than a path can be", where);
}

static int
too_many(const char *where, size_t max, struct err *err)
{
    return err_set(err, ERR_USAGE, "serve.config.many", "%s: more than %zu", where, max);
}

static int
put_listen(struct serve_plan *plan, const char *where, const char *value, struct err *err)
{
    struct serve_listen *new = &plan->listen[plan->n_listen];
    struct door door;
    const char *why;

    if (plan->n_listen == SERVE_LISTEN_MAX)
        return too_many(where, SERVE_LISTEN_MAX, err);
    if (!door_parse(str_of(value), &door, &why)) {
        err_set(err, ERR_USAGE, "serve.listen", "%s \"%s\" %s", where, value, why);
        return err_hint(err, "unix:PATH, tcp:127.0.0.1:PORT or tcp:[::1]:PORT");
    }
    *new = (struct serve_listen){ .tcp = door.tcp, .ip = door.ip, .port = door.port };
    if (!door.tcp && put_path(plan, new->path, where, door.path.p, err) < 0)
        return -1;
    plan->n_listen++;
    return 0;
}

static int
put_seconds(const struct serve_key *key, uint64_t *out, const char *where, const char *value, struct err *err)
{
    uint64_t ms;

    if (!str_parse_duration_ms(str_of(value), key->max * 1000, &ms) || ms % 1000 != 0 || ms / 1000 < key->min) {
        err_set(err, ERR_USAGE, "serve.duration", "%s \"%s\" is not a number of whole seconds from %llu to %llu", where,
                value, (unsigned long long)key->min, (unsigned long long)key->max);
        if (key->zero != NULL)
            return err_hint(err, "90s, 30m, 2h; 0: %s", key->zero);
        return err_hint(err, key->min > 30 ? "10m, 2h" : "30s, 2m");
    }
    *out = ms / 1000;
    return 0;
}

static int
put_number(const struct serve_key *key, uint64_t *out, const char *where, const char *value, struct err *err)
{
    uint64_t n;

    if (str_parse_u64(str_of(value), key->max, &n) && n >= key->min) {
        *out = n;
        return 0;
    }
    err_set(err, ERR_USAGE, strcmp(key->name, "max-sandboxes") == 0 ? "serve.max-sandboxes" : "serve.number",
            "%s \"%s\" is not a number from %llu to %llu", where, value, (unsigned long long)key->min,
            (unsigned long long)key->max);
    return err_hint(err, "%s", key->help);
}

static int
put_word(const struct serve_key *key, uint64_t *out, const char *where, const char *value, struct err *err)
{
    uint8_t room[128];
    struct buf list = BUF_INIT_IN(room, sizeof(room));

    for (size_t i = 0; key->words[i] != NULL; i++) {
        if (strcmp(key->words[i], value) == 0) {
            *out = i;
            return 0;
        }
    }
    for (size_t i = 0; key->words[i] != NULL; i++)
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", key->words[i]);
    err_set(err, ERR_USAGE, "serve.word", "%s \"%.64s\" is not one of %.*s", where, value, (int)list.n,
            (const char *)list.p);
    return err_hint(err, "%s", key->help);
}

static int
put_host(struct serve_plan *plan, const char *where, const char *value, struct err *err)
{
    struct host_pattern pattern;
    enum host_fault fault = host_pattern_cloche(str_of(value), &pattern);

    if (plan->n_hosts == SERVE_NAMES_MAX)
        return too_many(where, SERVE_NAMES_MAX, err);
    if (fault != HOST_OK) {
        err_set(err, ERR_USAGE, "serve.host", "%s \"%s\" %s", where, value, host_fault_text(fault));
        return err_hint(err, "a name, with its port or for any: \"cloche.example.org\", \"10.0.0.7:8443\"");
    }
    snprintf(plan->hosts[plan->n_hosts++], sizeof(plan->hosts[0]), "%s", value);
    return 0;
}

static int
put_origin(struct serve_plan *plan, const char *where, const char *value, struct err *err)
{
    struct door_origin origin;

    if (plan->n_origins == SERVE_NAMES_MAX)
        return too_many(where, SERVE_NAMES_MAX, err);
    if (strlen(value) >= sizeof(plan->origins[0]) || !door_origin(str_of(value), &origin)) {
        err_set(err, ERR_USAGE, "serve.origin", "%s \"%s\" is no origin", where, value);
        return err_hint(err, "as a browser says it: \"https://console.example.org\", \"http://localhost:3000\"");
    }
    snprintf(plan->origins[plan->n_origins++], sizeof(plan->origins[0]), "%s", value);
    return 0;
}

static int
put_gate(struct serve_plan *plan, const char *where, const char *value, struct err *err)
{
    if (strcmp(value, "off") != 0)
        return put_path(plan, plan->gate, where, value, err);
    snprintf(plan->gate, sizeof(plan->gate), "off");
    return 0;
}

static int
put_url(const struct serve_plan *plan, const struct serve_key *key, const char *where, const char *value,
        struct err *err)
{
    bool bare = strcmp(key->name, "public-url") == 0;
    struct hook_url url = { .path = { NULL, 0 } };
    const char *why = NULL;

    if (hook_url(str_of(value), &url, &why) && bare && url.path.n > 0)
        why = "has something behind its host";
    if (why != NULL) {
        err_set(err, ERR_USAGE, "serve.url", "%s \"%s\" %s", where, value, why);
        return err_hint(err, bare ? "https://HOST[:PORT]" : "https://HOST[:PORT]/PATH");
    }
    snprintf(path_at(plan, key), PATH_MAX, "%s", value);
    return 0;
}

/* Of a key in the vault, which knows better what its names are. */
static int
put_name(const struct serve_plan *plan, const struct serve_key *key, const char *where, const char *value,
         struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(value);

    if (n == 0 || n > 64 || strspn(value, letters) != n || value[0] == '-' || value[0] == '.') {
        err_set(err, ERR_USAGE, "serve.name", "%s \"%.64s\" is no name of a key", where, value);
        return err_hint(err, "`cloche signer ls` lists them");
    }
    snprintf(path_at(plan, key), PATH_MAX, "%s", value);
    return 0;
}

int
serve_put(struct serve_plan *plan, const struct serve_key *key, const char *where, const char *value,
          struct err *err)
{
    switch (key->kind) {
    case SERVE_LISTEN: return put_listen(plan, where, value, err);
    case SERVE_HOSTS: return put_host(plan, where, value, err);
    case SERVE_ORIGINS: return put_origin(plan, where, value, err);
    case SERVE_GATE: return put_gate(plan, where, value, err);
    case SERVE_URL: return put_url(plan, key, where, value, err);
    case SERVE_NAME: return put_name(plan, key, where, value, err);
    case SERVE_PATH: return put_path(plan, path_at(plan, key), where, value, err);
    case SERVE_SECONDS: return put_seconds(key, number_at(plan, key), where, value, err);
    case SERVE_WORD: return put_word(key, number_at(plan, key), where, value, err);
    case SERVE_NUMBER: break;
    }
    return put_number(key, number_at(plan, key), where, value, err);
}

void
serve_clear(struct serve_plan *plan, const struct serve_key *key)
{
    if (key->kind == SERVE_LISTEN)
        plan->n_listen = 0;
    else if (key->kind == SERVE_HOSTS)
        plan->n_hosts = 0;
    else if (key->kind == SERVE_ORIGINS)
        plan->n_origins = 0;
}

void
serve_copy(struct serve_plan *to, const struct serve_plan *from, const struct serve_key *key)
{
    switch (key->kind) {
    case SERVE_LISTEN:
        memcpy(to->listen, from->listen, sizeof(to->listen));
        to->n_listen = from->n_listen;
        break;
    case SERVE_HOSTS:
        memcpy(to->hosts, from->hosts, sizeof(to->hosts));
        to->n_hosts = from->n_hosts;
        break;
    case SERVE_ORIGINS:
        memcpy(to->origins, from->origins, sizeof(to->origins));
        to->n_origins = from->n_origins;
        break;
    case SERVE_PATH:
    case SERVE_GATE:
    case SERVE_URL:
    case SERVE_NAME:
        memcpy(path_at(to, key), path_at(from, key), PATH_MAX);
        break;
    case SERVE_SECONDS:
    case SERVE_NUMBER:
    case SERVE_WORD:
        *number_at(to, key) = *number_at(from, key);
    }
}

const char *
serve_listen_text(const struct serve_listen *listen, char room[SERVE_VALUE_MAX])
{
    char ip[IP_TEXT_MAX];

    if (!listen->tcp) {
        snprintf(room, SERVE_VALUE_MAX, "unix:%s", listen->path);
        return room;
    }
    ip_format(&listen->ip, ip);
    snprintf(room, SERVE_VALUE_MAX, listen->ip.family == 6 ? "tcp:[%s]:%u" : "tcp:%s:%u", ip, listen->port);
    return room;
}

const char *
serve_value(const struct serve_plan *plan, const struct serve_key *key, size_t i, char room[SERVE_VALUE_MAX])
{
    switch (key->kind) {
    case SERVE_LISTEN: return i < plan->n_listen ? serve_listen_text(&plan->listen[i], room) : NULL;
    case SERVE_HOSTS: return i < plan->n_hosts ? plan->hosts[i] : NULL;
    case SERVE_ORIGINS: return i < plan->n_origins ? plan->origins[i] : NULL;
    case SERVE_GATE:
    case SERVE_URL:
    case SERVE_NAME:
    case SERVE_PATH: return i == 0 && path_at(plan, key)[0] != '\0' ? path_at(plan, key) : NULL;
    case SERVE_WORD: return i == 0 ? key->words[*number_at(plan, key)] : NULL;
    case SERVE_SECONDS:
    case SERVE_NUMBER: break;
    }
    snprintf(room, SERVE_VALUE_MAX, "%llu%s", (unsigned long long)*number_at(plan, key),
             key->kind == SERVE_SECONDS ? "s" : "");
    return i == 0 ? room : NULL;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static int
wrong_type(const char *where, const struct node *member, struct err *err)
{
    return err_set(err, ERR_USAGE, "serve.config.type", "%s is %s; a string or a number is wanted", where,
                   node_type_text(member->type));
}

static int
put_member(struct serve_plan *plan, const struct node *member, struct err *err)
{
    char name[64], where[PATH_MAX + 96];
    const struct serve_key *key;
    const char *nearest;

    snprintf(name, sizeof(name), "%.*s", (int)member->key.n, member->key.p);
    snprintf(where, sizeof(where), "%s:%u: %s", plan->config, member->key_line, name);
    key = serve_key(name);
    if (key == NULL || strlen(name) != member->key.n) {
        nearest = serve_key_nearest(name);
        err_set(err, ERR_USAGE, "serve.config.key", "%s is not a key of this file", where);
        if (nearest != NULL)
            return err_hint(err, "did you mean %s?", nearest);
        return err_hint(err, "`cloche config show` lists the keys; what a sandbox may do is in security.sandbox, or in "
                        "the settings file");
    }
    if (key->list && member->type == NODE_LIST) {
        for (const struct node *m = member->first; m != NULL; m = m->next) {
            snprintf(where, sizeof(where), "%s:%u: %s", plan->config, m->line, name);
            if (m->type != NODE_STRING)
                return wrong_type(where, m, err);
            if (serve_put(plan, key, where, m->text.p, err) < 0)
                return -1;
        }
        return 0;
    }
    if (key->kind == SERVE_GATE && member->type == NODE_MAP)
        return serve_put(plan, key, where, plan->config, err);      /* the rules are in this file */
    if (member->type != NODE_STRING && member->type != NODE_NUMBER)
        return wrong_type(where, member, err);
    return serve_put(plan, key, where, member->text.p, err);
}

/* A settings file may have a section of that name, so that is what it is read as: its lines, at their places. */
static int
put_security(struct serve_plan *plan, const struct node *member, const struct buf *text, struct err *err)
{
    const char *at = (const char *)text->p, *end = at + text->n, *from = NULL;
    unsigned last = member->next != NULL ? member->next->key_line : UINT32_MAX;
    size_t used = member->key_line - 1;

    for (unsigned line = 1; line < last && at < end; line++) {
        if (line == member->key_line)
            from = at;
        at = memchr(at, '\n', (size_t)(end - at));
        at = at != NULL ? at + 1 : end;
    }
    if (from == NULL || last == member->key_line || used + (size_t)(at - from) >= sizeof(plan->security)) {
        err_set(err, ERR_USAGE, "serve.config.security", "%s:%u: security cannot be taken apart from the rest",
                plan->config, member->key_line);
        return err_hint(err, "write it as a block of lines of its own, near the beginning, of less than 64 KiB");
    }
    memset(plan->security, '\n', used);
    memcpy(plan->security + used, from, (size_t)(at - from));
    plan->security[used + (size_t)(at - from)] = '\0';
    return strlen(plan->security) == used + (size_t)(at - from)
               ? 0 : err_set(err, ERR_USAGE, "serve.config.security", "%s holds a NUL", plan->config);
}

static int
unread(const char *path, struct err *err)
{
    err_sys(err, errno, "serve.config.read", "%s", path);
    return err_hint(err, "a regular file of at most %d KiB, which SIGHUP reads again", POLICY_FILE_MAX / 1024);
}

int
serve_config(struct serve_plan *plan, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(POLICY_FILE_MAX);
    struct arena *arena = arena_new(4096);
    const struct node *top;
    int r = -1;

    if (arena == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (io_read_regular(AT_FDCWD, plan->config, &text) < 0)
        (void)unread(plan->config, err);
    else if ((top = doc_parse_yaml(arena, plan->config, text.p, text.n, err)) != NULL)
        r = top->type == NODE_MAP ? 0 : err_set(err, ERR_USAGE, "serve.config.type", "%s holds no keys", plan->config);
    for (const struct node *m = r == 0 ? top->first : NULL; m != NULL && r == 0; m = m->next)
        r = str_eq(m->key, STR_LIT("security")) ? put_security(plan, m, &text, err) : put_member(plan, m, err);
    arena_free(arena);
    return r;
}
