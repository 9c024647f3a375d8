/* prove/prove_trial.c: sandboxes of prove's own, and what is tried in them (see prove.h, probe/catalog.h)
 *
 * What a mode does with a project, a home full of credentials, limits and a network by name does not depend on the
 * caller's having any of them. So prove makes them, below one folder of /tmp, and starts `cloche run` on them as
 * anybody would: through the supervisor, with what it counts and carries. The trials of one mode run beside each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "probe/catalog.h"
#include "probe/places.h"
#include "probe/probe_image.h"
#include "program/json.h"
#include "prove/prove.h"
#include "prove/prove_trial.h"

#define TRIAL_MS    120000      /* one that hangs; a busy machine is given the time */
#define LOOK_MS     10          /* until the rights of cloche-egress were seen */
#define TRIALS_AT_ONCE 11
#define TRIAL_ARGS  112
#define NOBODY      65534
/* A rule about requests needs certificates, so there is a vault. */
#define RULES       "rules.json"
#define RULES_BEGIN "{\"version\": 1, \"network\": {\"allow\": [{\"host\": \"" SCOPED_HOST "\", " \
                    "\"methods\": [\"GET\"], \"path\": \"" SCOPED_PATH "**\"}"
#define RULES_ROOM  2048
#define MIB         (1024UL * 1024)

/* The host's table of names, for the trials of the network. */
static const char hosts_text[] = "127.0.0.1 localhost\n"
#define LINE(name, address) address " " name ".cloche-prove.invalid\n"
    LED_NAMES(LINE) LINE(LED_BOTH, LED_BOTH_FIRST) LINE(LED_BOTH, LED_BOTH_SECOND);
#undef LINE

/* The limits that are gone over: small, so that it costs little. */
#define MEMORY (96 * MIB)
#define DISK   (16 * MIB)
#define PIDS   24
#define NOFILE 64
#define OUTPUT (64UL * 1024)

enum trial_kind { KIND_STAGE, KIND_MEMORY, KIND_SHARED, KIND_SOCKETS, KIND_DATAGRAMS, KIND_TIME, KIND_OUTPUT };

struct trial {
    enum trial_kind kind;
    const char *word;           /* the probe's */
    const char *suffix;         /* of the checks' ids: ".host-view", or "" */
    enum trial_stage stage;     /* KIND_STAGE */
    char dir[128], project[160], home[160], hidden[192];
    char beside[160];           /* in which @hidden lies */
    char inside[192];           /* the project, inside */
    bool own_root;
    char left[24];              /* how a process is called that it leaves behind */
    int doors[2];               /* listen in the project; -1 */
    struct service_rights egress, vault;
    char words[TRIAL_ARGS][224];
    size_t n;
    pid_t pid;
    int fd;
    struct buf out;
};

static const struct trial_row {
    const char *id;
    enum trial_stage stage;
    const char *wall, *requirement, *title;
} rows[] = {
#define ROW(fn, id, stage, wall, requirement, title) { id, stage, wall, requirement, title },
    TRIALS(ROW)
#undef ROW
};

#define N_ROWS ARRAY_LEN(rows)

/* --- one trial's command line ------------------------------------------------------------------------------------- */

