/* engine/docker/http.c: one request to the daemon and its answer
 *
 * Each is a connection of its own. The daemon is root on this host, so what it says is believed, but not without end:
 * an answer has a ceiling and a time. Somebody who is asked to end meanwhile does not wait for it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/docker/docker.h"
#include "wire/http1.h"

#define ANSWER_MAX  (8UL * 1024 * 1024)
#define PIECE       65536
#define PATIENCE_S  120         /* to make the first container a daemon may take long */
#define LOOK_MS     200

static int
reach(const struct docker_daemon *d, struct err *err)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct ucred who = { .uid = (uid_t)-1 };
    socklen_t n = sizeof(who);

    if (fd < 0)
        return err_sys(err, errno, "docker.socket", "socket");
    /* one whose queue is full would keep us waiting for ever (unix(7)) */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = DOCKER_LOOK_S }, sizeof(struct timeval));
    memcpy(to.sun_path, d->socket, sizeof(to.sun_path) < sizeof(d->socket) ? sizeof(to.sun_path) : sizeof(d->socket));
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
        int why = errno;
        err_sys(err, why, why == EACCES ? "docker.socket.denied" : "docker.socket.absent", "no daemon answers at %s",
                d->socket);
        return err_hint(err, why == EACCES ? "its socket is for root and the group docker"
                                           : "start it (systemctl start docker; Podman: systemctl start podman.socket),"
                                             " or name its socket: DOCKER_HOST=unix:///PATH");
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.uid != 0) {
        err_set(err, ERR_DENIED, "docker.socket.owner", "who listens at %s is not root, but uid %u", d->socket,
                who.uid);
        return err_hint(err, "a daemon without root's rights is not for this engine in this release");
    }
    return take_fd(&fd);
}

/* A question's time: that of one that changes nothing may be short. */
struct within { unsigned s; uint64_t until_ms; };

static struct within
within(const struct docker_ask *ask)
{
    unsigned s = ask->within_s > 0 ? ask->within_s : PATIENCE_S;

    return (struct within){ .s = s, .until_ms = clock_ms() + s * 1000UL };
}

/* Until @events of @fd; -1 with @err when it takes too long, or an end was asked for, of which a signal that waits
 * tells. */
static int
await(int fd, short events, struct within w, struct err *err)
{
    struct pollfd p = { .fd = fd, .events = events };
    sigset_t waiting;

    for (;;) {
        int r = poll(&p, 1, LOOK_MS);
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return err_sys(err, errno, "docker.answer", "poll");
        if (sigpending(&waiting) == 0 && (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 ||
                                          sigismember(&waiting, SIGHUP) == 1))
            return err_set(err, ERR_SYSTEM, "docker.interrupted", "interrupted while the daemon was asked");
        if (clock_ms() > w.until_ms)
            return err_set(err, ERR_SYSTEM, "docker.answer", "the daemon does not answer within %u s", w.s);
    }
}

