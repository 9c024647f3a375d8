/* The daemon's messages and its record (R42, R61); test_serve_confined.c has what is left to its processes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "proto/edge.h"
#include "warden/state_gate.h"
#include "warden/state_priv.h"
#include "warden/warden.h"
#include "wire/packet.h"

static char root[] = "/tmp/cloche-unit-serve-XXXXXX";

/* --- messages ----------------------------------------------------------------------------------------------------- */

static void
labels(void **state)
{
    static const struct { const char *text; bool well; } rows[] = {
        { "", true }, { "\na=b\n", true }, { "\na=\n", true }, { "\na=b=c\n", true }, { "\na=b\nc=d\n", true },
        { "\nab=1\na=2\n", true }, { "\na.b/c-d_e=x y\n", true }, { "\na=\xc3\xa4\n", true },
        { "a=b", false }, { "\na=b", false }, { "a=b\n", false }, { "\n=b\n", false }, { "\na\n", false },
        { "\n\n", false }, { "\na=b\na=c\n", false }, { "\na b=c\n", false }, { "\na=b\tc\n", false },
        { "\na=b\n\n", false }, { "\na=\x7f\n", false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (edge_labels_well(rows[i].text) != rows[i].well)
            fail_msg("row %zu", i);
}

static void
lines(void **state)
{
    static const struct { const char *text, *name, *value; } rows[] = {
        { "", "a", NULL }, { "\n", "a", NULL }, { "\na=b\n", "a", "b" }, { "\na=\n", "a", "" }, { "\nab=1\na=2\n", "a", "2" },
        { "\na=b=c\nc=d\n", "c", "d" }, { "\na=c=d\n", "c", NULL }, { "\na=b\n", "", NULL }, { "\nax=b\n", "a", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str value = edge_line(rows[i].text, rows[i].name);
        if (rows[i].value == NULL ? value.p != NULL : value.p == NULL || !str_eq_c(value, rows[i].value))
            fail_msg("row %zu", i);
    }
}

static void
names(void **state)
{
    (void)state;
    assert_true(edge_name_well("a") && edge_name_well("0-a._") && edge_is_id("0123456789abcdef0123456789abcdef"));
    assert_false(edge_name_well("") || edge_name_well("-a") || edge_name_well("a b") || edge_name_well("a/b"));
    assert_false(edge_is_id("0123456789ABCDEF0123456789abcdef") || edge_is_id("0") ||
                 edge_is_id("0123456789abcdef0123456789abcdef0"));
}

static void
credentials(void **state)
{
    static const char digits[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct { const char *prefix, *suffix; bool bearer, key; } rows[] = {
        { "cloche_agent_", "", true, false }, { "cloche_operator_", "", true, false },
        { "cloche_key_", "", true, true }, { "cloche_auditor_", "", true, false },
        { "cloche_agent_", "0", false, false }, { "cloche_agent_", " ", false, false },
        { "cloche_nobody_", "", false, false }, { "cloche__", "", false, false }, { "cloche_agent", "", false, false },
        { "Cloche_agent_", "", false, false }, { "cloche_AGENT_", "", false, false }, { "", "", false, false },
        { " cloche_key_", "", false, false }, { "cloche_agent_key_", "", false, false },
    };
    char text[160];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        snprintf(text, sizeof(text), "%s%s%s", rows[i].prefix, digits, rows[i].suffix);
        if (edge_credential_well(EDGE_BEARER, text) != rows[i].bearer ||
            edge_credential_well(EDGE_SANDBOX_KEY, text) != rows[i].key)
            fail_msg("row %zu", i);
        if (rows[i].bearer) {
            text[strlen(text) - 1] = '\0';
            assert_false(edge_credential_well(EDGE_BEARER, text));
            strcat(text, "F");
            assert_false(edge_credential_well(EDGE_BEARER, text));
        }
    }
}

static void
tokens(void **state)
{
    struct edge_token token = { .id = "0123456789abcdef0123456789abcdef", .role = EDGE_AUDITOR, .created_ms = 5,
                                .expires_ms = 7, .name = "x" }, back;
    cleanup_buf struct buf b = BUF_INIT(4096);
    struct wire_in in;

    (void)state;
    assert_int_equal(edge_token_put(&b, &token), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(edge_token_get(&in, &back));
    assert_string_equal(back.id, token.id);
    assert_true(back.role == EDGE_AUDITOR && back.created_ms == 5 && back.expires_ms == 7);
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(edge_token_get(&in, &back));
    }
    for (unsigned role = 0; role < 8; role++) {
        b.p[37] = (uint8_t)role;    /* behind the id */
        in = wire_in_of(b.p, b.n);
        assert_int_equal(edge_token_get(&in, &back), role > EDGE_NOBODY && role < EDGE_KEY);
    }
}

static void
operations(void **state)
{
    static struct edge_op op = { .kind = OP_EXEC, .flags = OP_STDIN, .timeout_ms = 5, .path = "/x", .n_argv = 2,
                                 .argv = { "a", "" }, .n_env = 1, .env = { "A=b" } };
    static struct edge_op back;
    cleanup_buf struct buf b = BUF_INIT(EDGE_OP_MAX);
    struct wire_in in;

    (void)state;
    assert_int_equal(edge_op_put(&b, &op), 0);
    in = wire_in_of(b.p, b.n);
    assert_true(edge_op_get(&in, &back));
    assert_true(back.kind == OP_EXEC && back.n_argv == 2 && back.timeout_ms == 5 && back.argv[2] == NULL);
    assert_string_equal(back.env[0], "A=b");
    /* whatever is cut off or changed in its fixed part is no other operation */
    for (size_t n = 0; n < b.n; n++) {
        in = wire_in_of(b.p, n);
        assert_false(edge_op_get(&in, &back));
    }
    b.p[0] = OP_KINDS;
    in = wire_in_of(b.p, b.n);
    assert_false(edge_op_get(&in, &back));
    b.p[0] = OP_READ;           /* has no words */
    in = wire_in_of(b.p, b.n);
    assert_false(edge_op_get(&in, &back));
}

static void
flags_of_operations(void **state)
{
    static const struct { enum op_kind kind; uint8_t flags; uint16_t rows, cols; bool well; uint32_t pids; } rows[] = {
        { OP_EXEC, OP_STDIN | OP_LIVE, 0, 0, true }, { OP_EXEC, OP_STDIN | OP_LIVE | OP_PTY, 24, 80, true },
        { OP_EXEC, OP_LIVE, 0, 0, false }, { OP_EXEC, OP_STDIN | OP_PTY, 24, 80, false },
        { OP_EXEC, OP_STDIN | OP_LIVE | OP_PTY, 0, 80, false }, { OP_EXEC, OP_STDIN | OP_LIVE | OP_PTY, 24, 0, false },
        { OP_EXEC, OP_STDIN, 24, 80, false }, { OP_EXEC, OP_RECURSIVE, 0, 0, false },
        { OP_READ, OP_STDIN, 0, 0, false }, { OP_WRITE, OP_PARENTS | OP_EXCLUSIVE, 0, 0, true },
        { OP_WRITE, OP_LIVE, 0, 0, false }, { OP_LIST, OP_PTY, 1, 1, false }, { OP_READ, OP_LIMITS, 0, 0, false },
        { OP_EXEC, OP_LIMITS, 0, 0, true, 5 }, { OP_EXEC, OP_STDIN, 0, 0, false, 5 }, { OP_READ, 0, 0, 0, false, 5 },
        { OP_EXEC, OP_BACKGROUND, 0, 0, true }, { OP_EXEC, OP_BACKGROUND | OP_STDIN | OP_PTY, 24, 80, true },
        { OP_EXEC, OP_BACKGROUND | OP_PTY, 24, 80, false }, { OP_READ, OP_BACKGROUND, 0, 0, false },
        { OP_EXEC, OP_BACKGROUND | OP_STDIN | OP_LIVE, 0, 0, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        static struct edge_op op, back;
        cleanup_buf struct buf b = BUF_INIT(EDGE_OP_MAX);
        struct wire_in in;
        op = (struct edge_op){ .kind = rows[i].kind, .flags = rows[i].flags, .rows = rows[i].rows,
                               .cols = rows[i].cols, .pids = rows[i].pids, .path = "f", .n_argv = rows[i].kind == OP_EXEC, .argv = { "a" } };
        assert_int_equal(edge_op_put(&b, &op), 0);
        in = wire_in_of(b.p, b.n);
        if (edge_op_get(&in, &back) != rows[i].well)
            fail_msg("row %zu", i);
    }
}

/* A peer that closes with something unread is heard to its end. */
static void
last_words(void **state)
{
    uint8_t room[64];
    struct buf b = BUF_INIT_IN(room, sizeof(room));
    uint8_t in[128];
    struct frame f;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(frame_append(&b, 7, 0, 0, "x", 1), 0);
    assert_int_equal(packet_send(pair[0], &b, -1), 0);
    assert_int_equal(packet_send(pair[1], &b, -1), 0);
    close(pair[1]);
    assert_int_equal(packet_receive(pair[0], in, sizeof(in), &f, NULL, 0), 1);
    assert_int_equal(f.type, 7);
    assert_int_equal(packet_receive(pair[0], in, sizeof(in), &f, NULL, 0), 0);
    close(pair[0]);
}

/* A message without a byte hands nothing down. */
static void
empty_with_a_descriptor(void **state)
{
    union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr m = { .msg_control = control.room, .msg_controllen = sizeof(control.room) };
    uint8_t in[64];
    struct frame f;
    int pair[2], fd, before = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    close(before);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    memset(&control, 0, sizeof(control));
    control.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.h), &pair[0], sizeof(int));
    assert_int_equal(sendmsg(pair[0], &m, MSG_NOSIGNAL), 0);
    fd = 0;
    assert_int_equal(packet_receive(pair[1], in, sizeof(in), &f, &fd, 0), -1);
    assert_int_equal(errno, EPROTO);
    assert_int_equal(fd, -1);
    close(pair[0]);
    assert_int_equal(packet_receive(pair[1], in, sizeof(in), &f, &fd, 0), 0);
    close(pair[1]);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fd, before);
    close(fd);
}

static void
a_queue_keeps_order_and_its_ceiling(void **state)
{
    struct packet_queue q = PACKET_QUEUE_INIT(1024 * 1024);
    cleanup_buf struct buf b = BUF_INIT(40000);
    static uint8_t in[40000];
    static const uint8_t filler[30000];
    struct frame f;
    uint16_t sent = 0, got = 0;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);   /* blocking: it does not wait */
    do {
        buf_reset(&b);
        assert_int_equal(frame_append(&b, 1, 0, ++sent, filler, sizeof(filler)), 0);
    } while (packet_queue_send(&q, pair[0], &b, -1) == 0);
    assert_int_equal(errno, ENOBUFS);
    assert_true(sent > 30 && packet_queue_waits(&q));
    while (packet_receive(pair[1], in, sizeof(in), &f, NULL, MSG_DONTWAIT) == 1) {
        assert_int_equal(f.channel, ++got);
        assert_int_equal(packet_queue_flush(&q, pair[0]), 0);
    }
    assert_int_equal(got, sent - 1);
    assert_false(packet_queue_waits(&q));
    close(pair[0]);
    close(pair[1]);
}

