/* prove/prove.c: `cloche prove`: attack the own wall and compare it with what the policy promises (see prove.h)
 *
 * For each mode one sandbox: the posture before anything happened, the posture while and after programs ran in it,
 * then every attack in a child of its own. Exit status 0 when all of it is as promised, 1 on any surprise.
 */
#include "prove/prove.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/kernel.h"
#include "engine/engine.h"
#include "program/caller.h"
#include "program/say.h"
#include "program/verb.h"
#include "program/words.h"
#include "run/args.h"

enum { EXIT_PROVEN = 0, EXIT_SURPRISE = 1 };

struct options {
    bool json, quick, bare, help;
};

void
proof_add(struct proof *p, const char *id, const char *wall, const char *requirement, const char *title,
          const char *when, enum check_state state, const char *fmt, ...)
{
    struct check *c;
    va_list ap;

    if (p->n == PROVE_CHECKS_MAX)
        abort();
    c = &p->checks[p->n++];
    *c = (struct check){ .wall = wall, .requirement = requirement, .title = title, .when = when, .state = state };
    snprintf(c->id, sizeof(c->id), "%s", id);
    va_start(ap, fmt);
    vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
    va_end(ap);
}

size_t
proof_count(const struct proof *p, enum check_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        n += p->checks[i].state == state;
    return n;
}

static const struct verb_form prove_forms[] = {
    { NULL, "[--mode MODE] [policy flags] [--json] [--quick]", .run = NULL },
    { NULL, "--bare [--json]", .run = NULL },
};
static const struct verb_flag prove_flags[] = {
    { "--quick", 0, NULL, "posture once, then the attacks", FLAG_ON(struct options, quick) },
    { "--bare", 0, NULL, "the attacks without any wall, in their harmless shape: which are real on this host",
      FLAG_ON(struct options, bare) },
    { "--json", 0, NULL, "one JSON object (docs/prove.md)", FLAG_ON(struct options, json) },
    { "--help", 'h', NULL, NULL, FLAG_ON(struct options, help) },
};
static const struct verb prove_verb = {
    .name = "prove", VERB_FORMS(prove_forms), VERB_FLAGS(prove_flags),
    .about = "Starts a sandbox by the policy and attacks it from inside: its posture is compared with what the policy\n"
             "promises, before and after activity, then every attack is tried. Without --mode, each mode that this "
             "host\ncan build.",
    .after = "Policy flags are those of `cloche run --help`. --mode off shows what is open without a wall.\n\n"
             "Exit status: 0 as promised, 1 surprises, 125 a sandbox could not be started.",
};

static int
usage(void)
{
    verb_help(&prove_verb, stdout);
    return 0;
}

/* The parent of the probe, as it sees it: process 1 in a process namespace, the guest's own number elsewhere. */
static pid_t
guest_of(const json_t *posture)
{
    return (pid_t)json_integer_value(json_object_get(posture, "ppid"));
}

static int
look(struct proof *p, struct box *box, const struct bait *bait, const char *word, const char *when, struct err *err)
{
    const char *args[PROVE_ARGS_MAX];
    json_t *got;

    prove_arguments(p, bait, word, args, PROVE_ARGS_MAX);
    got = box_probe(box, args, err);
    if (got == NULL)
        return err_wrap(err, "mode %s, %s", p->mode, word);
    if (strcmp(word, "attacks") == 0) {
        attacks_check(p, got);
    } else {
        p->guest_pid = guest_of(got);
        posture_check(p, got, when);
    }
    json_decref(got);
    return 0;
}

/* With a second sandbox beside it. */
static int
look_from_outside(struct proof *p, const struct box *box, struct err *err)
{
    struct box *other;

    if (box_open(p->policy, false, &other, err) < 0)
        return err_wrap(err, "mode %s, a second sandbox", p->mode);
    /* until something runs in it, it is still being made */
    json_t *ready = box_probe(other, (const char *const[]){ "here", NULL }, err);
    if (ready != NULL)
        outside_check(p, box, other);
    json_decref(ready);
    box_close(other);
    return ready != NULL ? 0 : -1;
}

/* A terminal that is ours: its descriptors stay as long as this process. Without one there is none to take. */
static void
have_a_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (master >= 0 && setsid() >= 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof(name)) == 0)
        (void)!open(name, O_RDWR | O_CLOEXEC);
}

