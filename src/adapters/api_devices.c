/* adapters/api_devices.c: /api/sandbox: a screen, audio, a keyboard and a mouse, inside a sandbox (desktop.h)
 *
 * Requests and failures are in the words that existing clients match on. What each does is one command.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "adapters/api.h"
#include "adapters/desktop.h"
#include "base/base64.h"
#include "wire/json_text.h"

/* Without the blanks around it, as String.trim() has it. */
struct str
api_trimmed(const char *text)
{
    static const char blanks[] = " \t\n\v\f\r";
    struct str s = str_of(text + strspn(text, blanks));

    while (s.n > 0 && strchr(blanks, s.p[s.n - 1]) != NULL)
        s.n--;
    return s;
}

/* --- a screen, audio ---------------------------------------------------------------------------------------------- */

static void
failed(struct visit *r, const char *what, const char *why)
{
    char text[512];

    snprintf(text, sizeof(text), "%s failed: %s", what, why);
    api_refuse(r, HTTP_INTERNAL, text);
}

#define FAILED(name, what) \
    static void \
    no_##name(struct visit *r, const char *why) \
    { \
        failed(r, what, why); \
    }
FAILED(screenshot, "Screenshot")
FAILED(record, "Audio recording")
FAILED(play, "Audio playback")
FAILED(click, "Click")
FAILED(type, "Type")
FAILED(keypress, "Keypress")

/* What an action that says nothing answers with is what it was asked for. */
static void
on_done(struct visit *r)
{
    visit_json(r, HTTP_OK, json_incref(r->list));
}

static void
begin(struct visit *r)
{
    const char *id = api_which(r);

    if (id != NULL)
        desktop_go(r, id);
}

static bool
is_picture(struct visit *r, uint32_t *width, uint32_t *height)
{
    if (desktop_png(r->out.p, r->out.n, width, height))
        return true;
    no_screenshot(r, "what the sandbox says is no PNG");
    return false;
}

static void
on_picture(struct visit *r)
{
    uint32_t width, height;

    if (is_picture(r, &width, &height))
        visit_png(r, r->out.p, r->out.n);
}

static void
on_picture_json(struct visit *r)
{
    uint32_t width, height;

    if (is_picture(r, &width, &height))
        visit_json(r, HTTP_OK, json_pack("{s:s, s:s, s:I, s:I, s:o}", "format", "png", "encoding", "base64", "width",
                                         (json_int_t)width, "height", (json_int_t)height, "data",
                                         json_of_base64(r->out.p, r->out.n)));
}

