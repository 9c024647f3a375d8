/* adapters/computer.c: see computer.h */
#include "adapters/computer.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "adapters/desktop_data.h"
#include "base/array.h"
#include "base/str.h"

#define POINTS_MAX  64          /* of a path */
#define KEYS_MAX    64          /* presses, and keys of one */
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
    bool sees;
};

static reader read_nothing, read_zoom, read_wait, read_move, read_click, read_button, read_drag, read_scroll, read_key,
              read_hold, read_text;

static const struct row rows[] = {
    { "screenshot", COMPUTER_SCREENSHOT, read_nothing, .sees = true },
    { "zoom", COMPUTER_SCREENSHOT, read_zoom, .sees = true },
    { "windows", COMPUTER_WINDOWS, read_nothing, .sees = true },
    { "cursor_position", COMPUTER_WHERE, read_nothing, .sees = true },
    { "wait", COMPUTER_INPUT, read_wait, .sees = true },
    { "mouse_move", COMPUTER_INPUT, read_move },
    { "move", COMPUTER_INPUT, read_move },
    { "click", COMPUTER_INPUT, read_click, 0, 1 },
    { "left_click", COMPUTER_INPUT, read_click, 1, 1 },
    { "middle_click", COMPUTER_INPUT, read_click, 2, 1 },
    { "right_click", COMPUTER_INPUT, read_click, 3, 1 },
    { "double_click", COMPUTER_INPUT, read_click, 1, 2 },
    { "triple_click", COMPUTER_INPUT, read_click, 1, 3 },
    { "left_mouse_down", COMPUTER_INPUT, read_button, .times = 1 },
    { "left_mouse_up", COMPUTER_INPUT, read_button },
    { "left_click_drag", COMPUTER_INPUT, read_drag },
    { "drag", COMPUTER_INPUT, read_drag },
    { "scroll", COMPUTER_INPUT, read_scroll },
    { "key", COMPUTER_KEYS, read_key },
    { "keypress", COMPUTER_KEYS, read_key },
    { "hold_key", COMPUTER_KEYS, read_hold },
    { "type", COMPUTER_TYPE, read_text },
    { "clipboard_get", COMPUTER_CLIP_GET, read_nothing, .sees = true },
    { "clipboard_set", COMPUTER_CLIP_SET, read_text },
};

/* --- words -------------------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
word(struct computer *c, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(text) || c->n_words == COMPUTER_WORDS_MAX)
        c->words.broken = true;
    else if (buf_append(&c->words, text, (size_t)n + 1) == 0)
        c->n_words++;
}

static void
words(struct computer *c, const char *const list[])
{
    for (; *list != NULL; list++)
        word(c, "%s", *list);
}
#define WORDS(c, ...) words(c, (const char *const[]){ __VA_ARGS__, NULL })

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* As OpenAI's models and keyboards name them, and X. Of characters that are a key by themselves X has names only. */
static const char *const names[][2] = {
    { "alt", "alt" }, { "arrowdown", "Down" }, { "arrowleft", "Left" }, { "arrowright", "Right" }, { "arrowup", "Up" },
    { "backspace", "BackSpace" }, { "capslock", "Caps_Lock" }, { "cmd", "super" }, { "command", "super" },
    { "control", "ctrl" }, { "ctrl", "ctrl" }, { "del", "Delete" }, { "delete", "Delete" }, { "down", "Down" },
    { "end", "End" }, { "enter", "Return" }, { "esc", "Escape" }, { "escape", "Escape" }, { "home", "Home" },
    { "insert", "Insert" }, { "left", "Left" }, { "meta", "super" }, { "option", "alt" }, { "pagedown", "Page_Down" },
    { "pageup", "Page_Up" }, { "return", "Return" }, { "right", "Right" }, { "shift", "shift" }, { "space", "space" },
    { "super", "super" }, { "tab", "Tab" }, { "up", "Up" }, { "win", "super" },
    { " ", "space" }, { "!", "exclam" }, { "\"", "quotedbl" }, { "#", "numbersign" }, { "$", "dollar" },
    { "%", "percent" }, { "&", "ampersand" }, { "'", "apostrophe" }, { "(", "parenleft" }, { ")", "parenright" },
    { "*", "asterisk" }, { "+", "plus" }, { ",", "comma" }, { "-", "minus" }, { ".", "period" }, { "/", "slash" },
    { ":", "colon" }, { ";", "semicolon" }, { "<", "less" }, { "=", "equal" }, { ">", "greater" }, { "?", "question" },
    { "@", "at" }, { "[", "bracketleft" }, { "\\", "backslash" }, { "]", "bracketright" }, { "^", "asciicircum" },
    { "_", "underscore" }, { "`", "grave" }, { "{", "braceleft" }, { "|", "bar" }, { "}", "braceright" },
    { "~", "asciitilde" },
};

