/* engine/native/plan.c: see plan.h */
#include "engine/native/plan.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "match/git_config.h"
#include "match/host.h"
#include "match/ip.h"
#include "wall/caps.h"
#include "wall/own_id.h"
#include "wall/pivot.h"

/* --- arena: blocks that live as long as the plan ------------------------------------------------------------- */

/* As a rule one is enough: a mapping of its own, of which only what is used costs memory. */
#define BLOCK_SIZE ((size_t)256 * 1024)

struct block {
    struct block *next;
    size_t used, size;
    char bytes[];
};

static void *
arena_get(struct native_plan *plan, size_t n)
{
    struct block *b = plan->arena;

    n = (n + 15) & ~(size_t)15;
    if (b == NULL || b->size - b->used < n) {
        size_t size = n > BLOCK_SIZE ? n : BLOCK_SIZE;
        b = malloc(sizeof(*b) + size);
        if (b == NULL)
            return NULL;
        *b = (struct block){ .next = plan->arena, .used = 0, .size = size };
        plan->arena = b;
    }
    b->used += n;
    return b->bytes + (b->used - n);
}

char *
plan_printf(struct native_plan *plan, const char *fmt, ...)
{
    va_list ap;
    int need;
    char *out;

    va_start(ap, fmt);
    need = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (need < 0 || (out = arena_get(plan, (size_t)need + 1)) == NULL)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(out, (size_t)need + 1, fmt, ap);
    va_end(ap);
    return out;
}

char *
plan_room(struct native_plan *plan, size_t n)
{
    return arena_get(plan, n);
}