static void word(struct trial *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
word(struct trial *t, const char *fmt, ...)
{
    va_list ap;

    if (t->n == TRIAL_ARGS)
        abort();
    va_start(ap, fmt);
    vsnprintf(t->words[t->n++], sizeof(t->words[0]), fmt, ap);
    va_end(ap);
}

static void
words(struct trial *t, const char *name, const char *value)
{
    word(t, "%s", name);
    word(t, "%s", value);
}

static void
number(struct trial *t, const char *name, unsigned long value)
{
    word(t, "%s", name);
    word(t, "%lu", value);
}

static bool
has_network(const struct trial *t)
{
    return t->kind == KIND_STAGE && t->stage == STAGE_NETWORK;
}

static void
network_arguments(struct trial *t)
{
    word(t, "--settings");
    word(t, "%s/" RULES, t->dir);
    words(t, "--allow-domain", "cloche-prove.invalid");
    words(t, "--allow-domain", "*.cloche-prove.invalid");
    words(t, "--deny-domain", "denied.cloche-prove.invalid");
    words(t, "--allow-domain", LED_BOTH_FIRST ":443");
}

/* With what no rule opens, named by rules: a file may have them, a command line is refused for them. */
static int
plant_rules(const struct plant *p, const char *dir, const struct bait *b)
{
    static const char *const never[] = {
        "127.0.0.1", "localhost", "169.254.169.254", "[::1]", "168.63.129.16", "100.100.100.200", "192.0.0.192",
        "[fd00:ec2::254]", "metadata.google.internal", "metadata.goog", "224.0.0.1", "255.255.255.255",
    };
    cleanup_buf struct buf text = BUF_INIT(RULES_ROOM);
    char rule[128];

    buf_puts(&text, RULES_BEGIN);
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        snprintf(rule, sizeof(rule), ", \"%s:%u\"", never[i], b->tcp_port);
        buf_puts(&text, rule);
    }
    if (b->own_address[0] != '\0') {
        snprintf(rule, sizeof(rule), ", \"%s:%u\"", b->own_address, b->tcp_port);
        buf_puts(&text, rule);
    }
    if (buf_puts(&text, "]}}\n") < 0)
        return err_set(p->err, ERR_SYSTEM, "memory", "out of memory");
    return plant_file(p, dir, RULES, (const char *)text.p, text.n, 0644);
}

static void
arguments(struct trial *t, const struct bait *b, enum policy_mode mode)
{
    bool tried = t->kind == KIND_STAGE && t->stage == STAGE_PROJECT;

    word(t, "run");
    word(t, "--json");
    words(t, "--audit", "off");
    words(t, "--mode", policy_mode_name(mode));
    if (strcmp(t->suffix, ".host-view") == 0)
        words(t, "--view", "host");
    word(t, "--workspace");
    word(t, "%s:%s", t->project, tried ? "rw" : t->kind == KIND_STAGE && t->stage == STAGE_COPY ? "cow" : "ro");
    if (tried) {
        static const char *const variables[] = REFUSED_VARIABLES;

        words(t, "--env", PASSED_VARIABLE);
        for (size_t i = 0; i < ARRAY_LEN(variables); i++)
            words(t, "--env", variables[i]);
        word(t, "--deny-read");
        word(t, "%s/to-behind", t->beside);
        word(t, "--deny-write");
        word(t, "%s/closed", t->project);
        word(t, "--deny-write");
        word(t, "%s/closed-later", t->project);
        words(t, "--deny-read", t->hidden);
        word(t, "--deny-read");
        word(t, "%s/" SHUT_FOLDER "/token", t->beside);
        word(t, "--deny-read");
        word(t, "%s/d/e/e/p/e/r/shut-t*/token", t->beside);
        word(t, "--deny-read");
        word(t, "%s/absent-read", t->project);
        word(t, "--deny-read");
        word(t, "%s/beside", t->dir);
    }
    /* and of the disk what the mode gives: no part of that may be had as memory */
    if (t->kind >= KIND_MEMORY && t->kind <= KIND_DATAGRAMS)
        number(t, "--memory", MEMORY);
    if (t->kind == KIND_TIME) {
        words(t, "--timeout", "600ms");
        words(t, "--grace", "600ms");
    } else {
        words(t, "--timeout", "110s");
    }
    if (t->kind == KIND_OUTPUT)
        number(t, "--output", OUTPUT);
    if (t->kind == KIND_STAGE && t->stage == STAGE_LIMITS) {
        number(t, "--pids", PIDS);
        number(t, "--disk", DISK);
        number(t, "--nofile", NOFILE);
    }
    if (has_network(t))
        network_arguments(t);
    word(t, "--");
    word(t, "%s/probe", t->inside);
    word(t, "%s", t->word);
    words(t, "--mode", policy_mode_name(mode));
    words(t, "--project", t->inside);
    words(t, "--home", t->home);
    word(t, "--token");
    word(t, "%s:", b->name);
    if (t->own_root)
        word(t, "--private");
    number(t, "--tcp-port", b->tcp_port);
    if (tried) {
        words(t, "--leave", t->left);
        word(t, "--hidden");
        word(t, "%s", t->own_root ? "/workspace/hidden" : t->hidden);
    }
    number(t, "--limit-memory", MEMORY);
    number(t, "--limit-pids", PIDS);
    number(t, "--limit-disk", DISK);
    number(t, "--limit-nofile", NOFILE);
    number(t, "--limit-output", OUTPUT);
    words(t, "--allowed", "cloche-prove.invalid");
    if (b->own_address[0] != '\0')
        words(t, "--own-address", b->own_address);
}

