/* adapters/api_sign.c: /api/sandbox/sign: requests to sign, in the words that existing clients match on
 *
 * What is judged is judged by the warden and the signer; here is only whether it is a request. Without a signer each
 * answers that there is none, whatever was sent.
 */
#include <string.h>

#include "adapters/api.h"
#include "base/cleanup.h"
#include "wire/json_text.h"

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void
on_no(struct visit *r, const struct err *err)
{
    if (err_is(err, "sign.none"))
        api_refuse(r, HTTP_UNAVAILABLE, "Signing service not configured");
    else
        visit_err(r, err);
}

/* 403 is what says no. */
static void
on_signed(struct visit *r, bool done, json_t *said)
{
    visit_json(r, done ? HTTP_OK : HTTP_FORBIDDEN, said);
}

static const struct visit_answers sign_answers = { .signed_ = on_signed, .no = on_no };

static void
on_item(struct visit *r, bool done, json_t *said)
{
    (void)done;
    json_array_append_new(r->list, said);
}

static void
on_end(struct visit *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    visit_json(r, HTTP_OK, json_pack("{s:O}", "pending", r->list));
}

static const struct visit_answers pending_answers = { .sign_item = on_item, .end = on_end, .no = on_no };

/* The request is none, which is said where there is a signer. */
static void
on_there(struct visit *r, bool done, json_t *said)
{
    (void)done;
    json_decref(said);
    api_refuse(r, HTTP_BAD_REQUEST, (const char *)r->out.p);
}

static const struct visit_answers there_answers = { .signed_ = on_there, .no = on_no };

static void
bad(struct visit *r, const char *what)
{
    if (buf_append(&r->out, what, strlen(what) + 1) < 0)
        api_refuse(r, HTTP_BAD_REQUEST, what);
    else
        VISIT_ASK(r, EDGE_ASK_SIGN_LOOK, &there_answers, .what = SIGN_WHOSE);
}

/* --- a request ---------------------------------------------------------------------------------------------------- */

/* A text without blanks at its ends, in a room that lasts until it is asked; NULL: it is none, "" it is not there. */
static const char *
text_of(const json_t *top, const char *name, char *room, size_t size)
{
    const json_t *v = json_object_get(top, name);
    const char *text = json_cstr(v);
    struct str s;

    if (text == NULL)
        return v == NULL ? "" : NULL;
    s = api_trimmed(text);
    if (s.n >= size)
        return NULL;
    memcpy(room, s.p, s.n);
    room[s.n] = '\0';
    return room;
}

/* The request's id; NULL: it has none. */
static const char *
id_of(const json_t *top, char room[SIGN_REQUEST_MAX + 1])
{
    const char *id = text_of(top, "requestId", room, SIGN_REQUEST_MAX + 1);

    return id != NULL && id[0] != '\0' ? id : NULL;
}

static bool
is_hex_address(const char *s)
{
    return s != NULL && strlen(s) == 42 && s[0] == '0' && s[1] == 'x' &&
           strspn(s + 2, "0123456789abcdefABCDEF") == 40;
}

