/* adapters/computer_run.h: an action (computer.h) done in a sandbox, for the routes and for MCP's tool */
#ifndef CLOCHE_ADAPTERS_COMPUTER_RUN_H
#define CLOCHE_ADAPTERS_COMPUTER_RUN_H

#include "adapters/computer.h"
#include "adapters/desktop.h"

/* Where what came of it goes. @said is an object with what was seen, taken; where it has a width, r->out is the
 * picture. @no: a refusal of the warden's. */
struct computer_answers {
    void (*told)(struct visit *r, json_t *said);
    desktop_failed *failed;
    void (*no)(struct visit *r, const struct err *err);
};

/* @action, an object that is there as long as @r, in the sandbox @id (NULL: api_which() has said what is wrong with
 * it). @judged: the gate has been asked about it; otherwise it is, as the tool `computer`. What is wrong with the
 * action is returned, and nothing begun. */
const char *computer_go(struct visit *r, const char *id, json_t *action, bool judged,
                        const struct computer_answers *answers);

#endif
