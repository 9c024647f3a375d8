/* vault/placeholder.c: see placeholder.h */
#include "vault/placeholder.h"

#include <string.h>

#include "base/array.h"
#include "vault/client.h"

/* Beginnings that tell what a key is, not which; the longest that fits is kept. */
static const char *const prefixes[] = {
    "sk-ant-api03-", "sk-ant-admin01-", "sk-ant-oat01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-", "github_pat_",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "gldt-", "glcbt-", "npm_", "pypi-", "AKIA", "ASIA", "xoxb-",
    "xoxp-", "hf_", "AIza",
};

static bool is_upper(uint8_t c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(uint8_t c) { return c >= 'a' && c <= 'z'; }
static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool is_alnum(uint8_t c) { return is_upper(c) || is_lower(c) || is_digit(c); }

size_t
placeholder_prefix(const uint8_t *value, size_t n)
{
    size_t best = 0;

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t length = strlen(prefixes[i]);
        if (length > best && length <= n && memcmp(value, prefixes[i], length) == 0)
            best = length;
    }
    return best;
}

static bool
is_line_form(const uint8_t *value, size_t n, size_t i)
{
    return value[i] == '\n' || value[i] == '\t' || (value[i] == '\r' && i + 1 < n && value[i + 1] == '\n');
}

int
placeholder_fit(const uint8_t *value, size_t n, struct err *err)
{
    bool kept[VAULT_VALUE_MAX];
    size_t fresh = 0;

    if (n < VAULT_VALUE_MIN || n > VAULT_VALUE_MAX)
        return err_set(err, ERR_POLICY, "vault.value", "a secret has %d to %d bytes, this one has %zu", VAULT_VALUE_MIN,
                       VAULT_VALUE_MAX, n);
    for (size_t i = 0; i < n; i++)
        if ((value[i] < ' ' || value[i] > '~') && !is_line_form(value, n, i)) {
            err_set(err, ERR_POLICY, "vault.value",
                    "byte %zu of the secret is neither printable ASCII nor a line's end", i + 1);
            return err_hint(err, "secrets go into requests as text; encode it (base64) if its service takes that");
        }
    placeholder_kept(value, n, kept);
    for (size_t i = 0; i < n; i++)
        fresh += !kept[i] && is_alnum(value[i]);
    if (fresh < PLACEHOLDER_FRESH_MIN) {
        err_set(err, ERR_POLICY, "vault.value", "the secret has only %zu letters and digits that could be replaced",
                fresh);
        return err_hint(err, "at least %d are needed, so that a placeholder is never met by chance",
                        PLACEHOLDER_FRESH_MIN);
    }
    return 0;
}

int
placeholder_fit_places(const uint8_t *value, size_t n, const struct binding *b, struct err *err)
{
    const unsigned heads = BINDING_BEARER | BINDING_BASIC | BINDING_HEADER | BINDING_COOKIE | BINDING_SIGV4 |
                           BINDING_ADD;
    bool lines = false;

    for (size_t i = 0; i < n; i++)
        lines = lines || value[i] < ' ';
    if (!lines || (b->places & heads) == 0)
        return 0;
    err_set(err, ERR_POLICY, "vault.value.lines",
            "a secret of several lines cannot go into a request's head, where its binding puts it");
    return err_hint(err, "--place body, or --place 'query NAME'; or encode it (base64) if its service takes that");
}

/* Evenly from 0 to @below - 1 out of 16 random bits: off by less than one in two thousand, which tells nobody
 * anything. */
static uint8_t
pick(const uint8_t *random, unsigned below)
{
    return (uint8_t)((((unsigned)random[0] << 8 | random[1]) * below) >> 16);
}

bool
placeholder_make(const uint8_t *value, size_t n, const uint8_t *random, uint8_t *out)
{
    bool kept[VAULT_VALUE_MAX], hex = true;
    size_t run = 0;

    if (n > VAULT_VALUE_MAX)
        return false;
    placeholder_kept(value, n, kept);
    for (size_t i = 0; i < n; i++)
        hex = hex && (kept[i] || str_hex_digit((char)value[i]) >= 0 || !(is_upper(value[i]) || is_lower(value[i])));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *r = random + 2 * i;
        uint8_t c = value[i];
        if (kept[i])
            out[i] = c;
        else if (is_upper(c))
            out[i] = (uint8_t)('A' + pick(r, hex ? 6 : 26));
        else if (is_lower(c))
            out[i] = (uint8_t)('a' + pick(r, hex ? 6 : 26));
        else if (is_digit(c))
            out[i] = (uint8_t)('0' + pick(r, 10));
        else
            out[i] = c;
    }
    /* eight in a row by chance: once in many millions, but a short value may have few that change */
    for (size_t i = 0; i < n; i++) {
        if (kept[i] || !is_alnum(value[i]))
            continue;
        run = out[i] == value[i] ? run + 1 : 0;
        if (run >= PLACEHOLDER_FRESH_MIN)
            return false;
    }
    return memcmp(out, value, n) != 0;
}
