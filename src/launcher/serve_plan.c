/* launcher/serve_plan.c: from flags and the configuration file to a plan that is whole */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "launcher/serve.h"
#include "program/caller.h"
#include "program/policy_json.h"
#include "program/state.h"
#include "program/words.h"

#define SECRET_MIN 16   /* bytes of a webhook's */
#define SHARES 4        /* one agent's part of all sandboxes, unless it is said */

void
serve_plan_free(struct serve_plan *plan)
{
    if (plan == NULL)
        return;
    if (plan->key.p != NULL)
        explicit_bzero(plan->key.p, plan->key.n);
    buf_free(&plan->cert);
    buf_free(&plan->key);
    if (plan->hook_secret.p != NULL)
        explicit_bzero(plan->hook_secret.p, plan->hook_secret.n);
    buf_free(&plan->hook_secret);
    if (plan->otlp_lines.p != NULL)
        explicit_bzero(plan->otlp_lines.p, plan->otlp_lines.n);
    buf_free(&plan->otlp_lines);
    buf_free(&plan->rules);
    runtimes_free(&plan->runtimes);
    free(plan);
}

static int
defaults(struct serve_plan *plan, struct err *err)
{
    char folder[PATH_MAX];

    plan->max_sandboxes = 256;
    plan->pool = 4;
    plan->pool_memory = 256;
    plan->pool_s = 300;
    plan->recover_tries = 3;
    plan->recover_window_s = 3600;
    plan->client_s = 60;
    plan->rate = 1000;
    plan->audit = SERVE_AUDIT_TRY;
    plan->transcript = SERVE_TRANSCRIPT_FULL;
    plan->transcript_keep = 1000;
    plan->transcript_mib = 4096;
    plan->transcript_keep_s = 30UL * 24 * 3600;
    plan->log_level = LEVEL_NOTICE;
    plan->cert = plan->key = (struct buf)BUF_INIT(SERVE_PEM_MAX);
    plan->rules = (struct buf)BUF_INIT(SERVE_GATE_MAX);
    plan->hook_secret = (struct buf)BUF_INIT(SERVE_SECRET_MAX);
    plan->webhook_s = 10;
    plan->otlp_lines = (struct buf)BUF_INIT(SERVE_OTLP_HEADERS);
    plan->otlp_s = 10;
    plan->otlp_every_s = 60;
    serve_otlp_environment(plan);
    if (state_dir_path(folder, err) < 0)
        return -1;
    return snprintf(plan->state, sizeof(plan->state), "%s/serve", folder) < (int)sizeof(plan->state)
               ? 0 : err_set(err, ERR_USAGE, "serve.path", "the state folder's path is too long");
}

/* How many words, -1 with @err. --json has no value and is the verb's. */
static int
flag(int argc, char **argv, int i, struct cli_flag *f, struct err *err)
{
    const char *nearest;

    if (argv[i][0] != '-')
        return err_set(err, ERR_USAGE, "cli.operand", "one operand too many: %s", argv[i]);
    if (cli_flag_at(f, argc, argv, i, err) < 0)
        return -1;
    if (strcmp(argv[i], "--json") == 0) {
        f->value = NULL;
        return 1;
    }
    if (strncmp(f->name, "--", 2) == 0 && (serve_key(f->name + 2) != NULL || strcmp(f->name, "--config") == 0))
        return cli_flag_words(f, err);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", f->name);
    nearest = strncmp(f->name, "--", 2) == 0 ? serve_key_nearest(f->name + 2) : NULL;
    if (nearest != NULL)
        return err_hint(err, "did you mean --%s?", nearest);
    return err_hint(err, "`cloche serve --help` lists the flags");
}

static int
read_config(struct serve_plan *plan, const char *path, struct err *err)
{
    int n = path[0] == '/' ? snprintf(plan->config, PATH_MAX, "%s", path)
                           : snprintf(plan->config, PATH_MAX, "%s/%s", plan->cwd, path);

    if (path[0] == '\0' || n >= PATH_MAX)
        return err_set(err, ERR_USAGE, "serve.path", "--config is empty or longer than a path can be");
    return serve_config(plan, err);
}

