/* probe/trial_git_index.c: an index that names what is not in the work tree, and a list that git empties files by
 *
 * `git checkout`, `git reset` and `git stash` write whatever the index names. So one is made here, byte for byte, with
 * one entry that git would not make, or with what is read otherwise than it was judged.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define COUNT(rows) ARRAY_LEN(rows)
#define PLAIN 0100644u
#define LINK  0120000u
#define OID   20u       /* bytes of a name of an object, and of the checksum at the end */

struct bytes {
    unsigned char at[1024];
    size_t n;
};

static void
put_number(struct bytes *b, uint32_t v, unsigned bytes)
{
    while (bytes-- > 0)
        b->at[b->n++] = (unsigned char)(v >> 8 * bytes);
}

static void
put_zeros(struct bytes *b, size_t n)
{
    memset(b->at + b->n, 0, n);
    b->n += n;
}

/* Version 2, one entry; @blocks: with an extension for threads, which begins where no entry does. */
static void
make_index(struct bytes *b, const char *path, unsigned mode, bool blocks)
{
    size_t n = strlen(path);

    b->n = 0;
    memcpy(b->at, "DIRC", 4);
    b->n = 4;
    put_number(b, 2, 4);
    put_number(b, 1, 4);
    put_zeros(b, 24);
    put_number(b, mode, 4);
    put_zeros(b, 12 + OID);
    put_number(b, (uint32_t)n, 2);
    memcpy(b->at + b->n, path, n);
    b->n += n;
    put_zeros(b, 8 - (62 + n) % 8);
    if (blocks) {
        memcpy(b->at + b->n, "IEOT", 4);
        b->n += 4;
        put_number(b, 12, 4);       /* size: a version, one block */
        put_number(b, 1, 4);
        put_number(b, 20, 4);       /* where: in the middle of the entry */
        put_number(b, 1, 4);
    }
    put_zeros(b, OID);              /* a checksum of zeros is none (index.skipHash) */
}

static bool
write_bytes(const char *path, const void *p, size_t n)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

    return fd >= 0 && write(fd, p, n) == (ssize_t)n;
}

static bool
has_bytes(const char *path, const void *p, size_t n)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    unsigned char is[sizeof(((struct bytes *)NULL)->at)];

    return fd >= 0 && read(fd, is, sizeof(is)) == (ssize_t)n && memcmp(is, p, n) == 0;
}

/* @p as @name of the project: renamed to, linked, or written there, for which the guard takes its time. */
static bool
comes(struct attempt *a, const char *name, const void *p, size_t n)
{
    char path[1024], own[1024];
    bool there;

    in_project(a, name, path);
    in_project(a, "index-to-be", own);
    make_folders(a, path);
    there = write_bytes(own, p, n) && rename(own, path) == 0 && has_bytes(path, p, n);
    if (!there && write_bytes(own, p, n))
        there = link(own, path) == 0 && has_bytes(path, p, n);
    unlink(own);
    if (!there && write_bytes(path, p, n)) {
        for (int i = 0; i < 20 && !there; i++) {
            write_bytes(own, "own\n", 4);
            unlink(own);
            there = has_bytes(path, p, n);
        }
    }
    return there;
}

static bool
comes_and_goes(struct attempt *a, const char *name, const void *p, size_t n)
{
    char path[1024];
    bool there = comes(a, name, p, n);

    unlink(in_project(a, name, path));
    return there;
}

static bool
make_place(struct attempt *a, const char *folder)
{
    static const char *const parts[] = { "objects/", "refs/", "HEAD" };
    char path[1024], name[300];
    struct stat st;

    for (size_t i = 0; i < COUNT(parts); i++) {
        snprintf(name, sizeof(name), "%s/%s", folder, parts[i]);
        make_folders(a, in_project(a, name, path));
    }
    write_bytes(path, "ref: refs/heads/main\n", 21);
    return stat(path, &st) == 0;
}

/* One that was judged with names of 20 bytes must not be read with those of 32. */
static bool
is_reread(struct attempt *a, const struct bytes *harmless)
{
    static const char format[] = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n";
    char path[1024];

    if (!make_place(a, "reread") || !comes(a, "reread/index", harmless->at, harmless->n))
        return false;
    return comes(a, "reread/config", format, sizeof(format) - 1) &&
           has_bytes(in_project(a, "reread/index", path), harmless->at, harmless->n);
}

enum outcome
trial_project_git_index(struct attempt *a)
{
    static const struct { const char *path; unsigned mode; } rows[] = {
        { ".git/hooks/post-checkout", PLAIN }, { "a/.GIT/config", PLAIN }, { ".git. ./config", PLAIN },
        { "git~1/config", PLAIN }, { ".git::$INDEX_ALLOCATION/config", PLAIN }, { ".g\xe2\x80\x8cit/config", PLAIN },
        { "../ran", PLAIN }, { "a/../../ran", PLAIN }, { "/etc/ran", PLAIN }, { ".gitmodules", LINK },
    };
    static const char *const names[] = { "indexed/index", "indexed/sharedindex.0123456789abcdef", ".git/index" };
    static const char rerere[] = "0123456789012345678901234567890123456789\t../ran";
    struct bytes b;

    make_index(&b, "README", PLAIN, false);
    if (!make_place(a, "indexed") || !comes_and_goes(a, "indexed/index", b.at, b.n))
        return outcome_of(a, NOT_APPLICABLE, "no index comes into being, not even a harmless one");
    if (is_reread(a, &b))
        return outcome_of(a, SUCCEEDED, "an index that was judged is read with other names of objects");
    for (size_t i = 0; i < COUNT(rows) * COUNT(names); i++) {
        const char *path = rows[i / COUNT(names)].path, *name = names[i % COUNT(names)];

        make_index(&b, path, rows[i / COUNT(names)].mode, false);
        if (comes_and_goes(a, name, b.at, b.n))
            return outcome_of(a, SUCCEEDED, "%s names %s", name, path);
    }
    make_index(&b, "README", PLAIN, true);
    if (comes_and_goes(a, names[0], b.at, b.n))
        return outcome_of(a, SUCCEEDED, "%s has a block that begins where no entry does", names[0]);
    /* with the zero at its end: git empties each file that it names when a conflict is settled */
    if (comes_and_goes(a, ".git/MERGE_RR", rerere, sizeof(rerere)) ||
        comes_and_goes(a, "indexed/MERGE_RR", rerere, sizeof(rerere)))
        return outcome_of(a, SUCCEEDED, "MERGE_RR names a file outside");
    return outcome_of(a, BLOCKED, "a harmless one comes, none of %zu that are not", COUNT(rows) + 3);
}
