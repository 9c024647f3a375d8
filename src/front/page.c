/* front/page.c: /approvals/ID: a page for a browser, on which somebody decides (docs/gate.md)
 *
 * What it shows is an agent's text, and who reads it may approve: so it has no script, nothing of anybody else's, and
 * shows characters that hide something as what they are. It keeps nothing: a token is typed for each look and each
 * decision, no cookie is set, and so no other page can use what this one was told. Without a token it says nothing, not
 * even whether there is such an approval. A decision names the digest of what was shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "front/front.h"
#include "front/html.h"

#define FORM_MAX FRONT_URI_MAX
#define PAGE_MAX (8UL * 1024 * 1024)    /* 64 KiB of parameters, each byte of which may have to be named */
#define NOT_WHOLE "Some of it cannot be shown on a page, so that it can only be denied here."
#define INDENT_LEVELS 16                /* of what is deeper, indented text would be mostly spaces */

enum wanted { WANT_SHOW, WANT_APPROVE, WANT_DENY };

struct page {
    enum wanted wanted;
    enum approval_scope scope;
    uint32_t seconds;
    char reason[EDGE_REASON_MAX + 1], digest[SHA256_TEXT + 1];
    bool found, same, decided;      /* there is one; it is what was shown; it was decided by this */
    bool whole;                     /* all its parameters can be shown */
    struct buf html;
};

void
page_free(struct request *r)
{
    if (r->page != NULL)
        buf_free(&r->page->html);
    free(r->page);
    r->page = NULL;
}

/* --- HTML --------------------------------------------------------------------------------------------------------- */

static const char style[] =
    "body{font:16px/1.5 sans-serif;max-width:52em;margin:2em auto;padding:0 1em;color:#111;background:#fff}"
    "dt{font-weight:bold;margin-top:.6em}dd{margin:0;overflow:hidden;overflow-wrap:anywhere}"
    "pre{margin:0;padding:.6em;border:1px solid #888;background:#f4f4f4;white-space:pre-wrap;overflow:hidden;"
    "overflow-wrap:anywhere}b{color:#fff;background:#a00;padding:0 .2em;font:bold .85em monospace}"
    "form{margin-top:1.5em;padding:1em;border:2px solid #111}label{display:block;margin:.4em 0}"
    "button{font-size:1em;padding:.4em 1.2em;margin:.6em 1em 0 0}";

static void
front_page_begin(struct buf *b, const char *title)
{
    buf_printf(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>"
               "<meta name=\"viewport\" content=\"width=device-width\">"
               "<link rel=\"stylesheet\" href=\"/approvals/style.css\"></head><body>\n<h1>%s</h1>\n", title, title);
}

/* Takes what is in @b. */
static void
reply(struct request *r, unsigned status, struct buf *b)
{
    static const char *const own[][2] = {
        { "Content-Security-Policy",
          "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'" },
        /* not "no-referrer": a browser would say "null" as the Origin of our own form */
        { "Referrer-Policy", "same-origin" },
        { NULL, NULL },
    };

    buf_puts(b, "</body></html>\n");
    if (r->response != NULL)
        return;
    if (!buf_ok(b)) {
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "out of memory");
        return;
    }
    reply_page(r, status, "text/html; charset=utf-8", b->p, b->n, own);
}

static void
page_put(struct buf *b, const char *text)
{
    html_put(b, text, strlen(text), false);
}

static void
put_row(struct buf *b, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    buf_printf(b, "<dt>%s</dt><dd>", name);
    page_put(b, text);
    buf_puts(b, "</dd>\n");
}

static void
fail(struct request *r, unsigned status, const char *text, const char *hint)
{
    cleanup_buf struct buf b = BUF_INIT(64 * 1024);

    front_page_begin(&b, "Not done");
    buf_puts(&b, "<p>");
    page_put(&b, text);
    buf_puts(&b, "</p>\n<p>");
    page_put(&b, hint);
    buf_puts(&b, "</p>\n");
    reply(r, status, &b);
}

