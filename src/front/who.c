/* front/who.c: whose a request is
 *
 * A credential comes as `Authorization: Bearer TOKEN` (RFC 6750; the scheme in any case) or, a sandbox's key, as
 * `X-Sandbox-Key: KEY`; from a page that opens a WebSocket, which can say nothing else, as a subprotocol beside
 * "cloche.exec": `cloche.bearer.TOKEN`. It is handed to the warden at once and not kept: the warden's handle for it is
 * what the request's questions carry. The handle is remembered with a keyed hash of the credential, for as long as the
 * warden's count says that none has ended (warden/epoch.h); one that the warden refused is not. Where a connection has
 * an owner, a request with a credential has that one's rights and no more.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "front/front.h"
#include "wire/http1.h"

#define SPOKEN "cloche.bearer."

/* The one among the words of a list, without what it begins with, into *text; how many there are. */
static unsigned
spoken_in(const struct header *list, struct str *text)
{
    const size_t before = sizeof(SPOKEN) - 1;
    struct str rest = { list->value, list->size }, word;
    unsigned n = 0;

    while (http1_list_next(&rest, &word)) {
        if (!str_starts(word, STR_LIT(SPOKEN)))
            continue;
        *text = (struct str){ word.p + before, word.n - before };
        n++;
    }
    return n;
}

static void
take_text(struct presented *p, const char *text, size_t n)
{
    if (n < sizeof(p->text))
        memcpy(p->text, text, n);
    if (strlen(p->text) != n || !edge_credential_well(p->kind, p->text))
        explicit_bzero(p->text, sizeof(p->text));
}

/* @is_bearer: an Authorization is one. */
static struct presented
presents(const struct request *r, bool is_bearer)
{
    struct header none = { .n = 0 }, key = header_of(r, "X-Sandbox-Key"), list = none;
    struct header bearer = is_bearer ? header_of(r, MHD_HTTP_HEADER_AUTHORIZATION) : none;
    struct presented p = { .n = bearer.n + key.n, .kind = key.n > 0 ? EDGE_SANDBOX_KEY : EDGE_BEARER };
    struct str text = bearer.n > 0 ? (struct str){ bearer.value, bearer.size } : (struct str){ key.value, key.size };

    if (r->route != NULL && r->route->spoken)
        list = header_of(r, "Sec-WebSocket-Protocol");
    p.n += list.n > 1 ? list.n : spoken_in(&list, &text);       /* in two lists nothing is looked for */
    if (p.n != 1)
        return p;
    if (bearer.n > 0) {                 /* the one scheme there is */
        if (text.n < 7 || strncasecmp(text.p, "bearer ", 7) != 0)
            return p;
        text = (struct str){ text.p + 7, text.n - 7 };
        for (; text.n > 0 && text.p[0] == ' '; text.n--)
            text.p++;
    }
    take_text(&p, text.p, text.n);
    return p;
}

static bool
is_user(struct header h)
{
    return h.n == 1 && h.size >= 6 && strncasecmp(h.value, "basic ", 6) == 0;
}

/* A sandbox's key in either of E2B's headers, or in both; otherwise as anywhere. Their clients say in Authorization as
 * which user of the sandbox they come, which opens nothing. What else is a credential is one more. */
static struct presented
presents_box_key(const struct request *r)
{
    struct header one = header_of(r, "X-Access-Token"), two = header_of(r, "E2B-Traffic-Access-Token");
    struct header other = header_of(r, MHD_HTTP_HEADER_AUTHORIZATION);
    const unsigned tokens = header_of(r, "X-API-Key").n;
    struct presented p = { .n = one.n + two.n, .kind = EDGE_SANDBOX_KEY };

    if (p.n + tokens == 0)
        return presents(r, !is_user(other));
    if (one.n == 1 && two.n == 1 && one.size == two.size && mem_same(one.value, two.value, one.size))
        p.n = 1;
    p.n += 2 * tokens + header_of(r, "X-Sandbox-Key").n + (is_user(other) ? 0 : other.n);
    if (p.n == 1)
        take_text(&p, one.n > 0 ? one.value : two.value, one.n > 0 ? one.size : two.size);
    return p;
}

/* A token in E2B's header, or as anywhere; not what is for their sandboxes. */
static struct presented
presents_api_key(const struct request *r)
{
    struct header key = header_of(r, "X-API-Key");
    struct presented p = { .n = key.n + header_of(r, MHD_HTTP_HEADER_AUTHORIZATION).n + header_of(r, "X-Sandbox-Key").n,
                           .kind = EDGE_BEARER };

    if (header_of(r, "X-Access-Token").n > 0 || header_of(r, "E2B-Traffic-Access-Token").n > 0)
        p.n += 2;
    else if (key.n == 0)
        return presents(r, true);
    if (p.n == 1)
        take_text(&p, key.value, key.size);
    return p;
}

struct presented
who_presents(const struct request *r)
{
    switch (r->route != NULL ? r->route->credential : CREDENTIAL_OURS) {
    case CREDENTIAL_BOX_KEY: return presents_box_key(r);
    case CREDENTIAL_API_KEY: return presents_api_key(r);
    default: return presents(r, true);
    }
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
           (k->until_ms == 0 || (clock_wall_ms() < k->until_ms && clock_ms() < k->end_ms));
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
void
who_count(struct request *r)
{
    waits_move(r, r->role == EDGE_KEY ? HOLD_KEYS : hold_caller(r->who));
}

/* It goes on when it is woken. */
static void
on_who(struct request *r)
{
    struct known *k = place_of(r);

    who_count(r);
    if (r->f->epochs == NULL)
        return;
    free(k->status.text);
    *k = (struct known){ .who = r->who, .role = r->role, .until_ms = r->until_ms, .epoch = r->epoch,
                         .used = ++r->f->known.uses,
                         .end_ms = clock_ms() + clock_since(r->until_ms, clock_wall_ms()) };
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
    r->until_ms = k->until_ms;
    memcpy(r->role_box, k->box, sizeof(r->role_box));
    who_count(r);
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
    struct presented p = who_presents(r);
    bool known = false;

    if (p.n == 0 && !r->f->strangers)
        return true;
    if (p.n == 0)
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.required", "Authorization: Bearer TOKEN; `cloche token create` "
                    "makes one", "this needs a credential");
    else if (p.n > 1)
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "one Authorization or one X-Sandbox-Key, not both",
                    "the request has more than one credential");
    else if (p.text[0] == '\0')
        reply_error(r, MHD_HTTP_UNAUTHORIZED, "auth.malformed", "Authorization: Bearer cloche_ROLE_..., or "
                    "X-Sandbox-Key: cloche_key_...", "the credential is malformed");
    else {
        print_of(r, p.text);
        known = remembered(r);
        if (!known)
            ASK(r, EDGE_ASK_WHO, &who_answers, .kind = p.kind, .text = p.text);
    }
    explicit_bzero(&p, sizeof(p));
    return known;
}
