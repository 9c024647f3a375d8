/* warden/entry: whatever a keeper says for the audit record, what is taken of it comes out as it went in, and is a line
 * of the record that reads as it was said
 *
 * Input: the entry, as in EDGE_NOTED.
 */
#include "fuzz.h"

#include <string.h>

#include "audit/chain.h"
#include "base/cleanup.h"
#include "warden/entry.h"

static void
check_line(const struct audit_entry *e)
{
    cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX), line = BUF_INIT(2 * AUDIT_LINE_MAX);
    struct audit_head head = { .seq = 41 };
    struct audit_line parsed;

    FUZZ_ASSERT(audit_body(e, NULL, NULL, &body, NULL) == 0);
    FUZZ_ASSERT(audit_seal(&head, (struct str){ (const char *)body.p, body.n }, &line) == 0);
    FUZZ_ASSERT(memchr(line.p, '\n', line.n) == line.p + line.n - 1);
    FUZZ_ASSERT(audit_parse((struct str){ (const char *)line.p, line.n - 1 }, &parsed));
    FUZZ_ASSERT(parsed.type == e->type && parsed.severity == e->severity && parsed.seq == 42);
    for (size_t i = 0; i < e->n_meta; i++) {
        struct audit_member m;
        FUZZ_ASSERT(audit_member(&parsed, e->meta[i].key, &m));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf out = BUF_INIT(2 * ENTRY_BYTES_MAX);
    struct wire_in in = wire_in_of(data, n);
    struct audit_entry e;

    if (n > ENTRY_BYTES_MAX || !entry_get(&in, &e) || !wire_done(&in))
        return 0;
    FUZZ_ASSERT(e.type < AUDIT_TYPES && e.severity < AUDIT_SEVERITIES && e.n_meta <= AUDIT_META_MAX);
    FUZZ_ASSERT(e.sandbox.n == 0 && e.trace_id.n == 0 && e.when.tv_sec == 0);
    FUZZ_ASSERT(entry_put(&out, &e) == 0 && out.n == n && memcmp(out.p, data, n) == 0);
    check_line(&e);
    return 0;
}