static void
fail_err(struct request *r, const struct err *err)
{
    fail(r, status_of(err), err->msg, err->hint);
}

static void
put_token(struct buf *b, const char *id)
{
    buf_printf(b, "<form method=\"post\" action=\"/approvals/%s\" autocomplete=\"off\" accept-charset=\"utf-8\">\n"
               "<label>Token of an operator or approver <input type=\"password\" name=\"token\" required "
               "maxlength=\"%d\" autocomplete=\"off\"></label>\n", id, EDGE_CREDENTIAL_MAX);
}

/* @whole: all of it is shown, so that it can be approved. */
static void
put_form(struct buf *b, const struct edge_approval *a, bool whole)
{
    put_token(b, a->id);
    buf_printf(b, "<input type=\"hidden\" name=\"digest\" value=\"%s\">\n"
               "<label>Reason <input name=\"reason\" maxlength=\"%d\"></label>\n", a->digest, EDGE_REASON_MAX / 4);
    if (!whole) {
        buf_puts(b, "<p>" NOT_WHOLE "</p>\n<button name=\"do\" value=\"deny\">Deny</button>\n</form>\n");
        return;
    }
    buf_puts(b, "<label><input type=\"radio\" name=\"scope\" value=\"once\" checked> this once</label>\n");
    if (a->rule[0] != '\0' && a->box[0] != '\0')
        buf_puts(b, "<label><input type=\"radio\" name=\"scope\" value=\"sandbox\"> and what the same rule asks about "
                 "in this sandbox</label>\n");
    if (a->rule[0] != '\0')     /* without one there is nothing wider to say yes to */
        buf_puts(b, "<label><input type=\"radio\" name=\"scope\" value=\"caller\"> and in all sandboxes of this caller"
                 "</label>\n<label>for seconds <input type=\"number\" name=\"expires\" min=\"1\"> (of the wider ones)"
                 "</label>\n");
    buf_puts(b, "<button name=\"do\" value=\"deny\">Deny</button><button name=\"do\" value=\"approve\">Approve"
             "</button>\n</form>\n");
}

static bool
is_deeper(json_t *value, int levels)
{
    const char *name;
    json_t *one;
    size_t i;

    if (!json_is_object(value) && !json_is_array(value))
        return false;
    if (levels == 0)
        return true;
    json_array_foreach(value, i, one)
        if (is_deeper(one, levels - 1))
            return true;
    json_object_foreach(value, name, one)
        if (is_deeper(one, levels - 1))
            return true;
    return false;
}

/* Whether all of them are shown. */
static bool
put_params(struct buf *b, const char *text)
{
    json_t *params = json_loads(text, 0, NULL), *value;
    bool whole = json_is_object(params);
    const char *name;

    buf_puts(b, "<h2>Parameters</h2>\n<dl>\n");
    json_object_foreach(params, name, value) {
        size_t how = JSON_ENCODE_ANY | (is_deeper(value, INDENT_LEVELS) ? 0 : JSON_INDENT(2));
        char *json = json_is_string(value) ? NULL : json_dumps(value, how);
        buf_puts(b, "<dt>");
        page_put(b, name);
        buf_puts(b, "</dt><dd><pre>");
        if (json_is_string(value))
            html_put(b, json_string_value(value), json_string_length(value), true);
        else
            html_put(b, json != NULL ? json : "?", json != NULL ? strlen(json) : 1, true);
        whole = whole && (json != NULL || json_is_string(value));
        buf_puts(b, "</pre></dd>\n");
        free(json);
    }
    buf_puts(b, "</dl>\n");
    json_decref(params);
    return whole;
}

static void
put_left(struct buf *b, const struct edge_approval *a)
{
    uint64_t now = clock_wall_ms();
    time_t until = (time_t)(a->until_ms / 1000);
    struct tm tm;
    char text[64] = "";

    if (gmtime_r(&until, &tm) != NULL)
        (void)strftime(text, sizeof(text), "%H:%M:%S UTC", &tm);
    buf_printf(b, "<dt>Time left</dt><dd>%llu s, until %s; then it is denied</dd>\n",
               (unsigned long long)(a->until_ms > now ? (a->until_ms - now) / 1000 : 0), text);
}

