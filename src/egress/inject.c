/* egress/inject.c: see inject.h */
#include "egress/inject.h"

#include <stdio.h>
#include <string.h>

#include "egress/inject_place.h"
#include "egress/inject_sign.h"
#include "egress/swap.h"
#include "egress/unpack.h"

#define BIT(id) (UINT32_C(1) << (id))
#define BODY_FORMS (SWAP_RAW | SWAP_PERCENT | SWAP_JSON)

static void
wipe_text(struct inject *j)
{
    if (j->text.p != NULL)
        explicit_bzero(j->text.p, j->text.cap);
    buf_free(&j->text);
    j->text = (struct buf)BUF_INIT(INJECT_TEXT_MAX);
}

static void
swap_drop(struct swap **s)
{
    swap_free(*s);
    *s = NULL;
}

/* Nothing of the last request is left. */
static void
forget(struct inject *j)
{
    if (j->ticket != 0)
        vault_forget(j->vault, j->ticket);
    vault_lease_free(j->lease);
    swap_drop(&j->up);
    swap_drop(&j->down);
    unpack_free(j->unpack);
    wipe_text(j);
    buf_free(&j->head);
    j->head = (struct buf)BUF_INIT(HTTP1_HEAD_MAX);
    explicit_bzero(j->authorization, sizeof(j->authorization));
    j->sign = false;
    j->lease = NULL;
    j->unpack = NULL;
    j->ticket = j->seen = j->forbidden = j->concerned = 0;
    j->refuse = NULL;
    j->detail = "";
}

void
inject_init(struct inject *j, struct vault_client *vault, const struct inject_owner *owner, void *ctx,
            const uint64_t *now_ms)
{
    *j = (struct inject){ .vault = vault, .owner = owner, .ctx = ctx, .now_ms = now_ms, .detail = "",
                          .text = BUF_INIT(INJECT_TEXT_MAX), .head = BUF_INIT(HTTP1_HEAD_MAX) };
}

void
inject_free(struct inject *j)
{
    forget(j);
}

/* --- may it go? --------------------------------------------------------------------------------------------------- */

static enum inject_result
refuse(struct inject *j, const char *reason, const char *detail, const char *name, bool critical)
{
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
        if (mask & ~j->told & BIT(i))
            j->owner->note(j->ctx, NULL, name_of(j, BIT(i)), false);
    j->told |= mask;
}

