/* proto/edge_launcher.c: see edge_launcher.h */
#include "proto/edge_launcher.h"

static bool
limits_well(const struct launch_limits *m)
{
    return edge_recovery_well(&(struct edge_recovery){ .after_s = m->after_s, .tries = m->tries,
                                                       .window_s = m->window_s });
}

PROTO_SHAPE(launch_not_spawned, LAUNCH_NOT_SPAWNED)
PROTO_SHAPE(launch_front, LAUNCH_FRONT)
PROTO_SHAPE(launch_restarts, LAUNCH_RESTARTS)
PROTO_SHAPE_WELL(launch_limits, LAUNCH_LIMITS, limits_well)
PROTO_SHAPE(launch_pool, LAUNCH_POOL)
PROTO_SHAPE(launch_rules, LAUNCH_RULES)
PROTO_SHAPE(launch_connection, LAUNCH_CONNECTION)
PROTO_SHAPE(launch_settings, LAUNCH_SETTINGS)
PROTO_SHAPE(launch_language, LAUNCH_LANGUAGE)
PROTO_SHAPE(launch_docker, LAUNCH_DOCKER)
PROTO_SHAPE(launch_export, LAUNCH_EXPORT)