static bool
key_put(struct buf *out, struct str key)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i][0]) == key.n && strncasecmp(names[i][0], key.p, key.n) == 0)
            return buf_printf(out, "%s+", names[i][1]) == 0;
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return key.n > 0 && buf_append(out, key.p, key.n) == 0 && buf_put_u8(out, '+') == 0;
}

static const char not_keys[] = "keys are named as X names them, with + between those of one press (ctrl+c, Return)";

/* "ctrl+c" into words as "ctrl+c+": xdotool takes a word that is called like one of its commands ("exec") for that,
 * and none ends in a plus, which adds no key. */
static bool
chord(struct computer *c, struct str text)
{
    uint8_t room[256];
    cleanup_buf struct buf out = BUF_INIT_IN(room, sizeof(room));

    if (text.n == 1 && text.p[0] == '+') {
        word(c, "plus+");
        return true;
    }
    for (size_t i = 0, n; i < text.n; i += n + 1) {
        const char *plus = memchr(text.p + i, '+', text.n - i);
        n = (plus != NULL ? (size_t)(plus - text.p) : text.n) - i;
        if (!key_put(&out, (struct str){ text.p + i, n }))
            return false;
    }
    word(c, "%.*s", (int)out.n, (const char *)out.p);
    return out.n > 0;
}

/* Presses with blanks or commas between them. Their number, 0: none, or wrong. */
static size_t
chords(struct computer *c, const char *text)
{
    size_t count = 0;

    if (strcmp(text, ",") == 0 || strcmp(text, " ") == 0)
        return chord(c, str_of(text)) ? 1 : 0;
    for (size_t n; *text != '\0'; text += n) {
        n = strcspn(text, ", ");
        if (n > 0 && (count++ == KEYS_MAX || !chord(c, (struct str){ text, n })))
            return 0;
        n += n == 0 ? 1 : 0;
    }
    return count;
}

/* A list of keys that are pressed together. */
static bool
together(struct computer *c, const json_t *keys)
{
    uint8_t room[256];
    cleanup_buf struct buf out = BUF_INIT_IN(room, sizeof(room));
    size_t n = json_array_size(keys);

    if (n == 0 || n > KEYS_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *key = json_array_get(keys, i);
        struct str s = { json_string_value(key), json_string_length(key) };
        char small = s.n == 1 && s.p[0] >= 'A' && s.p[0] <= 'Z' ? (char)(s.p[0] | 0x20) : 0;    /* "C" is the key */
        if (s.p == NULL || !key_put(&out, small != 0 ? (struct str){ &small, 1 } : s))
            return false;
    }
    word(c, "%.*s", (int)out.n, (const char *)out.p);
    return true;
}

/* The keys of @a: {"keys": [...]} or {"text": "ctrl+c"}, {"keys": "ctrl+c"}. -1 wrong, 0 none. */
static int
keys_of(const json_t *a, struct computer *c)
{
    const json_t *keys = json_object_get(a, "keys"), *text = json_object_get(a, "text");

    if (keys != NULL && text != NULL)
        return -1;
    if (json_is_array(keys))
        return json_array_size(keys) == 0 ? 0 : together(c, keys) ? 1 : -1;
    text = text != NULL ? text : keys;
    if (text == NULL)
        return 0;
    return json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text) &&
           chords(c, json_string_value(text)) > 0 ? 1 : -1;
}

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
    word(c, "mousemove");
    word(c, "%u", at[0]);
    word(c, "%u", at[1]);
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
    word(c, "sleep");
    word(c, "%u.%03u", (unsigned)(ms / 1000), (unsigned)(ms % 1000));
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

/* While keys that are named are held, where they may be. @act adds what is done. */
static const char *
holding(const json_t *a, struct computer *c, reader *act, const struct row *row)
{
    size_t begin, end;
    const char *wrong;
    int held;

    word(c, "keydown");
    begin = c->words.n;
    held = keys_of(a, c);
    end = c->words.n;
    if (held < 0 || (held > 0 && c->n_words != 2))
        return not_keys;
    if (held == 0) {
        c->words.n = c->n_words = 0;
        return act(a, row, c);
    }
    wrong = act(a, row, c);
    word(c, "keyup");
    if (wrong == NULL && buf_ok(&c->words) && buf_reserve(&c->words, end - begin) == 0)
        word(c, "%s", (const char *)c->words.p + begin);
    return wrong;
}

