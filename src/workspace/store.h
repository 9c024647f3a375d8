/* workspace/store.h: the directory that holds the states; only workspace/cow*.c */
#ifndef CLOCHE_WORKSPACE_STORE_H
#define CLOCHE_WORKSPACE_STORE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "workspace/cow.h"

/* The store's absolute path, NUL-terminated, into @path. */
int store_path(struct buf *path, struct err *err);
/* Open (with @create: make) the store. -1 with errno ENOENT and @err when it is not there. */
int store_open(bool create, struct err *err);
/* Open the directory @name in @dir as one that is ours alone. -1 with @err; workspace.state.none when absent. */
int store_enter(int dir, const char *name, struct err *err);
bool store_id_valid(const char *id);

int meta_write(int state_dir, const struct cow_state *state, struct err *err);
/* Fill @out's project, dev, ino, boot, created and protect. */
int meta_read(int state_dir, struct cow_state *out, struct err *err);

#endif
