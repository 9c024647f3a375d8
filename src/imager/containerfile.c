/* imager/containerfile.c: see containerfile.h
 *
 * Of the reference of Dockerfiles this reads: comments, the directive "escape", lines that go on in the next one, ARG
 * before the first FROM, FROM, and the flag --from of COPY. Variables are $NAME, ${NAME}, ${NAME:-WORD}, ${NAME:+WORD}.
 */
#include "imager/containerfile.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define NAMES_MAX  64           /* variables, stages */
#define NAME_MAX_N 128
#define VALUE_MAX  512

struct variable {
    char name[NAME_MAX_N], value[VALUE_MAX];
    bool set, given;            /* by the build: it stays */
};

struct reading {
    struct str rest;
    size_t line;                /* of the file, from 1 on: where the instruction began */
    size_t next;
    char escape;
    struct variable vars[NAMES_MAX];
    char stages[NAMES_MAX][NAME_MAX_N];
    size_t n_vars, n_stages;
    bool in_stage;
    struct base_list *out;
};

static int
refuse(const struct reading *r, const char *code, const char *why, struct str what, struct err *err)
{
    int n = what.n > 100 ? 100 : (int)what.n;

    if (r->line == 0)
        return err_set(err, ERR_USAGE, code, "--build-arg: %s: \"%.*s\"", why, n, what.p);
    return err_set(err, ERR_USAGE, code, "line %zu of the Containerfile: %s: \"%.*s\"", r->line, why, n, what.p);
}

/* --- lines and words ---------------------------------------------------------------------------------------------- */

