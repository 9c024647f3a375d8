/* hosts/registry_priv.h: what the files that ask registries' clients share */
#ifndef CLOCHE_HOSTS_REGISTRY_PRIV_H
#define CLOCHE_HOSTS_REGISTRY_PRIV_H

#include <jansson.h>
#include <sys/types.h>

#include "base/str.h"
#include "match/url_host.h"
#include "policy/policy.h"

#define REGISTRY_HOSTS_MAX 64
#define REGISTRY_URL_MAX   2048

/* What is being asked for one entry. */
struct registry {
    const struct policy *p;
    char origin[96];            /* for messages */
    char hosts[REGISTRY_HOSTS_MAX][URL_HOST_MAX];
    size_t n;
    json_t *env, *files;        /* what is given to the client inside; what its answer depends on */
    json_t *cas, *inner;        /* files of certificates; hosts at addresses that no name opens: which */
    bool in_part;               /* something was not answered */
    struct err *err;
};

struct registry_client {
    const char *name, *program;
    int (*ask)(struct registry *r);     /* 0, or -1 with r->err */
    bool slow;                          /* its answers are kept */
};

/* NULL: there is none of that name. */
const struct registry_client *registry_client(const char *name);

/* -1, with r->err: "ORIGIN: @what: @found". */
int registry_refuse(struct registry *r, const char *code, const char *what, const char *found);
/* -1, with r->err: @client took too long. */
int registry_late(struct registry *r, const char *client);
/* One host more. False: @url is none that a rule can name. */
bool registry_add(struct registry *r, struct str url);
/* The same for what an index says: no address but its own, since a rule that is an address opens also what no name
 * opens. */
bool registry_add_learned(struct registry *r, struct str url);
/* The answer depends on the file @file (NULL, or relative: none). A configuration that the sandbox can write is not the
 * owner's: -1 with r->err. */
int registry_check_config(struct registry *r, const char *file);
/* The next word of @text up to a byte of @ends; false at its end. */
bool registry_word(const char **text, const char *ends, struct str *word);

/* registry_trust.c. trust: @file (NULL, or relative: none) is trusted beside the host's certificates, inside and by
 * cloche-egress; -1 with r->err. look_up: which hosts are at addresses that no name opens, {HOST: ADDRESS}; say_inner:
 * that is said. */
int registry_trust(struct registry *r, const char *file);
void registry_look_up(struct registry *r);
void registry_say_inner(const char *origin, const json_t *inner);

/* registry_build.c */
int registry_cargo(struct registry *r);
int registry_maven(struct registry *r);
/* What the process @asker, which was killed, may have left in the state folder goes. */
void registry_tidy(pid_t asker);

#endif
