/* prove/prove_posture.c: who the sandbox is: ids, capabilities, filters, descriptors, processes (see prove.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/kernel.h"
#include "base/str.h"
#include "match/path.h"
#include "program/json.h"
#include "prove/prove.h"

bool
proof_boxed(const struct proof *p)
{
    return p->policy->mode.v != MODE_LIGHT;
}

bool
proof_captured(const struct proof *p)
{
    return proof_boxed(p) && !p->bare && p->policy->network.v == NETWORK_ALLOWLIST;
}

bool
proof_private_root(const struct proof *p)
{
    return proof_boxed(p) && (p->policy->view.v == VIEW_PRIVATE || p->bare);
}

bool
proof_own_network(const struct proof *p)
{
    return proof_boxed(p) && (p->policy->network.v != NETWORK_HOST || p->bare);
}

bool
posture_all(const json_t *list, bool (*ok)(const struct proof *, const char *), const struct proof *p, const char **odd)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        const char *text = json_string_value(item);
        if (text == NULL || !ok(p, text)) {
            *odd = text != NULL ? text : "?";
            return false;
        }
    }
    return json_is_array(list);
}

struct str
prove_word(const char *text, size_t number)
{
    for (text += strspn(text, " "); number > 0; number--) {
        text += strcspn(text, " \n");
        text += strspn(text, " ");
    }
    return (struct str){ text, strcspn(text, " \n") };
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

static pid_t
number_of(const json_t *object, const char *key)
{
    uint64_t v;

    return str_parse_u64(str_of(json_text(object, key)), 1 << 30, &v) ? (pid_t)v : -1;
}

/* In light mode the host's processes are visible too: ours are the guest and what descends from it. */
static bool
is_ours(const struct proof *p, const json_t *threads, const json_t *thread)
{
    pid_t pid = number_of(thread, "pid");

    if (proof_boxed(p) && !p->bare)
        return true;
    for (unsigned depth = 0; depth < 64 && pid > 1; depth++) {
        const json_t *other;
        pid_t parent = 0;
        size_t i;

        if (pid == p->guest_pid)
            return true;
        json_array_foreach(threads, i, other) {
            if (number_of(other, "pid") == pid) {
                parent = number_of(other, "ppid");
                break;
            }
        }
        pid = parent;
    }
    return false;
}

typedef bool thread_rule(const struct proof *p, const json_t *thread);

/* The bounding set only bounds what an exec could give, and no_new_privs lets none give anything. An ordinary user has
 * not the privilege to empty it: outside of a user namespace (mode light) it stays as it is. */
static bool
no_capabilities(const struct proof *p, const json_t *t)
{
    static const char *const sets[] = { "cap_inh", "cap_prm", "cap_eff", "cap_amb", "cap_bnd" };
    size_t n = proof_boxed(p) || geteuid() == 0 ? 5 : 4;

    for (size_t i = 0; i < n; i++) {
        const char *v = json_text(t, sets[i]);
        if (v[0] == '\0' || v[strspn(v, "0")] != '\0')
            return false;
    }
    return true;
}

static bool
no_new_privileges(const struct proof *p, const json_t *t)
{
    (void)p;
    return strcmp(json_text(t, "no_new_privs"), "1") == 0;
}

static bool
filtered(const struct proof *p, const json_t *t)
{
    const char *count = json_text(t, "filters");

    (void)p;
    return strcmp(json_text(t, "seccomp"), "2") == 0 && (count[0] == '\0' || strcmp(count, "0") != 0);
}

