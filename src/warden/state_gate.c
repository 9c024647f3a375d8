/* warden/state_gate.c: see state_gate.h */
#include "warden/state_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warden/state_priv.h"

enum gate_query { GATE_Q_PUT, GATE_Q_LIST, GATE_Q_PUT_GRANT, GATE_Q_FORGET_GRANT, GATE_Q_GRANTS, GATE_Q_GRANTED,
                  GATE_Q_PRUNE, GATE_Q_PRUNE_GRANTS, GATE_Q_VOID, GATE_Q_PRUNE_VOID,
                  GATE_Q_VOID_APPROVED, GATE_Q_PUT_JUDGED, GATE_Q_JUDGED, GATE_Q_N };

#define COLUMNS "id, state, risk, used, created, until, decided, box, digest, caller, caller_text, tool, params, " \
                "rule, description, by, by_text, reason"
#define GRANT_COLUMNS "id, box, created, until, caller, tool, rule, by_text, rule_digest"

static const char *const texts[GATE_Q_N] = {
    [GATE_Q_PUT] = "INSERT OR REPLACE INTO approval (" COLUMNS ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,"
                   "?14,?15,?16,?17,?18)",
    [GATE_Q_LIST] = "SELECT " COLUMNS " FROM approval WHERE (?1 = '' OR id = ?1) AND (?2 = '' OR state = ?2) AND "
                    "(?3 = '' OR caller = ?3) AND (?5 = '' OR (-created, id) > (-ifnull((SELECT created FROM approval "
                    "WHERE id = ?5), nullif(?6, 0)), ?5)) ORDER BY created DESC, id LIMIT ?4",
    [GATE_Q_PUT_GRANT] = "INSERT OR REPLACE INTO standing (" GRANT_COLUMNS ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [GATE_Q_FORGET_GRANT] = "DELETE FROM standing WHERE id = ?1",
    [GATE_Q_GRANTS] = "SELECT " GRANT_COLUMNS " FROM standing ORDER BY created, id",
    [GATE_Q_GRANTED] = "SELECT count(*) FROM standing WHERE caller = ?1 AND tool = ?2 AND rule = ?3 AND rule_digest = "
                       "?6 AND (box = '' OR box = ?4) AND (until = 0 OR until > ?5) AND NOT EXISTS (SELECT 1 FROM "
                       "standing_void AS v WHERE v.id = standing.id AND v.box = ?4)",
    [GATE_Q_PRUNE] = "DELETE FROM approval WHERE id IN (SELECT id FROM (SELECT id, decided, row_number() OVER "
                     "(PARTITION BY caller ORDER BY decided DESC) AS n FROM approval WHERE state <> 'pending') ORDER "
                     "BY n, decided DESC LIMIT -1 OFFSET ?1)",
    [GATE_Q_PRUNE_GRANTS] = "DELETE FROM standing WHERE (until > 0 AND until <= ?1) OR (box <> '' AND box NOT IN "
                            "(SELECT id FROM sandbox)) OR id NOT IN (SELECT id FROM standing ORDER BY created DESC "
                            "LIMIT ?2)",
    [GATE_Q_VOID] = "INSERT OR IGNORE INTO standing_void (id, box) SELECT id, ?1 FROM standing WHERE box = ''",
    [GATE_Q_VOID_APPROVED] = "UPDATE approval SET state = 'denied', by = '', by_text = '', reason = ?2 WHERE box = ?1 "
                             "AND state = 'approved' AND used = 0",
    [GATE_Q_PRUNE_VOID] = ("DELETE FROM standing_void WHERE id NOT IN (SELECT id FROM standing) OR box NOT IN "
                           "(SELECT id FROM sandbox)"),
    [GATE_Q_PUT_JUDGED] = "INSERT OR REPLACE INTO judged (one, rules, defaults) VALUES (1, ?1, ?2)",
    [GATE_Q_JUDGED] = "SELECT rules, defaults FROM judged",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS approval (id TEXT PRIMARY KEY, state TEXT NOT NULL, risk TEXT NOT NULL, used INTEGER "
    "NOT NULL, created INTEGER NOT NULL, until INTEGER NOT NULL, decided INTEGER NOT NULL, box TEXT NOT NULL, digest "
    "TEXT NOT NULL, caller TEXT NOT NULL, caller_text TEXT NOT NULL, tool TEXT NOT NULL, params TEXT NOT NULL, rule "
    "TEXT NOT NULL, description TEXT NOT NULL, by TEXT NOT NULL, by_text TEXT NOT NULL, reason TEXT NOT NULL) "
    "WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS approval_time ON approval (created);"
    "CREATE TABLE IF NOT EXISTS standing (id TEXT PRIMARY KEY, box TEXT NOT NULL, created INTEGER NOT NULL, until "
    "INTEGER NOT NULL, caller TEXT NOT NULL, tool TEXT NOT NULL, rule TEXT NOT NULL, by_text TEXT NOT NULL, "
    "rule_digest TEXT NOT NULL) "
    "WITHOUT ROWID;"
    /* a grant for all sandboxes of a caller, and one of which the policy was changed since */
    "CREATE TABLE IF NOT EXISTS standing_void (id TEXT NOT NULL, box TEXT NOT NULL, PRIMARY KEY (id, box)) WITHOUT "
    "ROWID;"
    "CREATE TABLE IF NOT EXISTS judged (one INTEGER PRIMARY KEY CHECK (one = 1), rules TEXT NOT NULL, defaults TEXT "
    "NOT NULL);";

struct state_gate {
    struct state *s;
    sqlite3_stmt *q[GATE_Q_N];
};

struct state_gate *
state_gate_open(struct state *s, struct err *err)
{
    struct state_gate *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    g->s = s;
    if (state_prepare(s, schema, texts, g->q, GATE_Q_N, err) == 0)
        return g;
    for (size_t i = 0; i < GATE_Q_N; i++)
        sqlite3_finalize(g->q[i]);
    free(g);
    return NULL;
}

static int
change(struct state_gate *g, enum gate_query which, struct err *err)
{
    return state_change(g->s, g->q[which], err);
}

static bool
id_of(sqlite3_stmt *q, int column, char out[EDGE_ID + 1], bool maybe)
{
    const char *id = col_text(q, column);

    if (!(edge_is_id(id) || (maybe && id[0] == '\0')))
        return false;
    memcpy(out, id, strlen(id) + 1);
    return true;
}

/* --- approvals ---------------------------------------------------------------------------------------------------- */

int
state_approval_put(struct state_gate *g, const struct edge_approval *a, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_PUT];

    bind_text(q, 1, a->id);
    bind_text(q, 2, approval_state_name(a->state));
    bind_text(q, 3, gate_risk_name(a->risk));
    bind_u64(q, 4, a->used);
    bind_u64(q, 5, a->created_ms);
    bind_u64(q, 6, a->until_ms);
    bind_u64(q, 7, a->decided_ms);
    bind_text(q, 8, a->box);
    bind_text(q, 9, a->digest);
    bind_text(q, 10, a->caller);
    bind_text(q, 11, a->caller_text);
    bind_text(q, 12, a->tool);
    bind_text(q, 13, a->params);
    bind_text(q, 14, a->rule);
    bind_text(q, 15, a->description);
    bind_text(q, 16, a->by);
    bind_text(q, 17, a->by_text);
    bind_text(q, 18, a->reason);
    return change(g, GATE_Q_PUT, err);
}

/* The file is our own, but what does not fit is not passed on. */
static bool
approval_of(sqlite3_stmt *q, struct edge_approval *a)
{
    const char *digest = col_text(q, 8);

    if (!id_of(q, 0, a->id, false) || !approval_state_parse(col_text(q, 1), &a->state) ||
        !gate_risk_parse(col_text(q, 2), &a->risk) || !id_of(q, 7, a->box, true) || strlen(digest) != SHA256_TEXT)
        return false;
    a->used = col_u64(q, 3) != 0;
    a->created_ms = col_u64(q, 4);
    a->until_ms = col_u64(q, 5);
    a->decided_ms = col_u64(q, 6);
    memcpy(a->digest, digest, SHA256_TEXT + 1);
    a->caller = col_text(q, 9);
    a->caller_text = col_text(q, 10);
    a->tool = col_text(q, 11);
    a->params = col_text(q, 12);
    a->rule = col_text(q, 13);
    a->description = col_text(q, 14);
    a->by = col_text(q, 15);
    a->by_text = col_text(q, 16);
    a->reason = col_text(q, 17);
    return edge_caller_well(a->caller) && gate_tool_well(a->tool);
}

int
state_approvals_from(struct state_gate *g, const struct state_approvals_query *asked, state_approval_fn *fn, void *ctx,
                     bool *more, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_LIST];
    unsigned state = asked->state, n = 0;
    int r;

    bind_text(q, 1, asked->id);
    bind_text(q, 2, state > 0 && state < APPROVAL_STATES ? approval_state_name((enum approval_state)state) : "");
    bind_text(q, 3, asked->caller);
    sqlite3_bind_int(q, 4, (int)asked->limit + 1);
    bind_text(q, 5, asked->after);
    bind_u64(q, 6, asked->after_ms);
    *more = false;
    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_approval a;
        *more = n == asked->limit;
        if (*more || !approval_of(q, &a))
            continue;
        fn(ctx, &a);
        n++;
    }
    return state_done(g->s, q, r, (int)n, err);
}

