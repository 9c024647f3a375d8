/* wire/rfb.c: see rfb.h */
#include "wire/rfb.h"

#include <string.h>

#include "base/array.h"

#define VERSION      "RFB 003.008\n"
#define VERSION_N    (sizeof(VERSION) - 1)
#define NO_SECURITY  1
#define SHARED       1
#define LONGEST_HEAD 9
#define FENCE_MAX    64
#define QEMU_KEY     0
#define QEMU_KEY_N   12

/* --- messages ----------------------------------------------------------------------------------------------------- */

static uint32_t
at32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Of a message's head: how long all of it is; 0: no such one may come. */
typedef size_t length_fn(const uint8_t *head);

static size_t
length_encodings(const uint8_t *head)
{
    size_t n = (size_t)head[2] << 8 | head[3];

    return n <= RFB_ENCODINGS_MAX ? 4 + 4 * n : 0;
}

/* A negative length is one of the extended clipboard's: the same number of bytes, which begin with four of flags. */
static size_t
length_text(const uint8_t *head)
{
    uint32_t n = at32(head + 4);

    if ((n & 0x80000000U) != 0) {
        n = 0U - n;
        return n >= 4 && n <= RFB_TEXT_MAX ? 8 + (size_t)n : 0;
    }
    return n <= RFB_TEXT_MAX ? 8 + (size_t)n : 0;
}

static size_t
length_fence(const uint8_t *head)
{
    return head[8] <= FENCE_MAX ? 9 + (size_t)head[8] : 0;
}

static size_t
length_screens(const uint8_t *head)
{
    return 8 + 16 * (size_t)head[6];
}

static size_t
length_qemu(const uint8_t *head)
{
    return head[1] == QEMU_KEY ? QEMU_KEY_N : 0;
}

enum does { LOOKS, ACTS, NEVER };

static const struct message {
    uint8_t type, head;         /* bytes after which its length is known */
    enum does does;
    length_fn *length;          /* NULL: @head is all of it */
    const char *name;
} messages[] = {
    { 0,   20, LOOKS, NULL,             "SetPixelFormat" },
    { 2,   4,  LOOKS, length_encodings, "SetEncodings" },
    { 3,   10, LOOKS, NULL,             "FramebufferUpdateRequest" },
    { 4,   8,  ACTS,  NULL,             "KeyEvent" },
    { 5,   6,  ACTS,  NULL,             "PointerEvent" },
    { 6,   8,  ACTS,  length_text,      "ClientCutText" },
    { 150, 10, LOOKS, NULL,             "EnableContinuousUpdates" },
    { 248, 9,  LOOKS, length_fence,     "ClientFence" },
    { 250, 4,  NEVER, NULL,             "xvp" },        /* shut it down, reset it: it is no machine */
    { 251, 8,  ACTS,  length_screens,   "SetDesktopSize" },
    { 255, 2,  ACTS,  length_qemu,      "QEMU" },
};

static const struct message *
message_of(uint8_t type)
{
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        if (messages[i].type == type)
            return &messages[i];
    return NULL;
}

/* --- encodings ---------------------------------------------------------------------------------------------------- */

/* From, to, and for who controls alone. */
static const struct encoding { int32_t from, to; bool control; } encodings[] = {
    { 0, 2, false },            /* Raw, CopyRect, RRE */
    { 4, 7, false },            /* CoRRE, Hextile, zlib, Tight */
    { 16, 16, false },          /* ZRLE */
    { 21, 21, false },          /* JPEG */
    { 50, 50, false },          /* H.264 */
    { -32, -23, false },        /* quality of JPEG */
    { -224, -223, false },      /* LastRect, DesktopSize */
    { -240, -239, false },      /* X's cursor, Cursor */
    { -256, -247, false },      /* level of compression */
    { -258, -258, true },       /* QEMU's keys */
    { -260, -260, false },      /* TightPNG */
    { -261, -261, false },      /* lights of the keyboard */
    { -308, -307, false },      /* ExtendedDesktopSize, the desktop's name */
    { -314, -312, false },      /* Cursor with alpha, continuous updates, Fence */
    { -512, -412, false },      /* finer quality of JPEG, */
    { -768, -763, false },      /* and its subsampling */
    { (int32_t)0x574d5664, (int32_t)0x574d5664, false },        /* VMware's cursor, */
    { (int32_t)0x574d5668, (int32_t)0x574d5668, false },        /* and lights */
    { -1063131698, -1063131698, true },                         /* 0xc0a1e5ce, the extended clipboard */
};

static bool
encoding_passes(int32_t n, bool control)
{
    for (size_t i = 0; i < ARRAY_LEN(encodings); i++)
        if (n >= encodings[i].from && n <= encodings[i].to)
            return control || !encodings[i].control;
    return false;
}

/* --- passing ------------------------------------------------------------------------------------------------------ */

void
rfb_init(struct rfb *r, bool control)
{
    *r = (struct rfb){ .control = control, .state = RFB_VERSION, .part = BUF_INIT(RFB_MESSAGE_MAX) };
}

