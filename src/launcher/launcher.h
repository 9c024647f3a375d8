/* launcher/launcher.h: the running launcher, for launcher*.c only */
#ifndef CLOCHE_LAUNCHER_LAUNCHER_H
#define CLOCHE_LAUNCHER_LAUNCHER_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/loop.h"
#include "engine/leavings.h"
#include "launcher/maker.h"
#include "launcher/serve.h"
#include "wall/janitor.h"
#include "proto/edge_export.h"
#include "proto/edge_launcher.h"
#include "wire/table.h"

#define DEATHS_MAX 10           /* of front and warden within DEATHS_MS: then it is given up */
#define DEATHS_MS  60000

struct keeper {
    struct keeper *next;
    char id[EDGE_ID + 1];
    pid_t pid;
    bool doomed;                /* the kill switch was thrown while it lived */
    int control;                /* its end: the launcher is gone. New edges to the warden go over it */
    int edge;                   /* while it is vacant: it has no id: the warden's end of its edge; -1 */
};

#define SCRIBES_MAX 4

/* Which front a connection is for: what the kernel vouches for comes over unix sockets, strangers over TCP. */
enum which_front { FRONT_OWNER, FRONT_STRANGERS, FRONTS };

/* What was said of the configuration to one that has to answer it. */
struct settings_said {
    unsigned waits;             /* is not answered yet, */
    unsigned over;              /* and of that so much, the first, is of a configuration that somebody refused */
};

/* Whether a process answers. */
struct pulse {
    bool owed;                  /* an answer to EDGE_PING, */
    unsigned beats;             /* for so many beats */
};

/* What speaks MCP and /api for a front. */
struct adapter_end {
    pid_t pid;
    struct watch door;
    struct packet_queue out;
    struct pulse pulse;
    bool ended;                     /* it has just ended: by itself, if its front is there when it has rested */
    struct timer rest;              /* it is started then; not set while it is there */
    uint64_t deaths_ms;             /* since when they are counted */
    unsigned deaths;
};

struct front_end {
    struct adapter_end adapter;
    pid_t pid;
    struct watch door;          /* what was accepted goes over it; there may be no such front */
    struct packet_queue out;
    struct settings_said said;  /* EDGE_SETTINGS */
    struct pulse pulse;
    struct timer rest;          /* nobody is let in until then, and until @out is taken: there is no room */
};

/* What is known of Docker's daemon, or Podman's (launcher_docker.c). */
struct docker_known {
    uint64_t at_ms;             /* since when; 0: nothing is */
    uint8_t is;                 /* LAUNCH_DOCKER_... */
    bool asking;
    bool wanted[FRONTS];        /* whose adapter waits for it */
    struct watch watch;         /* while it is asked */
    struct timer late;
    char said[16];              /* the beginning of its answer */
    size_t n_said;
};

/* What the daemon can be without (launcher_lesser.c). */
enum which_lesser { LESSER_WEBHOOK, LESSER_SIGNER, LESSER_OTLP, LESSERS };
struct lesser {
    pid_t pid;                  /* 0: none */
    uint64_t ms;                /* the minute whose deaths are counted began */
    unsigned deaths;
    bool given_up;              /* until the daemon is restarted: it said that another try would do harm */
};

#define LISTENERS_MAX (2 * SERVE_LISTEN_MAX)    /* ours, and those that were passed in */
struct listener {
    struct watch watch;
    int dir;                    /* of a unix socket's name that is ours to remove; -1 */
    struct serve_listen at;     /* with the port that it got; a passed unix socket may have no path */
};

