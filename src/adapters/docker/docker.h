/* adapters/docker/docker.h: what clients of the Docker Engine API ask, in the words of /v1 (docs/docker-api.md)
 *
 * A container is a sandbox with the label docker-image. Its main process is a command in the background, and so is each
 * exec. What the API keeps of a container and /v1 does not (its command until it starts, which command is the main one,
 * its execs) is kept here, in the process that made it, by the sandbox's id; of one that another process made, or this
 * one before it came anew, it is found again as far as it can be. Nothing is told or done before the warden has judged
 * whose the sandbox is: each request asks for it first (docker_with).
 */
#ifndef CLOCHE_ADAPTERS_DOCKER_DOCKER_H
#define CLOCHE_ADAPTERS_DOCKER_DOCKER_H

#include "adapters/adapters.h"
#include "adapters/docker/want.h"

#define DOCKER_API        "1.44"        /* the newest version whose calls these are, */
#define DOCKER_API_MINOR  44
#define DOCKER_API_OLDEST 24            /* and the oldest, of 1.24 */
#define DOCKED_MAX        1024          /* containers of which something is kept here; */
#define DOCKED_BODY_MAX   (64UL * 1024) /* bytes of what one was made with, */
#define DOCKED_EXECS_MAX  64            /* and execs of one */
#define DOCKER_EXEC_ID    (EDGE_ID + 16)

/* A container. */
struct docked {
    struct docked *next;
    char id[EDGE_ID + 1], name[EDGE_NAME_MAX + 1], image[256];
    uint64_t created_ms, begun_ms, ended_ms;
    json_t *body;                       /* that it was made with; NULL: not known here */
    json_t *execs;                      /* by their ids */
    char *entrypoint, *cmd;             /* of its image, as JSON; NULL not known */
    char *labels;
    uint64_t run;                       /* its main command; 0: not started */
    uint64_t bytes[2];                  /* of that one's output, when it was looked at last */
    bool tty, stdin_open, remove, paused, ended, searched;
    bool deleting;                      /* a visit asked for its end */
    uint8_t stop_signal, flags, code;   /* how the main command ended */
};

enum docker_what { DOCKER_OTHER, DOCKER_ATTACH, DOCKER_LOGS, DOCKER_WAIT, DOCKER_STOP, DOCKER_EXEC };
enum docker_phase { DOCKER_IDLE, DOCKER_WAITS_START, DOCKER_FOLLOWS, DOCKER_DELETES, DOCKER_WAITS_REMOVED };

/* Of one visit. */
struct docker {
    char id[EDGE_ID + 1];               /* the container; and, of those that the name could mean, */
    unsigned matches;                   /* how many there are */
    bool exact;
    uint64_t last_ms;                   /* of a list's last one: when it was made */
    void (*then)(struct visit *r, struct docked *d);
    enum docker_what what;
    enum docker_phase phase;
    char exec[DOCKER_EXEC_ID + 1];
    uint64_t number;                    /* the command that it is about */
    uint64_t had[2], until[2];          /* of its output: what came, and (@bounded) what is wanted */
    bool in, out, err, tty, discard, bounded, known, over, removed, force;
    bool tail_kept;
    uint64_t tail;                      /* lines; UINT64_MAX all */
    uint32_t code;                      /* how that command ended */
    uint8_t signal;
    struct timer late;                  /* of a stop: then it is killed; of a stream: then it may be followed */
    uint64_t opened_ms;                 /* when its stream was begun */
    size_t at;                          /* of a list: which one is looked at */
};

/* docker.c. The visit's own. */
struct docker *docker_of(struct visit *r);
void docker_gone(struct visit *r);
bool docker_lives(const struct edge_box *box);
/* Find what the path names, see how it is, and go on; or it is said that there is none. */
void docker_with(struct visit *r, const char *name, void (*then)(struct visit *r, struct docked *d));
struct docked *docked_find(const char *id);
struct docked *docked_know(const struct edge_box *box);     /* NULL: no memory, or no container */
void docked_forget(const char *id);
bool docked_runs(const struct docked *d);
void docked_over(struct docked *d, const struct edge_run *run);     /* what is told of its main command */
uint32_t docker_code(uint8_t flags, uint8_t code);          /* as a shell tells it */
void docker_refuse(struct visit *r, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void docker_no(struct visit *r, const struct docker_no *no);
bool docker_flag(const struct visit *r, const char *key, bool usual);      /* of the query */
bool docker_number(const struct visit *r, const char *key, uint64_t most, uint64_t *out);   /* false: it is no number */
bool docker_version_well(struct visit *r);                  /* false: said */

/* show.c */
json_t *docker_inspect_json(const struct docked *d);
json_t *docker_item_json(const struct docked *d);
void docker_display_name(const struct docked *d, char room[EDGE_NAME_MAX + 1]);

/* run.c; words: of its main command (borrowed from @keep, which the caller drops). False: said. */
bool docker_words(struct visit *r, const struct docked *d, struct edge_op *op, json_t **keep);

void docker_terminal(const json_t *body, struct edge_op *op);      /* an exec with one, as @body says its size */
void docker_size(struct visit *r, uint64_t number);         /* as the query says, of that command */

/* attach.c */
void docker_follow(struct visit *r);            /* the command of->number, to the client as of->what says */
void docker_conclude(struct visit *r);          /* what it waited for is so */
void docker_delete(struct visit *r);            /* end its sandbox, then conclude */
void docker_started(struct docked *d);          /* who waited for that follows now */
void docker_not_started(struct docked *d, uint32_t code);
void docker_open_stream(struct visit *r);       /* 101, or a stream to one that did not ask for that */
uint8_t docker_stream_type(const struct visit *r, bool tty);

#endif
