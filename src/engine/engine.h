/* engine/engine.h: every engine, as the rest of cloche knows it
 *
 * An engine builds walls and gives a byte transport to the guest; everything else (exec, stdin, pty, files,
 * limits on output and time) is the guest protocol (guest/client.h), identical on every engine. Whoever is not in
 * engine/ includes this header, rules.h and host.h, and no other one: which engine it is and what a sandbox is made
 * of is not to be seen from there. What an engine has to offer is in ops.h.
 */
#ifndef CLOCHE_ENGINE_ENGINE_H
#define CLOCHE_ENGINE_ENGINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

struct cgroup;
struct guest_client;
struct msg_setup;

/* --- which there are --------------------------------------------------------------------------------------------- */

/* Their names, the one first that `auto` takes; ended by NULL. */
const char *const *engine_names(void);
/* Of the one that makes the sandboxes of @p; NULL: of a policy that says nothing about it. */
const char *engine_name(const struct policy *p);

/* --- which one makes a sandbox (choose.c) ------------------------------------------------------------------------- */

#define ENGINE_ROWS_MAX 16

/* An engine, with one of the runtimes that it can have. */
struct engine_row {
    const char *engine, *runtime;       /* @runtime NULL: it needs none */
    enum policy_boundary boundary;
    char why[256];                      /* it is taken, or not */
};

struct engine_choice {
    struct engine_row v[ENGINE_ROWS_MAX];
    size_t n;
    size_t taken;                       /* @n: none is */
};

/* Which of them makes the sandboxes of @p here, and why none of the others. Nothing that @p names is replaced by
 * another one, and none has less than the boundary that it asks for. 0; or -1 with @err (engine.boundary, or what the
 * one that is named refuses it for), and @out says why each of them is not taken. Looks at the host, makes nothing. */
int engine_choose(const struct policy *p, struct engine_choice *out, struct err *err);
/* Of one row: "oci runsc". In one line, with the reasons: what does not fit is cut. */
const char *engine_row_name(const struct engine_row *row, char out[64]);
void engine_choice_text(const struct engine_choice *choice, char *out, size_t cap);

/* The @asked policy of the agent whose token is @agent, with the settings @ceiling below it, takes the engine that they
 * take, or one that is in their agent_engines and has at least their boundary: what it asked for then becomes that one
 * (policy_choose). 0; or -1 with @err (policy.ceiling). */
int engine_within(const struct policy *ceiling, struct policy *asked, const char *agent, struct err *err);
/* For a sandbox of @made that lives: where @asked means the engine that it has, it says so then. Looks at nothing;
 * another engine stays what was asked for. 0 or -1 with @err (out of memory). */
int engine_stays(const struct policy *made, struct policy *asked, struct err *err);

/* --- what one can do here ---------------------------------------------------------------------------------------- */

/* The promises an engine may make. `doctor` prints them; a policy that needs one that is not enforced is refused
 * unless it has a `fallback`. */
enum promise {
    PROMISE_OWN_ROOT,           /* own root file system */
    PROMISE_OWN_NETWORK,
    PROMISE_OWN_PIDS,
    PROMISE_UID_MAPPING,        /* its user is nobody on the host, or the caller without any privilege */
    PROMISE_NO_CAPABILITIES,
    PROMISE_SYSCALL_FILTER,
    PROMISE_LANDLOCK,
    PROMISE_MEMORY_LIMIT,
    PROMISE_CPU_LIMIT,
    PROMISE_PIDS_LIMIT,
    PROMISE_DISK_QUOTA,
    PROMISE_READONLY_ROOT,
    PROMISE_NAME_GUARD,         /* absent protected names cannot be created; sockets by path */
    PROMISE_KERNEL_BOUNDARY,    /* own kernel (microVM, gVisor) */
    PROMISE_N
};

enum enforcement { NOT_ENFORCED, ENFORCED, SUPERVISED /* by sampling and killing: bounded delay */ };

struct promise_state {
    enum enforcement state;
    char how[128];      /* "cgroup v1", "Landlock ABI 7" */
    char why_not[256];  /* empty when enforced */
    char remedy[512];   /* exact command or setting; empty when enforced */
};

const char *promise_name(enum promise p);           /* "own-root" */
const char *promise_describe(enum promise p);       /* "own root file system" */

/* What an engine builds its walls from, each tried on this host. */
enum feature_status {
    FEATURE_NO,
    FEATURE_YES,
    FEATURE_PARTIAL,        /* another way does the same with a named weakness (supervised limits) */
    FEATURE_UNUSED,         /* does not apply to this caller (idmapped mounts as an ordinary user) */
};

