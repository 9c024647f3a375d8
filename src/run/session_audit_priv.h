/* run/session_audit_priv.h: the record of one run, for session_audit*.c */
#ifndef CLOCHE_RUN_SESSION_AUDIT_PRIV_H
#define CLOCHE_RUN_SESSION_AUDIT_PRIV_H

#include "base/mask.h"
#include "run/session_audit.h"

struct run_audit {
    struct audit *log;          /* NULL with @remote */
    run_audit_fn *remote;
    void *remote_ctx;
    struct session_result *r;   /* borrowed; for the sandbox's id and warnings */
    bool required, started, failed;
    uint64_t due_us;
    size_t n_warnings;          /* of the result that are written */
    struct masks own, *masks;   /* what must not be in it */
};

/* To be written with what comes; @a may be NULL. */
void run_audit_queue(struct run_audit *a, const struct audit_entry *e);

#endif
