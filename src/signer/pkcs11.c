/* signer/pkcs11.c: see pkcs11.h */
#include "signer/pkcs11.h"

#if CLOCHE_PKCS11
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <p11-kit/pkcs11.h>

#include "base/array.h"
#include "base/str.h"
#include "signer/module_path.h"

#define SLOTS_MAX 64
#define LABEL 32        /* bytes of a token's, filled with blanks */

struct pkcs11 {
    CK_FUNCTION_LIST *f;
    CK_SESSION_HANDLE session;
    CK_OBJECT_HANDLE key;
};

static int
failed(struct err *err, const char *call, CK_RV rv)
{
    return err_set(err, ERR_SYSTEM, "sign.token.call", "the PKCS#11 module: %s: error 0x%lx", call, rv);
}

/* --- the module --------------------------------------------------------------------------------------------------- */

static int
load(struct pkcs11 *p, const char *path, struct err *err)
{
    CK_RV (*get)(CK_FUNCTION_LIST **list) = NULL;
    /* what is loaded runs here, beside the PIN */
    void *module = module_path_safe(path, err) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module != NULL ? dlsym(module, "C_GetFunctionList") : NULL;
    CK_RV rv;

    if (err->kind != ERR_NONE)
        return -1;
    memcpy(&get, &symbol, sizeof(get));
    if (get == NULL)
        return err_set(err, ERR_USAGE, "sign.token.module", "%s is no PKCS#11 module: %.200s", path,
                       module == NULL ? dlerror() : "it has no C_GetFunctionList");
    rv = get(&p->f);
    if (rv == CKR_OK && p->f != NULL)
        rv = p->f->C_Initialize(NULL);
    return rv == CKR_OK && p->f != NULL ? 0 : failed(err, "C_Initialize", rv);
}

static bool
is_labelled(const CK_TOKEN_INFO *info, const char *label)
{
    size_t n = strlen(label);

    if (n > LABEL || memcmp(info->label, label, n) != 0)
        return false;
    for (size_t i = n; i < LABEL; i++)
        if (info->label[i] != ' ')
            return false;
    return true;
}

static int
find_token(struct pkcs11 *p, const char *label, CK_SLOT_ID *out, struct err *err)
{
    CK_SLOT_ID slots[SLOTS_MAX];
    CK_ULONG n = SLOTS_MAX, found = 0;
    CK_RV rv = p->f->C_GetSlotList(CK_TRUE, slots, &n);

    if (rv != CKR_OK)
        return failed(err, "C_GetSlotList", rv);
    for (CK_ULONG i = 0; i < n && i < SLOTS_MAX; i++) {
        CK_TOKEN_INFO info;
        if (p->f->C_GetTokenInfo(slots[i], &info) != CKR_OK || !is_labelled(&info, label))
            continue;
        *out = slots[i];
        found++;
    }
    if (found == 1)
        return 0;
    err_set(err, ERR_NOT_FOUND, "sign.token.token", "%s token has the label \"%s\"",
            found == 0 ? "no" : "more than one", label);
    return err_hint(err, "`softhsm2-util --show-slots` and the like list the labels");
}

static int
log_in(struct pkcs11 *p, const struct token_where *w, struct err *err)
{
    CK_SLOT_ID slot;
    CK_RV rv;

    if (find_token(p, w->token, &slot, err) < 0)
        return -1;
    rv = p->f->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &p->session);
    if (rv != CKR_OK)
        return failed(err, "C_OpenSession", rv);
    rv = p->f->C_Login(p->session, CKU_USER, (CK_UTF8CHAR *)(uintptr_t)w->pin, strlen(w->pin));
    if (rv == CKR_PIN_INCORRECT || rv == CKR_PIN_LOCKED || rv == CKR_PIN_LEN_RANGE || rv == CKR_PIN_INVALID) {
        err_set(err, ERR_DENIED, "sign.token.pin", "the token \"%s\" does not take this PIN%s", w->token,
                rv == CKR_PIN_LOCKED ? ": it is locked" : "");
        return err_hint(err, "`cloche signer rm`, and add it again with the right one; a few wrong ones lock tokens");
    }
    return rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN ? 0 : failed(err, "C_Login", rv);
}

/* --- the key ------------------------------------------------------------------------------------------------------ */

static int
find_one(struct pkcs11 *p, CK_OBJECT_CLASS class, const char *label, CK_OBJECT_HANDLE *out, struct err *err)
{
    CK_KEY_TYPE type = CKK_EC;
    CK_ATTRIBUTE wanted[] = { { CKA_CLASS, &class, sizeof(class) }, { CKA_KEY_TYPE, &type, sizeof(type) },
                              { CKA_LABEL, (void *)(uintptr_t)label, strlen(label) } };
    CK_OBJECT_HANDLE found[2];
    CK_ULONG n = 0;
    CK_RV rv = p->f->C_FindObjectsInit(p->session, wanted, ARRAY_LEN(wanted));

    if (rv == CKR_OK) {
        rv = p->f->C_FindObjects(p->session, found, ARRAY_LEN(found), &n);
        (void)p->f->C_FindObjectsFinal(p->session);
    }
    if (rv != CKR_OK)
        return failed(err, "C_FindObjects", rv);
    if (n != 1) {
        err_set(err, ERR_NOT_FOUND, "sign.token.object", "%s %s key of elliptic curves has the label \"%s\"",
                n == 0 ? "no" : "more than one", class == CKO_PRIVATE_KEY ? "private" : "public", label);
        return err_hint(err, "one pair of keys with one label, of the curve secp256k1");
    }
    *out = found[0];
    return 0;
}

