/* paths of requests and of rules: canonical once is canonical for ever, and a path taken as a rule is itself */
#include "fuzz.h"

#include <string.h>

#include "match/url_path.h"

static void
check_canonical(const char *path, size_t n)
{
    char again[PATH_TEXT_MAX + 1];
    size_t m;

    FUZZ_ASSERT(n > 0 && n <= PATH_TEXT_MAX && path[0] == '/' && strlen(path) == n);
    FUZZ_ASSERT(n == 1 || path[n - 1] != '/');
    FUZZ_ASSERT(strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL);
    FUZZ_ASSERT(strpbrk(path, "\\?#;") == NULL);
    FUZZ_ASSERT(url_path_canonical((struct str){ path, n }, again, &m) && m == n && memcmp(path, again, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = { (const char *)data, n };
    char path[PATH_TEXT_MAX + 1], pattern[PATH_TEXT_MAX + 1], again[PATH_TEXT_MAX + 1];
    bool clear;
    size_t path_n, pattern_n, again_n;

    clear = url_path_canonical(text, path, &path_n);
    if (clear)
        check_canonical(path, path_n);
    FUZZ_ASSERT(!clear || !url_path_moves(text));
    if (url_path_pattern(text, pattern, &pattern_n) != NULL)
        return 0;
    FUZZ_ASSERT(url_path_pattern((struct str){ pattern, pattern_n }, again, &again_n) == NULL);
    FUZZ_ASSERT(again_n == pattern_n && memcmp(pattern, again, again_n) == 0);
    if (clear && memchr(data, '[', n) == NULL)
        FUZZ_ASSERT(path_glob_match((struct str){ pattern, pattern_n }, (struct str){ path, path_n }));
    return 0;
}
