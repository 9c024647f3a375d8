/* wall/landlock.c: see landlock.h */
#include "wall/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

/* The kernel's ABI, spelled out here because the headers of supported distributions are older than the kernels
 * that we run on. Same numbers on every architecture. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH      1
#define RULE_NET_PORT          2

#define FS_EXECUTE     (1ull << 0)
#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_READ_DIR    (1ull << 3)
#define FS_REMOVE_DIR  (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_CHAR   (1ull << 6)
#define FS_MAKE_DIR    (1ull << 7)
#define FS_MAKE_REG    (1ull << 8)
#define FS_MAKE_SOCK   (1ull << 9)
#define FS_MAKE_FIFO   (1ull << 10)
#define FS_MAKE_BLOCK  (1ull << 11)
#define FS_MAKE_SYM    (1ull << 12)
#define FS_REFER       (1ull << 13)     /* ABI 2 */
#define FS_TRUNCATE    (1ull << 14)     /* ABI 3 */
#define FS_IOCTL_DEV   (1ull << 15)     /* ABI 5 */

#define FS_ABI_1 ((1ull << 13) - 1)
/* The rights that mean something on a file that is not a folder; the kernel refuses the others there. */
#define FS_FILE  (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define FS_CLASS_READ   (FS_READ_FILE | FS_READ_DIR)
#define FS_CLASS_WRITE                                                                                    \
    (FS_CLASS_READ | FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | \
     FS_MAKE_SOCK | FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER)
#define FS_CLASS_DEVICE (FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_TRUNCATE | FS_IOCTL_DEV)

#define NET_BIND_TCP    (1ull << 0)
#define NET_CONNECT_TCP (1ull << 1)

/* ABI 7: also log what the domain refuses after an execve (by default only what it refuses before) */
#define LOG_NEW_EXEC_ON (1u << 1)

#define SCOPE_ABSTRACT (1ull << 0)
#define SCOPE_SIGNAL   (1ull << 1)

struct ruleset_attr {
    uint64_t handled_fs;
    uint64_t handled_net;       /* ABI 4 */
    uint64_t scoped;            /* ABI 6 */
};

struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

struct port_attr {
    uint64_t allowed;
    uint64_t port;
};

static const struct feature {
    enum landlock_feature bit;
    int abi;
    const char *name;
    const char *kernel;
} features[] = {
    { LANDLOCK_HAS_FILES,     1, "files",            "Linux 5.13" },
    { LANDLOCK_HAS_REFER,     2, "refer",            "Linux 5.19" },
    { LANDLOCK_HAS_TRUNCATE,  3, "truncate",         "Linux 6.2"  },
    { LANDLOCK_HAS_TCP,       4, "tcp",              "Linux 6.7"  },
    { LANDLOCK_HAS_IOCTL_DEV, 5, "ioctl-dev",        "Linux 6.10" },
    { LANDLOCK_HAS_ABSTRACT,  6, "abstract-sockets", "Linux 6.12" },
    { LANDLOCK_HAS_SIGNAL,    6, "signals",          "Linux 6.12" },
    { LANDLOCK_HAS_LOG,       7, "log",              "Linux 6.15" },
};

static const struct feature *
feature_find(enum landlock_feature bit)
{
    for (size_t i = 0; i < ARRAY_LEN(features); i++)
        if (features[i].bit == bit)
            return &features[i];
    return NULL;
}

const char *
landlock_feature_name(enum landlock_feature feature)
{
    const struct feature *f = feature_find(feature);

    return f == NULL ? "unknown" : f->name;
}

const char *
landlock_feature_kernel(enum landlock_feature feature)
{
    const struct feature *f = feature_find(feature);

    return f == NULL ? "a newer kernel" : f->kernel;
}

void
landlock_probe(struct landlock_support *out)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, CREATE_RULESET_VERSION);

    *out = (struct landlock_support){ .abi = 0 };
    if (abi >= 1) {
        out->abi = (int)abi;
        for (size_t i = 0; i < ARRAY_LEN(features); i++)
            if (abi >= features[i].abi)
                out->features |= (unsigned)features[i].bit;
    } else if (errno == EOPNOTSUPP) {
        out->why_not = "disabled at boot (add landlock to the kernel's lsm= list)";
    } else if (errno == ENOSYS) {
        out->why_not = "not built into this kernel (CONFIG_SECURITY_LANDLOCK, Linux 5.13), or refused by a filter";
    } else {
        out->why_not = "refused by a filter around us";
    }
    out->missing = LANDLOCK_ALL_FEATURES & ~out->features;
}

