/* audit/parse.c: see parse.h */
#include "audit/parse.h"

#include <string.h>

#define HASH_PART ",\"hash\":\""

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Characters that stand for themselves, and are one byte. */
static const bool plain[256] = { [0x20 ... 0x21] = true, [0x23 ... 0x5b] = true, [0x5d ... 0x7e] = true };

/* One character or byte of @p as it is written, into @out. Returns how many bytes of @p it was. */
static size_t
escape_one(const uint8_t *p, size_t n, char out[8], size_t *out_n)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t c;
    size_t wide = p[0] >= 0x80 ? utf8_char(p, n, &c) : 0;

    if (plain[p[0]] || wide > 0) {
        *out_n = wide > 0 ? wide : 1;
        memcpy(out, p, *out_n);
        return *out_n;
    }
    if (p[0] == '"' || p[0] == '\\') {
        memcpy(out, (const char[]){ '\\', (char)p[0] }, 2);
        *out_n = 2;
    } else if (p[0] < 0x80 && p[0] > 0) {
        memcpy(out, (const char[]){ '\\', 'u', '0', '0', digits[p[0] >> 4], digits[p[0] & 15] }, 6);
        *out_n = 6;
    } else {
        memcpy(out, (const char[]){ '\\', '\\', 'x', digits[p[0] >> 4], digits[p[0] & 15] }, 5);
        *out_n = 5;
    }
    return 1;
}

int
audit_escape(struct str text, size_t max, struct buf *out)
{
    static const char cut[] = "...";
    const uint8_t *p = (const uint8_t *)text.p;
    size_t begin = out->n, fits = begin, at = 0;

    while (at < text.n && at + sizeof(cut) - 1 <= max && plain[p[at]])
        at++;
    if (at > 0 && buf_append(out, p, at) < 0)
        return -1;
    fits = out->n;
    while (at < text.n) {
        char piece[8];
        size_t piece_n, taken = escape_one(p + at, text.n - at, piece, &piece_n);
        if (out->n - begin + piece_n > max) {
            out->n = fits;
            return buf_append(out, cut, sizeof(cut) - 1);
        }
        if (buf_append(out, piece, piece_n) < 0)
            return -1;
        if (out->n - begin + sizeof(cut) - 1 <= max)
            fits = out->n;
        at += taken;
    }
    return buf_ok(out) ? 0 : -1;
}

static bool
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Whether the six bytes at @p are the escape of a control character that is written so. */
static bool
is_control(const char *p)
{
    char high = p[4], low = p[5];

    return memcmp(p, "\\u00", 4) == 0 && is_hex(low) &&
           ((high == '0' && low != '0') || high == '1' || (high == '7' && low == 'f'));
}

/* Bytes of the text at the beginning of @s, up to its closing quote; -1: malformed, or none. */
static ptrdiff_t
text_length(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (i < s.n) {
        if (plain[p[i]]) {
            i++;
        } else if (p[i] == '"') {
            return (ptrdiff_t)i;
        } else if (p[i] >= 0x80) {
            uint32_t c;
            size_t wide = utf8_char(p + i, s.n - i, &c);
            if (wide == 0)
                return -1;
            i += wide;
        } else if (p[i] != '\\' || s.n - i < 2) {
            return -1;
        } else if (p[i + 1] == '"' || p[i + 1] == '\\') {
            i += 2;
        } else {
            if (s.n - i < 6 || !is_control(s.p + i))
                return -1;
            i += 6;
        }
    }
    return -1;
}

/* --- pieces of a line --------------------------------------------------------------------------------------------- */

static bool
skip(struct str *s, struct str word)
{
    if (!str_starts(*s, word))
        return false;
    *s = (struct str){ s->p + word.n, s->n - word.n };
    return true;
}

#define SKIP(s, literal) skip(s, STR_LIT(literal))