static const char *
clicks(const json_t *a, const struct row *row, struct computer *c)
{
    static const struct { const char *name; unsigned number; } buttons[] = {
        { "left", 1 }, { "middle", 2 }, { "wheel", 2 }, { "right", 3 }, { "back", 8 }, { "forward", 9 },
    };
    const json_t *named = row->button == 0 ? json_object_get(a, "button") : NULL;
    const char *wrong = position(a, c, false);
    unsigned button = row->button != 0 ? row->button : 1;
    size_t i = 0;

    while (named != NULL && i < ARRAY_LEN(buttons) &&
           (!json_is_string(named) || strcmp(json_string_value(named), buttons[i].name) != 0))
        i++;
    if (i == ARRAY_LEN(buttons))
        return "button is left, middle, wheel, right, back or forward";
    if (named != NULL)
        button = buttons[i].number;
    WORDS(c, "click", "--repeat");
    word(c, "%u", row->times);
    WORDS(c, "--delay", "80");
    word(c, "%u", button);
    return wrong;
}

static const char *
read_click(const json_t *a, const struct row *row, struct computer *c)
{
    return holding(a, c, clicks, row);
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
drags(const json_t *a, const struct row *row, struct computer *c)
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

static const char *
read_drag(const json_t *a, const struct row *row, struct computer *c)
{
    return holding(a, c, drags, row);
}

static const char not_scroll[] =
    "scroll_direction is up, down, left or right, scroll_amount 0 to 100; or scroll_x and scroll_y are pixels";

static void
turn(struct computer *c, json_int_t n, const char *button)
{
    if (n == 0)
        return;
    WORDS(c, "click", "--repeat");
    word(c, "%lld", (long long)(n < REPEAT_MAX ? n : REPEAT_MAX));
    WORDS(c, "--delay", "10", button);
}

static json_int_t
steps(json_int_t pixels)
{
    json_int_t n = pixels < 0 ? -(pixels / STEP_PIXELS) : pixels / STEP_PIXELS;

    return n + (pixels % STEP_PIXELS != 0 ? 1 : 0);
}

static const char *
scrolls(const json_t *a, const struct row *row, struct computer *c)
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
read_scroll(const json_t *a, const struct row *row, struct computer *c)
{
    return holding(a, c, scrolls, row);
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
    word(c, "%lld", (long long)n);
    word(c, "--");
    return keys_of(a, c) > 0 ? NULL : not_keys;
}

static const char *
read_hold(const json_t *a, const struct row *row, struct computer *c)
{
    size_t begin;
    uint64_t ms;

    (void)row;
    if (!seconds(a, WAIT_MS, &ms))
        return "duration is a number of seconds from 0 to 300";
    word(c, "keydown");
    begin = c->words.n;
    if (keys_of(a, c) <= 0 || c->n_words != 2)
        return not_keys;
    rest(c, ms);
    word(c, "keyup");
    word(c, "%s", (const char *)c->words.p + begin);
    return NULL;
}

static const char *
read_text(const json_t *a, const struct row *row, struct computer *c)
{
    const json_t *text = json_object_get(a, "text");

    c->text = json_string_value(text);
    if (c->text == NULL || strlen(c->text) != json_string_length(text) || c->text[0] == '\0')
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

const char *
computer_read(const json_t *action, struct computer *c)
{
    const json_t *name = json_object_get(action, "action"), *type = json_object_get(action, "type");
    const struct row *row = row_of(json_string_value(name != NULL ? name : type));
    const char *wrong;

    *c = (struct computer){ .words = BUF_INIT(COMPUTER_BYTES_MAX) };
    if (name != NULL && type != NULL)
        return "an action has one name: action, or type";
    if (row == NULL)
        return "there is no such action";
    c->kind = row->kind;
    c->name = row->name;
    wrong = row->read(action, row, c);
    return wrong == NULL && !buf_ok(&c->words) ? "it is too long" : wrong;
}

void
computer_free(struct computer *c)
{
    buf_free(&c->words);
}

bool
computer_sees(const char *name)
{
    const struct row *row = row_of(name);

    return row != NULL && row->sees;
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