static bool
blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct str
trimmed(struct str s)
{
    while (s.n > 0 && blank(s.p[0]))
        s = (struct str){ s.p + 1, s.n - 1 };
    while (s.n > 0 && blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* The next line of the file, trimmed. False at its end. */
static bool
next_line(struct reading *r, struct str *out)
{
    const char *end;

    if (r->rest.n == 0)
        return false;
    end = memchr(r->rest.p, '\n', r->rest.n);
    *out = (struct str){ r->rest.p, end != NULL ? (size_t)(end - r->rest.p) : r->rest.n };
    r->rest = (struct str){ out->p + out->n + (end != NULL), r->rest.n - out->n - (end != NULL) };
    r->next++;
    *out = trimmed(*out);
    return true;
}

/* The next instruction whole, in @b. What is longer than its ceiling is cut: RUN may be, and is not read. */
static bool
next_instruction(struct reading *r, struct buf *b)
{
    bool goes_on = false;
    struct str line;

    buf_reset(b);
    while (next_line(r, &line)) {
        if (line.n == 0 || line.p[0] == '#')
            continue;           /* within an instruction too */
        if (!goes_on)
            r->line = r->next;
        goes_on = line.p[line.n - 1] == r->escape;
        if (buf_ok(b) && b->n + line.n < b->max)
            buf_append(b, line.p, line.n - goes_on);
        if (!goes_on)
            return true;
    }
    return b->n > 0;
}

/* "# escape=`", at the top. */
static void
read_directives(struct reading *r)
{
    struct reading before = *r;
    struct str line, value;
    const char *is;

    while (next_line(r, &line) && line.n > 0 && line.p[0] == '#' && (is = memchr(line.p, '=', line.n)) != NULL) {
        struct str key = trimmed((struct str){ line.p + 1, (size_t)(is - line.p) - 1 });
        value = trimmed((struct str){ is + 1, line.n - (size_t)(is - line.p) - 1 });
        if (key.n == 6 && strncasecmp(key.p, "escape", 6) == 0 && value.n == 1 && value.p[0] == '`')
            before.escape = '`';
    }
    *r = before;
}

static bool
next_word(struct str *rest, struct str *out)
{
    *rest = trimmed(*rest);
    *out = (struct str){ rest->p, 0 };
    while (out->n < rest->n && !blank(rest->p[out->n]))
        out->n++;
    *rest = (struct str){ rest->p + out->n, rest->n - out->n };
    return out->n > 0;
}

static bool
is_word(struct str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

static bool
of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct variable *
variable_of(struct reading *r, struct str name)
{
    for (size_t i = 0; i < r->n_vars; i++)
        if (str_eq_c(name, r->vars[i].name))
            return &r->vars[i];
    return NULL;
}

/* The last value counts, but a build's before the file's. @written: it has one, which (not @set) may come to nothing.
 * False: too many, or too long. */
static bool
keep_variable(struct reading *r, struct str name, struct str value, bool written, bool set)
{
    struct variable *v = variable_of(r, name);

    if (name.n == 0 || name.n >= NAME_MAX_N || value.n >= VALUE_MAX || memchr(name.p, '\0', name.n) != NULL ||
        memchr(value.p, '\0', value.n) != NULL)
        return false;
    if (v != NULL && (v->given || !written))
        return true;
    if (v == NULL && r->n_vars == NAMES_MAX)
        return false;
    if (v == NULL)
        v = &r->vars[r->n_vars++];
    *v = (struct variable){ .set = set, .given = r->line == 0 };
    memcpy(v->name, name.p, name.n);
    memcpy(v->value, value.p, value.n);
    return true;
}

static struct str
unquoted(struct str s)
{
    if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
        return (struct str){ s.p + 1, s.n - 2 };
    return s;
}

/* What stands behind "${": its name, and what is meant where it is empty (or, with "+", where it is not). */
static int
put_braced(struct reading *r, struct str in, struct buf *out, struct err *err)
{
    size_t n = 0;
    const struct variable *v;
    struct str other;
    bool has;

    while (n < in.n && of_name(in.p[n]))
        n++;
    v = variable_of(r, (struct str){ in.p, n });
    has = v != NULL && v->set && v->value[0] != '\0';
    if (n == in.n && v != NULL && v->set) {
        buf_puts(out, v->value);
        return 0;
    }
    if (n + 2 > in.n || in.p[n] != ':' || (in.p[n + 1] != '-' && in.p[n + 1] != '+'))
        return refuse(r, "containerfile.variable", "no value for a variable, or not of the forms ${NAME}, "
                      "${NAME:-WORD}, ${NAME:+WORD}", in, err);
    other = (struct str){ in.p + n + 2, in.n - n - 2 };
    if (has == (in.p[n + 1] == '+'))
        buf_append(out, other.p, other.n);
    else if (has)
        buf_puts(out, v->value);
    return 0;
}

/* @in with its variables' values. 0; -1 with @err. */
static int
substitute(struct reading *r, struct str in, struct buf *out, struct err *err)
{
    const struct variable *v;
    const char *end;

    for (size_t i = 0, n; i < in.n; i += n) {
        n = 1;
        if (in.p[i] != '$') {
            buf_append(out, in.p + i, 1);
        } else if (i + 1 < in.n && in.p[i + 1] == '{') {
            end = memchr(in.p + i, '}', in.n - i);
            if (end == NULL)
                return refuse(r, "containerfile.variable", "a variable without its end", in, err);
            n = (size_t)(end - (in.p + i)) + 1;
            if (put_braced(r, (struct str){ in.p + i + 2, n - 3 }, out, err) < 0)
                return -1;
        } else {
            while (i + n < in.n && of_name(in.p[i + n]))
                n++;
            v = variable_of(r, (struct str){ in.p + i + 1, n - 1 });
            if (v == NULL || !v->set)
                return refuse(r, "containerfile.variable", "no value for a variable", in, err);
            buf_puts(out, v->value);
        }
    }
    return buf_ok(out) ? 0 : refuse(r, "containerfile.name", "too long", in, err);
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static bool
is_stage(const struct reading *r, struct str name)
{
    size_t digits = 0;

    while (digits < name.n && isdigit((unsigned char)name.p[digits]))
        digits++;
    if (name.n > 0 && digits == name.n)
        return true;            /* by its number */
    for (size_t i = 0; i < r->n_stages; i++)
        if (is_word(name, r->stages[i]))
            return true;
    return false;
}

static int
add_base(struct reading *r, struct str written, struct err *err)
{
    uint8_t room[IMAGE_REF_MAX];
    cleanup_buf struct buf b = BUF_INIT_IN(room, sizeof(room));
    char name[IMAGE_REF_MAX + 1];
    struct image_ref ref;
    struct str value;
    const char *fault;

    if (substitute(r, unquoted(written), &b, err) < 0)
        return -1;
    value = (struct str){ (const char *)b.p, b.n };
    if (is_word(value, "scratch") || is_stage(r, value))
        return 0;
    fault = image_ref_parse(value, &ref);
    if (fault == NULL && ref.digest[0] != '\0') {
        refuse(r, "containerfile.digest", "an image that is brought has a name and no digest", value, err);
        return err_hint(err, "write its name and tag; `cloche image inspect` shows what the name means now");
    }
    if (fault != NULL || ref.host[0] == '\0')
        return refuse(r, "containerfile.name", fault != NULL ? fault : "no image's name", value, err);
    image_ref_name(&ref, name);
    for (size_t i = 0; i < r->out->n; i++)
        if (strcmp(r->out->v[i], name) == 0)
            return 0;
    if (r->out->n == BASES_MAX)
        return refuse(r, "containerfile.many", "more images than are brought", value, err);
    memcpy(r->out->v[r->out->n++], name, strlen(name) + 1);
    return 0;
}

static int
read_from(struct reading *r, struct str rest, struct err *err)
{
    struct str image, as, name;

    do
        if (!next_word(&rest, &image))
            return refuse(r, "containerfile.name", "FROM has no image", rest, err);
    while (image.n > 2 && strncmp(image.p, "--", 2) == 0);
    if (add_base(r, image, err) < 0)
        return -1;
    r->in_stage = true;
    if (!next_word(&rest, &as) || !is_word(as, "AS") || !next_word(&rest, &name))
        return 0;
    if (r->n_stages == NAMES_MAX || name.n >= NAME_MAX_N)
        return refuse(r, "containerfile.many", "too many stages, or too long a name", name, err);
    memcpy(r->stages[r->n_stages], name.p, name.n);
    r->stages[r->n_stages++][name.n] = '\0';
    return 0;
}

/* NAME=VALUE, or NAME alone: one without a value. */
static int
keep_arg(struct reading *r, struct str word, struct err *err)
{
    const char *is = memchr(word.p, '=', word.n);
    size_t n = is != NULL ? (size_t)(is - word.p) : word.n;
    struct str value = is != NULL ? unquoted((struct str){ is + 1, word.n - n - 1 }) : (struct str){ word.p, 0 };
    cleanup_buf struct buf b = BUF_INIT(VALUE_MAX);
    struct err none = ERR_INIT;
    bool set = is != NULL;

    /* one that is made of what has no value has none, which matters to those alone that use it */
    if (set && r->line > 0) {
        set = substitute(r, value, &b, &none) == 0;
        value = (struct str){ b.n > 0 ? (const char *)b.p : "", set ? b.n : 0 };    /* not what it had before */
    }
    if (keep_variable(r, (struct str){ word.p, n }, value, is != NULL, set))
        return 0;
    return refuse(r, "containerfile.many", "too many variables, or one that is too long", word, err);
}

static int
read_arg(struct reading *r, struct str rest, struct err *err)
{
    struct str word;

    while (next_word(&rest, &word))
        if (keep_arg(r, word, err) < 0)
            return -1;
    return 0;
}

static int
read_copy(struct reading *r, struct str rest, struct err *err)
{
    struct str word;

    while (next_word(&rest, &word) && word.n > 2 && strncmp(word.p, "--", 2) == 0)
        if (word.n > 7 && strncmp(word.p, "--from=", 7) == 0 &&
            add_base(r, (struct str){ word.p + 7, word.n - 7 }, err) < 0)
            return -1;
    return 0;
}

static int
read_instruction(struct reading *r, struct str all, struct err *err)
{
    struct str word;

    if (!next_word(&all, &word))
        return 0;
    if (is_word(word, "FROM"))
        return read_from(r, all, err);
    if (is_word(word, "ARG") && !r->in_stage)
        return read_arg(r, all, err);
    return is_word(word, "COPY") ? read_copy(r, all, err) : 0;
}

int
containerfile_bases(struct str text, const char *const *args, struct base_list *out, struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(CONTAINERFILE_LINE);
    cleanup_free struct reading *r = calloc(1, sizeof(*r));
    int result = 0;

    out->n = 0;
    if (r == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (str_starts(text, STR_LIT("\xef\xbb\xbf")))    /* a byte order mark */
        text = (struct str){ text.p + 3, text.n - 3 };
    *r = (struct reading){ .rest = text, .escape = '\\', .out = out };
    for (; result == 0 && *args != NULL; args++)
        result = keep_arg(r, str_of(*args), err);
    if (result == 0)
        read_directives(r);
    while (result == 0 && next_instruction(r, &b))
        result = read_instruction(r, (struct str){ (const char *)b.p, b.n }, err);
    if (result == 0 && !r->in_stage)
        return err_set(err, ERR_USAGE, "containerfile.name", "the Containerfile has no FROM");
    return result;
}
