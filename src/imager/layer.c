/* imager/layer.c: see layer.h
 *
 * libarchive reads twice: once to take off what is compressed, whose bytes before and after are counted and hashed on
 * the way, and once the tar. Only what is named here can be in an archive: no other format, and no program is started.
 */
#include "imager/layer.h"

#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"

#define BLOCK (256 * 1024)

struct stream {
    int fd;
    struct archive *packed;     /* takes off what is compressed */
    struct sha256 raw, plain;
    uint64_t n_raw, n_plain, max;
    bool too_much;
    char in[BLOCK], out[BLOCK];
};

static int
filters(struct archive *a)
{
    int (*const kinds[])(struct archive *) = {
        archive_read_support_filter_gzip, archive_read_support_filter_zstd, archive_read_support_filter_xz,
        archive_read_support_filter_bzip2,
    };

    /* a warning: it would start a program for that */
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i](a) != ARCHIVE_OK)
            return -1;
    return 0;
}

int
layer_failed(struct archive *a, struct err *err)
{
    const char *why = archive_error_string(a);

    return err_set(err, ERR_POLICY, "image.archive", "the archive cannot be read: %s",
                   why != NULL ? why : "it is damaged");
}

static int
no_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory, or libarchive lacks a kind of compression");
}

struct archive *
layer_open(int fd, struct err *err)
{
    struct archive *a = archive_read_new();

    if (a == NULL || filters(a) < 0 || archive_read_support_format_tar(a) != ARCHIVE_OK)
        no_memory(err);
    else if (archive_read_open_fd(a, fd, BLOCK) != ARCHIVE_OK)
        layer_failed(a, err);
    else
        return a;
    archive_read_free(a);
    return NULL;
}

const char *
layer_name(struct archive_entry *e, struct err *err)
{
    const char *name = archive_entry_pathname(e);

    if (name == NULL)
        name = archive_entry_pathname_utf8(e);
    if (name == NULL || name[0] == '\0')
        err_set(err, ERR_POLICY, "image.path", "the archive has an entry without a name that can be read");
    return name != NULL && name[0] != '\0' ? name : NULL;
}

static la_ssize_t
read_raw(struct archive *a, void *ctx, const void **out)
{
    struct stream *s = ctx;
    ssize_t n;

    do
        n = read(s->fd, s->in, sizeof(s->in));
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        archive_set_error(a, errno, "read: %s", strerror(errno));
        return ARCHIVE_FATAL;
    }
    sha256_add(&s->raw, s->in, (size_t)n);
    s->n_raw += (uint64_t)n;
    *out = s->in;
    return n;
}

static la_ssize_t
read_plain(struct archive *a, void *ctx, const void **out)
{
    struct stream *s = ctx;
    la_ssize_t n = archive_read_data(s->packed, s->out, sizeof(s->out));

    if (n < 0) {
        archive_set_error(a, EIO, "%s", archive_error_string(s->packed));
        return ARCHIVE_FATAL;
    }
    sha256_add(&s->plain, s->out, (size_t)n);
    s->n_plain += (uint64_t)n;
    s->too_much = s->n_plain > s->max ||
                  (s->n_plain > LAYER_RATIO_FROM && s->n_plain / LAYER_RATIO_MAX > s->n_raw);
    if (s->too_much) {
        archive_set_error(a, EFBIG, "it becomes too large");
        return ARCHIVE_FATAL;
    }
    *out = s->out;
    return n;
}

int
layer_write(struct archive *a, int fd, uint64_t size, const char *name, struct err *err)
{
    uint64_t end = 0;
    const void *data;
    la_int64_t at;
    size_t n;
    int r;

    while ((r = archive_read_data_block(a, &data, &n, &at)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
        if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
            return err_set(err, ERR_POLICY, "image.archive", "\"%.200s\" has more than its size", name);
        if (lseek(fd, at, SEEK_SET) < 0 || io_write_full(fd, data, n) < 0) {
            int why = errno;
            err_sys(err, why, "image.unpack", "write \"%.200s\"", name);
            return tree_hint(why, err);
        }
        end = (uint64_t)at + n;
    }
    if (r != ARCHIVE_EOF)
        return layer_failed(a, err);
    return end < size && ftruncate(fd, (off_t)size) < 0 ? err_sys(err, errno, "image.unpack", "\"%.200s\"", name) : 0;
}

static int
unpack_file(struct tree *t, struct archive *a, struct archive_entry *e, const char *name, struct err *err)
{
    la_int64_t size = archive_entry_size(e);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = archive_entry_mtime(e) } };
    cleanup_close int fd = -1;

    if (size < 0)
        return err_set(err, ERR_POLICY, "image.archive", "\"%.200s\" has no size", name);
    fd = tree_file(t, name, archive_entry_perm(e), (uint64_t)size, err);
    if (fd < 0 || layer_write(a, fd, (uint64_t)size, name, err) < 0)
        return -1;
    (void)futimens(fd, times);      /* Python compares it; one that cannot be is none */
    return 0;
}

