/* JSON merge patch: the examples of RFC 7396, appendix A (R47) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/array.h"
#include "front/merge.h"

static void
examples(void **state)
{
    static const struct { const char *target, *patch, *result; } rows[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *patch = json_loads(rows[i].patch, JSON_DECODE_ANY, NULL);
        json_t *before = json_deep_copy(patch), *want = json_loads(rows[i].result, JSON_DECODE_ANY, NULL);
        json_t *got = json_merge_patch(json_loads(rows[i].target, JSON_DECODE_ANY, NULL), patch);
        if (!json_equal(got, want) || !json_equal(patch, before))
            fail_msg("row %zu", i);
        json_decref(patch);
        json_decref(before);
        json_decref(want);
        json_decref(got);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(examples) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
