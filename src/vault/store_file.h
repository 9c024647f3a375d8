/* vault/store_file.h: the store as bytes
 *
 *     magic "cloche-store" | version u8 (1) | 3 zero bytes | generation be64 | records be32
 *     records: kind u8 | 3 zero bytes | meta be32 + bytes | salt 32 | sealed be32 + bytes (with the tag)
 *     HMAC-SHA256 of everything before it
 *
 * A record's metadata lies in clear; it is authenticated with the record, and so are its kind, its place in the file
 * and the file's generation, which grows by one with every write: a record of an older file does not open in a newer
 * one. The MAC at the end covers number, order and header. (An older file as a whole is not told from the newest one:
 * nothing outside the file remembers.)
 *
 * Pure: views into the caller's bytes, no key, no allocation.
 */
#ifndef CLOCHE_VAULT_STORE_FILE_H
#define CLOCHE_VAULT_STORE_FILE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "vault/binding.h"
#include "vault/client.h"
#include "vault/seal.h"

#define STORE_RECORDS_MAX 256
#define STORE_META_MAX    (BINDING_TEXT_MAX + 1024)
#define STORE_PLAIN_MAX   (3 * VAULT_VALUE_MAX)
#define STORE_FILE_MAX    (8UL * 1024 * 1024)

/* A key that signs is a kind of its own: nothing that binds secrets to hosts ever finds it. */
enum store_kind { STORE_SECRET = 1, STORE_CA = 2, STORE_SIGNING = 3 };

struct store_record {
    enum store_kind kind;
    struct str meta;
    const uint8_t *salt;        /* SEAL_SALT bytes */
    const uint8_t *sealed;
    size_t sealed_n;
};

struct store_file {
    uint64_t generation;
    struct store_record records[STORE_RECORDS_MAX];
    size_t n;
    const uint8_t *mac;         /* SEAL_MAC bytes; not checked here */
    size_t covered;             /* by the mac */
};

/* 0, or -1 with @err (vault.store.corrupt, vault.store.version). @p must outlive @out. */
int store_file_parse(const uint8_t *p, size_t n, struct store_file *out, struct err *err);

/* What a record's seal covers beside its plaintext. */
int store_file_extra(const struct store_file *file, size_t index, struct buf *out);

/* Write: header, each record, then the caller appends the MAC of it all. */
int store_file_header(struct buf *out, uint64_t generation, uint32_t records);
int store_file_record(struct buf *out, const struct store_record *record);

/* A secret's metadata: what is known without its value. */
struct store_meta {
    char name[VAULT_NAME_MAX + 1];
    char id[33];                            /* hexadecimal, new with every value */
    char builtin[BINDING_WORD_MAX + 1];     /* "" when the binding is the user's own */
    char env[BINDING_WORD_MAX + 1];         /* the variable to put the placeholder into; "" none */
    uint64_t created, updated;              /* seconds since 1970 */
    uint64_t expires;                       /* 0 never */
    bool revoked;
    bool bound;                             /* @binding is there */
    struct binding binding;
};

/* Letters, digits, "-", "_" and ".", not beginning with "-" or ".", 1 to VAULT_NAME_MAX of them. */
bool store_name_valid(struct str name);
bool store_env_valid(struct str name);      /* of a variable, up to BINDING_WORD_MAX */
int store_meta_parse(struct str text, struct store_meta *out, struct err *err);
int store_meta_text(const struct store_meta *m, struct buf *out);

#endif
