/* engine/native/plan.h: from a policy to what the wall needs
 *
 * The only place that translates rules into mounts, Landlock rules, the guard's plan and filters. It looks at the
 * host (which of the system's folders exist, which protected names exist in the project) and writes nothing.
 */
#ifndef CLOCHE_ENGINE_NATIVE_PLAN_H
#define CLOCHE_ENGINE_NATIVE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/led.h"
#include "guest/guard.h"
#include "image/image.h"
#include "policy/judge.h"
#include "policy/policy.h"
#include "wall/label.h"
#include "wall/landlock.h"
#include "wall/ns.h"
#include "wall/root.h"
#include "wall/seccomp.h"
#include "workspace/cow.h"
#include "workspace/overlay.h"

struct plan_named;

#define PLAN_ITEMS_MAX ROOT_BINDS_MAX
#define PLAN_RULES_MAX 2048
#define PLAN_TREES_MAX 600              /* fewer than GUARD_ROOTS_MAX */
#define PLAN_OWNERS_MAX 8               /* different owners among the bound folders, as root */

/* A tree of the host that is visible inside. */
struct plan_tree {
    const char *host;       /* absolute host path, symlinks resolved */
    const char *inside;
    size_t inside_n;        /* its length: hundreds of trees are compared with each name */
    bool writable;
    bool cow;               /* writable inside, kept apart outside */
    bool is_dir;
    int fd;                 /* O_PATH of the host object, kept open while the plan lives */
    uint32_t owner_uid, owner_gid;
    dev_t dev;
    ino_t ino;
};

struct plan_rule {
    const char *path;
    enum landlock_access access;
    bool optional;
    const struct plan_tree *tree;       /* it has to be that object still; NULL: whatever is there */
};

#define PLAN_OWN_MAX 8

/* A file of a writable tree in whose place the sandbox has a copy of its own, which it can change (plan_git.c). */
struct plan_own {
    const struct plan_tree *tree;
    const char *relative;   /* ".git/config", or "config" where the tree is a `.git` */
    const char *text;       /* at the start */
    size_t n;
    size_t said_at, said_n; /* in @said of the plan: what the rest of the configuration says of this tree */
    int fd;                 /* in the child: the copy, until the parent has it; else -1 */
};

/* A place that is open again: @name below the tree @root (inside). */
struct plan_reopened {
    const char *root;       /* absolute, inside */
    const char *name;       /* relative */
};

struct native_plan {
    bool privileged;        /* real root: own host uid, idmapped trees */
    bool as_owner;          /* ... where trees cannot be idmapped (overlayfs): the host uid of what is written */
    bool light;             /* no namespaces */
    bool by_runtime;        /* others make its namespaces, and set no Landlock (oci/); before plan_make() */
    uint32_t also_id;       /* ... and who serves trees to it, and gives names in them; 0: nobody (microvm/) */
    bool same_ids;          /* ... and no user namespace: who it is outside it is inside too (docker/) */
    bool own_net;
    bool net_is_there;          /* the child is born in it (ahead.h) */
    bool capture;           /* its own network leads to listeners that egress accepts on (wall/capture.h) */
    uint16_t ports[POLICY_TCP_PORTS_MAX];   /* ... also on these */
    size_t n_ports;
    bool tell_memory;       /* the parent wants to see what its files in memory, and its network's sockets, hold */
    struct ns_ids ids;
    struct root_plan root;
    struct root_item *items;
    size_t n_items;
    struct plan_tree trees[PLAN_TREES_MAX];
    size_t n_trees;
    struct plan_rule *rules;            /* Landlock, paths as seen inside */
    size_t n_rules;
    struct guard_plan names;            /* what is protected, there or not */
    struct plan_own own[PLAN_OWN_MAX];
    size_t n_own;
    struct buf said;                    /* led_said() of each writable tree: sandbox_own's @elsewhere */
    const struct plan_tree *said_of;    /* the last one, ... */
    size_t said_at;                     /* ... whose begins there */
    bool said_cut;                      /* there is more than is kept */
    const char **sockets;               /* allowed unix sockets, paths as seen inside */
    size_t n_sockets;
    bool guard_names, guard_connect;
    bool guard_existing;                /* what exists too: in light mode, or where mounts are not enough */
    bool guard_git;                     /* no state that git executes comes into being in a writable folder */
    bool guard_git_config;              /* ... its configuration is such state */
    bool host_trees_writable;
    struct seccomp_plan seccomp;
    uint8_t *denied;                    /* numbers of calls that commands may not make, be16 each: the guest's part */
    uint16_t n_denied;
    const char *labels[LABELS];         /* of what everything inside runs under (wall/label.h); NULL: none */
    struct landlock_plan landlock;      /* without the rules */
    struct overlay_plan overlay;
    const char *workspace_inside;       /* root of file requests: "/workspace", or the directory itself in light */
    const char *workdir;                /* cwd of commands */
    const char *hostname;
    const char *light_folder, *light_home, *light_tmp;  /* light mode: a private home and temporary folder */
    char **root_names;          /* light mode: "/NAME" of what is in /, ended by NULL (guest/own_domain.h); else NULL */
    const char **env;                   /* NULL-terminated */
    const char *trust;                  /* bundle of certificates that is ours, at its path inside; NULL: the host's */
    struct { uint32_t uid, gid; int fd; } idmaps[PLAN_OWNERS_MAX];
    size_t n_idmaps;
    struct policy real;     /* the policy, its paths as they really are (plan_rules.c): what plans are judged by */
    struct policy_list credentials;     /* those of @real that are there */
    const char **shown;     /* the folders that a private root shows, real paths */
    size_t n_shown;
    struct plan_named *named;           /* plan_links.h */
    size_t n_named;
    struct plan_reopened *reopened;       /* writable places below one that the name guard keeps */
    size_t n_reopened;
    struct policy_list root_secrets;    /* closed whatever is allowed, where the sandbox's user owns root's files */
    int fill;                           /* struct policy's: the folder, as the child may read it; -1 none */
    int below;                          /* the same where its folders are to lie below the sandbox's own; else -1 */
    struct image image;                 /* whose files are the system; tree -1: the host's are */
    struct cow_state cow;               /* locked while the sandbox lives; id "" when there is none */
    struct landlock_support landlock_support;
    char warnings[8][256];
    size_t n_warnings;
    void *arena;
};

