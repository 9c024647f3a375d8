/* audit/store: the record's files: appending, changing files, removing old ones, ends that a crash left, and what must be refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "audit/chain.h"
#include "audit/verify.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"

#define HEADS      4000
#define HEADS_FILE (640UL * 1024)

static char folder[128];

static int
make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s/ct-audit-XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static const char *
in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int
remove_folder(void **state)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    (void)state;
    while ((e = readdir(dir)) != NULL)
        unlink(in_folder(e->d_name));
    closedir(dir);
    return rmdir(folder);
}

static struct audit *
open_log(uint64_t file_bytes, unsigned keep, bool durable)
{
    const struct audit_options o = { .dir = folder, .file_bytes = file_bytes, .keep_files = keep, .durable = durable };
    struct err err = ERR_INIT;
    struct audit *a;

    if (audit_open(&o, &a, &err) < 0)
        fail_msg("%s", err.msg);
    return a;
}

static void
append(struct audit *a, int from, int n)
{
    for (int i = from; i < from + n; i++) {
        struct audit_entry e;
        char word[32];
        snprintf(word, sizeof(word), "entry-%d", i);
        audit_lifecycle(&e, "0123456789abcdef0123456789abcdef", "start", "a sandbox was started");
        audit_put_cstr(&e, "word", word);
        assert_int_equal(audit_append(a, &e, NULL), 0);
    }
}

static void
write_log(uint64_t file_bytes, unsigned keep, int from, int n)
{
    struct audit *a = open_log(file_bytes, keep, false);
    struct err err = ERR_INIT;

    append(a, from, n);
    assert_int_equal(audit_queued(a), n);
    if (audit_commit(a, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(audit_queued(a), 0);
    audit_close(a);
}

static struct verify_result
verify(void)
{
    cleanup_scan struct scan s = SCAN_INIT;
    static struct verify_result r;
    struct err err = ERR_INIT;

    if (scan_open_dir(folder, &s, &err) < 0 || audit_verify(&s, true, NULL, &r, &err) < 0)
        fail_msg("%s", err.msg);
    return r;
}

static void
holds(uint64_t entries)
{
    struct verify_result r = verify();

    if (r.bad != NULL)
        fail_msg("%s:%llu: %s", r.bad_file, (unsigned long long)r.bad_line, r.bad);
    assert_int_equal(r.entries, entries);
}

static unsigned
files(const char *beginning)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    unsigned n = 0;

    while ((e = readdir(dir)) != NULL)
        n += strncmp(e->d_name, beginning, strlen(beginning)) == 0;
    closedir(dir);
    return n;
}

static void
spoil(const char *name, off_t at, const char *bytes, size_t n)
{
    int fd = open(in_folder(name), O_RDWR | O_CLOEXEC);
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pwrite(fd, bytes, n, at < 0 ? st.st_size + at + 1 : at), n);
    close(fd);
}

static off_t
size_of(const char *name)
{
    struct stat st;

    return stat(in_folder(name), &st) == 0 ? st.st_size : -1;
}

/* --- appending ---------------------------------------------------------------------------------------------------- */

static void
test_batches_make_one_chain(void **state)
{
    struct audit *a = open_log(0, 0, true), *b = open_log(0, 0, false);

    (void)state;
    for (int i = 0; i < 20; i++) {
        append(i % 3 == 0 ? a : b, i * 5, 5);
        assert_int_equal(audit_commit(i % 3 == 0 ? a : b, NULL), 0);
    }
    assert_int_equal(audit_commit(a, NULL), 0);
    audit_close(a);
    audit_close(b);
    holds(100);
    assert_int_equal(files("audit"), 1);
}

static void
test_files_change_and_old_ones_go(void **state)
{
    struct verify_result r;

    (void)state;
    for (int i = 0; i < 12; i++)
        write_log(2000, 4, i * 10, 10);
    r = verify();
    assert_null(r.bad);
    assert_true(r.first > 1 && r.first < r.head.seq);
    assert_int_equal(files("audit-0"), 4);
    assert_true(r.head.seq >= 120 + 7);     /* with what it says about the files that went */
}