struct root_item *
plan_item(struct native_plan *plan, enum root_op op, const char *source, const char *dest, struct err *err)
{
    struct root_item *item;

    if (dest == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    if (plan->n_items >= PLAN_ITEMS_MAX) {
        err_set(err, ERR_LIMIT, "wall.root.too-many",
                "more than %d mounts are needed; the first that does not fit is %s", PLAN_ITEMS_MAX, dest);
        err_hint(err, "use fewer or wider rules (a folder instead of its files)");
        return NULL;
    }
    item = &plan->items[plan->n_items];
    *item = (struct root_item){ .op = op, .source = source, .dest = dest, .tree = -1, .mode = 0755,
                                .turn = plan->n_items++ };
    return item;
}

int
plan_rule(struct native_plan *plan, const char *path, enum landlock_access access, bool optional, struct err *err)
{
    if (path == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (plan->n_rules >= PLAN_RULES_MAX)
        return err_set(err, ERR_LIMIT, "wall.landlock.too-many", "more than %d path rules", PLAN_RULES_MAX);
    plan->rules[plan->n_rules++] = (struct plan_rule){ path, access, optional, NULL };
    return 0;
}

int
plan_warn(struct native_plan *plan, const char *fmt, ...)
{
    va_list ap;

    if (plan->n_warnings >= ARRAY_LEN(plan->warnings))
        return 0;
    va_start(ap, fmt);
    vsnprintf(plan->warnings[plan->n_warnings], sizeof(plan->warnings[0]), fmt, ap);
    va_end(ap);
    plan->n_warnings++;
    return 0;
}

/* --- who the sandbox is on the host --------------------------------------------------------------------------- */

int
plan_own_ids(uint32_t *const *out, size_t n, struct err *err)
{
    uint32_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_sys(err, errno, "wall.random", "getrandom");
    /* of different seeds they are different ones */
    for (size_t i = 0; i < n; i++)
        if (own_id(OWN_OF_SANDBOX, random + (uint32_t)i, out[i], err) < 0)
            return -1;
    return 0;
}

/* The folder that is opened for writing first, or NULL. */
static const char *
writable_folder(const struct policy *p)
{
    if (p->workspace.kind == WORKSPACE_RW)
        return p->workspace.dir;
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable)
            return p->binds[i].source;
    return p->allow_write.n > 0 ? p->allow_write.v[0].value : NULL;
}

/* Light mode as root: no mount can show a folder under another owner, so the sandbox's user is the owner of the
 * workspace, and a high uid where nothing has to be written. Root's own folders are refused: a sandbox with uid 0 would
 * own every file of the system's. */
static int
light_identity(struct native_plan *plan, const struct policy *p, struct err *err)
{
    const char *folder = writable_folder(p);
    struct stat st;

    if (folder == NULL || stat(folder, &st) < 0)
        return 0;
    if (st.st_uid == 0) {
        err_set(err, ERR_UNSUPPORTED, "wall.light.root-folder",
                "light mode as root cannot open %s for writing: it is root's "
                "own, and the sandbox must not be root",
                folder);
        return err_hint(err, "give the folder to another user (chown -R 1000:1000 %.200s), as whom the sandbox then "
                        "runs; or run as an ordinary user, or use --mode standard where"
                        " `cloche doctor` has it", folder);
    }
    plan->ids.outside_uid = st.st_uid;
    plan->ids.outside_gid = st.st_gid;
    return 0;
}

/* Without mounts under another owner, as root: the owner of what is to be written, or copied. What is only read is
 * read by a user that owns nothing, as far as everybody may read it. */
static int
owner_identity(struct native_plan *plan, const struct policy *p, struct err *err)
{
    const char *folder = writable_folder(p);
    struct stat st;

    if (folder == NULL && (p->workspace.kind == WORKSPACE_RO || p->workspace.kind == WORKSPACE_COW))
        folder = p->workspace.dir;
    if (folder == NULL)
        folder = p->fill;
    if (folder == NULL)
        return 0;
    if (stat(folder, &st) < 0)
        return err_sys(err, errno, "wall.bind.open", "%s", folder);
    if (writable_folder(p) == NULL && p->workspace.kind == WORKSPACE_RO && (st.st_mode & 0005) == 0005)
        return 0;
    plan->ids.outside_uid = st.st_uid;
    plan->ids.outside_gid = st.st_gid;
    return 0;
}

/* Everything below goes by who we are. What the kernel said when it started us no filter around us can change. */
static int
check_self(struct err *err)
{
    uid_t u[3];
    gid_t g[3];

    if (getresuid(&u[0], &u[1], &u[2]) == 0 && getresgid(&g[0], &g[1], &g[2]) == 0 && u[1] == geteuid() &&
        g[1] == getegid() && u[1] == (uid_t)getauxval(AT_EUID) && g[1] == (gid_t)getauxval(AT_EGID))
        return 0;
    return err_not_done(err, "wall.self", "it cannot be told as which user this runs");
}

static int
identity(struct native_plan *plan, const struct policy *p, struct err *err)
{
    bool gives = plan->light ? caps_give_user() : caps_give_identity();
    uint32_t *const uid = &plan->ids.outside_uid;

    if (check_self(err) < 0)
        return -1;
    /* a root that cannot tell is not one without privilege */
    if (caps_can_tell(err) < 0)
        return -1;
    plan->ids.inside_uid = p->user.uid;
    plan->ids.inside_gid = p->user.gid;
    if (gives && plan_own_ids(&uid, 1, err) < 0)
        return -1;
    /* root of a rootless container: one id, which is an ordinary user's outside */
    if (plan->ids.outside_uid == 0)
        gives = false;
    plan->privileged = gives && !plan->as_owner;
    if (!gives) {
        plan->ids.outside_uid = geteuid();
        plan->ids.outside_gid = getegid();
        plan->ids.deny_setgroups = !caps_give_groups_up();
        if (plan->light && plan->ids.outside_uid == 0)
            plan_warn(plan, "the sandbox's user is uid 0 outside: this root lacks a capability (CAP_SETUID, "
                      "CAP_SETGID, CAP_CHOWN, CAP_KILL, CAP_DAC_OVERRIDE) to give it another; root's "
                      "secrets are closed");
        if (!plan->light && plan->ids.outside_uid == 0 && own_id_is_hosts_root())
            plan_warn(plan, "weaker form \"root\": the sandbox's user is uid 0 outside: this root lacks a capability "
                      "(CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID) to give it another; root's secrets are closed");
        return 0;
    }
    plan->ids.outside_gid = plan->ids.outside_uid;
    if (plan->same_ids) {
        if (p->user.from.kind >= ORIGIN_FILE) {
            plan->ids.outside_uid = p->user.uid;
            plan->ids.outside_gid = p->user.gid;
        }
        plan->ids.inside_uid = plan->ids.outside_uid;
        plan->ids.inside_gid = plan->ids.outside_gid;
    }
    if (plan->light)
        return light_identity(plan, p, err);
    return plan->as_owner ? owner_identity(plan, p, err) : 0;
}

/* --- filters --------------------------------------------------------------------------------------------------- */

static int
filters(struct native_plan *plan, const struct policy *p, struct err *err)
{
    struct seccomp_plan *s = &plan->seccomp;

    s->list = plan->light ? SECCOMP_LIST_LIGHT : p->mode.v == MODE_MAX ? SECCOMP_LIST_MAX : SECCOMP_LIST_STANDARD;
    s->ptrace = p->ptrace.v;
    s->nested_userns = p->nested_userns.v;
    s->network_closed = p->network.v != NETWORK_HOST;
    if (p->all_unix_sockets.v)
        s->unix_sockets = SECCOMP_UNIX_ALL;
    else if (plan->guard_connect)
        s->unix_sockets = SECCOMP_UNIX_CONNECTED;
    else
        s->unix_sockets = plan->light ? SECCOMP_UNIX_PAIRS : SECCOMP_UNIX_ALL;

    plan->landlock.restrict_files = true;
    plan->landlock.scope_abstract = true;
    plan->landlock.scope_signal = true;
    /* with namespaces, Landlock is the second wall: nothing is lost that the first does not hold */
    plan->landlock.required = 0;
    if (plan->light)
        plan->landlock.required =
            LANDLOCK_HAS_FILES | LANDLOCK_HAS_TRUNCATE | LANDLOCK_HAS_ABSTRACT | LANDLOCK_HAS_SIGNAL;
    else if (p->network.v == NETWORK_HOST)
        plan->landlock.required = LANDLOCK_HAS_ABSTRACT;    /* the host's abstract sockets share its network */
    return plan_calls(plan, p, err) < 0 ? -1 : plan_labels(plan, p, err);
}

/* Why no rule opens @host; NULL: one may. */
static const char *
never_opened(struct str host)
{
    struct ip ip;

    if (ip_is_loopback_host(host))
        return "localhost is the sandbox's own, the host's services there are not reached";
    if (!ip_parse_loose(host, &ip))
        return NULL;
    switch (ip_classify(ip)) {
    case IP_PRIVATE:
    case IP_SHARED:
    case IP_SPECIAL:
    case IP_PUBLIC:
        return NULL;
    default:
        return "such an address is refused whatever the rules say";
    }
}

/* Rules that open what is closed, whoever asks: said before somebody waits for it. In a settings file, which may be
 * meant for other programs too, they do no harm; on the command line somebody expects something of them. */
static int
check_never_opened(struct native_plan *plan, const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->allow_domains.n; i++) {
        const struct policy_entry *entry = &p->allow_domains.v[i];
        struct str host = str_of(entry->value);
        const char *why;
        uint16_t port;

        if (str_starts(host, STR_LIT("*.")))
            host = (struct str){ host.p + 2, host.n - 2 };
        if (host_split_port(host, &host, &port) != HOST_OK || (why = never_opened(host)) == NULL)
            continue;
        if (entry->from.kind != ORIGIN_FLAG) {
            plan_warn(plan, "the rule \"%s\" opens nothing: %s", entry->written, why);
            continue;
        }
        err_set(err, ERR_POLICY, "policy.host.never", "--allow-domain %s would open nothing: %s", entry->written, why);
        return err_hint(err, ip_is_loopback_host(host)
                                 ? "the sandbox's own servers need no rule; one of this host is reached with "
                                   "--allow-host-port PORT as host.cloche.internal, or through its unix socket "
                                   "(--allow-unix-socket PATH)"
                                 : "take it out");
    }
    return 0;
}

