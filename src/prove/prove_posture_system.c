/* prove/prove_posture_system.c: where the sandbox is: root, mounts, kernel files, network (see prove.h) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "match/path.h"
#include "policy/place.h"
#include "program/json.h"
#include "prove/prove.h"
#include "wall/capture.h"

/* An array that must be empty. */
static void
check_empty(struct proof *p, const json_t *posture, const char *key, const char *id, const char *wall,
            const char *requirement, const char *title, bool promised, const char *when)
{
    const json_t *list = json_object_get(posture, key);
    const char *first = json_string_value(json_array_get(list, 0));
    enum check_state state = check_state_of(json_is_array(list) && json_array_size(list) == 0, promised);

    proof_add(p, id, wall, requirement, title, when, state, first == NULL ? "%zu" : "%zu, the first is %.200s",
              json_array_size(list), first != NULL ? first : "");
}

/* --- root, name, place ------------------------------------------------------------------------------------------- */

static void
check_place(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *root = json_object_get(posture, "root");
    const char *cwd = json_text(posture, "cwd"), *want = p->policy->workdir.p;
    struct stat st;
    struct utsname host;
    bool other;

    if (stat("/", &st) == 0 && uname(&host) == 0 && proof_boxed(p)) {
        other = json_is_object(root) && ((uint64_t)json_integer_value(json_object_get(root, "dev")) != st.st_dev ||
                                         (uint64_t)json_integer_value(json_object_get(root, "ino")) != st.st_ino);
        proof_add(p, "posture.root", "files", "R11", "the root is not the host's", when,
                  check_state_of(other, proof_private_root(p)), "%s",
                  other ? "another tree" : "the host's own root directory");
        const char *name = p->policy->hostname.p != NULL ? p->policy->hostname.p : "cloche";
        proof_add(p, "posture.hostname", "namespaces", "R20", "the host name is the policy's", when,
                  strcmp(json_text(posture, "hostname"), name) == 0 && !p->bare ? CHECK_HELD : CHECK_SURPRISE, "%.100s",
                  json_text(posture, "hostname"));
    }
    proof_add(p, "posture.cwd", "files", "R24", "the working directory is the policy's", when,
              cwd[0] == '/' && (want == NULL || strcmp(cwd, want) == 0) ? CHECK_HELD : CHECK_SURPRISE, "%.200s", cwd);
}

/* --- mounts ------------------------------------------------------------------------------------------------------ */

static bool
is_memory(const char *type)
{
    static const char *const types[] = { "tmpfs", "proc", "devpts", "mqueue" };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

static const struct device {
    const char *path, *number;
} devices[] = {
    { "/dev/null", "1:3" },   { "/dev/zero", "1:5" },    { "/dev/full", "1:7" },
    { "/dev/random", "1:8" }, { "/dev/urandom", "1:9" }, { "/dev/tty", "5:0" },
};

static bool
is_device(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (strcmp(devices[i].path, path) == 0)
            return true;
    return false;
}

/* A device that everybody has in its own place; or /dev/null, which may cover anything. */
static bool
is_device_bind(const json_t *m)
{
    const char *point = json_text(m, "point"), *node = json_text(m, "node");

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (strcmp(devices[i].number, node) == 0 && (i == 0 || strcmp(devices[i].path, point) == 0))
            return true;
    return false;
}

/* Does the policy say that this place of the sandbox may be written to? */
static bool
may_write(const struct policy *p, const char *point)
{
    struct str at = str_of(point);

    if (p->workspace.dir != NULL && p->workspace.kind != WORKSPACE_RO &&
        path_within(at, str_of(policy_workspace_at(p))))
        return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && path_within(at, str_of(p->binds[i].dest)))
            return true;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (path_within(at, str_of(p->allow_write.v[i].value)))
            return true;
    return false;
}

static bool
flag(const json_t *mount, const char *name)
{
    return json_is_true(json_object_get(mount, name));
}

static bool
is_listed(const struct policy_list *list, struct str at)
{
    for (size_t i = 0; i < list->n; i++)
        if (path_within(at, str_of(list->v[i].value)))
            return true;
    return false;
}

