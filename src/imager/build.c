/* imager/build.c: cloche image build: a Debian as a recipe says, made by mmdebstrap in a sandbox
 *
 * What a build runs is not ours: scripts of Debian's packages, pip, npm. So mmdebstrap itself runs in a sandbox of
 * `cloche run`: a private root, no file of the host's but its /usr, a network by name for the mirrors alone. It is root
 * for nobody: fakechroot and fakeroot tell its children what they want to hear. Its sources come in as standard input,
 * the archive goes out as standard output, into a file without a name. What then becomes an image is read as every
 * stranger's is (work.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "imager/build_run.h"
#include "imager/build_sandbox.h"
#include "imager/imager.h"
#include "imager/recipes.h"
#include "match/url_host.h"
#include "program/say.h"

#define SOURCES_MAX (1024UL * 1024)
#define ASK_APT_MS  60000
#define TMP_SIZE    "8g"        /* of the sandbox's /tmp, in which the system is made */
#define MEMORY      "10g"       /* that and its programs */
#define KEYRING     "/usr/share/keyrings/debian-archive-keyring.gpg"

/* --- showing ------------------------------------------------------------------------------------------------------ */

static json_t *
list_json(const struct recipe_list *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(out, cli_json_text(list->v[i]));
    return out;
}

static json_t *
recipe_json(const struct recipe *r)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", r->name, "file",
                     cli_json_text(r->file), "about", cli_json_text(r->about), "suite", r->suite, "packages",
                     list_json(&r->packages), "pip", list_json(&r->pip), "npm", list_json(&r->npm), "env",
                     list_json(&r->env), "workdir", cli_json_text(r->workdir), "cmd", list_json(&r->cmd));
}

static int
show_list(const struct recipes *all, bool json, struct err *err)
{
    json_t *list = json_array();

    for (size_t i = 0; json && i < all->n; i++)
        json_array_append_new(list, recipe_json(&all->rows[i]));
    if (json)
        return cli_json_print(json_pack("{s:i, s:o}", "version", 1, "recipes", list), err);
    json_decref(list);
    for (size_t i = 0; i < all->n; i++)
        printf("%-16s  %-10s  %s\n", all->rows[i].name, all->rows[i].suite, all->rows[i].about);
    return cli_flush(err);
}

static void
print_words(const char *key, const struct recipe_list *list)
{
    if (list->n == 0)
        return;
    printf("%s:", key);
    for (size_t i = 0; i < list->n; i++)
        printf(" %s", list->v[i]);
    printf("\n");
}

static int
show_one(const struct recipe *r, bool json, struct err *err)
{
    json_t *o;

    if (json) {
        o = recipe_json(r);
        json_object_set_new(o, "version", json_integer(1));
        return cli_json_print(o, err);
    }
    printf("%s: %s\nfile: %s\nsuite: %s\n", r->name, r->about, r->file, r->suite);
    print_words("packages", &r->packages);
    print_words("pip", &r->pip);
    print_words("npm", &r->npm);
    print_words("env", &r->env);
    print_words("cmd", &r->cmd);
    return cli_flush(err);
}

/* --- where packages come from ------------------------------------------------------------------------------------- */

struct sources {
    const char *suite;
    struct buf text;            /* lines of a sources.list */
    char hosts[IMAGE_ALLOW_MAX][URL_HOST_MAX];
    size_t n_hosts;
};

static int
add_host(struct sources *s, struct str url, struct err *err)
{
    char host[URL_HOST_MAX];

    if (!url_host(url, host)) {
        err_set(err, ERR_UNSUPPORTED, "image.build.mirror", "%.*s: only mirrors by http or https can be reached",
                (int)url.n, url.p);
        return err_hint(err, "give apt such a mirror for %s (sources.list(5))", s->suite);
    }
    for (size_t i = 0; i < s->n_hosts; i++)
        if (strcmp(s->hosts[i], host) == 0)
            return 0;
    if (s->n_hosts == IMAGE_ALLOW_MAX)
        return err_set(err, ERR_LIMIT, "image.build.mirror", "more than %d mirrors", IMAGE_ALLOW_MAX);
    memcpy(s->hosts[s->n_hosts++], host, sizeof(host));
    return 0;
}