/* Whether all of it is shown. */
static bool
put_approval(struct buf *b, const struct edge_approval *a)
{
    bool pending = a->state == APPROVAL_PENDING, whole;

    front_page_begin(b, pending ? "Waits for your decision" : "Decided");
    buf_puts(b, "<dl>\n");
    put_row(b, "State", approval_state_name(a->state));
    put_row(b, "Risk", gate_risk_name(a->risk));
    put_row(b, "Tool", a->tool);
    put_row(b, "Asked by", a->caller_text[0] != '\0' ? a->caller_text : a->caller);
    put_row(b, "Sandbox", a->box);
    put_row(b, "Rule", a->rule);
    put_row(b, "", a->description);
    put_row(b, "SHA-256", a->digest);
    put_row(b, "Decided by", a->by_text);
    put_row(b, "Reason", a->reason);
    if (pending)
        put_left(b, a);
    buf_puts(b, "</dl>\n");
    whole = put_params(b, a->params);
    if (pending)
        put_form(b, a, whole);
    return whole;
}

/* --- what the warden says ----------------------------------------------------------------------------------------- */

static void
on_one(struct request *r, const struct edge_approval *a)
{
    struct page *p = r->page;

    p->found = true;
    p->same = strcmp(p->digest, a->digest) == 0;
    buf_reset(&p->html);
    p->whole = put_approval(&p->html, a);
}

static void
on_decided(struct request *r, uint32_t count, bool more)
{
    (void)count;
    (void)more;
    reply(r, MHD_HTTP_OK, &r->page->html);
}

static const struct answers decided_answers = { .approval = on_one, .end = on_decided, .no = fail_err };

static void
on_shown(struct request *r, uint32_t count, bool more)
{
    struct page *p = r->page;
    const struct edge_decision d = { .id = r->id, .approve = p->wanted == WANT_APPROVE, .scope = p->scope,
                                     .seconds = p->seconds, .reason = p->reason, .digest = p->digest };

    (void)count;
    (void)more;
    if (!p->found)
        fail(r, MHD_HTTP_NOT_FOUND, "There is no such approval.", "");
    else if (p->wanted == WANT_SHOW)
        reply(r, MHD_HTTP_OK, &p->html);
    else if (!p->same)
        fail(r, MHD_HTTP_CONFLICT, "This is not what was shown.", "Nothing was decided. Look at it again.");
    else if (d.approve && !p->whole)
        fail(r, MHD_HTTP_CONFLICT, NOT_WHOLE, "GET /v1/approvals/ID has all of it.");
    else
        ask(r, EDGE_ASK_DECIDE, EDGE_ASK_DECIDE_SHAPE(), &d, &decided_answers);
}

static const struct answers shown_answers = { .approval = on_one, .end = on_shown, .no = fail_err };

static void
on_who(struct request *r)
{
    if (r->role == EDGE_OPERATOR || r->role == EDGE_APPROVER)
        ask_approvals(r, false, 0, 1, r->id, "", &shown_answers);
    else
        fail(r, MHD_HTTP_FORBIDDEN, "This token may not decide.", "It has to be one of an operator or approver.");
}

static const struct answers who_answers = { .who = on_who, .no = fail_err };

/* --- requests ----------------------------------------------------------------------------------------------------- */

static bool
id_well(struct request *r)
{
    if (edge_is_id(r->id))
        return true;
    fail(r, MHD_HTTP_BAD_REQUEST, "That is not an approval's id.", "It has 32 hexadecimal digits.");
    return false;
}

static void
stylesheet(struct request *r)
{
    reply_text(r, MHD_HTTP_OK, "text/css; charset=utf-8", style, sizeof(style) - 1);
}

static void
form(struct request *r)
{
    cleanup_buf struct buf b = BUF_INIT(16 * 1024);

    if (!id_well(r))
        return;
    front_page_begin(&b, "Somebody has to approve this");
    put_token(&b, r->id);
    buf_puts(&b, "<button name=\"do\" value=\"show\">Show it</button>\n</form>\n<p>The token is used once and kept "
             "nowhere.</p>\n");
    reply(r, MHD_HTTP_OK, &b);
}

