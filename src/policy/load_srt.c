/* policy/load_srt.c: settings files of SRT
 *
 * Every key of the format is known here. Rules about files, unix sockets, variables and hosts become ours. Keys that
 * narrow an open network in a way that egress cannot keep hold trivially while it is closed, and are refused as
 * `policy.srt.not-yet` where a host is allowed; so is what would open something else. Keys for other systems are
 * checked and have no effect. A key that would weaken the wall on Linux has no effect either: ours needs no weakening.
 */
#include <string.h>

#include "base/array.h"
#include "match/ip.h"
#include "policy/schema.h"

static int
not_yet(struct loader *l, const struct node *v, const char *what)
{
    schema_fail(l, v, "policy.srt.not-yet", "%s is not in this release", what);
    return err_hint(l->err, "leave it out, or write it false or empty");
}

/* Checked for its type (num), otherwise without effect. */
static int
check_type(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_expect(l, v, (enum node_type)rule->num);
}

static int
check_string(struct loader *l, const struct node *v, const void *arg)
{
    (void)arg;
    return schema_expect(l, v, NODE_STRING);
}

static int
check_strings(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, check_string, rule);
}

/* A map whose values are strings, or lists of strings (num is the node type). */
static int
check_string_map(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    for (const struct node *m = v->first; m != NULL; m = m->next) {
        size_t mark = schema_enter_key(l, m->key);
        if (rule->num == NODE_LIST ? check_strings(l, m, rule) < 0 : schema_expect(l, m, NODE_STRING) < 0)
            return -1;
        schema_leave(l, mark);
    }
    return 0;
}

/* One of the words in arg, separated by blanks. */
static int
check_word(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    const char *words = rule->arg;

    if (schema_expect(l, v, NODE_STRING) < 0)
        return -1;
    for (const char *at = words; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (str_eq(v->text, (struct str){ at, n }))
            return 0;
        at += n + (at[n] == ' ');
    }
    schema_fail(l, v, "policy.srt.word", "not one of the known words");
    return err_hint(l->err, "use one of: %s", words);
}

/* A switch that needs a proxy when it is on; arg says what it is. */
static int
bool_not_yet(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    return v->truth ? not_yet(l, v, rule->arg) : 0;
}

/* A map, list or port that needs a proxy when it says anything. */
static int
value_not_yet(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_expect(l, v, (enum node_type)rule->num) < 0)
        return -1;
    return v->type == NODE_NUMBER || v->type == NODE_STRING || v->n > 0 ? not_yet(l, v, rule->arg) : 0;
}

/* "ADDRESS" or "ADDRESS/BITS"; without bits it is the one address. */
static bool
parse_range(struct str text, struct ip *first, uint64_t *bits)
{
    const char *slash = text.n > 0 ? memchr(text.p, '/', text.n) : NULL;
    struct str address = { text.p, slash != NULL ? (size_t)(slash - text.p) : text.n };
    struct str digits = { slash != NULL ? slash + 1 : NULL, slash != NULL ? text.n - address.n - 1 : 0 };

    if (!ip_parse(address, first))
        return false;
    *bits = first->family == 4 ? 32 : 128;
    return slash == NULL || str_parse_u64(digits, *bits, bits);
}

/* Whether all of a range is closed to names anyway: egress dials a non-public address only for a rule that is that
 * address, which SRT exempts too. A range whose ends are of one such class lies in that class's block: a larger one
 * would begin before the block, or end behind it. */
static bool
range_closed(struct str text)
{
    struct ip first, last;
    uint64_t bits;

    if (!parse_range(text, &first, &bits))
        return false;
    last = first;
    for (size_t i = (size_t)bits; i < (first.family == 4 ? 32U : 128U); i++) {
        uint8_t bit = (uint8_t)(0x80 >> i % 8);
        first.b[i / 8] &= (uint8_t)~bit;
        last.b[i / 8] |= bit;
    }
    return ip_classify(first) != IP_PUBLIC && ip_classify(first) == ip_classify(last);
}

static int
check_range(struct loader *l, const struct node *v, const void *arg)
{
    char shown[SHOW_MAX];
    struct ip ip;
    uint64_t bits;

    (void)arg;
    return parse_range(v->text, &ip, &bits)
               ? 0 : schema_fail(l, v, "policy.srt.address", "%s is neither an address nor a range",
                                 show(v->text, shown));
}

static int
check_resolved(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return check_strings(l, v, rule) < 0 ? -1 : schema_items(l, v, check_range, rule);
}

