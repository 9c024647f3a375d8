/* prove/prove_outside.c: the sandbox as the kernel shows it to us (see prove.h)
 *
 * What is said inside comes from a place that the wall made. Who the guest is on the host, which groups it kept, where
 * it is counted and what its cgroup allows are facts out here; a second sandbox shows whether it shares any of them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "prove/prove.h"
#include "wall/own_id.h"

#define TEXT_MAX ((size_t)64 * 1024)

static bool
read_of(pid_t pid, const char *file, struct buf *out)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return io_read_file(AT_FDCWD, path, out) == 0 && buf_nul(out) == 0;
}

/* The rest of the line that begins with @name, copied without blanks before and after. */
static bool
line_of(const struct buf *text, const char *name, char *out, size_t n)
{
    const char *at = strstr((const char *)text->p, name);
    size_t len;

    if (at == NULL)
        return false;
    at += strlen(name);
    at += strspn(at, " \t");
    len = strcspn(at, "\n");
    while (len > 0 && at[len - 1] == ' ')
        len--;
    len = len < n ? len : n - 1;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

struct guest {
    char uid[80], gid[80], groups[200], seccomp[16], no_new_privs[16], caps[5][40];
};

static bool
guest_read(pid_t pid, struct guest *g)
{
    static const char *const caps[] = { "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:" };
    cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
    bool ok = read_of(pid, "status", &text) && line_of(&text, "\nUid:", g->uid, sizeof(g->uid)) &&
              line_of(&text, "\nGid:", g->gid, sizeof(g->gid)) &&
              line_of(&text, "\nGroups:", g->groups, sizeof(g->groups)) &&
              line_of(&text, "\nSeccomp:", g->seccomp, sizeof(g->seccomp)) &&
              line_of(&text, "\nNoNewPrivs:", g->no_new_privs, sizeof(g->no_new_privs));

    for (size_t i = 0; ok && i < 5; i++)
        ok = line_of(&text, caps[i], g->caps[i], sizeof(g->caps[i]));
    return ok;
}

/* Four numbers that are all @want; without @want: that are one number, and not 0. */
static bool
four_of(const char *text, const unsigned *want)
{
    uint64_t first = 0;

    for (size_t i = 0; i < 4; i++) {
        size_t n = strcspn(text, "\t ");
        uint64_t v;

        if (!str_parse_u64((struct str){ text, n }, UINT32_MAX, &v) || (want != NULL ? v != *want : v == 0))
            return false;
        first = i == 0 ? v : first;
        if (v != first)
            return false;
        text += n + strspn(text + n, "\t ");
    }
    return *text == '\0';
}

bool
prove_gives_users(void)
{
    uint32_t id = 1;

    return geteuid() == 0 && (own_id(OWN_OF_SANDBOX, 0, &id, NULL) < 0 || id != 0);
}

static bool same_space(pid_t a, pid_t b, const char *name);

static void
check_privilege(struct proof *p, pid_t pid, const struct guest *g)
{
    struct odd odd = ODD(p, "outside.privilege");
    bool caps = true;

    for (size_t i = 0; i < 5; i++)
        /* mode light as an ordinary user cannot empty the bounding set (prove_posture.c) */
        caps &= (i == 3 && !proof_boxed(p) && !prove_gives_users()) || g->caps[i][strspn(g->caps[i], "0")] == '\0';
    if (!caps && !same_space(getpid(), pid, "user"))
        odd_note(&odd, "capabilities in a user namespace of its own");
    else if (!caps)
        odd_note(&odd, "effective %s, bounding %s", g->caps[2], g->caps[3]);
    if (strcmp(g->seccomp, "2") != 0 || strcmp(g->no_new_privs, "1") != 0)
        odd_note(&odd, "seccomp %s, no_new_privs %s", g->seccomp, g->no_new_privs);
    proof_add_odd(p, &odd, "privilege", "R26", "the guest has no capability, a filter, and no_new_privs", "outside",
                  true, "seccomp 2, no_new_privs 1");
}

/* The one supplementary group is the group that it is in anyway. */
static bool
is_own_group(const struct guest *g)
{
    size_t n = strcspn(g->groups, " \t");

    return g->groups[n + strspn(g->groups + n, " \t")] == '\0' && n == strcspn(g->gid, " \t") &&
           strncmp(g->groups, g->gid, n) == 0;
}

static void
check_identity(struct proof *p, const struct guest *g)
{
    struct odd groups = ODD(p, "outside.groups");
    bool root = prove_gives_users();
    unsigned u = geteuid(), own_group = getegid();
    bool uid = four_of(g->uid, root ? NULL : &u), gid = four_of(g->gid, root ? NULL : &own_group);

    proof_add(p, "outside.identity", "privilege", "R26", "on the host it is a separate user, or you, and never root",
              "outside", uid && gid ? CHECK_HELD : CHECK_SURPRISE, "uid %.60s, gid %.60s", g->uid, g->gid);
    /* an ordinary user cannot give groups up */
    if (g->groups[0] != '\0')
        odd_note(&groups, "%s", is_own_group(g) ? "its own group" : g->groups);
    proof_add_odd(p, &groups, "privilege", "R26", "on the host it is in none of your groups", "outside", root, "none");
}

/* --- beside each other -------------------------------------------------------------------------------------------- */

static bool
same_space(pid_t a, pid_t b, const char *name)
{
    char path[64], x[64], y[64];
    ssize_t n, m;

    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)a, name);
    n = readlink(path, x, sizeof(x));
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)b, name);
    m = readlink(path, y, sizeof(y));
    return n > 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