static void
check_threads(struct proof *p, const json_t *posture, const char *when)
{
    static const struct { const char *id, *title; thread_rule *ok; } rules[] = {
        { "posture.caps.zero", "no thread has any capability in any of the five sets", no_capabilities },
        { "posture.no-new-privs", "no_new_privs is on in every thread", no_new_privileges },
        { "posture.seccomp", "the system call filter is on every thread", filtered },
    };
    const json_t *threads = json_object_get(posture, "threads"), *t;
    size_t i;

    for (size_t r = 0; r < ARRAY_LEN(rules); r++) {
        enum check_state state = CHECK_HELD;
        char detail[240] = "";
        size_t seen = 0;

        json_array_foreach(threads, i, t) {
            if (!is_ours(p, threads, t))
                continue;
            seen++;
            if (!rules[r].ok(p, t) && state == CHECK_HELD) {
                state = CHECK_SURPRISE;
                snprintf(detail, sizeof(detail),
                         "thread %s of process %s (%s): effective %s, bounding %s, no_new_privs %s, seccomp %s",
                         json_text(t, "tid"), json_text(t, "pid"), json_text(t, "name"), json_text(t, "cap_eff"),
                         json_text(t, "cap_bnd"), json_text(t, "no_new_privs"), json_text(t, "seccomp"));
            }
        }
        if (seen == 0)
            state = CHECK_SURPRISE;
        if (state == CHECK_HELD)
            snprintf(detail, sizeof(detail), "%zu threads", seen);
        proof_add(p, rules[r].id, "privilege", "R26", rules[r].title, when, state, "%s",
                  seen == 0 ? "no thread of the sandbox was seen" : detail);
    }
    /* NOROOT, NO_SETUID_FIXUP, KEEP_CAPS' lock, NO_CAP_AMBIENT_RAISE, each with its lock (prctl(2)): who cannot set
     * them, an ordinary user outside of a user namespace, has no capability that they could keep */
    if (proof_boxed(p) || geteuid() == 0) {
        json_int_t bits = json_integer_value(json_object_get(posture, "securebits"));
        struct odd odd = ODD(p, "posture.securebits");

        if ((bits & 0xef) != 0xef)
            odd_note(&odd, "%#llx", (unsigned long long)bits);
        proof_add_odd(p, &odd, "privilege", "R26", "uid 0 would mean nothing, and that is locked", when, true,
                      "all are set");
    }
    proof_add(p, "posture.threads.complete", "privilege", "R26", "every visible thread was looked at", when,
              json_is_true(json_object_get(posture, "threads_complete")) ? CHECK_HELD : CHECK_SURPRISE, "%zu",
              json_array_size(threads));
}

/* --- identity ---------------------------------------------------------------------------------------------------- */

static bool
all_equal(const json_t *list, uint64_t want)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (!json_is_integer(item) || (uint64_t)json_integer_value(item) != want)
            return false;
    return json_array_size(list) == 3;
}

#define WORD(line, number) (int)prove_word(line, number).n, prove_word(line, number).p

/* "INSIDE OUTSIDE COUNT", a line each. One is @want's; others are noted: by INSIDE where they are one id, and not
 * root's, or else whole. */
static void
check_map(struct odd *odd, const char *map, uint32_t want)
{
    bool is_root = geteuid() == 0 && !prove_gives_users(), found = false;
    uint64_t inside, outside, count;

    for (const char *line = map; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        bool one = str_parse_u64(prove_word(line, 0), UINT32_MAX, &inside) &&
                   str_parse_u64(prove_word(line, 1), UINT32_MAX, &outside) &&
                   str_parse_u64(prove_word(line, 2), 1, &count) && count == 1 && (outside != 0 || is_root);

        if (one && inside == want)
            found = true;
        else if (one)
            odd_note(odd, "%llu", (unsigned long long)inside);
        else
            odd_note(odd, "%.*s %.*s %.*s", WORD(line, 0), WORD(line, 1), WORD(line, 2));
    }
    if (!found && odd->surprise[0] == '\0' && odd->differs == NULL)
        odd_note(odd, "%u is not mapped", want);
}