/* The request has the values of @mask, and those that its head asked for are on their way. */
static void
had(struct inject *j, uint32_t mask)
{
    j->used |= mask;
    say_used(j, j->seen & mask);
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

/* Ids that can be leased; AWS's are signed with instead. */
static uint32_t
can_be_leased(const struct inject *j, uint32_t mask)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if (secrets[i].revoked || secrets[i].role == VAULT_ROLE_AWS_ID || secrets[i].role == VAULT_ROLE_AWS_KEY)
            mask &= ~BIT(i);
    return mask;
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

/* --- AWS's signature ---------------------------------------------------------------------------------------------- */

static void
on_signature(void *ctx, const char *authorization, const struct err *why)
{
    struct inject *j = ctx;

    j->ticket = 0;
    if (authorization == NULL)
        refuse(j, "secret-sigv4", strcmp(why->code, "vault.ended") == 0 ? "the vault has ended"
                                  : "the vault does not sign such a request", name_of(j, BIT(j->sign_id)), false);
    else
        memcpy(j->authorization, authorization, strnlen(authorization, VAULT_AUTHORIZATION_MAX));
    if (j->refuse == NULL)
        say_used(j, BIT(j->sign_id));
    j->owner->ready(j->ctx);
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
        why = inject_sign_prepare(&head, str_of(host), token, j->lease != NULL, &sign);
    if (why != NULL) {
        refuse(j, "secret-sigv4", why, name_of(j, BIT(j->sign_id)), false);
        return false;
    }
    what = (struct vault_to_sign){ .date = sign.date, .region = sign.claim.region, .service = sign.claim.service,
                                   .signed_headers = str_of(sign.signed_headers), .canonical = sign.canonical };
    j->place.method = head.method;
    j->place.path = head.path;
    j->ticket = vault_ask_signature(j->vault, &j->place, j->sign_id, &what, on_signature, j, &err);
    if (j->ticket == 0)
        refuse(j, "vault-ended", "the vault does not answer", "", false);
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
    return j->sign ? buf_append(&j->head, head->method.p, head->length) : 0;
}

static void
on_lease(void *ctx, struct vault_lease *lease, const struct err *why)
{
    struct inject *j = ctx;
    uint32_t lacking = can_be_leased(j, j->seen) & ~(lease != NULL ? lease->mask : 0);

    j->ticket = 0;
    j->lease = lease;
    if (lease == NULL && strcmp(why->code, "vault.ended") == 0)
        refuse(j, "vault-ended", "the vault has ended: no answer could be searched for secrets", "", false);
    else if (lease == NULL && strcmp(why->code, "vault.expired") == 0 && lacking != 0)
        refuse(j, "secret-expired", "the secret's time is over", name_of(j, lacking), false);
    else if (lacking != 0)
        refuse(j, "secret-not-bound", "the secret is not bound to such a request", name_of(j, lacking), false);
    else if (lease != NULL)
        had(j, lease->mask);
    if (j->refuse == NULL && j->sign && ask_signature(j))
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
    j->concerned = vault_client_concerned(j->vault, r->tls, &r->host, r->port);
    if (find_in_head(j, head, &j->seen) < 0)
        return refuse(j, "secret-search", "the request could not be searched for secrets", "", false);
    if (j->seen & ~j->concerned)
        return refuse(j, "secret-wrong-host", "it carries the placeholder of a secret that is not for this host",
                      name_of(j, j->seen & ~j->concerned), true);
    if (revoked(j, j->seen) != 0)
        return refuse(j, "secret-revoked", "the secret was revoked", name_of(j, revoked(j, j->seen)), false);
    if (find_signature(j, head, r) < 0)
        return refuse(j, "secret-search", "the request could not be searched for secrets", "", false);
    if (!j->sign && (j->seen & ~can_be_leased(j, j->seen)))
        return refuse(j, "secret-sigv4", "an AWS credential is for the Authorization field alone",
                      name_of(j, j->seen & ~can_be_leased(j, j->seen)), false);
    if (j->sign)
        j->used |= BIT(j->sign_id);
    want = can_be_leased(j, j->concerned);
    if (want == 0 && j->sign)
        return ask_signature(j) ? INJECT_WAIT : INJECT_REFUSE;
    if (want == 0)
        return INJECT_GO;
    j->ticket = vault_ask_lease(j->vault, r, want, on_lease, j, &err);
    if (j->ticket == 0)
        return refuse(j, "vault-ended", "the vault does not answer", "", false);
    return INJECT_WAIT;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* What bodies are searched for. 0, or -1. */
static int
make_up(struct inject *j)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    j->up = n > 0 ? swap_new() : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct vault_secret *s = &secrets[i];
        const uint8_t *value = j->lease != NULL ? j->lease->value[i] : NULL;
        bool body = (s->binding.places & BINDING_BODY) != 0 && (j->concerned & BIT(i)) != 0;

        if (j->up == NULL)
            return -1;
        if (body && value != NULL) {
            if (swap_add(j->up, s->id, s->placeholder, value, s->n, BODY_FORMS) < 0)
                return -1;
        } else if (body || (j->concerned & BIT(i)) == 0) {
            j->forbidden |= BIT(i);
            if (swap_add(j->up, s->id, s->placeholder, s->placeholder, s->n, SWAP_ALL) < 0)
                return -1;
        }
    }
    return 0;
}

static int
make_down(struct inject *j)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    j->down = swap_new();
    for (size_t i = 0; j->down != NULL && i < n; i++)
        if (j->lease->value[i] != NULL &&
            swap_add(j->down, secrets[i].id, j->lease->value[i], secrets[i].placeholder, secrets[i].n, SWAP_ALL) < 0)
            return -1;
    return j->down == NULL ? -1 : 0;
}

