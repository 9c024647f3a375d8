/* cli/doctor_programs.c: which languages `cloche code` finds, and which of its own programs cloche (see doctor.h) */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "program/caller.h"
#include "program/helper.h"
#include "program/runtimes.h"

#define ASK_MS 2000

struct question {
    pid_t pid;
    int fd;             /* its stdout */
    char text[256];
    size_t n;
};

static void
look_up(struct doctor_program *p)
{
    /* a private root has the host's /usr, and this PATH */
    static const char *const folders[] = {
        "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"
    };
    const char *program = p->language->program;
    bool told = program[0] == '/';      /* where it is: one of the user's own may say that */

    for (size_t i = 0; i < (told ? 1 : ARRAY_LEN(folders)); i++) {
        snprintf(p->path, sizeof(p->path), "%s%s%s", told ? "" : folders[i], told ? "" : "/", program);
        if (access(p->path, X_OK) == 0)
            return;
    }
    p->path[0] = '\0';
}

static void
ask(const char *program, struct question *q)
{
    char flag[] = "--version", path[sizeof(((struct doctor_program *)NULL)->path)];
    char *argv[] = { path, flag, NULL };
    char *env[] = { NULL };
    posix_spawn_file_actions_t actions;
    cleanup_close int write_end = -1;
    int ends[2];

    if (program[0] == '\0' || pipe2(ends, O_CLOEXEC) < 0)
        return;
    q->fd = ends[0];
    write_end = ends[1];
    snprintf(path, sizeof(path), "%s", program);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return;
    if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&q->pid, path, &actions, NULL, argv, env) != 0)
        q->pid = -1;
    posix_spawn_file_actions_destroy(&actions);
}