struct launcher {
    struct serve_plan *plan;
    struct serve_plan *former;  /* while a new one is tried; NULL */
    int argc;
    char **argv;                /* the flags, for the next reading of the configuration */
    bool json;
    char notify[108];           /* NOTIFY_SOCKET, "" none */
    char state[PATH_MAX];       /* the state folder without links: SQLite follows none on its way there */
    struct keeper *keepers;     /* the newest first */
    size_t n_keepers, n_vacant; /* of them, and those that are vacant */
    int image;                  /* what keepers make guests of (engine_image); -1: there is none */
    struct timer vacant;        /* one more is made then; not set: there are enough */
    struct listener listeners[LISTENERS_MAX];
    size_t n_listeners;
    int spare;                  /* a place for one more descriptor, to refuse who connects when there is no other; -1 */
    struct watch refused;       /* to whom that was said, and may still speak: it has the spare place; -1 nobody */
    struct timer refused_end;   /* it is listened to no longer */
    struct front_end fronts[FRONTS];
    struct docker_known docker;
    struct loop loop;
    struct signals signals;
    struct maker_link maker;    /* starts all others */
    struct watch warden;        /* the warden's edge */
    pid_t warden_pid;
    struct pulse pulse;         /* the warden's */
    struct timer beat;          /* of all */
    bool watchdog;              /* systemd wants to hear us */
    unsigned scribe_late;       /* how often in turn the warden said so, */
    uint64_t scribe_late_ms;    /* and when it did last */
    pid_t scribes[SCRIBES_MAX];         /* the newest first; the others still write what they were sent; 0: none */
    struct leavings leavings;           /* of a daemon before this one */
    struct janitor sweeper;             /* removes them, once it is certain that no other daemon lives here, */
    bool *sweep;                        /* which is said here; shared with it */
    char audit[PATH_MAX], transcripts[PATH_MAX], volumes[PATH_MAX];     /* folders */
    struct lesser lessers[LESSERS];
    int otlp_edge;              /* how launcher_otlp.c speaks with it; -1 */
    struct packet_queue to_warden;
    struct timer more;          /* tries again to say what the kernel refused, other than for a slow reader */
    struct msg_gate gate;
    uint64_t deaths[DEATHS_MAX];
    size_t n_deaths;
    uint32_t wardens, fronts_again;     /* that were started again */
    char log[64];               /* the log's setting, as the environment of the others has it */
    bool ready;                 /* the warden that lives has said so */
    struct settings_said limits;        /* EDGE_LIMITS, to it */
    bool open;                  /* it listens */
    bool told;                  /* whoever waits for the start knows */
    bool read_again;            /* asked for while a new configuration is tried */
    struct rlimit files;        /* the limit of descriptors that we were given; keepers get it back */
    bool ending, quiet;
    struct timer end;           /* no more patience then */
    struct timer children;      /* somebody ended that is not waited for yet */
    bool kill_untold;           /* no warden has heard yet that all sandboxes are to end */
    struct timer shoot;         /* doomed ones that still live are killed then */
    struct err *err;            /* why it ends, if it */
    bool failed;
    uint8_t in[EDGE_ROOM];
};

/* launcher.c: what was told to systemd (sd_notify(3)), where it asked for it. */
void launcher_notify(const struct launcher *l, const char *text);
/* Twice as many descriptors as sandboxes, and some. 0 or -1 with @err. */
int launcher_room(const struct serve_plan *plan, uint64_t limit, struct err *err);
void say_restarts(struct launcher *l);      /* to the warden: how often it and the fronts were started again */
/* Say it to @edge, which is watched, now or when there is room for it. @fd (-1 none) is taken. -1: it is gone. */
int launcher_queue(struct launcher *l, struct watch *edge, struct packet_queue *out, uint8_t type,
                   const struct shape *shape, const void *m, int fd);

/* launcher_start.c: the processes. 0, or -1 with @err. */
int start_maker(struct launcher *l, struct err *err);   /* who starts all others */
/* A process by it, and its pid, or -1 with @err. A maker that fails is killed, and its end is ours. */
pid_t launcher_make(struct launcher *l, const struct maker_order *order, struct err *err);
int start_warden(struct launcher *l, struct err *err);  /* and tell it of the keepers that live */
int start_front(struct launcher *l, enum which_front which, struct err *err);
int start_fronts(struct launcher *l, struct err *err);  /* those that there are listeners for */
int launcher_pair(int pair[2], struct err *err);        /* of sockets for messages */
int say_rules(struct launcher *l);      /* the gate's, and their languages, to the warden; -1: it is gone */
int say_pool(struct launcher *l);       /* how many are made ahead; likewise */
/* To the warden, with @fd, which is taken (-1 none): that, or what has an id or (NULL) nothing. -1: it is gone. */
int launcher_send(struct launcher *l, uint8_t type, const struct shape *shape, const void *m, int fd);
int launcher_say(struct launcher *l, uint8_t type, const char *id, int fd);

/* launcher_keeper.c: one that is vacant, or a new one, for that sandbox. 0, or -1 with @err. */
int start_keeper(struct launcher *l, const char *id, int *edge, struct err *err);
void vacant_drop(struct launcher *l);   /* all of them: their settings are not the daemon's any more, or it ends */
void vacant_after(struct launcher *l, uint64_t ms);     /* one more then, where there are too few */

/* Look at a maker that owes an answer. */
void maker_time(struct launcher *l);

/* launcher_pulse.c: who of them answers. */
void pulse_open(struct launcher *l);
void pulse_begin(struct launcher *l);           /* the first beat: the loop turns from here on */
void pulse_heard(struct pulse *p);
void pulse_wake_all(struct launcher *l);        /* the daemon ends: one that is stopped is to hear it */
int pulse_scribe_late(struct launcher *l, const struct nothing *m);
int pulse_keeper_late(struct launcher *l, const struct edge_only_id *late);
/* The end of a child, 0 none: it may end by itself within @ms; then it is killed. What the kernel holds even then (a
 * disk that answers nothing) is not waited for: it ends when it comes back. */
