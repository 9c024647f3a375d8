/* cli/mcp.h: cloche mcp: the Model Context Protocol over stdin and stdout, for a client that starts its servers itself
 *
 * One line is one message (docs/mcp.md). Each that comes is a request to the daemon's /mcp on a connection of its own,
 * and what is answered there is a line again. Nothing is judged here: what passes is the daemon's to say.
 */
#ifndef CLOCHE_CLI_MCP_H
#define CLOCHE_CLI_MCP_H

#include "base/err.h"
#include "cli/api_client.h"

#define MCP_LINE_MAX  (10UL * 1024 * 1024)      /* as the daemon's bodies */
#define MCP_CALLS_MAX 64                        /* at once; more are told to wait */

/* mcp_bridge.c: until stdin ends, a signal of @signals (a signalfd) comes, or nobody reads stdout. 0 or -1 with
 * @err. */
int mcp_bridge(const struct api *api, int signals, struct err *err);

/* mcp_daemon.c: a daemon of our own, for as long as we live. */
struct mcp_daemon {
    int pid;                    /* 0: none */
    int home, folder;           /* the folder of such folders, and ours in it, locked */
    char name[32];
};
#define MCP_DAEMON_INIT { .home = -1, .folder = -1 }
/* Start it, with that --gate (NULL: the built-in rules), and wait until it answers; @api then leads to it. 0 or -1
 * with @err. Stop it anyhow. */
int mcp_daemon_start(struct mcp_daemon *d, const char *gate, struct api *api, struct err *err);
void mcp_daemon_stop(struct mcp_daemon *d);

#endif
