/* vault/ca.c: see ca.h */
#include "vault/ca.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "wire/frame.h"

#define CA_YEARS   10
#define SKEW_S     3600     /* a host's clock may be behind the one that looks */
#define PACKED_MAX 4096

struct ca {
    X509 *certificate;
    EVP_PKEY *key;
};

static int
failed(struct err *err, const char *what)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = e != 0 ? ERR_reason_error_string(e) : NULL;

    ERR_clear_error();
    return err_set(err, ERR_SYSTEM, "vault.crypto", "%s: %s", what, reason != NULL ? reason : "out of memory");
}

static int
random_serial(X509 *x, struct err *err)
{
    uint8_t bytes[16];
    BIGNUM *n;
    bool ok;

    if (seal_random(bytes, sizeof(bytes), err) < 0)
        return -1;
    bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40);     /* positive, and always of one length */
    n = BN_bin2bn(bytes, sizeof(bytes), NULL);
    ok = n != NULL && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
    BN_free(n);
    return ok ? 0 : failed(err, "serial number");
}

static bool
extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX c;
    X509_EXTENSION *e;
    bool ok;

    X509V3_set_ctx(&c, issuer, x, NULL, NULL, 0);
    e = X509V3_EXT_conf_nid(NULL, &c, nid, value);
    ok = e != NULL && X509_add_ext(x, e, -1) > 0;
    X509_EXTENSION_free(e);
    return ok;
}

static bool
set_name(X509_NAME *name, const char *common)
{
    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"cloche", -1, -1, 0) > 0 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common, -1, -1, 0) > 0;
}

/* Version, serial, validity, key: what every certificate has. */
static X509 *
ca_begin(EVP_PKEY *key, long before_s, long after_s, struct err *err)
{
    X509 *x = X509_new();

    if (x != NULL && X509_set_version(x, X509_VERSION_3) > 0 && random_serial(x, err) == 0 &&
        X509_gmtime_adj(X509_getm_notBefore(x), -before_s) != NULL &&
        X509_gmtime_adj(X509_getm_notAfter(x), after_s) != NULL && X509_set_pubkey(x, key) > 0)
        return x;
    X509_free(x);
    failed(err, "certificate");
    return NULL;
}

/* --- the CA ------------------------------------------------------------------------------------------------------- */

static X509 *
self_signed(EVP_PKEY *key, struct err *err)
{
    X509 *x = ca_begin(key, SKEW_S, CA_YEARS * 365L * 24 * 3600, err);
    char common[64];
    uint8_t tag[4];

    if (x == NULL || seal_random(tag, sizeof(tag), err) < 0) {
        X509_free(x);
        return NULL;
    }
    /* two installations, or two CAs of one, are told apart */
    snprintf(common, sizeof(common), "cloche installation CA %02x%02x%02x%02x", tag[0], tag[1], tag[2], tag[3]);
    if (set_name(X509_get_subject_name(x), common) && X509_set_issuer_name(x, X509_get_subject_name(x)) > 0 &&
        extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        extension(x, x, NID_key_usage, "critical,keyCertSign") &&
        extension(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()) > 0)
        return x;
    X509_free(x);
    failed(err, "CA certificate");
    return NULL;
}

/* The key as PKCS#8 in locked memory. */
static int
key_der(EVP_PKEY *key, struct secret *out, struct err *err)
{
    PKCS8_PRIV_KEY_INFO *info = EVP_PKEY2PKCS8(key);
    unsigned char *der = NULL;
    int n = info != NULL ? i2d_PKCS8_PRIV_KEY_INFO(info, &der) : -1;
    int r = n > 0 ? secret_copy(out, der, (size_t)n, err) : failed(err, "key");

    if (n > 0)
        OPENSSL_clear_free(der, (size_t)n);
    PKCS8_PRIV_KEY_INFO_free(info);
    return r;
}

static int
certificate_der(X509 *x, struct buf *out, struct err *err)
{
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    int r = n > 0 && buf_append(out, der, (size_t)n) == 0 ? 0 : failed(err, "certificate");

    OPENSSL_free(der);
    return r;
}

int
ca_make(struct secret *packed, struct err *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = key != NULL ? self_signed(key, err) : NULL;
    struct buf certificate = BUF_INIT(PACKED_MAX);
    cleanup_secret struct secret der = { NULL, 0 };
    int r = -1;

    if (key == NULL)
        failed(err, "CA key");
    if (x != NULL && certificate_der(x, &certificate, err) == 0 && key_der(key, &der, err) == 0 &&
        secret_alloc(packed, 8 + certificate.n + der.n, err) == 0) {
        struct buf out = { .p = packed->p, .cap = packed->n, .max = packed->n, .lent = true };
        buf_put_be32(&out, (uint32_t)certificate.n);
        buf_append(&out, certificate.p, certificate.n);
        buf_put_be32(&out, (uint32_t)der.n);
        r = buf_append(&out, der.p, der.n);
    }
    buf_free(&certificate);
    X509_free(x);
    EVP_PKEY_free(key);
    return r;
}

