/* policy/doc.h: a settings file as a tree with line numbers
 *
 * YAML and JSON both become this, so that one set of rules (settings.c, load_srt.c) judges them and every refusal
 * can name a line. The subset is strict: one document, maps with plain unique keys, no anchors, aliases, tags or
 * merge keys; scalars are typed as JSON types them (`no`, `on`, `0777` and `1_000` are strings).
 */
#ifndef CLOCHE_POLICY_DOC_H
#define CLOCHE_POLICY_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

#define DOC_DEPTH_MAX 16
#define DOC_KEYS_MAX  1024      /* of one map */
#define DOC_NODES_MAX 65536

struct arena;                       /* owns the tree */
struct arena *arena_new(size_t first);                  /* NULL: no memory */
void arena_free(struct arena *a);                       /* NULL is fine */

enum node_type { NODE_NULL, NODE_BOOL, NODE_NUMBER, NODE_STRING, NODE_LIST, NODE_MAP };

struct node {
    enum node_type type;
    unsigned line;          /* 1-based; of a map's value: where the value begins */
    struct str key;         /* of a map's member */
    unsigned key_line;
    struct str text;        /* of a scalar: NUL-terminated, holds no NUL; a number as it was written */
    bool truth;             /* of NODE_BOOL */
    struct node *first;     /* members of a list or map, in the order of the file */
    struct node *last;
    struct node *next;
    size_t n;
};

/* Parse @data (called @name in messages) into @a. NULL with @err on any refusal; an empty document is one. */
struct node *doc_parse_yaml(struct arena *a, const char *name, const void *data, size_t n, struct err *err);
struct node *doc_parse_json(struct arena *a, const char *name, const void *data, size_t n, struct err *err);
/* Blank the comments of JavaScript (to the end of a line, and between slash-star and star-slash) in @text, outside
 * strings. Whether there were any; one that does not end is left as it is. */
bool doc_blank_comments(char *text, size_t n);

/* "a list", for messages. */
const char *node_type_text(enum node_type type);
/* The member @key of a map, or NULL. */
const struct node *node_member(const struct node *map, const char *key);

/* For the two parsers: type a plain scalar; append to a parent, refusing a key that is there or a map too large. */
void node_type_plain(struct node *node);
int node_append(struct node *parent, struct node *child, const char *name, struct err *err);

#endif
