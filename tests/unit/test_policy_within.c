/* policy/within: nothing of the asked policy is more than the ceiling has (R20) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/within.h"
#include "policy_fixture.h"

/* Not validated: as the keeper compares them. */
static void
layers(struct policy *p, const char *first, const char *second)
{
    static const char *const engines[] = { "native", "oci", "docker", NULL };
    struct policy_host host = caller;
    struct err err = ERR_INIT;

    host.engines = engines;
    assert_int_equal(policy_init(p, MODE_STANDARD, VERB_CODE, &host, &err), 0);
    if (first != NULL && policy_load_bytes(p, "first", first, strlen(first), POLICY_JSON, &host, &err) < 0)
        fail_msg("%s: %s", first, err.msg);
    if (second != NULL && policy_load_bytes(p, "second", second, strlen(second), POLICY_JSON, &host, &err) < 0)
        fail_msg("%s: %s", second, err.msg);
}

static const char wide[] =
    "{\"mode\": \"light\", \"view\": \"host\", \"workspace\": \"/srv/a:rw\", \"binds\": [\"/srv/b:/b:rw\", \"/srv/c:/c\"], "
    "\"filesystem\": {\"deny-read\": [\"/srv/x\"], \"allow-read\": [\"/srv/r\"], \"allow-write\": [\"/srv/w\"], "
    "\"deny-write\": [\"/srv/w/no\"], \"allow-git-config\": true, \"protect\": [\".mine\"]}, "
    "\"unix-sockets\": {\"allow\": [\"/run/s.sock\"]}, "
    "\"network\": {\"mode\": \"allowlist\", \"allow\": [\"a.example.org\", {\"host\": \"b.example.org\", \"methods\": [\"GET\"]}], "
    "\"deny\": [\"bad.example.org\"], \"parent-proxy\": {\"http\": \"http://proxy.example.org:3128\"}}, "
    "\"limits\": {\"memory\": \"1g\", \"pids\": 0, \"grace\": \"5s\"}, \"env\": {\"TOKEN\": null}}";

#define STAR \
    "{\"network\": {\"mode\": \"allowlist\", \"allow\": [\"*.s.org\", \"**.any.org\", \"p.org:22\", {\"host\": \"q.org\", \"path\": \"/a/**\"}], " \
    "\"deny\": [\"no.s.org\"], \"registries\": [\"npm\"], \"ask\": true}, \"secrets\": [\"K=github\"]}"

