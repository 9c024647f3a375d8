/* keeper/keeper_make.c: a policy from what was asked for, a sandbox from the policy, and its end */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/leavings.h"
#include "hosts/preset.h"
#include "keeper/keeper.h"
#include "launcher/serve.h"
#include "policy/policy.h"
#include "policy/within.h"
#include "program/caller.h"
#include "run/git_keep.h"
#include "run/image_pin.h"

/* The daemon's state folder, which need not be the usual one: that of its volumes is in it. */
static int
own_folders(const struct keeper_live *k, struct policy *p, struct err *err)
{
    const char *end = k->daemon.volumes != NULL ? strrchr(k->daemon.volumes, '/') : NULL;
    char path[PATH_MAX];

    if (end == NULL || end == k->daemon.volumes)
        return 0;
    snprintf(path, sizeof(path), "%.*s", (int)(end - k->daemon.volumes), k->daemon.volumes);
    return policy_own_folder(p, path, err);
}

int
keeper_policy_read(const struct keeper_live *k, struct policy *p, const char *text, uint8_t bounds,
                   struct err *err)
{
    struct policy_host host;

    if (cli_host(&host, err) < 0 ||
        serve_policy(p, k->daemon.config, k->daemon.security, k->daemon.settings, &host, err) < 0)
        return -1;
    p->denials_add = (bounds & EDGE_BOUNDED) != 0;
    if (text[0] != '\0' && policy_load_bytes(p, "policy", text, strlen(text), POLICY_JSON, &host, err) < 0)
        return -1;
    if (own_folders(k, p, err) < 0)
        return -1;
    if (p->mode.v == MODE_OFF) {
        err_set(err, ERR_POLICY, "serve.mode-off", "mode off makes no sandbox");
        return err_hint(err, "use light, standard or max");
    }
    if (p->audit.v == RECORD_REQUIRED && strcmp(k->daemon.audit, "off") == 0) {
        err_set(err, ERR_POLICY, "audit.off", "audit: required asks that nothing runs unrecorded, and this daemon "
                "keeps no record");
        return err_hint(err, "start cloche serve with --audit try or required");
    }
    return image_pin(p, err);
}

/* Once more, with the hosts of registries instead of their names: those of one may be open by name, or the other way
 * round. @err stays as it is where that is no help. */
static int
with_hosts(struct keeper_live *k, const char *text, unsigned free, struct policy *ceiling, struct err *err)
{
    cleanup_policy struct policy asked = { .srt = false };
    struct err why = ERR_INIT;

    if ((free & WITHIN_NETWORK) != 0 || keeper_policy_read(k, &asked, text, EDGE_BOUNDED, &why) < 0 ||
        asked.registries.n + ceiling->registries.n == 0 ||
        keeper_hosts_open(k, KEEPER_CEILING, ceiling, &why) < 0 ||
        keeper_hosts_open(k, KEEPER_ASKED, &asked, &why) < 0 ||
        policy_within(ceiling, &asked, free | WITHIN_REGISTRIES, &why) < 0)
        return -1;
    *err = (struct err)ERR_INIT;
    return 0;
}

/* An agent's sandbox has no more than the daemon's settings give: whoever may show it a folder may read the folder. */
int
keeper_policy_within(struct keeper_live *k, struct policy *p, const char *text, uint8_t bounds,
                     unsigned free, struct err *err)
{
    cleanup_policy struct policy ceiling = { .srt = false };

    if ((bounds & EDGE_BOUNDED) == 0)
        return 0;
    if ((bounds & EDGE_JUDGED) != 0)
        free |= WITHIN_NETWORK | WITHIN_LIMITS;
    free |= WITHIN_ENGINES;
    if (keeper_policy_read(k, &ceiling, "", 0, err) < 0)
        return -1;
    if (policy_within(&ceiling, p, free, err) < 0 && with_hosts(k, text, free, &ceiling, err) < 0)
        return -1;
    /* one that lives keeps its engine; and by then this process may look at nothing */
    if (k->l.sb != NULL ? engine_stays(&k->policy, p, err) < 0 : engine_within(&ceiling, p, k->owner, err) < 0)
        return -1;
    p->agent_engines.n = 0;     /* it has been judged by it, and it may name other agents */
    return 0;
}

