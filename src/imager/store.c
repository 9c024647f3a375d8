/* imager/store.c: see store.h */
#include "imager/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "imager/tree.h"
#include "program/state.h"

static int
fail(struct err *err, const char *what)
{
    int why = errno;

    err_sys(err, why, "image.store", "the store of images: %s", what);
    return tree_hint(why, err);
}

int
store_open(struct store *s, struct err *err)
{
    static const char *const folders[] = { "records", "trees", "tmp" };
    char state[PATH_MAX];

    if (state_dir_path(state, err) < 0)
        return -1;
    if ((size_t)snprintf(s->path, sizeof(s->path), "%s/images", state) >= sizeof(s->path))
        return err_set(err, ERR_LIMIT, "image.store", "the path of the state folder is too long");
    s->dir = state_own_open("images", "image.store", err);
    if (s->dir < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (mkdirat(s->dir, folders[i], 0700) < 0 && errno != EEXIST)
            return fail(err, folders[i]);
    s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return s->lock < 0 ? fail(err, "lock") : 0;
}

void
store_close(struct store *s)
{
    close_fd(&s->dir);
    close_fd(&s->lock);
}

static int
lock(struct store *s, struct err *err)
{
    while (flock(s->lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return fail(err, "lock");
    return 0;
}

static void
unlock(struct store *s)
{
    flock(s->lock, LOCK_UN);
}

/* --- documents ---------------------------------------------------------------------------------------------------- */

/* The document @name, whole or not at all. */
static int
write_doc(struct store *s, const char *name, const json_t *doc, struct err *err)
{
    static const char next[] = "tmp.json";
    cleanup_close int fd = openat(s->dir, next, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    cleanup_free char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);

    if (text == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (fd < 0 || io_write_full(fd, text, strlen(text)) < 0 || fdatasync(fd) < 0 ||
        renameat(s->dir, next, s->dir, name) < 0)
        return fail(err, name);
    return 0;
}

static json_t *
read_names(struct store *s, struct err *err)
{
    if (io_present(s->dir, "names.json"))
        return image_doc_load(s->dir, "names.json", IMAGE_NAMES_MAX, err);
    return json_pack("{s:i, s:{}, s:{}}", "version", 1, "names", "digests");
}

static void
record_name(const char *id, char out[96])
{
    snprintf(out, 96, "records/%s.json", id + 7);
}

/* --- what is under way -------------------------------------------------------------------------------------------- */

int
stage_begin(struct store *s, struct stage *stage, struct err *err)
{
    unsigned char random[8];
    char hex[17];
    int r = -1;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return fail(err, "getrandom");
    str_hex(random, sizeof(random), hex);
    snprintf(stage->name, sizeof(stage->name), "tmp/%s", hex);
    if (lock(s, err) < 0)
        return -1;
    if (mkdirat(s->dir, stage->name, 0700) < 0 ||
        (stage->dir = openat(s->dir, stage->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        flock(stage->dir, LOCK_EX | LOCK_NB) < 0)
        fail(err, stage->name);
    else
        r = 0;
    unlock(s);
    return r;
}

int
stage_file(const struct stage *stage, struct err *err)
{
    cleanup_close int fd = openat(stage->dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || unlinkat(stage->dir, "file", 0) < 0)
        return fail(err, "a file for what is under way");
    return take_fd(&fd);
}

void
stage_end(struct store *s, struct stage *stage)
{
    if (stage->dir < 0)
        return;
    if (tree_empty(stage->dir) == 0)
        unlinkat(s->dir, stage->name, AT_REMOVEDIR);
    close_fd(&stage->dir);
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

/* What is below tmp/ and nobody's. Locked. */
static void
sweep_stages(struct store *s)
{
    cleanup_close int tmp = openat(s->dir, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = tmp };
    const char *name;

    while (tmp >= 0 && (name = dirents_next(&names)) != NULL) {
        cleanup_close int one = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (one >= 0 && flock(one, LOCK_EX | LOCK_NB) == 0 && tree_empty(one) == 0)
            unlinkat(tmp, name, AT_REMOVEDIR);
    }
}

/* What a pull that failed has left for the next one, unless one is under way. Locked. */
static void
sweep_partial(struct store *s)
{
    cleanup_close int fd = openat(s->dir, "partial", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)tree_empty(fd);
}

/* HEX of each tree that a record has, as keys. NULL with @err: then nothing may be removed. */
static json_t *
trees_wanted(struct store *s, struct err *err)
{
    json_t *list = store_list(s, err), *out = list != NULL ? json_object() : NULL;
    const json_t *record;
    char tree[65];
    size_t i;

    json_array_foreach(list, i, record) {
        image_tree_of(record, tree);
        json_object_set_new(out, tree, json_true());
    }
    json_decref(list);
    return out;
}

/* Trees that no record has go; those that somebody holds stay. How many of them. Locked. */
static int
sweep_trees(struct store *s, struct err *err)
{
    json_t *wanted = trees_wanted(s, err);
    cleanup_close int trees = wanted != NULL ? openat(s->dir, "trees", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct dirents names = { .fd = trees };
    const char *name;
    int held = 0;

    while (trees >= 0 && (name = dirents_next(&names)) != NULL) {
        cleanup_close int one = -1;
        char dead[96];
        if (json_object_get(wanted, name) != NULL)
            continue;
        one = openat(trees, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (one < 0 || flock(one, LOCK_EX | LOCK_NB) < 0) {
            held++;
            continue;
        }
        /* first out of sight: half a tree is never under its name */
        snprintf(dead, sizeof(dead), "tmp/%.64s", name);
        if (renameat(trees, name, s->dir, dead) == 0 && tree_empty(one) == 0)
            unlinkat(s->dir, dead, AT_REMOVEDIR);
    }
    if (wanted == NULL)
        return -1;
    json_decref(wanted);
    return held;
}

/* --- the changes -------------------------------------------------------------------------------------------------- */

bool
store_has_tree(const struct store *s, const char *tree)
{
    char path[96];
    struct stat st;

    snprintf(path, sizeof(path), "trees/%.64s", tree);
    return strspn(tree, "0123456789abcdef") == 64 && fstatat(s->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

static int
put_tree(struct store *s, struct stage *stage, const char *tree, struct err *err)
{
    cleanup_close int root = openat(stage->dir, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[96];

    snprintf(path, sizeof(path), "trees/%s", tree);
    if (root < 0 || syncfs(root) < 0)
        return fail(err, "the unpacked files");
    if (renameat2(stage->dir, "root", s->dir, path, RENAME_NOREPLACE) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        return fail(err, path);
    return 0;
}

/* That name alone; its digests too. */
static int
put_name(struct store *s, const json_t *record, const char *id, const char *name, struct err *err)
{
    static const char *const digests[] = { "manifest", "index" };
    json_t *names = read_names(s, err);
    int r;

    if (names == NULL)
        return -1;
    if (name != NULL)
        json_object_set_new(json_object_get(names, "names"), name, json_string(id));
    for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
        const char *digest = json_string_value(json_object_get(record, digests[i]));
        if (digest != NULL && image_ref_is_digest(str_of(digest)))
            json_object_set_new(json_object_get(names, "digests"), digest, json_string(id));
    }
    r = write_doc(s, "names.json", names, err);
    json_decref(names);
    return r;
}

/* What was counted when the tree was unpacked for another image, or for this one before. */
static void
copy_counts(struct store *s, json_t *record, const char *tree)
{
    static const char *const counts[] = { "bytes", "entries", "left_out" };
    json_t *list = store_list(s, NULL);
    const json_t *other;
    char its[65];
    size_t i;

    json_array_foreach(list, i, other) {
        image_tree_of(other, its);
        for (size_t k = 0; strcmp(its, tree) == 0 && k < ARRAY_LEN(counts); k++)
            json_object_set(record, counts[k], json_object_get(other, counts[k]));
    }
    json_decref(list);
}

int
store_put(struct store *s, struct stage *stage, json_t *record, bool unpacked, const char *name, struct err *err)
{
    const char *id = json_string_value(json_object_get(record, "id"));
    char tree[65], file[96];
    int r = -1;

    if (id == NULL || !image_ref_is_digest(str_of(id)))
        return err_set(err, ERR_PROTOCOL, "image.work", "the process that unpacks said no id");
    image_tree_of(record, tree);
    record_name(id, file);
    if (lock(s, err) < 0)
        return -1;
    if (!unpacked)
        copy_counts(s, record, tree);
    if (!unpacked || put_tree(s, stage, tree, err) == 0) {
        if (!store_has_tree(s, tree)) {
            err_set(err, ERR_SYSTEM, "image.gone", "another process removed the image's files meanwhile");
            err_hint(err, "try again");
        } else if (write_doc(s, file, record, err) == 0) {
            r = put_name(s, record, id, name, err);
        }
    }
    sweep_stages(s);
    (void)sweep_trees(s, NULL);
    unlock(s);
    return r;
}

/* The names of @id in @names; with @drop they go. */
static size_t
names_of(json_t *names, const char *key, const char *id, json_t *out, bool drop)
{
    json_t *all = json_object_get(names, key), *of;
    const char *name;
    size_t n = 0;
    void *next;

    json_object_foreach_safe(all, next, name, of) {
        const char *value = json_string_value(of);
        if (value == NULL || strcmp(value, id) != 0)
            continue;
        n++;
        if (out != NULL)
            json_array_append_new(out, json_string(name));
        if (drop)
            json_object_del(all, name);
    }
    return n;
}

/* The image itself, its names gone. */
static int
drop_image(struct store *s, json_t *names, const char *id, struct err *err)
{
    char file[96];

    record_name(id, file);
    (void)names_of(names, "names", id, NULL, true);
    (void)names_of(names, "digests", id, NULL, true);
    if (write_doc(s, "names.json", names, err) < 0)
        return -1;
    return unlinkat(s->dir, file, 0) < 0 && errno != ENOENT ? fail(err, file) : 0;
}

static int
remove_locked(struct store *s, const char *name, const char *id, bool *gone, struct err *err)
{
    json_t *names = read_names(s, err);
    char written[IMAGE_REF_MAX + 1];
    struct image_ref ref;
    int r = -1;

    if (names == NULL || image_ref_parse(str_of(name), &ref) != NULL)
        return -1;
    image_ref_name(&ref, written);
    *gone = ref.host[0] == '\0' || names_of(names, "names", id, NULL, false) <= 1;
    if (*gone) {
        r = drop_image(s, names, id, err);
    } else {
        json_object_del(json_object_get(names, "names"), written);
        r = write_doc(s, "names.json", names, err);
    }
    json_decref(names);
    return r;
}

int
store_remove(struct store *s, const char *name, char id[IMAGE_DIGEST_TEXT + 1], bool *gone, bool *busy, struct err *err)
{
    int r = -1, held = 0;

    if (lock(s, err) < 0)
        return -1;
    if (image_resolve(s->path, name, id, err) == 0 && (r = remove_locked(s, name, id, gone, err)) == 0) {
        sweep_stages(s);
        held = sweep_trees(s, err);
        r = held < 0 ? -1 : 0;
    }
    *busy = held > 0 && *gone;
    unlock(s);
    return r;
}

int
store_prune(struct store *s, size_t *n, struct err *err)
{
    json_t *names = NULL, *list = NULL;
    const json_t *record;
    size_t i;
    int r = -1;

    *n = 0;
    if (lock(s, err) < 0)
        return -1;
    names = read_names(s, err);
    list = names != NULL ? store_list(s, err) : NULL;
    r = list != NULL ? 0 : -1;
    json_array_foreach(list, i, record) {
        const char *id = json_string_value(json_object_get(record, "id"));
        if (r < 0 || json_array_size(json_object_get(record, "names")) > 0 || id == NULL)
            continue;
        r = drop_image(s, names, id, err);
        *n += r == 0;
    }
    json_decref(names);
    json_decref(list);
    sweep_stages(s);
    sweep_partial(s);
    r = r == 0 && sweep_trees(s, err) >= 0 ? 0 : -1;
    unlock(s);
    return r;
}

json_t *
store_list(struct store *s, struct err *err)
{
    cleanup_close int records = openat(s->dir, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    json_t *names = read_names(s, err), *out = names != NULL ? json_array() : NULL;
    struct dirents entries = { .fd = records };
    const char *entry;

    while (out != NULL && records >= 0 && (entry = dirents_next(&entries)) != NULL) {
        json_t *record = image_doc_load(records, entry, IMAGE_RECORD_MAX, err), *own = json_array();
        const char *id = json_string_value(json_object_get(record, "id"));
        if (record == NULL || id == NULL) {
            json_decref(record);
            json_decref(own);
            json_decref(out);
            out = NULL;
            break;
        }
        (void)names_of(names, "names", id, own, false);
        json_object_set_new(record, "names", own);
        json_array_append_new(out, record);
    }
    json_decref(names);
    return out;
}