static const struct { const char *ceiling, *asked; unsigned free; bool within; } rows[] = {
    { NULL, NULL, 0, true }, { wide, NULL, 0, true },
    { NULL, "{\"mode\": \"max\"}", 0, true }, { NULL, "{\"mode\": \"light\"}", 0, false },
    { wide, "{\"mode\": \"light\"}", 0, true },
    /* folders of the host */
    { NULL, "{\"workspace\": \"/srv\"}", 0, false }, { NULL, "{\"workspace\": \"/srv:ro\"}", ~0U, false },
    { NULL, "{\"workspace\": \"/srv:cow\"}", 0, false }, { NULL, "{\"workspace\": \"tmpfs\"}", 0, true },
    { wide, "{\"workspace\": \"/srv/a:ro\"}", 0, true }, { wide, "{\"workspace\": \"/srv/a:cow\"}", 0, true },
    { wide, "{\"workspace\": \"/srv:ro\"}", 0, false }, { wide, "{\"workspace\": \"/srv/a/../b\"}", 0, false },
    { wide, "{\"workspace\": \"tmpfs\"}", 0, true },
    { "{\"workspace\": \"/srv/a:ro\"}", "{\"workspace\": \"/srv/a:rw\"}", 0, false },
    { "{\"workspace\": \"/srv/a:cow\"}", "{\"workspace\": \"/srv/a:rw\"}", ~0U, false },
    { NULL, "{\"view\": \"host\"}", ~0U, false },
    { NULL, "{\"binds\": [\"/etc:/e\"]}", ~0U, false }, { wide, "{\"binds\": [\"/srv/c:/c\"]}", 0, true },
    { wide, "{\"binds\": [\"/srv/c:/c:rw\"]}", 0, false }, { wide, "{\"binds\": [\"/srv/b:/b\"]}", 0, true },
    { wide, "{\"binds\": [\"/srv/b:/other\"]}", 0, false },
    { NULL, "{\"filesystem\": {\"allow-read\": [\"/srv\"]}}", ~0U, false },
    { NULL, "{\"filesystem\": {\"allow-write\": [\"/srv\"]}}", ~0U, false },
    { NULL, "{\"filesystem\": {\"allow-git-config\": true}}", ~0U, false },
    { NULL, "{\"filesystem\": {\"deny-read\": [\"/srv/more\"]}}", 0, true },
    { NULL, "{\"filesystem\": {\"deny-hard-links\": true}}", 0, true },
    { "{\"filesystem\": {\"deny-hard-links\": true}}", "{\"filesystem\": {\"deny-hard-links\": false}}", ~0U, false },
    { "{\"filesystem\": {\"deny-hard-links\": true}}", "{\"filesystem\": {\"deny-hard-links\": true}}", 0, true },
    { wide, "{\"filesystem\": {\"allow-read\": [\"/srv/r\"]}}", 0, true },
    { wide, "{\"filesystem\": {\"allow-read\": [\"/srv/r*\"]}}", 0, false },
    { NULL, "{\"unix-sockets\": {\"allow\": [\"/run/docker.sock\"]}}", ~0U, false },
    { NULL, "{\"unix-sockets\": {\"all\": true}}", ~0U, false },
    { wide, "{\"unix-sockets\": {\"allow\": [\"/run/s.sock\"]}}", 0, true },
    /* the network */
    { NULL, "{\"network\": \"host\"}", ~0U, false }, { wide, "{\"network\": \"host\"}", ~0U, false },
    { NULL, "{\"network\": {\"allow\": [\"a.example.org\"]}}", 0, false },
    { NULL, "{\"network\": {\"mode\": \"allowlist\", \"allow\": [\"a.example.org\"]}}", WITHIN_NETWORK, true },
    { NULL, "{\"network\": {\"registries\": [\"npm\"]}}", 0, false },
    { NULL, "{\"network\": {\"registries\": [\"npm\"]}}", WITHIN_NETWORK, true },
    { NULL, "{\"network\": {\"ask\": true}}", ~0U, false }, { NULL, "{\"preset\": \"ci\"}", ~0U, false },
    { NULL, "{\"network\": {\"parent-proxy\": {\"http\": \"http://x.example.org:1\"}}}", ~0U, false },
    { wide, "{\"network\": {\"parent-proxy\": {\"https\": \"http://x.example.org:1\"}}}", ~0U, false },
    { NULL, "{\"network\": {\"extra-ca\": [\"/srv/ca.pem\"]}}", ~0U, false },
    { "{\"network\": {\"allow\": [\"a.org\"], \"dns\": [\"9.9.9.9\"]}}", "{\"network\": {\"allow\": [\"a.org\"], \"dns\": []}}", ~0U,
      false },
    { "{\"network\": {\"allow\": [\"a.org\"], \"dns\": [\"9.9.9.9\"]}}", "{\"network\": \"none\"}", 0, true },
    /* it would hear of every name and lead any of them elsewhere */
    { "{\"network\": {\"allow\": [\"a.org\"]}}", "{\"network\": {\"allow\": [\"a.org\"], \"dns\": [\"9.9.9.9\"]}}", ~0U, false },
    { "{\"network\": {\"allow\": [\"a.org\"], \"dns\": [\"9.9.9.9\"]}}", "{\"network\": {\"allow\": [\"a.org\"], \"dns\": [\"9.9.9.9\"]}}", 0,
      true },
    { wide, "{\"network\": {\"allow\": [\"a.example.org\"]}}", 0, true },
    { wide, "{\"network\": {\"allow\": [\"**.example.org\"]}}", 0, false },
    { wide, "{\"network\": {\"allow\": [\"b.example.org\"]}}", 0, false },
    { wide, "{\"network\": {\"allow\": [{\"host\": \"b.example.org\", \"methods\": [\"GET\"]}]}}", 0, true },
    { NULL, "{\"network\": {\"publish\": [\"3000\"]}}", ~0U, false },
    { "{\"network\": {\"publish\": [\"3000\"]}}", "{\"network\": {\"publish\": [3000]}}", 0, true },
    { "{\"network\": {\"publish\": [\"3000\"]}}", "{\"network\": {\"publish\": [\"0.0.0.0:3000\"]}}", 0, false },
    { wide, "{\"network\": \"none\"}", 0, true },
    { wide, "{\"network\": {\"allow\": [\"a.example.org:443\"]}}", 0, true },
    { wide, "{\"network\": {\"allow\": [\"a.example.org:80\"]}}", 0, true },
    { wide, "{\"network\": {\"allow\": [\"a.example.org:22\"]}}", 0, false },
    { wide, "{\"network\": {\"allow\": [\"x.a.example.org\"]}}", 0, false },
    { wide, "{\"network\": {\"allow\": [{\"host\": \"a.example.org\", \"methods\": [\"GET\"]}]}}", 0, true },
    { wide, "{\"network\": {\"allow\": [{\"host\": \"b.example.org\", \"methods\": [\"GET\", \"PUT\"]}]}}", 0, false },
    { wide, "{\"network\": {\"allow\": [{\"host\": \"b.example.org\", \"methods\": [\"GET\"], \"path\": \"/a/**\"}]}}", 0, true },
    { wide, "{\"network\": {\"allow\": [{\"host\": \"b.example.org\", \"path\": \"/a/**\"}]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [\"a.s.org\", \"*.s.org:443\", \"b.any.org\", \"*.b.any.org\", \"**.c.any.org\"]}}", 0, true },
    { STAR, "{\"network\": {\"allow\": [\"s.org\"]}}", 0, false }, { STAR, "{\"network\": {\"allow\": [\"a.b.s.org\"]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [\"**.s.org\"]}}", 0, false }, { STAR, "{\"network\": {\"allow\": [\"any.org\"]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [\"xany.org\"]}}", 0, false }, { STAR, "{\"network\": {\"allow\": [\"10.0.0.1\"]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [\"p.org\"]}}", 0, false }, { STAR, "{\"network\": {\"allow\": [\"p.org:22\"]}}", 0, true },
    { STAR, "{\"network\": {\"allow\": [\"p.org:443\"]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/a/b\"}]}}", 0, true },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/a/b/**\"}]}}", 0, true },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/a\"}]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/ab/c\"}]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/**\"}]}}", 0, false },
    { STAR, "{\"network\": {\"allow\": [{\"host\": \"q.org\", \"path\": \"/*/b\"}]}}", 0, false },
    { STAR, "{\"network\": {\"mode\": \"none\"}}", 0, true },
    /* secrets */
    { NULL, "{\"secrets\": [\"K\"]}", ~0U, false },
    { "{\"secrets\": [\"K=github\"]}", NULL, 0, true },
    { "{\"secrets\": [\"K=github\"]}", "{\"secrets\": [\"L\"]}", ~0U, false },
    { NULL, "{\"env\": {\"TOKEN\": null}}", ~0U, false }, { wide, "{\"env\": {\"TOKEN\": null}}", 0, true },
    { NULL, "{\"env\": {\"A\": \"1\"}}", 0, true },
    /* limits */
    { NULL, "{\"limits\": {\"memory\": \"64m\"}}", 0, true }, { NULL, "{\"limits\": {\"memory\": \"64g\"}}", 0, false },
    { NULL, "{\"limits\": {\"memory\": 0}}", 0, false }, { NULL, "{\"limits\": {\"memory\": 0}}", WITHIN_LIMITS, true },
    { NULL, "{\"limits\": {\"time\": 0}}", 0, false }, { NULL, "{\"limits\": {\"time\": \"1h\"}}", 0, false },
    { wide, "{\"limits\": {\"pids\": 100000}}", 0, true }, { wide, "{\"limits\": {\"grace\": 0}}", 0, true },
    { wide, "{\"limits\": {\"grace\": \"6s\"}}", 0, false },
    /* and the rest */
    { NULL, "{\"fallback\": \"warn\"}", ~0U, false },
    { "{\"fallback\": \"warn\"}", "{\"fallback\": \"no-sandbox\"}", ~0U, false },
    { "{\"fallback\": \"no-sandbox\"}", "{\"fallback\": \"warn\"}", 0, true },
    { "{\"audit\": \"required\"}", "{\"audit\": \"off\"}", ~0U, false },
    { NULL, "{\"audit\": \"required\"}", 0, true },
    /* which wall, and of what system: the operator's alone, a stronger one too (a daemon's container, a machine's memory) */
    { NULL, "{\"engine\": \"native\"}", ~WITHIN_ENGINES, false }, { NULL, "{\"engine\": \"auto\"}", 0, true },
    { NULL, "{\"engine\": \"oci\"}", ~WITHIN_ENGINES, false }, { NULL, "{\"engineType\": \"docker\"}", ~WITHIN_ENGINES, false },
    { NULL, "{\"runtime\": \"runsc\"}", ~WITHIN_ENGINES, false }, { NULL, "{\"runtime\": \"auto\"}", 0, true },
    { "{\"engine\": \"oci\"}", "{\"engine\": \"auto\"}", ~WITHIN_ENGINES, false },
    { "{\"engine\": \"oci\"}", "{\"engine\": \"oci\"}", 0, true }, { "{\"engine\": \"oci\"}", NULL, 0, true },
    { "{\"engine\": \"oci\"}", "{\"engine\": \"native\"}", ~WITHIN_ENGINES, false },
    { "{\"engine\": \"oci\"}", "{\"runtime\": \"runc\"}", ~WITHIN_ENGINES, false },
    { "{\"runtime\": \"runsc\"}", "{\"runtime\": \"runc\"}", ~WITHIN_ENGINES, false },
    { "{\"runtime\": \"runsc\"}", "{\"runtime\": \"auto\"}", ~WITHIN_ENGINES, false },
    { "{\"runtime\": \"runsc\"}", "{\"engine\": \"native\"}", ~WITHIN_ENGINES, false },
    { "{\"runtime\": \"runsc\"}", "{\"runtime\": \"runsc\"}", 0, true },
    { "{\"engine\": \"docker\"}", "{\"containerPrefix\": \"others-\"}", ~0U, false },
    { NULL, "{\"image\": \"python:3.12\"}", ~0U, false },
    /* ... but engine_within() may know better; a weaker boundary is never less */
    { NULL, "{\"runtime\": \"runsc\"}", WITHIN_ENGINES, true }, { NULL, "{\"boundary\": \"vm\"}", 0, true },
    { "{\"boundary\": \"kernel\"}", "{\"boundary\": \"process\"}", ~0U, false },
    { "{\"boundary\": \"kernel\"}", "{\"boundary\": \"vm\"}", 0, true }, { "{\"boundary\": \"vm\"}", "{\"boundary\": \"kernel\"}", ~0U, false },
    { NULL, "{\"agent-engines\": [\"runsc\"]}", ~0U, false },
    { "{\"agent-engines\": [\"runsc\"]}", "{\"agent-engines\": [\"runsc\", \"native\"]}", ~0U, false },
    { "{\"agent-engines\": [\"runsc\"]}", "{\"agent-engines\": []}", 0, true },
};

