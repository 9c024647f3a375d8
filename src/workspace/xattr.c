/* workspace/xattr.c: see xattr.h */
#include "workspace/xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define ACL "system.posix_acl_access"

/* The kernel's own ceilings. */
#define LIST_MAX  65536
#define VALUE_MAX 65536

static bool
travels(const char *name)
{
    struct str s = str_of(name);

    return str_starts(s, STR_LIT("user.")) && !str_starts(s, STR_LIT("user.overlay.")) &&
           !str_starts(s, STR_LIT("user.fuseoverlayfs.")) && !str_starts(s, STR_LIT("user.cloche."));
}

/* All names of @fd, each with its NUL, malloc'ed. Bytes, or -1. */
static ssize_t
names_of(int fd, char **out)
{
    char *text = malloc(LIST_MAX);
    ssize_t n = text != NULL ? flistxattr(fd, text, LIST_MAX) : -1;

    if (n < 0) {
        free(text);
        text = NULL;
        if (errno == EOPNOTSUPP)
            n = 0;
    }
    *out = text;
    return n;
}

static bool
value_same(int a, int b, const char *name, char *va, char *vb)
{
    ssize_t na = fgetxattr(a, name, va, VALUE_MAX), nb = fgetxattr(b, name, vb, VALUE_MAX);

    return na == nb && (na <= 0 || memcmp(va, vb, (size_t)na) == 0);
}

/* Whether every travelling attribute of @a is on @b too; how many there are in @count. */
static bool
covered(int a, int b, size_t *count)
{
    cleanup_free char *names = NULL;
    cleanup_free char *va = NULL;
    cleanup_free char *vb = NULL;
    ssize_t n = names_of(a, &names);

    *count = 0;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) {
        if (!travels(names + i))
            continue;
        ++*count;
        if (va == NULL) {
            va = malloc(VALUE_MAX);
            vb = malloc(VALUE_MAX);
        }
        if (va == NULL || vb == NULL || !value_same(a, b, names + i, va, vb))
            return false;
    }
    return n >= 0;
}

bool
xattr_same(int a, int b)
{
    size_t na, nb;

    return covered(a, b, &na) && covered(b, a, &nb) && na == nb;
}

bool
xattr_lost(int fd, int lower)
{
    cleanup_free char *names = NULL;
    ssize_t n = names_of(fd, &names);

    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1) {
        const char *name = names + i;
        if (strcmp(name, "security.capability") == 0 || str_starts(str_of(name), STR_LIT("user.overlay.overlay.")))
            return true;
        if (strcmp(name, ACL) == 0) {
            cleanup_free char *va = malloc(VALUE_MAX);
            cleanup_free char *vb = malloc(VALUE_MAX);
            if (va == NULL || vb == NULL || lower < 0 || !value_same(fd, lower, name, va, vb))
                return true;
        }
    }
    return false;
}

static int
copy_one(int from, int to, const char *name)
{
    cleanup_free char *value = malloc(VALUE_MAX);

    if (value == NULL)
        return -1;
    ssize_t n = fgetxattr(from, name, value, VALUE_MAX);
    if (n < 0)
        return errno == ENODATA ? 0 : -1;
    return fsetxattr(to, name, value, (size_t)n, 0);
}

int
xattr_copy(int from, int to)
{
    cleanup_free char *names = NULL;
    ssize_t n = names_of(from, &names);

    if (n < 0)
        return -1;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
        if (travels(names + i) && copy_one(from, to, names + i) < 0 && errno != EOPNOTSUPP)
            return -1;
    return 0;
}

void
xattr_keep(int project_file, int to)
{
    (void)copy_one(project_file, to, ACL);
    (void)copy_one(project_file, to, "security.selinux");
}

/* Attributes of an entry that may be of any type: through its O_PATH descriptor. */
static ssize_t
entry_value(int dir, const char *name, const char *attribute, char *value, size_t n)
{
    char path[32];
    cleanup_close int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return getxattr(path, attribute, value, n);
}

char
xattr_overlay_mark(int dir, const char *name, const char *mark)
{
    char attribute[64], value[2];

    snprintf(attribute, sizeof(attribute), "user.overlay.%s", mark);
    ssize_t n = entry_value(dir, name, attribute, value, sizeof(value));
    return n == 1 ? value[0] : '\0';
}

bool
xattr_overlay_origin(int dir, const char *name)
{
    return entry_value(dir, name, "user.overlay.origin", NULL, 0) >= 0;
}
