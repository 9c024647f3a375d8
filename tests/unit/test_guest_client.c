/* guest/client.h against guests that lie, and the guest against a host that does */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"
#include "guest_run.h"

/* --- a client and, instead of a guest, this test ---------------------------------------------------------------- */

static struct guest_client *c;
static int theirs = -1;         /* the guest's end */
static int ours = -1;
static uint16_t channel, request;
static struct buf says;         /* what the guest will say next */
static struct err err;

static void
open_client(bool hello)
{
    static const char *const argv[] = { "x", NULL };
    static const char *const env[] = { NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ours = pair[0];
    theirs = pair[1];
    err = (struct err)ERR_INIT;
    says = (struct buf)BUF_INIT(1024 * 1024);
    x.argv = argv;
    x.env = env;
    x.window = 100;
    assert_int_equal(guest_client_new(ours, &c, &err), 0);
    assert_int_equal(guest_client_exec(c, &x, &channel, &err), -1);     /* not before SETUP */
    assert_string_equal(err.code, "guest.order");
    assert_int_equal(guest_client_setup(c, &(struct msg_setup){ .root = "/workspace" }, &err), 0);
    assert_int_equal(guest_client_setup(c, &(struct msg_setup){ .root = "/workspace" }, &err), -1);
    assert_int_equal(guest_client_exec(c, &x, &channel, &err), 0);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &(struct msg_file){ .path = "f" }, &request, &err), 0);
    if (hello)
        assert_int_equal(msg_put_hello(&says, &(struct msg_hello){ .version = GUEST_PROTOCOL_VERSION, .pid = 1 }), 0);
}

static void
close_client(void)
{
    guest_client_free(c);
    c = NULL;
    close(ours);
    if (theirs >= 0)
        close(theirs);
    buf_free(&says);
}

/* Say it, and take events until there are none. The last result of guest_client_next; @ev is the last event. */
static int
say(struct guest_event *ev)
{
    int rc = 0;

    assert_true(buf_ok(&says));
    for (size_t at = 0; at < says.n;) {
        ssize_t n = send(theirs, says.p + at, says.n - at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
            at += (size_t)n;
        assert_int_equal(guest_client_pump(c, &err), 0);
        while ((rc = guest_client_next(c, ev, &err)) > 0)
            continue;
        if (rc < 0)
            return rc;
    }
    for (int i = 0; i < 1000 && rc >= 0; i++) {
        struct pollfd p = { .fd = ours, .events = POLLIN };

        if (poll(&p, 1, 0) == 0)
            break;
        assert_int_equal(guest_client_pump(c, &err), 0);
        while ((rc = guest_client_next(c, ev, &err)) > 0)
            continue;
    }
    buf_reset(&says);
    return rc;
}

static void
put(uint8_t type, uint8_t flags, uint16_t id, const void *payload, size_t n)
{
    assert_int_equal(frame_append(&says, type, flags, id, payload, n), 0);
}

/* A lie that was caught: one error, and then nothing works any more. */
static void
caught(const char *what)
{
    struct guest_event ev;
    uint16_t again;

    if (say(&ev) != -1)
        fail_msg("not caught: %s", what);
    assert_int_equal(err.kind, ERR_PROTOCOL);
    assert_string_equal(err.code, "guest.protocol");
    assert_int_equal(guest_client_next(c, &ev, &err), -1);
    assert_int_equal(guest_client_pump(c, &err), -1);
    assert_int_equal(guest_client_kill_all(c, SIGKILL, &err), -1);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &(struct msg_file){ .path = "f" }, &again, &err), -1);
    close_client();
}

static void
test_before_hello(void **state)
{
    static const uint8_t types[] = { MSG_STARTED, MSG_STDOUT, MSG_EXIT, MSG_FILE_OK, MSG_NOTICE, MSG_DENIED };

    (void)state;
    for (size_t i = 0; i < sizeof(types); i++) {
        open_client(false);
        put(types[i], 0, 1, "\0\0\0\0\0\0\0\0", 8);
        caught("a message before HELLO");
    }
}

