/* signer/far.c: see far.h */
#include "signer/far.h"

#include <string.h>

#include "signer/behind.h"

static const struct behind_program program = {
    .program = "cloche-remote", .folder = "remote", .what = "cloche-remote" };

/* The one that it was. */
static bool
is_still(const struct sign_key *key, const char *pinned)
{
    char text[SIGN_ADDRESS_TEXT + 1];

    sign_key_address_text(key, text);
    return strcmp(pinned, "-") == 0 || strcmp(pinned, text) == 0;
}

struct sign_key *
far_key(const uint8_t *text, size_t n, struct err *err)
{
    struct str rest = { (const char *)text + sizeof(FAR_FORM) - 1, n - (sizeof(FAR_FORM) - 1) };
    char url[REMOTE_URL_MAX + 1], ca[4096], pinned[SIGN_ADDRESS_TEXT + 1], bearer[TOKEN_WORD_MAX + 1];
    const struct remote_where where = { .url = url, .ca = ca, .bearer = bearer };
    struct sign_key *key = NULL;

    if (!behind_line(&rest, url, sizeof(url)) || !behind_line(&rest, ca, sizeof(ca)) ||
        !behind_line(&rest, pinned, sizeof(pinned)) || !behind_line(&rest, bearer, sizeof(bearer)) || rest.n != 0) {
        (void)err_set(err, ERR_USAGE, "sign.key.invalid", "that does not say which server signs");
        return NULL;
    }
    if (strcmp(ca, "-") == 0)
        ca[0] = '\0';
    key = behind_key(&program, REMOTE_OPEN, REMOTE_OPEN_SHAPE(), &where, err);
    explicit_bzero(bearer, sizeof(bearer));
    if (key == NULL || is_still(key, pinned))
        return key;
    sign_key_free(key);
    (void)err_set(err, ERR_DENIED, "sign.remote.changed", "%s signs with another key than %s", url, pinned);
    (void)err_hint(err, "if that is meant, `cloche signer rm` it and add it again");
    return NULL;
}
