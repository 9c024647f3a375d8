/* paths and globs: normal once is normal for ever; nothing leaves the root; a cover is a match of a parent */
#include "fuzz.h"

#include <string.h>

#include "match/path.h"

static void
check_normal(const char *path, size_t n)
{
    char again[PATH_TEXT_MAX + 1];
    size_t m;

    FUZZ_ASSERT(n > 0 && n <= PATH_TEXT_MAX && path[0] == '/' && path[n] == '\0' && strlen(path) == n);
    FUZZ_ASSERT(n == 1 || path[n - 1] != '/');
    FUZZ_ASSERT(strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL);
    FUZZ_ASSERT(path_normalise((struct str){ path, n }, (struct str){ NULL, 0 }, false, again, sizeof(again), &m) ==
                PATH_OK);
    FUZZ_ASSERT(m == n && memcmp(path, again, n) == 0);
}

/* @path below @root: no more than it was, and in that form again. */
static void
check_below(struct str root, struct str path)
{
    char at[512], one[4096], two[4096];

    if (root.n >= sizeof(at) || path.n + 2 > sizeof(one) || memchr(root.p, 0, root.n) != NULL ||
        memchr(path.p, 0, path.n) != NULL)
        return;
    memcpy(at, root.p, root.n);
    memcpy(one, path.p, path.n);
    at[root.n] = one[path.n] = '\0';
    path_below(at, one);
    FUZZ_ASSERT(one[0] != '\0' && (strlen(one) <= path.n || strcmp(one, ".") == 0));
    FUZZ_ASSERT(strstr(one, "//") == NULL && strstr(one, "/./") == NULL && strncmp(one, "./", 2) != 0);
    FUZZ_ASSERT(strlen(one) == 1 || one[strlen(one) - 1] != '/');
    memcpy(two, one, sizeof(one));
    path_below("", two);
    FUZZ_ASSERT(strcmp(one, two) == 0);
}

/* "PATTERN NUL PATH" */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *nul = n > 0 ? memchr(data, 0, n) : NULL;
    struct str pattern = { (const char *)data, nul != NULL ? (size_t)(nul - data) : n };
    struct str path = { (const char *)(nul != NULL ? nul + 1 : data), nul != NULL ? n - pattern.n - 1 : n };
    char glob[PATH_TEXT_MAX + 1], normal[PATH_TEXT_MAX + 1];
    size_t glob_n, normal_n, depth;

    check_below(pattern, path);
    path_glob_match(pattern, path);     /* any bytes: no crash, and it ends */
    if (path_normalise(pattern, STR_LIT("/ba[s]e"), true, glob, sizeof(glob), &glob_n) != PATH_OK)
        return 0;
    if (path_normalise(path, STR_LIT("/ba[s]e"), false, normal, sizeof(normal), &normal_n) != PATH_OK)
        return 0;
    check_normal(normal, normal_n);
    pattern = (struct str){ glob, glob_n };
    path = (struct str){ normal, normal_n };
    FUZZ_ASSERT(path_glob_prefix(pattern) <= glob_n);
    if (path_covers(pattern, false, path, &depth)) {
        FUZZ_ASSERT(depth <= normal_n && (depth == normal_n || depth == 1 || normal[depth] == '/'));
        FUZZ_ASSERT(path_within(path, (struct str){ normal, depth }));
        if (path_has_glob(pattern))
            FUZZ_ASSERT(path_glob_match(pattern, (struct str){ normal, depth }));
    } else {
        FUZZ_ASSERT(!path_glob_match(pattern, path));
    }
    FUZZ_ASSERT(path_covers(path, true, path, &depth) && depth == normal_n);
    return 0;
}
