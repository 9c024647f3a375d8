/* egress/inject.c: see inject.h */
#include "egress/inject.h"

#include <stdio.h>
#include <string.h>

#include "egress/inject_place.h"
#include "egress/inject_priv.h"
#include "egress/inject_sign.h"
#include "egress/swap.h"
#include "egress/unpack.h"

#define BIT(id) INJECT_BIT(id)
#define BODY_FORMS (SWAP_RAW | SWAP_SPELLED)

/* Of all connections: what they may hold together has a ceiling. One thread. */
static unsigned n_collecting;

void
inject_wipe_text(struct inject *j)
{
    if (j->text.p != NULL)
        explicit_bzero(j->text.p, j->text.cap);
    buf_free(&j->text);
    j->text = (struct buf)BUF_INIT(INJECT_TEXT_MAX);
}

void
inject_swap_drop(struct swap **s)
{
    swap_free(*s);
    *s = NULL;
}

static void
stop_collecting(struct inject *j)
{
    n_collecting -= j->collecting;
    j->collecting = false;
}

/* Nothing of the last request is left. */
static void
forget(struct inject *j)
{
    if (j->ticket != 0)
        vault_forget(j->vault, j->ticket);
    vault_lease_free(j->lease);
    inject_swap_drop(&j->up);
    inject_swap_drop(&j->down);
    unpack_free(j->unpack);
    stop_collecting(j);
    inject_ws_free(j);
    inject_wipe_text(j);
    buf_free(&j->head);
    j->head = (struct buf)BUF_INIT(HTTP1_HEAD_MAX);
    explicit_bzero(j->authorization, sizeof(j->authorization));
    j->sign = j->sign_whole = j->hashed = j->ids_alone = false;
    j->up_cut = j->down_cut = (struct grpc_cut){ .on = false };
    j->lease = NULL;
    j->unpack = NULL;
    j->ticket = j->seen = j->added = j->kept = j->forbidden = j->concerned = j->known = 0;
    j->refuse = NULL;
    j->detail = "";
}

void
inject_init(struct inject *j, struct vault_client *vault, const struct inject_owner *owner, void *ctx,
            struct inject_told *told, const uint64_t *now_ms)
{
    *j = (struct inject){ .vault = vault, .owner = owner, .ctx = ctx, .now_ms = now_ms, .told = told, .detail = "",
                          .text = BUF_INIT(INJECT_TEXT_MAX), .head = BUF_INIT(HTTP1_HEAD_MAX) };
}

void
inject_free(struct inject *j)
{
    forget(j);
}

/* --- may it go? --------------------------------------------------------------------------------------------------- */

static enum inject_result
inject_refuse(struct inject *j, const char *reason, const char *detail, const char *name, bool critical)
{
    stop_collecting(j);     /* the exchange drops the body; the client may keep the connection */
    j->refuse = reason;
    j->detail = detail;
    j->owner->note(j->ctx, reason, name, critical);
    return INJECT_REFUSE;
}

const char *
inject_refused(const struct inject *j, const char **detail)
{
    *detail = j->detail;
    return j->refuse;
}

uint64_t
inject_deadline(const struct inject *j)
{
    return j->ticket != 0 ? j->late_ms : 0;
}

void
inject_late(struct inject *j)
{
    vault_forget(j->vault, j->ticket);
    j->ticket = 0;
    inject_refuse(j, "vault-slow", "the vault has not answered in time", "", false);
}

/* The vault took no question. */
static void
refuse_unasked(struct inject *j, const struct err *why)
{
    if (err_is(why, "vault.busy"))
        inject_refuse(j, "vault-slow", "the vault does not keep up", "", false);
    else if (err_is(why, "vault.not-bound"))
        inject_refuse(j, j->sign ? "secret-sigv4" : "secret-search", "it is longer than the vault takes", "", false);
    else
        inject_refuse(j, "vault-ended", "the vault does not answer", "", false);
}

static const char *
name_of(const struct inject *j, uint32_t mask)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if (mask & BIT(i))
            return secrets[i].name;
    return "";
}

/* Each secret once in a connection's life. */
static void
say_used(struct inject *j, uint32_t mask)
{
    size_t n;

    (void)vault_client_secrets(j->vault, &n);
    for (size_t i = 0; i < n; i++)
        if (mask & ~j->told->out & BIT(i))
            j->owner->note(j->ctx, NULL, name_of(j, BIT(i)), false);
    j->told->out |= mask;
}

