/* vault/seal.c: see seal.h */
#include "vault/seal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>

/* enough for every secret of a run; the smaller one fits the limit of 64 KiB that some containers set */
#define HEAP_MAX  (512UL * 1024)
#define HEAP_MIN  (32UL * 1024)
#define HEAP_UNIT 32
#define NONCE     12

static int
failed(struct err *err, const char *what)
{
    return err_set(err, ERR_SYSTEM, "vault.crypto", "%s failed in the cryptographic library", what);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

int
secret_process(void)
{
    const struct rlimit none = { 0, 0 };
    struct rlimit lock = { RLIM_INFINITY, RLIM_INFINITY };

    /* root's: everything is locked, also what a library copies somewhere; others have the locked heap below */
    if (setrlimit(RLIMIT_MEMLOCK, &lock) == 0)
        (void)mlockall(MCL_CURRENT | MCL_FUTURE);
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ? -1 : 0;
}

int
secret_memory_init(struct err *err)
{
    struct rlimit limit;

    if (CRYPTO_secure_malloc_initialized())
        return 0;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    for (size_t size = HEAP_MAX; size >= HEAP_MIN; size /= 2) {
        int r = CRYPTO_secure_malloc_init(size, HEAP_UNIT);
        if (r == 1)
            return 0;
        if (r == 2)     /* there, but not locked */
            CRYPTO_secure_malloc_done();
    }
    err_set(err, ERR_UNSUPPORTED, "vault.memory", "no memory can be locked, so a secret might reach the swap");
    return err_hint(err, "raise the limit: `ulimit -l` says %llu KiB, %lu are needed",
                    (unsigned long long)limit.rlim_cur >> 10, HEAP_MIN >> 10);
}

int
secret_alloc(struct secret *s, size_t n, struct err *err)
{
    s->p = OPENSSL_secure_zalloc(n > 0 ? n : 1);
    s->n = s->p != NULL ? n : 0;
    if (s->p != NULL)
        return 0;
    err_set(err, ERR_LIMIT, "vault.memory", "no room for another secret in the locked memory");
    return err_hint(err, "bind fewer or shorter secrets in one run, or raise `ulimit -l`");
}

void
secret_free(struct secret *s)
{
    OPENSSL_secure_clear_free(s->p, s->n > 0 ? s->n : 1);
    *s = (struct secret){ NULL, 0 };
}

int
secret_copy(struct secret *s, const void *p, size_t n, struct err *err)
{
    if (secret_alloc(s, n, err) < 0)
        return -1;
    if (n > 0)
        memcpy(s->p, p, n);
    return 0;
}

int
seal_random(void *p, size_t n, struct err *err)
{
    uint8_t *at = p;

    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_sys(err, errno, "vault.random", "getrandom");
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* --- keys and seals ----------------------------------------------------------------------------------------------- */

static int
derive(const struct secret *key, const void *salt, size_t salt_n, const char *purpose, struct secret *out,
       struct err *err)
{
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    size_t n = SEAL_KEY;
    bool ok = c != NULL && secret_alloc(out, SEAL_KEY, err) == 0 && EVP_PKEY_derive_init(c) > 0 &&
              EVP_PKEY_CTX_set_hkdf_md(c, EVP_sha256()) > 0 &&
              EVP_PKEY_CTX_set1_hkdf_key(c, key->p, (int)key->n) > 0 &&
              EVP_PKEY_CTX_set1_hkdf_salt(c, salt, (int)salt_n) > 0 &&
              EVP_PKEY_CTX_add1_hkdf_info(c, (const unsigned char *)purpose, (int)strlen(purpose)) > 0 &&
              EVP_PKEY_derive(c, out->p, &n) > 0 && n == SEAL_KEY;

    EVP_PKEY_CTX_free(c);
    if (!ok)
        secret_free(out);
    return ok ? 0 : failed(err, "deriving a key");
}

int
seal(const struct secret *key, const uint8_t salt[SEAL_SALT], const void *extra, size_t extra_n,
     const uint8_t *plain, size_t n, uint8_t *out, struct err *err)
{
    static const uint8_t nonce[NONCE];
    cleanup_secret struct secret own = { NULL, 0 };
    EVP_CIPHER_CTX *c;
    int done, rest;
    bool ok;

    if (n > INT_MAX || extra_n > INT_MAX || derive(key, salt, SEAL_SALT, "cloche record", &own, err) < 0)
        return -1;
    c = EVP_CIPHER_CTX_new();
    ok = c != NULL && EVP_EncryptInit_ex(c, EVP_chacha20_poly1305(), NULL, own.p, nonce) > 0 &&
         EVP_EncryptUpdate(c, NULL, &done, extra, (int)extra_n) > 0 &&
         EVP_EncryptUpdate(c, out, &done, plain, (int)n) > 0 && EVP_EncryptFinal_ex(c, out + done, &rest) > 0 &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, out + n) > 0;
    EVP_CIPHER_CTX_free(c);
    return ok ? 0 : failed(err, "sealing");
}

int
unseal(const struct secret *key, const uint8_t salt[SEAL_SALT], const void *extra, size_t extra_n,
       const uint8_t *sealed, size_t n, struct secret *out, struct err *err)
{
    static const uint8_t nonce[NONCE];
    cleanup_secret struct secret own = { NULL, 0 };
    uint8_t tag[SEAL_TAG];
    EVP_CIPHER_CTX *c;
    int done = 0, rest;
    bool ok;

    if (n < SEAL_TAG || n > INT_MAX || extra_n > INT_MAX)
        return err_set(err, ERR_POLICY, "vault.store.corrupt", "a record is too short");
    if (derive(key, salt, SEAL_SALT, "cloche record", &own, err) < 0 || secret_alloc(out, n - SEAL_TAG, err) < 0)
        return -1;
    memcpy(tag, sealed + n - SEAL_TAG, SEAL_TAG);
    c = EVP_CIPHER_CTX_new();
    ok = c != NULL && EVP_DecryptInit_ex(c, EVP_chacha20_poly1305(), NULL, own.p, nonce) > 0 &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG, tag) > 0 &&
         EVP_DecryptUpdate(c, NULL, &done, extra, (int)extra_n) > 0 &&
         EVP_DecryptUpdate(c, out->p, &done, sealed, (int)(n - SEAL_TAG)) > 0 &&
         EVP_DecryptFinal_ex(c, out->p + done, &rest) > 0;
    EVP_CIPHER_CTX_free(c);
    if (ok)
        return 0;
    secret_free(out);
    return err_set(err, ERR_POLICY, "vault.store.corrupt", "a record is not what was written, or the key is another");
}

int
seal_mac(const struct secret *key, const char *purpose, const void *p, size_t n, uint8_t out[SEAL_MAC],
         struct err *err)
{
    static const uint8_t salt[SEAL_SALT];
    cleanup_secret struct secret own = { NULL, 0 };
    unsigned length = SEAL_MAC;

    if (derive(key, salt, sizeof(salt), purpose, &own, err) < 0)
        return -1;
    return HMAC(EVP_sha256(), own.p, SEAL_KEY, p, n, out, &length) != NULL ? 0 : failed(err, "HMAC");
}

bool
seal_same(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