static void
test_hello(void **state)
{
    (void)state;
    open_client(true);
    assert_int_equal(msg_put_hello(&says, &(struct msg_hello){ .version = GUEST_PROTOCOL_VERSION }), 0);
    caught("a second HELLO");
    open_client(false);
    assert_int_equal(msg_put_hello(&says, &(struct msg_hello){ .version = GUEST_PROTOCOL_VERSION + 1 }), 0);
    caught("another version");
    open_client(false);
    put(MSG_HELLO, 0, 0, "\0\1\0\0\0\0", 6);
    caught("a short HELLO");
    open_client(false);
    put(MSG_HELLO, 0, 5, "\0\1\0\0\0\0\1", 7);
    caught("HELLO on a channel");
}

/* Every type that is not the guest's, and every type with a length above its ceiling. */
static void
test_types_and_lengths(void **state)
{
    static const uint8_t known[] = { MSG_STARTED, MSG_EXEC_FAILED, MSG_STDOUT, MSG_STDERR, MSG_STDIN_WINDOW, MSG_EXIT,
                                     MSG_DENIED, MSG_NOTICE, MSG_FILE_OK, MSG_FILE_ERROR, MSG_FILE_DATA, MSG_FILE_INFO,
                                     MSG_FILE_ENTRIES, MSG_FILE_CHANGE };
    uint8_t header[FRAME_HEADER];

    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        if (memchr(known, (int)type, sizeof(known)) != NULL || type == MSG_HELLO)
            continue;
        open_client(true);
        put((uint8_t)type, 0, 1, "", 0);
        caught("an unknown type");
    }
    for (size_t i = 0; i < sizeof(known); i++) {
        open_client(true);
        frame_header_encode(header, known[i], 0, channel, UINT32_MAX);
        assert_int_equal(buf_append(&says, header, sizeof(header)), 0);
        caught("four gigabytes announced");
        open_client(true);
        frame_header_encode(header, known[i], 0, channel, MSG_DATA_MAX + 1);
        assert_int_equal(buf_append(&says, header, sizeof(header)), 0);
        caught("above the ceiling");
        open_client(true);
        put(known[i], 0x40, channel, "\0\0\0\0\1", 5);
        caught("an unknown flag");
        open_client(true);
        put(known[i], 0, channel, "", 0);
        caught("an empty message");
    }
}

static void
test_channels_that_are_not_ours(void **state)
{
    const struct msg_exit end = { .status = 0 };
    struct guest_event ev;

    (void)state;
    open_client(true);
    put(MSG_STDOUT, 0, (uint16_t)(channel + 1), "x", 1);
    caught("output of a command that we did not start");
    open_client(true);
    put(MSG_STDOUT, 0, 0, "x", 1);
    caught("output on channel 0");
    open_client(true);
    assert_int_equal(msg_put_exit(&says, channel, &end), 0);
    assert_int_equal(say(&ev), 0);
    assert_int_equal(ev.type, GUEST_EXIT);
    put(MSG_STDOUT, 0, channel, "x", 1);
    caught("output after the end");
    open_client(true);
    assert_int_equal(msg_put_exit(&says, channel, &end), 0);
    assert_int_equal(msg_put_exit(&says, channel, &end), 0);
    caught("two ends");
    open_client(true);
    put(MSG_FILE_DATA, 0, (uint16_t)(request + 7), "x", 1);
    caught("contents that nobody asked for");
    open_client(true);
    assert_int_equal(msg_put_file_info(&says, request, &(struct msg_file_info){ .name = "" }), 0);
    caught("an answer to another question");
    open_client(true);
    assert_int_equal(msg_put_u64(&says, MSG_FILE_OK, request, 0), 0);
    assert_int_equal(msg_put_u64(&says, MSG_FILE_OK, request, 0), 0);
    caught("two answers");
}