static int
unpack_entry(struct tree *t, struct archive *a, struct archive_entry *e, struct err *err)
{
    const char *name = layer_name(e, err), *target;
    int r = name == NULL ? -1 : tree_whiteout(t, name, err);

    if (r != 0)
        return r < 0 ? -1 : 0;
    target = archive_entry_hardlink(e);
    if (target != NULL)
        return tree_hard_link(t, name, target, err);
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return unpack_file(t, a, e, name, err);
    case AE_IFDIR:
        return tree_folder(t, name, archive_entry_perm(e), err);
    case AE_IFLNK:
        target = archive_entry_symlink(e);
        return tree_link(t, name, target != NULL ? target : "", err);
    default:
        return tree_left_out(t, name, archive_entry_filetype(e), err);
    }
}

static int
unpack_all(struct tree *t, struct stream *s, struct err *err)
{
    struct archive *a = archive_read_new();
    struct archive_entry *e;
    int r = ARCHIVE_OK, done = 0;

    if (a == NULL || archive_read_support_format_tar(a) != ARCHIVE_OK ||
        archive_read_support_format_empty(a) != ARCHIVE_OK)
        done = no_memory(err);
    else if (archive_read_open(a, s, NULL, read_plain, NULL) != ARCHIVE_OK)
        done = layer_failed(a, err);
    while (done == 0 && ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN))
        done = unpack_entry(t, a, e, err);
    if (done == 0 && r != ARCHIVE_EOF)
        done = layer_failed(a, err);
    if (done < 0 && s->too_much) {
        err_set(err, ERR_LIMIT, "image.limit", "the archive becomes too large when it is unpacked: %llu MiB of %llu "
                "MiB", (unsigned long long)(s->n_plain >> 20), (unsigned long long)(s->n_raw >> 20));
        err_hint(err, "--max-size SIZE allows more, up to %d times the archive", LAYER_RATIO_MAX);
    }
    if (a != NULL)
        archive_read_free(a);
    return done;
}

/* What is behind the tar's end counts in both digests. */
static int
drain(struct stream *s, struct err *err)
{
    const void *data;
    la_ssize_t n;
    char rest[4096];
    ssize_t raw;

    while ((n = read_plain(s->packed, s, &data)) > 0)
        continue;
    if (n < 0)
        return layer_failed(s->packed, err);
    while ((raw = read(s->fd, rest, sizeof(rest))) > 0 || (raw < 0 && errno == EINTR))
        if (raw > 0)
            sha256_add(&s->raw, rest, (size_t)raw);
    return raw < 0 ? err_sys(err, errno, "image.unpack", "read the archive") : 0;
}

static int
same(struct sha256 *h, const char *want, char out[IMAGE_DIGEST_TEXT + 1], struct err *err)
{
    image_digest_end(h, out);
    if (want == NULL || strcmp(want, out) == 0)
        return 0;
    err_set(err, ERR_DENIED, "image.digest", "what is named %s is %s", want, out);
    return err_hint(err, "the image is damaged, or not what it says; nothing of it was kept");
}

int
layer_unpack(struct tree *t, int fd, const char *blob, const char *plain, char digest[IMAGE_DIGEST_TEXT + 1],
             struct err *err)
{
    struct stream *s = calloc(1, sizeof(*s));
    char raw[IMAGE_DIGEST_TEXT + 1];
    struct archive_entry *e;
    int r = -1;

    if (s == NULL)
        return no_memory(err);
    *s = (struct stream){ .fd = fd, .packed = archive_read_new(), .max = t->limits.bytes + LAYER_RATIO_FROM };
    sha256_init(&s->raw);
    sha256_init(&s->plain);
    tree_layer(t);
    if (s->packed == NULL || filters(s->packed) < 0 || archive_read_support_format_raw(s->packed) != ARCHIVE_OK ||
        archive_read_support_format_empty(s->packed) != ARCHIVE_OK)
        no_memory(err);
    else if (archive_read_open(s->packed, s, NULL, read_raw, NULL) != ARCHIVE_OK ||
             archive_read_next_header(s->packed, &e) < ARCHIVE_WARN)
        layer_failed(s->packed, err);
    else if (unpack_all(t, s, err) == 0 && drain(s, err) == 0 && same(&s->raw, blob, raw, err) == 0)
        r = same(&s->plain, plain, digest, err);
    if (s->packed != NULL)
        archive_read_free(s->packed);
    free(s);
    return r;
}