/* Has the host something mounted at @point? */
static bool
host_mounts(const char *point)
{
    cleanup_buf struct buf text = BUF_INIT((size_t)4 << 20);

    if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", &text) < 0 || buf_nul(&text) < 0)
        return false;
    for (const char *line = (const char *)text.p; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        if (str_eq(prove_word(line, 4), str_of(point)))
            return true;
    return false;
}

/* Something closes what lies there, or keeps it as it is. */
static bool
is_cover(const struct policy *p, const json_t *m)
{
    struct str at = str_of(json_text(m, "point"));

    if (json_is_false(json_object_get(m, "opens")))
        return true;
    for (size_t i = 0; i < p->deny_write.n; i++)
        if (path_within(at, str_of(p->deny_write.v[i].value)) || strpbrk(p->deny_write.v[i].value, "*?[{") != NULL)
            return true;
    return false;
}

/* Of the host's system folders what is mounted in them on the host too; of /proc parts of itself. */
static bool
system_mount(const struct policy *p, const json_t *mounts, const json_t *m)
{
    static const char *const system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt" };
    const char *point = json_text(m, "point");
    const json_t *other;
    size_t i;

    for (i = 0; i < ARRAY_LEN(system); i++)
        if (path_within(str_of(point), str_of(system[i])))
            return strcmp(point, system[i]) == 0 || host_mounts(point) || is_cover(p, m);
    if (!path_within(str_of(point), STR_LIT("/proc")))
        return false;
    json_array_foreach(mounts, i, other)
        if (strcmp(json_text(other, "point"), "/proc") == 0 && strcmp(json_text(other, "type"), "proc") == 0 &&
            strcmp(json_text(other, "device"), json_text(m, "device")) == 0)
            return true;
    return strcmp(point, "/proc") != 0 && json_is_false(json_object_get(m, "opens"));
}

/* Is something to be mounted there, by the policy or by what every private root has? */
static bool
known_mount(const struct policy *p, const json_t *mounts, const json_t *m)
{
    static const char *const own[] = { "/", "/tmp", "/home/agent", "/dev/shm", "/var/tmp", "/run", "/dev/pts" };
    const char *point = json_text(m, "point");
    struct str at = str_of(point);

    if (path_within(at, str_of(policy_workspace_at(p))) || system_mount(p, mounts, m))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(point, own[i]) == 0 && is_memory(json_text(m, "type")))
            return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(at, str_of(p->binds[i].dest)))
            return true;
    for (size_t i = 0; i < p->n_secret_files; i++)
        if (strcmp(point, p->secret_files[i].path) == 0)
            return true;
    return is_device_bind(m) || prove_etc_is_given(p, point) || is_listed(&p->allow_read, at) ||
           is_listed(&p->allow_write, at) || is_listed(&p->unix_sockets, at);
}

static void
note_mount(struct odd *odd, const json_t *m)
{
    odd_note(odd, "%.40s %.200s", json_text(m, "type"), json_text(m, "point"));
}

static void
check_known_mounts(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *mounts = json_object_get(posture, "mounts"), *m;
    struct odd odd = ODD(p, "posture.mounts.known");
    size_t i;

    if (!proof_private_root(p))
        return;
    if (json_array_size(mounts) == 0)
        odd_note(&odd, "the list cannot be had");
    json_array_foreach(mounts, i, m)
        if (!known_mount(p->policy, mounts, m))
            note_mount(&odd, m);
    proof_add_odd(p, &odd, "files", "R11", "nothing is mounted but what the policy and the mode say", when, true,
                  "all are known");
}

/* null: it is not there */
static bool
is_set(const json_t *posture, const char *key)
{
    const json_t *v = json_object_get(posture, key);

    return json_is_true(v) || json_is_null(v);
}

static void
check_flags(struct proof *p, const json_t *posture, const char *when)
{
    bool proc = is_set(posture, "proc_noexec"), pts = is_set(posture, "pts_noexec");
    struct odd odd = ODD(p, "posture.mounts.proc-sys");
    bool sys = is_set(posture, "proc_sys_read_only"), sysrq = is_set(posture, "sysrq_read_only");

    proof_add(p, "posture.mounts.noexec", "files", "R26", "nothing is executed from /proc and /dev/pts", when,
              proc && pts ? CHECK_HELD : CHECK_SURPRISE, "%s", !proc ? "/proc" : !pts ? "/dev/pts" : "both noexec");
    if (!sys)
        odd_note(&odd, "/proc/sys");
    if (!sysrq)
        odd_note(&odd, "/proc/sysrq-trigger");
    proof_add_odd(p, &odd, "kernel", "R26", "/proc/sys and sysrq-trigger are read-only whoever may write there", when,
                  true, "both are");
}