static int
read_flags(struct serve_plan *plan, int argc, char **argv, struct err *err)
{
    bool cleared[64] = { false };
    struct cli_flag f;
    int n;

    /* the file first: flags have the last word */
    for (int i = 1; i < argc; i += n) {
        n = flag(argc, argv, i, &f, err);
        if (n < 0)
            return -1;
        if (strcmp(f.name, "--config") == 0 && plan->config[0] != '\0')
            return err_set(err, ERR_USAGE, "cli.usage", "--config is there twice");
        if (strcmp(f.name, "--config") == 0 && read_config(plan, f.value, err) < 0)
            return -1;
    }
    for (int i = 1; i < argc; i += n) {
        n = flag(argc, argv, i, &f, err);
        if (f.value == NULL || strcmp(f.name, "--config") == 0)
            continue;
        const struct serve_key *key = serve_key(f.name + 2);
        size_t which = (size_t)(key - serve_keys);
        if (key->list && !cleared[which])
            serve_clear(plan, key);
        cleared[which] = true;
        if (serve_put(plan, key, f.name, f.value, err) < 0)
            return -1;
    }
    return 0;
}

/* --- whether it is whole ------------------------------------------------------------------------------------------ */

/* A file that is configured under the name @what. Who reads a secret one can say what is ours to say. */
static int
read_file(const char *what, const char *path, const char *code, const char *mode_code, bool secret, struct buf *out,
          struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, code, "%s %s", what, path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, code, "%s %s is not a file", what, path);
    if (secret && (st.st_mode & 07) != 0) {
        err_set(err, ERR_DENIED, mode_code, "%s %s can be read or changed by everybody", what, path);
        return err_hint(err, "chmod o= %s", path);
    }
    return io_read_all(fd, out) < 0 ? err_sys(err, errno, code, "%s %s (at most %zu bytes)", what, path, out->max) : 0;
}

static int
read_pem(const char *what, const char *path, const char *wanted, bool secret, struct buf *out, struct err *err)
{
    if (read_file(what, path, "serve.tls.read", "serve.tls.mode", secret, out, err) < 0)
        return -1;
    if (memmem(out->p, out->n, wanted, strlen(wanted)) != NULL)
        return 0;
    err_set(err, ERR_USAGE, "serve.tls.pem", "%s %s holds no \"%s\"", what, path, wanted);
    return err_hint(err, "PEM is wanted: text between lines of dashes");
}

static int
check_tls(struct serve_plan *plan, struct err *err)
{
    bool cert = plan->tls_cert[0] != '\0', key = plan->tls_key[0] != '\0';

    if (cert != key) {
        err_set(err, ERR_USAGE, "serve.tls", "%s is there and %s is not", cert ? "tls-cert" : "tls-key",
                cert ? "tls-key" : "tls-cert");
        return err_hint(err, "TLS needs both");
    }
    if (!cert)
        return 0;
    return read_pem("tls-cert", plan->tls_cert, "-----BEGIN CERTIFICATE-----", false, &plan->cert, err) < 0 ||
           read_pem("tls-key", plan->tls_key, "PRIVATE KEY-----", true, &plan->key, err) < 0 ? -1 : 0;
}

static int
read_hook_secret(struct serve_plan *plan, struct err *err)
{
    const char *path = plan->webhook_secret;
    struct buf *b = &plan->hook_secret;

    if (read_file("webhook-secret", path, "serve.webhook", "serve.webhook.mode", true, b, err) < 0)
        return -1;
    while (b->n > 0 && (b->p[b->n - 1] == '\n' || b->p[b->n - 1] == '\r'))
        b->n--;
    if (b->n >= SECRET_MIN)
        return 0;
    err_set(err, ERR_USAGE, "serve.webhook", "webhook-secret %s holds %zu bytes; at least %d are wanted", path, b->n,
            SECRET_MIN);
    return err_hint(err, "openssl rand -hex 32 > %s", path);
}

/* Another process reads it; that it is there is said by this one. */
static int
check_ca(const char *what, const char *path, const char *code, struct err *err)
{
    cleanup_close int ca = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

    return path[0] != '\0' && ca < 0 ? err_sys(err, errno, code, "%s %s", what, path) : 0;
}

static int
check_webhook(struct serve_plan *plan, struct err *err)
{
    bool url = plan->webhook_url[0] != '\0', secret = plan->webhook_secret[0] != '\0';

    if (!url && (secret || plan->webhook_ca[0] != '\0')) {
        err_set(err, ERR_USAGE, "serve.webhook", "%s is there and webhook-url is not", secret ? "webhook-secret"
                                                                                            : "webhook-ca");
        return err_hint(err, "webhook-url names the server that is told");
    }
    if (check_ca("webhook-ca", plan->webhook_ca, "serve.webhook", err) < 0)
        return -1;
    return secret ? read_hook_secret(plan, err) : 0;
}

static int
check_otlp(struct serve_plan *plan, struct err *err)
{
    if (serve_otlp_check(plan, err) < 0 || check_ca("otlp-ca", plan->otlp_ca, "serve.otlp", err) < 0)
        return -1;
    return plan->otlp_headers[0] == '\0' ? 0 : read_file("otlp-headers", plan->otlp_headers, "serve.otlp",
                                                         "serve.otlp.mode", true, &plan->otlp_lines, err);
}

