/* a project and an upper layer built from the input, read and applied: nothing outside the project changes, what was
 * applied is no change afterwards, and what is withheld did not arrive
 *
 * Works below /dev/shm, where trees cost little.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "workspace/apply.h"
#include "workspace/tree.h"

#define STEPS_MAX 64
#define ID "00112233445566778899aabbccddeeff"

static const char *const alphabet[] = { "a", "b", "c", ".git", "hooks", ".vscode", "x y", "\xff\n" };
static const char *const targets[] = { "a", "../a", "../../../../../victim", "/victim", "a/../../b", ".", "..", "b/c" };
static const char *const protected_names[] = { ".git/hooks", ".vscode" };
static const struct protect rules = { protected_names, 2, NULL, 0 };

struct feed {
    const uint8_t *p;
    size_t n;
};

static unsigned
next(struct feed *f, unsigned limit)
{
    if (f->n == 0)
        return 0;
    f->n--;
    return *f->p++ % limit;
}

static void
mark(int dir, const char *name, const char *attribute, const char *value)
{
    char path[64];
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    setxattr(path, attribute, value, strlen(value), 0);
    close(fd);
}

/* One change of the tree, in the directory *at, which may move. */
static void
act(struct feed *f, int root, int *at, bool upper)
{
    static const mode_t modes[] = { 0644, 0755, 0, 0700, 04755, 0444 };
    const char *name = alphabet[next(f, 8)];
    int fd;

    switch (next(f, upper ? 11 : 5)) {
    case 0:
        fd = openat(*at, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
        if (fd >= 0) {
            (void)!write(fd, "content", next(f, 8));
            close(fd);
        }
        break;
    case 1:
        mkdirat(*at, name, 0755);
        break;
    case 2:
        fd = openat(*at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            close(*at);
            *at = fd;
        }
        break;
    case 3:
        close(*at);
        *at = fcntl(root, F_DUPFD_CLOEXEC, 0);
        break;
    case 4:
        (void)!symlinkat(targets[next(f, 8)], *at, name);
        break;
    case 5:
        mknodat(*at, name, S_IFCHR, makedev(0, 0));
        break;
    case 6:
        mark(*at, name, "user.overlay.opaque", next(f, 2) ? "y" : "x");
        break;
    case 7:
        mark(*at, name, next(f, 2) ? "user.overlay.whiteout" : "user.overlay.origin", "y");
        break;
    case 8:
        fchmodat(*at, name, modes[next(f, 6)], AT_SYMLINK_NOFOLLOW);
        break;
    case 9:
        mkfifoat(*at, name, 0644);
        break;
    case 10:
        (void)!linkat(*at, name, *at, alphabet[next(f, 8)], 0);
        break;
    }
}

static void
build(struct feed *f, int root, bool upper)
{
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    unsigned n = next(f, STEPS_MAX);

    for (unsigned i = 0; i < n && at >= 0; i++)
        act(f, root, &at, upper);
    if (at >= 0)
        close(at);
}

static void
victim_is_whole(int base)
{
    char text[16];
    struct stat st;
    int fd = openat(base, "victim/secret", O_RDONLY | O_CLOEXEC);

    FUZZ_ASSERT(fd >= 0 && read(fd, text, sizeof(text)) == 6 && memcmp(text, "secret", 6) == 0);
    FUZZ_ASSERT(fstat(fd, &st) == 0 && st.st_nlink == 1);
    close(fd);
    FUZZ_ASSERT(fstatat(base, "victim", &st, 0) == 0);
}

static void
check_after(const struct diff_input *in)
{
    struct changes c;
    struct apply_plan plan;
    const struct apply_options force = { .force = true };

    FUZZ_ASSERT(diff_scan(in, &c, NULL) == 0);
    FUZZ_ASSERT(apply_decide(&c, &force, &plan, NULL) == 0);
    for (size_t i = 1; i < c.n; i++) {
        if (plan.fate[i] == FATE_APPLIED && (c.v[i].flags & CHANGE_SETID) == 0)
            fprintf(stderr, "still a change: %s: %s, flags %#x, upper %o, lower %o\n", c.v[i].name,
                    change_kind_name(c.v[i].kind), c.v[i].flags, c.v[i].upper.mode, c.v[i].lower.mode);
        /* set-id bits are the one thing that is applied and still differs */
        FUZZ_ASSERT(plan.fate[i] != FATE_APPLIED || (c.v[i].flags & CHANGE_SETID) != 0);
        FUZZ_ASSERT((c.v[i].flags & CHANGE_UNREADABLE) == 0 || geteuid() != 0);
    }
    apply_plan_free(&plan);
    changes_free(&c);
}

static void
run(const struct cow_state *state, int project, int base)
{
    const struct diff_input in = { .project = project, .layers = state->dir_fd, .since = state->created,
                                   .protect = &rules };
    const struct apply_options force = { .force = true };
    struct changes c;
    struct apply_plan plan;
    struct err err = ERR_INIT;
    struct stat st;

    FUZZ_ASSERT(diff_scan(&in, &c, &err) == 0);
    FUZZ_ASSERT(diff_renames(&in, &c, &err) == 0);
    FUZZ_ASSERT(apply_decide(&c, &force, &plan, &err) == 0);
    FUZZ_ASSERT(plan.n_conflicts == 0);
    for (size_t i = 1; i < c.n; i++)
        FUZZ_ASSERT(plan.fate[i] != FATE_APPLIED ||
                    (c.v[i].flags & (CHANGE_NEVER | CHANGE_PROTECTED | CHANGE_OUTSIDE)) == 0);
    int applied = apply_commit(state, &in, &c, &plan, &err);
    if (applied < 0)
        fprintf(stderr, "%s: %s\n", err.code, err.msg);
    FUZZ_ASSERT(applied == 0);
    FUZZ_ASSERT(fstatat(state->state_fd, "stage", &st, 0) < 0 && fstatat(state->state_fd, "journal", &st, 0) < 0);
    victim_is_whole(base);
    check_after(&in);
    apply_plan_free(&plan);
    changes_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const none[] = { NULL };
    struct feed f = { data, n };
    char root[] = "/dev/shm/cow-fuzz-XXXXXX", path[64];
    struct cow_state state = COW_STATE_INIT;
    struct err err = ERR_INIT;

    FUZZ_ASSERT(mkdtemp(root) != NULL);
    int base = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_ASSERT(base >= 0 && mkdirat(base, "project", 0755) == 0 && mkdirat(base, "victim", 0755) == 0);
    int secret = openat(base, "victim/secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    FUZZ_ASSERT(secret >= 0 && write(secret, "secret", 6) == 6);
    close(secret);
    setenv("XDG_STATE_HOME", root, 1);
    int project = openat(base, "project", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    build(&f, project, false);
    snprintf(path, sizeof(path), "%s/project", root);
    FUZZ_ASSERT(cow_create(path, ID, none, &state, &err) == 0);
    int upper = openat(state.dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    build(&f, upper, true);
    close(upper);
    run(&state, project, base);
    FUZZ_ASSERT(cow_discard(&state, &err) == 0);
    close(project);
    static const char *const made[] = { "project", "victim", "cloche" };
    for (size_t i = 0; i < 3; i++)
        FUZZ_ASSERT(tree_remove(base, made[i], &err) == 0);
    close(base);
    FUZZ_ASSERT(rmdir(root) == 0);
    return 0;
}
