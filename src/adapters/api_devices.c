/* adapters/api_devices.c: /api/sandbox: a screen, audio, a keyboard and a mouse, which no sandbox here has
 *
 * A request is judged as it would be with them, with the words that existing clients match on, and fails then.
 */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "adapters/api.h"

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

#define NO_SCREEN "this sandbox has no screen"
#define NO_AUDIO  "this sandbox has no audio"

void
api_screenshot(struct visit *r)
{
    api_refuse(r, HTTP_INTERNAL, "Screenshot failed: " NO_SCREEN);
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
    else
        api_screenshot(r);
}

void
api_windows(struct visit *r)
{
    visit_json(r, HTTP_OK, json_pack("{s:[], s:s}", "windows", "error", NO_SCREEN));
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
        api_refuse(r, HTTP_INTERNAL, "Audio recording failed: " NO_AUDIO);
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
        api_refuse(r, HTTP_INTERNAL, "Audio playback failed: " NO_AUDIO);
}

/* --- a keyboard and a mouse --------------------------------------------------------------------------------------- */

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
        api_refuse(r, HTTP_INTERNAL, "Click failed: " NO_SCREEN);
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
        api_refuse(r, HTTP_INTERNAL, "Type failed: " NO_SCREEN);
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
        api_refuse(r, HTTP_INTERNAL, "Keypress failed: " NO_SCREEN);
}
