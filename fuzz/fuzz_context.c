/* keeper/context_scan and wire/rich: whatever a context's process writes, output is what it wrote, however it comes in
 * pieces; and of results nothing but bounded text is told
 *
 * Input: the first byte chooses. Of a stream, "\2" stands for the mark of its call.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "keeper/context_scan.h"
#include "wire/rich.h"

#define DIGITS "0123456789abcdef0123456789abcdef"

static void
scan(const uint8_t *p, size_t n, size_t step, struct buf *out)
{
    struct context_scan s;
    bool broken = false;

    context_scan_begin(&s, DIGITS);
    for (size_t at = 0; at < n; at += step) {
        const uint8_t *piece_of = p + at;
        size_t left = n - at < step ? n - at : step;
        struct scan_piece piece;
        while ((piece = context_scan_next(&s, &piece_of, &left)).kind != SCAN_NONE) {
            FUZZ_ASSERT(!broken);
            broken = piece.kind == SCAN_BROKEN;
            buf_put_u8(out, piece.kind == SCAN_OUTPUT ? 'o' : piece.kind == SCAN_RESULT ? 'r' : 'e');
            if (piece.kind == SCAN_OUTPUT || piece.kind == SCAN_RESULT) {
                out->n--;       /* pieces are cut anywhere: what counts is their bytes */
                buf_append(out, piece.p, piece.n);
            }
            if (piece.kind == SCAN_RESULT && piece.last)
                buf_puts(out, "<last>");
        }
        FUZZ_ASSERT(left == 0);
    }
}

static void
streams(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf in = BUF_INIT(1 << 20), whole = BUF_INIT(1 << 22), bytes = BUF_INIT(1 << 22);

    for (size_t i = 0; i < n && i < 16384; i++) {
        if (data[i] == 2)
            buf_append(&in, "\1" DIGITS, CONTEXT_MARK);
        else
            buf_put_u8(&in, data[i]);
    }
    scan(in.p, in.n, in.n + 1, &whole);
    scan(in.p, in.n, 1, &bytes);
    FUZZ_ASSERT(whole.n == bytes.n && (whole.n == 0 || memcmp(whole.p, bytes.p, whole.n) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rich r = { .lost = false };
    size_t values = 0;
    json_t *answer;

    if (n == 0)
        return 0;
    if (data[0] % 2 == 0) {
        streams(data + 1, n - 1);
        return 0;
    }
    for (size_t at = 1; at < n; at += 64)
        (void)rich_add(&r, data + at, n - at < 64 ? n - at : 64, (data[at] & 64) != 0 || n - at <= 64, true);
    answer = rich_read(data + 1, n - 1, &values);
    FUZZ_ASSERT(values <= RICH_VALUES + 1);
    if (answer != NULL) {
        cleanup_free char *text = json_dumps(answer, JSON_COMPACT);
        FUZZ_ASSERT(text != NULL);
        FUZZ_ASSERT((json_object_get(answer, "name") != NULL) != (json_object_get(answer, "main") != NULL));
    }
    json_decref(answer);
    answer = json_object();
    rich_put(&r, answer);
    FUZZ_ASSERT(json_array_size(json_object_get(answer, "results")) <= RICH_RESULTS);
    json_decref(answer);
    rich_free(&r);
    return 0;
}
