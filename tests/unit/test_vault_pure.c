/* vault/binding and vault/placeholder: where a secret may go, and what stands in its place (R12, R16) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "vault/binding.h"
#include "vault/placeholder.h"
#include "vault/seal.h"
#include "vault/store_file.h"

#define N(a) ARRAY_LEN(a)

static void
binding_rows(void **state)
{
    static const struct { const char *text, *code; } rows[] = {
        { "host api.example.org\nplace bearer\n", NULL },
        { "host **.example.org\nplace header X-Key\nplace query key\nplace cookie sid\nport 8443\nmethod GET\n", NULL },
        { "host 10.1.2.3\nscheme http\nplace basic\npath /v1/**\n", NULL },
        { "host [2001:db8::1]\nplace body\n", NULL },
        { "host a.example\nplace sigv4\nregion eu-west-1\nservice s3\n", NULL },
        { "host a.example\nadd Authorization: Bearer {}\n", NULL },
        { "host a.example\nplace bearer\nadd x-key:id={},v=1\n", NULL },
        { "host a.example\nadd Cookie: sid={}\nplace body\n", NULL },
        { "host a.example\nadd X-Key: none\n", "vault.binding.add" },
        { "host a.example\nadd X-Key: {}{}\n", "vault.binding.add" },
        { "host a.example\nadd X-Key {}\n", "vault.binding.add" },
        { "host a.example\nadd X Key: {}\n", "vault.binding.add" },
        { "host a.example\nadd : {}\n", "vault.binding.add" },
        { "host a.example\nadd X-Key:\n", "vault.binding.add" },
        { "host a.example\nadd X-Key: {} \n", "vault.binding.add" },
        { "host a.example\nadd X-Key: {}\r\n", "vault.binding.add" },
        { "host a.example\nadd X-Key: \303\251{}\n", "vault.binding.add" },
        { "host a.example\nadd Host: {}\n", "vault.binding.add" },
        { "host a.example\nadd content_length: {}\n", "vault.binding.add" },
        { "host a.example\nadd Transfer-Encoding: {}\n", "vault.binding.add" },
        { "host a.example\nadd Connection: {}\n", "vault.binding.add" },
        { "host a.example\nadd Proxy-Authorization: Basic {}\n", "vault.binding.add" },
        { "host a.example\nadd Accept-Encoding: {}\n", "vault.binding.add" },
        { "host a.example\nadd Sec-WebSocket-Protocol: {}\n", "vault.binding.add" },
        { "host a.example\nadd X-A: {}\nadd X-B: {}\n", "vault.binding.add" },
        { "host a.example\nadd X-A: {}\nmethod GET\nmethod Trace\n", "vault.binding.trace" },
        { "host a.example\nmethod TRACE\nadd X-A: {}\n", "vault.binding.trace" },
        { "host a.example\nplace sigv4\nadd X-A: {}\n", "vault.binding.place" },
        { "", "vault.binding.no-host" },
        { "place bearer\n", "vault.binding.no-host" },
        { "host a.example\n", "vault.binding.no-place" },
        { "host *\nplace bearer\n", "vault.binding.host" },
        { "host *.com\nplace bearer\n", "vault.binding.host" },
        { "host a.example:443\nplace bearer\n", "vault.binding.host" },
        { "host https://a.example\nplace bearer\n", "vault.binding.host" },
        { "host a.example\nplace bearer\nport 0\n", "vault.binding.port" },
        { "host a.example\nplace bearer\nport 65536\n", "vault.binding.port" },
        { "host a.example\nplace bearer\nscheme ftp\n", "vault.binding.scheme" },
        { "host a.example\nplace bearer\nmethod G T\n", "vault.binding.words" },
        { "host a.example\nplace bearer\npath v1\n", "vault.binding.path" },
        { "host a.example\nplace bearer\npath /v1/[a\n", "vault.binding.path" },
        { "host a.example\nplace bearer\npath /a b\n", "vault.binding.path" },
        { "host a.example\nplace header\n", "vault.binding.place" },
        { "host a.example\nplace header X Y\n", "vault.binding.place" },
        { "host a.example\nplace header X:\n", "vault.binding.place" },
        { "host a.example\nplace bearer x\n", "vault.binding.place" },
        { "host a.example\nplace bearer\nplace bearer\n", "vault.binding.place" },
        { "host a.example\nplace url\n", "vault.binding.place" },
        { "host a.example\nplace sigv4\nplace bearer\n", "vault.binding.place" },
        { "host a.example\nplace bearer", "vault.binding.syntax" },
        { "host a.example\nplace bearer\n\n", "vault.binding.syntax" },
        { "Host a.example\nplace bearer\n", "vault.binding.key" },
    };
    static struct binding b, again;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        cleanup_buf struct buf text = BUF_INIT(BINDING_TEXT_MAX);
        struct err err = ERR_INIT;
        int r = binding_parse(str_of(rows[i].text), &b, &err);
        if ((r == 0) != (rows[i].code == NULL) || (r < 0 && strcmp(err.code, rows[i].code) != 0))
            fail_msg("%s: %s (%s)", rows[i].text, err.code, err.msg);
        if (r < 0)
            continue;
        assert_int_equal(binding_text(&b, &text), 0);
        assert_int_equal(binding_parse((struct str){ (const char *)text.p, text.n }, &again, &err), 0);
        assert_memory_equal(&b, &again, sizeof(b));
    }
}

/* What the header says, and which ones a run may ask for. */
static void
added(void **state)
{
    static const struct { const char *add, *value, *want; } rows[] = {
        { "Authorization: Bearer {}", "v-1", "Bearer v-1" },
        { "X-Key: {}", "v-1", "v-1" },
        { "X-Key: a{}b", "v-1", "av-1b" },
        { "X-Key:{ {} }", "v-1", "{ v-1 }" },
        { "Authorization: Basic me:{}", "pass", "Basic bWU6cGFzcw==" },
        { "Authorization: basic {}", "me:pass", "Basic bWU6cGFzcw==" },
        { "Authorization: Basic {}", "bWU6cGFzcw==", "Basic bWU6cGFzcw==" },
    };
    static const struct { const char *place, *add, *code; } runs[] = {
        { "place bearer", "authorization: Token {}", NULL },
        { "place basic", "Authorization: Basic me:{}", NULL },
        { "place header x-key", "X-Key: {}", NULL },
        { "place cookie sid", "Cookie: other={}", NULL },
        { "add X-Key: {}", "X-Key: v={}", NULL },
        { "place bearer", "X-Key: {}", "vault.binding.add-other" },
        { "place header X-Key", "X_Key: {}", "vault.binding.add-other" },
        { "place header X-Key", "Authorization: Bearer {}", "vault.binding.add-other" },
        { "place body", "User-Agent: {}", "vault.binding.add-other" },
        { "place query key", "Authorization: Bearer {}", "vault.binding.add-other" },
        { "place bearer\nmethod TRACE", "Authorization: Bearer {}", "vault.binding.trace" },
        { "place bearer", "Authorization: none", "vault.binding.add" },
    };
    static struct binding b;
    char text[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_buf struct buf out = BUF_INIT(256);
        snprintf(text, sizeof(text), "host a.example\nadd %s\n", rows[i].add);
        assert_int_equal(binding_parse(str_of(text), &b, NULL), 0);
        assert_int_equal(binding_added_value(&b, (const uint8_t *)rows[i].value, strlen(rows[i].value), &out), 0);
        assert_int_equal(buf_nul(&out), 0);
        assert_string_equal((const char *)out.p, rows[i].want);
    }
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct err err = ERR_INIT;
        snprintf(text, sizeof(text), "host a.example\n%s\n", runs[i].place);
        assert_int_equal(binding_parse(str_of(text), &b, NULL), 0);
        assert_int_equal(binding_add_for_run(&b, str_of(runs[i].add), &err), runs[i].code == NULL ? 0 : -1);
        assert_string_equal(err.code, runs[i].code == NULL ? "" : runs[i].code);
    }
    assert_true(binding_same_header(STR_LIT("X_Api-KEY"), STR_LIT("x-api_key")));
    assert_false(binding_same_header(STR_LIT("X-Api-Key"), STR_LIT("X-Api-Keys")));
    assert_false(binding_same_header(STR_LIT("X-Api-Key"), STR_LIT("X.Api.Key")));
}

