/* wire/multipart.c: see multipart.h */
#include "wire/multipart.h"

#include <string.h>
#include <strings.h>

/* --- parameters: `; NAME=VALUE`, or `; NAME="VALUE"` -------------------------------------------------------------- */

/* What stands for a byte in a quoted file's name: HTML's three, and a backslash before itself or a quote. */
static size_t
unquoted(const char *p, size_t n, char *c)
{
    static const struct { char text[4]; char c; } rows[] = { { "%22", '"' }, { "%0D", '\r' }, { "%0A", '\n' } };

    for (size_t i = 0; i < 3; i++) {
        if (n >= 3 && strncasecmp(p, rows[i].text, 3) == 0) {
            *c = rows[i].c;
            return 3;
        }
    }
    *c = p[0];
    if (p[0] != '\\' || n < 2 || (p[1] != '\\' && p[1] != '"'))
        return 1;
    *c = p[1];
    return 2;
}

/* The quoted text that begins at @p, whose first byte is the quote. Bytes of @p that it takes; 0: malformed, or too
 * long for @out. */
static size_t
quoted(const char *p, size_t n, char *out, size_t size)
{
    size_t used = 0, i = 1, took;

    for (; i < n && p[i] != '"'; i += took) {
        took = unquoted(p + i, n - i, &out[used]);
        if (++used == size)
            return 0;
    }
    out[used] = '\0';
    return i < n && memchr(out, '\0', used) == NULL ? i + 1 : 0;
}

static size_t
blanks(struct str s, size_t at)
{
    while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t'))
        at++;
    return at;
}

/* The next parameter of s; its name into @name, lower case. 1, 0 there is none, -1 malformed. */
static int
next_parameter(struct str *s, char name[32], char *value, size_t size)
{
    size_t at = blanks(*s, 0), n = 0, took;

    if (at == s->n)
        return 0;
    if (s->p[at] != ';')
        return -1;
    at = blanks(*s, at + 1);
    for (; at < s->n && s->p[at] != '=' && n < 31; at++)
        name[n++] = ascii_lower(s->p[at]);
    name[n] = '\0';
    if (n == 0 || at >= s->n || s->p[at] != '=' || strcspn(name, " \t\";") != n)
        return -1;
    at++;
    if (at < s->n && s->p[at] == '"') {
        took = quoted(s->p + at, s->n - at, value, size);
        if (took == 0)
            return -1;
    } else {
        for (took = 0; at + took < s->n && strchr(" \t;", s->p[at + took]) == NULL; took++)
            ;
        if (took == 0 || took >= size || memchr(s->p + at, '"', took) != NULL)
            return -1;
        memcpy(value, s->p + at, took);
        value[took] = '\0';
    }
    *s = (struct str){ s->p + at + took, s->n - at - took };
    return 1;
}

/* --- the form ----------------------------------------------------------------------------------------------------- */

