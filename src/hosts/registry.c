/* hosts/registry.c: how each registry's client is asked (see registry.h) */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "hosts/ask.h"
#include "hosts/registry_priv.h"
#include "program/say.h"

int
registry_refuse(struct registry *r, const char *code, const char *what, const char *found)
{
    err_set(r->err, ERR_POLICY, code, "%s: %s%s%.200s", r->origin, what, found[0] != '\0' ? ": " : "", found);
    return err_hint(r->err, "set the client up, or name the hosts: --allow-domain HOST");
}

bool
registry_add(struct registry *r, struct str url)
{
    char host[URL_HOST_MAX];

    if (!url_host(url, host))
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->hosts[i], host) == 0)
            return true;
    if (r->n == REGISTRY_HOSTS_MAX)
        return false;
    memcpy(r->hosts[r->n++], host, sizeof(host));
    return true;
}

bool
registry_add_learned(struct registry *r, struct str url)
{
    char host[URL_HOST_MAX];
    struct host_pattern pattern;

    if (!url_host(url, host) || host_pattern_cloche(str_of(host), &pattern) != HOST_OK)
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->hosts[i], host) == 0)
            return true;
    return !pattern.host.is_ip && registry_add(r, url);
}

bool
registry_word(const char **text, const char *ends, struct str *word)
{
    *text += strspn(*text, ends);
    *word = (struct str){ *text, strcspn(*text, ends) };
    *text += word->n;
    return word->n > 0;
}

int
registry_check_config(struct registry *r, const char *file)
{
    char what[300];

    if (file == NULL || file[0] != '/')
        return 0;
    json_object_set_new(r->files, file, json_null());
    if (!ask_writable(r->p, file))
        return 0;
    snprintf(what, sizeof(what), "its configuration %.200s can be written from inside", file);
    return registry_refuse(r, "policy.registry.config", what, "");
}

int
registry_late(struct registry *r, const char *client)
{
    err_set(r->err, ERR_SYSTEM, "policy.registry.late", "%s: %s did not answer within %d s", r->origin, client,
            ASK_MS / 1000);
    return err_hint(r->err, "see why it takes so long on this host, or name the hosts: --allow-domain HOST");
}

/* 0 when the client answered with success. */
static int
run(struct registry *r, const char *const *argv, const char *const *set, struct ask *a)
{
    char what[200];
    size_t n = (size_t)snprintf(what, sizeof(what), "asked");

    for (size_t i = 0; argv[i] != NULL && n < sizeof(what); i++)
        n += (size_t)snprintf(what + n, sizeof(what) - n, " %s", argv[i]);
    if (ask_run(r->p, argv, set, a, r->err) < 0)
        return err_wrap(r->err, "%s", r->origin);
    if (a->late)
        return registry_late(r, argv[0]);
    return a->status == 0 ? 0 : registry_refuse(r, "policy.registry.answer", what, a->last);
}

/* The same where an answer can be done without. */
static bool
answers(struct registry *r, const char *const *argv, const char *const *set, struct ask *a)
{
    struct err ignored = ERR_INIT, *err = r->err;
    int result;

    r->err = &ignored;
    result = run(r, argv, set, a);
    r->err = err;
    return result == 0;
}

/* The index is known and its files' place is not: what can be opened is opened, and the rest is said. */
static void
files_unknown(struct registry *r, const char *asked, const char *url, const struct ask *a)
{
    char host[URL_HOST_MAX];

    r->in_part = true;
    cli_warn("%s: asked %s at %s where its files lie, and got no answer%s%s; only that host is open", r->origin, asked,
             url_host(str_of(url), host) ? host : "its index", a->last[0] != '\0' ? ": " : "", a->last);
}

/* Tell the client inside. Several URLs in @urls are separated by blanks; credentials stay out. */
static int
give(struct registry *r, const char *name, const char *urls)
{
    cleanup_buf struct buf value = BUF_INIT(POLICY_STRING_MAX);
    struct str word;

    while (registry_word(&urls, " ", &word)) {
        const char *slashes = memmem(word.p, word.n, "://", 3);
        size_t scheme = slashes != NULL ? (size_t)(slashes + 3 - word.p) : 0;
        size_t end = scheme + strcspn(word.p + scheme, "/?# ");
        const char *at = scheme > 0 && end <= word.n ? memrchr(word.p + scheme, '@', end - scheme) : NULL;
        size_t skip = at != NULL ? (size_t)(at + 1 - word.p) : scheme;
        buf_printf(&value, "%s%.*s%.*s", value.n > 0 ? " " : "", (int)scheme, word.p, (int)(word.n - skip),
                   word.p + skip);
    }
    if (buf_nul(&value) < 0)
        return registry_refuse(r, "policy.registry.answer", "too much for the variable", name);
    if (value.n == 0)
        return 0;
    json_object_set_new(r->env, name, json_string((const char *)value.p));
    return 0;
}