void
rfb_free(struct rfb *r)
{
    buf_free(&r->part);
}

static int
refuse(struct err *err, const char *what)
{
    err_set(err, ERR_DENIED, "desktop.viewer", "%s", what);
    return err_hint(err, "noVNC speaks RFB 3.8 as it is passed on here (docs/desktop.md)");
}

static int
refuse_message(struct err *err, unsigned type, const char *name, const char *why)
{
    err_set(err, ERR_DENIED, "desktop.viewer", "the viewer's message %u%s%s %s", type, name[0] != '\0' ? ", " : "",
            name, why);
    return err_hint(err, "noVNC speaks RFB 3.8 as it is passed on here (docs/desktop.md)");
}

static int
put_encodings(const struct rfb *r, struct buf *out)
{
    const uint8_t *p = r->part.p;
    size_t n = 0;

    for (size_t i = 4; i < r->part.n; i += 4)
        n += encoding_passes((int32_t)at32(p + i), r->control);
    buf_append(out, p, 2);
    buf_put_be16(out, (uint16_t)n);
    for (size_t i = 4; i < r->part.n; i += 4)
        if (encoding_passes((int32_t)at32(p + i), r->control))
            buf_append(out, p + i, 4);
    return buf_ok(out) ? 0 : -1;
}

/* A display may divide by what it is told here. */
static bool
pixels_well(const uint8_t *p)
{
    const uint8_t *format = p + 4;
    bool plain = format[0] == 8 || format[0] == 16 || format[0] == 32;

    if (!plain || format[1] == 0 || format[1] > format[0] || format[3] > 1)
        return false;
    return format[3] == 0 || (format[10] < format[0] && format[11] < format[0] && format[12] < format[0]);
}

/* A message that is whole. */
static int
pass(struct rfb *r, struct buf *out, struct err *err)
{
    const uint8_t *p = r->part.p;
    const struct message *m = message_of(p[0]);

    if (m == NULL || m->does == NEVER || (m->does == ACTS && !r->control))
        return 0;
    if (p[0] == 0 && !pixels_well(p))
        return refuse_message(err, 0, m->name, "names no format of pixels");
    if ((p[0] == 2 ? put_encodings(r, out) : buf_append(out, p, r->part.n)) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return 0;
}

/* The handshake: what is said there is one of one. */
static int
pass_greeting(struct rfb *r, struct buf *out, struct err *err)
{
    const uint8_t *p = r->part.p;

    if (r->state == RFB_VERSION && memcmp(p, VERSION, VERSION_N) != 0)
        return refuse(err, "the viewer does not speak RFB 3.8");
    if (r->state == RFB_SECURITY && p[0] != NO_SECURITY)
        return refuse(err, "the viewer wants a password or a cipher of the display's, which has none");
    /* whoever does not share ends the others' views */
    if ((r->state == RFB_INIT ? buf_put_u8(out, SHARED) : buf_append(out, p, r->part.n)) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    r->state = r->state == RFB_VERSION ? RFB_SECURITY : r->state == RFB_SECURITY ? RFB_INIT : RFB_TALKS;
    return 0;
}

/* How many bytes the message at hand has, as far as what has come of it says. 0, or -1 with @err. */
static int
measure(const struct rfb *r, size_t *total, struct err *err)
{
    const struct message *m;

    *total = r->state == RFB_VERSION ? VERSION_N : 1;
    if (r->state != RFB_TALKS || r->part.n == 0)
        return 0;
    m = message_of(r->part.p[0]);
    if (m == NULL)
        return refuse_message(err, r->part.p[0], "", "is none that is known here");
    *total = m->head;
    if (m->length == NULL || r->part.n < m->head)
        return 0;
    *total = m->length(r->part.p);
    return *total > 0 ? 0 : refuse_message(err, m->type, m->name, "is longer than it may be, or malformed");
}

static int
take(struct rfb *r, const uint8_t **p, size_t *n, struct buf *out, struct err *err)
{
    size_t want, total;

    if (measure(r, &total, err) < 0)
        return -1;
    want = total - r->part.n;
    if (want > *n)
        want = *n;
    if (buf_append(&r->part, *p, want) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *p += want;
    *n -= want;
    if (r->part.n < total)
        return 0;
    if (measure(r, &total, err) < 0)
        return -1;
    if (r->part.n < total)       /* that was its head */
        return 0;
    if ((r->state == RFB_TALKS ? pass(r, out, err) : pass_greeting(r, out, err)) < 0)
        return -1;
    buf_reset(&r->part);
    return 0;
}

int
rfb_feed(struct rfb *r, const uint8_t *p, size_t n, struct buf *out, struct err *err)
{
    if (r->state == RFB_ENDED)
        return refuse(err, "the viewer was refused before");
    while (n > 0) {
        if (take(r, &p, &n, out, err) < 0) {
            r->state = RFB_ENDED;
            return -1;
        }
    }
    return 0;
}
