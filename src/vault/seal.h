/* vault/seal.h: memory that holds secrets, and the one way in which they are sealed for the disk
 *
 * A record is sealed by ChaCha20-Poly1305 (RFC 8439) under a key of its own: HKDF-SHA256 (RFC 5869) of the store's key,
 * with 32 random bytes as salt. So a nonce is never used twice under one key, however often the store is written, and
 * the nonce itself is zero. What is to be authenticated beside the plaintext is the caller's.
 */
#ifndef CLOCHE_VAULT_SEAL_H
#define CLOCHE_VAULT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SEAL_KEY  32
#define SEAL_SALT 32
#define SEAL_TAG  16
#define SEAL_MAC  32

/* Bytes in locked memory, between guard pages, wiped when freed. */
struct secret {
    uint8_t *p;
    size_t n;
};

#define cleanup_secret __attribute__((cleanup(secret_free)))

/* First of all: nobody can read this process's memory, it leaves no core, and as root nothing of it is swapped out. 0
 * or -1 with errno. */
int secret_process(void);
/* Once, before anything else here: reserve the locked memory. 0, or -1 with @err (vault.memory) when it cannot be
 * locked: a secret that may reach the swap is refused. */
int secret_memory_init(struct err *err);
/* @s must be empty. 0 with @n zero bytes, or -1 with @err. */
int secret_alloc(struct secret *s, size_t n, struct err *err);
void secret_free(struct secret *s);
int secret_copy(struct secret *s, const void *p, size_t n, struct err *err);

int seal_random(void *p, size_t n, struct err *err);

/* @out has room for @n + SEAL_TAG bytes. 0 or -1 with @err. */
int seal(const struct secret *key, const uint8_t salt[SEAL_SALT], const void *extra, size_t extra_n,
         const uint8_t *plain, size_t n, uint8_t *out, struct err *err);
/* @out becomes the plaintext (@n - SEAL_TAG bytes). -1 with @err vault.store.corrupt when it is not what was sealed
 * with this key, salt and extra. */
int unseal(const struct secret *key, const uint8_t salt[SEAL_SALT], const void *extra, size_t extra_n,
           const uint8_t *sealed, size_t n, struct secret *out, struct err *err);

/* HMAC-SHA256 of @p under a key derived from @key for @purpose. 0 or -1 with @err. */
int seal_mac(const struct secret *key, const char *purpose, const void *p, size_t n, uint8_t out[SEAL_MAC],
             struct err *err);
/* Constant time. */
bool seal_same(const void *a, const void *b, size_t n);

#endif
