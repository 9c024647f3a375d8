/* proto/edge_launcher.h: what the launcher and those that it starts say to each other (edge.h) */
#ifndef CLOCHE_PROTO_EDGE_LAUNCHER_H
#define CLOCHE_PROTO_EDGE_LAUNCHER_H

#include "gate/names.h"
#include "match/host.h"
#include "match/language.h"
#include "proto/edge.h"

/* --- launcher and warden ------------------------------------------------------------------------------------------ */

#define LAUNCH_NOT_SPAWNED(F) F(ID, id) F(ERR, why)
PROTO_STRUCT(launch_not_spawned, LAUNCH_NOT_SPAWNED);

#define LAUNCH_FRONT(F) F(FLAGS, flags, EDGE_STRANGERS)
PROTO_STRUCT(launch_front, LAUNCH_FRONT);

#define LAUNCH_RESTARTS(F) F(U32, wardens) F(U32, fronts)
PROTO_STRUCT(launch_restarts, LAUNCH_RESTARTS);

/* What sandboxes get that name nothing else; seconds. */
#define LAUNCH_LIMITS(F) \
    F(U32_IN, max, 1, UINT32_MAX)           /* sandboxes at once, */ \
    F(U32_IN, each, 1, UINT32_MAX)          /* of one agent */ \
    F(U32, idle_s) \
    F(U32, life_s) \
    F(U32, after_s)                         /* recovery, as of struct edge_recovery */ \
    F(U32, tries) \
    F(U32, window_s)
PROTO_STRUCT(launch_limits, LAUNCH_LIMITS);

/* Sandboxes that are made ahead (warden/pool.c). */
#define LAUNCH_POOL(F) \
    F(U32, max)                             /* at once; 0: none are */ \
    F(U32, memory)                          /* MiB that all of them may hold */ \
    F(U32, idle_s)                          /* as long as that after the last request for one like it */
PROTO_STRUCT(launch_pool, LAUNCH_POOL);

/* With a socket to cloche-otlp (edge_export.h): the warden, and fronts, tell it what they did. */
#define LAUNCH_EXPORT(F) \
    F(U32, every_s)                         /* numbers too, so often; 0: not */ \
    F(BOOL, commands)                       /* commands' words too */
PROTO_STRUCT(launch_export, LAUNCH_EXPORT);

#define LAUNCH_RULES(F) \
    F(TEXT, name, EDGE_PATH_MAX) \
    F(BYTES, text, GATE_FILE_MAX)           /* the gate's rules, as YAML */ \
    F(RAW, defaults, SHA256_SIZE)           /* digest of what sandboxes get without asking */
PROTO_STRUCT(launch_rules, LAUNCH_RULES);

#define EDGE_LAUNCHER_TO_WARDEN(M) \
    M(EDGE_LIMITS,       83,  launch_limits) \
    M(EDGE_SCRIBE,       86,  nothing)          /* with the edge to a new scribe */ \
    M(EDGE_POOL,         88,  launch_pool) \
    M(EDGE_RESTARTS,     89,  launch_restarts)  /* how often since its start */ \
    M(EDGE_KILL,         90,  nothing)          /* end all sandboxes, and go on */ \
    M(EDGE_RULES,        92,  launch_rules) \
    M(EDGE_WEBHOOK,      208, nothing)          /* with the edge to a new cloche-webhook */ \
    M(EDGE_EXPORT,       237, launch_export)    /* to fronts too */ \
    M(EDGE_SIGNER,       209, nothing)          /* with the edge to a new cloche-signer */ \
    M(EDGE_SPAWNED,      217, edge_only_id)     /* with the keeper's edge */ \
    M(EDGE_NOT_SPAWNED,  218, launch_not_spawned) \
    /* with a new edge to a keeper that served the warden before; without the id to the keeper */ \
    M(EDGE_ADOPT,        219, edge_only_id) \
    M(EDGE_ADOPTED_ALL,  220, nothing)          /* once, after the last of them */ \
    /* with the edge to a new front, in the place of the former one of its kind */ \
    M(EDGE_FRONT,        221, launch_front) \
    M(EDGE_CLOSE,        222, nothing)          /* end all sandboxes */ \
    M(EDGE_COUNTS,       228, nothing)          /* all have taken the configuration: it is not taken back any more */ \
    M(EDGE_PING,         229, nothing)          /* to fronts too: are you there? */
PROTO_EDGE(edge_launcher_to_warden, EDGE_LAUNCHER_TO_WARDEN);

#define EDGE_WARDEN_TO_LAUNCHER(M) \
    M(EDGE_SPAWN,        64,  edge_only_id) \
    M(EDGE_SHOOT,        65,  edge_only_id)     /* its keeper did not end when told to, or does not answer: kill it */ \
    M(EDGE_READY,        66,  nothing)          /* the state is open, questions are answered */ \
    M(EDGE_REFUSED,      67,  edge_why)         /* it is not */ \
    M(EDGE_QUIET,        68,  nothing)          /* after CLOSE: no sandbox is left */ \
    /* the answer to LIMITS; what was said before has been heard too. Or UNSETTLED: the rules said before it are none, \
     * so neither counts */ \
    M(EDGE_LIMITED,      216, nothing) \
    M(EDGE_UNSETTLED,    82,  edge_why)         /* of fronts too: the former ones stay, where there are any */ \
    M(EDGE_KILLED,       226, nothing)          /* KILL was heard: all end */ \
    M(EDGE_PONG,         230, nothing)          /* the answer to PING; of fronts too */ \
    /* the scribe has entries, and does not say that they are written */ \
    M(EDGE_SCRIBE_LATE,  231, nothing) \
    M(EDGE_KEEPER_LATE,  232, edge_only_id)     /* its keeper does not answer; one that was stopped is to go on */
