/* base/str.c: see str.h */
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int
hex_digit(char c)
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
        int digit = hex_digit(s.p[i]);

        if (digit < 0 || value >> 60 != 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

static size_t
leading_digits(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

bool
str_parse_size(struct str s, uint64_t max, uint64_t *out)
{
    static const struct { const char *suffix; unsigned shift; } units[] = {
        { "", 0 },     { "b", 0 },    { "B", 0 },    { "k", 10 },   { "K", 10 },   { "kb", 10 }, { "KB", 10 },
        { "Ki", 10 },  { "KiB", 10 }, { "m", 20 },   { "M", 20 },   { "mb", 20 },  { "MB", 20 }, { "Mi", 20 },
        { "MiB", 20 }, { "g", 30 },   { "G", 30 },   { "gb", 30 },  { "GB", 30 },  { "Gi", 30 }, { "GiB", 30 },
        { "t", 40 },   { "T", 40 },   { "tb", 40 },  { "TB", 40 },  { "Ti", 40 },  { "TiB", 40 },
    };
    size_t digits = leading_digits(s);
    struct str unit = { s.p + digits, s.n - digits };
    uint64_t value;

    if (!str_parse_u64((struct str){ s.p, digits }, UINT64_MAX, &value))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!str_eq_c(unit, units[i].suffix))
            continue;
        if (__builtin_mul_overflow(value, (uint64_t)1 << units[i].shift, &value) || value > max)
            return false;
        *out = value;
        return true;
    }
    return false;
}

bool
str_parse_duration_ms(struct str s, uint64_t max, uint64_t *out)
{
    static const struct { const char *suffix; uint64_t ms; } units[] = {
        { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60 * 1000 }, { "h", 3600 * 1000 },
    };
    size_t digits = leading_digits(s);
    struct str unit = { s.p + digits, s.n - digits };
    uint64_t value;

    if (!str_parse_u64((struct str){ s.p, digits }, UINT64_MAX, &value))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!str_eq_c(unit, units[i].suffix))
            continue;
        if (__builtin_mul_overflow(value, units[i].ms, &value) || value > max)
            return false;
        *out = value;
        return true;
    }
    return false;
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
