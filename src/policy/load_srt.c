/* policy/load_srt.c: settings files of SRT
 *
 * Every key of the format is known here. Rules about files, unix sockets, variables and hosts become ours, and what
 * looks into connections too. What narrows an open network in a way that egress cannot keep (deniedResolvedAddresses)
 * holds trivially while it is closed, and is refused as `policy.srt.not-yet` where a host is allowed; so is what would
 * open something else. Keys for other systems are
 * checked and have no effect. A key that would weaken the wall on Linux has no effect either: ours needs no weakening.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/ip.h"
#include "policy/schema.h"

/* Why a key is refused that says something, and what does that here. */
struct excuse {
    const char *why, *instead;
};

static int
not_yet(struct loader *l, const struct node *v, const struct excuse *e)
{
    schema_fail(l, v, "policy.srt.not-yet", "%s", e->why);
    return err_hint(l->err, "%s; or leave it out", e->instead);
}

static const struct excuse socks_excuse = {
    "what is said over SOCKS would leave past the lists of hosts, which that proxy alone would have to keep",
    "give the port of an HTTP proxy, as httpProxyPort: SOCKS of the command is judged here, and leaves through that" };
static const struct excuse mitm_excuse = {
    "the sandbox would have to trust that proxy's CA for every host, and a file whose key others hold",
    "tlsTerminate opens TLS here, by a CA whose key is in the vault; parentProxy sends all through one proxy" };
static const struct excuse ca_excuse = {
    "the key of a CA that programs trust would lie in a file, and sign for any host whoever reads it",
    "leave both out: TLS is opened by a CA whose key is in the vault (`cloche secret ca export` has its certificate)" };
static const struct excuse plain_excuse = {
    "whoever is on the way of an unencrypted connection would read the secret",
    "let the secret go to the host by TLS: --secret NAME=BINDING (docs/secrets.md)" };
static const struct excuse files_excuse = {
    "a sandbox without rules about files is none: it could change what the caller runs next",
    "name what may be written, if need be all of it: \"allowWrite\": [\"/\"]" };
static const struct excuse mask_excuse = {
    "mode mask: no secret is taken out of a file or a variable of the caller's",
    "keep the secret with `cloche secret set`, and give its placeholder: --secret NAME, --secret-file PATH=NAME" };
static const struct excuse aws_excuse = {
    "no key is taken out of a variable of the caller's",
    "keep it with `cloche secret set aws --binding aws`: requests are signed outside (docs/secrets.md)" };
static const struct excuse resolved_excuse = {
    "an allowed name is not held against a list of public addresses", "name the hosts in deniedDomains" };
static const struct excuse target_excuse = {
    "normalize: the path that is sent would not be the one that was judged and signed", "use \"refuse\"" };

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

/* A switch that is refused when it is on; arg is the excuse. */
static int
bool_not_yet(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    if (schema_expect(l, v, NODE_BOOL) < 0)
        return -1;
    return v->truth ? not_yet(l, v, rule->arg) : 0;
}

/* A map, list or port that is refused when it says anything. */
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

/* The port of the caller's own proxy on this host, instead of SRT's. The rules hold before it. */
static int
apply_http_port(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);
    char url[40];
    uint64_t port;

    (void)rule;
    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    if (!str_parse_u64(v->text, 65535, &port) || port == 0)
        return schema_fail(l, v, "policy.srt.port", "not a port from 1 to 65535");
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)port);
    return spec_set(l->p, policy_spec_by_key(STR_LIT("network.parent-proxy.http")), str_of(url), &w, l->err);
}

/* Of `network`: everything that is allowed is looked into. */
static int
apply_tls(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    if (schema_expect(l, v, NODE_MAP) < 0)
        return -1;
    set_bool(l->p, policy_spec_by_key(STR_LIT("network.open-tls")), true, &w);
    return apply_map(l, v, rule);
}

/* Without it requests pass as they are spelled: in SRT it concerns a callback, which a file has none of. */
static int
apply_target(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    struct where w = schema_where(l, v);

    if (check_word(l, v, rule) < 0)
        return -1;
    if (str_eq(v->text, STR_LIT("normalize")))
        return not_yet(l, v, &target_excuse);
    set_bool(l->p, policy_spec_by_key(STR_LIT("network.refuse-moving-paths")), str_eq(v->text, STR_LIT("refuse")), &w);
    return 0;
}

