/* imager/source.c: see source.h */
#include "imager/source.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "imager/layer.h"

/* "./a//b" as "a/b"; false where it leads elsewhere. */
static bool
plain_name(const char *name, char out[512])
{
    size_t n = 0;

    while (*name != '\0') {
        size_t k = strcspn(name, "/");
        if (k == 2 && name[0] == '.' && name[1] == '.')
            return false;
        if (k > 0 && !(k == 1 && name[0] == '.')) {
            if (n + k + 2 > 512)
                return false;
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, name, k);
            n += k;
        }
        name += k + (name[k] == '/');
    }
    out[n] = '\0';
    return true;
}

/* What an OCI layout or `docker save` has at its top, and no system has. */
static bool
is_of_archive(const char *name)
{
    static const char *const words[] = { "manifest.json", "index.json", "oci-layout", "repositories", "blobs" };
    size_t n = strcspn(name, "/"), hex = strspn(name, "0123456789abcdef");

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == n && strncmp(name, words[i], n) == 0)
            return true;
    return hex == 64 && (name[hex] == '\0' || name[hex] == '/' || strcmp(name + hex, ".json") == 0);
}

/* Look at names until one tells what it is. */
static int
tell(int fd, enum source_kind *kind, struct err *err)
{
    struct archive *a = layer_open(fd, err);
    bool manifest = false, index = false, tree = false;
    struct archive_entry *e;
    char name[512];
    int r, n = 0;

    if (a == NULL)
        return -1;
    while (!tree && ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)) {
        const char *written = archive_entry_pathname(e);
        if (written == NULL || !plain_name(written, name) || ++n > SOURCE_FILES_MAX)
            tree = true;
        else if (name[0] != '\0' && !is_of_archive(name))
            tree = true;
        manifest = manifest || (!tree && strcmp(name, "manifest.json") == 0);
        index = index || (!tree && strcmp(name, "index.json") == 0);
    }
    r = !tree && r != ARCHIVE_EOF ? layer_failed(a, err) : 0;
    archive_read_free(a);
    *kind = tree || (!manifest && !index) ? SOURCE_TREE : index ? SOURCE_LAYOUT : SOURCE_ARCHIVE;
    if (r == 0 && !tree && !manifest && !index)
        return err_set(err, ERR_POLICY, "image.archive", "the archive is empty, or holds no image");
    return r < 0 ? -1 : lseek(fd, 0, SEEK_SET) < 0 ? err_sys(err, errno, "image.archive", "the archive") : 0;
}

/* A link of an old `docker save`: "ID/layer.tar" to "../OTHER/layer.tar". */
static bool
link_target(const char *name, const char *text, char out[512])
{
    const char *slash = strrchr(name, '/');
    char joined[1100];

    if (slash != NULL && strncmp(text, "../", 3) == 0 && strchr(name, '/') == slash)
        return plain_name(text + 3, out);
    snprintf(joined, sizeof(joined), "%.*s/%s", slash != NULL ? (int)(slash - name) : 0, name, text);
    return text[0] != '/' && strlen(text) < 512 && plain_name(joined, out);
}

static int
spool_file(struct source *s, struct archive *a, struct archive_entry *e, const char *name, uint64_t *left,
           struct err *err)
{
    la_int64_t size = archive_entry_size(e);
    cleanup_close int fd = -1;
    char file[32];

    if (size < 0 || (uint64_t)size > *left)
        return err_set(err, ERR_LIMIT, "image.limit", "the archive holds more than is taken (at \"%.200s\")", name);
    *left -= (uint64_t)size;
    snprintf(file, sizeof(file), "%zu", json_object_size(s->names));
    fd = openat(s->dir, file, O_CREAT | O_TRUNC | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "image.unpack", "a file for \"%.200s\"", name);
    if (layer_write(a, fd, (uint64_t)size, name, err) < 0)
        return -1;
    return json_object_set_new(s->names, name, json_string(file)) < 0
               ? err_set(err, ERR_POLICY, "image.path", "a name in the archive is no UTF-8") : 0;
}

