/* post/post.h: one POST after the other to one server that the configuration names, for processes that tell others
 *
 * It reaches the one host and port of its URL: no redirect is followed, no proxy asked. Nothing here waits: the loop
 * calls, and at its end each POST says what came of it, once. Of the answer is read what is asked for, and no more than
 * POST_ANSWER_MAX bytes.
 */
#ifndef CLOCHE_POST_POST_H
#define CLOCHE_POST_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "egress/resolve.h"
#include "egress/tls_end.h"
#include "match/hook_url.h"

#define POST_ANSWER_MAX 4096

/* --- answer.c, pure: what an answer's first bytes say ------------------------------------------------------------- */

/* The status: 100 to 599; 0 they are no whole line yet; -1 it is no HTTP/1 (RFC 9112 §4). */
int post_status(const char *p, size_t n);

struct post_answer {
    int status;
    uint32_t after_s;           /* Retry-After, in seconds; 0: none, or a date */
    struct str body;            /* as far as it was read; nothing where its length is not said */
};

/* An answer whose head is there, and as much of its body as its Content-Length says. 1; 0 there is more to come, which
 * has room in POST_ANSWER_MAX; -1 it is no HTTP/1. */
int post_answer(const char *p, size_t n, struct post_answer *out);

/* --- post.c ------------------------------------------------------------------------------------------------------- */

enum post_state { POST_IDLE, POST_RESOLVING, POST_CONNECTING, POST_TLS, POST_SENDING, POST_READING };

struct post {
    const struct hook_url *url;
    uint64_t timeout_ms;
    bool whole;                 /* Retry-After and the body are wanted too, not the status alone */
    /* What came of it: @a, or NULL and @why; another one may be begun at once. */
    void (*done)(struct post *p, const struct post_answer *a, const char *why);
    void *owner;
    struct loop *loop;
    struct resolver *resolver;
    struct tls_ctx *tls;        /* NULL: plain */
    enum post_state state;
    struct watch server;
    struct tls_end *end;
    struct ip addresses[RESOLVE_MAX];
    size_t n_addresses, next;
    uint64_t deadline_ms;       /* on the loop's clock, unless it is idle */
    struct buf out;             /* head and body */
    size_t out_at;
    bool sent;                  /* all of it: the server may have done what it says */
    char in[POST_ANSWER_MAX];
    size_t in_n;
};

/* While files can still be opened: the loop, the resolver, and for https what is trusted (@ca: a file besides the
 * host's own, "" none). 0 or -1 with @err. */
int post_open(struct post *p, const char *ca, struct err *err);
/* The line and the fields that every request has; others, an empty line and the body come behind it. */
void post_head(struct post *p, const char *type, size_t length);
/* Send p->out, which is whole. It must be idle. */
void post_begin(struct post *p);
/* In a timer: when its time is over, it ends. True: it did. */
bool post_late(struct post *p);

/* confine.c: from here on the process can do that, and hear who tells it what to send; no more. 0 or -1 with @err. */
int post_confine(struct err *err);

#endif
