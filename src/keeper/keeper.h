/* keeper/keeper.h: one sandbox of the daemon, and the process that keeps it; for keeper*.c only
 *
 * A keeper is to the daemon what the supervisor is to cloche run: it makes the sandbox by the same code, has its
 * transport, its network and its vault, and the sandbox dies with it. It serves many commands instead of one, until it
 * is told to stop, the sandbox ends, or the launcher does. When the warden dies it waits for the next one.
 */
#ifndef CLOCHE_KEEPER_KEEPER_H
#define CLOCHE_KEEPER_KEEPER_H

#include <sys/stat.h>

#include "base/loop.h"
#include "base/sha256.h"
#include "hosts/asker.h"
#include "keeper/context_scan.h"
#include "keeper/keeper_edits.h"
#include "keeper/keeper_transcript.h"
#include "keeper/run_log.h"
#include "launcher/keeper_settings.h"
#include "run/session_priv.h"
#include "proto/edge_keeper.h"
#include "wire/table.h"

#define KEEPER_OPS_MAX   EDGE_OPS_MAX
#define OP_QUEUE_MAX     (16UL * 1024 * 1024)
#define OP_WINDOW        (256U * 1024)      /* output under way per stream */
#define RUN_WINDOW       (32U * 1024)       /* the same of a command in the background: less than its log holds */
#define WATCH_WINDOW     (128U * 1024)      /* changes that the guest may have said and the front has not got */
#define WATCH_ALIVE_US   15000000           /* and when there are none for so long, it is said that it watches still */
#define RUN_ASKERS_MAX   EDGE_OPS_MAX       /* questions about such commands at once */
#define CONTEXTS_MAX     16                 /* in one sandbox */
#define OP_PIECE         (4UL * 1024 * 1024)/* of a file that is read: so much waits at most */
#define PORT_CONNECTIONS 32                 /* to ports that were exposed, at once */

/* What is said of it to the warden when it has ended, and to the transcript. */
struct op_result {
    uint8_t flags;              /* EDGE_SIGNALED ... */
    uint32_t code;
    char error[ERR_CODE_MAX + 1];   /* a code; "" none */
    uint64_t bytes;             /* of output, or of a file; entries of a list */
};

struct op {
    struct keeper_live *k;      /* NULL: free */
    enum op_kind kind;
    uint64_t number;            /* the warden's */
    char caller[EDGE_ID + 1];   /* whose (EDGE_OP) */
    struct op_result result;
    struct op_trace *trace;     /* keeper_transcript.c's; NULL: it is in no transcript */
    struct watch edge;          /* to the front; none when that is gone, or has all it gets */
    uint16_t channel;           /* the guest's: of a command or of a file request */
    struct packet_queue out;
    uint64_t begin_us, deadline_us, kill_us;
    uint64_t over_us;           /* since when the guest has to end it, and nobody else holds that up; 0 */
    uint64_t limit, bytes[2];   /* of output; 0: none */
    uint32_t owed[2];           /* credit for the guest, given when the front has what came */
    uint64_t said_us;           /* WATCH: when something was said last */
    bool cut[2], timed_out, in_end, writes;
    bool live, pty, behind;     /* OP_LIVE, OP_PTY, OP_BACKGROUND */
    enum op_kind as;            /* what it came as: BROWSER and DESKTOP become a CONNECT */
    struct viewer *viewer;      /* of a DESKTOP: what it says is judged (keeper_desktop.c); NULL */
    uint64_t offset, left;      /* READ: what is asked for next; left 0 with @whole: to the end */
    bool whole;
    uint64_t count;             /* READ: bytes; LIST: entries; WATCH: changes */
    uint64_t passed[2];         /* bytes into the sandbox, and out of it */
    bool told;                  /* OP_ENDED was said */
    enum op_end how;         /* it ended, as far as it is known */
    struct run *run;            /* of @behind, until it has ended; NULL */
    struct run *within;           /* code that runs in that context, whose channel is @channel too; NULL */
    struct sandbox_command *own;    /* with limits of its own in a cgroup; NULL */
    char *path, *name;          /* of a command: the working directory, and its first word; @path of a connection: the
                                 * id of the port */
    uint8_t in[EDGE_CHUNK];     /* stdin, or of a file that is written: not taken yet */
    bool said;                  /* the last word, to the front */
    bool in_end_due;            /* and after it there is no more; said when it is taken */
    size_t in_n, in_at;
};