/* @v: x, y, width, height; NULL: all of it */
static void
screenshot(struct visit *r, const json_int_t *v, desktop_done *done)
{
    static const char *const before[] = { "ffmpeg", "-v", "error", "-nostdin", "-f", "x11grab" };

    if (desktop_action(r, DESKTOP_SCREEN, done, no_screenshot) == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        desktop_word(r, "%s", before[i]);
    if (v != NULL) {
        desktop_word(r, "-video_size");
        desktop_word(r, "%lldx%lld", (long long)v[2], (long long)v[3]);
    }
    desktop_word(r, "-i");
    desktop_word(r, ":77.0+%lld,%lld", v != NULL ? (long long)v[0] : 0, v != NULL ? (long long)v[1] : 0);
    desktop_word(r, "-frames:v");
    desktop_word(r, "1");
    desktop_word(r, "-f");
    desktop_word(r, "image2pipe");
    desktop_word(r, "-c:v");
    desktop_word(r, "png");
    desktop_word(r, "-");
    begin(r);
}

void
api_screenshot(struct visit *r)
{
    screenshot(r, NULL, on_picture);
}

static bool
on_screen(json_int_t x, json_int_t y)
{
    return x >= 0 && y >= 0 && x <= DESKTOP_PIXELS_MAX && y <= DESKTOP_PIXELS_MAX;
}

void
api_screenshot_region(struct visit *r)
{
    static const char *const names[] = { "x", "y", "width", "height" };
    json_int_t v[] = { 0, 0, 1, 1 };    /* none of them: all of the screen */

    bool named = false;

    if (r->json != NULL && !json_is_null(r->json) && !json_is_object(r->json)) {
        api_refuse(r, HTTP_BAD_REQUEST, "Screenshot region payload must be a JSON object");
        return;
    }
    for (size_t i = 0; i < 4; i++)
        named = named || json_object_get(r->json, names[i]) != NULL;
    for (size_t i = 0; i < 4 && named; i++) {
        const json_t *one = json_object_get(r->json, names[i]);
        v[i] = json_integer_value(one);
        if (!json_is_integer(one)) {
            api_refuse(r, HTTP_BAD_REQUEST, "Region requires integer x, y, width, and height values");
            return;
        }
    }
    if (v[2] <= 0 || v[3] <= 0)
        api_refuse(r, HTTP_BAD_REQUEST, "Region width and height must be greater than 0");
    else if (!on_screen(v[0], v[1]) || !on_screen(v[2], v[3]))
        no_screenshot(r, "the region is not on the screen");
    else
        screenshot(r, named ? v : NULL, on_picture_json);
}

static void
no_windows(struct visit *r, const char *why)
{
    visit_json(r, HTTP_OK, json_pack("{s:[], s:s}", "windows", "error", why));
}

#define WINDOWS_MAX 256

static json_t *
text_of(struct str s)
{
    return json_of_text((const uint8_t *)s.p, s.n);
}

static void
on_windows(struct visit *r)
{
    struct str text = { (const char *)r->out.p, r->out.n };
    struct desktop_window w;
    json_t *list = json_array();

    while (json_array_size(list) < WINDOWS_MAX && desktop_window(&text, &w))
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "id", text_of(w.id), "title", text_of(w.title), "app",
                                              text_of(w.app)));
    visit_json(r, HTTP_OK, json_pack("{s:o}", "windows", list));
}

void
api_windows(struct visit *r)
{
    if (desktop_action(r, DESKTOP_SCREEN, on_windows, no_windows) == NULL)
        return;
    desktop_word(r, "wmctrl");
    desktop_word(r, "-lxu");
    begin(r);
}

static void
on_recorded(struct visit *r)
{
    json_int_t ms = json_integer_value(json_object_get(r->list, "durationMs"));
    size_t most = (size_t)ms * DESKTOP_RATE / 1000 * DESKTOP_FRAME, n = r->out.n - r->out.n % DESKTOP_FRAME;
    cleanup_buf struct buf wav = BUF_INIT(DESKTOP_OUT_MAX);
    uint8_t head[44];

    n = n < most ? n : most;
    desktop_wav(head, (uint32_t)n);
    if (n == 0)
        no_record(r, "the sandbox says no sound");
    else if (buf_append(&wav, head, sizeof(head)) < 0 || buf_append(&wav, r->out.p, n) < 0)
        no_record(r, "out of memory");
    else
        visit_json(r, HTTP_OK, json_pack("{s:s, s:s, s:I, s:o}", "format", "wav", "encoding", "base64", "durationMs",
                                         ms, "data", json_of_base64(wav.p, wav.n)));
}

static void
record(struct visit *r, json_int_t ms)
{
    static const char *const before[] = { "ffmpeg", "-v", "error", "-nostdin", "-f", "pulse", "-i", "cloche.monitor",
                                          "-t" };
    struct edge_op *op = desktop_action(r, DESKTOP_SOUND, on_recorded, no_record);

    if (op == NULL)
        return;
    op->timeout_ms += (uint64_t)ms;
    r->list = json_pack("{s:I}", "durationMs", ms);
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        desktop_word(r, "%s", before[i]);
    desktop_word(r, "%lld.%03lld", (long long)ms / 1000, (long long)ms % 1000);
    desktop_word(r, "-f");
    desktop_word(r, "s16le");
    desktop_word(r, "-ac");
    desktop_word(r, "2");
    desktop_word(r, "-ar");
    desktop_word(r, "%d", DESKTOP_RATE);
    desktop_word(r, "-");
    begin(r);
}

