/* warden/state.c: see state.h */
#include "warden/state_priv.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"

#define COLUMNS "id, name, state, flags, created, started, ended, used, idle, life, labels, policy, facts, detail, " \
                "owner, secret, workspace, print, volume, recover_after, recover_tries, recover_window, " \
                "recover_used, recover_began, recover_next, base, steady_begun, steady_used, steady_tried, asked"

static const char *const texts[Q_N] = {
    [Q_PUT] = "INSERT OR REPLACE INTO sandbox (" COLUMNS ") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,"
              "?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30)",
    [Q_FORGET] = "DELETE FROM sandbox WHERE id = ?1",
    [Q_BY_ID] = "SELECT " COLUMNS " FROM sandbox WHERE id = ?1",
    [Q_BY_NAME] = "SELECT " COLUMNS " FROM sandbox WHERE name = ?1 AND state <> 'stopped'",
    [Q_NAMED] = "SELECT 1 FROM sandbox WHERE name = ?1 AND owner = ?2 LIMIT 1",
    [Q_DEFAULT] = "SELECT " COLUMNS " FROM sandbox WHERE (flags & 2) <> 0 AND owner = ?1 ORDER BY created DESC LIMIT 1",
    [Q_BY_KEY] = "SELECT " COLUMNS " FROM sandbox WHERE secret = ?1 AND secret <> ''",
    [Q_LIST] = "SELECT " COLUMNS " FROM sandbox WHERE substr(name, 1, length(?1)) = ?1 AND instr(labels, ?2) > 0 AND "
               "(?3 OR state <> 'stopped') AND (?4 = '' OR (created, id) > (ifnull((SELECT created FROM "
               "sandbox WHERE id = ?4), nullif(?6, 0)), ?4)) AND (?7 IS NULL OR owner = ?7) AND "
               "(?8 = '' OR workspace = ?8) ORDER BY created, id LIMIT ?5",
    [Q_NOTE] = "INSERT INTO event (at, id, type, detail, number) VALUES (?1, ?2, ?3, ?4, ?5)",
    [Q_EVENTS] = "SELECT * FROM (SELECT number, at, id, type, detail FROM event WHERE (?1 = '' OR id = ?1) "
                 "AND (?3 IS NULL OR id IN (SELECT id FROM sandbox WHERE owner = ?3)) ORDER BY number "
                 "DESC LIMIT ?2) ORDER BY number",
    /* of those who have most the oldest: nobody moves another's out */
    [Q_PRUNE_BOXES] = ("DELETE FROM sandbox WHERE id IN (SELECT id FROM (SELECT id, ended, row_number() OVER "
                       "(PARTITION BY owner ORDER BY ended DESC) AS n FROM sandbox WHERE state = 'stopped') "
                       "ORDER BY n, ended DESC LIMIT -1 OFFSET ?1)"),
    /* those of the daemon itself are its owner's; those of sandboxes without a record nobody's */
    [Q_PRUNE_EVENTS] = ("DELETE FROM event WHERE number IN (SELECT number FROM (SELECT number, row_number() OVER "
                        "(PARTITION BY iif(event.id = '', '', ifnull(owner, '?')) ORDER BY number DESC) AS n "
                        "FROM event LEFT JOIN sandbox ON sandbox.id = event.id) ORDER BY n, number DESC "
                        "LIMIT -1 OFFSET ?1)"),
    /* no index has it, so it is one page */
    [Q_USED] = "UPDATE sandbox SET used = ?2, steady_used = ?3 WHERE id = ?1",
    [Q_BEGIN] = "BEGIN IMMEDIATE",
    [Q_COMMIT] = "COMMIT",
};