PROTO_EDGE(edge_warden_to_launcher, EDGE_WARDEN_TO_LAUNCHER);

/* --- launcher and keeper ------------------------------------------------------------------------------------------ */

/* And ADOPT. */
#define EDGE_LAUNCHER_TO_KEEPER(M) \
    M(EDGE_NAMED,        236, edge_only_id)     /* first and once: whose keeper it is */
PROTO_EDGE(edge_launcher_to_keeper, EDGE_LAUNCHER_TO_KEEPER);

/* --- launcher and front ------------------------------------------------------------------------------------------- */

#define LAUNCH_CONNECTION(F) \
    F(U8, family)                           /* 0, 4, 6 */ \
    F(RAW, address, 16)                     /* the client's */
PROTO_STRUCT(launch_connection, LAUNCH_CONNECTION);

#define LAUNCH_SETTINGS(F) \
    F(U8, flags) \
    F(U32, rate)                            /* requests a second; 0 no limit */ \
    F(U32_IN, client_s, 1, UINT32_MAX)      /* client timeout */ \
    F(WORDS, hosts, 2, EDGE_SETTINGS_NAMES, HOST_TEXT_MAX, EDGE_SETTINGS_NAMES * (HOST_TEXT_MAX + 5)) \
    F(WORDS, origins, 2, EDGE_SETTINGS_NAMES, HOST_TEXT_MAX + 9, EDGE_SETTINGS_NAMES * (HOST_TEXT_MAX + 14)) \
    F(TEXT, base, EDGE_BASE_MAX)            /* where browsers find us; "" nowhere */ \
    /* lengths in the file that comes with it where there is TLS */ \
    F(U32_IN, cert, 0, EDGE_PEM_MAX) \
    F(U32_IN, key, 0, EDGE_PEM_MAX)
PROTO_STRUCT(launch_settings, LAUNCH_SETTINGS);

/* A language of the user's own (policy/runtime.h). "": none. */
#define LAUNCH_LANGUAGE(F) \
    F(TEXT, name, LANGUAGE_TEXT_MAX) \
    F(TEXT, alias, LANGUAGE_TEXT_MAX) \
    F(TEXT, file, LANGUAGE_TEXT_MAX) \
    F(TEXT, registry, LANGUAGE_TEXT_MAX) \
    F(TEXT, packages, LANGUAGE_TEXT_MAX) \
    F(WORDS, argv, 1, LANGUAGE_ARGV_MAX, LANGUAGE_TEXT_MAX, LANGUAGE_ARGV_MAX * (LANGUAGE_TEXT_MAX + 5))
PROTO_STRUCT(launch_language, LAUNCH_LANGUAGE);

/* And PING and EXPORT; answers: SETTLED or UNSETTLED to SETTINGS, PONG. */
#define EDGE_LAUNCHER_TO_FRONT(M) \
    M(EDGE_SETTINGS,     80,  launch_settings) \
    M(EDGE_SETTLED,      81,  nothing) \
    M(EDGE_CONNECTION,   90,  launch_connection)    /* with it */ \
    M(EDGE_NO_LANGUAGE,  233, nothing)      /* before SETTINGS: those of the user's own are none, */ \
    M(EDGE_LANGUAGE,     234, launch_language)      /* and one more of them; no answer to either */ \
    M(EDGE_ADAPTER,      235, nothing)      /* with the edge to a new one (edge_adapter.h), which hears PING and \
                                             * languages too */
PROTO_EDGE(edge_launcher_to_front, EDGE_LAUNCHER_TO_FRONT);

/* --- launcher and adapter ----------------------------------------------------------------------------------------- */

enum {
    LAUNCH_DOCKER_INSTALLED = 1,    /* a client's program is there, or a daemon answers */
    LAUNCH_DOCKER_RUNNING   = 2,    /* a daemon has answered */
    LAUNCH_DOCKER_OURS      = 4,    /* and is root's, as the engine docker needs it */
};
#define LAUNCH_DOCKER(F) F(U8, is)
PROTO_STRUCT(launch_docker, LAUNCH_DOCKER);

/* Besides PING, PONG and languages. The adapter, which may connect to nothing, asks; one question at a time. */
#define EDGE_LAUNCHER_AND_ADAPTER(M) \
    M(EDGE_DOCKER_ASK,   236, nothing) \
    M(EDGE_DOCKER_IS,    237, launch_docker)        /* within seconds */
PROTO_EDGE(edge_launcher_and_adapter, EDGE_LAUNCHER_AND_ADAPTER);

#endif
