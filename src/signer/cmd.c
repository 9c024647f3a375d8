/* signer/cmd.c: `cloche signer`: keys that sign, in the vault's store; and whether a policy is one */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "signer/behind.h"
#include "signer/far.h"
#include "signer/signer.h"
#include "signer/token.h"
#include "vault/cmd.h"
#include "vault/store.h"

#define TRIES 16    /* a random key is none once in 2^128 times */

struct options {
    const char *name, *file, *from_env, *from_file, *module, *token, *object, *url, *ca, *address;
    bool generate, check, json, help;
};

/* --- the store ---------------------------------------------------------------------------------------------------- */

static int
generate(struct secret *value, struct err *err)
{
    uint8_t bytes[SIGN_KEY_SIZE];
    char text[2 * SIGN_KEY_SIZE + 1];
    struct sign_key *k = NULL;
    int r = -1;

    for (int i = 0; k == NULL && i < TRIES && seal_random(bytes, sizeof(bytes), err) == 0; i++)
        k = sign_key_new(bytes, err);
    if (k != NULL) {
        str_hex(bytes, sizeof(bytes), text);
        r = secret_copy(value, text, sizeof(text) - 1, err);
    }
    sign_key_free(k);
    explicit_bzero(bytes, sizeof(bytes));
    explicit_bzero(text, sizeof(text));
    return r;
}

/* A key that is there stays: what it signed for would be out of reach, and nobody could have meant that. */
static int
keep(const char *name, const struct secret *value, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_free struct store_meta *m = calloc(1, sizeof(*m));
    struct err unknown = ERR_INIT;
    size_t index;

    if (m == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (store_open(&s, true, err) < 0)
        return -1;
    if (store_find_key(&s, name, m, &index, &unknown) == 0) {
        err_set(err, ERR_USAGE, "sign.key.there", "there is a signing key \"%s\" already", name);
        return err_hint(err, "take another name, or `cloche signer rm %s` first", name);
    }
    if (strcmp(unknown.code, "vault.unknown") != 0) {
        *err = unknown;
        return -1;
    }
    memset(m, 0, sizeof(*m));
    memcpy(m->name, name, strlen(name) + 1);
    m->created = m->updated = (uint64_t)time(NULL);
    return store_new_id(m->id, err) < 0 ? -1 : store_put_key(&s, m, value, err);
}

/* A key that is not here (token.h, far.h): where it is, its point (behind.h), and what was read. */
static int
elsewhere(const struct options *o, const char *point, const struct secret *read, struct secret *value, struct err *err)
{
    const bool token = o->module != NULL;
    const char *const words[] = { token ? o->module : o->url, token ? o->token : o->ca != NULL ? o->ca : "-",
                                  token ? o->object : NULL, point };
    size_t max = sizeof(TOKEN_FORM) + sizeof(FAR_FORM), at;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        max += words[i] != NULL ? strlen(words[i]) + 1 : 0;
    if (secret_alloc(value, max + read->n, err) < 0)
        return -1;
    at = (size_t)snprintf((char *)value->p, max, "%s", token ? TOKEN_FORM : FAR_FORM);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i] != NULL)
            at += (size_t)snprintf((char *)value->p + at, max - at, "%s\n", words[i]);
    memcpy(value->p + at, read->p, read->n);
    value->n = at + read->n;
    return 0;
}

/* A key as people are told of it. */
struct told {
    char address[SIGN_ADDRESS_TEXT + 1], point[BEHIND_POINT + 1];
};

static int
tell(const uint8_t point[SIGN_POINT], struct told *out)
{
    uint8_t address[TX_ADDRESS];

    if (!sign_point_address(point, address))
        return -1;
    sign_address_text(address, out->address);
    memcpy(out->point, "0x", 2);
    str_hex(point, SIGN_POINT, out->point + 2);
    return 0;
}

/* The key of @value, which is there. It is the one of --address, where that is given. */
static int
look_at(const struct options *o, const struct secret *value, struct told *out, struct err *err)
{
    struct sign_key *key = signer_key_of(value->p, value->n, err);
    uint8_t wanted[TX_ADDRESS], is[TX_ADDRESS], point[SIGN_POINT];
    int r = 0;

    if (key == NULL)
        return -1;
    sign_key_address(key, is);
    sign_key_point(key, point);
    if (o->address != NULL && sign_address_parse(str_of(o->address), wanted) &&
        memcmp(wanted, is, sizeof(is)) != 0) {
        (void)behind_other(o->name, wanted, key, err);
        r = err_hint(err, "it is not kept; look whether the name or the URL is the right one, and who answers to it");
    }
    sign_key_free(key);
    return r < 0 || tell(point, out) < 0 ? -1 : 0;
}

