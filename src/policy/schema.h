/* policy/schema.h: walking a document by a table of keys
 *
 * A table row is a key: its full canonical name, the spelling in the file, and what to do with the value. Two rows
 * with one canonical name are one key with two spellings, and giving both is a duplicate. Where a table is not
 * exact, `deny-read` may also be written `denyRead` or `deny_read`.
 */
#ifndef CLOCHE_POLICY_SCHEMA_H
#define CLOCHE_POLICY_SCHEMA_H

#include "policy/doc.h"
#include "policy/internal.h"

#define SCHEMA_PATH_MAX 512
#define SCHEMA_SEEN_MAX 128

struct loader {
    struct policy *p;
    const char *name;               /* of the file, in the policy's arena */
    struct err *err;
    bool lenient;                   /* an unknown key that resembles no known one is left out, with a note */
    bool exact;                     /* keys have one spelling (SRT) */
    char path[SCHEMA_PATH_MAX];     /* the key that is being read, for messages */
    size_t path_n;
    struct { const char *canon; unsigned line; } seen[SCHEMA_SEEN_MAX];
    size_t n_seen;
};

struct key_rule;
typedef int key_apply(struct loader *l, const struct node *v, const struct key_rule *rule);

struct key_rule {
    const char *name;       /* as the file spells it; NULL ends a table */
    const char *canon;      /* full canonical name, "limits.memory" */
    key_apply *apply;
    const void *arg;        /* what apply needs */
    size_t offset;          /* of the field in struct policy */
    int num;
};

/* @v is a list: @apply each item of it, where a refusal names the item's index, until one is refused. */
int schema_items(struct loader *l, const struct node *v, key_apply *apply, const struct key_rule *rule);
/* Apply each member of @map by its row. Unknown keys are refused with the nearest known one. */
int schema_walk(struct loader *l, const struct node *map, const struct key_rule *rules);

/* The place of @v, for setters. Borrowed from @l: valid until the next key. */
struct where schema_where(const struct loader *l, const struct node *v);
int schema_fail(struct loader *l, const struct node *v, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Refuse @v unless it has @type. */
int schema_expect(struct loader *l, const struct node *v, enum node_type type);

/* Enter and leave a member, an index or a key of a free-form map, for messages. */
size_t schema_enter_index(struct loader *l, size_t index);
size_t schema_enter_key(struct loader *l, struct str key);
void schema_leave(struct loader *l, size_t mark);

/* Ready-made rows. */
typedef int text_setter(struct policy *p, struct str text, const struct where *w, struct err *err);
struct setter { text_setter *set; };    /* function pointers do not fit in a void pointer */

/* arg: struct setter; a string or a number. */
int apply_text(struct loader *l, const struct node *v, const struct key_rule *rule);
/* offset: of a policy_string, of a policy_bool. */
int apply_string(struct loader *l, const struct node *v, const struct key_rule *rule);
int apply_bool(struct loader *l, const struct node *v, const struct key_rule *rule);
/* For how many levels below a tree protected names are looked for: 1 to 10. */
int apply_search_depth(struct loader *l, const struct node *v, const struct key_rule *rule);
/* offset: of a policy_list; num: enum entry_kind. */
int apply_list(struct loader *l, const struct node *v, const struct key_rule *rule);
/* host_rule.c: {host: ..., port: ..., methods: [...], path: ...} in a list of hosts. */
int apply_host_rule(struct loader *l, const struct node *v, struct policy_list *list);
/* arg: its table. */
int apply_map(struct loader *l, const struct node *v, const struct key_rule *rule);

/* A sentence about what was left out (policy->notes). 0 or -1 with the error. */
int schema_note(struct loader *l, const struct node *v, const char *what);

/* The walkers of the two dialects. */
int settings_apply(struct loader *l, const struct node *root);
int srt_apply(struct loader *l, const struct node *root);

#endif