/* --- the record --------------------------------------------------------------------------------------------------- */

static struct edge_box
box_of(unsigned i, enum box_state s)
{
    static char name[32];
    struct edge_box box = { .state = s, .created_ms = 1000 + i, .ended_ms = s == BOX_STOPPED ? 5000 + i : 0,
                            .name = name, .labels = i % 2 == 0 ? "\nk=even\nl=x\n" : "\nk=odd\n", .policy = "{}",
                            .facts = "", .detail = "" };

    snprintf(box.id, sizeof(box.id), "%032x", i);
    snprintf(name, sizeof(name), "box-%u", i);
    return box;
}

static void
count(void *ctx, const struct edge_box *box)
{
    unsigned *n = ctx;

    (void)box;
    ++*n;
}

static void
count_event(void *ctx, const struct edge_event *event)
{
    uint64_t *last = ctx;

    assert_true(event->number > *last);
    *last = event->number;
}

static void
record(void **state)
{
    struct err err = ERR_INIT;
    struct state *s = state_open(root, &err), *other;
    struct state_query q = { .prefix = "", .label = "", .after = "", .workspace = "", .limit = 200 };
    unsigned n = 0;
    bool more;

    (void)state;
    assert_non_null(s);
    other = state_open(root, &err);
    assert_null(other);
    assert_string_equal(err.code, "serve.state.busy");
    for (unsigned i = 0; i < 10; i++) {
        struct edge_box box = box_of(i, i < 7 ? BOX_READY : BOX_STOPPED);
        assert_int_equal(state_put(s, &box, NULL), 0);
    }
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 7);
    q.all = true;
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 10);
    assert_true(n == 17 && !more);
    q.label = "\nk=odd\n";
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 5);
    q.limit = 2;
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 2);
    assert_true(more);
    q.after = "00000000000000000000000000000007";
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 1);
    q.label = "";
    q.prefix = "box-%";         /* no pattern */
    assert_int_equal(state_list(s, &q, count, &n, &more, NULL), 0);
    assert_int_equal(state_find(s, "box-3", count, &n, NULL), 1);
    assert_int_equal(state_find(s, "box-8", count, &n, NULL), 0);      /* stopped: by id only */
    assert_int_equal(state_find(s, "00000000000000000000000000000008", count, &n, NULL), 1);
    assert_int_equal(state_forget(s, "00000000000000000000000000000008", NULL), 0);
    assert_int_equal(state_find(s, "00000000000000000000000000000008", count, &n, NULL), 0);
}

