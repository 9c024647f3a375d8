/* cli/code_packages.c: packages for one run of `cloche code` (--package)
 *
 * They are installed in a sandbox of their own, another `cloche run`, whose network has the hosts of the registry and
 * whose only folder is an empty one. That folder is then shown to the code, read-only; the code's sandbox has the
 * network that its policy says, none by default.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/code_packages.h"
#include "match/host.h"
#include "match/package.h"
#include "workspace/tree.h"

#define OUTPUT_MAX (16UL * 1024 * 1024)
#define WORDS_MAX  (256 + PACKAGES_MAX)
#define INNER      "ws"        /* ... of the folder, in which it can be removed without meeting what is others' */

static const struct {
    const char *registry, *folder, *variable;   /* below the shared folder; a variable that names it, or NULL */
    const char *words[12];
} ways[] = {
    { "pypi", ".packages", "PYTHONPATH",
      { "python3", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--target",
        "/workspace/.packages", "--" } },
    { "npm", "node_modules", NULL,
      { "npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", "/workspace", "--" } },
};

static int
way_of(const struct language *l)
{
    for (size_t i = 0; l->registry != NULL && i < ARRAY_LEN(ways); i++)
        if (strcmp(ways[i].registry, l->registry) == 0)
            return (int)i;
    return -1;
}

int
code_packages_check(const struct packages *packages, const struct language *l, struct err *err)
{
    int way = way_of(l);

    if (packages->n == 0)
        return 0;
    if (way < 0) {
        err_set(err, ERR_USAGE, "cli.package.language", "--package is not for %s", l->name);
        return err_hint(err, "it is for languages whose packages come from pypi or npm");
    }
    for (size_t i = 0; i < packages->n; i++) {
        if (!package_well(ways[way].registry, packages->v[i])) {
            err_set(err, ERR_USAGE, "cli.package.name", "--package %.200s is not a name of %s with at most a version",
                    packages->v[i], ways[way].registry);
            return err_hint(err, "such as %s: no URL, path or option",
                            way == 0 ? "requests==2.31.0" : "lodash@4.17.21");
        }
    }
    return 0;
}

/* The command line of the installation. Addresses are passed on: a registry of the user's own may be at one, which no
 * name opens (docs/network.md). */
static void
words_of(int way, const struct packages *packages, const struct policy *p, char *workspace, const char **out)
{
    static const char *const run[] = { "cloche", "run", "--contents", "minimal", "--timeout", "10m", "--memory", "1g",
                                       "--disk", "2g", "--quiet", "--allow-registry" };
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(run); i++)
        out[n++] = run[i];
    out[n++] = ways[way].registry;
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
    for (size_t i = 0; ways[way].words[i] != NULL; i++)
        out[n++] = ways[way].words[i];
    for (size_t i = 0; i < packages->n; i++)
        out[n++] = packages->v[i];
    out[n] = NULL;
}

/* 0 or what it ended with; -1 with @err. Its output goes to the file @out. */
static int
run_in_child(const char **words, int out, struct err *err)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return err_sys(err, errno, "cli.package.start", "fork");
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
            dup2(out, STDERR_FILENO) >= 0)
            execv("/proc/self/exe", (char *const *)(uintptr_t)words);
        _exit(125);
    }
    (void)sigaction(SIGINT, &ignore, &before);      /* the child has it too, and ends */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "cli.package.start", "waitpid");
    (void)sigaction(SIGINT, &before, NULL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
refuse(int way, const struct buf *said, struct err *err)
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

    (void)io_write_full(STDERR_FILENO, said->p, said->n);
    err_set(err, ERR_SYSTEM, rows[fault].code, "--package (%s): %s", ways[way].registry, rows[fault].text);
    return err_hint(err, "%s", rows[fault].hint);
}

int
code_packages_install(struct packages *packages, const struct language *l, const struct policy *p, struct err *err)
{
    static const char *words[WORDS_MAX];
    cleanup_buf struct buf said = BUF_INIT(OUTPUT_MAX);
    cleanup_close int out = -1;
    char inner[sizeof(packages->folder) + 4], workspace[sizeof(inner) + 4];
    int way = way_of(l), status;

    snprintf(packages->folder, sizeof(packages->folder), "/tmp/cloche-packages-XXXXXX");
    if (mkdtemp(packages->folder) == NULL) {
        err_sys(err, errno, "cli.package.folder", "%s", packages->folder);
        packages->folder[0] = '\0';
        return -1;
    }
    snprintf(inner, sizeof(inner), "%s/" INNER, packages->folder);
    snprintf(workspace, sizeof(workspace), "%s:rw", inner);
    if (mkdir(inner, 0700) < 0)
        return err_sys(err, errno, "cli.package.folder", "%s", inner);
    words_of(way, packages, p, workspace, words);
    out = memfd_create("packages", MFD_CLOEXEC);
    if (out < 0)
        return err_sys(err, errno, "cli.package.start", "memfd_create");
    status = run_in_child(words, out, err);
    if (status < 0)
        return -1;
    if (status != 0) {
        if (lseek(out, 0, SEEK_SET) < 0 || io_read_all(out, &said) < 0)
            buf_reset(&said);
        return refuse(way, &said, err);
    }
    return 0;
}

int
code_packages_show(struct packages *packages, const struct language *l, const char *folder, int argc, char **argv,
                   char **words)
{
    static char bind[] = "--bind", env[] = "--env";
    int way = way_of(l), n = 0;

    snprintf(packages->bind, sizeof(packages->bind), "%s/" INNER "/%s:%s/%s", packages->folder, ways[way].folder,
             folder, ways[way].folder);
    words[n++] = argv[0];
    words[n++] = bind;
    words[n++] = packages->bind;
    if (ways[way].variable != NULL) {
        snprintf(packages->env, sizeof(packages->env), "%s=%s/%s", ways[way].variable, folder, ways[way].folder);
        words[n++] = env;
        words[n++] = packages->env;
    }
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    words[n] = NULL;
    return n;
}

void
code_packages_remove(struct packages *packages)
{
    struct err ignored = ERR_INIT;

    bool there = packages->folder[0] != '\0';
    cleanup_close int fd = there ? open(packages->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0 && tree_remove(fd, INNER, &ignored) == 0)
        (void)rmdir(packages->folder);
    packages->folder[0] = '\0';
}
