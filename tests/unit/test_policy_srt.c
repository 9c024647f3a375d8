/* policy: SRT settings: every key of the format, its rules as ours, its refusals (R01, R02, R03, R04) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "policy_fixture.h"

#define OPEN "\"network\": {\"allowedDomains\": [\"example.org\"], \"deniedDomains\": []"   /* the map stays open */
#define NET "\"network\": {\"allowedDomains\": [], \"deniedDomains\": []}"
#define FS "\"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": []}"

static void
load_ok(struct policy *p, const char *text)
{
    struct err err = ERR_INIT;

    if (make_policy(p, MODE_STANDARD, VERB_SRT, text, POLICY_SRT, NULL, &err) < 0)
        fail_msg("%s\n  %s [%s]\nin:\n%s", err.msg, err.hint, err.code, text);
}

static void
usual_settings(void **state)
{
    struct policy p;

    (void)state;
    load_ok(&p,
            "{ \"network\": {\n"
            "    \"allowedDomains\": [\"github.com\", \"*.github.com\", \"registry.example:8443\", \"127.0.0.1\"],\n"
            "    \"deniedDomains\": [\"evil.github.com\", \"*:22\"],\n"
            "    \"deniedDomainReasons\": {\"*:22\": \"no ssh\"}, \"strictAllowlist\": true,\n"
            "    \"deniedResolvedAddresses\": [\"10.0.0.0/8\", \"fd00::/8\", \"192.0.2.1\"],\n"
            "    \"allowUnixSockets\": [\"/var/run/docker.sock\"], \"allowLocalBinding\": true },\n"
            "  \"filesystem\": {\n"
            "    \"denyRead\": [\"~/.ssh\", {\"path\": \"./a[1]\", \"literal\": true}],\n"
            "    \"allowRead\": [\"~/.ssh/known_hosts\"],\n"
            "    \"allowWrite\": [\".\", \"/tmp/**\"], \"denyWrite\": [\".env\", \"**/*.lock\"],\n"
            "    \"allowGitConfig\": true },\n"
            "  \"mandatoryDenySearchDepth\": 7, \"allowNestedUserNamespaces\": true }");
    assert_true(p.srt);
    assert_int_equal(p.view.v, VIEW_HOST);
    assert_true(p.env_inherit.v);
    assert_int_equal(p.env_deny.n, 0);
    assert_int_equal(p.network.v, NETWORK_ALLOWLIST);
    assert_int_equal(p.allow_domains.n, 4);
    assert_int_equal(p.deny_domains.n, 2);
    assert_true(list_has(&p.unix_sockets, "/var/run/docker.sock"));
    assert_true(p.allow_local_binding.v && p.nested_userns.v);
    assert_true(list_has(&p.deny_read, "/home/u/.ssh") && list_has(&p.deny_read, "/home/u/app/a[1]"));
    assert_true(p.deny_read.v[1].literal);
    assert_true(list_has(&p.allow_read, "/home/u/.ssh/known_hosts"));
    assert_true(list_has(&p.allow_write, "/home/u/app") && list_has(&p.allow_write, "/tmp"));
    assert_true(list_has(&p.allow_write, "/tmp/claude") && list_has(&p.allow_write, "/home/u/.npm/_logs"));
    assert_true(list_has(&p.allow_write, "/home/u/.claude/debug"));
    assert_true(list_has(&p.deny_write, "/home/u/app/.env") && list_has(&p.deny_write, "/home/u/app/**/*.lock"));
    assert_int_equal(p.protect_depth.v, 7);
    assert_true(list_has(&p.protect, ".git/hooks") && !list_has(&p.protect, ".git/config"));
    assert_string_equal(p.workdir.p, "/home/u/app");
    assert_null(p.hostname.p);
    policy_free(&p);
}

/* Exactly SRT's mandatory names: its users' other `.claude` files stay writable. */
static void
protected_names_are_srts(void **state)
{
    static const char *const names[] = {
        ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
        ".mcp.json", ".vscode", ".idea", ".claude/commands", ".claude/agents", ".git/hooks", ".git/config",
        ".cloche-apply" };      /* the last one is not SRT's */
    struct policy p;

    (void)state;
    load_ok(&p, "{" NET "," FS "}");
    assert_int_equal(p.protect.n, N(names));
    for (size_t i = 0; i < N(names); i++)
        assert_true(list_has(&p.protect, names[i]));
    assert_int_equal(p.network.v, NETWORK_NONE);
    assert_int_equal(p.allow_write.n, 3);
    policy_free(&p);
}

