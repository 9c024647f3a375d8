/* run/session_audit.c: see session_audit.h */
#include "program/say.h"
#include "run/session_audit_priv.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "program/policy_json.h"
#include "program/state.h"
#include "run/session_priv.h"

#define WRITE_US  1000000UL     /* between the first of what is new and its writing */

/* --- what must not be in it --------------------------------------------------------------------------------------- */

static void
mask_proxy(struct masks *set, const struct policy_string *url)
{
    const char *at = url->p != NULL ? strrchr(url->p, '@') : NULL;
    const char *begin = url->p != NULL ? strstr(url->p, "//") : NULL;

    if (at != NULL && begin != NULL && begin + 2 < at)
        masks_add(set, "[user of the parent proxy]", begin + 2, (size_t)(at - begin - 2));
}

void
run_audit_masks(struct masks *set, const struct policy *p)
{
    char name[MASK_NAME + 1];

    for (size_t i = 0; i < p->n_env; i++) {
        const struct policy_env *e = &p->env[i];
        const char *value = e->value != NULL ? e->value : getenv(e->name);
        if ((e->from.kind != ORIGIN_FLAG && e->from.kind != ORIGIN_FILE) || value == NULL)
            continue;
        snprintf(name, sizeof(name), "[variable %.48s]", e->name);
        masks_add(set, name, value, strlen(value));
    }
    mask_proxy(set, &p->parent_proxy.http);
    mask_proxy(set, &p->parent_proxy.https);
}

/* --- opening, queuing, writing ------------------------------------------------------------------------------------ */

int
audit_folder(char out[PATH_MAX], struct err *err)
{
    char state[PATH_MAX];

    if (state_dir_path(state, err) < 0 || state_dir_check(state, err) < 0)
        return -1;
    return snprintf(out, PATH_MAX, "%s/audit", state) < PATH_MAX
               ? 0 : err_set(err, ERR_LIMIT, "audit.open", "%s: the path is too long", state);
}

static int
open_record(const struct audit_options *options, struct audit **out, struct err *err)
{
    char dir[PATH_MAX];
    struct audit_options o = *options;
    struct err first = ERR_INIT;
    int state;

    if (audit_folder(dir, err) < 0)
        return -1;
    o.dir = dir;
    if (audit_open(&o, out, &first) == 0)
        return 0;
    if (strcmp(first.code, "audit.missing") != 0) {
        *err = first;
        return -1;
    }
    state = state_dir_open(err);
    if (state < 0)
        return -1;
    close(state);
    return audit_open(&o, out, err);
}

static void
free_audit(struct run_audit *a)
{
    masks_free(&a->own);
    audit_close(a->log);
    free(a);
}

/* @err as the policy takes it: a reason to end, or a warning, once, and no record from then on. */
static int
trouble(struct run_audit *a, const struct err *why, struct err *err)
{
    if (a->required) {
        *err = *why;
        err_wrap(err, "the audit record is required");
        return -1;
    }
    if (!a->failed)
        session_warn(a->r, true, "this run is not in the audit record: %s [%s]", why->msg, why->code);
    a->failed = true;
    return 0;
}

