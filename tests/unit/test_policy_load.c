/* policy: settings files in YAML and JSON: the strict subset, the three vocabularies, refusals that name the line
 * (R43, R65, R67) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy_fixture.h"

#define MIB ((uint64_t)1 << 20)

static void
load_ok(struct policy *p, const char *text, enum policy_format format)
{
    struct err err = ERR_INIT;

    if (make_policy(p, MODE_STANDARD, VERB_RUN, text, format, NULL, &err) < 0)
        fail_msg("%s\n  %s [%s]\nin:\n%s", err.msg, err.hint, err.code, text);
}

static const char everything[] =
    "version: 1\n"
    "mode: standard\n"
    "engine: native\n"
    "audit: required\n"
    "fallback: {action: warn, url: 'https://example.org/runner'}\n"
    "workspace:\n"
    "  dir: ~/project\n"
    "  kind: cow\n"
    "workdir: sub\n"
    "binds:\n"
    "  - data:/mnt/data:rw\n"
    "  - {source: 'odd:name', dest: /mnt/odd, access: ro}\n"
    "filesystem:\n"
    "  deny-read: [ '~/private', './x/**', '**/*.pem' ]\n"
    "  allow-read: [ ~/private/open ]\n"
    "  allow-write:\n"
    "    - /tmp\n"
    "  deny-write: [ { path: '/srv/[a]', literal: true } ]\n"
    "  protect: [ Makefile, ci/deploy.sh ]\n"
    "  allow-git-config: true\n"
    "  protect-depth: 5\n"
    "unix-sockets: [ /run/docker.sock ]\n"
    "network: none\n"
    "limits:\n"
    "  memory: 1g\n"
    "  cpus: 1.5\n"
    "  pids: 99\n"
    "  disk: 64m\n"
    "  time: 2m\n"
    "  grace: 1s\n"
    "  output: 1m\n"
    "  open-files: 128\n"
    "env:\n"
    "  PLAIN: value\n"
    "  NUMBER: 12\n"
    "  TRUTH: yes\n"
    "  PASSED: null\n"
    "user: 1001:1002\n"
    "hostname: box\n"
    "read-only-root: true\n";

static void
every_key(void **state)
{
    struct policy p;

    (void)state;
    load_ok(&p, everything, POLICY_YAML);
    assert_string_equal(p.engine.p, "native");
    assert_int_equal(p.fallback.v, FALLBACK_WARN);
    assert_int_equal(p.audit.v, RECORD_REQUIRED);
    assert_string_equal(p.fallback_url.p, "https://example.org/runner");
    assert_string_equal(p.workspace.dir, "/home/u/project");
    assert_int_equal(p.workspace.kind, WORKSPACE_COW);
    assert_string_equal(p.workdir.p, "/workspace/sub");
    assert_int_equal(p.n_binds, 2);
    assert_string_equal(p.binds[1].source, "/home/u/app/odd:name");
    assert_true(list_has(&p.deny_read, "/home/u/private") && list_has(&p.deny_read, "/home/u/app/x"));
    assert_true(list_has(&p.deny_read, "/home/u/app/**/*.pem"));
    assert_true(list_has(&p.deny_write, "/srv/[a]"));
    assert_true(list_has(&p.protect, "Makefile") && list_has(&p.protect, "ci/deploy.sh"));
    assert_true(list_has(&p.protect, ".git/hooks") && !list_has(&p.protect, ".git/config"));
    assert_int_equal(p.protect_depth.v, 5);
    assert_true(list_has(&p.unix_sockets, "/run/docker.sock"));
    assert_int_equal(p.limits.memory.v, 1024 * MIB);
    assert_int_equal(p.limits.memory.from.line, 25);
    assert_string_equal(p.limits.memory.from.name, "s.yaml");
    assert_int_equal(p.limits.cpu_milli.v, 1500);
    assert_int_equal(p.limits.time_ms.v, 120000);
    assert_int_equal(p.limits.nofile.v, 128);
    assert_int_equal(p.n_env, 4);
    assert_string_equal(p.env[1].value, "12");
    assert_string_equal(p.env[2].value, "yes");     /* YAML 1.1 would have said true */
    assert_null(p.env[3].value);
    assert_int_equal(p.user.gid, 1002);
    assert_true(p.read_only_root.v);
    policy_free(&p);
}