static void
listen_to(struct question *q, uint64_t deadline)
{
    struct pollfd p = { .fd = q->fd, .events = POLLIN };

    while (q->pid > 0 && q->n < sizeof(q->text) - 1) {
        uint64_t now = clock_ms();
        ssize_t got;

        if (now >= deadline || poll(&p, 1, (int)(deadline - now)) <= 0)
            break;
        got = read(q->fd, q->text + q->n, sizeof(q->text) - 1 - q->n);
        if (got <= 0)
            break;
        q->n += (size_t)got;
    }
    q->text[q->n] = '\0';
    if (q->pid > 0) {
        kill(q->pid, SIGKILL);
        while (waitpid(q->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    close_fd(&q->fd);
}

/* "3.11.2 (main)" style output of --version: the first dotted number. False when there is none. Pure. */
static bool
doctor_parse_version(const char *text, char *out, size_t n, unsigned *major, unsigned *minor)
{
    uint64_t a, b = 0;
    size_t start = strcspn(text, "0123456789");
    size_t len = strspn(text + start, "0123456789.");
    size_t digits = strspn(text + start, "0123456789");

    if (len == 0 || len >= n || !str_parse_u64((struct str){ text + start, digits }, 100000, &a))
        return false;
    if (digits < len) {
        const char *rest = text + start + digits + 1;

        if (!str_parse_u64((struct str){ rest, strspn(rest, "0123456789") }, 100000, &b))
            return false;
    }
    memcpy(out, text + start, len);
    out[len] = '\0';
    *major = (unsigned)a;
    *minor = (unsigned)b;
    return true;
}

static void
find_toolchains(struct doctor *d)
{
    struct policy_host host;

    if (cli_host(&host, NULL) == 0)
        (void)toolchains_find("auto", host.home, NULL, &d->toolchains, NULL);
}

void
doctor_find_programs(struct doctor *d)
{
    static struct runtimes own;
    struct question q[LANGUAGES];
    uint64_t deadline = clock_ms() + ASK_MS;
    const struct language *l;

    find_toolchains(d);
    if (runtimes_load(&own, &d->runtimes) == 0)
        language_more(own.rows, own.n);
    for (size_t i = 0; (l = language_at(i)) != NULL; i++) {
        d->programs[d->n_programs++] = (struct doctor_program){ .language = l };
        look_up(&d->programs[i]);
        if (i < LANGUAGES) {
            q[i] = (struct question){ -1, -1, "", 0 };
            ask(d->programs[i].path, &q[i]);
        } else {        /* what a file of the user's names is run inside only */
            d->programs[i].enough = d->programs[i].path[0] != '\0';
        }
    }
    for (size_t i = 0; i < LANGUAGES; i++) {
        struct doctor_program *p = &d->programs[i];
        unsigned major = 0, minor = 0;

        listen_to(&q[i], deadline);
        if (doctor_parse_version(q[i].text, p->version, sizeof(p->version), &major, &minor))
            p->enough = major > p->language->major || (major == p->language->major && minor >= p->language->minor);
    }
}

static int
find_engine(struct doctor *d, const char *engine, const char *runtime, struct err *err)
{
    struct doctor_engine *e = &d->engines[d->n_engines];

    if (d->n_engines == DOCTOR_ENGINES)
        return 0;
    d->n_engines++;
    e->runtime = runtime;
    if (strcmp(engine, d->engine.engine) == 0 && runtime == NULL)
        e->report = d->engine;
    else if (engine_probe_named(engine, runtime, &e->report, err) < 0)
        return -1;
    (void)engine_allows(&e->report, MODE_STANDARD, &e->missing);
    return 0;
}

int
doctor_find_engines(struct doctor *d, struct err *err)
{
    struct question q[DOCTOR_ENGINES];
    uint64_t deadline = clock_ms() + ASK_MS;

    for (const char *const *name = engine_names(); *name != NULL; name++) {
        const char *const *runtime = engine_runtimes(*name);

        if (*runtime == NULL && find_engine(d, *name, NULL, err) < 0)
            return -1;
        for (; *runtime != NULL; runtime++)
            if (find_engine(d, *name, *runtime, err) < 0)
                return -1;
    }
    for (size_t i = 0; i < d->n_engines; i++) {
        q[i] = (struct question){ -1, -1, "", 0 };
        ask(d->engines[i].report.program, &q[i]);
    }
    for (size_t i = 0; i < d->n_engines; i++) {
        struct doctor_engine *e = &d->engines[i];
        const char *said;

        listen_to(&q[i], deadline);
        said = strstr(q[i].text, "version ");       /* "crun version 1.8.1" */
        if (said == NULL)
            continue;
        said += strlen("version ");
        snprintf(e->version, sizeof(e->version), "%.*s", (int)strcspn(said, " \n"), said);
        e->n_holes = engine_holes(e->report.engine, e->runtime, e->version, e->holes);
    }
    return 0;
}

void
doctor_find_helpers(struct doctor_helper helpers[DOCTOR_HELPERS])
{
    static const struct doctor_helper wanted[DOCTOR_HELPERS] = {
        { .folder = "egress", .name = "cloche-egress", .needed_by = "the network by name" },
        { .folder = "vault", .name = "cloche-vault", .needed_by = "secrets, rules about requests" },
        { .folder = "gate", .name = "cloche-gate", .needed_by = "cloche gate, rules of cloche serve --gate FILE" },
        { .folder = "imager", .name = "cloche-image", .needed_by = "cloche image" },
        { .folder = "front", .name = "cloche-front", .needed_by = "cloche serve, cloche mcp" },
        { .folder = "adapters", .name = "cloche-adapter", .needed_by = "cloche serve, cloche mcp" },
        { .folder = "warden", .name = "cloche-warden", .needed_by = "cloche serve, cloche mcp" },
        { .folder = "scribe", .name = "cloche-scribe", .needed_by = "cloche serve, cloche mcp" },
        { .folder = "webhook", .name = "cloche-webhook", .needed_by = "webhook-url of cloche serve" },
        { .folder = "otlp", .name = "cloche-otlp", .needed_by = "otlp-endpoint of cloche serve" },
        { .folder = "remote", .name = "cloche-remote", .needed_by = "keys that a server signs with (cloche signer)" },
        { .folder = "signer", .name = "cloche-signer", .needed_by = "cloche signer, signing-key of cloche serve" },
    };
    struct err err = ERR_INIT;

    for (size_t i = 0; i < DOCTOR_HELPERS; i++) {
        char found[sizeof(helpers[i].path)];

        helpers[i] = wanted[i];
        /* realpath: a build tree's is found by way of "..", which nobody wants to read */
        if (helper_find(helpers[i].folder, helpers[i].name, found, &err) < 0 ||
            realpath(found, helpers[i].path) == NULL)
            helpers[i].path[0] = '\0';
        else
            helper_lacks(helpers[i].folder, helpers[i].name, helpers[i].lacks, sizeof(helpers[i].lacks));
    }
}
