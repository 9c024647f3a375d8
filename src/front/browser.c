/* front/browser.c: /v1/sandboxes/{}/browser: a browser in a sandbox, by Chrome's DevTools protocol (docs/browser.md)
 *
 * A request is passed to the browser as one to a preview is (preview.c), with two differences: its caller is known, and
 * reaches the sandbox as for a command; and first of all the keeper is asked to see that the browser runs. Whoever runs
 * code in the sandbox can take the browser's place, and this client sends its credential wherever the answer leads. So
 * no answer leads away: none is passed on, each is kept until it is whole, read, and said anew, with no field of the
 * browser's and with addresses of WebSockets that are ours.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "front/preview_priv.h"

#define SANDBOXES "/v1/sandboxes/"

/* --- its answers -------------------------------------------------------------------------------------------------- */

/* "ws://HOST/v1/sandboxes/ID/browser/", as the client came here. */
static void
socket_base(const struct request *r, char out[512])
{
    const char *host = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

    snprintf(out, 512, "%s://%.260s" SANDBOXES "%s/browser/", r->f->tls ? "wss" : "ws",
             host != NULL && host[0] != '\0' ? host : "localhost", r->id);
}

static bool
refuse(struct request *r, const char *what)
{
    char text[160];

    snprintf(text, sizeof(text), "the sandbox's browser answers %s, which Chromium's DevTools do not", what);
    preview_fail(r, MHD_HTTP_BAD_GATEWAY, "browser.answer",
                 "something else in the sandbox may have taken its place", text);
    return false;
}

bool
browser_begin(struct request *r, const struct http1_head *head)
{
    /* neither elsewhere (3xx), nor for a credential that it has no right to (401, 407) */
    if (head->status != 200 && (head->status < 400 || head->status == 401 || head->status == 407))
        return refuse(r, "with a redirection or another status");
    if (http1_find(head, STR_LIT("content-encoding"), NULL) != NULL)
        return refuse(r, "in a coding");
    r->preview->status = head->status;
    return true;
}

bool
browser_keep(struct request *r, struct str piece)
{
    struct buf *text = &r->preview->text;

    if (piece.n > text->max - text->n)
        return refuse(r, "with more than 2 MiB");
    /* what is kept now is counted, and what it grows to has room beside it */
    if (piece.n > text->cap - text->n && !waits_room(r, text->cap + piece.n)) {
        buf_free(text);
        preview_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "http.busy", "read the answers that wait for you, and ask again",
                     "there is no room for the answer: too much waits for this caller's clients");
        return false;
    }
    if (piece.n > 0 && buf_append(text, piece.p, piece.n) < 0) {
        preview_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "", "out of memory");
        return false;
    }
    waits_count(r);
    return true;
}

size_t
preview_held(const struct request *r)
{
    return r->preview != NULL ? r->preview->text.cap : 0;
}

void
browser_answer(struct request *r)
{
    struct preview *p = r->preview;
    cleanup_buf struct buf kept = p->text;
    const struct str text = { kept.n > 0 ? (const char *)kept.p : "", kept.n };
    char base[512];
    json_t *said;

    p->text = (struct buf)BUF_INIT(0);
    socket_base(r, base);
    said = preview_devtools(text, p->port, str_of(base));
    if (said == NULL && !preview_devtools_plain(text)) {
        (void)refuse(r, "with an address elsewhere, or in broken JSON");
        return;
    }
    preview_over(r);
    if (said != NULL)
        reply_json(r, p->status, said);
    else if (text.n > 0)
        reply_text(r, p->status, "text/plain; charset=utf-8", text.p, text.n);
    else
        reply_empty(r, p->status);
}

/* --- starting it -------------------------------------------------------------------------------------------------- */

static void
on_listens(struct request *r, uint64_t port)
{
    r->preview->port = (uint16_t)port;
    op_drop(r);
    r->op_answers = &preview_said;
    ASK(r, EDGE_ASK_BROWSER, &preview_answers, .id = r->id, .what = BROWSER_CONNECT);
}

static const struct answers start_answers = { .granted = op_flow, .no = preview_fail_err };
static const struct op_answers start_said = { .done = on_listens, .failed = preview_fail_err };

/* What is behind "/v1/sandboxes/ID/browser" of the target as it came. */
static bool
target_of(const char *uri, struct preview_target *out)
{
    const char *at = strncmp(uri, SANDBOXES, strlen(SANDBOXES)) == 0 ? strchr(uri + strlen(SANDBOXES), '/') : NULL;
    size_t n;

    if (at == NULL || strncmp(at, "/browser/", 9) != 0)
        return false;
    at += strlen("/browser");
    n = strcspn(at, "?");
    out->path = (struct str){ at, n };
    out->query = str_of(at + n);
    return true;
}

static void
browser_pass(struct request *r)
{
    struct preview *p = preview_new(r);

    if (p == NULL)
        return;
    if (!target_of(r->uri, &p->target) || !preview_devtools_path(p->target.path)) {
        preview_fail(r, MHD_HTTP_NOT_FOUND, "browser.path", "/json/version, /json/list, /devtools/...",
                     "a browser's DevTools have no such path");
        return;
    }
    p->browser = true;
    if (!preview_upgrades(r))
        return;
    r->op_answers = &start_said;
    ASK(r, EDGE_ASK_BROWSER, &start_answers, .id = r->id, .what = BROWSER_START);
}

/* --- started by itself -------------------------------------------------------------------------------------------- */

static void
on_running(struct request *r, uint64_t port)
{
    char room[300];
    const char *base = ports_base(r, room);

    (void)port;
    reply_json(r, MHD_HTTP_OK, json_pack("{s:o, s:o}", "path", json_sprintf(SANDBOXES "%s/browser", r->id), "cdp_url",
                                         base != NULL ? json_sprintf("%s" SANDBOXES "%s/browser", base, r->id)
                                                      : json_null()));
}

static const struct answers only_answers = { .granted = op_flow };
static const struct op_answers only_said = { .done = on_running, .failed = reply_err };

static void
browser_start(struct request *r)
{
    r->op_answers = &only_said;
    ASK(r, EDGE_ASK_BROWSER, &only_answers, .id = r->id, .what = BROWSER_ONLY);
}

const struct route browser_routes[] = {
    { "POST", "/v1/sandboxes/{}/browser",   browser_start, .json = true },
    { "GET",  "/v1/sandboxes/{}/browser/json",       browser_pass, .upload = true },
    { "GET",  "/v1/sandboxes/{}/browser/json/~",     browser_pass, .upload = true },
    { "PUT",  "/v1/sandboxes/{}/browser/json",       browser_pass, .upload = true },
    { "PUT",  "/v1/sandboxes/{}/browser/json/~",     browser_pass, .upload = true },
    { "HEAD", "/v1/sandboxes/{}/browser/json",       browser_pass, .upload = true },
    { "HEAD", "/v1/sandboxes/{}/browser/json/~",     browser_pass, .upload = true },
    { "HEAD", "/v1/sandboxes/{}/browser/devtools/~", browser_pass, .upload = true },
    { "GET",  "/v1/sandboxes/{}/browser/devtools/~", browser_pass, .upload = true },
};
const size_t browser_n_routes = ARRAY_LEN(browser_routes);
