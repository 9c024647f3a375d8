/* workspace/edits: a folder, looked at again and again */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "workspace/edits.h"
#include "workspace/tree.h"

static char folder[] = "/tmp/test_edits.XXXXXX";
static int root = -1;
static struct edits *x;

/* What was told, in lines. */
static char told[8192];
static int redacted;        /* what redact() answers */
static uint64_t clock_ahead, slow;      /* how long each file takes that is told of */

/* In place of base/clock.c's. */
uint64_t
clock_us(void)
{
    return 1000000 + clock_ahead;
}

static int
redact(void *ctx, struct str text, struct buf *out)
{
    (void)ctx;
    (void)text;
    if (redacted > 0)
        buf_puts(out, "hidden\n");
    return redacted;
}

static void
tell(void *ctx, const struct edit *e)
{
    size_t n = strlen(told);

    (void)ctx;
    clock_ahead += slow;
    snprintf(told + n, sizeof(told) - n, "%s %c%c %d %.*s|", e->path, e->before.kind != 0 ? e->before.kind : '-',
             e->after.kind != 0 ? e->after.kind : '-', (int)e->how, (int)e->diff.n, e->diff.p != NULL ? e->diff.p : "");
}

static const char *
look(struct edits_said *said)
{
    struct edits_said own;

    told[0] = '\0';
    assert_int_equal(edits_look(x, root, redact, tell, NULL, said != NULL ? said : &own), 0);
    return told;
}

static void
put(const char *name, const char *text, size_t n)
{
    int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static int
begin(void **state)
{
    struct edits_said said;

    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    x = edits_new();
    redacted = 0;
    slow = 0;
    put("old", "a\nb\n", 4);
    assert_int_equal(edits_look(x, root, redact, NULL, NULL, &said), 0);
    assert_false(said.incomplete);
    return 0;
}

static int
end(void **state)
{
    (void)state;
    edits_free(x);
    close(root);
    return tree_remove(AT_FDCWD, folder, NULL);
}

static void
what_changed_is_told_once(void **state)
{
    (void)state;
    assert_string_equal(look(NULL), "");
    put("old", "a\nB\n", 4);
    assert_string_equal(look(NULL), "old ff 1 @@ -1,2 +1,2 @@\n a\n-b\n+B\n|");
    assert_string_equal(look(NULL), "");
    put("new", "n\n", 2);
    assert_string_equal(look(NULL), "new -f 1 @@ -0,0 +1,1 @@\n+n\n|");
    assert_int_equal(unlinkat(root, "old", 0), 0);
    assert_string_equal(look(NULL), "old f- 1 @@ -1,2 +0,0 @@\n-a\n-B\n|");
    assert_int_equal(renameat(root, "new", root, "newer"), 0);
    assert_string_equal(look(NULL), "newer -f 1 @@ -0,0 +1,1 @@\n+n\n|new f- 1 @@ -1,1 +0,0 @@\n-n\n|");
    assert_string_equal(look(NULL), "");
    /* the same contents again are no change */
    put("newer", "n\n", 2);
    assert_string_equal(look(NULL), "");
}

static void
kinds_take_each_others_place(void **state)
{
    (void)state;
    assert_int_equal(unlinkat(root, "old", 0), 0);
    assert_int_equal(symlinkat("/etc/passwd", root, "old"), 0);
    assert_string_equal(look(NULL), "old fl 1 @@ -1,2 +1,1 @@\n-a\n-b\n+/etc/passwd\n\\ No newline at end of file\n|");
    assert_int_equal(unlinkat(root, "old", 0), 0);
    assert_int_equal(mkfifoat(root, "old", 0600), 0);
    assert_string_equal(look(NULL), "old lo 0 |");
    assert_int_equal(unlinkat(root, "old", 0), 0);
    assert_int_equal(mkdirat(root, "old", 0700), 0);
    put("old/in", "i\n", 2);
    assert_string_equal(look(NULL), "old/in -f 1 @@ -0,0 +1,1 @@\n+i\n|old o- 0 |");
}

static void
binary_large_and_withheld_have_no_diff(void **state)
{
    static char large[EDITS_TEXT + 1];

    (void)state;
    put("bin", "a\0b", 3);
    assert_string_equal(look(NULL), "bin -f 3 |");
    memset(large, 'x', sizeof(large));
    put("large", large, sizeof(large));
    assert_string_equal(look(NULL), "large -f 0 |");
    large[5] = 'y';
    put("large", large, sizeof(large));
    assert_string_equal(look(NULL), "large ff 0 |");
    redacted = -1;
    put("old", "changed\n", 8);
    assert_string_equal(look(NULL), "old ff 4 |");
    redacted = 1;
    put("fresh", "changed\n", 8);
    assert_string_equal(look(NULL), "fresh -f 1 @@ -0,0 +1,1 @@\n+hidden\n|");
}

static void
what_cannot_be_hashed_is_told_by_its_time(void **state)
{
    struct edits_said said;

    (void)state;
    put("sparse", "", 0);
    look(NULL);
    assert_int_equal(fchmodat(root, "sparse", 0600, 0), 0);
    {
        int fd = openat(root, "sparse", O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, 1LL << 40), 0);
        close(fd);
    }
    assert_string_equal(look(&said), "sparse ff 0 |");
    assert_string_equal(look(NULL), "");
    {
        int fd = openat(root, "sparse", O_WRONLY | O_CLOEXEC);
        usleep(60000);
        assert_int_equal(write(fd, "x", 1), 1);
        close(fd);
    }
    assert_string_equal(look(NULL), "sparse ff 0 |");
}

static void
more_than_a_look_tells_is_counted(void **state)
{
    struct edits_said said;
    char name[32];

    (void)state;
    for (unsigned i = 0; i < EDITS_SAID + 20; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        put(name, "1\n", 2);
    }
    look(&said);
    assert_int_equal(said.files, EDITS_SAID);
    assert_int_equal(said.more, 20);
    assert_string_equal(look(&said), "");
}

/* The time is up with the first one: the other is still known, and told of by the next look. */
static void
what_is_gone_is_not_looked_for_when_it_is_late(void **state)
{
    struct edits_said said;

    (void)state;
    put("other", "o\n", 2);
    look(NULL);
    assert_int_equal(unlinkat(root, "old", 0), 0);
    assert_int_equal(unlinkat(root, "other", 0), 0);
    slow = EDITS_LOOK_US;
    look(&said);
    assert_int_equal(said.files, 1);
    assert_int_equal(said.more, 0);
    assert_true(said.incomplete);
    slow = 0;
    look(&said);
    assert_int_equal(said.files, 1);
    assert_false(said.incomplete);
    assert_string_equal(look(NULL), "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_changed_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(kinds_take_each_others_place, begin, end),
        cmocka_unit_test_setup_teardown(binary_large_and_withheld_have_no_diff, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_hashed_is_told_by_its_time, begin, end),
        cmocka_unit_test_setup_teardown(more_than_a_look_tells_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(what_is_gone_is_not_looked_for_when_it_is_late, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
