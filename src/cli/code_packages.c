/* cli/code_packages.c: packages for one run of `cloche code` (--package)
 *
 * They are installed in a sandbox of their own, another `cloche run`, whose network has the hosts of the registry and
 * whose only folder is an empty one. That folder is then shown to the code, read-only; the code's sandbox has the
 * network that its policy says, none by default. What was installed with versions is kept (code_kept.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/code_packages.h"
#include "match/host.h"
#include "match/package.h"
#include "match/path.h"
#include "policy/spec.h"
#include "wall/janitor.h"
#include "workspace/patch.h"
#include "workspace/tree.h"

#define OUTPUT_MAX (16UL * 1024 * 1024)
#define SHOWN_MAX  (8 * OUTPUT_MAX)     /* ... made visible: at most "<FF>" of a byte, "<U+202E>" of three */
#define CA_MAX     32
#define WORDS_MAX  (256 + 2 * CA_MAX + PACKAGES_MAX)
#define INNER      "ws"        /* ... of the folder, in which it can be removed without meeting what is others' */

int
code_packages_check(const struct packages *packages, const struct language *l, struct err *err)
{
    const struct package_client *client = package_client_of(l->registry);

    if (packages->n == 0)
        return 0;
    if (client == NULL) {
        err_set(err, ERR_USAGE, "cli.package.language", "--package is not for %s", l->name);
        return err_hint(err, "it is for languages whose packages come from pypi or npm");
    }
    for (size_t i = 0; i < packages->n; i++) {
        if (!package_well(client->registry, packages->v[i])) {
            err_set(err, ERR_USAGE, "cli.package.name", "--package %.200s is not a name of %s with at most a version",
                    packages->v[i], client->registry);
            return err_hint(err, "such as %s: no URL, path or option",
                            client->variable != NULL ? "requests==2.31.0" : "lodash@4.17.21");
        }
    }
    return 0;
}

/* What builds the wall, and how strong it is, as for the code: what runs while something is installed is no better. */
static size_t
wall_words(const struct policy *p, const char **out)
{
    size_t n = 0;

    out[n++] = "--mode";
    out[n++] = policy_mode_name(p->mode.v);
    if (p->engine.p != NULL) {
        out[n++] = "--engine";
        out[n++] = p->engine.p;
    }
    if (p->runtime.p != NULL) {
        out[n++] = "--runtime";
        out[n++] = p->runtime.p;
    }
    if (p->fallback.v != FALLBACK_REFUSE) {
        out[n++] = "--fallback";
        out[n++] = policy_fallback_words[p->fallback.v];
    }
    if (p->audit.v != RECORD_TRY) {
        out[n++] = "--audit";
        out[n++] = p->audit.v == RECORD_OFF ? "off" : "required";
    }
    for (size_t i = 0; i < p->extra_ca.n && i < CA_MAX; i++) {
        out[n++] = "--extra-ca";
        out[n++] = p->extra_ca.v[i].value;
    }
    return n;
}

/* The command line of the installation. Addresses are passed on: a registry of the user's own may be at one, which no
 * name opens (docs/network.md). */
static void
words_of(const struct package_client *client, const struct packages *packages, const struct policy *p, char *workspace,
         const char **out)
{
    static const char *const run[] = { "cloche", "run", "--contents", "minimal", "--timeout", "10m", "--memory", "1g",
                                       "--disk", "2g", "--output", "4m", "--quiet", "--allow-registry" };
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(run); i++)
        out[n++] = run[i];
    out[n++] = client->registry;
    n += wall_words(p, out + n);
    out[n++] = "--workspace";
    out[n++] = workspace;
    for (size_t i = 0; i < p->allow_domains.n && n < WORDS_MAX - 32 - PACKAGES_MAX; i++) {
        struct host_pattern pattern;
        if (host_pattern_cloche(str_of(p->allow_domains.v[i].value), &pattern) != HOST_OK || !pattern.host.is_ip)
            continue;
        out[n++] = "--allow-domain";
        out[n++] = p->allow_domains.v[i].value;
    }
    out[n++] = "--";
    for (size_t i = 0; client->words[i] != NULL; i++)
        out[n++] = client->words[i];
    out[n++] = "--";
    for (size_t i = 0; i < packages->n; i++)
        out[n++] = packages->v[i];
    out[n] = NULL;
}

static volatile sig_atomic_t told, installing;

