/* engine/native/report.c: the host's features as the engine's promises and refusals (engine.h) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "engine/native/native.h"
#include "engine/native/probe.h"

/* All of them needed; FEATURE_N ends the list. */
static const enum feature promises[PROMISE_N][4] = {
    [PROMISE_OWN_ROOT] = { FEATURE_MOUNTNS, FEATURE_MOVE_MOUNT, FEATURE_PROC_MOUNT, FEATURE_MOUNT_SETATTR },
    [PROMISE_OWN_NETWORK] = { FEATURE_NETNS, FEATURE_N },
    [PROMISE_OWN_PIDS] = { FEATURE_PIDNS, FEATURE_N },
    [PROMISE_UID_MAPPING] = { FEATURE_USERNS_MAP, FEATURE_N },
    [PROMISE_NO_CAPABILITIES] = { FEATURE_N },
    [PROMISE_SYSCALL_FILTER] = { FEATURE_SECCOMP, FEATURE_N },
    [PROMISE_LANDLOCK] = { FEATURE_LANDLOCK, FEATURE_N },
    [PROMISE_MEMORY_LIMIT] = { FEATURE_LIMIT_MEMORY, FEATURE_N },
    [PROMISE_CPU_LIMIT] = { FEATURE_LIMIT_CPU, FEATURE_N },
    [PROMISE_PIDS_LIMIT] = { FEATURE_LIMIT_PIDS, FEATURE_N },
    [PROMISE_DISK_QUOTA] = { FEATURE_FSOPEN, FEATURE_MOUNTNS, FEATURE_N },
    [PROMISE_READONLY_ROOT] = { FEATURE_MOUNTNS, FEATURE_MOUNT_SETATTR, FEATURE_N },
    [PROMISE_NAME_GUARD] = { FEATURE_USER_NOTIFY, FEATURE_ADDFD_SEND, FEATURE_N },
    [PROMISE_KERNEL_BOUNDARY] = { FEATURE_N },
};

/* Failures that name one feature which the mode has another way for, or does not need for every policy. */
static const struct {
    const char *code;
    enum feature features[3];   /* any of them; FEATURE_N: no more */
} named[] = {
    { "wall.openat2.unsupported", { FEATURE_OPENAT2, FEATURE_N, FEATURE_N } },
    { "wall.overlay.unsupported", { FEATURE_OVERLAY, FEATURE_N, FEATURE_N } },
    { "guard.unsupported", { FEATURE_USER_NOTIFY, FEATURE_ADDFD_SEND, FEATURE_N } },
    { "wall.landlock.unsupported", { FEATURE_LANDLOCK, FEATURE_LANDLOCK_TRUNCATE, FEATURE_LANDLOCK_SCOPE } },
};

static void
promise_of(const struct host_features *h, enum promise p, struct promise_state *out)
{
    out->state = ENFORCED;
    for (size_t i = 0; i < 4 && promises[p][i] != FEATURE_N; i++) {
        const struct feature_state *f = &h->f[promises[p][i]];

        if (f->detail[0] != '\0')
            snprintf(out->how, sizeof(out->how), "%s", f->detail);
        if (f->status == FEATURE_YES)
            continue;
        out->state = f->status == FEATURE_PARTIAL ? SUPERVISED : NOT_ENFORCED;
        snprintf(out->why_not, sizeof(out->why_not), "%s", f->why_not);
        snprintf(out->remedy, sizeof(out->remedy), "%s", f->remedy);
        return;
    }
}

void
features_to_report(const struct host_features *h, struct engine_report *out)
{
    struct promise_state *kernel = &out->promises[PROMISE_KERNEL_BOUNDARY];

    memset(out, 0, sizeof(*out));
    out->info = feature_info;
    memcpy(out->features, h->f, sizeof(h->f));
    out->n_features = FEATURE_N;
    for (int p = 0; p < PROMISE_N; p++)
        promise_of(h, (enum promise)p, &out->promises[p]);
    kernel->state = NOT_ENFORCED;
    snprintf(kernel->why_not, sizeof(kernel->why_not), "the native engine shares the host's kernel");
    snprintf(kernel->remedy, sizeof(kernel->remedy),
             "for code that may attack the kernel itself run cloche inside a virtual machine; the microVM engine is "
             "not in this release");
}

/* Large, and one is enough. */
static struct host_features host;

int
native_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    (void)runtime;
    if (features_probe(&host, err) < 0)
        return -1;
    features_to_report(&host, out);
    return 0;
}

static bool
lacks_named(const struct host_features *h, const char *code, enum feature *which)
{
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        for (size_t k = 0; strcmp(named[i].code, code) == 0 && k < 3 && named[i].features[k] != FEATURE_N; k++)
            if (feature_lacks(h, named[i].features[k])) {
                *which = named[i].features[k];
                return true;
            }
    return false;
}

enum lack
native_lacks(enum policy_mode mode, const char *code, char text[256])
{
    enum feature which;
    enum lack lack;

    if (features_probe(&host, NULL) < 0)
        return LACK_NONE;
    lack = lacks_named(&host, code, &which) ? LACK_OF_STEP
           : features_lack(&host, mode, &which) ? LACK_OF_MODE : LACK_NONE;
    if (lack != LACK_NONE)
        snprintf(text, 256, "no %s: %.200s", feature_info[which].title, host.f[which].why_not);
    return lack;
}