static int
place_values(struct inject *j, const struct http1_head *head, struct exchange_edit *edit)
{
    struct inject_pair pairs[VAULT_SECRETS_MAX];
    size_t n, n_pairs = 0;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n && i < VAULT_SECRETS_MAX; i++)
        if (j->lease->value[i] != NULL)
            pairs[n_pairs++] = (struct inject_pair){ .binding = &secrets[i].binding, .role = secrets[i].role,
                                                     .placeholder = secrets[i].placeholder,
                                                     .value = j->lease->value[i], .n = secrets[i].n };
    return inject_place(head, pairs, n_pairs, &j->text, edit);
}

/* The answer has to come whole and readable. */
static void
ask_plainly(struct exchange_edit *edit)
{
    edit->drop[edit->n_drop++] = STR_LIT("Accept-Encoding");
    edit->drop[edit->n_drop++] = STR_LIT("Range");
    edit->drop[edit->n_drop++] = STR_LIT("If-Range");
    edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("Accept-Encoding"), STR_LIT("identity") };
}

static bool
leased_for_bodies(const struct inject *j)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if (j->lease->value[i] != NULL && (secrets[i].binding.places & BINDING_BODY) != 0)
            return true;
    return false;
}

static int
refuse_edit(struct exchange_edit *edit, const char *reason, const char *detail)
{
    edit->refuse = reason;
    edit->detail = detail;
    return -1;
}

static int
request_head(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    struct inject *j = ctx;
    bool body = head->framing == HTTP1_BODY_CHUNKED || head->body_length > 0;

    (void)whole;
    if (j->vault == NULL)
        return 0;
    if (body && make_up(j) < 0)
        return refuse_edit(edit, "secret-search", "the request cannot be searched for secrets");
    edit->body = j->up != NULL ? EXCHANGE_BODY_SAME : EXCHANGE_BODY_PASS;
    if (j->sign) {
        edit->drop[edit->n_drop++] = STR_LIT("Authorization");
        edit->add[edit->n_add++] = (struct http1_add){ STR_LIT("Authorization"), str_of(j->authorization) };
    }
    if (j->lease == NULL)
        return 0;
    /* dialling may have taken longer than the vault allows */
    if (*j->now_ms >= j->lease->expires_ms)
        return refuse_edit(edit, "secret-late", "the server took longer to reach than the secret was given out for");
    if (head->upgrade.n > 0 && leased_for_bodies(j))
        return refuse_edit(edit, "secret-upgrade", "secrets in what follows an upgrade cannot be replaced");
    if (make_down(j) < 0)
        return refuse_edit(edit, "secret-search", "the answer could not be searched for secrets");
    ask_plainly(edit);
    if (place_values(j, head, edit) < 0)
        return refuse_edit(edit, "secret-place", "more places for secrets than are supported");
    vault_lease_free(j->lease);
    j->lease = NULL;
    return 0;
}

static int
request_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct inject *j = ctx;
    uint32_t found;
    int r = swap_feed(j->up, data.p, data.n, last, out);

    *used = data.n;
    found = swap_seen(j->up) & j->forbidden;
    if (found != 0)
        j->owner->note(j->ctx, found & ~j->concerned ? "secret-wrong-host" : "secret-not-bound", name_of(j, found),
                       (found & ~j->concerned) != 0);
    if (last)
        swap_drop(&j->up);
    return r < 0 || found != 0 ? -1 : 0;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* @text without values: itself, or a copy in j->text. .p is NULL when there is no room. */
static struct str
scrub(struct inject *j, struct str text)
{
    struct buf out = BUF_INIT(HTTP1_HEAD_MAX);
    char *copy;

    if (swap_feed(j->down, text.p, text.n, true, &out) < 0)
        return (struct str){ NULL, 0 };
    if (swap_seen(j->down) == 0) {
        buf_free(&out);
        return text;
    }
    copy = j->text.cap - j->text.n >= out.n ? (char *)j->text.p + j->text.n : NULL;
    if (copy != NULL) {
        memcpy(copy, out.p, out.n);
        j->text.n += out.n;
    }
    text = (struct str){ copy, out.n };
    buf_free(&out);
    return text;
}

