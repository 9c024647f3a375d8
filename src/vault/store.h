/* vault/store.h: the store on disk
 *
 * $XDG_DATA_HOME/cloche, ~/.local/share/cloche by default, /var/lib/cloche as root:
 *
 *     secrets        every secret and the CA's key, sealed (store_file.h)
 *     secrets.key    32 random bytes: the key of it all
 *     secrets.lock   taken shared to read, exclusive to write
 *     ca.pem         the installation CA's certificate, for people and programs to read
 *     revoked        ids of revoked secrets, one a line, appended: running sandboxes watch it
 *
 * Folder and files have to belong to the caller and be closed to everybody else. A file is written beside, synced and
 * renamed; a store that is damaged is refused and never written.
 */
#ifndef CLOCHE_VAULT_STORE_H
#define CLOCHE_VAULT_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "vault/seal.h"
#include "vault/store_file.h"

#define STORE_REVOKED_MAX (1024UL * 1024)   /* bytes of the list */

struct store {
    int dir, lock;
    bool writable;
    struct secret key;
    struct buf bytes;               /* the file; @file points into it */
    struct store_file file;
    char path[4096];                /* of the folder, for messages */
};

#define STORE_INIT { .dir = -1, .lock = -1, .bytes = BUF_INIT(STORE_FILE_MAX) }
#define cleanup_store __attribute__((cleanup(store_close)))

/* Take the lock and read. Makes folder and key with the first use; an absent store is an empty one. Waits for other
 * writers. 0, or -1 with @err (vault.store.*, vault.key.*). */
int store_open(struct store *s, bool write, struct err *err);
void store_close(struct store *s);
/* The key is no longer needed. */
void store_forget_key(struct store *s);

/* The secret called @name: its place in the file and its metadata; -1 with @err vault.unknown (the hint names a similar
 * one). */
int store_find(const struct store *s, const char *name, struct store_meta *meta, size_t *index, struct err *err);
int store_meta_at(const struct store *s, size_t index, struct store_meta *meta, struct err *err);
int store_value(const struct store *s, size_t index, struct secret *out, struct err *err);

/* The file with one record changed, and with the file's other records sealed anew. @meta's name decides whether it is
 * added or replaced. A new id makes @meta->id. @s must be writable and is read again afterwards. */
int store_put(struct store *s, const struct store_meta *meta, const struct secret *value, struct err *err);
int store_remove(struct store *s, const char *name, struct err *err);

/* The same of keys that sign (STORE_SIGNING), whose names are their own. */
int store_find_key(const struct store *s, const char *name, struct store_meta *meta, size_t *index, struct err *err);
int store_put_key(struct store *s, const struct store_meta *meta, const struct secret *value, struct err *err);
int store_remove_key(struct store *s, const char *name, struct err *err);

/* The CA's record (ca.h packs it). 1 with @out, 0 when there is none yet, -1 with @err. */
int store_ca(const struct store *s, struct secret *out, struct err *err);
/* Keep a new one and write its certificate to ca.pem. */
int store_put_ca(struct store *s, const struct secret *packed, const struct buf *pem, struct err *err);

/* Say to running sandboxes that the value with @id is no more. */
int store_revoke(struct store *s, const char *id, struct err *err);

int store_new_id(char id[33], struct err *err);

#endif