/* A command in the background, until its record is removed or pushed out by newer ones. */
struct run {
    struct op *op;              /* NULL: it has ended */
    uint64_t number;            /* its operation's, by which clients know it */
    uint64_t begun_ms, ended_ms, begun_us, ms;  /* since 1970; on the monotonic clock; how long it ran */
    uint8_t flags, code;        /* as in struct edge_run */
    bool told;                  /* its number, to who began it */
    bool pty, stdin_open, ending;
    bool followed;              /* somebody did, or does */
    struct run_log log;
    struct context *context;    /* it is one; NULL: a command */
    char name[EDGE_RUN_NAME + 1];
};

/* A process that runs code for one call after the other (keeper_context.c). */
struct context {
    struct op *call;            /* NULL: it waits for one */
    struct context_scan scan[2];    /* of stdout, where frames are, and of stderr, where only the call's ends are */
    struct buf say;             /* what it is still to be told of the call */
    size_t said;
    bool over[2];               /* that stream has said that the call has ended, */
    uint64_t over_us;           /* stdout so long ago, */
    uint8_t code;               /* like this */
    bool broken;                /* it said what no driver of ours says */
    bool began;                 /* this process has begun a call: its interpreter has started */
    bool interrupted;           /* before the code began: said when it has */
    const struct context_driver *driver;
    bool left, signalled, told; /* in this call: its driver left what SIGINT interrupts; SIGINT was sent; a word was */
    bool again;                 /* it is begun anew when it has ended */
    struct buf start;           /* what it was begun with: struct edge_op */
};

/* A question about them, and its socket. */
struct run_asker {
    struct keeper_live *k;
    enum run_ask what;
    char caller[EDGE_ID + 1];   /* whose (EDGE_RUN_ASK) */
    struct run *run;            /* NULL: of none, or it is no more */
    struct watch edge;
    struct packet_queue out;
    bool over;                  /* its last word is said */
    struct run_reader reader;   /* FOLLOW */
    uint64_t moved_us;          /* FOLLOW: when it last took something; END: until when it waits */
    bool last, in_end;          /* INPUT: stdin ends with it; all of it has come */
    uint64_t count;             /* INPUT: bytes that were taken */
    size_t in_n, in_at;
    uint8_t in[EDGE_CHUNK];     /* INPUT: not taken yet */
};

/* Whose policy registries are asked for. */
enum keeper_whose { KEEPER_ASKED, KEEPER_CEILING, KEEPER_WHOSE };

/* keeper_hosts.c's. */
struct keeper_hosts {
    struct asker asker;
    struct watch heard;                 /* its socket */
    enum keeper_whose whose;            /* it is asked for */
    json_t *answers[KEEPER_WHOSE];      /* hosts/registry.h */
    struct err why_not[KEEPER_WHOSE];
    struct frame aside;                 /* the message that waits for it */
    uint8_t *room;                      /* its payload; NULL: there is none */
};

/* keeper_park.c's, of a sandbox that is made ahead. */
struct keeper_park {
    const struct language *language;    /* whose interpreter waits in it; NULL: it is none such */
    char *policy;                       /* what it is made of, as text, owned; */
    uint8_t print[SHA256_SIZE];         /* and what that came to, with the settings of then */
    struct stat program;                /* the interpreter's file; all 0: none was found */
    uint16_t channel;                   /* of the interpreter; 0: there is none, or it has its job */
    bool waits, ready;                  /* nobody has taken it; its interpreter waits */
    bool touched;                       /* something was written into it */
    struct op *op;                      /* whose job is not all said; NULL */
    struct buf job;
    size_t at;
};

