/* hosts/registry_build.c: cargo and Maven, which have no command that says where they would go
 *
 * They are asked in an empty project, with an empty store: cargo for one crate, which runs nothing of it, and Maven for
 * nothing, offline, since it would run what a repository has for it. The project is in the state folder: Maven obeys a
 * folder .mvn in any folder above, and /tmp is everybody's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "hosts/ask.h"
#include "hosts/registry_priv.h"
#include "program/say.h"
#include "program/state.h"
#include "workspace/tree.h"

#define SMALL_MAX    65536
#define PROJECT_NAME 32

/* The empty project: a folder of ours, removed at the end. */
struct project {
    int parent, dir;
    char name[PROJECT_NAME], path[PATH_MAX];
};

#define PROJECT_INIT { .parent = -1, .dir = -1 }

static void
project_end(struct project *e)
{
    close_fd(&e->dir);
    if (e->parent >= 0 && e->name[0] != '\0')
        (void)tree_remove(e->parent, e->name, NULL);
    close_fd(&e->parent);
}

#define cleanup_project __attribute__((cleanup(project_end)))

static void
project_name(pid_t asker, char name[PROJECT_NAME])
{
    snprintf(name, PROJECT_NAME, "ask.%ld", (long)asker);
}

void
registry_tidy(pid_t asker)
{
    cleanup_close int parent = state_own_open("registries", "cli.registry", NULL);
    char name[PROJECT_NAME];

    project_name(asker, name);
    if (parent >= 0)
        (void)tree_remove(parent, name, NULL);
}