/* Limits of SRT's own proxy; here others hold (docs/network.md). */
static int
check_count(struct loader *l, const struct node *v, const struct key_rule *rule)
{
    uint64_t n;

    if (schema_expect(l, v, NODE_NUMBER) < 0)
        return -1;
    return str_parse_u64(v->text, (uint64_t)rule->num, &n) && n > 0
               ? 0 : schema_fail(l, v, "policy.srt.count", "not a whole number from 1 to %u", (unsigned)rule->num);
}

static const struct key_rule tls_rules[] = {
    { "caCertPath", NULL, value_not_yet, &ca_excuse, NODE_STRING },
    { "caKeyPath", NULL, value_not_yet, &ca_excuse, NODE_STRING },
    { "maxTunnels", NULL, check_count, NULL, INT32_MAX },
    { "handshakeTimeoutMs", NULL, check_count, NULL, INT32_MAX },
    { NULL },
};

static const struct key_rule network_rules[] = {
    { "deniedDomainReasons", NULL, check_string_map, NULL, NODE_STRING },
    { "strictAllowlist", NULL, check_type, NULL, NODE_BOOL },
    { "deniedResolvedAddresses", NULL, check_resolved, NULL, 0 },
    { "allowMachLookup", NULL, check_strings, NULL, 0 },
    { "httpProxyPort", NULL, apply_http_port, NULL, 0 },
    { "socksProxyPort", NULL, value_not_yet, &socks_excuse, NODE_NUMBER },
    { "mitmProxy", NULL, value_not_yet, &mitm_excuse, NODE_MAP },
    { "parentProxy", "network.parentProxy", apply_map, NULL, 0 },
    { "tlsTerminate", "network.tlsTerminate", apply_tls, tls_rules, 0 },
    { "allowPlaintextHeaderSet", NULL, check_type, NULL, NODE_BOOL },
    { "requireHostMatch", NULL, check_type, NULL, NODE_BOOL },
    { "ambiguousRequestTarget", NULL, apply_target, "refuse asSpelled normalize", 0 },
    { NULL },
};

static const struct key_rule filesystem_rules[] = {
    { "disabled", NULL, bool_not_yet, &files_excuse, 0 },
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
        return not_yet(l, mode, &mask_excuse);
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
    { "allowPlaintextInject", NULL, bool_not_yet, &plain_excuse, 0 },
    { "awsPairs", NULL, value_not_yet, &aws_excuse, NODE_LIST },
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

/* Where a host is allowed, ranges that its names may not lead to have to be closed to names anyway. After the walk:
 * their types are right. */
static int
check_narrowing(struct loader *l, const struct node *network)
{
    const struct node *v = node_member(network, "deniedResolvedAddresses");
    bool kept = true;

    for (const struct node *item = v != NULL ? v->first : NULL; item != NULL; item = item->next)
        kept = kept && range_closed(item->text);
    if (kept)
        return 0;
    schema_enter_key(l, STR_LIT("network"));
    schema_enter_key(l, STR_LIT("deniedResolvedAddresses"));
    return not_yet(l, v, &resolved_excuse);
}

/* SRT's proxy knows its parent; the caller's own would be instead of SRT's. */
static int
check_one_proxy(struct loader *l, const struct node *network)
{
    const struct node *port = node_member(network, "httpProxyPort");

    if (port == NULL || node_member(network, "parentProxy") == NULL)
        return 0;
    schema_fail(l, port, "policy.srt.proxies", "network.httpProxyPort and network.parentProxy are two ways out");
    return err_hint(l->err, "keep one of the two");
}

int
srt_apply(struct loader *l, const struct node *root)
{
    struct policy *p = l->p;

    if (schema_expect(l, root, NODE_MAP) < 0 || check_required(l, root) < 0 || preset_srt(p, l->err) < 0)
        return -1;
    if (schema_walk(l, root, "", top_rules) < 0)
        return -1;
    if (check_one_proxy(l, node_member(root, "network")) < 0)
        return -1;
    if (p->allow_domains.n > 0 && check_narrowing(l, node_member(root, "network")) < 0)
        return -1;
    if (!origin_explicit(&p->network.from) && p->allow_domains.n > 0) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = p->allow_domains.from;
    }
    return 0;
}