/* Whether @url says who asks, and so perhaps a password: an "@" before its path. */
static bool
names_user(struct str url)
{
    const char *at = memmem(url.p, url.n, "//", 2), *from = at != NULL ? at + 2 : url.p, *end = url.p + url.n;
    const char *slash = memchr(from, '/', (size_t)(end - from));

    return memchr(from, '@', (size_t)((slash != NULL ? slash : end) - from)) != NULL;
}

static int
add_source(struct sources *s, struct str url, const char *suite, struct err *err)
{
    char line[1024];
    int n = snprintf(line, sizeof(line), "deb [signed-by=" KEYRING "] %.*s %s main\n", (int)url.n, url.p, suite);

    /* what strangers' scripts run beside would read it, and the message is not the place for it either */
    if (names_user(url)) {
        err_set(err, ERR_UNSUPPORTED, "image.build.mirror-password", "a mirror for %s has a user or a password in its "
                "URL, which what is built could read", suite);
        return err_hint(err, "give apt a mirror for %s that asks for none (sources.list(5))", s->suite);
    }
    if (n <= 0 || (size_t)n >= sizeof(line))
        return 0;               /* apt has none that long */
    if (s->text.n > 0 && buf_nul(&s->text) == 0 && strstr((const char *)s->text.p, line) != NULL)
        return 0;               /* once for each index of it */
    buf_puts(&s->text, line);
    return buf_ok(&s->text) ? add_host(s, url, err) : err_set(err, ERR_LIMIT, "image.build.mirror", "too many mirrors");
}

/* What stands before the next @end in @rest, which is then behind it. False: there is nothing more. */
static bool
next_part(struct str *rest, char end, struct str *out)
{
    const char *at = memchr(rest->p, end, rest->n);

    if (rest->n == 0)
        return false;
    *out = (struct str){ rest->p, at != NULL ? (size_t)(at - rest->p) : rest->n };
    *rest = (struct str){ rest->p + out->n + (at != NULL), rest->n - out->n - (at != NULL) };
    return true;
}

