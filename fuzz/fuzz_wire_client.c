/* the host's client, and a guest that says anything: it never crashes, never gives more than was asked for, and one
 * refusal is the last thing that it says
 *
 * Input: a byte that says how the stream is cut, then the guest's bytes. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "guest/client_priv.h"

#define WINDOW 64

struct claim {
    size_t out[4];      /* output that the client let through: stdout and stderr of the two with a window */
    size_t open_execs, open_files;
    size_t changes;     /* bytes of what it says of a watch */
    bool watching, closed;
};

static void
check(struct claim *k, const struct guest_event *ev, const uint16_t execs[3])
{
    switch (ev->type) {
    case GUEST_STDOUT:
    case GUEST_STDERR:
        FUZZ_ASSERT(ev->data.n > 0 && ev->data.n <= MSG_DATA_MAX);
        if (ev->channel == execs[1]) {
            FUZZ_ASSERT(ev->type == GUEST_STDOUT);      /* a terminal has no stderr */
        } else {
            bool first = ev->channel == execs[0];
            size_t *sum = &k->out[(first ? 0 : 2) + (ev->type == GUEST_STDERR)];

            FUZZ_ASSERT(first || ev->channel == execs[2]);
            *sum += ev->data.n;
            FUZZ_ASSERT(*sum <= (first ? WINDOW : 1));
        }
        break;
    case GUEST_EXIT:
    case GUEST_EXEC_FAILED:
        FUZZ_ASSERT(k->open_execs-- > 0);
        break;
    case GUEST_FILE_DONE:
    case GUEST_FILE_FAILED:
    case GUEST_FILE_INFO:
        FUZZ_ASSERT(k->open_files-- > 0);
        break;
    case GUEST_FILE_CHANGE:
        k->changes += guest_change_bytes(&ev->change);
        FUZZ_ASSERT(k->changes <= MSG_WATCH_WINDOW_MIN);
        FUZZ_ASSERT(ev->change.kind == CHANGE_UNWATCHED || k->watching == (ev->change.kind != CHANGE_WATCHING));
        k->watching = k->watching || ev->change.kind == CHANGE_WATCHING;
        FUZZ_ASSERT(ev->change.path[0] == '\0' || msg_change_path(ev->change.path));
        break;
    case GUEST_DENIED:
        FUZZ_ASSERT(strlen(ev->denied.target) <= MSG_PATH_MAX && strlen(ev->denied.op) <= MSG_LABEL_MAX);
        break;
    case GUEST_CLOSED:
        FUZZ_ASSERT(!k->closed);
        k->closed = true;
        break;
    default: break;
    }
}

static struct guest_client *
client_with_requests(int fd, uint16_t execs[3], struct claim *k)
{
    static const char *const argv[] = { "x", NULL };
    static const char *const env[] = { NULL };
    static const uint8_t files[] = { MSG_FILE_READ, MSG_FILE_LIST, MSG_FILE_STAT, MSG_FILE_WRITE, MSG_FILE_REMOVE };
    struct guest_exec x = GUEST_EXEC_INIT;
    struct guest_client *c;
    uint16_t id;

    FUZZ_ASSERT(guest_client_new(fd, &c, NULL) == 0);
    FUZZ_ASSERT(guest_client_setup(c, &(struct msg_setup){ .root = "/w" }, NULL) == 0);
    x.argv = argv;
    x.env = env;
    x.window = WINDOW;
    FUZZ_ASSERT(guest_client_exec(c, &x, &execs[0], NULL) == 0);
    x.window = 0;
    x.stdio = EXEC_STDIO_PTY;
    FUZZ_ASSERT(guest_client_exec(c, &x, &execs[1], NULL) == 0);
    x.stdio = EXEC_STDIO_STREAM;
    x.flags = MSG_EXEC_NO_STDIN;
    x.window = 1;
    FUZZ_ASSERT(guest_client_exec(c, &x, &execs[2], NULL) == 0);
    k->open_execs = 3;
    for (size_t i = 0; i < sizeof(files); i++)
        FUZZ_ASSERT(guest_client_file(c, files[i], &(struct msg_file){ .path = "f" }, &id, NULL) == 0);
    FUZZ_ASSERT(guest_client_file(c, MSG_FILE_WATCH, &(struct msg_file){ .path = "f", .length = MSG_WATCH_WINDOW_MIN },
                                  &id, NULL) == 0);
    k->open_files = sizeof(files) + 1;
    return c;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static int sink = -1;       /* swallows what the client sends; reading it is the end of the stream */
    struct claim k = { .closed = false };
    struct guest_client *c;
    struct guest_event ev;
    uint16_t execs[3];
    struct err err = ERR_INIT;
    size_t step;
    int rc = 0;

    if (n < 1 || n > CLIENT_IN_MAX)
        return 0;
    if (sink < 0)
        sink = open("/dev/null", O_RDWR | O_CLOEXEC);
    step = data[0] == 0 ? n : data[0];
    c = client_with_requests(sink, execs, &k);
    for (size_t at = 1; at < n && rc >= 0; at += step) {
        size_t part = n - at < step ? n - at : step;

        /* What guest_client_pump does, without a socket. */
        buf_consume(&c->in, c->in_at);
        c->in_at = 0;
        FUZZ_ASSERT(buf_append(&c->in, data + at, part) == 0);
        while ((rc = guest_client_next(c, &ev, &err)) > 0)
            check(&k, &ev, execs);
    }
    if (rc < 0) {
        FUZZ_ASSERT(err.kind == ERR_PROTOCOL && strcmp(err.code, "guest.protocol") == 0);
        FUZZ_ASSERT(guest_client_next(c, &ev, &err) == -1 && guest_client_pump(c, &err) == -1);
    }
    guest_client_free(c);
    return 0;
}