static void
check_mounts(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *mounts = json_object_get(posture, "mounts"), *m;
    struct odd odd[] = { ODD(p, "posture.mounts.read-only"), ODD(p, "posture.mounts.nosuid"),
                         ODD(p, "posture.mounts.nodev"), ODD(p, "posture.mounts.private"),
                         ODD(p, "posture.mounts.root") };
    size_t i;

    json_array_foreach(mounts, i, m) {
        const char *point = json_text(m, "point"), *type = json_text(m, "type");

        if (strcmp(point, "/") == 0 && !flag(m, "ro"))
            note_mount(&odd[4], m);
        if (is_device_bind(m))      /* it cannot be executed, and nothing can be mounted below it */
            continue;
        if (!flag(m, "ro") && !is_memory(type) && !may_write(p->policy, point))
            note_mount(&odd[0], m);
        if (!flag(m, "nosuid"))
            note_mount(&odd[1], m);
        if (!flag(m, "nodev") && strcmp(point, "/dev/pts") != 0 && strcmp(point, "/dev") != 0)
            note_mount(&odd[2], m);
        if (flag(m, "linked"))
            note_mount(&odd[3], m);
    }
    for (i = 0; i < ARRAY_LEN(odd) && !json_is_true(json_object_get(posture, "mounts_listed")); i++)
        odd_note(&odd[i], "the list cannot be had");
    proof_add_odd(p, &odd[0], "files", "R11", "what the host gives is read-only unless the policy opens it", when, true,
                  "all are");
    proof_add_odd(p, &odd[1], "privilege", "R26", "no mount honours setuid", when, true, "all nosuid");
    proof_add_odd(p, &odd[2], "files", "R26", "no mount but /dev honours devices", when, true, "all nodev");
    proof_add_odd(p, &odd[3], "namespaces", "R20", "what the host mounts later does not come in", when, true,
                  "none follows the host's");
    check_flags(p, posture, when);
    if (p->policy->read_only_root.v)
        proof_add_odd(p, &odd[4], "files", "R40", "the root is read-only", when, true, "read-only");
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static bool
known_device(const struct proof *p, const char *path)
{
    (void)p;
    return is_device(path) || strcmp(path, "/dev/ptmx") == 0 || strncmp(path, "/dev/pts/", 9) == 0 ||
           strcmp(path, "/dev/console") == 0;
}

static bool
allowed_socket(const struct proof *p, const char *path)
{
    const struct policy_list *allowed = &p->policy->unix_sockets;

    for (size_t i = 0; i < allowed->n; i++)
        if (path_within(str_of(path), str_of(allowed->v[i].value)))
            return true;
    return p->policy->all_unix_sockets.v || may_write(p->policy, path) || p->policy->n_binds > 0;
}

static bool
sets(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->n_env; i++)
        if (strcmp(p->env[i].name, name) == 0)
            return true;
    return false;
}

/* In mode light it lies in the host's /tmp. */
static void
check_own_folder(struct proof *p, const json_t *posture, const char *when)
{
    json_int_t mode = json_integer_value(json_object_get(posture, "own_folder_mode"));

    if (!proof_boxed(p) && !p->policy->env_inherit.v && !sets(p->policy, "TMPDIR"))
        proof_add(p, "posture.own-folder", "files", "R12", "its folder for temporary files is nobody else's", when,
                  mode != 0 && (mode & 077) == 0 ? CHECK_HELD : CHECK_SURPRISE, "mode %llo", (unsigned long long)mode);
}

