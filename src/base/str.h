/* base/str.h: borrowed byte ranges, the only number parsers, and characters of UTF-8
 *
 * A struct str is a view: pointer and length, not NUL-terminated, never owning. Converting to a C string
 * goes through str_to_cstr, which refuses an embedded NUL. Numbers are parsed by these functions only
 * (no strtol, atoi): whole input or refusal, maximum required.
 */
#ifndef CLOCHE_BASE_STR_H
#define CLOCHE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    const char *p;
    size_t n;
};

#define STR_LIT(s) ((struct str){ .p = (s), .n = sizeof(s) - 1 })

struct str str_of(const char *cstr);            /* view of a C string; NULL gives an empty view */
bool str_eq(struct str a, struct str b);
bool str_eq_c(struct str a, const char *cstr);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* Copy into a fresh NUL-terminated string that the caller frees; NULL on an embedded NUL (errno EINVAL) or no memory.
 */
char *str_to_cstr(struct str s);

/* Whether a[0..n) and b[0..n) are the same, in a time that does not depend on what they are. */
bool mem_same(const void *a, const void *b, size_t n);

/* Bytes of the character at p[0..n) in UTF-8 (RFC 3629), its code point in @c; @n is at least 1. 0, and nothing in @c,
 * where none begins or it is not all there. */
size_t utf8_char(const uint8_t *p, size_t n, uint32_t *c);

/* Of an ASCII letter the small one; every other byte is itself. */
static inline char
ascii_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Decimal digits only, no sign, no blank, no leading '+'; the whole of @s. False when not so or > @max. */
bool str_parse_u64(struct str s, uint64_t max, uint64_t *out);
/* The same in hexadecimal, either case, without a prefix. */
bool str_parse_hex(struct str s, uint64_t max, uint64_t *out);
/* What a hexadecimal digit of either case stands for; -1 when it is none. */
int str_hex_digit(char c);
/* p[0..n) as 2 * @n lower case hexadecimal digits and a NUL, for which @out has room. */
void str_hex(const uint8_t *p, size_t n, char *out);
/* The other way: s.n / 2 bytes of as many pairs of digits, either case. False: it is something else, and what is in
 * @out means nothing. */
bool str_unhex(struct str s, uint8_t *out);
/* A byte size: digits with an optional suffix k, m, g, t (powers of 1024; also K, Ki, KiB, kb ...). False when not so
 * or > @max. */
bool str_parse_size(struct str s, uint64_t max, uint64_t *out);
/* A duration: "30", "30s", "500ms", "5m", "2h" → milliseconds; a bare number is seconds. False when not so or > @max.
 */
bool str_parse_duration_ms(struct str s, uint64_t max, uint64_t *out);
/* A decimal fraction such as "0.5" → thousandths (500), at most three digits after the point. */
bool str_parse_milli(struct str s, uint64_t max, uint64_t *out);

/* a*b and a+b, false on overflow. */
static inline bool
size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool
size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* How many letters have to be changed, added or taken away to make @b of @a (Levenshtein); 99 where one is longer than
 * STR_DISTANCE_MAX: for what a misspelt word was probably meant to be. */
#define STR_DISTANCE_MAX 64
size_t str_distance(struct str a, struct str b);

#endif
