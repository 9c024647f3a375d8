/* gate/gate.h: which of an agent's operations a person is asked about
 *
 * Rules, each with the tools that it is about and conditions on their parameters; the first one that matches says the
 * risk, whether somebody has to approve, and how long that may take. Pure: no clock, no files, no state. What is asked
 * and approved is kept by the warden.
 *
 * A condition is yes, no, or not known: its pattern costs more on this text than it may, the text is longer than is
 * searched, or the value is not of the kind that the condition is about. Of a rule that is not known both are weighed,
 * that it matches and that it does not, and the stricter verdict stands.
 */
#ifndef CLOCHE_GATE_GATE_H
#define CLOCHE_GATE_GATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gate/names.h"

#define GATE_RULES_MAX      256             /* own ones and the built-in ones */
#define GATE_TOOLS_MAX      64              /* names in one rule */
#define GATE_CONDITIONS_MAX 16              /* of one rule */
#define GATE_PATTERN_MAX    4096
#define GATE_TEXT_MAX       (64 * 1024)     /* bytes of a text that is searched */
#define GATE_FUEL           200000          /* what all searches of one verdict may cost: steps of the matcher */
#define GATE_FUEL_SECOND    200000          /* and those of all verdicts for one who asks, in a second, */
#define GATE_FUEL_SAVED     1000000         /* of which so much is saved up */
#define GATE_TIMEOUT_MAX    86400           /* seconds */

struct gate;

/* What is said of one operation. The texts are the rules' own. */
struct gate_verdict {
    bool ask;                   /* somebody has to approve */
    enum gate_risk risk;
    uint32_t timeout_s;         /* of the question: then it is denied */
    const char *rule;           /* its name; "" where none is about this tool */
    const char *description;    /* of the rule; "" none */
    bool unsure;                /* a rule could not be decided, and this is the stricter way */
    uint32_t cost;              /* of the fuel that was given */
};

/* The rules in the member `gate` of the YAML in data[0..n), which is called @name in messages: a map, or the word
 * "off". @data NULL: the built-in rules alone. The caller frees it; NULL with @err (gate.*, policy.yaml.*). */
struct gate *gate_new(const char *name, const void *data, size_t n, struct err *err);
void gate_free(struct gate *g);                         /* NULL is fine */

bool gate_is_off(const struct gate *g);                 /* nobody is asked about anything */
bool gate_for_all(const struct gate *g);                /* what owner and operators ask for is judged too */
/* The levels that need no approval, as text: "LOW, MEDIUM"; "none". */
const char *gate_levels(const struct gate *g);
size_t gate_n_rules(const struct gate *g);
/* The SHA-256 of all that is written about the rule of that name, and of those before it that can be about the same
 * tools, in hexadecimal; "" where there is none. With @rule "", where none is about a tool: of all rules. The texts
 * are the rules' own. */
const char *gate_rule_digest(const struct gate *g, const char *rule);

/* Where an operation is done. NULL is a call of MCP, of no sandbox that is known. */
struct gate_place {
    const char *root;           /* the workspace's own path there; NULL, "": not known */
    const char *id, *name;      /* the sandbox; NULL, "": none */
    bool call;                  /* a call of MCP: its GATE_WORKSPACE is the workspace, whatever that is called there */
    bool npm;                   /* settle.c's own */
};

#define GATE_WORKSPACE "/workspace"

/* @params, an object, in the one form that is judged (docs/gate.md): paths relative to the workspace and folded, hosts,
 * languages and packages by their canonical names, a sandbox by its id. Done twice it is the same. False: no memory. */
bool gate_settle(const char *tool, json_t *params, const struct gate_place *at);

/* The languages of the user's own, which have an alias too: none, and one more (false: there are too many). */
void gate_no_languages(void);
bool gate_language(const char *name, const char *alias);

/* @params is an object as gate_settle() leaves it, or NULL for none. @fuel: at most GATE_FUEL; with 0 no text is
 * searched, and each condition that needs that is not known. */
void gate_judge(const struct gate *g, const char *tool, const json_t *params, const struct gate_place *at,
                uint32_t fuel, struct gate_verdict *out);

/* Whether @a asks for more than @b: asking before not asking, then the higher risk, then the shorter time. */
bool gate_stricter(const struct gate_verdict *a, const struct gate_verdict *b);

/* The fuel of one who asks. Zeroes are a full one. */
struct gate_tank {
    uint64_t at_ms;             /* when it was looked at; on any clock that only goes forward */
    uint32_t fuel;
};

/* What the next verdict may cost at @now_ms; afterwards its cost is taken. */
uint32_t gate_tank_at(struct gate_tank *t, uint64_t now_ms);
void gate_tank_take(struct gate_tank *t, uint32_t cost);

#endif
