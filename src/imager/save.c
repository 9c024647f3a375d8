/* imager/save.c: see save.h, and `cloche image save` */
#include "imager/save.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "imager/imager.h"
#include "program/json.h"

/* The format is GNU's everywhere: names are bytes in it, where pax has them translated to UTF-8, or warns that it could
 * not. */
#define BLOCK (256 * 1024)

static int
failed(struct archive *a, struct err *err)
{
    const char *why = a != NULL ? archive_error_string(a) : NULL;

    return err_set(err, ERR_SYSTEM, "image.save", "the archive cannot be written: %s", why != NULL ? why : "no memory");
}

/* --- a tree as a layer -------------------------------------------------------------------------------------------- */

struct layer_out {
    int fd;
    struct sha256 hash;
    uint64_t n;
};

static la_ssize_t
write_layer(struct archive *a, void *ctx, const void *p, size_t n)
{
    struct layer_out *l = ctx;

    if (io_write_full(l->fd, p, n) < 0) {
        archive_set_error(a, errno, "write: %s", strerror(errno));
        return ARCHIVE_FATAL;
    }
    sha256_add(&l->hash, p, n);
    l->n += n;
    return (la_ssize_t)n;
}

static int
copy_data(struct archive *from, struct archive *to, struct err *err)
{
    cleanup_free char *block = malloc(BLOCK);
    la_ssize_t n;

    if (block == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    while ((n = archive_read_data(from, block, BLOCK)) > 0)
        if (archive_write_data(to, block, (size_t)n) != n)
            return failed(to, err);
    return n < 0 ? failed(from, err) : 0;
}

/* @e of the tree at @path. Its name there is from the tree on. */
static int
put_file(struct archive *disk, struct archive *to, struct archive_entry_linkresolver *links, struct archive_entry *e,
         const char *path, struct err *err)
{
    const char *name = archive_entry_pathname(e);
    mode_t type = archive_entry_filetype(e);
    struct archive_entry *none = NULL;
    char within[PATH_MAX];

    if (name == NULL || strncmp(name, path, strlen(path)) != 0 ||
        (size_t)snprintf(within, sizeof(within), ".%s", name + strlen(path)) >= sizeof(within))
        return err_set(err, ERR_SYSTEM, "image.save", "a file of the image has a path that is too long");
    if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
        return 0;               /* the store has no others */
    archive_entry_copy_pathname(e, within);
    archive_entry_set_uid(e, 0);
    archive_entry_set_gid(e, 0);
    archive_entry_set_uname(e, NULL);
    archive_entry_set_gname(e, NULL);
    archive_entry_linkify(links, &e, &none);
    if (archive_write_header(to, e) != ARCHIVE_OK)
        return failed(to, err);
    return type == AE_IFREG && archive_entry_size(e) > 0 ? copy_data(disk, to, err) : 0;
}

static int
put_tree(struct archive *disk, struct archive *to, const char *path, struct err *err)
{
    struct archive_entry_linkresolver *links = archive_entry_linkresolver_new();
    struct archive_entry *e = archive_entry_new();
    int r = ARCHIVE_OK, result = links == NULL || e == NULL ? failed(to, err) : 0;

    if (result == 0)
        archive_entry_linkresolver_set_strategy(links, ARCHIVE_FORMAT_TAR_GNUTAR);
    while (result == 0 && (r = archive_read_next_header2(disk, e)) == ARCHIVE_OK) {
        result = put_file(disk, to, links, e, path, err);
        if (result == 0 && archive_read_disk_can_descend(disk))
            archive_read_disk_descend(disk);
        archive_entry_clear(e);
    }
    if (result == 0 && r != ARCHIVE_EOF)
        result = failed(disk, err);
    archive_entry_free(e);
    archive_entry_linkresolver_free(links);
    return result;
}

/* The image's files as a tar in @l, and its digest. */
static int
write_tree(const struct image *image, struct layer_out *l, char digest[IMAGE_DIGEST_TEXT + 1], struct err *err)
{
    struct archive *disk = archive_read_disk_new(), *to = archive_write_new();
    int result = -1;

    sha256_init(&l->hash);
    if (disk == NULL || to == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (archive_read_disk_set_symlink_physical(disk) != ARCHIVE_OK ||
             archive_read_disk_set_behavior(disk, ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS | ARCHIVE_READDISK_NO_XATTR |
                                            ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS) != ARCHIVE_OK ||
             archive_read_disk_open(disk, image->path) != ARCHIVE_OK)
        failed(disk, err);
    else if (archive_write_set_format_gnutar(to) != ARCHIVE_OK ||
             archive_write_open(to, l, NULL, write_layer, NULL) != ARCHIVE_OK)
        failed(to, err);
    else if (put_tree(disk, to, image->path, err) == 0)
        result = archive_write_close(to) == ARCHIVE_OK ? 0 : failed(to, err);
    archive_write_free(to);
    archive_read_free(disk);
    image_digest_end(&l->hash, digest);
    return result;
}

/* --- the archive -------------------------------------------------------------------------------------------------- */

static int
put_entry(struct archive *a, const char *name, uint64_t size, struct err *err)
{
    struct archive_entry *e = archive_entry_new();
    int r = ARCHIVE_FATAL;

    if (e != NULL) {
        archive_entry_copy_pathname(e, name);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, (la_int64_t)size);
        r = archive_write_header(a, e);
    }
    archive_entry_free(e);
    return r == ARCHIVE_OK ? 0 : failed(a, err);
}

static int
put_text(struct archive *a, const char *name, const char *text, struct err *err)
{
    size_t n = strlen(text);

    if (put_entry(a, name, n, err) < 0)
        return -1;
    return archive_write_data(a, text, n) == (la_ssize_t)n ? 0 : failed(a, err);
}

static int
put_spooled(struct archive *a, const char *name, const struct layer_out *l, struct err *err)
{
    cleanup_free char *block = malloc(BLOCK);
    uint64_t at = 0;
    ssize_t n = 0;

    if (block == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (put_entry(a, name, l->n, err) < 0)
        return -1;
    for (; at < l->n && (n = io_pread(l->fd, block, BLOCK, at)) > 0; at += (uint64_t)n)
        if (archive_write_data(a, block, (size_t)n) != n)
            return failed(a, err);
    return at == l->n ? 0 : err_sys(err, n < 0 ? errno : EIO, "image.save", "a layer's file");
}

/* The configuration of @image with the one layer @digest: as OCI's image specification (config.md) has it. */
static char *
config_of(const struct image *image, const char *digest)
{
    static const struct { const char *ours, *theirs; } rows[] = {
        { "env", "Env" }, { "entrypoint", "Entrypoint" }, { "cmd", "Cmd" }, { "user", "User" },
        { "workdir", "WorkingDir" },
    };
    json_t *config = json_object(), *all;
    char *text;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_object_get(image->record, rows[i].ours) != NULL)
            json_object_set(config, rows[i].theirs, json_object_get(image->record, rows[i].ours));
    all = json_pack("{s:s, s:s, s:o, s:{s:s, s:[s]}, s:[{s:s}]}", "os", image_text(image, "os"), "architecture",
                    image_text(image, "architecture"), "config", config, "rootfs", "type", "layers", "diff_ids", digest,
                    "history", "created_by", "cloche image save");
    text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    return text;
}

/* What an archive has so far. */
struct saving {
    struct archive *to;
    json_t *manifest, *written;     /* names of files, each once: images may share a layer */
};

static int
put_image(struct saving *s, const struct image *image, const char *name, const struct stage *stage, struct err *err)
{
    cleanup_close int spool = stage_file(stage, err);
    struct layer_out l = { .fd = spool };
    char digest[IMAGE_DIGEST_TEXT + 1], id[IMAGE_DIGEST_TEXT + 1], layer[96], file[96];
    cleanup_free char *config = NULL;
    struct image_ref ref;
    char tag[IMAGE_REF_MAX + 1] = "";

    if (spool < 0 || write_tree(image, &l, digest, err) < 0)
        return -1;
    config = config_of(image, digest);
    if (config == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    image_digest_of(&(struct buf){ .p = (uint8_t *)config, .n = strlen(config) }, id);
    snprintf(layer, sizeof(layer), "%s/layer.tar", digest + 7);
    snprintf(file, sizeof(file), "%s.json", id + 7);
    if (json_object_get(s->written, layer) == NULL && put_spooled(s->to, layer, &l, err) < 0)
        return -1;
    if (json_object_get(s->written, file) == NULL && put_text(s->to, file, config, err) < 0)
        return -1;
    json_object_set_new(s->written, layer, json_true());
    json_object_set_new(s->written, file, json_true());
    if (image_ref_parse(str_of(name), &ref) == NULL && ref.digest[0] == '\0')
        image_ref_name(&ref, tag);
    json_array_append_new(s->manifest, json_pack("{s:s, s:o, s:[s]}", "Config", file, "RepoTags",
                                                 tag[0] != '\0' ? json_pack("[s]", tag) : json_array(), "Layers",
                                                 layer));
    return 0;
}

int
save_images(const struct store *store, const struct stage *stage, char *const *names, size_t n, int out,
            struct err *err)
{
    struct saving s = { archive_write_new(), json_array(), json_object() };
    cleanup_free char *manifest = NULL;
    int result = 0;

    if (s.to == NULL || archive_write_set_format_gnutar(s.to) != ARCHIVE_OK ||
        archive_write_open_fd(s.to, out) != ARCHIVE_OK)
        result = failed(s.to, err);
    for (size_t i = 0; result == 0 && i < n; i++) {
        struct image image = IMAGE_INIT;
        result = image_find(store->path, names[i], &image, err);
        if (result == 0)
            result = put_image(&s, &image, names[i], stage, err);
        image_close(&image);
    }
    if (result == 0 && (manifest = json_dumps(s.manifest, JSON_COMPACT)) == NULL)
        result = err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (result == 0)
        result = put_text(s.to, "manifest.json", manifest, err);
    if (result == 0 && archive_write_close(s.to) != ARCHIVE_OK)
        result = failed(s.to, err);
    archive_write_free(s.to);
    json_decref(s.manifest);
    json_decref(s.written);
    return result;
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

/* Where it goes: a new file, or standard output that is none of a terminal. */
static int
output_of(const char *path, struct err *err)
{
    cleanup_close int fd = path == NULL ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                        : open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        err_sys(err, errno, "image.save", "%s", path != NULL ? path : "standard output");
        return err_hint(err, "--output FILE takes a name that is not there yet");
    }
    if (path == NULL && isatty(fd)) {
        err_set(err, ERR_USAGE, "image.save", "an archive is nothing for a terminal");
        return err_hint(err, "--output FILE, or > FILE");
    }
    return take_fd(&fd);
}

int
image_save(void *options, const struct verb_words *w, struct err *err)
{
    const struct image_options *o = options;
    struct store s = STORE_INIT;
    struct stage stage = STAGE_INIT;
    char id[IMAGE_DIGEST_TEXT + 1];
    cleanup_close int out = -1;
    int result = store_open(&s, err);

    if (result == 0 && w->n > SAVE_MAX)
        result = err_set(err, ERR_LIMIT, "image.save", "more than %d images at once", SAVE_MAX);
    for (size_t i = 0; result == 0 && i < w->n; i++)
        result = image_resolve(s.path, w->v[i], id, err);       /* before a file is made */
    if (result == 0 && (out = output_of(o->output, err)) < 0)
        result = -1;
    if (result == 0 && (result = stage_begin(&s, &stage, err)) == 0)
        result = save_images(&s, &stage, w->v, w->n, out, err);
    if (result < 0 && out >= 0 && o->output != NULL)
        (void)unlink(o->output);        /* half of one is none */
    stage_end(&s, &stage);
    store_close(&s);
    return result;
}