static void
test_contents_of_a_file(void **state)
{
    const struct msg_file m = { .path = "f", .offset = 7, .length = 5 };
    struct guest_event ev;
    uint16_t part;

    (void)state;
    open_client(true);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &m, &part, &err), 0);
    put(MSG_FILE_DATA, 0, part, "ab", 2);
    put(MSG_FILE_DATA, 0, part, "cde", 3);
    assert_int_equal(msg_put_u64(&says, MSG_FILE_OK, part, 5), 0);
    assert_int_equal(say(&ev), 0);
    assert_true(ev.type == GUEST_FILE_DONE && ev.count == 5);
    close_client();
    open_client(true);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &m, &part, &err), 0);
    put(MSG_FILE_DATA, 0, part, "abcdef", 6);
    caught("more than was asked for");
    open_client(true);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &m, &part, &err), 0);
    put(MSG_FILE_DATA, 0, part, "abc", 3);
    assert_int_equal(msg_put_u64(&says, MSG_FILE_OK, part, 5), 0);
    caught("less than it says");
}

static void
test_order_on_a_channel(void **state)
{
    (void)state;
    open_client(true);
    assert_int_equal(msg_put_u32(&says, MSG_STARTED, channel, 5), 0);
    assert_int_equal(msg_put_u32(&says, MSG_STARTED, channel, 5), 0);
    caught("started twice");
    open_client(true);
    assert_int_equal(msg_put_u32(&says, MSG_STARTED, channel, 5), 0);
    assert_int_equal(msg_put_exec_failed(&says, channel, &(struct msg_exec_failed){ 2, EXEC_STAGE_EXEC }), 0);
    caught("failed after it started");
}

static void
test_credit(void **state)
{
    char text[101] = "";
    struct guest_event ev;
    size_t taken;

    (void)state;
    open_client(true);          /* opened with a window of 100 */
    put(MSG_STDOUT, 0, channel, text, 100);
    put(MSG_STDERR, 0, channel, text, 100);
    assert_int_equal(say(&ev), 0);
    put(MSG_STDOUT, 0, channel, text, 1);
    caught("more output than the window");
    open_client(true);
    assert_int_equal(msg_put_stdin_window(&says, channel, &(struct msg_stdin_window){ .bytes = 1 }), 0);
    caught("credit for stdin that was never sent");
    open_client(true);
    assert_int_equal(say(&ev), 0);
    assert_int_equal(guest_client_stdin(c, channel, text, 10, &taken, &err), 0);
    assert_int_equal(taken, 10);
    assert_int_equal(msg_put_stdin_window(&says, channel, &(struct msg_stdin_window){ .bytes = 10 }), 0);
    assert_int_equal(say(&ev), 0);
    assert_int_equal(ev.type, GUEST_STDIN_READY);
    assert_int_equal(guest_client_stdin_room(c, channel), MSG_STDIN_WINDOW_START);
    assert_int_equal(msg_put_stdin_window(&says, channel, &(struct msg_stdin_window){ .bytes = UINT32_MAX }), 0);
    caught("credit without end");
    /* And our own mistake: giving back what was not used. */
    open_client(true);
    assert_int_equal(guest_client_window(c, channel, MSG_STREAM_OUT, 1, &err), -1);
    assert_string_equal(err.code, "guest.window");
    close_client();
}

static void
test_passed_descriptors_have_no_relay(void **state)
{
    static const char *const argv[] = { "x", NULL };
    static const char *const env[] = { NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    uint16_t other;

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_client(true);
        x.argv = argv;
        x.env = env;
        x.stdio = EXEC_STDIO_FDS;
        x.fds[0] = x.fds[1] = x.fds[2] = ours;
        assert_int_equal(guest_client_exec(c, &x, &other, &err), 0);
        assert_int_equal(guest_client_stdin_room(c, other), 0);
        if (i == 0)
            put(MSG_STDOUT, 0, other, "x", 1);
        else
            assert_int_equal(msg_put_stdin_window(&says, other, &(struct msg_stdin_window){ .bytes = 0 }), 0);
        caught("relay of a command without one");
    }
}

