/* vault/store: sealed on disk, refused when it is not what was written, never overwritten then (R12) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "vault/store.h"

static char root[] = "/tmp/cloche-store-XXXXXX";

static void
path_of(const char *name, char out[256])
{
    snprintf(out, 256, "%s/cloche/%s", root, name);
}

static void
read_file(const char *name, struct buf *out)
{
    char path[256];

    path_of(name, path);
    buf_reset(out);
    assert_int_equal(io_read_file(AT_FDCWD, path, out), 0);
}

static void
write_file(const char *name, const void *p, size_t n)
{
    char path[256];
    int fd;

    path_of(name, path);
    fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, p, n), 0);
    close(fd);
}

static int
fresh(void **state)
{
    static const char *const names[] = { "secrets", "secrets.key", "secrets.lock", "secrets.new", "ca.pem", "revoked" };
    char path[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        path_of(names[i], path);
        unlink(path);
    }
    return 0;
}

static void
put(const char *name, const char *value)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_secret struct secret v = { NULL, 0 };
    struct store_meta m = { .created = 1, .updated = 2, .bound = true };
    struct err err = ERR_INIT;

    memcpy(m.name, name, strlen(name) + 1);
    assert_int_equal(binding_parse(STR_LIT("host a.example\nplace bearer\n"), &m.binding, NULL), 0);
    assert_int_equal(store_new_id(m.id, NULL), 0);
    if (store_open(&s, true, &err) < 0 || secret_copy(&v, value, strlen(value), &err) < 0 ||
        store_put(&s, &m, &v, &err) < 0)
        fail_msg("%s", err.msg);
}

static void
holds(const char *name, const char *value)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_secret struct secret v = { NULL, 0 };
    static struct store_meta m;
    struct err err = ERR_INIT;
    size_t index;

    if (store_open(&s, false, &err) < 0 || store_find(&s, name, &m, &index, &err) < 0 ||
        store_value(&s, index, &v, &err) < 0)
        fail_msg("%s: %s", name, err.msg);
    assert_int_equal(v.n, strlen(value));
    assert_memory_equal(v.p, value, v.n);
}

static void
expect_refusal(const char *code)
{
    cleanup_store struct store s = STORE_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(store_open(&s, true, &err), -1);
    assert_string_equal(err.code, code);
    assert_true(err.msg[0] != '\0');
}

static void
kept_and_sealed(void **state)
{
    cleanup_buf struct buf bytes = BUF_INIT(STORE_FILE_MAX);
    char path[256];
    struct stat st;

    (void)state;
    put("one", "value-of-the-first");
    put("two", "value-of-the-second");
    put("one", "value-of-the-first-anew");
    holds("one", "value-of-the-first-anew");
    holds("two", "value-of-the-second");
    read_file("secrets", &bytes);
    assert_null(memmem(bytes.p, bytes.n, "value-of", 8));
    assert_non_null(memmem(bytes.p, bytes.n, "name one", 8));
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = { "secrets", "secrets.key", "secrets.lock" };
        path_of(names[i], path);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    path_of("", path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

/* Every single byte counts, and so does every length. */
static void
damage(void **state)
{
    cleanup_buf struct buf good = BUF_INIT(STORE_FILE_MAX), now = BUF_INIT(STORE_FILE_MAX);

    (void)state;
    put("one", "value-of-the-first");
    read_file("secrets", &good);
    for (size_t i = 0; i < good.n; i++) {
        cleanup_store struct store s = STORE_INIT;
        struct err err = ERR_INIT;
        good.p[i] ^= 0x01;
        write_file("secrets", good.p, good.n);
        assert_int_equal(store_open(&s, true, &err), -1);
        assert_true(strcmp(err.code, "vault.store.corrupt") == 0 || strcmp(err.code, "vault.store.version") == 0);
        read_file("secrets", &now);
        assert_int_equal(now.n, good.n);
        assert_memory_equal(now.p, good.p, good.n);     /* left as it was */
        good.p[i] ^= 0x01;
    }
    for (size_t n = 0; n < good.n; n++) {
        write_file("secrets", good.p, n);
        expect_refusal("vault.store.corrupt");
    }
    write_file("secrets", good.p, good.n);
    holds("one", "value-of-the-first");
}

/* A record of an older file is not taken in a newer one, though each was sealed with the right key: neither in its place
 * nor in another. */
