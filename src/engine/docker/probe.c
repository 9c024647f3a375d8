/* engine/docker/probe.c: what a daemon's containers promise here */
#include <stdio.h>
#include <string.h>

#include "engine/docker/docker.h"

enum { DOCKER_ROOT, DOCKER_DAEMON, DOCKER_LIGHT, DOCKER_FEATURES };

static const struct feature_info info[DOCKER_FEATURES] = {
    { "docker-root", "root that can give a sandbox a user of its own", "namespaces", NEED_NONE, NEED_MUST, NEED_MUST },
    { "docker-daemon", "a Docker or Podman daemon of root's", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "docker-light", "a light mode", "root", NEED_MUST, NEED_NONE, NEED_NONE },
};

static void
missing(struct feature_state *f, const char *why, const char *remedy)
{
    *f = (struct feature_state){ .status = FEATURE_NO };
    snprintf(f->why_not, sizeof(f->why_not), "%.255s", why);
    snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

static void
not_kept(struct engine_report *out, enum promise p, const char *why, const char *remedy)
{
    struct promise_state *s = &out->promises[p];

    *s = (struct promise_state){ .state = NOT_ENFORCED };
    snprintf(s->why_not, sizeof(s->why_not), "%s", why);
    snprintf(s->remedy, sizeof(s->remedy), "%s", remedy);
}

int
docker_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    static struct engine_report kernel;     /* large: what the host's kernel can do, as it is used here too */
    struct docker_daemon daemon;
    struct err why = ERR_INIT;

    (void)runtime;
    if (kernel.n_features == 0 && native_probe(NULL, &kernel, err) < 0)
        return -1;
    memcpy(out->promises, kernel.promises, sizeof(out->promises));
    not_kept(out, PROMISE_LANDLOCK, "a daemon sets no Landlock: mounts, the user and the name guard are the walls "
             "around files", "--engine native has it");
    not_kept(out, PROMISE_KERNEL_BOUNDARY, "containers share the host's kernel", "--runtime runsc has its own");
    out->info = info;
    out->n_features = DOCKER_FEATURES;
    for (size_t i = 0; i < DOCKER_FEATURES; i++)
        out->features[i].status = FEATURE_YES;
    if (!docker_is_root())
        missing(&out->features[DOCKER_ROOT], "this is no root with CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID",
                "run it as root; --engine native needs no root");
    if (docker_find(&daemon, &why) < 0)
        missing(&out->features[DOCKER_DAEMON], why.msg, why.hint);
    else
        snprintf(out->features[DOCKER_DAEMON].detail, sizeof(out->features[0].detail), "%.40s %.40s at %.40s",
                 daemon.name, daemon.version, daemon.socket);
    missing(&out->features[DOCKER_LIGHT], "no container has a light mode", "--engine native has it");
    return 0;
}
