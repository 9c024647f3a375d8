/* hosts/preset.c: see preset.h */
#include "hosts/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "match/url_host.h"

enum form {
    FORM_URL,           /* https://HOST[:PORT]/... */
    FORM_AUTHORITY,     /* HOST[:PORT], by TLS */
    FORM_SSH,           /* HOST; the port is in the variable @port, or 22 */
};

struct variable {
    const char *name;
    enum form form;
    bool needed;
    bool wildcard;      /* ... and one label in front of it */
    const char *port;
};

static const struct variable gitlab[] = {
    { .name = "CI_SERVER_URL", .needed = true, .wildcard = true },
    { .name = "CI_API_V4_URL" },
    { .name = "CI_REGISTRY", .form = FORM_AUTHORITY },
    { .name = "CI_DEPENDENCY_PROXY_SERVER", .form = FORM_AUTHORITY },
    { .name = "CI_SERVER_SHELL_SSH_HOST", .form = FORM_SSH, .port = "CI_SERVER_SHELL_SSH_PORT" },
    { .name = NULL },
};

static const struct variable github[] = {
    { .name = "GITHUB_SERVER_URL", .needed = true },
    { .name = "GITHUB_API_URL", .needed = true },
    { .name = "GITHUB_GRAPHQL_URL" },
    { .name = "ACTIONS_RUNTIME_URL" },
    { .name = "ACTIONS_RESULTS_URL" },
    { .name = "ACTIONS_CACHE_URL" },
    { .name = NULL },
};

/* Where the usual clients fetch packages, toolchains and source. Each host is named: no wildcard, and no store where
 * whoever pays has a name of his own (object stores, content networks). */
static const char *const development[] = {
    "pypi.org", "files.pythonhosted.org",
    "registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org",
    "index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org",
    "proxy.golang.org", "sum.golang.org", "go.dev",
    "repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "services.gradle.org",
    "rubygems.org", "index.rubygems.org",
    "deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com", "dl-cdn.alpinelinux.org",
    "github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
    "release-assets.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org",
};

static const char *
value_of(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

static bool
is_true(const char *name)
{
    const char *value = value_of(name);

    return value != NULL && strcmp(value, "true") == 0;
}

/* The one host and port that the variable means, as a rule. */
static bool
host_of(const struct variable *v, const char *value, char out[URL_HOST_MAX])
{
    char url[URL_HOST_MAX + 64];
    const char *port = v->port != NULL ? value_of(v->port) : NULL;

    if (v->form == FORM_URL)
        return url_host(str_of(value), out);
    if (strpbrk(value, "/?#@\\") != NULL || strlen(value) >= URL_HOST_MAX || (port != NULL && strlen(port) > 5))
        return false;
    if (v->form == FORM_SSH)
        snprintf(url, sizeof(url), "https://%s:%s", value, port != NULL ? port : "22");
    else
        snprintf(url, sizeof(url), "https://%s", value);
    return url_host(str_of(url), out);
}

static int
preset_refuse(struct err *err, const char *code, const char *variable, const char *what, const char *value)
{
    err_set(err, ERR_POLICY, code, "--preset ci: %s %s%s%.200s%s", variable, what, value != NULL ? " \"" : "",
            value != NULL ? value : "", value != NULL ? "\"" : "");
    return err_hint(err, "run it in a job of GitLab CI or GitHub Actions, or name the hosts: --allow-domain HOST");
}

/* `*.HOST`, where HOST is a name that may have one: an address has none. */
static int
add_wildcard(struct policy *p, const char *host, const struct origin *from, struct err *err)
{
    char rule[URL_HOST_MAX + 2];
    struct host_pattern pattern;

    snprintf(rule, sizeof(rule), "*.%s", host);
    return host_pattern_cloche(str_of(rule), &pattern) == HOST_OK ? policy_allow_host(p, rule, from, err) : 0;
}

static bool
is_allowed(const struct policy *p, const char *host)
{
    for (size_t i = 0; i < p->allow_domains.n; i++)
        if (strcmp(p->allow_domains.v[i].value, host) == 0)
            return true;
    return false;
}

static int
add_development(struct policy *p, struct err *err)
{
    struct origin from = p->preset.from;

    if (from.kind == ORIGIN_FLAG)
        from.name = "--preset development";
    for (size_t i = 0; i < ARRAY_LEN(development); i++)
        if (!is_allowed(p, development[i]) && policy_allow_host(p, development[i], &from, err) < 0)
            return -1;
    return 0;
}

static int
preset_add(struct policy *p, const struct variable *v, struct err *err)
{
    const char *value = value_of(v->name);
    char host[URL_HOST_MAX], name[64];
    struct origin from = p->preset.from;

    if (value == NULL)
        return v->needed ? preset_refuse(err, "policy.preset.missing", v->name, "is not set", NULL) : 0;
    if (!host_of(v, value, host))
        return preset_refuse(err, "policy.preset.malformed", v->name, "names no host:", value);
    snprintf(name, sizeof(name), "--preset ci (%s)", v->name);
    if (from.kind == ORIGIN_FLAG)
        from.name = name;
    if (is_allowed(p, host))
        return 0;
    if (policy_allow_host(p, host, &from, err) < 0)
        return -1;
    return v->wildcard ? add_wildcard(p, host, &from, err) : 0;
}

int
preset_open(struct policy *p, struct err *err)
{
    bool is_gitlab = is_true("GITLAB_CI"), is_github = is_true("GITHUB_ACTIONS");

    if (p->preset.p == NULL || p->network.v != NETWORK_ALLOWLIST || p->mode.v == MODE_OFF || p->mode.v == MODE_LIGHT)
        return 0;
    if (strcmp(p->preset.p, "development") == 0)
        return add_development(p, err);
    if (is_gitlab == is_github)
        return preset_refuse(err, "policy.preset.missing", "GITLAB_CI and GITHUB_ACTIONS",
                             is_gitlab ? "are both \"true\"" : "are both not \"true\"", NULL);
    for (const struct variable *v = is_gitlab ? gitlab : github; v->name != NULL; v++)
        if (preset_add(p, v, err) < 0)
            return -1;
    return 0;
}