int
state_approvals(struct state_gate *g, const char *id, unsigned state, const char *caller, unsigned limit,
                state_approval_fn *fn, void *ctx, struct err *err)
{
    const struct state_approvals_query q = { .id = id, .state = state, .caller = caller, .after = "", .limit = limit };
    bool more;

    return state_approvals_from(g, &q, fn, ctx, &more, err);
}

/* --- grants ------------------------------------------------------------------------------------------------------- */

static int
state_grant_put(struct state_gate *g, const struct edge_grant *grant, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_PUT_GRANT];

    bind_text(q, 1, grant->id);
    bind_text(q, 2, grant->box);
    bind_u64(q, 3, grant->created_ms);
    bind_u64(q, 4, grant->until_ms);
    bind_text(q, 5, grant->caller);
    bind_text(q, 6, grant->tool);
    bind_text(q, 7, grant->rule);
    bind_text(q, 8, grant->by_text);
    bind_text(q, 9, grant->rule_digest);
    return change(g, GATE_Q_PUT_GRANT, err);
}

static int
approval_grant(struct state_gate *g, const struct edge_approval *a, const struct edge_grant *grant, struct err *err)
{
    state_end_open(g->s);
    if (sqlite3_exec(g->s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return state_broken(g->s, err);
    if (state_approval_put(g, a, err) == 0 && state_grant_put(g, grant, err) == 0) {
        if (sqlite3_exec(g->s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
            return 0;
        (void)state_broken(g->s, err);
    }
    (void)sqlite3_exec(g->s->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

int
state_approval_grant(struct state_gate *g, const struct edge_approval *a, const struct edge_grant *grant,
                     struct err *err)
{
    int r = approval_grant(g, a, grant, err);

    if (r < 0 && err_is(err, STATE_FULL)) {
        state_make_room(g->s);
        r = approval_grant(g, a, grant, err);
        state_keep_room(g->s);
    }
    return r;
}

int
state_grant_forget(struct state_gate *g, const char *id, struct err *err)
{
    bind_text(g->q[GATE_Q_FORGET_GRANT], 1, id);
    return change(g, GATE_Q_FORGET_GRANT, err);
}

int
state_grants(struct state_gate *g, state_grant_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_GRANTS];
    int n = 0, r;

    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_grant one = { .created_ms = col_u64(q, 2), .until_ms = col_u64(q, 3), .caller = col_text(q, 4),
                                  .tool = col_text(q, 5), .rule = col_text(q, 6), .by_text = col_text(q, 7),
                                  .rule_digest = col_text(q, 8) };
        if (!id_of(q, 0, one.id, false) || !id_of(q, 1, one.box, true))
            continue;
        fn(ctx, &one);
        n++;
    }
    return state_done(g->s, q, r, n, err);
}

int
state_granted(struct state_gate *g, const char *caller, const char *tool, const char *rule, const char *digest,
              const char *box, uint64_t now_ms, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_GRANTED];
    int r;

    bind_text(q, 1, caller);
    bind_text(q, 2, tool);
    bind_text(q, 3, rule);
    bind_text(q, 4, box);
    bind_u64(q, 5, now_ms);
    bind_text(q, 6, digest);
    r = sqlite3_step(q);
    return state_done(g->s, q, r, r == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0, err);
}

int
state_gate_prune(struct state_gate *g, uint64_t now_ms, struct err *err)
{
    sqlite3_bind_int(g->q[GATE_Q_PRUNE], 1, STATE_APPROVALS_MAX);
    bind_u64(g->q[GATE_Q_PRUNE_GRANTS], 1, now_ms);
    sqlite3_bind_int(g->q[GATE_Q_PRUNE_GRANTS], 2, STATE_GRANTS_MAX);
    return change(g, GATE_Q_PRUNE, err) < 0 || change(g, GATE_Q_PRUNE_GRANTS, err) < 0 ||
           change(g, GATE_Q_PRUNE_VOID, err) < 0 ? -1 : 0;
}

int
state_grants_void(struct state_gate *g, const char *box, struct err *err)
{
    bind_text(g->q[GATE_Q_VOID], 1, box);
    return change(g, GATE_Q_VOID, err);
}

int
state_approvals_void(struct state_gate *g, const char *box, const char *reason, struct err *err)
{
    bind_text(g->q[GATE_Q_VOID_APPROVED], 1, box);
    bind_text(g->q[GATE_Q_VOID_APPROVED], 2, reason);
    return change(g, GATE_Q_VOID_APPROVED, err);
}

int
state_judged_put(struct state_gate *g, const struct state_judged *by, struct err *err)
{
    bind_text(g->q[GATE_Q_PUT_JUDGED], 1, by->rules);
    bind_text(g->q[GATE_Q_PUT_JUDGED], 2, by->defaults);
    return change(g, GATE_Q_PUT_JUDGED, err);
}

int
state_judged(struct state_gate *g, struct state_judged *out, struct err *err)
{
    sqlite3_stmt *q = g->q[GATE_Q_JUDGED];
    int r = sqlite3_step(q);

    snprintf(out->rules, sizeof(out->rules), "%s", r == SQLITE_ROW ? col_text(q, 0) : "");
    snprintf(out->defaults, sizeof(out->defaults), "%s", r == SQLITE_ROW ? col_text(q, 1) : "");
    return state_done(g->s, q, r, 0, err);
}
