/* engine/native/built_on.c: see built_on.h */
#include "engine/native/built_on.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wall/caps.h"

int
built_on_refuse(const struct built_on *e, const char *code, const char *what, const char *instead, struct err *err)
{
    err_set(err, ERR_UNSUPPORTED, code, "the engine %s %s", e->name, what);
    return err_hint(err, "%s", instead);
}

static int
refuse(const struct built_on *e, const char *word, const char *what, const char *instead, struct err *err)
{
    char code[ERR_CODE_MAX + 1];

    snprintf(code, sizeof(code), "%s.%s", e->name, word);
    return built_on_refuse(e, code, what, instead, err);
}

static bool
is_root(void)
{
    return geteuid() == 0 && caps_give_identity();
}

int
built_on_check(const struct built_on *e, const struct policy *p, struct err *err)
{
    if (p->mode.v == MODE_LIGHT)
        return refuse(e, "mode", "has no light mode", "use --mode standard or max, or --engine native", err);
    if (p->view.v != VIEW_PRIVATE)
        return refuse(e, "view", "has only --view private", "use --engine native to show the host's tree", err);
    if (p->network.v == NETWORK_HOST)
        return refuse(e, "network", e->network, e->no_network, err);
    if (p->nested_userns.v)
        return refuse(e, "nested", "lets no sandbox make user namespaces", "use --engine native for that", err);
    if (p->apparmor.p != NULL || p->selinux.p != NULL)
        return refuse(e, "label", "runs nothing under an AppArmor profile or SELinux context that a policy names",
                      "use --engine native, or leave it out", err);
    if (!is_root())
        return refuse(e, "root", "needs root, with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID", e->no_root, err);
    return 0;
}

int
built_on_check_plan(const struct built_on *e, const struct native_plan *plan, struct err *err)
{
    if (plan->privileged)
        return 0;
    return refuse(e, "root", "needs a root that can give the sandbox a user of its own", "use --engine native", err);
}

int
built_on_check_memory(const struct built_on *e, const struct native *sb, struct err *err)
{
    if (!sb->supervise_memory)
        return 0;
    return refuse(e, "memory", "needs a cgroup for a memory limit, which is not there",
                  "use --engine native, or no limit (--memory 0)", err);
}

void
built_on_missing(struct feature_state *f, const char *why, const char *remedy)
{
    *f = (struct feature_state){ .status = FEATURE_NO };
    snprintf(f->why_not, sizeof(f->why_not), "%.255s", why);
    snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

void
built_on_not_kept(struct engine_report *out, enum promise p, const char *why, const char *remedy)
{
    struct promise_state *s = &out->promises[p];

    *s = (struct promise_state){ .state = NOT_ENFORCED };
    snprintf(s->why_not, sizeof(s->why_not), "%s", why);
    snprintf(s->remedy, sizeof(s->remedy), "%s", remedy);
}

int
built_on_probe(const struct feature_info *info, size_t n, const char *no_light, struct engine_report *out,
               struct err *err)
{
    static struct engine_report kernel;     /* large: what the host's kernel can do, as it is used by all of them */

    if (kernel.n_features == 0 && native_probe(NULL, &kernel, err) < 0)
        return -1;
    memcpy(out->promises, kernel.promises, sizeof(out->promises));
    out->info = info;
    out->n_features = n;
    for (size_t i = 0; i < n; i++)
        out->features[i].status = FEATURE_YES;
    if (!is_root())
        built_on_missing(&out->features[0], "this is no root with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID",
                         "run it as root; --engine native needs no root");
    built_on_missing(&out->features[n - 1], no_light, "--engine native has it");
    return 0;
}