static void
on_signal(int number)
{
    told = number;
    if (installing > 0)
        (void)kill(installing, number);
}

static void
become_installer(const char **words, int out, const sigset_t *mask)
{
    cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
        execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    _exit(125);
}

/* 0 or what it ended with; -1 with @err. Its output goes to the file @out. Signals are blocked by ends_begin(): those
 * that come meanwhile are the installer's too, and are in `told`. */
static int
run_in_child(const char **words, int out, const sigset_t *mask, struct err *err)
{
    pid_t pid = fork();
    int status, r;

    if (pid < 0)
        return err_sys(err, errno, "cli.package.start", "fork");
    if (pid == 0)
        become_installer(words, out, mask);
    installing = pid;
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    while ((r = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    installing = 0;
    if (r < 0)
        return err_sys(err, errno, "cli.package.start", "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What would end us before the folder is removed. */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void
ends_begin(struct sigaction before[ARRAY_LEN(ends)], sigset_t *mask)
{
    struct sigaction heard = { .sa_handler = on_signal };
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        sigaddset(&set, ends[i]);
    (void)sigprocmask(SIG_BLOCK, &set, mask);
    told = installing = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)sigaction(ends[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)        /* as under nohup */
            (void)sigaction(ends[i], &heard, NULL);
    }
}

static void
ends_end(const struct sigaction before[ARRAY_LEN(ends)], const sigset_t *mask)
{
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)sigaction(ends[i], &before[i], NULL);
}

static int
refuse(const char *registry, const struct buf *said, struct err *err)
{
    static const struct { const char *code, *text, *hint; } rows[] = {
        [PACKAGE_FAILED] = { "cli.package.failed", "cannot be installed", "what its client said is above" },
        [PACKAGE_NOT_FOUND] = { "cli.package.not-found", "there is no such package, or no such version",
                                "look for another spelling or version" },
        [PACKAGE_OTHER_HASH] = { "cli.package.hash", "an archive is not what its registry says",
                                 "somebody changed it on the way, or in the registry" },
        [PACKAGE_NO_WAY] = { "cli.package.unreachable", "the registry was not reached",
                             "`cloche policy show --allow-registry NAME` shows its hosts; what is at an address that "
                             "no name opens needs --allow-domain ADDRESS" },
    };
    enum package_fault fault = package_fault_of(said->p, said->n);

    cleanup_buf struct buf shown = BUF_INIT(SHOWN_MAX);

    /* strangers speak, to a terminal */
    (void)patch_visible(&shown, said->p, said->n);
    (void)io_write_full(STDERR_FILENO, shown.p, shown.n);
    if (fault == PACKAGE_FAILED && said->n == 0)
        return err_set(err, ERR_SYSTEM, rows[fault].code, "--package (%s): %s, and its client said nothing that can be "
                       "shown", registry, rows[fault].text);
    err_set(err, ERR_SYSTEM, rows[fault].code, "--package (%s): %s", registry, rows[fault].text);
    return err_hint(err, "%s", rows[fault].hint);
}

/* The last part of what was said, where it is more than is kept. */
static void
read_said(int out, struct buf *said)
{
    off_t n = lseek(out, 0, SEEK_END);

    if (n < 0 || lseek(out, n > (off_t)OUTPUT_MAX ? n - (off_t)OUTPUT_MAX : 0, SEEK_SET) < 0 ||
        io_read_all(out, said) < 0)
        buf_reset(said);
}

/* What was installed is shown to the code by this name. What ran meanwhile, none of which is left, may have put a link
 * to any folder of the host's there, which the code would then see. */
static int
is_folder(const char *inner, const char *name, struct err *err)
{
    cleanup_close int fd = open(inner, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, ERR_SYSTEM, "cli.package.failed", "--package: the installation left no folder %s", name);
}

static bool
remove_folder(void *ctx)
{
    const struct packages *packages = ctx;
    struct err ignored = ERR_INIT;
    cleanup_close int fd = open(packages->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT;
    return tree_remove(fd, INNER, &ignored) == 0 && rmdir(packages->folder) == 0;
}

/* A name that nobody can guess is decided first, so that the janitor knows it: it removes the folder when this process
 * is killed. */
static int
make_folder(struct packages *packages, struct err *err)
{
    unsigned char raw[8];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
        return err_sys(err, errno, "cli.package.folder", "getrandom");
    snprintf(packages->folder, sizeof(packages->folder), "/tmp/cloche-packages-%02x%02x%02x%02x%02x%02x%02x%02x",
             raw[0], raw[1], raw[2], raw[3], raw[4], raw[5], raw[6], raw[7]);
    if (janitor_start(&packages->janitor, remove_folder, packages, err) < 0) {
        packages->folder[0] = '\0';
        return -1;
    }
    if (mkdir(packages->folder, 0700) == 0)
        return 0;
    err_sys(err, errno, "cli.package.folder", "%s", packages->folder);
    janitor_dismiss(&packages->janitor, true);      /* what lies there is not ours */
    packages->folder[0] = '\0';
    return -1;
}

static bool
all_pinned(const struct packages *packages, const char *registry)
{
    for (size_t i = 0; i < packages->n; i++)
        if (!package_pinned(registry, packages->v[i]))
            return false;
    return true;
}

static int
install(struct packages *packages, const struct package_client *client, const struct policy *p, const sigset_t *mask,
        struct err *err)
{
    static const char *words[WORDS_MAX];
    cleanup_buf struct buf said = BUF_INIT(OUTPUT_MAX);
    cleanup_close int out = -1;
    char inner[sizeof(packages->folder) + 4], workspace[sizeof(inner) + 4], no_workspace[] = "";
    int status;

    words_of(client, packages, p, no_workspace, words);
    if (all_pinned(packages, client->registry) && code_kept_find(&packages->kept, client, p, words))
        return 0;
    if (make_folder(packages, err) < 0)
        return -1;
    snprintf(inner, sizeof(inner), "%s/" INNER, packages->folder);
    snprintf(workspace, sizeof(workspace), "%s:rw", inner);
    if (mkdir(inner, 0700) < 0)
        return err_sys(err, errno, "cli.package.folder", "%s", inner);
    words_of(client, packages, p, workspace, words);
    out = memfd_create("packages", MFD_CLOEXEC);
    if (out < 0)
        return err_sys(err, errno, "cli.package.start", "memfd_create");
    status = run_in_child(words, out, mask, err);
    if (status == 0) {
        words_of(client, packages, p, no_workspace, words);
        if (is_folder(inner, client->folder, err) < 0)
            return -1;
        if (all_pinned(packages, client->registry) && told == 0)
            code_kept_keep(client, p, words, inner);
        return 0;
    }
    if (status < 0)
        return -1;
    read_said(out, &said);
    return refuse(client->registry, &said, err);
}

int
code_packages_install(struct packages *packages, const struct language *l, const struct policy *p, struct err *err)
{
    struct sigaction before[ARRAY_LEN(ends)];
    sigset_t mask;
    int r;

    ends_begin(before, &mask);
    r = install(packages, package_client_of(l->registry), p, &mask, err);
    ends_end(before, &mask);
    packages->ended_by = told;
    return told != 0 ? -1 : r;
}

int
code_packages_show(struct packages *packages, const struct language *l, const char *folder, int argc, char **argv,
                   char **words)
{
    static char bind[] = "--bind", env[] = "--env";
    const struct package_client *client = package_client_of(l->registry);
    int n = 0;

    snprintf(packages->bind, sizeof(packages->bind), "%s%s/%s:%s/%s", packages->folder,
             packages->folder[0] != '\0' ? "/" INNER : packages->kept.path, client->folder, folder, client->folder);
    words[n++] = argv[0];
    words[n++] = bind;
    words[n++] = packages->bind;
    if (client->variable != NULL) {
        snprintf(packages->env, sizeof(packages->env), "%s=%s/%s", client->variable, folder, client->folder);
        words[n++] = env;
        words[n++] = packages->env;
    }
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    words[n] = NULL;
    return n;
}

void
code_packages_own(const struct packages *packages, struct policy *p)
{
    for (size_t i = 0; i < p->n_binds && packages->folder[0] == '\0'; i++)
        if (path_within(str_of(p->binds[i].source), str_of(packages->kept.path)) && !p->binds[i].writable)
            p->binds[i].own = true;
}

void
code_packages_remove(struct packages *packages)
{
    if (packages->kept.path[0] != '\0')
        close_fd(&packages->kept.lock);
    if (packages->folder[0] != '\0')
        janitor_dismiss(&packages->janitor, remove_folder(packages));
    packages->folder[0] = '\0';
    if (packages->ended_by != 0)
        (void)raise(packages->ended_by);
}
