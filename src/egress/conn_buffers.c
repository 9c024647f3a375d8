/* egress/conn_buffers.c: what the kernel may hold of connections' bytes
 *
 * While there are few connections the kernel sizes their buffers by their path (tcp(7), tcp_moderate_rcvbuf): a fixed
 * size is all that can be under way at a time, so far servers would be slow. It goes up to the host's setting, and
 * that says how many are few. More connections have buffers of a fixed size, the smaller the more there are.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/str.h"
#include "egress/conn.h"

/* The sizes of all buffers together stay within BUFFERS_ALL bytes, however many connections there are; each has four,
 * and the kernel doubles a size that is asked for. What is in a buffer that shrinks stays until it is read. */
#define BUFFERS_ALL   ((size_t)1 << 30)
#define OF_EACH       ((size_t)4 * 2)
#define BUFFER_MOST   (512 * 1024)
#define BUFFER_LEAST  (8 * 1024)
#define SETTING_MAX   256

#if !defined(SO_BUF_LOCK)       /* Linux 5.14 */
#define SO_BUF_LOCK 72
#endif

/* The last of the three numbers in @path; 0 when it cannot be had. */
static size_t
ceiling(const char *path)
{
    cleanup_buf struct buf text = BUF_INIT(SETTING_MAX);
    const uint8_t *last;
    uint64_t bytes;
    size_t n;

    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return 0;
    n = text.n > 0 && text.p[text.n - 1] == '\n' ? text.n - 1 : text.n;
    last = n > 0 ? memrchr(text.p, '\t', n) : NULL;
    if (last == NULL ||
        !str_parse_u64((struct str){ (const char *)last + 1, (size_t)(text.p + n - last) - 1 }, BUFFERS_ALL, &bytes))
        return 0;
    return (size_t)bytes;
}

void
conn_buffers_init(struct egress *e)
{
    size_t in = ceiling("/proc/sys/net/ipv4/tcp_rmem"), out = ceiling("/proc/sys/net/ipv4/tcp_wmem");

    e->tuned_max = in == 0 || out == 0 ? 0 : BUFFERS_ALL / (2 * (in + out));
}

static void
set(int fd, int size)
{
    const int unlocked = 0;

    if (fd < 0)
        return;
    if (size == 0) {
        /* an older kernel leaves the size that they have */
        (void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &unlocked, sizeof(unlocked));
        return;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

void
conn_limit_buffers(const struct egress *e, int fd)
{
    if (e->buffer != 0)
        set(fd, e->buffer);
}

/* 0: the kernel's own */
static int
share(const struct egress *e, size_t n)
{
    int size = BUFFER_MOST;

    if (n <= e->tuned_max)
        return 0;
    while (size > BUFFER_LEAST && (size_t)size * OF_EACH * n > BUFFERS_ALL)
        size /= 2;
    return size;
}

static bool
larger(int a, int b)
{
    return a != b && (a == 0 || (b != 0 && a > b));
}

void
conn_share_buffers(struct egress *e)
{
    int most = share(e, e->n_conns), size = share(e, 2 * e->n_conns);

    /* between the two it stays, so that one connection more or less does not change all of them again and again */
    if (larger(e->buffer, most))
        size = most;
    else if (!larger(size, e->buffer))
        return;
    e->buffer = size;
    for (struct conn *c = e->conns; c != NULL; c = c->next) {
        set(c->client.fd, size);
        set(c->server.fd, size);
    }
}