/* What the walk of the whole tree found; it is done once. */
static void
check_tree(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *nodes = json_object_get(posture, "devices"), *sockets = json_object_get(posture, "unix_sockets");
    const json_t *complete = json_object_get(posture, "tree_complete");
    const char *odd = NULL;
    bool ok = posture_all(nodes, known_device, p, &odd);

    if (complete == NULL)
        return;
    proof_add(p, "posture.devices", "files", "R26",
              "no device node but null, zero, full, random, urandom, tty, terminals", when,
              check_state_of(ok, proof_private_root(p)),
              odd == NULL ? "%zu" : "%zu, among them %.200s", json_array_size(nodes), odd != NULL ? odd : "");
    odd = NULL;
    ok = posture_all(sockets, allowed_socket, p, &odd);
    proof_add(p, "posture.unix-sockets.paths", "network", "R04", "no unix socket of the host is in the tree", when,
              check_state_of(ok, proof_private_root(p)),
              odd == NULL ? "%zu" : "%zu, among them %.200s", json_array_size(sockets), odd != NULL ? odd : "");
    proof_add(p, "posture.walks.complete", "files", "R30", "the walk of the tree came to its end", when,
              json_is_true(complete) ? CHECK_HELD : CHECK_NOT_PROMISED, "%s",
              json_is_true(complete) ? "yes" : "cut short: the tree is too large to walk whole");
}

/* Places of the host that are not for the sandbox, wherever they were put: by inode, under any name. */
static void
check_needles(struct proof *p, const json_t *posture, const char *when)
{
    if (json_object_get(posture, "needles") != NULL)
        check_empty(p, posture, "needles", "posture.paths.inodes", "files", "R03",
                    proof_private_root(p) ? "no place of the host beside the policy's is in the tree, under any name"
                                    : "no closed place of the host can be read under any name", true, when);
}

/* A private root has no /sys; the host view has the host's, read-only. */
static void
check_windows(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *open = json_object_get(posture, "kernel_windows"), *w;
    struct odd odd = ODD(p, "posture.kernel.windows");
    bool promised = proof_private_root(p) || !json_is_array(open);
    size_t i;

    if (!json_is_array(open))
        odd_note(&odd, "the list cannot be had");
    json_array_foreach(open, i, w) {
        promised |= strncmp(json_string_value(w), "/sys/", 5) != 0;
        odd_note(&odd, "%s", json_string_value(w));
    }
    proof_add_odd(p, &odd, "kernel", "R26", "kcore, kallsyms, keys, kernel logs and hardware do not open", when,
                  promised && proof_boxed(p), "none opens");
}

/* That another kernel answers is promised by few engines; what all others share is said in the report. */
static void
check_kernel(struct proof *p, const json_t *posture, const char *when)
{
    cleanup_buf struct buf own = BUF_INIT(64);
    const char *boot = json_text(posture, "boot");

    if (!p->own_kernel)
        return;
    bool other = io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &own) == 0 && buf_nul(&own) == 0 &&
                 strlen(boot) == 36 && strncmp(boot, (const char *)own.p, 36) != 0;
    proof_add(p, "posture.kernel.boundary", "kernel", "R26", "the kernel is not the host's", when,
              other ? CHECK_HELD : CHECK_SURPRISE, "%s", other ? "another one was started" : "it is, or does not say");
}

/* Mode max has nothing of /proc but processes. */
static void
check_subset(struct proof *p, const json_t *posture, const char *when)
{
    struct odd odd = ODD(p, "posture.proc.subset");

    if (p->policy->mode.v != MODE_MAX)
        return;
    if (!json_is_false(json_object_get(posture, "kernel_command_line")))
        odd_note(&odd, "/proc/cmdline");
    proof_add_odd(p, &odd, "kernel", "R26", "/proc has processes and nothing else", when, true,
                  "/proc/cmdline is not there");
}

static void
check_files(struct proof *p, const json_t *posture, const char *when)
{
    check_empty(p, posture, "readable", "posture.paths.credentials", "files", "R03",
                "credential places and what deny_read names cannot be read", true, when);
    check_empty(p, posture, "writable", "posture.paths.read-only", "files", "R03",
                "system folders and what deny_write names cannot be written", true, when);
    check_empty(p, posture, "writable_proc", "posture.proc.writable", "kernel", "R26",
                "no file below /proc opens for writing, but the own process's", true, when);
    check_empty(p, posture, "writable_sys", "posture.sys.writable", "kernel", "R26",
                "no file below /sys opens for writing", true, when);
    check_windows(p, posture, when);
    check_kernel(p, posture, when);
    check_subset(p, posture, when);
    proof_add(p, "posture.kernel.keyring", "kernel", "R26", "kernel key rings are out of reach", when,
              json_is_null(json_object_get(posture, "session_keyring")) ? CHECK_HELD : CHECK_SURPRISE, "%s",
              json_is_null(json_object_get(posture, "session_keyring")) ? "keyctl is refused" : "keyctl answers");
    proof_add(p, "posture.kernel.complete", "kernel", "R30", "the walks of /proc and /sys came to their end", when,
              json_is_true(json_object_get(posture, "kernel_complete")) ? CHECK_HELD : CHECK_SURPRISE, "%s",
              json_is_true(json_object_get(posture, "kernel_complete")) ? "yes" : "cut short");
    posture_check_etc(p, posture, when);
    check_own_folder(p, posture, when);
    check_tree(p, posture, when);
    check_needles(p, posture, when);
}