/* keeper_browser.c's. */
struct keeper_browser {
    uint16_t channel;                   /* of the program; 0: none runs */
    uint16_t port;                      /* at which it listens; 0: not yet */
    size_t tried;                       /* which of the programs that it may be */
    uint64_t deadline_us;               /* for it to listen; 0: it does, or none runs */
    char last[256];                     /* what it said last */
    size_t last_n;
    bool over;                          /* that line has ended */
};

/* keeper_snapshot.c's, of a copy that is being made. */
struct keeper_snapshot {
    int root;                           /* of the sandbox's files, O_PATH; -1: they are not its own */
    char *fill;                         /* the folder that it began with; NULL */
    int pid;                            /* who copies; 0 nobody */
    struct watch edge;                  /* what that says of its end */
    struct snapshot_done *done;         /* and of what it did: shared with it */
    uint64_t begun_us;
    struct snapshot_aside *aside;       /* operations that begin when it is over */
    bool asked;                         /* the warden that wants it lives */
    bool resumes;                       /* the sandbox goes on when it is over: it was paused for that alone */
};

#define KEEPER_GUEST_US 10000000    /* for the guest to answer; then it is not well. A busy sandbox has little CPU */

/* What the warden may say. */
enum keeper_state {
    ST_FRESH = 1,
    ST_MADE = 2,
    ST_ASKING = 4,              /* registries' clients, for a message that was put aside */
    ST_PARKED = 8,              /* it was made ahead, and nobody has taken it */
};

struct keeper_live {
    struct live l;
    struct session s;
    struct session_result r;
    struct policy policy;
    struct policy_limits limits;    /* of them those that each command has for itself count here */
    uint8_t bounds;                 /* EDGE_BOUNDED ...: of every change of @policy too */
    char owner[EDGE_ID + 1];        /* for whom its policy is judged: a token; "" the daemon's owner, or nobody yet */
    size_t n_asked_hosts;           /* of policy.allow_domains; behind them those that registries and presets named */
    json_t *profile;                /* what its policy says: keeper_profile() */
    struct policy *changed;         /* in the place of @policy, as far as it can be changed; NULL: it was not */
    uint8_t digest[SHA256_SIZE], next_digest[SHA256_SIZE];  /* of the text that it is held to, and of @next's */
    struct policy *next;            /* cloche-egress's word about it is awaited; NULL */
    json_t *next_profile;
    uint32_t next_number;           /* 0: the warden that wanted it is gone */
    struct keeper_settings daemon;
    struct keeper_hosts hosts;
    struct keeper_park park;
    struct keeper_browser browser;
    struct keeper_snapshot snapshot;
    struct masks masks;         /* what is in no record */
    const char *id;             /* the sandbox's */
    struct transcript transcript;
    struct keeper_edits edits;
    int volume_fd;              /* of this one's, locked; -1 it has none */
    int volume_pid;             /* who adds up what is in it; 0 nobody */
    uint64_t volume_us, volume_began_us;    /* when that is to be done again, and was begun last */
    char print[EDGE_PRINT_MAX]; /* what was said that it would be; "" nothing was */
    struct loop loop;
    struct watch control, warden;       /* without a descriptor the warden has died, another one will come */
    struct watch guest, vault;          /* borrowed of @l */
    uint64_t alone_us;          /* since when there is none */
    struct packet_queue to_warden;
    struct msg_gate gate;
    const struct frame *heard;          /* the message at hand */
    bool made, ending, told_gone;
    bool paused, by_signal;     /* paused by SIGSTOP, where there is nothing to freeze */
    uint64_t oom_us;            /* when commands were last ended for want of memory; 0 never */
    uint64_t sample_us;         /* memory is looked at next, */
    bool still;                 /* but nothing lives in it that could have more of it than at the last look */
    uint64_t over_us;           /* since when more than the limit is held; 0: it is not */
    uint64_t oom_kills;         /* the kernel's, that were told of */
    uint64_t paused_us;         /* since */
    uint64_t check_us;          /* the guest has not answered since; 0 */
    unsigned checks;            /* of the warden's that are not answered */
    uint16_t check_request;
    struct op *ops[KEEPER_OPS_MAX];
    struct run *runs[EDGE_RUNS_MAX];    /* the oldest first, NULL behind the newest */
    struct run_asker *askers[RUN_ASKERS_MAX];   /* NULL: free */
    int passed;                 /* the descriptor that came with the message at hand; -1 */
    int spare;                  /* a place for one more, to refuse what there is no other for; -1: none is left */
    uint8_t in[EDGE_ROOM];
};