static void
age(const char *name)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) - 7200 } };

    assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

static void
age_all(void)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    while ((e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, "audit-0", 7) == 0)
            age(e->d_name);
    closedir(dir);
}

static void
test_old_files_go_before_the_next_begins(void **state)
{
    const struct audit_options o = { .dir = folder, .file_bytes = 2000, .keep_files = 100, .keep_s = 3600 };
    struct err err = ERR_INIT;
    struct audit *a;
    struct str lines;
    unsigned n;

    (void)state;
    for (int i = 0; i < 6; i++)
        write_log(2000, 100, i * 10, 10);
    n = files("audit-0");
    assert_true(n >= 4);
    age("audit-00000000000000000001.jsonl");
    assert_int_equal(audit_open(&o, &a, &err), 0);
    append(a, 60, 1);
    assert_int_equal(audit_prune(a, &err), 0);
    assert_int_equal(files("audit-0"), n - 1);
    lines = audit_written(a);
    assert_non_null(memmem(lines.p, lines.n, "audit_retention", 15));
    assert_int_equal(memchr(lines.p, '\n', lines.n) == lines.p + lines.n - 1, true);
    assert_int_equal(audit_queued(a), 1);       /* that is for audit_commit() */
    assert_int_equal(audit_prune(a, &err), 0);
    assert_int_equal(audit_written(a).n, 0);    /* what is young stays, and nothing is said */
    assert_int_equal(audit_commit(a, &err), 0);
    assert_null(verify().bad);
    age_all();
    assert_int_equal(audit_prune(a, &err), 0);
    assert_int_equal(files("audit-0"), 0);
    append(a, 61, 1);
    assert_int_equal(audit_commit(a, &err), 0);
    audit_close(a);
    assert_null(verify().bad);
    assert_true(verify().first > 1);
}

/* Time that began with a clock that was wrong, which is right now: what is old goes, and nothing else. */
static void
test_ages_where_time_began_wrong(void **state)
{
    static const int64_t began_s[] = { 4070908800, 60 };    /* 2099, 1970 */
    unsigned n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(began_s); i++) {
        const struct steady clock = steady_begin((uint64_t)began_s[i] * 1000, clock_boot_ms());
        const struct audit_options o = { .dir = folder, .file_bytes = 2000, .keep_files = 100, .keep_s = 3600,
                                         .clock = &clock };
        struct audit *a;

        for (int k = 0; k < 6; k++)
            write_log(2000, 100, k * 10, 10);
        n = files("audit-0");
        assert_int_equal(audit_open(&o, &a, NULL), 0);
        assert_int_equal(audit_prune(a, NULL), 0);
        assert_int_equal(files("audit-0"), n);
        age_all();
        assert_int_equal(audit_prune(a, NULL), 0);
        assert_int_equal(files("audit-0"), 0);
        audit_close(a);
    }
}

static void
test_a_lost_oldest_file_is_no_retention(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        write_log(2000, 100, i * 10, 10);
    holds(40);
    assert_int_equal(unlink(in_folder("audit-00000000000000000001.jsonl")), 0);
    assert_non_null(verify().bad);
}

static void
test_a_lost_file_between_is_found(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        write_log(2000, 100, i * 10, 10);
    assert_int_equal(unlink(in_folder("audit-00000000000000000011.jsonl")), 0);
    assert_non_null(verify().bad);
}