/* `cloche run --settings` takes an SRT file for what it is. */
static void
recognised_by_content(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;
    static const char text[] = "{" NET "," FS "}";

    (void)state;
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    assert_int_equal(policy_load_bytes(&p, "any.json", text, strlen(text), POLICY_AUTO, &caller, &err), 0);
    assert_int_equal(policy_validate(&p, &err), 0);
    assert_true(p.srt);
    assert_int_equal(p.view.v, VIEW_HOST);
    assert_int_equal(p.protect.n, 16);
    policy_free(&p);
}

/* Every other key of the format, with values that ask for nothing that is missing. */
static void
every_key_is_known(void **state)
{
    static const char *const more[] = {
        "\"credentials\": {\"files\": [{\"path\": \"~/.netrc\", \"mode\": \"deny\"}], \"envVars\": [{\"name\": \"TOKEN\", "
        "\"mode\": \"deny\"}], \"allowPlaintextInject\": false, \"awsPairs\": [], \"sigv4\": {\"streaming\": \"deny\", "
        "\"presigned\": \"passthrough\", \"sigv4a\": \"deny\"}}",
        "\"ignoreViolations\": {\"*\": [\"/x\"]}", "\"enableWeakerNestedSandbox\": true",
        "\"enableWeakerNetworkIsolation\": true", "\"allowAppleEvents\": true", "\"allowPty\": true",
        "\"ripgrep\": {\"command\": \"rg\", \"args\": [\"-x\"], \"argv0\": \"rg\"}",
        "\"seccomp\": {\"applyPath\": \"/x\", \"argv0\": \"y\"}",
        "\"bwrapPath\": \"/usr/bin/bwrap\", \"socatPath\": \"/usr/bin/socat\", \"javaAgentJarPath\": \"/x.jar\"",
        "\"git\": {\"safeDirectories\": [\"/x\"]}",
        ("\"windows\": {\"backend\": \"a\", \"sandboxUser\": \"b\", \"sublayerGuid\": \"c\", \"proxyPortRange\": \"d\", "
         "\"srtWin\": \"e\"}"),
    };
    static const char *const network[] = {
        "\"allowAllUnixSockets\": true", "\"allowMachLookup\": [\"x\"]", "\"mitmProxy\": {}",
        "\"parentProxy\": {\"http\": \"http://u:p@proxy.x:3128\", \"https\": \"\", \"noProxy\": \"localhost,.x.org\"}",
        "\"tlsTerminate\": {}", "\"allowPlaintextHeaderSet\": false", "\"stripResponseHeaders\": [\"X\"]",
        "\"refuseOpaqueTunnels\": true", "\"requireHostMatch\": true", "\"ambiguousRequestTarget\": \"refuse\"",
    };
    static const char *const open_network[] = {
        "\"stripResponseHeaders\": [\"X\"]", "\"refuseOpaqueTunnels\": true", "\"requireHostMatch\": true",
        "\"ambiguousRequestTarget\": \"refuse\"", "\"tlsTerminate\": {\"maxTunnels\": 5}",
        "\"ambiguousRequestTarget\": \"asSpelled\"", "\"strictAllowlist\": true", "\"deniedDomainReasons\": {\"x\": \"y\"}",
        "\"deniedResolvedAddresses\": [\"10.0.0.0/8\", \"172.16.0.0/12\", \"192.168.1.7\", \"127.0.0.0/8\", \"fc00::/7\"]",
    };
    char text[1024];
    struct policy p;

    (void)state;
    for (size_t i = 0; i < N(open_network); i++) {
        snprintf(text, sizeof(text), "{" OPEN ", %s}, " FS "}", open_network[i]);
        load_ok(&p, text);
        assert_int_equal(p.network.v, NETWORK_ALLOWLIST);
        policy_free(&p);
    }
    for (size_t i = 0; i < N(more); i++) {
        snprintf(text, sizeof(text), "{" NET ", " FS ", %s}", more[i]);
        load_ok(&p, text);
        if (i == 0) {
            assert_true(list_has(&p.deny_read, "/home/u/.netrc"));
            assert_true(list_has(&p.env_deny, "TOKEN"));
        }
        policy_free(&p);
    }
    for (size_t i = 0; i < N(network); i++) {
        snprintf(text, sizeof(text), "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], %s}, " FS "}", network[i]);
        load_ok(&p, text);
        policy_free(&p);
    }
}