struct feature_state {
    enum feature_status status;
    int sys_errno;          /* of the failing call; 0 when none failed */
    char call[48];          /* the failing call: "unshare(CLONE_NEWUSER)" */
    char detail[128];       /* "ABI 7", "cgroup v1 at /sys/fs/cgroup/memory" */
    char why_not[256];      /* empty when enforced */
    char remedy[768];       /* exact command or setting; empty when enforced */
};

enum need { NEED_NONE, NEED_WANT /* the mode works without it, and says so */, NEED_MUST };

struct feature_info {
    const char *name;       /* stable: "user-namespace" */
    const char *title;      /* for people */
    const char *group;      /* "namespaces", "root", "access", "calls", "limits" */
    enum need light, standard, max;
};

#define ENGINE_FEATURES_MAX 40

struct engine_report {
    const char *engine;
    const char *runtime;                    /* the program that makes the wall for it; NULL: none is needed, or there */
    char program[256];                      /* where that is */
    enum policy_boundary boundary;          /* of its walls */
    bool usable;                            /* standard mode can be built */
    bool usable_light;
    struct promise_state promises[PROMISE_N];
    const struct feature_info *info;        /* of each feature, in the order in which they are shown */
    struct feature_state features[ENGINE_FEATURES_MAX];
    size_t n_features;
};

/* Of the engine that @p takes (NULL: as engine_name() has it), by trying everything. 0, or -1 with @err when not even
 * that could be done. Takes 5-20 ms; @out is large. */
int engine_probe(const struct policy *p, struct engine_report *out, struct err *err);

/* The same of an engine by its name, with one of its runtimes (NULL: as `auto`). */
int engine_probe_named(const char *engine, const char *runtime, struct engine_report *out, struct err *err);
/* Where the daemon listens that the engine docker asks: DOCKER_HOST, or the usual places. 0, or -1 with @err. */
int engine_docker_socket(char path[108], struct err *err);
/* Names of the programs that can make walls for @engine; ended by NULL. */
const char *const *engine_runtimes(const char *engine);

/* A hole that is known of a runtime. */
struct engine_hole {
    const char *name;       /* "CVE-2024-21626" */
    const char *fixed;      /* the first releases with the fix, apart by blanks */
    const char *what;       /* what it lets be done */
    const char *reach;      /* whether a sandbox of ours is open to it */
};
#define ENGINE_HOLES_MAX 16

/* Those of @runtime in the release @version, as it says it itself. Distributions mend older ones. Pure. */
size_t engine_holes(const char *engine, const char *runtime, const char *version,
                    struct engine_hole out[ENGINE_HOLES_MAX]);

/* Whether @mode can be built. When not, the first feature that is missing goes to @missing (n_features otherwise). */
bool engine_allows(const struct engine_report *r, enum policy_mode mode, size_t *missing);

enum lack {
    LACK_NONE,
    LACK_OF_STEP,       /* a feature that the failed step itself names, by its code */
    LACK_OF_MODE,       /* one that the mode is built of, as far as trying features by themselves tells */
};

/* What the host lacks of what something needs that failed with @code, or of what the engine of @p must have in @mode.
 * Only what the host is counts: its kernel, its settings, what encloses us; what others can use up does not. What is
 * missing goes to @text, for people. Tries everything, as engine_probe() does. */
enum lack engine_lacks(const struct policy *p, enum policy_mode mode, const char *code, char text[256]);

#define ENGINE_MAKERS 3

/* What makes the walls of a sandbox besides cloche: two sandboxes are the same only where that is. */
struct engine_makers {
    char programs[ENGINE_MAKERS][PATH_MAX];     /* files of the host's; "": there is none */
    char daemon[160];           /* what one says that it is; "": there is none */
};

/* Of the engine that @p takes, as it would be made now. */
int engine_makers(const struct policy *p, struct engine_makers *out, struct err *err);

/* Make ahead what a sandbox of @p's engine needs, for the next one of this process. 0; -1: the process is to end. The
 * caller is single-threaded. */
int engine_prepare(const struct policy *p);

/* What process 1 of every sandbox is, sealed, in one file for many processes that make one each: they share its pages.
 * A descriptor; -1: there is none, and each makes its own. */
int engine_image(void);
/* @fd is that, and is taken: for the next sandbox of this process. */
void engine_have_image(int fd);

/* What sandboxes have left whose makers are dead, where it is in no note (leavings.h): whether there may be some, and
 * remove it. For a daemon that starts. The second asks others, which may take minutes. */
bool engine_left(void);
void engine_sweep(void);

/* --- one sandbox ------------------------------------------------------------------------------------------------- */

struct sandbox;     /* opaque; one live sandbox */