static void
test_a_change_of_files_that_was_interrupted(void **state)
{
    char from[256], to[256];
    struct audit *late;
    struct stat st;

    (void)state;
    write_log(0, 0, 0, 10);
    late = open_log(0, 0, false);       /* has the file open that is about to be full */
    append(late, 10, 3);
    snprintf(from, sizeof(from), "%s", in_folder("audit.jsonl"));
    snprintf(to, sizeof(to), "%s", in_folder("audit-00000000000000000001.jsonl"));
    assert_int_equal(rename(from, to), 0);
    write_log(0, 0, 13, 2);             /* it was renamed, and whoever did that died before closing it */
    assert_int_equal(audit_commit(late, NULL), 0);
    audit_close(late);
    assert_int_equal(stat(in_folder("audit-00000000000000000001.jsonl"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0400);
    holds(15);
}

/* Who waited for its lock has it then, and would change files itself. */
static void
test_a_full_file_that_was_renamed_and_not_closed(void **state)
{
    char from[256], to[256];
    struct err err = ERR_INIT;
    struct audit *late[2];
    struct stat st;

    (void)state;
    write_log(0, 0, 0, 10);
    for (int i = 0; i < 2; i++)
        late[i] = open_log(1, 10, false);
    snprintf(from, sizeof(from), "%s", in_folder("audit.jsonl"));
    snprintf(to, sizeof(to), "%s", in_folder("audit-00000000000000000001.jsonl"));
    assert_int_equal(rename(from, to), 0);
    for (int i = 0; i < 2; i++) {       /* there is no file in use; there is one */
        append(late[i], 10 + 3 * i, 3);
        if (audit_commit(late[i], &err) < 0)
            fail_msg("%s", err.msg);
    }
    for (int i = 0; i < 2; i++)
        audit_close(late[i]);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0400);
    holds(16);
}

static void
test_many_processes(void **state)
{
    int status;

    (void)state;
    for (int k = 0; k < 8; k++) {
        if (fork() == 0) {
            for (int i = 0; i < 25; i++)
                write_log(20000, 1000, k * 25 + i, 1);
            _exit(0);
        }
    }
    for (int k = 0; k < 8; k++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    holds(200);
    assert_true(files("audit-0") > 1);
}

static void
test_a_child_is_not_its_parent(void **state)
{
    struct audit *a = open_log(0, 0, false);
    int status;

    (void)state;
    append(a, 0, 1);
    if (fork() == 0) {
        struct err err = ERR_INIT;
        _exit(audit_commit(a, &err) == -1 && strcmp(err.code, "audit.forked") == 0 ? 0 : 1);
    }
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    assert_int_equal(audit_commit(a, NULL), 0);
    audit_close(a);
    holds(1);
}

static void
test_the_queue_has_a_ceiling(void **state)
{
    struct audit *a = open_log(0, 0, false);
    struct err err = ERR_INIT;
    char text[AUDIT_TEXT_MAX];
    struct audit_entry e;
    uint64_t n = 0;

    (void)state;
    memset(text, 'x', sizeof(text));
    audit_capability(&e, NULL, "much", "much");
    for (int i = 0; i < 16; i++) {
        static char keys[16][8];
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        audit_put(&e, keys[i], (struct str){ text, sizeof(text) });
    }
    while (audit_append(a, &e, &err) == 0)
        n++;
    assert_string_equal(err.code, "audit.full");
    assert_true(n > 100);
    assert_int_equal(audit_commit(a, NULL), 0);
    assert_int_equal(audit_append(a, &e, NULL), 0);
    assert_int_equal(audit_commit(a, NULL), 0);
    audit_close(a);
    holds(n + 1);
}

static void
test_a_full_queue_of_the_shortest_entries_can_be_written(void **state)
{
    const struct audit_entry e = { .type = AUDIT_POLICY_DECISION };
    struct audit *a = open_log(0, 0, false);
    struct err err = ERR_INIT;
    uint64_t n = 0;

    (void)state;
    while (audit_append(a, &e, &err) == 0)
        n++;
    assert_string_equal(err.code, "audit.full");
    if (audit_commit(a, &err) < 0)
        fail_msg("%s", err.msg);
    audit_close(a);
    holds(n);
}

static void
test_a_record_that_was_removed_begins_anew(void **state)
{
    struct audit *a = open_log(0, 0, false);

    (void)state;
    append(a, 0, 1);
    assert_int_equal(audit_commit(a, NULL), 0);
    assert_int_equal(unlink(in_folder("audit.jsonl")), 0);
    append(a, 1, 1);
    assert_int_equal(audit_commit(a, NULL), 0);
    audit_close(a);
    holds(2);
    assert_int_equal(verify().cuts, 1);
}

/* By somebody while a writer lives, who knows better; also when others have written as many entries since. */
static void
test_a_cut_end_is_said(void **state)
{
    for (int others = 0; others <= 3; others++) {
        struct audit *a = open_log(0, 0, false);
        off_t size;
        append(a, 0, 2);
        assert_int_equal(audit_commit(a, NULL), 0);
        size = size_of("audit.jsonl");
        append(a, 2, 2);
        assert_int_equal(audit_commit(a, NULL), 0);
        assert_int_equal(truncate(in_folder("audit.jsonl"), size), 0);
        if (others > 0)
            write_log(0, 0, 10, others);
        append(a, 4, 1);
        assert_int_equal(audit_commit(a, NULL), 0);
        append(a, 5, 1);
        assert_int_equal(audit_commit(a, NULL), 0);     /* once */
        audit_close(a);
        assert_int_equal(verify().cuts, 1);
        holds(5 + (uint64_t)others);
        assert_int_equal(remove_folder(state), 0);
        assert_int_equal(make_folder(state), 0);
    }
}

/* What a process that is told of @head misses. 1; 0 nothing. */
static bool
misses(const struct audit_head *head, struct audit_missing *out)
{
    struct audit *a = open_log(HEADS_FILE, 0, false);
    const struct audit_missing *m;
    struct err err = ERR_INIT;

    audit_expect(a, head, false);
    if (audit_prune(a, &err) < 0)
        fail_msg("%s", err.msg);
    m = audit_missed(a);
    if (m != NULL)
        *out = *m;
    audit_close(a);
    return m != NULL;
}

/* Wherever it lies: in a full file or the one in use, first, last or between. Another one of that number is not it. */
static void
test_an_entry_is_found_wherever_it_is(void **state)
{
    static struct audit_head heads[HEADS];
    struct audit *a = open_log(HEADS_FILE, 0, false);
    struct audit_missing m;
    struct audit_head other;
    unsigned full;

    (void)state;
    for (int i = 0; i < HEADS; i++) {
        append(a, i, 1);
        assert_int_equal(audit_commit(a, NULL), 0);
        audit_last(a, &heads[i]);
    }
    audit_close(a);
    full = files("audit-0");
    assert_true(full >= 2 && size_of("audit.jsonl") > 0);
    for (int i = 0; i < HEADS; i++)
        assert_false(misses(&heads[i], &m));
    holds(HEADS);
    for (int i = 0; i < HEADS; i += HEADS / 7) {
        other = heads[i];
        other.hash[31] ^= 1;
        assert_true(misses(&other, &m));
        assert_int_equal(m.seq, other.seq);
        assert_false(m.older);
    }
    other = (struct audit_head){ .seq = HEADS + 1000 };
    assert_true(misses(&other, &m) && !m.older);
    assert_int_equal(files("audit-0"), full);
    assert_int_equal(unlink(in_folder("audit-00000000000000000001.jsonl")), 0);
    assert_true(misses(&heads[0], &m) && m.older);
    assert_false(misses(&heads[HEADS - 1], &m));
}

static void
test_an_old_file_that_is_damaged_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        write_log(1, 3, i, 1);
    assert_int_equal(chmod(in_folder("audit-00000000000000000001.jsonl"), 0600), 0);
    spoil("audit-00000000000000000001.jsonl", -10, "#", 1);
    for (int i = 3; i < 8; i++)
        write_log(1, 3, i, 1);
    assert_int_equal(files("audit-0"), 7);
    assert_non_null(verify().bad);
}

/* --- crashes ------------------------------------------------------------------------------------------------------ */

/* Whatever part of the last lines a crash left: the next writer goes on behind the last sound one, and what it set aside
 * is all of the rest. */
static void
test_every_torn_end_is_set_aside(void **state)
{
    off_t whole, two;

    (void)state;
    write_log(0, 0, 0, 2);
    two = size_of("audit.jsonl");
    write_log(0, 0, 2, 1);
    whole = size_of("audit.jsonl");
    for (off_t cut = whole - 1; cut > two; cut -= cut > two + 90 ? 7 : 1) {
        cleanup_buf struct buf before = BUF_INIT(1 << 20), aside = BUF_INIT(1 << 20);
        assert_int_equal(truncate(in_folder("audit.jsonl"), cut), 0);
        assert_int_equal(io_read_file(AT_FDCWD, in_folder("audit.jsonl"), &before), 0);
        assert_non_null(verify().bad);
        write_log(0, 0, 3, 1);
        holds(4);       /* two, what it says about the damage, and the new one */
        assert_int_equal(verify().recoveries, 1);
        assert_int_equal(io_read_file(AT_FDCWD, in_folder("audit-damaged-2-1.bin"), &aside), 0);
        assert_int_equal(aside.n, cut - two);
        assert_memory_equal(aside.p, before.p + two, aside.n);
        assert_int_equal(unlink(in_folder("audit-damaged-2-1.bin")), 0);
        assert_int_equal(truncate(in_folder("audit.jsonl"), two), 0);
        write_log(0, 0, 2, 1);
    }
}

static void
test_a_block_that_was_never_written(void **state)
{
    static const char zeros[4096];

    (void)state;
    write_log(0, 0, 0, 5);
    spoil("audit.jsonl", size_of("audit.jsonl"), zeros, sizeof(zeros));
    write_log(0, 0, 5, 1);
    holds(7);
    assert_int_equal(size_of("audit-damaged-5-1.bin"), sizeof(zeros));
}

static void
test_a_file_of_rubbish_only(void **state)
{
    (void)state;
    write_log(1, 0, 0, 3);
    write_log(1, 0, 3, 1);      /* in its second file */
    spoil("audit.jsonl", 0, "#", 1);
    write_log(1, 0, 4, 1);
    holds(5);
    write_log(1, 0, 5, 1);
    holds(6);
}

static void
test_the_end_of_a_full_file_stops_the_chain(void **state)
{
    struct audit *a;
    struct err err = ERR_INIT;

    (void)state;
    write_log(1, 0, 0, 3);
    write_log(1, 0, 3, 1);
    assert_int_equal(chmod(in_folder("audit-00000000000000000001.jsonl"), 0600), 0);
    spoil("audit-00000000000000000001.jsonl", -10, "#", 1);
    assert_int_equal(truncate(in_folder("audit.jsonl"), 0), 0);
    a = open_log(1, 0, false);
    append(a, 9, 1);
    assert_int_equal(audit_commit(a, &err), -1);
    assert_string_equal(err.code, "audit.damaged");
    audit_close(a);
}

/* What a crash leaves is less than a file has. Copied aside it would fill the disk, each time that somebody tries. */
static void
test_an_end_that_no_crash_leaves_is_not_copied(void **state)
{
    struct audit *a;
    struct err err = ERR_INIT;

    (void)state;
    write_log(1 << 20, 0, 0, 5);
    assert_int_equal(truncate(in_folder("audit.jsonl"), (off_t)512 << 20), 0);
    a = open_log(1 << 20, 0, false);
    append(a, 9, 1);
    assert_int_equal(audit_commit(a, &err), -1);
    assert_string_equal(err.code, "audit.damaged");
    assert_int_equal(access(in_folder("audit-damaged-5-1.bin"), F_OK), -1);
    audit_close(a);
}

/* --- no room, no right -------------------------------------------------------------------------------------------- */

static void
test_a_write_that_fails_leaves_nothing_and_is_tried_again(void **state)
{
    struct audit *a = open_log(0, 0, false);
    struct rlimit was, small;
    struct err err = ERR_INIT;
    off_t before;

    (void)state;
    append(a, 0, 3);
    assert_int_equal(audit_commit(a, NULL), 0);
    before = size_of("audit.jsonl");
    assert_int_equal(sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ .rlim_cur = (rlim_t)before + 100, .rlim_max = was.rlim_max };
    append(a, 3, 3);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(audit_commit(a, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_string_equal(err.code, "audit.write");
    assert_int_equal(size_of("audit.jsonl"), before);
    assert_int_equal(audit_queued(a), 3);
    assert_int_equal(audit_commit(a, NULL), 0);
    audit_close(a);
    holds(6);
}

static void
test_what_others_may_write_is_refused(void **state)
{
    const struct audit_options o = { .dir = folder };
    struct err err = ERR_INIT;
    struct audit *a;

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(audit_open(&o, &a, &err), -1);
    assert_string_equal(err.code, "audit.folder");
    assert_int_equal(chmod(folder, 0700), 0);
    write_log(0, 0, 0, 1);
    assert_int_equal(chmod(in_folder("audit.jsonl"), 0666), 0);
    a = open_log(0, 0, false);
    append(a, 1, 1);
    assert_int_equal(audit_commit(a, &err), -1);
    assert_string_equal(err.code, "audit.folder");
    audit_close(a);
    assert_int_equal(unlink(in_folder("audit.jsonl")), 0);
    assert_int_equal(symlink("/dev/null", in_folder("audit.jsonl")), 0);
    assert_int_equal(audit_open(&o, &a, &err), -1);
    assert_string_equal(err.code, "audit.open");
}

static void
test_an_entry_that_is_known_must_be_there(void **state)
{
    cleanup_scan struct scan s = SCAN_INIT;
    struct verify_result r, known;
    off_t size;

    (void)state;
    write_log(0, 0, 0, 3);
    size = size_of("audit.jsonl");
    write_log(0, 0, 3, 2);
    known = verify();
    assert_int_equal(scan_open_dir(folder, &s, NULL), 0);
    assert_int_equal(audit_verify(&s, true, known.head.hash, &r, NULL), 0);
    assert_true(r.bad == NULL && r.expected && r.expected_seq == 5);
    assert_int_equal(truncate(in_folder("audit.jsonl"), size), 0);
    holds(3);                       /* by itself a shorter chain is a chain */
    assert_int_equal(scan_open_dir(folder, &s, NULL), 0);
    assert_int_equal(audit_verify(&s, true, known.head.hash, &r, NULL), 0);
    assert_non_null(r.bad);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_batches_make_one_chain), TEST(test_files_change_and_old_ones_go),
        TEST(test_old_files_go_before_the_next_begins), TEST(test_a_lost_oldest_file_is_no_retention), TEST(test_a_lost_file_between_is_found),
        TEST(test_ages_where_time_began_wrong),
        TEST(test_a_change_of_files_that_was_interrupted), TEST(test_a_full_file_that_was_renamed_and_not_closed),
        TEST(test_many_processes),
        TEST(test_a_child_is_not_its_parent), TEST(test_the_queue_has_a_ceiling),
        TEST(test_a_full_queue_of_the_shortest_entries_can_be_written),
        TEST(test_a_record_that_was_removed_begins_anew), TEST(test_a_cut_end_is_said), TEST(test_an_entry_is_found_wherever_it_is),
        TEST(test_an_old_file_that_is_damaged_is_kept),
        TEST(test_an_end_that_no_crash_leaves_is_not_copied),
        TEST(test_every_torn_end_is_set_aside), TEST(test_a_block_that_was_never_written),
        TEST(test_a_file_of_rubbish_only), TEST(test_the_end_of_a_full_file_stops_the_chain),
        TEST(test_a_write_that_fails_leaves_nothing_and_is_tried_again), TEST(test_what_others_may_write_is_refused),
        TEST(test_an_entry_that_is_known_must_be_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
