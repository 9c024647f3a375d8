/* keeper/keeper_park.c: a sandbox that is made ahead, and the interpreter that waits in it (match/parked.h)
 *
 * It is made as every other one is, and belongs to nobody: it is in no record, and there is no transcript of it. Its
 * interpreter is a command like others, started with an address layout and random numbers of its own. When somebody
 * takes it, its settings are read once more: where they are not the same it is not given, and another one is made.
 * The first command that it could have been started for is its job; any other one ends it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "keeper/keeper.h"
#include "launcher/serve.h"
#include "match/parked.h"
#include "match/path.h"

#define WINDOW   (256U * 1024)          /* of output, as every command has it */
#define SLOW_US  1000000                /* to take its job */
#define JOB_MAX  (MSG_EXEC_MAX)         /* bytes of an environment */

/* --- which ones --------------------------------------------------------------------------------------------------- */

/* What a sandbox shows of the host's files, or reaches outside, is looked at when it is made: not ahead. */
static bool
can_wait(const struct policy *p)
{
    return p->view.v == VIEW_PRIVATE && (p->mode.v == MODE_STANDARD || p->mode.v == MODE_MAX) &&
           p->workspace.kind == WORKSPACE_TMPFS && p->network.v == NETWORK_NONE && p->n_binds == 0 &&
           p->n_secrets == 0 && p->n_secret_files == 0 && p->allow_write.n == 0 && p->allow_read.n == 0 &&
           p->unix_sockets.n == 0 && !p->all_unix_sockets.v && p->publish.n == 0 && p->extra_ca.n == 0 &&
           p->registries.n == 0 && p->preset.p == NULL;
}

/* What its settings come to, as they are now; of an agent's, also the ceiling that it was held to. */
static int
print_of(const struct keeper_live *k, uint8_t bounds, const char *text, uint8_t out[SHA256_SIZE], struct err *err)
{
    cleanup_policy struct policy p = { .srt = false }, ceiling = { .srt = false };
    cleanup_buf struct buf print = BUF_INIT(EDGE_PRINT_MAX);

    if (keeper_policy_read(k, &p, text, bounds, err) < 0 || keeper_print_policy(&p, &print, err) < 0)
        return -1;
    if ((bounds & EDGE_BOUNDED) != 0 && (keeper_policy_read(k, &ceiling, "", 0, err) < 0 ||
                                         keeper_print_policy(&ceiling, &print, err) < 0))
        return -1;
    if (!can_wait(&p))
        return err_set(err, ERR_UNSUPPORTED, "pool.policy", "a sandbox with that policy is not made ahead");
    sha256_of(print.p, print.n, out);
    return 0;
}

