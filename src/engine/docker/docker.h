/* engine/docker/docker.h: one sandbox of the docker engine, for its files
 *
 * Theory: a daemon (Docker, Podman as root) is asked over its unix socket for a container: its namespaces, no network,
 * no capability, no_new_privs, a read-only root, limits. Its only program is the guest, which lies in a folder of ours
 * that is mounted read-only, and which waits for its transport before it does anything. Meanwhile we, who are root on
 * the same host, go into the container's namespaces and build there what the policy says, from the same plan as the
 * native engine: the tree, by descriptors, so the daemon never resolves a path that a sandbox could have changed; and
 * listeners for cloche-egress in its network. The container's own root is gone then, and the daemon's mounts with it.
 * The transport is handed to the guest, which sets our system call filter first (guest/filter.h).
 *
 * Whoever may speak to the daemon's socket is root on the host. So the socket is the supervisor's alone: nothing that
 * shows it is opened to a sandbox (daemon.c), and who goes into the container holds no connection to it.
 *
 * The container goes with the guest (AutoRemove), and the guest goes when its transport ends, whoever was killed. Who
 * made the container removes it anyway, or its janitor does; and the next sandbox removes what a dead maker left.
 *
 * Of the native engine's files it takes what the engine oci takes (native/native.h, struct native_way).
 */
#ifndef CLOCHE_ENGINE_DOCKER_DOCKER_H
#define CLOCHE_ENGINE_DOCKER_DOCKER_H

#include <jansson.h>
#include <limits.h>

#include "base/buf.h"
#include "engine/native/native.h"
#include "engine/ops.h"

#define DOCKER_RUN     "/run/cloche-docker"     /* a folder for each container, named by the sandbox's id */
#define DOCKER_INSIDE  "/.cloche"               /* where the container sees it, until its root is replaced */
#define DOCKER_GUEST   "cloche-guest"
#define DOCKER_FILTER  "filter"
#define DOCKER_SOCKET  "socket"
#define DOCKER_OWNER   "owner"                  /* who made it (owner.c) */
#define DOCKER_PREFIX  "cloche-"
#define DOCKER_EMPTY   "localhost/cloche-empty:latest" /* the image without anything: the tree is ours */
#define DOCKER_API     "1.41"                   /* what we speak; a later one where the daemon has dropped it */
#define DOCKER_OWNER_MAX 96

/* The daemon, once it was found. */
struct docker_daemon {
    char socket[108];
    char api[16];               /* "" before docker_find() */
    const char *name;           /* "Docker", "Podman"; NULL before */
    bool is_podman;
    char version[64];           /* as it says */
};

struct docker {
    struct native native;       /* first */
    struct docker_daemon daemon;
    char name[128];             /* the container's */
    int listener;               /* the guest comes to it */
    int hand;                   /* and is told its transport over this; or -1 */
    int guest;                  /* pidfd of it; or -1 */
    pid_t pid;                  /* its number, or -1 */
    bool made;                  /* a container may be there */
    bool confined;              /* this process makes no connection any more: the first janitor does */
    uint64_t cpu_us;            /* when it was killed */
};

extern const struct engine engine_docker;

static inline struct docker *
docker_of(struct sandbox *base)
{
    return (struct docker *)base;
}

/* http.c: one request, "/containers/json?all=1", to the daemon of the version that was agreed on (none yet: as it is);
 * @body JSON or NULL, or @raw bytes of @type (NULL: none). 0 with *status and, where @out is not NULL, the answer as
 * JSON there (NULL: it has none; the caller's). -1 with @err: docker.socket..., docker.answer. */
struct docker_ask {
    const char *method, *path;
    const json_t *body;
    const char *type;
    const void *raw;
    size_t raw_n;
    unsigned within_s;          /* the whole answer has to come by then; 0: as long as making a container may take */
};
#define DOCKER_LOOK_S 5         /* who only looks whether there is a daemon, and connecting to it */
int docker_ask(const struct docker_daemon *d, const struct docker_ask *ask, unsigned *status, json_t **out,
               struct err *err);
/* Its words for a refusal, as an error of @code. -1. */
int docker_refused(const struct docker_daemon *d, unsigned status, const json_t *said, const char *code,
                   const char *what, struct err *err);

/* daemon.c: where it listens, who it is, and what it can. 0, or -1 with @err. */
int docker_find(struct docker_daemon *d, struct err *err);
/* Nothing that the plan opens shows the daemon's socket. */
int docker_check_socket(const struct docker_daemon *d, const struct native_plan *plan, struct err *err);
/* The image without anything is there. */
int docker_empty_image(const struct docker_daemon *d, struct err *err);

/* container.c: made and started, with the guest waiting at @hand. */
int docker_container(struct docker *sb, const struct cgroup_limits *limits, struct err *err);
/* Ask that it be no more, whatever it is now, by its name or the daemon's id. 1: there is none; 0: not yet; -1: the
 * daemon does not answer. */
int docker_remove(const struct docker_daemon *d, const char *name);

/* folder.c: what the container is given, and its end. True: it is gone. */
int docker_folder_make(struct docker *sb, struct err *err);
bool docker_folder_remove(const char *id);
/* Who made a sandbox, in words that last longer than it; whether that process lives. */
void docker_owner(char out[DOCKER_OWNER_MAX]);
bool docker_owner_lives(const char *owner);
/* What makers left that are gone: their containers, their folders. Whether there is such a folder, which is there as
 * long as the container may be. */
void docker_sweep(const struct docker_daemon *d);
bool docker_left(void);

/* child.c */
_Noreturn void docker_child(const struct native *native, const struct launch *l);

/* probe.c */
int docker_probe(const char *runtime, struct engine_report *out, struct err *err);

#endif
