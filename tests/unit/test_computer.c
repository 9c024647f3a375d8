/* adapters/computer: whichever words an action comes in, the gate sees one form of it, which does the same */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/computer.h"
#include "base/array.h"

static const struct { const char *sent, *judged; } rows[] = {
    { "{\"type\": \"type\", \"text\": \"x\"}", "{\"action\": \"type\", \"text\": \"x\"}" },
    { "{\"action\": \"move\", \"x\": 1, \"y\": 2}", "{\"action\": \"mouse_move\", \"x\": 1, \"y\": 2}" },
    { "{\"action\": \"mouse_move\", \"coordinate\": [1, 2]}", "{\"action\": \"mouse_move\", \"x\": 1, \"y\": 2}" },
    { "{\"type\": \"keypress\", \"keys\": [\"CTRL\", \"C\"]}", "{\"action\": \"key\", \"text\": \"ctrl+c\"}" },
    { "{\"action\": \"keypress\", \"keys\": \"Control+c,enter\"}", "{\"action\": \"key\", \"text\": \"ctrl+c Return\"}" },
    { "{\"action\": \"key\", \"text\": \"+\"}", "{\"action\": \"key\", \"text\": \"plus\"}" },
    { "{\"action\": \"hold_key\", \"keys\": [\"cmd\"]}", "{\"action\": \"hold_key\", \"text\": \"super\"}" },
    { "{\"type\": \"click\"}", "{\"action\": \"left_click\"}" },
    { "{\"type\": \"click\", \"button\": \"left\"}", "{\"action\": \"left_click\"}" },
    { "{\"type\": \"click\", \"button\": \"right\"}", "{\"action\": \"right_click\"}" },
    { "{\"action\": \"click\", \"button\": \"wheel\"}", "{\"action\": \"middle_click\"}" },
    { "{\"type\": \"click\", \"button\": \"back\"}", "{\"action\": \"back_click\"}" },
    { "{\"type\": \"click\", \"button\": \"forward\", \"keys\": [\"SHIFT\"]}",
      "{\"action\": \"forward_click\", \"text\": \"shift\"}" },
    { "{\"type\": \"drag\", \"path\": [[1, 1], [2, 2]]}", "{\"action\": \"left_click_drag\", \"path\": [[1, 1], [2, 2]]}" },
    { "{\"action\": \"clipboard_set\", \"text\": \"a, b\"}", "{\"action\": \"clipboard_set\", \"text\": \"a, b\"}" },
};

static void
one_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_t *sent = json_loads(rows[i].sent, 0, NULL), *judged = json_deep_copy(sent);
        json_t *expected = json_loads(rows[i].judged, 0, NULL);
        struct computer a, b;
        assert_non_null(expected);
        computer_settle(judged);
        if (!json_equal(judged, expected))
            fail_msg("%s: %s", rows[i].sent, json_dumps(judged, 0));
        assert_null(computer_read(sent, &a));
        assert_null(computer_read(judged, &b));
        assert_string_equal(a.name, json_string_value(json_object_get(judged, "action")));
        assert_int_equal(a.kind, b.kind);
        assert_int_equal(a.words.n, b.words.n);
        if (a.words.n > 0)
            assert_memory_equal(a.words.p, b.words.p, a.words.n);
        computer_settle(judged);
        assert_true(json_equal(judged, expected));
        computer_free(&a);
        computer_free(&b);
        json_decref(sent);
        json_decref(judged);
        json_decref(expected);
    }
}

static void
none_that_can_be_done(void **state)
{
    static const char *const wrong[] = {
        "{\"action\": \"screenshot\", \"type\": \"type\", \"text\": \"x\"}",
        "{\"action\": null, \"type\": \"type\", \"text\": \"x\"}",
        "{\"action\": \"TYPE\", \"text\": \"x\"}", "{\"actions\": [{\"action\": \"type\", \"text\": \"x\"}]}",
        "{\"action\": \" type\", \"text\": \"x\"}",
        "{\"type\": \"click\", \"button\": \"Right\"}", "{\"type\": \"click\", \"button\": 1}", "{\"action\": 1}", "[]",
        "{\"action\": \"key\", \"text\": \"a\", \"keys\": [\"b\"]}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        json_t *sent = json_loads(wrong[i], 0, NULL);
        struct computer c;
        computer_settle(sent);
        if (computer_read(sent, &c) == NULL)
            fail_msg("%s", wrong[i]);
        computer_free(&c);
        json_decref(sent);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_form), cmocka_unit_test(none_that_can_be_done) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
