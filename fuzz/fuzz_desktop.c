/* adapters/desktop_data.c: whatever a sandbox says for a picture or windows, it is read within its bounds; what can be
 * typed with a keymap is a beginning of the text, and no end of it is a keymap's own words
 *
 * An action, whatever it is: words of xdotool are the reader's own, keys, or numbers.
 *
 * Input: the first byte chooses. 0: a picture. 1: windows. 2: a position. 3: an action in JSON. Else: a text to type.
 */
#include "fuzz.h"

#include <string.h>

#include "adapters/computer.h"
#include "adapters/desktop_data.h"
#include "base/array.h"

static void
picture(const uint8_t *p, size_t n)
{
    uint32_t width = 0, height = 0;

    if (desktop_png(p, n, &width, &height))
        FUZZ_ASSERT(width >= 1 && width <= DESKTOP_PIXELS_MAX && height >= 1 && height <= DESKTOP_PIXELS_MAX);
}

static void
windows(struct str text)
{
    const char *end = text.p + text.n;
    struct desktop_window w;
    size_t before = text.n;

    for (; desktop_window(&text, &w); before = text.n) {
        FUZZ_ASSERT(text.n < before && text.p + text.n == end);
        FUZZ_ASSERT(w.id.p <= w.app.p && w.app.p + w.app.n <= w.title.p && w.title.p + w.title.n <= end);
        FUZZ_ASSERT(memchr(w.id.p, ' ', w.id.n) == NULL && memchr(w.title.p, '\n', w.title.n) == NULL);
    }
    FUZZ_ASSERT(before == 0);
}

static void
keymap(struct str text)
{
    cleanup_buf struct buf map = BUF_INIT(DESKTOP_KEYMAP_MAX);
    size_t n = desktop_keymap(&map, text);

    FUZZ_ASSERT(n <= text.n && buf_ok(&map));
    for (size_t i = 0; i < map.n; i++)
        FUZZ_ASSERT(map.p[i] == '\n' || (map.p[i] >= 0x20 && map.p[i] < 0x7f));
}

static bool
is_known(const char *word)
{
    static const char *const own[] = { "mousemove", "click", "mousedown", "mouseup", "keydown", "keyup", "key", "sleep",
                                       "--repeat", "--delay", "--" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(word, own[i]) == 0)
            return true;
    return word[strspn(word, "0123456789.")] == '\0';
}

/* What is judged is what is done. */
static void
settled(const json_t *sent, const struct computer *c)
{
    json_t *judged = json_deep_copy(sent);
    struct computer other;

    computer_settle(judged);
    FUZZ_ASSERT(computer_read(judged, &other) == NULL && strcmp(other.name, c->name) == 0);
    FUZZ_ASSERT(json_object_get(judged, "type") == NULL &&
                strcmp(json_string_value(json_object_get(judged, "action")), c->name) == 0);
    FUZZ_ASSERT(other.words.n == c->words.n && other.ms == c->ms &&
                (c->words.n == 0 || memcmp(other.words.p, c->words.p, c->words.n) == 0));
    computer_free(&other);
    json_decref(judged);
}

static void
action(const char *p, size_t n)
{
    json_t *json = json_loadb(p, n, JSON_DECODE_ANY, NULL);
    struct computer c;
    const char *wrong = computer_read(json, &c), *at = (const char *)c.words.p;

    FUZZ_ASSERT(c.n_words <= COMPUTER_WORDS_MAX && (wrong != NULL || c.name != NULL));
    for (size_t i = 0; wrong == NULL && i < c.n_words; i++, at += strlen(at) + 1)
        FUZZ_ASSERT(is_known(at) || (at[0] != '-' && at[strlen(at) - 1] == '+'));
    FUZZ_ASSERT(wrong != NULL || c.kind != COMPUTER_TYPE || c.text != NULL);
    FUZZ_ASSERT(c.ms <= 400000);
    if (wrong == NULL)
        settled(json, &c);
    computer_free(&c);
    json_decref(json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = { (const char *)data + 1, n - 1 };

    if (n == 0)
        return 0;
    if (data[0] == 0)
        picture(data + 1, n - 1);
    else if (data[0] == 1)
        windows(text);
    else if (data[0] == 2)
        (void)computer_where(data + 1, n - 1, &(uint32_t){ 0 }, &(uint32_t){ 0 });
    else if (data[0] == 3)
        action(text.p, text.n);
    else
        keymap(text);
    return 0;
}
