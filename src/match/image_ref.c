/* match/image_ref.c: see image_ref.h */
#include "match/image_ref.h"

#include <stdio.h>
#include <string.h>

static bool
is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool
is_word(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

bool
image_ref_is_digest(struct str text)
{
    if (text.n != IMAGE_DIGEST_TEXT || !str_starts(text, STR_LIT("sha256:")))
        return false;
    for (size_t i = 7; i < text.n; i++)
        if (!(text.p[i] >= '0' && text.p[i] <= '9') && !(text.p[i] >= 'a' && text.p[i] <= 'f'))
            return false;
    return true;
}

/* HOST[:PORT]: letters, digits, dots and dashes; a port of digits. */
static bool
is_host(struct str s)
{
    const char *colon = memchr(s.p, ':', s.n);
    size_t n = colon != NULL ? (size_t)(colon - s.p) : s.n, ports = colon != NULL ? s.n - n - 1 : 1;

    if (n == 0 || n > 253 || ports == 0 || ports > 5 || !is_word(s.p[0]) || !is_word(s.p[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_word(s.p[i]) && (s.p[i] != '-' && (s.p[i] != '.' || s.p[i - 1] == '.')))
            return false;
    for (size_t i = n + 1; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

/* Words of lower-case letters and digits; between them one of . _ __ or any number of dashes; folders of that. */
static bool
is_path(struct str s)
{
    size_t i = 0;

    while (i < s.n) {
        size_t from;
        if (!is_lower(s.p[i]))
            return false;
        while (i < s.n && is_lower(s.p[i]))
            i++;
        if (i == s.n)
            return true;
        from = i;
        while (i < s.n && s.p[i] == s.p[from] && !is_lower(s.p[i]))
            i++;
        if (s.p[from] == '-' ? false : s.p[from] == '_' ? i - from > 2 : (s.p[from] != '.' && s.p[from] != '/') ||
                                                                         i - from != 1)
            return false;
    }
    return false;
}

static bool
is_tag(struct str s)
{
    if (s.n == 0 || s.n > 128 || s.p[0] == '.' || s.p[0] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_word(s.p[i]) && s.p[i] != '_' && s.p[i] != '.' && s.p[i] != '-')
            return false;
    return true;
}

static void
keep(char *out, struct str s)
{
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
}

/* What is before the first "/", where it can only be a host. */
static bool
takes_host(struct str *rest, struct str *host)
{
    const char *slash = memchr(rest->p, '/', rest->n);
    struct str first = { rest->p, slash != NULL ? (size_t)(slash - rest->p) : 0 };

    if (slash == NULL || (memchr(first.p, '.', first.n) == NULL && memchr(first.p, ':', first.n) == NULL &&
                          !str_eq_c(first, "localhost")))
        return false;
    *host = first;
    *rest = (struct str){ slash + 1, rest->n - first.n - 1 };
    return true;
}

const char *
image_ref_parse(struct str text, struct image_ref *out)
{
    struct str rest = text, host = STR_LIT(IMAGE_HUB);
    const char *at = memchr(text.p, '@', text.n), *colon;

    *out = (struct image_ref){ .host = "" };
    if (text.n == 0 || text.n > IMAGE_REF_MAX)
        return "empty, or too long";
    if (image_ref_is_digest(text)) {
        keep(out->digest, text);
        return NULL;
    }
    if (at != NULL) {
        struct str digest = { at + 1, text.n - (size_t)(at - text.p) - 1 };
        if (!image_ref_is_digest(digest))
            return "behind \"@\" there is no sha256 digest";
        keep(out->digest, digest);
        rest.n = (size_t)(at - text.p);
    }
    if (takes_host(&rest, &host) && !is_host(host))
        return "the registry is no host name";
    colon = memchr(rest.p, ':', rest.n);
    if (colon != NULL) {
        struct str tag = { colon + 1, rest.n - (size_t)(colon - rest.p) - 1 };
        if (!is_tag(tag))
            return "the tag has other characters than letters, digits, \".\", \"_\" and \"-\", or more than 128";
        keep(out->tag, tag);
        rest.n = (size_t)(colon - rest.p);
    } else if (at == NULL) {
        keep(out->tag, STR_LIT("latest"));
    }
    if (rest.n == 0 || rest.n > 240 || !is_path(rest))
        return "a name has lower-case letters and digits, with single \".\", \"_\", \"-\" or \"/\" between";
    keep(out->host, host);
    snprintf(out->path, sizeof(out->path), "%s%.*s",
             str_eq_c(host, IMAGE_HUB) && memchr(rest.p, '/', rest.n) == NULL ? "library/" : "", (int)rest.n, rest.p);
    return NULL;
}

void
image_ref_name(const struct image_ref *ref, char out[IMAGE_REF_MAX + 1])
{
    bool hub = strcmp(ref->host, IMAGE_HUB) == 0;
    bool official = hub && strncmp(ref->path, "library/", 8) == 0 && strchr(ref->path + 8, '/') == NULL;
    const char *path = ref->path + (official ? 8 : 0);

    snprintf(out, IMAGE_REF_MAX + 1, "%s%s%s%s%s", hub ? "" : ref->host, hub || ref->host[0] == '\0' ? "" : "/", path,
             ref->tag[0] != '\0' ? ":" : "", ref->tag);
}
