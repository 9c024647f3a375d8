/* gate/rules.h: rules in memory; for the files of this layer */
#ifndef CLOCHE_GATE_RULES_H
#define CLOCHE_GATE_RULES_H

/* 8-bit code units are all that is used */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/sha256.h"
#include "gate/gate.h"
#include "policy/doc.h"

enum operator { IS_EQUALS, IS_NOT_EQUALS, IS_ONE_OF, IS_MATCHES, IS_CONTAINS, IS_RANGE, IS_PRESENT, IS_ONLY };
#define OPERATORS (IS_ONLY + 1)

struct condition {
    const char *param;          /* "a.b": member b of member a */
    enum operator op;
    json_t *value;              /* EQUALS, NOT_EQUALS; ONE_OF, ONLY: an array */
    pcre2_code *re;             /* MATCHES, CONTAINS */
    double min, max;            /* RANGE, both included */
    bool present;               /* PRESENT: whether it has to be there */
};

struct rule {
    const char *name, *description;
    const char *tools[GATE_TOOLS_MAX];      /* "name", "prefix*" */
    size_t n_tools;
    struct condition conditions[GATE_CONDITIONS_MAX];       /* all of them */
    size_t n_conditions;
    enum gate_risk risk;
    bool ask;                   /* unless the level is approved */
    uint32_t timeout_s;
    char digest[SHA256_TEXT + 1];
};

struct gate {
    struct arena *arena;        /* of all texts */
    struct rule *rules[GATE_RULES_MAX];
    size_t n_rules;
    bool off, for_all, defaults;
    bool level[GATE_RISKS];     /* approved without asking */
    char levels[64];
    char digest[SHA256_TEXT + 1];   /* of all rules, in their order */
    pcre2_match_context *match;
    pcre2_match_data *found;
};

/* settle.c: what can be said in more than one way. */
enum kind { KIND_TEXT, KIND_PATH, KIND_LANGUAGE, KIND_HOST, KIND_PACKAGE, KIND_SANDBOX };
enum kind gate_kind(const char *tool, const char *param);
/* @param, which @params do not have by that name, where they or @at say it in another way. A new reference, or NULL. */
json_t *gate_elsewhere(const char *tool, const char *param, const json_t *params, const struct gate_place *at);
/* What @param is where nothing says it. A new reference; NULL: nothing. */
json_t *gate_otherwise(const char *tool, const char *param);
/* @at, with what @params say of it. */
struct gate_place gate_here(const struct gate_place *at, const json_t *params);
/* @v, or each of a list, in the form that is judged. A new reference; NULL: no memory. */
json_t *gate_form(enum kind kind, const json_t *v, const struct gate_place *at);
/* The form @i (from 0) that people may also know @v, which is in that form, by. A new reference; NULL: none. */
json_t *gate_other_form(enum kind kind, const json_t *v, const struct gate_place *at, unsigned i);

/* builtin.c: YAML, as in a file */
extern const char gate_builtin[];

/* condition.c: the conditions of @r from @list, whose file is @name. 0, or -1 with @err. */
int gate_conditions(struct rule *r, const struct node *list, const char *name, struct err *err);

/* Seconds that a question of this level waits. */
uint32_t gate_timeout_of(enum gate_risk risk);

#endif
