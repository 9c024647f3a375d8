/* wire/http1_body.c: where a body ends, byte by byte, without copying it (RFC 9112 §6, §7; see http1.h) */
#include "wire/http1_priv.h"

#include <string.h>

#include "base/array.h"

#define SIZE_DIGITS 16      /* hexadecimal digits of a chunk size: what fits 64 bits */

enum state {
    ST_SIZE,                /* chunk size */
    ST_SIZE_LF,
    ST_DATA,                /* of a chunk, or of a body with a length or until close */
    ST_DATA_CR,
    ST_DATA_LF,
    ST_TRAILER,             /* first byte of a trailer line, or of the empty one */
    ST_TRAILER_NAME,
    ST_TRAILER_VALUE,
    ST_TRAILER_LF,
    ST_END_LF,
    ST_DONE,
};

enum http1_result
http1_body_begin(struct http1_body *body, const struct http1_head *head, uint64_t max)
{
    *body = (struct http1_body){ .framing = head->framing, .max = max, .state = ST_DATA };
    switch (head->framing) {
    case HTTP1_BODY_CHUNKED:
        body->state = ST_SIZE;
        break;
    case HTTP1_BODY_LENGTH:
        if (head->body_length > max)
            return body->fault = HTTP1_BODY_TOO_LARGE;
        body->left = head->body_length;
        if (body->left == 0)
            body->state = ST_DONE;
        break;
    case HTTP1_BODY_UNTIL_CLOSE:
        body->left = max;
        break;
    case HTTP1_BODY_NONE:
        body->state = ST_DONE;
        break;
    }
    return HTTP1_OK;
}

/* Digits and CR only: no sign, no "0x", no blank, no extension. */
static enum http1_result
size_byte(struct http1_body *body, uint8_t c)
{
    if (c == '\r' && body->digits > 0) {
        if (body->left > body->max - body->total)
            return HTTP1_BODY_TOO_LARGE;
        body->total += body->left;
        body->state = ST_SIZE_LF;
        return HTTP1_MORE;
    }
    if (!http1_is(c, C_HEX) || body->digits == SIZE_DIGITS)
        return HTTP1_BAD_CHUNK;
    body->left = body->left << 4 | (unsigned)str_hex_digit((char)c);
    body->digits++;
    return HTTP1_MORE;
}

bool
http1_is_bad_trailer(struct str name)
{
    static const struct str names[] = {
        { "content-length", 14 }, { "transfer-encoding", 17 }, { "host", 4 }, { "connection", 10 }, { "upgrade", 7 },
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (http1_equal(name, names[i]))
            return true;
    return false;
}

static enum http1_result
trailer_name_byte(struct http1_body *body, uint8_t c)
{
    if (c == ':' && body->name_n > 0) {
        body->state = ST_TRAILER_VALUE;
        return http1_is_bad_trailer((struct str){ body->name, body->name_n }) ? HTTP1_BAD_TRAILER : HTTP1_MORE;
    }
    if (!http1_is(c, C_TOKEN))
        return HTTP1_BAD_TRAILER;
    if (body->name_n < sizeof(body->name))      /* a name that fills it is longer than those that matter */
        body->name[body->name_n++] = (char)c;
    return HTTP1_MORE;
}

static enum http1_result
trailer_byte(struct http1_body *body, uint8_t c)
{
    if (++body->trailer_bytes > HTTP1_TRAILER_MAX)
        return HTTP1_TRAILER_TOO_LARGE;
    switch (body->state) {
    case ST_TRAILER:
        if (c == '\r') {
            body->state = ST_END_LF;
            return HTTP1_MORE;
        }
        if (body->trailer_fields++ == HTTP1_TRAILER_FIELDS_MAX)
            return HTTP1_TRAILER_TOO_LARGE;
        body->name_n = 0;
        body->state = ST_TRAILER_NAME;
        return trailer_name_byte(body, c);
    case ST_TRAILER_NAME:
        return trailer_name_byte(body, c);
    case ST_TRAILER_VALUE:
        if (c == '\r') {
            body->state = ST_TRAILER_LF;
            return HTTP1_MORE;
        }
        return http1_is(c, C_VALUE) ? HTTP1_MORE : HTTP1_BAD_TRAILER;
    case ST_TRAILER_LF:
        body->state = ST_TRAILER;
        return c == '\n' ? HTTP1_MORE : HTTP1_BAD_TRAILER;
    default:    /* ST_END_LF */
        body->state = ST_DONE;
        return c == '\n' ? HTTP1_OK : HTTP1_BAD_TRAILER;
    }
}

/* One byte of framing. HTTP1_OK ends the body. */
static enum http1_result
framing_byte(struct http1_body *body, uint8_t c)
{
    switch (body->state) {
    case ST_SIZE:
        return size_byte(body, c);
    case ST_SIZE_LF:
        body->state = body->left > 0 ? ST_DATA : ST_TRAILER;
        return c == '\n' ? HTTP1_MORE : HTTP1_BAD_CHUNK;
    case ST_DATA_CR:
        body->state = ST_DATA_LF;
        return c == '\r' ? HTTP1_MORE : HTTP1_BAD_CHUNK;
    case ST_DATA_LF:
        body->state = ST_SIZE;
        body->digits = 0;
        return c == '\n' ? HTTP1_MORE : HTTP1_BAD_CHUNK;
    default:
        return trailer_byte(body, c);
    }
}

/* Bytes of data at @p: at most what is left. */
static enum http1_result
take_data(struct http1_body *body, const uint8_t *p, size_t n, struct str *data)
{
    size_t take = n < body->left ? n : (size_t)body->left;

    if (take == 0)      /* until close, with bytes beyond the ceiling */
        return HTTP1_BODY_TOO_LARGE;
    *data = (struct str){ (const char *)p, take };
    body->left -= take;
    if (body->framing != HTTP1_BODY_CHUNKED)
        body->total += take;
    if (body->left > 0 || body->framing == HTTP1_BODY_UNTIL_CLOSE)
        return HTTP1_MORE;
    body->state = body->framing == HTTP1_BODY_CHUNKED ? ST_DATA_CR : ST_DONE;
    return body->state == ST_DONE ? HTTP1_OK : HTTP1_MORE;
}

enum http1_result
http1_body_next(struct http1_body *body, const uint8_t *p, size_t n, struct str *data, size_t *used)
{
    enum http1_result result = HTTP1_MORE;
    size_t at = 0;

    *data = (struct str){ .p = NULL, .n = 0 };
    *used = 0;
    if (body->fault != HTTP1_OK)
        return body->fault;
    if (body->state == ST_DONE)
        return HTTP1_OK;
    while (at < n && result == HTTP1_MORE) {
        if (body->state == ST_DATA) {
            result = take_data(body, p + at, n - at, data);
            at += data->n;
            break;
        }
        result = framing_byte(body, p[at++]);
    }
    *used = at;
    if (result != HTTP1_MORE && result != HTTP1_OK)
        body->fault = result;
    return result;
}

enum http1_result
http1_body_end(const struct http1_body *body)
{
    if (body->fault != HTTP1_OK)
        return body->fault;
    return body->state == ST_DONE || body->framing == HTTP1_BODY_UNTIL_CLOSE ? HTTP1_OK : HTTP1_BODY_CUT;
}
