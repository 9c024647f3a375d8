/* cli/exec_live.h: a command in a sandbox of cloche serve, over a WebSocket (docs/daemon.md, Live) */
#ifndef CLOCHE_CLI_EXEC_LIVE_H
#define CLOCHE_CLI_EXEC_LIVE_H

#include "client/api_client.h"

/* Run what @command says (the first message) at @path, with this process's streams: stdin goes there if @input, with
 * @terminal as a terminal's. What cloche exits with: the command's exit code, 128 and its signal, 124 when its time was
 * over; or -1 with @err. */
int exec_live(const struct api *api, const char *path, const json_t *command, bool input, bool terminal,
              struct err *err);

#endif
