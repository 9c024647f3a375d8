/* egress/conn_page.c: what a parent proxy says itself, over plain HTTP
 *
 * Every request that it gets in absolute form has the user's name and password for it. Its own pages reach the sandbox
 * as answers do, and some show in them what it was sent. They cannot be told from servers' answers but by their status:
 * what is none of success is searched for the credential, and so is every head. As the sandbox can have such a page
 * show what it likes, always as much is held back (swap_blind()).
 *
 * It is the filter of the exchange, in front of inject's.
 */
#include <string.h>

#include "egress/conn.h"
#include "egress/swap.h"

#define FIRST_NO_SUCCESS 300

/* What stands behind "Basic " of what the parent is told; empty where nothing is. */
static struct str
credential(const struct conn *c)
{
    const struct str value = c->x.target.proxy_authorization, scheme = STR_LIT("Basic ");

    return value.n > scheme.n ? (struct str){ value.p + scheme.n, value.n - scheme.n } : (struct str){ "", 0 };
}

void
conn_page_free(struct conn *c)
{
    swap_free(c->page);
    c->page = NULL;
}

static int
make(struct conn *c)
{
    const struct str word = credential(c);
    char nothing[PARENT_AUTH_MAX];

    memset(nothing, 'x', sizeof(nothing));
    c->page = swap_new();
    if (c->page == NULL || word.n > sizeof(nothing))
        return -1;
    swap_blind(c->page);
    return swap_add(c->page, 0, word.p, nothing, word.n, SWAP_RAW | SWAP_SPELLED);
}

static bool
shows(struct conn *c, struct str text)
{
    struct buf out = BUF_INIT(HTTP1_HEAD_MAX);
    bool found = swap_feed(c->page, text.p, text.n, true, &out) < 0 || swap_seen(c->page) != 0;

    buf_free(&out);
    return found;
}

static bool
head_shows(struct conn *c, const struct http1_head *head)
{
    bool found = shows(c, head->reason);

    for (size_t i = 0; i < head->n_fields && !found; i++)
        found = shows(c, head->fields[i].name) || shows(c, head->fields[i].value);
    return found;
}

static bool
is_coded(const struct http1_head *head)
{
    const struct http1_field *field;
    size_t at = 0;

    while ((field = http1_find(head, STR_LIT("Content-Encoding"), &at)) != NULL)
        if (field->value.n > 0 && !http1_equal(field->value, STR_LIT("identity")))
            return true;
    return false;
}

static int
conn_page_refuse(struct exchange_edit *edit, const char *reason, const char *detail)
{
    edit->refuse = reason;
    edit->detail = detail;
    return -1;
}

/* --- the filter --------------------------------------------------------------------------------------------------- */

static int
request_head(void *ctx, const struct http1_head *head, const struct buf *whole, struct exchange_edit *edit)
{
    const struct str name = STR_LIT("Accept-Encoding");
    struct conn *c = ctx;

    if (inject_filter.request_head(&c->inject, head, whole, edit) < 0)
        return -1;
    if (credential(c).n == 0)
        return 0;
    for (size_t i = 0; i < edit->n_drop; i++)
        if (http1_equal(edit->drop[i], name))
            return 0;           /* inject asks plainly already */
    if (edit->n_drop == EXCHANGE_EDITS_MAX || edit->n_add == EXCHANGE_EDITS_MAX)
        return conn_page_refuse(edit, "http-rewrite", "the request cannot be passed on");
    edit->drop[edit->n_drop++] = name;
    edit->add[edit->n_add++] = (struct http1_add){ name, STR_LIT("identity") };
    return 0;
}

static int
request_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct conn *c = ctx;

    return inject_filter.request_body(&c->inject, data, last, out, used);
}

static int
response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit)
{
    struct conn *c = ctx;
    bool body = head->framing != HTTP1_BODY_NONE && !(head->framing == HTTP1_BODY_LENGTH && head->body_length == 0);

    conn_page_free(c);
    if (inject_filter.response_head(&c->inject, head, edit) < 0)
        return -1;
    if (credential(c).n == 0)
        return 0;
    if (make(c) < 0 || head_shows(c, head))
        return conn_page_refuse(edit, "parent-page", "the answer's head shows what the parent proxy was sent");
    if (!body || head->status < FIRST_NO_SUCCESS) {
        conn_page_free(c);
        return 0;
    }
    c->page_behind = edit->body != EXCHANGE_BODY_PASS;
    if (!c->page_behind && is_coded(head))
        return conn_page_refuse(edit, "answer-encoding", "a page that may be the parent proxy's is compressed");
    if (!c->page_behind)
        edit->body = EXCHANGE_BODY_SAME;
    return 0;
}

static int
response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct conn *c = ctx;
    struct buf made = BUF_INIT(EXCHANGE_OUT_MAX / 2);
    struct str plain = data;
    int r = 0;

    if (c->page == NULL)
        return inject_filter.response_body(&c->inject, data, last, out, used);
    *used = data.n;
    if (c->page_behind) {
        r = inject_filter.response_body(&c->inject, data, last, &made, used);
        plain = made.n > 0 ? (struct str){ (const char *)made.p, made.n } : (struct str){ "", 0 };
    }
    last = last && *used == data.n;
    if (r == 0)
        r = swap_feed(c->page, plain.p, plain.n, last, out);
    if (last)
        conn_page_free(c);
    buf_free(&made);
    return r;
}

static int
raw_up(void *ctx, struct str data, struct buf *out)
{
    struct conn *c = ctx;

    return inject_filter.raw_up(&c->inject, data, out);
}

static int
raw_down(void *ctx, struct str data, struct buf *out)
{
    struct conn *c = ctx;

    return inject_filter.raw_down(&c->inject, data, out);
}

const struct exchange_filter conn_page_filter = {
    .request_head = request_head, .request_body = request_body, .response_head = response_head,
    .response_body = response_body, .raw_up = raw_up, .raw_down = raw_down,
};