void end_process(pid_t *pid, uint64_t ms);
/* What ended and was left to us, who are the reaper of all that is below: the janitor of a keeper that has ended, the
 * guest of one that was killed. Where we are a container's first process nobody else would (PR_SET_CHILD_SUBREAPER). */
void reap_orphans(struct launcher *l);
/* Keepers that ended, and orphans; reap_soon() that one if it has, and all of them in a moment. */
void reap_keepers(struct launcher *l);
void reap_soon(struct launcher *l, pid_t one);

/* launcher_confine.c: no process can be started any more but by cloche-maker. 0 or -1 with @err. */
int launcher_confine(struct err *err);

/* launcher_sweep.c: what was left behind by a daemon all of whose processes were killed at once (leavings.h). Somebody
 * who will remove it is started while that can be done; and told to, when this daemon's state is its own. */
int sweep_prepare(struct launcher *l, struct err *err);
void sweep_begin(struct launcher *l);
void sweep_end(struct launcher *l);

/* launcher_scribe.c: who writes the audit record. */
int scribe_folders(struct launcher *l, struct err *err);        /* make them, before anything is started */
int start_scribe(struct launcher *l, struct err *err);          /* for the warden that lives */
int scribe_reap(struct launcher *l, struct err *err);           /* one may have ended; another one is started */
/* Whether the warden lives, so that who ended with @status (of waitpid) did not end along with it. A process closes
 * its files before it is seen to have ended (exit(2)): one that saw the end of its socket to the warden, and so ended
 * with 0, is believed only when the warden is still there half a second later. */
bool launcher_warden_lives(const struct launcher *l, int status);
void scribe_end(struct launcher *l);                            /* the warden has ended: wait for them */
int launcher_count_death(struct launcher *l, const char *who, struct err *err);

/* launcher_adapter.c: cloche-adapter, one for each front, with which it starts and ends. */
int start_adapter(struct launcher *l, enum which_front which, struct err *err);
void lose_adapter(struct launcher *l, enum which_front which);
void hear_adapter(struct launcher *l, enum which_front which);

/* launcher_docker.c: tell that front's adapter of Docker, as it was some seconds ago or as it is. */
void docker_wanted(struct launcher *l, enum which_front which);

/* launcher_lesser.c: those that the daemon can be without. */
/* A new one of that kind, with @settings (-1 none) behind its socket to us, whose other end is ours. -1 with @err. */
int lesser_make(struct launcher *l, enum which_lesser which, char *const argv[], int settings, struct err *err);
void lessers_reap(struct launcher *l);  /* one of these may have ended; another one is started, but not for ever */
void lesser_end(struct launcher *l, enum which_lesser which);
void lessers_end(struct launcher *l);

/* launcher_webhook.c: who tells a server of approvals. */
int start_webhook(struct launcher *l, struct err *err);         /* for the warden that lives; nothing without a URL */

/* launcher_signer.c: who signs. */
int start_signer(struct launcher *l, struct err *err);          /* for the warden that lives; nothing without a key */

/* launcher_otlp.c: who tells a collector what the daemon did. */
bool otlp_wanted(const struct serve_plan *plan);
/* Unless it is there, or nobody wants it; and for the warden that lives, which tells it. */
int start_otlp(struct launcher *l, struct err *err);
void otlp_source(struct launcher *l, enum export_source source);    /* a new front tells it too */

/* launcher_door.c: the sockets. */
int doors_take(struct launcher *l, struct err *err);    /* those that were passed in; before anything is opened */
int doors_open(struct launcher *l, struct err *err);
void doors_close(struct launcher *l);
void doors_wake(struct launcher *l, enum which_front which);    /* those that have rested */

/* launcher_reload.c: what the fronts and the warden are told of the configuration. */
int say_languages(struct launcher *l, struct watch *edge, struct packet_queue *out);    /* the user's own; 0 or -1 */
int settings_say(struct launcher *l, enum which_front which);   /* to a front; -1: it is gone */
/* Read it again. What is bad in it is said, and the former one stays. */
void settings_reload(struct launcher *l);
/* The answer to @said, a front's or the warden's: @why_not, NULL yes. 0; -1: it broke the dialogue. */
int settings_answer(struct launcher *l, struct settings_said *said, const struct err *why_not);
void settings_back(struct launcher *l);     /* what is being read (l->former is there) does not count */

#endif
