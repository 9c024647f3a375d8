/* base/str.c: see str.h */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct str
str_of(const char *cstr)
{
    return (struct str){ .p = cstr, .n = cstr != NULL ? strlen(cstr) : 0 };
}

bool
str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool
str_eq_c(struct str a, const char *cstr)
{
    return str_eq(a, str_of(cstr));
}

bool
str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq((struct str){ s.p, prefix.n }, prefix);
}

bool
str_ends(struct str s, struct str suffix)
{
    return s.n >= suffix.n && str_eq((struct str){ s.p + (s.n - suffix.n), suffix.n }, suffix);
}

char *
str_to_cstr(struct str s)
{
    char *out;

    if (s.n > 0 && memchr(s.p, '\0', s.n) != NULL) {
        errno = EINVAL;
        return NULL;
    }
    out = malloc(s.n + 1);
    if (out == NULL)
        return NULL;
    if (s.n > 0)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return out;
}

bool
mem_same(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}

size_t
utf8_char(const uint8_t *p, size_t n, uint32_t *c)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint8_t b = p[0];
    size_t want = b < 0x80 ? 1 : (b & 0xe0) == 0xc0 ? 2 : (b & 0xf0) == 0xe0 ? 3 : (b & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t v = want == 1 ? b : b & (0x7fU >> want);

    if (want == 0 || want > n)
        return 0;
    for (size_t i = 1; i < want; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (p[i] & 0x3fU);
    }
    /* too long a form, above the last, a surrogate */
    if (v < least[want] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return 0;
    *c = v;
    return want;
}

bool
str_parse_u64(struct str s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

int
str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool
str_parse_hex(struct str s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        int digit = str_hex_digit(s.p[i]);

        if (digit < 0 || value >> 60 != 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

void
str_hex(const uint8_t *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

bool
str_unhex(struct str s, uint8_t *out)
{
    for (size_t i = 0; i + 1 < s.n; i += 2) {
        int high = str_hex_digit(s.p[i]), low = str_hex_digit(s.p[i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    return s.n % 2 == 0;
}

static size_t
leading_digits(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

struct unit { const char *suffix; uint64_t worth; };

/* Digits and one of the @n suffixes. */
static bool
parse_with_unit(struct str s, const struct unit *units, size_t n, uint64_t max, uint64_t *out)
{
    size_t digits = leading_digits(s);
    struct str suffix = { s.p + digits, s.n - digits };
    uint64_t value;

    if (!str_parse_u64((struct str){ s.p, digits }, UINT64_MAX, &value))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!str_eq_c(suffix, units[i].suffix))
            continue;
        if (__builtin_mul_overflow(value, units[i].worth, &value) || value > max)
            return false;
        *out = value;
        return true;
    }
    return false;
}

bool
str_parse_size(struct str s, uint64_t max, uint64_t *out)
{
    static const struct unit units[] = {
        { "", 1 },     { "b", 1 },    { "B", 1 },
        { "k", KIB },  { "K", KIB },  { "kb", KIB }, { "KB", KIB }, { "Ki", KIB }, { "KiB", KIB },
        { "m", MIB },  { "M", MIB },  { "mb", MIB }, { "MB", MIB }, { "Mi", MIB }, { "MiB", MIB },
        { "g", GIB },  { "G", GIB },  { "gb", GIB }, { "GB", GIB }, { "Gi", GIB }, { "GiB", GIB },
        { "t", TIB },  { "T", TIB },  { "tb", TIB }, { "TB", TIB }, { "Ti", TIB }, { "TiB", TIB },
    };

    return parse_with_unit(s, units, ARRAY_LEN(units), max, out);
}

bool
str_parse_duration_ms(struct str s, uint64_t max, uint64_t *out)
{
    static const struct unit units[] = {
        { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 },
    };

    return parse_with_unit(s, units, ARRAY_LEN(units), max, out);
}

bool
str_parse_milli(struct str s, uint64_t max, uint64_t *out)
{
    size_t whole_n = leading_digits(s);
    struct str frac = { s.p + whole_n, s.n - whole_n };
    uint64_t whole, part = 0;

    if (!str_parse_u64((struct str){ s.p, whole_n }, UINT64_MAX / 1000 - 1, &whole))
        return false;
    if (frac.n > 0) {
        if (frac.p[0] != '.' || frac.n < 2 || frac.n > 4)
            return false;
        if (!str_parse_u64((struct str){ frac.p + 1, frac.n - 1 }, 999, &part))
            return false;
        for (size_t i = frac.n - 1; i < 3; i++)
            part *= 10;
    }
    if (whole * 1000 + part > max)
        return false;
    *out = whole * 1000 + part;
    return true;
}

size_t
str_distance(struct str a, struct str b)
{
    size_t row[STR_DISTANCE_MAX + 1];

    if (a.n > STR_DISTANCE_MAX || b.n > STR_DISTANCE_MAX)
        return 99;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t best = corner + (a.p[i - 1] != b.p[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b.n];
}
