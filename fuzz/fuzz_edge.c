/* proto/edge: whatever a peer of the daemon's sends, what is decoded is in its range and comes out as it went in
 *
 * Input: the first byte chooses the form, the rest is a message's payload.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "proto/edge.h"

static void
box(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct edge_box b;

    if (!edge_box_get(&in, &b))
        return;
    FUZZ_ASSERT(b.state < BOX_STATES && edge_is_id(b.id) && strlen(b.name) <= EDGE_NAME_MAX);
    FUZZ_ASSERT(b.labels[0] == '\0' || b.labels[strlen(b.labels) - 1] == '\n');
    FUZZ_ASSERT(edge_box_put(&out, &b) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
op(const uint8_t *data, size_t n)
{
    static struct edge_op o;
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);

    if (!edge_op_get(&in, &o))
        return;
    FUZZ_ASSERT(o.kind > 0 && o.kind < OP_KINDS && o.n_argv <= EDGE_WORDS_MAX && o.argv[o.n_argv] == NULL);
    FUZZ_ASSERT(o.kind != OP_CONNECT || (o.offset > 0 && o.offset <= UINT16_MAX && edge_is_id(o.path)));
    FUZZ_ASSERT((o.kind == OP_EXEC || o.kind == OP_ATTACH) == (o.n_argv > 0) && op_name(o.kind) != NULL);
    FUZZ_ASSERT(((o.flags & OP_PTY) != 0) == (o.rows > 0 && o.cols > 0));
    FUZZ_ASSERT((o.flags & OP_BACKGROUND) == 0 || (o.kind == OP_EXEC && (o.flags & OP_LIVE) == 0));
    FUZZ_ASSERT((o.flags & OP_LIVE) == 0 || (o.kind == OP_EXEC && (o.flags & OP_STDIN) != 0));
    for (size_t i = 0; i < o.n_env; i++)
        FUZZ_ASSERT(strchr(o.env[i], '=') > o.env[i]);
    FUZZ_ASSERT(edge_op_put(&out, &o) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
token(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct edge_token t;

    if (!edge_token_get(&in, &t))
        return;
    FUZZ_ASSERT(edge_is_id(t.id) && t.role > EDGE_NOBODY && t.role < EDGE_KEY && edge_role_name(t.role) != NULL);
    FUZZ_ASSERT(edge_token_put(&out, &t) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
port(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct edge_port p;

    if (!edge_port_get(&in, &p))
        return;
    FUZZ_ASSERT(edge_is_id(p.id) && edge_is_id(p.box) && p.port > 0 && strlen(p.name) <= EDGE_NAME_MAX);
    FUZZ_ASSERT(edge_port_put(&out, &p) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
change(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct edge_change c;

    if (!edge_change_get(&in, &c))
        return;
    FUZZ_ASSERT(c.kind < EDGE_CHANGE_KINDS && strlen(c.path) <= EDGE_PATH_MAX && strlen(c.from) <= EDGE_PATH_MAX);
    FUZZ_ASSERT((c.from[0] != '\0') == (c.kind == EDGE_CHANGE_RENAMED));
    FUZZ_ASSERT(edge_change_put(&out, &c) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
texts(const uint8_t *data, size_t n)
{
    char text[512];
    enum box_state state;

    if (n >= sizeof(text))
        return;
    memcpy(text, data, n);
    text[n] = '\0';
    (void)edge_labels_well(text);
    FUZZ_ASSERT(!edge_is_capability(text) || strlen(text) == EDGE_CAPABILITY);
    FUZZ_ASSERT(!edge_credential_well(EDGE_BEARER, text) || strlen(text) <= EDGE_CREDENTIAL_MAX);
    FUZZ_ASSERT(!edge_credential_well(EDGE_SANDBOX_KEY, text) || edge_credential_well(EDGE_BEARER, text));
    FUZZ_ASSERT(!edge_name_well(text) || strlen(text) <= EDGE_NAME_MAX);
    if (box_state_parse(text, &state))
        FUZZ_ASSERT(strcmp(box_state_name(state), text) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct edge_event event;
    struct err err;
    struct wire_in in;

    if (n == 0)
        return 0;
    in = wire_in_of(data + 1, n - 1);
    switch (data[0] % 8) {
    case 0: box(data + 1, n - 1); break;
    case 1: op(data + 1, n - 1); break;
    case 2: texts(data + 1, n - 1); break;
    case 3: (void)edge_event_get(&in, &event); break;
    case 5: token(data + 1, n - 1); break;
    case 6: port(data + 1, n - 1); break;
    case 7: change(data + 1, n - 1); break;
    default:
        if (packet_get_err(&in, &err))
            FUZZ_ASSERT(err.kind > ERR_NONE && err.kind <= ERR_DENIED && strlen(err.code) <= ERR_CODE_MAX);
    }
    return 0;
}