static int
prepare(struct trial *t, const struct bait *b, enum policy_mode mode, size_t nth, struct err *err)
{
    /* light as root refuses to write to root's own folders */
    struct plant p = { b, mode == MODE_LIGHT && geteuid() == 0 ? NOBODY : (uid_t)-1, err };
    struct plant ours = { b, (uid_t)-1, err };

    snprintf(t->dir, sizeof(t->dir), "%s/%zu-%s", b->trials, nth, policy_mode_name(mode));
    snprintf(t->project, sizeof(t->project), "%s/project", t->dir);
    snprintf(t->home, sizeof(t->home), "%s/home", t->dir);
    /* Landlock cannot take a part of an opened folder away: mode light hides what lies beside it */
    snprintf(t->beside, sizeof(t->beside), "%s", mode == MODE_LIGHT ? t->dir : t->project);
    snprintf(t->hidden, sizeof(t->hidden), "%s/hidden", t->beside);
    snprintf(t->inside, sizeof(t->inside), "%s", t->own_root ? "/workspace" : t->project);
    snprintf(t->left, sizeof(t->left), "%.12s-%zu", b->name, nth);
    t->fd = t->doors[0] = t->doors[1] = -1;
    t->pid = -1;
    t->out = (struct buf)BUF_INIT(PROVE_OUTPUT_MAX);
    if (mkdir(t->dir, 0755) < 0 || chmod(t->dir, 0755) < 0)
        return err_sys(err, errno, "prove.trial", "%s", t->dir);
    if (plant_file(&p, t->dir, "project/", "", 0, 0) < 0 || plant_file(&ours, t->dir, "home/", "", 0, 0) < 0 ||
        plant_project(&p, t->project) < 0 || plant_home(&ours, t->home) < 0 ||
        plant_token(&p, t->beside, "hidden/token", 'C', 0644) < 0 ||
        plant_file(&p, t->project, "probe", probe_image, probe_image_size, 0755) < 0)
        return -1;
    arguments(t, b, mode);
    if (plant_rules(&ours, t->dir, b) < 0)
        return -1;
    if (plant_file(&ours, t->dir, TRIAL_HOSTS, hosts_text, sizeof(hosts_text) - 1, 0644) < 0)
        return -1;
    if (t->kind != KIND_STAGE || t->stage != STAGE_PROJECT)
        return 0;
    return trial_corners_prepare(&p, t->dir, t->project, t->beside) < 0
               ? -1 : trial_outside_prepare(t->dir, t->project, p.owner, t->doors, err);
}

/* --- running it --------------------------------------------------------------------------------------------------- */

static _Noreturn void
become_run(struct trial *t, int out)
{
    bool project = t->kind == KIND_STAGE && t->stage == STAGE_PROJECT;
    char *argv[TRIAL_ARGS + 2], name[] = "cloche", home[192], data[192];
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", user[] = "USER=cloche-prove";
    static const char *const variables[] = REFUSED_VARIABLES;
    char passed[] = PASSED_VARIABLE "=1", refused[ARRAY_LEN(variables)][64];
    char *env[6 + ARRAY_LEN(variables)] = { home, path, user, data, passed };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(home, sizeof(home), "HOME=%s", t->home);
    /* whose cloche/ is the folder of secrets */
    snprintf(data, sizeof(data), "XDG_DATA_HOME=%s/data", project ? t->project : t->dir);
    if (project && geteuid() == 0)
        trial_corners_mount(t->dir);
    if (t->kind == KIND_STAGE && t->stage == STAGE_LIMITS)
        trial_outside_precedence();
    if (has_network(t) && geteuid() == 0)
        trial_outside_names(t->dir);
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        snprintf(refused[i], sizeof(refused[i]), "%s=/cloche-prove", variables[i]);
        env[5 + i] = refused[i];
    }
    argv[0] = name;
    for (size_t i = 0; i < t->n; i++)
        argv[i + 1] = t->words[i];
    argv[t->n + 1] = NULL;
    if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 || chdir(t->project) < 0)
        _exit(125);
    execve("/proc/self/exe", argv, env);
    _exit(125);
}

