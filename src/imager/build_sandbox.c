/* imager/build_sandbox.c: see build_sandbox.h */
#include "imager/build_sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "imager/build_run.h"
#include "program/say.h"
#include "workspace/patch.h"

#define SLACK_MS  60000             /* for the sandbox's own end */
#define HEARD_MAX (64UL * 1024)     /* a line of build_run.h, made visible */

/* --- words -------------------------------------------------------------------------------------------------------- */

void
build_words_free(struct build_words *w)
{
    for (size_t i = 0; i < w->n_own; i++)
        free(w->own[i]);
}

void
build_put(struct build_words *w, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n && w->n < BUILD_WORDS_MAX; i++)
        w->v[w->n++] = v[i];
    w->v[w->n] = NULL;
}

static int
find_cloche(char out[PATH_MAX], struct err *err)
{
    static const char *const places[] = { "../cli/cloche", "../../bin/cloche" };   /* of a build folder, of libexec */
    char self[PATH_MAX], path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return err_sys(err, errno, "cli.program", "/proc/self/exe");
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (snprintf(path, sizeof(path), "%s/%s", self, places[i]) < PATH_MAX && realpath(path, out) != NULL)
            return 0;
    err_set(err, ERR_UNSUPPORTED, "cli.program", "cloche is not beside %s", self);
    return err_hint(err, "install cloche whole");
}

int
build_put_run(struct build_words *w, const struct image_options *o, struct err *err)
{
    if (find_cloche(w->cloche, err) < 0)
        return -1;
    snprintf(w->time, sizeof(w->time), "%llus", (unsigned long long)o->time_s);
    BUILD_PUT(w, w->cloche, "run", "--quiet", "--output", "none", "--timeout", w->time);
    for (size_t i = 0; i < o->n_allow; i++)
        BUILD_PUT(w, "--allow-domain", o->allow[i]);
    return 0;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

struct hearing {
    bool progress, verbose;
    char why[400];              /* the first line that says what went wrong, */
    char last[400];             /* and the last one at all */
};

static bool
begins_one(const char *line, const char *const *with)
{
    for (; *with != NULL; with++)
        if (strncmp(line, *with, strlen(*with)) == 0)
            return true;
    return false;
}

static void
heard(void *ctx, const char *line)
{
    static const char *const steps[] = { "I: ", "Step ", NULL };        /* mmdebstrap's; docker's */
    static const char *const faults[] = { "E: ", "cloche: ", "dpkg: error", "ERROR: ", "npm error", "The command '",
                                          "Error response from daemon: ", NULL };
    struct hearing *h = ctx;
    cleanup_buf struct buf shown = BUF_INIT(HEARD_MAX);

    /* it is strangers who speak, to a terminal */
    if (patch_visible(&shown, (const uint8_t *)line, strlen(line)) < 0 || buf_nul(&shown) < 0)
        return;
    line = (const char *)shown.p;
    if (h->verbose)
        fprintf(stderr, "%s\n", line);
    else if (h->progress && begins_one(line, steps))
        fprintf(stderr, "cloche: %.200s\n", line + (line[0] == 'I' ? 3 : 0));
    if (h->why[0] == '\0' && begins_one(line, faults) && strncmp(line, "cloche: warning", 15) != 0)
        snprintf(h->why, sizeof(h->why), "%.399s", line);
    snprintf(h->last, sizeof(h->last), "%.399s", line);
}

int
build_in_sandbox(const struct build_job *job, const struct image_options *o, struct err *err)
{
    struct hearing h = { .progress = !o->json, .verbose = o->verbose };
    const struct build_child c = { .argv = job->words->v, .in = job->in, .out = job->out,
                                   .ms = o->time_s * 1000 + SLACK_MS, .max = job->file_max, .line = heard, .ctx = &h };
    int code = build_run(&c, err);

    if (code < 0)
        return -1;
    if (code == 0)
        return lseek(job->out, 0, SEEK_SET) < 0 ? err_sys(err, errno, "image.store", "the archive") : 0;
    if (code == EXIT_TIMED_OUT) {
        err_set(err, ERR_LIMIT, "image.build.time", "the build took longer than %s", job->words->time);
        return err_hint(err, "give it more: --timeout 2h");
    }
    err_set(err, ERR_SYSTEM, "image.build", "the build of %s failed (%d): %s", job->what, code,
            h.why[0] != '\0' ? h.why : h.last[0] != '\0' ? h.last : "nothing was said");
    return err_hint(err, "--verbose shows all of it; %s", job->hint);
}
