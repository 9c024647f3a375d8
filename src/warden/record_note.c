/* warden/record_note.c: what is noted, and what is asked, as entries of the audit record */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/sha256.h"
#include "warden/record_priv.h"

/* Types of warden_note(). What is not here is a capability by that name; what was an entry before it was done is none
 * once more. */
static const struct {
    const char *note;
    enum audit_type type;
    enum audit_severity severity;
    const char *event, *summary;    /* of a decision: which; @summary NULL: no entry */
} notes[] = {
    { "exec",            AUDIT_CAPABILITY,      AUDIT_INFO,  NULL,       NULL },
    { "container_start", AUDIT_LIFECYCLE,       AUDIT_INFO,  NULL,       NULL },
    { "container_stop",  AUDIT_LIFECYCLE,       AUDIT_INFO,  "end",      "a sandbox ended" },
    { "recovery",        AUDIT_LIFECYCLE,       AUDIT_WARN,  "recovery", "recovery by itself" },
    { "reattached",      AUDIT_LIFECYCLE,       AUDIT_INFO,  "reattached", "a sandbox was taken again" },
    { "volume",          AUDIT_LIFECYCLE,       AUDIT_INFO,  "volume",   "a durable workspace was made or removed" },
    { "template",        AUDIT_LIFECYCLE,       AUDIT_INFO,  "template", "a template was made or removed" },
    { "state_change",    AUDIT_LIFECYCLE,       AUDIT_INFO,  "state",    "a sandbox changed its state" },
    { "transcript",      AUDIT_LIFECYCLE,       AUDIT_WARN,  "transcript", "transcripts were removed for room" },
    { "clock",           AUDIT_LIFECYCLE,       AUDIT_WARN,  "clock",    "the host's clock was set" },
    { "health_check",    AUDIT_LIFECYCLE,       AUDIT_WARN,  "health",   "a sandbox's health changed" },
    { "error",           AUDIT_LIFECYCLE,       AUDIT_ERROR, "failed",   "a sandbox was not made, or failed" },
    { "exec_denied",     AUDIT_POLICY_DECISION, AUDIT_WARN,  "deny",     "an operation was refused" },
    { "auth_refused",    AUDIT_POLICY_DECISION, AUDIT_WARN,  "deny",     "a credential or a role was refused" },
    { "attach_refused",  AUDIT_POLICY_DECISION, AUDIT_WARN,  "deny",     "a person was refused" },
    { "gate_asked",      AUDIT_POLICY_DECISION, AUDIT_INFO,  "ask",      "an operation waits for approval" },
    { "gate_allowed",    AUDIT_POLICY_DECISION, AUDIT_INFO,  "allow",    "an operation needs no approval" },
    { "gate_approved",   AUDIT_POLICY_DECISION, AUDIT_INFO,  "allow",    "an operation was approved" },
    { "gate_granted",    AUDIT_POLICY_DECISION, AUDIT_WARN,  "allow",    "operations were approved for longer" },
    { "gate_denied",     AUDIT_POLICY_DECISION, AUDIT_WARN,  "deny",     "an operation was not approved" },
    { "gate_timeout",    AUDIT_POLICY_DECISION, AUDIT_WARN,  "deny",     "an operation was not approved in time" },
};