static int
unpack(const struct secret *packed, struct ca *ca, struct err *err)
{
    struct wire_in in = wire_in_of(packed->p, packed->n);
    uint32_t n = wire_be32(&in), key_n;
    const unsigned char *p = wire_bytes(&in, n), *k;
    PKCS8_PRIV_KEY_INFO *info;

    key_n = wire_be32(&in);
    k = wire_bytes(&in, key_n);
    if (!wire_done(&in) || n > PACKED_MAX || key_n > PACKED_MAX)
        return failed(err, "the CA's record");
    ca->certificate = d2i_X509(NULL, &p, (long)n);
    info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &k, (long)key_n);
    ca->key = info != NULL ? EVP_PKCS82PKEY(info) : NULL;
    PKCS8_PRIV_KEY_INFO_free(info);
    if (ca->certificate == NULL || ca->key == NULL || X509_check_private_key(ca->certificate, ca->key) <= 0)
        return failed(err, "the CA's record");
    return 0;
}

struct ca *
ca_open(const struct secret *packed, struct err *err)
{
    struct ca *ca = calloc(1, sizeof(*ca));

    if (ca == NULL) {
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    if (unpack(packed, ca, err) < 0) {
        (void)err_rename(err, "vault.ca.damaged");
    } else if (X509_cmp_current_time(X509_get0_notAfter(ca->certificate)) <= 0) {
        err_set(err, ERR_POLICY, "vault.ca.expired", "the installation CA's certificate has expired");
    } else {
        return ca;
    }
    err_hint(err, "`cloche secret ca rotate` makes a new one");
    ca_free(ca);
    return NULL;
}

void
ca_free(struct ca *ca)
{
    if (ca == NULL)
        return;
    X509_free(ca->certificate);
    EVP_PKEY_free(ca->key);
    free(ca);
}

int
ca_pem(const struct ca *ca, struct buf *out, struct err *err)
{
    BIO *b = BIO_new(BIO_s_mem());
    char *p;
    long n;
    int r = -1;

    if (b != NULL && PEM_write_bio_X509(b, ca->certificate) > 0 && (n = BIO_get_mem_data(b, &p)) > 0)
        r = buf_append(out, p, (size_t)n);
    BIO_free(b);
    return r < 0 ? failed(err, "certificate") : 0;
}

int
ca_describe(const struct ca *ca, char fingerprint[65], uint64_t *not_after, struct err *err)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct tm t;

    if (X509_digest(ca->certificate, EVP_sha256(), hash, &n) <= 0 || n != 32 ||
        ASN1_TIME_to_tm(X509_get0_notAfter(ca->certificate), &t) <= 0)
        return failed(err, "certificate");
    str_hex(hash, n, fingerprint);
    *not_after = (uint64_t)timegm(&t);
    return 0;
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

static X509 *
leaf(const struct ca *ca, EVP_PKEY *key, const struct host *host, struct err *err)
{
    X509 *x = ca_begin(key, SKEW_S, CA_LEAF_S, err);
    char san[HOST_NAME_MAX_LEN + 16];
    /* a common name has 64 bytes at most; the alternative name is what counts (RFC 9525) */
    const char *common = host->n <= 64 ? host->name : "a host of this sandbox";

    if (x == NULL)
        return NULL;
    /* a canonical host has none of the characters that mean something in this little language */
    snprintf(san, sizeof(san), "%s:%s", host->is_ip ? "IP" : "DNS", host->name);
    if (set_name(X509_get_subject_name(x), common) &&
        X509_set_issuer_name(x, X509_get_subject_name(ca->certificate)) > 0 &&
        extension(x, ca->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
        extension(x, ca->certificate, NID_key_usage, "critical,digitalSignature") &&
        extension(x, ca->certificate, NID_ext_key_usage, "serverAuth") &&
        extension(x, ca->certificate, NID_subject_alt_name, san) &&
        extension(x, ca->certificate, NID_authority_key_identifier, "keyid") &&
        X509_sign(x, ca->key, EVP_sha256()) > 0)
        return x;
    X509_free(x);
    failed(err, "certificate");
    return NULL;
}

int
ca_issue(const struct ca *ca, const struct host *host, struct buf *certificate, struct secret *key, struct err *err)
{
    EVP_PKEY *fresh = EVP_EC_gen("P-256");
    X509 *x = fresh != NULL ? leaf(ca, fresh, host, err) : NULL;
    int r = -1;

    if (fresh == NULL)
        failed(err, "key");
    if (x != NULL && certificate_der(x, certificate, err) == 0)
        r = key_der(fresh, key, err);
    X509_free(x);
    EVP_PKEY_free(fresh);
    return r;
}
