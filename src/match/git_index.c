/* match/git_index.c: see git_index.h; the reader follows git's read-cache.c, and refuses what no git writes */
#include "match/git_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "match/git_config.h"

#define HEADER       12u        /* "DIRC", version, number of entries */
#define STAT_BYTES   40u        /* of an entry, before the object's name */
#define FLAG_MORE    0x4000u    /* two bytes more of flags follow */
#define FLAG_LENGTH  0x0fffu
#define MORE_KNOWN   0x6000u    /* of those two: skip-worktree, intent-to-add */
#define EXTENSION    8u         /* signature and size */
#define TYPE         0170000u
#define TYPE_DIR     0040000u   /* of a sparse index: the whole directory */
#define TYPE_LINK    0120000u

struct index {
    const unsigned char *p;
    size_t end;                 /* where the checksum begins */
    size_t oid;
    unsigned version;
    uint32_t n;                 /* entries */
    char path[GIT_INDEX_PATH + 1];
    size_t path_n;              /* of the entry before: version 4 says only what is different */
    size_t shared;              /* bytes that an entry has of the one before */
};

static uint32_t
be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned
be16(const unsigned char *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* --- paths */

/* Of characters that are not ASCII some do, to some file systems. */
static bool
counts_for_nothing(char c)
{
    return ((unsigned char)c & 0x80) != 0;
}

/* Whether some file system takes the name for `.git`: in either case, with dots and blanks at its end, a stream, by its
 * short name, or with characters in it that count for nothing. */
static bool
like_dot_git(const char *p, size_t n)
{
    static const char *const names[] = { ".git", "git~1" };

    for (size_t i = 0; i < 2; i++) {
        const char *want = names[i];
        size_t at = 0;

        while (at < n && (counts_for_nothing(p[at]) || (*want != '\0' && ascii_lower(p[at]) == *want)))
            want += !counts_for_nothing(p[at++]);
        while (at < n && *want == '\0' && (counts_for_nothing(p[at]) || p[at] == '.' || p[at] == ' '))
            at++;
        if (*want == '\0' && (at == n || p[at] == ':' || p[at] == '\\'))
            return true;
    }
    return false;
}

static bool
is_gitmodules(const char *p, size_t n)
{
    static const char want[] = ".gitmodules";

    if (n != sizeof(want) - 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ascii_lower(p[i]) != want[i])
            return false;
    return true;
}

/* An empty one stands in a split index for what the shared part has. */
static bool
path_harmless(const char *p, size_t n, unsigned mode)
{
    if (n > 0 && (mode & TYPE) == TYPE_DIR)
        n -= p[n - 1] == '/';
    for (size_t i = 0; i < n || (i == n && n > 0);) {
        const char *slash = memchr(p + i, '/', n - i);
        size_t end = slash != NULL ? (size_t)(slash - p) : n, name = end - i;

        if (name == 0 || (name <= 2 && memcmp(p + i, "..", name) == 0) || like_dot_git(p + i, name) ||
            ((mode & TYPE) == TYPE_LINK && is_gitmodules(p + i, name)))
            return false;
        i = end + 1;
    }
    return true;
}

/* --- entries */

/* How much of the last path version 4 takes away, as git's varint.c reads it. */
static bool
read_strip(const struct index *x, size_t *at, size_t *strip)
{
    unsigned char c;

    if (*at >= x->end)
        return false;
    c = x->p[(*at)++];
    for (*strip = c & 127u; (c & 128) != 0; *strip = (*strip << 7) + (c & 127u)) {
        if (*at >= x->end || ++*strip > GIT_INDEX_PATH)
            return false;
        c = x->p[(*at)++];
    }
    return *strip <= x->path_n;
}

/* One entry at *@at, which becomes where the next begins. */
static bool
read_entry(struct index *x, size_t *at)
{
    size_t head = STAT_BYTES + x->oid + 2, from = *at, keep = 0, strip = 0;
    const unsigned char *nul;

    if (x->end - from < head + 2)
        return false;
    unsigned mode = be32(x->p + from + 24), flags = be16(x->p + from + head - 2);
    if ((flags & FLAG_MORE) != 0) {
        if (x->version < 3 || (be16(x->p + from + head) & ~MORE_KNOWN) != 0)
            return false;
        head += 2;
    }
    *at = from + head;
    if (x->version == 4) {
        if (!read_strip(x, at, &strip))
            return false;
        keep = x->path_n - strip;
    }
    nul = memchr(x->p + *at, '\0', x->end - *at);
    size_t more = nul != NULL ? (size_t)(nul - x->p) - *at : SIZE_MAX, n = keep + more;
    if (nul == NULL || more > GIT_INDEX_PATH - keep || (flags & FLAG_LENGTH) != (n < FLAG_LENGTH ? n : FLAG_LENGTH))
        return false;
    memcpy(x->path + keep, x->p + *at, more);
    x->path_n = n;
    x->shared = keep;
    *at = x->version == 4 ? *at + more + 1 : from + ((head + n + 8) & ~(size_t)7);
    return *at <= x->end && path_harmless(x->path, n, mode);
}

/* --- extensions */

/* Blocks that threads read each by itself: they must begin where entries do, with whole paths. */
static bool
blocks_harmless(struct index *x, const unsigned char *p, size_t size)
{
    size_t at = HEADER, left = 0, blocks = 0;

    if (size < 4 || (size - 4) % 8 != 0 || be32(p) != 1)
        return false;
    x->path_n = 0;
    for (uint32_t i = 0; i < x->n; i++, left--) {
        size_t from = at;

        if (left == 0) {
            if (blocks == (size - 4) / 8 || be32(p + 4 + 8 * blocks) != from)
                return false;
            left = be32(p + 8 + 8 * blocks++);
        }
        bool first = left == be32(p + 8 * blocks);
        if (left == 0 || !read_entry(x, &at) || (first && x->shared > 0))
            return false;
    }
    return left == 0 && blocks == (size - 4) / 8;
}

/* What follows the entries, which end at @at. */
static bool
extensions_harmless(struct index *x, size_t at)
{
    const size_t ends = at, eoie = EXTENSION + 4 + x->oid;
    bool said = false;

    while (x->end - at > 0) {
        if (x->end - at < EXTENSION || be32(x->p + at + 4) > x->end - at - EXTENSION)
            return false;
        const unsigned char *data = x->p + at + EXTENSION;
        size_t size = be32(x->p + at + 4);
        if (memcmp(x->p + at, "IEOT", 4) == 0 && !blocks_harmless(x, data, size))
            return false;
        if (memcmp(x->p + at, "link", 4) == 0 && size < x->oid)
            return false;
        /* where the entries end; git looks for it from the file's end */
        if (memcmp(x->p + at, "EOIE", 4) == 0) {
            said = x->end - at == eoie;
            if (!said || size != 4 + x->oid || be32(data) != ends)
                return false;
        }
        at += EXTENSION + size;
    }
    return said || x->end < HEADER + eoie || memcmp(x->p + x->end - eoie, "EOIE", 4) != 0;
}

bool
git_index_harmless(struct str text, size_t oid)
{
    cleanup_free struct index *x = malloc(sizeof(*x));
    size_t at = HEADER;

    if (x == NULL || text.n < HEADER + oid || text.n > GIT_INDEX_MAX || memcmp(text.p, "DIRC", 4) != 0)
        return false;
    *x = (struct index){ .p = (const unsigned char *)text.p, .end = text.n - oid, .oid = oid };
    x->version = be32(x->p + 4);
    x->n = be32(x->p + 8);
    if (x->version < 2 || x->version > 4)
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!read_entry(x, &at))
            return false;
    return extensions_harmless(x, at);
}

size_t
git_oid_bytes(struct str text)
{
    cleanup_free struct git_config_reader *r = malloc(sizeof(*r));
    struct git_config_entry e;
    size_t oid = GIT_OID_BYTES;

    if (r == NULL)
        return oid;
    git_config_open(r, text);
    while (git_config_next(r, &e) > 0)
        if (str_eq_c(e.key, "extensions.objectformat"))
            oid = str_eq_c(e.value, "sha256") ? 32 : GIT_OID_BYTES;
    return oid;
}