/* keeper_memory.c: a look at it, when it is time for one; too much of it ends what runs. */
void keeper_look_at_memory(struct keeper_live *k, uint64_t now);
void keeper_look_soon(struct keeper_live *k, uint64_t now);      /* as often as while something runs, from now on */
/* Whether a command that was just killed was killed for want of memory. Each of the kernel's kills counts once. */
bool keeper_short_of_memory(struct keeper_live *k);

/* keeper.c */
/* Stop everything inside, or let it go on. 0 or -1 with @err. */
int keeper_hold(struct keeper_live *k, bool paused, struct err *err);
/* The operation @m of that @kind, or the question (NULL), whose socket is @fd, which is closed, fails for @why before
 * it began. */
void keeper_turn_away(struct keeper_live *k, int fd, const struct keep_op *m, uint8_t kind, const struct err *why);
/* Whether the message at hand, @m of that @kind or a question (NULL), came with a socket that there is no place for: it
 * was turned away. */
bool keeper_is_full(struct keeper_live *k, const struct keep_op *m, uint8_t kind);
/* To the warden, by PROTO_SAY(); and what has no fields. */
void keeper_say(struct keeper_live *k, uint8_t type, const struct shape *shape, const void *m);
#define KEEPER_SAY_SHORT(k, number) keeper_say(k, number, number##_SHAPE(), NULL)
void keeper_gone(struct keeper_live *k, const char *why);       /* the sandbox has ended, or has to */
void keeper_died(struct keeper_live *k, const char *why);       /* and nobody wanted that: it may be made anew */
void keeper_say_health(struct keeper_live *k, bool healthy);
/* keeper_loop.c: what a front's @edge is heard for, its end in any case: before each round. */
void keeper_watch_edge(struct keeper_live *k, struct watch *edge, bool full, const struct packet_queue *out);
watch_fn keeper_on_warden, keeper_on_launcher, keeper_on_guest;
/* What the warden said, or what was put aside; false: it is none that may come. */
bool keeper_hear(struct keeper_live *k, const struct frame *f);

/* keeper_op.c: operations. */
/* Begin what the message @m asks for, which is @want; what fails is said on @fd, the operation's from here on. */
void op_begin(struct keeper_live *k, const struct edge_op *want, const struct keep_op *m, int fd);
/* Whether @ev belongs to one; then it is done with. */
bool op_event(struct keeper_live *k, const struct guest_event *ev);
void op_watch(struct op *o);            /* hear it, as far as it has room; before each round */
void op_time(struct op *o, uint64_t now_us);
void op_shift(struct op *o, uint64_t us);       /* it was paused for so long */
/* Whether the guest was told to end it, and did not for so long that it never will: what it says does not count. */
bool op_overdue(struct op *o, uint64_t now_us);
void op_free_all(struct keeper_live *k);
size_t op_count(const struct keeper_live *k);
size_t op_untold(const struct keeper_live *k);  /* those whose end the warden has not been told */
/* For the files below: to the front, when there is one; bytes in frames of @type; the last word, after which the guest
 * knows it no more and @o may be freed; @signo to what runs. */