void
keeper_hide_files(const struct keeper_live *k, uint8_t bounds, struct err *err)
{
    const char *const files[] = { k->daemon.settings, k->daemon.config, k->daemon.security };
    char text[sizeof(err->msg)];

    for (size_t i = 0; (bounds & EDGE_BOUNDED) != 0 && i < ARRAY_LEN(files); i++) {
        char *at = files[i] != NULL && files[i][0] == '/' ? strstr(err->msg, files[i]) : NULL;
        if (at == NULL)
            continue;
        snprintf(text, sizeof(text), "%.*sthe settings of cloche serve%s", (int)(at - err->msg), err->msg,
                 at + strlen(files[i]));
        memcpy(err->msg, text, sizeof(err->msg));
    }
}

int
keeper_policy_of(struct keeper_live *k, uint8_t bounds, const char *text, struct err *err)
{
    if (keeper_policy_read(k, &k->policy, text, bounds, err) < 0)
        return -1;
    return policy_fits_daemon(&k->policy, err) < 0 ? -1 : keeper_policy_within(k, &k->policy, text, bounds, 0, err);
}

void
keeper_policy_forget(struct keeper_live *k)
{
    policy_free(&k->policy);
    memset(&k->policy, 0, sizeof(k->policy));
    json_decref(k->profile);
    k->profile = NULL;
}

/* What was said that it would be is what was judged, and settings are files. */
static int
as_printed(const struct keeper_live *k, struct err *err)
{
    cleanup_buf struct buf now = BUF_INIT(EDGE_PRINT_MAX);

    if (k->print[0] == '\0')
        return 0;
    if (keeper_print(k, &k->policy, &now, err) < 0)
        return -1;
    if (strcmp((const char *)now.p, k->print) == 0)
        return 0;
    err_set(err, ERR_DENIED, "sandbox.changed", "settings, or cloche itself, changed while the sandbox was made");
    return err_hint(err, "try again");
}

static int
policy_of(struct keeper_live *k, uint8_t bounds, const char *text, struct err *err)
{
    struct policy *p = &k->policy;

    if (keeper_policy_of(k, bounds, text, err) < 0 || as_printed(k, err) < 0)
        return -1;
    k->profile = keeper_profile(p);
    k->n_asked_hosts = p->allow_domains.n;
    if (preset_open(p, err) < 0 || keeper_hosts_open(k, KEEPER_ASKED, p, err) < 0)
        return -1;
    return policy_validate(p, err);
}

/* The guest says HELLO when the whole wall stands. */
static int
wait_for_guest(struct keeper_live *k, struct err *err)
{
    struct live *l = &k->l;
    const unsigned patience_s = sandbox_facts(l->sb)->start_s;
    uint64_t end = clock_us() + patience_s * 1000000UL;

    park_step(k);
    for (;;) {
        struct pollfd p = { .fd = l->transport, .events = guest_client_poll_events(l->client) };
        uint64_t now = clock_us();
        struct guest_event ev;
        int got;
        if (now >= end)
            return err_set(err, ERR_SYSTEM, "guest.slow", "the guest did not start within %u s", patience_s);
        if (poll(&p, 1, (int)((end - now) / 1000) + 1) < 0 && errno != EINTR)
            return err_sys(err, errno, "cli.poll", "poll");
        if (p.revents != 0 && guest_client_pump(l->client, err) < 0)
            return sandbox_lost(l->sb, err);
        while ((got = guest_client_next(l->client, &ev, err)) == 1) {
            if (ev.type == GUEST_HELLO)
                return 0;
            if (ev.type == GUEST_CLOSED)
                return sandbox_lost(l->sb, err);
        }
        if (got < 0)
            return -1;
    }
}

