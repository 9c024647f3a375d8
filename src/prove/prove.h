/* prove/prove.h: between the files of `cloche prove`
 *
 * A check is one promise looked at: a fact of the posture, or an attack. What is promised is computed from the
 * policy (and the facts of this host that the policy depends on), never from an earlier run.
 */
#ifndef CLOCHE_PROVE_PROVE_H
#define CLOCHE_PROVE_PROVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "engine/engine.h"
#include "policy/policy.h"
#include "wall/janitor.h"

#define PROVE_OUTPUT_MAX (16UL * 1024 * 1024)   /* of one run of the probe */
#define PROVE_CHECKS_MAX 512
#define PROVE_ARGS_MAX   800

enum check_state {
    CHECK_HELD,
    CHECK_SURPRISE,         /* promised, and not so: or it could not be found out */
    CHECK_NOT_PROMISED,     /* open, as this policy says; shown so that nobody believes otherwise */
    CHECK_NOT_APPLICABLE,   /* nothing here to look at */
};

struct check {
    char id[64];            /* "posture.caps.zero", "attack.tiocsti": stable */
    const char *wall;       /* "files", "namespaces", "privilege", "processes", "terminal", "kernel", "limits",
                             * "network" */
    const char *requirement;
    const char *title;
    const char *when;       /* "before", "after" activity; "attack", "outside", "trial" */
    enum check_state state;
    char detail[320];
};

static inline enum check_state
check_state_of(bool held, bool promised)
{
    return held ? CHECK_HELD : promised ? CHECK_SURPRISE : CHECK_NOT_PROMISED;
}

/* One mode's proof. */
struct proof {
    const struct policy *policy;
    const char *mode;
    bool bare;                      /* no wall: mode off */
    bool quick;
    pid_t guest_pid;                /* as seen by the posture */
    const char *bait_name;          /* of the process outside */
    const struct sandbox_differs *differs;  /* what its engine keeps otherwise; NULL: nothing */
    uid_t uid;                              /* who it is inside: as the policy has it, or, where an engine gives it */
    gid_t gid;                              /* no user namespace, as it is outside */
    bool own_kernel;                        /* another one than the host's is promised */
    struct check checks[PROVE_CHECKS_MAX];
    size_t n;
};

/* Add one; @fmt is the detail. A proof with too many checks aborts: that is a mistake of ours. */
void proof_add(struct proof *p, const char *id, const char *wall, const char *requirement, const char *title,
               const char *when, enum check_state state, const char *fmt, ...) __attribute__((format(printf, 8, 9)));
size_t proof_count(const struct proof *p, enum check_state state);

/* --- prove_odd.c: things that a check does not want, one by one ------------------------------------------------- */

struct odd {
    const struct proof *p;
    const char *check;                      /* its id */
    char surprise[256];                     /* the first that the engine does not excuse; "": there is none */
    char excused[64];                       /* the first that it does, */
    const struct sandbox_differs *differs;  /* and why; NULL: there is none */
};
#define ODD(proof, id) { .p = (proof), .check = (id), .surprise = "", .excused = "", .differs = NULL }