/* A file of the host's in whose place the sandbox has a copy of its own. */
struct sandbox_own {
    const char *folder;                 /* of the host; the file lies below it */
    int folder_fd;                      /* O_PATH */
    const char *relative;
    const char *text;                   /* what the copy was at the start */
    size_t n;
    struct str elsewhere;               /* what the rest of the owner's configuration says (match/git_config_add.h) */
    int copy;                           /* for reading */
};

/* One thing that a check of `prove` finds and no other engine's sandbox has, and why that is no hole. It is named as
 * the check names it ("tmpfs /dev"); a '*' at its end stands for the rest. Whatever else the check finds, counts. */
struct sandbox_differs {
    const char *check, *thing, *why;
};

/* What is true of it from sandbox_create() on. Everything that it points to lives as long as the sandbox. */
struct sandbox_facts {
    const char *id;                     /* 32 hex digits; by default 128 random bits, not guessable */
    const char *cow_id;                 /* of the copy-on-write state of its workspace; "" none */
    pid_t pid;                          /* the guest, or who holds it and all that is inside, as this host's /proc has
                                         * it; -1: it is not there, or ended */
    const char *root;                   /* of file requests, as seen inside; "" none */
    const char *workdir;                /* of commands */
    const char *const *env;             /* of commands, ended by NULL */
    /* Its processes have this user outside, and it is not ours: what they shall open again must be given to them. */
    bool other_user;
    uid_t uid;
    gid_t gid;
    bool same_ids;                      /* ... and inside: it has no user namespace */
    /* Who holds it to its limits: "cgroup v1", "cgroup v2", "rlimit", "tmpfs", "supervised", "none". */
    const char *memory_by, *cpu_by, *pids_by, *disk_by;
    const char *pause_by;               /* what sandbox_pause() does it with; NULL: it cannot */
    bool look_at_memory;                /* sandbox_over_memory() has to be asked */
    /* Its network. */
    bool own_net;                       /* it is not the host's */
    bool captured;                      /* ... and leads to listeners that cloche-egress accepts on (wall/capture.h) */
    const uint16_t *ports;              /* ... also on these, besides the usual ones */
    size_t n_ports;
    int *listeners;                     /* CAPTURE_LISTENERS of them; -1 none. Who closes one says so here */
    const struct cgroup *net_cgroup;    /* where cloche-egress is counted; may be of kind NONE */
    const struct sandbox_own *own;      /* what has become of these is looked at when it has ended */
    size_t n_own;
    const struct sandbox_differs *differs;  /* ended by one without a check; NULL: none */
    bool own_files;                     /* its workspace, home and /tmp are its own folders: they can be copied, and
                                         * begin with what was copied (struct policy: fill) */
    bool own_mounts;                    /* what it sees is what @pid's root in /proc has: what is closed to it is by a
                                         * mount there, and is to be looked at in no other way */
    bool covered;                       /* below @root some of the host's files are closed, or hidden by others */
    enum policy_boundary boundary;      /* above PROCESS: another kernel than this host's answers its system calls */
    const struct engine_choice *choice; /* the engine that it is of, and why not another one; NULL in create() */
    bool streams_only;                  /* no descriptor of ours can be handed to what runs in it */
    unsigned start_s;                   /* seconds that its guest may take to be there; 0 in create(): as usual */
    /* What a person should know of this one. */
    const char (*warnings)[256];
    size_t n_warnings;
};

/* Folders of a sandbox's own that it begins with copies for, where facts.own_files says so: the names of these in
 * struct policy's fill, and where they lie inside. */
#define ENGINE_PLACES 3
struct engine_place { const char *name, *path; };
extern const struct engine_place engine_places[ENGINE_PLACES];

/* A symbolic link beside these whose text is how many bytes are in them: they may lie below a sandbox's folders as they
 * are, and nobody writes to them any more. */
#define ENGINE_BELOW "below"

/* Build the wall for @p, which outlives it. @id names the sandbox (32 hex digits that nobody can guess); NULL: the
 * engine chooses it. The sandbox dies with the caller, whatever happens. 0, or -1 with @err and nothing is left. */
int sandbox_create(const struct policy *p, const char *id, struct sandbox **out, struct err *err);

const struct sandbox_facts *sandbox_facts(const struct sandbox *sb);
/* Its process 1 that lives, looked for in this host's /proc; with an own kernel the process that this one is. -1: it is
 * not there. */
pid_t sandbox_guest(const struct sandbox *sb);

/* Transport to the guest: a connected stream socket, owned by the sandbox. */
int sandbox_connect(struct sandbox *sb, int *guest_fd, struct err *err);