/* What is kept, and whose key it is. */
static int
make_value(const struct options *o, struct secret *value, struct told *out, struct err *err)
{
    const struct cmd_options from = { .name = o->name, .from_env = o->from_env, .from_file = o->from_file };
    cleanup_secret struct secret read = { NULL, 0 }, new = { NULL, 0 };

    if (o->url == NULL && o->module == NULL)
        return (o->generate ? generate(value, err) : value_read(&from, value, err)) < 0 ||
                       look_at(o, value, out, err) < 0 ? -1 : 0;
    /* it is asked once, and from then on it is that one */
    return value_read(&from, &read, err) < 0 || elsewhere(o, BEHIND_NEW, &read, &new, err) < 0 ||
                   look_at(o, &new, out, err) < 0 ? -1 : elsewhere(o, out->point, &read, value, err);
}

static int
cmd_add(const struct options *o, struct err *err)
{
    cleanup_secret struct secret value = { NULL, 0 };
    struct told told;
    int r;

    if (secret_memory_init(err) < 0 || make_value(o, &value, &told, err) < 0)
        return -1;
    r = keep(o->name, &value, err);
    if (r == 0 && o->json)
        printf("{\"name\": \"%s\", \"address\": \"%s\", \"publicKey\": \"%s\"}\n", o->name, told.address, told.point);
    else if (r == 0)
        printf("%s is kept: %s\n", o->name, told.address);
    return r;
}

/* As it is kept: no token is logged in to, and no server asked, but for @o->check. One that cannot be read is listed
 * without its address. 1: it is not as it should be. */
static int
list_one(const struct options *o, const struct store *s, size_t i, const char *name, json_t *array)
{
    cleanup_secret struct secret value = { NULL, 0 };
    struct told told = { .address = "-" }, is;
    struct err why = ERR_INIT;
    uint8_t point[SIGN_POINT];
    const char *check;

    if (store_value(s, i, &value, &why) == 0 && signer_point_of(value.p, value.n, point, &why) == 0)
        (void)tell(point, &told);
    if (o->check && why.kind == ERR_NONE)
        (void)look_at(o, &value, &is, &why);
    check = why.kind == ERR_NONE ? "ok" : why.code;
    if (array == NULL && o->check)
        printf("%-24s %-42s %s\n", name, told.address, check);
    else if (array == NULL)
        printf("%-24s %s\n", name, told.address);
    else
        json_array_append_new(array, json_pack("{s:s, s:s, s:s*, s:s*}", "name", name, "address", told.address,
                                               "publicKey", told.point[0] != '\0' ? told.point : NULL, "check",
                                               o->check ? check : NULL));
    if (o->check && why.kind != ERR_NONE)
        fprintf(stderr, "%s: %s\n", name, why.msg);
    return why.kind != ERR_NONE;
}

static int
list_end(json_t *array, struct err *err)
{
    json_t *all = json_pack("{s:O}", "keys", array);
    const int r = all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) < 0
                      ? err_set(err, ERR_SYSTEM, "vault.output", "the answer could not be written") : 0;

    printf("\n");
    json_decref(all);
    return r;
}

static int
cmd_list(const struct options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_free struct store_meta *m = malloc(sizeof(*m));
    json_t *array = o->json ? json_array() : NULL;
    int bad = 0, r = m == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : 0;

    if (r == 0 && ((o->check && secret_memory_init(err) < 0) || store_open(&s, false, err) < 0))
        r = -1;
    if (r == 0 && array == NULL)
        printf(o->check ? "%-24s %-42s CHECK\n" : "%-24s %s\n", "NAME", "ADDRESS");
    for (size_t i = 0; r == 0 && i < s.file.n; i++) {
        if (s.file.records[i].kind != STORE_SIGNING)
            continue;
        r = store_meta_at(&s, i, m, err);
        if (r == 0)
            bad += list_one(o, &s, i, m->name, array);
    }
    if (r == 0 && array != NULL)
        r = list_end(array, err);
    json_decref(array);
    return r == 0 && o->check && bad > 0
               ? err_set(err, ERR_DENIED, "sign.check", "%d of these keys cannot be used", bad) : r;
}