static void
check_neighbour(struct proof *p, pid_t mine, pid_t other, const struct guest *g, const struct guest *o)
{
    static const char *const spaces[] = { "user", "mnt", "pid", "ipc", "uts", "cgroup", "net" };
    size_t n = p->policy->network.v == NETWORK_HOST ? 6 : 7;
    struct odd shared = ODD(p, "outside.neighbour.namespaces");

    /* the owner of what is opened for writing is both sandboxes' user in mode light */
    if (prove_gives_users())
        proof_add(p, "outside.neighbour.uid", "privilege", "R26", "another sandbox is another user on the host",
                  "outside",
                  strcmp(g->uid, o->uid) != 0 && strcmp(g->gid, o->gid) != 0
                      ? CHECK_HELD : proof_boxed(p) ? CHECK_SURPRISE : CHECK_NOT_PROMISED,
                  "uid %.60s and %.60s", g->uid, o->uid);
    for (size_t i = 0; proof_boxed(p) && i < n; i++)
        if (same_space(mine, other, spaces[i]))
            odd_note(&shared, "%s", spaces[i]);
    if (proof_boxed(p))
        proof_add_odd(p, &shared, "namespaces", "R20", "another sandbox shares no namespace with it", "outside", true,
                      "none");
}

/* --- the cgroup --------------------------------------------------------------------------------------------------- */