/* "URI RELEASE COMPONENT", as apt knows it: Debian's main part of the suite, with its updates. */
static int
take_source(struct sources *s, struct str line, struct err *err)
{
    static const char *const behind[] = { "", "-updates", "-security" };
    struct str url, suite;
    char name[160];

    if (!next_part(&line, ' ', &url) || !next_part(&line, ' ', &suite) || !str_eq_c(line, "main"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        snprintf(name, sizeof(name), "%s%s", s->suite, behind[i]);
        if (str_eq_c(suite, name))
            return add_source(s, url, name, err);
    }
    return 0;
}

static void
ignore(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

/* This host's mirrors, by its apt; none where it has none, or none for the suite. */
static int
ask_apt(struct sources *s, struct err *err)
{
    static const char *const argv[] = { "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                                        "Created-By: Packages", NULL };
    cleanup_buf struct buf said = BUF_INIT(SOURCES_MAX);
    cleanup_close int out = memfd_create("sources", MFD_CLOEXEC);
    const struct build_child c = { .argv = argv, .in = -1, .out = out, .ms = ASK_APT_MS, .line = ignore };
    struct str rest, line;
    int r = out < 0 ? err_sys(err, errno, "image.build", "memfd_create") : build_run(&c, err);

    if (r < 0)
        return -1;
    if (r > 0)
        return 0;
    if (lseek(out, 0, SEEK_SET) < 0 || io_read_all(out, &said) < 0)
        return err_sys(err, errno, "image.build", "what apt-get says");
    rest = (struct str){ said.n > 0 ? (const char *)said.p : "", said.n };
    while (next_part(&rest, '\n', &line))
        if (take_source(s, line, err) < 0)
            return -1;
    return 0;
}

static int
find_sources(struct sources *s, const struct recipe *r, struct err *err)
{
    static const struct { const char *url, *suite; bool always; } usual[] = {
        { "http://deb.debian.org/debian", "", true }, { "http://deb.debian.org/debian", "-updates", false },
        { "http://deb.debian.org/debian-security", "-security", false },
    };
    bool rolls = strcmp(r->suite, "sid") == 0 || strcmp(r->suite, "unstable") == 0;
    char suite[160];

    s->suite = r->suite;
    if (ask_apt(s, err) < 0)
        return -1;
    for (size_t i = 0, none = s->text.n == 0; none && i < ARRAY_LEN(usual); i++) {
        snprintf(suite, sizeof(suite), "%s%s", r->suite, usual[i].suite);
        if ((usual[i].always || !rolls) && add_source(s, str_of(usual[i].url), suite, err) < 0)
            return -1;
    }
    if ((r->pip.n > 0 && (add_host(s, STR_LIT("https://pypi.org"), err) < 0 ||
                          add_host(s, STR_LIT("https://files.pythonhosted.org"), err) < 0)) ||
        (r->npm.n > 0 && add_host(s, STR_LIT("https://registry.npmjs.org"), err) < 0))
        return -1;
    return 0;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* @before, and the list with @between: one word. */
static int
put_joined(struct build_words *w, const char *before, const struct recipe_list *list, const char *between,
           struct err *err)
{
    cleanup_buf struct buf b = BUF_INIT(64 * 1024);

    buf_puts(&b, before);
    for (size_t i = 0; i < list->n; i++) {
        buf_puts(&b, i > 0 ? between : "");
        buf_puts(&b, list->v[i]);
    }
    if (buf_nul(&b) < 0 || w->n_own == ARRAY_LEN(w->own) || (w->own[w->n_own] = strdup((const char *)b.p)) == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    BUILD_PUT(w, w->own[w->n_own++]);
    return 0;
}

/* What mmdebstrap cannot do without, on this host, whose /usr the sandbox has. */
static int
check_host(struct err *err)
{
    static const struct { const char *path, *package; } wanted[] = {
        { "/usr/bin/mmdebstrap", "mmdebstrap" }, { "/usr/bin/apt-get", "apt" }, { "/usr/bin/fakechroot", "fakechroot" },
        { "/usr/bin/fakeroot", "fakeroot" }, { KEYRING, "debian-archive-keyring" },
    };

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (access(wanted[i].path, R_OK) < 0) {
            err_set(err, ERR_UNSUPPORTED, "image.build.missing", "%s is not on this host: images are built by Debian's "
                    "mmdebstrap, apt, fakechroot and fakeroot", wanted[i].path);
            return err_hint(err, "apt install %s; elsewhere, build on a Debian or Ubuntu, or pull an image",
                            wanted[i].package);
        }
    return 0;
}

static int
put_sandbox(struct build_words *w, const struct image_options *o, const struct sources *s, struct err *err)
{
    if (build_put_run(w, o, err) < 0)
        return -1;
    BUILD_PUT(w, "--mode", "standard", "--view", "private", "--contents", "host", "--workdir", "/tmp", "--disk",
        TMP_SIZE, "--memory", MEMORY, "--pids", "4096",
        /* in a namespace with one user every other owner is EINVAL, which fakeroot passes on; it need not try */
        "--env", "FAKEROOTDONTTRYCHOWN=1", "--env", "LC_ALL=C.UTF-8");
    for (size_t i = 0; i < s->n_hosts; i++)
        BUILD_PUT(w, "--allow-domain", s->hosts[i]);
    return 0;
}

/* Before the first package is unpacked: usrmerge, which does it afterwards, wants to be root. */
#define MERGED_USR "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr"

/* No sandbox may make a file set-user-ID: the wall refuses it, fakeroot says that it was done, and the file is left as
 * it was made, with no rights at all. No image has such files either. */
#define PLAIN_FILES "-hook=find \"$1\" -xdev -type f -perm /6000 -exec chmod ug-s {} +"

#define CA_IN   "/tmp/cloche-ca.crt"
#define AS_HOST "--customize-hook=test ! -f /etc/ssl/certs/ca-certificates.crt || " \
                "cp /etc/ssl/certs/ca-certificates.crt \"$1\"" CA_IN

static int
put_build(struct build_words *w, const struct recipe *r, struct err *err)
{
    BUILD_PUT(w, "--", "mmdebstrap", "--mode=fakechroot", "--variant=essential", "--format=tar",
        /* its /sys is the sandbox's, which has none */
        "--dpkgopt=path-exclude=/sys", MERGED_USR, "--essential" PLAIN_FILES, "--customize" PLAIN_FILES,
        "--dpkgopt=force-unsafe-io", "--aptopt=Acquire::Retries \"3\"");
    BUILD_PUT(w, "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/info/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright");
    if (put_joined(w, "--include=", &r->packages, ",", err) < 0)
        return -1;
    if (r->pip.n + r->npm.n > 0)
        BUILD_PUT(w, AS_HOST);
    if (r->pip.n > 0 && put_joined(w, "--customize-hook=chroot \"$1\" env PIP_CERT=" CA_IN " pip3 install "
                                   "--break-system-packages --root-user-action=ignore --no-cache-dir ", &r->pip, " ",
                                   err) < 0)
        return -1;
    if (r->npm.n > 0 && put_joined(w, "--customize-hook=chroot \"$1\" env NODE_EXTRA_CA_CERTS=" CA_IN
                                   " npm_config_cache=/tmp/npm npm install --global ", &r->npm, " ", err) < 0)
        return -1;
    if (r->pip.n + r->npm.n > 0)
        BUILD_PUT(w, "--customize-hook=rm -rf \"$1\"" CA_IN " \"$1\"/tmp/npm");
    BUILD_PUT(w, r->suite, "-", "-");
    return 0;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

static char *
config_of(const struct recipe *r)
{
    json_t *config = json_pack("{s:o, s:o}", "Env", list_json(&r->env), "Cmd", list_json(&r->cmd));
    char *text;

    if (r->workdir[0] != '\0')
        json_object_set_new(config, "WorkingDir", cli_json_text(r->workdir));
    text = json_dumps(config, JSON_COMPACT);
    json_decref(config);
    return text;
}

static int
make_archive(const struct image_options *o, const struct recipe *r, int out, struct err *err)
{
    struct sources s = { .text = BUF_INIT(SOURCES_MAX) };
    cleanup_close int in = memfd_create("sources", MFD_CLOEXEC);
    struct build_words w = { .n = 0 };
    const struct build_job job = { &w, in, out, r->name, "a mirror with a private address needs --allow-domain "
                                   "ADDRESS:80", o->max_size };
    int result = -1;

    if (check_host(err) == 0 && find_sources(&s, r, err) == 0 && put_sandbox(&w, o, &s, err) == 0) {
        if (in < 0 || io_write_full(in, s.text.p, s.text.n) < 0 || lseek(in, 0, SEEK_SET) < 0)
            err_sys(err, errno, "image.build", "a file for the sources");
        else if (put_build(&w, r, err) == 0)
            result = build_in_sandbox(&job, o, err);
    }
    build_words_free(&w);
    buf_free(&s.text);
    return result;
}

static int
build(struct image_options *o, const struct recipe *r, const char *name, struct err *err)
{
    struct store s = STORE_INIT;
    struct stage stage = STAGE_INIT;
    cleanup_close int archive = -1;
    cleanup_free char *config = config_of(r);
    char from[64];
    int result = -1;

    if (config == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    snprintf(from, sizeof(from), "recipe %s", r->name);
    if (store_open(&s, err) == 0 && stage_begin(&s, &stage, err) == 0)
        archive = stage_file(&stage, err);
    if (archive >= 0 && make_archive(o, r, archive, err) == 0) {
        const struct image_source what = { .fd = archive, .config = config };
        result = image_take(o, &s, &stage, &what, name, from, err);
    }
    stage_end(&s, &stage);
    store_close(&s);
    return result;
}

int
image_build(void *options, const struct verb_words *w, struct err *err)
{
    struct image_options *o = options;
    struct recipes all = { .n = 0 };
    const struct recipe *r = NULL;
    char written[IMAGE_REF_MAX], name[IMAGE_REF_MAX + 1];
    int result = -1;

    if (w->n > 0 && image_is_folder(w->v[0]))
        return image_build_folder(o, w, err);
    if (recipes_load(&all, err) < 0)
        return -1;
    if (w->n > 0)
        r = recipes_find(&all, w->v[0], err);
    if (o->list) {
        result = show_list(&all, o->json, err);
    } else if (w->n == 0) {
        err_set(err, ERR_USAGE, "image.misused", "the recipe's name, or the folder, is missing");
        err_hint(err, "cloche image build RECIPE (--list shows all), or ./FOLDER with a Containerfile");
    } else if (r != NULL && o->show) {
        result = show_one(r, o->json, err);
    } else if (r != NULL) {
        /* what is named so can be pulled from nowhere */
        snprintf(written, sizeof(written), "localhost/%s:%s", r->name, r->suite);
        if (image_name_of(w->n > 1 ? w->v[1] : written, name, err) == 0)
            result = build(o, r, name, err);
    }
    recipes_free(&all);
    return result;
}