/* @plan is all zero (a fresh page costs nothing until it is written). */
void plan_init(struct native_plan *plan);

/* @plan was initialised and stays where it is. @id names the sandbox (32 hex digits). 0 or -1 with @err. Free with
 * plan_free in both cases. */
int plan_make(struct native_plan *plan, const struct policy *p, const char *id, struct err *err);
void plan_free(struct native_plan *plan);

/* Whether the sandbox's processes have another uid outside than we have: what they shall open again must be given to
 * them. */
bool plan_other_user(const struct native_plan *plan);

/* Arena strings: live as long as the plan. NULL (and @err) when memory is gone. */
char *plan_printf(struct native_plan *plan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *plan_room(struct native_plan *plan, size_t n);
/* plan_calls.c: what the policy opens and closes beside the list of its mode; and the labels, each refused, or a
 * warning where the policy allows, when the host has no such module. */
int plan_calls(struct native_plan *plan, const struct policy *p, struct err *err);
int plan_labels(struct native_plan *plan, const struct policy *p, struct err *err);

struct root_item *plan_item(struct native_plan *plan, enum root_op op, const char *source, const char *dest,
                            struct err *err);
int plan_rule(struct native_plan *plan, const char *path, enum landlock_access access, bool optional,
              struct err *err);
int plan_warn(struct native_plan *plan, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A descriptor of the user namespace that shows files of @uid and @gid as the sandbox's own; kept by the plan. */
int plan_idmap(struct native_plan *plan, uint32_t uid, uint32_t gid, struct err *err);

/* plan_protect.c: what is at @relative in @tree, whatever it is: 1 with an O_PATH *@out, 0 when nothing is there, or
 * -1: that cannot be told, so it cannot be protected. */
int plan_look_at(const struct plan_tree *tree, const char *relative, int *out, struct err *err);

/* plan.c: as root, host ids for *@out[0] to *@out[n - 1] that own nothing and that no other sandbox has. */
int plan_own_ids(uint32_t *const *out, size_t n, struct err *err);
/* plan_system.c: the private root's system folders, /etc, environment. */
int plan_system(struct native_plan *plan, const struct policy *p, struct err *err);
int plan_env(struct native_plan *plan, const struct policy *p, const char *id, struct err *err);
/* plan_image.c: the image that the policy names is found and held, and says what the policy leaves open: user, working
 * directory. After plan_rules(), before anything that asks for these. */
int plan_image(struct native_plan *plan, struct err *err);
/* Its folders as those of the private root, and the users that it knows, as text for /etc/passwd. */
int plan_image_folders(struct native_plan *plan, struct err *err);
int plan_image_layers(struct native_plan *plan, const struct policy *p, struct err *err);
const char *plan_image_passwd(struct native_plan *plan);
/* Whether a file is there in it. */
bool plan_image_has(const struct native_plan *plan, const char *path);
/* plan_contents.c: what the policy leaves out of the host's system folders. */
int plan_contents(struct native_plan *plan, const struct policy *p, struct err *err);
/* plan_host.c: the host view's tree when root makes it, and what is closed in root's trees besides credential places:
 * rules of the engine's own, appended to @out. */
int plan_host(struct native_plan *plan, struct err *err);
int plan_host_secrets(struct native_plan *plan, const struct policy *p, struct policy_list *out, struct err *err);
/* plan_trust.c: certificates; after plan_system(). */
int plan_trust(struct native_plan *plan, const struct policy *p, struct err *err);
/* plan_rules.c: fill plan->real from @p. First of all. The rules of @in, which are the engine's own, the same way. */
int plan_rules(struct native_plan *plan, const struct policy *p, struct err *err);
int plan_rules_more(struct native_plan *plan, const struct policy_list *in, struct policy_list *out, struct err *err);
/* plan_alias.c: for each place of @lists, which are closed to reading, the names that other mounts of its file system
 * give it; each goes to @put with its list and the place's entry. */
typedef int plan_alias_put(struct native_plan *plan, struct policy_list *list, const struct policy_entry *entry,
                           const char *path, struct err *err);
int plan_aliases(struct native_plan *plan, struct policy_list *const *lists, size_t n_lists, plan_alias_put *put,
                 struct err *err);
/* plan_trees.c: workspace, binds and what lists open, as plan->trees. */
int plan_trees(struct native_plan *plan, const struct policy *p, const char *id, struct err *err);
/* plan_hard_links.c: files with names outside of the trees join @plan->real.deny_read, where the policy says so;
 * between plan_trees() and plan_places(). */
int plan_hard_links(struct native_plan *plan, struct err *err);
/* Mount @tree at its place, @writable or not. */
int plan_tree_mount(struct native_plan *plan, const struct plan_tree *tree, bool writable, struct err *err);
/* plan_places.c: mount the trees, and close and open again what rules say within them, by policy_judge(). */
int plan_places(struct native_plan *plan, struct err *err);
/* The tree that shows the path inside: of those around it the innermost; or NULL. */
const struct plan_tree *plan_shown_by(const struct native_plan *plan, const char *inside);
/* What the rules say about the path @inside, as the sandbox names it. */
void plan_judge(const struct native_plan *plan, const char *inside, struct place *place, struct judged *out);
/* The same of what the caller has seen there: most built-in rules are about what is absent, and are passed over. */
void plan_judge_there(const struct native_plan *plan, const char *inside, struct place *place, struct judged *out);
/* The item that has @fd, a folder or file of cloche's own that nobody writes to, which is @source, at @dest: read-only,
 * and shown as the sandbox's own. NULL with @err. */
struct root_item *plan_stored(struct native_plan *plan, enum root_op op, int fd, const char *source, const char *dest,
                              struct err *err);
/* plan_files.c: files with placeholders; after plan_trees(), so that they lie in what is then there. */
int plan_files(struct native_plan *plan, const struct policy *p, struct err *err);
/* fill.c: what the sandbox's own folders begin with; after plan_system(). Where that is to lie below them: of its home
 * and /tmp; plan_below() then of its folder @inside, which is made. */
int plan_fill(struct native_plan *plan, const struct policy *p, struct err *err);
int plan_below(struct native_plan *plan, const char *inside, struct err *err);
/* plan_protect.c, plan_light.c: after plan_places() */
/* The name guard keeps @name below @root, there or not, and the folders on the way to it from being moved away. @root
 * lives as long as the plan. */
int plan_guard_name(struct native_plan *plan, const char *root, const char *name, struct err *err);
/* @relative, below the writable @tree, is read-only when it exists; otherwise it is not made. */
int plan_protect_place(struct native_plan *plan, const struct plan_tree *tree, const char *relative, struct err *err);
/* plan_git.c: what git on the host would run in the writable @tree, and where else the owner's files lead in it. */
int plan_git(struct native_plan *plan, const struct policy *p, const struct plan_tree *tree, struct led *led,
             struct err *err);
/* Give the sandbox a copy of its own of the repository's configuration, if that is what @relative in @tree, at @inside,
 * is: what it adds to it is for who made the sandbox to judge when it has ended. The guard has the name already. 1; 0:
 * it is nothing that can be treated so; -1. */
int plan_git_own(struct native_plan *plan, const struct plan_tree *tree, const char *relative, const char *inside,
                 struct err *err);
/* plan_identity.c: the owner's name and mail address for git, where a writable folder is a repository. */
int plan_identity(struct native_plan *plan, const struct policy *p, struct err *err);
/* A led_put (led.h) for a plan: in whichever writable tree it is. */
int plan_led(void *ctx, const char *path, enum led_kind kind, struct err *err);
bool plan_git_watched(const struct policy *p);
/* Is @name, a protected one, in a `.git` that there is not? Then a repository may be made there, under the guard. */
bool plan_git_later(const struct policy *p, const struct plan_tree *tree, const char *name);
/* ... but not the place @name below @root, which lies in one that it keeps. */
int plan_guard_reopen(struct native_plan *plan, const char *root, const char *name, struct err *err);
int plan_light(struct native_plan *plan, const struct policy *p, struct err *err);
int plan_protect(struct native_plan *plan, const struct policy *p, struct err *err);

#endif
