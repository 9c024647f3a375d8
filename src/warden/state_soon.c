/* warden/state_soon.c: what is put soon, until it is on record (see state.h, state_priv.h)
 *
 * SQLite takes a transaction back that it could not write, as on a full disk, and what was in it is gone there. So each
 * change is kept as text too until it is on record, and the transaction is made again from that: one that is open, by
 * which everybody reads what is so, and which is tried at its time. Of what is replaced (a sandbox's record, when it
 * was used) only the last is kept, of events the newest, so there is a bound to all of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "warden/state_priv.h"

#define EVENTS_MAX 2048                 /* that wait for room */
#define BYTES_MAX  (8UL * 1024 * 1024)
#define AGAIN_MS   1000                 /* between two tries, */
#define AGAIN_EACH 20                   /* or so many times as long as one takes */

struct state_soon {
    struct state_soon *next;
    char key[STATE_KEY];                /* "": it replaces nothing */
    size_t n;
    char *sql;                          /* SQLite's */
};

/* --- the list ----------------------------------------------------------------------------------------------------- */

static void
take_out(struct state *s, struct state_soon **at)
{
    struct state_soon *e = *at;

    *at = e->next;
    if (s->soon.end == &e->next)
        s->soon.end = at;
    s->soon.n--;
    s->soon.bytes -= e->n;
    s->soon.events -= e->key[0] == '\0';
    sqlite3_free(e->sql);
    free(e);
}

static void
forget_all(struct state *s)
{
    while (s->soon.first != NULL)
        take_out(s, &s->soon.first);
}

void
state_soon_forget(struct state *s, const char *key)
{
    for (struct state_soon **at = &s->soon.first; *at != NULL;)
        if (strcmp((*at)->key, key) == 0)
            take_out(s, at);
        else
            at = &(*at)->next;
}