/* Of 0 on. */
static bool
is_number(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

struct words { char request[SIGN_REQUEST_MAX + 1], to[64], value[SIGN_WORD_MAX + 1], gas[SIGN_WORD_MAX + 1]; };

/* The fees, which the first of these clients do not have. NULL, or what is wrong. */
static const char *
fees_of(const json_t *top, struct ask_sign *m)
{
    static char rooms[3][SIGN_WORD_MAX + 1];

    m->gas_price = text_of(top, "gasPrice", rooms[0], sizeof(rooms[0]));
    m->max_fee = text_of(top, "maxFeePerGas", rooms[1], sizeof(rooms[1]));
    m->tip = text_of(top, "maxPriorityFeePerGas", rooms[2], sizeof(rooms[2]));
    if (m->gas_price == NULL || m->max_fee == NULL || m->tip == NULL)
        return "Signing payload 'gasPrice', 'maxFeePerGas' and 'maxPriorityFeePerGas' must be strings when provided";
    /* what would be left out of what is signed is not passed over */
    if (json_object_get(top, "authorizationList") != NULL || json_object_get(top, "blobVersionedHashes") != NULL ||
        json_object_get(top, "type") != NULL)
        return "Signing payload 'type', 'blobVersionedHashes' and 'authorizationList' are not supported";
    return NULL;
}

/* NULL, or what is wrong: the first, in the order in which those clients know it. */
static const char *
request_of(const json_t *top, struct words *w, struct ask_sign *m)
{
    const json_t *chain = json_object_get(top, "chainId"), *nonce = json_object_get(top, "nonce");
    const json_t *created = json_object_get(top, "createdAt"), *gas = json_object_get(top, "gasLimit");
    const json_t *data = json_object_get(top, "data");
    const char *call = json_cstr(data);

    if (!json_is_object(top))
        return "Signing payload must be a JSON object";
    m->request = id_of(top, w->request);
    if (m->request == NULL)
        return "Signing payload requires a non-empty string 'requestId'";
    if (!is_number(chain))
        return "Signing payload requires an integer 'chainId' >= 0";
    m->to = text_of(top, "to", w->to, sizeof(w->to));
    if (!is_hex_address(m->to))
        return "Signing payload requires a hex 'to' address (e.g., 0x followed by 40 hex characters)";
    m->value = text_of(top, "value", w->value, sizeof(w->value));
    if (m->value == NULL || m->value[0] == '\0')
        return "Signing payload requires a non-empty string 'value'";
    if (call == NULL || api_trimmed(call).n == 0)
        return "Signing payload requires a non-empty string 'data'";
    if (strlen(call) > 2 + 2 * SIGN_DATA_BYTES)
        return "Signing payload 'data' is larger than 16 KiB";
    if (nonce != NULL && !is_number(nonce))
        return "'nonce' must be a non-negative integer when provided";
    if (!is_number(created))
        return "Signing payload requires an integer 'createdAt'";
    if (gas != NULL && !json_is_string(gas))
        return "Signing payload 'gasLimit' must be a string when provided";
    m->gas = text_of(top, "gasLimit", w->gas, sizeof(w->gas));
    if (m->gas == NULL || (gas != NULL && m->gas[0] == '\0'))
        return "Signing payload 'gasLimit' cannot be empty when provided";
    m->data = call;
    m->chain = (uint64_t)json_integer_value(chain);
    m->has_nonce = nonce != NULL;
    m->nonce = (uint64_t)json_integer_value(nonce);
    m->created_ms = (uint64_t)json_integer_value(created);
    return fees_of(top, m);
}

void
api_sign(struct visit *r)
{
    static struct words words;
    const json_t *list = json_object_get(r->json, "accessList");
    cleanup_free char *access = json_is_array(list) ? json_dumps(list, JSON_COMPACT) : NULL;
    struct ask_sign m = { .access = access != NULL ? access : "" };
    const char *wrong = request_of(r->json, &words, &m);

    if (wrong == NULL && list != NULL && (access == NULL || strlen(access) > SIGN_TEXT_MAX))
        wrong = "Signing payload 'accessList' must be a list of at most 16 KiB when provided";
    if (wrong != NULL)
        bad(r, wrong);
    else
        visit_ask(r, EDGE_ASK_SIGN, EDGE_ASK_SIGN_SHAPE(), &m, &sign_answers);
}

/* --- texts, of which a person is always asked --------------------------------------------------------------------- */

static const char *
text_to_sign(const json_t *top, enum sign_form form, const char **text)
{
    const json_t *v = json_object_get(top, form == SIGN_MESSAGE ? "message" : "typedData");

    *text = json_cstr(v);
    if (form == SIGN_MESSAGE)
        return *text == NULL || (*text)[0] == '\0'
                   ? "Signing payload requires a non-empty string 'message'"
                   : strlen(*text) > SIGN_TEXT_MAX ? "Signing payload 'message' is larger than 16 KiB" : NULL;
    return json_is_object(v) ? NULL : "Signing payload requires an object 'typedData'";
}

static void
sign_text(struct visit *r, enum sign_form form)
{
    static char room[SIGN_REQUEST_MAX + 1];
    const char *request = id_of(r->json, room), *text, *wrong;
    cleanup_free char *typed = NULL;

    wrong = !json_is_object(r->json) ? "Signing payload must be a JSON object"
            : request == NULL ? "Signing payload requires a non-empty string 'requestId'"
            : text_to_sign(r->json, form, &text);
    if (wrong == NULL && form == SIGN_TYPED) {
        text = typed = json_dumps(json_object_get(r->json, "typedData"), JSON_COMPACT);
        if (typed == NULL || strlen(typed) > SIGN_TEXT_MAX)
            wrong = "Signing payload 'typedData' is larger than 16 KiB";
    }
    if (wrong != NULL)
        bad(r, wrong);
    else
        VISIT_ASK(r, EDGE_ASK_SIGN_TEXT, &sign_answers, .form = form, .request = request, .text = text);
}

void
api_sign_message(struct visit *r)
{
    sign_text(r, SIGN_MESSAGE);
}

void
api_sign_typed(struct visit *r)
{
    sign_text(r, SIGN_TYPED);
}

/* --- a person decides, and looks ---------------------------------------------------------------------------------- */

static void
decide(struct visit *r, bool approve)
{
    static char room[SIGN_REQUEST_MAX + 1], hash_room[67];
    const char *request = id_of(r->json, room);
    const char *hash = text_of(r->json, "signingHash", hash_room, sizeof(hash_room));

    if (request == NULL)
        bad(r, "a non-empty string 'requestId' is required");
    else if (hash == NULL)
        bad(r, "'signingHash' must be a hash when provided");
    else
        VISIT_ASK(r, EDGE_ASK_SIGN_DECIDE, &sign_answers, .approve = approve, .request = request, .hash = hash);
}

void
api_sign_approve(struct visit *r)
{
    decide(r, true);
}

void
api_sign_reject(struct visit *r)
{
    decide(r, false);
}

void
api_sign_pending(struct visit *r)
{
    r->list = json_array();
    VISIT_ASK(r, EDGE_ASK_SIGN_LOOK, &pending_answers, .what = SIGN_PENDING);
}

void
api_sign_address(struct visit *r)
{
    VISIT_ASK(r, EDGE_ASK_SIGN_LOOK, &sign_answers, .what = SIGN_WHOSE);
}