/* Each brings a file of the version of its place to the next one. */
static const char *const steps[] = {
    "CREATE TABLE sandbox (id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, flags INTEGER "
    "NOT NULL, created INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, used INTEGER NOT NULL, idle "
    "INTEGER NOT NULL, life INTEGER NOT NULL, labels TEXT NOT NULL, policy TEXT NOT NULL, facts TEXT NOT NULL, detail "
    "TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX by_name ON sandbox (name) WHERE state <> 'stopped';"
    "CREATE TABLE event (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, id TEXT NOT "
    "NULL, type TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE INDEX of_sandbox ON event (id);",
    /* who made it; the SHA-256 of its key in hexadecimal */
    "ALTER TABLE sandbox ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandbox ADD COLUMN secret TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX by_secret ON sandbox (secret) WHERE secret <> '';",
    /* the key of the workspace that it was made for; what it is, to be compared */
    ("ALTER TABLE sandbox ADD COLUMN workspace TEXT NOT NULL DEFAULT '';"
     "ALTER TABLE sandbox ADD COLUMN print TEXT NOT NULL DEFAULT '';"),
    /* durable workspaces: for how long (milliseconds) each was unused by the time (since 1970) of the one row of the
     * second table */
    ("ALTER TABLE sandbox ADD COLUMN volume TEXT NOT NULL DEFAULT '';"
     "CREATE TABLE volume (id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, created INTEGER NOT NULL, "
     "unused INTEGER NOT NULL, keep INTEGER NOT NULL, removed INTEGER NOT NULL) WITHOUT ROWID;"
     "CREATE TABLE volume_clock (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL);"),
    /* recovery by itself: what was asked for, in seconds, and what came of it, since 1970 in milliseconds */
    ("ALTER TABLE sandbox ADD COLUMN recover_after INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN recover_tries INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN recover_window INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN recover_used INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN recover_began INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN recover_next INTEGER NOT NULL DEFAULT 0;"),
    /* grants say of which rule they are (state_gate.c makes the table again); what those of before were about is not
     * known, so they are over */
    "DROP TABLE IF EXISTS standing;",
    /* templates are kept as volumes are: what each is, the policy of the sandbox that it was made of, its bytes */
    ("ALTER TABLE sandbox ADD COLUMN base TEXT NOT NULL DEFAULT '';"
     "ALTER TABLE volume ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE volume ADD COLUMN policy TEXT NOT NULL DEFAULT '';"
     "ALTER TABLE volume ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"),
    /* what limits go by in place of the host's clock (base/steady.h), which begins there */
    ("ALTER TABLE sandbox ADD COLUMN steady_begun INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN steady_used INTEGER NOT NULL DEFAULT 0;"
     "ALTER TABLE sandbox ADD COLUMN steady_tried INTEGER NOT NULL DEFAULT 0;"
     "UPDATE sandbox SET steady_begun = started, steady_used = used, steady_tried = recover_began;"),
    /* how long it was to live when it was made: that may be changed later */
    ("ALTER TABLE sandbox ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;"
     "UPDATE sandbox SET asked = life;"),
};

#define VERSION ARRAY_LEN(steps)

int
state_broken(const struct state *s, struct err *err)
{
    int code = sqlite3_errcode(s->db);

    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        err_set(err, ERR_DENIED, "serve.state.busy", "another cloche serve has this state folder");
        return err_hint(err, "end it, or give this one another folder with --state-dir");
    }
    if (code == SQLITE_FULL) {
        err_set(err, ERR_LIMIT, STATE_FULL, "the disk of the state folder is full");
        return err_hint(err, "make room there");
    }
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
        return err_set(err, ERR_SYSTEM, "serve.state.damaged", "state.db is damaged: %s", sqlite3_errmsg(s->db));
    return err_set(err, ERR_SYSTEM, "serve.state", "state.db: %s", sqlite3_errmsg(s->db));
}

static int
version_of(void *ctx, int n, char **values, char **names)
{
    (void)names;
    if (n == 1 && values[0] != NULL)
        snprintf(ctx, 24, "%s", values[0]);
    return 0;
}