/* --- network ----------------------------------------------------------------------------------------------------- */

static bool
is_loopback(const struct proof *p, const char *name)
{
    (void)p;
    return strcmp(name, "lo") == 0;
}

/* With a network by name cloche's own listeners are there. "0100007F:0035": the port is behind the colon. */
static bool
own_listener(const struct proof *p, const char *local)
{
    const uint16_t ports[] = { 53, 80, 443, CAPTURE_SOCKS_PORT, CAPTURE_PROXY_PORT };
    const char *colon = strrchr(local, ':');
    uint16_t more[POLICY_TCP_PORTS_MAX];
    uint64_t port;
    size_t n = 0;

    if (!proof_captured(p) || colon == NULL || !str_parse_hex(str_of(colon + 1), UINT16_MAX, &port))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(ports); i++)
        if (ports[i] == port)
            return true;
    (void)policy_tcp_ports(p->policy, more, &n, NULL);
    for (size_t i = 0; i < n; i++)
        if (more[i] == port)
            return true;
    return false;
}

static void
check_listeners(struct proof *p, const json_t *posture, const char *key, const char *id, const char *requirement,
                const char *title, const char *when)
{
    const json_t *list = json_object_get(posture, key);
    const char *odd = NULL;
    bool ok = posture_all(list, own_listener, p, &odd);

    proof_add(p, id, "network", requirement, title, when, check_state_of(ok, proof_own_network(p)), "%zu%s%.200s",
              json_array_size(list), odd != NULL ? ", among them " : "", odd != NULL ? odd : "");
}

static void
check_network(struct proof *p, const json_t *posture, const char *when)
{
    static const struct { const char *key, *id, *title; } lists[] = {
        { "interfaces", "posture.network.interfaces", "lo is the only interface" },
        { "routes", "posture.network.routes", "no route but through lo" },
    };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const json_t *list = json_object_get(posture, lists[i].key);
        const char *odd = NULL;
        bool ok = posture_all(list, is_loopback, p, &odd);

        proof_add(p, lists[i].id, "network", "R12", lists[i].title, when,
                  check_state_of(ok, proof_own_network(p)),
                  odd == NULL ? "%zu" : "%zu, among them %.60s", json_array_size(list), odd != NULL ? odd : "");
    }
    bool closed = json_is_false(json_object_get(posture, "route_out"));
    proof_add(p, "posture.network.route-out", "network", "R14", "no address outside can be reached", when,
              proof_captured(p) ? CHECK_NOT_APPLICABLE
                                : check_state_of(closed, p->policy->network.v != NETWORK_HOST || p->bare), "%s",
              proof_captured(p) ? "every address leads to cloche's own listeners: what those let through is a trial"
              : closed          ? "192.0.2.1 is unreachable"
                                : "192.0.2.1 has a route");
    check_listeners(p, posture, "tcp_listeners", "posture.network.listeners", "R12", "nothing of the host listens here",
                    when);
    check_listeners(p, posture, "udp_sockets", "posture.network.udp", "R14", "no UDP socket of the host is here", when);
    check_empty(p, posture, "abstract_sockets", "posture.unix-sockets.abstract", "network", "R04",
                "no abstract socket of the host is here", proof_own_network(p), when);
}

void
posture_check_system(struct proof *p, const json_t *posture, const char *when)
{
    check_place(p, posture, when);
    if (proof_boxed(p)) {
        check_mounts(p, posture, when);
        check_known_mounts(p, posture, when);
    }
    check_files(p, posture, when);
    check_network(p, posture, when);
}
