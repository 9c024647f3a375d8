/* warden/health: who is late with an answer, and who is not */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "warden/warden.h"

static unsigned asked, woken, shot;

/* --- what else is in the warden ----------------------------------------------------------------------------------- */

void
warden_note(struct warden *w, const struct box *box, const char *type, const char *fmt, ...)
{
    (void)w;
    (void)box;
    (void)type;
    (void)fmt;
}

void
box_state(struct box *b, enum box_state state, const char *detail)
{
    (void)detail;
    b->r.state = state;
}

uint64_t
time_steady(const struct warden *w)
{
    (void)w;
    return 0;
}

bool
recovery_life_is_over(const struct box *b)
{
    (void)b;
    return false;
}

void
box_stop(struct box *b, const char *why)
{
    (void)b;
    (void)why;
}

void
box_say_short(struct box *b, uint8_t type)
{
    (void)b;
    asked += type == EDGE_CHECK;
}

void
recovery_turn(struct box *b, uint64_t now)
{
    (void)b;
    (void)now;
}

void
reattach_turn(struct warden *w)
{
    (void)w;
}

int
launcher_say(struct warden *w, uint8_t type, const char *id)
{
    (void)w;
    (void)id;
    woken += type == EDGE_KEEPER_LATE;
    shot += type == EDGE_SHOOT;
    return 0;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static struct warden w;
static struct box b;

static int
setup(void **state)
{
    (void)state;
    asked = woken = shot = 0;
    w = (struct warden){ .boxes = &b };
    b = (struct box){ .w = &w, .edge = { .fd = 0 }, .r = { .state = BOX_READY } };
    return 0;
}

/* A round that comes so late that everything is due. */
static void
late_round(void)
{
    w.look_ms = w.boxes_ms = b.check_ms = 0;
    boxes_turn(&w);
}

/* A machine so busy that the warden's rounds are seconds apart: each asks, and the answer is heard in the next one. */
static void
slow_rounds(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 4 * WARDEN_HUNG; i++) {
        late_round();
        assert_int_equal(asked, i);
        b.asked_ms = 0;
    }
    assert_int_equal(woken + shot, 0);
}

static void
no_answer(void **state)
{
    (void)state;
    late_round();
    for (unsigned i = 1; i < WARDEN_HUNG; i++)
        late_round();
    assert_int_equal(asked, 1);
    assert_true(woken > 0);
    assert_int_equal(shot, 0);
    for (unsigned i = 0; i < 10; i++)
        late_round();
    assert_int_equal(shot, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(slow_rounds, setup),
        cmocka_unit_test_setup(no_answer, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