/* As its own program: what it does not know has no effect, and is said. Elsewhere the same file is refused. */
static void
notes(void **state)
{
    static const char text[] = "{\"$schema\": \"https://x.org/s\", \"version\": 1, // mine\n" NET "," FS
                               ", /* \"filesystem\": 5 */ \"colour\": {\"a\": \"http://x // y \\\" /* z\"}}";
    static const char *const said[] = { "comments", "$schema", "version", "colour" };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    if (make_policy(&p, MODE_STANDARD, VERB_SRT, text, POLICY_SRT, NULL, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(p.notes.n, N(said));
    for (size_t i = 0; i < N(said); i++)
        assert_non_null(strstr(p.notes.v[i].value, said[i]));
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, text, POLICY_SRT, NULL, &err), -1);
    assert_string_equal(err.code, "policy.json.syntax");
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, "{\"$schema\": \"x\"," NET "," FS "}", POLICY_SRT, NULL,
                                 &err), -1);
    assert_string_equal(err.code, "policy.unknown-key");
    policy_free(&p);
}

/* A comment that does not end is none; what follows is judged as it stands. */
static void
odd_comments(void **state)
{
    static const char *const texts[] = { "{" NET "," FS "} /* x", "{" NET "," FS "} /", "{" NET "," FS ", / }", "/*/" };
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_SRT, texts[i], POLICY_SRT, NULL, &err), -1);
        policy_free(&p);
    }
}