static int
spool_entry(struct source *s, struct archive *a, struct archive_entry *e, uint64_t *left, struct err *err)
{
    const char *written = layer_name(e, err), *to;
    char name[512], target[512];

    if (written == NULL)
        return -1;
    if (!plain_name(written, name) || json_object_size(s->names) >= SOURCE_FILES_MAX)
        return err_set(err, ERR_POLICY, "image.path", "the archive has a name that leads out of it, or too many");
    to = archive_entry_hardlink(e) != NULL ? archive_entry_hardlink(e)
         : archive_entry_filetype(e) == AE_IFLNK ? archive_entry_symlink(e) : NULL;
    if (to != NULL) {
        bool ok = archive_entry_hardlink(e) != NULL ? plain_name(to, target) : link_target(name, to, target);
        if (!ok || json_object_set_new(s->names, name, json_pack("{s:s}", "link", target)) < 0)
            return err_set(err, ERR_POLICY, "image.path", "a link in the archive leads out of it");
        return 0;
    }
    return archive_entry_filetype(e) == AE_IFREG ? spool_file(s, a, e, name, left, err) : 0;
}

static int
spool(struct source *s, int fd, uint64_t max, struct err *err)
{
    struct archive *a = layer_open(fd, err);
    struct archive_entry *e;
    int r = ARCHIVE_OK, done = 0;

    if (a == NULL)
        return -1;
    while (done == 0 && ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN))
        done = spool_entry(s, a, e, &max, err);
    if (done == 0 && r != ARCHIVE_EOF)
        done = layer_failed(a, err);
    archive_read_free(a);
    return done;
}

int
source_open(struct source *s, int fd, bool folder, int spool_dir, uint64_t max, struct err *err)
{
    *s = (struct source)SOURCE_INIT;
    if (folder) {
        s->kind = SOURCE_LAYOUT;
        s->dir = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return s->dir < 0 ? err_sys(err, errno, "image.source", "the folder") : 0;
    }
    if (tell(fd, &s->kind, err) < 0)
        return -1;
    if (s->kind == SOURCE_TREE)
        return 0;
    s->numbered = true;
    s->names = json_object();
    s->dir = fcntl(spool_dir, F_DUPFD_CLOEXEC, 3);
    return s->dir < 0 ? err_sys(err, errno, "image.source", "the archive") : spool(s, fd, max, err);
}

int
source_file(const struct source *s, const char *name, struct err *err)
{
    struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    cleanup_close int fd = -1;
    const json_t *entry = NULL;
    const char *at = name;
    char plain[512];
    struct stat st;

    if (s->numbered) {
        entry = plain_name(name, plain) ? json_object_get(s->names, plain) : NULL;
        if (json_is_object(entry))
            entry = json_object_get(s->names, json_string_value(json_object_get(entry, "link")));
        at = json_string_value(entry);
    }
    if (at == NULL)
        return err_set(err, ERR_POLICY, "image.missing", "the image lacks \"%.200s\"", name);
    fd = (int)syscall(SYS_openat2, s->dir, at, &how, sizeof(how));
    if (fd < 0)
        return err_sys(err, errno, "image.missing", "\"%.200s\" of the image", name);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_POLICY, "image.missing", "\"%.200s\" of the image is no file", name);
    return take_fd(&fd);
}

int
source_doc(const struct source *s, const char *name, struct buf *out, struct err *err)
{
    cleanup_close int fd = source_file(s, name, err);

    if (fd < 0)
        return -1;
    return io_read_all(fd, out) < 0 ? err_sys(err, errno, "image.document", "\"%.200s\" of the image", name) : 0;
}

void
source_close(struct source *s)
{
    close_fd(&s->dir);
    json_decref(s->names);
    s->names = NULL;
}
