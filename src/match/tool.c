/* match/tool.c: see tool.h */
#include "match/tool.h"

#include <string.h>

static bool
is_made_of(struct str s, const char *marks)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return s.n > 0 && s.n <= TOOL_NAME_MAX;
}

bool
tool_is_name(struct str name)
{
    return is_made_of(name, "_-./");
}

bool
tool_is_pattern(struct str pattern)
{
    return is_made_of(pattern, "_-./*");
}

/* The last "*" takes one character more whenever what follows it does not fit. */
bool
tool_match(struct str pattern, struct str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;

    while (n < name.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = p++;
            from = n;
        } else if (p < pattern.n && pattern.p[p] == name.p[n]) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}