static int
keep(struct state *s, sqlite3_stmt *q, const char *key, struct err *err)
{
    struct state_soon *e = calloc(1, sizeof(*e));

    if (e != NULL && (e->sql = sqlite3_expanded_sql(q)) != NULL) {
        if (key[0] != '\0')
            state_soon_forget(s, key);
        snprintf(e->key, sizeof(e->key), "%s", key);
        e->n = strlen(e->sql);
        *(s->soon.end != NULL ? s->soon.end : &s->soon.first) = e;
        s->soon.end = &e->next;
        s->soon.n++;
        s->soon.bytes += e->n;
        s->soon.events += key[0] == '\0';
        return 0;
    }
    free(e);
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* --- the transaction ---------------------------------------------------------------------------------------------- */

static bool
done(struct state *s, enum query which)
{
    bool ok = sqlite3_step(s->q[which]) == SQLITE_DONE;

    if (ok)
        sqlite3_reset(s->q[which]);
    return ok;
}

static void
roll_back(struct state *s)
{
    sqlite3_reset(s->q[Q_BEGIN]);
    sqlite3_reset(s->q[Q_COMMIT]);
    if (sqlite3_get_autocommit(s->db) == 0)
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->open = false;
}

/* What failed last is why. */
static void
take_back(struct state *s)
{
    s->why = (struct err)ERR_INIT;
    (void)state_broken(s, &s->why);
    roll_back(s);
}

/* What is wrong is the change itself: it would be so for ever. */
static bool
is_lasting(const struct state *s)
{
    switch (sqlite3_errcode(s->db)) {
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
        return true;
    default:
        return false;
    }
}

/* All of the list is in an open transaction. */
static bool
build(struct state *s)
{
    struct state_soon **at = &s->soon.first;

    if (s->open)
        return true;
    if (!done(s, Q_BEGIN)) {
        take_back(s);
        return false;
    }
    while (*at != NULL) {
        bool lasting;
        if (sqlite3_exec(s->db, (*at)->sql, NULL, NULL, NULL) == SQLITE_OK) {
            at = &(*at)->next;
            continue;
        }
        lasting = is_lasting(s);
        take_back(s);
        if (!lasting)
            return false;
        s->lost++;
        take_out(s, at);
        at = &s->soon.first;
        if (!done(s, Q_BEGIN)) {
            take_back(s);
            return false;
        }
    }
    s->open = true;
    return true;
}

static bool
commit(struct state *s)
{
    if (!done(s, Q_COMMIT)) {
        take_back(s);
        return false;
    }
    s->open = s->behind = false;
    forget_all(s);
    return true;
}

/* 0, or -1 with state.why. */
static int
write_all(struct state *s)
{
    uint64_t began = clock_ms(), took;

    if (build(s) && commit(s))
        return 0;
    if (err_is(&s->why, STATE_FULL)) {
        bool ok;
        state_make_room(s);
        ok = build(s) && commit(s);
        state_keep_room(s);
        if (ok)
            return 0;
    }
    took = AGAIN_EACH * clock_since(clock_ms(), began);
    s->behind = true;
    s->again_ms = clock_ms() + (took > AGAIN_MS ? took : AGAIN_MS);
    return -1;
}

static bool
is_due(const struct state *s)
{
    return !s->behind || clock_ms() >= s->again_ms;
}

/* --- for the others ----------------------------------------------------------------------------------------------- */

int
state_change_soon(struct state *s, sqlite3_stmt *q, const char *key, struct err *err)
{
    bool lasting;

    if (!s->open && sqlite3_get_autocommit(s->db) == 0)     /* in another transaction it is a part of that */
        return state_change(s, q, err);
    if ((s->open || (!s->behind && build(s))) && sqlite3_step(q) != SQLITE_DONE) {
        lasting = is_lasting(s);
        take_back(s);
        if (lasting) {
            state_ready(q);
            if (err != NULL)
                *err = s->why;
            return -1;
        }
    }
    sqlite3_reset(q);
    if (keep(s, q, key, err) < 0) {     /* it is in no transaction that would be made again */
        roll_back(s);
        state_ready(q);
        return -1;
    }
    state_ready(q);
    while (s->behind && s->soon.events > 0 && (s->soon.events > EVENTS_MAX || s->soon.bytes > BYTES_MAX)) {
        struct state_soon **at = &s->soon.first;
        while ((*at)->key[0] != '\0')
            at = &(*at)->next;
        take_out(s, at);
        s->lost++;
        roll_back(s);
    }
    return 0;
}

bool
state_change_with_soon(struct state *s, sqlite3_stmt *q)
{
    if (s->soon.n == 0)
        return false;
    if (is_due(s) && build(s)) {
        if (sqlite3_step(q) != SQLITE_DONE) {
            take_back(s);
        } else {
            sqlite3_reset(q);
            if (commit(s)) {
                state_ready(q);
                return true;
            }
        }
        sqlite3_reset(q);
    }
    roll_back(s);
    return false;
}

void
state_show(struct state *s)
{
    if (s->soon.n > 0 && !s->open && sqlite3_get_autocommit(s->db) != 0)
        (void)build(s);
}

void
state_end_open(struct state *s)
{
    if (s->soon.n > 0 && is_due(s))
        (void)write_all(s);
    if (s->open)
        roll_back(s);
}

bool
state_waits(const struct state *s)
{
    return s->soon.n > 0;
}

int
state_flush(struct state *s, struct err *err)
{
    if (s->soon.n == 0 || (is_due(s) && write_all(s) == 0))
        return 0;
    if (err != NULL)
        *err = s->why;
    return -1;
}

uint64_t
state_again_ms(const struct state *s)
{
    return s->behind ? s->again_ms : 0;
}

void
state_at_once(struct state *s)
{
    s->again_ms = 0;
}

uint64_t
state_lost(struct state *s)
{
    uint64_t n = s->lost;

    s->lost = 0;
    return n;
}
