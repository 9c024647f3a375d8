/* wire/table.c: see table.h */
#include "wire/table.h"

static const struct msg_rule *
rule_of(const struct msg_gate *gate, uint8_t type)
{
    for (size_t i = 0; i < gate->n_rules; i++)
        if (gate->rules[i].type == type)
            return &gate->rules[i];
    return NULL;
}

enum msg_verdict
msg_check(const struct msg_gate *gate, const struct frame *header)
{
    const struct msg_rule *r = rule_of(gate, header->type);

    if (r == NULL)
        return MSG_UNKNOWN;
    if ((r->states & gate->state) == 0)
        return MSG_UNPERMITTED;
    if (r->once && (gate->seen[header->type >> 6] >> (header->type & 63) & 1) != 0)
        return MSG_REPEATED;
    if (header->length > r->max_length)
        return MSG_TOO_LONG;
    if (header->length < r->min_length)
        return MSG_TOO_SHORT;
    if ((header->flags & ~r->flags) != 0)
        return MSG_FLAGS;
    return MSG_OK;
}

enum msg_verdict
msg_dispatch(struct msg_gate *gate, const struct frame *f, void *ctx)
{
    enum msg_verdict v = msg_check(gate, f);
    const struct msg_rule *r;

    if (v != MSG_OK)
        return v;
    gate->seen[f->type >> 6] |= UINT64_C(1) << (f->type & 63);
    r = rule_of(gate, f->type);
    return r != NULL && r->handler(ctx, f) >= 0 ? MSG_OK : MSG_HANDLER;
}

const char *
msg_verdict_text(enum msg_verdict v)
{
    switch (v) {
    case MSG_OK: return "message permitted";
    case MSG_UNKNOWN: return "unknown message";
    case MSG_UNPERMITTED: return "message not permitted in this state";
    case MSG_REPEATED: return "message may come only once";
    case MSG_TOO_LONG: return "message above its ceiling";
    case MSG_TOO_SHORT: return "message shorter than its fixed part";
    case MSG_FLAGS: return "message with a flag that it does not have";
    case MSG_HANDLER: return "malformed message";
    }
    return "message refused";
}

int
msg_next(const struct msg_gate *gate, const uint8_t *p, size_t n, struct frame *f, size_t *need,
         enum msg_verdict *verdict)
{
    *verdict = MSG_OK;
    *need = FRAME_HEADER;
    if (!frame_header_decode(p, n, f))
        return 0;
    *verdict = msg_check(gate, f);
    if (*verdict != MSG_OK)
        return -1;
    *need = (size_t)FRAME_HEADER + f->length;
    if (n < *need)
        return 0;
    f->payload = p + FRAME_HEADER;
    return 1;
}
