/* a line of the audit record: whatever comes, what is taken is valid JSON in one form, and what is made of it is too */
#include "fuzz.h"

#include <string.h>

#include <jansson.h>

#include "audit/chain.h"
#include "audit/filter.h"
#include "audit/ocsf.h"

static void
check_text(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        FUZZ_ASSERT((unsigned char)text.p[i] >= 0x20 && text.p[i] != 0x7f);
}

/* Another parser agrees with what was read. */
static void
check_line(struct str text, const struct audit_line *line)
{
    json_t *o = json_loadb(text.p, text.n, 0, NULL);
    struct str rest = line->metadata;
    struct audit_member m;
    size_t n = 0;
    int64_t ms;

    FUZZ_ASSERT(json_is_object(o));
    FUZZ_ASSERT((uint64_t)json_integer_value(json_object_get(o, "seq")) == line->seq);
    FUZZ_ASSERT(json_is_string(json_object_get(o, "summary")));
    FUZZ_ASSERT((line->sandbox.n > 0) == (json_object_get(o, "sandbox") != NULL));
    FUZZ_ASSERT((line->metadata.n > 0) == json_is_object(json_object_get(o, "metadata")));
    check_text(text);
    while (audit_member_next(&rest, &m)) {
        FUZZ_ASSERT(m.key.n > 0 && m.key.n <= AUDIT_KEY_MAX);
        n++;
    }
    FUZZ_ASSERT(n <= AUDIT_META_MAX && n >= json_object_size(json_object_get(o, "metadata")));
    FUZZ_ASSERT(line->hashed < text.n);
    (void)audit_time_ms(line->timestamp, &ms);
    json_decref(o);
}

static void
check_ocsf(const struct audit_line *line)
{
    cleanup_buf struct buf out = BUF_INIT(8 * AUDIT_LINE_MAX);
    json_t *o;

    FUZZ_ASSERT(audit_ocsf(line, &out) == 0);
    o = json_loadb((const char *)out.p, out.n, 0, NULL);
    FUZZ_ASSERT(json_is_object(o) && json_is_integer(json_object_get(o, "class_uid")));
    FUZZ_ASSERT(json_is_object(json_object_get(o, "metadata")) && json_is_string(json_object_get(o, "message")));
    json_decref(o);
}

/* Text of any bytes is written so that it can be read again. */
static void
check_escape(const uint8_t *data, size_t n)
{
    cleanup_buf struct buf body = BUF_INIT(AUDIT_LINE_MAX), line = BUF_INIT(2 * AUDIT_LINE_MAX);
    struct audit_head head = { .seq = 41 };
    struct audit_entry e;
    struct audit_line parsed;

    audit_capability(&e, "0123456789abcdef", "fuzz", "");
    e.summary = (struct str){ (const char *)data, n };
    e.trace_id = (struct str){ (const char *)data, n / 2 };
    audit_put(&e, "text", e.summary);
    FUZZ_ASSERT(audit_body(&e, NULL, NULL, &body, NULL) == 0);
    memset(head.hash, 7, sizeof(head.hash));
    FUZZ_ASSERT(audit_seal(&head, (struct str){ (const char *)body.p, body.n }, &line) == 0);
    FUZZ_ASSERT(line.p[line.n - 1] == '\n' && memchr(line.p, '\n', line.n) == line.p + line.n - 1);
    FUZZ_ASSERT(audit_parse((struct str){ (const char *)line.p, line.n - 1 }, &parsed));
    FUZZ_ASSERT(audit_hash_holds(&parsed, (struct str){ (const char *)line.p, line.n - 1 }) && parsed.seq == 42);
    FUZZ_ASSERT(parsed.summary.n <= AUDIT_TEXT_MAX);
    check_line((struct str){ (const char *)line.p, line.n - 1 }, &parsed);
    check_ocsf(&parsed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct audit_filter filter = { .host = STR_LIT(".example.org"), .text = STR_LIT("x") };
    struct str text = { (const char *)data, n };
    char bound[AUDIT_TIME_TEXT + 1];
    struct audit_line line;

    if (audit_parse(text, &line)) {
        check_line(text, &line);
        check_ocsf(&line);
        (void)audit_filter_match(&filter, &line);
    }
    if (audit_filter_time(text, bound))
        FUZZ_ASSERT(strlen(bound) >= 7 && strlen(bound) <= AUDIT_TIME_TEXT);
    check_escape(data, n);
    return 0;
}