/* A missing promise: refused, or a warning where the policy allows. */
static int
check_landlock(struct native_plan *plan, const struct policy *p, struct err *err)
{
    unsigned lack = plan->landlock.required & plan->landlock_support.missing;

    if (plan->landlock_support.abi == 0 && !plan->light && !plan->by_runtime)
        plan_warn(plan, "Landlock is not there (%s): mounts and the name guard are the only walls around files",
                  plan->landlock_support.why_not);

    for (unsigned bit = 1; bit <= LANDLOCK_HAS_LOG; bit <<= 1) {
        if (!(lack & bit))
            continue;
        if (p->fallback.v != FALLBACK_REFUSE && bit != LANDLOCK_HAS_FILES) {
            plan_warn(plan, "Landlock %s is missing (%s): that wall is not there",
                      landlock_feature_name((enum landlock_feature)bit),
                      landlock_feature_kernel((enum landlock_feature)bit));
            continue;
        }
        err_set(err, ERR_UNSUPPORTED, "wall.landlock.unsupported", "%s needs Landlock %s, which this kernel lacks%s%s",
                plan->light ? "mode light" : "--network host", landlock_feature_name((enum landlock_feature)bit),
                plan->landlock_support.why_not != NULL ? ": " : "",
                plan->landlock_support.why_not != NULL ? plan->landlock_support.why_not : "");
        return err_hint(err, "%s has it; `cloche doctor` says more; --fallback warn runs without it where possible",
                        landlock_feature_kernel((enum landlock_feature)bit));
    }
    plan->landlock.required &= plan->landlock_support.features;
    return 0;
}

