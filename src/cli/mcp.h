/* cli/mcp.h: cloche mcp: the Model Context Protocol over stdin and stdout, for a client that starts its servers itself
 *
 * One line is one message (docs/mcp.md). Each that comes is a request to the daemon's /mcp on a connection of its own,
 * and what is answered there is a line again. Nothing is judged here: what passes is the daemon's to say.
 */
#ifndef CLOCHE_CLI_MCP_H
#define CLOCHE_CLI_MCP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "client/api_client.h"

#define MCP_LINE_MAX  (10UL * 1024 * 1024)      /* as the daemon's bodies */
#define MCP_CALLS_MAX 64                        /* at once; more are told to wait */
#define MCP_WAITING   (4UL * 1024 * 1024)       /* bytes that wait for stdout, from which on no more is heard */
#define MCP_GRACE_MS  1000                      /* for what is not answered yet when stdin ends */

/* mcp_bridge.c: until stdin ends, one of @signals comes, or nobody reads stdout. 0 or -1 with @err, which has to be
 * empty: also when the signal was that of a child's end, our own daemon's. */
int mcp_bridge(const struct api *api, struct signals *signals, struct err *err);

/* mcp_lines.c: stdin and stdout as lines. Neither blocks: whoever uses them polls both. */
struct mcp_lines {
    struct buf in, out;
    size_t said;                /* of @out, which waits for stdout */
    size_t searched;            /* of @in: no line ends before it */
    bool skipping, too_long;    /* a line beyond MCP_LINE_MAX, to its end; and that is still to be told */
    bool ended, gone;           /* stdin is over; nobody reads stdout */
};
void mcp_lines_open(struct mcp_lines *l);
void mcp_lines_free(struct mcp_lines *l);
/* Read once from stdin, when there is something to be read. */
void mcp_lines_hear(struct mcp_lines *l);
/* 1: the line l->in.p[0..*n), until mcp_lines_taken(); 0 no whole one is there; -1 one was too long. */
int mcp_lines_next(struct mcp_lines *l, size_t *n);
void mcp_lines_taken(struct mcp_lines *l, size_t n);
/* One line; and what waits, as far as there is room. */
void mcp_lines_say(struct mcp_lines *l, const void *p, size_t n);
void mcp_lines_flush(struct mcp_lines *l);
size_t mcp_lines_waiting(const struct mcp_lines *l);

/* mcp_daemon.c: a daemon of our own, for as long as we live. */
struct mcp_daemon {
    int pid;                    /* 0: none */
    int home, folder;           /* the folder of such folders, and ours in it, locked */
    char name[32];
};
#define MCP_DAEMON_INIT { .home = -1, .folder = -1 }
/* Its flags, NULL where it has none of that: then the built-in rules, and no network. */
struct mcp_flags {
    const char *gate, *settings;
};
/* Start it, and wait until it answers; @api then leads to it. 0 or -1 with @err. Stop it anyhow. */
int mcp_daemon_start(struct mcp_daemon *d, const struct mcp_flags *flags, struct api *api, struct err *err);
void mcp_daemon_stop(struct mcp_daemon *d);
/* Of all such daemons of this user that are there, how to ask them, into @out: how many, at most @max. */
size_t mcp_daemons(struct api *out, size_t max);

#endif
