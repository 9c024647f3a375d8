/* the guest's own table (guest/dispatch.c) and a host that says anything; the handlers that would act are replaced by
 * ones that decode, so what is tried here is which message reaches which handler, when, and how long it is
 *
 * Input: the host's bytes. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#include "guest/guard_link.h"
#include "guest/guest.h"

static unsigned handled;

static int
seen(const struct guest *g, const struct frame *f, bool ok)
{
    FUZZ_ASSERT(g->gate.state == GUEST_READY);          /* nothing before SETUP */
    FUZZ_ASSERT(f->length <= MSG_EXEC_MAX && (f->type == MSG_EXEC || f->length <= MSG_DATA_MAX));
    handled++;
    return ok ? 0 : -1;
}

#define DECODES(function, type_, get)                       \
    int function(struct guest *g, const struct frame *f)    \
    {                                                       \
        struct type_ m_;                                    \
        return seen(g, f, get(f, &m_));                     \
    }
#define TAKES(function)                                     \
    int function(struct guest *g, const struct frame *f)    \
    {                                                       \
        return seen(g, f, true);                            \
    }

DECODES(exec_on_exec, msg_exec, msg_get_exec)
DECODES(connect_on_connect, msg_connect, msg_get_connect)
DECODES(relay_on_window, msg_window, msg_get_window)
DECODES(relay_on_resize, msg_resize, msg_get_resize)
DECODES(reap_on_signal, msg_signal, msg_get_signal)
DECODES(files_on_request, msg_file, msg_get_file)
int
changes_on_more(struct guest *g, const struct frame *f)
{
    uint32_t v;

    return seen(g, f, msg_get_u32(f, &v));
}

TAKES(relay_on_stdin)
TAKES(relay_on_stdin_close)
TAKES(reap_on_kill_all)
TAKES(files_on_chunk)
TAKES(files_on_end)
TAKES(files_on_cancel)

int
guard_link_setup(struct guest *g, const void *plan, size_t n)
{
    FUZZ_ASSERT(g->gate.state == GUEST_FRESH);          /* SETUP comes once */
    FUZZ_ASSERT((plan == NULL) == (n == 0) && n <= MSG_GUARD_MAX);
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct guest g;
    int code = -1, rc;

    if (n > LINK_IN_MAX)
        return 0;
    memset(&g, 0, sizeof(g));
    g.root = -1;
    g.pid1 = true;
    handled = 0;
    link_init(&g.link, -1);
    guest_gate_init(&g.gate);
    FUZZ_ASSERT(buf_append(&g.link.in, data, n) == 0);
    rc = guest_dispatch(&g, &code);
    FUZZ_ASSERT(rc == 0 || code == GUEST_EXIT_PROTOCOL);
    FUZZ_ASSERT(g.link.in_at <= n);
    /* Whatever is left is the beginning of a frame that is not whole yet. */
    if (rc == 0 && g.link.in.n - g.link.in_at >= FRAME_HEADER) {
        struct frame f;

        FUZZ_ASSERT(frame_header_decode(g.link.in.p + g.link.in_at, FRAME_HEADER, &f));
        FUZZ_ASSERT(g.link.in.n - g.link.in_at < FRAME_HEADER + (size_t)f.length);
    }
    if (g.root >= 0)
        close(g.root);
    buf_free(&g.link.in);
    buf_free(&g.link.out);
    return 0;
}