int
keeper_own(struct keeper_live *k, const char *owner, struct err *err)
{
    struct err why = ERR_INIT;

    if (keeper_record_begin(k, err) < 0)
        return -1;
    if (transcript_open(&k->transcript, &k->daemon, k->id, owner, &k->masks, &why) < 0)
        session_warn(&k->r, false, "there is no transcript of this sandbox: %s [%s]", why.msg, why.code);
    else if (edits_begin(k, &why) < 0)
        session_warn(&k->r, false, "what commands do to files is in no transcript: %s [%s]", why.msg, why.code);
    return 0;
}

static int
make(struct keeper_live *k, const struct keep_make *m, struct err *err)
{
    struct live *l = &k->l;
    struct err why = ERR_INIT;

    memcpy(k->owner, m->owner, sizeof(k->owner));
    if (park_plan(k, m, err) < 0 || policy_of(k, m->bounds, m->policy, err) < 0 ||
        snapshot_fill(k, m->base, err) < 0 || keeper_volume_open(k, m->volume, err) < 0)
        return -1;
    k->s = (struct session){ .policy = &k->policy, .io = SESSION_STREAM, .quiet = true, .no_stdin = true };
    k->limits = k->policy.limits;
    k->bounds = m->bounds;
    sha256_of(m->policy, strlen(m->policy), k->digest);
    l->s = &k->s;
    l->r = &k->r;
    leavings_keep(k->daemon.leavings);
    clock_gettime(CLOCK_REALTIME, &k->r.started);
    if (vault_start(l, err) < 0 || session_make(l, m->id, err) < 0 || wait_for_guest(k, err) < 0 ||
        snapshot_found(k, err) < 0) {
        if (l->sb != NULL)
            sandbox_abandon(l->sb);
        return -1;
    }
    if (edits_find(k, &why) < 0)
        session_warn(&k->r, false, "what commands do to files is in no transcript: %s [%s]", why.msg, why.code);
    if (k->policy.audit.v == RECORD_TRY && k->policy.audit.from.kind == ORIGIN_FILE &&
        strcmp(k->daemon.audit, "off") == 0)
        session_warn(&k->r, false, "audit: try: this daemon keeps no audit record");
    if ((k->park.language == NULL && keeper_own(k, m->owner, err) < 0) || net_confine(l->net, err) < 0) {
        sandbox_abandon(l->sb);
        return -1;
    }
    keeper_ask_begin(k);
    return 0;
}

/* Nobody listens to the launcher meanwhile, and a guest may be slow. So the end of the launcher ends us on the spot;
 * what is made by then is the janitor's. */
int
keeper_make(struct keeper_live *k, const struct keep_make *m, struct err *err)
{
    struct pollfd launcher = { .fd = k->control.fd };
    int r;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_sys(err, errno, "serve.start", "prctl");
    if (poll(&launcher, 1, 0) > 0)
        return err_set(err, ERR_DENIED, "serve.closing", "cloche serve has ended");
    r = make(k, m, err);
    (void)prctl(PR_SET_PDEATHSIG, SIGCONT);     /* as before: stopped, we would not hear of it */
    return r;
}

void
keeper_unmake(struct keeper_live *k)
{
    struct live *l = &k->l;

    op_free_all(k);
    snapshot_free(k);
    /* a frozen process does not die before it thaws */
    if (l->sb != NULL && k->paused && !k->by_signal)
        (void)sandbox_resume(l->sb, NULL);
    if (l->sb != NULL) {
        sandbox_kill(l->sb);
        git_keep(l->sb, &k->r, false);
    }
    edits_end(k);
    net_stop(l->net);
    l->net = NULL;
    run_audit_remote_end(l->audit);
    l->audit = NULL;
    transcript_close(&k->transcript);
    masks_free(&k->masks);
    guest_client_free(l->client);
    l->client = NULL;
    if (l->sb != NULL)
        sandbox_destroy(l->sb);
    l->sb = NULL;
    keeper_volume_close(k);
    keeper_hosts_free(k);
    vault_stop(l);
    keeper_policy_free(k);
    park_free(k);
    session_result_free(&k->r);
}

