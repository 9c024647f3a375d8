/* tests/unit/guest_run.h: the real guest, run in light mode over a socket pair, driven through the real client */
#ifndef CLOCHE_TESTS_GUEST_RUN_H
#define CLOCHE_TESTS_GUEST_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "base/buf.h"
#include "guest/client.h"

/* How long a test waits for the guest to say something before it fails: a sanitized guest on a busy machine starts a
 * hundred commands in seconds. */
enum { RUN_PATIENCE = 60 * 1000 };  /* milliseconds */

struct run {
    pid_t pid;                  /* of the guest */
    int fd;                     /* our end of the transport */
    struct guest_client *c;
    struct err err;
    char root[64];              /* a fresh directory, removed by run_stop */

    /* what came back */
    bool hello;
    bool started, failed, exited, closed;
    bool stdin_gone;
    struct msg_exec_failed exec_failed;
    struct msg_exit exit;       /* the latest */
    size_t n_exits;
    struct msg_notice notice;
    struct buf denied;          /* "OP TARGET RULE COUNT\n" per report */
    struct buf out, errout;
    bool file_done, file_failed, file_info;
    uint64_t file_count;
    struct msg_file_error file_error;
    struct msg_file_info info;
    struct buf names;           /* "f name\n" per listed entry */
    struct buf changes;         /* "created path\n", "created path/\n" of a directory, "renamed path < from\n" */
    size_t changed;
    bool change_hold;           /* give no credit back for them, but add it up */
    uint32_t change_owed;
};

/* While set, guests start on a kernel without close_range, openat2 (they answer ENOSYS) and O_TMPFILE (EOPNOTSUPP). */
extern bool run_old_kernel;

/* While set, guests start with a root in memory: for thousands of files (memory_dir.h). */
extern bool run_in_memory;

/* Start a guest whose file root is @r->root. @setup may be NULL. */
void run_start(struct run *r, const struct msg_setup *setup);
/* The same without a client: the test speaks raw bytes over r->fd. */
void run_start_raw(struct run *r);
/* Close the transport, wait for the guest (its wait status is returned), remove the root. */
int run_stop(struct run *r);
/* For a test whose state is a struct run of its file: a guest as run_start() starts it, which has to end well. */
int run_setup(void **state);
int run_setup_in_memory(void **state);
int run_teardown(void **state);
#define RUN_TEST(test, run) cmocka_unit_test_prestate_setup_teardown(test, run_setup, run_teardown, run)
#define RUN_TEST_IN_MEMORY(test, run) \
    cmocka_unit_test_prestate_setup_teardown(test, run_setup_in_memory, run_teardown, run)
/* Pump until something came and all of it was taken. False when nothing came for @ms. */
bool run_pump(struct run *r, int ms);
/* Pump until @flag (a member of @r) is set; fails the test after ten seconds of silence. */
void run_until(struct run *r, const bool *flag);

/* Run argv to its end with the given stdio; the output is in r->out. */
uint16_t run_exec(struct run *r, enum exec_stdio stdio, const char *const *argv);
void run_sh(struct run *r, const char *script);
const char *run_text(struct buf *b);

/* Shell out to prepare or inspect the root (trusted text only). */
void run_prepare(const struct run *r, const char *script);

/* One file request to its end. 0, or -1 with r->err filled from the answer or the client. */
int run_file(struct run *r, uint8_t type, const struct msg_file *m);
int run_write(struct run *r, const char *path, uint8_t flags, const void *p, size_t n);

#endif