static int
cmd_remove(const struct options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;

    if (store_open(&s, true, err) < 0 || store_remove_key(&s, o->name, err) < 0)
        return -1;
    printf("%s is gone; a daemon that signs with it does so until it is restarted\n", o->name);
    return 0;
}

/* --- the policy --------------------------------------------------------------------------------------------------- */

static int
cmd_policy(const struct options *o, struct err *err)
{
    cleanup_free char *text = sign_policy_text();

    (void)o;
    if (text == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    printf("%s\n", text);
    return 0;
}

/* What cloche serve asks before it starts, too. */
static int
cmd_check(const struct options *o, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(POLICY_TEXT_MAX);
    char address[SIGN_ADDRESS_TEXT + 1];
    struct sign_key *key;

    if (o->file != NULL && signer_policy(o->file, &text, err) < 0)
        return -1;
    if (secret_memory_init(err) < 0 || (key = signer_key(o->name, err)) == NULL)
        return -1;
    sign_key_address_text(key, address);
    sign_key_free(key);
    printf("%s: %s%s%s\n", o->name, address, o->file != NULL ? "; good: " : "", o->file != NULL ? o->file : "");
    return 0;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static const struct verb {
    const char *name;
    int (*run)(const struct options *o, struct err *err);
    unsigned operands, needs;
    const char *flags, *usage, *help;
} verbs[] = {
    { "add", cmd_add, 1, 1, "gxfjmtouca", "NAME", "keep a private key; or make one" },
    { "ls", cmd_list, 0, 0, "jk", "", "names and addresses, as they are kept; never keys" },
    { "rm", cmd_remove, 1, 1, "", "NAME", "remove a key: without a copy of it, its account is lost" },
    { "policy", cmd_policy, 0, 0, "", "", "print the standard signing policy, to be changed" },
    { "check", cmd_check, 2, 1, "", "NAME [POLICY]", "whether that key can be read, and that file is a policy" },
};

static const struct flag {
    const char *name, *value;
    char letter;
    const char *help;
} flags[] = {
    { "--generate", NULL, 'g', "make a new key" },
    { "--from-env", "VARIABLE", 'x', "take the key from this variable" },
    { "--from-file", "FILE", 'f', "take the key from this file" },
    { "--module", "FILE", 'm', "the key is in a token of this PKCS#11 module; what is read is its PIN" },
    { "--token", "LABEL", 't', "... the token's label" },
    { "--object", "LABEL", 'o', "... the key's label" },
    { "--url", "URL", 'u', "a server signs (docs/signing.md); what is read is what it knows its caller by" },
    { "--ca", "FILE", 'c', "... certificates that it may have, besides the host's" },
    { "--address", "ADDRESS", 'a', "the key is the one of this address, or it is not kept" },
    { "--check", NULL, 'k', "log in to each token and ask each server whether it still has that key" },
    { "--json", NULL, 'j', "one JSON object" },
};

static int
usage(const struct verb *only)
{
    if (only != NULL) {
        printf("usage: cloche signer %s [flags] %s\n\n%s\n\n", only->name, only->usage, only->help);
    } else {
        printf("usage: cloche signer VERB ...\n\n");
        for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
            printf("  %-8s %-14s %s\n", verbs[i].name, verbs[i].usage, verbs[i].help);
        printf("\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        char left[48];

        if (only != NULL && strchr(only->flags, flags[i].letter) == NULL)
            continue;
        snprintf(left, sizeof(left), "%s%s%s", flags[i].name, flags[i].value != NULL ? " " : "",
                 flags[i].value != NULL ? flags[i].value : "");
        printf("  %-22s %s\n", left, flags[i].help);
    }
    if (only == NULL)
        printf("\nA key comes from the terminal, standard input, --from-env or --from-file, never from the command\n"
               "line. signing-key and signing-policy of cloche serve use it; docs/signing.md says how.\n");
    return 0;
}

/* One word that begins with a dash: how many words it took, or -1. */
static int
flag(struct options *o, const struct verb *v, int argc, char **argv, struct err *err)
{
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        o->help = true;
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (strcmp(flags[i].name, argv[0]) != 0 || strchr(v->flags, flags[i].letter) == NULL)
            continue;
        if (flags[i].value != NULL && argc < 2)
            return err_set(err, ERR_USAGE, "sign.flag", "%s needs a value", flags[i].name);
        switch (flags[i].letter) {
        case 'g': o->generate = true; break;
        case 'x': o->from_env = argv[1]; break;
        case 'f': o->from_file = argv[1]; break;
        case 'm': o->module = argv[1]; break;
        case 't': o->token = argv[1]; break;
        case 'o': o->object = argv[1]; break;
        case 'u': o->url = argv[1]; break;
        case 'c': o->ca = argv[1]; break;
        case 'a': o->address = argv[1]; break;
        case 'k': o->check = true; break;
        default: o->json = true; break;
        }
        return flags[i].value != NULL ? 2 : 1;
    }
    /* what stands here may be a key that somebody tried to give: it is not repeated */
    err_set(err, ERR_USAGE, "sign.flag", "`cloche signer %s` has no such flag", v->name);
    return err_hint(err, "`cloche signer %s --help` lists them", v->name);
}

static int
parse(struct options *o, const struct verb *v, int argc, char **argv, struct err *err)
{
    unsigned operands = 0;
    uint8_t address[TX_ADDRESS];

    for (int i = 0, took; i < argc; i += took) {
        took = 1;
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            took = flag(o, v, argc - i, argv + i, err);
        } else if (operands == v->operands) {
            err_set(err, ERR_USAGE, "sign.operand", "`cloche signer %s` takes %s", v->name,
                    v->operands == 0 ? "no operand" : v->usage);
            return err_hint(err, "a key is never given on the command line: every user of the host could read it");
        } else if (operands++ == 0) {
            o->name = argv[i];
        } else {
            o->file = argv[i];
        }
        if (took < 0)
            return -1;
    }
    if (o->help)
        return 0;
    if (operands < v->needs)
        return err_set(err, ERR_USAGE, "sign.operand", "`cloche signer %s` needs %s", v->name, v->usage);
    if (o->name != NULL && !store_name_valid(str_of(o->name))) {
        err_set(err, ERR_USAGE, "sign.name", "that is no name of a key");
        return err_hint(err, "up to %d letters, digits, \"-\", \"_\" and \".\"", VAULT_NAME_MAX);
    }
    if ((o->module != NULL) != (o->token != NULL) || (o->module != NULL) != (o->object != NULL) ||
        (o->module != NULL && o->generate)) {
        err_set(err, ERR_USAGE, "sign.flag", "a key in a token is named by --module, --token and --object, all three");
        return err_hint(err, "make it with the token's own program; --generate makes one in the vault");
    }
    if ((o->url != NULL && (o->module != NULL || o->generate)) || (o->ca != NULL && o->url == NULL))
        return err_set(err, ERR_USAGE, "sign.flag", "--url is for a server alone, and --ca belongs to it");
    if (o->address != NULL && (o->generate || !sign_address_parse(str_of(o->address), address))) {
        err_set(err, ERR_USAGE, "sign.flag", "--address takes the address that a key has which is there already");
        return err_hint(err, "0x and 40 hexadecimal digits, the letters as wallets write them (EIP-55) or all small");
    }
    return o->generate + (o->from_env != NULL) + (o->from_file != NULL) > 1
               ? err_set(err, ERR_USAGE, "sign.flag", "only one of --generate, --from-env, --from-file") : 0;
}

int
signer_cmd(int argc, char **argv)
{
    struct options o = { .name = NULL };
    const struct verb *v = NULL;
    struct err err = ERR_INIT;
    int r;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(NULL);
        return argc < 2 ? EXIT_REFUSED : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, argv[1]) == 0)
            v = &verbs[i];
    if (v == NULL) {
        err_set(&err, ERR_USAGE, "sign.verb", "`cloche signer` has no verb \"%.40s\"", argv[1]);
        err_hint(&err, "add, ls, rm, policy, check");
        return cmd_fail(&err);
    }
    r = parse(&o, v, argc - 2, argv + 2, &err);
    if (r == 0 && o.help)
        usage(v);
    else if (r == 0)
        r = v->run(&o, &err);
    if (r == 0 && fflush(stdout) != 0)
        r = err_set(&err, ERR_SYSTEM, "vault.output", "the answer could not be written");
    return r < 0 ? cmd_fail(&err) : 0;
}