int
run_audit_open(const struct session *s, struct session_result *r, struct run_audit **out, struct err *err)
{
    struct run_audit *a;
    struct audit_options o = { .redact = masks_redact };
    struct err why = ERR_INIT;

    if (s->policy->audit.v == RECORD_OFF)
        return 0;
    a = calloc(1, sizeof(*a));
    if (a == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    /* a limit on the size of files is an error of the record, not our end; the command gets it as it was */
    (void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    a->r = r;
    a->required = o.durable = s->policy->audit.v == RECORD_REQUIRED;
    masks_init(&a->own);
    a->masks = &a->own;
    o.redact_ctx = a->masks;
    if (open_record(&o, &a->log, &why) == 0) {
        *out = a;
        return 0;
    }
    if (trouble(a, &why, err) < 0) {
        free_audit(a);
        return -1;
    }
    free_audit(a);
    return 0;
}

static struct str
cleaned(struct run_audit *a, struct str text, struct buf *room)
{
    size_t at = room->n;
    struct buf clean = BUF_INIT(16 * AUDIT_TEXT_MAX);
    bool changed = text.n > 0 && masks_redact(a->masks, text, &clean);
    bool fits = !changed || (buf_ok(&clean) && buf_append(room, clean.p, clean.n) == 0);

    buf_free(&clean);
    if (!fits)
        return STR_LIT("[redacted]");
    return changed ? (struct str){ (const char *)room->p + at, room->n - at } : text;
}

/* Its texts as they may be said, each in a part of one room that does not move. */
static void
pass_on(struct run_audit *a, const struct audit_entry *e)
{
    static uint8_t space[(AUDIT_META_MAX + 1) * AUDIT_TEXT_MAX];
    struct buf room = BUF_INIT_IN(space, sizeof(space));
    struct audit_entry clean = *e;

    clean.summary = cleaned(a, e->summary, &room);
    for (size_t i = 0; i < e->n_meta; i++)
        if (e->meta[i].kind == AUDIT_STRING)
            clean.meta[i].text = cleaned(a, e->meta[i].text, &room);
    a->remote(a->remote_ctx, &clean);
}

struct masks *
run_audit_hides(struct run_audit *a)
{
    return a != NULL ? a->masks : NULL;
}

struct run_audit *
run_audit_remote(struct masks *masks, struct session_result *r, run_audit_fn *fn, void *ctx)
{
    struct run_audit *a = calloc(1, sizeof(*a));

    if (a == NULL)
        return NULL;
    a->r = r;
    a->remote = fn;
    a->remote_ctx = ctx;
    a->masks = masks;
    return a;
}

void
run_audit_remote_end(struct run_audit *a)
{
    if (a != NULL)
        free_audit(a);
}

void
run_audit_queue(struct run_audit *a, const struct audit_entry *e)
{
    struct err why = ERR_INIT;

    if (a == NULL || a->failed)
        return;
    if (a->remote != NULL) {
        pass_on(a, e);
        return;
    }
    /* no room: what is there is written first. Should that fail, so does the writing that comes */
    if (audit_append(a->log, e, &why) < 0 && (!err_is(&why, "audit.full") || audit_commit(a->log, NULL) < 0 ||
                                              audit_append(a->log, e, &why) < 0))
        session_warn(a->r, true, "an entry is missing in the audit record: %s", why.msg);
    if (a->due_us == 0)
        a->due_us = clock_us() + WRITE_US;
}

uint64_t
run_audit_due(const struct run_audit *a)
{
    return a != NULL && !a->failed ? a->due_us : 0;
}

int
run_audit_write(struct run_audit *a, struct err *err)
{
    struct err why = ERR_INIT;

    if (a == NULL || a->failed)
        return 0;
    a->due_us = 0;
    return audit_commit(a->log, &why) < 0 ? trouble(a, &why, err) : 0;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* The command by its first word, and all of it by its hash: words may hold secrets. */
static void
put_command(struct audit_entry *e, const struct session *s, char hex[SHA256_TEXT + 1])
{
    uint8_t hash[SHA256_SIZE];
    struct sha256 h;
    int64_t n = 0;

    sha256_init(&h);
    for (; s->argv[n] != NULL; n++)
        sha256_add(&h, s->argv[n], strlen(s->argv[n]) + 1);
    sha256_end(&h, hash);
    sha256_text(hash, hex);
    audit_put_cstr(e, "command", s->argv[0]);
    audit_put_number(e, "words", n);
    audit_put_cstr(e, "argv_sha256", hex);
}

static void
put_policy(struct audit_entry *e, const struct policy *p, char hex[SHA256_TEXT + 1])
{
    static const char *const workspaces[] = {
        [WORKSPACE_TMPFS] = "tmpfs", [WORKSPACE_RW] = "rw", [WORKSPACE_RO] = "ro", [WORKSPACE_COW] = "cow" };
    static const char *const networks[] = {
        [NETWORK_NONE] = "none", [NETWORK_ALLOWLIST] = "allowlist", [NETWORK_HOST] = "host" };

    cli_policy_digest(p, hex);
    audit_put_cstr(e, "policy", hex);
    audit_put_cstr(e, "view", p->view.v == VIEW_HOST ? "host" : "private");
    audit_put_cstr(e, "network", networks[p->network.v]);
    audit_put_cstr(e, "workspace", workspaces[p->workspace.kind]);
    if (p->workspace.dir != NULL)
        audit_put_cstr(e, "dir", p->workspace.dir);
}

static void
put_secrets(struct audit_entry *e, const struct policy *p, char names[512])
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_secrets && n < 512; i++)
        n += (size_t)snprintf(names + n, 512 - n, "%s%s", i > 0 ? " " : "", p->secrets[i].name);
    if (p->n_secrets > 0)
        audit_put_cstr(e, "secrets", names);
}

/* Promises that this host keeps in a weaker way, or not at all. */
static void
queue_warnings(struct run_audit *a)
{
    for (; a->n_warnings < a->r->n_warnings; a->n_warnings++) {
        struct audit_entry e = { .type = AUDIT_FALLBACK, .severity = AUDIT_WARN,
                                 .summary = str_of(a->r->warnings[a->n_warnings]), .sandbox = str_of(a->r->id) };
        run_audit_queue(a, &e);
    }
}

void
run_audit_warnings(struct run_audit *a)
{
    if (a != NULL)
        queue_warnings(a);
}

/* Where the host reaches it. */
static void
put_published(struct audit_entry *e, const struct session_result *r, char ports[PUBLISH_MAX * PUBLISH_TEXT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_published; i++)
        n += (size_t)snprintf(ports + n, PUBLISH_MAX * PUBLISH_TEXT_MAX - n, "%s%s", i > 0 ? " " : "",
                              r->published[i]);
    if (n > 0)
        audit_put_cstr(e, "published", ports);
}

int
run_audit_start(struct run_audit *a, const struct session *s, const struct policy *policy,
                const struct session_result *r, struct err *err)
{
    char argv_hash[SHA256_TEXT + 1], digest[SHA256_TEXT + 1], code[SHA256_TEXT + 1], names[512] = "";
    char ports[PUBLISH_MAX * PUBLISH_TEXT_MAX];
    uint8_t hash[SHA256_SIZE];
    struct audit_entry e;

    if (a == NULL)
        return 0;
    a->started = true;
    run_audit_masks(a->masks, policy);
    audit_lifecycle(&e, r->id, "start", "a sandbox was started");
    audit_put_cstr(&e, "mode", policy_mode_name(s->policy->mode.v));
    audit_put_cstr(&e, "engine", r->engine);
    put_command(&e, s, argv_hash);
    if (s->file != NULL) {
        sha256_of(s->file->data, s->file->n, hash);
        sha256_text(hash, code);
        audit_put_cstr(&e, "code_sha256", code);
    }
    put_policy(&e, s->policy, digest);
    put_secrets(&e, s->policy, names);
    audit_put_cstr(&e, "memory_by", r->memory_by);
    audit_put_cstr(&e, "cpu_by", r->cpu_by);
    audit_put_cstr(&e, "pids_by", r->pids_by);
    audit_put_cstr(&e, "disk_by", r->disk_by);
    audit_put_number(&e, "uid", getuid());
    audit_put_number(&e, "pid", getpid());
    if (r->cow_id[0] != '\0')
        audit_put_cstr(&e, "changes", r->cow_id);
    put_published(&e, r, ports);
    run_audit_queue(a, &e);
    queue_warnings(a);
    return a->required ? run_audit_write(a, err) : 0;
}

int
run_audit_off(struct run_audit *a, const struct session *s, const char *why, struct err *err)
{
    char argv_hash[SHA256_TEXT + 1], digest[SHA256_TEXT + 1];
    bool chosen = s->policy->mode.v == MODE_OFF;
    struct audit_entry e = { .type = AUDIT_MODE_TRANSITION, .severity = chosen ? AUDIT_WARN : AUDIT_ERROR,
                             .summary = STR_LIT("a command runs without a sandbox") };

    if (a == NULL)
        return 0;
    a->started = true;
    run_audit_masks(a->masks, s->policy);
    audit_put_cstr(&e, "event", "off");
    if (!chosen)
        audit_put_cstr(&e, "from", policy_mode_name(s->policy->mode.v));
    audit_put_cstr(&e, "to", "off");
    audit_put_cstr(&e, "reason", why);
    put_command(&e, s, argv_hash);
    put_policy(&e, s->policy, digest);
    audit_put_number(&e, "uid", getuid());
    audit_put_number(&e, "pid", getpid());
    run_audit_queue(a, &e);
    return a->required ? run_audit_write(a, err) : 0;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* What the name guard and the like refused; connections have their own entries. */
static void
queue_denials(struct run_audit *a)
{
    const struct session_result *r = a->r;
    struct audit_entry e;

    for (size_t i = 0; i < r->n_denied; i++) {
        const struct session_denied *d = &r->denied[i];
        if (r->network && strcmp(d->op, "connect") == 0)
            continue;
        audit_policy_decision(&e, r->id, "deny", NULL, "the sandbox was refused something");
        e.severity = AUDIT_WARN;
        audit_put_cstr(&e, "op", d->op);
        audit_put_cstr(&e, "target", d->target);
        audit_put_cstr(&e, "rule", d->rule);
        audit_put_number(&e, "count", (int64_t)d->count);
        run_audit_queue(a, &e);
    }
    if (r->denied_more == 0 || r->network)
        return;
    audit_policy_decision(&e, r->id, "deny", NULL, "the sandbox was refused more than there was room to name");
    e.severity = AUDIT_WARN;
    audit_put_number(&e, "count", (int64_t)r->denied_more);
    run_audit_queue(a, &e);
}

static void
queue_end(struct run_audit *a)
{
    const struct session_result *r = a->r;
    struct audit_entry e;

    audit_lifecycle(&e, r->id, "end", "a sandbox ended");
    if (r->timed_out || r->oom_killed || r->egress_deaths > 0)
        e.severity = AUDIT_WARN;
    audit_put_cstr(&e, "reason", report_reason(r->reason));
    if (r->exit_code >= 0)
        audit_put_number(&e, "exit_code", r->exit_code);
    if (r->signal != 0)
        audit_put_number(&e, "signal", r->signal);
    audit_put_bool(&e, "timed_out", r->timed_out);
    audit_put_bool(&e, "oom_killed", r->oom_killed);
    audit_put_bool(&e, "output_cut", r->out_truncated || r->err_truncated);
    audit_put_number(&e, "duration_ms", (int64_t)(r->duration_us / 1000));
    audit_put_number(&e, "cpu_ms", (int64_t)(r->usage.cpu_us / 1000));
    if (r->usage.peak_memory > 0)
        audit_put_number(&e, "peak_memory_bytes", (int64_t)r->usage.peak_memory);
    audit_put_number(&e, "denied", (int64_t)(r->n_denied + r->denied_more));
    if (r->n_published > 0)
        audit_put_number(&e, "connections", (int64_t)r->connections);
    run_audit_queue(a, &e);
}

static void
queue_failure(struct run_audit *a, const struct session *s, const struct err *why)
{
    char argv_hash[SHA256_TEXT + 1], digest[SHA256_TEXT + 1];
    struct audit_entry e;

    audit_lifecycle(&e, a->r->id, a->started ? "failed" : "refused",
                    a->started ? "a sandbox ended because of a failure" : "a sandbox was not started");
    e.severity = AUDIT_ERROR;
    audit_put_cstr(&e, "code", why->code);
    audit_put_cstr(&e, "message", why->msg);
    if (!a->started) {
        run_audit_masks(a->masks, s->policy);
        audit_put_cstr(&e, "mode", policy_mode_name(s->policy->mode.v));
        put_command(&e, s, argv_hash);
        put_policy(&e, s->policy, digest);
        audit_put_number(&e, "uid", getuid());
    }
    run_audit_queue(a, &e);
}

int
run_audit_end(struct run_audit *a, const struct session *s, struct session_result *r, int result,
              const struct err *why, struct err *err)
{
    struct err failed = ERR_INIT;
    int written;

    if (a == NULL)
        return 0;
    a->r = r;
    queue_warnings(a);
    queue_denials(a);
    if (result < 0)
        queue_failure(a, s, why);
    else
        queue_end(a);
    written = run_audit_write(a, &failed);
    free_audit(a);
    if (written < 0 && result == 0) {
        *err = failed;
        return err_wrap(err, "the command has run, and its end is not recorded");
    }
    return 0;
}

void
audit_note(const struct audit_entry *e)
{
    const struct audit_options o = { .durable = true };
    struct err err = ERR_INIT;
    struct audit *log = NULL;

    if (open_record(&o, &log, &err) < 0 || audit_append(log, e, &err) < 0 || audit_commit(log, &err) < 0)
        cli_warn("this is not in the audit record: %s [%s]", err.msg, err.code);
    audit_close(log);
}
