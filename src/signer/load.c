/* signer/load.c: the key and the policy, from where they are kept */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "signer/behind.h"
#include "signer/far.h"
#include "signer/signer.h"
#include "signer/token.h"
#include "vault/store.h"

static bool
is_form(const uint8_t *text, size_t n, const char *form)
{
    return n > strlen(form) && memcmp(text, form, strlen(form)) == 0;
}

int
signer_point_of(const uint8_t *text, size_t n, uint8_t out[SIGN_POINT], struct err *err)
{
    struct sign_key *key;

    if (is_form(text, n, TOKEN_FORM) || is_form(text, n, FAR_FORM))
        return behind_kept(text, n, out) ? 0 : err_set(err, ERR_USAGE, "sign.key.invalid", "its point is not kept");
    key = signer_key_of(text, n, err);
    if (key == NULL)
        return -1;
    sign_key_point(key, out);
    sign_key_free(key);
    return 0;
}

struct sign_key *
signer_key_of(const uint8_t *text, size_t n, struct err *err)
{
    uint8_t bytes[SIGN_KEY_SIZE];
    struct sign_key *k = NULL;

    if (is_form(text, n, TOKEN_FORM))
        return token_key(text, n, err);
    if (is_form(text, n, FAR_FORM))
        return far_key(text, n, err);
    if (n >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        n -= 2;
    }
    if (n == sizeof(bytes) * 2 && str_unhex((struct str){ (const char *)text, n }, bytes)) {
        k = sign_key_new(bytes, err);
    } else {
        err_set(err, ERR_USAGE, "sign.key.invalid", "that is no private key");
        err_hint(err, "64 hexadecimal digits, as wallets export it; or --generate");
    }
    explicit_bzero(bytes, sizeof(bytes));
    return k;
}

struct sign_key *
signer_key(const char *name, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_free struct store_meta *meta = malloc(sizeof(*meta));
    cleanup_secret struct secret value = { NULL, 0 };
    size_t index;

    if (meta == NULL) {
        (void)err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    if (store_open(&s, false, err) < 0 || store_find_key(&s, name, meta, &index, err) < 0 ||
        store_value(&s, index, &value, err) < 0)
        return NULL;
    return signer_key_of(value.p, value.n, err);
}

int
signer_policy(const char *path, struct buf *text, struct err *err)
{
    cleanup_free struct sign_policy *policy = malloc(sizeof(*policy));

    if (policy == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (io_read_regular(AT_FDCWD, path, text) < 0) {
        err_sys(err, errno, "sign.policy.read", "%s", path);
        return err_hint(err, "a regular file of at most 64 KiB; `cloche signer policy` prints the standard one");
    }
    return sign_policy_read(text->p, text->n, policy, err) < 0 ? err_wrap(err, "%s", path) : 0;
}