void
inject_scrubbed(struct inject *j, uint32_t seen)
{
    uint32_t left = seen & ~j->told->in;

    j->told->in |= seen;
    for (; left != 0; left &= left - 1)
        j->owner->scrubbed(j->ctx, name_of(j, left));       /* the lowest */
}

/* The request has the values of @lease, and those that its head asked for are on their way. */
static void
had(struct inject *j, const struct vault_lease *lease)
{
    j->used |= lease->search;
    say_used(j, j->seen & lease->mask);
}

/* Which placeholders stand anywhere in the head's own bytes; -1 when that cannot be known. */
static int
find_in_head(const struct inject *j, const struct http1_head *head, uint32_t *seen)
{
    struct buf out = BUF_INIT(2 * HTTP1_HEAD_MAX);
    struct swap *s = swap_new();
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);
    int r = s == NULL ? -1 : 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = swap_add(s, secrets[i].id, secrets[i].placeholder, secrets[i].placeholder, secrets[i].n, SWAP_ALL);
    /* a head begins with its method */
    if (r == 0)
        r = swap_feed(s, head->method.p, head->length, true, &out);
    *seen = r == 0 ? swap_seen(s) : 0;
    swap_free(s);
    buf_free(&out);
    return r;
}

/* Those of @mask that have the role @which. */
static uint32_t
of_role(const struct inject *j, uint32_t mask, enum vault_role which)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if (secrets[i].role != which)
            mask &= ~BIT(i);
    return mask;
}

/* Those whose values may be leased for the search of an answer: a secret access key stays in the vault. */
static uint32_t
can_be_searched_for(const struct inject *j, uint32_t mask)
{
    return mask & ~of_role(j, mask, VAULT_ROLE_AWS_KEY);
}

/* Those that can be put into a request; with AWS's it is signed instead. */
static uint32_t
can_be_leased(const struct inject *j, uint32_t mask)
{
    return can_be_searched_for(j, mask) & ~of_role(j, mask, VAULT_ROLE_AWS_ID);
}

static uint32_t
revoked(const struct inject *j, uint32_t mask)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if (!secrets[i].revoked)
            mask &= ~BIT(i);
    return mask;
}

static enum inject_result
refuse_revoked(struct inject *j, uint32_t mask)
{
    size_t n;
    const struct vault_secret *s = &vault_client_secrets(j->vault, &n)[__builtin_ctz(mask)];

    return s->expired ? inject_refuse(j, "secret-expired", "the secret's time is over", s->name, false)
                      : inject_refuse(j, "secret-revoked", "the secret was revoked", s->name, false);
}

/* --- AWS's signature ---------------------------------------------------------------------------------------------- */

static void
on_signature(void *ctx, const char *authorization, const struct err *why)
{
    struct inject *j = ctx;

    j->ticket = 0;
    if (authorization == NULL)
        inject_refuse(j, "secret-sigv4", err_is(why, "vault.ended") ? "the vault has ended"
                                                : "the vault does not sign such a request",
                      name_of(j, BIT(j->sign_id)), false);
    else
        memcpy(j->authorization, authorization, strnlen(authorization, VAULT_AUTHORIZATION_MAX));
    if (j->refuse == NULL)
        say_used(j, BIT(j->sign_id));
    j->owner->ready(j->ctx);
}

/* What the request is changed to ask for, for its answer to be searched. */
static enum inject_asked
asked_how(const struct inject *j)
{
    return j->lease == NULL ? INJECT_ASKED_AS_IT_IS : j->ids_alone ? INJECT_ASKED_PLAINLY : INJECT_ASKED_WHOLE;
}

