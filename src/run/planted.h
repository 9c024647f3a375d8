/* run/planted.h: telling what in a folder would run something (workspace/planted.h) */
#ifndef CLOCHE_RUN_PLANTED_H
#define CLOCHE_RUN_PLANTED_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "run/session.h"
#include "workspace/planted.h"

/* `cloche why --planted`: search @folder and print. 0: nothing; 1: something, or not searched to its end; -1 with
 * @err. */
int planted_show(const char *folder, bool json, struct err *err);

/* After a run: what it left in the folders of the host that it could write to. */
struct planted_roots {
    struct planted_root {
        const char *dir;        /* the policy's */
        struct planted p;
    } v[8];
    size_t n;
};

/* Search the workspace and the writable binds for what changed since @r began. Never fails: what could not be searched
 * is not complete. */
void planted_after(const struct session *s, const struct session_result *r, struct planted_roots *out);
void planted_roots_free(struct planted_roots *roots);
/* Warn on stderr, in few lines. */
void planted_warn(const struct planted_roots *roots);
/* For the report; NULL when nothing was searched. */
json_t *planted_json(const struct planted_roots *roots);

#endif