static void
check_identity(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *groups = json_object_get(posture, "groups"), *g;
    bool ids = all_equal(json_object_get(posture, "uid"), p->uid) &&
               all_equal(json_object_get(posture, "gid"), p->gid);
    struct odd odd = ODD(p, "posture.identity.map");
    bool known = true;
    size_t i;

    if (!proof_boxed(p))
        return;     /* light keeps the caller's ids: mode light promises rules, not another identity */
    proof_add(p, "posture.identity.ids", "privilege", "R26", "real, effective and saved ids are the policy's user",
              when, ids ? CHECK_HELD : CHECK_SURPRISE, "%u:%u is promised", p->uid, p->gid);
    check_map(&odd, json_text(posture, "uid_map"), p->uid);
    check_map(&odd, json_text(posture, "gid_map"), p->gid);
    proof_add_odd(p, &odd, "privilege", "R26", "exactly one uid and one gid exist inside, and are not root outside",
                  when, true, "no other is mapped");
    /* an ordinary user cannot leave the own supplementary groups behind; they show as the overflow group */
    json_array_foreach(groups, i, g) {
        json_int_t v = json_integer_value(g);
        known &= v == (json_int_t)p->gid || (v == 65534 && geteuid() != 0);
    }
    proof_add(p, "posture.identity.groups", "privilege", "R26", "no supplementary group of the host", when,
              known && json_is_array(groups) ? CHECK_HELD : CHECK_SURPRISE, "%zu groups", json_array_size(groups));
}

static void
check_namespaces(struct proof *p, const json_t *posture, const char *when)
{
    static const struct { const char *name, *title; } spaces[] = {
        { "user", "own user namespace" }, { "mnt", "own mount namespace" },  { "pid", "own process namespace" },
        { "net", "own network namespace" }, { "ipc", "own IPC namespace" }, { "uts", "own host name namespace" },
        { "cgroup", "own cgroup namespace" },
    };
    const json_t *inside = json_object_get(posture, "namespaces");

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        const char *name = spaces[i].name;
        bool shared = !proof_boxed(p) || (strcmp(name, "net") == 0 && p->policy->network.v == NETWORK_HOST && !p->bare);
        const char *own = json_text(inside, name);
        char path[64], host[64], id[64];
        ssize_t n;
        struct odd odd = ODD(p, id);

        snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
        n = readlink(path, host, sizeof(host) - 1);
        host[n < 0 ? 0 : n] = '\0';
        snprintf(id, sizeof(id), "posture.namespace.%s", name);
        if (own[0] == '\0' || n <= 0)
            odd_note(&odd, "none");
        else if (strcmp(own, host) == 0)
            odd_note(&odd, "%s inside and outside", own);
        proof_add_odd(p, &odd, "namespaces", "R20", spaces[i].title, when, !shared, own);
    }
}

/* --- descriptors, limits, environment ---------------------------------------------------------------------------- */

static void
check_descriptors(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *list = json_object_get(posture, "descriptors"), *d;
    const char *odd = NULL;
    json_int_t odd_fd = -1;
    size_t i;

    json_array_foreach(list, i, d) {
        json_int_t fd = json_integer_value(json_object_get(d, "fd"));
        const char *kind = json_text(d, "kind");
        bool ok = fd >= 0 && fd <= 2 && strcmp(kind, "directory") != 0 && strcmp(kind, "block") != 0 &&
                  strcmp(kind, "socket") != 0 && strcmp(json_text(d, "access"), "path") != 0;
        if (!ok && odd == NULL) {
            odd = json_text(d, "target");
            odd_fd = fd;
        }
    }
    if (!json_is_true(json_object_get(posture, "descriptors_listed")) || json_array_size(list) == 0)
        odd = "the list cannot be had";
    proof_add(p, "posture.descriptors", "files", "R11",
              "only 0, 1 and 2 are open, and none leads to a directory or disk", when,
              odd == NULL ? CHECK_HELD : CHECK_SURPRISE, odd == NULL ? "%zu" : "%zu, among them %lld: %s",
              json_array_size(list), (long long)odd_fd, odd);
}

