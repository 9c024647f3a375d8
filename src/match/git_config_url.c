/* match/git_config_url.c: see git_config_url.h */
#include "match/git_config_url.h"

#include <string.h>

#include "match/git_config.h"

bool
git_config_plain_text(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x7f)
            return false;
    return true;
}

/* An address on the network: a path is one of the owner's, which nobody inside may see, or whose hooks a push runs. */
static bool
is_network(struct str url)
{
    const char *colon = url.n > 0 ? memchr(url.p, ':', url.n) : NULL;
    struct str scheme = { url.p, colon != NULL ? (size_t)(colon - url.p) : 0 };

    if (!git_config_plain_text(url) || (url.n > 0 && memchr(url.p, ' ', url.n) != NULL))
        return false;
    return scheme.n > 0 && memchr(scheme.p, '/', scheme.n) == NULL && !str_eq_c(scheme, "file");
}

/* Whether what `url.@base.insteadOf = @start` of the owner's makes of @url is one as well. */
static bool
rewritten_fits(struct str base, struct str start, struct str url)
{
    char whole[GIT_CONFIG_KEY_MAX + GIT_CONFIG_VALUE_MAX + 1];
    struct str made = { whole, base.n + url.n - start.n };

    memcpy(whole, base.p, base.n);
    memcpy(whole + base.n, url.p + start.n, url.n - start.n);
    return is_network(made) && git_config_url_harmless(made);
}

/* Whether the condition "hasconfig:remote.*.url:PATTERN" may come true by @url: up to its first wildcard a pattern
 * stands for itself. */
static bool
may_fulfil(struct str condition, struct str url)
{
    static const struct str kind = STR_LIT("hasconfig:"), of_url = STR_LIT("hasconfig:remote.*.url:");
    struct str pattern;
    size_t n = 0;

    if (!str_starts(condition, of_url))
        return str_starts(condition, kind);
    pattern = (struct str){ condition.p + of_url.n, condition.n - of_url.n };
    while (n < pattern.n && memchr("*?[\\", pattern.p[n], 4) == NULL)
        n++;
    return str_starts(url, (struct str){ pattern.p, n });
}

/* Whether the owner's @rules leave @url as it is, or makes another address on the network of it, and waits for none. */
static bool
leaves(struct str rules, struct str url)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    git_config_open(&r, rules);
    while ((got = git_config_next(&r, &e)) > 0) {
        if (str_eq_c(e.section, "includeif") && may_fulfil(e.subsection, url))
            return false;
        if (str_eq_c(e.section, "url") && (str_eq_c(e.name, "insteadof") || str_eq_c(e.name, "pushinsteadof")) &&
            str_starts(url, e.value) && !rewritten_fits(e.subsection, e.value, url))
            return false;
    }
    return got == 0;
}

bool
git_config_url_fits(struct str url, struct str rules)
{
    return is_network(url) && leaves(rules, url);
}