/* A text and its closing quote. */
static bool
take_text(struct str *s, struct str *out)
{
    ptrdiff_t n = text_length(*s);

    if (n < 0)
        return false;
    *out = (struct str){ s->p, (size_t)n };
    *s = (struct str){ s->p + n + 1, s->n - (size_t)n - 1 };
    return true;
}

/* A whole number as it is written in only one way. */
static bool
take_number(struct str *s, bool sign, struct str *out)
{
    size_t i = sign && s->n > 0 && s->p[0] == '-' ? 1 : 0, first = i;

    while (i < s->n && s->p[i] >= '0' && s->p[i] <= '9')
        i++;
    if (i == first || i - first > 19 || (s->p[first] == '0' && (i - first > 1 || first > 0)))
        return false;
    *out = (struct str){ s->p, i };
    *s = (struct str){ s->p + i, s->n - i };
    return true;
}

static bool
is_time(struct str t)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";

    if (t.n != AUDIT_TIME_TEXT)
        return false;
    for (size_t i = 0; i < t.n; i++)
        if (shape[i] == 'd' ? t.p[i] < '0' || t.p[i] > '9' : t.p[i] != shape[i])
            return false;
    return true;
}

/* A hexadecimal digit's value and 16; 0: it is none. */
static const uint8_t nibbles[256] = {
    ['0'] = 16, ['1'] = 17, ['2'] = 18, ['3'] = 19, ['4'] = 20, ['5'] = 21, ['6'] = 22, ['7'] = 23, ['8'] = 24,
    ['9'] = 25, ['a'] = 26, ['b'] = 27, ['c'] = 28, ['d'] = 29, ['e'] = 30, ['f'] = 31 };

bool
audit_hash_parse(struct str text, uint8_t out[AUDIT_HASH])
{
    unsigned all = 16;

    if (text.n != AUDIT_HASH_TEXT)
        return false;
    for (size_t i = 0; i < AUDIT_HASH; i++) {
        unsigned high = nibbles[(uint8_t)text.p[2 * i]], low = nibbles[(uint8_t)text.p[2 * i + 1]];
        all &= high & low;
        out[i] = (uint8_t)(high << 4 | (low & 15));
    }
    return all != 0;
}

static bool
take_hash(struct str *s, uint8_t out[AUDIT_HASH])
{
    if (s->n < AUDIT_HASH_TEXT || !audit_hash_parse((struct str){ s->p, AUDIT_HASH_TEXT }, out))
        return false;
    *s = (struct str){ s->p + AUDIT_HASH_TEXT, s->n - AUDIT_HASH_TEXT };
    return true;
}

/* --- metadata ----------------------------------------------------------------------------------------------------- */

static bool
take_key(struct str *s, struct str *out)
{
    size_t i = 0;

    while (i < s->n && ((s->p[i] >= 'a' && s->p[i] <= 'z') || (s->p[i] >= 'A' && s->p[i] <= 'Z') ||
                        (s->p[i] >= '0' && s->p[i] <= '9') || s->p[i] == '_'))
        i++;
    if (i == 0 || i > AUDIT_KEY_MAX)
        return false;
    *out = (struct str){ s->p, i };
    *s = (struct str){ s->p + i, s->n - i };
    return true;
}

static bool
take_member(struct str *s, struct audit_member *out)
{
    const char *begin;

    if (!SKIP(s, "\"") || !take_key(s, &out->key) || !SKIP(s, "\":"))
        return false;
    if (SKIP(s, "\"")) {
        out->kind = AUDIT_STRING;
        return take_text(s, &out->value);
    }
    begin = s->p;
    if (SKIP(s, "true") || SKIP(s, "false"))
        out->kind = AUDIT_BOOL;
    else if (SKIP(s, "null"))
        out->kind = AUDIT_NULL;
    else {
        out->kind = AUDIT_NUMBER;
        return take_number(s, true, &out->value);
    }
    out->value = (struct str){ begin, (size_t)(s->p - begin) };
    return true;
}

