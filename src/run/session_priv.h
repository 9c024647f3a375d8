/* run/session_priv.h: the running session, for session*.c only */
#ifndef CLOCHE_RUN_SESSION_PRIV_H
#define CLOCHE_RUN_SESSION_PRIV_H

#include "base/mask.h"
#include "engine/engine.h"
#include "guest/client.h"
#include "run/net.h"
#include "run/session.h"
#include "run/session_audit.h"

#define STDIN_CHUNK 65536

/* A pipe that the command writes to in place of a file of the host. */
struct copy {
    int from;       /* non-blocking; -1 when there is none, or it is at its end */
    int target;     /* our own descriptor of the file */
};

struct live {
    const struct session *s;
    const struct session *asked;    /* as it came; @s has the vault's own policy once there is a vault */
    struct session_result *r;
    struct loop *loop;          /* of whoever holds the sandbox: a run by poll, a keeper by epoll */
    struct err *err;            /* of what the loop calls */
    struct sandbox *sb;
    struct guest_client *client;
    int transport;              /* the guest's, which is the sandbox's own; good until that is killed */
    uint16_t channel;
    struct signals signals;
    struct watch guest, vault_end, input, copying[2], feeding, outputs[2];   /* what else a run waits for */
    struct timer deadline;      /* SIGTERM */
    struct timer killing;       /* SIGKILL */
    struct timer sample;        /* memory is looked at, and the vault */
    struct timer record;
    bool relay;                 /* output comes as frames */
    bool ended;                 /* the command's end is known */
    bool closed;                /* the transport is at its end */
    bool cancelled, memory;
    struct copy copies[2];      /* stdout, stderr */
    struct run_audit *audit;    /* NULL: the run is not recorded */
    struct published *published;    /* session_publish.c; NULL: no port is */
    struct net *net;            /* the network by name; NULL: none */
    int vault_for_egress;       /* the end of the vault's socket that cloche-egress gets; -1: no vault in this run */
    struct vault_link *vault;   /* session_vault.c; NULL: no vault in this run */
    int feed;                   /* non-blocking write end of the pipe that stands for a file as stdin; -1 */
    struct buf waiting[2];      /* relayed output that its reader did not take yet; nothing more is asked for then */
    bool sent;                  /* EXEC is with the guest: what the command did is the user's */
    char *in;                   /* STDIN_CHUNK bytes, made with the first use */
    size_t in_n, in_at;
    bool in_eof, in_closed;
};

/* session_io.c */
void session_note_denied(struct session_result *r, const struct msg_denied *d);
/* A warning of the run's: into its report, and to stderr when @say. */
void session_warn(struct session_result *r, bool say, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int session_take_events(struct live *l, struct err *err);
int session_feed_stdin(struct live *l, struct err *err);
/* Write what waits for @i (0 stdout, 1 stderr) as far as its reader takes it without blocking. */
int session_flush(struct live *l, size_t i, struct err *err);
bool session_output_waits(const struct live *l);

/* session_pass.c: the descriptors for the command into fds[1] and fds[2]; pass_sent when they are with the guest. */
int pass_open(struct live *l, int fds[3], struct err *err);
void pass_sent(const int fds[3]);
int pass_copy(struct copy *c, struct err *err);
/* More of stdin into the pipe, without blocking. -1: no memory. */
int pass_feed(struct live *l);
int pass_drain(struct live *l, struct err *err);

/* session_publish.c: listen for whoever is to reach ports of the sandbox, before that is made; say where; what is
 * waited for now; whether @ev is about one of these connections, and is done with; all of it ends, while the guest's
 * client is there. 0 or -1 with @err. */
int publish_open(struct live *l, struct err *err);
void publish_say(const struct live *l);
void publish_look(struct live *l);
bool publish_event(struct live *l, const struct guest_event *ev);
void publish_stop(struct live *l);

/* session_vault.c: start it when the policy names secrets or looks at requests, and put their placeholders and the CA's
 * certificate into the run's policy; before the sandbox is made. 0, also when there is nothing to do, or -1 with
 * @err. */
int vault_start(struct live *l, struct err *err);
/* What the values of its secrets are recognised by, into @set, whose key is there. Where that cannot be had the set
 * hides everything. Before anything else is asked of the vault. */
void vault_masks(struct live *l, struct masks *set);
bool vault_wanted(const struct policy *p);      /* whether there is something to do */
/* A new egress edge in l->vault_for_egress, for a cloche-egress that is started anew; the former one is closed. */
int vault_new_edge(struct live *l, struct err *err);
/* To be watched for reading; -1 none. */
int vault_fd(const struct live *l);
/* Its end is noticed, revocations on disk are passed on. Call when it is readable, and now and then. */
void vault_look(struct live *l);
void vault_stop(struct live *l);

/* session_setup.c: the sandbox, with its network and its guest told what it is; named @id, or as the engine likes. */
int session_make(struct live *l, const char *id, struct err *err);
/* That, and the command. */
int session_open(struct live *l, struct err *err);

#endif
