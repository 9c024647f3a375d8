/* egress/meant.c: see meant.h */
#include "egress/meant.h"

#include <string.h>

#include "base/array.h"

/* Case does not matter, nor which mark there is: CGI and WSGI have "_" for each. */
static bool
is_named(struct str written, const char *name)
{
    for (size_t i = 0; i < written.n; i++) {
        char c = strchr("!#$%&'*+.^_`|~", written.p[i]) != NULL ? '-' : written.p[i];
        if (name[i] == '\0' || !http1_equal((struct str){ &c, 1 }, (struct str){ name + i, 1 }))
            return false;
    }
    return name[written.n] == '\0';
}

static bool
is_among(struct str written, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_named(written, names[i]))
            return true;
    return false;
}

struct meant
meant_of(const struct http1_head *head)
{
    static const char *const methods[] = { "x-http-method-override", "x-http-method", "x-method-override" };
    static const char *const paths[] = { "x-original-url", "x-rewrite-url", "x-override-url" };
    struct meant out = { { "", 0 }, false };

    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http1_field *f = &head->fields[i];
        out.unclear |= is_among(f->name, paths, ARRAY_LEN(paths));
        if (!is_among(f->name, methods, ARRAY_LEN(methods)))
            continue;
        out.unclear |= out.method.n > 0 || !http1_is_token(f->value);
        out.method = f->value;
    }
    return out;
}
