/* match/package.c: see package.h */
#include "match/package.h"

#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

#define PACKAGE_MAX 214         /* npm's own ceiling */

static const struct package_client clients[] = {
    { "pypi", ".packages", "PYTHONPATH",
      { "python3", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--target",
        PACKAGES_PYTHON } },
    { "npm", "node_modules", NULL,
      { "npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", "/workspace" } },
};

const struct package_client *
package_client_of(const char *registry)
{
    for (size_t i = 0; registry != NULL && i < ARRAY_LEN(clients); i++)
        if (strcmp(clients[i].registry, registry) == 0)
            return &clients[i];
    return NULL;
}

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '.' || c == '_' || c == '-';
}

/* Letters, digits, "._-", beginning with a letter or digit; the byte after it. NULL: none is there. */
static const char *
word(const char *p)
{
    if (isalnum((unsigned char)*p) == 0)
        return NULL;
    while (is_word(*p))
        p++;
    return p;
}

/* "1.2", ">=1,<2": comparisons of versions, no blanks. */
static bool
python_versions(const char *p)
{
    static const char *const signs[] = { "===", "==", "!=", "~=", ">=", "<=", ">", "<" };

    for (;;) {
        size_t i;
        for (i = 0; i < ARRAY_LEN(signs) && strncmp(p, signs[i], strlen(signs[i])) != 0; i++)
            ;
        if (i == ARRAY_LEN(signs))
            return false;
        p += strlen(signs[i]);
        if (isalnum((unsigned char)*p) == 0)
            return false;
        while (is_word(*p) || *p == '*' || *p == '+' || *p == '!')
            p++;
        if (*p == '\0')
            return true;
        if (*p++ != ',')
            return false;
    }
}

/* NAME[EXTRA,EXTRA]VERSIONS of PEP 508, without URLs and markers */
static bool
python_well(const char *p)
{
    p = word(p);
    if (p == NULL)
        return false;
    if (*p == '[') {
        do
            p = word(p + 1);
        while (p != NULL && *p == ',');
        if (p == NULL || *p++ != ']')
            return false;
    }
    return *p == '\0' || python_versions(p);
}

/* [@SCOPE/]NAME[@VERSION]; a slash elsewhere would be a folder or a repository, a colon a URL or an alias */
static bool
npm_well(const char *p)
{
    if (*p == '@') {
        p = word(p + 1);
        if (p == NULL || *p++ != '/')
            return false;
    }
    p = word(p);
    if (p == NULL || *p == '\0')
        return p != NULL;
    if (*p++ != '@')
        return false;
    p += strspn(p, "^~<>=");
    p = word(p);
    return p != NULL && (*p == '\0' || (*p == '+' && (p = word(p + 1)) != NULL && *p == '\0'));
}

/* pip and npm take a file of that name for what is to be installed, and one can be made inside. */
static bool
is_file(const char *package)
{
    static const char *const ends[] = { ".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".tbz", ".txz", ".lz" };

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (str_ends(str_of(package), str_of(ends[i])))
            return true;
    return false;
}

bool
package_well(const char *registry, const char *package)
{
    if (strlen(package) > PACKAGE_MAX || is_file(package))
        return false;
    return strcmp(registry, "npm") == 0 ? npm_well(package) : python_well(package);
}

void
package_settle(char *package)
{
    char *out = package;
    const char *end, *p;

    if (!package_well("pypi", package))
        return;
    end = word(package);
    for (p = package; p < end; p++) {
        if (isalnum((unsigned char)*p) != 0)
            *out++ = (char)tolower((unsigned char)*p);
        else if (out > package && out[-1] != '-')
            *out++ = '-';
    }
    memmove(out, end, strlen(end) + 1);
}

bool
package_pinned(const char *registry, const char *package)
{
    const char *sign = strcmp(registry, "npm") == 0 ? strrchr(package, '@') : strchr(package, '=');
    size_t n = sign != NULL ? strspn(sign, "@=") : 0;

    if (sign == NULL || sign == package)
        return false;
    if (strcmp(registry, "npm") == 0)       /* "1.2" is a range there */
        return n == 1 && isdigit((unsigned char)sign[1]) != 0 && strspn(sign + 1, "0123456789") < strlen(sign + 1) &&
               strchr(sign, '.') != strrchr(sign, '.') && strpbrk(sign + 1, "xX*") == NULL;
    return n >= 2 && strpbrk(package, ",*!~<>") == NULL;
}

bool
package_hash_well(const char *registry, const char *hash)
{
    static const struct { const char *hex, *base64; size_t bytes; } kinds[] = {
        { "sha256:", "sha256-", 32 }, { "sha384:", "sha384-", 48 }, { "sha512:", "sha512-", 64 },
    };
    bool npm = strcmp(registry, "npm") == 0;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *begin = npm ? kinds[i].base64 : kinds[i].hex, *rest = hash + strlen(begin);
        size_t n = npm ? (kinds[i].bytes + 2) / 3 * 4 : kinds[i].bytes * 2;
        if (str_starts(str_of(hash), str_of(begin)))
            return strlen(rest) == n &&
                   strspn(rest, npm ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
                                    : "0123456789abcdef") == n;
    }
    return false;
}

/* What clients say, the most telling first: one that has no way to its registry says as well that it found nothing. */
enum package_fault
package_fault_of(const void *out, size_t n)
{
    static const struct { enum package_fault fault; const char *said; } rows[] = {
        { PACKAGE_OTHER_HASH, "DO NOT MATCH THE HASHES" }, { PACKAGE_OTHER_HASH, "EINTEGRITY" },
        { PACKAGE_NO_WAY, "Max retries exceeded" }, { PACKAGE_NO_WAY, "NewConnectionError" },
        { PACKAGE_NO_WAY, "Tunnel connection failed" }, { PACKAGE_NO_WAY, "403 Client Error" },
        { PACKAGE_NO_WAY, "code E403" }, { PACKAGE_NO_WAY, "ENOTFOUND" }, { PACKAGE_NO_WAY, "EAI_AGAIN" },
        { PACKAGE_NO_WAY, "ECONNREFUSED" }, { PACKAGE_NO_WAY, "ECONNRESET" }, { PACKAGE_NO_WAY, "ETIMEDOUT" },
        { PACKAGE_NOT_FOUND, "No matching distribution found" }, { PACKAGE_NOT_FOUND, "code E404" },
        { PACKAGE_NOT_FOUND, "code ETARGET" }, { PACKAGE_NOT_FOUND, "code ENOVERSIONS" },
    };

    for (size_t i = 0; n > 0 && i < ARRAY_LEN(rows); i++)
        if (memmem(out, n, rows[i].said, strlen(rows[i].said)) != NULL)
            return rows[i].fault;
    return PACKAGE_FAILED;
}