void
plan_init(struct native_plan *plan)
{
    plan->said = (struct buf)BUF_INIT(GIT_CONFIG_MAX);
    plan->cow = (struct cow_state)COW_STATE_INIT;
    plan->image = (struct image)IMAGE_INIT;
    plan->root.host_tree = plan->root.proc_tree = -1;
    plan->overlay.lower.tree = plan->overlay.layers.tree = plan->fill = plan->below = -1;
}

/* Docker's own filter refuses pivot_root even to a container with CAP_SYS_ADMIN. */
static int
way_in(struct native_plan *plan, const struct policy *p, struct err *err)
{
    if (plan->light || !caps_give_identity() || !pivot_is_filtered())
        return 0;
    if (p->nested_userns.v) {
        err_set(err, ERR_UNSUPPORTED, "wall.root.chroot", "user namespaces inside need pivot_root, which a filter "
                "around this process refuses");
        return err_hint(err, "start the container with --security-opt seccomp=unconfined, or leave them forbidden");
    }
    plan->root.by_chroot = true;
    return plan_warn(plan, "weaker form \"chroot\": a filter around this process refuses pivot_root; the sandbox's "
                     "root hides the outer one instead of replacing it");
}

/* The owner of @folder is the sandbox's user outside, and nobody knows where it is at home. */
static bool
owner_has_no_home(const struct native_plan *plan, const struct policy *p, const char *folder)
{
    struct stat st;

    return stat(folder, &st) == 0 && st.st_uid == plan->ids.outside_uid && p->home_of_owner(folder) == NULL;
}

/* Of what the host's tree shows, places for credentials are closed by their home: said where that is not known. */
static void
warn_of_homeless(struct native_plan *plan, const struct policy *p)
{
    const char *folder = writable_folder(p);

    if (p->view.v != VIEW_HOST && !plan->light)
        return;
    if (p->home == NULL)
        plan_warn(plan, "no home is known (HOME is not an absolute path, uid %u has no account): places for "
                  "credentials are not closed; set HOME, or deny them", (unsigned)geteuid());
    else if (plan->ids.outside_uid != geteuid() && folder != NULL && p->home_of_owner != NULL &&
             owner_has_no_home(plan, p, folder))
        plan_warn(plan, "uid %u, as whom the command runs, has no account: places for credentials in its home are not "
                  "closed; deny them", plan->ids.outside_uid);
}

