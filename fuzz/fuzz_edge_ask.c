/* proto/edge, edge_gate: whatever a front asks, or the warden answers about approvals, what is decoded is in its range
 * and comes out as it went in
 *
 * Input: the first byte chooses the form, the rest is a message's payload.
 */
#include "fuzz.h"

#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "proto/edge_gate.h"

static void
create(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_create c;

    if (!edge_create_get(&in, &c))
        return;
    FUZZ_ASSERT((c.key == NULL) == (c.body == NULL) && strlen(c.policy) <= EDGE_POLICY_MAX);
    FUZZ_ASSERT(c.name[0] == '\0' || (edge_name_well(c.name) && !edge_is_id(c.name)));
    FUZZ_ASSERT((c.flags & EDGE_REATTACH) == 0 || c.workspace[0] != '\0');
    FUZZ_ASSERT(edge_create_put(&out, &c) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
volume(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_volume v;

    if (!edge_volume_get(&in, &v))
        return;
    FUZZ_ASSERT(edge_is_id(v.id) && v.name[0] != '\0' && strlen(v.name) <= EDGE_WORKSPACE_MAX);
    FUZZ_ASSERT(edge_volume_put(&out, &v) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
approval(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_approval a;

    if (!edge_approval_get(&in, &a))
        return;
    FUZZ_ASSERT(edge_is_id(a.id) && approval_state_name(a.state) != NULL && a.risk < GATE_RISKS);
    FUZZ_ASSERT(strlen(a.digest) == SHA256_TEXT && edge_caller_well(a.caller));
    FUZZ_ASSERT(edge_approval_put(&out, &a) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
grant(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_grant g;

    if (!edge_grant_get(&in, &g))
        return;
    FUZZ_ASSERT(edge_is_id(g.id) && edge_caller_well(g.caller));
    FUZZ_ASSERT(edge_grant_put(&out, &g) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
verdict(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_verdict v;

    if (!edge_verdict_get(&in, &v))
        return;
    FUZZ_ASSERT(v.says >= GATE_ALLOWED && v.says <= GATE_WAIT && v.risk < GATE_RISKS);
    FUZZ_ASSERT(v.pass == 0 || v.says == GATE_ALLOWED);
    FUZZ_ASSERT(edge_verdict_put(&out, &v) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

static void
decision(struct wire_in in, const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct edge_decision d;

    if (!edge_decision_get(&in, &d))
        return;
    FUZZ_ASSERT(edge_is_id(d.id) && approval_scope_name(d.scope) != NULL && d.seconds <= GRANT_SECONDS_MAX);
    FUZZ_ASSERT(edge_decision_put(&out, &d) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const forms[])(struct wire_in, const uint8_t *, size_t) = { create, volume, approval, grant, verdict,
                                                                             decision };

    if (n > 0)
        forms[data[0] % ARRAY_LEN(forms)](wire_in_of(data + 1, n - 1), data + 1, n - 1);
    return 0;
}