/* Refuse when a promise that the caller depends on cannot be kept; name the first one. */
static int
check_required(const struct landlock_plan *plan, const struct landlock_support *support, struct err *err)
{
    unsigned lacking = plan->required & ~support->features;

    for (size_t i = 0; i < ARRAY_LEN(features); i++) {
        if ((lacking & (unsigned)features[i].bit) == 0)
            continue;
        if (support->abi == 0)
            err_set(err, ERR_UNSUPPORTED, "wall.landlock.unsupported", "Landlock is not available: %s",
                    support->why_not != NULL ? support->why_not : "unknown reason");
        else
            err_set(err, ERR_UNSUPPORTED, "wall.landlock.unsupported",
                    "Landlock ABI %d of this kernel cannot enforce \"%s\"", support->abi, features[i].name);
        return err_hint(err, "needs Landlock ABI %d (%s)", features[i].abi, features[i].kernel);
    }
    if ((plan->required & ~LANDLOCK_ALL_FEATURES) != 0)
        return err_set(err, ERR_POLICY, "wall.landlock.plan", "unknown required Landlock features %#x",
                       plan->required & ~LANDLOCK_ALL_FEATURES);
    return 0;
}

/* Every file right that this kernel can handle and that @plan wants handled. */
static uint64_t
handled_fs(const struct landlock_plan *plan, const struct landlock_support *support)
{
    uint64_t rights = FS_ABI_1;

    if (!plan->restrict_files)
        return plan->ioctl_dev && (support->features & LANDLOCK_HAS_IOCTL_DEV) != 0 ? FS_IOCTL_DEV : 0;
    if ((support->features & LANDLOCK_HAS_REFER) != 0)
        rights |= FS_REFER;
    if ((support->features & LANDLOCK_HAS_TRUNCATE) != 0)
        rights |= FS_TRUNCATE;
    if (plan->ioctl_dev && (support->features & LANDLOCK_HAS_IOCTL_DEV) != 0)
        rights |= FS_IOCTL_DEV;
    return rights;
}

static bool
class_rights(enum landlock_access access, uint64_t *out)
{
    switch (access) {
    case LANDLOCK_READ:
        *out = FS_CLASS_READ;
        return true;
    case LANDLOCK_READ_EXEC:
        *out = FS_CLASS_READ | FS_EXECUTE;
        return true;
    case LANDLOCK_WRITE:
        *out = FS_CLASS_WRITE;
        return true;
    case LANDLOCK_FULL:
        *out = FS_CLASS_WRITE | FS_EXECUTE;
        return true;
    case LANDLOCK_DEVICE:
        *out = FS_CLASS_DEVICE;
        return true;
    }
    return false;
}

static const char *
rule_name(const struct landlock_rule *rule)
{
    return rule->path != NULL ? rule->path : "(descriptor)";
}

static int
add_path(int ruleset, const struct landlock_rule *rule, uint64_t handled, struct err *err)
{
    cleanup_close int opened = -1;
    struct path_attr attr = { .allowed = 0, .parent_fd = rule->fd };
    uint64_t rights;
    struct stat st;

    if (!class_rights(rule->access, &rights))
        return err_set(err, ERR_POLICY, "wall.landlock.plan", "%s: unknown Landlock access class %d", rule_name(rule),
                       (int)rule->access);
    if (rule->fd < 0) {
        if (rule->path == NULL)
            return err_set(err, ERR_POLICY, "wall.landlock.plan", "a Landlock rule has neither descriptor nor path");
        /* an optional path was found by listing a folder: what a link there leads to was never meant */
        opened = open(rule->path, O_PATH | O_CLOEXEC | (rule->optional ? O_NOFOLLOW : 0));
        if (opened < 0 && rule->optional && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP))
            return 0;
        if (opened >= 0 && rule->optional && fstat(opened, &st) == 0 && S_ISLNK(st.st_mode))
            return 0;
        if (opened < 0)
            return err_sys(err, errno, "wall.landlock.rule", "%s: cannot open for a Landlock rule", rule->path);
        if (rule->check_identity && (fstat(opened, &st) < 0 || st.st_dev != rule->dev || st.st_ino != rule->ino)) {
            err_set(err, ERR_DENIED, "wall.bind.changed", "%s was replaced while the sandbox was being made",
                    rule->path);
            return err_hint(err, "another process renames it; run again when it is stable");
        }
        attr.parent_fd = opened;
    }
    if (fstat(attr.parent_fd, &st) < 0)
        return err_sys(err, errno, "wall.landlock.rule", "%s: fstat", rule_name(rule));
    if (!S_ISDIR(st.st_mode))
        rights &= FS_FILE;
    attr.allowed = rights & handled;
    if (attr.allowed == 0)      /* only rights that this domain does not handle: nothing to grant */
        return 0;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0u) < 0)
        return err_sys(err, errno, "wall.landlock.rule", "%s: Landlock rule", rule_name(rule));
    return 0;
}