static bool
boundary_well(const char *text)
{
    static const char marks[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'()+_,-./:=?";
    size_t n = strlen(text);

    return n > 0 && n <= MULTIPART_BOUNDARY && strspn(text, marks) == n;
}

const char *
multipart_begin(struct multipart *m, const char *content_type, struct str body)
{
    static const char type[] = "multipart/form-data";
    char name[32], value[MULTIPART_BOUNDARY + 2], boundary[MULTIPART_BOUNDARY + 2] = "";
    struct str rest;
    int got;

    *m = (struct multipart){ .left = body };
    if (strncasecmp(content_type, type, sizeof(type) - 1) != 0)
        return "it is no multipart/form-data";
    rest = str_of(content_type + sizeof(type) - 1);
    while ((got = next_parameter(&rest, name, value, sizeof(value))) > 0) {
        if (strcmp(name, "boundary") == 0 && boundary[0] != '\0')
            return "it has two boundaries";
        if (strcmp(name, "boundary") == 0)
            memcpy(boundary, value, sizeof(boundary));
    }
    if (got < 0 || !boundary_well(boundary))
        return "its boundary is malformed";
    memcpy(m->line, "\r\n--", 4);
    m->line_n = 4 + strlen(boundary);
    memcpy(m->line + 4, boundary, m->line_n - 4);
    if (body.n < m->line_n - 2 || memcmp(body.p, m->line + 2, m->line_n - 2) != 0)
        return "it does not begin with its boundary";
    m->left.p += m->line_n - 2;
    m->left.n -= m->line_n - 2;
    return NULL;
}

static int
fault(struct multipart *m, const char *what)
{
    m->fault = what;
    return -1;
}

static int
disposition(struct multipart *m, struct str value, struct multipart_part *out)
{
    static const char form[] = "form-data";
    static char text[MULTIPART_TEXT + 1];       /* there is one thread */
    bool named = false;
    char name[32];
    int got;

    if (value.n < sizeof(form) - 1 || strncasecmp(value.p, form, sizeof(form) - 1) != 0)
        return fault(m, "a part is no form-data");
    value = (struct str){ value.p + sizeof(form) - 1, value.n - (sizeof(form) - 1) };
    while ((got = next_parameter(&value, name, text, sizeof(text))) > 0) {
        bool is_name = strcmp(name, "name") == 0, is_file = strcmp(name, "filename") == 0;
        if ((is_name && named) || (is_file && out->is_file))
            return fault(m, "a part has two names");
        if (!is_name && !is_file)
            return fault(m, "a part's Content-Disposition has a parameter that is not known");
        memcpy(is_name ? out->name : out->file, text, strlen(text) + 1);
        named = named || is_name;
        out->is_file = out->is_file || is_file;
    }
    return got == 0 && named ? 0 : fault(m, "a part's Content-Disposition is malformed");
}

/* One header of a part, without its end. */
static int
header(struct multipart *m, struct str line, struct multipart_part *out, bool *disposed)
{
    const char *colon = memchr(line.p, ':', line.n);
    struct str name, value;

    if (colon == NULL || colon == line.p || memchr(line.p, '\0', line.n) != NULL)
        return fault(m, "a part has a malformed header");
    name = (struct str){ line.p, (size_t)(colon - line.p) };
    value = (struct str){ colon + 1, line.n - name.n - 1 };
    value = (struct str){ value.p + blanks(value, 0), value.n - blanks(value, 0) };
    if (name.n == 19 && strncasecmp(name.p, "content-disposition", 19) == 0) {
        if (*disposed)
            return fault(m, "a part has two Content-Dispositions");
        *disposed = true;
        return disposition(m, value, out);
    }
    if (name.n == 25 && strncasecmp(name.p, "content-transfer-encoding", 25) == 0)
        return fault(m, "a part has a Content-Transfer-Encoding");
    return 0;
}

/* Headers, up to the empty line. */
static int
headers(struct multipart *m, struct multipart_part *out)
{
    bool disposed = false;

    for (size_t used = 0;;) {
        const char *end = memmem(m->left.p, m->left.n, "\r\n", 2);
        size_t n = end != NULL ? (size_t)(end - m->left.p) : 0;
        if (end == NULL || (used += n + 2) > MULTIPART_HEAD)
            return fault(m, "a part's headers have no end, or are too long");
        if (n > 0 && header(m, (struct str){ m->left.p, n }, out, &disposed) < 0)
            return -1;
        m->left = (struct str){ end + 2, m->left.n - n - 2 };
        if (n == 0)
            return disposed ? 0 : fault(m, "a part has no Content-Disposition");
    }
}

int
multipart_next(struct multipart *m, struct multipart_part *out)
{
    const char *end;

    if (m->ended || m->fault != NULL)
        return m->ended ? 0 : -1;
    *out = (struct multipart_part){ .is_file = false };
    if (m->left.n >= 2 && memcmp(m->left.p, "--", 2) == 0) {
        m->left = (struct str){ m->left.p + 2, m->left.n - 2 };
        if (m->left.n != 0 && !str_eq(m->left, STR_LIT("\r\n")))
            return fault(m, "there is something behind the form");
        m->ended = true;
        return 0;
    }
    if (m->left.n < 2 || memcmp(m->left.p, "\r\n", 2) != 0)
        return fault(m, "the form ends within a boundary");
    m->left = (struct str){ m->left.p + 2, m->left.n - 2 };
    if (headers(m, out) < 0)
        return -1;
    /* an empty part's boundary begins with the end of its headers */
    end = m->left.n >= m->line_n - 2 && memcmp(m->left.p, m->line + 2, m->line_n - 2) == 0
          ? m->left.p - 2 : memmem(m->left.p, m->left.n, m->line, m->line_n);
    if (end == NULL)
        return fault(m, "the form ends within a part");
    out->content = (struct str){ m->left.p, end < m->left.p ? 0 : (size_t)(end - m->left.p) };
    m->left = (struct str){ end + m->line_n, (size_t)(m->left.p + m->left.n - (end + m->line_n)) };
    return 1;
}