/* R43: each field of the source's SandboxManagerConfig that concerns one sandbox, in its own spelling. */
static void
sandbox_manager_config(void **state)
{
    struct policy p;

    (void)state;
    load_ok(&p,
            "{\"mode\": \"max\", \"engineType\": \"auto\", \"workdir\": \"/workspace\", \"readOnlyRoot\": true,\n"
            " \"network\": \"none\", \"user\": \"1000:1000\", \"capDrop\": [\"ALL\", \"CAP_SYS_ADMIN\", \"NET_RAW\"],\n"
            " \"env\": {\"A\": \"b\"}, \"memory\": \"512m\", \"cpus\": 0.5, \"pidsLimit\": 100,\n"
            " \"workspaceRoot\": \"/srv/ws\", \"binds\": [\"/data:/data:ro\", \"/out:/out:rw\"], \"dns\": [],\n"
            " \"browser\": {\"enabled\": false, \"cdpPort\": 9222}}", POLICY_JSON);
    assert_int_equal(p.mode.v, MODE_MAX);
    assert_int_equal(p.limits.memory.v, 512 * MIB);
    assert_int_equal(p.limits.cpu_milli.v, 500);
    assert_int_equal(p.limits.pids.v, 100);
    assert_int_equal(p.limits.pids.from.line, 3);
    assert_string_equal(p.workspace.dir, "/srv/ws");
    assert_int_equal(p.n_binds, 2);
    assert_true(p.binds[1].writable && !p.binds[0].writable);
    policy_free(&p);
}

/* R65, R67: the source's own YAML. */
static void
security_sandbox_yaml(void **state)
{
    struct policy p;

    (void)state;
    load_ok(&p,
            "security:\n  sandbox:\n    enabled: true\n    runtime: native\n    limits:\n      max_memory_mb: 256\n"
            "      max_cpu_cores: 0.5\n      max_disk_mb: 100\n      max_execution_time: 30\n"
            "      max_output_bytes: 1048576\n    network:\n      enabled_by_default: false\n", POLICY_YAML);
    assert_int_equal(p.limits.memory.v, 256 * MIB);
    assert_int_equal(p.limits.memory.from.line, 6);
    assert_int_equal(p.limits.cpu_milli.v, 500);
    assert_int_equal(p.limits.disk.v, 100 * MIB);
    assert_int_equal(p.limits.time_ms.v, 30000);
    assert_int_equal(p.limits.output.v, MIB);
    policy_free(&p);
    load_ok(&p, "limits: {max_memory_mb: 64, maxCpuCores: 2}\n", POLICY_YAML);
    assert_int_equal(p.limits.memory.v, 64 * MIB);
    assert_int_equal(p.limits.cpu_milli.v, 2000);
    policy_free(&p);
    load_ok(&p, "security: {sandbox: {enabled: false}}\n", POLICY_YAML);
    assert_int_equal(p.mode.v, MODE_OFF);
    policy_free(&p);
}

static void
spellings(void **state)
{
    static const char *const texts[] = {
        "filesystem: {deny-read: [/a]}\n", "filesystem: {denyRead: [/a]}\n", "filesystem: {deny_read: [/a]}\n",
        "{\"filesystem\": {\"denyRead\": [\"/a\"]}}", "? filesystem\n: deny-read:\n  - '/a'\n",
        "\"filesystem\": {'deny-read': [\"\\x2fa\"]}\n", "filesystem:\n  deny-read:\n    - >-\n      /a\n",
    };

    (void)state;
    for (size_t i = 0; i < N(texts); i++) {
        struct policy p;
        load_ok(&p, texts[i], POLICY_AUTO);
        assert_int_equal(p.deny_read.n, 1);
        assert_string_equal(p.deny_read.v[0].value, "/a");
        policy_free(&p);
    }
}

struct refusal { const char *text, *code; unsigned line; const char *words[3]; };

