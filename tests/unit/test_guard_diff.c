/* tests/unit/test_guard_diff.c: where no rule applies, nobody can tell the guard from the kernel
 *
 * One sequence of file operations, drawn from a seed, runs twice: bare, and under the guard, each in a directory of its
 * own. Every result, errno, descriptor flag, file type and mode is logged; logs and trees must be the same. The
 * seeds are fixed: a failure names the one that found it (test_guard_diff SEED runs it again, and prints the log).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "base/array.h"
#include "loops.h"
#include "test_guard_run.h"

#define SEEDS 40
#define OPS_PER_SEED 400
#define FDS 6
#define NAME_ROOM (PATH_MAX + 64)

struct sequence {
    uint64_t seed, state;
    const char *base;           /* this run's directory */
    int log;
    int fds[FDS];
    size_t op;
    bool in_proc;               /* one of this operation's names is an entry of procfs */
};

static uint64_t
draw(struct sequence *s)
{
    /* splitmix64 */
    uint64_t z = s->state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static size_t
pick(struct sequence *s, size_t n)
{
    return (size_t)(draw(s) % n);
}

static void __attribute__((format(printf, 2, 3)))
note(struct sequence *s, const char *fmt, ...)
{
    char line[PATH_MAX * 2];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (n > 0 && write(s->log, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line)) < 0)
        _exit(110);
}

/* The name of one file, directory, link ... of a small world, so that operations meet. */
static void
draw_name(struct sequence *s, char out[NAME_ROOM])
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "d1", "d2", "d1/x", "d1/y", "d2/x", "d1/d3",
                                         "d1/d3/z", "l1", "l2", "l3", "l1/x", "l2/y", "l3/../a", "d1/../b", "./c",
                                         "d2/./x", "d1//y", ".", "..", "d1/.", "d1/..", "missing/x", "a/x", "",
                                         "d1/", "l1/", "a/", "new1", "new2", "d1/new3/", "loop", "loop/x",
                                         "d1/\303\274", "odd~", "odd:", "dot." };
    size_t kind = pick(s, 40);

    if (kind == 0)
        snprintf(out, NAME_ROOM, "%s/%s", s->base, names[pick(s, 22)]);
    else if (kind == 1)
        snprintf(out, NAME_ROOM, "/proc/self/cwd/%s", names[pick(s, 22)]);
    else if (kind == 2)
        snprintf(out, NAME_ROOM, "/proc/thread-self/root%s/%s", s->base, names[pick(s, 22)]);
    else if (kind == 3)
        snprintf(out, NAME_ROOM, "/proc/self/fd/%d", s->fds[pick(s, FDS)]);
    else if (kind == 4)
        snprintf(out, NAME_ROOM, "/dev/fd/%d", s->fds[pick(s, FDS)]);
    else if (kind == 5)
        snprintf(out, NAME_ROOM, "/proc/self/fd/%d/%s", s->fds[pick(s, FDS)], names[pick(s, 10)]);
    else if (kind == 6)
        memset(out, 'n', 300), out[300] = '\0';
    else if (kind == 7)
        memset(out, '/', NAME_ROOM), out[0] = '.', memcpy(out + PATH_MAX - 2 + pick(s, 3), "a", 2);
    else if (kind == 8)
        strcpy(out, "/proc/self/oom_score_adj");
    else if (kind == 9)
        snprintf(out, NAME_ROOM, "%s//%s/", names[6 + pick(s, 2)], names[pick(s, 6)]);
    else
        strcpy(out, names[pick(s, ARRAY_LEN(names))]);
    s->in_proc |= (kind >= 3 && kind <= 5) || kind == 8;
}

/* As the log shows it: without this run's directory. */
static const char *
shown(const struct sequence *s, const char *path)
{
    static char rooms[2][64];
    static unsigned next;
    char *room = rooms[next++ % 2];
    size_t n = strlen(s->base);
    const char *at = strstr(path, s->base);

    if (at != NULL)
        snprintf(room, sizeof(rooms[0]), "(%d)B%.40s", (int)(at - path), at + n);
    else
        snprintf(room, sizeof(rooms[0]), "(%zu)%.40s", strlen(path), path);
    return room;
}

static int
draw_dirfd(struct sequence *s)
{
    switch (pick(s, 8)) {
    case 0:
        return s->fds[pick(s, FDS)];
    case 1:
        return pick(s, 6) == 0 ? 777 : AT_FDCWD;
    default:
        return AT_FDCWD;
    }
}

