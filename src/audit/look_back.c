/* audit/look_back.c: is what was written last still there?
 *
 * No chain shows that its end was cut off, or that all of it is another one, but who wrote there before knows how far
 * it was. The entry that they wrote last is looked for by its number and must have its hash, with which the entries
 * before it are what they were or break the chain. One of a file that was let go meanwhile cannot be compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/store_priv.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"

#define ROOM (4 * AUDIT_LINE_MAX)

enum { FOUND_NOT, FOUND_THERE, FOUND_OLDER };

static ssize_t
read_at(int fd, uint64_t at, uint64_t end, char *room)
{
    return io_pread(fd, room, end - at < ROOM ? (size_t)(end - at) : ROOM, at);
}

/* The number that a line says; 0: none. */
static uint64_t
number_of(struct str line)
{
    static const char before[] = "{\"seq\":";
    const size_t n = sizeof(before) - 1;
    const char *comma = line.n > n && memcmp(line.p, before, n) == 0 ? memchr(line.p + n, ',', line.n - n) : NULL;
    uint64_t seq;

    return comma != NULL && str_parse_u64((struct str){ line.p + n, (size_t)(comma - line.p) - n }, INT64_MAX, &seq)
               ? seq : 0;
}

static bool
is_it(struct str text, const struct audit_head *sought)
{
    struct audit_line line;

    return audit_parse(text, &line) && audit_hash_holds(&line, text) && line.seq == sought->seq &&
           memcmp(line.hash, sought->hash, AUDIT_HASH) == 0;
}

/* The entry among the whole lines of @room. */
static bool
is_among(const char *room, size_t n, const struct audit_head *sought)
{
    const char *newline;

    for (size_t at = 0; at < n && (newline = memchr(room + at, '\n', n - at)) != NULL;) {
        struct str text = { room + at, (size_t)(newline - room) - at };
        if (number_of(text) == sought->seq)
            return is_it(text, sought);
        at += text.n + 1;
    }
    return false;
}

/* Numbers grow: half of what is left at each look. Where they do not, somebody else wrote there: it is not found. */
static int
look_in(int fd, uint64_t size, const struct audit_head *sought, struct err *err)
{
    cleanup_free char *room = malloc(ROOM);
    uint64_t low = 0, high = size;
    ssize_t n;

    if (room == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    while (high - low > ROOM) {
        uint64_t middle = low + (high - low) / 2;
        const char *newline;
        n = read_at(fd, middle, high, room);
        newline = n > 0 ? memchr(room, '\n', (size_t)n) : NULL;
        if (n < 0)
            return err_sys(err, errno, "audit.read", "read the audit record");
        if (newline == NULL || newline + 1 == room + n)
            return FOUND_NOT;   /* a line that is too long */
        newline++;
        if (number_of((struct str){ newline, (size_t)(room + n - newline) }) <= sought->seq)
            low = middle + (uint64_t)(newline - room);
        else
            high = middle + (uint64_t)(newline - room);
    }
    n = read_at(fd, low, high, room);
    if (n < 0)
        return err_sys(err, errno, "audit.read", "read the audit record");
    return is_among(room, (size_t)n, sought) ? FOUND_THERE : FOUND_NOT;
}

/* Among the full files. */
static int
look_in_full(int dir, const struct audit_head *sought, struct err *err)
{
    static uint64_t firsts[STORE_FILES_MAX];
    ssize_t n = store_list(dir, firsts, STORE_FILES_MAX, err);
    char name[STORE_NAME_MAX];
    cleanup_close int fd = -1;
    struct stat st;

    if (n < 0)
        return -1;
    while (n > 0 && firsts[n - 1] > sought->seq)
        n--;
    if (n == 0)
        return FOUND_OLDER;
    store_name(firsts[n - 1], name);
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "audit.read", "look at the audit record's %s", name);
    return look_in(fd, (uint64_t)st.st_size, sought, err);
}

static int
look(struct audit *a, uint64_t size, struct err *err)
{
    const struct audit_head *sought = &a->last, *end = &a->head;
    int dir = store_dir(a, err);
    uint64_t first;

    if (dir < 0)
        return -1;
    if (end->seq < sought->seq)
        return FOUND_NOT;
    if (end->seq == sought->seq)
        return memcmp(end->hash, sought->hash, AUDIT_HASH) == 0 ? FOUND_THERE : FOUND_NOT;
    if (size == 0 || !store_first(a->fd, &first) || first > sought->seq)
        return look_in_full(dir, sought, err);
    return look_in(a->fd, size, sought, err);
}

int
store_look_back(struct audit *a, uint64_t size, struct err *err)
{
    char hex[AUDIT_HASH_TEXT + 1];
    struct audit_entry e;
    int found = a->last.seq > 0 ? look(a, size, err) : FOUND_THERE;

    if (found < 0 || found == FOUND_THERE)
        return found < 0 ? -1 : 0;
    a->missed = true;
    a->missing = (struct audit_missing){ .seq = a->last.seq, .left = a->head.seq, .older = found == FOUND_OLDER };
    sha256_text(a->last.hash, hex);
    if (found == FOUND_OLDER)
        audit_capability(&e, NULL, "audit_uncompared", "the record kept newer entries only: whether what was written "
                         "last was in it is not known");
    else
        audit_capability(&e, NULL, "audit_cut", "the end of the record, or all of it, was removed or rewritten");
    e.severity = found == FOUND_OLDER ? AUDIT_WARN : AUDIT_CRITICAL;
    audit_put_number(&e, "written", (int64_t)a->last.seq);
    audit_put_cstr(&e, "hash", hex);
    audit_put_number(&e, "left", (int64_t)a->head.seq);
    if (a->rebooted)
        audit_put_bool(&e, "rebooted", true);
    return store_note(a, &e, err);
}