static void
check_refusals(const struct refusal *rows, size_t n, enum policy_format format, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        struct policy p;
        char place[32];
        int r = make_policy(&p, MODE_STANDARD, VERB_RUN, rows[i].text, format, NULL, &err);
        if (r == 0 || strcmp(err.code, rows[i].code) != 0)
            fail_msg("got \"%s\" [%s], want [%s] for:\n%s", err.msg, err.code, rows[i].code, rows[i].text);
        snprintf(place, sizeof(place), rows[i].line > 0 ? "%s:%u: " : "%s", name, rows[i].line);
        if (strstr(err.msg, place) == NULL)
            fail_msg("\"%s\" does not name %s", err.msg, place);
        for (size_t w = 0; w < 3 && rows[i].words[w] != NULL; w++)
            if (strstr(err.msg, rows[i].words[w]) == NULL && strstr(err.hint, rows[i].words[w]) == NULL)
                fail_msg("\"%s\" / \"%s\" does not say \"%s\"", err.msg, err.hint, rows[i].words[w]);
        policy_free(&p);
    }
}

static void
yaml_refusals(void **state)
{
    static const struct refusal rows[] = {
        { "mode: standard\nlimitz: {}\n", "policy.unknown-key", 2, { "limitz", "\"limits\"" } },
        { "filesystem:\n  denyRaed: []\n", "policy.unknown-key", 2, { "filesystem.denyRaed", "deny-read" } },
        { "limits:\n  wibble: 1\n", "policy.unknown-key", 2, { "limits.wibble", "known here: memory" } },
        { "network: {allowedDomains: []}\n", "policy.unknown-key", 1, { "allowedDomains" } },
        { "workspace: {dir: x, size: 1}\n", "policy.unknown-key", 1, { "workspace.size" } },
        { "mode: standard\nmode: max\n", "policy.duplicate-key", 2, { "\"mode\"", "line 1" } },
        { "memory: 1g\nlimits:\n  memory: 2g\n", "policy.duplicate-key", 3, { "limits.memory", "line 1" } },
        { "limits:\n  memory: 1g\n  max_memory_mb: 5\n", "policy.duplicate-key", 3, { "line 2" } },
        { "filesystem:\n  denyRead: []\n  deny_read: []\n", "policy.duplicate-key", 3, { "line 2" } },
        { "engine: auto\nengineType: auto\n", "policy.duplicate-key", 2, { "engine" } },
        { "env:\n  A: 1\n  A: 2\n", "policy.duplicate-key", 3, { "\"A\"" } },
        { "mode: [max]\n", "policy.type", 1, { "mode", "a list" } },
        { "limits: 5\n", "policy.type", 1, { "limits", "a map", "a number" } },
        { "filesystem:\n  deny-read: /a\n", "policy.type", 2, { "filesystem.deny-read", "a list" } },
        { "filesystem:\n  deny-read:\n    - /a\n    - 5\n", "policy.type", 4, { "filesystem.deny-read[1]" } },
        { "filesystem: {deny-read: [{path: /a, x: 1}]}\n", "policy.type", 1, { "path", "literal" } },
        { "read-only-root: yes\n", "policy.type", 1, { "read-only-root", "a string" } },
        { "read-only-root: 1\n", "policy.type", 1, { "a number" } },
        { "limits: {memory: true}\n", "policy.type", 1, { "limits.memory" } },
        { "limits:\n  memory:\n", "policy.type", 2, { "limits.memory", "nothing" } },
        { "env: {A: [1]}\n", "policy.type", 1, { "env.A" } },
        { "env: {1A: x}\n", "policy.env.name", 1, { "1A" } },
        { "version: 2\n", "policy.version", 1, { "2" } },
        { "mode: strict\n", "policy.mode", 1, { "strict", "standard" } },
        { "limits:\n  memory: lots\n", "policy.limit.syntax", 2, { "limits.memory", "lots", "512m" } },
        { "limits:\n  memory: 0777\n", "policy.limit.too-small", 2, { "0777" } },
        { "limits: {max_memory_mb: 1.5}\n", "policy.limit.syntax", 1, { "1.5" } },
        { "limits: {max_memory_mb: 99999999999999}\n", "policy.limit.syntax", 1, { NULL } },
        { "filesystem: {protect-depth: 11}\n", "policy.protect.depth", 1, { "11" } },
        { "filesystem: {protect: [/abs]}\n", "policy.protect", 1, { "/abs", "deny-write" } },
        { "filesystem: {protect: ['a*']}\n", "policy.protect", 1, { "a*" } },
        { "network: {allow: ['*.com']}\n", "policy.host.too-wide", 1, { "network.allow[0]", "*.com", "*.example.com" } },
        { "mode: light\nnetwork: {allow: [example.org]}\n", "policy.network.light", 2, { "mode standard" } },
        { "network: {mode: none, allow: [example.org]}\n", "policy.network.closed", 1, { "network: allowlist" } },
        { "network: {deny: [example.org]}\n", "policy.network.closed", 1, { "network: allowlist" } },
        { "network: {mode: host, allow: [example.org]}\n", "policy.network.both", 1, { "network: host" } },
        { "network: bridge\n", "policy.network.mode", 1, { "bridge", "none" } },
        { "network: {enabled_by_default: true}\n", "policy.network.not-yet", 1, { NULL } },
        { "fallback: {url: 'ftp://x'}\n", "policy.fallback.url", 1, { "http" } },
        { "image: Python\n", "policy.image", 1, { "image", "Python" } },
        { "mode: light\nimage: python:3.11\n", "policy.light.asks", 2, { "image" } },
        { "view: host\nimage: python:3.11\n", "policy.view.asks", 2, { "image" } },
        { "containerPrefix: -x\n", "policy.container-prefix", 1, { "-x" } },
        { "dns: [1.1.1.1]\n", "policy.dns.network", 1, { NULL } },
        { "network: {allow: [a.org], dns: ['::1', '::2', '::3', '::4', '::5', '::6', '::7', '::8', '::9']}\n", "policy.dns", 1,
          { "8" } },
        { "dns: [one]\n", "policy.dns", 1, { "dns[0]", "one" } },
        { "capDrop: [CAP_NONSENSE]\n", "policy.capability", 1, { "capDrop[0]", "CAP_NONSENSE" } },
        { "capAdd: [SYS_ADMIN]\n", "policy.capability.add", 1, { NULL } },
        { "browser: {enabled: true, headless: false}\n", "policy.browser", 1, { NULL } },
        { "browser: {enabled: true, cdpPort: 9222}\n", "policy.browser", 1, { NULL } },
        { "browser: {enabled: true, image: x}\n", "policy.browser", 1, { NULL } },
        { "browser: {enabled: 1}\n", "policy.type", 1, { NULL } },
        { "ports: ['80:x']\n", "policy.publish", 1, { NULL } },
        { "engine: apple\n", "policy.engine.not-yet", 1, { "apple" } },
        { "binds: [{dest: /x}]\n", "policy.bind.syntax", 1, { "binds[0]", "source" } },
        { "binds: [{source: a, dest: /x, access: w}]\n", "policy.bind.access", 1, { NULL } },
        { "binds: ['a:/dev/x']\n", "policy.bind.reserved", 1, { "/dev" } },
        { "mode: max\nlimits: {time: none}\n", "policy.max.unlimited", 2, { NULL } },
        { "mode: off\nlimits: {memory: 1g}\n", "policy.off.asks", 2, { "limits.memory" } },
        { "mode: light\nhostname: x\n", "policy.light.asks", 2, { "hostname" } },
        { "workspace: {kind: rw}\n", "policy.workspace.dir", 1, { NULL } },
        { "unix-sockets: ['/run/[a]']\n", "policy.socket.glob", 1, { "unix-sockets[0]", "literal" } },
        { "user: 0:5\n", "policy.user.root", 1, { NULL } },
        /* the subset */
        { "mode: &a max\n", "policy.yaml.subset", 1, { "anchors" } },
        { "mode: max\nx: *a\n", "policy.yaml.subset", 2, { "aliases" } },
        { "limits: {pids: !!int 5}\n", "policy.yaml.subset", 1, { "tags" } },
        { "mode: !foo max\n", "policy.yaml.subset", 1, { "tags" } },
        { "limits: !!map {}\n", "policy.yaml.subset", 1, { "tags" } },
        { "limits:\n  <<: {pids: 5}\n", "policy.yaml.subset", 2, { "merge" } },
        { "mode: max\n---\nmode: off\n", "policy.yaml.subset", 2, { "second document" } },
        { "%YAML 1.1\n---\nmode: max\n", "policy.yaml.subset", 0, { "directives" } },
        { "? [a]\n: b\n", "policy.yaml.key", 1, { NULL } },
        { "'': 1\n", "policy.yaml.key", 1, { NULL } },
        { "mode: \"ma\\0x\"\n", "policy.string.nul", 1, { "NUL" } },
        { "mode: \"max\n", "policy.yaml.syntax", 0, { "not YAML" } },
        { "version: 1\n  mode: max\n", "policy.yaml.syntax", 2, { NULL } },
        { "\tmode: max\n", "policy.yaml.syntax", 1, { NULL } },
        { "hostname: caf\xe9\n", "policy.yaml.syntax", 0, { NULL } },
        { "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]\n", "policy.file.too-deep", 1, { NULL } },
        { "[]\n", "policy.type", 1, { "a map" } },
        { "just text\n", "policy.type", 1, { "a map" } },
        { "# only a comment\n", "policy.file.empty", 0, { "mode: standard" } },
        { "\n", "policy.file.empty", 0, { NULL } },
        { "---\n", "policy.file.empty", 0, { NULL } },
        { "{}\n", "policy.file.empty", 0, { NULL } },
        { "", "policy.file.empty", 0, { NULL } },
    };

    (void)state;
    check_refusals(rows, N(rows), POLICY_YAML, "s.yaml");
}

