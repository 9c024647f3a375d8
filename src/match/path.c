/* match/path.c: see path.h */
#include "match/path.h"

#include <string.h>

const char *
path_fault_text(enum path_fault fault)
{
    switch (fault) {
    case PATH_OK:            return "is a path";
    case PATH_EMPTY:         return "is empty";
    case PATH_NUL:           return "holds a NUL byte";
    case PATH_TOO_LONG:      return "is longer than 4095 bytes";
    case PATH_NAME_TOO_LONG: return "has a name longer than 255 bytes";
    case PATH_RELATIVE:      return "is not absolute";
    case PATH_ESCAPES:       return "leads above the root directory";
    case PATH_GLOB_PARENT:   return "has \"..\" after a wildcard";
    case PATH_GLOB_SYNTAX:   return "has an unclosed \"[\" or a lone \"\\\" at the end of a name";
    }
    return "is not a path";
}

static bool
is_special(char c)
{
    return c == '*' || c == '?' || c == '[' || c == '\\';
}

bool
path_list_next(const char **list, struct str *folder)
{
    const char *at = *list;

    if (at == NULL || *at == '\0')
        return false;
    *folder = (struct str){ at, strcspn(at, ":") };
    *list = at + folder->n + (at[folder->n] == ':');
    return true;
}

bool
path_list_has(const char *list, const char *folder)
{
    struct str one;

    while (path_list_next(&list, &one))
        if (str_eq_c(one, folder))
            return true;
    return false;
}

bool
path_has_glob(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (is_special(text.p[i]))
            return true;
    return false;
}

/* Where the set that opens at @at ('[') ends: the index of its ']', or 0 when it never does. */
static size_t
set_end(struct str name, size_t at)
{
    size_t i = at + 1;

    if (i < name.n && (name.p[i] == '!' || name.p[i] == '^'))
        i++;
    if (i < name.n && name.p[i] == ']')     /* first in the set: an ordinary member */
        i++;
    for (; i < name.n; i++) {
        if (name.p[i] == '\\')
            i++;
        else if (name.p[i] == ']')
            return i;
    }
    return 0;
}

static bool
glob_name_is_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '\\') {
            if (++i >= name.n)
                return false;
        } else if (name.p[i] == '[') {
            i = set_end(name, i);
            if (i == 0)
                return false;
        }
    }
    return true;
}

struct normaliser {
    char *out;
    size_t n;
    size_t cap;
    size_t wild;    /* bytes of out up to the end of the first name with a wildcard; 0 when there is none */
    bool glob;
    bool escape;    /* this part is a plain path, and the result is a pattern */
};

static bool
put_byte(struct normaliser *w, char c)
{
    if (w->n >= PATH_TEXT_MAX || w->n + 1 >= w->cap)
        return false;
    w->out[w->n++] = c;
    return true;
}

static enum path_fault
push_name(struct normaliser *w, struct str name)
{
    if (name.n == 0 || str_eq(name, STR_LIT(".")))
        return PATH_OK;
    if (str_eq(name, STR_LIT(".."))) {
        if (w->n == 0)
            return PATH_ESCAPES;
        if (w->wild != 0)
            return PATH_GLOB_PARENT;
        while (w->out[w->n - 1] != '/')
            w->n--;
        w->n--;
        return PATH_OK;
    }
    if (name.n > PATH_NAME_MAX)
        return PATH_NAME_TOO_LONG;
    if (w->glob && !glob_name_is_valid(name))
        return PATH_GLOB_SYNTAX;
    if (!put_byte(w, '/'))
        return PATH_TOO_LONG;
    for (size_t i = 0; i < name.n; i++) {
        if (w->escape && is_special(name.p[i]) && !put_byte(w, '\\'))
            return PATH_TOO_LONG;
        if (!put_byte(w, name.p[i]))
            return PATH_TOO_LONG;
    }
    if (w->glob && w->wild == 0 && path_has_glob(name))
        w->wild = w->n;
    return PATH_OK;
}

static enum path_fault
push_path(struct normaliser *w, struct str path)
{
    size_t at = 0;

    while (at < path.n) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
        enum path_fault fault = push_name(w, (struct str){ path.p + at, end - at });
        if (fault != PATH_OK)
            return fault;
        at = end + 1;
    }
    return PATH_OK;
}

