/* keeper/context_scan.c: see context_scan.h */
#include "keeper/context_scan.h"

#include <string.h>

void
context_scan_begin(struct context_scan *s, const char digits[CONTEXT_MARK - 1])
{
    *s = (struct context_scan){ .at = SCAN_BEFORE };
    s->mark[0] = '\1';
    memcpy(s->mark + 1, digits, CONTEXT_MARK - 1);
}

static struct scan_piece
broken(struct context_scan *s)
{
    s->at = SCAN_FAULTY;
    return (struct scan_piece){ .kind = SCAN_BROKEN };
}

static bool
hex_of(const char digits[4], size_t *out)
{
    *out = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *at = memchr("0123456789abcdef", digits[i], 16);
        if (at == NULL)
            return false;
        *out = *out * 16 + (size_t)(at - "0123456789abcdef");
    }
    return true;
}

/* The head of a frame is whole. False: it is none. */
static bool
frame_begins(struct context_scan *s)
{
    char kind = s->head[0];

    s->matched = 0;
    s->code = 0;
    if (!hex_of(s->head + 1, &s->left) || s->left > CONTEXT_PIECE)
        return false;
    if (kind == 'B' && s->at == SCAN_BEFORE && s->left == 0) {
        s->at = SCAN_WITHIN;
        return true;
    }
    s->framed = s->at == SCAN_WITHIN && (kind == 'R' || kind == 'L' || (kind == 'E' && s->left <= 3) ||
                                            (kind == 'S' && s->left == 1));
    return s->framed;
}

/* Of the frame that the head is of: all that there is of it. */
static struct scan_piece
in_frame(struct context_scan *s, const uint8_t **p, size_t *n)
{
    struct scan_piece out = { .kind = SCAN_NONE, .p = *p, .n = *n < s->left ? *n : s->left };

    *p += out.n;
    *n -= out.n;
    s->left -= out.n;
    s->framed = s->left > 0;
    if (s->head[0] == 'E') {
        for (size_t i = 0; i < out.n; i++) {
            if (out.p[i] < '0' || out.p[i] > '9')
                return broken(s);
            s->code = s->code * 10 + (out.p[i] - (unsigned)'0');
        }
        if (s->framed)
            return (struct scan_piece){ .kind = SCAN_NONE };
        if (s->code > UINT8_MAX)
            return broken(s);
        s->at = SCAN_IDLE;
        return (struct scan_piece){ .kind = SCAN_END, .code = (uint8_t)s->code };
    }
    out.kind = s->head[0] == 'S' ? SCAN_ASKED : SCAN_RESULT;
    out.last = !s->framed && s->head[0] == 'L';
    return out;
}

/* Up to where a mark begins, or may, for all that is there of it. */
static size_t
plain(const struct context_scan *s, const uint8_t *p, size_t n)
{
    const uint8_t *at = p, *end = p + n;

    for (; at < end && (at = memchr(at, s->mark[0], (size_t)(end - at))) != NULL; at++) {
        size_t left = (size_t)(end - at);
        if (memcmp(at, s->mark, left < CONTEXT_MARK ? left : CONTEXT_MARK) == 0)
            return (size_t)(at - p);
    }
    return n;
}

static struct scan_piece
output(const struct context_scan *s, const void *p, size_t n)
{
    return (struct scan_piece){ .kind = s->at == SCAN_WITHIN ? SCAN_OUTPUT : SCAN_NONE, .p = p, .n = n };
}

/* One step: of SCAN_NONE with bytes left there is another. */
static struct scan_piece
step(struct context_scan *s, const uint8_t **p, size_t *n)
{
    struct scan_piece out;
    size_t take;

    if (s->framed)
        return in_frame(s, p, n);
    if (s->matched >= CONTEXT_MARK) {
        s->head[s->matched++ - CONTEXT_MARK] = (char)*(*p)++;
        --*n;
        if (s->matched < CONTEXT_MARK + CONTEXT_HEAD)
            return (struct scan_piece){ .kind = SCAN_NONE };
        if (!frame_begins(s))
            return broken(s);
        return s->framed && s->left == 0 ? in_frame(s, p, n) : (struct scan_piece){ .kind = SCAN_NONE };
    }
    take = s->matched == 0 ? plain(s, *p, *n) : 0;
    if (take > 0) {
        out = output(s, *p, take);
        *p += take;
        *n -= take;
        return out;
    }
    if ((char)**p == s->mark[s->matched]) {
        s->matched++;
        ++*p;
        --*n;
        return (struct scan_piece){ .kind = SCAN_NONE };
    }
    out = output(s, s->mark, s->matched);       /* it was none: it goes out as it came */
    s->matched = 0;
    return out;
}

struct scan_piece
context_scan_next(struct context_scan *s, const uint8_t **p, size_t *n)
{
    if (s->at == SCAN_IDLE || s->at == SCAN_FAULTY) {
        *p += *n;
        *n = 0;
    }
    while (*n > 0) {
        struct scan_piece out = step(s, p, n);
        if (out.kind != SCAN_NONE)
            return out;
        if (s->at == SCAN_IDLE || s->at == SCAN_FAULTY)
            break;
    }
    return (struct scan_piece){ .kind = SCAN_NONE };
}
