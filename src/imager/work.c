/* imager/work.c: see work.h */
#include "imager/work.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "imager/layer.h"
#include "imager/source.h"
#include "wall/landlock.h"
#include "wall/service.h"
#include "wire/packet.h"

#define MEMORY_MAX (1UL << 30)      /* of the process: zstd may want 128 MiB */
#define ASK 'T'
#define DONE 'R'

static const unsigned allowed[] = {
    SYS_brk, SYS_close, SYS_exit_group, SYS_fchmod, SYS_fchmodat, SYS_fcntl, SYS_fstat, SYS_ftruncate, SYS_futex,
    SYS_getdents64, SYS_getrandom, SYS_linkat, SYS_lseek, SYS_madvise, SYS_mkdirat, SYS_mmap, SYS_mprotect, SYS_mremap,
    SYS_munmap, SYS_newfstatat, SYS_openat, SYS_openat2, SYS_read, SYS_rt_sigprocmask, SYS_symlinkat, SYS_umask,
    SYS_unlinkat, SYS_utimensat, SYS_write,
#if defined(SYS_time)
    SYS_time,
#endif
    SYS_clock_gettime,
};

/* --- walls -------------------------------------------------------------------------------------------------------- */

static bool
write_map(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && io_write_full(fd, text, strlen(text)) == 0;
}

