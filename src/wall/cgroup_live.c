/* wall/cgroup_live.c: see cgroup_live.h
 *
 * cgroup v1 refuses a limit of memory below what is in use (EBUSY). v2 takes it and kills for it, so there the sandbox
 * is pressed below it first (memory.high reclaims and kills nobody), and it is looked whether that was enough.
 */
#include "wall/cgroup_live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/str.h"

enum { MEMORY, CPU, PIDS };     /* places in cgroup.dirs of v1 */

/* --- what is to be written ---------------------------------------------------------------------------------------- */

static struct cgroup_step *
cgroup_live_add(struct cgroup_step *out, size_t *n, int dir, const char *file, const char *none, uint64_t value)
{
    struct cgroup_step *s = &out[(*n)++];

    *s = (struct cgroup_step){ .dir = dir, .file = file };
    if (value > 0)
        snprintf(s->text, sizeof(s->text), "%" PRIu64, value);
    else
        snprintf(s->text, sizeof(s->text), "%s", none);
    return s;
}

/* No limit is the largest. */
static bool
lowers(uint64_t from, uint64_t to)
{
    return to > 0 && (from == 0 || to < from);
}

/* Memory and swap together is never below memory alone. */
static void
v1_memory(const struct cgroup *cg, uint64_t from, uint64_t to, uint64_t sockets, struct cgroup_step *out, size_t *n)
{
    static const char memory[] = "memory.limit_in_bytes", both[] = "memory.memsw.limit_in_bytes";

    if (lowers(from, to))
        cgroup_live_add(out, n, cg->dirs[MEMORY], memory, "-1", to);
    cgroup_live_add(out, n, cg->dirs[MEMORY], both, "-1", to)->maybe = true;
    cgroup_live_add(out, n, cg->dirs[MEMORY], CGROUP_V1_SOCKETS, "-1", sockets)->maybe = true;
    if (!lowers(from, to))
        cgroup_live_add(out, n, cg->dirs[MEMORY], memory, "-1", to);
}

static void
v2_memory(const struct cgroup *cg, uint64_t from, uint64_t to, struct cgroup_step *out, size_t *n)
{
    if (lowers(from, to)) {
        struct cgroup_step *s = cgroup_live_add(out, n, cg->dirs[0], "memory.high", "max", to);
        s->maybe = s->squeezes = true;
    }
    cgroup_live_add(out, n, cg->dirs[0], "memory.max", "max", to);
    if (lowers(from, to))
        cgroup_live_add(out, n, cg->dirs[0], "memory.high", "max", 0)->maybe = true;
}

static void
memory(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to,
       struct cgroup_step *out, size_t *n)
{
    if (cg->kind == CGROUP_V1)
        v1_memory(cg, from->memory, to->memory, to->sockets, out, n);
    else
        v2_memory(cg, from->memory, to->memory, out, n);
}

/* Less memory first, more of it last: what was given and used meanwhile could not be taken back. */
size_t
cgroup_steps(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to,
             struct cgroup_step out[CGROUP_STEPS])
{
    bool v1 = cg->kind == CGROUP_V1, less = lowers(from->memory, to->memory);
    size_t n = 0;

    if (less)
        memory(cg, from, to, out, &n);
    if (from->cpu_milli != to->cpu_milli && v1) {
        cgroup_live_add(out, &n, cg->dirs[CPU], "cpu.cfs_quota_us", "-1", to->cpu_milli * 100);
    } else if (from->cpu_milli != to->cpu_milli) {
        cgroup_live_add(out, &n, cg->dirs[0], "cpu.max", "max 100000", to->cpu_milli * 100);
        if (to->cpu_milli > 0)
            snprintf(out[n - 1].text, sizeof(out[0].text), "%" PRIu64 " 100000", to->cpu_milli * 100);
    }
    if (from->pids != to->pids)
        cgroup_live_add(out, &n, cg->dirs[v1 ? PIDS : 0], "pids.max", "max", to->pids);
    if (from->memory != to->memory && !less)
        memory(cg, from, to, out, &n);
    return n;
}

/* --- writing it --------------------------------------------------------------------------------------------------- */

static int
not_held(const struct cgroup *cg, const char *what, struct err *err)
{
    if (cg->kind == CGROUP_SCOPE)
        err_set(err, ERR_UNSUPPORTED, "limits.no-cgroup",
                "the %s limit cannot change while the sandbox lives: systemd holds it (%s), and would put it back",
                what, cg->unit);
    else
        err_set(err, ERR_UNSUPPORTED, "limits.no-cgroup",
                "the %s limit cannot change while the sandbox lives: no cgroup holds it%s%s", what,
                cg->why_not[0] != '\0' ? ": " : "", cg->why_not);
    return err_hint(err, "stop it, change its policy, and recover it: it is made again, empty");
}