/* From version @at on. SQLITE_OK or what failed; then the file is of the last version that was reached. */
static int
take_steps(struct state *s, uint64_t at)
{
    int r = SQLITE_OK;

    for (; at < VERSION && r == SQLITE_OK; at++) {
        cleanup_buf struct buf text = BUF_INIT(8192);
        buf_printf(&text, "BEGIN IMMEDIATE; %s PRAGMA user_version = %zu; COMMIT;", steps[at], (size_t)at + 1);
        r = buf_nul(&text) < 0 ? SQLITE_NOMEM : sqlite3_exec(s->db, (const char *)text.p, NULL, NULL, NULL);
    }
    return r;
}

int
state_prepare(struct state *s, const char *schema, const char *const *statements, sqlite3_stmt **q, size_t n,
              struct err *err)
{
    if (schema != NULL && sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return state_broken(s, err);
    for (size_t i = 0; i < n; i++)
        if (sqlite3_prepare_v3(s->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &q[i], NULL) != SQLITE_OK)
            return state_broken(s, err);
    return 0;
}

int
state_begin_log(struct state *s)
{
    char again[80];

    snprintf(again, sizeof(again), "BEGIN IMMEDIATE; PRAGMA user_version = %zu; COMMIT;", VERSION);
    return sqlite3_exec(s->db, again, NULL, NULL, NULL);
}

static int
prepare(struct state *s, struct err *err)
{
    /* no second process, so no shared memory file; nothing temporary on disk: this process opens no file later */
    static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = "
                                   "NORMAL; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA "
                                   "journal_size_limit = 4194304; BEGIN IMMEDIATE; COMMIT;";
    char version[24] = "0", last[24] = "0";
    unsigned char seed;
    uint64_t at;

    /* which opens a file the first time */
    sqlite3_randomness(sizeof(seed), &seed);
    if (sqlite3_exec(s->db, settings, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(s->db, "PRAGMA user_version", version_of, version, NULL) != SQLITE_OK)
        return state_broken(s, err);
    if (!str_parse_u64(str_of(version), VERSION, &at))
        return err_set(err, ERR_UNSUPPORTED, "serve.state.version", "state.db is of version %s, this cloche knows %zu",
                       version, VERSION);
    /* the first log that is written to disk has its folder opened, to make its name last: so there is one now, be there
     * something to write or not */
    if (take_steps(s, at) != SQLITE_OK || state_begin_log(s) != SQLITE_OK ||
        sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) != SQLITE_OK)
        return state_broken(s, err);
    if (sqlite3_exec(s->db, "SELECT seq FROM sqlite_sequence WHERE name = 'event'", version_of, last, NULL) !=
        SQLITE_OK)
        return state_broken(s, err);
    (void)str_parse_u64(str_of(last), INT64_MAX, &s->last_event);
    state_keep_log(s);
    return state_prepare(s, NULL, texts, s->q, Q_N, err) < 0 || state_once_prepare(s, err) < 0 ||
           state_token_prepare(s, err) < 0 || state_volume_prepare(s, err) < 0 || state_port_prepare(s, err) < 0 ||
           state_head_prepare(s, err) < 0 || state_latest_prepare(s, err) < 0 ||
           state_sign_prepare(s, err) < 0 ? -1 : 0;
}

struct state *
state_open(const char *dir, struct err *err)
{
    struct state *s = calloc(1, sizeof(*s));
    char path[PATH_MAX];
    int r;

    if (s == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    snprintf(path, sizeof(path), "%s/state.db", dir);
    state_room_open(s, dir);
    r = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW |
                        SQLITE_OPEN_NOMUTEX, NULL);
    if (r == SQLITE_OK)
        r = prepare(s, err);
    else
        r = err_set(err, ERR_SYSTEM, "serve.state", "%s: %s", path, sqlite3_errstr(r));
    if (r == 0) {
        state_keep_room(s);
        return s;
    }
    close_fd(&s->room);
    sqlite3_close_v2(s->db);
    free(s);
    return NULL;
}

/* NULL is SQL's. */
void
bind_text(sqlite3_stmt *q, int at, const char *text)
{
    sqlite3_bind_text(q, at, text, -1, SQLITE_STATIC);
}

void
bind_u64(sqlite3_stmt *q, int at, uint64_t v)
{
    sqlite3_bind_int64(q, at, v > INT64_MAX ? INT64_MAX : (sqlite3_int64)v);
}

void
state_ready(sqlite3_stmt *q)
{
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
}

int
state_change(struct state *s, sqlite3_stmt *q, struct err *err)
{
    bool alone;
    int r;

    if (state_change_with_soon(s, q))
        return 0;
    /* a part of a transaction is not tried again: all of it may have been taken back */
    alone = sqlite3_get_autocommit(s->db) != 0;
    r = sqlite3_step(q);
    if (r == SQLITE_FULL && alone) {
        sqlite3_reset(q);
        state_make_room(s);
        r = sqlite3_step(q);
        state_keep_room(s);
    }
    r = r == SQLITE_DONE ? 0 : state_broken(s, err);
    state_ready(q);
    return r;
}

int
state_done(struct state *s, sqlite3_stmt *q, int r, int n, struct err *err)
{
    if (r != SQLITE_ROW && r != SQLITE_DONE)
        n = state_broken(s, err);
    state_ready(q);
    return n;
}

static sqlite3_stmt *
bind_box(struct state *s, const struct edge_box *box)
{
    sqlite3_stmt *q = s->q[Q_PUT];

    bind_text(q, 1, box->id);
    bind_text(q, 2, box->name);
    bind_text(q, 3, box_state_name(box->state));
    bind_u64(q, 4, (box->paused ? 1U : 0U) | (box->is_default ? 2U : 0U) | (unsigned)box->bounds << 2 |
             (box->recovery.given_up ? 16U : 0U) | (box->persists ? 32U : 0U));
    bind_u64(q, 5, box->created_ms);
    bind_u64(q, 6, box->started_ms);
    bind_u64(q, 7, box->ended_ms);
    bind_u64(q, 8, box->used_ms);
    bind_u64(q, 9, box->idle_s);
    bind_u64(q, 10, box->life_s);
    bind_text(q, 11, box->labels);
    bind_text(q, 12, box->policy);
    bind_text(q, 13, box->facts);
    bind_text(q, 14, box->detail);
    bind_text(q, 15, box->owner);
    bind_text(q, 16, box->key);
    bind_text(q, 17, box->workspace);
    bind_text(q, 18, box->print);
    bind_text(q, 19, box->volume);
    bind_u64(q, 20, box->recovery.after_s);
    bind_u64(q, 21, box->recovery.tries);
    bind_u64(q, 22, box->recovery.window_s);
    bind_u64(q, 23, box->recovery.used);
    bind_u64(q, 24, box->recovery.began_ms);
    bind_u64(q, 25, box->recovery.next_ms);
    bind_text(q, 26, box->base);
    bind_u64(q, 27, box->begun_at);
    bind_u64(q, 28, box->used_at);
    bind_u64(q, 29, box->tried_at);
    bind_u64(q, 30, box->asked_s);
    return q;
}

static const char *
key_of(char what, const char *id, char out[STATE_KEY])
{
    snprintf(out, STATE_KEY, "%c%s", what, id);
    return out;
}

/* What was put soon of that sandbox is older than what is on record now. */
static void
forget_soon(struct state *s, const char *id)
{
    char key[STATE_KEY];

    state_soon_forget(s, key_of('b', id, key));
    state_soon_forget(s, key_of('u', id, key));
}

int
state_put(struct state *s, const struct edge_box *box, struct err *err)
{
    int r = state_change(s, bind_box(s, box), err);

    if (r == 0)
        forget_soon(s, box->id);
    return r;
}

int
state_put_soon(struct state *s, const struct edge_box *box, struct err *err)
{
    char key[STATE_KEY];

    return state_change_soon(s, bind_box(s, box), key_of('b', box->id, key), err);
}

int
state_used_soon(struct state *s, const char *id, uint64_t used_ms, uint64_t used_at, struct err *err)
{
    char key[STATE_KEY];

    bind_text(s->q[Q_USED], 1, id);
    bind_u64(s->q[Q_USED], 2, used_ms);
    bind_u64(s->q[Q_USED], 3, used_at);
    return state_change_soon(s, s->q[Q_USED], key_of('u', id, key), err);
}

int
state_forget(struct state *s, const char *id, struct err *err)
{
    int r;

    bind_text(s->q[Q_FORGET], 1, id);
    r = state_change(s, s->q[Q_FORGET], err);
    if (r == 0)
        forget_soon(s, id);
    return r;
}

const char *
col_text(sqlite3_stmt *q, int column)
{
    const unsigned char *text = sqlite3_column_text(q, column);

    return text != NULL ? (const char *)text : "";
}

uint64_t
col_u64(sqlite3_stmt *q, int column)
{
    sqlite3_int64 v = sqlite3_column_int64(q, column);

    return v > 0 ? (uint64_t)v : 0;
}

/* The file is our own, but what does not fit is not passed on. */
static bool
box_of(sqlite3_stmt *q, struct edge_box *box)
{
    const char *id = col_text(q, 0), *owner = col_text(q, 14), *key = col_text(q, 15), *volume = col_text(q, 18);
    const char *base = col_text(q, 25);
    uint64_t flags = col_u64(q, 3);

    if (!edge_is_id(id) || !box_state_parse(col_text(q, 2), &box->state) || (owner[0] != '\0' && !edge_is_id(owner)) ||
        strlen(key) >= sizeof(box->key) || !edge_maybe_id(volume) || !edge_maybe_id(base))
        return false;
    memcpy(box->base, base, strlen(base) + 1);
    memcpy(box->volume, volume, strlen(volume) + 1);
    memcpy(box->id, id, EDGE_ID + 1);
    memcpy(box->owner, owner, strlen(owner) + 1);
    memcpy(box->key, key, strlen(key) + 1);
    box->name = col_text(q, 1);
    box->paused = (flags & 1) != 0;
    box->is_default = (flags & 2) != 0;
    box->persists = (flags & 32) != 0;
    box->bounds = (uint8_t)(flags >> 2 & 3);
    box->recovery = (struct edge_recovery){
        .after_s = (uint32_t)col_u64(q, 19), .tries = (uint32_t)col_u64(q, 20), .window_s = (uint32_t)col_u64(q, 21),
        .used = (uint32_t)col_u64(q, 22), .given_up = (flags & 16) != 0, .began_ms = col_u64(q, 23),
        .next_ms = col_u64(q, 24),
    };
    box->created_ms = col_u64(q, 4);
    box->started_ms = col_u64(q, 5);
    box->ended_ms = col_u64(q, 6);
    box->used_ms = col_u64(q, 7);
    box->idle_s = (uint32_t)col_u64(q, 8);
    box->life_s = (uint32_t)col_u64(q, 9);
    box->begun_at = col_u64(q, 26);
    box->used_at = col_u64(q, 27);
    box->tried_at = col_u64(q, 28);
    box->asked_s = (uint32_t)col_u64(q, 29);
    box->labels = col_text(q, 10);
    box->policy = col_text(q, 11);
    box->facts = col_text(q, 12);
    box->detail = col_text(q, 13);
    box->workspace = col_text(q, 16);
    box->print = col_text(q, 17);
    box->how = "";
    return edge_labels_well(box->labels) && edge_workspace_well(box->workspace) && edge_labels_well(box->print);
}

/* Every row, at most @most of them. How many there were (@most + 1: more), or -1. */
static int
rows(struct state *s, enum query which, int most, state_box_fn *fn, void *ctx, struct err *err)
{
    sqlite3_stmt *q = s->q[which];
    int n = 0, r;

    state_show(s);
    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_box box;
        if (box_of(q, &box) && n++ < most)
            fn(ctx, &box);
    }
    return state_done(s, q, r, n, err);
}