enum path_fault
path_normalise(struct str path, struct str base, bool glob, char *out, size_t cap, size_t *n)
{
    struct normaliser w = { .out = out, .n = 0, .cap = cap, .wild = 0, .glob = false, .escape = glob };
    enum path_fault fault;

    if (path.n == 0)
        return PATH_EMPTY;
    if (memchr(path.p, '\0', path.n) != NULL)
        return PATH_NUL;
    if (path.p[0] != '/') {
        if (base.n == 0 || base.p[0] != '/')
            return PATH_RELATIVE;
        fault = push_path(&w, base);
        if (fault != PATH_OK)
            return fault;
    }
    w.glob = glob;
    w.escape = false;
    fault = push_path(&w, path);
    if (fault != PATH_OK)
        return fault;
    while (glob && w.n >= 3 && memcmp(out + w.n - 3, "/**", 3) == 0)
        w.n -= 3;
    if (w.n == 0) {
        if (cap < 2)
            return PATH_TOO_LONG;
        out[w.n++] = '/';
    }
    out[w.n] = '\0';
    *n = w.n;
    return PATH_OK;
}

/* Without empty names, `.`, and `..` behind a name; what was absolute stays so. Its length, which is no more than it
 * was. */
static size_t
fold(char *path)
{
    bool absolute = path[0] == '/';
    size_t n = absolute ? 1 : 0, floor = n;     /* what no `..` takes away */

    for (const char *p = path, *next; *p != '\0'; p = next) {
        size_t len = strcspn(p, "/");
        bool up = len == 2 && p[0] == '.' && p[1] == '.';
        next = p + len + (p[len] == '/');
        if (len == 0 || (len == 1 && p[0] == '.') || (up && n == floor && absolute))
            continue;
        if (up && n > floor) {
            while (n > floor && path[n - 1] != '/')
                n--;
            n -= n > floor ? 1 : 0;
            continue;
        }
        if (n > 0 && path[n - 1] != '/')
            path[n++] = '/';
        memmove(path + n, p, len);
        n += len;
        floor = up ? n : floor;
    }
    path[n] = '\0';
    return n;
}

void
path_below(const char *root, char *path)
{
    size_t n = fold(path), m = strlen(root);

    while (m > 0 && root[m - 1] == '/')
        m--;
    if (path[0] == '/' && root[0] == '/' && strncmp(path, root, m) == 0 && (path[m] == '/' || path[m] == '\0')) {
        m += path[m] == '/' ? 1 : 0;
        n -= m;
        memmove(path, path + m, n + 1);
    }
    if (n == 0)
        memcpy(path, ".", 2);
}

bool
path_within(struct str path, struct str dir)
{
    if (str_eq(dir, STR_LIT("/")))
        return path.n > 0 && path.p[0] == '/';
    /* of hundreds of neighbours most differ in where their names end: that is looked at first */
    return path.n >= dir.n && (path.n == dir.n || path.p[dir.n] == '/') && str_starts(path, dir);
}

size_t
path_glob_prefix(struct str pattern)
{
    size_t slash = 0;

    for (size_t i = 0; i < pattern.n; i++) {
        if (is_special(pattern.p[i]))
            return slash;
        if (pattern.p[i] == '/')
            slash = i;
    }
    return pattern.n;
}