static void
permits(void **state)
{
    static const char text[] = "host api.example.org\nhost *.data.example.org\nplace bearer\nmethod GET\nmethod POST\n"
                               "path /v1/**\npath /me\n";
    static const struct { bool tls; const char *host; uint16_t port; const char *method, *path; bool ok; } rows[] = {
        { true, "api.example.org", 443, "GET", "/v1/x", true },
        { true, "API.example.org.", 443, "POST", "/v1/x/y", true },
        { true, "a.data.example.org", 443, "GET", "/me", true },
        { true, "a.b.data.example.org", 443, "GET", "/me", false },
        { true, "data.example.org", 443, "GET", "/me", false },
        { false, "api.example.org", 443, "GET", "/v1/x", false },
        { false, "api.example.org", 80, "GET", "/v1/x", false },
        { true, "api.example.org", 8443, "GET", "/v1/x", false },
        { true, "api.example.org", 443, "DELETE", "/v1/x", false },
        { true, "api.example.org", 443, "get", "/v1/x", false },
        { true, "api.example.org", 443, "GET", "/v2/x", false },
        { true, "api.example.org", 443, "GET", "/me/", false },
        { true, "api.example.org", 443, "GET", "/v1/../v2", false },
        { true, "api.example.org", 443, "GET", "/v1/..", false },
        { true, "api.example.org", 443, "GET", "/v1/./x", false },
        { true, "api.example.org", 443, "GET", "/v1//x", false },
        { true, "api.example.org", 443, "GET", "/v1/%2e%2e/x", false },
        { true, "api.example.org", 443, "GET", "/v1/%2Fx", false },
        { true, "api.example.org", 443, "GET", "/v1/%5cx", false },
        { true, "api.example.org", 443, "GET", "/v1/%252e", false },
        { true, "api.example.org", 443, "GET", "/v1/\\x", false },
        { true, "api.example.org", 443, "GET", "/v1;a/x", false },
        { true, "api.example.org", 443, "GET", "v1/x", false },
        { true, "api.example.org", 443, "GET", "", false },
        { true, "evilapi.example.org", 443, "GET", "/v1/x", false },
        { true, "api.example.org.evil", 443, "GET", "/v1/x", false },
    };
    static struct binding b;

    (void)state;
    assert_int_equal(binding_parse(STR_LIT(text), &b, NULL), 0);
    for (size_t i = 0; i < N(rows); i++) {
        struct binding_request r = { .tls = rows[i].tls, .port = rows[i].port, .method = str_of(rows[i].method),
                                     .path = str_of(rows[i].path) };
        assert_int_equal(host_canonical(str_of(rows[i].host), &r.host), HOST_OK);
        if (binding_permits(&b, &r) != rows[i].ok)
            fail_msg("%s %s %s", rows[i].method, rows[i].host, rows[i].path);
    }
}