static void
rows_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        cleanup_policy struct policy ceiling = { .srt = false }, asked = { .srt = false };
        struct err err = ERR_INIT;
        int r;

        layers(&ceiling, rows[i].ceiling, NULL);
        layers(&asked, rows[i].ceiling, rows[i].asked);
        r = policy_within(&ceiling, &asked, rows[i].free, &err);
        if ((r == 0) != rows[i].within)
            fail_msg("row %zu: %s below %s: %s", i, rows[i].asked, rows[i].ceiling, r == 0 ? "allowed" : err.msg);
        if (r < 0)
            assert_string_equal(err.code, "policy.ceiling");
    }
}

/* Whoever fills the asked policy may drop nothing that is denied. */
static void
denials_stay(void **state)
{
    static const size_t lists[] = { offsetof(struct policy, deny_read), offsetof(struct policy, deny_write),
                                    offsetof(struct policy, deny_domains), offsetof(struct policy, protect),
                                    offsetof(struct policy, credentials) };

    (void)state;
    for (size_t i = 0; i < N(lists); i++) {
        cleanup_policy struct policy ceiling = { .srt = false }, asked = { .srt = false };
        struct policy_list *list = (struct policy_list *)((char *)&asked + lists[i]);

        layers(&ceiling, wide, NULL);
        layers(&asked, wide, NULL);
        assert_int_equal(policy_within(&ceiling, &asked, 0, NULL), 0);
        assert_true(list->n > 0);
        list->n--;
        assert_int_equal(policy_within(&ceiling, &asked, ~0U, NULL), -1);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold),
        cmocka_unit_test(denials_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
