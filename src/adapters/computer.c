/* adapters/computer.c: see computer.h */
#include "adapters/computer.h"

#include <string.h>

#include "adapters/computer_keys.h"
#include "adapters/desktop_data.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "match/computer_name.h"
#include "wire/json_text.h"

#define POINTS_MAX  64          /* of a path */
#define REPEAT_MAX  100
#define SECONDS_MAX 300
#define WAIT_MS     2000        /* without a duration */
#define STEP_PIXELS 100         /* of one click of a wheel */

struct row;
typedef const char *reader(const json_t *a, const struct row *row, struct computer *c);

struct row {
    const char *name;
    enum computer_kind kind;
    reader *read;
    unsigned button, times;
    bool keys;                  /* it is of keys */
    bool holds;                 /* keys may be held while it is done */
    bool at;                    /* where is a coordinate, or x and y */
};

static reader read_nothing, read_zoom, read_wait, read_move, read_click, read_button, read_drag, read_scroll, read_key,
              read_hold, read_text;

static const struct row rows[] = {
    { "screenshot", COMPUTER_SCREENSHOT, read_nothing },
    { "zoom", COMPUTER_SCREENSHOT, read_zoom },
    { "windows", COMPUTER_WINDOWS, read_nothing },
    { "cursor_position", COMPUTER_WHERE, read_nothing },
    { "wait", COMPUTER_INPUT, read_wait },
    { "mouse_move", COMPUTER_INPUT, read_move, .at = true },
    { "left_click", COMPUTER_INPUT, read_click, 1, 1, .holds = true, .at = true },
    { "middle_click", COMPUTER_INPUT, read_click, 2, 1, .holds = true, .at = true },
    { "right_click", COMPUTER_INPUT, read_click, 3, 1, .holds = true, .at = true },
    { "back_click", COMPUTER_INPUT, read_click, 8, 1, .holds = true, .at = true },
    { "forward_click", COMPUTER_INPUT, read_click, 9, 1, .holds = true, .at = true },
    { "double_click", COMPUTER_INPUT, read_click, 1, 2, .holds = true, .at = true },
    { "triple_click", COMPUTER_INPUT, read_click, 1, 3, .holds = true, .at = true },
    { "left_mouse_down", COMPUTER_INPUT, read_button, .times = 1, .at = true },
    { "left_mouse_up", COMPUTER_INPUT, read_button, .at = true },
    { "left_click_drag", COMPUTER_INPUT, read_drag, .holds = true, .at = true },
    { "scroll", COMPUTER_INPUT, read_scroll, .holds = true, .at = true },
    { "key", COMPUTER_INPUT, read_key, .keys = true },
    { "hold_key", COMPUTER_INPUT, read_hold, .keys = true },
    { "type", COMPUTER_TYPE, read_text },
    { "clipboard_get", COMPUTER_CLIP_GET, read_nothing },
    { "clipboard_set", COMPUTER_CLIP_SET, read_text },
};

/* --- words -------------------------------------------------------------------------------------------------------- */

static void
words(struct computer *c, const char *const list[])
{
    for (; *list != NULL; list++)
        computer_word(c, "%s", *list);
}
#define WORDS(c, ...) words(c, (const char *const[]){ __VA_ARGS__, NULL })

static const char not_keys[] = "keys are named as X names them, with + between those of one press (ctrl+c, Return)";

/* --- where -------------------------------------------------------------------------------------------------------- */

static bool
pixel(const json_t *v, uint32_t *out)
{
    json_int_t n = json_integer_value(v);

    *out = (uint32_t)n;
    return json_is_integer(v) && n >= 0 && n <= DESKTOP_PIXELS_MAX;
}

static const char not_point[] = "a position is [x, y], or x and y: integers from 0 to 16384";

/* [x, y], or an object's x and y. */
static bool
point(const json_t *v, uint32_t out[2])
{
    if (json_is_object(v))
        return pixel(json_object_get(v, "x"), &out[0]) && pixel(json_object_get(v, "y"), &out[1]);
    return json_array_size(v) == 2 && pixel(json_array_get(v, 0), &out[0]) && pixel(json_array_get(v, 1), &out[1]);
}

static void
go_to(struct computer *c, const uint32_t at[2])
{
    computer_word(c, "mousemove");
    computer_word(c, "%u", at[0]);
    computer_word(c, "%u", at[1]);
}

