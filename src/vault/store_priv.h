/* vault/store_priv.h: the store's files and folder, for store*.c only */
#ifndef CLOCHE_VAULT_STORE_PRIV_H
#define CLOCHE_VAULT_STORE_PRIV_H

#include <stdlib.h>
#include <sys/types.h>

#include "vault/store.h"

#define STORE_FILE    "secrets"
#define STORE_KEY     "secrets.key"
#define STORE_LOCK    "secrets.lock"
#define STORE_CA_PEM  "ca.pem"
#define STORE_REVOKED "revoked"

int store_enter(struct store *s, struct err *err);
int store_take_lock(struct store *s, bool write, struct err *err);
/* 1, 0, or -1 with @err when it is there and unfit. */
int store_exists(struct store *s, const char *name, struct err *err);
/* 1 read, 0 absent, -1. */
int store_read_file(struct store *s, const char *name, struct buf *out, struct err *err);
int store_read_key(struct store *s, struct err *err);
int store_make_key(struct store *s, struct err *err);
/* Beside, synced, renamed. */
int store_write_file(struct store *s, const char *name, mode_t mode, const struct buf *bytes, struct err *err);

#endif