static void
outcome(struct sequence *s, const char *op, const char *detail, long rc)
{
    /* A process may write in its own /proc/PID/fd as far as permissions go, nobody else; nothing can be made there. */
    bool own_fds = s->in_proc && (errno == EACCES || errno == EPERM || errno == ENOTDIR || errno == ENOENT);

    note(s, "%zu %s %s = %ld %s\n", s->op, op, detail, rc < 0 ? -1 : rc,
         rc >= 0 ? "" : own_fds ? "refused" : strerror(errno));
    s->in_proc = false;
}

/* Neither run may hang on a FIFO. */
static int
unblocked(const char *path, int dirfd, int flags)
{
    struct stat st;

    if (fstatat(dirfd, path, &st, 0) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return flags | O_NONBLOCK;
    return flags;
}

static void
op_open(struct sequence *s)
{
    static const int parts[] = { O_CREAT, O_CREAT, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_CLOEXEC,
                                 O_NONBLOCK, O_DIRECTORY, O_SYNC };
    char path[NAME_ROOM], detail[256];
    struct stat st = { 0 };
    int dirfd = draw_dirfd(s), flags = (int)pick(s, 3), fd, at;
    mode_t mode = (mode_t)(draw(s) & 0777) | 0600;

    draw_name(s, path);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (pick(s, 4) == 0)
            flags |= parts[i];
    /* what O_DIRECTORY means with O_CREAT changed in 6.4, and O_TMPFILE is a case of its own */
    if (pick(s, 25) == 0)
        flags = (flags & O_EXCL) | O_TMPFILE | O_RDWR;
    flags = unblocked(path, dirfd, flags);
    fd = (int)syscall(SYS_openat, dirfd, path, flags, mode);
    snprintf(detail, sizeof(detail), "dir %d flags %o mode %o", dirfd == AT_FDCWD ? -1 : dirfd, flags, mode);
    outcome(s, "open", detail, fd);
    note(s, "   %s\n", shown(s, path));
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0)
        note(s, "   type %o size %ld nlink %ld fl %o fd %d\n", st.st_mode, S_ISDIR(st.st_mode) ? 0L : (long)st.st_size,
             (long)st.st_nlink, fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
    if ((flags & O_ACCMODE) != O_RDONLY && S_ISREG(st.st_mode) && strncmp(path, "/proc/self/oom", 14) != 0)
        note(s, "   write %zd\n", write(fd, "hello", 5));
    at = (int)pick(s, FDS);
    close(s->fds[at]);
    if (dup3(fd, s->fds[at], O_CLOEXEC) < 0)
        _exit(111);
    close(fd);
}

static void
op_make(struct sequence *s)
{
    static const mode_t types[] = { S_IFIFO, S_IFREG, S_IFSOCK, 0, S_IFDIR };
    char path[NAME_ROOM];
    int dirfd = draw_dirfd(s);
    mode_t mode = (mode_t)(draw(s) & 07777) | 0700;

    draw_name(s, path);
    if (pick(s, 3) > 0)
        outcome(s, "mkdir", shown(s, path), mkdirat(dirfd, path, mode));
    else
        outcome(s, "mknod", shown(s, path), mknodat(dirfd, path, types[pick(s, 5)] | (mode & 0777), 0));
}

static void
op_symlink(struct sequence *s)
{
    char target[NAME_ROOM], path[NAME_ROOM];

    draw_name(s, target);
    draw_name(s, path);
    if (pick(s, 6) == 0)
        strcpy(path, "loop"), strcpy(target, "loop");
    outcome(s, "symlink", shown(s, path), symlinkat(target, draw_dirfd(s), path));
}

static void
op_link(struct sequence *s)
{
    static const int flags[] = { 0, 0, AT_SYMLINK_FOLLOW, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW, 0 };
    char from[NAME_ROOM], to[NAME_ROOM];

    draw_name(s, from);
    draw_name(s, to);
    note(s, "%s ", shown(s, from));
    outcome(s, "link", shown(s, to),
            linkat(draw_dirfd(s), from, draw_dirfd(s), to, flags[pick(s, 6)]));
}

static void
op_rename(struct sequence *s)
{
    static const unsigned flags[] = { 0, 0, 0, 0, 1, 2, 3, 8 };
    char from[NAME_ROOM], to[NAME_ROOM];

    draw_name(s, from);
    draw_name(s, to);
    note(s, "%s ", shown(s, from));
    outcome(s, "rename", shown(s, to),
            syscall(SYS_renameat2, draw_dirfd(s), from, draw_dirfd(s), to, flags[pick(s, 8)]));
}

static void
op_remove(struct sequence *s)
{
    char path[NAME_ROOM];
    int flags = pick(s, 2) == 0 ? AT_REMOVEDIR : 0;

    draw_name(s, path);
    outcome(s, "remove", shown(s, path), unlinkat(draw_dirfd(s), path, flags));
}

static void
op_modify(struct sequence *s)
{
    const struct timespec times[2] = { { 1000000000, 5 }, { 0, UTIME_OMIT } };
    char path[NAME_ROOM];
    const char *name;
    int fd = s->fds[pick(s, FDS)];

    draw_name(s, path);
    name = shown(s, path);
    if (strstr(path, "/proc/self/oom") != NULL)
        return;
    switch (pick(s, 9)) {
    case 0:
        outcome(s, "chmod", name, fchmodat(draw_dirfd(s), path, (mode_t)(draw(s) & 0777) | 0700, 0));
        break;
    case 1:
        outcome(s, "fchmod", "", fchmod(fd, (mode_t)(draw(s) & 0777) | 0700));
        break;
    case 2:
        outcome(s, "truncate", name, truncate(path, (off_t)pick(s, 3) - 1));
        break;
    case 3:
        outcome(s, "utimensat", name,
                utimensat(draw_dirfd(s), path, pick(s, 2) == 0 ? times : NULL,
                          pick(s, 2) == 0 ? AT_SYMLINK_NOFOLLOW : 0));
        break;
    case 4:
        outcome(s, "futimens", "", futimens(fd, times));
        break;
    case 5:
        outcome(s, "setxattr", name, pick(s, 2) == 0 ? setxattr(path, "user.k", "value", pick(s, 5), (int)pick(s, 3))
                                                      : lsetxattr(path, "user.k", "v", 1, 0));
        break;
    case 6:
        outcome(s, "removexattr", name, removexattr(path, "user.k"));
        break;
    case 7:
        outcome(s, "chown", name, fchownat(draw_dirfd(s), path, getuid(), getgid(),
                                            pick(s, 2) == 0 ? AT_SYMLINK_NOFOLLOW : 0));
        break;
    default:
        outcome(s, "fchown", "", fchown(fd, (uid_t)-1, getgid()));
        break;
    }
}

static void
op_other(struct sequence *s)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    char path[NAME_ROOM];
    int sock;

    switch (pick(s, 4)) {
    case 0:
        note(s, "%zu umask %o\n", s->op, umask((mode_t)(draw(s) & 077)));
        break;
    case 1:
        /* stay in the world: a directory of it, or back to its top */
        outcome(s, "chdir", "", chdir(pick(s, 2) == 0 ? s->base : "d1"));
        break;
    default:
        draw_name(s, path);
        if (strlen(path) >= sizeof(un.sun_path) - 1 || path[0] == '/' || path[0] == '\0')
            return;
        strcpy(un.sun_path, path);
        sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (pick(s, 2) == 0) {
            outcome(s, "bind", shown(s, path), bind(sock, (struct sockaddr *)&un, sizeof(un)));
            outcome(s, "listen", "", listen(sock, 1));
        } else {
            outcome(s, "connect", shown(s, path), connect(sock, (struct sockaddr *)&un, sizeof(un)));
        }
        close(sock);
    }
}