/* What the guest has to be told first. @guard, empty and with the ceiling MSG_GUARD_MAX, keeps what @out points to. */
int sandbox_setup(struct sandbox *sb, struct buf *guard, struct msg_setup *out, struct err *err);
/* begin.c: connects, and tells the guest that. @*client, NULL before, is the caller's also where -1 is returned. */
int sandbox_begin(struct sandbox *sb, int *guest_fd, struct guest_client **client, struct err *err);

/* --- while it lives ---------------------------------------------------------------------------------------------- */

struct sandbox_usage {
    uint64_t peak_memory;       /* bytes; 0 when unknown */
    uint64_t cpu_us;            /* once it was killed */
    uint64_t oom_kills;         /* by the kernel, for want of memory */
};

/* Until sandbox_destroy(). */
void sandbox_usage(struct sandbox *sb, struct sandbox_usage *out);

struct sandbox_now {
    uint64_t memory;            /* bytes, files among them; 0 unknown, so are the next two */
    uint64_t cpu_us;            /* so far */
    uint64_t pids;
};

void sandbox_now(struct sandbox *sb, struct sandbox_now *out);

/* It holds more memory than it may, and nobody else ends it for that. Ask every 100 ms or so. */
bool sandbox_over_memory(struct sandbox *sb);
/* Nothing lives in it but the guest, for certain. */
bool sandbox_alone(struct sandbox *sb);

/* Hold it to the limits of memory, processors and processes in @to, in the place of those in @from. 0; or -1 with @err,
 * and nothing is changed (limits.rlimit; limits.in-use and others as cgroup_change() has them). */
int sandbox_limits(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err);
/* The same on the way back to @to, which was in force before. -1 with @err: memory that was taken meanwhile is not let
 * go of; then everything else is as in @to, and sandbox_over_memory() goes by it too. */
int sandbox_limits_back(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err);

/* Limits of one command, below the sandbox's. 0: none. */
struct sandbox_command_limits {
    uint64_t memory;            /* bytes; files in memory that it writes count */
    uint64_t cpu_milli;
    uint64_t pids;
};

struct sandbox_command;         /* a command that has some; the sandbox's */

#define SANDBOX_JOINS 3

/* What a command has to join (struct guest_exec: joins) goes to @joins, @n of them, borrowed until
 * sandbox_command_sent(). 0; or -1 with @err: limits.no-cgroup (it could not be held to them here), wall.cgroup. */
int sandbox_command_begin(struct sandbox *sb, const struct sandbox_command_limits *limits, struct sandbox_command **out,
                          int joins[SANDBOX_JOINS], size_t *n, struct err *err);
void sandbox_command_sent(struct sandbox *sb, struct sandbox_command *c);

struct sandbox_command_end {
    uint64_t oom_kills;         /* of its processes, by the kernel, for want of memory: */
    bool own_memory;            /* what its own limit left it, and not the sandbox's */
    bool own_pids;              /* it was refused processes by its own limit */
};

void sandbox_command_look(struct sandbox *sb, struct sandbox_command *c, struct sandbox_command_end *out);
/* It has ended: @c is no more. What it left behind and still runs is held to its limits until that ends too. */
void sandbox_command_end(struct sandbox *sb, struct sandbox_command *c);

/* Stop everything inside, the guest with it. -1 with @err: it is as before. */
int sandbox_pause(struct sandbox *sb, struct err *err);
int sandbox_resume(struct sandbox *sb, struct err *err);

/* From now on this process makes no socket and starts no program: what has to be asked of somebody at the sandbox's end
 * is its janitor's to ask. */
void sandbox_confined(struct sandbox *sb);

/* Who tidies up after this process has a successor when it was killed. Call now and then. */
void sandbox_tend(struct sandbox *sb);

/* --- its end ----------------------------------------------------------------------------------------------------- */

/* The guest's transport closed early: did the wall's construction fail? -1 with @err when it did, 0 otherwise. */
int sandbox_setup_failed(struct sandbox *sb, struct err *err);
/* The guest went away on its own: say how. Always -1. */
int sandbox_gone(struct sandbox *sb, struct err *err);
/* Whichever of both it is. Always -1. */
int sandbox_lost(struct sandbox *sb, struct err *err);

/* Nothing of the command ran: sandbox_destroy() leaves no copy-on-write state behind. */
void sandbox_abandon(struct sandbox *sb);
/* Kill everything inside (but in light mode, where it needs time to end itself). That takes a while: what the caller
 * has still to do can be done meanwhile, then sandbox_kill() waits. */
void sandbox_end(struct sandbox *sb);
/* Kill everything inside and wait until it is gone; usage stays readable until it is destroyed. */
void sandbox_kill(struct sandbox *sb);
/* That, and remove what was made. Frees @sb. */
void sandbox_destroy(struct sandbox *sb);

#endif