/* --- npm -------------------------------------------------------------------------------------------------------- */

static void
npm_files(struct registry *r, const char *url)
{
    static const char *const argv[] = { "npm", "view", "is-number", "dist.tarball", "--no-update-notifier", NULL };
    char set_url[REGISTRY_URL_MAX + 32];
    const char *const set[] = { set_url, "NPM_CONFIG_REGISTRY", NULL };
    cleanup_ask struct ask a = ASK_INIT;
    const char *text;
    struct str word;

    snprintf(set_url, sizeof(set_url), "npm_config_registry=%s", url);
    if (!answers(r, argv, set, &a) || (text = (const char *)a.out.p) == NULL ||
        !registry_word(&text, " \t\r\n", &word) ||
        !registry_add_learned(r, word))
        files_unknown(r, "\"npm view is-number\"", url, &a);
}

/* Those that are read beside what the environment names: npm's own, and that of the folder where it starts. */
static int
npm_configs(struct registry *r, const char *client, const json_t *said)
{
    char real[PATH_MAX], own[PATH_MAX + 16];
    char *slash = realpath(client, real) != NULL ? strrchr(real, '/') : NULL;

    if (slash != NULL)
        *slash = '\0';
    snprintf(own, sizeof(own), "%s/../npmrc", slash != NULL ? real : "");
    return registry_check_config(r, json_string_value(json_object_get(said, "userconfig"))) < 0 ||
           registry_check_config(r, json_string_value(json_object_get(said, "globalconfig"))) < 0 ||
           registry_check_config(r, own) < 0 || registry_check_config(r, "/.npmrc") < 0 ? -1 : 0;
}

static int
npm(struct registry *r)
{
    static const char *const argv[] = { "npm", "config", "list", "--json", "--no-update-notifier", NULL };
    cleanup_ask struct ask a = ASK_INIT;
    const char *key, *registry = NULL;
    json_t *root, *value;
    int result;

    if (run(r, argv, NULL, &a) < 0)
        return -1;
    root = json_loadb((const char *)a.out.p, a.out.n, JSON_REJECT_DUPLICATES, NULL);
    result = npm_configs(r, a.path, root);
    json_object_foreach(root, key, value) {
        bool own = strcmp(key, "registry") == 0, scope = key[0] == '@' && str_ends(str_of(key), STR_LIT(":registry"));
        const char *url = json_string_value(value);
        if (result == 0 && (own || scope) &&
            (url == NULL || strlen(url) >= REGISTRY_URL_MAX || !registry_add(r, str_of(url))))
            result = registry_refuse(r, "policy.registry.answer", "npm is set up for a registry without a host", key);
        if (result == 0 && strcmp(key, "cafile") == 0)
            result = registry_trust(r, url);
        if (own)
            registry = url;
    }
    if (result == 0 && registry == NULL)
        result = registry_refuse(r, "policy.registry.answer", "asked npm config list", "it names no registry");
    if (result == 0) {
        npm_files(r, registry);
        result = give(r, "npm_config_registry", registry);
    }
    json_decref(root);
    return result;
}

/* --- pypi ------------------------------------------------------------------------------------------------------- */

static void
pypi_files(struct registry *r, const char *url)
{
    static const char *const argv[] = { "python3", "-E", "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps",
                                        "--ignore-installed", "--report", "-", "six", NULL };
    char set_url[REGISTRY_URL_MAX + 32];
    const char *const set[] = { set_url, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1", "PIP_EXTRA_INDEX_URL",
                                "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", NULL };
    cleanup_ask struct ask a = ASK_INIT;
    json_t *root = NULL;
    const char *file = NULL;

    snprintf(set_url, sizeof(set_url), "PIP_INDEX_URL=%s", url);
    if (answers(r, argv, set, &a)) {
        root = json_loadb((const char *)a.out.p, a.out.n, 0, NULL);
        file = json_string_value(json_object_get(
            json_object_get(json_array_get(json_object_get(root, "install"), 0), "download_info"), "url"));
    }
    if (file == NULL || !registry_add_learned(r, str_of(file)))
        files_unknown(r, "\"pip install six\"", url, &a);
    json_decref(root);
}

