/* engine/docker/folder.c: the folder that a container is given, whose it is, and what dead makers left
 *
 * It holds the guest, its filter, and the socket to which the guest comes; it is shown to the container read-only, and
 * only until the sandbox's own tree takes its place. The guest is another user, so every folder on the way lets others
 * pass, though nobody but root lists it; the socket is for that user.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "engine/docker/docker.h"
#include "guest/guest_image.h"

#define LABEL "{\"label\":[\"dev.cloche.sandbox\"]}"

static int
fail(struct err *err, const char *what)
{
    return err_sys(err, errno, "docker.folder", DOCKER_RUN ": %s", what);
}

/* --- whose it is -------------------------------------------------------------------------------------------------- */

/* When the process @pid was started, in the kernel's ticks; 0: it is not there. */
static uint64_t
started(long pid)
{
    cleanup_buf struct buf text = BUF_INIT(4096);
    char path[64];
    const char *p;
    uint64_t at;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0 || buf_nul(&text) < 0 ||
        (p = strrchr((const char *)text.p, ')')) == NULL)
        return 0;
    for (int field = 2; field < 22 && p != NULL; field++)
        p = strchr(p + 1, ' ');
    if (p == NULL)
        return 0;
    p++;
    return str_parse_u64((struct str){ p, strcspn(p, " ") }, UINT64_MAX, &at) ? at : 0;
}

/* Of this life of the host's kernel and of this pid namespace: "BOOT-ID:NAMESPACE:". */
static void
where(char out[DOCKER_OWNER_MAX])
{
    cleanup_buf struct buf boot = BUF_INIT(64);
    struct stat st = { .st_ino = 0 };
    size_t n = io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &boot) == 0 && boot.n > 36 ? 36 : 0;

    (void)stat("/proc/self/ns/pid", &st);
    snprintf(out, DOCKER_OWNER_MAX, "%.*s:%llu:", (int)n, (const char *)boot.p, (unsigned long long)st.st_ino);
}

void
docker_owner(char out[DOCKER_OWNER_MAX])
{
    size_t n;

    where(out);
    n = strlen(out);
    snprintf(out + n, DOCKER_OWNER_MAX - n, "%ld:%llu", (long)getpid(), (unsigned long long)started(getpid()));
}

bool
docker_owner_lives(const char *owner)
{
    char here[DOCKER_OWNER_MAX];
    const char *colon;
    uint64_t pid, at;

    where(here);
    if (strncmp(owner, here, strlen(here)) != 0)        /* of an earlier boot it is dead, elsewhere nobody can tell */
        return strncmp(owner, here, 37) == 0;
    owner += strlen(here);
    colon = strchr(owner, ':');
    return colon == NULL || !str_parse_u64((struct str){ owner, (size_t)(colon - owner) }, INT32_MAX, &pid) ||
           !str_parse_u64(str_of(colon + 1), UINT64_MAX, &at) || started((long)pid) == at;
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

static int
put_file(int dir, const char *name, mode_t mode, const void *p, size_t n, struct err *err)
{
    cleanup_close int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 || io_write_full(fd, p, n) < 0 || fchmod(fd, mode) < 0 ? fail(err, name) : 0;
}

/* By the descriptor: an address is short, and the folder's name is ours. */
static int
listen_in(int dir, const struct docker *sb, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" DOCKER_SOCKET, dir);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ||
        fchownat(dir, DOCKER_SOCKET, sb->native.plan.ids.outside_uid, sb->native.plan.ids.outside_gid,
                 AT_SYMLINK_NOFOLLOW) < 0 || fchmodat(dir, DOCKER_SOCKET, 0600, 0) < 0)
        return fail(err, DOCKER_SOCKET);
    return take_fd(&fd);
}

/* Root's own, and nobody else's to write. */
static int
run_folder(struct err *err)
{
    cleanup_close int fd = -1;
    struct stat st;

    if (mkdir(DOCKER_RUN, 0711) < 0 && errno != EEXIST)
        return fail(err, "make it");
    fd = open(DOCKER_RUN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, "open it");
    if (st.st_uid != 0 || (st.st_mode & 022) != 0)
        return err_set(err, ERR_DENIED, "docker.folder", DOCKER_RUN " is not root's alone to write");
    return take_fd(&fd);
}