static void
test_names_in_listings(void **state)
{
    static const char *const names[] = { "", ".", "..", "../x", "/etc/passwd", "a/b" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        uint16_t list;
        size_t at;

        open_client(true);
        assert_int_equal(guest_client_file(c, MSG_FILE_LIST, &(struct msg_file){ .path = "." }, &list, &err), 0);
        at = frame_begin(&says, MSG_FILE_ENTRIES, 0, list);
        assert_int_equal(msg_put_entry(&says, &(struct msg_file_info){ .name = names[i] }), 0);
        assert_int_equal(frame_end(&says, at), 0);
        caught(names[i]);
    }
}

/* Changes: of a watch only, WATCHING first and once, below what is watched, and no more than there is credit for. */
static void
test_changes_that_nobody_asked_for(void **state)
{
    static const struct msg_change watching = { CHANGE_WATCHING, false, "", "" }, overflow = { CHANGE_OVERFLOW, false, "", "" },
                                   made = { CHANGE_CREATED, false, "f", "" }, out = { CHANGE_CREATED, false, "../f", "" },
                                   closed = { CHANGE_UNWATCHED, true, "d", "" };
    static const struct { bool watch; const struct msg_change *says[3]; } lies[] = {
        { false, { &watching } }, { true, { &made } }, { true, { &overflow } }, { true, { &watching, &watching } },
        { true, { &watching, &out } }, { true, { &closed, &overflow } }, { true, { &closed, &watching, &watching } },
    };
    const struct msg_file m = { .path = ".", .length = MSG_WATCH_WINDOW_MIN };
    char path[MSG_PATH_MAX + 1];
    uint16_t asked;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        open_client(true);
        assert_int_equal(guest_client_file(c, lies[i].watch ? MSG_FILE_WATCH : MSG_FILE_LIST, &m, &asked, &err), 0);
        for (size_t k = 0; k < 3 && lies[i].says[k] != NULL; k++)
            assert_int_equal(msg_put_change(&says, asked, lies[i].says[k]), 0);
        caught("a change out of place");
    }
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 200 == 199 ? '/' : 'n';
    path[sizeof(path) - 3] = '\0';
    open_client(true);
    assert_int_equal(guest_client_file(c, MSG_FILE_WATCH, &m, &asked, &err), 0);
    assert_int_equal(msg_put_change(&says, asked, &watching), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(msg_put_change(&says, asked, &(struct msg_change){ CHANGE_CREATED, false, path, "" }), 0);
    caught("more changes than were asked for");
    open_client(true);
    assert_int_equal(guest_client_file(c, MSG_FILE_WATCH, &m, &asked, &err), 0);
    assert_int_equal(msg_put_u64(&says, MSG_FILE_OK, asked, 1), 0);
    caught("a watch that is done");
}

/* A frame that comes in any pieces is the same frame. */
static void
test_byte_by_byte(void **state)
{
    struct guest_event ev;
    int events = 0;

    (void)state;
    open_client(true);
    assert_int_equal(msg_put_u32(&says, MSG_STARTED, channel, 77), 0);
    put(MSG_STDOUT, 0, channel, "hello", 5);
    assert_int_equal(msg_put_denied(&says, &(struct msg_denied){ 2, "mkdir", "/workspace/.vscode", ".vscode" }), 0);
    assert_int_equal(msg_put_exit(&says, channel, &(struct msg_exit){ .status = 3 }), 0);
    for (size_t i = 0; i < says.n; i++) {
        assert_int_equal(io_write_full(theirs, says.p + i, 1), 0);
        assert_int_equal(guest_client_pump(c, &err), 0);
        while (guest_client_next(c, &ev, &err) > 0)
            events++;
    }
    assert_int_equal(events, 5);
    assert_int_equal(ev.type, GUEST_EXIT);
    assert_int_equal(ev.exit.status, 3);
    close_client();
}

