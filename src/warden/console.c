/* warden/console.c: tickets for the console, a person's page (docs/console.md)
 *
 * A person with a terminal asks for a ticket, which goes into the address of the page. It opens one session, once,
 * within minutes: a token of a role and a time that were said with the ticket, as any other token is, and as easily
 * revoked. So what may stay in a browser's history opens nothing any more. Of a ticket its hash is kept, until its time
 * is over; all end with this warden.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "warden/record.h"

#define NAME "console"

/* Room for a new one, which is of no time yet; NULL: there is none. */
static struct console_ticket *
room(struct warden *w)
{
    uint64_t now = time_now(w);

    for (size_t i = 0; i < ARRAY_LEN(w->console); i++)
        if (now >= w->console[i].until_ms)
            return &w->console[i];
    return NULL;
}

/* Where the record is required, the question waits for its entry: true. */
static bool
recorded(struct warden *w, const char *summary, enum edge_role role)
{
    struct audit_entry e;

    record_begin(w, &e, summary);
    audit_put_cstr(&e, "role", edge_role_name(role));
    return record_first(w, NULL, &e);
}

int
asked_console(struct warden *w, const struct ask_console *m)
{
    struct console_ticket *t = room(w), made = { .role = (enum edge_role)m->role, .seconds = m->seconds };
    char text[EDGE_CREDENTIAL_MAX + 1];
    struct edge_token told = { .role = made.role, .created_ms = time_now(w), .name = NAME };
    struct err err = ERR_INIT;

    if (recorded(w, "a ticket for the console was asked for", made.role))
        return 0;
    if (t == NULL) {
        err_set(&err, ERR_LIMIT, "console.busy", "%zu tickets wait to be used; that is the limit",
                ARRAY_LEN(w->console));
        err_hint(&err, "each is gone after the time it was made for: try again in some minutes");
    } else if (new_id(told.id) < 0 || secret_new(EDGE_CONSOLE_TICKET, text, made.hash) < 0) {
        err_sys(&err, errno, "serve.random", "getrandom");
    }
    if (err.kind != ERR_NONE) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    made.until_ms = told.created_ms + m->within * 1000UL;
    memcpy(made.person, w->who.id, sizeof(made.person));
    who_text(w, &w->who, made.by);
    *t = made;
    told.expires_ms = time_on_wall(w, made.until_ms);
    warden_note(w, NULL, "console_ticket", "%s, by %s", edge_role_name(made.role), made.by);
    ANSWER(w, w->asker, EDGE_TOKEN, .token = told, .text = text);
    explicit_bzero(text, sizeof(text));
    return 0;
}

/* The ticket of that text, which opens a session now; NULL with @err. */
static struct console_ticket *
ticket_of(struct warden *w, const char *text, uint64_t *person_until, struct err *err)
{
    struct console_ticket *found = NULL;
    uint8_t hash[SHA256_SIZE];

    *person_until = 0;
    sha256_of(text, strlen(text), hash);
    for (size_t i = 0; i < ARRAY_LEN(w->console); i++)
        if (w->console[i].until_ms > 0 && mem_same(w->console[i].hash, hash, SHA256_SIZE))
            found = &w->console[i];
    if (found == NULL)
        err_set(err, ERR_DENIED, "console.ticket", "that is no ticket of this daemon's");
    else if (found->used)
        err_set(err, ERR_DENIED, "console.used", "the ticket was used already");
    else if (time_now(w) >= found->until_ms)
        err_set(err, ERR_DENIED, "console.late", "the ticket was not used in time");
    else if (!owner_lives(w, found->person, person_until))
        err_set(err, ERR_DENIED, "console.person", "the token of who asked for the ticket is gone");
    else
        return found;
    err_hint(err, "`cloche console` makes another one");
    return NULL;
}

int
asked_console_open(struct warden *w, const struct ask_console_open *m)
{
    struct token t = { .r = { .created_ms = time_now(w), .name = NAME } };
    char by[sizeof(((struct console_ticket *)NULL)->by) + 32];
    struct err err = ERR_INIT;
    uint64_t person_until;
    struct console_ticket *c = ticket_of(w, m->ticket, &person_until, &err);

    if (c == NULL) {
        who_refused(w, "%s [%s]", err.msg, err.code);
        answer_no(w, w->asker, &err);
        return 0;
    }
    if (recorded(w, "a console is to be opened", c->role))
        return 0;
    t.r.role = c->role;
    t.r.expires_ms = t.r.created_ms + c->seconds * 1000UL;
    if (person_until > 0 && person_until < t.r.expires_ms)      /* it opens no longer than who it is */
        t.r.expires_ms = person_until;
    snprintf(by, sizeof(by), "%s, by a ticket", c->by);
    c->used = true;
    if (token_make(w, &t, by, &err) < 0) {
        c->used = false;
        answer_no(w, w->asker, &err);
    }
    return 0;
}