/* Its curve is the one, by name; its point is a DER octet string of 65 bytes. */
static int
read_point(struct pkcs11 *p, CK_OBJECT_HANDLE key, uint8_t point[65], struct err *err)
{
    static const uint8_t secp256k1[] = { 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a };
    uint8_t curve[64], der[128];
    CK_ATTRIBUTE asked[] = { { CKA_EC_PARAMS, curve, sizeof(curve) }, { CKA_EC_POINT, der, sizeof(der) } };
    CK_RV rv = p->f->C_GetAttributeValue(p->session, key, asked, ARRAY_LEN(asked));

    if (rv != CKR_OK)
        return failed(err, "C_GetAttributeValue", rv);
    if (asked[0].ulValueLen != sizeof(secp256k1) || memcmp(curve, secp256k1, sizeof(secp256k1)) != 0 ||
        asked[1].ulValueLen != 67 || der[0] != 0x04 || der[1] != 65 || der[2] != 0x04)
        return err_set(err, ERR_POLICY, "sign.token.object", "that key is not of the curve secp256k1");
    memcpy(point, der + 2, 65);
    return 0;
}

struct pkcs11 *
pkcs11_open(const struct token_where *where, uint8_t point[65], struct err *err)
{
    struct pkcs11 *p = calloc(1, sizeof(*p));
    CK_OBJECT_HANDLE public;

    if (p == NULL)
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (load(p, where->module, err) == 0 && log_in(p, where, err) == 0 &&
             find_one(p, CKO_PRIVATE_KEY, where->object, &p->key, err) == 0 &&
             find_one(p, CKO_PUBLIC_KEY, where->object, &public, err) == 0 && read_point(p, public, point, err) == 0)
        return p;
    pkcs11_close(p);
    return NULL;
}

/* Errors by which C_Sign says that it did not begin: a person refused, or something is not there or not allowed. After
 * any other (a device that failed, or was taken out) the token may have signed. */
static bool
is_refusal(CK_RV rv)
{
    static const CK_RV refusals[] = {
        CKR_FUNCTION_REJECTED, CKR_USER_NOT_LOGGED_IN, CKR_PIN_EXPIRED, CKR_DATA_INVALID, CKR_DATA_LEN_RANGE,
        CKR_OPERATION_NOT_INITIALIZED, CKR_SESSION_HANDLE_INVALID, CKR_KEY_HANDLE_INVALID, CKR_OBJECT_HANDLE_INVALID,
        CKR_KEY_FUNCTION_NOT_PERMITTED,
    };

    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (refusals[i] == rv)
            return true;
    return false;
}

int
pkcs11_sign(struct pkcs11 *p, const uint8_t digest[32], uint8_t rs[64], bool *perhaps, struct err *err)
{
    CK_MECHANISM ecdsa = { CKM_ECDSA, NULL, 0 };
    CK_ULONG n = 64;
    CK_RV rv = p->f->C_SignInit(p->session, &ecdsa, p->key);

    *perhaps = false;
    if (rv != CKR_OK)
        return failed(err, "C_SignInit", rv);
    rv = p->f->C_Sign(p->session, (CK_BYTE *)(uintptr_t)digest, 32, rs, &n);
    *perhaps = !is_refusal(rv);
    return rv == CKR_OK && n == 64 ? 0 : failed(err, "C_Sign", rv);
}

void
pkcs11_close(struct pkcs11 *p)
{
    if (p != NULL && p->session != 0)
        (void)p->f->C_CloseSession(p->session);
    free(p);
}
#else
struct pkcs11 *
pkcs11_open(const struct token_where *where, uint8_t point[65], struct err *err)
{
    (void)where;
    (void)point;
    (void)err_set(err, ERR_UNSUPPORTED, "sign.token.built", "this cloche was built without PKCS#11");
    (void)err_hint(err, "build it where p11-kit's headers are (Debian: libp11-kit-dev)");
    return NULL;
}

int
pkcs11_sign(struct pkcs11 *p, const uint8_t digest[32], uint8_t rs[64], bool *perhaps, struct err *err)
{
    *perhaps = false;
    (void)p;
    (void)digest;
    (void)rs;
    return err_set(err, ERR_UNSUPPORTED, "sign.token.built", "this cloche was built without PKCS#11");
}

void
pkcs11_close(struct pkcs11 *p)
{
    (void)p;
}
#endif