static int
project_begin(struct registry *r, struct project *e)
{
    char state[PATH_MAX];

    if (state_dir_path(state, r->err) < 0)
        return err_wrap(r->err, "%s", r->origin);
    if (ask_writable(r->p, state))
        return registry_refuse(r, "policy.registry.config", "the state folder can be written from inside", state);
    e->parent = state_own_open("registries", "cli.registry", r->err);
    if (e->parent < 0)
        return err_wrap(r->err, "%s", r->origin);
    project_name(getpid(), e->name);
    if (snprintf(e->path, sizeof(e->path), "%s/registries/%s", state, e->name) >= (int)sizeof(e->path) - 64)
        return registry_refuse(r, "cli.registry", "the name of the state folder is too long", "");
    (void)tree_remove(e->parent, e->name, NULL);        /* a process of that number may have been killed */
    if (mkdirat(e->parent, e->name, 0700) < 0)
        return err_sys(r->err, errno, "cli.registry", "make a folder in the state folder");
    e->dir = openat(e->parent, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return e->dir < 0 ? err_sys(r->err, errno, "cli.registry", "%s", e->path) : 0;
}

static int
put_file(struct registry *r, const struct project *e, const char *name, const char *text)
{
    cleanup_close int fd = openat(e->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd >= 0 && io_write_full(fd, text, strlen(text)) == 0
               ? 0 : err_sys(r->err, errno, "cli.registry", "%s/%s", e->path, name);
}

/* --- cargo -------------------------------------------------------------------------------------------------------- */

/* "cargo fetch" says with its log (https://doc.rust-lang.org/cargo/reference/config.html#httpdebug) which URLs it
 * asks: "... network: fetch URL". */
static void
cargo_index(struct registry *r, const char *said)
{
    static const char mark[] = "network: fetch ";
    struct str url;

    for (const char *at = said; (at = strstr(at, mark)) != NULL;) {
        at += strlen(mark);
        if (registry_word(&at, " \t\r\n", &url))
            (void)registry_add(r, url);
    }
}

/* config.json of the index says where files lie: "dl". */
static bool
cargo_files(struct registry *r, const struct project *e)
{
    cleanup_close int index = openat(e->dir, "home/registry/index", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int list = index >= 0 ? openat(index, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    cleanup_dir DIR *d = list >= 0 ? fdopendir(list) : NULL;
    struct dirent *entry;
    bool found = false;

    if (d == NULL)
        close_fd(&list);
    while (d != NULL && (entry = readdir(d)) != NULL) {
        cleanup_buf struct buf text = BUF_INIT(SMALL_MAX);
        char path[NAME_MAX + 16];
        const char *dl;
        json_t *root;
        snprintf(path, sizeof(path), "%s/config.json", entry->d_name);
        if (entry->d_name[0] == '.' || io_read_file(index, path, &text) < 0)
            continue;
        root = json_loadb((const char *)text.p, text.n, 0, NULL);
        dl = json_string_value(json_object_get(root, "dl"));
        found |= dl != NULL && registry_add_learned(r, str_of(dl));
        json_decref(root);
    }
    return found;
}

int
registry_cargo(struct registry *r)
{
    static const char *const names[] = { "config.toml", "config" };
    cleanup_project struct project e = PROJECT_INIT;
    cleanup_ask struct ask a = { .out = BUF_INIT(ASK_OUT_MAX), .status = -1, .both = true };
    const char *given = getenv("CARGO_HOME");
    char home[PATH_MAX], config[PATH_MAX + 16] = "", manifest[PATH_MAX + 16], set_home[PATH_MAX + 32];
    const char *const set[] = { set_home, "CARGO_LOG=network=debug", "CARGO_TERM_COLOR=never", "CARGO_NET_OFFLINE",
                                "CARGO_TARGET_DIR", NULL };
    const char *argv[] = { "cargo", "fetch", "--manifest-path", manifest, NULL, NULL, NULL };

    snprintf(home, sizeof(home), given != NULL && given[0] == '/' ? "%s" : "%s/.cargo",
             given != NULL && given[0] == '/' ? given : r->p->home != NULL ? r->p->home : "");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char file[PATH_MAX + 16], own[32];
        snprintf(file, sizeof(file), "%.4000s/%s", home, names[i]);
        snprintf(own, sizeof(own), "/.cargo/%s", names[i]);
        if (registry_check_config(r, file) < 0 || registry_check_config(r, own) < 0)
            return -1;
        if (config[0] == '\0' && access(file, R_OK) == 0)
            snprintf(config, sizeof(config), "%s", file);
    }
    if (config[0] != '\0') {
        argv[4] = "--config";
        argv[5] = config;
    }
    if (project_begin(r, &e) < 0 || put_file(r, &e, "lib.rs", "") < 0 ||
        put_file(r, &e, "Cargo.toml", "[package]\nname = \"ask\"\nversion = \"0.0.0\"\n[lib]\npath = \"lib.rs\"\n"
                 "[dependencies]\nitoa = \"1\"\n[workspace]\n") < 0)
        return -1;
    snprintf(manifest, sizeof(manifest), "%s/Cargo.toml", e.path);
    snprintf(set_home, sizeof(set_home), "CARGO_HOME=%s/home", e.path);
    if (ask_run(r->p, argv, set, &a, r->err) < 0)
        return err_wrap(r->err, "%s", r->origin);
    if (a.late)
        return registry_late(r, argv[0]);
    cargo_index(r, (const char *)a.out.p);
    if (r->n == 0)
        return registry_refuse(r, "policy.registry.answer", "asked cargo for a crate, it did not say where it looks",
                               a.last);
    if (!cargo_files(r, &e) || a.status != 0) {
        r->in_part = true;
        cli_warn("%s: asked cargo where its files lie, and got no answer: %s; only %s is open", r->origin, a.last,
                 r->hosts[0]);
    }
    return 0;
}

/* --- maven -------------------------------------------------------------------------------------------------------- */

static int
maven_configs(struct registry *r, const char *client)
{
    static const char *const own[] = { ".m2/settings.xml", ".m2/settings-security.xml", ".m2/extensions.xml",
                                       ".mavenrc" };
    static const char *const hosts[] = { "/etc/mavenrc", "/usr/local/etc/mavenrc" };
    const struct passwd *pw = getpwuid(geteuid());      /* Java's idea of home, which HOME does not change */
    const char *const homes[] = { r->p->home, pw != NULL ? pw->pw_dir : NULL };
    char file[2 * PATH_MAX], real[PATH_MAX];
    char *slash;

    for (size_t i = 0; i < ARRAY_LEN(homes); i++)
        for (size_t k = 0; homes[i] != NULL && k < ARRAY_LEN(own); k++) {
            snprintf(file, sizeof(file), "%s/%s", homes[i], own[k]);
            if (registry_check_config(r, file) < 0)
                return -1;
        }
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        if (registry_check_config(r, hosts[i]) < 0)
            return -1;
    if (realpath(client, real) == NULL || (slash = strrchr(real, '/')) == NULL)
        return 0;
    *slash = '\0';
    snprintf(file, sizeof(file), "%s/../conf/settings.xml", real);
    return registry_check_config(r, file);
}

/* "Repositories (dependencies): [ID (URL, LAYOUT, POLICY), ...]", and the same of "plugins": with mirrors in the place
 * of what they stand for. */
static void
maven_places(struct registry *r, const char *said)
{
    struct str line, entry, url;

    while (registry_word(&said, "\r\n", &line)) {
        const char *at = memmem(line.p, line.n, "Repositories (", strlen("Repositories ("));
        const char *end = line.p + line.n;
        while (at != NULL && (at = memmem(at, (size_t)(end - at), " (http", strlen(" (http"))) != NULL) {
            const char *close = memchr(at, ')', (size_t)(end - at));
            entry = (struct str){ at + 2, (size_t)((close != NULL ? close : end) - at) - 2 };
            at = entry.p + entry.n;
            url = (struct str){ entry.p, strcspn(entry.p, ", )\r\n") };
            /* Maven's own mirror for plain http leads nowhere, and says so */
            if (memmem(entry.p, entry.n, "blocked", strlen("blocked")) == NULL)
                (void)registry_add(r, url);
        }
    }
}

int
registry_maven(struct registry *r)
{
    static const char *const bends[] = { "MAVEN_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS" };
    static const char pom[] =
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>ask</artifactId>"
        "<version>1</version><packaging>pom</packaging></project>\n";
    cleanup_project struct project e = PROJECT_INIT;
    cleanup_ask struct ask a = ASK_INIT;
    char file[PATH_MAX + 16], store[PATH_MAX + 32], base[PATH_MAX + 32];
    const char *const set[] = { base, "MAVEN_ARGS", "MAVEN_CONFIG", NULL };
    const char *const argv[] = { "mvn", "-B", "-X", "-o", "-f", file, store, "validate", NULL };

    if (project_begin(r, &e) < 0 || put_file(r, &e, "pom.xml", pom) < 0)
        return -1;
    snprintf(file, sizeof(file), "%s/pom.xml", e.path);
    snprintf(store, sizeof(store), "-Dmaven.repo.local=%s/store", e.path);
    snprintf(base, sizeof(base), "MAVEN_BASEDIR=%s", e.path);
    if (ask_run(r->p, argv, set, &a, r->err) < 0)
        return err_wrap(r->err, "%s", r->origin);
    if (a.late)
        return registry_late(r, argv[0]);
    if (maven_configs(r, a.path) < 0)
        return -1;
    maven_places(r, (const char *)a.out.p);
    if (a.status != 0 || r->n == 0)
        return registry_refuse(r, "policy.registry.answer", "asked mvn -X validate, it did not say where it looks",
                               a.last);
    /* options of Java's may name other files than those that were looked at */
    for (size_t i = 0; i < ARRAY_LEN(bends); i++)
        r->in_part |= getenv(bends[i]) != NULL;
    return 0;
}