/* "  /etc/pip.conf, exists: True": also those that are not there, which could be made. */
static int
pypi_configs(struct registry *r)
{
    static const char *const argv[] = { "python3", "-E", "-m", "pip", "config", "debug", NULL };
    static const char *const exists[] = { ", exists: True", ", exists: False" };
    cleanup_ask struct ask a = ASK_INIT;
    struct str line;

    if (run(r, argv, NULL, &a) < 0)
        return -1;
    for (const char *text = (const char *)a.out.p; registry_word(&text, "\r\n", &line);) {
        char file[PATH_MAX];
        while (line.n > 0 && *line.p == ' ')
            line = (struct str){ line.p + 1, line.n - 1 };
        for (size_t i = 0; i < ARRAY_LEN(exists); i++) {
            if (!str_ends(line, str_of(exists[i])) || line.n - strlen(exists[i]) >= sizeof(file))
                continue;
            snprintf(file, sizeof(file), "%.*s", (int)(line.n - strlen(exists[i])), line.p);
            if (registry_check_config(r, file) < 0)
                return -1;
        }
    }
    return 0;
}

struct indexes {
    struct buf main, more;      /* URLs, each with a blank behind it */
    int rank;                   /* of the one in @main */
    char trusted[REGISTRY_URL_MAX], cert[REGISTRY_URL_MAX];
    int trusted_rank, cert_rank;
};

/* Which of several index-url pip itself takes for an install. */
static int
rank_of(struct str key)
{
    return str_starts(key, STR_LIT(":env:")) ? 3 : str_starts(key, STR_LIT("install.")) ? 2
           : str_starts(key, STR_LIT("global.")) ? 1 : 0;
}

/* "global.cert='/etc/...'": the value of the one that pip takes, of several. False: it is another key. */
static bool
pypi_one(struct str line, struct str key, struct str name, char out[REGISTRY_URL_MAX], int *rank)
{
    struct str value = { key.p + key.n + 1, line.n > key.n ? line.n - key.n - 1 : 0 };

    if (!str_ends(key, name))
        return false;
    while (value.n > 0 && (*value.p == '\'' || *value.p == '"'))
        value = (struct str){ value.p + 1, value.n - 1 };
    while (value.n > 0 && (value.p[value.n - 1] == '\'' || value.p[value.n - 1] == '"'))
        value.n--;
    if (rank_of(key) > *rank && value.n < REGISTRY_URL_MAX) {
        *rank = rank_of(key);
        snprintf(out, REGISTRY_URL_MAX, "%.*s", (int)value.n, value.p);
        for (char *escaped; (escaped = strstr(out, "\\n")) != NULL;)
            escaped[0] = escaped[1] = ' ';
    }
    return true;
}

/* "global.index-url='https://...'": every URL of one key. */
static void
pypi_line(struct registry *r, struct str line, struct indexes *found)
{
    const char *equals = memchr(line.p, '=', line.n);
    struct str key = { line.p, equals != NULL ? (size_t)(equals - line.p) : 0 }, word;
    bool index = str_ends(key, STR_LIT(".index-url")), more = str_ends(key, STR_LIT(".extra-index-url"));
    char value[REGISTRY_URL_MAX];
    const char *text = value;

    if (pypi_one(line, key, STR_LIT(".trusted-host"), found->trusted, &found->trusted_rank) ||
        pypi_one(line, key, STR_LIT(".cert"), found->cert, &found->cert_rank))
        return;
    if ((!index && !more && !str_ends(key, STR_LIT(".find-links"))) || line.n - key.n >= sizeof(value))
        return;
    snprintf(value, sizeof(value), "%.*s", (int)(line.n - key.n - 1), equals + 1);
    for (char *escaped; (escaped = strstr(value, "\\n")) != NULL;)      /* several, as repr() writes them */
        escaped[0] = escaped[1] = ' ';
    while (registry_word(&text, " '\"", &word)) {
        char url[REGISTRY_URL_MAX];
        snprintf(url, sizeof(url), "%.*s", (int)word.n, word.p);
        if (!registry_add(r, word) || (!index && !more))
            continue;
        if (more || rank_of(key) > found->rank) {
            if (index)
                buf_reset(&found->main);
            found->rank = index ? rank_of(key) : found->rank;
            buf_printf(index ? &found->main : &found->more, "%s ", url);
        }
        pypi_files(r, url);
    }
}

