/* wall/service.c: see service.h */
#include "wall/service.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "wall/caps.h"
#include "wall/own_id.h"

#define NOBODY 65534            /* where there are too few users to take one */

#if defined(CLOCHE_SANITIZED)
/* it looks for leaks by ptrace(2), which nobody may do to this process */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static int
files(const struct service_plan *plan, struct err *err)
{
    const struct landlock_plan rules = { .rules = plan->files, .n_rules = plan->n_files, .restrict_files = true,
                                         .scope_abstract = true, .scope_signal = true };
    struct landlock_support support;

    landlock_probe(&support);
    return support.abi == 0 ? 0 : landlock_restrict(&rules, &support, err);
}

const struct landlock_rule service_resolver_files[SERVICE_RESOLVER_FILES] = {
    { .fd = -1, .path = "/etc/hosts", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/host.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/nsswitch.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/resolv.conf", .access = LANDLOCK_READ, .optional = true },
    { .fd = -1, .path = "/etc/services", .access = LANDLOCK_READ, .optional = true },
};

/* A user that no other process has, so that none, of a neighbour's or of ours, can signal this one, or use up what the
 * kernel counts for a user: descriptors under way, pages of pipes. Pids of those that live are different. */
static int
become_nobody(struct err *err)
{
    uint32_t id = 0;

    if (own_id(OWN_OF_SERVICE, (uint32_t)getpid(), &id, NULL) < 0 || id == 0)
        id = NOBODY;
    return setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0
               ? err_sys(err, errno, "service.rights", "become user %u", id) : 0;
}

int
service_give_up(const struct service_plan *plan, struct err *err)
{
    const struct rlimit none = { 0, 0 };

    if (!plan->keep_user && geteuid() == 0 && become_nobody(err) < 0)
        return -1;
    /* whoever is stopped would not see its starter's end, which is its own; a change of uid forgets it (prctl(2)) */
    if (prctl(PR_SET_PDEATHSIG, plan->dies ? SIGKILL : SIGCONT, 0, 0, 0) < 0)
        return err_sys(err, errno, "service.rights", "PR_SET_PDEATHSIG");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, errno, "service.rights", "not dumpable");
    if (caps_drop_all(err) < 0)
        return -1;
    return plan->all_files ? 0 : files(plan, err);
}

int
service_confine(const struct service_plan *plan, struct err *err)
{
    return service_give_up(plan, err) < 0 ? -1 : service_filter(plan, err);
}