static const struct key_rule network_rules[] = {
    { "deniedDomainReasons", NULL, check_string_map, NULL, NODE_STRING },
    { "strictAllowlist", NULL, check_type, NULL, NODE_BOOL },
    { "deniedResolvedAddresses", NULL, check_resolved, NULL, 0 },
    { "allowMachLookup", NULL, check_strings, NULL, 0 },
    { "httpProxyPort", NULL, value_not_yet, "an HTTP proxy of one's own", NODE_NUMBER },
    { "socksProxyPort", NULL, value_not_yet, "a SOCKS proxy of one's own", NODE_NUMBER },
    { "mitmProxy", NULL, value_not_yet, "an intercepting proxy", NODE_MAP },
    { "parentProxy", "network.parentProxy", apply_map, NULL, 0 },
    { "tlsTerminate", NULL, value_not_yet, "TLS interception", NODE_MAP },
    { "allowPlaintextHeaderSet", NULL, bool_not_yet, "setting headers", 0 },
    { "stripResponseHeaders", NULL, check_strings, NULL, 0 },
    { "refuseOpaqueTunnels", NULL, check_type, NULL, NODE_BOOL },
    { "requireHostMatch", NULL, check_type, NULL, NODE_BOOL },
    { "ambiguousRequestTarget", NULL, check_word, "refuse asSpelled normalize", 0 },
    { NULL },
};

static const struct key_rule filesystem_rules[] = {
    { "disabled", NULL, bool_not_yet, "switching the file rules off", 0 },
    { NULL },
};

/* Shared by files and envVars: what only masking needs. */
#define MASK_RULES \
    { "mode", NULL, check_word, "deny mask", 0 }, \
    { "extract", NULL, check_type, NULL, NODE_STRING }, \
    { "onExtractNoMatch", NULL, check_word, "warn deny error", 0 }, \
    { "decode", NULL, check_word, "jwt", 0 }, \
    { "maskClaims", NULL, check_strings, NULL, 0 }, \
    { "injectHosts", NULL, check_strings, NULL, 0 }

static const struct key_rule secret_file_rules[] = {
    { "path", NULL, check_type, NULL, NODE_STRING },
    { "maskDuplicates", NULL, check_type, NULL, NODE_BOOL },
    MASK_RULES,
    { NULL },
};

static const struct key_rule secret_env_rules[] = {
    { "name", NULL, check_type, NULL, NODE_STRING },
    MASK_RULES,
    { NULL },
};

/* `deny` is a read rule, or a variable that is not handed on; `mask` needs the vault and a proxy. */
static int
apply_secret(struct loader *l, const struct node *v, const void *arg)
{
    bool files = ((const struct key_rule *)arg)->num == 1;
    const struct node *what = node_member(v, files ? "path" : "name"), *mode = node_member(v, "mode");
    struct where w;

    if (schema_walk(l, v, NULL, files ? secret_file_rules : secret_env_rules) < 0)
        return -1;
    if (what == NULL || mode == NULL)
        return schema_fail(l, v, "policy.srt.required", "%s and mode are required", files ? "path" : "name");
    if (str_eq(mode->text, STR_LIT("mask")))
        return not_yet(l, mode, "masking credentials");
    w = schema_where(l, v);
    return list_add(l->p, files ? &l->p->deny_read : &l->p->env_deny, files ? ENTRY_PATH : ENTRY_ENV_NAME, what->text,
                    &w, l->err);
}

static int
apply_secrets(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    return schema_items(l, v, apply_secret, rule);
}

static const struct key_rule sigv4_rules[] = {
    { "streaming", NULL, check_word, "deny passthrough", 0 },
    { "presigned", NULL, check_word, "deny passthrough", 0 },
    { "sigv4a", NULL, check_word, "deny passthrough", 0 },
    { NULL },
};

static const struct key_rule credentials_rules[] = {
    { "files", NULL, apply_secrets, NULL, 1 },
    { "envVars", NULL, apply_secrets, NULL, 0 },
    { "allowPlaintextInject", NULL, bool_not_yet, "injecting credentials", 0 },
    { "awsPairs", NULL, value_not_yet, "signing AWS requests", NODE_LIST },
    { "sigv4", NULL, apply_map, sigv4_rules, 0 },
    { NULL },
};

static const struct key_rule ripgrep_rules[] = {
    { "command", NULL, check_type, NULL, NODE_STRING },
    { "args", NULL, check_strings, NULL, 0 },
    { "argv0", NULL, check_type, NULL, NODE_STRING },
    { NULL },
};

static const struct key_rule seccomp_rules[] = {
    { "applyPath", NULL, check_type, NULL, NODE_STRING },
    { "argv0", NULL, check_type, NULL, NODE_STRING },
    { NULL },
};

static const struct key_rule git_rules[] = {
    { "safeDirectories", NULL, check_strings, NULL, 0 },
    { NULL },
};

