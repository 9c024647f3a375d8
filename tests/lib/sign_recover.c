/* tests/lib/sign_recover.c: whose key made these signatures? For tests/conformance/test_sign_vectors.py
 *
 * A line of stdin is "DIGEST R S PARITY", in hexadecimal and a digit; the answer is an address, or "none". A line "sign
 * KEY DIGEST" is answered by "R S PARITY".
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sign/key.h"

static void
say_hex(const uint8_t *p, size_t n, const char *behind)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", p[i]);
    printf("%s", behind);
}

static int
make(const char *key, const char *digest)
{
    uint8_t bytes[SIGN_KEY_SIZE], hash[TX_HASH];
    struct tx_signature s;
    struct err err = ERR_INIT;
    struct sign_key *k;
    int r;

    if (!str_unhex(str_of(key), bytes) || !str_unhex(str_of(digest), hash))
        return -1;
    k = sign_key_new(bytes, &err);
    r = k != NULL ? sign_key_sign(k, hash, &s, &err) : -1;
    sign_key_free(k);
    if (r < 0) {
        printf("none\n");
        return 0;
    }
    say_hex(s.r, 32, " ");
    say_hex(s.s, 32, " ");
    printf("%u\n", s.parity);
    return 0;
}

static int
recover(const char *digest, const char *r, const char *s, unsigned parity)
{
    uint8_t hash[TX_HASH], address[TX_ADDRESS];
    struct tx_signature made = { .parity = (uint8_t)parity };

    if (!str_unhex(str_of(digest), hash) || !str_unhex(str_of(r), made.r) || !str_unhex(str_of(s), made.s))
        return -1;
    if (sign_recover(hash, &made, address))
        say_hex(address, sizeof(address), "\n");
    else
        printf("none\n");
    return 0;
}

/* The words of @line, at most four. */
static size_t
words_of(char *line, char *out[4])
{
    size_t n = 0;
    char *rest = line, *word;

    while (n < 4 && (word = strsep(&rest, " \n")) != NULL)
        if (*word != '\0')
            out[n++] = word;
    return n;
}

static int
answer(char *line)
{
    char *word[4];
    size_t n = words_of(line, word);
    uint64_t parity;

    if (n == 3 && strcmp(word[0], "sign") == 0)
        return strlen(word[1]) == 64 && strlen(word[2]) == 64 ? make(word[1], word[2]) : -1;
    if (n != 4 || strlen(word[0]) != 64 || strlen(word[1]) != 64 || strlen(word[2]) != 64 ||
        !str_parse_u64(str_of(word[3]), 255, &parity))
        return -1;
    return recover(word[0], word[1], word[2], (unsigned)parity);
}

int
main(void)
{
    char line[512];

    while (fgets(line, sizeof(line), stdin) != NULL)
        if (answer(line) < 0) {
            fprintf(stderr, "not a line\n");
            return 1;
        }
    return 0;
}