/* The end of the stream is told once, after everything that came before it, and a cut frame is dropped. */
static void
test_end_of_stream(void **state)
{
    struct guest_event ev;

    (void)state;
    open_client(true);
    put(MSG_STDOUT, 0, channel, "last", 4);
    put(MSG_STDOUT, 0, channel, "cut off", 7);
    assert_int_equal(io_write_full(theirs, says.p, says.n - 3), 0);
    close(theirs);
    theirs = -1;
    assert_int_equal(guest_client_pump(c, &err), 0);
    assert_int_equal(guest_client_next(c, &ev, &err), 1);
    assert_int_equal(ev.type, GUEST_HELLO);
    assert_int_equal(guest_client_next(c, &ev, &err), 1);
    assert_int_equal(ev.type, GUEST_STDOUT);
    assert_int_equal(guest_client_next(c, &ev, &err), 0);
    assert_int_equal(guest_client_pump(c, &err), 0);
    assert_int_equal(guest_client_next(c, &ev, &err), 1);
    assert_int_equal(ev.type, GUEST_CLOSED);
    assert_int_equal(guest_client_next(c, &ev, &err), 0);
    /* Talking to it is no error: the caller learns of the end from the event. */
    assert_int_equal(guest_client_kill_all(c, SIGKILL, &err), 0);
    assert_int_equal(guest_client_pump(c, &err), 0);
    close_client();
}