static int
add_port(int ruleset, const struct landlock_tcp_port *port, struct err *err)
{
    struct port_attr attr = { .allowed = 0, .port = port->port };

    if (port->bind)
        attr.allowed |= NET_BIND_TCP;
    if (port->connect)
        attr.allowed |= NET_CONNECT_TCP;
    if (attr.allowed == 0)
        return 0;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &attr, 0u) < 0)
        return err_sys(err, errno, "wall.landlock.rule", "TCP port %u: Landlock rule", (unsigned)port->port);
    return 0;
}

/* The kernel refuses an attribute larger than it knows unless the rest is zero, so the size may stay constant
 * from ABI 1 on: what a kernel cannot handle is never set here. */
static int
make_ruleset(const struct landlock_plan *plan, const struct landlock_support *support, struct ruleset_attr *attr,
             struct err *err)
{
    long fd;

    *attr = (struct ruleset_attr){ .handled_fs = handled_fs(plan, support) };
    if (plan->restrict_tcp && (support->features & LANDLOCK_HAS_TCP) != 0)
        attr->handled_net = NET_BIND_TCP | NET_CONNECT_TCP;
    if (plan->scope_abstract && (support->features & LANDLOCK_HAS_ABSTRACT) != 0)
        attr->scoped |= SCOPE_ABSTRACT;
    if (plan->scope_signal && (support->features & LANDLOCK_HAS_SIGNAL) != 0)
        attr->scoped |= SCOPE_SIGNAL;
    if (attr->handled_fs == 0 && attr->handled_net == 0 && attr->scoped == 0)
        return -2;
    fd = syscall(SYS_landlock_create_ruleset, attr, sizeof(*attr), 0u);
    if (fd < 0)
        return err_sys(err, errno, "wall.landlock.restrict", "landlock_create_ruleset");
    return (int)fd;
}

/* There are environments that answer the call with a success that is none: where no rule opens the root folder it must
 * be closed now. */
static int
in_force(const struct landlock_plan *plan, uint64_t handled, struct err *err)
{
    cleanup_close int root = -1;

    if ((handled & FS_READ_DIR) == 0)
        return 0;
    for (size_t i = 0; i < plan->n_rules; i++)
        if (plan->rules[i].path == NULL || strcmp(plan->rules[i].path, "/") == 0)
            return 0;
    root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return 0;
    return err_not_done(err, "wall.landlock.unsupported", "the Landlock domain was accepted, and is not there");
}

int
landlock_restrict(const struct landlock_plan *plan, const struct landlock_support *support, struct err *err)
{
    cleanup_close int ruleset = -1;
    struct landlock_support asked;
    struct ruleset_attr attr;
    unsigned flags;

    if (support == NULL) {
        landlock_probe(&asked);
        support = &asked;
    }
    if (plan->n_rules > LANDLOCK_RULES_MAX)
        return err_set(err, ERR_LIMIT, "wall.landlock.plan", "%zu Landlock rules; the limit is %d", plan->n_rules,
                       LANDLOCK_RULES_MAX);
    if (check_required(plan, support, err) < 0)
        return -1;
    ruleset = make_ruleset(plan, support, &attr, err);
    if (ruleset == -2)          /* nothing that this kernel could enforce, and nothing was required */
        return 0;
    if (ruleset < 0)
        return -1;
    if (attr.handled_fs != 0)
        for (size_t i = 0; i < plan->n_rules; i++)
            if (add_path(ruleset, &plan->rules[i], attr.handled_fs, err) < 0)
                return -1;
    if (attr.handled_net != 0)
        for (size_t i = 0; i < plan->n_ports; i++)
            if (add_port(ruleset, &plan->ports[i], err) < 0)
                return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
        return err_sys(err, errno, "wall.landlock.restrict", "no_new_privs");
    flags = plan->log && (support->features & LANDLOCK_HAS_LOG) != 0 ? LOG_NEW_EXEC_ON : 0;
    if (syscall(SYS_landlock_restrict_self, ruleset, flags) < 0)
        return err_sys(err, errno, "wall.landlock.restrict", "landlock_restrict_self");
    return in_force(plan, attr.handled_fs, err);
}
