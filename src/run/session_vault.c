/* run/session_vault.c: cloche-vault for one run
 *
 * A program of its own, started before the sandbox is made: it says which placeholders stand for the secrets that the
 * policy names, and they go into the run's own copy of the policy. No value ever comes here. What the sandbox may do
 * with them is between the vault and cloche-egress, which get a socket to each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "program/helper.h"
#include "program/say.h"
#include "run/session_files.h"
#include "run/session_priv.h"
#include "vault/wire.h"

#define PATIENCE_MS   30000     /* another cloche may be writing the store */
#define REVOKED_MAX   (1024 * 1024)

struct vault_link {
    int fd;
    pid_t pid;
    struct session session;             /* the run's own, with the policy below */
    struct policy policy;               /* the user's, and the placeholders */
    struct policy_env *env;
    struct files_known known;
    struct str *files;
    char *ca_pem;
    char folder[PATH_MAX];              /* of the store */
    struct { char id[VAULT_ID_TEXT + 1]; bool revoked; } secrets[VAULT_SECRETS_MAX];
    size_t n_secrets;
    struct timespec seen;               /* of the list of revoked ones, when it was read */
    off_t seen_size;
    uint8_t in[VAULT_RECEIVE_ROOM];
};

/* --- starting ----------------------------------------------------------------------------------------------------- */

static int
start_program(struct vault_link *v, struct err *err)
{
    char home[PATH_MAX + 16], data[PATH_MAX + 16], *env[3] = { NULL };
    const char *home_is = getenv("HOME"), *data_is = getenv("XDG_DATA_HOME");
    const struct helper h = { .folder = "vault", .name = "cloche-vault", .env = env, .mute = true };
    int n = 0;

    /* where the store is, and nothing else that is in our environment */
    if (home_is != NULL && snprintf(home, sizeof(home), "HOME=%s", home_is) < (int)sizeof(home))
        env[n++] = home;
    if (data_is != NULL && snprintf(data, sizeof(data), "XDG_DATA_HOME=%s", data_is) < (int)sizeof(data))
        env[n++] = data;
    v->pid = helper_start(&h, &v->fd, err);
    return v->pid < 0 ? -1 : 0;
}

static int
malformed(struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "vault.protocol", "a malformed message from cloche-vault");
}

/* The next message, which has to be of @type; its own refusal is passed on. @m points into @v. */
static int
expect(struct vault_link *v, uint8_t type, const struct shape *shape, void *m, struct err *err)
{
    struct pollfd p = { .fd = v->fd, .events = POLLIN };
    struct vault_no no;
    struct wire_in in;
    struct frame f;
    int r;

    do
        r = poll(&p, 1, PATIENCE_MS);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return err_set(err, ERR_SYSTEM, "vault.slow", "cloche-vault did not answer within %d s", PATIENCE_MS / 1000);
    if (packet_receive(v->fd, v->in, sizeof(v->in), &f, NULL, 0) <= 0)
        return helper_complete("vault", "cloche-vault", err) < 0
                   ? -1 : err_set(err, ERR_SYSTEM, "vault.ended", "cloche-vault ended before it answered");
    in = wire_in_of(f.payload, f.length);
    if (f.type == type)
        return proto_get(&in, shape, m) ? 0 : malformed(err);
    if (f.type != VAULT_NO || !vault_no_get(&in, &no))
        return err_set(err, ERR_PROTOCOL, "vault.protocol", "cloche-vault answered something else than was asked");
    if (err != NULL)
        *err = no.why;
    return -1;
}

static int
say(struct vault_link *v, uint8_t type, const struct shape *shape, const void *m)
{
    return proto_send(v->fd, type, shape, m, -1);
}

static int
not_said(struct err *err)
{
    return err_sys(err, errno, "vault.control", "tell cloche-vault");
}

