/* engine/native/report.c: the host's features as the engine's promises (engine.h) */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/native/probe.h"

static const struct {
    const char *name, *description;
    enum feature features[4];   /* all of them needed; FEATURE_N ends the list */
} promises[PROMISE_N] = {
    [PROMISE_OWN_ROOT] = { "own-root",
                           "own root file system",
                           { FEATURE_MOUNTNS, FEATURE_MOVE_MOUNT, FEATURE_PROC_MOUNT, FEATURE_MOUNT_SETATTR } },
    [PROMISE_OWN_NETWORK] = { "own-network", "own network, closed", { FEATURE_NETNS, FEATURE_N } },
    [PROMISE_OWN_PIDS] = { "own-pids", "own process numbers", { FEATURE_PIDNS, FEATURE_N } },
    [PROMISE_UID_MAPPING] = { "uid-mapping",
                              "a user without privilege on the host",
                              { FEATURE_USERNS_MAP, FEATURE_N } },
    [PROMISE_NO_CAPABILITIES] = { "no-capabilities", "no capabilities", { FEATURE_N } },
    [PROMISE_SYSCALL_FILTER] = { "syscall-filter", "system call allow-list", { FEATURE_SECCOMP, FEATURE_N } },
    [PROMISE_LANDLOCK] = { "landlock", "Landlock rules", { FEATURE_LANDLOCK, FEATURE_N } },
    [PROMISE_MEMORY_LIMIT] = { "memory-limit", "memory limit", { FEATURE_LIMIT_MEMORY, FEATURE_N } },
    [PROMISE_CPU_LIMIT] = { "cpu-limit", "CPU limit", { FEATURE_LIMIT_CPU, FEATURE_N } },
    [PROMISE_PIDS_LIMIT] = { "pids-limit", "process count limit", { FEATURE_LIMIT_PIDS, FEATURE_N } },
    [PROMISE_DISK_QUOTA] = { "disk-quota",
                             "disk limit (one sized tmpfs)",
                             { FEATURE_FSOPEN, FEATURE_MOUNTNS, FEATURE_N } },
    [PROMISE_READONLY_ROOT] = { "read-only-root",
                                "read-only root (mode max)",
                                { FEATURE_MOUNTNS, FEATURE_MOUNT_SETATTR, FEATURE_N } },
    [PROMISE_NAME_GUARD] = { "name-guard",
                             "absent protected names cannot be created",
                             { FEATURE_USER_NOTIFY, FEATURE_ADDFD_SEND, FEATURE_N } },
    [PROMISE_KERNEL_BOUNDARY] = { "kernel-boundary", "own kernel", { FEATURE_N } },
};

const char *
promise_name(enum promise p)
{
    return p < PROMISE_N ? promises[p].name : "?";
}

const char *
promise_describe(enum promise p)
{
    return p < PROMISE_N ? promises[p].description : "?";
}

static void
promise_of(const struct host_features *h, enum promise p, struct promise_state *out)
{
    out->state = ENFORCED;
    for (size_t i = 0; i < 4 && promises[p].features[i] != FEATURE_N; i++) {
        const struct feature_state *f = &h->f[promises[p].features[i]];

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
    enum feature missing;

    memset(out, 0, sizeof(*out));
    out->engine = "native";
    out->usable = features_allow(h, MODE_STANDARD, &missing);
    out->usable_light = features_allow(h, MODE_LIGHT, &missing);
    for (int p = 0; p < PROMISE_N; p++)
        promise_of(h, (enum promise)p, &out->promises[p]);
    kernel->state = NOT_ENFORCED;
    snprintf(kernel->why_not, sizeof(kernel->why_not), "the native engine shares the host's kernel");
    snprintf(kernel->remedy, sizeof(kernel->remedy),
             "for code that may attack the kernel itself run cloche inside a virtual machine; the microVM engine is "
             "not in this release");
}

int
native_probe(struct engine_report *out, struct err *err)
{
    struct host_features h;

    if (features_probe(&h, err) < 0)
        return -1;
    features_to_report(&h, out);
    return 0;
}