static const struct key_rule windows_rules[] = {
    { "backend", NULL, check_type, NULL, NODE_STRING },
    { "sandboxUser", NULL, check_type, NULL, NODE_STRING },
    { "sublayerGuid", NULL, check_type, NULL, NODE_STRING },
    { "proxyPortRange", NULL, check_type, NULL, NODE_STRING },
    { "srtWin", NULL, check_type, NULL, NODE_STRING },
    { NULL },
};

static const struct key_rule top_rules[] = {
    { "network", "network", apply_map, network_rules, 0 },
    { "filesystem", "filesystem", apply_map, filesystem_rules, 0 },
    { "credentials", NULL, apply_map, credentials_rules, 0 },
    { "ignoreViolations", NULL, check_string_map, NULL, NODE_LIST },
    { "enableWeakerNestedSandbox", NULL, check_type, NULL, NODE_BOOL },
    { "enableWeakerNetworkIsolation", NULL, check_type, NULL, NODE_BOOL },
    { "allowAppleEvents", NULL, check_type, NULL, NODE_BOOL },
    { "allowPty", NULL, check_type, NULL, NODE_BOOL },
    { "ripgrep", NULL, apply_map, ripgrep_rules, 0 },
    { "seccomp", NULL, apply_map, seccomp_rules, 0 },
    { "bwrapPath", NULL, check_type, NULL, NODE_STRING },
    { "socatPath", NULL, check_type, NULL, NODE_STRING },
    { "javaAgentJarPath", NULL, check_type, NULL, NODE_STRING },
    { "git", NULL, apply_map, git_rules, 0 },
    { "windows", NULL, apply_map, windows_rules, 0 },
    { NULL },
};

static int
check_required(struct loader *l, const struct node *root)
{
    static const struct { const char *map, *key; } required[] = {
        { "network", NULL }, { "network", "allowedDomains" }, { "network", "deniedDomains" }, { "filesystem", NULL },
        { "filesystem", "denyRead" }, { "filesystem", "allowWrite" }, { "filesystem", "denyWrite" },
    };

    for (size_t i = 0; i < ARRAY_LEN(required); i++) {
        const struct node *map = node_member(root, required[i].map);
        if (required[i].key == NULL ? map != NULL : node_member(map, required[i].key) != NULL)
            continue;
        if (map != NULL && map->type != NODE_MAP)
            continue;       /* the walk names the wrong type */
        schema_fail(l, map != NULL ? map : root, "policy.srt.required", "%s%s%s is required", required[i].map,
                    required[i].key != NULL ? "." : "", required[i].key != NULL ? required[i].key : "");
        return err_hint(l->err, "an empty list is a valid value; a missing one is not");
    }
    return 0;
}

/* Whether egress keeps what @v, the value of a key that narrows the network, asks for. */
static bool
kept(const char *key, const struct node *v)
{
    if (strcmp(key, "stripResponseHeaders") == 0)
        return v->n == 0;
    if (strcmp(key, "refuseOpaqueTunnels") == 0)
        return !v->truth;
    if (strcmp(key, "ambiguousRequestTarget") == 0)
        return str_eq(v->text, STR_LIT("asSpelled"));
    for (const struct node *item = v->first; item != NULL; item = item->next)
        if (!range_closed(item->text))
            return false;
    return true;
}

/* Where a host is allowed, keys that would narrow how it is reached have to be kept. After the walk: their types are
 * right. */
static int
check_narrowing(struct loader *l, const struct node *network)
{
    static const struct { const char *key, *what; } narrowing[] = {
        { "deniedResolvedAddresses", "refusing public addresses that an allowed name resolves to" },
        { "stripResponseHeaders", "stripping headers" },
        { "refuseOpaqueTunnels", "refusing tunnels that cannot be looked into" },
        { "ambiguousRequestTarget", "judging how a request's target is spelled" },
    };

    for (size_t i = 0; i < ARRAY_LEN(narrowing); i++) {
        const struct node *v = node_member(network, narrowing[i].key);
        size_t mark;
        if (v == NULL || kept(narrowing[i].key, v))
            continue;
        mark = schema_enter_key(l, STR_LIT("network"));
        schema_enter_key(l, str_of(narrowing[i].key));
        not_yet(l, v, narrowing[i].what);
        schema_leave(l, mark);
        return -1;
    }
    return 0;
}

int
srt_apply(struct loader *l, const struct node *root)
{
    struct policy *p = l->p;

    if (schema_expect(l, root, NODE_MAP) < 0 || check_required(l, root) < 0 || preset_srt(p, l->err) < 0)
        return -1;
    if (schema_walk(l, root, "", top_rules) < 0)
        return -1;
    if (p->allow_domains.n > 0 && check_narrowing(l, node_member(root, "network")) < 0)
        return -1;
    if (!origin_explicit(&p->network.from) && p->allow_domains.n > 0) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = p->allow_domains.from;
    }
    return 0;
}