int
state_find(struct state *s, const char *id_or_name, state_box_fn *fn, void *ctx, struct err *err)
{
    enum query which = edge_is_id(id_or_name) ? Q_BY_ID : id_or_name[0] == '\0' ? Q_DEFAULT : Q_BY_NAME;

    bind_text(s->q[which], 1, id_or_name);
    return rows(s, which, 1, fn, ctx, err);
}

bool
state_named(struct state *s, const char *owner, const char *name)
{
    sqlite3_stmt *q = s->q[Q_NAMED];
    int r;

    bind_text(q, 1, name);
    bind_text(q, 2, owner);
    state_show(s);
    r = sqlite3_step(q);
    return state_done(s, q, r, r == SQLITE_ROW, NULL) != 0;
}

int
state_find_default(struct state *s, const char *owner, state_box_fn *fn, void *ctx, struct err *err)
{
    bind_text(s->q[Q_DEFAULT], 1, owner);
    return rows(s, Q_DEFAULT, 1, fn, ctx, err);
}

int
state_find_key(struct state *s, const char *key, state_box_fn *fn, void *ctx, struct err *err)
{
    bind_text(s->q[Q_BY_KEY], 1, key);
    return rows(s, Q_BY_KEY, 1, fn, ctx, err);
}

int
state_list(struct state *s, const struct state_query *q, state_box_fn *fn, void *ctx, bool *more, struct err *err)
{
    sqlite3_stmt *list = s->q[Q_LIST];
    int n, most = q->limit < EDGE_LIST_MAX ? (int)q->limit : EDGE_LIST_MAX;

    bind_text(list, 1, q->prefix);
    /* instr() finds the empty text at 1 */
    bind_text(list, 2, q->label);
    sqlite3_bind_int(list, 3, q->all);
    bind_text(list, 4, q->after);
    sqlite3_bind_int(list, 5, most + 1);
    bind_u64(list, 6, q->after_ms);
    bind_text(list, 7, q->owner);
    bind_text(list, 8, q->workspace);
    n = rows(s, Q_LIST, most, fn, ctx, err);
    *more = n > most;
    return n > most ? most : n;
}