void
record_note(struct warden *w, const char *id, const char *type, const char *detail)
{
    struct audit_entry e = { .type = AUDIT_CAPABILITY, .severity = AUDIT_INFO,
                             .summary = STR_LIT("something was done with a sandbox") };
    const char *code;
    size_t i;

    for (i = 0; i < ARRAY_LEN(notes) && strcmp(notes[i].note, type) != 0; i++)
        ;
    if (id[0] == '\0' && strcmp(type, "state_change") == 0) {
        e.type = AUDIT_KILL_SWITCH;
        e.severity = AUDIT_CRITICAL;
        e.summary = STR_LIT("all sandboxes are stopped at once");
    } else if (i == ARRAY_LEN(notes)) {
        audit_put_cstr(&e, "capability", type);
    } else if (notes[i].summary == NULL) {
        return;
    } else {
        e.type = notes[i].type;
        e.severity = notes[i].severity;
        e.summary = str_of(notes[i].summary);
        audit_put_cstr(&e, e.type == AUDIT_POLICY_DECISION ? "decision" : "event", notes[i].event);
        if (e.type == AUDIT_POLICY_DECISION)
            audit_put_cstr(&e, "reason", type);
    }
    if (strcmp(type, "recovery") == 0)
        audit_put_cstr(&e, "by", "the daemon");
    /* why one was not made may quote its policy, and nothing is known of its secrets then: the code says it */
    code = strcmp(type, "error") == 0 ? strrchr(detail, '[') : NULL;
    if (code != NULL)
        audit_put(&e, "code", (struct str){ code + 1, strcspn(code + 1, "]") });
    else
        audit_put_cstr(&e, "detail", detail);
    e.sandbox = str_of(id);
    record_say(w, box_of_id(w, id), &e);
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

bool
record_first(struct warden *w, struct box *b, struct audit_entry *e)
{
    enum record_way way;

    (void)question_recorded(w->question->type, &way);
    return record_first_as(w, b, e, way);
}

void
record_begin(struct warden *w, struct audit_entry *e, const char *summary)
{
    enum record_way way;

    audit_capability(e, NULL, question_recorded(w->question->type, &way), summary);
}

bool
record_create(struct warden *w, const struct edge_box *r)
{
    uint8_t hash[SHA256_SIZE];
    char hex[SHA256_TEXT + 1];
    struct audit_entry e;

    record_begin(w, &e, "a sandbox was asked for");
    if (r->name[0] != '\0')
        audit_put_cstr(&e, "name", r->name);
    if (r->base[0] != '\0')
        audit_put_cstr(&e, "template", r->base);
    audit_put_bool(&e, "default", r->is_default);
    sha256_of(r->policy, strlen(r->policy), hash);
    sha256_text(hash, hex);
    audit_put_cstr(&e, "policy_sha256", hex);
    return record_first(w, NULL, &e);
}

bool
record_asked(struct warden *w, struct box *b, const char *id, const char *what)
{
    struct audit_entry e;

    record_begin(w, &e, "something was asked of a sandbox");
    if (what != NULL)
        audit_capability(&e, NULL, what, "something was asked of a sandbox");
    if (b == NULL)
        audit_put_cstr(&e, "id", id);
    return record_first(w, b, &e);
}

void
record_mode(struct warden *w, struct box *b, struct str mode)
{
    struct audit_entry e = { .type = AUDIT_MODE_TRANSITION, .severity = AUDIT_WARN, .summary =
                             STR_LIT("a sandbox is made anew in another mode") };
    struct str before = edge_line(b->r.facts, "mode");

    if (before.n == 0 || mode.n == 0 || str_eq(before, mode))
        return;
    audit_put_cstr(&e, "event", "mode");
    audit_put(&e, "from_mode", before);
    audit_put(&e, "to_mode", mode);
    record_say(w, b, &e);
}

bool
record_expose(struct warden *w, struct box *b, uint16_t port, const char *name)
{
    struct audit_entry e;

    record_begin(w, &e, "a port of a sandbox is made reachable");
    audit_put_number(&e, "port", port);
    if (name[0] != '\0')
        audit_put_cstr(&e, "name", name);
    return record_first(w, b, &e);
}

static void
put_limits(struct audit_entry *e, const struct edge_op *op)
{
    const struct { const char *name; uint64_t value; } rows[] = {
        { "memory_bytes", op->memory }, { "cpu_milli", op->cpu_milli },
        { "pids", op->pids }, { "output_bytes", op->output },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].value != 0)
            audit_put_number(e, rows[i].name, (int64_t)rows[i].value);
}

bool
record_op(struct warden *w, struct box *b, const struct edge_op *op)
{
    char hex[SHA256_TEXT + 1], mode[16];
    uint8_t hash[SHA256_SIZE];
    struct audit_entry e;
    struct sha256 h;
    bool held;

    audit_capability(&e, NULL, op_name(op->kind), "an operation was asked for");
    if (op->n_argv > 0) {
        /* words hold secrets more often than one thinks */
        sha256_init(&h);
        for (size_t i = 0; i < op->n_argv; i++)
            sha256_add(&h, op->argv[i], strlen(op->argv[i]) + 1);
        sha256_end(&h, hash);
        sha256_text(hash, hex);
        audit_put_cstr(&e, "command", op->argv[0]);
        audit_put_number(&e, "words", (int64_t)op->n_argv);
        audit_put_cstr(&e, "argv_sha256", hex);
        audit_put_number(&e, "variables", (int64_t)op->n_env);
    }
    if (op->path[0] != '\0')
        audit_put_cstr(&e, op->n_argv > 0 ? "cwd" : "path", op->path);
    if (op->mode != 0) {
        snprintf(mode, sizeof(mode), "%04o", op->mode);
        audit_put_cstr(&e, "mode", mode);
    }
    if (op->context > EDGE_CONTEXT_NEW)
        audit_put_number(&e, "context", (int64_t)op->context);
    else if (op->context == EDGE_CONTEXT_NEW)
        audit_put_bool(&e, "context_new", true);
    if ((op->flags & OP_RECURSIVE) != 0)
        audit_put_bool(&e, "recursive", true);
    if (op->timeout_ms != 0)
        audit_put_number(&e, "timeout_ms", (int64_t)op->timeout_ms);
    if ((op->flags & OP_LIMITS) != 0)
        put_limits(&e, op);
    held = record_first_as(w, b, &e, op->kind == OP_READ || op->kind == OP_LIST || op->kind == OP_STAT ||
                           op->kind == OP_WATCH ? RECORD_ONLY : RECORD_WAIT);
    if (!held)
        record_traced(w, b, op);
    return held;
}