void op_say(struct op *o, uint8_t type, const struct shape *shape, const void *m);
void op_say_last(struct op *o, uint8_t type, const struct shape *shape, const void *m); /* in the transcript first */
void op_say_failed(struct op *o, const struct err *err);
void op_pass_on(struct op *o, uint8_t type, const uint8_t *p, size_t n);
void op_ended(struct op *o);
void op_exited(struct op *o, uint8_t flags, uint32_t code);     /* a command has, like this: said to the front */
void op_tell_end(struct op *o);                 /* and its end to the warden, once */
void op_give_back(struct op *o);                /* credit, for what the front has */
bool op_is_stream(const struct op *o);
void op_output(struct op *o, size_t stream, const uint8_t *p, size_t n);
int op_begin_again(struct keeper_live *k, struct run *run, const struct edge_op *want, struct err *err);
void op_signal(struct op *o, int signo);
/* Nobody waits for it any more: it ends, unless it is a command in the background. @o may be freed. */
void op_cancel(struct op *o);
void op_cancel_file(struct op *o);              /* what the guest does with a file */

/* keeper_limits.c: limits of one command. begin: none of @want is wider than the sandbox's, and @x is told what to
 * join; 0 or -1 with @err. sent: the guest has been told. flags: for its end; @killed by SIGKILL, or says so. */
int limits_begin(struct op *o, const struct edge_op *want, struct guest_exec *x, struct err *err);
void limits_sent(struct op *o);
uint8_t limits_flags(struct op *o, bool killed);
void limits_end(struct op *o);

/* keeper_caller.c: the handler of EDGE_CALLER_ENDED: that one's operations, and questions about commands in the
 * background, end and are told why; such a command itself goes on. */
int op_on_caller_ended(struct keeper_live *k, const struct edge_only_id *caller);

/* keeper_file.c */
int file_begin(struct op *o, const struct edge_op *want, struct err *err);
int file_ask_piece(struct op *o, struct err *err);      /* of READ: the next one */
void file_event(struct op *o, const struct guest_event *ev);

/* keeper_watch.c: what changes below a directory. begin: 0 or -1 with @err; then what the guest says of it, credit for
 * the guest when the front has what came, and a sign of life where nothing changes. */
int watch_begin(struct op *o, const struct edge_op *want, struct err *err);
void watch_event(struct op *o, const struct guest_event *ev);
void watch_give_back(struct op *o);             /* nothing where @o is no WATCH */
void watch_time(struct keeper_live *k, uint64_t now);
size_t watch_count(const struct keeper_live *k);

/* keeper_attach.c: an editor's connection, and why there is none. */
int attach_begin(struct op *o, const struct edge_op *want, struct err *err);
void attach_failed(struct op *o, const struct msg_exec_failed *why);

/* keeper_port.c: connections to ports. What is said of one in its name, where that is not as of a command; it is not
 * there in time; and all of the port @id end. */
int port_begin(struct op *o, const struct edge_op *want, struct err *err);
void port_failed(struct op *o, const struct msg_exec_failed *why);
void port_late(struct op *o);
void port_closed(struct keeper_live *k, const char *id);
/* Those that can be exposed, for facts: "all", "none", or "except 53 80". */
void port_facts(const struct keeper_live *k, struct buf *out);

/* keeper_browser.c: a browser in the sandbox. begin: START or CONNECT; event: whether @ev was the program's. */
int browser_begin(struct op *o, const struct edge_op *want, struct err *err);
bool browser_event(struct keeper_live *k, const struct guest_event *ev);
void browser_time(struct keeper_live *k, uint64_t now);
/* keeper_desktop.c: a viewer's connection to the sandbox's display. begin; in: what came of it, of which what passes is
 * kept, or it ends; more: some of that into op.in, which is empty; false: there is none. */
