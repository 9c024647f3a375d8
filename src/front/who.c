/* front/who.c: whose a request is
 *
 * A credential comes as `Authorization: Bearer TOKEN` (RFC 6750; the scheme in any case) or, a sandbox's key, as
 * `X-Sandbox-Key: KEY`. It is handed to the warden at once and not kept: the warden's handle for it is what the
 * request's questions carry. The handle is remembered with a keyed hash of the credential, for as long as the warden's
 * count says that none has ended (warden/epoch.h); one that the warden refused is not. Where a connection has an
 * owner, a request with a credential has that one's rights and no more.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "front/front.h"

struct presented {
    unsigned n;                 /* of either header */
    enum edge_credential kind;
    const char *value;
};

static enum MHD_Result
on_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct presented *p = ctx;
    bool bearer = strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0;

    (void)kind;
    if (bearer || strcasecmp(name, "X-Sandbox-Key") == 0) {
        p->n++;
        p->kind = bearer ? EDGE_BEARER : EDGE_SANDBOX_KEY;
        p->value = value != NULL ? value : "";
    }
    return MHD_YES;
}

/* The credential in an Authorization of the one scheme there is; NULL in any other. */
static const char *
bearer_of(const char *value)
{
    if (strncasecmp(value, "bearer", 6) != 0 || value[6] != ' ')
        return NULL;
    value += 6;
    return value + strspn(value, " ");
}

/* --- what is remembered ------------------------------------------------------------------------------------------- */

static void
print_of(struct request *r, const char *credential)
{
    struct sha256 h;

    sha256_init(&h);
    sha256_add(&h, r->f->known.secret, sizeof(r->f->known.secret));
    sha256_add(&h, credential, strlen(credential));
    sha256_end(&h, r->print);
}

static struct known *
set_of(struct request *r)
{
    return r->f->known.at[((size_t)r->print[0] << 8 | r->print[1]) % KNOWN_SETS];
}

static bool
is_good(const struct front *f, const struct known *k)
{
    return k->who != 0 && f->epochs != NULL && k->epoch == atomic_load(&f->epochs->credentials) &&
           (k->until_ms == 0 || clock_wall_ms() < k->until_ms);
}

/* NULL: the warden is to be asked. */
static struct known *
known_of(struct request *r)
{
    struct known *set = set_of(r);

    for (size_t i = 0; i < KNOWN_WAYS; i++) {
        if (!mem_same(set[i].print, r->print, sizeof(r->print)) || !is_good(r->f, &set[i]))
            continue;
        set[i].used = ++r->f->known.uses;
        return &set[i];
    }
    return NULL;
}

/* In the place of what it was, of one that is good no more, or of the one that was longest unused. */
static struct known *
place_of(struct request *r)
{
    struct known *set = set_of(r), *oldest = &set[0];

    for (size_t i = 0; i < KNOWN_WAYS; i++)
        if (mem_same(set[i].print, r->print, sizeof(r->print)))
            return &set[i];
    for (size_t i = 0; i < KNOWN_WAYS; i++) {
        if (!is_good(r->f, &set[i]))
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    return oldest;
}

/* For whom memory is counted: what is judged later has a handle of its own. */
static void
count_for(struct request *r)
{
    r->caller = r->role == EDGE_KEY ? HOLD_KEYS : hold_caller(r->who);
}

/* It goes on when it is woken. */
static void
on_who(struct request *r)
{
    struct known *k = place_of(r);

    count_for(r);
    if (r->f->epochs == NULL)
        return;
    free(k->status.text);
    *k = (struct known){ .who = r->who, .role = r->role, .until_ms = r->until_ms, .epoch = r->epoch,
                         .used = ++r->f->known.uses };
    memcpy(k->print, r->print, sizeof(k->print));
    memcpy(k->box, r->role_box, sizeof(k->box));
}

static bool
remembered(struct request *r)
{
    const struct known *k = known_of(r);

    if (k == NULL) {
        r->epoch = r->f->epochs != NULL ? atomic_load(&r->f->epochs->credentials) : 0;
        return false;
    }
    r->who = k->who;
    r->role = k->role;
    memcpy(r->role_box, k->box, sizeof(r->role_box));
    count_for(r);
    return true;
}

struct told_status *
who_status(struct request *r)
{
    struct known *k = r->who != 0 ? known_of(r) : NULL;

    /* what a key's says is that of any sandbox */
    if (r->f->epochs == NULL || (r->who != 0 && (k == NULL || k->role == EDGE_KEY)))
        return NULL;
    return k != NULL ? &k->status : !r->f->strangers ? &r->f->owner_status : NULL;
}

/* --- admission ---------------------------------------------------------------------------------------------------- */

static const struct answers who_answers = { .who = on_who };

bool
who_admit(struct request *r)
{
    struct presented p = { .n = 0 };
    const char *text;

    (void)MHD_get_connection_values(r->c, MHD_HEADER_KIND, on_header, &p);
    if (p.n == 0 && !r->f->strangers)
        return true;
    if (p.n == 0) {
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.required", "Authorization: Bearer TOKEN; `cloche token create` "
                    "makes one", "this needs a credential");
        return false;
    }
    text = p.kind == EDGE_BEARER ? bearer_of(p.value) : p.value;
    if (p.n > 1)
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "one Authorization or one X-Sandbox-Key, not both",
                    "the request has more than one credential");
    else if (text == NULL || !edge_credential_well(p.kind, text))
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "Authorization: Bearer cloche_ROLE_..., or "
                    "X-Sandbox-Key: cloche_key_...", "the credential is malformed");
    else {
        print_of(r, text);
        if (remembered(r))
            return true;
        ask_who(r, p.kind, text, &who_answers);
    }
    return false;
}