/* The path of @pid's cgroup: of the hierarchy that has @controller ("" is v2's). */
static bool
cgroup_path(pid_t pid, const char *controller, char *out, size_t n)
{
    cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
    char name[40];
    const char *at;
    size_t len;

    if (!read_of(pid, "cgroup", &text))
        return false;
    snprintf(name, sizeof(name), controller[0] == '\0' ? "0::%s" : ":%s:", controller);
    at = strstr((const char *)text.p, name);
    if (at == NULL)
        return false;
    at += strlen(name);
    len = strcspn(at, "\n");
    if (len >= n)
        return false;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

/* The name of @file of the cgroup @path. In a container the top of the mount is often the container's own cgroup, and
 * @path is told from the host's: then less of it is there. What ends it, a sandbox's id, is nobody else's. */
static bool
file_in(const char *mount, const char *path, const char *file, char *out, size_t n)
{
    for (; path != NULL; path = strchr(path + 1, '/')) {
        snprintf(out, n, "/sys/fs/cgroup%s%s/%s", mount, path, file);
        if (access(out, F_OK) == 0)
            return true;
    }
    return false;
}

/* The number in @file; UINT64_MAX for "max" and where there is none. */
static uint64_t
number_in(const char *mount, const char *path, const char *file)
{
    cleanup_buf struct buf text = BUF_INIT(4096);
    char name[700];
    uint64_t v;
    struct str s;

    if (!file_in(mount, path, file, name, sizeof(name)))
        return UINT64_MAX;
    if (io_read_file(AT_FDCWD, name, &text) < 0 || buf_nul(&text) < 0)
        return UINT64_MAX;
    s = (struct str){ (const char *)text.p, strcspn((const char *)text.p, " \n") };
    return str_parse_u64(s, UINT64_MAX, &v) ? v : UINT64_MAX;
}

struct counted {
    const char *id, *title, *controller, *v1, *v2;
    uint64_t want;          /* 0: no such limit */
    const char *by;         /* the engine says that this keeps it */
};

static void
check_counted(struct proof *p, pid_t pid, const struct counted *c)
{
    bool v2 = strcmp(c->by, "cgroup v2") == 0;
    char own[512] = "", path[512] = "", mount[40] = "";
    uint64_t v;

    if (c->want == 0 || (!v2 && strcmp(c->by, "cgroup v1") != 0)) {
        proof_add(p, c->id, "limits", "R65", c->title, "outside", CHECK_NOT_APPLICABLE, "%s",
                  c->want == 0 ? "no such limit" : "not kept by a cgroup here: the run's report says by what");
        return;
    }
    if (!v2)
        snprintf(mount, sizeof(mount), "/%s", c->controller);
    if (!cgroup_path(pid, v2 ? "" : c->controller, path, sizeof(path)) ||
        !cgroup_path(getpid(), v2 ? "" : c->controller, own, sizeof(own)) || strcmp(path, own) == 0) {
        proof_add(p, c->id, "limits", "R65", c->title, "outside", CHECK_SURPRISE,
                  "it is in no cgroup of its own: %.200s", path);
        return;
    }
    v = number_in(mount, path, v2 ? c->v2 : c->v1);
    proof_add(p, c->id, "limits", "R65", c->title, "outside", v <= c->want ? CHECK_HELD : CHECK_SURPRISE,
              "%llu of at most %llu in %.120s", (unsigned long long)v, (unsigned long long)c->want, path);
}

/* What does not fit must not go to the swap either. A kernel that does not count that has no such file. */
static void
check_swap(struct proof *p, pid_t pid, bool v2, uint64_t memory)
{
    static const char title[] = "its cgroup bounds memory and swap together as the policy says";
    const char *mount = v2 ? "" : "/memory", *file = v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
    char path[512] = "", name[700];
    uint64_t v;

    if (!cgroup_path(pid, v2 ? "" : "memory", path, sizeof(path)))
        return;
    v = number_in(mount, path, file);
    if (v == UINT64_MAX && !file_in(mount, path, file, name, sizeof(name)))
        proof_add(p, "outside.cgroup.swap", "limits", "R65", title, "outside", CHECK_NOT_APPLICABLE,
                  "swap is not counted here");
    else
        proof_add(p, "outside.cgroup.swap", "limits", "R65", title, "outside",
                  v <= (v2 ? 0 : memory) ? CHECK_HELD : CHECK_SURPRISE, "%llu bytes in %.120s", (unsigned long long)v,
                  path);
}

static void
check_cgroup(struct proof *p, pid_t pid, const struct sandbox_facts *facts)
{
    const struct policy_limits *l = &p->policy->limits;
    const struct counted rows[] = {
        /* files in memory are counted too, and have a limit of their own */
        { "outside.cgroup.memory", "its cgroup bounds its memory as the policy says", "memory", "memory.limit_in_bytes",
          "memory.max", l->memory.v == 0 ? 0 : l->memory.v + (proof_boxed(p) ? l->disk.v : 0), facts->memory_by },
        { "outside.cgroup.cpu", "its cgroup bounds its processor time as the policy says", "cpu", "cpu.cfs_quota_us",
          "cpu.max", l->cpu_milli.v * 100, facts->cpu_by },
        { "outside.cgroup.pids", "its cgroup bounds its processes as the policy says", "pids", "pids.max", "pids.max",
          l->pids.v == 0 ? 0 : l->pids.v + 1, facts->pids_by },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_counted(p, pid, &rows[i]);
    if (rows[0].want != 0 && strncmp(rows[0].by, "cgroup", 6) == 0)
        check_swap(p, pid, strcmp(rows[0].by, "cgroup v2") == 0, rows[0].want);
}

void
outside_check(struct proof *p, const struct box *box, const struct box *other)
{
    struct guest mine = { .uid = "" }, theirs = { .uid = "" };

    if (!guest_read(box_pid(box), &mine) || !guest_read(box_pid(other), &theirs)) {
        proof_add(p, "outside.identity", "privilege", "R26",
                  "on the host it is a separate user, or you, and never root", "outside", CHECK_SURPRISE,
                  "the guest cannot be looked at");
        return;
    }
    check_identity(p, &mine);
    check_privilege(p, box_pid(box), &mine);
    check_neighbour(p, box_pid(box), box_pid(other), &mine, &theirs);
    check_cgroup(p, box_pid(box), box_facts(box));
}