int desktop_begin(struct op *o, const struct edge_op *want, struct err *err);
void desktop_in(struct op *o, const uint8_t *p, size_t n);
bool desktop_more(struct op *o);
void desktop_free(struct op *o);
/* A connection to @port of the sandbox, whichever it is (keeper_port.c). 0 or -1 with @err. */
int port_connect(struct op *o, uint16_t port, struct err *err);

/* keeper_live.c: what is said of a command that is live, beside its streams. Handlers of a message; and how much of
 * stdin the command has taken. */
int live_on_resize(struct op *o, const struct edge_resize *m);
int live_on_signal(struct op *o, const struct edge_signal *m);
void live_taken(struct op *o, size_t n);

/* keeper_run.c: commands in the background. begin: a record for @o, 0 or -1 with @err; then what the guest says of it,
 * of which failed means that it never was. */
int run_begin(struct op *o, const struct edge_op *want, struct err *err);
void run_started(struct op *o);
void run_output(struct op *o, size_t stream, const uint8_t *p, size_t n);
void run_failed(struct op *o);
void run_again(struct run *run, struct op *o);  /* it is @o from here on */
void run_ended(struct op *o, uint8_t flags, uint8_t code);
/* Whether somebody who follows it is about to miss something: then its output waits, though not for long. */
bool run_holds(const struct op *o);
void run_free_all(struct keeper_live *k);
/* For keeper_run_ask.c: @number's, or NULL; its record as it is told; forget it. */
struct run *run_find(const struct keeper_live *k, uint64_t number);
struct edge_run run_told(const struct run *run);
void run_free(struct keeper_live *k, struct run *run);

/* keeper_context.c: contexts, which are commands in the background. begin: @o is to be one, and @x its process; call:
 * @o is a call in one. 0 or -1 with @err. Then what its process says, its start and its end (@o: its process); whether
 * output has to wait for who called; what may be said to it goes on; a signal, or the end, for a call. */
int context_begin(struct op *o, const struct edge_op *want, struct guest_exec *x, struct err *err);
int context_call(struct op *o, const struct edge_op *want, struct err *err);
int context_dead(struct err *err);              /* -1, for one whose process has ended */
void context_output(struct op *o, size_t stream, const uint8_t *p, size_t n);
void context_started(struct keeper_live *k, struct run *run);
/* It does not start: who restarted it, and who called it already, are told @why. */
void context_failed(struct keeper_live *k, struct run *run, const struct err *why);
void context_ended(struct keeper_live *k, struct run *run);
bool context_holds(const struct run *run);
void context_feed(struct keeper_live *k, struct run *run, bool gone);
void context_signal(struct op *call, int signo);
void context_interrupt(struct run *run);        /* its code */
void context_cancel(struct op *call);
void context_leave(struct op *call);            /* @call is freed */
/* True: its code has ended, so there is no time left that could be over; it may be freed. */
bool context_time(struct op *call, uint64_t now_us);
void context_free(struct run *run);
/* It ends, and begins anew. 0 or -1 with @err. */
int context_restart(struct keeper_live *k, struct run *run, struct err *err);
size_t context_idle(const struct keeper_live *k);       /* processes that wait for a call */

/* keeper_run_ask.c: questions about them. The handler of EDGE_RUN_ASK; watch: as op_watch() */
int asker_on_ask(struct keeper_live *k, const struct keep_run_ask *m);
void asker_watch(struct run_asker *a);
void asker_time(struct keeper_live *k, uint64_t now_us);
void asker_free_all(struct keeper_live *k);
void asker_caller_ended(struct keeper_live *k, const char *caller, const struct err *why);
size_t asker_count(const struct keeper_live *k);
/* Something happened to @run: there is output, room for stdin (@closed: it reads none any more), its end (@run->op is
 * NULL), or (@gone) its record is removed. */