/* Ask for it, over what will be sent. False: refused. */
static bool
ask_signature(struct inject *j)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);
    struct inject_sign sign;
    struct http1_head head;
    struct vault_to_sign what;
    struct err err = ERR_INIT;
    struct str token = { "", 0 };
    const char *why = "its head";
    char host[HOST_NAME_MAX_LEN + 16];

    for (size_t i = 0; i < n; i++)
        if (secrets[i].role == VAULT_ROLE_AWS_TOKEN && j->lease != NULL && j->lease->value[i] != NULL &&
            strcmp(secrets[i].name, secrets[j->sign_id].name) == 0)
            token = (struct str){ (const char *)j->lease->value[i], secrets[i].n };
    snprintf(host, sizeof(host), j->place.port == (j->place.tls ? 443 : 80) ? "%s" : "%s:%u", j->place.host.name,
             j->place.port);
    if (http1_parse_request(j->head.p, j->head.n, &head) == HTTP1_OK && inject_sign_claim(&head, &sign))
        why = inject_sign_prepare(&head, str_of(host), token, asked_how(j), j->hashed ? j->hash : NULL, &sign);
    if (why != NULL) {
        inject_refuse(j, "secret-sigv4", why, name_of(j, BIT(j->sign_id)), false);
        return false;
    }
    what = (struct vault_to_sign){ .date = sign.date, .region = sign.claim.region, .service = sign.claim.service,
                                   .signed_headers = str_of(sign.signed_headers), .canonical = sign.canonical };
    j->place.method = head.method;
    j->place.path = head.path;
    j->late_ms = *j->now_ms + INJECT_WAIT_MS;
    j->ticket = vault_ask_signature(j->vault, &j->place, j->sign_id, &what, on_signature, j, &err);
    if (j->ticket == 0)
        refuse_unasked(j, &err);
    return j->ticket != 0;
}

/* Whether the request bears a signature by a placeholder; keeps what is needed to make it anew. -1: no memory. */
static int
find_signature(struct inject *j, const struct http1_head *head, const struct binding_request *r)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);
    struct inject_sign sign;

    if (!inject_sign_claim(head, &sign))
        return 0;
    for (size_t i = 0; i < n && !j->sign; i++)
        if (secrets[i].role == VAULT_ROLE_AWS_ID && sign.claim.id.n == secrets[i].n &&
            memcmp(sign.claim.id.p, secrets[i].placeholder, secrets[i].n) == 0) {
            j->sign = true;
            j->sign_id = secrets[i].id;
        }
    j->place = *r;
    j->sign_whole = j->sign && j->can_wait && inject_sign_payload(head) == INJECT_PAYLOAD_HASH;
    return j->sign ? buf_append(&j->head, head->method.p, head->length) : 0;
}

static void
on_lease(void *ctx, struct vault_lease *lease, const struct err *why)
{
    struct inject *j = ctx;
    uint32_t lacking = can_be_leased(j, j->seen) & ~(lease != NULL ? lease->mask : 0);

    j->ticket = 0;
    j->lease = lease;
    j->ids_alone = lease != NULL && can_be_leased(j, lease->search) == 0;
    if (lease == NULL && err_is(why, "vault.ended"))
        inject_refuse(j, "vault-ended", "the vault has ended: no answer could be searched for secrets", "", false);
    else if (revoked(j, lacking) != 0)
        refuse_revoked(j, revoked(j, lacking));
    else if (lacking != 0)
        inject_refuse(j, "secret-not-bound", "the secret is not bound to such a request", name_of(j, lacking), false);
    else if (lease != NULL)
        had(j, lease);
    if (j->refuse == NULL && j->sign && !j->sign_whole && ask_signature(j))
        return;
    j->owner->ready(j->ctx);
}

