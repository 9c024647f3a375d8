/* prove/prove_posture_system.c: where the sandbox is: root, mounts, kernel files, network (see prove.h) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
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

static bool
is_device_bind(const char *point)
{
    static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                           "/dev/random", "/dev/urandom", "/dev/tty" };

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (strcmp(devices[i], point) == 0)
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

/* Is something to be mounted there, by the policy or by what every private root has? */
static bool
known_mount(const struct policy *p, const char *point, const char *type)
{
    static const char *const system[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt",
                                          "/proc" };
    static const char *const own[] = { "/", "/tmp", "/home/agent", "/dev/shm", "/var/tmp", "/run", "/dev/pts" };
    struct str at = str_of(point);

    if (path_within(at, str_of(policy_workspace_at(p))))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(system); i++)
        if (path_within(at, str_of(system[i])))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(point, own[i]) == 0 && is_memory(type))
            return true;
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(at, str_of(p->binds[i].dest)))
            return true;
    for (size_t i = 0; i < p->n_secret_files; i++)
        if (strcmp(point, p->secret_files[i].path) == 0)
            return true;
    return is_device_bind(point) || prove_etc_is_given(p, point) || is_listed(&p->allow_read, at) ||
           is_listed(&p->allow_write, at) || is_listed(&p->unix_sockets, at);
}

static void
check_known_mounts(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *mounts = json_object_get(posture, "mounts"), *m;
    const char *odd = json_array_size(mounts) == 0 ? "the list cannot be had" : NULL;
    size_t i;

    if (!proof_private_root(p))
        return;
    json_array_foreach(mounts, i, m)
        if (!known_mount(p->policy, json_text(m, "point"), json_text(m, "type")))
            odd = json_text(m, "point");
    proof_add(p, "posture.mounts.known", "files", "R11", "nothing is mounted but what the policy and the mode say",
              when, odd == NULL ? CHECK_HELD : CHECK_SURPRISE, "%.200s", odd != NULL ? odd : "all are known");
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
    bool sys = is_set(posture, "proc_sys_read_only"), sysrq = is_set(posture, "sysrq_read_only");

    proof_add(p, "posture.mounts.noexec", "files", "R26", "nothing is executed from /proc and /dev/pts", when,
              proc && pts ? CHECK_HELD : CHECK_SURPRISE, "%s", !proc ? "/proc" : !pts ? "/dev/pts" : "both noexec");
    proof_add(p, "posture.mounts.proc-sys", "kernel", "R26",
              "/proc/sys and sysrq-trigger are read-only whoever may write there", when,
              sys && sysrq ? CHECK_HELD : CHECK_SURPRISE, "%s",
              !sys ? "/proc/sys" : !sysrq ? "/proc/sysrq-trigger" : "both are");
}

static void
check_mounts(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *mounts = json_object_get(posture, "mounts"), *m;
    const char *writable = NULL, *suid = NULL, *dev = NULL, *root = NULL, *linked = NULL;
    size_t i;

    json_array_foreach(mounts, i, m) {
        const char *point = json_text(m, "point"), *type = json_text(m, "type");

        if (!flag(m, "ro") && !is_memory(type) && !is_device_bind(point) && !may_write(p->policy, point))
            writable = point;
        if (!flag(m, "nosuid") && !is_device_bind(point))     /* a device node cannot be executed */
            suid = point;
        if (!flag(m, "nodev") && !is_device_bind(point) && strcmp(point, "/dev/pts") != 0 && strcmp(point, "/dev") != 0)
            dev = point;
        if (strcmp(point, "/") == 0 && !flag(m, "ro"))
            root = point;
        if (flag(m, "linked") && !is_device_bind(point))    /* nothing can be mounted below a device */
            linked = point;
    }
    if (!json_is_true(json_object_get(posture, "mounts_listed")))
        writable = suid = dev = root = linked = "the list cannot be had";
    proof_add(p, "posture.mounts.read-only", "files", "R11",
              "what the host gives is read-only unless the policy opens it", when,
              writable == NULL ? CHECK_HELD : CHECK_SURPRISE, "%zu mounts%s%.200s", json_array_size(mounts),
              writable != NULL ? ", writable: " : "", writable != NULL ? writable : "");
    proof_add(p, "posture.mounts.nosuid", "privilege", "R26", "no mount honours setuid", when,
              suid == NULL ? CHECK_HELD : CHECK_SURPRISE, "%.200s", suid != NULL ? suid : "all nosuid");
    proof_add(p, "posture.mounts.nodev", "files", "R26", "no mount but /dev honours devices", when,
              dev == NULL ? CHECK_HELD : CHECK_SURPRISE, "%.200s", dev != NULL ? dev : "all nodev");
    proof_add(p, "posture.mounts.private", "namespaces", "R20", "what the host mounts later does not come in", when,
              linked == NULL ? CHECK_HELD : CHECK_SURPRISE, "%.200s",
              linked != NULL ? linked : "none follows the host's");
    check_flags(p, posture, when);
    if (p->policy->read_only_root.v)
        proof_add(p, "posture.mounts.root", "files", "R40", "the root is read-only", when,
                  root == NULL ? CHECK_HELD : CHECK_SURPRISE, "%s", root == NULL ? "read-only" : "writable");
}

/* --- files ------------------------------------------------------------------------------------------------------- */

static bool
known_device(const struct proof *p, const char *path)
{
    (void)p;
    return is_device_bind(path) || strcmp(path, "/dev/ptmx") == 0 || strncmp(path, "/dev/pts/", 9) == 0 ||
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
    const json_t *devices = json_object_get(posture, "devices"), *sockets = json_object_get(posture, "unix_sockets");
    const json_t *complete = json_object_get(posture, "tree_complete");
    const char *odd = NULL;
    bool ok = posture_all(devices, known_device, p, &odd);

    if (complete == NULL)
        return;
    proof_add(p, "posture.devices", "files", "R26",
              "no device node but null, zero, full, random, urandom, tty, terminals", when,
              check_state_of(ok, proof_private_root(p)),
              odd == NULL ? "%zu" : "%zu, among them %.200s", json_array_size(devices), odd != NULL ? odd : "");
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

static bool
below_sys(const struct proof *p, const char *path)
{
    (void)p;
    return strncmp(path, "/sys/", 5) == 0;
}

/* A private root has no /sys; the host view has the host's, read-only. */
static void
check_windows(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *open = json_object_get(posture, "kernel_windows");
    const char *odd = json_string_value(json_array_get(open, 0));
    bool promised = proof_boxed(p) && (proof_private_root(p) || !posture_all(open, below_sys, p, &odd));

    proof_add(p, "posture.kernel.windows", "kernel", "R26",
              "kcore, kallsyms, keys, kernel logs and hardware do not open", when,
              check_state_of(json_is_array(open) && odd == NULL, promised),
              odd == NULL ? "%zu" : "%zu, among them %.200s", json_array_size(open), odd != NULL ? odd : "");
}

/* Mode max has nothing of /proc but processes. */
static void
check_subset(struct proof *p, const json_t *posture, const char *when)
{
    if (p->policy->mode.v == MODE_MAX)
        proof_add(p, "posture.proc.subset", "kernel", "R26", "/proc has processes and nothing else", when,
                  json_is_false(json_object_get(posture, "kernel_command_line")) ? CHECK_HELD : CHECK_SURPRISE,
                  "/proc/cmdline %s",
                  json_is_false(json_object_get(posture, "kernel_command_line")) ? "is not there" : "opens");
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