static int
make(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    plan->light = p->mode.v == MODE_LIGHT;
    plan->own_net = !plan->light && p->network.v != NETWORK_HOST;
    plan->capture = plan->own_net && p->network.v == NETWORK_ALLOWLIST;
    (void)policy_tcp_ports(p, plan->ports, &plan->n_ports, NULL);     /* policy_validate has counted them */
    plan->items = arena_get(plan, PLAN_ITEMS_MAX * sizeof(*plan->items));
    plan->rules = arena_get(plan, PLAN_RULES_MAX * sizeof(*plan->rules));
    if (plan->items == NULL || plan->rules == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (plan->by_runtime)
        plan->landlock_support = (struct landlock_support){ .missing = LANDLOCK_ALL_FEATURES,
                                                                  .why_not = "no OCI runtime has it" };
    else
        landlock_probe(&plan->landlock_support);
    if (plan_rules(plan, p, err) < 0)
        return -1;
    p = &plan->real;
    if (p->image.p != NULL && plan_image(plan, err) < 0)
        return -1;
    if (identity(plan, p, err) < 0 || way_in(plan, p, err) < 0)
        return -1;
    warn_of_homeless(plan, p);
    plan->hostname = p->hostname.p != NULL ? p->hostname.p : "cloche";
    /* where others make the user namespace, or none, the tree is built outside of it */
    plan->root.uid = plan->by_runtime ? plan->ids.outside_uid : plan->ids.inside_uid;
    plan->root.gid = plan->by_runtime ? plan->ids.outside_gid : plan->ids.inside_gid;
    plan->root.tmpfs_bytes = p->limits.disk.v;
    /* an inode costs about a kilobyte of kernel memory: one per 4 KiB of the size, as many as small files could use */
    plan->root.tmpfs_inodes = p->limits.disk.v > 0 ? p->limits.disk.v / 4096 + 1024 : 0;
    plan->root.host_view = p->view.v == VIEW_HOST;
    plan->root.outside_root = plan->ids.outside_uid == 0;
    plan->root.proc_subset = p->mode.v == MODE_MAX;
    /* without Landlock the mount alone has to keep the root as it is */
    plan->root.readonly_root =
        (p->read_only_root.v || plan->landlock_support.abi == 0) && p->view.v == VIEW_PRIVATE;
    if (plan->light && plan_rule(plan, plan->light_folder, LANDLOCK_FULL, false, err) < 0)
        return -1;
    if (plan_system(plan, p, err) < 0 || plan_trust(plan, p, err) < 0 || plan_fill(plan, p, err) < 0 ||
        plan_trees(plan, p, id, err) < 0 || plan_hard_links(plan, err) < 0 || plan_places(plan, err) < 0 ||
        (plan->below < 0 && plan_files(plan, p, err) < 0) || plan_protect(plan, p, err) < 0 ||
        plan_identity(plan, p, err) < 0 || plan_env(plan, p, id, err) < 0)
        return -1;
    if (filters(plan, p, err) < 0)
        return -1;
    if (plan->capture && check_never_opened(plan, p, err) < 0)
        return -1;
    if (p->network.v == NETWORK_HOST && !plan->light)
        plan_warn(plan, "the sandbox shares the host's network: its services on localhost can be reached");
    plan->root.items = plan->items;
    plan->root.n_items = plan->n_items;
    return check_landlock(plan, p, err);
}

/* Whether the system is on overlayfs, as a container's is: it has no idmapped mounts. */
static bool
on_overlay(void)
{
    struct statfs fs;

    return statfs("/", &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* The weaker form where no mount can show files under another owner (plan.h). With uid 0, which is somebody's whole
 * machine elsewhere, in containers only. */
static int
make_as_owner(struct native_plan *plan, const struct policy *p, const char *id, const struct err *why, struct err *err)
{
    struct err other = ERR_INIT;

    if (plan->cow.id[0] != '\0')
        cow_discard(&plan->cow, NULL);
    plan_free(plan);
    memset(plan, 0, sizeof(*plan));
    plan_init(plan);
    plan->as_owner = true;
    if (make(plan, p, id, &other) < 0) {
        if (err != NULL)
            *err = other;
        return -1;
    }
    if (plan->ids.outside_uid == 0 && !on_overlay()) {
        if (err != NULL)
            *err = *why;
        return -1;
    }
    plan_warn(plan, "weaker form \"owner\": %s; the sandbox's user is uid %u outside%s", why->msg,
              plan->ids.outside_uid, plan->ids.outside_uid == 0 ? ", root's secrets are closed" : "");
    return 0;
}

int
plan_make(struct native_plan *plan, const struct policy *p, const char *id, struct err *err)
{
    struct err why = ERR_INIT;

    if (make(plan, p, id, &why) == 0)
        return 0;
    if (plan->privileged && !plan->light && !plan->by_runtime &&
        (err_is(&why, "wall.idmap") || err_is(&why, "wall.overlay.unsupported")))
        return make_as_owner(plan, p, id, &why, err);
    if (err != NULL)
        *err = why;
    return -1;
}

bool
plan_other_user(const struct native_plan *plan)
{
    return plan->ids.outside_uid != geteuid();
}

void
plan_free(struct native_plan *plan)
{
    for (size_t i = 0; i < plan->n_trees; i++)
        close_fd(&plan->trees[i].fd);
    for (size_t i = 0; i < plan->n_items; i++) {
        struct root_item *item = &plan->items[i];
        close_fd(&item->tree);
        if (item->mapped)
            munmap((void *)(uintptr_t)item->source, item->size);
    }
    close_fd(&plan->root.host_tree);
    close_fd(&plan->overlay.lower.tree);
    close_fd(&plan->overlay.layers.tree);
    close_fd(&plan->fill);
    close_fd(&plan->below);
    for (size_t i = 0; i < plan->n_idmaps; i++)
        close_fd(&plan->idmaps[i].fd);
    image_close(&plan->image);
    buf_free(&plan->said);
    free(plan->named);
    free(plan->reopened);
    cow_close(&plan->cow);
    guard_plan_free(&plan->names);
    free(plan->sockets);
    free(plan->env);
    while (plan->arena != NULL) {
        struct block *b = plan->arena;
        plan->arena = b->next;
        free(b);
    }
}