enum inject_result
inject_request(struct inject *j, const struct http1_head *head, const struct binding_request *r)
{
    struct err err = ERR_INIT;
    uint32_t want;

    if (j->vault == NULL)
        return INJECT_GO;
    forget(j);
    j->late_ms = *j->now_ms + INJECT_WAIT_MS;
    j->concerned = vault_client_concerned(j->vault, r->tls, &r->host, r->port);
    j->known = vault_client_known(j->vault, &r->host);
    if (find_in_head(j, head, &j->seen) < 0)
        return inject_refuse(j, "secret-search", "the request could not be searched for secrets", "", false);
    if (j->seen & ~j->concerned)
        return inject_refuse(j, "secret-wrong-host", "it carries the placeholder of a secret that is not for this host",
                             name_of(j, j->seen & ~j->concerned), true);
    j->kept = inject_kept(j, head, r);
    if (j->seen & j->kept)
        return inject_refuse(j, "secret-not-bound", "its fields mean another request, to which the secret is not bound",
                             name_of(j, j->seen & j->kept), false);
    j->added = inject_added(j, r) & ~j->kept;
    j->seen |= j->added;
    if (revoked(j, j->seen) != 0)
        return refuse_revoked(j, revoked(j, j->seen));
    if (find_signature(j, head, r) < 0)
        return inject_refuse(j, "secret-search", "the request could not be searched for secrets", "", false);
    if (inject_add_clash(j))
        return inject_refuse(j, "secret-place", "two secrets are for the same header of it", name_of(j, j->added),
                             false);
    if (!j->sign && (j->seen & ~can_be_leased(j, j->seen)))
        return inject_refuse(j, "secret-sigv4", "an AWS credential is for the Authorization field alone",
                             name_of(j, j->seen & ~can_be_leased(j, j->seen)), false);
    if (j->sign)
        j->used |= BIT(j->sign_id);
    want = can_be_searched_for(j, j->known);
    if ((want != 0 || j->sign) && r->path.n > VAULT_PATH_MAX)
        return inject_refuse(j, "secret-search", "its path is longer than the vault takes", "", false);
    if (want == 0 && j->sign && !j->sign_whole)
        return ask_signature(j) ? INJECT_WAIT : INJECT_REFUSE;
    if (want == 0)
        return INJECT_GO;
    j->ticket = vault_ask_lease(j->vault, r, want, on_lease, j, &err);
    if (j->ticket == 0)
        refuse_unasked(j, &err);
    return j->ticket != 0 ? INJECT_WAIT : INJECT_REFUSE;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

int
inject_make_up(struct inject *j, struct swap **out)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);
    struct swap *up = *out = n > 0 ? swap_new() : NULL;

    for (size_t i = 0; i < n; i++) {
        const struct vault_secret *s = &secrets[i];
        const uint8_t *value = j->lease != NULL && (j->lease->mask & BIT(i)) ? j->lease->value[i] : NULL;
        bool body = (s->binding.places & BINDING_BODY) != 0 && (j->concerned & BIT(i)) != 0;
        bool goes = body && value != NULL && !j->judged && (j->kept & BIT(i)) == 0;

        if (up == NULL)
            return -1;
        if (goes) {
            if (swap_add(up, s->id, s->placeholder, value, s->n, BODY_FORMS) < 0)
                return -1;
        } else if (body || (j->concerned & BIT(i)) == 0) {
            j->forbidden |= BIT(i);
            if (swap_add(up, s->id, s->placeholder, s->placeholder, s->n, SWAP_ALL) < 0)
                return -1;
        }
    }
    return 0;
}

int
inject_make_down(struct inject *j, struct swap **out)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);
    struct swap *down = *out = swap_new();

    if (down != NULL)
        swap_hide(down);
    for (size_t i = 0; down != NULL && i < n; i++)
        if (j->lease->value[i] != NULL &&
            swap_add(down, secrets[i].id, j->lease->value[i], secrets[i].placeholder, secrets[i].n, SWAP_ALL) < 0)
            return -1;
    return down == NULL ? -1 : 0;
}

/* Placeholders of @found are where they must not be. */
static void
say_misplaced(struct inject *j, uint32_t found)
{
    j->owner->note(j->ctx, found & ~j->concerned ? "secret-wrong-host" : "secret-not-bound", name_of(j, found),
                   (found & ~j->concerned) != 0);
}

bool
inject_forbidden(struct inject *j, uint32_t seen)
{
    uint32_t found = seen & j->forbidden;

    if (found != 0)
        say_misplaced(j, found);
    return found != 0;
}

static int
place_values(struct inject *j, const struct http1_head *head, struct exchange_edit *edit)
{
    struct inject_pair pairs[VAULT_SECRETS_MAX];
    size_t n, n_pairs = 0;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n && i < VAULT_SECRETS_MAX; i++)
        if (j->lease->mask & ~j->kept & BIT(i))
            pairs[n_pairs++] = (struct inject_pair){ .binding = &secrets[i].binding, .role = secrets[i].role,
                                                     .placeholder = secrets[i].placeholder,
                                                     .value = j->lease->value[i], .n = secrets[i].n };
    if (inject_place(head, pairs, n_pairs, &j->text, edit) < 0)
        return -1;
    for (size_t i = 0; i < n_pairs; i++)
        if (pairs[i].role == VAULT_ROLE_VALUE && (pairs[i].binding->places & BINDING_ADD) &&
            inject_add(head, &pairs[i], &j->text, edit) < 0)
            return -1;
    return 0;
}

/* The exchange passes no other upgrade on. */
static bool
asks_for_websocket(const struct http1_head *head)
{
    struct str rest = head->upgrade, protocol;
    bool found = false;

    while (http1_list_next(&rest, &protocol))
        found |= http1_equal(protocol, STR_LIT("websocket"));
    return found;
}

int
inject_refuse_edit(struct exchange_edit *edit, const char *reason, const char *detail)
{
    edit->refuse = reason;
    edit->detail = detail;
    return -1;
}