/* Found: @fmt names it, as struct sandbox_differs would. */
void odd_note(struct odd *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add the check: of what was found as its detail, or else @held. */
void proof_add_odd(struct proof *p, const struct odd *o, const char *wall, const char *requirement, const char *title,
                   const char *when, bool promised, const char *held);

/* --- prove_bait.c: things of the host to attack, made for this run ------------------------------------------- */

#define BAIT_TOKEN_SIZE 64  /* as PROBE_TOKEN_SIZE (probe/probe.h) */

struct bait {
    char dir[64], file[96], socket[96], abstract[48], name[16];
    char trials[64];                /* the folder of the trials: ours, where @dir is everybody's */
    char name_trials[24];
    bool file_visible;              /* set by the caller: the policy opens the place where the files lie */
    int unix_fd, abstract_fd, tcp_fd;
    uint16_t tcp_port;
    char own_address[16];           /* of the host, IPv4, not 127.0.0.1; "": it has none */
    pid_t process;
    struct janitor janitor;
};

int bait_make(struct bait *b, struct err *err);
void bait_remove(struct bait *b);

/* --- prove_box.c: run the probe inside, or without a wall ----------------------------------------------------- */

struct box;

/* A sandbox by @policy; with @bare none at all. */
int box_open(const struct policy *policy, bool bare, struct box **out, struct err *err);
void box_close(struct box *b);
/* The guest as seen from outside, and what is said of its sandbox (not with @bare). */
pid_t box_pid(const struct box *b);
const struct sandbox_facts *box_facts(const struct box *b);
/* Run cloche-probe with @args (NULL-terminated, without its own name) and parse what it prints. NULL with @err. */
json_t *box_probe(struct box *b, const char *const *args, struct err *err);

/* --- what to look for ----------------------------------------------------------------------------------------- */

/* prove_posture.c, prove_posture_system.c, prove_posture_etc.c */
/* Of the first line of @text the word with this number; they are apart by one or more blanks. */
struct str prove_word(const char *text, size_t number);
void posture_check(struct proof *p, const json_t *posture, const char *when);
void posture_check_system(struct proof *p, const json_t *posture, const char *when);
void posture_check_etc(struct proof *p, const json_t *posture, const char *when);
/* Do all strings of the array @list satisfy @ok? The first that does not goes to @odd. */
bool posture_all(const json_t *list, bool (*ok)(const struct proof *, const char *), const struct proof *p,
                 const char **odd);
/* Has a private root @path, a name in /etc, from the host? */
bool prove_etc_is_given(const struct policy *p, const char *path);
/* BOXED: namespaces are promised (standard, max; and mode off is measured against them). */
bool proof_boxed(const struct proof *p);
/* Has it a root of its own, a network of its own? */
bool proof_private_root(const struct proof *p);
bool proof_own_network(const struct proof *p);
/* Does every address lead to listeners of cloche's (a network by name)? What is then said is cloche-egress's, which the
 * trials ask (prove_trial.c). */
bool proof_captured(const struct proof *p);

/* prove_defaults.c: the policy itself, where nobody set it */
void defaults_check(struct proof *p);

/* prove_attacks.c */
void attacks_check(struct proof *p, const json_t *result);
/* Fill the probe's arguments. Strings are borrowed from @b and @policy. */
size_t prove_arguments(const struct proof *p, const struct bait *b, const char *word, const char **args, size_t max);

/* The host's places that are not for this sandbox, by device and inode ("D:I,D:I..."), as cloche-probe takes them, into
 * @out, of @n bytes: prove_needles.c. "" when there is none. */
void prove_needles(const struct policy *policy, char *out, size_t n);

/* prove_outside.c: what the kernel says of the guest and its cgroup, and whether @other, a second sandbox by the same
 * policy, is another in everything. */
void outside_check(struct proof *p, const struct box *box, const struct box *other);
/* Whether sandboxes are users of their own. Root of a rootless container has none to give: it is an ordinary user. */
bool prove_gives_users(void);

/* prove_trial.c: the trials of the policy's mode, in sandboxes of prove's own. 0, or -1 with @err when they could not
 * be made ready. */
int trials_check(struct proof *p, const struct bait *b, struct err *err);

/* --- prove_report.c, prove_json.c ------------------------------------------------------------------------------ */

struct proofs {
    struct proof *v[4];
    size_t n;
    bool bare;                      /* --bare */
    const char *skipped[3];         /* modes that this host cannot build */
    char skipped_why[3][256];
    size_t n_skipped;
};

void prove_print(const struct proofs *all);
int prove_print_json(const struct proofs *all);
/* What @p's policy does not promise, in words; NULL after the last. */
const char *prove_not_promised(const struct proof *p, size_t index);

/* The verb (cli/cli.h). */
int cmd_prove(int argc, char **argv);

#endif
