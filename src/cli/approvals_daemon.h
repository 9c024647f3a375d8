/* cli/approvals_daemon.h: of `cloche approvals`, what waits in cloche serve (docs/gate.md) */
#ifndef CLOCHE_CLI_APPROVALS_DAEMON_H
#define CLOCHE_CLI_APPROVALS_DAEMON_H

#include <jansson.h>
#include <stdbool.h>

#include "client/api_client.h"

/* What is pending, into the new list *@out. Unless @must (be that daemon): where none runs that is nothing, and what
 * waits in daemons that `cloche mcp` has started for itself is among it. 0 or -1 with @err. */
int gate_pending(const struct api *api, bool must, json_t **out, struct err *err);
/* For people: one line and what it would do; @whole: everything that there is of it. Nothing of it moves a cursor. */
void gate_print(const json_t *approval, bool whole);
/* Whether @id can name one: hexadecimal digits, at least four, the beginning of an id. */
bool gate_is_id(const char *id);
/* The one that @id is the beginning of: among those that are pending, or any by its whole id. NULL with @err. */
json_t *gate_find(const struct api *api, const char *id, struct err *err);

/* Lead @api to the daemon of this user's that knows @id, where it does not and one of `cloche mcp` does. */
void gate_seek(struct api *api, const char *id);

struct gate_decision {
    bool approve;
    const char *scope;          /* "once", "sandbox", "caller" */
    const char *expires, *reason;       /* NULL none; @expires as 90s, 30m, 12h */
};
/* The new approval as the daemon says it in @out. 0 or -1 with @err. */
int gate_decide(const struct api *api, const char *id, const struct gate_decision *d, json_t **out, struct err *err);

#endif
