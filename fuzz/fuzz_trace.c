/* front/trace: what is taken for a traceparent says the same again when it is written, and is none of what the
 * recommendation forbids
 *
 * Input: the header's value. */
#include "fuzz.h"

#include <string.h>

#include "front/trace.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct trace t, again;
    char text[TRACE_TEXT + 1];

    if (!trace_parse((struct str){ (const char *)data, n }, &t))
        return 0;
    FUZZ_ASSERT(n >= TRACE_TEXT && (n == TRACE_TEXT || memcmp(data, "00", 2) != 0) && memcmp(data, "ff", 2) != 0);
    FUZZ_ASSERT(strspn(t.id, "0123456789abcdef") == TRACE_ID && strspn(t.id, "0") < TRACE_ID);
    FUZZ_ASSERT(strspn(t.span, "0123456789abcdef") == TRACE_SPAN && strspn(t.span, "0") < TRACE_SPAN);
    trace_print(&t, text);
    FUZZ_ASSERT(strlen(text) == TRACE_TEXT && memcmp(text + 3, data + 3, 49) == 0);
    FUZZ_ASSERT(trace_parse(str_of(text), &again) && memcmp(&t.sampled, &again.sampled, sizeof(bool)) == 0);
    FUZZ_ASSERT(strcmp(t.id, again.id) == 0 && strcmp(t.span, again.span) == 0);
    return 0;
}