/* In a process of its own, which is killed: what was said to be kept is there. Behind the filter, so that nothing that a
 * long life brings (checkpoints, pruning) needs what was given up. */
static void
kept_by_the_confined(void **state)
{
    uint64_t last = 0;
    struct state *s;
    unsigned n = 0;
    int status, ends[2];
    char done;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        char folder[128];
        snprintf(folder, sizeof(folder), "%s/c", root);
        s = mkdir(folder, 0700) == 0 ? state_open(folder, NULL) : NULL;
        if (s == NULL || warden_confine(NULL) < 0)
            _exit(2);
        for (unsigned i = 0; i < 4000; i++) {
            struct edge_box box = box_of(i, i % 2 == 0 ? BOX_STOPPED : BOX_READY);
            struct edge_event event = { .at_ms = i, .id = box.id, .type = "exec", .detail = "x" };
            if (state_put(s, &box, NULL) < 0 || state_note(s, &event, NULL) < 0)
                _exit(3);
        }
        if (state_prune(s, 0, NULL) < 0)
            _exit(4);
        (void)!write(ends[1], "x", 1);
        for (;;)
            (void)!read(ends[0], &done, 0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &done, 1), 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close(ends[0]);
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/c", root);
    s = state_open(folder, NULL);
    assert_non_null(s);
    assert_int_equal(state_find(s, "00000000000000000000000000000f9f", count, &n, NULL), 1);    /* 3999 */
    assert_int_equal(state_find(s, "00000000000000000000000000000000", count, &n, NULL), 0);    /* pruned */
    assert_int_equal(state_events(s, "", NULL, 1000, count_event, &last, NULL), 1000);
    assert_int_equal(last, 4000);
}

