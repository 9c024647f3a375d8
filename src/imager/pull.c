/* imager/pull.c: cloche image pull
 *
 * What was fetched before a failure stays in the store's folder "partial" and is taken up by the next try of anything;
 * it goes with the next success, and with prune. Two at a time do not share it: the second one begins with nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "imager/fetch.h"
#include "imager/imager.h"
#include "imager/tree.h"
#include "wall/trust.h"

#define CONFIG_MAX (1024UL * 1024)
#define CA_MAX     (16UL * 1024 * 1024)

/* docker's login for the registry. */
static void
login(const struct image_ref *ref, char out[1024])
{
    const char *folder = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
    cleanup_buf struct buf text = BUF_INIT(CONFIG_MAX);
    char path[PATH_MAX];

    out[0] = '\0';
    if (folder != NULL && folder[0] == '/')
        snprintf(path, sizeof(path), "%s/config.json", folder);
    else if (home != NULL && home[0] == '/')
        snprintf(path, sizeof(path), "%s/.docker/config.json", home);
    else
        return;
    if (io_read_regular(AT_FDCWD, path, &text) == 0)
        (void)fetch_login_of((const char *)text.p, text.n, ref->host, out);
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
}

static int
certificates(const char *file, struct buf *out, struct err *err)
{
    if (file == NULL)
        file = trust_bundle();
    if (file == NULL)
        return 0;       /* then none is trusted; with plain HTTP none is needed */
    return io_read_file(AT_FDCWD, file, out) < 0 ? err_sys(err, errno, "image.ca", "%s", file) : 0;
}

/* What is kept for the next try; -1: somebody else has it. */
static int
partial(const struct store *s)
{
    cleanup_close int fd = mkdirat(s->dir, "partial", 0700) < 0 && errno != EEXIST
                               ? -1 : openat(s->dir, "partial", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

static int
fetch_and_take(struct image_options *o, struct store *s, struct stage *stage, int place, const struct image_ref *ref,
               const char *from, struct err *err)
{
    cleanup_close int trees = openat(s->dir, "trees", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_buf struct buf ca = BUF_INIT(CA_MAX);
    char name[IMAGE_REF_MAX + 1], as[1024];
    struct fetch f = { .ref = ref, .platform = o->platform, .place = place, .trees = trees, .max = o->max_size,
                       .progress = !o->json && isatty(STDERR_FILENO) };
    int r;

    if (trees < 0)
        return err_sys(err, errno, "image.store", "the store of images");
    if (certificates(o->ca, &ca, err) < 0)
        return -1;
    if (f.platform.os[0] == '\0')
        image_platform_here(&f.platform);
    login(ref, as);
    f.ca = (const char *)ca.p;
    f.ca_n = ca.n;
    f.login = as[0] != '\0' ? as : NULL;
    image_ref_name(ref, name);
    r = fetch_run(&f, err);
    explicit_bzero(as, sizeof(as));
    return r < 0 ? -1 : image_take(o, s, stage, &(struct image_source){ .fd = place, .folder = true },
                                   ref->tag[0] != '\0' ? name : NULL, from, err);
}

int
image_pull(void *options, const struct verb_words *w, struct err *err)
{
    struct image_options *o = options;
    struct store s = STORE_INIT;
    struct stage stage = STAGE_INIT;
    cleanup_close int kept = -1;
    struct image_ref ref;
    const char *fault = image_ref_parse(str_of(w->v[0]), &ref);
    int r = -1;

    if (fault != NULL || ref.host[0] == '\0') {
        err_set(err, ERR_USAGE, "image.name", "\"%.100s\" is no name in a registry%s%s", w->v[0],
                fault != NULL ? ": " : "", fault != NULL ? fault : "");
        return err_hint(err, "write [HOST[:PORT]/]NAME[:TAG][@DIGEST], as in python:3.12");
    }
    if (store_open(&s, err) == 0 && stage_begin(&s, &stage, err) == 0) {
        kept = partial(&s);
        r = fetch_and_take(o, &s, &stage, kept >= 0 ? kept : stage.dir, &ref, w->v[0], err);
        if (r == 0 && kept >= 0)
            (void)tree_empty(kept);
    }
    stage_end(&s, &stage);
    store_close(&s);
    return r;
}
