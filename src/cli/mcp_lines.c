/* cli/mcp_lines.c: stdin and stdout as lines (see mcp.h) */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/mcp.h"

#define PIECE 65536

void
mcp_lines_open(struct mcp_lines *l)
{
    *l = (struct mcp_lines){ .in = BUF_INIT(MCP_LINE_MAX + PIECE),
                             .out = BUF_INIT(2 * (API_ANSWER_MAX + MCP_WAITING)) };
}

void
mcp_lines_free(struct mcp_lines *l)
{
    buf_free(&l->in);
    buf_free(&l->out);
}

/* --- stdin -------------------------------------------------------------------------------------------------------- */

void
mcp_lines_hear(struct mcp_lines *l)
{
    ssize_t r;

    if (buf_reserve(&l->in, PIECE) < 0) {       /* all of it is one line */
        buf_free(&l->in);
        l->in = (struct buf)BUF_INIT(MCP_LINE_MAX + PIECE);
        l->searched = 0;
        l->too_long = !l->skipping;
        l->skipping = true;
        return;
    }
    r = read(STDIN_FILENO, l->in.p + l->in.n, PIECE);
    if (r < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (r <= 0)
        l->ended = true;
    else
        l->in.n += (size_t)r;
}

int
mcp_lines_next(struct mcp_lines *l, size_t *n)
{
    const uint8_t *end;

    if (l->too_long) {
        l->too_long = false;
        return -1;
    }
    for (;;) {
        end = l->in.n > l->searched ? memchr(l->in.p + l->searched, '\n', l->in.n - l->searched) : NULL;
        if (end == NULL) {
            l->searched = l->in.n;
            *n = l->in.n;               /* what is there at the end is a line, too */
            return l->ended && l->in.n > 0 && !l->skipping ? 1 : 0;
        }
        *n = (size_t)(end - l->in.p);
        if (!l->skipping)
            return 1;
        l->skipping = false;            /* the end of one that was too long */
        mcp_lines_taken(l, *n);
    }
}

void
mcp_lines_taken(struct mcp_lines *l, size_t n)
{
    buf_consume(&l->in, n < l->in.n ? n + 1 : n);
    l->searched = 0;
}

/* --- stdout ------------------------------------------------------------------------------------------------------- */

/* It may be blocking, and others may share it, so its mode is not ours to change: a write of PIPE_BUF bytes does not
 * block where poll says that there is room. Who does not read keeps us from nothing else. */
void
mcp_lines_flush(struct mcp_lines *l)
{
    while (mcp_lines_waiting(l) > 0 && !l->gone) {
        struct pollfd room = { .fd = STDOUT_FILENO, .events = POLLOUT };
        size_t n = mcp_lines_waiting(l) < PIPE_BUF ? mcp_lines_waiting(l) : PIPE_BUF;
        ssize_t put;
        if (poll(&room, 1, 0) <= 0)
            break;
        put = write(STDOUT_FILENO, l->out.p + l->said, n);
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0 && errno != EINTR)
            l->gone = true;
        if (put > 0)
            l->said += (size_t)put;
    }
    if (l->said < l->out.n / 2)         /* a long answer is not moved for each piece of it */
        return;
    buf_consume(&l->out, l->said);
    l->said = 0;
}

size_t
mcp_lines_waiting(const struct mcp_lines *l)
{
    return l->out.n - l->said;
}

void
mcp_lines_say(struct mcp_lines *l, const void *p, size_t n)
{
    if (buf_append(&l->out, p, n) < 0 || buf_put_u8(&l->out, '\n') < 0)
        l->gone = true;         /* half a line would be worse than none */
    mcp_lines_flush(l);
}
