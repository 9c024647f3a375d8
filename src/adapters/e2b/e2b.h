/* adapters/e2b/e2b.h: what E2B's client libraries ask, in the words of /v1 (docs/e2b.md)
 *
 * Two servers in one: their API (sandboxes; by a token), and what runs in each of their sandboxes (commands, files,
 * code; by that sandbox's key, which the front has judged). All that is asked of a sandbox is asked with the name that
 * the client says it has (E2b-Sandbox-Id): a key reaches its own and no other.
 */
#ifndef CLOCHE_ADAPTERS_E2B_E2B_H
#define CLOCHE_ADAPTERS_E2B_E2B_H

#include "adapters/adapters.h"
#include "wire/multipart.h"
#include "wire/rich.h"

#define E2B_ENVD      "0.5.7"       /* the version of their server whose calls these are */
#define E2B_TIMEOUT_S 300           /* of a sandbox, where nothing is said */
#define E2B_FILES_MAX 64            /* of one upload */
#define E2B_DEPTH_MAX 16            /* of one listing, */
#define E2B_FOLDERS_MAX 256         /* which looks into so many: each is an operation, which is judged and on record */
#define E2B_FAR_S     (10U * 365 * 86400)   /* until when a sandbox without a limit is said to live */

/* Of one visit. */
struct e2b {
    uint64_t number;                /* of the command, or the context; */
    uint32_t pid;                   /* what clients call that, */
    unsigned matches;               /* which so many of the sandbox's commands could be, */
    void (*found)(struct visit *r); /* and what is done with it then */
    bool known;                     /* it is one that answers, */
    bool streams;                   /* and the answer is a stream that has begun */
    bool terminal;
    uint64_t had[2];                /* bytes of its output that were told */
    char *path, *to;                /* as the client said them, owned */
    json_t *left;                   /* of a listing: folders to look into */
    struct multipart form;          /* of an upload: what is behind the files that were written, */
    unsigned files;                 /* and how many are left in it */
    json_t *keep;                   /* texts that an operation borrows */
    struct rich rich;
    const char *language;
    unsigned tries;
};

/* e2b.c. The visit's own; NULL: no memory, which is said. */
struct e2b *e2b_of(struct visit *r);
void e2b_gone(struct visit *r);
/* The sandbox that it is about, by its path or its header; NULL: none is named, which is said. */
const char *e2b_box(struct visit *r);
void e2b_unfit(struct visit *r, const char *what);              /* 400 */
/* A refusal; of a stream that has begun, as its last message. */
void e2b_fail(struct visit *r, const struct err *err);
/* A message of a stream in Connect's form; the last one ends it. Takes the reference. */
void e2b_message(struct visit *r, json_t *message, bool last);
/* A path as operations have it: below the workspace, which is /workspace and /home/user to clients. @room has
 * EDGE_PATH_MAX + 1. NULL: too long. */
const char *e2b_path(const char *said, char *room);
void e2b_shown(const char *said, char *room);                   /* the same as clients are told it */
/* An operation of that kind, cleared; used at once, for there is one. */
struct edge_op *e2b_op(enum op_kind kind);

#endif