/* Root has what chroot(2) takes; others get it in a user namespace where that may be made. */
static bool
own_root(int place)
{
    char uid[64], gid[64];

    if (geteuid() != 0) {
        snprintf(uid, sizeof(uid), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
        snprintf(gid, sizeof(gid), "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
        if (unshare(CLONE_NEWUSER) < 0 || !write_map("/proc/self/setgroups", "deny") ||
            !write_map("/proc/self/gid_map", gid) || !write_map("/proc/self/uid_map", uid))
            return false;
    }
    return fchdir(place) == 0 && chroot(".") == 0 && chdir("/") == 0;
}

static int
confine(const struct work *w, struct err *err)
{
    const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, files = { 64, 64 };
    const struct rlimit size = { w->limits.bytes + LAYER_RATIO_FROM, w->limits.bytes + LAYER_RATIO_FROM };
    bool rooted = own_root(w->place);
    const struct landlock_rule rules[] = {
        { .fd = w->place, .path = rooted ? "/" : "the folder of what is under way", .access = LANDLOCK_WRITE },
        { .fd = w->source, .path = "the source", .access = LANDLOCK_READ },
    };
    struct service_plan plan = { .calls = allowed, .n_calls = ARRAY_LEN(allowed), .files = rules,
                                       .n_files = ARRAY_LEN(rules), .dies = true, .keep_user = true };
    struct landlock_support support;

    landlock_probe(&support);
    if (!rooted && support.abi == 0) {
        err_set(err, ERR_UNSUPPORTED, "image.walls", "images are unpacked behind a wall, and this host gives an "
                "ordinary user none: no user namespaces, no Landlock");
        return err_hint(err, "`cloche doctor` says how to have one of them; or run as root");
    }
    if ((!SERVICE_SANITIZED && setrlimit(RLIMIT_AS, &memory) < 0) || setrlimit(RLIMIT_NOFILE, &files) < 0 ||
        setrlimit(RLIMIT_FSIZE, &size) < 0)
        return err_sys(err, errno, "image.walls", "limits");
    /* before Linux 5.19 Landlock refuses every hard link from one folder to another, of which images have many */
    plan.all_files = rooted && (support.features & LANDLOCK_HAS_REFER) == 0;
    return service_confine(&plan, err);
}

/* --- what it does ------------------------------------------------------------------------------------------------- */

struct job {
    const struct work *w;
    int talk;
    struct source source;
    struct tree tree;
    char index[IMAGE_DIGEST_TEXT + 1], manifest[IMAGE_DIGEST_TEXT + 1], id[IMAGE_DIGEST_TEXT + 1];
    char name[IMAGE_REF_MAX + 1];
    json_t *record;
};

/* A document by its digest, which it has to have. */
static int
blob_doc(const struct job *j, const struct image_blob *blob, struct buf *out, struct err *err)
{
    char name[IMAGE_BLOB_PATH], digest[IMAGE_DIGEST_TEXT + 1];

    image_blob_path(blob->digest, name);
    buf_reset(out);
    if (source_doc(&j->source, name, out, err) < 0)
        return -1;
    image_digest_of(out, digest);
    if (strcmp(digest, blob->digest) == 0)
        return 0;
    err_set(err, ERR_DENIED, "image.digest", "what is named %s is %s", blob->digest, digest);
    return err_hint(err, "the image is damaged, or not what it says; nothing of it was kept");
}

/* One byte of answer to the tree's name. */
static int
ask(const struct job *j, bool *there, struct err *err)
{
    char message[65] = { ASK }, answer = 0, tree[65];

    image_tree_of(j->record, tree);
    memcpy(message + 1, tree, 64);
    if (io_write_full(j->talk, message, sizeof(message)) < 0 || io_read_full(j->talk, &answer, 1) < 0)
        return err_sys(err, errno, "image.work", "ask about the tree");
    *there = answer == 'y';
    return 0;
}

static int
unpack(struct job *j, const char *file, const char *blob, size_t i, struct err *err)
{
    const char *plain = json_string_value(json_array_get(json_object_get(j->record, "layers"), i));
    cleanup_close int fd = source_file(&j->source, file, err);
    char digest[IMAGE_DIGEST_TEXT + 1];

    if (fd < 0 || layer_unpack(&j->tree, fd, blob, plain, digest, err) < 0)
        return err_wrap(err, "layer %zu", i + 1);
    return 0;
}

static int
configure(struct job *j, const struct buf *config, size_t n_layers, struct err *err)
{
    image_digest_of(config, j->id);
    j->record = image_config_read(config->p, config->n, j->w->any_platform ? NULL : &j->w->platform, err);
    if (j->record == NULL)
        return -1;
    if (json_array_size(json_object_get(j->record, "layers")) == n_layers)
        return 0;
    return err_set(err, ERR_POLICY, "image.document", "the manifest and the configuration list different layers");
}

/* From index.json by way of as many indexes as it takes to a manifest, in @doc. */
static int
find_manifest(struct job *j, struct buf *doc, struct err *err)
{
    struct image_blob blob;
    const char *name = j->w->name;
    int index = 1;

    if (source_doc(&j->source, "index.json", doc, err) < 0)
        return -1;
    for (int depth = 0; index > 0; depth++) {
        if (depth == 4)
            return err_set(err, ERR_POLICY, "image.document", "indexes in indexes without end");
        if (image_index_pick(doc->p, doc->n, &j->w->platform, name, &blob, depth == 0 ? j->name : NULL, err) < 0 ||
            blob_doc(j, &blob, doc, err) < 0)
            return -1;
        index = image_is_index(doc->p, doc->n, err);
        memcpy(index > 0 ? j->index : j->manifest, blob.digest, sizeof(blob.digest));
        name = NULL;
    }
    return index;
}

static int
from_layout(struct job *j, bool *there, struct err *err)
{
    cleanup_buf struct buf doc = BUF_INIT(IMAGE_DOC_MAX);
    struct image_manifest m;

    if (find_manifest(j, &doc, err) < 0 || image_manifest_read(doc.p, doc.n, &m, err) < 0 ||
        blob_doc(j, &m.config, &doc, err) < 0 || configure(j, &doc, m.n_layers, err) < 0 || ask(j, there, err) < 0)
        return -1;
    for (size_t i = 0; !*there && i < m.n_layers; i++) {
        char name[IMAGE_BLOB_PATH];
        image_blob_path(m.layers[i].digest, name);
        if (unpack(j, name, m.layers[i].digest, i, err) < 0)
            return -1;
    }
    return 0;
}

static int
from_archive(struct job *j, bool *there, struct err *err)
{
    cleanup_buf struct buf doc = BUF_INIT(IMAGE_DOC_MAX);
    static struct image_archive a;      /* large, and there is one */

    if (source_doc(&j->source, "manifest.json", &doc, err) < 0 ||
        image_archive_read(doc.p, doc.n, j->w->name, &a, err) < 0)
        return -1;
    memcpy(j->name, a.name, sizeof(a.name));
    buf_reset(&doc);
    if (source_doc(&j->source, a.config, &doc, err) < 0 || configure(j, &doc, a.n_layers, err) < 0 ||
        ask(j, there, err) < 0)
        return -1;
    for (size_t i = 0; !*there && i < a.n_layers; i++)
        if (unpack(j, a.layers[i], NULL, i, err) < 0)
            return -1;
    return 0;
}

/* One layer, and a configuration that says nothing but that, and what the caller knows. */
static int
from_tree(struct job *j, bool *there, struct err *err)
{
    cleanup_buf struct buf doc = BUF_INIT(IMAGE_DOC_MAX);
    char digest[IMAGE_DIGEST_TEXT + 1];

    if (layer_unpack(&j->tree, j->w->source, NULL, NULL, digest, err) < 0)
        return -1;
    buf_printf(&doc, "{\"architecture\":\"%s\",\"config\":%s,\"os\":\"%s\",\"rootfs\":{\"diff_ids\":[\"%s\"],"
               "\"type\":\"layers\"}}", j->w->platform.architecture, j->w->config != NULL ? j->w->config : "{}",
               j->w->platform.os, digest);
    if (!buf_ok(&doc))
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    return configure(j, &doc, 1, err) < 0 ? -1 : ask(j, there, err);
}

static int
report(struct job *j, bool there, struct err *err)
{
    const struct tree_count *n = &j->tree.count;
    cleanup_free char *text = NULL;
    uint8_t head[6] = { DONE, !there };
    size_t length;

    json_object_set_new(j->record, "id", json_string(j->id));
    json_object_set_new(j->record, "manifest", json_string(j->manifest));
    json_object_set_new(j->record, "index", json_string(j->index));
    json_object_set_new(j->record, "name", json_string(j->name));
    json_object_set_new(j->record, "bytes", json_integer((json_int_t)n->bytes));
    json_object_set_new(j->record, "entries", json_integer((json_int_t)n->entries));
    json_object_set_new(j->record, "left_out",
                        json_pack("{s:I, s:I, s:I}", "devices", (json_int_t)n->devices, "fifos", (json_int_t)n->fifos,
                                  "setuid", (json_int_t)n->setuid));
    text = json_dumps(j->record, JSON_COMPACT);
    length = text != NULL ? strlen(text) : 0;
    if (length == 0 || length > IMAGE_RECORD_MAX)
        return err_set(err, ERR_LIMIT, "image.document", "what the image says of itself is too long");
    for (int i = 0; i < 4; i++)
        head[2 + i] = (uint8_t)(length >> (24 - 8 * i));
    if (io_write_full(j->talk, head, sizeof(head)) < 0 || io_write_full(j->talk, text, length) < 0)
        return err_sys(err, errno, "image.work", "say what there is");
    return 0;
}

static int
work(const struct work *w, int talk, int root, int spool, struct err *err)
{
    static struct job j = { .source = SOURCE_INIT };
    bool there = false;
    int r;

    j.w = w;
    j.talk = talk;
    if (confine(w, err) < 0 || tree_init(&j.tree, root, &w->limits, err) < 0 ||
        source_open(&j.source, w->source, w->folder, spool, w->limits.bytes, err) < 0)
        return -1;
    r = j.source.kind == SOURCE_LAYOUT    ? from_layout(&j, &there, err)
        : j.source.kind == SOURCE_ARCHIVE ? from_archive(&j, &there, err)
                                          : from_tree(&j, &there, err);
    if (r == 0)
        r = report(&j, there, err);
    json_decref(j.record);
    source_close(&j.source);
    tree_free(&j.tree);
    return r;
}

/* --- its parent --------------------------------------------------------------------------------------------------- */

static int
make_folder(int at, const char *name, struct err *err)
{
    cleanup_close int fd = mkdirat(at, name, 0755) == 0 ? openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    return fd < 0 ? err_sys(err, errno, "image.store", "make \"%s\"", name) : take_fd(&fd);
}

static json_t *
hear_record(int talk, bool *unpacked)
{
    cleanup_free char *text = NULL;
    uint8_t head[5];
    size_t n = 0;

    if (io_read_full(talk, head, sizeof(head)) < 0)
        return NULL;
    *unpacked = head[0] != 0;
    for (int i = 1; i < 5; i++)
        n = n << 8 | head[i];
    text = n > 0 && n <= IMAGE_RECORD_MAX ? malloc(n) : NULL;
    return text != NULL && io_read_full(talk, text, n) == 0 ? json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

/* Answer its questions until it says its record; NULL: it said something else, or ended. */
static json_t *
hear(int talk, work_has *has, void *ctx, bool *unpacked)
{
    char tree[65] = "", kind;

    while (io_read_full(talk, &kind, 1) == 0) {
        if (kind == DONE)
            return hear_record(talk, unpacked);
        if (kind != ASK || io_read_full(talk, tree, 64) < 0 ||
            io_write_full(talk, has(ctx, tree) ? "y" : "n", 1) < 0)
            return NULL;
    }
    return NULL;
}

static int
ended(pid_t pid, struct err *err)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(err, errno, "image.work", "wait");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    err_set(err, ERR_SYSTEM, "image.work", "the process that unpacks ended by %s %d",
            WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return err_hint(err, "an image that makes it do so is not one to trust; nothing of it was kept");
}

static _Noreturn void
child(const struct work *w, int talk, int status, int root, int spool)
{
    struct err err = ERR_INIT;

    prctl(PR_SET_NAME, "cloche-unpack");
    /* names of files are bytes; of what a pax header says in UTF-8 they are those */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    umask(0);
    json_object_seed(0);        /* from a device, which is out of reach afterwards */
    if (work(w, talk, root, spool, &err) < 0) {
        packet_say_err(status, &err);
        _exit(1);
    }
    _exit(0);
}

json_t *
work_run(const struct work *w, work_has *has, void *ctx, bool *unpacked, struct err *err)
{
    cleanup_close int root = make_folder(w->place, "root", err), spool = -1;
    cleanup_close int said = -1, say = -1, ours = -1, its = -1;
    struct err why = ERR_INIT, end = ERR_INIT;
    int talk[2], status[2], heard;
    json_t *record;
    pid_t pid;

    spool = root < 0 ? -1 : make_folder(w->place, "spool", err);
    if (spool < 0)
        return NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) < 0 || pipe2(status, O_CLOEXEC) < 0) {
        err_sys(err, errno, "image.work", "sockets");
        return NULL;
    }
    ours = talk[0];
    its = talk[1];
    said = status[0];
    say = status[1];
    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        err_sys(err, errno, "image.work", "fork");
        return NULL;
    }
    if (pid == 0) {
        close(ours);
        close(said);
        child(w, its, say, root, spool);
    }
    close_fd(&its);
    close_fd(&say);
    record = hear(ours, has, ctx, unpacked);
    close_fd(&ours);
    heard = packet_hear_err(said, &why);
    if (ended(pid, &end) == 0 && record != NULL)
        return record;
    json_decref(record);
    if (err != NULL)
        *err = heard == 1 ? why : end;
    if (err != NULL && err->kind == ERR_NONE)
        err_set(err, ERR_PROTOCOL, "image.work", "the process that unpacks said nothing");
    return NULL;
}
