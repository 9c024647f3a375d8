/* signer/token.c: see token.h */
#include "signer/token.h"

#include <stdio.h>
#include <string.h>

#include "signer/behind.h"

static const struct behind_program program = {
    .word = "token", .once = true, .what = "the process with the PKCS#11 module"
};

struct sign_key *
token_key(const uint8_t *text, size_t n, struct err *err)
{
    struct str rest = { (const char *)text + sizeof(TOKEN_FORM) - 1, n - (sizeof(TOKEN_FORM) - 1) };
    char module[4096], token[TOKEN_WORD_MAX + 1], object[TOKEN_WORD_MAX + 1], pin[TOKEN_WORD_MAX + 1];
    char point[BEHIND_POINT + 1], name[2 * TOKEN_WORD_MAX + 64];
    const struct token_where where = { .module = module, .token = token, .object = object, .pin = pin };
    struct sign_key *key = NULL;

    if (behind_line(&rest, module, sizeof(module)) && behind_line(&rest, token, sizeof(token)) &&
        behind_line(&rest, object, sizeof(object)) && behind_line(&rest, point, sizeof(point)) &&
        behind_line(&rest, pin, sizeof(pin)) && rest.n == 0) {
        snprintf(name, sizeof(name), "\"%s\" in the token \"%s\"", object, token);
        key = behind_key(&program, TOKEN_OPEN, TOKEN_OPEN_SHAPE(), &where, point, name, err);
    } else {
        (void)err_set(err, ERR_USAGE, "sign.key.invalid", "that does not say where in a token a key is, or which");
        (void)err_hint(err, "`cloche signer rm` it, and add it again");
    }
    explicit_bzero(pin, sizeof(pin));
    explicit_bzero(point, sizeof(point));       /* of what was kept before there was one it is the PIN */
    return key;
}
