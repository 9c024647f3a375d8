/* launcher/serve.h: cloche serve: the daemon's first process
 *
 * It has the others started, and started again, accepts connections and says whose they are, and reads nothing that
 * any of them was sent by a stranger:
 *
 *     cloche serve (launcher) ─┬─ cloche-maker     starts the others, which are its children all the same
 *                              ├─ cloche-front     HTTP; holds nothing. One for unix sockets, one for TCP
 *                              ├─ cloche-warden    the records, what is allowed
 *                              ├─ cloche-scribe    writes the audit record
 *                              └─ cloche-keeper    one for each sandbox: makes it, speaks with its guest
 */
#ifndef CLOCHE_LAUNCHER_SERVE_H
#define CLOCHE_LAUNCHER_SERVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/sha256.h"
#include "match/door.h"
#include "match/hook_url.h"
#include "match/host.h"
#include "policy/policy.h"
#include "program/runtimes.h"

#define SERVE_LISTEN_MAX   16
#define SERVE_NAMES_MAX    64               /* allowed hosts; and origins */
#define SERVE_SECURITY_MAX (64 * 1024)      /* bytes of a configuration's security section */
#define SERVE_GATE_MAX     (64 * 1024)      /* bytes of a file with the gate's rules */
#define SERVE_PEM_MAX      (256 * 1024)     /* of a certificate with its chain, or a key */
#define SERVE_URL_MAX      HOOK_URL_MAX
#define SERVE_OTLP_HEADERS (16UL * 1024)    /* bytes of what a collector is sent with each request, as a file has it */
#define SERVE_OTLP_PAIRS   8192             /* and of one of OpenTelemetry's variables */
#define SERVE_SECRET_MAX   1024             /* bytes of what signs what a webhook is told */

struct serve_listen {
    bool tcp;
    struct ip ip;
    uint16_t port;
    char path[PATH_MAX];        /* of a unix socket: absolute */
};

#define SERVE_WORD_MAX 16
enum serve_audit { SERVE_AUDIT_OFF, SERVE_AUDIT_TRY, SERVE_AUDIT_REQUIRED };
enum serve_transcript { SERVE_TRANSCRIPT_OFF, SERVE_TRANSCRIPT_COMMANDS, SERVE_TRANSCRIPT_FULL,
                        SERVE_TRANSCRIPT_EDITS };
extern const char *const serve_audit_words[], *const serve_transcript_words[];

/* Everything that flags and configuration say. All paths are absolute. */
struct serve_plan {
    char cwd[PATH_MAX];         /* what relative paths are below */
    char config[PATH_MAX];      /* "" none */
    struct serve_listen listen[SERVE_LISTEN_MAX];
    size_t n_listen;            /* 0: api.sock in the state folder, unless sockets were passed in */
    char state[PATH_MAX];       /* the folder of state.db */
    char settings[PATH_MAX];    /* a settings file below every sandbox's own policy; "" none */
    char security[SERVE_SECURITY_MAX];  /* YAML: the configuration's security section, below that; "" none */
    uint8_t defaults[SHA256_SIZE];      /* of both, as they were read: what a sandbox gets without asking */
    char gate[PATH_MAX];        /* a file with the gate's rules, or "off"; "" the built-in ones */
    uint64_t max_sandboxes;
    uint64_t max_per_agent;     /* of these, made with one agent's token */
    uint64_t idle_s, life_s;    /* of sandboxes that name none; 0: no limit */
    uint64_t pool, pool_memory, pool_s;     /* sandboxes made ahead: at once, MiB of all, since the last request */
    uint64_t recover_s;         /* likewise: made anew by itself when it is degraded for so long, or died; 0: not */
    uint64_t recover_tries, recover_window_s;       /* so often within that time */
    uint64_t client_s;          /* a connection whose client says nothing whole for so long is closed */
    uint64_t audit;             /* enum serve_audit; what becomes of what cannot be recorded */
    uint64_t transcript;        /* enum serve_transcript */
    uint64_t audit_keep_s;      /* full files of the record are kept so long; 0: by their number alone */
    uint64_t transcript_keep_s, transcript_keep, transcript_mib;        /* transcripts; 0 seconds: any age */
    uint64_t rate;              /* requests a second of one credential; 0 no limit */
    char hosts[SERVE_NAMES_MAX][HOST_TEXT_MAX + 1];
    char origins[SERVE_NAMES_MAX][HOST_TEXT_MAX + 10];
    size_t n_hosts, n_origins;
    uint64_t log_json, log_level;   /* how what happens is said on stderr: base/log.h */
    char tls_cert[PATH_MAX], tls_key[PATH_MAX];     /* "": TCP without TLS */
    struct buf cert, key;       /* what they hold */
    char webhook_url[PATH_MAX], public_url[PATH_MAX];   /* URLs, "" none; of a path's size: see serve_value() */
    char webhook_secret[PATH_MAX], webhook_ca[PATH_MAX];
    uint64_t webhook_s;         /* for one try */
    struct buf hook_secret;     /* what @webhook_secret holds, without a newline at its end */
    char otlp_endpoint[PATH_MAX], otlp_headers[PATH_MAX], otlp_ca[PATH_MAX];    /* a collector: URL, files; "" none */
    char otlp_traces[SERVE_URL_MAX + 1], otlp_metrics[SERVE_URL_MAX + 1];       /* what comes of it; "" not told */
    uint64_t otlp_s, otlp_every_s;      /* for one try; between two reports of numbers */
    uint64_t otlp_commands;     /* 1: commands' words are told too */
    struct buf otlp_lines;      /* what @otlp_headers holds */
    char signing_key[PATH_MAX]; /* the name of a key in the vault; "" none */
    char signing_policy[PATH_MAX];
    struct runtimes runtimes;   /* languages of the user's own */
    struct buf rules;           /* what @gate holds; empty: the built-in ones */
};

