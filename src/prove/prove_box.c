/* prove/prove_box.c: see prove.h
 *
 * The probe is handed in as a descriptor: a sealed memory file that is the command's stdin and is executed through
 * /proc/self/fd/0. So nothing has to be put into the sandbox, no path has to be opened for it, and the policy that
 * is proven is the policy as it is. Where no descriptor can be handed in (struct sandbox_facts: streams_only) a shell
 * inside writes it, from its stdin, to a file below /tmp.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/memfile.h"
#include "engine/engine.h"
#include "guest/client.h"
#include "probe/probe_image.h"
#include "prove/prove.h"

#define INSIDE "/tmp/cloche-probe"
#define PROBE_MS 120000         /* one run; a probe that takes longer has hung */

struct box {
    const struct policy *policy;
    bool bare;
    int image;
    struct sandbox *sb;
    struct guest_client *client;
    int transport;          /* the sandbox's own */
};

static int
image_make(struct err *err)
{
    char path[64];
    cleanup_close int fd = memfile_sealed("cloche-probe", true, probe_image, probe_image_size);

    if (fd < 0 || fchmod(fd, 0555) < 0)
        return err_sys(err, errno, "prove.probe", "the probe's memory file");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    return reader < 0 ? err_sys(err, errno, "prove.probe", "%s", path) : reader;
}

int
box_open(const struct policy *policy, bool bare, struct box **out, struct err *err)
{
    struct box *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    b->policy = policy;
    b->bare = bare;
    b->image = image_make(err);
    if (b->image < 0 || (!bare && (sandbox_create(policy, NULL, &b->sb, err) < 0 ||
                                 sandbox_begin(b->sb, &b->transport, &b->client, err) < 0))) {
        box_close(b);
        return -1;
    }
    *out = b;
    return 0;
}

void
box_close(struct box *b)
{
    guest_client_free(b->client);
    if (b->sb != NULL) {
        sandbox_abandon(b->sb);     /* a copy-on-write workspace of a proof is nobody's work */
        sandbox_destroy(b->sb);
    }
    close_fd(&b->image);
    free(b);
}

pid_t
box_pid(const struct box *b)
{
    return b->sb != NULL ? sandbox_guest(b->sb) : -1;
}

const struct sandbox_facts *
box_facts(const struct box *b)
{
    return sandbox_facts(b->sb);
}

/* How the probe's end is known: by the guest's word, or (bare) by waitpid. */
struct run {
    struct box *box;
    pid_t pid;              /* bare */
    uint16_t channel;
    bool ended;
    int status;             /* exit code, or 128 + signal */
    bool streams;           /* the guest relays its streams, and the probe itself, of which @sent bytes are there */
    size_t sent;
    struct buf out, said;   /* stdout, stderr */
    int out_fd, said_fd;
};

static int
start_inside(struct run *r, const char *const *argv, const int fds[3], struct err *err)
{
    struct guest_exec x = GUEST_EXEC_INIT;

    x.argv = argv;
    x.env = sandbox_facts(r->box->sb)->env;
    /* the guest is there already; its user may not be able to reach the place by path */
    x.cwd = "";
    x.stdio = EXEC_STDIO_FDS;
    memcpy(x.fds, fds, sizeof(x.fds));
    x.flags = MSG_EXEC_QUIET;
    x.umask = 022;
    return guest_client_exec(r->box->client, &x, &r->channel, err);
}

/* @argv without its first word, which is a descriptor. */
static int
start_streams(struct run *r, const char *const *argv, struct err *err)
{
    struct guest_exec x = GUEST_EXEC_INIT;
    const char *words[PROVE_ARGS_MAX + 6] = {
        "/bin/sh", "-c", "unset PWD; rm -f " INSIDE "; cat > " INSIDE " && chmod 555 " INSIDE " && exec " INSIDE
        " \"$@\" < " INSIDE, "sh"
    };

    for (size_t n = 4; *++argv != NULL; n++)
        words[n] = *argv;
    r->streams = true;
    x.argv = words;
    x.env = sandbox_facts(r->box->sb)->env;
    x.cwd = "";
    x.flags = MSG_EXEC_QUIET;
    x.umask = 022;
    return guest_client_exec(r->box->client, &x, &r->channel, err);
}

/* As much of the probe as there is room for. */
static int
send_probe(struct run *r, struct err *err)
{
    struct guest_client *c = r->box->client;
    size_t taken;

    while (r->sent < probe_image_size && guest_client_stdin_room(c, r->channel) > 0) {
        if (guest_client_stdin(c, r->channel, probe_image + r->sent, probe_image_size - r->sent, &taken, err) < 0)
            return -1;
        r->sent += taken;
        if (r->sent == probe_image_size && guest_client_close_stdin(c, r->channel, err) < 0)
            return -1;
    }
    return 0;
}

static int
start_bare(struct run *r, const char *const *argv, const int fds[3], struct err *err)
{
    r->pid = fork();
    if (r->pid < 0)
        return err_sys(err, errno, "prove.probe", "fork");
    if (r->pid > 0)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < 3; i++)
        if (dup2(fds[i], i) < 0)
            _exit(125);
    /* execve takes pointers to what it does not change */
    union { const char *const *in; char *const *out; } words = { .in = argv };
    execv("/proc/self/fd/0", words.out);
    _exit(126);
}