/* The body is there, as it goes out: now it can be signed for. */
static int
sign_whole(struct inject *j, const struct buf *whole, struct exchange_edit *edit)
{
    j->hashed = sigv4_hash(whole->n > 0 ? (const char *)whole->p : "", whole->n, j->hash);
    if (!j->hashed || !ask_signature(j))
        return inject_refuse_edit(edit, j->refuse != NULL ? j->refuse : "secret-sigv4", j->detail);
    edit->wait = true;
    return 0;
}

static int
request_head(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    struct inject *j = ctx;
    bool body = head->framing == HTTP1_BODY_CHUNKED || head->body_length > 0;

    if (j->vault == NULL)
        return 0;
    if (j->sign_whole && whole != NULL && j->authorization[0] == '\0')
        return sign_whole(j, whole, edit);
    grpc_cut_begin(&j->up_cut, head);
    j->up_cut.on &= body && j->trailers && str_eq_c(head->method, "POST");
    if (body && whole == NULL && inject_make_up(j, &j->up) < 0)
        return inject_refuse_edit(edit, "secret-search", "the request cannot be searched for secrets");
    if (!body && j->known != 0 && asks_for_websocket(head)) {
        if (inject_ws_prepare(j) < 0)
            return inject_refuse_edit(edit, "secret-search", "the frames cannot be searched for secrets");
        edit->drop[edit->n_drop++] = STR_LIT("Sec-WebSocket-Extensions");
    }
    edit->body = j->up != NULL ? EXCHANGE_BODY_SAME : EXCHANGE_BODY_PASS;
    if (j->sign_whole && whole == NULL) {
        if (n_collecting == INJECT_WHOLE_MAX)
            return inject_refuse_edit(edit, "secret-sigv4", "too many bodies are collected for a signature already");
        n_collecting++;
        j->collecting = true;
        edit->body = EXCHANGE_BODY_WHOLE;
        return 0;
    }
    stop_collecting(j);
    if (j->sign) {
        edit->drop[edit->n_drop++] = STR_LIT("Authorization");
        edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("Authorization"), str_of(j->authorization) };
    }
    if (j->lease == NULL)
        return 0;
    /* dialling may have taken longer than the vault allows for what is put in */
    if (j->lease->mask != 0 && *j->now_ms >= j->lease->expires_ms)
        return inject_refuse_edit(edit, "secret-late",
                                  "the server took longer to reach than the secret was given out for");
    if (inject_make_down(j, &j->down) < 0)
        return inject_refuse_edit(edit, "secret-search", "the answer could not be searched for secrets");
    inject_leave_out(asked_how(j), edit);
    if (place_values(j, head, edit) < 0)
        return inject_refuse_edit(edit, "secret-place", "more places for secrets than are supported");
    vault_lease_free(j->lease);
    j->lease = NULL;
    return 0;
}

static int
request_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct inject *j = ctx;
    int r = grpc_cut_feed(&j->up_cut, j->up, data, last, out);
    bool forbidden = inject_forbidden(j, swap_seen(j->up));

    *used = data.n;
    if (last)
        inject_swap_drop(&j->up);
    return r < 0 || forbidden ? -1 : 0;
}

/* A binding names no place behind the body. */
static int
request_trailer(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit)
{
    struct inject *j = ctx;
    struct http1_head lines = { .method = trailer->fields[0].name };    /* they lie one behind the other */
    const struct str *end = &trailer->fields[trailer->n_fields > 0 ? trailer->n_fields - 1 : 0].value;
    uint32_t found;

    if (j->vault == NULL || trailer->n_fields == 0)
        return 0;
    lines.length = (size_t)(end->p - lines.method.p) + end->n;
    if (find_in_head(j, &lines, &found) < 0)
        return inject_refuse_edit(edit, "secret-search", "the request cannot be searched for secrets");
    if (found == 0 && inject_add_trailer(j, trailer, edit) == 0)
        return 0;
    say_misplaced(j, found);
    return inject_refuse_edit(edit, "secret-not-bound", "a placeholder behind the body");
}

const struct exchange_filter inject_filter = {
    .request_head = request_head, .request_body = request_body, .request_trailer = request_trailer,
    .response_head = inject_response_head, .response_body = inject_response_body,
    .response_trailer = inject_response_trailer,
    .raw_up = inject_ws_up, .raw_down = inject_ws_down,
};