/* What is refused before it is sent. */
static void
test_requests_refused_here(void **state)
{
    static const char *const none[] = { NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    char *big = malloc(MSG_STRING_MAX + 2);
    const char *argv[] = { big, NULL };
    uint16_t id;

    (void)state;
    open_client(true);
    x.argv = none;
    x.env = none;
    assert_int_equal(guest_client_exec(c, &x, &id, &err), -1);
    memset(big, 'x', MSG_STRING_MAX + 1);
    big[MSG_STRING_MAX + 1] = '\0';
    x.argv = argv;
    assert_int_equal(guest_client_exec(c, &x, &id, &err), -1);
    assert_string_equal(err.code, "exec.too-large");
    assert_int_equal(guest_client_signal(c, channel, 0, SIGNAL_GROUP, &err), -1);
    assert_int_equal(guest_client_signal(c, channel, 65, SIGNAL_GROUP, &err), -1);
    assert_int_equal(guest_client_file(c, MSG_EXEC, &(struct msg_file){ .path = "f" }, &id, &err), -1);
    assert_int_equal(guest_client_file(c, MSG_FILE_READ, &(struct msg_file){ .path = "../f" }, &id, &err), -1);
    assert_string_equal(err.code, "files.path-escapes");
    assert_string_equal(err.msg, "Path escapes workspace.");
    assert_int_equal(guest_client_file(c, MSG_FILE_RENAME, &(struct msg_file){ .path = "f", .to = "/g" }, &id, &err), -1);
    assert_string_equal(err.code, "files.path-escapes");
    assert_int_equal(guest_client_file(c, MSG_FILE_RENAME, &(struct msg_file){ .path = "f" }, &id, &err), -1);
    /* Nothing of all that is in the stream: the next request is whole. */
    assert_int_equal(guest_client_kill_all(c, SIGTERM, &err), 0);
    free(big);
    close_client();
}

/* Descriptors survive a transport that is full: they are kept until their EXEC leaves. */
static void
test_descriptors_wait_for_a_full_transport(void **state)
{
    static const char *const argv[] = { "x", NULL };
    static const char *const env[] = { NULL };
    struct guest_exec x = GUEST_EXEC_INIT;
    size_t received = 0, fds = 0, sent = 0;
    char junk[4096];
    int pipes[2];

    (void)state;
    open_client(true);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    memset(junk, 'j', sizeof(junk));
    x.argv = argv;
    x.env = env;
    /* Fill the socket: requests that nobody reads. */
    while ((guest_client_poll_events(c) & POLLOUT) == 0 && sent++ < 100000)
        assert_int_equal(guest_client_kill_all(c, SIGCONT, &err), 0);
    x.stdio = EXEC_STDIO_FDS;
    x.fds[0] = x.fds[1] = x.fds[2] = pipes[1];
    for (int i = 0; i < 3; i++) {
        uint16_t id;

        assert_int_equal(guest_client_exec(c, &x, &id, &err), 0);
    }
    close(pipes[1]);
    while (fds < 9 && received < 64 * 1024 * 1024) {
        union {
            struct cmsghdr head;
            char room[256];
        } control;
        struct iovec iov = { .iov_base = junk, .iov_len = sizeof(junk) };
        struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
        ssize_t n;

        assert_int_equal(guest_client_pump(c, &err), 0);
        n = recvmsg(theirs, &m, MSG_DONTWAIT);
        if (n < 0)
            continue;
        received += (size_t)n;
        if (m.msg_controllen > 0) {
            size_t count = (control.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
            int fd[8];

            assert_int_equal(count, 3);
            memcpy(fd, CMSG_DATA(&control.head), count * sizeof(int));
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(write(fd[i], "x", 1), 1);
                close(fd[i]);
            }
            fds += count;
        }
    }
    assert_int_equal(fds, 9);
    assert_int_equal(read(pipes[0], junk, sizeof(junk)), 9);
    assert_int_equal(read(pipes[0], junk, 1), 0);       /* the client let go of its copies */
    close(pipes[0]);
    close_client();
}

/* --- the real guest, and a host that breaks the rules ------------------------------------------------------------ */

/* Send raw bytes to a fresh guest and see how it ends. */
static void
guest_ends(const char *what, const struct buf *b, int code)
{
    struct run r;
    struct pollfd p;
    int status;

    run_start_raw(&r);
    assert_int_equal(io_write_full(r.fd, b->p, b->n), 0);
    p = (struct pollfd){ .fd = r.fd, .events = POLLRDHUP };
    if (poll(&p, 1, 10000) != 1)
        fail_msg("%s: the guest lives on", what);
    status = run_stop(&r);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("%s: wait status 0x%x", what, status);
}

static void
setup_into(struct buf *b)
{
    buf_reset(b);
    assert_int_equal(msg_put_setup(b, &(struct msg_setup){ .version = 1, .flags = MSG_SETUP_LIGHT, .root = "/tmp" }), 0);
}

static void
test_guest_and_messages_it_does_not_know(void **state)
{
    struct buf b = BUF_INIT(65536);

    (void)state;
    for (unsigned type = 0; type < 256; type += type < 0x1c || type > 0x7e ? 1 : 7) {
        if ((type >= MSG_SETUP && type <= MSG_KILL_ALL) || (type >= MSG_FILE_READ && type <= MSG_FILE_RENAME))
            continue;
        setup_into(&b);
        assert_int_equal(frame_append(&b, (uint8_t)type, 0, 1, "", 0), 0);
        guest_ends("unknown type", &b, GUEST_EXIT_PROTOCOL);
    }
    buf_free(&b);
}

static void
test_guest_and_broken_messages(void **state)
{
    static const char *const argv[] = { "true", NULL };
    static const char *const env[] = { NULL };
    const struct msg_exec x = { .stdio = EXEC_STDIO_FDS, .umask = MSG_KEEP, .uid = MSG_KEEP, .gid = MSG_KEEP, .cwd = "" };
    struct msg_exec stream = x;
    uint8_t header[FRAME_HEADER];
    struct buf b = BUF_INIT(1024 * 1024);

    (void)state;
    buf_reset(&b);
    assert_int_equal(msg_put_u32(&b, MSG_KILL_ALL, 0, SIGTERM), 0);
    guest_ends("a request before SETUP", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 1, .flags = MSG_SETUP_LIGHT, .root = "/" }), 0);
    guest_ends("SETUP twice", &b, GUEST_EXIT_PROTOCOL);
    buf_reset(&b);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 2, .flags = MSG_SETUP_LIGHT, .root = "/" }), 0);
    guest_ends("another version", &b, GUEST_EXIT_PROTOCOL);
    buf_reset(&b);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 1, .root = "/" }), 0);
    guest_ends("not light, and not process 1", &b, GUEST_EXIT_PROTOCOL);
    buf_reset(&b);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 1, .flags = MSG_SETUP_LIGHT, .root = "/none" }), 0);
    guest_ends("a root that is not there", &b, GUEST_EXIT_PROTOCOL);
    buf_reset(&b);
    assert_int_equal(msg_put_setup(&b, &(struct msg_setup){ .version = 1, .flags = MSG_SETUP_LIGHT, .root = "/",
                                                            .guard = (const uint8_t *)"junk", .guard_n = 4 }), 0);
    guest_ends("a guard plan that is none", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(msg_put_exec(&b, 1, &x, argv, env), 0);
    guest_ends("descriptors that did not come", &b, GUEST_EXIT_PROTOCOL);
    stream.stdio = EXEC_STDIO_STREAM;
    stream.flags = MSG_EXEC_JOIN(2);
    setup_into(&b);
    assert_int_equal(msg_put_exec(&b, 1, &stream, argv, env), 0);
    guest_ends("cgroups that did not come", &b, GUEST_EXIT_PROTOCOL);
    stream.flags = 0;
    setup_into(&b);
    assert_int_equal(msg_put_exec(&b, 0, &stream, argv, env), 0);
    guest_ends("channel 0", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    frame_header_encode(header, MSG_EXEC, 0, 1, MSG_EXEC_MAX + 1);
    assert_int_equal(buf_append(&b, header, sizeof(header)), 0);
    guest_ends("an EXEC above its ceiling", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(frame_append(&b, MSG_EXEC, 0, 1, "0123456789012345678901234567890123456789012", 43), 0);
    guest_ends("an EXEC of junk", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(frame_append(&b, MSG_STDIN, 0, 1, "", 0), 0);
    guest_ends("an empty STDIN", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(frame_append(&b, MSG_SIGNAL, 9, 1, "\0\0\0\1\0", 5), 0);
    guest_ends("a flag", &b, GUEST_EXIT_PROTOCOL);
    setup_into(&b);
    assert_int_equal(frame_append(&b, MSG_FILE_CHUNK, 0, 4, "x", 1), 0);
    guest_ends("contents for no file", &b, GUEST_EXIT_PROTOCOL);
    buf_free(&b);
}

static void
test_guest_and_stdin_above_its_window(void **state)
{
    static const char *const argv[] = { "sleep", "1000", NULL };
    static const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    const struct msg_exec x = { .stdio = EXEC_STDIO_STREAM, .umask = MSG_KEEP, .uid = MSG_KEEP, .gid = MSG_KEEP, .cwd = "" };
    struct buf b = BUF_INIT(1024 * 1024);
    char *junk = calloc(1, MSG_DATA_MAX);

    (void)state;
    setup_into(&b);
    assert_int_equal(msg_put_exec(&b, 1, &x, argv, env), 0);
    for (int i = 0; i < 4; i++)         /* a pipe takes one, the window another */
        assert_int_equal(frame_append(&b, MSG_STDIN, 0, 1, junk, MSG_DATA_MAX), 0);
    guest_ends("stdin without credit", &b, GUEST_EXIT_PROTOCOL);
    free(junk);
    buf_free(&b);
}

/* A guest without a transport does not run. */
static void
test_guest_without_transport(void **state)
{
    struct run r;
    int status;

    (void)state;
    run_start_raw(&r);
    status = run_stop(&r);              /* closed at once: the end of the transport */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GUEST_EXIT_DONE);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_hello),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_types_and_lengths),
        cmocka_unit_test(test_channels_that_are_not_ours),
        cmocka_unit_test(test_contents_of_a_file), cmocka_unit_test(test_order_on_a_channel),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_passed_descriptors_have_no_relay),
        cmocka_unit_test(test_names_in_listings),
        cmocka_unit_test(test_changes_that_nobody_asked_for),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_end_of_stream),
        cmocka_unit_test(test_requests_refused_here),
        cmocka_unit_test(test_descriptors_wait_for_a_full_transport),
        cmocka_unit_test(test_guest_and_messages_it_does_not_know),
        cmocka_unit_test(test_guest_and_broken_messages),
        cmocka_unit_test(test_guest_and_stdin_above_its_window),
        cmocka_unit_test(test_guest_without_transport),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
