/* keeper/run_log and proto/edge_run: what is kept of a command is the end of what it wrote, whatever the pace of who
 * reads; and what is decoded about it is in its range and comes out as it went in
 *
 * Input: the first byte chooses. Of a log the rest are steps: two bytes each, the first one's lowest bit the stream,
 * the next one whether somebody reads before; the second how much is written.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "keeper/run_log.h"
#include "proto/edge_run.h"

static uint8_t
byte_of(uint8_t stream, uint64_t at)
{
    return (uint8_t)(at * 7 + at / 251 + stream * 101);
}

static void
read_all(const struct run_log *log, struct run_reader *reader)
{
    uint64_t at, had[2] = { reader->at[0], reader->at[1] };
    const uint8_t *p;
    uint8_t stream;
    size_t n;

    while ((n = run_log_read(log, reader, 1000, &stream, &at, &p)) > 0) {
        FUZZ_ASSERT(stream < 2 && at >= had[stream] && at + n <= log->at[stream]);
        FUZZ_ASSERT(at == had[stream] || had[stream] < run_log_oldest(log, stream));
        FUZZ_ASSERT(p[0] == byte_of(stream, at) && p[n - 1] == byte_of(stream, at + n - 1));
        had[stream] = at + n;
    }
    FUZZ_ASSERT(run_log_left(log, reader) == 0);
}

static void
kept(const uint8_t *data, size_t n)
{
    static uint8_t bytes[256 * 97];
    struct run_log log = { .pieces = NULL };
    struct run_reader reader = { .piece = 0 };

    for (; n >= 2; data += 2, n -= 2) {
        uint8_t stream = data[0] & 1;
        size_t size = (size_t)data[1] * ((data[0] & 4) != 0 ? 97 : 1);
        if ((data[0] & 2) != 0)
            read_all(&log, &reader);
        for (size_t i = 0; i < size; i++)
            bytes[i] = byte_of(stream, log.at[stream] + i);
        if (size > 0)
            FUZZ_ASSERT(run_log_add(&log, stream, bytes, size) == 0);
        FUZZ_ASSERT(log.end - log.begin <= RUN_LOG_BYTES && log.next - log.first <= RUN_LOG_PIECES);
    }
    read_all(&log, &reader);
    run_log_free(&log);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(4096);
    struct edge_run_ask ask;
    struct edge_run run;
    struct wire_in in;

    if (n == 0)
        return 0;
    in = wire_in_of(data + 1, n - 1);
    switch (data[0] % 3) {
    case 0:
        kept(data + 1, n - 1);
        break;
    case 1:
        if (edge_run_ask_get(&in, &ask))
            FUZZ_ASSERT(edge_run_ask_put(&out, &ask) == 0 && out.n == n - 1 && memcmp(out.p, data + 1, n - 1) == 0);
        break;
    default:
        if (edge_run_get(&in, &run)) {
            FUZZ_ASSERT(run.gone[0] <= run.bytes[0] && strlen(run.name) <= EDGE_RUN_NAME);
            FUZZ_ASSERT(edge_run_put(&out, &run) == 0 && out.n == n - 1 && memcmp(out.p, data + 1, n - 1) == 0);
        }
    }
    return 0;
}