static void
refusals(void **state)
{
    static const struct { const char *text, *code; unsigned line; const char *word; } rows[] = {
        { "", "policy.file.empty", 0, "srt.json" },
        { "   ", "policy.json.syntax", 0, "srt.json" },
        { "{}", "policy.srt.required", 1, "network" },
        { "[]", "policy.type", 1, "a map" },
        { "{" NET "}", "policy.srt.required", 1, "filesystem" },
        { "{" FS "}", "policy.srt.required", 1, "network" },
        { "{\"network\": {\"allowedDomains\": []}, " FS "}", "policy.srt.required", 1, "network.deniedDomains" },
        { "{" NET ",\n\"filesystem\": {\"denyRead\": [], \"allowWrite\": []}}", "policy.srt.required", 2, "denyWrite" },
        { "{\"network\": [], " FS "}", "policy.type", 1, "network" },
        { "{" NET "," FS ",\n\"filesytem\": {}}", "policy.unknown-key", 2, "\"filesystem\"" },
        { "{\"network\": {\"allowedDomains\": [],\n\"deniedDomains\": [], \"allow-unix-sockets\": []}, " FS "}",
          "policy.unknown-key", 2, "allowUnixSockets" },
        { "{" NET ", \"filesystem\": {\"denyRead\": [\n\"~/x\", 5], \"allowWrite\": [], \"denyWrite\": []}}",
          "policy.type", 2, "filesystem.denyRead[1]" },
        { "{\"network\": {\"allowedDomains\": [\"*\"], \"deniedDomains\": []}, " FS "}", "policy.host.any", 1,
          "network.allowedDomains[0]" },
        { "{\"network\": {\"allowedDomains\": [\"*.com\"], \"deniedDomains\": []}, " FS "}", "policy.host.too-wide", 1,
          "*.com" },
        { "{\"network\": {\"allowedDomains\": [\"http://x.org\"], \"deniedDomains\": []}, " FS "}", "policy.host.url", 1,
          "http://x.org" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [\"**.x.org\"]}, " FS "}", "policy.host.star", 1,
          "**.x.org" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"deniedResolvedAddresses\": [\"10.0.0.0/33\"]}, " FS
          "}", "policy.srt.address", 1, "10.0.0.0/33" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"httpProxyPort\": 0}, " FS "}",
          "policy.srt.port", 1, "httpProxyPort" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"socksProxyPort\": 1080}, " FS "}",
          "policy.srt.not-yet", 1, "SOCKS" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"httpProxyPort\": 3128, \"parentProxy\": {}}, " FS
          "}", "policy.srt.proxies", 1, "httpProxyPort" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"mitmProxy\": {\"socketPath\": \"/x\"}}, " FS "}",
          "policy.srt.not-yet", 1, "mitmProxy" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"tlsTerminate\": {\"caCertPath\": \"/x\"}}, " FS
          "}", "policy.srt.not-yet", 1, "tlsTerminate" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"parentProxy\": {\"http\": \"https://x\"}}, " FS "}",
          "policy.network.parent", 1, "parentProxy.http" },
        { "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": [], \"ambiguousRequestTarget\": \"x\"}, " FS "}",
          "policy.srt.word", 1, "asSpelled" },
        /* what narrows an open network and cannot be kept: not dropped (the closed network keeps it, see above) */
        { "{" OPEN ",\n\"deniedResolvedAddresses\": [\"10.0.0.0/8\", \"203.0.112.0/22\"]}, " FS "}", "policy.srt.not-yet", 2,
          "network.deniedResolvedAddresses" },
        { "{" OPEN ", \"deniedResolvedAddresses\": [\"0.0.0.0/0\"]}, " FS "}", "policy.srt.not-yet", 1, "deniedResolved" },
        { "{" OPEN ", \"deniedResolvedAddresses\": [\"10.0.0.0/7\"]}, " FS "}", "policy.srt.not-yet", 1, "deniedResolved" },
        { "{" OPEN ", \"deniedResolvedAddresses\": [\"fc00::/6\"]}, " FS "}", "policy.srt.not-yet", 1, "deniedResolved" },
        { "{" OPEN ", \"deniedResolvedAddresses\": [\"8.8.8.8\"]}, " FS "}", "policy.srt.not-yet", 1, "deniedResolved" },
        { "{" OPEN ", \"ambiguousRequestTarget\": \"normalize\"}, " FS "}", "policy.srt.not-yet", 1, "ambiguousRequestTarget" },
        { "{" NET ", \"filesystem\": {\"denyRead\": [], \"allowWrite\": [], \"denyWrite\": [], \"disabled\": true}}",
          "policy.srt.not-yet", 1, "filesystem.disabled" },
        { "{" NET "," FS ", \"credentials\": {\"files\": [{\"path\": \"~/.netrc\", \"mode\": \"mask\"}]}}",
          "policy.srt.not-yet", 1, "mask" },
        { "{" NET "," FS ", \"credentials\": {\"envVars\": [{\"mode\": \"deny\"}]}}", "policy.srt.required", 1, "name" },
        { "{" NET "," FS ", \"credentials\": {\"envVars\": [{\"name\": \"A-B\", \"mode\": \"deny\"}]}}", "policy.env.name", 1,
          "A-B" },
        { "{" NET "," FS ", \"credentials\": {\"envVar\": 1}}", "policy.unknown-key", 1, "credentials.envVar" },
        { "{" NET "," FS ", \"mandatoryDenySearchDepth\": 0}", "policy.protect.depth", 1, "0" },
        { "{" NET "," FS ", \"mandatoryDenySearchDepth\": 11}", "policy.protect.depth", 1, "11" },
        { "{" NET "," FS ", \"allowPty\": \"yes\"}", "policy.type", 1, "allowPty" },
        { "{" NET "," FS ", " NET "}", "policy.duplicate-key", 1, "network" },
        { "{" NET "," FS "}\n{}", "policy.json.syntax", 0, NULL },
        { "network: {}\n", "policy.json.syntax", 1, NULL },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        struct policy p;
        char place[32];
        int r = make_policy(&p, MODE_STANDARD, VERB_SRT, rows[i].text, POLICY_SRT, NULL, &err);
        if (r == 0 || strcmp(err.code, rows[i].code) != 0)
            fail_msg("got \"%s\" [%s], want [%s] for:\n%s", err.msg, err.code, rows[i].code, rows[i].text);
        snprintf(place, sizeof(place), "srt.json:%u: ", rows[i].line);
        if (rows[i].line > 0 && strstr(err.msg, place) == NULL)
            fail_msg("\"%s\" does not name %s", err.msg, place);
        if (rows[i].word != NULL && strstr(err.msg, rows[i].word) == NULL && strstr(err.hint, rows[i].word) == NULL)
            fail_msg("\"%s\" / \"%s\" does not say %s", err.msg, err.hint, rows[i].word);
        policy_free(&p);
    }
}

static void
srt_and_modes(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_MAX, VERB_SRT, "{" NET "," FS "}", POLICY_SRT, NULL, &err), -1);
    assert_string_equal(err.code, "policy.max.srt");
    policy_free(&p);
    assert_int_equal(make_policy(&p, MODE_LIGHT, VERB_SRT, "{" NET "," FS "}", POLICY_SRT, NULL, &err), 0);
    policy_free(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_settings),     cmocka_unit_test(protected_names_are_srts),
        cmocka_unit_test(recognised_by_content), cmocka_unit_test(every_key_is_known),
        cmocka_unit_test(notes), cmocka_unit_test(odd_comments), cmocka_unit_test(refusals),
        cmocka_unit_test(srt_and_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