void
api_audio_record(struct visit *r)
{
    const json_t *ms = json_object_get(r->json, "durationMs");
    json_int_t v = json_integer_value(ms);

    if (r->json != NULL && !json_is_object(r->json))
        api_refuse(r, HTTP_BAD_REQUEST, "Request body must be a JSON object");
    else if (ms != NULL && !json_is_number(ms))
        api_refuse(r, HTTP_BAD_REQUEST, "durationMs must be a finite number");
    else if (ms != NULL && !json_is_integer(ms))
        api_refuse(r, HTTP_BAD_REQUEST, "durationMs must be an integer number of milliseconds");
    else if (ms != NULL && (v < 250 || v > 30000))
        api_refuse(r, HTTP_BAD_REQUEST, "durationMs must be between 250 and 30000 milliseconds");
    else
        record(r, ms != NULL ? v : 5000);
}

/* "" is the usual one. NULL, or what is wrong with it. */
static const char *
format_wrong(const char *text)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char *const known[] = { "", "wav", "mp3", "ogg", "flac", "m4a" };
    struct str s = api_trimmed(text);

    if (strspn(s.p, digits) < s.n)
        return "format contains unsupported characters; use one of: wav, mp3, ogg, flac, m4a";
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i]) == s.n && strncasecmp(known[i], s.p, s.n) == 0)
            return NULL;
    return "format must be one of: wav, mp3, ogg, flac, m4a";
}

/* "m4a" as ffmpeg calls it. @format is well. */
static const char *
demuxer_of(struct str format)
{
    static const char *const known[][2] = { { "wav", "wav" }, { "mp3", "mp3" }, { "ogg", "ogg" }, { "flac", "flac" },
                                            { "m4a", "mov" } };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i][0]) == format.n && strncasecmp(known[i][0], format.p, format.n) == 0)
            return known[i][1];
    return "wav";
}

#define PLAY_MS 300000

static void
play(struct visit *r, struct str data, struct str format)
{
    static const char *const before[] = { "ffmpeg", "-v", "error", "-f" };
    cleanup_buf struct buf sound = BUF_INIT(DESKTOP_OUT_MAX);
    struct edge_op *op;

    if (base64_get(&sound, data.p, data.n) < 0 || sound.n == 0) {
        no_play(r, "data is not base64");
        return;
    }
    op = desktop_action(r, DESKTOP_SOUND, on_done, no_play);
    if (op == NULL)
        return;
    op->timeout_ms = PLAY_MS;
    r->list = json_pack("{s:b}", "success", 1);
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        desktop_word(r, "%s", before[i]);
    desktop_word(r, "%s", demuxer_of(format));
    desktop_word(r, "-i");
    /* a file of m4a may need going back in; plain samples that come through a cache are torn apart */
    desktop_word(r, "%s", strcmp(demuxer_of(format), "mov") == 0 ? "cache:pipe:0" : "pipe:0");
    desktop_word(r, "-vn");
    desktop_word(r, "-f");
    desktop_word(r, "pulse");
    desktop_word(r, "cloche");
    desktop_input(r, &sound);
    begin(r);
}

void
api_audio_play(struct visit *r)
{
    const char *data = json_string_value(json_object_get(r->json, "data"));
    const json_t *format = json_object_get(r->json, "format");
    const char *wrong = json_is_string(format) ? format_wrong(json_string_value(format)) : NULL;

    if (!json_is_object(r->json))
        api_refuse(r, HTTP_BAD_REQUEST, "Body must be a JSON object");
    else if (data == NULL || api_trimmed(data).n == 0)
        api_refuse(r, HTTP_BAD_REQUEST, "Missing 'data' field (base64 audio)");
    else if (format != NULL && !json_is_string(format))
        api_refuse(r, HTTP_BAD_REQUEST, "format must be a string");
    else if (wrong != NULL)
        api_refuse(r, HTTP_BAD_REQUEST, wrong);
    else
        play(r, api_trimmed(data), api_trimmed(json_is_string(format) ? json_string_value(format) : ""));
}

