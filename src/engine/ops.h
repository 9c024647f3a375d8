/* engine/ops.h: what an engine is, for the files of engine/
 *
 * An engine is a folder and a row of the registry (registry.c). Its own struct of a sandbox begins with a struct
 * sandbox, and its rules with a struct engine_rules, which is how its functions find theirs again. engine.h says what
 * each operation has to do; those that may be NULL are what not every engine can, or has to.
 */
#ifndef CLOCHE_ENGINE_OPS_H
#define CLOCHE_ENGINE_OPS_H

#include "engine/engine.h"
#include "engine/rules.h"

struct engine {
    const char *name;
    bool containers;                /* a sandbox is a container with a name (policy->container_prefix) */
    bool docker_inside;             /* its sandbox may have a Docker Engine of its own (policy->private_docker) */
    bool root_inside;               /* its sandbox's user may be root there (policy->user) */
    bool images;                    /* it runs images (policy->image) */
    const char *const *runtimes;    /* of the programs that it can have make the wall, ended by NULL; NULL: none */
    enum policy_boundary (*boundary)(const char *runtime);  /* of walls by that one of @runtimes; NULL: PROCESS */
    /* Whether it can make a sandbox of @p here, as far as that is seen without making anything; @runtime is one of
     * @runtimes, or NULL. NULL: create() says. */
    int (*can)(const struct policy *p, const char *runtime, struct err *err);
    /* @runtime NULL: the one that `auto` takes. @out is all zero; engine, usable and usable_light are filled for it. */
    int (*probe)(const char *runtime, struct engine_report *out, struct err *err);
    size_t (*holes)(const char *runtime, const char *version, struct engine_hole *out, size_t max);     /* NULL: none */
    enum lack (*lacks)(enum policy_mode mode, const char *code, char text[256]);    /* NULL: never */
    /* NULL: those of the policy as they are written. */
    int (*rules)(const struct policy *p, struct engine_rules **out, struct err *err);
    /* NULL: cloche alone. @out is empty. */
    int (*makers)(const struct policy *p, struct engine_makers *out, struct err *err);
    bool (*left)(void);                                             /* NULL, both: what it leaves is noted */
    void (*sweep)(void);
    int (*prepare)(void);                                           /* NULL: there is nothing to do */
    int (*image)(struct err *err);                                  /* NULL: there is none to share, */
    void (*have_image)(int fd);                                     /* nor to be had */
    int (*create)(const struct policy *p, const char *id, struct sandbox **out, struct err *err);
    pid_t (*guest)(const struct sandbox *sb);       /* NULL: the facts' pid */
    int (*connect)(struct sandbox *sb, int *guest_fd, struct err *err);
    /* version, sample_ms and root are filled for it, and from @guard afterwards the guard's. */
    int (*setup)(struct sandbox *sb, struct buf *guard, struct msg_setup *out, struct err *err);
    void (*usage)(struct sandbox *sb, struct sandbox_usage *out);   /* @out is all zero */
    void (*now)(struct sandbox *sb, struct sandbox_now *out);       /* the same; NULL: nothing is known */
    bool (*over_memory)(struct sandbox *sb);                        /* NULL: never */
    bool (*alone)(struct sandbox *sb);                              /* NULL: that is not known */
    /* NULL, both: they cannot be changed. Asked only where one of memory, processors, processes differs. */
    int (*limits)(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err);
    int (*limits_back)(struct sandbox *sb, const struct policy *from, const struct policy *to, struct err *err);
    /* NULL, all four: a command has the sandbox's limits. */
    int (*command_begin)(struct sandbox *sb, const struct sandbox_command_limits *limits, struct sandbox_command **out,
                         int joins[SANDBOX_JOINS], size_t *n, struct err *err);
    void (*command_sent)(struct sandbox *sb, struct sandbox_command *c);
    void (*command_look)(struct sandbox *sb, struct sandbox_command *c, struct sandbox_command_end *out);
    void (*command_end)(struct sandbox *sb, struct sandbox_command *c);
    int (*pause)(struct sandbox *sb, struct err *err);              /* NULL, both: it cannot be */
    int (*resume)(struct sandbox *sb, struct err *err);
    void (*confined)(struct sandbox *sb);                           /* NULL: it asks nobody */
    void (*tend)(struct sandbox *sb);                               /* NULL: there is nothing to do */
    int (*setup_failed)(struct sandbox *sb, struct err *err);       /* NULL: create() had the last word */
    int (*gone)(struct sandbox *sb, struct err *err);
    void (*abandon)(struct sandbox *sb);                            /* NULL: there is no such state */
    void (*end)(struct sandbox *sb);                                /* NULL: kill() is all there is */
    void (*kill)(struct sandbox *sb);
    void (*destroy)(struct sandbox *sb);
};

/* An engine fills the facts in create(), and keeps true of them what may change: pid, look_at_memory. */
struct sandbox {
    const struct engine *engine;
    struct sandbox_facts facts;
    struct engine_choice choice;        /* facts.choice */
};

struct engine_rules {
    const struct policy *policy;
    bool (*place)(const struct engine_rules *rules, const char *path, struct place *out);
    void (*free)(struct engine_rules *rules);
};

/* choose.c: as engine_choose(); but what is named, and the one that `auto` takes first, is not looked at: its create()
 * says what it lacks, in its own words. NULL with @err. */
const struct engine *engine_pick(const struct policy *p, struct engine_choice *out, struct err *err);
/* Whether @e is for what @p asks for, whatever the host is. 0 or -1 with @err. */
int engine_suits(const struct engine *e, const struct policy *p, struct err *err);
enum policy_boundary engine_boundary(const struct engine *e, const char *runtime);
bool engine_has_runtime(const struct engine *e, const char *name);

/* How much @mode needs the feature. */
enum need feature_need(const struct feature_info *info, enum policy_mode mode);

/* registry.c: all engines, the one first that `auto` takes; ended by NULL. Further ones are linked with a registry of
 * their own (tests/engine). */
extern const struct engine *const engine_registry[];

#endif
