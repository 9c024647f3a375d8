/* imager/build_folder.c: cloche image build FOLDER: what a Containerfile says, built by Docker in a machine
 *
 * RUN is a stranger's program as root, with packages that want other users, mounts and set-user-ID. The wall that
 * leaves it all of that is a machine of its own: `cloche run --engine microvm --private-docker`, whose image has
 * dockerd (the recipe "docker"). The folder is its workspace, read-only. The images that the file starts from come in
 * as standard input, from the store; the archive of the result goes out as standard output, into a file without a
 * name, and is read as every stranger's is (work.h). The machine reaches no registry, and no host but those of
 * --allow-domain.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "imager/build_sandbox.h"
#include "imager/containerfile.h"
#include "imager/save.h"

#define BUILDER "localhost/docker:bookworm"
#define MEMORY  "4g"
#define MEMORY_MAX  (1ULL << 50)
#define MEMORY_MORE (1ULL << 30)    /* what QEMU's file of memory has more than was asked for is less */

/* Of the machine's shell: its first word says whether images come, the others are docker's. What docker prints is not
 * the archive. */
#define WORK "if [ \"$1\" = load ]; then docker load -q >&2 || exit; fi; shift; " \
             "docker build \"$@\" --tag cloche-built /workspace >&2 && exec docker save cloche-built"

bool
image_is_folder(const char *word)
{
    return strchr(word, '/') != NULL || strcmp(word, ".") == 0 || strcmp(word, "..") == 0;
}

/* The Containerfile, as it is named within the folder. @name: what was found. */
static int
open_file(int folder, const char *asked, const char **name, struct err *err)
{
    static const char *const usual[] = { "Containerfile", "Dockerfile" };
    const struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
    int fd = -1;

    for (size_t i = 0; fd < 0 && i < (asked != NULL ? 1 : ARRAY_LEN(usual)); i++) {
        *name = asked != NULL ? asked : usual[i];
        fd = (int)syscall(SYS_openat2, folder, *name, &how, sizeof(how));
        if (fd < 0 && errno != ENOENT)
            return err_sys(err, errno, "containerfile.read", "%s in the folder", *name);
    }
    if (fd >= 0)
        return fd;
    err_set(err, ERR_NOT_FOUND, "containerfile.read", "the folder has no %s", asked != NULL ? asked
                                                                             : "Containerfile or Dockerfile");
    return err_hint(err, "--file FILE names it, from the folder on");
}

static int
read_bases(const struct image_options *o, const char *folder, const char **name, struct base_list *bases,
           struct err *err)
{
    cleanup_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_buf struct buf text = BUF_INIT(CONTAINERFILE_MAX);
    cleanup_close int fd = -1;
    struct stat st;

    if (dir < 0)
        return err_sys(err, errno, "image.source", "%s", folder);
    fd = open_file(dir, o->file, name, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "containerfile.read", "%s is no file", *name);
    if (io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "containerfile.read", "%s (at most %lu bytes)", *name, CONTAINERFILE_MAX);
    return containerfile_bases((struct str){ text.n > 0 ? (const char *)text.p : "", text.n }, o->args, bases, err);
}

/* The images that the file starts from, as one archive. */
static int
bring_bases(const struct image_options *o, const struct store *s, const struct stage *stage,
            const struct base_list *bases, int out, struct err *err)
{
    char *names[BASES_MAX];

    for (size_t i = 0; i < bases->n; i++) {
        char id[IMAGE_DIGEST_TEXT + 1];
        names[i] = (char *)(uintptr_t)bases->v[i];
        if (image_resolve(s->path, names[i], id, err) < 0)
            return err_hint(err, "the machine that builds reaches no registry: `cloche image pull %s` first", names[i]);
        if (!o->json)           /* the file chooses, and what it builds reads them */
            fprintf(stderr, "cloche: it starts from %s\n", names[i]);
    }
    if (bases->n > 0 && save_images(s, stage, names, bases->n, out, err) < 0)
        return -1;
    return lseek(out, 0, SEEK_SET) < 0 ? err_sys(err, errno, "image.store", "the archive") : 0;
}