static int
drop_and_add(struct exchange_edit *edit, const struct http1_head *head, const struct str *values, const bool *changed)
{
    bool back[HTTP1_FIELDS_MAX] = { false };

    for (size_t i = 0; i < head->n_fields; i++) {
        bool known = false;
        if (!changed[i])
            continue;
        for (size_t k = 0; k < edit->n_drop; k++)
            known |= http1_equal(edit->drop[k], head->fields[i].name);
        if (!known && edit->n_drop == EXCHANGE_EDITS_MAX)
            return -1;
        if (!known)
            edit->drop[edit->n_drop++] = head->fields[i].name;
        for (size_t k = 0; k < head->n_fields; k++)
            back[k] |= http1_equal(head->fields[k].name, head->fields[i].name);
    }
    for (size_t i = 0; i < head->n_fields; i++) {
        if (!back[i] || head->fields[i].hop)
            continue;
        if (edit->n_add == EXCHANGE_EDITS_MAX)
            return -1;
        edit->add[edit->n_add++] = (struct http1_add){ head->fields[i].name, values[i] };
    }
    return 0;
}

static int
scrub_head(struct inject *j, const struct http1_head *head, struct exchange_edit *edit)
{
    struct str values[HTTP1_FIELDS_MAX];
    bool changed[HTTP1_FIELDS_MAX] = { false };

    if (scrub(j, head->reason).p != head->reason.p)
        return -1;
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *field = &head->fields[i];
        values[i] = scrub(j, field->value);
        changed[i] = !field->hop && values[i].p != field->value.p;
        if (values[i].p == NULL || scrub(j, field->name).p != field->name.p)
            return -1;
    }
    return drop_and_add(edit, head, values, changed);
}

static enum unpack_kind
packing(const struct http1_head *head)
{
    enum unpack_kind kind = UNPACK_PLAIN;
    size_t n = 0;

    for (size_t i = 0; i < head->n_fields; i++)
        if (http1_equal(head->fields[i].name, STR_LIT("Content-Encoding"))) {
            kind = unpack_kind(head->fields[i].value);
            n++;
        }
    return n > 1 ? UNPACK_UNKNOWN : kind;
}

static int
response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit)
{
    struct inject *j = ctx;
    bool body = head->framing != HTTP1_BODY_NONE && !(head->framing == HTTP1_BODY_LENGTH && head->body_length == 0);
    enum unpack_kind kind = body ? packing(head) : UNPACK_PLAIN;

    if (j->down == NULL)
        return 0;
    wipe_text(j);
    if (buf_reserve(&j->text, HTTP1_HEAD_MAX) < 0 || scrub_head(j, head, edit) < 0)
        return refuse_edit(edit, "secret-in-answer", "the answer's head carries a secret where it cannot be replaced");
    if (head->status == 206)
        return refuse_edit(edit, "answer-partial", "a part of an answer cannot be searched for secrets");
    if (kind == UNPACK_UNKNOWN)
        return refuse_edit(edit, "answer-encoding", "the answer is compressed in a way that cannot be searched");
    if (kind != UNPACK_PLAIN) {
        j->unpack = unpack_new(kind);
        if (j->unpack == NULL || edit->n_drop == EXCHANGE_EDITS_MAX)
            return refuse_edit(edit, "answer-encoding", "no memory to unpack the answer");
        edit->drop[edit->n_drop++] = STR_LIT("Content-Encoding");
    }
    if (!body) {
        swap_drop(&j->down);
        return 0;
    }
    edit->body = j->unpack != NULL ? EXCHANGE_BODY_STREAM : EXCHANGE_BODY_SAME;
    return 0;
}

static int
unpack_and_swap(struct inject *j, struct str data, bool last, struct buf *out, size_t *used)
{
    struct buf plain = BUF_INIT(4 * UNPACK_STEP);
    int r = unpack_feed(j->unpack, data.p, data.n, last, &plain, used);

    if (r == 0)
        r = swap_feed(j->down, plain.p, plain.n, last && *used == data.n, out);
    buf_free(&plain);
    return r;
}

static int
response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct inject *j = ctx;
    int r;

    if (j->unpack != NULL) {
        r = unpack_and_swap(j, data, last, out, used);
    } else {
        *used = data.n;
        r = swap_feed(j->down, data.p, data.n, last, out);
    }
    if (last && *used == data.n)
        swap_drop(&j->down);
    return r;
}

const struct exchange_filter inject_filter = {
    .request_head = request_head, .request_body = request_body,
    .response_head = response_head, .response_body = response_body,
};
