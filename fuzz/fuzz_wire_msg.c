/* every payload decoder of the guest protocol: what is accepted is exactly what its encoder writes, so no two byte
 * strings mean the same and nothing is left unread
 *
 * Input: the message type, then its payload. */
#include "fuzz.h"

#include <string.h>

#include "wire/msg.h"

/* Room for the largest message there is. */
#define ROUND_MAX (MSG_EXEC_MAX + 1024 * 1024)

static void
same(const struct frame *f, struct buf *b, int rc)
{
    FUZZ_ASSERT(rc == 0 && buf_ok(b));
    FUZZ_ASSERT(b->n == FRAME_HEADER + (size_t)f->length);
    FUZZ_ASSERT(f->length == 0 || memcmp(b->p + FRAME_HEADER, f->payload, f->length) == 0);
}

static void
exec_again(const struct frame *f, struct buf *b)
{
    const char **argv, **env;
    struct msg_exec m;

    if (!msg_get_exec(f, &m))
        return;
    FUZZ_ASSERT(m.argv.count > 0 && m.n_rlimits <= MSG_RLIMITS_MAX);
    argv = calloc((size_t)m.argv.count + 1, sizeof(*argv));
    env = calloc((size_t)m.env.count + 1, sizeof(*env));
    msg_strings_fill(&m.argv, argv);
    msg_strings_fill(&m.env, env);
    for (uint32_t i = 0; i < m.argv.count; i++)
        FUZZ_ASSERT(argv[i] != NULL && strlen(argv[i]) <= MSG_STRING_MAX);
    same(f, b, msg_put_exec(b, f->channel, &m, argv, env));
    free(argv);
    free(env);
}

static void
file_again(const struct frame *f, struct buf *b)
{
    struct msg_file m;
    const char *rel;

    if (!msg_get_file(f, &m))
        return;
    same(f, b, msg_put_file(b, f->type, f->channel, &m));
    if (msg_path_shape("/workspace", m.path, &rel)) {
        FUZZ_ASSERT(rel[0] != '/' && rel[0] != '\0');
        FUZZ_ASSERT(strcmp(rel, "..") != 0 && strncmp(rel, "../", 3) != 0 && strstr(rel, "/../") == NULL);
        FUZZ_ASSERT(m.path[0] != '/' || strncmp(m.path, "/workspace", 10) == 0);
    }
}

static void
entries_again(const struct frame *f, struct buf *b)
{
    struct wire_in in = wire_in_of(f->payload, f->length);
    size_t at = frame_begin(b, f->type, 0, f->channel);
    struct msg_file_info m;

    while (msg_next_entry(&in, &m)) {
        FUZZ_ASSERT(strchr(m.name, '/') == NULL && strcmp(m.name, "..") != 0);
        FUZZ_ASSERT(msg_put_entry(b, &m) == 0);
    }
    if (!in.bad)
        same(f, b, frame_end(b, at));
}

static void
change_again(const struct frame *f, struct buf *b)
{
    struct msg_change m;

    if (!msg_get_change(f, &m))
        return;
    FUZZ_ASSERT(m.path[0] != '/' && strcmp(m.path, "..") != 0 && strncmp(m.path, "../", 3) != 0);
    FUZZ_ASSERT(strstr(m.path, "/../") == NULL && strstr(m.path, "//") == NULL && strlen(m.path) <= MSG_PATH_MAX);
    FUZZ_ASSERT(m.from[0] == '\0' || (m.kind == CHANGE_RENAMED && msg_change_path(m.from)));
    same(f, b, msg_put_change(b, 1, &m));
}

#define AGAIN(type_, get, put)                  \
    do {                                        \
        struct type_ m_;                        \
        if (get(f, &m_))                        \
            same(f, b, put);                    \
    } while (0)

static void
from_host(const struct frame *f, struct buf *b)
{
    uint32_t v;

    switch (f->type) {
    case MSG_SETUP: AGAIN(msg_setup, msg_get_setup, msg_put_setup(b, &m_)); break;
    case MSG_EXEC: exec_again(f, b); break;
    case MSG_CONNECT: AGAIN(msg_connect, msg_get_connect, msg_put_connect(b, 1, &m_)); break;
    case MSG_WINDOW: AGAIN(msg_window, msg_get_window, msg_put_window(b, 1, &m_)); break;
    case MSG_RESIZE: AGAIN(msg_resize, msg_get_resize, msg_put_resize(b, 1, &m_)); break;
    case MSG_SIGNAL: AGAIN(msg_signal, msg_get_signal, msg_put_signal(b, 1, &m_)); break;
    case MSG_KILL_ALL:
        if (msg_get_u32(f, &v))
            same(f, b, msg_put_u32(b, MSG_KILL_ALL, 0, v));
        break;
    case MSG_FILE_MORE:
        if (msg_get_u32(f, &v))
            same(f, b, msg_put_u32(b, MSG_FILE_MORE, 1, v));
        break;
    default:
        if (f->type >= MSG_FILE_READ && f->type <= MSG_FILE_WATCH)
            file_again(f, b);
    }
}

static void
from_guest(const struct frame *f, struct buf *b)
{
    uint64_t v;

    switch (f->type) {
    case MSG_HELLO: AGAIN(msg_hello, msg_get_hello, msg_put_hello(b, &m_)); break;
    case MSG_EXEC_FAILED: AGAIN(msg_exec_failed, msg_get_exec_failed, msg_put_exec_failed(b, 1, &m_)); break;
    case MSG_STDIN_WINDOW: AGAIN(msg_stdin_window, msg_get_stdin_window, msg_put_stdin_window(b, 1, &m_)); break;
    case MSG_EXIT: AGAIN(msg_exit, msg_get_exit, msg_put_exit(b, 1, &m_)); break;
    case MSG_DENIED: AGAIN(msg_denied, msg_get_denied, msg_put_denied(b, &m_)); break;
    case MSG_NOTICE: AGAIN(msg_notice, msg_get_notice, msg_put_notice(b, &m_)); break;
    case MSG_FILE_ERROR: AGAIN(msg_file_error, msg_get_file_error, msg_put_file_error(b, 1, &m_)); break;
    case MSG_FILE_INFO: AGAIN(msg_file_info, msg_get_file_info, msg_put_file_info(b, 1, &m_)); break;
    case MSG_FILE_ENTRIES: entries_again(f, b); break;
    case MSG_FILE_CHANGE: change_again(f, b); break;
    case MSG_FILE_OK:
        if (msg_get_u64(f, &v))
            same(f, b, msg_put_u64(b, MSG_FILE_OK, 1, v));
        break;
    default: break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf b = BUF_INIT(ROUND_MAX);
    struct frame f;

    if (n == 0 || n > ROUND_MAX / 2)
        return 0;
    f = (struct frame){ .type = data[0], .channel = 1, .length = (uint32_t)(n - 1), .payload = data + 1 };
    from_host(&f, &b);
    buf_reset(&b);
    from_guest(&f, &b);
    buf_free(&b);
    return 0;
}
