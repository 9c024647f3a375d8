/* adapters/api_devices.c: /api/sandbox: a screen, audio, a keyboard and a mouse, inside a sandbox (desktop.h)
 *
 * Requests and failures are in the words that existing clients match on. What each does is one command.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "adapters/api.h"
#include "adapters/computer_run.h"
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
begin(struct visit *r, json_t *params)
{
    const char *id = api_which(r);

    if (id != NULL)
        desktop_go(r, id, params);
    else
        json_decref(params);
}

/* What an action that says nothing answers with is what it was asked for. */
static void
told_done(struct visit *r, json_t *said)
{
    json_decref(said);
    on_done(r);
}

static void
told_all(struct visit *r, json_t *said)
{
    visit_json(r, HTTP_OK, said);
}

static void
told_png(struct visit *r, json_t *said)
{
    json_decref(said);
    visit_png(r, r->out.p, r->out.n);
}

static void
put_picture(struct visit *r, json_t *said)
{
    json_object_set_new(said, "format", json_string("png"));
    json_object_set_new(said, "encoding", json_string("base64"));
    json_object_set_new(said, "data", json_of_base64(r->out.p, r->out.n));
}

static void
told_picture(struct visit *r, json_t *said)
{
    put_picture(r, said);
    visit_json(r, HTTP_OK, said);
}

/* An action in the words of computer.h: taken. */
static void
act(struct visit *r, json_t *action, const struct computer_answers *answers)
{
    const char *wrong;

    json_decref(r->json);
    r->json = action;
    wrong = computer_go(r, api_which(r), action, false, answers);
    if (wrong != NULL)
        answers->failed(r, wrong);
}

#define ACTS(name, says) \
    static const struct computer_answers name##_answers = { .told = says, .failed = no_##name, .no = visit_err };

ACTS(screenshot, told_png)

void
api_screenshot(struct visit *r)
{
    act(r, json_pack("{s:s}", "action", "screenshot"), &screenshot_answers);
}

static const struct computer_answers region_answers = { .told = told_picture, .failed = no_screenshot,
                                                        .no = visit_err };

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
        act(r, !named ? json_pack("{s:s}", "action", "screenshot")
                      : json_pack("{s:s, s:[I, I, I, I]}", "action", "zoom", "region", v[0], v[1], v[0] + v[2],
                                  v[1] + v[3]), &region_answers);
}

static void
no_windows(struct visit *r, const char *why)
{
    visit_json(r, HTTP_OK, json_pack("{s:[], s:s}", "windows", "error", why));
}

ACTS(windows, told_all)

void
api_windows(struct visit *r)
{
    act(r, json_pack("{s:s}", "action", "windows"), &windows_answers);
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
    struct edge_op *op = desktop_action(r, DESKTOP_SOUND, on_recorded, no_record);

    if (op == NULL)
        return;
    op->timeout_ms += (uint64_t)ms;
    r->list = json_pack("{s:I}", "durationMs", ms);
    DESKTOP_WORDS(r, "ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "pulse", "-i", "cloche.monitor", "-t");
    desktop_word(r, "%lld.%03lld", (long long)ms / 1000, (long long)ms % 1000);
    DESKTOP_WORDS(r, "-f", "s16le", "-ac", "2", "-ar");
    desktop_word(r, "%d", DESKTOP_RATE);
    desktop_word(r, "-");
    desktop_output(r, true);
    begin(r, json_pack("{s:s, s:I}", "action", "record", "durationMs", ms));
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

/* Of the formats, each as ffmpeg calls it; "" is the usual one. NULL: it is none. */
static const char *
demuxer_of(struct str format)
{
    static const char *const known[][2] = { { "", "wav" }, { "wav", "wav" }, { "mp3", "mp3" }, { "ogg", "ogg" },
                                            { "flac", "flac" }, { "m4a", "mov" } };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i][0]) == format.n && strncasecmp(known[i][0], format.p, format.n) == 0)
            return known[i][1];
    return NULL;
}