static void
see_approval(void *ctx, const struct edge_approval *a)
{
    *(enum approval_state *)ctx = a->state;
}

static void
see_grant(void *ctx, const struct edge_grant *g)
{
    (void)ctx;
    (void)g;
}

/* Whichever of them cannot be written, the other one is not there either. */
static void
an_approval_and_its_grant(void **state)
{
    static const char *const broken[] = {
        "CREATE TRIGGER no BEFORE INSERT ON approval BEGIN SELECT RAISE(ABORT, 'broken'); END",
        "CREATE TRIGGER no BEFORE INSERT ON standing BEGIN SELECT RAISE(ABORT, 'broken'); END",
    };
    struct edge_approval a = { .id = "0000000000000000000000000000000a", .state = APPROVAL_PENDING, .caller = "owner",
                               .caller_text = "", .tool = "t", .params = "{}", .rule = "r", .description = "", .by = "",
                               .by_text = "", .reason = "" };
    struct edge_grant grant = { .id = "0000000000000000000000000000000b", .caller = "owner", .tool = "t", .rule = "r",
                                .by_text = "", .rule_digest = "" };
    enum approval_state seen = APPROVAL_DENIED;
    struct err err = ERR_INIT;
    struct state_gate *g;
    char folder[128];
    struct state *s;

    (void)state;
    memset(a.digest, '0', SHA256_TEXT);
    snprintf(folder, sizeof(folder), "%s/g", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, &err);
    assert_non_null(s);
    g = state_gate_open(s, &err);
    assert_non_null(g);
    assert_int_equal(state_approval_put(g, &a, &err), 0);
    a.state = APPROVAL_APPROVED;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_exec(s->db, broken[i], NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(state_approval_grant(g, &a, &grant, &err), -1);
        assert_int_equal(state_approvals(g, a.id, 0, "", 1, see_approval, &seen, NULL), 1);
        assert_int_equal(seen, APPROVAL_PENDING);
        assert_int_equal(state_grants(g, see_grant, NULL, NULL), 0);
        assert_int_equal(sqlite3_exec(s->db, "DROP TRIGGER no", NULL, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(state_approval_grant(g, &a, &grant, &err), 0);
    assert_int_equal(state_approvals(g, a.id, 0, "", 1, see_approval, &seen, NULL), 1);
    assert_int_equal(seen, APPROVAL_APPROVED);
    assert_int_equal(state_grants(g, see_grant, NULL, NULL), 1);
}

/* While there is something to do nobody waits for the disk, until the log is long. */
static void
the_log_waits(void **state)
{
    const struct edge_box r = box_of(7, BOX_READY);
    unsigned n = 0, longest = 0, there = 0;
    char folder[128];
    struct state *s;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/l", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, NULL);
    assert_non_null(s);
    assert_false(state_log_is_long(s));
    for (; n < 2000 && s->log_pages < 2000; n++)
        assert_int_equal(state_put(s, &r, NULL), 0);
    assert_true(s->log_pages >= 2000 && state_log_is_long(s));
    state_settle(s);
    assert_true(s->log_pages < 4 && !state_log_is_long(s));
    for (n = 0; n < 6000 && (unsigned)s->log_pages >= longest; n++) {
        longest = (unsigned)s->log_pages;
        assert_int_equal(state_put(s, &r, NULL), 0);
    }
    assert_true(longest >= 4000 && longest < 5000 && s->log_pages < 100);
    assert_int_equal(state_find(s, r.id, count, &there, NULL), 1);
    assert_int_equal(there, 1);
}

static void
is_used(void *ctx, const struct edge_box *box)
{
    const struct edge_box *want = ctx;

    assert_true(box->used_ms == want->used_ms && box->created_ms == want->created_ms && box->state == BOX_READY);
}

/* It is one write of each page, of whole transactions; and what is lost by one is said. */
static void
what_is_put_soon(void **state)
{
    static const char broken[] = "CREATE TRIGGER no BEFORE INSERT ON event BEGIN SELECT RAISE(ROLLBACK, 'broken'); END";
    const struct edge_box a = box_of(1, BOX_READY), b = box_of(2, BOX_READY), c = box_of(3, BOX_READY);
    const struct edge_event event = { .at_ms = 1, .id = a.id, .type = "exec", .detail = "x" };
    struct err err = ERR_INIT;
    int before, each, both;
    char folder[128];
    unsigned n = 0;
    struct state *s;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/s", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, NULL);
    assert_non_null(s);
    before = s->log_pages;
    for (int i = 0; i < 8; i++)
        assert_int_equal(state_put(s, &a, NULL), 0);
    each = s->log_pages - before;
    before = s->log_pages;
    for (int i = 0; i < 8; i++)
        assert_true(state_put_soon(s, &a, NULL) == 0 && state_note(s, &event, NULL) == 0);
    assert_true(s->log_pages == before && state_waits(s));
    assert_int_equal(state_flush(s, NULL), 0);
    both = s->log_pages - before;
    assert_true(both > 0 && both * 2 <= each && !state_waits(s));
    /* when it was used is one page, and all that changes */
    before = s->log_pages;
    assert_true(state_used_soon(s, a.id, 77, 0, NULL) == 0 && state_flush(s, NULL) == 0);
    assert_int_equal(s->log_pages - before, 1);
    assert_int_equal(state_find(s, a.id, is_used, &(struct edge_box){ .used_ms = 77, .created_ms = a.created_ms }, NULL), 1);
    /* what is kept at once is kept with it */
    before = s->log_pages;
    assert_int_equal(state_put_soon(s, &a, NULL), 0);
    assert_int_equal(state_put(s, &b, NULL), 0);
    assert_true(!state_waits(s) && s->log_pages - before < 2 * each / 8);
    assert_int_equal(sqlite3_exec(s->db, broken, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(state_put_soon(s, &c, NULL), 0);
    assert_int_equal(state_find(s, c.id, count, &n, NULL), 1);
    /* what is wrong is not kept, and the rest is in the transaction again */
    assert_int_equal(state_note(s, &event, &err), -1);
    assert_string_equal(err.code, "serve.state");
    assert_int_equal(state_find(s, c.id, count, &n, NULL), 1);
    assert_int_equal(state_put(s, &b, NULL), 0);
    assert_true(!state_waits(s) && state_lost(s) == 0);
    assert_int_equal(state_find(s, c.id, count, &n, NULL), 1);
}

struct seen_events { uint64_t first, last, n; };

static void
see_event(void *ctx, const struct edge_event *event)
{
    struct seen_events *seen = ctx;

    if (seen->n++ == 0)
        seen->first = event->number;
    else
        assert_int_equal(event->number, seen->last + 1);
    seen->last = event->number;
}

/* As a full disk: no page more, and none is written again. */
static void
set_full(struct state *s, bool full)
{
    char text[80];

    snprintf(text, sizeof(text), "PRAGMA max_page_count = %d", full ? 1 : 1073741823);      /* what there is at least */
    assert_int_equal(sqlite3_exec(s->db, text, NULL, NULL, NULL), SQLITE_OK);
}

/* What could not be written waits, is read meanwhile, and is there in the end. */
static void
what_waits_for_room(void **state)
{
    struct edge_box a = box_of(1, BOX_READY), big = box_of(4, BOX_READY);
    char detail[4000], folder[128];
    const struct edge_event event = { .at_ms = 1, .id = a.id, .type = "exec", .detail = detail };
    struct seen_events seen = { .n = 0 };
    unsigned n = 0;
    struct err err = ERR_INIT;
    struct state *s;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/w", root);
    memset(detail, 'x', sizeof(detail) - 1);
    detail[sizeof(detail) - 1] = '\0';
    big.policy = detail;
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, NULL);
    assert_non_null(s);
    assert_int_equal(state_put(s, &a, NULL), 0);
    set_full(s, true);
    for (int i = 0; i < 50; i++)
        assert_int_equal(state_note(s, &event, NULL), 0);
    a.used_ms = 78;
    assert_int_equal(state_put_soon(s, &a, NULL), 0);
    assert_int_equal(state_flush(s, &err), -1);
    assert_string_equal(err.code, "serve.state.full");
    assert_true(state_waits(s) && state_again_ms(s) > 0 && state_last_event(s) == 50);
    assert_int_equal(state_put(s, &big, &err), -1);
    set_full(s, false);
    /* it is not time yet, and is read all the same */
    s->again_ms = UINT64_MAX;
    assert_int_equal(state_flush(s, NULL), -1);
    assert_int_equal(state_events(s, "", NULL, 1000, see_event, &seen, NULL), 50);
    assert_int_equal(state_find(s, a.id, is_used, &a, NULL), 1);
    assert_int_equal(sqlite3_get_autocommit(s->db), 0);
    /* it does not keep others from being written by themselves, and nothing older comes after them */
    a.used_ms = 79;
    assert_true(state_put(s, &big, NULL) == 0 && state_put(s, &a, NULL) == 0 && state_waits(s));
    /* the newest wait */
    for (int i = 0; i < 3000; i++)
        assert_int_equal(state_note(s, &event, NULL), 0);
    assert_true(state_lost(s) > 900 && s->soon.bytes <= 10UL * 1024 * 1024);
    state_at_once(s);
    assert_int_equal(state_flush(s, NULL), 0);
    assert_true(!state_waits(s) && state_again_ms(s) == 0 && state_lost(s) == 0);
    seen.n = 0;
    assert_true(state_events(s, "", NULL, 10000, see_event, &seen, NULL) > 1000);
    assert_int_equal(seen.last, 3050);
    assert_int_equal(state_find(s, a.id, is_used, &a, NULL), 1);
    assert_int_equal(state_find(s, big.id, count, &n, NULL), 1);
}

/* Above a ceiling the oldest go of whoever has most: one busy caller moves nobody else's out. */
static void
nobody_moves_anothers_out(void **state)
{
    static const char fill[] =
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO sandbox (id, "
        "name, state, flags, created, started, ended, used, idle, life, labels, policy, facts, detail, owner) SELECT "
        "printf('%032x', i), 'x', 'stopped', 0, i, i, i, i, 0, 0, '', '{}', '', '', iif(i <= 3, 'quiet', 'busy') FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO event (at, id, type, "
        "detail) SELECT i, iif(i = 2, '', iif(i = 4, 'f', printf('%032x', iif(i <= 3, i, 2000)))), 'exec', 'x' FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO approval SELECT "
        "printf('%032x', i), iif(i = 2, 'pending', 'approved'), 'low', 0, i, i, iif(i = 2, 0, i), '', '0', iif(i <= 3, "
        "'quiet', 'busy'), '', 't', '{}', 'r', '', '', '', '' FROM n; COMMIT";
    static const struct { const char *what; int left; } rows[] = {
        { "sandbox", STATE_STOPPED_MAX }, { "sandbox WHERE owner = 'quiet'", 3 },
        { "sandbox WHERE owner = 'busy' AND ended < 2000 - 1000 + 3", 0 },
        { "event", STATE_EVENTS_MAX }, { "event WHERE number <= 4", 4 }, { "event WHERE number > 20000 - 9996", 9996 },
        { "approval", STATE_APPROVALS_MAX + 1 }, { "approval WHERE caller = 'quiet'", 3 },
    };
    char folder[128], query[160];
    struct state_gate *g;
    struct state *s;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/p", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, NULL);
    assert_non_null(s);
    g = state_gate_open(s, NULL);
    assert_non_null(g);
    assert_int_equal(sqlite3_exec(s->db, fill, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(state_prune(s, 0, NULL), 0);
    assert_int_equal(state_gate_prune(g, 1, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        sqlite3_stmt *q;
        snprintf(query, sizeof(query), "SELECT count(*) FROM %s", rows[i].what);
        assert_int_equal(sqlite3_prepare_v2(s->db, query, -1, &q, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(q), SQLITE_ROW);
        if (sqlite3_column_int(q, 0) != rows[i].left)
            fail_msg("%s: %d", rows[i].what, sqlite3_column_int(q, 0));
        sqlite3_finalize(q);
    }
}

/* Nor does a chain, of its free nonces. */
static void
no_chain_moves_anothers_out(void **state)
{
    static const uint8_t account[STATE_ACCOUNT] = { 1 }, other[STATE_ACCOUNT] = { 2 };
    char folder[128];
    uint64_t nonce;
    struct state *s;

    (void)state;
    snprintf(folder, sizeof(folder), "%s/n", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    s = state_open(folder, NULL);
    assert_non_null(s);
    assert_int_equal(state_sign_free_put(s, account, 1, 7, NULL), 0);
    assert_int_equal(state_sign_free_put(s, other, 2, 8, NULL), 0);
    assert_int_equal(sqlite3_exec(s->db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                                  "5000) INSERT INTO signed_free SELECT (SELECT account FROM signed_free WHERE nonce = "
                                  "7), 2, i FROM n", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(state_sign_free_put(s, account, 2, 5001, NULL), 0);
    assert_true(state_sign_free(s, account, 1, 0, &nonce, NULL) == 1 && nonce == 7);
    assert_true(state_sign_free(s, other, 2, 0, &nonce, NULL) == 1 && nonce == 8);
    /* all others are the newest of the one with most */
    assert_true(state_sign_free(s, account, 2, 0, &nonce, NULL) == 1 && nonce == 5001 - (STATE_SIGN_FREE - 2) + 1);
}

static int
group_begin(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int
group_end(void **state)
{
    static const char *const folders[] = { "c/", "g/", "l/", "n/", "p/", "s/", "w/", "" };
    static const char *const files[] = { "state.db", "state.db-wal", "state.room", "" };
    char path[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        for (size_t f = 0; f < ARRAY_LEN(files); f++) {
            snprintf(path, sizeof(path), "%s/%s%s", root, folders[i], files[f]);
            if (remove(path) < 0 && files[f][0] == '\0')
                return -1;
        }
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels), cmocka_unit_test(lines), cmocka_unit_test(names), cmocka_unit_test(credentials),
        cmocka_unit_test(tokens), cmocka_unit_test(operations),
        cmocka_unit_test(flags_of_operations), cmocka_unit_test(last_words),
        cmocka_unit_test(empty_with_a_descriptor), cmocka_unit_test(a_queue_keeps_order_and_its_ceiling),
        cmocka_unit_test(record), cmocka_unit_test(an_approval_and_its_grant),
        cmocka_unit_test(the_log_waits), cmocka_unit_test(what_is_put_soon), cmocka_unit_test(what_waits_for_room),
        cmocka_unit_test(nobody_moves_anothers_out), cmocka_unit_test(no_chain_moves_anothers_out),
        cmocka_unit_test(kept_by_the_confined),
    };

    return cmocka_run_group_tests(tests, group_begin, group_end);
}
