/* policy/schema.h: walking a document by the table of keys
 *
 * The keys of a map are the rows of the policy's table (spec.h) in its section, and what else a dialect knows there:
 * maps, other spellings, keys that are only checked. Two rows with one canonical name are one key with two spellings,
 * and giving both is a duplicate. Where spelling is not exact, `deny-read` may also be written `denyRead` or
 * `deny_read`.
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
    int num;
};

/* @v is a list: @read each item of it, where a refusal names the item's index, until one is refused. */
typedef int item_reader(struct loader *l, const struct node *v, const void *arg);
int schema_items(struct loader *l, const struct node *v, item_reader *read, const void *arg);
/* Read each member of @map by its row: of the policy's in @section ("network", "" for those without one; NULL: none),
 * or of @rules (NULL: none). Unknown keys are refused with the nearest known one. */
int schema_walk(struct loader *l, const struct node *map, const char *section, const struct key_rule *rules);
/* @v as the value of the row @s; the same of a row whose value is a text, or a number that is read as one. */
int schema_read(struct loader *l, const struct node *v, const struct policy_spec *s);
int schema_text(struct loader *l, const struct node *v, const struct policy_spec *s);

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

/* Another spelling of the key canon, or arg where that is given. */
int apply_as(struct loader *l, const struct node *v, const struct key_rule *rule);
/* A map whose keys are the section canon, and the table arg. */
int apply_map(struct loader *l, const struct node *v, const struct key_rule *rule);
/* host_rule.c: {host: ..., port: ..., methods: [...], path: ...} in a list of hosts. */
int apply_host_rule(struct loader *l, const struct node *v, struct policy_list *list);

/* The walkers of the two dialects. */
int settings_apply(struct loader *l, const struct node *root);
int srt_apply(struct loader *l, const struct node *root);

#endif