static int
put_words(struct build_words *w, const struct image_options *o, const char *folder, const char *file, bool load,
          struct err *err)
{
    char *workspace;

    if (build_put_run(w, o, err) < 0)
        return -1;
    if (asprintf(&workspace, "%s:ro", folder) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    w->own[w->n_own++] = workspace;
    if (asprintf(&w->own[w->n_own], "/workspace/%s", file) < 0)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    BUILD_PUT(w, "--engine=microvm", "--private-docker", "--image", o->builder != NULL ? o->builder : BUILDER,
              "--memory", o->memory, "--workspace", workspace, "--", "/bin/sh", "-c", WORK,
              "sh", load ? "load" : "none", "--file", w->own[w->n_own++]);
    if (o->target != NULL)
        BUILD_PUT(w, "--target", o->target);
    for (size_t i = 0; o->args[i] != NULL; i++)
        BUILD_PUT(w, "--build-arg", o->args[i]);
    return 0;
}

static int
build(struct image_options *o, struct store *s, const struct stage *stage, const char *folder, int archive,
      struct err *err)
{
    static struct base_list bases;
    cleanup_close int in = stage_file(stage, err);
    struct build_words w = { .n = 0 };
    struct build_job job = { &w, in, archive, folder, "hosts that RUN needs are allowed by --allow-domain", 0 };
    struct stat st;
    const char *file;
    char id[IMAGE_DIGEST_TEXT + 1];
    int result = -1;

    /* no file may be larger that what we start writes, and the machine's memory is one, its kernel's beside it */
    if (o->memory == NULL)
        o->memory = MEMORY;
    if (str_parse_size(str_of(o->memory), MEMORY_MAX, &job.file_max))
        job.file_max += MEMORY_MORE;
    if (job.file_max < o->max_size)
        job.file_max = o->max_size;
    if (o->builder == NULL && image_resolve(s->path, BUILDER, id, err) < 0)
        return err_hint(err, "it is what builds: `cloche image build docker` makes it, --builder NAME takes another");
    if (in >= 0 && read_bases(o, folder, &file, &bases, err) == 0 && bring_bases(o, s, stage, &bases, in, err) == 0 &&
        put_words(&w, o, folder, file, bases.n > 0, err) == 0)
        result = build_in_sandbox(&job, o, err);
    build_words_free(&w);
    if (result == 0 && fstat(archive, &st) == 0 && (uint64_t)st.st_size > o->max_size)
        result = err_set(err, ERR_LIMIT, "image.limit", "what was built has more bytes than --max-size, %llu",
                         (unsigned long long)o->max_size);
    return result;
}

/* Of a folder without another name: its own. */
static int
name_of(const char *folder, const struct verb_words *w, char out[IMAGE_REF_MAX + 1], struct err *err)
{
    char written[IMAGE_REF_MAX];

    snprintf(written, sizeof(written), "localhost/%.255s", strrchr(folder, '/') + 1);
    if (image_name_of(w->n > 1 ? w->v[1] : written, out, err) == 0)
        return 0;
    return w->n > 1 ? -1 : err_hint(err, "cloche image build FOLDER NAME");
}

int
image_build_folder(struct image_options *o, const struct verb_words *w, struct err *err)
{
    struct store s = STORE_INIT;
    struct stage stage = STAGE_INIT;
    char folder[PATH_MAX], name[IMAGE_REF_MAX + 1];
    cleanup_close int archive = -1;
    int result = -1;

    if (realpath(w->v[0], folder) == NULL)
        return err_sys(err, errno, "image.source", "%s", w->v[0]);
    if (name_of(folder, w, name, err) < 0)
        return -1;
    if (store_open(&s, err) == 0 && stage_begin(&s, &stage, err) == 0)
        archive = stage_file(&stage, err);
    if (archive >= 0 && build(o, &s, &stage, folder, archive, err) == 0) {
        const struct image_source what = { .fd = archive };
        result = image_take(o, &s, &stage, &what, name, folder, err);
    }
    stage_end(&s, &stage);
    store_close(&s);
    return result;
}
