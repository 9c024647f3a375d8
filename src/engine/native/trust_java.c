/* engine/native/trust_java.c: see trust_java.h */
#include "engine/native/trust_java.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sha1.h"

#define MAGIC       0xfeedfeedu
#define VERSION     2
#define TRUSTED     2           /* the tag of an entry without a key */
#define WHITENER    "Mighty Aphrodite"
#define COUNT_AT    8           /* bytes in front of the number of entries */
#define BEGIN       "-----BEGIN CERTIFICATE-----"
#define END         "-----END CERTIFICATE-----"

/* --- certificates ------------------------------------------------------------------------------------------------- */

static int
value_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 (RFC 4648 §4, RFC 7468: between lines, white space) of @text behind what is in @out. False: it is none. */
static bool
decode(struct str text, struct buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t i;

    for (i = 0; i < text.n && text.p[i] != '='; i++) {
        int v = value_of(text.p[i]);
        if (v < 0 && strchr(" \t\r\n", text.p[i]) != NULL)
            continue;
        if (v < 0)
            return false;
        bits = bits << 6 | (uint32_t)v;
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        buf_put_u8(out, (uint8_t)(bits >> have));
        bits &= (1u << have) - 1;
    }
    for (; i < text.n; i++)
        if (strchr("= \t\r\n", text.p[i]) == NULL)
            return false;
    return bits == 0;
}

/* The next certificate of @pem, which gets shorter; false: there is none. */
static bool
next_certificate(struct str *pem, struct str *inner)
{
    const char *begin = pem->n > 0 ? memmem(pem->p, pem->n, BEGIN, strlen(BEGIN)) : NULL, *end;
    size_t left;

    if (begin == NULL)
        return false;
    begin += strlen(BEGIN);
    left = pem->n - (size_t)(begin - pem->p);
    end = memmem(begin, left, END, strlen(END));
    if (end == NULL)
        return false;
    *inner = (struct str){ begin, (size_t)(end - begin) };
    *pem = (struct str){ end, left - inner->n };
    return true;
}

static void
put_text(struct buf *out, const char *text)
{
    buf_put_be16(out, (uint16_t)strlen(text));
    buf_puts(out, text);
}

/* One entry, or nothing. */
static bool
put_entry(struct buf *out, struct str inner, unsigned number)
{
    size_t before = out->n, at;
    char alias[32];
    uint32_t size;

    snprintf(alias, sizeof(alias), "cloche-%u", number);
    buf_put_be32(out, TRUSTED);
    put_text(out, alias);
    buf_put_be64(out, 0);       /* when it was made */
    put_text(out, "X.509");
    at = out->n;
    buf_put_be32(out, 0);
    if (!decode(inner, out) || !buf_ok(out) || out->n == at + 4) {
        out->n = before;
        return false;
    }
    size = (uint32_t)(out->n - at - 4);
    for (size_t i = 0; i < 4; i++)
        out->p[at + i] = (uint8_t)(size >> (24 - 8 * i));
    return true;
}

int
trust_java(struct str pem, struct buf *out)
{
    struct sha1 s;
    uint8_t digest[SHA1_SIZE];
    unsigned count = 0;
    struct str inner;

    buf_put_be32(out, MAGIC);
    buf_put_be32(out, VERSION);
    buf_put_be32(out, 0);
    while (buf_ok(out) && next_certificate(&pem, &inner))
        count += put_entry(out, inner, count);
    if (!buf_ok(out))
        return -1;
    for (size_t i = 0; i < 4; i++)
        out->p[COUNT_AT + i] = (uint8_t)(count >> (24 - 8 * i));
    sha1_begin(&s);
    for (const char *c = TRUST_JAVA_PASSWORD; *c != '\0'; c++)
        sha1_add(&s, (const char[]){ '\0', *c }, 2);
    sha1_add(&s, WHITENER, strlen(WHITENER));
    sha1_add(&s, out->p, out->n);
    sha1_end(&s, digest);
    return buf_append(out, digest, sizeof(digest)) < 0 ? -1 : (int)count;
}