static int
play(void *arg)
{
    static void (*const ops[])(struct sequence *) = { op_open, op_open, op_open, op_make, op_make, op_symlink, op_link,
                                                      op_rename, op_rename, op_remove, op_modify, op_other };
    struct sequence *s = arg;

    /* the same descriptor numbers in both runs */
    s->log = fcntl(s->log, F_DUPFD_CLOEXEC, 100);
    (void)syscall(SYS_close_range, 3, 49, 0);
    for (int i = 0; i < FDS; i++) {
        /* not a device of the host: what happens to the others (chmod, chown, times) must stay in this test */
        s->fds[i] = fcntl(i == 0 ? open(s->base, O_RDONLY) : memfd_create("spare", MFD_CLOEXEC), F_DUPFD_CLOEXEC, 50 + i);
        if (s->fds[i] != 50 + i)
            return 1;
    }
    for (s->op = 0; s->op < OPS_PER_SEED; s->op++)
        ops[pick(s, ARRAY_LEN(ops))](s);
    return 0;
}

/* --- what is left */

static void
list_dir(int dir, const char *prefix, const char *base, int out)
{
    struct dirent **names;
    int n = scandirat(dir, ".", &names, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        char path[PATH_MAX * 2], target[PATH_MAX] = "", content[64] = "";
        struct stat st;
        int fd;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            free(names[i]);
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", prefix, name);
        if (S_ISLNK(st.st_mode) && readlinkat(dir, name, target, sizeof(target) - 1) > 0) {
            char *at = strstr(target, base);

            if (at != NULL)
                memset(at, 'B', strlen(base));
        }
        if (S_ISREG(st.st_mode) && (fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) >= 0) {
            if (read(fd, content, sizeof(content) - 1) < 0)
                strcpy(content, "?");
            close(fd);
        }
        dprintf(out, "%s %o %ld nlink %ld -> %s [%s] %ld\n", path, st.st_mode,
                S_ISREG(st.st_mode) ? (long)st.st_size : 0L, (long)st.st_nlink, target, content,
                st.st_mtime == 1000000000 ? 1L : 0L);
        if (S_ISDIR(st.st_mode)) {
            fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (fd >= 0)
                list_dir(fd, path, base, out);
            close(fd);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

static char *
slurp(int fd, size_t *n)
{
    struct stat st;
    char *p;

    assert_int_equal(fstat(fd, &st), 0);
    p = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(p);
    assert_int_equal(pread(fd, p, (size_t)st.st_size, 0), st.st_size);
    *n = (size_t)st.st_size;
    return p;
}

static char *
one_run(uint64_t seed, uint32_t flags, char room[64])
{
    char *top = run_tmpdir(room), dir[128];     /* "..", and what links make of it, is ours too */
    struct guard_plan plan = GUARD_PLAN_INIT;
    struct sequence s = { .seed = seed, .state = seed, .base = dir };
    struct run r = { .fn = play, .arg = &s };
    struct err err = ERR_INIT;
    size_t n;
    char *text;

    strcpy(dir, top);
    for (int i = 0; i < 4; i++) {
        strcat(dir, "/w");
        assert_int_equal(mkdir(dir, 0755), 0);
    }
    s.log = (int)syscall(SYS_memfd_create, "log", 0);
    r.chdir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    plan.flags = flags;
    assert_int_equal(guard_plan_protect(&plan, dir, ".git/hooks", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, dir, "p1/protected", &err), 0);
    assert_int_equal(guard_plan_protect(&plan, dir, "p1/p3/protected/deep", &err), 0);
    (void)umask(022);
    assert_int_equal(run_under(&r, flags != 0 ? &plan : NULL), 0);
    dprintf(s.log, "status %x\n", r.status);
    list_dir(r.chdir_fd, "", dir, s.log);
    text = slurp(s.log, &n);
    close(s.log);
    close(r.chdir_fd);
    guard_plan_free(&plan);
    run_remove(top);
    return text;
}

/* The first line that differs. */
static void
show_difference(const char *bare, const char *guarded)
{
    const char *a = bare, *b = guarded, *line_a = a, *line_b = b;

    for (; *a != '\0' && *a == *b; a++, b++) {
        if (*a == '\n') {
            line_a = a + 1;
            line_b = b + 1;
        }
    }
    fprintf(stderr, "bare:    %.*s\nguarded: %.*s\n", (int)strcspn(line_a, "\n"), line_a, (int)strcspn(line_b, "\n"),
            line_b);
}

static void
same_for(uint64_t first, uint64_t count, uint32_t flags)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        char room[2][64];
        char *bare = one_run(seed, 0, room[0]), *guarded = one_run(seed, flags, room[1]);

        if (strcmp(bare, guarded) != 0) {
            fprintf(stderr, "seed %llu, flags %u\n", (unsigned long long)seed, flags);
            show_difference(bare, guarded);
            fail();
        }
        free(bare);
        free(guarded);
    }
}

static void
names_only(void **state)
{
    (void)state;
    same_for(1, loops(SEEDS), GUARD_NAMES);
}

static void
writes_too(void **state)
{
    (void)state;
    same_for(2001, loops(SEEDS), GUARD_WRITES);
}

static void
everything(void **state)
{
    (void)state;
    same_for(1001, loops(SEEDS), GUARD_NAMES | GUARD_EXISTING | GUARD_CONNECT);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_only),
        cmocka_unit_test(writes_too),
        cmocka_unit_test(everything),
    };

    if (argc == 4) {
        same_for(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
        return 0;
    }
    if (argc == 3) {
        char room[64];
        char *text = one_run((uint64_t)strtoull(argv[1], NULL, 10), (uint32_t)strtoul(argv[2], NULL, 10), room);

        puts(text);
        free(text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
