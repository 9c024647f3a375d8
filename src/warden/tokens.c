/* warden/tokens.c: credentials: tokens of callers, keys of sandboxes
 *
 * Each has 256 random bits, so that nothing better than its SHA-256 has to be kept, and that is all there is of it here
 * or on disk. It is told once, in the answer to its making. A token is looked for among all of them in a time that does
 * not depend on which one it is or nearly is; so is a key among those of sandboxes that live. That of a stopped one is
 * found by its hash in the record: what the time of that may tell is the hash of what was sent.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "proto/edge_gate.h"
#include "warden/record.h"

bool
hash_of_text(const char *text, uint8_t out[SHA256_SIZE])
{
    return strlen(text) == SHA256_TEXT && str_unhex(str_of(text), out);
}

int
secret_new(const char *begins, char out[EDGE_CREDENTIAL_MAX + 1], uint8_t hash[SHA256_SIZE])
{
    uint8_t raw[SHA256_SIZE];
    char text[SHA256_TEXT + 1];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return -1;
    sha256_text(raw, text);
    snprintf(out, EDGE_CREDENTIAL_MAX + 1, "%s%s", begins, text);
    sha256_of(out, strlen(out), hash);
    explicit_bzero(raw, sizeof(raw));
    explicit_bzero(text, sizeof(text));
    return 0;
}

int
credential_new(enum edge_role role, char out[EDGE_CREDENTIAL_MAX + 1], uint8_t hash[SHA256_SIZE])
{
    char begins[32];

    snprintf(begins, sizeof(begins), "cloche_%s_", edge_role_name(role));
    return secret_new(begins, out, hash);
}

/* --- who one is for ----------------------------------------------------------------------------------------------- */

struct keyed { const struct warden *w; struct who *who; uint64_t *until; };

static bool
is_over(const struct warden *w, const struct token *t)
{
    return t->r.expires_ms > 0 && time_now(w) >= t->r.expires_ms;
}

const struct token *
token_of(const struct warden *w, const char *id)
{
    for (size_t i = 0; i < w->n_tokens; i++)
        if (strcmp(w->tokens[i].r.id, id) == 0)
            return &w->tokens[i];
    return NULL;
}

/* @owner: of a record; *until: when its token is over. The daemon's owner has no token to lose. */
bool
owner_lives(const struct warden *w, const char *owner, uint64_t *until)
{
    const struct token *t = token_of(w, owner);

    if (t == NULL)
        return owner[0] == '\0';
    *until = t->r.expires_ms;
    return !is_over(w, t);
}

/* A key opens no more than the token that its sandbox was made by: it ends with that. */
static void
key_row(void *ctx, const struct edge_box *r)
{
    const struct keyed *k = ctx;
    struct who *who = k->who;

    if (!owner_lives(k->w, r->owner, k->until))
        return;
    who->role = EDGE_KEY;
    memcpy(who->id, r->id, sizeof(who->id));
    memcpy(who->box, r->id, sizeof(who->box));
}

int
credential_who(struct warden *w, const uint8_t hash[SHA256_SIZE], struct who *who, uint64_t *until, struct err *err)
{
    const struct token *found = NULL;
    struct keyed k = { .w = w, .who = who, .until = until };
    char text[SHA256_TEXT + 1];

    *who = WHO_NOBODY;
    *until = 0;
    for (size_t i = 0; i < w->n_tokens; i++)
        if (mem_same(w->tokens[i].hash, hash, SHA256_SIZE))
            found = &w->tokens[i];
    if (found != NULL && is_over(w, found)) {
        err_set(err, ERR_DENIED, "auth.expired", "this token is over");
        return err_hint(err, "`cloche token create` makes another one");
    }
    if (found != NULL) {
        who->role = found->r.role;
        memcpy(who->id, found->r.id, sizeof(who->id));
        *until = found->r.expires_ms;
        return 0;
    }
    sha256_text(hash, text);
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (mem_same(b->r.key, text, SHA256_TEXT) ||    /* "" is none */
            (b->more_key[0] != '\0' && mem_same(b->more_hash, hash, SHA256_SIZE)))
            key_row(&k, &b->r);
    if (who->role == EDGE_NOBODY && !attach_who(w, hash, who, until))
        (void)state_find_key(w->state, text, key_row, &k, NULL);
    if (who->role != EDGE_NOBODY)
        return 0;
    err_set(err, ERR_DENIED, "auth.unknown", "no token and no sandbox's key is that credential");
    return err_hint(err, "it was revoked or replaced, its sandbox or whose that is is gone, or it never was one");
}

