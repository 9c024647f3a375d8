/* cli/launcher.h: the running launcher, for launcher*.c only */
#ifndef CLOCHE_CLI_LAUNCHER_H
#define CLOCHE_CLI_LAUNCHER_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/serve.h"
#include "warden/edge.h"
#include "wire/table.h"

#define DEATHS_MAX 10           /* of front and warden within DEATHS_MS: then it is given up */
#define DEATHS_MS  60000

struct keeper {
    struct keeper *next;
    char id[EDGE_ID + 1];
    pid_t pid;
    int control;                /* its end: the launcher is gone. New edges to the warden go over it */
};

struct launcher {
    const struct serve_plan *plan;
    char front_program[PATH_MAX], warden_program[PATH_MAX];
    char state[PATH_MAX];       /* the state folder without links: SQLite follows none on its way there */
    struct keeper *keepers;
    int epoll, signals, listener, dir;  /* @dir: of the socket */
    int warden;                 /* the warden's edge; -1 */
    int connections;            /* to the front: what was accepted goes over it; -1 */
    pid_t warden_pid, front_pid;
    struct packet_queue to_warden, to_front;
    struct msg_gate gate;
    uint64_t deaths[DEATHS_MAX];
    size_t n_deaths;
    bool ready;                 /* the warden that lives has said so */
    bool bound;                 /* the socket's name is ours */
    bool resting;               /* nobody is let in for a moment: there is no room for another connection */
    struct rlimit files;        /* the limit of descriptors that we were given; keepers get it back */
    bool ending, quiet;
    uint64_t end_ms;            /* no more patience then */
    struct err *refused;        /* why the warden did not start */
    bool was_refused;
    uint8_t in[EDGE_ROOM];
};

/* launcher_start.c: the processes. 0, or -1 with @err. */
int start_warden(struct launcher *l, struct err *err);  /* and tell it of the keepers that live */
int start_front(struct launcher *l, struct err *err);
int start_keeper(struct launcher *l, const char *id, int *edge, struct err *err);
int launcher_say(struct launcher *l, uint8_t type, const char *id, int fd);
int launcher_watch(struct launcher *l, int fd);

/* launcher_door.c: the socket. */
int door_bind(struct launcher *l, struct err *err);
void door_unbind(struct launcher *l);
void door_accept(struct launcher *l);
void door_wake(struct launcher *l);     /* it has rested; nothing where it did not */

#endif