/* 0 or -1: it is malformed. */
static int
read_decision(const char *text, struct page *p)
{
    char word[16];
    bool bad = false;
    const char *s = form_get(text, "do", word, sizeof(word), &bad);
    uint64_t n;

    if (s == NULL || bad)
        return -1;
    p->wanted = strcmp(s, "approve") == 0 ? WANT_APPROVE : strcmp(s, "deny") == 0 ? WANT_DENY : WANT_SHOW;
    if (p->wanted == WANT_SHOW)
        return strcmp(s, "show") == 0 ? 0 : -1;
    if (form_get(text, "digest", p->digest, sizeof(p->digest), &bad) == NULL)
        return -1;
    (void)form_get(text, "reason", p->reason, sizeof(p->reason), &bad);
    s = form_get(text, "scope", word, sizeof(word), &bad);
    if (bad || p->wanted == WANT_DENY)
        return bad ? -1 : 0;
    if (s != NULL && !approval_scope_parse(s, &p->scope))
        return -1;
    s = form_get(text, "expires", word, sizeof(word), &bad);
    if (bad || p->scope == SCOPE_ONCE || s == NULL || s[0] == '\0')
        return bad ? -1 : 0;
    if (!str_parse_u64(str_of(s), GRANT_SECONDS_MAX, &n) || n == 0)
        return -1;
    p->seconds = (uint32_t)n;
    return 0;
}

static bool
is_form(struct request *r)
{
    static const char type[] = "application/x-www-form-urlencoded";
    const char *said = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);

    return said != NULL && strncasecmp(said, type, sizeof(type) - 1) == 0 &&
           strchr("; \t", said[sizeof(type) - 1]) != NULL;
}

static void
decide(struct request *r)
{
    static char text[FORM_MAX], token[EDGE_CREDENTIAL_MAX + 1];
    bool bad = false, well = false;

    if (!id_well(r))
        return;
    if (!doors_own_page(r)) {
        fail(r, MHD_HTTP_FORBIDDEN, "The form comes from another site's page.", "");
        return;
    }
    r->page = calloc(1, sizeof(*r->page));
    if (r->page == NULL) {
        reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory", "", "out of memory");
        return;
    }
    r->page->html = (struct buf)BUF_INIT(PAGE_MAX);
    r->page->scope = SCOPE_ONCE;
    if (is_form(r) && r->body.n > 0 && r->body.n < sizeof(text) && memchr(r->body.p, 0, r->body.n) == NULL) {
        memcpy(text, r->body.p, r->body.n);
        text[r->body.n] = '\0';
        well = form_get(text, "token", token, sizeof(token), &bad) != NULL && !bad && read_decision(text, r->page) == 0;
    }
    if (r->body.n > 0)
        explicit_bzero(r->body.p, r->body.n);
    if (!well)
        fail(r, MHD_HTTP_BAD_REQUEST, "The form is not one of this page's.", "Open the page again.");
    else if (!edge_credential_well(EDGE_BEARER, token))
        fail(r, MHD_HTTP_UNAUTHORIZED, "That is not a token.", "cloche_approver_... or cloche_operator_...");
    else
        ASK(r, EDGE_ASK_WHO, &who_answers, .kind = EDGE_BEARER, .text = token);
    explicit_bzero(text, sizeof(text));
    explicit_bzero(token, sizeof(token));
}

/* Nobody has to present anything for the form; what is behind it wants the token that is in the form. */
const struct route page_routes[] = {
    { "GET",  "/approvals/style.css", stylesheet, false, false, .open = true, .ours = true },
    { "GET",  "/approvals/{}",        form,       false, false, .open = true, .ours = true },
    { "POST", "/approvals/{}",        decide,     false, false, .open = true, .ours = true },
};
const size_t page_n_routes = ARRAY_LEN(page_routes);
