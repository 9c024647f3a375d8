/* guest/guard_rules_init.c: the plan's paths as names in directories (see guard_rules.c) */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest/guard_rules.h"

#define NO_DIR UINT32_MAX

static int
find_dir(struct rules *r, const char *path, size_t n)
{
    struct name_dir *bigger;

    for (size_t i = 0; i < r->n_dirs; i++)
        if (strlen(r->dirs[i].path) == n && memcmp(r->dirs[i].path, path, n) == 0)
            return (int)i;
    bigger = reallocarray(r->dirs, r->n_dirs + 1, sizeof(*bigger));
    if (bigger == NULL)
        return -1;
    r->dirs = bigger;
    bigger[r->n_dirs] = (struct name_dir){ .path = strndup(path, n) };
    if (bigger[r->n_dirs].path == NULL)
        return -1;
    return (int)r->n_dirs++;
}

/* By its bytes: where two spellings of a name are two files, each is a place of its own, in whichever root. Who asks
 * for one of them meets all (rules_next_entry). */
static struct name_entry *
find_entry(struct rules *r, uint32_t dir, const char *name, size_t n, const char *rule)
{
    struct name_entry *bigger, *e;

    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].dir == dir && strlen(r->entries[i].name) == n && memcmp(r->entries[i].name, name, n) == 0)
            return &r->entries[i];
    bigger = reallocarray(r->entries, r->n_entries + 1, sizeof(*bigger));
    if (bigger == NULL)
        return NULL;
    r->entries = bigger;
    e = &bigger[r->n_entries];
    *e = (struct name_entry){ .name = strndup(name, n), .hash = name_hash(name, n), .dir = dir, .child = NO_DIR,
                              .rule = strdup(rule) };
    if (e->name == NULL || e->rule == NULL) {
        free(e->name);
        free(e->rule);
        return NULL;
    }
    r->n_entries++;
    return e;
}

static void
add_roots(struct guard_roots *to, const struct guard_roots *more)
{
    for (size_t i = 0; i < GUARD_ROOTS_MAX / 64; i++)
        to->word[i] |= more->word[i];
}

static int
add_rule(struct rules *r, const struct guard_rule *rule)
{
    const char *p = rule->path;
    int dir = find_dir(r, "", 0);

    for (;;) {
        size_t n = strcspn(p, "/"), at = (size_t)(p - rule->path) + n;
        struct name_entry *e;
        int child;

        if (dir < 0)
            return -1;
        add_roots(&r->dirs[dir].in, &rule->in);
        e = find_entry(r, (uint32_t)dir, p, n, rule->path);
        if (e == NULL)
            return -1;
        if (p[n] == '\0') {
            add_roots(rule->allow ? &e->allow : &e->protect, &rule->in);
            if (rule->own)
                add_roots(&e->own, &rule->in);
            return 0;
        }
        child = find_dir(r, rule->path, at);
        if (child < 0)
            return -1;
        e->child = (uint32_t)child;
        if (!rule->allow)
            add_roots(&e->interior, &rule->in);
        dir = child;
        p += n + 1;
    }
}

static int
build_table(struct rules *r)
{
    size_t size = 16;

    while (size < 2 * r->n_entries)
        size *= 2;
    r->table = calloc(size, sizeof(*r->table));
    if (r->table == NULL)
        return -1;
    r->table_mask = size - 1;
    for (size_t i = 0; i < r->n_entries; i++) {
        size_t at = r->entries[i].hash & r->table_mask;

        /* said both ways about the same name: closed */
        for (size_t k = 0; k < GUARD_ROOTS_MAX / 64; k++)
            r->entries[i].allow.word[k] &= ~r->entries[i].protect.word[k];

        while (r->table[at] != 0)
            at = (at + 1) & r->table_mask;
        r->table[at] = (uint32_t)i + 1;
    }
    return 0;
}

/* Whether what is held open there keeps the inode number that it has. A file system that makes numbers of names (FUSE,
 * network file systems) may change one when the host renames the directory. */
static bool
keeps_numbers(int fd)
{
    static const unsigned long known[] = {
        EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
    };
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((unsigned long)fs.f_type == known[i])
            return true;
    return false;
}

int
rules_init(struct rules *r, const struct guard_plan *plan, struct err *err)
{
    r->roots = calloc(plan->n_roots + 1, sizeof(*r->roots));
    if (r->roots == NULL)
        return err_sys(err, errno, "memory", "the name guard");
    for (size_t i = 0; i < plan->n_roots; i++) {
        const char *path = plan->roots[i];
        struct stat st;

        r->roots[i].path = strdup(path);
        r->roots[i].fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r->n_roots = i + 1;
        if (r->roots[i].fd < 0 || fstat(r->roots[i].fd, &st) < 0)
            return err_sys(err, errno, "guard.root", "guarded tree %s", path);
        if (r->roots[i].path == NULL)
            return err_sys(err, ENOMEM, "memory", "the name guard");
        r->roots[i].id = ident_of(&st);
        r->roots[i].keeps = keeps_numbers(r->roots[i].fd);
    }
    for (size_t i = 0; i < plan->n_rules; i++)
        if (add_rule(r, &plan->rules[i]) < 0)
            return err_sys(err, errno, "memory", "the name guard");
    r->looked.dirs = calloc(r->n_dirs + 1, 1);
    if (r->looked.dirs == NULL || build_table(r) < 0)
        return err_sys(err, errno, "memory", "the name guard");
    return 0;
}

void
rules_free(struct rules *r)
{
    rules_moved(r);
    for (size_t i = 0; i < r->n_roots; i++) {
        close_fd(&r->roots[i].fd);
        free(r->roots[i].path);
    }
    for (size_t i = 0; i < r->n_dirs; i++)
        free(r->dirs[i].path);
    for (size_t i = 0; i < r->n_entries; i++) {
        free(r->entries[i].name);
        free(r->entries[i].rule);
    }
    free(r->roots);
    free(r->dirs);
    free(r->entries);
    free(r->table);
    free(r->looked.dirs);
    *r = (struct rules){ 0 };
}