int
park_plan(struct keeper_live *k, const struct keep_make *m, struct err *err)
{
    struct keeper_park *p = &k->park;

    if (m->parks[0] == '\0')
        return 0;
    p->language = language_in(languages, LANGUAGES, m->parks);
    if (p->language == NULL || p->language->parked == NULL)
        return err_set(err, ERR_UNSUPPORTED, "pool.language", "no interpreter of that language is started ahead");
    p->policy = strdup(m->policy);
    if (p->policy == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return print_of(k, m->bounds, m->policy, p->print, err);
}

void
park_step(struct keeper_live *k)
{
    if (k->park.language != NULL)
        PROTO_SAY(keeper_say, k, EDGE_STEP, .seconds = sandbox_facts(k->l.sb)->start_s);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

const char *
keeper_variable(const char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; *env != NULL; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

/* The file that is its interpreter, now. What can wait has the system's folders of the host, where they are. */
static void
program_of(const struct keeper_live *k, struct stat *out)
{
    const char *path = keeper_variable(sandbox_facts(k->l.sb)->env, "PATH"), *name = k->park.language->program;
    char at[PATH_MAX];
    struct str folder;

    while (path_list_next(&path, &folder))
        if (folder.p[0] == '/' &&
            snprintf(at, sizeof(at), "%.*s/%s", (int)folder.n, folder.p, name) < (int)sizeof(at) &&
            stat(at, out) == 0 && S_ISREG(out->st_mode) && (out->st_mode & 0111) != 0)
            return;
    memset(out, 0, sizeof(*out));
}

/* It was not replaced, as an upgrade does it, nor is another one found before it. */
static bool
is_same_program(const struct keeper_live *k)
{
    const struct stat *was = &k->park.program;
    struct stat is;

    program_of(k, &is);
    return is.st_dev == was->st_dev && is.st_ino == was->st_ino && is.st_ctim.tv_sec == was->st_ctim.tv_sec &&
           is.st_ctim.tv_nsec == was->st_ctim.tv_nsec;
}

/* A command that is not one of its owner's: without a terminal, in the sandbox's own folder. */
static int
start_program(struct keeper_live *k, const char *const *argv, const char *const *env, uint16_t *channel,
              struct err *err)
{
    struct guest_exec x = GUEST_EXEC_INIT;

    x.argv = argv;
    x.env = env;
    x.cwd = "";
    x.umask = 022;
    x.window = WINDOW;
    x.flags = MSG_EXEC_QUIET;
    return guest_client_exec(k->l.client, &x, channel, err);
}

int
park_begin(struct keeper_live *k, struct err *err)
{
    const char *const *env = sandbox_facts(k->l.sb)->env;

    if (keeper_variable(env, "PYTHONPATH") != NULL)
        return err_set(err, ERR_UNSUPPORTED, "pool.policy", "PYTHONPATH is set");
    prctl(PR_SET_NAME, "cloche-pooled");
    k->park.waits = true;
    park_step(k);
    program_of(k, &k->park.program);
    return start_program(k, k->park.language->parked, env, &k->park.channel, err);
}

static void
say_parked(struct keeper_live *k)
{
    struct sandbox_now now = { .memory = 0 };

    sandbox_now(k->l.sb, &now);
    k->park.ready = true;
    PROTO_SAY(keeper_say, k, EDGE_PARKED, .count = now.memory);
}

/* It could not be started. */
static void
not_parked(struct keeper_live *k)
{
    struct err err = ERR_INIT;

    err_set(&err, ERR_UNSUPPORTED, "pool.interpreter", "%s did not start as one that waits", k->park.language->program);
    PROTO_SAY(keeper_say, k, EDGE_NOT_MADE, .why = err);
    k->told_gone = true;
    keeper_gone(k, err.msg);
}

bool
park_event(struct keeper_live *k, const struct guest_event *ev)
{
    struct keeper_park *p = &k->park;
    bool marker = ev->type == GUEST_STDOUT && ev->data.n == 1 && ev->data.p[0] == PARKED;

    if (p->channel == 0 || ev->channel != p->channel || (ev->type >= GUEST_FILE_DATA && ev->type <= GUEST_FILE_FAILED))
        return false;
    if (ev->type == GUEST_EXIT || ev->type == GUEST_EXEC_FAILED)
        p->channel = 0;
    if (!p->waits || ev->type == GUEST_STDIN_READY || ev->type == GUEST_STARTED)
        return true;
    if (marker && !p->ready) {
        (void)guest_client_window(k->l.client, p->channel, MSG_STREAM_OUT, 1, NULL);
        say_parked(k);
    } else if (p->ready) {
        keeper_gone(k, "its interpreter did not wait");
    } else {
        not_parked(k);
    }
    return true;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

int
park_take(struct keeper_live *k, struct err *err)
{
    uint8_t print[SHA256_SIZE];

    if (!k->park.ready)
        return err_set(err, ERR_DENIED, "pool.not-ready", "the sandbox is not ready to be taken");
    /* without a file of settings all of it is text that this process has had since it was started */
    if (k->daemon.settings[0] != '\0' && print_of(k, k->bounds, k->park.policy, print, err) < 0)
        return -1;
    if (k->daemon.settings[0] != '\0' && memcmp(print, k->park.print, sizeof(print)) != 0)
        return err_set(err, ERR_DENIED, "pool.changed", "settings changed since the sandbox was made");
    if (!is_same_program(k))
        return err_set(err, ERR_DENIED, "pool.changed", "%s was replaced since it was started",
                       k->park.language->program);
    k->park.waits = false;
    k->still = true;        /* nothing but its interpreter has lived in it */
    prctl(PR_SET_NAME, KEEPER_NAME);
    clock_gettime(CLOCK_REALTIME, &k->r.started);
    return 0;
}

/* Variables that an interpreter, or what is linked into it, looks at while it starts. */
static bool
is_early(const char *entry)
{
    static const char *const early[] = { "PATH=", "HOME=", "PYTHON", "NODE_", "UV_", "LD_", "LC_", "LANG", "LOCPATH=",
                                         "TZ", "MALLOC_", "GLIBC_", "GCONV_", "OPENSSL_", "SSL_", "ICU_", "TMPDIR=" };

    for (size_t i = 0; i < ARRAY_LEN(early); i++)
        if (strncmp(entry, early[i], strlen(early[i])) == 0)
            return true;
    return false;
}

/* A folder of packages in a workspace where nobody has put any. */
static bool
is_packages(const struct keeper_live *k, const char *entry)
{
    const char *name = k->park.language->packages, *root = sandbox_facts(k->l.sb)->root;
    size_t n = name != NULL ? strlen(name) : 0, m = strlen(root);

    return n > 0 && !k->park.touched && strncmp(entry, name, n) == 0 && entry[n] == '=' &&
           strncmp(entry + n + 1, root, m) == 0 && entry[n + 1 + m] == '/' && strpbrk(entry + n + 1, ":") == NULL &&
           strstr(entry, "/..") == NULL;
}

/* Where packages of its user would be is in the workspace, and something was put there. */
static bool
has_users_packages(const struct keeper_live *k, const char *const *env)
{
    static const char *const folders[] = { "HOME", "PYTHONUSERBASE" };
    const char *root = sandbox_facts(k->l.sb)->root, *at;

    for (size_t i = 0; k->park.touched && i < ARRAY_LEN(folders); i++)
        if ((at = keeper_variable(env, folders[i])) != NULL && strncmp(at, root, strlen(root)) == 0)
            return true;
    return false;
}

static bool
fits(const struct keeper_live *k, const struct edge_op *want, const char *const *env)
{
    const struct language *l = k->park.language;
    unsigned other = want->flags & (OP_PTY | OP_BACKGROUND | OP_LIMITS);

    if (!k->park.ready || k->park.channel == 0 || (want->flags & OP_STDIN) == 0 || other != 0 ||
        want->path[0] != '\0' || has_users_packages(k, env))
        return false;
    for (size_t i = 0; i < want->n_argv || l->argv[i] != NULL; i++)
        if (i >= want->n_argv || l->argv[i] == NULL || strcmp(l->argv[i], want->argv[i]) != 0)
            return false;
    for (size_t i = 0; i < want->n_env; i++)
        if (is_early(want->env[i]) && !is_packages(k, want->env[i]))
            return false;
    return true;
}

bool
park_feed(struct op *o)
{
    struct keeper_park *p = &o->k->park;
    size_t taken = 1;

    if (p->op != o)
        return true;
    while (taken > 0 && p->at < p->job.n &&
           guest_client_stdin(o->k->l.client, o->channel, p->job.p + p->at, p->job.n - p->at, &taken, NULL) == 0)
        p->at += taken;
    return false;
}

void
park_time(struct op *o, uint64_t now)
{
    if (o->k->park.op == o && clock_since(now, o->begin_us) >= SLOW_US)
        (void)guest_client_signal(o->k->l.client, o->channel, SIGKILL, SIGNAL_GROUP, NULL);
}

/* In its place one is started as always: nothing but its job was said to it. */
static int
start(struct op *o, struct err *err)
{
    struct keeper_live *k = o->k;
    const char *text = (const char *)k->park.job.p + PARKED_SIZE, *end = (const char *)k->park.job.p + k->park.job.n;
    cleanup_free const char **env = NULL;
    size_t n = 0;

    for (const char *at = text; at < end; at += strlen(at) + 1)
        n++;
    env = calloc(n + 1, sizeof(*env));
    if (env == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    n = 0;
    for (const char *at = text; at < end; at += strlen(at) + 1)
        env[n++] = at;
    return start_program(k, k->park.language->argv, env, &o->channel, err);
}

bool
park_answer(struct op *o, const struct guest_event *ev)
{
    struct keeper_live *k = o->k;
    struct err err = ERR_INIT;

    if (k->park.op != o)
        return false;
    if (ev->type == GUEST_STDIN_READY)
        return true;        /* one that is dead takes none: what is for its code is kept for the next one */
    if (ev->type == GUEST_STDOUT && ev->data.n == 1 && ev->data.p[0] == PARKED) {
        (void)guest_client_window(k->l.client, o->channel, MSG_STREAM_OUT, 1, NULL);
        park_forget(o);
        return true;
    }
    if ((ev->type != GUEST_EXIT && ev->type != GUEST_EXEC_FAILED) || o->timed_out || o->edge.fd < 0) {
        if (ev->type == GUEST_EXIT || ev->type == GUEST_EXEC_FAILED)
            park_forget(o);
        return false;
    }
    if (start(o, &err) < 0) {
        park_forget(o);
        op_say_failed(o, &err);
        op_ended(o);
        return true;
    }
    park_forget(o);
    return true;
}

void
park_forget(struct op *o)
{
    struct keeper_park *p = &o->k->park;

    if (p->op != o)
        return;
    p->op = NULL;
    buf_free(&p->job);
}

bool
park_exec(struct op *o, const struct edge_op *want, const char *const *env)
{
    struct keeper_live *k = o->k;
    struct keeper_park *p = &k->park;
    char size[PARKED_SIZE + 1];
    size_t n = 0;

    if (p->language == NULL || p->channel == 0)
        return false;
    p->job = (struct buf)BUF_INIT(JOB_MAX + PARKED_SIZE);
    for (size_t i = 0; env[i] != NULL; i++)
        n += strlen(env[i]) + 1;
    snprintf(size, sizeof(size), "%08zx", n);
    buf_puts(&p->job, size);
    for (size_t i = 0; env[i] != NULL; i++)
        buf_append(&p->job, env[i], strlen(env[i]) + 1);
    if (!fits(k, want, env) || !buf_ok(&p->job)) {
        buf_free(&p->job);
        (void)guest_client_signal(k->l.client, p->channel, SIGKILL, SIGNAL_GROUP, NULL);
        return false;       /* its end is heard in park_event() */
    }
    o->channel = p->channel;
    p->channel = 0;
    p->op = o;
    p->at = 0;
    (void)park_feed(o);
    return true;
}

void
park_free(struct keeper_live *k)
{
    buf_free(&k->park.job);
    free(k->park.policy);
    k->park.policy = NULL;
}