static void
rollback_of_a_record(void **state)
{
    cleanup_buf struct buf old = BUF_INIT(STORE_FILE_MAX), now = BUF_INIT(STORE_FILE_MAX), mixed = BUF_INIT(STORE_FILE_MAX);
    static struct store_file a, b;
    cleanup_store struct store s = STORE_INIT, forged = STORE_INIT;
    cleanup_secret struct secret v = { NULL, 0 };
    uint8_t mac[SEAL_MAC];
    struct err err = ERR_INIT;

    (void)state;
    put("one", "value-of-before");
    read_file("secrets", &old);
    put("one", "value-of-after!");
    read_file("secrets", &now);
    assert_int_equal(store_file_parse(old.p, old.n, &a, NULL), 0);
    assert_int_equal(store_file_parse(now.p, now.n, &b, NULL), 0);
    assert_true(b.generation > a.generation);
    /* whoever has the key could do anything; the MAC is renewed here to see the record's own seal alone */
    assert_int_equal(store_open(&s, true, &err), 0);
    store_file_header(&mixed, b.generation, 1);
    store_file_record(&mixed, &a.records[0]);
    assert_int_equal(seal_mac(&s.key, "cloche store", mixed.p, mixed.n, mac, NULL), 0);
    buf_append(&mixed, mac, sizeof(mac));
    write_file("secrets", mixed.p, mixed.n);
    store_close(&s);
    assert_int_equal(store_open(&forged, false, &err), 0);
    assert_int_equal(store_value(&forged, 0, &v, &err), -1);
    assert_string_equal(err.code, "vault.store.corrupt");
}

static void
keys(void **state)
{
    static const uint8_t zeros[SEAL_KEY];
    cleanup_buf struct buf key = BUF_INIT(64);
    char path[256];

    (void)state;
    put("one", "value-of-the-first");
    read_file("secrets.key", &key);
    assert_int_equal(key.n, SEAL_KEY);
    write_file("secrets.key", zeros, sizeof(zeros));
    expect_refusal("vault.store.corrupt");
    write_file("secrets.key", zeros, 5);
    expect_refusal("vault.key.damaged");
    path_of("secrets.key", path);
    assert_int_equal(unlink(path), 0);
    expect_refusal("vault.key.missing");
}

static void
strangers(void **state)
{
    static const char *const names[] = { "", "secrets", "secrets.key", "secrets.lock" };
    char path[256], other[256];

    (void)state;
    put("one", "value-of-the-first");
    for (size_t i = 0; i < 4; i++) {
        path_of(names[i], path);
        assert_int_equal(chmod(path, i == 0 ? 0750 : 0640), 0);
        expect_refusal("vault.store.mode");
        assert_int_equal(chmod(path, i == 0 ? 0700 : 0600), 0);
    }
    if (geteuid() == 0) {
        path_of("secrets", path);
        assert_int_equal(chown(path, 12345, 12345), 0);
        expect_refusal("vault.store.owner");
        assert_int_equal(chown(path, 0, 0), 0);
    }
    path_of("secrets", path);
    path_of("other", other);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink("other", path), 0);
    expect_refusal("vault.store.file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(other, path), 0);
    expect_refusal("vault.store.file");
    assert_int_equal(unlink(other), 0);
    holds("one", "value-of-the-first");
}

/* A crash between writing and renaming leaves a file beside, which is neither read nor in the way. */
static void
left_over(void **state)
{
    char path[256];
    int fd;

    (void)state;
    put("one", "value-of-the-first");
    path_of("secrets.new", path);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
    holds("one", "value-of-the-first");
    put("two", "value-of-the-second");
    assert_int_equal(access(path, F_OK), -1);
    holds("one", "value-of-the-first");
}

static int
begin(void **state)
{
    (void)state;
    if (mkdtemp(root) == NULL)
        return -1;
    return setenv("XDG_DATA_HOME", root, 1) < 0 ? -1 : secret_memory_init(NULL);
}

static int
end(void **state)
{
    char path[256];

    fresh(state);
    path_of("", path);
    rmdir(path);
    return rmdir(root);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(kept_and_sealed, fresh), cmocka_unit_test_setup(damage, fresh),
        cmocka_unit_test_setup(rollback_of_a_record, fresh), cmocka_unit_test_setup(keys, fresh),
        cmocka_unit_test_setup(strangers, fresh), cmocka_unit_test_setup(left_over, fresh),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
