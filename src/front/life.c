/* front/life.c: /v1/sandboxes/{id}/policy: what a sandbox is held to, and changes of it
 *
 * The policy of a sandbox is what was asked for, a settings file in JSON; its revision is told by its hash. A PATCH is
 * merged into it here, and the whole goes to the warden with the hash of what it was merged into, so that of two
 * changes at once none is lost.
 */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "front/front.h"
#include "front/merge.h"

#define TRIES_MAX    8      /* of a PATCH that names no revision, when others change it at the same time */
#define REVISION_MAX (2 * 16 + 2)

/* Quoted, as an entity tag (RFC 9110, 8.8.3). */
static void
revision_of(const char *policy, char out[REVISION_MAX + 1])
{
    uint8_t hash[SHA256_SIZE];
    char text[SHA256_TEXT + 1];

    sha256_of(policy, strlen(policy), hash);
    sha256_text(hash, text);
    out[0] = '"';
    memcpy(out + 1, text, 32);
    memcpy(out + 33, "\"", 2);
}

/* One of the entity tags in @header is @revision. A weak one is never the same (RFC 9110, 13.1.1). */
static bool
tag_matches(const char *header, const char *revision)
{
    size_t n = strlen(revision);

    for (const char *at = header; *at != '\0';) {
        at += strspn(at, " \t,");
        if (at[0] == '*' && at[1 + strspn(at + 1, " \t")] == '\0')
            return true;
        if (strncmp(at, revision, n) == 0 && strchr(" \t,", at[n]) != NULL)
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static json_t *
json_of_policy(const char *policy)
{
    return policy[0] != '\0' ? json_loads(policy, JSON_REJECT_DUPLICATES, NULL) : json_object();
}

/* @effective is taken. */
static void
reply_policy(struct request *r, const char *policy, json_t *effective)
{
    char revision[REVISION_MAX + 1];

    revision_of(policy, revision);
    reply_json(r, MHD_HTTP_OK, json_pack("{s:s#, s:o, s:o}", "revision", revision + 1, (int)strlen(revision) - 2,
                                         "policy", json_of_policy(policy), "effective", effective));
    if (r->response != NULL)
        (void)MHD_add_response_header(r->response, MHD_HTTP_HEADER_ETAG, revision);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void
on_piece(struct request *r, const uint8_t *p, size_t n, bool last)
{
    json_t *effective;

    if (r->out.n + n > EDGE_SHOWN_MAX || buf_append(&r->out, p, n) < 0) {
        ask_drop(r);
        reply_error(r, MHD_HTTP_BAD_GATEWAY, "policy.shown", "", "the sandbox's keeper says too much");
        return;
    }
    if (!last)
        return;
    effective = json_loadb((const char *)r->out.p, r->out.n, JSON_REJECT_DUPLICATES, NULL);
    reply_policy(r, json_string_value(r->list), effective != NULL ? effective : json_null());
}

static const struct answers piece_answers = { .piece = on_piece };

static void
on_shown_box(struct request *r, const struct edge_box *box)
{
    if (box->state != BOX_READY) {
        reply_policy(r, box->policy, json_null());
        return;
    }
    r->list = json_string(box->policy);
    if (r->list == NULL)
        r->f->ended = true;     /* no memory; what is on record is UTF-8 */
    else
        ASK(r, EDGE_ASK_POLICY, &piece_answers, .id = box->id);
}

static const struct answers shown_answers = { .box = on_shown_box };

static void
show(struct request *r)
{
    ASK(r, EDGE_ASK_GET, &shown_answers, .id = r->id);
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

static void patch(struct request *r);

static void
on_changed(struct request *r, const struct edge_box *box)
{
    reply_policy(r, box->policy, json_null());
}

static void
on_not_changed(struct request *r, const struct err *err)
{
    const char *match = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_MATCH);

    if (err_is(err, "policy.stale") && match == NULL && ++r->tries < TRIES_MAX)
        patch(r);
    else
        reply_err(r, err);
}

static const struct answers change_answers = { .box = on_changed, .no = on_not_changed };

static void
on_box_to_change(struct request *r, const struct edge_box *box)
{
    const char *match = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_MATCH);
    char revision[REVISION_MAX + 1];
    cleanup_free char *text = NULL;
    uint8_t was[SHA256_SIZE];
    json_t *merged;

    revision_of(box->policy, revision);
    if (match != NULL && !tag_matches(match, revision)) {
        reply_error(r, MHD_HTTP_PRECONDITION_FAILED, "policy.stale", "GET it again, and change what is there now",
                    "the policy is at revision %s", revision);
        return;
    }
    merged = json_of_policy(box->policy);
    if (merged != NULL)
        merged = json_merge_patch(merged, r->json);
    text = merged != NULL ? json_dumps(merged, JSON_COMPACT | JSON_DIGITS) : NULL;
    json_decref(merged);
    if (text == NULL) {         /* never taken for a policy that says nothing */
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "out of memory");
        return;
    }
    sha256_of(box->policy, strlen(box->policy), was);
    ask_change(r, box->id, was, strcmp(text, "{}") != 0 ? text : "", &change_answers);
}

static const struct answers to_change_answers = { .box = on_box_to_change };

static bool
media_type_well(struct request *r)
{
    static const char *const known[] = { "application/merge-patch+json", "application/json" };
    const char *type = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
    size_t n = type != NULL ? strcspn(type, "; \t") : 0;

    for (size_t i = 0; type != NULL && i < ARRAY_LEN(known); i++)
        if (strlen(known[i]) == n && strncasecmp(known[i], type, n) == 0)
            return true;
    if (type == NULL)
        return true;
    reply_error(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "http.media-type", "RFC 7396 has the form",
                "a policy is changed by application/merge-patch+json");
    (void)MHD_add_response_header(r->response, "Accept-Patch", known[0]);
    return false;
}

static void
patch(struct request *r)
{
    ASK(r, EDGE_ASK_GET, &to_change_answers, .id = r->id);
}

static void
change(struct request *r)
{
    if (!media_type_well(r))
        return;
    if (!json_is_object(r->json)) {
        reply_error(r, MHD_HTTP_BAD_REQUEST, "policy.patch", "{\"network\": {\"allow\": [\"example.org\"]}}",
                    "a patch of a policy is an object (RFC 7396)");
        return;
    }
    patch(r);
}

const struct route life_routes[] = {
    { "GET",    "/v1/sandboxes/{}/policy",  show,      false, false },
    { "PATCH",  "/v1/sandboxes/{}/policy",  change,    true,  false },
};
const size_t life_n_routes = ARRAY_LEN(life_routes);