static void
builtins(void **state)
{
    static struct binding b;

    (void)state;
    for (size_t i = 0; i < binding_n_builtins; i++) {
        const struct binding_builtin *known = &binding_builtins[i];
        struct err err = ERR_INIT;
        bool hosts = strncmp(known->text, "host ", 5) == 0;
        assert_ptr_equal(binding_builtin(known->name), known);
        assert_true(store_env_valid(str_of(known->env)) && store_name_valid(str_of(known->name)));
        assert_int_equal(binding_parse(str_of(known->text), &b, &err), hosts ? 0 : -1);
        assert_string_equal(err.code, hosts ? "" : "vault.binding.no-host");
        /* a package registry is named by its user, never by us */
        assert_int_equal(hosts, strcmp(known->name, "npm") != 0 && strcmp(known->name, "pypi") != 0);
    }
    assert_null(binding_builtin("nothing"));
}

static char
class_of(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? 'A' : c >= 'a' && c <= 'z' ? 'a' : c >= '0' && c <= '9' ? '0' : (char)c;
}

static void
placeholders(void **state)
{
    static const struct { const char *value; size_t prefix; } rows[] = {
        { "sk-ant-api03-AbCdEfGh_1234-xyzXYZ", 13 }, { "sk-proj-abcdefgh12345678", 8 }, { "sk-abcdefgh12345678", 3 },
        { "ghp_abcdefghijklmnopqrstuvwxyz0123456789", 4 }, { "github_pat_11AAAAAAA0abcdefgh", 11 },
        { "glpat-abcdefgh12345678", 6 }, { "npm_abcdefgh12345678", 4 }, { "pypi-AgEIcHlwaS5vcmcCJGFi", 5 },
        { "AKIAIOSFODNN7EXAMPLE", 4 }, { "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 0 }, { "deadbeef00112233", 0 },
        { "12345678", 0 }, { "a b c d e f g h", 0 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        const uint8_t *value = (const uint8_t *)rows[i].value;
        size_t n = strlen(rows[i].value);
        struct err err = ERR_INIT;
        if (placeholder_fit(value, n, &err) < 0)
            fail_msg("%s: %s", rows[i].value, err.msg);
        assert_int_equal(placeholder_prefix(value, n), rows[i].prefix);
        for (int k = 0; k < 200; k++) {
            uint8_t random[256], out[128];
            assert_int_equal(seal_random(random, 2 * n, NULL), 0);
            if (!placeholder_make(value, n, random, out))
                continue;
            assert_memory_equal(out, value, rows[i].prefix);
            assert_memory_not_equal(out, value, n);
            for (size_t c = 0; c < n; c++)
                assert_int_equal(class_of(out[c]), class_of(value[c]));
        }
    }
}

/* Lines, PEM's armour and JSON's form stay, the rest does not. "~" in @form: made anew. */
static void
forms_stay(void **state)
{
    static const struct { const char *value, *form; } rows[] = {
        { "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB+/ab\r\nZz==\n-----END RSA PRIVATE KEY-----\n",
          "-----BEGIN RSA PRIVATE KEY-----\n~~~~~~~~+/~~\r\n~~==\n-----END RSA PRIVATE KEY-----\n" },
        { "-----BEGIN rsa KEY-----\nabcdefgh", "-----~~~~~ ~~~ ~~~-----\n~~~~~~~~" },
        { "-----BEGIN X\nabcdefgh", "-----~~~~~ ~\n~~~~~~~~" },
        { "{ \"type\": \"service_account\", \"n\": 12, \"b\" : true,\n "
          "\"key\":\"a1\\nB2\\u00e9c\\\"Defgh\", \"l\": [\"xyz\"] }",
          "{ \"type\": \"service_account\", \"n\": 12, \"b\" : true,\n "
          "\"key\":\"~~\\n~~\\u00e9~\\\"~~~~~\", \"l\": [\"~~~\"] }" },
        { "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nMIIEabcd\\n-----END PRIVATE KEY-----\\n\"}",
          "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n~~~~~~~~\\n-----END PRIVATE KEY-----\\n\"}" },
        { "{\"a\": \"abcdefgh1\\", "{\"~\": \"~~~~~~~~~\\" },    /* no object: an ordinary value */
        { "two lines\nof 12345678", "~~~ ~~~~~\n~~ ~~~~~~~~" },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        const uint8_t *value = (const uint8_t *)rows[i].value;
        size_t n = strlen(rows[i].value);
        struct err err = ERR_INIT;
        bool kept[256];
        uint8_t random[512], out[256];
        assert_int_equal(n, strlen(rows[i].form));
        if (placeholder_fit(value, n, &err) < 0)
            fail_msg("%s: %s", rows[i].value, err.msg);
        placeholder_kept(value, n, kept);
        do
            assert_int_equal(seal_random(random, 2 * n, NULL), 0);
        while (!placeholder_make(value, n, random, out));
        for (size_t c = 0; c < n; c++) {
            if (rows[i].form[c] == '~')
                assert_false(kept[c]);
            else
                assert_int_equal(out[c], rows[i].form[c]);
            assert_int_equal(class_of(out[c]), class_of(value[c]));
        }
    }
}

static void
lines_and_places(void **state)
{
    static const struct { const char *place; bool ok; } rows[] = {
        { "body", true }, { "query k", true }, { "bearer", false }, { "basic", false }, { "header X", false },
        { "cookie c", false }, { "sigv4", false }, { "body\nplace bearer", false },
    };
    static struct binding b;

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        char text[128];
        struct err err = ERR_INIT;
        snprintf(text, sizeof(text), "host a.example\nplace %s\n", rows[i].place);
        assert_int_equal(binding_parse(str_of(text), &b, &err), 0);
        assert_int_equal(placeholder_fit_places((const uint8_t *)"one\ntwo", 7, &b, &err), rows[i].ok ? 0 : -1);
        assert_string_equal(err.code, rows[i].ok ? "" : "vault.value.lines");
        assert_int_equal(placeholder_fit_places((const uint8_t *)"one two", 7, &b, &err), 0);
    }
}

/* Random bytes that would give back the value, or eight characters of it, are refused. */
static void
placeholder_never_the_value(void **state)
{
    uint8_t random[64] = { 0 }, out[32];

    (void)state;
    assert_false(placeholder_make((const uint8_t *)"aaaaaaaaaaaa", 12, random, out));
    assert_false(placeholder_make((const uint8_t *)"zzzzaaaa0000", 12, random, out));
    assert_true(placeholder_make((const uint8_t *)"zzzzaaaa9999", 12, random, out));
    assert_memory_equal(out, "aaaaaaaa0000", 12);
}

static void
values_refused(void **state)
{
    static const struct { const char *value; size_t n; } rows[] = {
        { "short", 5 }, { "", 0 }, { "with\rreturn12345", 16 },
        { "-----BEGIN X-----\n12345\n-----END X-----", 39 }, { "with\x1b[escape12", 15 },
        { "with\0nul12345678", 16 }, { "\xc3\xa4" "bcdefghijkl", 13 },
        { "--------------------", 20 }, { "ghp_abc", 7 }, { "sk-ant-api03-abc-def", 20 },
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(placeholder_fit((const uint8_t *)rows[i].value, rows[i].n, &err), -1);
        assert_string_equal(err.code, "vault.value");
        /* whoever reads the message does not read the value */
        assert_true(rows[i].n < 5 || strstr(err.msg, rows[i].value) == NULL);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binding_rows), cmocka_unit_test(added), cmocka_unit_test(permits), cmocka_unit_test(builtins),
        cmocka_unit_test(placeholders), cmocka_unit_test(placeholder_never_the_value), cmocka_unit_test(values_refused),
        cmocka_unit_test(forms_stay), cmocka_unit_test(lines_and_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
