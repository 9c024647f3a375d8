/* match/image_ref: names of images, by rows */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "match/image_ref.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
names(void **state)
{
    static const struct { const char *text, *host, *path, *tag, *digest, *name; } rows[] = {
        { "python:3.12", "docker.io", "library/python", "3.12", "", "python:3.12" },
        { "python", "docker.io", "library/python", "latest", "", "python:latest" },
        { "docker.io/library/python", "docker.io", "library/python", "latest", "", "python:latest" },
        { "user/tool:a_B.c-1", "docker.io", "user/tool", "a_B.c-1", "", "user/tool:a_B.c-1" },
        { "ghcr.io/a/b-c__d/e.f:1", "ghcr.io", "a/b-c__d/e.f", "1", "", "ghcr.io/a/b-c__d/e.f:1" },
        { "localhost/x", "localhost", "x", "latest", "", "localhost/x:latest" },
        { "localhost:5000/x@sha256:" HEX, "localhost:5000", "x", "", "sha256:" HEX, "localhost:5000/x" },
        { "127.0.0.1:5000/x:y@sha256:" HEX, "127.0.0.1:5000", "x", "y", "sha256:" HEX, "127.0.0.1:5000/x:y" },
        { "a/b", "docker.io", "a/b", "latest", "", "a/b:latest" },
        { "sha256:" HEX, "", "", "", "sha256:" HEX, "" },
        { "library/a/b", "docker.io", "library/a/b", "latest", "", "library/a/b:latest" },
        { "a---b", "docker.io", "library/a---b", "latest", "", "a---b:latest" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[IMAGE_REF_MAX + 1];
        struct image_ref ref;
        const char *fault = image_ref_parse(str_of(rows[i].text), &ref);
        if (fault != NULL)
            fail_msg("%s: %s", rows[i].text, fault);
        image_ref_name(&ref, name);
        assert_string_equal(ref.host, rows[i].host);
        assert_string_equal(ref.path, rows[i].path);
        assert_string_equal(ref.tag, rows[i].tag);
        assert_string_equal(ref.digest, rows[i].digest);
        assert_string_equal(name, rows[i].name);
    }
}

static void
no_names(void **state)
{
    static const char *const rows[] = {
        "", ":", "/", "a/", "/a", "a//b", "A", "a/B", "a.", ".a", "..", "../a", "a/../b", "a..b", "a___b", "a._b", "a:", "a:b:c",
        "a:.x", "a:-x", "a b", "a\nb", "a@", "a@sha256:", "a@sha256:" HEX "0", "a@md5:" HEX, "a@sha256:ABC", "x.y:port/a",
        "-x.y/a", "x..y/a", "x.y:/a", "x.y:123456/a", "http://x.y/a", "x.y/", "_a", "a-", "a:b/c", "[::1]:5000/x",
        "@sha256:" HEX, "sha256:" HEX "/x",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct image_ref ref;
        if (image_ref_parse(str_of(rows[i]), &ref) == NULL)
            fail_msg("\"%s\" is taken for host \"%s\", path \"%s\", tag \"%s\"", rows[i], ref.host, ref.path, ref.tag);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(names), cmocka_unit_test(no_names) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
