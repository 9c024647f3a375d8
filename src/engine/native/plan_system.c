/* engine/native/plan_system.c: what every private root has, and the environment
 *
 * /usr and /opt are the host's, read-only. /etc is not: only what programs need to start is there (the linker's
 * cache, certificates, alternatives, time zone), and users, hosts and name service are our own files, so that
 * nothing about the host's people and network can be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/native/plan.h"
#include "policy/place.h"
#include "wall/capture.h"

#define COPY_MAX    (64 * 1024)     /* bytes of a file that is copied instead of bound */
#define MAP_MIN     (16 * 1024)     /* from here on mapping costs less than reading */
static int
out_of_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

/* /bin, /lib64 ...: a link into /usr on merged systems, a folder of their own elsewhere. */
static int
system_folder(struct native_plan *plan, const char *path, struct err *err)
{
    char target[256];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    struct root_item *item;
    struct stat st;

    if (n > 0) {
        target[n] = '\0';
        return plan_item(plan, ROOT_SYMLINK, plan_printf(plan, "%s", target), path, err) != NULL ? 0 : -1;
    }
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    item = plan_item(plan, ROOT_BIND, path, path, err);
    if (item == NULL)
        return -1;
    item->recursive = true;
    return 0;
}

static int
etc_file(struct native_plan *plan, const char *path, char *content, struct err *err)
{
    struct root_item *item;

    if (content == NULL)
        return out_of_memory(err);
    item = plan_item(plan, ROOT_FILE, content, path, err);
    if (item == NULL)
        return -1;
    item->mode = 0644;
    item->size = strlen(content);
    return 0;
}

/* A small file is copied: that is cheaper than one mount more, which costs when it is made and when it goes. A larger
 * one is only mapped here, for the child's write, which fails if the file is cut meanwhile; nothing else reads it. */
static int
etc_copy(struct native_plan *plan, const char *path, size_t size, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool large = fd >= 0 && size >= MAP_MIN;
    void *map = large ? mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0) : MAP_FAILED;
    bool mapped = map != MAP_FAILED;
    char *text = mapped ? map : fd >= 0 ? plan_room(plan, size + 1) : NULL;
    struct root_item *item;

    if (fd < 0 || (text != NULL && !mapped && size > 0 && io_read_full(fd, text, size) < 0))
        return 0;       /* not readable for us: not for the sandbox either */
    item = plan_item(plan, ROOT_FILE, text, text != NULL ? path : NULL, err);
    if (item == NULL) {
        if (mapped)
            munmap(map, size);
        return -1;
    }
    item->mode = 0644;
    item->size = size;
    item->mapped = mapped;
    return 0;
}

/* A file or folder of the host's /etc, when it is there. Links are copied as links: what they name is in /usr or
 * in another of these. */
static int
etc_entry(struct native_plan *plan, const char *name, struct err *err)
{
    char *path = plan_printf(plan, "/etc/%s", name);
    struct root_item *item;
    struct stat st;

    if (path == NULL)
        return out_of_memory(err);
    if (lstat(path, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        char target[512];
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0)
            return 0;
        target[n] = '\0';
        return plan_item(plan, ROOT_SYMLINK, plan_printf(plan, "%s", target), path, err) != NULL ? 0 : -1;
    }
    if (S_ISREG(st.st_mode) && st.st_size <= COPY_MAX)
        return etc_copy(plan, path, (size_t)st.st_size, err);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    item = plan_item(plan, ROOT_BIND, path, path, err);
    if (item == NULL)
        return -1;
    item->recursive = S_ISDIR(st.st_mode);
    item->optional = true;
    return 0;
}