/* What a caller may have and a sandbox must not get: groups beside its own, variables of the environment, a terminal,
 * limits that are none. This process proves one mode and then ends, so it may be given them. */
static void
be_worth_robbing(void)
{
    static const gid_t groups[] = { 4, 24, 27 };
    static const int limits[] = { RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE };
    /* the policy has been read: none of them moves a place any more */
    static const char *const names[] = { "CLOCHE_PROVE_BAIT", "SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN",
                                         "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "KUBECONFIG" };

    have_a_terminal();
    if (geteuid() == 0)
        (void)setgroups(ARRAY_LEN(groups), groups);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], "a variable of the caller's", 0);
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r;

        if (kernel_prlimit(limits[i], NULL, &r) < 0)
            continue;
        r.rlim_cur = r.rlim_max = geteuid() == 0 ? RLIM_INFINITY : r.rlim_max;
        (void)kernel_prlimit(limits[i], &r, NULL);
    }
}

static int
prove_mode(struct proof *p, const struct options *o, const struct bait *bait, struct err *err)
{
    struct box *box;
    bool same_ids;
    int rc;

    p->bait_name = bait->name;
    p->mode = policy_mode_name(p->policy->mode.v);
    p->quick = o->quick;
    p->bare = o->bare || p->policy->mode.v == MODE_OFF;
    if (!p->bare)
        be_worth_robbing();
    if (box_open(p->policy, p->bare, &box, err) < 0)
        return -1;
    p->differs = p->bare ? NULL : box_facts(box)->differs;
    same_ids = !p->bare && box_facts(box)->same_ids;
    p->uid = same_ids ? box_facts(box)->uid : p->policy->user.uid;
    p->gid = same_ids ? box_facts(box)->gid : p->policy->user.gid;
    p->own_kernel = !p->bare && box_facts(box)->boundary > BOUNDARY_PROCESS;
    if (!p->bare)
        defaults_check(p);
    rc = o->bare ? 0 : look(p, box, bait, "posture", "before", err);
    if (rc == 0 && !o->bare && !o->quick)
        rc = look(p, box, bait, "activity", "after", err);
    if (rc == 0)
        rc = look(p, box, bait, "attacks", "attack", err);
    if (rc == 0 && !p->bare)
        rc = look_from_outside(p, box, err);
    box_close(box);
    if (rc == 0 && !p->bare && !o->quick)
        rc = trials_check(p, bait, err);
    return rc;
}

/* @mode NULL: as the arguments say. */
static int
read_policy(struct policy *policy, const char *mode, int argc, char **argv, const struct policy_host *host,
            struct options *o, struct err *err)
{
    char flag[] = "--mode", name[16];
    char **words = calloc((size_t)argc + 3, sizeof(*words));
    int n = 0, first;

    if (words == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    words[n++] = argv[0];
    if (mode != NULL) {
        snprintf(name, sizeof(name), "%s", mode);
        words[n++] = flag;
        words[n++] = name;
    }
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    first = cli_policy_args(policy, VERB_RUN, n, words, host, &prove_verb, o, err);
    if (first >= 0 && first < n) {
        err_set(err, ERR_USAGE, "cli.unknown-flag", "prove runs no command: \"%s\"", words[first]);
        first = err_hint(err, "cloche prove [--mode MODE] [policy flags] [--json] [--quick]");
    }
    free(words);
    return first < 0 ? -1 : 0;
}

/* What the child that proves a mode leaves for its parent, in shared memory. Strings are static or the policies':
 * both processes are copies of one program and have them at the same place. */
struct shared {
    struct proof proof;     /* first: struct proofs points to it */
    struct err err;
    bool done, failed;
};

/* One proof by @policy, added to @all. In a child of its own, because a sandbox of mode light ends every process that
 * is a child of its maker, and the baits are children too. */
static int
add_proof(struct proofs *all, struct policy *policy, const struct options *o, const struct bait *bait, struct err *err)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t parent = getpid(), pid;