static int
start(struct trial *t, struct err *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys(err, errno, "prove.trial", "pipe");
    t->fd = pair[0];
    t->pid = fork();
    if (t->pid == 0)
        become_run(t, pair[1]);
    close(pair[1]);
    return t->pid < 0 ? err_sys(err, errno, "prove.trial", "fork") : 0;
}

/* False: there is nothing more to see. */
static bool
look_at_services(struct trial *t)
{
    if (t->egress.confined && t->vault.confined)
        return false;
    if (!t->egress.confined)
        trial_outside_service(t->pid, "cloche-egress", true, &t->egress);
    if (!t->vault.confined)
        trial_outside_service(t->pid, "cloche-vault", false, &t->vault);
    if (t->egress.confined && t->vault.confined)
        trial_outside_seen(t->project);
    return true;
}

static void
follow(struct trial *all, size_t n)
{
    uint64_t deadline = clock_ms() + TRIAL_MS;
    char chunk[16384];

    for (;;) {
        struct pollfd p[TRIALS_AT_ONCE];
        size_t open_ = 0;
        bool looking = false;

        for (size_t i = 0; i < n; i++) {
            p[i] = (struct pollfd){ .fd = all[i].fd, .events = POLLIN };
            open_ += all[i].fd >= 0;
            if (all[i].fd >= 0 && has_network(&all[i]))
                looking = look_at_services(&all[i]) || looking;
        }
        if (open_ == 0 || clock_ms() > deadline)
            return;
        if (poll(p, n, looking ? LOOK_MS : 1000) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < n; i++) {
            ssize_t got = p[i].fd >= 0 && p[i].revents != 0 ? read(p[i].fd, chunk, sizeof(chunk)) : 1;
            if (got <= 0 || (p[i].revents != 0 && buf_append(&all[i].out, chunk, (size_t)got) < 0))
                close_fd(&all[i].fd);
        }
    }
}

static void
finish(struct trial *t)
{
    if (t->pid <= 0)
        return;
    if (t->fd >= 0)
        kill(t->pid, SIGKILL);      /* too long */
    close_fd(&t->fd);
    while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* --- what came of it ---------------------------------------------------------------------------------------------- */

static const json_t *
find(const json_t *result, const char *id)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(result, "attacks"), i, item)
        if (strcmp(json_text(item, "id"), id) == 0)
            return item;
    return NULL;
}

static void
prove_trial_add(struct proof *p, const struct trial *t, const struct trial_row *row, enum check_state state,
                const char *detail)
{
    char id[64];

    snprintf(id, sizeof(id), "trial.%s%s", row->id, t->suffix);
    proof_add(p, id, row->wall, row->requirement, row->title, "trial", state, "%s", detail);
}

/* Does somebody keep the limit @name, by the run's own word? Where nobody does, the user was told: it is no promise. */
static bool
kept(const json_t *report, const char *name)
{
    const json_t *limit = json_object_get(json_object_get(report, "limits"), name);

    return strcmp(json_text(limit, "enforced_by"), "none") != 0;
}