static int
etc(struct native_plan *plan, const struct policy *p, struct err *err)
{
    static const char *const from_host_network[] = { "resolv.conf", "hosts", "nsswitch.conf", "gai.conf" };
    bool host_network = p->network.v == NETWORK_HOST;
    unsigned uid = plan->ids.inside_uid, gid = plan->ids.inside_gid;

    const char *users = plan->image.tree >= 0 ? plan_image_passwd(plan) : NULL;

    if (plan_item(plan, ROOT_DIR, NULL, "/etc", err) == NULL)
        return -1;
    for (size_t i = 0; plan->image.tree < 0 && i < n_place_etc_host; i++)
        if (etc_entry(plan, place_etc_host[i], err) < 0)
            return -1;
    for (size_t i = 0; host_network && i < ARRAY_LEN(from_host_network); i++)
        if (etc_entry(plan, from_host_network[i], err) < 0)
            return -1;
    if (etc_file(plan, "/etc/passwd", users != NULL ? plan_printf(plan, "%s", users) :
                 plan_printf(plan,
                             "root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:%u:%u:agent:/home/agent:/bin/bash\n"
                             "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                             uid, gid),
                 err) < 0 ||
        etc_file(plan, "/etc/group", plan_printf(plan, "root:x:0:\nagent:x:%u:\nnogroup:x:65534:\n", gid), err) < 0 ||
        etc_file(plan, "/etc/hostname", plan_printf(plan, "%s\n", plan->hostname), err) < 0)
        return -1;
    if (host_network)
        return 0;
    if (etc_file(plan, "/etc/hosts",
                 plan_printf(plan, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", plan->hostname),
                 err) < 0 ||
        etc_file(plan, "/etc/nsswitch.conf",
                 plan_printf(plan, "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n"
                             "protocols: files\nnetworks: files\n"), err) < 0 ||
        etc_file(plan, "/etc/resolv.conf",
                 plan->capture ? plan_printf(plan, "nameserver %s\noptions timeout:2 attempts:2\n",
                                             CAPTURE_SERVICE_ADDRESS)
                               : plan_printf(plan, "# the network is closed\n"), err) < 0)
        return -1;
    return 0;
}

static int
folder(struct native_plan *plan, const char *path, mode_t mode, bool writable, struct err *err)
{
    struct root_item *item = plan_item(plan, ROOT_DIR, NULL, path, err);

    if (item == NULL)
        return -1;
    item->mode = mode;
    return writable ? plan_rule(plan, path, LANDLOCK_FULL, true, err) : 0;
}

/* Light mode and the host view have no root of ours: the host's own folders, readable. */
static int
host_rules(struct native_plan *plan, struct err *err)
{
    static const char *const devices[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx",
    };

    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (plan_rule(plan, devices[i], LANDLOCK_DEVICE, true, err) < 0)
            return -1;
    return 0;
}

int
plan_system(struct native_plan *plan, const struct policy *p, struct err *err)
{
    static const char *const folders[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt" };
    bool writable = !p->read_only_root.v;

    if (plan->light)
        return host_rules(plan, err);
    if (plan_rule(plan, "/dev", LANDLOCK_DEVICE, false, err) < 0 ||
        plan_rule(plan, "/dev/shm", LANDLOCK_FULL, true, err) < 0 ||
        plan_rule(plan, "/proc", LANDLOCK_WRITE, false, err) < 0 ||
        plan_rule(plan, "/", LANDLOCK_READ_EXEC, false, err) < 0)
        return -1;
    if (p->view.v == VIEW_HOST && plan->privileged)
        return plan_host(plan, err);
    if (p->view.v == VIEW_HOST)     /* kernel file systems are left out where files are root's, as plan_host does */
        return plan->ids.outside_uid != 0 || plan_item(plan, ROOT_MASK, NULL, "/sys", err) != NULL ? 0 : -1;
    for (size_t i = 0; plan->image.tree < 0 && i < ARRAY_LEN(folders); i++)
        if (system_folder(plan, folders[i], err) < 0)
            return -1;
    if ((plan->image.tree >= 0 && plan_image_folders(plan, err) < 0) || etc(plan, p, err) < 0)
        return -1;
    /* uid 0 outside owns root's files here too */
    if (plan->image.tree < 0 && plan->ids.outside_uid == 0 &&
        plan_item(plan, ROOT_MASK, NULL, "/etc/ssl/private", err) == NULL)
        return -1;
    if (folder(plan, "/tmp", 01777, true, err) < 0 || folder(plan, "/var", 0755, false, err) < 0 ||
        folder(plan, "/var/tmp", 01777, writable, err) < 0 || folder(plan, "/home", 0755, false, err) < 0 ||
        folder(plan, "/home/agent", 0755, true, err) < 0 || folder(plan, "/run", 0755, writable, err) < 0)
        return -1;
    if (p->private_docker.v && folder(plan, "/sys", 0755, false, err) < 0)     /* its machine mounts it there */
        return -1;
    if (plan->root.readonly_root) {
        static const char *const islands[] = { "/tmp", "/home/agent", "/dev/shm", "/var/tmp", "/run" };
        for (size_t i = 0; i < (writable ? 5 : 3); i++)
            if (!(plan->root.place != NULL && i == 2) && plan_item(plan, ROOT_WRITABLE, NULL, islands[i], err) == NULL)
                return -1;
    }
    return plan->image.tree >= 0 ? plan_image_layers(plan, p, err) : plan_contents(plan, p, err);
}

/* --- environment ----------------------------------------------------------------------------------------------- */

struct env_builder {
    struct native_plan *plan;
    const struct policy *policy;
    size_t n, cap;
};

static bool
denied_name(const struct policy *p, const char *name, size_t n)
{
    for (size_t i = 0; i < p->env_deny.n; i++) {
        struct str rule = str_of(p->env_deny.v[i].value);
        bool prefix = rule.n > 0 && rule.p[rule.n - 1] == '*';

        if (prefix ? str_starts((struct str){ name, n }, (struct str){ rule.p, rule.n - 1 })
                   : str_eq((struct str){ name, n }, rule))
            return true;
    }
    return false;
}

/* Set or replace one "NAME=value". */
static int
env_put(struct env_builder *b, const char *name, const char *value, struct err *err)
{
    struct native_plan *plan = b->plan;
    size_t name_n = strlen(name), i;
    char *entry = plan_printf(plan, "%s=%s", name, value);

    if (entry == NULL)
        return out_of_memory(err);
    for (i = 0; i < b->n; i++)
        if (strncmp(plan->env[i], name, name_n) == 0 && plan->env[i][name_n] == '=')
            break;
    if (i == b->n) {
        if (b->n + 2 > b->cap) {
            size_t cap = b->cap == 0 ? 64 : b->cap * 2;
            const char **bigger = reallocarray(plan->env, cap, sizeof(*bigger));
            if (bigger == NULL)
                return out_of_memory(err);
            plan->env = bigger;
            b->cap = cap;
        }
        b->n++;
        plan->env[b->n] = NULL;
    }
    plan->env[i] = entry;
    return 0;
}

static int
env_pass(struct env_builder *b, const char *name, struct err *err)
{
    const char *value = getenv(name);

    if (value == NULL || denied_name(b->policy, name, strlen(name)))
        return 0;
    return env_put(b, name, value, err);
}

static int
env_inherit(struct env_builder *b, struct err *err)
{
    for (char **e = environ; *e != NULL; e++) {
        const char *eq = strchr(*e, '=');
        char name[256];
        size_t n = eq != NULL ? (size_t)(eq - *e) : 0;

        if (n == 0 || n >= sizeof(name) || denied_name(b->policy, *e, n))
            continue;
        memcpy(name, *e, n);
        name[n] = '\0';
        if (env_put(b, name, eq + 1, err) < 0)
            return -1;
    }
    return 0;
}

/* What the sandbox's own servers are called. Not "[::1]": for that, Python's httpx, and with it the clients of most
 * models, raises InvalidURL whatever it is asked. urllib alone would want it, for http://[::1]/. */
#define NO_PROXY "localhost,127.0.0.1,::1"

/* Nothing depends on these; some programs are quicker, or say more when a host is refused, with a proxy to talk to. */
static int
env_proxies(struct env_builder *b, struct err *err)
{
    static const char *const names[] = { "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY" };
    const char *url = plan_printf(b->plan, "http://%s:%d", CAPTURE_SERVICE_ADDRESS, CAPTURE_PROXY_PORT);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (url == NULL || env_put(b, names[i], url, err) < 0)
            return -1;
    return env_put(b, "no_proxy", NO_PROXY, err) < 0 || env_put(b, "NO_PROXY", NO_PROXY, err) < 0 ? -1 : 0;
}

/* Programs that do not read the system's bundle, or not only that. */
static int
env_trust(struct env_builder *b, struct err *err)
{
    static const char *const names[] = {
        "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
        "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT", "NIX_SSL_CERT_FILE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (env_put(b, names[i], b->plan->trust, err) < 0)
            return -1;
    return 0;
}

/* What the image sets, which the policy's own may change. */
static int
env_image(struct env_builder *b, struct err *err)
{
    const char *text;

    for (size_t i = 0; (text = image_word(&b->plan->image, "env", i)) != NULL; i++) {
        const char *eq = strchr(text, '=');
        char *name = eq != NULL ? plan_printf(b->plan, "%.*s", (int)(eq - text), text) : NULL;
        if (eq != NULL && (name == NULL || env_put(b, name, eq + 1, err) < 0))
            return name == NULL ? out_of_memory(err) : -1;
    }
    return 0;
}

int
plan_env(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    static const char *const passed[] = {
        "TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_COLLATE", "LC_NUMERIC", "LC_TIME",
        "LANGUAGE", "TZ", "NO_COLOR", "CLICOLOR", "FORCE_COLOR", "COLUMNS", "LINES",
    };
    struct env_builder b = { .plan = plan, .policy = p };
    bool own_home = !plan->light && p->view.v == VIEW_PRIVATE;
    const char *path = getenv("PATH"), *home = getenv("HOME");

    if (p->env_inherit.v) {
        if (env_inherit(&b, err) < 0)
            return -1;
    } else {
        for (size_t i = 0; i < ARRAY_LEN(passed); i++)
            if (env_pass(&b, passed[i], err) < 0)
                return -1;
        /* in a root of our own the host's PATH names folders that are not there */
        if (env_put(&b, "PATH", own_home || path == NULL ? POLICY_PATH : path, err) < 0 ||
            env_put(&b, "HOME",
                    plan->light_home != NULL   ? plan->light_home
                    : own_home || home == NULL ? "/home/agent"
                                               : home,
                    err) < 0 ||
            env_put(&b, "USER", "agent", err) < 0 || env_put(&b, "LOGNAME", "agent", err) < 0 ||
            env_put(&b, "SHELL", plan->image.tree < 0 ? "/bin/bash" : "/bin/sh", err) < 0 ||
            env_image(&b, err) < 0)
            return -1;
        if (plan->light_tmp != NULL && env_put(&b, "TMPDIR", plan->light_tmp, err) < 0)
            return -1;
        if (own_home && env_put(&b, "TMPDIR", "/tmp", err) < 0)
            return -1;
    }
    if (env_put(&b, "CLOCHE_SANDBOX", id, err) < 0 || (plan->capture && env_proxies(&b, err) < 0) ||
        (plan->trust != NULL && env_trust(&b, err) < 0))
        return -1;
    for (size_t i = 0; i < p->n_env; i++) {
        if (p->env[i].value == NULL ? env_pass(&b, p->env[i].name, err) < 0
                                    : env_put(&b, p->env[i].name, p->env[i].value, err) < 0)
            return -1;
    }
    return 0;
}
