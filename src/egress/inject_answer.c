/* egress/inject_answer.c: values out of answers, head and body (inject.h) */
#include <string.h>

#include "base/array.h"
#include "egress/inject_priv.h"
#include "egress/swap.h"
#include "egress/unpack.h"

/* @text without values: itself, or a copy in j->text. .p is NULL when there is no room. */
static struct str
scrub(struct inject *j, struct str text)
{
    struct buf out = BUF_INIT(HTTP1_HEAD_MAX);
    uint32_t seen;
    char *copy;

    if (swap_feed(j->down, text.p, text.n, true, &out) < 0)
        return (struct str){ NULL, 0 };
    seen = swap_seen(j->down);
    if (seen == 0) {
        buf_free(&out);
        return text;
    }
    inject_scrubbed(j, seen);
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

/* What compresses the messages of a body, each by itself, or makes it something else than the answer (RFC 3229). */
static bool
is_packed_within(const struct http1_field *field)
{
    static const struct str names[] = { { "Grpc-Encoding", 13 }, { "Connect-Content-Encoding", 24 }, { "IM", 2 } };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http1_equal(field->name, names[i]))
            return unpack_kind(field->value) != UNPACK_PLAIN;
    return false;
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
        } else if (is_packed_within(&head->fields[i])) {
            return UNPACK_UNKNOWN;
        }
    return n > 1 ? UNPACK_UNKNOWN : kind;
}

/* Objects that were stored compressed, or are fetched in parts: they are no answers that tell what they were asked, and
 * nothing but an access key id is looked for. */
static bool
is_kept_as_it_is(const struct inject *j, const struct http1_head *head, enum unpack_kind kind)
{
    return j->ids_alone && head->status < 300 && kind != UNPACK_PLAIN;
}

int
inject_response_head(void *ctx, const struct http1_head *head, struct exchange_edit *edit)
{
    struct inject *j = ctx;
    bool body = head->framing != HTTP1_BODY_NONE && !(head->framing == HTTP1_BODY_LENGTH && head->body_length == 0);
    enum unpack_kind kind = body ? packing(head) : UNPACK_PLAIN;

    if (head->status == 101 && j->ws != NULL) {
        if (!inject_ws_begins(j, head))
            return inject_refuse_edit(edit, "answer-encoding",
                                      "the server agreed to an extension that was not asked for");
        edit->raw = true;
    }
    if (j->down == NULL)
        return 0;
    /* many a server lets whoever asks choose the answer's type: by itself it may not say where the search ends. The
     * sandbox can call its request gRPC too; but what was stored, or is echoed whole, says its length, and gRPC none */
    grpc_cut_begin(&j->down_cut, head);
    j->down_cut.on &= j->up_cut.on && !head->length_stated;
    inject_wipe_text(j);
    if (buf_reserve(&j->text, HTTP1_HEAD_MAX) < 0 || scrub_head(j, head, edit) < 0)
        return inject_refuse_edit(edit, "secret-in-answer",
                                  "the answer's head carries a secret where it cannot be replaced");
    if (is_kept_as_it_is(j, head, kind)) {
        inject_swap_drop(&j->down);
        return 0;
    }
    if (head->status == 206 && !j->ids_alone)
        return inject_refuse_edit(edit, "answer-partial", "a part of an answer cannot be searched for secrets");
    if (kind == UNPACK_UNKNOWN)
        return inject_refuse_edit(edit, "answer-encoding", "the answer is compressed in a way that cannot be searched");
    if (kind != UNPACK_PLAIN) {
        j->unpack = unpack_new(kind);
        if (j->unpack == NULL || edit->n_drop == EXCHANGE_EDITS_MAX)
            return inject_refuse_edit(edit, "answer-encoding", "no memory to unpack the answer");
        edit->drop[edit->n_drop++] = STR_LIT("Content-Encoding");
    }
    if (!body) {
        if (!edit->raw && !j->trailers)
            inject_swap_drop(&j->down);
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
        r = grpc_cut_feed(&j->down_cut, j->down, (struct str){ (const char *)plain.p, plain.n },
                          last && *used == data.n, out);
    buf_free(&plain);
    return r;
}

int
inject_response_body(void *ctx, struct str data, bool last, struct buf *out, size_t *used)
{
    struct inject *j = ctx;
    int r;

    if (j->unpack != NULL) {
        r = unpack_and_swap(j, data, last, out, used);
    } else {
        *used = data.n;
        r = grpc_cut_feed(&j->down_cut, j->down, data, last, out);
    }
    inject_scrubbed(j, swap_seen(j->down));
    if (last && *used == data.n && !j->trailers)
        inject_swap_drop(&j->down);
    return r;
}

int
inject_response_trailer(void *ctx, const struct http1_head *trailer, struct exchange_edit *edit)
{
    struct inject *j = ctx;

    if (j->down == NULL)
        return 0;
    inject_wipe_text(j);
    (void)swap_seen(j->down);       /* the body's */
    if (buf_reserve(&j->text, HTTP1_HEAD_MAX) < 0 || scrub_head(j, trailer, edit) < 0)
        return inject_refuse_edit(edit, "secret-in-answer", "a secret where it cannot be replaced");
    return 0;
}