static bool
limit_within(const json_t *limits, const char *name, uint64_t max)
{
    const json_t *hard = json_array_get(json_object_get(limits, name), 1);

    return max == 0 || (json_is_integer(hard) && (uint64_t)json_integer_value(hard) <= max);
}

static bool
none_left(const json_t *limits, const char *name, uint64_t max)
{
    const json_t *hard = json_array_get(json_object_get(limits, name), 1);

    return json_is_integer(hard) && (uint64_t)json_integer_value(hard) <= max;
}

static void
check_limits(struct proof *p, const json_t *posture, const char *when)
{
    const struct policy_limits *l = &p->policy->limits;
    const json_t *limits = json_object_get(posture, "rlimits");
    struct rlimit own = { 1, 1 };
    uint64_t core;

    /* for exactly 1 no handler of the host's is started either (wall/rlimit.c); a caller who has 0 gives no more */
    core = kernel_prlimit(RLIMIT_CORE, NULL, &own) == 0 && own.rlim_max == 0 ? 0 : 1;
    proof_add(p, "posture.limit.nofile", "privilege", "R65", "open files are limited as the policy says", when,
              limit_within(limits, "nofile", l->nofile.v) ? CHECK_HELD : CHECK_SURPRISE, "at most %llu",
              (unsigned long long)l->nofile.v);
    /* nothing of a sandbox's memory is left on the host's disk, nor pinned there without bound */
    proof_add(p, "posture.limit.core", "limits", "R65", "no core dump is written", when,
              none_left(limits, "core", core) && (core == 0 || !none_left(limits, "core", 0))
                  ? CHECK_HELD : CHECK_SURPRISE,
              "RLIMIT_CORE %llu is promised", (unsigned long long)core);
    proof_add(p, "posture.limit.memlock", "limits", "R65", "little memory can be locked", when,
              none_left(limits, "memlock", 8 << 20) ? CHECK_HELD : CHECK_SURPRISE, "at most 8 MiB");
    proof_add(p, "posture.limit.msgqueue", "limits", "R65", "no kernel memory for POSIX message queues", when,
              none_left(limits, "msgqueue", 0) ? CHECK_HELD : CHECK_SURPRISE, "RLIMIT_MSGQUEUE 0 is promised");
    if (proof_boxed(p))     /* one more: the guest is a process too */
        proof_add(p, "posture.limit.nproc", "privilege", "R65", "processes are limited as the policy says", when,
                  limit_within(limits, "nproc", l->pids.v == 0 ? 0 : l->pids.v + 1) ? CHECK_HELD : CHECK_SURPRISE,
                  "at most %llu", (unsigned long long)l->pids.v);
}

static bool
env_denied(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->env_deny.n; i++) {
        struct str rule = str_of(p->env_deny.v[i].value), n = str_of(name);
        if (rule.n > 0 && rule.p[rule.n - 1] == '*' ? str_starts(n, (struct str){ rule.p, rule.n - 1 })
                                                    : str_eq(n, rule))
            return true;
    }
    return false;
}

/* docs/policy.md, "Environment": what a sandbox is given without being asked. */
static bool
env_expected(const struct proof *p, const char *name)
{
    static const char *const given[] = {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "CLOCHE_SANDBOX", "TERM", "COLORTERM", "LANG", "LC_ALL",
        "LC_CTYPE", "LC_MESSAGES", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "LANGUAGE", "TZ", "NO_COLOR", "CLICOLOR",
        "FORCE_COLOR", "COLUMNS", "LINES",
    };

    static const char *const by_name[] = { "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy",
                                           "NO_PROXY" };
    static const char *const trust[] = {
        "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
        "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT", "NIX_SSL_CERT_FILE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "JAVA_TOOL_OPTIONS",
    };
    bool certificates = p->policy->extra_ca.n > 0 || p->policy->run_ca != NULL;

    for (size_t i = 0; i < p->policy->n_env; i++)
        if (strcmp(p->policy->env[i].name, name) == 0)
            return true;
    for (size_t i = 0; proof_captured(p) && i < ARRAY_LEN(by_name); i++)
        if (strcmp(by_name[i], name) == 0)
            return true;
    for (size_t i = 0; certificates && i < ARRAY_LEN(trust); i++)
        if (strcmp(trust[i], name) == 0)
            return true;
    if (env_denied(p->policy, name))
        return false;
    if (p->policy->env_inherit.v && !p->bare)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (strcmp(given[i], name) == 0)
            return true;
    return false;
}

