/* guest/own_domain.c: see own_domain.h */
#include "guest/own_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define RULE_PATH_BENEATH 1
#define FS_EXECUTE        (1ull << 0)
#define FS_WRITE_FILE     (1ull << 1)
#define FS_READ_FILE      (1ull << 2)
#define FS_READ_DIR       (1ull << 3)
#define FS_REFER          (1ull << 13)      /* ABI 2; refused everywhere by a domain of files that does not name it */
#define SCOPE_SIGNAL      (1ull << 1)       /* ABI 6; where it is missing the launcher has refused, or said so */
#define FS_FILE           (FS_READ_FILE | FS_WRITE_FILE)
#define NET_ALL           3ull              /* ABI 4: bind, connect */
#define SCOPE_ALL         3ull              /* and abstract unix sockets */

struct attr { uint64_t fs, net, scoped; };

/* What is opened in /dev beside the terminal. /dev/shm holds files, which have rules of their own. */
static const char *const opened[] = { "null", "zero", "full", "random", "urandom", "tty", "shm" };

static int
create(uint64_t *fs)
{
    const struct { struct attr attr; size_t size; } known[] = {
        { { FS_FILE | FS_REFER, 0, SCOPE_SIGNAL }, sizeof(struct attr) },
        { { FS_FILE | FS_REFER, 0, 0 }, sizeof(uint64_t) },
        { { FS_FILE, 0, 0 }, sizeof(uint64_t) },
    };
    int fd = -1;

    for (size_t i = 0; i < ARRAY_LEN(known) && fd < 0; i++) {
        *fs = known[i].attr.fs;
        fd = (int)syscall(SYS_landlock_create_ruleset, &known[i].attr, known[i].size, 0);
        if (fd < 0 && errno != EINVAL && errno != E2BIG)
            break;
    }
    return fd;
}

static int
grant(int ruleset, uint64_t fs, int fd)
{
    struct { uint64_t allowed; int32_t parent; } __attribute__((packed)) rule = { fs, fd };
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        rule.allowed &= FS_FILE | FS_EXECUTE;
    return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
}

/* What is not there needs no rule. A link has none: what it leads to has one, or none. */
static int
grant_name(int ruleset, uint64_t fs, int dir, const char *name)
{
    cleanup_close int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT || errno == EACCES ? 0 : -1;
    if (fstat(fd, &st) < 0)
        return -1;
    return S_ISLNK(st.st_mode) ? 0 : grant(ruleset, fs, fd);
}

/* By looking, where no launcher has said what there is (tests of the guest). */
static int
grant_found(int ruleset, uint64_t fs, int root)
{
    cleanup_close int list = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirents names = { .fd = list };
    const char *name;

    while ((name = dirents_next(&names)) != NULL)
        if (strcmp(name, "dev") != 0 && grant_name(ruleset, fs, root, name) < 0)
            return -1;
    errno = names.failed;
    return names.failed == 0 ? 0 : -1;
}

/* By the launcher's list, for its domain does not let the guest read the root folder. */
static int
grant_root(int ruleset, uint64_t fs, int root)
{
    if (environ[0] == NULL || environ[0][0] != '/')
        return grant_found(ruleset, fs, root);
    for (size_t i = 0; environ[i] != NULL; i++)
        if (environ[i][0] == '/' && strcmp(environ[i], "/dev") != 0 &&
            grant_name(ruleset, fs, root, environ[i] + 1) < 0)
            return -1;
    return 0;
}

static int
grant_all(int ruleset, uint64_t fs, int terminal)
{
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int dev = root < 0 ? -1 : openat(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0 || grant_root(ruleset, fs, root) < 0)
        return -1;
    for (size_t i = 0; dev >= 0 && i < ARRAY_LEN(opened); i++)
        if (grant_name(ruleset, fs, dev, opened[i]) < 0)
            return -1;
    return terminal < 0 ? 0 : grant(ruleset, fs, terminal);
}

int
own_domain_make(int terminal, int *out)
{
    cleanup_close int fd = -1;
    uint64_t fs;

    *out = -1;
    fd = create(&fs);
    if (fd < 0)
        return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -1;
    if (grant_all(fd, fs, terminal) < 0)
        return -1;
    *out = take_fd(&fd);
    return 0;
}

/* Every right that the kernel knows, so that what no rule gives is refused. */
static int
create_whole(void)
{
    static const uint64_t fs[] = { 0, 0x1fff, 0x3fff, 0x7fff, 0x7fff };     /* by the ABI, up to 4 */
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    struct attr attr = { abi < 1 ? 0 : abi < 5 ? fs[abi] : 0xffff, abi < 4 ? 0 : NET_ALL, abi < 6 ? 0 : SCOPE_ALL };
    size_t size = abi < 4 ? sizeof(uint64_t) : abi < 6 ? 2 * sizeof(uint64_t) : sizeof(attr);

    return abi < 1 ? -1 : (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

/* Whoever leads there. What is not there needs no rule. */
static int
grant_path(int ruleset, uint64_t fs, const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);

    return fd >= 0 ? grant(ruleset, fs, fd) : errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -1;
}

/* What a program is made of, and names of users; the one program, and what else it is in newer versions, with the
 * dynamic linkers that it can have. A link in the sandbox's own tree leads to what its code could read as well. */
static const char *const read_by_all[] = { "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc",
                                           "/dev/urandom" };
static const char *const executed[] = {
    "/usr/sbin/sshd", "/usr/lib/openssh/sshd-session", "/usr/lib/openssh/sshd-auth", "/usr/lib/ssh/sshd-session",
    "/usr/lib/ssh/sshd-auth", "/usr/libexec/openssh/sshd-session", "/usr/libexec/openssh/sshd-auth",
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
};

static int
grant_looks(int ruleset)
{
    if (grant_path(ruleset, FS_READ_FILE | FS_READ_DIR, ".") < 0 || grant_path(ruleset, FS_FILE, "/dev/null") < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(read_by_all); i++)
        if (grant_path(ruleset, FS_READ_FILE | FS_READ_DIR, read_by_all[i]) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(executed); i++)
        if (grant_path(ruleset, FS_READ_FILE | FS_EXECUTE, executed[i]) < 0)
            return -1;
    return 0;
}

int
own_domain_look(int *out)
{
    cleanup_close int fd = create_whole();

    *out = -1;
    if (fd < 0 || grant_looks(fd) < 0)
        return -1;
    *out = take_fd(&fd);
    return 0;
}

int
own_domain_enter(int ruleset)
{
    if (ruleset < 0)
        return 0;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return -1;
    return close(ruleset);
}
