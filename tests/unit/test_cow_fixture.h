/* A project and an upper layer made by hand, as overlayfs would have left it. Every test has its own, below /tmp or in
 * memory. */
#ifndef CLOCHE_TEST_COW_FIXTURE_H
#define CLOCHE_TEST_COW_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/apply.h"
#include "memory_dir.h"
#include "workspace/tree.h"

#define FIXTURE_ID "00112233445566778899aabbccddeeff"

struct fixture {
    char root[64];              /* holds project/ and state/ */
    int root_fd, project, upper;
    struct cow_state state;
    struct changes c;
    struct diff_input in;
};

static const char *const fixture_names[] = { ".git/hooks", ".git/config", ".vscode", ".bashrc", NULL };
static const char *const fixture_places[] = { "keys/id" };
static const struct protect fixture_protect = { fixture_names, 4, fixture_places, 1 };

static inline int
fixture_setup_at(void **state, bool in_memory)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char path[128];

    assert_non_null(f);
    f->state = (struct cow_state)COW_STATE_INIT;
    f->upper = -1;
    snprintf(f->root, sizeof(f->root), "/tmp/cow-unit-XXXXXX");
    assert_non_null(in_memory ? memory_dir(f->root, sizeof(f->root), "cow-unit") : mkdtemp(f->root));
    f->root_fd = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(f->root_fd, "project", 0755), 0);
    assert_int_equal(mkdirat(f->root_fd, "state", 0700), 0);
    f->project = openat(f->root_fd, "project", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/state", f->root);
    setenv("XDG_STATE_HOME", path, 1);
    *state = f;
    return 0;
}

static inline int
fixture_setup(void **state)
{
    return fixture_setup_at(state, false);
}

/* For thousands of entries. */
static inline int
fixture_setup_in_memory(void **state)
{
    return fixture_setup_at(state, true);
}

static inline int
fixture_teardown(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    changes_free(&f->c);
    close_fd(&f->upper);
    close_fd(&f->project);
    cow_close(&f->state);
    if (tree_remove(f->root_fd, "project", &err) < 0 || tree_remove(f->root_fd, "state", &err) < 0)
        fail_msg("%s", err.msg);
    close_fd(&f->root_fd);
    assert_int_equal(rmdir(f->root), 0);
    free(f);
    return 0;
}

/* The project is as the run found it: from here on put into f->upper. */
static inline void
fixture_run(struct fixture *f)
{
    struct err err = ERR_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/project", f->root);
    if (cow_create(path, FIXTURE_ID, fixture_names, &f->state, &err) < 0)
        fail_msg("%s", err.msg);
    f->upper = openat(f->state.dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->upper >= 0);
    f->in = (struct diff_input){ .project = f->project, .layers = f->state.dir_fd, .since = f->state.created,
                                 .protect = &fixture_protect };
}

static inline void
put(int dir, const char *path, const char *text)
{
    cleanup_close int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, 0644), 0);
}

static inline void
folder(int dir, const char *path)
{
    assert_int_equal(mkdirat(dir, path, 0755), 0);
    assert_int_equal(fchmodat(dir, path, 0755, 0), 0);
}

static inline void
whiteout(int dir, const char *path)
{
    assert_int_equal(mknodat(dir, path, S_IFCHR, makedev(0, 0)), 0);
}

static inline void
mark(int dir, const char *path, const char *name, const char *value)
{
    cleanup_close int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fsetxattr(fd, name, value, strlen(value), 0), 0);
}

static inline void
expect(int dir, const char *path, const char *text)
{
    cleanup_buf struct buf b = BUF_INIT(1 << 20);
    cleanup_close int fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (text == NULL) {
        struct stat st;
        assert_int_equal(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), -1);
        return;
    }
    assert_true(fd >= 0);
    assert_int_equal(io_read_all(fd, &b), 0);
    assert_int_equal(b.n, strlen(text));
    assert_memory_equal(b.p, text, b.n);
}

static inline mode_t
mode_of(int dir, const char *path)
{
    struct stat st;
    assert_int_equal(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode;
}

static inline void
scan(struct fixture *f)
{
    struct err err = ERR_INIT;

    changes_free(&f->c);
    if (diff_scan(&f->in, &f->c, &err) < 0 || diff_renames(&f->in, &f->c, &err) < 0)
        fail_msg("%s", err.msg);
}

/* Which change is that of @path; CHANGE_NOT when there is none. */
static inline size_t
find(const struct fixture *f, const char *path)
{
    cleanup_buf struct buf b = BUF_INIT(1 << 20);

    for (size_t i = change_next(&f->c, 0); i != CHANGE_NOT; i = change_next(&f->c, i)) {
        assert_int_equal(change_path(&f->c, i, &b), 0);
        if (strcmp((char *)b.p, path) == 0)
            return i;
    }
    return CHANGE_NOT;
}

/* The change of @path, which must be there. */
static inline const struct change *
change(const struct fixture *f, const char *path)
{
    size_t i = find(f, path);

    if (i == CHANGE_NOT)
        fail_msg("no change of %s", path);
    return &f->c.v[i];
}

static inline size_t
count_changes(const struct fixture *f)
{
    size_t n = 0;
    for (size_t i = change_next(&f->c, 0); i != CHANGE_NOT; i = change_next(&f->c, i))
        n++;
    return n;
}

#endif