static void
json_refusals(void **state)
{
    static const struct refusal rows[] = {
        { "{\"mode\": \"max\",\n \"mode\": \"light\"}", "policy.duplicate-key", 2, { "mode" } },
        { "{\"limits\":\n {\"memory\":\n \"1g\",\n \"cpus\": [1]}}", "policy.type", 4, { "limits.cpus" } },
        { "{\"a\\u0062c\": 1}", "policy.unknown-key", 1, { "abc" } },
        { "{\n\"filesystem\": {\"denyRead\": [\"/a\",\n \"/b\", 7]}}", "policy.type", 3, { "filesystem.denyRead[2]" } },
        { "{\"mode\": \"max\",}", "policy.json.syntax", 1, { NULL } },
        { "{\"mode\": \"max\"} x", "policy.json.syntax", 1, { NULL } },
        { "{'mode': 'max'}", "policy.json.syntax", 1, { NULL } },
        { "{\"mode\": \"max\" /* no */}", "policy.json.syntax", 1, { NULL } },
        { "{\"mode\": \"m\\u0000\"}", "policy.json.syntax", 1, { NULL } },
        { "{\"mode\": \"\\ud800\"}", "policy.json.syntax", 1, { NULL } },
        { "{\"limits\": {\"pids\": 01}}", "policy.json.syntax", 1, { NULL } },
        { "{\"limits\": {\"pids\": NaN}}", "policy.json.syntax", 1, { NULL } },
        { "{\"limits\": {\"pids\": 99999999999999999999}}", "policy.json.syntax", 1, { NULL } },
        { "{\"limits\": {\"pids\": 5e1}}", "policy.limit.syntax", 1, { "5e1" } },
        { "{\"limits\": {\"pids\": -5}}", "policy.limit.syntax", 1, { "-5" } },
        { "{\"\": 1}", "policy.json.key", 1, { NULL } },
        { "[]", "policy.type", 1, { NULL } },
        { "null", "policy.type", 1, { NULL } },
        { "{}", "policy.file.empty", 1, { NULL } },
        { "  ", "policy.json.syntax", 0, { NULL } },
        { "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]", "policy.file.too-deep", 1, { NULL } },
    };

    (void)state;
    check_refusals(rows, N(rows), POLICY_JSON, "s.json");
}