static void
check_environment(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *names = json_object_get(posture, "environment");
    const char *odd = NULL;
    bool ok = posture_all(names, env_expected, p, &odd);

    proof_add(p, "posture.environment", "files", "R16", "no environment variable but those that the policy gives", when,
              ok ? CHECK_HELD : CHECK_SURPRISE, odd == NULL ? "%zu names" : "%zu names, among them %s",
              json_array_size(names), odd != NULL ? odd : "");
}

/* Who calls is not told: docs/policy.md, "Environment". */
static void
check_telling(struct proof *p, const json_t *posture, const char *when)
{
    static const struct { const char *name, *value; bool own_root; } rows[] = {
        { "USER", "agent", false }, { "LOGNAME", "agent", false }, { "SHELL", "/bin/bash", false },
        { "HOME", "/home/agent", true },
        { "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", true },
    };
    const json_t *told = json_object_get(posture, "telling");
    const char *odd = NULL;

    if (p->bare || p->policy->env_inherit.v)
        return;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool set = rows[i].own_root && !proof_private_root(p);

        for (size_t k = 0; k < p->policy->n_env; k++)
            set |= strcmp(p->policy->env[k].name, rows[i].name) == 0;
        if (!set && strcmp(json_text(told, rows[i].name), rows[i].value) != 0)
            odd = rows[i].name;
    }
    proof_add(p, "posture.environment.values", "files", "R16", "no variable tells who calls", when,
              odd == NULL ? CHECK_HELD : CHECK_SURPRISE, "%s%s%.100s", odd != NULL ? odd : "all are cloche's own",
              odd != NULL ? ": " : "", odd != NULL ? json_text(told, odd) : "");
}

/* --- other processes --------------------------------------------------------------------------------------------- */

static void
check_processes(struct proof *p, const json_t *posture, const char *bait, const char *when)
{
    const json_t *threads = json_object_get(posture, "threads"), *others = json_object_get(posture, "others"), *item;
    bool sees_bait = false;
    size_t i;

    json_array_foreach(threads, i, item)
        sees_bait |= strcmp(json_text(item, "name"), bait) == 0;
    proof_add(p, "posture.processes.visible", "processes", "R12", "no process of the host is visible", when,
              check_state_of(!sees_bait, proof_boxed(p)), "%zu threads are visible",
              json_array_size(threads));
    json_array_foreach(others, i, item) {
        const json_t *opens = json_object_get(item, "opens");
        bool guest = number_of(item, "pid") == p->guest_pid;
        const char *first = json_string_value(json_array_get(opens, 0));

        proof_add(p, guest ? "posture.processes.guest-closed" : "posture.processes.others-closed", "processes", "R26",
                  guest ? "the guest's memory, files and environment are closed" : "so are those of processes outside",
                  when, json_is_array(opens) && first == NULL ? CHECK_HELD : CHECK_SURPRISE, "process %s%s%s",
                  json_text(item, "pid"), first != NULL ? " opens: " : "", first != NULL ? first : "");
    }
}

void
posture_check(struct proof *p, const json_t *posture, const char *when)
{
    check_identity(p, posture, when);
    check_threads(p, posture, when);
    check_namespaces(p, posture, when);
    check_descriptors(p, posture, when);
    check_limits(p, posture, when);
    check_environment(p, posture, when);
    check_telling(p, posture, when);
    check_processes(p, posture, p->bait_name, when);
    posture_check_system(p, posture, when);
}