void serve_plan_free(struct serve_plan *plan);      /* NULL is fine */
/* Defaults, the configuration file, the flags argv[1..], in that order; then whether it is whole, every file that it
 * names included. @cwd: what relative paths are below. The caller's to free; NULL with @err. */
struct serve_plan *serve_plan_load(int argc, char **argv, const char *cwd, struct err *err);

/* serve_config.c: the keys. A flag is one of them with two dashes. */
enum serve_kind {
    SERVE_LISTEN, SERVE_PATH, SERVE_GATE, SERVE_SECONDS, SERVE_NUMBER, SERVE_WORD, SERVE_HOSTS, SERVE_ORIGINS,
    SERVE_URL, SERVE_NAME
};
struct serve_key {
    const char *name;
    const char *value, *help;   /* for the usage */
    enum serve_kind kind;
    bool list;                  /* may be given several times, or as a list */
    bool restart;               /* a change needs a new start */
    uint64_t min, max;          /* of a number */
    const char *zero;           /* of seconds: what 0 is, where it is allowed */
    const char *const *words;   /* of a word, which is kept as its place among them; NULL at the end */
    size_t at;                  /* of a path, a number: where in the plan */
};
extern const struct serve_key serve_keys[];
extern const size_t serve_n_keys;
const struct serve_key *serve_key(const char *name);    /* NULL: there is no such one */
const char *serve_key_nearest(const char *name);        /* which was probably meant; NULL: none */
/* @where is for messages ("--listen", "serve.yaml:3: listen"). A list's value is added. 0 or -1 with @err. */
int serve_put(struct serve_plan *plan, const struct serve_key *key, const char *where, const char *value,
              struct err *err);
void serve_clear(struct serve_plan *plan, const struct serve_key *key);     /* a list */
void serve_copy(struct serve_plan *to, const struct serve_plan *from, const struct serve_key *key);
#define SERVE_VALUE_MAX (PATH_MAX + 16)
/* The i-th value as text in @room; NULL: there is none. */
const char *serve_value(const struct serve_plan *plan, const struct serve_key *key, size_t i,
                        char room[SERVE_VALUE_MAX]);
/* "tcp:127.0.0.1:80" */
const char *serve_listen_text(const struct serve_listen *listen, char room[SERVE_VALUE_MAX]);
/* Overlay the configuration file plan->config. 0 or -1 with @err. */
int serve_config(struct serve_plan *plan, struct err *err);

/* serve_gate.c: what plan->gate names, into plan->rules. 0 or -1 with @err. */
int serve_gate_read(struct serve_plan *plan, struct err *err);
/* Whether these say that nobody is asked. What the gate does not take does not say so. */
bool serve_gate_is_off(const struct serve_plan *plan);
/* Whether plan->gate holds rules that the gate takes, by asking cloche-gate. 0, -1 with @err; or it does not return:
 * this process is cloche-gate, which says what is wrong. */
int serve_gate_check(const struct serve_plan *plan, bool json, struct err *err);
/* Whether there are plan->signing_key and plan->signing_policy, and can be used, by asking cloche-signer; the same. */
int serve_signer_check(const struct serve_plan *plan, struct err *err);

/* serve_otlp.c: what OpenTelemetry's variables say, before all else. Then what came of all: 0 or -1 with @err. */
void serve_otlp_environment(struct serve_plan *plan);
int serve_otlp_check(struct serve_plan *plan, struct err *err);

/* serve_plan.c */
/* Whether that address may be listened on: one that others reach needs TLS. 0 or -1 with @err. */
int serve_check_door(const struct serve_plan *plan, const struct serve_listen *listen, struct err *err);

/* A sandbox's policy, but for what its request says: the mode's values, @security (called @config in messages), the
 * file @settings; "" is none. 0 or -1 with @err. */
int serve_policy(struct policy *p, const char *config, const char *security, const char *settings,
                 const struct policy_host *host, struct err *err);

/* launcher.c: until a signal ends it. @argv are the flags, for the configuration's next reading; @json: say on standard
 * output what is listened on. 0 after an orderly end, or -1 with @err. The plan is taken. */
int launcher_run(struct serve_plan *plan, int argc, char **argv, bool json, struct err *err);

/* keeper_loop.c: what `cloche-keeper` is, which is named so when it knows of which sandbox. The exit code. */
#define KEEPER_NAME   "cloche-keeper"
#define KEEPER_VACANT "cloche-vacant"   /* as long */
int keeper_main(int argc, char **argv);

#endif