static void
judge_stage(struct proof *p, const struct trial *t, const json_t *report)
{
    json_error_t where;
    const char *text = json_text(report, "stdout");
    json_t *result = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    char seen[300];

    for (size_t i = 0; i < N_ROWS; i++) {
        const json_t *got = find(result, rows[i].id);
        const char *outcome = json_text(got, "outcome"), *detail = json_text(got, "detail");
        enum check_state state = strcmp(outcome, "blocked") == 0          ? CHECK_HELD
                                 : strcmp(outcome, "not-applicable") == 0 ? CHECK_NOT_APPLICABLE
                                                                          : CHECK_SURPRISE;

        if (rows[i].stage != t->stage)
            continue;
        if (state == CHECK_SURPRISE && strcmp(rows[i].id, "limit.pids") == 0 && !kept(report, "pids"))
            state = CHECK_NOT_PROMISED;
        /* what only outside can tell */
        if (state == CHECK_HELD && strcmp(rows[i].id, "project.leaves") == 0) {
            state = trial_outside_left(t->left, seen, sizeof(seen)) ? CHECK_SURPRISE : CHECK_HELD;
            detail = seen;
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "copy.apart") == 0) {
            state = trial_outside_changed(t->project, seen, sizeof(seen)) ? CHECK_SURPRISE : CHECK_HELD;
            detail = seen;
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "project.protected-present") == 0) {
            state = trial_outside_configured(t->project, seen, sizeof(seen)) ? CHECK_SURPRISE : CHECK_HELD;
            detail = seen;
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "egress.rights") == 0) {
            state = t->egress.confined ? CHECK_HELD : CHECK_SURPRISE;
            detail = t->egress.seen ? t->egress.detail : "it was not seen";
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "egress.hello") == 0) {
            state = trial_outside_hello(report, seen, sizeof(seen)) ? CHECK_HELD : CHECK_SURPRISE;
            detail = seen;
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "vault.rights") == 0) {
            state = t->vault.confined ? CHECK_HELD : CHECK_SURPRISE;
            detail = t->vault.seen ? t->vault.detail : "it was not seen";
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "project.linked") == 0) {
            state = trial_outside_written(t->dir, false, seen, sizeof(seen)) ? CHECK_SURPRISE : CHECK_HELD;
            detail = seen;
        } else if (state == CHECK_HELD && strcmp(rows[i].id, "project.last-name") == 0) {
            state = trial_outside_written(t->dir, true, seen, sizeof(seen)) ? CHECK_SURPRISE : CHECK_HELD;
            detail = seen;
        }
        prove_trial_add(p, t, &rows[i], state, got != NULL ? detail : json_text(report, "stderr"));
    }
    json_decref(result);
}

static void
judge_end(struct proof *p, const struct trial *t, const json_t *report)
{
    static const struct trial_row ends[] = {
        [KIND_MEMORY] = { "limit.memory", 0, "limits", "R65", "what takes more memory than the limit is ended" },
        [KIND_SHARED] = { "limit.memory.shared", 0, "limits", "R65",
                          "what shares more memory than the limit is ended" },
        [KIND_SOCKETS] = { "limit.memory.sockets", 0, "limits", "R65",
                           "what fills sockets with more than the memory limit is ended" },
        [KIND_DATAGRAMS] = { "limit.memory.datagrams", 0, "limits", "R65",
                             "what lies in the network's sockets is not more than the memory limit" },
        [KIND_TIME] = { "limit.time", 0, "limits", "R65", "what takes more time than the limit is ended" },
        [KIND_OUTPUT] = { "limit.output", 0, "limits", "R65", "no more output than the limit is taken" },
    };
    static const char *const names[] = { [KIND_MEMORY] = "memory_bytes", [KIND_SHARED] = "memory_bytes",
                                         [KIND_SOCKETS] = "memory_bytes",
                                         [KIND_DATAGRAMS] = "memory_bytes", [KIND_TIME] = "time_ms",
                                         [KIND_OUTPUT] = "output_bytes" };
    const char *out = json_text(report, "stdout");
    bool lived = strstr(out, "lived") != NULL;
    /* a machine may be so busy that the time is over before anything is said */
    bool began = out[0] != '\0' || strcmp(json_text(report, "reason"), "timeout") == 0;
    char detail[200];

    if (!began) {
        prove_trial_add(p, t, &ends[t->kind], CHECK_SURPRISE, "it did not begin: nothing was tried");
        return;
    }
    if (t->kind == KIND_OUTPUT) {
        const char *errors = json_text(report, "stderr");
        lived = strlen(out) > OUTPUT || strlen(errors) > OUTPUT;
        snprintf(detail, sizeof(detail), "%zu and %zu bytes came, where %lu are the limit of each", strlen(out),
                 strlen(errors), OUTPUT);
    } else {
        snprintf(detail, sizeof(detail), "%s: %s", lived ? "it lived on" : "ended", json_text(report, "reason"));
    }
    prove_trial_add(p, t, &ends[t->kind],
                    !lived ? CHECK_HELD : kept(report, names[t->kind]) ? CHECK_SURPRISE : CHECK_NOT_PROMISED, detail);
}