/* Moves there; where none is named, and need not be, it stays. */
static const char *
position(const json_t *a, struct computer *c, bool must)
{
    const json_t *v = json_object_get(a, "coordinate");
    bool xy = json_object_get(a, "x") != NULL || json_object_get(a, "y") != NULL;
    uint32_t at[2];

    if (v == NULL && !xy)
        return must ? not_point : NULL;
    if ((v != NULL && xy) || !point(v != NULL ? v : a, at))
        return not_point;
    go_to(c, at);
    return NULL;
}

/* A number of seconds. */
static bool
seconds(const json_t *a, json_int_t otherwise, uint64_t *ms)
{
    const json_t *v = json_object_get(a, "duration");
    double n = v != NULL ? json_number_value(v) : (double)otherwise / 1000;

    if ((v != NULL && !json_is_number(v)) || !(n >= 0 && n <= SECONDS_MAX))
        return false;
    *ms = (uint64_t)(n * 1000);
    return true;
}

static void
rest(struct computer *c, uint64_t ms)
{
    computer_word(c, "sleep");
    computer_word(c, "%u.%03u", (unsigned)(ms / 1000), (unsigned)(ms % 1000));
    c->ms += ms;
}

/* --- the actions -------------------------------------------------------------------------------------------------- */

static const char *
read_nothing(const json_t *a, const struct row *row, struct computer *c)
{
    (void)a;
    (void)row;
    (void)c;
    return NULL;
}

/* Two corners. */
static const char *
read_zoom(const json_t *a, const struct row *row, struct computer *c)
{
    const json_t *v = json_object_get(a, "region");
    uint32_t at[4];

    (void)row;
    for (size_t i = 0; i < 4; i++)
        if (json_array_size(v) != 4 || !pixel(json_array_get(v, i), &at[i]))
            return "region is [x0, y0, x1, y1]: integers from 0 to 16384";
    if (at[2] <= at[0] || at[3] <= at[1])
        return "region has its upper left corner first: [x0, y0, x1, y1]";
    c->has_region = true;
    memcpy(c->region, (uint32_t[]){ at[0], at[1], at[2] - at[0], at[3] - at[1] }, sizeof(c->region));
    return NULL;
}

static const char *
read_wait(const json_t *a, const struct row *row, struct computer *c)
{
    uint64_t ms;

    (void)row;
    if (!seconds(a, WAIT_MS, &ms))
        return "duration is a number of seconds from 0 to 300";
    rest(c, ms);
    return NULL;
}

static const char *
read_move(const json_t *a, const struct row *row, struct computer *c)
{
    (void)row;
    return position(a, c, true);
}

/* Keys that are named go down, and are in @c's words from @*begin on: how many, as computer_keys() has it. */
static int
press(const json_t *a, struct computer *c, size_t *begin)
{
    computer_word(c, "keydown");
    *begin = c->words.n;
    return computer_keys(a, c);
}

/* ... and up again, which are one word. */
static void
release(struct computer *c, size_t begin)
{
    computer_word(c, "keyup");
    computer_word(c, "%s", (const char *)c->words.p + begin);
}

/* What @row does, while keys that are named are held. */
static const char *
hold(const json_t *a, const struct row *row, struct computer *c)
{
    size_t begin;
    const char *wrong;
    int held = press(a, c, &begin);

    if (held < 0 || (held > 0 && c->n_words != 2))
        return not_keys;
    if (held == 0) {
        c->words.n = c->n_words = 0;
        return row->read(a, row, c);
    }
    wrong = row->read(a, row, c);
    release(c, begin);
    return wrong;
}

static const char *
read_click(const json_t *a, const struct row *row, struct computer *c)
{
    const char *wrong = position(a, c, false);

    WORDS(c, "click", "--repeat");
    computer_word(c, "%u", row->times);
    WORDS(c, "--delay", "80");
    computer_word(c, "%u", row->button);
    return wrong;
}

static const char *
read_button(const json_t *a, const struct row *row, struct computer *c)
{
    const char *wrong = position(a, c, false);

    WORDS(c, row->times > 0 ? "mousedown" : "mouseup", "1");
    return wrong;
}

