/* front/ask_gate.c: questions to the warden about what somebody has to approve */
#include <stdlib.h>

#include "front/ask_priv.h"

void
ask_gate(struct request *r, const char *id, const char *tool, const json_t *params, bool hold,
         const struct answers *answers)
{
    char *text = json_dumps(params, JSON_COMPACT);

    r->async = !hold;
    ASK(r, EDGE_ASK_GATE, answers, .id = id, .tool = tool, .params = text);
    free(text);
}

void
ask_approvals(struct request *r, bool follow, unsigned state, uint16_t limit, const char *id, const char *after,
              const struct answers *answers)
{
    ASK(r, EDGE_ASK_APPROVALS, answers, .follow = follow, .state = (uint8_t)state, .limit = limit, .id = id,
        .after = after);
    r->followed = follow ? r->ticket : 0;
}

/* Nobody waits for what was asked: so nobody is asked to approve it either. */
void
ask_cancel(struct request *r, uint32_t ticket)
{
    uint8_t room[FRAME_HEADER + edge_head_MOST + ask_cancel_MOST];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    const struct ask_cancel cancel = { .ticket = ticket };

    if (ask_frame(r, &b, EDGE_ASK_CANCEL, ask_ticket(r->f),
                  &(const struct proto_part){ &ask_cancel_shape, &cancel }, 1) == 0)
        (void)ask_post(r->f, &b);
}
