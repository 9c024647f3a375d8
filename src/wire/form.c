/* wire/form.c: see form.h */
#include "wire/form.h"

#include <string.h>

#include "base/str.h"

bool
url_decode(const char *p, size_t n, bool plus, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '%') {
            int high = i + 2 < n ? str_hex_digit(p[i + 1]) : -1, low = i + 2 < n ? str_hex_digit(p[i + 2]) : -1;
            if (high < 0 || low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (used + 1 >= size)
            return false;
        out[used++] = c;
    }
    out[used] = '\0';
    return true;
}

const char *
form_get(const char *text, const char *key, char *room, size_t size, bool *bad)
{
    size_t n = strlen(key);

    for (const char *at = text, *end; *at != '\0'; at = *end == '&' ? end + 1 : end) {
        end = strchrnul(at, '&');
        if (strncmp(at, key, n) != 0 || (at[n] != '=' && at + n != end))
            continue;
        at += at[n] == '=' ? n + 1 : n;
        if (url_decode(at, (size_t)(end - at), true, room, size))
            return room;
        *bad = true;
        return NULL;
    }
    return NULL;
}