/* Lines are right whatever strings and numbers look like: brackets, quotes and escapes inside strings, CRLF. */
static void
json_lines(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;

    (void)state;
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN,
                                 "{\r\n\"env\": {\"A\": \"{[\\\"\\\\\",\r\n\"B\": \"]},:\", \"C\": \"\\u00e9\\/\"},\n\n"
                                 "\"limits\": {\n\"cpus\"\n:\n0.25\n,\"pids\":12}}", POLICY_JSON, NULL, &err), 0);
    assert_string_equal(p.env[0].value, "{[\"\\");
    assert_int_equal(p.env[0].from.line, 2);
    assert_string_equal(p.env[1].value, "]},:");
    assert_int_equal(p.env[1].from.line, 3);
    assert_string_equal(p.env[2].value, "\xc3\xa9/");
    assert_int_equal(p.limits.cpu_milli.v, 250);
    assert_int_equal(p.limits.cpu_milli.from.line, 6);
    assert_int_equal(p.limits.pids.from.line, 9);
    policy_free(&p);
}

static void
sizes_are_bounded(void **state)
{
    struct err err = ERR_INIT;
    struct policy p;
    size_t n = POLICY_FILE_MAX + 1;
    char *big = malloc(n + 1);

    (void)state;
    assert_non_null(big);
    memset(big, '#', n);
    big[n] = '\0';
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, big, POLICY_YAML, NULL, &err), -1);
    assert_string_equal(err.code, "policy.file.too-large");
    policy_free(&p);
    n = (size_t)snprintf(big, n, "hostname: ");
    memset(big + n, 'a', POLICY_STRING_MAX + 1);
    big[n + POLICY_STRING_MAX + 1] = '\0';
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, big, POLICY_YAML, NULL, &err), -1);
    assert_string_equal(err.code, "policy.file.too-large");
    policy_free(&p);
    n = (size_t)snprintf(big, POLICY_FILE_MAX, "filesystem: {deny-read: [");
    for (int i = 0; i <= POLICY_LIST_MAX; i++)
        n += (size_t)snprintf(big + n, POLICY_FILE_MAX - n, "/a,");
    snprintf(big + n, POLICY_FILE_MAX - n, "/b]}\n");
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, big, POLICY_YAML, NULL, &err), -1);
    assert_string_equal(err.code, "policy.list.too-long");
    policy_free(&p);
    n = (size_t)snprintf(big, POLICY_FILE_MAX, "env: {");
    for (int i = 0; i < 1100; i++)
        n += (size_t)snprintf(big + n, POLICY_FILE_MAX - n, "V%d: 1,", i);
    snprintf(big + n, POLICY_FILE_MAX - n, "}\n");
    assert_int_equal(make_policy(&p, MODE_STANDARD, VERB_RUN, big, POLICY_YAML, NULL, &err), -1);
    assert_string_equal(err.code, "policy.file.too-large");
    policy_free(&p);
    free(big);
}