void asker_output(struct keeper_live *k, struct run *run);
void asker_stdin(struct keeper_live *k, struct run *run, bool closed);
void asker_ended(struct keeper_live *k, struct run *run);
void asker_again(struct keeper_live *k, struct run *run);       /* it is a context, and has begun anew, */
void asker_not_again(struct keeper_live *k, struct run *run, const struct err *why);    /* or cannot */
void asker_gone(struct keeper_live *k, struct run *run);

/* keeper_vacant.c: wait for its id: 1; 0: nobody needed it, -1: it was told something else. */
int keeper_vacant(struct keeper_live *k, char **argv);

/* keeper_confine.c: what it gives up once its sandbox is made. 0 or -1 with @err. */
int keeper_confine(struct err *err);

/* keeper_record.c: what is said for the audit record. */
void keeper_record_end(struct op *o);           /* its result, once */
void keeper_say_masks(struct keeper_live *k);   /* to the warden: what it must leave out */
/* From here on decisions about the network and the like are said to the warden. */
int keeper_record_begin(struct keeper_live *k, struct err *err);

/* keeper_ask.c: connections that wait for a decision (network.ask) are asked about in the daemon. */
void keeper_ask_begin(struct keeper_live *k);
void keeper_ask_again(struct keeper_live *k);       /* all that are open, for a new warden */
int keeper_on_net_answer(struct keeper_live *k, const struct keep_net_answer *m);

/* keeper_usage.c: tell the warden what the sandbox uses. */
void keeper_say_usage(struct keeper_live *k);
void op_say_result(struct op *o);               /* and how that operation ended; once, and into the records too */

/* keeper_policy.c: say what the sandbox is held to; hold it to @policy (its text), and say whether that is done */
void keeper_policy_show(struct keeper_live *k, uint32_t number);
void keeper_policy_change(struct keeper_live *k, uint32_t number, const char *policy);
void keeper_policy_free(struct keeper_live *k);
/* What it says, to be compared: as policy_json() has it, without origins and built-in entries, secrets as hashes. */
json_t *keeper_profile(const struct policy *p);

/* keeper_make.c: all layers of a policy of that text into @p, which is all zero; before it is validated. What one that
 * is bounded denies is added to what is denied already. 0 or -1 with @err. */
int keeper_policy_read(const struct keeper_live *k, struct policy *p, const char *text, uint8_t bounds,
                       struct err *err);
/* Whether @p, which is of @text, is no wider than @bounds lets it be, beside what is @free (WITHIN_NETWORK ...): if it
 * is not, registries may have to be asked, see below. 0 or -1 with @err. */
int keeper_policy_within(struct keeper_live *k, struct policy *p, const char *text, uint8_t bounds,
                         unsigned free, struct err *err);
/* Where an agent's policy and the operator's contradict each other, the agent is told of it, but not where the
 * operator keeps files. */
void keeper_hide_files(const struct keeper_live *k, uint8_t bounds, struct err *err);
/* The policy from its text, no wider than @bounds lets it be, into k->policy, before registries and presets are
 * asked. 0 or -1 with @err. */
int keeper_policy_of(struct keeper_live *k, uint8_t bounds, const char *text, struct err *err);
void keeper_policy_forget(struct keeper_live *k);       /* it was read for nothing */
/* The policy from its text, no wider than @bounds (EDGE_BOUNDED ...) lets it be, and from that the sandbox, @id to the
 * engine, @volume its workspace ("" none). 0 or -1 with @err. */
int keeper_make(struct keeper_live *k, const struct keep_make *m, struct err *err);
/* What clients are told about it: "\nengine=native\n..." */
int keeper_facts(const struct keeper_live *k, struct buf *out);
/* The sandbox's environment with a command's own over it: an array for free(), of borrowed strings. NULL: no memory. */
const char **keeper_environment(const struct keeper_live *k, const struct edge_op *want);
/* What @name is in @env, ended by NULL; NULL: it is not there. */
const char *keeper_variable(const char *const *env, const char *name);
void keeper_unmake(struct keeper_live *k);

