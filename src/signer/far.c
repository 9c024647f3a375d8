/* signer/far.c: see far.h */
#include "signer/far.h"

#include <string.h>

#include "signer/behind.h"

static const struct behind_program program = {
    .program = "cloche-remote", .folder = "remote", .what = "cloche-remote" };

struct sign_key *
far_key(const uint8_t *text, size_t n, struct err *err)
{
    struct str rest = { (const char *)text + sizeof(FAR_FORM) - 1, n - (sizeof(FAR_FORM) - 1) };
    char url[REMOTE_URL_MAX + 1], ca[4096], point[BEHIND_POINT + 1], bearer[TOKEN_WORD_MAX + 1];
    const struct remote_where where = { .url = url, .ca = ca, .bearer = bearer };
    struct sign_key *key = NULL;

    if (!behind_line(&rest, url, sizeof(url)) || !behind_line(&rest, ca, sizeof(ca)) ||
        !behind_line(&rest, point, sizeof(point)) || !behind_line(&rest, bearer, sizeof(bearer)) || rest.n != 0) {
        (void)err_set(err, ERR_USAGE, "sign.key.invalid", "that does not say which server signs, or with which key");
        (void)err_hint(err, "`cloche signer rm` it, and add it again");
        return NULL;
    }
    if (strcmp(ca, "-") == 0)
        ca[0] = '\0';
    key = behind_key(&program, REMOTE_OPEN, REMOTE_OPEN_SHAPE(), &where, point, url, err);
    explicit_bzero(bearer, sizeof(bearer));
    return key;
}