static int
check_signing(const struct serve_plan *plan, struct err *err)
{
    const bool key = plan->signing_key[0] != '\0', policy = plan->signing_policy[0] != '\0';

    if (key == policy)
        return 0;
    err_set(err, ERR_USAGE, "serve.signing", "%s is there and %s is not: nothing would be signed",
            key ? "signing-key" : "signing-policy", key ? "signing-policy" : "signing-key");
    return err_hint(err, key ? "`cloche signer policy` prints the standard one, to be changed"
                             : "`cloche signer add NAME` keeps a key");
}

int
serve_check_door(const struct serve_plan *plan, const struct serve_listen *listen, struct err *err)
{
    const struct door door = { .tcp = listen->tcp, .ip = listen->ip };
    char room[SERVE_VALUE_MAX];

    if (door_is_loopback(&door) || plan->tls_cert[0] != '\0')
        return 0;
    err_set(err, ERR_USAGE, "serve.listen.open", "listen \"%s\": other hosts can reach that address, and tokens would "
            "go there in the clear", serve_listen_text(listen, room));
    return err_hint(err, "give tls-cert and tls-key, or listen on tcp:127.0.0.1:PORT or tcp:[::1]:PORT");
}

int
serve_policy(struct policy *p, const char *config, const char *security, const char *settings,
             const struct policy_host *host, struct err *err)
{
    if (policy_init(p, MODE_STANDARD, VERB_CODE, host, err) < 0)
        return -1;
    if (security[0] != '\0' &&
        policy_load_bytes(p, config, security, strlen(security), POLICY_YAML, host, err) < 0)
        return -1;
    return settings[0] != '\0' ? policy_load_file(p, settings, POLICY_AUTO, host, err) : 0;
}

/* And what it is, to be compared with a later one. */
static int
check_policy(struct serve_plan *plan, struct err *err)
{
    cleanup_policy struct policy p = { 0 };
    struct policy_host host;
    char from[POLICY_ORIGIN_TEXT_MAX];

    if (plan->security[0] == '\0' && plan->settings[0] == '\0')
        return 0;
    if (cli_host(&host, err) < 0 || serve_policy(&p, plan->config, plan->security, plan->settings, &host, err) < 0)
        return -1;
    if (p.mode.v == MODE_OFF) {
        err_set(err, ERR_POLICY, "serve.mode-off", "mode off (enabled: false) makes no sandbox");
        return err_hint(err, "use light, standard or max");
    }
    for (size_t i = 0; i < p.notes.n; i++)
        if (str_ends(str_of(p.notes.v[i].written), STR_LIT("hitl.enabled")) && serve_gate_is_off(plan)) {
            const bool file = strcmp(plan->gate, "off") != 0;

            err_set(err, ERR_POLICY, "policy.hitl", "%s: %s: people are to be asked, and gate: off%s%s asks nobody",
                    policy_origin_text(&p.notes.v[i].from, from), p.notes.v[i].written, file ? " in " : "",
                    file ? plan->gate : "");
            return err_hint(err, "leave one of them out (docs/gate.md)");
        }
    cli_policy_hash(&p, plan->defaults);
    return policy_fits_daemon(&p, err) < 0 ? -1 : policy_validate(&p, err);
}

/* Whether the values fit together; reads the files that they name. 0 or -1 with @err. */
static int
serve_check(struct serve_plan *plan, struct err *err)
{
    if (plan->max_per_agent == 0)
        plan->max_per_agent = (plan->max_sandboxes + SHARES - 1) / SHARES;
    for (size_t i = 0; i < plan->n_listen; i++)
        if (serve_check_door(plan, &plan->listen[i], err) < 0)
            return -1;
    return check_tls(plan, err) < 0 || check_webhook(plan, err) < 0 || check_otlp(plan, err) < 0 ||
           check_signing(plan, err) < 0 || serve_gate_read(plan, err) < 0 || runtimes_load(&plan->runtimes, err) < 0
               ? -1 : check_policy(plan, err);
}

struct serve_plan *
serve_plan_load(int argc, char **argv, const char *cwd, struct err *err)
{
    struct serve_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    snprintf(plan->cwd, sizeof(plan->cwd), "%s", cwd);
    if (defaults(plan, err) == 0 && read_flags(plan, argc, argv, err) == 0 && serve_check(plan, err) == 0)
        return plan;
    serve_plan_free(plan);
    return NULL;
}