static int
held(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to, struct err *err)
{
    bool ours = cg->kind == CGROUP_V1 || cg->kind == CGROUP_V2;

    if (from->memory != to->memory && !(ours && cg->memory))
        return not_held(cg, "memory", err);
    if (from->cpu_milli != to->cpu_milli && !(ours && cg->cpu))
        return not_held(cg, "processor", err);
    return from->pids != to->pids && !(ours && cg->pids) ? not_held(cg, "process", err) : 0;
}

static int
in_use(const struct cgroup *cg, const char *limit, struct err *err)
{
    struct cgroup_now now;

    cgroup_now(cg, &now);
    err_set(err, ERR_DENIED, "limits.in-use", "%" PRIu64 " bytes of memory are in use, files in memory among them: "
            "more than %s", now.memory, limit);
    return err_hint(err, "end what uses it first, or leave it more");
}

/* What is there, for undoing it. */
static int
keep(struct cgroup_step *s)
{
    cleanup_buf struct buf text = BUF_INIT(4096);

    if (io_read_file(s->dir, s->file, &text) < 0 || buf_nul(&text) < 0)
        return -1;
    snprintf(s->was, sizeof(s->was), "%.*s", (int)strcspn((const char *)text.p, "\n"), (const char *)text.p);
    return 0;
}

/* 1: done; 0: there is no such file, which may be; -1 with @err */
static int
take(const struct cgroup *cg, struct cgroup_step *s, struct err *err)
{
    struct cgroup_now now;
    uint64_t most;

    if (keep(s) < 0 || io_write_file(s->dir, s->file, s->text) < 0) {
        if (errno == ENOENT && s->maybe)
            return 0;
        if (errno == EBUSY)
            return in_use(cg, s->text, err);
        return err_sys(err, errno, "wall.cgroup", "write %s to %s", s->text, s->file);
    }
    if (!s->squeezes)
        return 1;
    cgroup_now(cg, &now);
    if (str_parse_u64(str_of(s->text), UINT64_MAX, &most) && now.memory <= most)
        return 1;
    (void)io_write_file(s->dir, s->file, s->was);
    return in_use(cg, s->text, err);
}

int
cgroup_change(const struct cgroup *cg, const struct cgroup_limits *from, const struct cgroup_limits *to,
              struct err *err)
{
    struct cgroup_step steps[CGROUP_STEPS];
    bool done[CGROUP_STEPS] = { false };
    size_t n;

    if (held(cg, from, to, err) < 0)
        return -1;
    n = cgroup_steps(cg, from, to, steps);
    for (size_t i = 0; i < n; i++) {
        int r = take(cg, &steps[i], err);
        done[i] = r > 0;
        if (r >= 0)
            continue;
        while (i-- > 0)
            if (done[i])
                (void)io_write_file(steps[i].dir, steps[i].file, steps[i].was);
        return -1;
    }
    return 0;
}

/* --- pausing ------------------------------------------------------------------------------------------------------ */

/* The kernel freezes each process where it next enters it, so what is written to cgroup.freeze is only asked for; a
 * change of cgroup.events says when it is done. */
static bool
comes_to_rest(const struct cgroup *cg)
{
    cleanup_close int fd = openat(cg->dirs[0], "cgroup.events", O_RDONLY | O_CLOEXEC);
    uint64_t end = clock_us() + FREEZE_US;
    char text[256];

    for (;;) {
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        uint64_t now = clock_us();

        text[n > 0 ? n : 0] = '\0';
        if (strstr(text, "frozen 1\n") != NULL)
            return true;
        struct pollfd p = { .fd = fd, .events = POLLPRI };
        if (n < 0 || now >= end || (poll(&p, 1, (int)((end - now) / 1000) + 1) < 0 && errno != EINTR))
            return false;
    }
}

int
cgroup_freeze(const struct cgroup *cg, bool frozen, struct err *err)
{
    bool asked = cg->kind >= CGROUP_V2 && io_write_file(cg->dirs[0], "cgroup.freeze", frozen ? "1" : "0") == 0;

    if (asked && (!frozen || comes_to_rest(cg)))
        return 0;
    if (asked) {
        (void)io_write_file(cg->dirs[0], "cgroup.freeze", "0");
        err_set(err, ERR_SYSTEM, "wall.cgroup.freeze", "not all of the sandbox came to rest within %d ms",
                FREEZE_US / 1000);
    } else {
        err_set(err, ERR_UNSUPPORTED, "wall.cgroup.freeze", "this sandbox has no cgroup v2 to freeze");
    }
    return err_hint(err, "pause by signal (SIGSTOP) is used instead");
}
