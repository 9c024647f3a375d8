/* imager/auth.c: what a registry asks for before it answers, and docker's own file of logins (see fetch.h) */
#include <ctype.h>
#include <string.h>

#include "base/base64.h"
#include "imager/fetch.h"

static bool
skip(struct str *s, const char *chars)
{
    size_t before = s->n;

    while (s->n > 0 && strchr(chars, s->p[0]) != NULL)
        *s = (struct str){ s->p + 1, s->n - 1 };
    return s->n != before;
}

/* A word up to one of " =,"; empty where there is none. */
static struct str
word(struct str *s)
{
    struct str out = { s->p, 0 };

    while (out.n < s->n && strchr(" \t=,", s->p[out.n]) == NULL)
        out.n++;
    *s = (struct str){ s->p + out.n, s->n - out.n };
    return out;
}

/* A quoted text, or a word, into @out of @cap bytes; what is too long is none. */
static void
value(struct str *s, char *out, size_t cap)
{
    bool quoted = s->n > 0 && s->p[0] == '"';
    size_t n = 0, i = quoted ? 1 : 0;

    while (i < s->n && (quoted ? s->p[i] != '"' : strchr(" \t,", s->p[i]) == NULL)) {
        if (quoted && s->p[i] == '\\' && i + 1 < s->n)
            i++;
        if (n < cap && (unsigned char)s->p[i] >= 0x20)
            out[n++] = s->p[i];
        i++;
    }
    out[n < cap ? n : 0] = '\0';
    i += quoted && i < s->n;
    *s = (struct str){ s->p + i, s->n - i };
}

static bool
is(struct str s, const char *text)
{
    size_t n = strlen(text);

    return s.n == n && strncasecmp(s.p, text, n) == 0;
}

void
fetch_challenge_read(struct str s, struct fetch_challenge *out)
{
    *out = (struct fetch_challenge){ .bearer = false };
    while (s.n > 0) {
        struct str name;
        char other[8];
        skip(&s, " \t,");
        name = word(&s);
        if (s.n > 0 && s.p[0] == '=') {
            s = (struct str){ s.p + 1, s.n - 1 };
            if (!out->bearer)
                value(&s, other, sizeof(other));
            else if (is(name, "realm"))
                value(&s, out->realm, sizeof(out->realm));
            else if (is(name, "service"))
                value(&s, out->service, sizeof(out->service));
            else if (is(name, "scope"))
                value(&s, out->scope, sizeof(out->scope));
            else
                value(&s, other, sizeof(other));
        } else if (is(name, "bearer")) {
            out->bearer = true;
        } else if (is(name, "basic")) {
            out->basic = true;
            if (out->bearer)
                return;         /* what follows is Basic's own */
        } else if (name.n == 0 && s.n > 0) {
            return;             /* none that is known */
        }
    }
}

bool
fetch_login_of(const char *text, size_t n, const char *host, char out[1024])
{
    const char *names[2] = { host, strcmp(host, IMAGE_HUB) == 0 ? "https://index.docker.io/v1/" : host };
    json_t *doc = json_loadb(text, n, 0, NULL);
    const json_t *auths = json_object_get(doc, "auths");

    out[0] = '\0';
    for (size_t i = 0; i < 2 && out[0] == '\0'; i++) {
        const json_t *auth = json_object_get(json_object_get(auths, names[i]), "auth");
        cleanup_buf struct buf login = BUF_INIT(1022);
        if (!json_is_string(auth) || base64_get(&login, json_string_value(auth), json_string_length(auth)) < 0 ||
            login.n == 0 || memchr(login.p, '\0', login.n) != NULL || memchr(login.p, ':', login.n) == NULL)
            continue;
        memcpy(out, login.p, login.n);
        out[login.n] = '\0';
    }
    json_decref(doc);
    return doc != NULL;
}
