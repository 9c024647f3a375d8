/* engine/docker/probe.c: what a daemon's containers promise here */
#include <stdio.h>

#include "engine/docker/docker.h"
#include "engine/native/built_on.h"

enum { DOCKER_ROOT, DOCKER_DAEMON, DOCKER_LIGHT, DOCKER_FEATURES };

static const struct feature_info info[DOCKER_FEATURES] = {
    { "docker-root", "root that can give a sandbox a user of its own", "namespaces", NEED_NONE, NEED_MUST, NEED_MUST },
    { "docker-daemon", "a Docker or Podman daemon of root's", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "docker-light", "a light mode", "root", NEED_MUST, NEED_NONE, NEED_NONE },
};

int
docker_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    struct docker_daemon daemon;
    struct err why = ERR_INIT;

    (void)runtime;
    if (built_on_probe(info, DOCKER_FEATURES, "no container has a light mode", out, err) < 0)
        return -1;
    built_on_not_kept(out, PROMISE_LANDLOCK, "a daemon sets no Landlock: mounts, the user and the name guard are the "
                      "walls around files", "--engine native has it");
    built_on_not_kept(out, PROMISE_KERNEL_BOUNDARY, "containers share the host's kernel",
                      "--runtime runsc has its own");
    if (docker_find(&daemon, &why) < 0)
        built_on_missing(&out->features[DOCKER_DAEMON], why.msg, why.hint);
    else
        snprintf(out->features[DOCKER_DAEMON].detail, sizeof(out->features[0].detail), "%.40s %.40s at %.40s",
                 daemon.name, daemon.version, daemon.socket);
    return 0;
}