static int
say(int fd, const struct buf *out, struct within w, struct err *err)
{
    for (size_t done = 0; done < out->n;) {
        ssize_t r = send(fd, out->p + done, out->n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (r >= 0)
            done += (size_t)r;
        else if (errno == EAGAIN && await(fd, POLLOUT, w, err) < 0)
            return -1;
        else if (errno != EAGAIN && errno != EINTR)
            return err_sys(err, errno, "docker.answer", "ask the daemon");
    }
    return 0;
}

static int
put_request(const struct docker_daemon *d, const struct docker_ask *ask, struct buf *out, struct err *err)
{
    cleanup_free char *text = ask->body != NULL ? json_dumps(ask->body, JSON_COMPACT) : NULL;
    const char *query = strchrnul(ask->path, '?');
    cleanup_buf struct buf path = BUF_INIT(8192);
    struct http1_add type = { STR_LIT("Content-Type"),
                              str_of(ask->type != NULL ? ask->type : "application/json") };
    struct http1_request_out req = {
        .method = str_of(ask->method), .form = HTTP1_ORIGIN, .scheme = HTTP1_SCHEME_HTTP, .host = STR_LIT("docker"),
        .port = 80, .query = str_of(query),
        .out = { .add = &type, .n_add = 1, .framing = HTTP1_BODY_NONE, .connection = HTTP1_CONN_CLOSE },
    };
    const void *body = text != NULL ? text : ask->raw;
    size_t n = text != NULL ? strlen(text) : ask->raw_n;

    if (ask->body != NULL && text == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (d->api[0] != '\0')
        buf_printf(&path, "/v%s", d->api);
    buf_append(&path, ask->path, (size_t)(query - ask->path));
    req.path = (struct str){ (const char *)path.p, path.n };
    if (strcmp(ask->method, "GET") != 0) {
        req.out.framing = HTTP1_BODY_LENGTH;
        req.out.body_length = n;
    }
    if (!buf_ok(&path) || http1_write_request(out, &req) < 0 || (n > 0 && buf_append(out, body, n) < 0))
        return err_set(err, ERR_LIMIT, "docker.answer", "the request cannot be written");
    return 0;
}

/* More of the answer behind @in: how many bytes, 0 at its end. */
static ssize_t
more(int fd, struct buf *in, struct within w, struct err *err)
{
    ssize_t r;

    if (buf_reserve(in, PIECE) < 0)
        return err_set(err, ERR_LIMIT, "docker.answer", "the daemon's answer is too long");
    do {
        if (await(fd, POLLIN, w, err) < 0)
            return -1;
        r = recv(fd, in->p + in->n, PIECE, MSG_DONTWAIT);
    } while (r < 0 && (errno == EINTR || errno == EAGAIN));
    if (r < 0)
        return err_sys(err, errno, "docker.answer", "the daemon's answer");
    in->n += (size_t)r;
    return r;
}

/* The whole answer: its status, its body in @body. */
static int
hear(int fd, const struct docker_ask *ask, struct buf *body, unsigned *status, struct err *err)
{
    cleanup_buf struct buf in = BUF_INIT(HTTP1_HEAD_MAX + 2 * PIECE);
    const struct within w = within(ask);
    enum http1_result result = HTTP1_MORE;
    static struct http1_head head;
    struct http1_body reader;
    struct str data;
    ssize_t r = 1;
    size_t used;

    while (result == HTTP1_MORE && (r = more(fd, &in, w, err)) > 0)
        result = http1_parse_response(in.p, in.n, str_of(ask->method), &head);
    if (r < 0)
        return -1;
    if (result != HTTP1_OK)
        return err_set(err, ERR_PROTOCOL, "docker.answer", "no answer of a daemon: %s", http1_word(result));
    *status = head.status;
    if (head.framing == HTTP1_BODY_NONE)
        return 0;
    result = http1_body_begin(&reader, &head, ANSWER_MAX) == HTTP1_OK ? HTTP1_MORE : HTTP1_BODY_TOO_LARGE;
    buf_consume(&in, head.length);
    while (result == HTTP1_MORE) {
        while (in.n > 0 && result == HTTP1_MORE) {
            result = http1_body_next(&reader, in.p, in.n, &data, &used);
            if (data.n > 0)
                buf_append(body, data.p, data.n);
            buf_consume(&in, used);
        }
        if (result == HTTP1_MORE && (r = more(fd, &in, w, err)) < 0)
            return -1;
        if (r == 0)
            result = http1_body_end(&reader);
    }
    return result == HTTP1_OK && buf_ok(body)
               ? 0 : err_set(err, ERR_PROTOCOL, "docker.answer", "the daemon's answer: %s", http1_word(result));
}

int
docker_ask(const struct docker_daemon *d, const struct docker_ask *ask, unsigned *status, json_t **out,
           struct err *err)
{
    cleanup_buf struct buf request = BUF_INIT(ANSWER_MAX), body = BUF_INIT(ANSWER_MAX);
    cleanup_close int fd = reach(d, err);

    if (out != NULL)
        *out = NULL;
    if (fd < 0 || put_request(d, ask, &request, err) < 0 ||
        say(fd, &request, within(ask), err) < 0 || hear(fd, ask, &body, status, err) < 0)
        return -1;
    if (out != NULL && body.n > 0)      /* what is none (a stream of progress) is nothing that is needed */
        *out = json_loadb((const char *)body.p, body.n, JSON_DISABLE_EOF_CHECK, NULL);
    return 0;
}

int
docker_refused(const struct docker_daemon *d, unsigned status, const json_t *said, const char *code,
               const char *what, struct err *err)
{
    const char *message = json_string_value(json_object_get(said, "message"));

    return err_set(err, ERR_SYSTEM, code, "%s: %s (%u) says: %s", what, d->name != NULL ? d->name : "the daemon",
                   status, message != NULL ? message : "nothing");
}