    if (s == MAP_FAILED)
        return err_sys(err, errno, "prove.memory", "shared memory");
    s->proof.policy = policy;
    all->v[all->n++] = &s->proof;
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "prove.fork", "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        s->failed = prove_mode(&s->proof, o, bait, &s->err) < 0;
        s->done = true;
        _exit(0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (!s->done)
        return err_set(err, ERR_SYSTEM, "prove.died", "proving mode %s was ended from outside",
                       policy_mode_name(policy->mode.v));
    if (s->failed)
        *err = s->err;
    return s->failed ? -1 : 0;
}

static int
prove_all(struct proofs *all, struct policy policies[4], int argc, char **argv, const struct policy_host *host,
          struct options *o, const struct bait *bait, struct err *err)
{
    static const enum policy_mode modes[] = { MODE_LIGHT, MODE_STANDARD, MODE_MAX };
    static struct engine_report report;     /* large */
    size_t missing;

    if (o->bare)    /* no wall, no promise: the policy's only part is that it opens nothing */
        return add_proof(all, &policies[3], o, bait, err);
    if (policies[3].mode.from.kind == ORIGIN_FILE || policies[3].mode.from.kind == ORIGIN_FLAG)
        return add_proof(all, &policies[3], o, bait, err);
    if (engine_probe(&policies[3], &report, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        const char *name = policy_mode_name(modes[i]);

        if (!engine_allows(&report, modes[i], &missing)) {
            all->skipped[all->n_skipped] = name;
            snprintf(all->skipped_why[all->n_skipped++], sizeof(all->skipped_why[0]), "%s: %.150s",
                     report.info[missing].title, report.features[missing].why_not);
            continue;
        }
        /* the arguments are right, they were read before: it is this mode that cannot have them */
        if (read_policy(&policies[i], name, argc, argv, host, o, err) < 0) {
            if (err->kind != ERR_POLICY)
                return -1;
            all->skipped[all->n_skipped] = name;
            snprintf(all->skipped_why[all->n_skipped++], sizeof(all->skipped_why[0]), "%.240s", err->msg);
            *err = (struct err)ERR_INIT;
            continue;
        }
        if (add_proof(all, &policies[i], o, bait, err) < 0)
            return -1;
    }
    if (all->n > 0)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "prove.no-mode", "this host can build no mode at all");
    return err_hint(err, "`cloche doctor` says what is missing");
}

static int
verdict(const struct proofs *all, const struct options *o, struct err *err)
{
    size_t surprises = 0;

    for (size_t i = 0; i < all->n; i++)
        surprises += proof_count(all->v[i], CHECK_SURPRISE);
    if (!o->json)
        prove_print(all);
    else if (prove_print_json(all) < 0)
        return err_set(err, ERR_SYSTEM, "cli.output", "prove: the report cannot be written");
    if (fflush(stdout) != 0 || ferror(stdout))
        return err_set(err, ERR_SYSTEM, "cli.output", "prove: the report cannot be written");
    return surprises > 0 && !o->bare ? EXIT_SURPRISE : EXIT_PROVEN;
}

/* What is proven does not depend on where it is asked for. Where the caller cannot come back to its own folder by
 * path (it became somebody else there, or it is gone), neither can a sandbox of the host's tree. */
static int
find_place(struct policy_host *host, struct err *err)
{
    char cwd[PATH_MAX];

    if ((getcwd(cwd, sizeof(cwd)) == NULL || cwd[0] != '/' || access(cwd, X_OK) < 0) && chdir("/") < 0)
        return err_sys(err, errno, "prove.place", "/");
    return cli_host(host, err);
}

int
cmd_prove(int argc, char **argv)
{
    static struct policy policies[4];   /* light, standard, max, and what the arguments say */
    struct options o = { false };
    struct proofs all = { .n = 0 };
    struct policy_host host;
    struct bait bait;
    struct err err = ERR_INIT;
    int code = -1;

    if (find_place(&host, &err) < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, false));
    if (read_policy(&policies[3], NULL, argc, argv, &host, &o, &err) < 0)
        return o.help ? usage() : cli_fail(&err, o.json || cli_asks_json(argc, argv, false));
    if (o.help)
        return usage();
    all.bare = o.bare;
    if (bait_make(&bait, &err) == 0) {
        if (prove_all(&all, policies, argc, argv, &host, &o, &bait, &err) == 0)
            code = verdict(&all, &o, &err);
        bait_remove(&bait);
    }
    for (size_t i = 0; i < all.n; i++)
        munmap(all.v[i], sizeof(struct shared));
    for (size_t i = 0; i < 4; i++)
        policy_free(&policies[i]);
    return code < 0 ? cli_fail(&err, o.json) : code;
}
