/* run/net_state.c: see net_state.h */
#include "run/net_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "program/state.h"

#define LISTED_MAX 4096         /* names of the folder that are looked at */

int
net_state_open(struct err *err)
{
    return state_own_open("net", "cli.net.state", err);
}

/* A connection to the supervisor of @id; -1 with errno. Never waits. */
static int
reach(int dir, const char *id)
{
    cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    /* the folder's own path may be longer than an address of a socket */
    snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d/%.*s.sock", dir, NET_ID_LENGTH, id);
    return fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : take_fd(&fd);
}

/* A supervisor that was killed leaves its socket's name behind. */
static bool
answers(int dir, const char *id)
{
    cleanup_close int fd = reach(dir, id);

    return fd >= 0 || errno == EAGAIN;
}

static bool
is_id(const char *name, size_t n)
{
    return n == NET_ID_LENGTH && strspn(name, "0123456789abcdef") >= NET_ID_LENGTH;
}

static int
newest_first(const void *a, const void *b)
{
    const struct net_run *x = a, *y = b;

    return x->seen < y->seen ? 1 : x->seen > y->seen ? -1 : strcmp(x->id, y->id);
}

/* The run @id into @out, once. */
static size_t
note_run(int dir, const char *name, const char *suffix, struct net_run *out, size_t n, size_t max)
{
    struct stat st;
    size_t i;

    for (i = 0; i < n && strncmp(out[i].id, name, NET_ID_LENGTH) != 0; i++)
        ;
    if (i == n) {
        if (n == max)
            return n;
        out[n++] = (struct net_run){ .alive = false };
        memcpy(out[i].id, name, NET_ID_LENGTH);
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return n;
    if (strcmp(suffix, ".sock") == 0)
        out[i].alive = true;
    if (strcmp(suffix, ".json") == 0 || out[i].seen == 0)
        out[i].seen = (long long)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    return n;
}

int
net_runs(int dir, struct net_run *out, size_t max, struct err *err)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    size_t n = 0, looked = 0;

    if (d == NULL) {
        close_fd(&fd);
        return err_sys(err, errno, "cli.net.state", "list the state folder");
    }
    while (looked++ < LISTED_MAX && (entry = readdir(d)) != NULL) {
        const char *suffix = entry->d_name + strnlen(entry->d_name, NET_ID_LENGTH);
        if (is_id(entry->d_name, (size_t)(suffix - entry->d_name)) &&
            (strcmp(suffix, ".json") == 0 || strcmp(suffix, ".sock") == 0))
            n = note_run(dir, entry->d_name, suffix, out, n, max);
    }
    for (size_t i = 0; i < n; i++)
        out[i].alive = out[i].alive && answers(dir, out[i].id);
    qsort(out, n, sizeof(*out), newest_first);
    return (int)n;
}

int
net_run_find(int dir, const char *which, bool alive, struct net_run *out, struct err *err)
{
    cleanup_free struct net_run *runs = calloc(LISTED_MAX, sizeof(*runs));
    int n = runs == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory")
                         : net_runs(dir, runs, LISTED_MAX, err);
    size_t length = which != NULL ? strlen(which) : 0, hits = 0;

    if (n < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if ((alive && !runs[i].alive) || length > NET_ID_LENGTH ||
            memcmp(runs[i].id, which != NULL ? which : "", length) != 0)
            continue;
        if (hits++ == 0)
            *out = runs[i];
        if (which == NULL)
            return 0;
    }
    if (hits == 1)
        return 0;
    if (which == NULL)
        return err_set(err, ERR_NOT_FOUND, "cli.net.run", "no run with a network by name %s",
                       alive ? "is going on" : "is known");
    if (hits > 1)
        err_set(err, ERR_NOT_FOUND, "cli.net.run", "\"%s\" is the beginning of several runs", which);
    else
        err_set(err, ERR_NOT_FOUND, "cli.net.run", "no run \"%s\" %s", which, alive ? "is going on" : "is known");
    return err_hint(err, "`cloche net ls` lists the runs");
}

json_t *
net_request(int dir, const char *id, const json_t *request, struct err *err)
{
    const struct timeval patience = { .tv_sec = NET_WAIT_MS / 1000 };
    cleanup_close int fd = reach(dir, id);
    cleanup_free char *text = json_dumps(request, JSON_COMPACT), *answer = malloc(NET_MESSAGE_MAX);
    const char *message, *code, *hint;
    json_t *out;
    ssize_t n;

    if (fd < 0 && (errno == ECONNREFUSED || errno == ENOENT))
        err_set(err, ERR_NOT_FOUND, "cli.net.ended", "the run %.12s has ended", id);
    else if (fd < 0 || io_set_nonblock(fd, false) < 0)
        err_sys(err, errno, "cli.net.socket", "reach the run %.12s", id);
    if (fd < 0)
        return NULL;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (text == NULL || answer == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    n = send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ? -1 : io_recv(fd, answer, NET_MESSAGE_MAX, 0);
    if (n <= 0) {
        if (n < 0)
            err_sys(err, errno, "cli.net.socket", "the run %.12s does not answer", id);
        else
            err_set(err, ERR_DENIED, "cli.net.refused", "the run %.12s answers nobody but its own user", id);
        return NULL;
    }
    out = json_loadb(answer, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
    message = json_string_value(json_object_get(out, "error"));
    code = json_string_value(json_object_get(out, "code"));
    hint = json_string_value(json_object_get(out, "hint"));
    if (json_is_object(out) && message == NULL)
        return out;
    err_set(err, ERR_DENIED, code != NULL ? code : "cli.net.request", "%s",
            message != NULL ? message : "an answer that is none");
    if (hint != NULL && hint[0] != '\0')
        err_hint(err, "%s", hint);
    json_decref(out);
    return NULL;
}

void
net_state_prune(int dir)
{
    cleanup_free struct net_run *runs = calloc(LISTED_MAX, sizeof(*runs));
    int n = runs != NULL ? net_runs(dir, runs, LISTED_MAX, NULL) : 0;
    char name[NET_ID_LENGTH + 8];

    for (int i = NET_RUNS_MAX; i < n; i++) {
        if (runs[i].alive)
            continue;
        snprintf(name, sizeof(name), "%.*s.json", NET_ID_LENGTH, runs[i].id);
        unlinkat(dir, name, 0);
        snprintf(name, sizeof(name), "%.*s.sock", NET_ID_LENGTH, runs[i].id);
        unlinkat(dir, name, 0);
        snprintf(name, sizeof(name), "%.*s.new", NET_ID_LENGTH, runs[i].id);
        unlinkat(dir, name, 0);
    }
}