int
docker_folder_make(struct docker *sb, struct err *err)
{
    struct seccomp_code code;
    const struct sock_fprog *program = &code.program;
    cleanup_close int run = run_folder(err), dir = -1;
    char owner[DOCKER_OWNER_MAX];

    if (run < 0)
        return -1;
    if (!seccomp_build(&sb->native.plan.seccomp, &code))
        return err_set(err, ERR_POLICY, "wall.seccomp.plan", "there is no such system call filter");
    docker_owner(owner);
    if (mkdirat(run, sb->native.id, 0711) < 0 ||
        (dir = openat(run, sb->native.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0 ||
        fchmod(dir, 0711) < 0)
        return fail(err, sb->native.id);
    if (put_file(dir, DOCKER_OWNER, 0400, owner, strlen(owner), err) < 0 ||
        put_file(dir, DOCKER_GUEST, 0555, guest_image, guest_image_size, err) < 0 ||
        put_file(dir, DOCKER_FILTER, 0444, program->filter, program->len * sizeof(*program->filter), err) < 0)
        return -1;
    sb->listener = listen_in(dir, sb, err);
    return sb->listener < 0 ? -1 : 0;
}

bool
docker_folder_remove(const char *id)
{
    static const char *const names[] = { DOCKER_GUEST, DOCKER_FILTER, DOCKER_SOCKET, DOCKER_OWNER };
    char path[128];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), DOCKER_RUN "/%s/%s", id, names[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof(path), DOCKER_RUN "/%s", id);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* --- what is left ------------------------------------------------------------------------------------------------- */

static bool
is_hex(const char *name, size_t n)
{
    return strlen(name) == n && strspn(name, "0123456789abcdef") == n;
}

/* Folders of dead makers go, or (@look) are looked for only. True: there was one. */
static bool
dead_folders(bool look)
{
    cleanup_close int run = open(DOCKER_RUN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirents names = { .fd = run };
    const char *name;
    bool found = false;

    while (run >= 0 && !(look && found) && (name = dirents_next(&names)) != NULL) {
        cleanup_buf struct buf owner = BUF_INIT(DOCKER_OWNER_MAX);
        char path[128];
        if (!is_hex(name, 32))
            continue;
        snprintf(path, sizeof(path), DOCKER_RUN "/%s/" DOCKER_OWNER, name);
        if (io_read_file(AT_FDCWD, path, &owner) < 0 || buf_nul(&owner) < 0 ||
            docker_owner_lives((const char *)owner.p))
            continue;
        found = true;
        if (!look)
            (void)docker_folder_remove(name);
    }
    return found;
}

bool
docker_left(void)
{
    return dead_folders(true);
}

/* Labels can be an image's, names are a container's own: ours ends with the id that it has for a label. */
static bool
is_named_so(const json_t *container, const json_t *labels)
{
    const char *id = json_string_value(json_object_get(labels, "dev.cloche.sandbox"));
    const json_t *names = json_object_get(container, "Names"), *one;
    size_t i;

    if (id == NULL || !is_hex(id, 32))
        return false;
    json_array_foreach(names, i, one) {
        size_t n = json_string_length(one);
        if (n > 32 && strcmp(json_string_value(one) + n - 32, id) == 0)
            return true;
    }
    return false;
}

void
docker_sweep(const struct docker_daemon *d)
{
    cleanup_buf struct buf path = BUF_INIT(512);
    const char *filter = LABEL;
    json_t *list = NULL, *one;
    unsigned status;
    size_t i;

    buf_puts(&path, "/containers/json?all=1&filters=");
    for (; *filter != '\0'; filter++)
        buf_printf(&path, "%%%02X", (unsigned)(unsigned char)*filter);
    if (buf_nul(&path) < 0 ||
        docker_ask(d, &(struct docker_ask){ .method = "GET", .path = (const char *)path.p }, &status, &list, NULL) < 0)
        return;
    json_array_foreach(list, i, one) {
        const json_t *labels = json_object_get(one, "Labels");
        const char *id = json_string_value(json_object_get(one, "Id"));
        const char *owner = json_string_value(json_object_get(labels, "dev.cloche.owner"));
        if (id != NULL && owner != NULL && is_hex(id, 64) && is_named_so(one, labels) && !docker_owner_lives(owner))
            (void)docker_remove(d, id);
    }
    json_decref(list);
    (void)dead_folders(false);
}
