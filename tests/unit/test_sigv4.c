/* vault/sigv4: the vectors of AWS's own test suite and documentation */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "vault/sigv4.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DATE  "20150830T123600Z"

static const char id_text[] = "AKIDEXAMPLE", key_text[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/* aws-sig-v4-test-suite: what is asked, and the signature that comes out; region us-east-1, service "service". Headers
 * besides Host and X-Amz-Date as NAME, VALUE pairs. */
static const struct vector {
    const char *name, *method, *target, *headers[8], *signed_headers, *payload, *signature;
} vectors[] = {
    { "get-vanilla", "GET", "/", { NULL }, "host;x-amz-date", EMPTY,
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    { "get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", { NULL }, "host;x-amz-date", EMPTY,
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
    { "get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", { NULL },
      "host;x-amz-date", EMPTY, "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },
    { "get-utf8", "GET", "/\xe1\x88\xb4", { NULL }, "host;x-amz-date", EMPTY,
      "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
    { "get-vanilla-utf8-query", "GET", "/?\xe1\x88\xb4=bar", { NULL }, "host;x-amz-date", EMPTY,
      "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04" },
    { "get-relative", "GET", "/example/..", { NULL }, "host;x-amz-date", EMPTY,
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    { "get-relative-relative", "GET", "/example1/example2/../..", { NULL }, "host;x-amz-date", EMPTY,
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    { "get-slashes", "GET", "//example//", { NULL }, "host;x-amz-date", EMPTY,
      "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84" },
    { "get-header-value-trim", "GET", "/", { "My-Header1", " value1", "My-Header2", " \"a   b   c\"" },
      "host;my-header1;my-header2;x-amz-date", EMPTY,
      "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
    { "get-header-key-duplicate", "GET", "/", { "My-Header1", "value2", "My-Header1", "value2", "My-Header1", "value1" },
      "host;my-header1;x-amz-date", EMPTY, "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea" },
    { "post-vanilla", "POST", "/", { NULL }, "host;x-amz-date", EMPTY,
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
    { "post-x-www-form-urlencoded", "POST", "/", { "Content-Type", "application/x-www-form-urlencoded" },
      "content-type;host;x-amz-date", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
      "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a" },
};

static void
sign(const struct sigv4_request *r, const char *key, struct str date, const char *service, char signature[65])
{
    cleanup_buf struct buf canonical = BUF_INIT(8192), out = BUF_INIT(1024);
    cleanup_secret struct secret id = { NULL, 0 }, secret = { NULL, 0 };
    uint8_t hash[SIGV4_HASH];
    const char *at;

    assert_int_equal(secret_copy(&id, id_text, strlen(id_text), NULL), 0);
    assert_int_equal(secret_copy(&secret, key, strlen(key), NULL), 0);
    assert_true(sigv4_canonical(r, &canonical));
    assert_true(sigv4_hash(canonical.p, canonical.n, hash));
    assert_true(sigv4_sign(&id, &secret, date, STR_LIT("us-east-1"), str_of(service), r->signed_headers, hash, &out));
    assert_int_equal(strncmp((const char *)out.p, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", 40), 0);
    at = strstr((const char *)out.p, "Signature=");
    assert_non_null(at);
    assert_int_equal(strlen(at + 10), 64);
    memcpy(signature, at + 10, 65);
}

static void
test_suite(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const struct vector *v = &vectors[i];
        struct sigv4_header headers[6] = { { STR_LIT("Host"), STR_LIT("example.amazonaws.com") },
                                           { STR_LIT("X-Amz-Date"), STR_LIT(DATE) } };
        struct sigv4_request r = { .method = str_of(v->method), .target = str_of(v->target), .headers = headers,
                                   .n_headers = 2, .signed_headers = str_of(v->signed_headers),
                                   .payload = str_of(v->payload) };
        char signature[65];
        for (size_t k = 0; k < 8 && v->headers[k] != NULL; k += 2)
            headers[r.n_headers++] = (struct sigv4_header){ str_of(v->headers[k]), str_of(v->headers[k + 1]) };
        sign(&r, key_text, STR_LIT(DATE), "service", signature);
        if (strcmp(signature, v->signature) != 0)
            fail_msg("%s: %s", v->name, signature);
    }
}

/* The worked example of the documentation: every intermediate value is published. */
static void
test_list_users(void **state)
{
    static const struct sigv4_header headers[] = {
        { STR_LIT("content-type"), STR_LIT("application/x-www-form-urlencoded; charset=utf-8") },
        { STR_LIT("host"), STR_LIT("iam.amazonaws.com") }, { STR_LIT("x-amz-date"), STR_LIT(DATE) },
    };
    const struct sigv4_request r = {
        .method = STR_LIT("GET"), .target = STR_LIT("/?Action=ListUsers&Version=2010-05-08"), .headers = headers,
        .n_headers = 3, .signed_headers = STR_LIT("content-type;host;x-amz-date"), .payload = STR_LIT(EMPTY),
    };
    cleanup_buf struct buf canonical = BUF_INIT(4096);
    uint8_t hash[SIGV4_HASH];
    char hex[65], signature[65];

    (void)state;
    assert_true(sigv4_canonical(&r, &canonical));
    assert_true(sigv4_hash(canonical.p, canonical.n, hash));
    sha256_text(hash, hex);
    assert_string_equal(hex, "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
    sign(&r, key_text, STR_LIT(DATE), "iam", signature);
    assert_string_equal(signature, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

/* S3's documentation: GET object with a range; the path is taken as it is. */
static void
test_s3(void **state)
{
    static const struct sigv4_header headers[] = {
        { STR_LIT("Host"), STR_LIT("examplebucket.s3.amazonaws.com") }, { STR_LIT("Range"), STR_LIT("bytes=0-9") },
        { STR_LIT("x-amz-content-sha256"), STR_LIT(EMPTY) }, { STR_LIT("x-amz-date"), STR_LIT("20130524T000000Z") },
    };
    const struct sigv4_request r = {
        .method = STR_LIT("GET"), .target = STR_LIT("/test.txt"), .headers = headers, .n_headers = 4, .s3 = true,
        .signed_headers = STR_LIT("host;range;x-amz-content-sha256;x-amz-date"), .payload = STR_LIT(EMPTY),
    };
    char signature[65];

    (void)state;
    sign(&r, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", STR_LIT("20130524T000000Z"), "s3", signature);
    assert_string_equal(signature, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void
test_parse(void **state)
{
    static const struct { const char *text; bool ok; } rows[] = {
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=host;x-amz-date, "
          "Signature=00", true },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request,SignedHeaders=host,Signature=00", true },
        { "AWS4-HMAC-SHA256 SignedHeaders=host, Credential=AK/20150830/us-east-1/iam/aws4_request, Signature=0", true },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=x-amz-date;host", false },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=x-amz-date", false },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=Host", false },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=host;;x", false },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/aws4_request, SignedHeaders=host", false },
        { "AWS4-HMAC-SHA256 Credential=AK/2015/us-east-1/iam/aws4_request, SignedHeaders=host", false },
        { "AWS4-HMAC-SHA256 Credential=/20150830/us-east-1/iam/aws4_request, SignedHeaders=host", false },
        { "AWS4-HMAC-SHA256 Credential=AK/20150830/us-east-1/iam/aws5_request, SignedHeaders=host", false },
        { "AWS4-HMAC-SHA256 SignedHeaders=host", false },
        { "AWS4-HMAC-SHA256 ", false },
        { "AWS4-ECDSA-P256-SHA256 Credential=AK/20150830/us-east-1/iam/aws4_request, SignedHeaders=host", false },
        { "Bearer x", false },
        { "", false },
    };
    struct sigv4_authorization a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (sigv4_parse(str_of(rows[i].text), &a) != rows[i].ok)
            fail_msg("%s", rows[i].text);
    assert_true(sigv4_parse(str_of(rows[0].text), &a));
    assert_true(str_eq_c(a.id, "AK") && str_eq_c(a.day, "20150830") && str_eq_c(a.region, "us-east-1") &&
                str_eq_c(a.service, "iam") && str_eq_c(a.signed_headers, "host;x-amz-date"));
}

static void
test_date(void **state)
{
    const uint64_t then = 1440938160;   /* 2015-08-30 12:36:00 */

    (void)state;
    assert_true(sigv4_date_near(STR_LIT(DATE), then, 0));
    assert_true(sigv4_date_near(STR_LIT(DATE), then + 900, 900));
    assert_true(sigv4_date_near(STR_LIT(DATE), then - 900, 900));
    assert_false(sigv4_date_near(STR_LIT(DATE), then + 901, 900));
    assert_false(sigv4_date_near(STR_LIT("20150830T123600"), then, 900));
    assert_false(sigv4_date_near(STR_LIT("20150830 123600Z"), then, 900));
    assert_false(sigv4_date_near(STR_LIT("20151330T123600Z"), then, UINT64_MAX));
    assert_false(sigv4_date_near(STR_LIT("2015083xT123600Z"), then, UINT64_MAX));
}

static void
test_missing_header(void **state)
{
    const struct sigv4_header headers[] = { { STR_LIT("Host"), STR_LIT("x") } };
    struct sigv4_request r = { .method = STR_LIT("GET"), .target = STR_LIT("/"), .headers = headers, .n_headers = 1,
                               .signed_headers = STR_LIT("host;x-amz-date"), .payload = STR_LIT(EMPTY) };
    cleanup_buf struct buf out = BUF_INIT(4096);

    (void)state;
    assert_false(sigv4_canonical(&r, &out));
    r.signed_headers = STR_LIT("host");
    r.target = STR_LIT("x");
    assert_false(sigv4_canonical(&r, &out));
}

static int
memory(void **state)
{
    (void)state;
    return secret_memory_init(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suite), cmocka_unit_test(test_list_users), cmocka_unit_test(test_s3),
        cmocka_unit_test(test_parse), cmocka_unit_test(test_date), cmocka_unit_test(test_missing_header),
    };

    return cmocka_run_group_tests(tests, memory, NULL);
}
