/* image/find.c: an image of the store, by its name (see image.h) */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "image/image.h"

json_t *
image_doc_load(int dir, const char *name, size_t max, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(max);
    json_error_t why;
    json_t *doc;

    if (io_read_regular(dir, name, &text) < 0) {
        err_sys(err, errno, "image.store", "%s in the store of images", name);
        return NULL;
    }
    doc = text.n > 0 ? json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (doc == NULL)
        err_set(err, ERR_SYSTEM, "image.store", "%s in the store of images is damaged", name);
    return doc;
}

static int
absent(const char *name, struct err *err)
{
    err_set(err, ERR_NOT_FOUND, "image.unknown", "there is no image \"%s\"", name);
    return err_hint(err, "`cloche image pull` or `import` brings it; `cloche image ls` lists what is there");
}

/* The store, for the image @name: where there is no store there is none of that name. */
static int
open_store(const char *path, const char *name, struct err *err)
{
    cleanup_close int fd = path != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    struct stat st;

    if (path == NULL || (fd < 0 && (errno == ENOENT || errno == ENOTDIR)))
        return absent(name, err);
    if (fd < 0)
        return err_sys(err, errno, "image.store", "%s", path);
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return take_fd(&fd);
    return err_set(err, ERR_DENIED, "image.store", "%s is not this user's own folder (0700)", path);
}

/* The id that the names know; "" none. */
static void
look_up(const json_t *names, const struct image_ref *ref, char id[IMAGE_DIGEST_TEXT + 1])
{
    const json_t *by_name = json_object_get(names, "names"), *by_digest = json_object_get(names, "digests");
    char name[IMAGE_REF_MAX + 1];
    const char *found, *pinned = NULL;

    id[0] = '\0';
    image_ref_name(ref, name);
    if (ref->digest[0] != '\0') {
        pinned = json_string_value(json_object_get(by_digest, ref->digest));
        pinned = pinned != NULL ? pinned : ref->digest;
    }
    /* a name with a digest means that very image, whichever has the name now */
    found = pinned != NULL ? pinned : json_string_value(json_object_get(by_name, name));
    if (found != NULL && image_ref_is_digest(str_of(found)))
        memcpy(id, found, IMAGE_DIGEST_TEXT + 1);
}

static int
resolve(int store, const char *name, char id[IMAGE_DIGEST_TEXT + 1], struct err *err)
{
    struct image_ref ref;
    const char *fault = image_ref_parse(str_of(name), &ref);
    char record[96];
    json_t *names;

    if (fault != NULL)
        return err_set(err, ERR_USAGE, "image.name", "\"%.100s\" is no image's name: %s", name, fault);
    if (!io_present(store, "names.json"))
        return absent(name, err);
    names = image_doc_load(store, "names.json", IMAGE_NAMES_MAX, err);
    if (names == NULL)
        return -1;
    look_up(names, &ref, id);
    json_decref(names);
    snprintf(record, sizeof(record), "records/%s.json", id[0] != '\0' ? id + 7 : "-");
    return id[0] != '\0' && io_present(store, record) ? 0 : absent(name, err);
}

int
image_resolve(const char *path, const char *name, char id[IMAGE_DIGEST_TEXT + 1], struct err *err)
{
    cleanup_close int store = open_store(path, name, err);

    return store < 0 ? -1 : resolve(store, name, id, err);
}

/* The tree, held: whoever removes one has it alone first, so the one that is there under its name now stays. */
static int
hold(int store, const char *tree, struct err *err)
{
    cleanup_close int fd = openat(store, tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat held, named;

    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fstat(fd, &held) < 0 ||
        fstatat(store, tree, &named, AT_SYMLINK_NOFOLLOW) < 0 || held.st_ino != named.st_ino ||
        held.st_dev != named.st_dev) {
        err_set(err, ERR_NOT_FOUND, "image.gone", "the image's files are gone, or are being removed");
        return err_hint(err, "pull or import it again");
    }
    return take_fd(&fd);
}

int
image_find(const char *path, const char *name, struct image *out, struct err *err)
{
    cleanup_close int store = open_store(path, name, err);
    char file[96], tree[65];

    *out = (struct image)IMAGE_INIT;
    if (store < 0 || resolve(store, name, out->id, err) < 0)
        return -1;
    snprintf(file, sizeof(file), "records/%s.json", out->id + 7);
    out->record = image_doc_load(store, file, IMAGE_RECORD_MAX, err);
    if (out->record == NULL)
        return -1;
    image_tree_of(out->record, tree);
    snprintf(file, sizeof(file), "trees/%s", tree);
    if ((size_t)snprintf(out->path, sizeof(out->path), "%s/%s", path, file) >= sizeof(out->path))
        return err_set(err, ERR_LIMIT, "image.store", "the path of the store is too long");
    out->tree = hold(store, file, err);
    return out->tree < 0 ? -1 : 0;
}

void
image_close(struct image *image)
{
    json_decref(image->record);
    close_fd(&image->tree);
    image->record = NULL;
}

bool
image_has(const struct image *image, const char *path)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    cleanup_close int fd = (int)syscall(SYS_openat2, image->tree, path, &how, sizeof(how));
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

const char *
image_text(const struct image *image, const char *key)
{
    const char *s = json_string_value(json_object_get(image->record, key));

    return s != NULL ? s : "";
}

const char *
image_word(const struct image *image, const char *key, size_t i)
{
    return json_string_value(json_array_get(json_object_get(image->record, key), i));
}