/* --- a keyboard and a mouse --------------------------------------------------------------------------------------- */

static void
click(struct visit *r, json_int_t x, json_int_t y, const char *button)
{
    if (!on_screen(x, y)) {
        no_click(r, "x and y are not on the screen");
        return;
    }
    if (desktop_action(r, DESKTOP_SCREEN, on_done, no_click) == NULL)
        return;
    r->list = json_pack("{s:b, s:I, s:I, s:s}", "success", 1, "x", x, "y", y, "button", button);
    desktop_word(r, "xdotool");
    desktop_word(r, "mousemove");
    desktop_word(r, "%lld", (long long)x);
    desktop_word(r, "%lld", (long long)y);
    desktop_word(r, "click");
    desktop_word(r, "%s", strcmp(button, "right") == 0 ? "3" : "1");
    begin(r);
}

void
api_click(struct visit *r)
{
    const json_t *button = json_object_get(r->json, "button");
    const char *name = json_string_value(button);

    if (!json_is_object(r->json))
        api_refuse(r, HTTP_BAD_REQUEST, "Click payload must be a JSON object");
    else if (!json_is_integer(json_object_get(r->json, "x")) || !json_is_integer(json_object_get(r->json, "y")))
        api_refuse(r, HTTP_BAD_REQUEST, "Click payload requires integer x and y coordinates");
    else if (button != NULL && (name == NULL || (strcmp(name, "left") != 0 && strcmp(name, "right") != 0)))
        api_refuse(r, HTTP_BAD_REQUEST, "button must be either 'left' or 'right'");
    else
        click(r, json_integer_value(json_object_get(r->json, "x")), json_integer_value(json_object_get(r->json, "y")),
              name != NULL ? name : "left");
}

/* Characters as JavaScript counts them: one above U+FFFF is two. */
static size_t
length_of(struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += ((unsigned char)text.p[i] & 0xc0) == 0x80 ? 0 : (unsigned char)text.p[i] >= 0xf0 ? 2 : 1;
    return n;
}

#define TYPE_MS 1800000
#define SEEN_S  "0.3"           /* until programs have read what was typed, before its keys mean something else */

static struct str
typed_text(const struct visit *r)
{
    return str_of(json_cstr(json_object_get(r->json, "text")));
}

static void
type_words(struct visit *r, struct str text)
{
    desktop_word(r, "xdotool");
    desktop_word(r, "type");
    desktop_word(r, "--delay");
    desktop_word(r, "12");
    desktop_word(r, "--");
    desktop_word(r, "%.*s", (int)text.n, text.p);
}

/* Characters that have no key are typed in stretches: keys for them all, the stretch, and a moment. */
static void on_keys(struct visit *r);

/* False: the action failed. */
static bool
keys_words(struct visit *r)
{
    cleanup_buf struct buf map = BUF_INIT(DESKTOP_KEYMAP_MAX);
    struct str text = typed_text(r);
    struct desktop_stretch *s = desktop_stretch(r);

    s->begin = s->end;
    s->end += desktop_keymap(&map, (struct str){ text.p + s->begin, text.n - s->begin });
    if (s->end == s->begin) {
        no_type(r, "out of memory");
        return false;
    }
    desktop_word(r, "xkbcomp");
    desktop_word(r, "-w0");
    desktop_word(r, "-");
    desktop_word(r, ":77");
    desktop_input(r, &map);
    return true;
}

static void
on_seen(struct visit *r)
{
    if (desktop_stretch(r)->end == typed_text(r).n) {
        on_done(r);
        return;
    }
    desktop_next(r, on_keys);
    if (keys_words(r))
        desktop_act(r);
}