/* From where it begins, or where the pointer is, to where it ends; or along a path. */
static const char *
read_drag(const json_t *a, const struct row *row, struct computer *c)
{
    const json_t *path = json_object_get(a, "path"), *from = json_object_get(a, "start_coordinate");
    size_t n = json_array_size(path);
    uint32_t at[2];

    (void)row;
    if (path != NULL && (n < 2 || n > POINTS_MAX || from != NULL || json_object_get(a, "coordinate") != NULL))
        return "path is a list of 2 to 64 positions, alone";
    if (path != NULL)
        from = json_array_get(path, 0);
    if (from != NULL && !point(from, at))
        return not_point;
    if (from != NULL)
        go_to(c, at);
    WORDS(c, "mousedown", "1");
    rest(c, 50);        /* programs see that something is dragged */
    if (path == NULL) {
        const char *wrong = position(a, c, true);
        if (wrong != NULL)
            return wrong;
    }
    for (size_t i = 1; i < n; i++) {
        if (!point(json_array_get(path, i), at))
            return not_point;
        go_to(c, at);
    }
    rest(c, 50);
    WORDS(c, "mouseup", "1");
    return NULL;
}

static const char not_scroll[] =
    "scroll_direction is up, down, left or right, scroll_amount 0 to 100; or scroll_x and scroll_y are pixels";

static void
turn(struct computer *c, json_int_t n, const char *button)
{
    if (n == 0)
        return;
    WORDS(c, "click", "--repeat");
    computer_word(c, "%lld", (long long)(n < REPEAT_MAX ? n : REPEAT_MAX));
    WORDS(c, "--delay", "10", button);
}

static json_int_t
steps(json_int_t pixels)
{
    json_int_t n = pixels < 0 ? -(pixels / STEP_PIXELS) : pixels / STEP_PIXELS;

    return n + (pixels % STEP_PIXELS != 0 ? 1 : 0);
}

static const char *
read_scroll(const json_t *a, const struct row *row, struct computer *c)
{
    static const char *const ways[][2] = { { "up", "4" }, { "down", "5" }, { "left", "6" }, { "right", "7" } };
    const json_t *way = json_object_get(a, "scroll_direction"), *amount = json_object_get(a, "scroll_amount");
    const json_t *x = json_object_get(a, "scroll_x"), *y = json_object_get(a, "scroll_y");
    json_int_t n = amount != NULL ? json_integer_value(amount) : 3;
    const char *wrong = position(a, c, false);

    (void)row;
    if (wrong != NULL || (way != NULL) == (x != NULL || y != NULL) || (amount != NULL && !json_is_integer(amount)) ||
        n < 0 || n > REPEAT_MAX || (x != NULL && !json_is_integer(x)) || (y != NULL && !json_is_integer(y)))
        return wrong != NULL ? wrong : not_scroll;
    if (way == NULL) {
        turn(c, steps(json_integer_value(y)), json_integer_value(y) < 0 ? "4" : "5");
        turn(c, steps(json_integer_value(x)), json_integer_value(x) < 0 ? "6" : "7");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (json_is_string(way) && strcmp(json_string_value(way), ways[i][0]) == 0) {
            turn(c, n, ways[i][1]);
            return NULL;
        }
    }
    return not_scroll;
}

static const char *
read_key(const json_t *a, const struct row *row, struct computer *c)
{
    const json_t *repeat = json_object_get(a, "repeat");
    json_int_t n = repeat != NULL ? json_integer_value(repeat) : 1;

    (void)row;
    if ((repeat != NULL && !json_is_integer(repeat)) || n < 1 || n > REPEAT_MAX)
        return "repeat is an integer from 1 to 100";
    WORDS(c, "key", "--repeat");
    computer_word(c, "%lld", (long long)n);
    computer_word(c, "--");
    return computer_keys(a, c) > 0 ? NULL : not_keys;
}

static const char *
read_hold(const json_t *a, const struct row *row, struct computer *c)
{
    size_t begin;
    uint64_t ms;

    (void)row;
    if (!seconds(a, WAIT_MS, &ms))
        return "duration is a number of seconds from 0 to 300";
    if (press(a, c, &begin) <= 0 || c->n_words != 2)
        return not_keys;
    rest(c, ms);
    release(c, begin);
    return NULL;
}

