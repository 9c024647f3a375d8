/* adapters/computer_run.c: see computer_run.h; one command, or for a text some, each */
#include "adapters/computer_run.h"

#include <string.h>

#include "base/array.h"
#include "wire/json_text.h"

#define WINDOWS_MAX 256
#define TYPE_MS     1800000
#define SEEN_S      "0.3"       /* until programs have read what was typed, before its keys mean something else */

static void
failed(struct visit *r, const char *why)
{
    r->computer->failed(r, why);
}

/* --- seeing ------------------------------------------------------------------------------------------------------- */

static void
on_picture(struct visit *r)
{
    uint32_t width, height;

    if (desktop_png(r->out.p, r->out.n, &width, &height))
        r->computer->told(r, json_pack("{s:I, s:I}", "width", (json_int_t)width, "height", (json_int_t)height));
    else
        failed(r, "what the sandbox says is no PNG");
}

static void
screenshot_words(struct visit *r, const struct computer *c)
{
    DESKTOP_WORDS(r, "ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "x11grab");
    if (c->has_region) {
        desktop_word(r, "-video_size");
        desktop_word(r, "%ux%u", c->region[2], c->region[3]);
    }
    desktop_word(r, "-i");
    desktop_word(r, DESKTOP_DISPLAY ".0+%u,%u", c->region[0], c->region[1]);
    DESKTOP_WORDS(r, "-frames:v", "1", "-f", "image2pipe", "-c:v", "png", "-");
    desktop_output(r, false);
}

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
    r->computer->told(r, json_pack("{s:o}", "windows", list));
}

static void
on_where(struct visit *r)
{
    uint32_t x, y;

    if (computer_where(r->out.p, r->out.n, &x, &y))
        r->computer->told(r, json_pack("{s:I, s:I}", "x", (json_int_t)x, "y", (json_int_t)y));
    else
        failed(r, "what the sandbox says is no position");
}

static void
on_clipboard(struct visit *r)
{
    if (r->out.n > COMPUTER_CLIP_MAX)
        failed(r, "the clipboard has more than 65536 bytes");
    else
        r->computer->told(r, json_pack("{s:o}", "text", json_of_text(r->out.p, r->out.n)));
}

/* --- doing -------------------------------------------------------------------------------------------------------- */

static void
on_done(struct visit *r)
{
    r->computer->told(r, json_object());
}

/* It is named and passed over by xdotool, which says success. */
static void
on_pressed(struct visit *r)
{
    static const char wrong[] = "No such key name";

    if (r->err_out.n > 0 && memmem(r->err_out.p, r->err_out.n, wrong, sizeof(wrong) - 1) != NULL)
        failed(r, "there is no such key: keys are named as X names them (ctrl+c, Return, Page_Up)");
    else
        on_done(r);
}

static void
input_words(struct visit *r, const struct computer *c)
{
    const char *at = (const char *)c->words.p;

    desktop_word(r, "xdotool");
    for (size_t i = 0; i < c->n_words; i++, at += strlen(at) + 1)
        desktop_word(r, "%s", at);
}

static void
type_words(struct visit *r, struct str text)
{
    DESKTOP_WORDS(r, "xdotool", "type", "--delay", "12", "--");
    desktop_word(r, "%.*s", (int)text.n, text.p);
}

/* Characters that have no key are typed in stretches: keys for them all, the stretch, and a moment. */
static void on_keys(struct visit *r);

/* False: the action failed. */
static bool
keys_words(struct visit *r)
{
    cleanup_buf struct buf map = BUF_INIT(DESKTOP_KEYMAP_MAX);
    struct desktop_stretch *s = desktop_stretch(r);

    s->begin = s->end;
    s->end += desktop_keymap(&map, (struct str){ s->text.p + s->begin, s->text.n - s->begin });
    if (s->end == s->begin) {
        failed(r, "out of memory");
        return false;
    }
    DESKTOP_WORDS(r, "xkbcomp", "-w0", "-", DESKTOP_DISPLAY);
    desktop_input(r, &map);
    return true;
}

static void
on_seen(struct visit *r)
{
    if (desktop_stretch(r)->end == desktop_stretch(r)->text.n) {
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
    DESKTOP_WORDS(r, "xdotool", "sleep", SEEN_S);
    desktop_act(r);
}

static void
on_keys(struct visit *r)
{
    const struct desktop_stretch *s = desktop_stretch(r);

    desktop_next(r, on_typed);
    type_words(r, (struct str){ s->text.p + s->begin, s->end - s->begin });
    desktop_act(r);
}

static bool
type_begin(struct visit *r, const char *text)
{
    struct str s = str_of(text);

    desktop_stretch(r)->text = s;
    if (!desktop_plain(s))
        return keys_words(r);
    type_words(r, s);
    return true;
}

static bool
clipboard_words(struct visit *r, const char *text)
{
    cleanup_buf struct buf in = BUF_INIT(COMPUTER_CLIP_MAX);

    if (text == NULL) {
        DESKTOP_WORDS(r, "xclip", "-o", "-selection", "clipboard", "-t", "UTF8_STRING");
        return true;
    }
    if (buf_puts(&in, text) < 0) {
        failed(r, "out of memory");
        return false;
    }
    DESKTOP_WORDS(r, "xclip", "-i", "-selection", "clipboard", "-t", "UTF8_STRING");
    desktop_input(r, &in);
    return true;
}

/* --- each --------------------------------------------------------------------------------------------------------- */

static desktop_done *
done_of(const struct computer *c)
{
    static desktop_done *const of[] = {
        [COMPUTER_SCREENSHOT] = on_picture, [COMPUTER_WINDOWS] = on_windows, [COMPUTER_WHERE] = on_where,
        [COMPUTER_INPUT] = on_pressed, [COMPUTER_TYPE] = on_done,
        [COMPUTER_CLIP_GET] = on_clipboard, [COMPUTER_CLIP_SET] = on_done,
    };

    return c->kind == COMPUTER_TYPE && !desktop_plain(str_of(c->text)) ? on_keys : of[c->kind];
}

static bool
put_words(struct visit *r, const struct computer *c)
{
    switch (c->kind) {
    case COMPUTER_SCREENSHOT:
        screenshot_words(r, c);
        break;
    case COMPUTER_WINDOWS:
        DESKTOP_WORDS(r, "wmctrl", "-lxu");
        break;
    case COMPUTER_WHERE:
        DESKTOP_WORDS(r, "xdotool", "getmouselocation");
        break;
    case COMPUTER_TYPE:
        return type_begin(r, c->text);
    case COMPUTER_CLIP_GET:
    case COMPUTER_CLIP_SET:
        return clipboard_words(r, c->text);
    case COMPUTER_INPUT:
        input_words(r, c);
        break;
    }
    return true;
}

/* In one form, which rules of the gate match. */
static json_t *
params_of(json_t *action)
{
    json_t *params = json_copy(action);

    computer_settle(params);
    return params;
}

const char *
computer_go(struct visit *r, const char *id, json_t *action, bool judged, const struct computer_answers *answers)
{
    struct computer c;
    const char *wrong = computer_read(action, &c);
    struct edge_op *op;

    r->computer = answers;
    if (wrong == NULL && id != NULL) {
        op = desktop_action(r, DESKTOP_SCREEN, done_of(&c), failed);
        if (op != NULL) {
            desktop_refused(r, answers->no);
            op->timeout_ms = c.kind == COMPUTER_TYPE ? TYPE_MS : op->timeout_ms + c.ms;
            if (put_words(r, &c))
                desktop_go(r, id, judged ? NULL : params_of(action));
        }
    }
    computer_free(&c);
    return wrong;
}