const char **
keeper_environment(const struct keeper_live *k, const struct edge_op *want)
{
    const char *const *base = sandbox_facts(k->l.sb)->env;
    size_t n = 0, used = 0;
    const char **env;

    while (base[n] != NULL)
        n++;
    env = calloc(n + want->n_env + 1, sizeof(*env));
    for (size_t i = 0; env != NULL && i < n; i++) {
        size_t name = strcspn(base[i], "=") + 1;
        bool mine = true;
        for (size_t j = 0; j < want->n_env && mine; j++)
            mine = strncmp(base[i], want->env[j], name) != 0;
        if (mine)
            env[used++] = base[i];
    }
    for (size_t i = 0; env != NULL && i < want->n_env; i++)
        env[used++] = want->env[i];
    return env;
}

static void
line(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s=", name);
    for (; *value != '\0'; value++)
        buf_put_u8(out, (unsigned char)*value < 0x20 ? ' ' : (uint8_t)*value);
    buf_put_u8(out, '\n');
}

static void
registry_facts(const struct policy *p, struct buf *out)
{
    for (size_t i = 0; i < p->registries.n; i++)
        buf_printf(out, "%s%s", i > 0 ? " " : "registries=", p->registries.v[i].value);
    if (p->registries.n > 0)
        buf_puts(out, "\n");
}

int
keeper_facts(const struct keeper_live *k, struct buf *out)
{
    const struct session_result *r = &k->r;
    const struct sandbox_facts *facts = sandbox_facts(k->l.sb);
    const struct policy *p = k->l.s->policy;
    cleanup_buf struct buf ports = BUF_INIT(512);
    char why[1024];

    buf_put_u8(out, '\n');
    line(out, "engine", facts->choice->v[facts->choice->taken].engine);
    if (facts->choice->v[facts->choice->taken].runtime != NULL)
        line(out, "runtime", facts->choice->v[facts->choice->taken].runtime);
    line(out, "boundary", policy_boundary_name(facts->boundary));
    engine_choice_text(facts->choice, why, sizeof(why));
    line(out, "engine_why", why);
    line(out, "run", k->r.id);
    line(out, "mode", policy_mode_name(p->mode.v));
    line(out, "workspace", facts->root);
    for (size_t i = 0; facts->env[i] != NULL; i++)
        if (strncmp(facts->env[i], "USER=", 5) == 0)
            line(out, "user", facts->env[i] + 5);
    line(out, "network", p->network.v == NETWORK_NONE ? "none" : p->network.v == NETWORK_HOST ? "host" : "allowlist");
    registry_facts(p, out);
    port_facts(k, &ports);
    line(out, "ports", buf_nul(&ports) == 0 ? (const char *)ports.p : "none");
    line(out, "audit", p->audit.v == RECORD_REQUIRED ? "required" : k->daemon.audit);
    line(out, "memory_by", r->memory_by);
    line(out, "cpu_by", r->cpu_by);
    line(out, "pids_by", r->pids_by);
    line(out, "disk_by", r->disk_by);
    if (k->volume_fd >= 0)
        line(out, "volume_by", k->limits.disk.v > 0 ? "looks" : "none");
    line(out, "pause_by", facts->pause_by != NULL ? facts->pause_by : "signals");
    if (r->cow_id[0] != '\0')
        line(out, "cow", r->cow_id);
    for (size_t i = 0; i < r->n_warnings; i++)
        line(out, "warning", r->warnings[i]);
    return buf_ok(out) ? 0 : -1;
}