static const char *
read_text(const json_t *a, const struct row *row, struct computer *c)
{
    const json_t *text = json_object_get(a, "text");

    c->text = json_cstr(text);
    if (c->text == NULL || c->text[0] == '\0')
        return "text is a text that is not empty and has no NUL";
    if (row->kind == COMPUTER_TYPE && computer_length(str_of(c->text)) > COMPUTER_TEXT_MAX)
        return "text has at most 4096 characters";
    return json_string_length(text) > COMPUTER_CLIP_MAX ? "text has at most 65536 bytes" : NULL;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const struct row *
row_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* The row of @action, by either name. NULL: @wrong. */
static const struct row *
row_of_action(const json_t *action, const char **wrong)
{
    const json_t *name = json_object_get(action, "action"), *type = json_object_get(action, "type");
    const json_t *button = json_object_get(action, "button");
    const char *called = json_string_value(name != NULL ? name : type), *known = NULL;
    const struct row *row;

    if (called != NULL)     /* no button is called "" */
        known = computer_name(called, button != NULL && !json_is_string(button) ? "" : json_string_value(button));
    row = row_of(known);
    *wrong = name != NULL && type != NULL ? "an action has one name: action, or type"
             : called != NULL && known == NULL ? "button is left, middle, wheel, right, back or forward"
             : row == NULL ? "there is no such action" : NULL;
    return *wrong == NULL ? row : NULL;
}

/* Presses as the readers put them, without the pluses behind them, and blanks between: one text for each way to say
 * them. */
static void
settle_keys(json_t *action)
{
    struct computer c = { .words = BUF_INIT(COMPUTER_BYTES_MAX) };
    const char *at;

    if (computer_keys(action, &c) > 0 && buf_ok(&c.words)) {
        cleanup_buf struct buf text = BUF_INIT(COMPUTER_BYTES_MAX);
        at = (const char *)c.words.p;
        for (size_t i = 0; i < c.n_words; i++, at += strlen(at) + 1)
            (void)buf_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)strlen(at) - 1, at);
        if (buf_ok(&text) && json_object_set_new(action, "text", json_stringn((const char *)text.p, text.n)) == 0)
            (void)json_object_del(action, "keys");
    }
    buf_free(&c.words);
}

static void
settle_position(json_t *action)
{
    uint32_t at[2];

    if (!json_is_array(json_object_get(action, "coordinate")) || json_object_get(action, "x") != NULL ||
        json_object_get(action, "y") != NULL || !point(json_object_get(action, "coordinate"), at))
        return;
    if (json_object_set_new(action, "x", json_integer(at[0])) == 0 &&
        json_object_set_new(action, "y", json_integer(at[1])) == 0)
        (void)json_object_del(action, "coordinate");
}

void
computer_settle(json_t *action)
{
    const char *wrong, *called = json_string_value(json_object_get(action, "action"));
    const struct row *row = row_of_action(action, &wrong);
    bool by_button;

    if (row == NULL)
        return;
    called = called != NULL ? called : json_string_value(json_object_get(action, "type"));
    by_button = strcmp(called, row->name) != 0 && row->read == read_click;
    (void)json_object_set_new(action, "action", json_string(row->name));
    (void)json_object_del(action, "type");
    if (by_button)
        (void)json_object_del(action, "button");
    if (row->keys || row->holds)
        settle_keys(action);
    if (row->at)
        settle_position(action);
}

const char *
computer_read(const json_t *action, struct computer *c)
{
    const char *wrong;
    const struct row *row = row_of_action(action, &wrong);

    *c = (struct computer){ .words = BUF_INIT(COMPUTER_BYTES_MAX) };
    if (row == NULL)
        return wrong;
    c->kind = row->kind;
    c->name = row->name;
    wrong = row->holds ? hold(action, row, c) : row->read(action, row, c);
    return wrong == NULL && !buf_ok(&c->words) ? "it is too long" : wrong;
}

void
computer_free(struct computer *c)
{
    buf_free(&c->words);
}

bool
computer_where(const uint8_t *p, size_t n, uint32_t *x, uint32_t *y)
{
    uint32_t *const out[] = { x, y };
    size_t at = 0;

    for (size_t i = 0; i < 2; i++) {
        if (n - at < 3 || p[at] != (i == 0 ? 'x' : 'y') || p[at + 1] != ':' || p[at + 2] < '0' || p[at + 2] > '9')
            return false;
        *out[i] = 0;
        for (at += 2; at < n && p[at] >= '0' && p[at] <= '9'; at++)
            if ((*out[i] = *out[i] * 10 + (uint32_t)(p[at] - '0')) > DESKTOP_PIXELS_MAX)
                return false;
        if (at == n || p[at++] != ' ')
            return false;
    }
    return true;
}

size_t
computer_length(struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xc0) == 0x80 ? 0 : (unsigned char)text.p[i] >= 0xf0 ? 2 : 1;
    return n;
}