static void
more_key_ends(struct box *b)
{
    explicit_bzero(b->more_key, sizeof(b->more_key));
    b->more_lent = false;
}

/* Of those who were told another's second key one may be whose token is over: it is for nobody any more. */
void
lent_keys_end(struct warden *w)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        if (!b->more_lent)
            continue;
        more_key_ends(b);
        epoch_next(&w->epochs->credentials);
        ends_key(b);
    }
}

const char *
box_new_key(struct box *b, char out[EDGE_CREDENTIAL_MAX + 1], struct err *err)
{
    char former[sizeof(b->r.key)];
    uint8_t hash[SHA256_SIZE];

    if (credential_new(EDGE_KEY, out, hash) < 0) {
        err_sys(err, errno, "serve.random", "getrandom");
        return NULL;
    }
    memcpy(former, b->r.key, sizeof(former));
    sha256_text(hash, b->r.key);
    if (box_put(b, err) < 0) {
        /* what is not on record would be gone with this warden, and the former one back */
        memcpy(b->r.key, former, sizeof(former));
        explicit_bzero(out, EDGE_CREDENTIAL_MAX + 1);
        return NULL;
    }
    more_key_ends(b);
    epoch_next(&b->w->epochs->credentials);     /* the former ones are none any more */
    ends_key(b);
    return out;
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static void
loaded(void *ctx, const struct edge_token *r, const char *hash)
{
    struct warden *w = ctx;
    struct token *t = &w->tokens[w->n_tokens];

    if (w->n_tokens < WARDEN_TOKENS && hash_of_text(hash, t->hash)) {
        t->r = *r;
        w->n_tokens++;
    }
}

int
tokens_load(struct warden *w, struct err *err)
{
    return state_tokens(w->state, loaded, w, err) < 0 ? -1 : 0;
}

static int
forget(struct warden *w, size_t i, struct err *err)
{
    struct edge_token gone = w->tokens[i].r;

    if (state_forget_token(w->state, gone.id, err) < 0)
        return -1;
    epoch_next(&w->epochs->credentials);
    w->n_tokens--;
    memmove(&w->tokens[i], &w->tokens[i + 1], (w->n_tokens - i) * sizeof(w->tokens[0]));
    ends_token(w, &gone);
    return 0;
}

static void
forget_expired(struct warden *w)
{
    for (size_t i = w->n_tokens; i-- > 0;)
        if (is_over(w, &w->tokens[i]))
            (void)forget(w, i, NULL);
}

static void
answer_token(struct warden *w, const struct edge_token *r, const char *text)
{
    ANSWER(w, w->asker, EDGE_TOKEN, .token = *r, .text = text);
}

int
token_make(struct warden *w, struct token *t, const char *by, struct err *err)
{
    char text[EDGE_CREDENTIAL_MAX + 1], hash[SHA256_TEXT + 1];

    forget_expired(w);
    if (w->n_tokens == WARDEN_TOKENS) {
        err_set(err, ERR_LIMIT, "token.too-many", "there are %d tokens, which is the limit", WARDEN_TOKENS);
        return err_hint(err, "`cloche token revoke ID` ends one");
    }
    if (new_id(t->r.id) < 0 || credential_new(t->r.role, text, t->hash) < 0)
        return err_sys(err, errno, "serve.random", "getrandom");
    sha256_text(t->hash, hash);
    if (state_put_token(w->state, &t->r, hash, err) < 0)
        return -1;
    w->tokens[w->n_tokens++] = *t;
    ends_next(w);
    warden_note(w, NULL, "token_created", "%s %s %s, by %s", edge_role_name(t->r.role), t->r.id, t->r.name, by);
    answer_token(w, &t->r, text);
    explicit_bzero(text, sizeof(text));
    return 0;
}

static bool
recorded(struct warden *w, const struct edge_token *r)
{
    struct audit_entry e;

    record_begin(w, &e, "a token was asked for");
    audit_put_cstr(&e, "role", edge_role_name(r->role));
    if (r->name[0] != '\0')
        audit_put_cstr(&e, "name", r->name);
    return record_first(w, NULL, &e);
}

static int
on_make(struct warden *w, const struct ask_token *m)
{
    struct token t = { .r = { .created_ms = time_now(w) } };
    struct err err = ERR_INIT;
    char by[160];

    t.r.role = (enum edge_role)m->role;
    t.r.expires_ms = m->seconds > 0 ? t.r.created_ms + m->seconds * 1000 : 0;
    memcpy(t.r.name, m->text, strlen(m->text) + 1);
    who_text(w, &w->who, by);
    if (!recorded(w, &t.r) && token_make(w, &t, by, &err) < 0)
        answer_no(w, w->asker, &err);
    return 0;
}

static int
on_revoke(struct warden *w, const char *id)
{
    struct err err = ERR_INIT;
    struct edge_token gone;
    char by[160];
    size_t i;

    for (i = 0; i < w->n_tokens && strcmp(w->tokens[i].r.id, id) != 0; i++)
        ;
    if (i == w->n_tokens) {
        err_set(&err, ERR_NOT_FOUND, "token.not-found", "there is no token %s", id);
        err_hint(&err, "`cloche token ls` lists them");
    } else {
        gone = w->tokens[i].r;
        who_text(w, &w->who, by);
        if (forget(w, i, &err) == 0) {
            warden_note(w, NULL, "token_revoked", "%s %s %s, by %s", edge_role_name(gone.role), id, gone.name, by);
            answer_token(w, &gone, "");
            return 0;
        }
    }
    answer_no(w, w->asker, &err);
    return 0;
}

int
asked_token(struct warden *w, const struct ask_token *m)
{
    if (m->what != TOKEN_LIST)
        return m->what == TOKEN_MAKE ? on_make(w, m) : on_revoke(w, m->text);
    for (size_t i = 0; i < w->n_tokens; i++)
        answer_token(w, &w->tokens[i].r, "");
    answer_end(w, w->asker, (uint32_t)w->n_tokens, false);
    return 0;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* For who comes to a sandbox that others have the key of: theirs stays good, and nobody can tell it any more. */
static const char *
another_key(struct box *b, char out[EDGE_CREDENTIAL_MAX + 1], struct err *err)
{
    if (b->more_key[0] == '\0' && credential_new(EDGE_KEY, b->more_key, b->more_hash) < 0) {
        explicit_bzero(b->more_key, sizeof(b->more_key));
        err_sys(err, errno, "serve.random", "getrandom");
        return NULL;
    }
    memcpy(out, b->more_key, sizeof(b->more_key));
    b->more_lent |= b->w->who.id[0] != '\0' && strcmp(b->w->who.id, b->r.owner) != 0;
    return out;
}

int
asked_key(struct warden *w, const struct ask_key *m)
{
    char key[EDGE_CREDENTIAL_MAX + 1], by[160];
    struct err err = ERR_INIT;
    struct box *b = usable(w, m->id, &err);

    if (b != NULL && record_asked(w, b, m->id, NULL))
        return 0;
    if (b == NULL || (m->more ? another_key(b, key, &err) : box_new_key(b, key, &err)) == NULL) {
        answer_no(w, w->asker, &err);
        return 0;
    }
    who_text(w, &w->who, by);
    warden_note(w, b, "key_created", "%s, by %s", m->more ? "another key" : "a new key", by);
    answer_box(w, w->asker, &b->r, key);
    explicit_bzero(key, sizeof(key));
    return 0;
}