static int
pypi(struct registry *r)
{
    static const char *const list[] = { "python3", "-E", "-m", "pip", "config", "list", NULL };
    static const char *const standard[] = {
        "python3", "-E", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)", NULL };
    cleanup_ask struct ask a = ASK_INIT, b = ASK_INIT;
    struct indexes found = { .main = BUF_INIT(POLICY_STRING_MAX), .more = BUF_INIT(POLICY_STRING_MAX) };
    struct str line;
    const char *text;
    int result;

    if (pypi_configs(r) < 0 || run(r, list, NULL, &a) < 0)
        return -1;
    for (text = (const char *)a.out.p; registry_word(&text, "\r\n", &line);)
        pypi_line(r, line, &found);
    result = buf_nul(&found.main) < 0 || buf_nul(&found.more) < 0
                 ? registry_refuse(r, "policy.registry.answer", "asked pip config list", "it names too many indexes")
                 : 0;
    if (result == 0)
        result = give(r, "PIP_INDEX_URL", (const char *)found.main.p);
    if (result == 0)
        result = give(r, "PIP_EXTRA_INDEX_URL", (const char *)found.more.p);
    if (result == 0)
        result = give(r, "PIP_TRUSTED_HOST", found.trusted);
    if (result == 0)
        result = registry_trust(r, found.cert);
    buf_free(&found.main);
    buf_free(&found.more);
    if (result < 0 || found.rank > 0)
        return result;
    if (run(r, standard, NULL, &b) < 0)
        return -1;
    text = (const char *)b.out.p;
    if (!registry_word(&text, " \r\n", &line) || line.n >= REGISTRY_URL_MAX || !registry_add(r, line))
        return registry_refuse(r, "policy.registry.answer", "asked pip for its default index", "it names none");
    ((char *)(uintptr_t)line.p)[line.n] = '\0';
    pypi_files(r, line.p);
    return 0;
}

/* --- go, debian ------------------------------------------------------------------------------------------------- */

static int
go(struct registry *r)
{
    static const char *const argv[] = { "go", "env", "-json", "GOPROXY", "GOSUMDB", "GOENV", NULL };
    cleanup_ask struct ask a = ASK_INIT;
    const char *proxies, *sums;
    char url[REGISTRY_URL_MAX];
    struct str word;
    json_t *root;
    int result;

    if (run(r, argv, NULL, &a) < 0)
        return -1;
    root = json_loadb((const char *)a.out.p, a.out.n, JSON_REJECT_DUPLICATES, NULL);
    result = registry_check_config(r, json_string_value(json_object_get(root, "GOENV")));
    proxies = json_string_value(json_object_get(root, "GOPROXY"));
    sums = json_string_value(json_object_get(root, "GOSUMDB"));
    while (result == 0 && proxies != NULL && registry_word(&proxies, ",| ", &word))
        (void)registry_add(r, word);         /* "direct" and "off" are no hosts */
    if (result == 0 && r->n == 0)
        result = registry_refuse(r, "policy.registry.answer", "asked go env GOPROXY", "it names no proxy");
    /* "NAME", "NAME+KEY" or "NAME+KEY URL" (go help environment) */
    if (result == 0 && sums != NULL && registry_word(&sums, " ", &word) && !str_eq_c(word, "off")) {
        size_t n = word.n < REGISTRY_URL_MAX / 2 ? word.n : 0;
        const char *plus = n > 0 ? memchr(word.p, '+', n) : NULL;
        snprintf(url, sizeof(url), "https://%.*s", (int)(plus != NULL ? plus - word.p : (ptrdiff_t)n), word.p);
        (void)registry_add(r, registry_word(&sums, " ", &word) ? word : str_of(url));
    }
    if (result == 0 && proxies != NULL && strchr(json_string_value(json_object_get(root, "GOPROXY")), '@') == NULL)
        result = give(r, "GOPROXY", json_string_value(json_object_get(root, "GOPROXY")));
    json_decref(root);
    return result;
}

/* The folder, since files may come, and what is in it. */
static int
debian_configs(struct registry *r, const char *folder)
{
    cleanup_dir DIR *d = opendir(folder);
    struct dirent *entry;
    int result = registry_check_config(r, folder);

    while (result == 0 && d != NULL && (entry = readdir(d)) != NULL) {
        char file[PATH_MAX];
        snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            result = registry_check_config(r, file);
    }
    return result;
}

static int
debian(struct registry *r)
{
    static const char *const argv[] = { "apt-get", "indextargets", "--format", "$(REPO_URI)", NULL };
    cleanup_ask struct ask a = ASK_INIT;
    struct str word;

    if (debian_configs(r, "/etc/apt") < 0 || debian_configs(r, "/etc/apt/sources.list.d") < 0 ||
        debian_configs(r, "/etc/apt/apt.conf.d") < 0 || run(r, argv, NULL, &a) < 0)
        return -1;
    for (const char *text = (const char *)a.out.p; registry_word(&text, " \r\n", &word);)
        (void)registry_add(r, word);         /* a disk or a folder is no host */
    return r->n > 0 ? 0 : registry_refuse(r, "policy.registry.answer", "asked apt-get indextargets",
                                          "it names no repository");
}

/* --- all -------------------------------------------------------------------------------------------------------- */

const struct registry_client *
registry_client(const char *name)
{
    static const struct registry_client known[] = {
        { "npm", "npm", npm, true }, { "pypi", "python3", pypi, true }, { "go", "go", go, false },
        { "debian", "apt-get", debian, true }, { "cargo", "cargo", registry_cargo, true },
        { "maven", "mvn", registry_maven, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;        /* policy/set_list.c has refused it */
}
