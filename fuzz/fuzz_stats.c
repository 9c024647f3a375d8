/* warden/stats, proto/edge: numbers, usage and results, whatever another process sends: what is taken comes out
 * as it went in, and as text it has whole lines without a byte that is none of ours
 *
 * Input: the first byte chooses the form, the rest is a message's payload.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "proto/edge.h"
#include "warden/stats.h"

static void
samples(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20), text = BUF_INIT(1 << 22);
    struct stats_text t = { .out = &text, .open_metrics = n % 2 == 0 };
    struct wire_in in = wire_in_of(data, n);
    struct stat_sample s;

    while (in.n > 0) {
        if (!stats_get(&in, &s))
            return;
        FUZZ_ASSERT(s.which < STATS && stats_put(&out, &s) == 0);
    }
    FUZZ_ASSERT(out.n == n && (n == 0 || memcmp(out.p, data, n) == 0));
    if (!stats_text_of(&t, wire_in_of(data, n), wire_in_of(NULL, 0)))
        return;
    FUZZ_ASSERT(text.n == 0 || text.p[text.n - 1] == '\n');
    for (size_t i = 0; i < text.n; i++)
        FUZZ_ASSERT(text.p[i] == '\n' || (text.p[i] >= 0x20 && text.p[i] < 0x7f));
}

static void
usage(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    struct wire_in in = wire_in_of(data, n);
    struct edge_usage u;

    if (!edge_usage_get(&in, &u))
        return;
    FUZZ_ASSERT(u.n_running <= EDGE_RUNNING_MAX && edge_usage_put(&out, &u) == 0);
    FUZZ_ASSERT(out.n == n && memcmp(out.p, data, n) == 0 && n <= edge_usage_MOST);
}

static void
result(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(256);
    struct wire_in in = wire_in_of(data, n);
    struct edge_op_result r;

    if (!edge_op_result_get(&in, &r))
        return;
    FUZZ_ASSERT(r.kind > 0 && r.kind < OP_KINDS && op_end_name(r.result) != NULL);
    FUZZ_ASSERT(edge_op_result_put(&out, &r) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] % 3 == 0)
        samples(data + 1, n - 1);
    else if (data[0] % 3 == 1)
        usage(data + 1, n - 1);
    else
        result(data + 1, n - 1);
    return 0;
}