static void
judge(struct proof *p, const struct trial *t)
{
    static const struct trial_row started = { "started", 0, "files", "R80", "a sandbox of prove's own could be tried" };
    json_error_t where;
    json_t *report = json_loadb((const char *)t->out.p, t->out.n, JSON_DISABLE_EOF_CHECK, &where);
    const json_t *error = json_object_get(report, "error");
    char detail[300];

    if (report == NULL || error != NULL) {
        /* no sandbox is no hole; but neither was anything tried */
        snprintf(detail, sizeof(detail), "%s%s: %.200s", t->word, t->suffix,
                 error != NULL ? json_text(error, "message") : t->out.n > 0 ? (const char *)t->out.p : "no report");
        /* what the host lacks is said so; that our own policy is refused is a mistake of ours, and nothing was tried */
        prove_trial_add(p, t, &started,
                        error != NULL && strncmp(json_text(error, "code"), "policy.", 7) != 0
                            ? CHECK_NOT_APPLICABLE : CHECK_SURPRISE, detail);
    } else if (t->kind == KIND_STAGE) {
        judge_stage(p, t, report);
    } else {
        judge_end(p, t, report);
    }
    json_decref(report);
}

/* --- which -------------------------------------------------------------------------------------------------------- */

static size_t
choose(enum policy_mode mode, struct trial *t)
{
    bool boxed = mode != MODE_LIGHT;
    size_t n = 0;

    t[n++] = (struct trial){ .word = "project", .suffix = "", .stage = STAGE_PROJECT, .own_root = boxed };
    t[n++] = (struct trial){ .kind = KIND_MEMORY, .word = "memory", .suffix = "", .own_root = boxed };
    t[n++] = (struct trial){ .kind = KIND_SHARED, .word = "memory-shared", .suffix = "", .own_root = boxed };
    /* without a network of its own nobody counts them */
    if (boxed) {
        t[n++] = (struct trial){ .kind = KIND_SOCKETS, .word = "memory-sockets", .suffix = "", .own_root = true };
        t[n++] = (struct trial){ .kind = KIND_DATAGRAMS, .word = "memory-datagrams", .suffix = "", .own_root = true };
    }
    if (boxed)
        t[n++] = (struct trial){ .word = "limits", .suffix = "", .stage = STAGE_LIMITS, .own_root = true };
    if (mode != MODE_STANDARD)
        return n;
    t[n++] = (struct trial){ .word = "project", .suffix = ".host-view", .stage = STAGE_PROJECT };
    t[n++] = (struct trial){ .word = "network", .suffix = "", .stage = STAGE_NETWORK, .own_root = true };
    t[n++] = (struct trial){ .word = "copy", .suffix = "", .stage = STAGE_COPY, .own_root = true };
    t[n++] = (struct trial){ .kind = KIND_TIME, .word = "time", .suffix = "", .own_root = true };
    t[n++] = (struct trial){ .kind = KIND_OUTPUT, .word = "output", .suffix = "", .own_root = true };
    return n;
}

int
trials_check(struct proof *p, const struct bait *b, struct err *err)
{
    struct trial *t = calloc(TRIALS_AT_ONCE, sizeof(*t));
    size_t n;
    int rc = 0;

    if (t == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    n = choose(p->policy->mode.v, t);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = prepare(&t[i], b, p->policy->mode.v, i, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = start(&t[i], err);
    if (rc == 0)
        follow(t, n);
    for (size_t i = 0; i < n; i++) {
        finish(&t[i]);
        if (t[i].beside[0] != '\0')
            trial_corners_open(t[i].beside);
    }
    for (size_t i = 0; i < n; i++) {
        if (rc == 0) {
            (void)buf_nul(&t[i].out);
            judge(p, &t[i]);
        }
        buf_free(&t[i].out);
        close_fd(&t[i].doors[0]);
        close_fd(&t[i].doors[1]);
    }
    free(t);
    return rc;
}