/* What is only done for one that is somebody's: its record and its transcript begin. 0 or -1 with @err. */
int keeper_own(struct keeper_live *k, const char *owner, struct err *err);

/* keeper_park.c: plan: whether what @m asks for can wait, if it is to; before it is made. begin: its interpreter is
 * started, and PARKED or NOT_MADE said. take: whether it can be given away. 0 or -1 with @err. step: if it is to wait,
 * the warden is told how long its engine gives what is next. */
int park_plan(struct keeper_live *k, const struct keep_make *m, struct err *err);
void park_step(struct keeper_live *k);
int park_begin(struct keeper_live *k, struct err *err);
int park_take(struct keeper_live *k, struct err *err);
bool park_event(struct keeper_live *k, const struct guest_event *ev);   /* whether it was about the interpreter */
/* Give @o, a command that is to begin, the interpreter that waits; false: it is no job for it, which ends. */
bool park_exec(struct op *o, const struct edge_op *want, const char *const *env);
bool park_feed(struct op *o);           /* say the job; true: it was taken, and @o's own input may follow */
bool park_answer(struct op *o, const struct guest_event *ev);   /* whether @ev was about the job, and is done with */
void park_time(struct op *o, uint64_t now);
void park_forget(struct op *o);
void park_free(struct keeper_live *k);

/* keeper_volume.c: the volume @id ("" none) as the workspace of k->policy; then now and then a look at its size; its
 * end. 0 or -1 with @err (volume.busy, volume.full ...). */
int keeper_volume_open(struct keeper_live *k, const char *id, struct err *err);
/* The folder of all; in it a new one, ".new-ID", for @id. Descriptors, or -1 with @err. */
int keeper_volumes_folder(const struct keeper_live *k, struct err *err);
int keeper_volume_new(int dir, const char *id, struct err *err);
void keeper_volume_look(struct keeper_live *k, uint64_t now);
void keeper_volume_close(struct keeper_live *k);
/* Nothing is to be left of it. 0 or -1 with @err; then it can be done again. */
int keeper_volume_remove(struct keeper_live *k, const char *id, struct err *err);

/* keeper_snapshot.c: copies of its files, as templates that others begin with. found: the root of its files; begin with
 * the template @id ("" none). 0 or -1 with @err. The handler of EDGE_SNAPSHOT, and what ends one that is under way. */
int snapshot_found(struct keeper_live *k, struct err *err);
int snapshot_fill(struct keeper_live *k, const char *id, struct err *err);
int snapshot_on_ask(struct keeper_live *k, const struct edge_only_id *m);
watch_fn snapshot_on_end;
bool snapshot_aside(struct keeper_live *k);     /* the operation at hand waits for its end; false: there is none */
void snapshot_free(struct keeper_live *k);

/* keeper_hosts.c: open: the hosts of @p's registries. 0, or -1 with @err; while somebody asks for them
 * (k->hosts.asker.pid > 0) that is no error: the message at hand is put aside by wait (-1: no memory), and handled
 * again by turn, when the asker has said something or its time is up. drop: nobody waits for that any more. */
int keeper_hosts_open(struct keeper_live *k, enum keeper_whose whose, struct policy *p, struct err *err);
int keeper_hosts_wait(struct keeper_live *k);
void keeper_hosts_turn(struct keeper_live *k);
void keeper_hosts_drop(struct keeper_live *k);
void keeper_hosts_free(struct keeper_live *k);

/* keeper_print.c: what one under that policy would be, as the warden compares it: "\nprofile=DIGEST\n...", and a
 * NUL. 0 or -1 with @err. */
int keeper_print(const struct keeper_live *k, const struct policy *p, struct buf *out, struct err *err);
/* Its line about the policy alone. */
int keeper_print_policy(const struct policy *p, struct buf *out, struct err *err);

#endif
