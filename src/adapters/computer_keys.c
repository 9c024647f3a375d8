/* adapters/computer_keys.c: see computer_keys.h */
#include "adapters/computer_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/json_text.h"

#define KEYS_MAX 64             /* presses, and keys of one */

void
computer_word(struct computer *c, const char *fmt, ...)
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

/* "ctrl+c" into words as "ctrl+c+": xdotool takes a word that is called like one of its commands ("exec") for that,
 * and none ends in a plus, which adds no key. */
static bool
chord(struct computer *c, struct str text)
{
    uint8_t room[256];
    cleanup_buf struct buf out = BUF_INIT_IN(room, sizeof(room));

    if (text.n == 1 && text.p[0] == '+') {
        computer_word(c, "plus+");
        return true;
    }
    for (size_t i = 0, n; i < text.n; i += n + 1) {
        const char *plus = memchr(text.p + i, '+', text.n - i);
        n = (plus != NULL ? (size_t)(plus - text.p) : text.n) - i;
        if (!key_put(&out, (struct str){ text.p + i, n }))
            return false;
    }
    computer_word(c, "%.*s", (int)out.n, (const char *)out.p);
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
        if (s.p == NULL)
            return false;
        char small = s.n == 1 && s.p[0] >= 'A' && s.p[0] <= 'Z' ? (char)(s.p[0] | 0x20) : 0;    /* "C" is the key */
        if (!key_put(&out, small != 0 ? (struct str){ &small, 1 } : s))
            return false;
    }
    computer_word(c, "%.*s", (int)out.n, (const char *)out.p);
    return true;
}

int
computer_keys(const json_t *a, struct computer *c)
{
    const json_t *keys = json_object_get(a, "keys"), *text = json_object_get(a, "text");
    const char *words;

    if (keys != NULL && text != NULL)
        return -1;
    if (json_is_array(keys))
        return json_array_size(keys) == 0 ? 0 : together(c, keys) ? 1 : -1;
    text = text != NULL ? text : keys;
    if (text == NULL)
        return 0;
    words = json_cstr(text);
    return words != NULL && chords(c, words) > 0 ? 1 : -1;
}
