/* imager/store.h: changing the store of images (image/image.h says how it lies on the disk)
 *
 * All changes are made under one lock, by rename(2), in an order in which each state on the way is whole: first the
 * files, then the record, then the name. What a killed process left, a folder below tmp/ that nobody holds or a tree
 * that no record names, is removed by whoever changes something next.
 */
#ifndef CLOCHE_IMAGER_STORE_H
#define CLOCHE_IMAGER_STORE_H

#include "image/image.h"

struct store {
    int dir, lock;
    char path[PATH_MAX];
};
#define STORE_INIT { .dir = -1, .lock = -1 }

/* Open it, made where it is missing. 0 or -1 with @err, like all of these. */
int store_open(struct store *s, struct err *err);
void store_close(struct store *s);

/* A folder below tmp/ for what is under way, its lock held by the descriptor, which is the caller's. */
struct stage {
    int dir;
    char name[40];
};
#define STAGE_INIT { .dir = -1 }
int stage_begin(struct store *s, struct stage *stage, struct err *err);
/* A file without a name in it, empty: a descriptor, or -1 with @err. */
int stage_file(const struct stage *stage, struct err *err);
/* It goes with all that is in it. */
void stage_end(struct store *s, struct stage *stage);

/* Whether the tree is there. */
bool store_has_tree(const struct store *s, const char *tree);
/* Take the image of @record in, under @name (NULL: none but its id); @stage has its tree as "root" where @unpacked. */
int store_put(struct store *s, struct stage *stage, json_t *record, bool unpacked, const char *name,
              struct err *err);
/* @name, and the image where that was its last one; all of its names where @name is an id. @gone: the image went too;
 * @busy: its files stay until a sandbox that has them has ended. */
int store_remove(struct store *s, const char *name, char id[IMAGE_DIGEST_TEXT + 1], bool *gone, bool *busy,
                 struct err *err);
/* Images without a name, and what killed processes left. @n: how many images went. */
int store_prune(struct store *s, size_t *n, struct err *err);

/* All images: an array of records, each with "names". The caller's; NULL with @err. */
json_t *store_list(struct store *s, struct err *err);

#endif