static int
take_events(struct run *r, struct err *err)
{
    struct guest_event ev;
    int got;

    while ((got = guest_client_next(r->box->client, &ev, err)) == 1) {
        if (ev.type == GUEST_EXIT && ev.channel == r->channel) {
            r->ended = true;
            r->status = ev.exit.flags & MSG_EXIT_SIGNALED ? 128 + (int)ev.exit.status : (int)ev.exit.status;
        } else if ((ev.type == GUEST_STDOUT || ev.type == GUEST_STDERR) && ev.channel == r->channel) {
            (void)buf_append(ev.type == GUEST_STDOUT ? &r->out : &r->said, ev.data.p, ev.data.n);
        } else if (ev.type == GUEST_EXEC_FAILED && ev.channel == r->channel) {
            return guest_exec_failed_err(&ev.exec_failed, "the probe", sandbox_facts(r->box->sb)->workdir, err);
        } else if (ev.type == GUEST_CLOSED) {
            return sandbox_lost(r->box->sb, err);
        }
    }
    return got;
}

/* Read what is there. False at the end of the stream. */
static bool
take_output(int *fd, struct buf *out)
{
    char chunk[16384];
    ssize_t n = read(*fd, chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0 || buf_append(out, chunk, (size_t)n) < 0)
        close_fd(fd);
    return *fd >= 0;
}

static int
follow(struct run *r, struct err *err)
{
    uint64_t deadline = clock_ms() + PROBE_MS;

    while (r->out_fd >= 0 || r->said_fd >= 0 || (!r->ended && !r->box->bare)) {
        struct pollfd p[3] = {
            { .fd = r->out_fd, .events = POLLIN },
            { .fd = r->said_fd, .events = POLLIN },
            { .fd = r->box->bare ? -1 : r->box->transport, .events = POLLIN },
        };

        if (!r->box->bare)
            p[2].events = guest_client_poll_events(r->box->client);
        if (clock_ms() > deadline)
            return err_set(err, ERR_LIMIT, "prove.hung", "the probe did not end within %d s", PROBE_MS / 1000);
        if (poll(p, 3, 1000) < 0 && errno != EINTR)
            return err_sys(err, errno, "prove.probe", "poll");
        if (p[0].revents != 0)
            take_output(&r->out_fd, &r->out);
        if (p[1].revents != 0)
            take_output(&r->said_fd, &r->said);
        if (r->box->bare)
            continue;
        if (p[2].revents != 0 && guest_client_pump(r->box->client, err) < 0)
            return -1;
        if (take_events(r, err) < 0 || (r->streams && !r->ended && send_probe(r, err) < 0))
            return -1;
    }
    return 0;
}

static void
reap_bare(struct run *r)
{
    int status = 0;

    if (r->pid <= 0)
        return;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
run_probe(struct run *r, const char *const *argv, struct err *err)
{
    cleanup_close int out_end = -1;
    cleanup_close int said_end = -1;
    int out[2], said[2], fds[3], rc;

    if (!r->box->bare && sandbox_facts(r->box->sb)->streams_only)
        return start_streams(r, argv, err) < 0 ? -1 : follow(r, err);
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, errno, "prove.probe", "pipe");
    r->out_fd = out[0];
    out_end = out[1];
    if (pipe2(said, O_CLOEXEC) < 0)
        return err_sys(err, errno, "prove.probe", "pipe");
    r->said_fd = said[0];
    said_end = said[1];
    fds[0] = r->box->image;
    fds[1] = out_end;
    fds[2] = said_end;
    rc = r->box->bare ? start_bare(r, argv, fds, err) : start_inside(r, argv, fds, err);
    close_fd(&out_end);
    close_fd(&said_end);
    if (rc == 0)
        rc = follow(r, err);
    if (rc < 0 && r->pid > 0)
        kill(r->pid, SIGKILL);
    if (r->box->bare)
        reap_bare(r);
    return rc;
}

json_t *
box_probe(struct box *b, const char *const *args, struct err *err)
{
    struct run r = {
        .box = b, .out_fd = -1, .said_fd = -1, .out = BUF_INIT(PROVE_OUTPUT_MAX), .said = BUF_INIT(65536)
    };
    const char *argv[PROVE_ARGS_MAX + 2] = { "/proc/self/fd/0" };
    json_error_t where;
    json_t *got = NULL;
    size_t n = 0;

    while (n < PROVE_ARGS_MAX && args[n] != NULL) {
        argv[n + 1] = args[n];
        n++;
    }
    if (run_probe(&r, argv, err) == 0) {
        if (r.status == 0 && buf_ok(&r.out))
            got = json_loadb((const char *)r.out.p, r.out.n, JSON_REJECT_DUPLICATES, &where);
        if (got == NULL)
            err_set(err, ERR_PROTOCOL, "prove.probe", "the probe ended with status %d and %s; it said: %.*s", r.status,
                    r.status == 0 ? "no valid report" : "without a report", (int)(r.said.n < 400 ? r.said.n : 400),
                    r.said.n > 0 ? (const char *)r.said.p : "");
    }
    close_fd(&r.out_fd);
    close_fd(&r.said_fd);
    buf_free(&r.out);
    buf_free(&r.said);
    return got;
}