static bool
take_metadata(struct str *s, struct str *out)
{
    struct audit_member member;
    const char *begin = s->p;
    size_t n = 0;

    if (!SKIP(s, "{"))
        return false;
    do {
        if (++n > AUDIT_META_MAX || !take_member(s, &member))
            return false;
    } while (SKIP(s, ","));
    if (!SKIP(s, "}"))
        return false;
    *out = (struct str){ begin, (size_t)(s->p - begin) };
    return true;
}

bool
audit_member_next(struct str *rest, struct audit_member *out)
{
    return (SKIP(rest, "{") || SKIP(rest, ",")) && take_member(rest, out);
}

bool
audit_member(const struct audit_line *line, const char *key, struct audit_member *out)
{
    struct str rest = line->metadata;

    while (audit_member_next(&rest, out))
        if (str_eq_c(out->key, key))
            return true;
    return false;
}

/* --- the line ----------------------------------------------------------------------------------------------------- */

bool
audit_parse(struct str line, struct audit_line *out)
{
    struct str s = line, number, word;

    *out = (struct audit_line){ .seq = 0 };
    if (line.n >= AUDIT_LINE_MAX || !SKIP(&s, "{\"seq\":") || !take_number(&s, false, &number) ||
        !str_parse_u64(number, INT64_MAX, &out->seq) || out->seq == 0)
        return false;
    if (!SKIP(&s, ",\"timestamp\":\"") || !take_text(&s, &out->timestamp) || !is_time(out->timestamp))
        return false;
    if (!SKIP(&s, ",\"type\":\"") || !take_text(&s, &word) || !audit_type_parse(word, &out->type) ||
        !SKIP(&s, ",\"severity\":\"") || !take_text(&s, &word) || !audit_severity_parse(word, &out->severity) ||
        !SKIP(&s, ",\"summary\":\"") || !take_text(&s, &out->summary))
        return false;
    if (SKIP(&s, ",\"sandbox\":\"") && (!take_text(&s, &out->sandbox) || out->sandbox.n == 0))
        return false;
    if (SKIP(&s, ",\"traceId\":\"") && (!take_text(&s, &out->trace_id) || out->trace_id.n == 0))
        return false;
    if (SKIP(&s, ",\"metadata\":") && !take_metadata(&s, &out->metadata))
        return false;
    if (!SKIP(&s, ",\"prev\":\"") || !take_hash(&s, out->prev) || !SKIP(&s, "\""))
        return false;
    out->hashed = (size_t)(s.p - line.p);
    return SKIP(&s, HASH_PART) && take_hash(&s, out->hash) && str_eq(s, STR_LIT("\"}"));
}

bool
audit_time_ms(struct str timestamp, int64_t *out)
{
    static const uint16_t before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    uint64_t year, month, day, hour, minute, second, ms;
    int64_t days;

    if (!is_time(timestamp))
        return false;
    (void)str_parse_u64((struct str){ timestamp.p, 4 }, 9999, &year);
    (void)str_parse_u64((struct str){ timestamp.p + 5, 2 }, 99, &month);
    (void)str_parse_u64((struct str){ timestamp.p + 8, 2 }, 99, &day);
    (void)str_parse_u64((struct str){ timestamp.p + 11, 2 }, 99, &hour);
    (void)str_parse_u64((struct str){ timestamp.p + 14, 2 }, 99, &minute);
    (void)str_parse_u64((struct str){ timestamp.p + 17, 2 }, 99, &second);
    (void)str_parse_u64((struct str){ timestamp.p + 20, 3 }, 999, &ms);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    /* leap days since 1970, this year's only from March on */
    days = (int64_t)((year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400) - 477;
    days += (int64_t)(year - 1970) * 365 + before[month - 1] + (int64_t)day - 1;
    days += month > 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 1 : 0;
    *out = ((days * 24 + (int64_t)hour) * 60 + (int64_t)minute) * 60000 + (int64_t)(second * 1000 + ms);
    return true;
}