/* NULL, or what is wrong with it. */
static const char *
format_wrong(const char *text)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    struct str s = api_trimmed(text);

    if (strspn(s.p, digits) < s.n)
        return "format contains unsupported characters; use one of: wav, mp3, ogg, flac, m4a";
    return demuxer_of(s) != NULL ? NULL : "format must be one of: wav, mp3, ogg, flac, m4a";
}

#define PLAY_MS 300000

/* @format is one of them. */
static void
play(struct visit *r, struct str data, struct str format)
{
    const char *demuxer = demuxer_of(format);
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
    /* a file of m4a may need going back in; plain samples that come through a cache are torn apart */
    DESKTOP_WORDS(r, "ffmpeg", "-v", "error", "-f", demuxer,
                  "-i", strcmp(demuxer, "mov") == 0 ? "cache:pipe:0" : "pipe:0", "-vn", "-f", "pulse", "cloche");
    desktop_input(r, &sound);
    begin(r, json_pack("{s:s, s:s}", "action", "play", "format", demuxer));
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

ACTS(click, told_done)

static void
click(struct visit *r, json_int_t x, json_int_t y, const char *button)
{
    if (!on_screen(x, y)) {
        no_click(r, "x and y are not on the screen");
        return;
    }
    r->list = json_pack("{s:b, s:I, s:I, s:s}", "success", 1, "x", x, "y", y, "button", button);
    act(r, json_pack("{s:s, s:[I, I]}", "action", strcmp(button, "right") == 0 ? "right_click" : "left_click",
                     "coordinate", x, y), &click_answers);
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

ACTS(type, told_done)

static void
type_text(struct visit *r)
{
    json_t *text = json_object_get(r->json, "text");
    const char *words = json_cstr(text);

    if (words == NULL) {
        no_type(r, "a NUL cannot be typed");
        return;
    }
    r->list = json_pack("{s:b, s:I}", "success", 1, "length", (json_int_t)computer_length(str_of(words)));
    act(r, json_pack("{s:s, s:O}", "action", "type", "text", text), &type_answers);
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
    else if (computer_length(str_of(text)) > COMPUTER_TEXT_MAX)
        api_refuse(r, HTTP_BAD_REQUEST, "text exceeds maximum length (4096)");
    else
        type_text(r);
}

ACTS(keypress, told_done)

/* Several are pressed one after the other. */
static void
keypress(struct visit *r, struct str keys)
{
    r->list = json_pack("{s:b, s:o}", "success", 1, "keys", json_stringn(keys.p, keys.n));
    act(r, json_pack("{s:s, s:O}", "action", "key", "text", json_object_get(r->list, "keys")), &keypress_answers);
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
    else if (computer_length(keys) > 128)
        api_refuse(r, HTTP_BAD_REQUEST, "keys exceeds maximum length (128)");
    else if (strspn(keys.p, known) < keys.n)
        api_refuse(r, HTTP_BAD_REQUEST,
               "keys contains unsupported characters; allowed: letters, numbers, space, +, _, ., ,, :, -");
    else
        keypress(r, keys);
}

/* --- the words of agents ------------------------------------------------------------------------------------------ */

FAILED(action, "Action")

static void
told_action(struct visit *r, json_t *said)
{
    json_t *name = json_object_get(r->json, "action");

    if (json_object_get(said, "width") != NULL)
        put_picture(r, said);
    json_object_set_new(said, "success", json_true());
    json_object_set(said, "action", name != NULL ? name : json_object_get(r->json, "type"));
    visit_json(r, HTTP_OK, said);
}

ACTS(action, told_action)

void
api_computer(struct visit *r)
{
    const char *wrong;

    if (!json_is_object(r->json)) {
        api_refuse(r, HTTP_BAD_REQUEST, "Action payload must be a JSON object");
        return;
    }
    wrong = computer_go(r, api_which(r), r->json, false, &action_answers);
    if (wrong != NULL)
        api_refuse(r, HTTP_BAD_REQUEST, wrong);
}