int
state_note(struct state *s, const struct edge_event *event, struct err *err)
{
    sqlite3_stmt *q = s->q[Q_NOTE];

    bind_u64(q, 1, event->at_ms);
    bind_text(q, 2, event->id);
    bind_text(q, 3, event->type);
    bind_text(q, 4, event->detail);
    bind_u64(q, 5, s->last_event + 1);
    if (state_change_soon(s, q, "", err) < 0)
        return -1;
    s->last_event++;
    return 0;
}

uint64_t
state_last_event(struct state *s)
{
    return s->last_event;
}

int
state_events(struct state *s, const char *id, const char *owner, unsigned limit, state_event_fn *fn, void *ctx,
             struct err *err)
{
    sqlite3_stmt *q = s->q[Q_EVENTS];
    int n = 0, r;

    bind_text(q, 1, id);
    sqlite3_bind_int(q, 2, (int)limit);
    bind_text(q, 3, owner);
    state_show(s);
    while ((r = sqlite3_step(q)) == SQLITE_ROW) {
        struct edge_event event = { .number = col_u64(q, 0), .at_ms = col_u64(q, 1), .id = col_text(q, 2),
                                    .type = col_text(q, 3), .detail = col_text(q, 4) };
        fn(ctx, &event);
        n++;
    }
    return state_done(s, q, r, n, err);
}

int
state_prune(struct state *s, uint64_t now_ms, struct err *err)
{
    sqlite3_bind_int(s->q[Q_PRUNE_BOXES], 1, STATE_STOPPED_MAX);
    sqlite3_bind_int(s->q[Q_PRUNE_EVENTS], 1, STATE_EVENTS_MAX);
    return state_change(s, s->q[Q_PRUNE_BOXES], err) < 0 || state_change(s, s->q[Q_PRUNE_EVENTS], err) < 0 ||
           state_once_prune(s, now_ms, err) < 0 ? -1 : 0;
}