/* Files: what cannot be read is refused, never replaced; the file itself is closed to what runs. */
static void
files(void **state)
{
    char dir[] = "/tmp/test_policy_XXXXXX", path[128], link[128];
    struct err err = ERR_INIT;
    struct policy p;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s.yaml", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
    assert_int_equal(policy_load_file(&p, path, POLICY_AUTO, &caller, &err), -1);
    assert_string_equal(err.code, "policy.file.unreadable");
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(policy_load_file(&p, dir, POLICY_AUTO, &caller, &err), -1);
    assert_string_equal(err.code, "policy.file.unreadable");
    assert_int_equal(policy_load_file(&p, "/dev/null", POLICY_AUTO, &caller, &err), -1);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_int_equal(policy_load_file(&p, link, POLICY_AUTO, &caller, &err), -1);   /* and does not hang */
    assert_int_equal(unlink(link), 0);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs("filesystem: {deny-write: [/x]}\n", f);
    fclose(f);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(policy_load_file(&p, link, POLICY_AUTO, &caller, &err), 0);
    assert_true(list_has(&p.deny_write, "/x") && list_has(&p.deny_write, link) && list_has(&p.deny_write, path));
    policy_free(&p);
    unlink(link);
    unlink(path);
    rmdir(dir);
}

/* Whatever prefix of a valid file is read, the answer is a policy or a refusal with a code; never something else. */
static void
every_prefix(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof(everything); n++) {
        struct err err = ERR_INIT;
        struct policy p;
        assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_RUN, &caller, &err), 0);
        if (policy_load_bytes(&p, "s.yaml", everything, n, POLICY_YAML, &caller, &err) < 0) {
            assert_true(strncmp(err.code, "policy.", 7) == 0);
            assert_non_null(strstr(err.msg, "s.yaml"));
        }
        policy_free(&p);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key),     cmocka_unit_test(sandbox_manager_config), cmocka_unit_test(security_sandbox_yaml),
        cmocka_unit_test(spellings),     cmocka_unit_test(yaml_refusals),          cmocka_unit_test(json_refusals),
        cmocka_unit_test(json_lines),    cmocka_unit_test(sizes_are_bounded),      cmocka_unit_test(files),
        cmocka_unit_test(every_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