static int
read_ca(struct vault_link *v, struct err *err)
{
    struct vault_ca ca;

    if (expect(v, VAULT_CA, VAULT_CA_SHAPE(), &ca, err) < 0)
        return -1;
    snprintf(v->folder, sizeof(v->folder), "%s", ca.folder);
    v->ca_pem = strdup(ca.pem);
    return v->ca_pem != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* --- is there any use in it? -------------------------------------------------------------------------------------- */

static bool
below(const struct host *name, const struct host *suffix)
{
    return (name->n == suffix->n && memcmp(name->name, suffix->name, name->n) == 0) ||
           (name->n > suffix->n && name->name[name->n - suffix->n - 1] == '.' &&
            memcmp(name->name + name->n - suffix->n, suffix->name, suffix->n) == 0);
}

/* Whether some host may match both. Generous with stars: it is about a mistake in the settings, not about the wall. */
static bool
overlap(const struct host_pattern *a, const struct host_pattern *b)
{
    if (a->kind == HOST_EXACT)
        return host_match(b, &a->host, b->port);
    if (b->kind == HOST_EXACT)
        return host_match(a, &b->host, a->port);
    return below(&a->host, &b->host) || below(&b->host, &a->host);
}

static bool
any_host_allowed(const struct policy *p, const struct binding *binding)
{
    for (size_t i = 0; i < p->allow_domains.n; i++) {
        struct str text = str_of(p->allow_domains.v[i].value);
        struct host_pattern rule;
        if ((p->srt ? host_pattern_srt(text, false, &rule) : host_pattern_cloche(text, &rule)) != HOST_OK)
            continue;
        for (size_t k = 0; k < binding->n_hosts; k++)
            for (size_t port = 0; port < binding->n_ports; port++)
                if (overlap(&rule, &binding->hosts[k]) && (rule.port == 0 || rule.port == binding->ports[port]))
                    return true;
    }
    return false;
}

static int
check_hosts(const struct policy *p, const struct policy_secret *s, struct str text, struct err *err)
{
    struct binding *binding = malloc(sizeof(*binding));
    char origin[POLICY_ORIGIN_TEXT_MAX];
    int r = 0;

    if (binding == NULL || binding_parse(text, binding, NULL) < 0) {
        r = malformed(err);
    } else if (!any_host_allowed(p, binding)) {
        err_set(err, ERR_POLICY, "policy.secret.hosts", "%s: this policy allows no host that the secret %s is for",
                policy_origin_text(&s->from, origin), s->name);
        r = err_hint(err, "add --allow-domain %s%s", binding->host_text[0],
                     binding->n_hosts > 1 ? ", or another of its hosts (`cloche secret ls`)" : "");
    }
    free(binding);
    return r;
}

/* --- placeholders ------------------------------------------------------------------------------------------------- */

static int
add_env(struct vault_link *v, const struct origin *from, const char *name, const uint8_t *placeholder, size_t n,
        struct err *err)
{
    struct policy_env *grown = reallocarray(v->env, v->policy.n_env + 1, sizeof(*grown));
    struct policy_env *e;

    if (grown == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    v->env = v->policy.env = grown;
    e = &grown[v->policy.n_env];
    *e = (struct policy_env){ .name = strdup(name), .value = strndup((const char *)placeholder, n), .from = *from };
    v->policy.n_env++;
    return e->name != NULL && e->value != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static int
bind_one(struct vault_link *v, const struct policy *p, const struct policy_secret *s, struct err *err)
{
    struct vault_bound bound;

    if (PROTO_SAY(say, v, VAULT_BIND, .name = s->name, .binding = s->binding, .add = s->add, .env = s->env) < 0)
        return not_said(err);
    if (expect(v, VAULT_BOUND, VAULT_BOUND_SHAPE(), &bound, err) < 0)
        return -1;
    if (v->n_secrets == VAULT_SECRETS_MAX)
        return malformed(err);
    snprintf(v->secrets[v->n_secrets++].id, VAULT_ID_TEXT + 1, "%s", bound.id);
    for (size_t i = 0; i < bound.n_part; i++) {
        const struct vault_part *part = &bound.part[i];
        if (memchr(part->placeholder, '\0', part->n_placeholder) != NULL)
            return malformed(err);
        if ((part->env[0] != '\0' &&
             add_env(v, &s->from, part->env, part->placeholder, part->n_placeholder, err) < 0) ||
            files_know(&v->known, s->name, part->env, part->placeholder, part->n_placeholder, err) < 0)
            return -1;
    }
    return check_hosts(p, s, bound.binding, err);
}

/* The user's policy, with room for more variables. */
static int
copy_policy(struct vault_link *v, const struct session *s, struct err *err)
{
    v->session = *s;
    v->policy = *s->policy;
    v->session.policy = &v->policy;
    v->policy.env = NULL;
    v->policy.n_env = 0;
    for (size_t i = 0; i < s->policy->n_env; i++) {
        const struct policy_env *e = &s->policy->env[i];
        if (e->value != NULL) {
            if (add_env(v, &e->from, e->name, (const uint8_t *)e->value, strlen(e->value), err) < 0)
                return -1;
            continue;
        }
        if (add_env(v, &e->from, e->name, (const uint8_t *)"", 0, err) < 0)
            return -1;
        free(v->env[i].value);
        v->env[i].value = NULL;
    }
    return 0;
}

int
vault_new_edge(struct live *l, struct err *err)
{
    struct vault_link *v = l->vault;
    cleanup_close int theirs = -1;
    int pair[2];

    if (v == NULL)
        return 0;
    close_fd(&l->vault_for_egress);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "vault.control", "socketpair");
    l->vault_for_egress = pair[0];
    theirs = pair[1];
    if (v->fd < 0)
        err_set(err, ERR_SYSTEM, "vault.ended", "cloche-vault has ended, so nothing that needs it is opened any more");
    else if (proto_send(v->fd, VAULT_EGRESS, VAULT_EGRESS_SHAPE(), NULL, theirs) == 0)
        return 0;
    else
        not_said(err);
    close_fd(&l->vault_for_egress);
    return -1;
}

static int
start_all(struct live *l, struct err *err)
{
    struct vault_link *v = l->vault;
    const struct policy *p = l->s->policy;
    struct nothing started;

    if (copy_policy(v, l->s, err) < 0 || start_program(v, err) < 0 || read_ca(v, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_secrets; i++)
        if (bind_one(v, p, &p->secrets[i], err) < 0)
            return -1;
    if (p->n_secret_files > 0 && (v->policy.run_files = v->files = files_make(p, &v->known, err)) == NULL)
        return -1;
    if (PROTO_SAY(say, v, VAULT_START, 0) < 0)
        return not_said(err);
    if (expect(v, VAULT_STARTED, VAULT_STARTED_SHAPE(), &started, err) < 0 || vault_new_edge(l, err) < 0)
        return -1;
    v->policy.run_ca = v->ca_pem;
    l->s = &v->session;
    vault_look(l);
    return 0;
}

/* Plain HTTP is looked at without a vault. */
static bool
looks_into_tls(const struct policy_list *hosts)
{
    struct host_pattern pattern;

    for (size_t i = 0; i < hosts->n; i++)
        if (hosts->v[i].scope != NULL &&
            (host_pattern_cloche(str_of(hosts->v[i].value), &pattern) != HOST_OK || pattern.port != 80))
            return true;
    return false;
}

bool
vault_wanted(const struct policy *p)
{
    return p->n_secrets > 0 || looks_into_tls(&p->allow_domains) || looks_into_tls(&p->deny_domains) ||
           (p->open_tls.v && p->network.v == NETWORK_ALLOWLIST);
}

int
vault_start(struct live *l, struct err *err)
{
    const struct policy *p = l->s->policy;

    if (!vault_wanted(p))
        return 0;
    l->vault = calloc(1, sizeof(*l->vault));
    if (l->vault == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    l->vault->fd = -1;
    if (start_all(l, err) == 0)
        return 0;
    return p->n_secrets > 0 ? -1 : err_wrap(err, "rules about requests and open-tls need the vault's CA, to open TLS");
}

/* --- what its values are recognised by ---------------------------------------------------------------------------- */

void
vault_masks(struct live *l, struct masks *set)
{
    struct vault_link *v = l->vault;
    struct vault_printed said;

    if (v == NULL || v->n_secrets == 0)
        return;
    if (v->fd < 0 || PROTO_SAY(say, v, VAULT_PRINT, .key = set->key) < 0 ||
        expect(v, VAULT_PRINTED, VAULT_PRINTED_SHAPE(), &said, NULL) < 0) {
        set->all = true;
        return;
    }
    for (size_t i = 0; i < said.n_form; i++) {
        const struct vault_form *f = &said.form[i];
        struct mask print = { .n = f->n, .roll = f->roll };
        memcpy(print.sum, f->sum, sizeof(print.sum));
        snprintf(print.name, sizeof(print.name), "[secret %.48s]", f->name);
        masks_add_print(set, &print);
    }
}

/* --- while it runs ------------------------------------------------------------------------------------------------ */

int
vault_fd(const struct live *l)
{
    return l->vault != NULL ? l->vault->fd : -1;
}

static void
pass_revocation(struct vault_link *v, size_t i)
{
    v->secrets[i].revoked = true;
    /* it has ended: then nothing is handed out either */
    (void)PROTO_SAY(say, v, VAULT_REVOKE, .id = v->secrets[i].id);
}

/* The list of revoked ids, when it has changed since it was last read. */
static void
read_revoked(struct vault_link *v)
{
    cleanup_buf struct buf text = BUF_INIT(REVOKED_MAX);
    char path[PATH_MAX + 16];
    struct stat st;

    snprintf(path, sizeof(path), "%s/revoked", v->folder);
    if (stat(path, &st) < 0 || (st.st_mtim.tv_sec == v->seen.tv_sec && st.st_mtim.tv_nsec == v->seen.tv_nsec &&
                                st.st_size == v->seen_size))
        return;
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return;
    v->seen = st.st_mtim;
    v->seen_size = st.st_size;
    for (size_t i = 0; i < v->n_secrets; i++)
        if (!v->secrets[i].revoked && text.n > 0 && memmem(text.p, text.n, v->secrets[i].id, VAULT_ID_TEXT) != NULL)
            pass_revocation(v, i);
}

void
vault_look(struct live *l)
{
    struct vault_link *v = l->vault;
    uint8_t byte;

    if (v == NULL || v->fd < 0)
        return;
    read_revoked(v);
    /* it says nothing unasked: what is readable is its end */
    if (io_recv(v->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return;
    cli_warn("cloche-vault has ended: no secret goes into a request any more");
    close_fd(&v->fd);
}

void
vault_stop(struct live *l)
{
    struct vault_link *v = l->vault;

    close_fd(&l->vault_for_egress);
    if (v == NULL)
        return;
    close_fd(&v->fd);
    if (v->pid > 0) {
        kill(v->pid, SIGKILL);
        while (waitpid(v->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (l->s == &v->session)
        l->s = NULL;
    for (size_t i = 0; i < v->policy.n_env && v->env != NULL; i++) {
        free(v->env[i].name);
        free(v->env[i].value);
    }
    free(v->env);
    files_free(v->files, v->policy.n_secret_files);
    files_forget(&v->known);
    free(v->ca_pem);
    free(v);
    l->vault = NULL;
}
