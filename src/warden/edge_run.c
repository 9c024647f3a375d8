/* warden/edge_run.c: see edge_run.h */
#include "warden/edge_run.h"

int
edge_put_run_ask(struct buf *b, const struct edge_run_ask *ask)
{
    buf_put_u8(b, (uint8_t)ask->what);
    buf_put_be64(b, ask->number);
    buf_put_be64(b, ask->at[0]);
    buf_put_be64(b, ask->at[1]);
    buf_put_u8(b, ask->signal);
    buf_put_u8(b, ask->last);
    buf_put_be16(b, ask->rows);
    return buf_put_be16(b, ask->cols);
}

bool
edge_get_run_ask(struct wire_in *in, struct edge_run_ask *ask)
{
    uint8_t what = wire_u8(in), last;

    ask->number = wire_be64(in);
    ask->at[0] = wire_be64(in);
    ask->at[1] = wire_be64(in);
    ask->signal = wire_u8(in);
    last = wire_u8(in);
    ask->rows = wire_be16(in);
    ask->cols = wire_be16(in);
    if (!wire_done(in) || what == 0 || what >= RUN_ASKS || last > (what == RUN_INPUT))
        return false;
    ask->what = (enum run_ask)what;
    ask->last = last != 0;
    return (ask->number == 0) == (what == RUN_LIST) && ask->number <= INT64_MAX &&
           ((ask->at[0] == 0 && ask->at[1] == 0) || what == RUN_FOLLOW) &&
           (what == RUN_SIGNAL ? ask->signal >= 1 && ask->signal <= 31 : ask->signal == 0) &&
           (ask->rows != 0) == (what == RUN_RESIZE) && (ask->cols != 0) == (what == RUN_RESIZE);
}

int
edge_put_run(struct buf *b, const struct edge_run *run)
{
    buf_put_be64(b, run->number);
    buf_put_u8(b, run->state);
    buf_put_u8(b, run->flags);
    buf_put_u8(b, run->code);
    buf_put_be64(b, run->begun_ms);
    buf_put_be64(b, run->ended_ms);
    buf_put_be64(b, run->ms);
    for (size_t i = 0; i < 2; i++) {
        buf_put_be64(b, run->bytes[i]);
        buf_put_be64(b, run->gone[i]);
    }
    return wire_put_cstr(b, run->name, EDGE_RUN_NAME);
}

bool
edge_get_run(struct wire_in *in, struct edge_run *run)
{
    run->number = wire_be64(in);
    run->state = wire_u8(in);
    run->flags = wire_u8(in);
    run->code = wire_u8(in);
    run->begun_ms = wire_be64(in);
    run->ended_ms = wire_be64(in);
    run->ms = wire_be64(in);
    for (size_t i = 0; i < 2; i++) {
        run->bytes[i] = wire_be64(in);
        run->gone[i] = wire_be64(in);
        if (run->bytes[i] > INT64_MAX || run->gone[i] > run->bytes[i])
            in->bad = true;
    }
    run->name = wire_cstr(in, EDGE_RUN_NAME, NULL);
    return wire_done(in) && run->number > 0 && run->number <= INT64_MAX && run->begun_ms <= INT64_MAX &&
           run->ended_ms <= INT64_MAX && run->ms <= INT64_MAX &&
           (run->state & ~(RUN_ENDED | RUN_ENDING | RUN_STDIN | RUN_TERMINAL)) == 0 &&
           ((run->state & RUN_ENDED) != 0 || (run->flags == 0 && run->code == 0 && run->ended_ms == 0));
}