static size_t
count_names(const char *path)
{
    size_t n = 0;

    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

bool
path_glob_goes_below(const char *pattern, const char *path)
{
    return strstr(pattern, "**") != NULL || count_names(path) < count_names(pattern);
}

/* Whether the set at @at holds the byte @c; @next is where the pattern goes on. */
static bool
set_holds(struct str set, size_t at, char c, size_t *next)
{
    size_t end = set_end(set, at);
    size_t i = at + 1;
    bool negated = set.p[i] == '!' || set.p[i] == '^';
    bool found = false;

    if (negated)
        i++;
    while (i < end) {
        unsigned char low, high;
        if (set.p[i] == '\\' && i + 1 < end)
            i++;
        low = (unsigned char)set.p[i++];
        high = low;
        if (i + 1 < end && set.p[i] == '-') {
            i++;
            if (set.p[i] == '\\' && i + 1 < end)
                i++;
            high = (unsigned char)set.p[i++];
        }
        if ((unsigned char)c >= low && (unsigned char)c <= high)
            found = true;
    }
    *next = end + 1;
    return found != negated;
}

/* One pattern element against the name at @t. Returns the bytes of the name that it takes, 0 for no match. */
static size_t
match_one(struct str pattern, size_t p, struct str name, size_t t, size_t *next)
{
    size_t taken = 1;

    switch (pattern.p[p]) {
    case '?':
        *next = p + 1;
        /* one character, not one byte of it */
        while (t + taken < name.n && ((unsigned char)name.p[t + taken] & 0xc0) == 0x80)
            taken++;
        return taken;
    case '[':
        if (set_end(pattern, p) == 0)
            return 0;
        return set_holds(pattern, p, name.p[t], next) ? 1 : 0;
    case '\\':
        if (p + 1 >= pattern.n)
            return 0;
        *next = p + 2;
        return pattern.p[p + 1] == name.p[t] ? 1 : 0;
    default:
        *next = p + 1;
        return pattern.p[p] == name.p[t] ? 1 : 0;
    }
}

/* One name against one name's pattern. Only the last `*` needs to be retried: what an earlier one could take
 * instead, the last one can take too. */
static bool
match_name(struct str pattern, struct str name)
{
    size_t p = 0, t = 0, star_p = 0, star_t = 0;
    bool star = false;

    while (t < name.n) {
        size_t next, taken;
        if (p < pattern.n && pattern.p[p] == '*') {
            star = true;
            star_p = ++p;
            star_t = t;
            continue;
        }
        taken = p < pattern.n ? match_one(pattern, p, name, t, &next) : 0;
        if (taken > 0) {
            p = next;
            t += taken;
            continue;
        }
        if (!star)
            return false;
        p = star_p;
        t = ++star_t;
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

/* The name of @path at @at (just past a slash); *@at moves past the next slash, or past the end + 1. */
static struct str
next_name(struct str path, size_t *at)
{
    const char *slash = memchr(path.p + *at, '/', path.n - *at);
    size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
    struct str name = { path.p + *at, end - *at };

    *at = end + 1;
    return name;
}

/* The same scheme one level up: names instead of bytes, `**` instead of `*`. */
bool
path_glob_match(struct str pattern, struct str path)
{
    size_t p = 1, t = 1, star_p = 0, star_t = 0;
    bool star = false;

    if (pattern.n == 0 || path.n == 0 || pattern.p[0] != '/' || path.p[0] != '/')
        return false;
    if (pattern.n == 1 || path.n == 1)
        return str_eq(pattern, path) || (path.n == 1 && str_eq(pattern, STR_LIT("/**")));
    while (t <= path.n) {
        size_t p_next = p, t_next = t;
        struct str want = { NULL, 0 };
        if (p <= pattern.n)
            want = next_name(pattern, &p_next);
        if (str_eq(want, STR_LIT("**"))) {
            star = true;
            p = star_p = p_next;
            star_t = t;
            continue;
        }
        if (p <= pattern.n && match_name(want, next_name(path, &t_next))) {
            p = p_next;
            t = t_next;
            continue;
        }
        if (!star)
            return false;
        p = star_p;
        next_name(path, &star_t);
        t = star_t;
    }
    while (p <= pattern.n) {
        if (!str_eq(next_name(pattern, &p), STR_LIT("**")))
            return false;
    }
    return true;
}

/* Whether the letters before any wildcard already tell the path and the pattern apart. Hundreds of rules are asked
 * about hundreds of places before a sandbox in mode light begins: nearly all of them end here. */
static bool
parts_early(struct str pattern, bool literal, struct str path)
{
    size_t n = pattern.n < path.n ? pattern.n : path.n;

    for (size_t i = 0; i < n && (literal || !is_special(pattern.p[i])); i++)
        if (pattern.p[i] != path.p[i])
            return true;
    return false;
}

bool
path_covers(struct str pattern, bool literal, struct str path, size_t *depth)
{
    if (parts_early(pattern, literal, path))
        return false;
    if (literal || !path_has_glob(pattern)) {
        if (!path_within(path, pattern))
            return false;
        if (depth != NULL)
            *depth = pattern.n;
        return true;
    }
    if (!path_within(path, (struct str){ pattern.p, path_glob_prefix(pattern) }) && path_glob_prefix(pattern) > 0)
        return false;
    for (size_t n = path.n; n > 0; n--) {
        if (n != path.n && path.p[n] != '/')
            continue;
        if (path_glob_match(pattern, (struct str){ path.p, n })) {
            if (depth != NULL)
                *depth = n;
            return true;
        }
    }
    return false;
}