static void
on_typed(struct visit *r)
{
    desktop_next(r, on_seen);
    desktop_word(r, "xdotool");
    desktop_word(r, "sleep");
    desktop_word(r, SEEN_S);
    desktop_act(r);
}

static void
on_keys(struct visit *r)
{
    const struct desktop_stretch *s = desktop_stretch(r);

    desktop_next(r, on_typed);
    type_words(r, (struct str){ typed_text(r).p + s->begin, s->end - s->begin });
    desktop_act(r);
}

static void
type_text(struct visit *r)
{
    struct str text = typed_text(r);
    bool plain = desktop_plain(text);
    struct edge_op *op;

    if (text.n == 0) {
        no_type(r, "a NUL cannot be typed");
        return;
    }
    op = desktop_action(r, DESKTOP_SCREEN, plain ? on_done : on_keys, no_type);
    if (op == NULL)
        return;
    op->timeout_ms = TYPE_MS;
    r->list = json_pack("{s:b, s:I}", "success", 1, "length", (json_int_t)length_of(text));
    if (plain)
        type_words(r, text);
    else if (!keys_words(r))
        return;
    begin(r);
}

void
api_type(struct visit *r)
{
    const char *text = json_string_value(json_object_get(r->json, "text"));

    if (!json_is_object(r->json))
        api_refuse(r, HTTP_BAD_REQUEST, "Type payload must be a JSON object");
    else if (text == NULL)
        api_refuse(r, HTTP_BAD_REQUEST, "Type payload requires a string 'text' field");
    else if (text[0] == '\0')
        api_refuse(r, HTTP_BAD_REQUEST, "text cannot be empty");
    else if (length_of(str_of(text)) > 4096)
        api_refuse(r, HTTP_BAD_REQUEST, "text exceeds maximum length (4096)");
    else
        type_text(r);
}

/* It is named and passed over by xdotool, which says success. */
static void
on_pressed(struct visit *r)
{
    static const char wrong[] = "No such key name";

    if (memmem(r->err_out.p, r->err_out.n, wrong, sizeof(wrong) - 1) != NULL)
        no_keypress(r, "there is no such key: keys are named as X names them (ctrl+c, Return, Page_Up)");
    else
        on_done(r);
}

/* Several are pressed one after the other. xdotool takes a word that is one of its commands ("exec") for that: none
 * ends in a plus, which adds no key. */
static void
keypress(struct visit *r, struct str keys)
{
    if (desktop_action(r, DESKTOP_SCREEN, on_pressed, no_keypress) == NULL)
        return;
    r->list = json_pack("{s:b, s:o}", "success", 1, "keys", json_stringn(keys.p, keys.n));
    desktop_word(r, "xdotool");
    desktop_word(r, "key");
    desktop_word(r, "--");
    for (size_t i = 0, n; i < keys.n; i += n) {
        n = strcspn(keys.p + i, ", ");
        n = n < keys.n - i ? n : keys.n - i;
        if (n > 0)
            desktop_word(r, "%.*s+", (int)n, keys.p + i);
        else
            n = 1;
    }
    begin(r);
}

void
api_keypress(struct visit *r)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_.,: -";
    const char *text = json_string_value(json_object_get(r->json, "keys"));
    struct str keys = api_trimmed(text != NULL ? text : "");

    if (!json_is_object(r->json))
        api_refuse(r, HTTP_BAD_REQUEST, "Keypress payload must be a JSON object");
    else if (text == NULL)
        api_refuse(r, HTTP_BAD_REQUEST, "Keypress payload requires a string 'keys' field");
    else if (keys.n == 0)
        api_refuse(r, HTTP_BAD_REQUEST, "keys cannot be empty");
    else if (length_of(keys) > 128)
        api_refuse(r, HTTP_BAD_REQUEST, "keys exceeds maximum length (128)");
    else if (strspn(keys.p, known) < keys.n)
        api_refuse(r, HTTP_BAD_REQUEST,
               "keys contains unsupported characters; allowed: letters, numbers, space, +, _, ., ,, :, -");
    else
        keypress(r, keys);
}
