/* egress/swap, the search of answers: spellings that programs have, and codings one within the other */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "egress/swap.h"
#include "swap_hidden.h"

/* What is found is put out in as many bytes. */
static void
check_spelled(struct swap *s, const char *in, const char *want)
{
    assert_int_equal(strlen(in), strlen(want));
    check_cuts(s, in, want);
}

/* Spelled once, in ways that programs have. */
static void
test_hidden_spellings(void **state)
{
    static const char *const texts[][2] = {
        /* octal */
        { "v=\\163\\153\\055\\101\\142\\061\\057\\170\\071\\121\\167\\053\\162\\124\\171\\067\\165\\111\\157\\1"
          "20;",
          "v=\\163\\153\\055\\132\\171\\062\\057\\141\\070\\115\\156\\053\\142\\126\\143\\063\\170\\132\\141\\1"
          "23;" },
        /* css */
        { "v=\\73 \\6B \\2D \\41 \\62 \\31 \\2F \\78 \\39 \\51 \\77 \\2B \\72 \\54 \\79 \\37 \\75 \\49 \\6F \\5"
          "0 ;",
          "v=\\73 \\6B \\2D \\5A \\79 \\32 \\2F \\61 \\38 \\4D \\6E \\2B \\62 \\56 \\63 \\33 \\78 \\5A \\61 \\5"
          "3 ;" },
        /* css6 */
        { "v=\\000073\\00006B\\00002D\\000041\\000062\\000031\\00002F\\000078\\000039\\000051\\000077\\00002B"
          "\\000072\\000054\\000079\\000037\\000075\\000049\\00006F\\000050;",
          "v=\\000073\\00006B\\00002D\\00005A\\000079\\000032\\00002F\\000061\\000038\\00004D\\00006E\\00002B"
          "\\000062\\000056\\000063\\000033\\000078\\00005A\\000061\\000053;" },
        /* braces */
        { "v=\\u{73}\\u{6B}\\u{2D}\\u{41}\\u{62}\\u{31}\\u{2F}\\u{78}\\u{39}\\u{51}\\u{77}\\u{2B}\\u{72}\\u{54}"
          "\\u{79}\\u{37}\\u{75}\\u{49}\\u{6F}\\u{50};",
          "v=\\u{73}\\u{6B}\\u{2D}\\u{5A}\\u{79}\\u{32}\\u{2F}\\u{61}\\u{38}\\u{4D}\\u{6E}\\u{2B}\\u{62}\\u{56}"
          "\\u{63}\\u{33}\\u{78}\\u{5A}\\u{61}\\u{53};" },
        /* perl */
        { "v=\\x{0073}\\x{006B}\\x{002D}\\x{0041}\\x{0062}\\x{0031}\\x{002F}\\x{0078}\\x{0039}\\x{0051}\\x{0077"
          "}\\x{002B}\\x{0072}\\x{0054}\\x{0079}\\x{0037}\\x{0075}\\x{0049}\\x{006F}\\x{0050};",
          "v=\\x{0073}\\x{006B}\\x{002D}\\x{005A}\\x{0079}\\x{0032}\\x{002F}\\x{0061}\\x{0038}\\x{004D}\\x{006E"
          "}\\x{002B}\\x{0062}\\x{0056}\\x{0063}\\x{0033}\\x{0078}\\x{005A}\\x{0061}\\x{0053};" },
        /* U8 */
        { "v=\\U00000073\\U0000006B\\U0000002D\\U00000041\\U00000062\\U00000031\\U0000002F\\U00000078\\U0000003"
          "9\\U00000051\\U00000077\\U0000002B\\U00000072\\U00000054\\U00000079\\U00000037\\U00000075\\U00000049"
          "\\U0000006F\\U00000050;",
          "v=\\U00000073\\U0000006B\\U0000002D\\U0000005A\\U00000079\\U00000032\\U0000002F\\U00000061\\U0000003"
          "8\\U0000004D\\U0000006E\\U0000002B\\U00000062\\U00000056\\U00000063\\U00000033\\U00000078\\U0000005A"
          "\\U00000061\\U00000053;" },
        /* entity */
        { "v=&#115&#107&#045&#065&#098&#049&#047&#120&#057&#081&#119&#043&#114&#084&#121&#055&#117&#073&#111&#0"
          "80;",
          "v=&#115&#107&#045&#090&#121&#050&#047&#097&#056&#077&#110&#043&#098&#086&#099&#051&#120&#090&#097&#0"
          "83;" },
        /* entityx */
        { "v=&#x73&#x6B&#x2D&#x41&#x62&#x31&#x2F&#x78&#x39&#x51&#x77&#x2B&#x72&#x54&#x79&#x37&#x75&#x49&#x6F&#x"
          "50;",
          "v=&#x73&#x6B&#x2D&#x5A&#x79&#x32&#x2F&#x61&#x38&#x4D&#x6E&#x2B&#x62&#x56&#x63&#x33&#x78&#x5A&#x61&#x"
          "53;" },
        /* rtf */
        { "v=\\'73\\'6B\\'2D\\'41\\'62\\'31\\'2F\\'78\\'39\\'51\\'77\\'2B\\'72\\'54\\'79\\'37\\'75\\'49\\'6F\\'"
          "50;",
          "v=\\'73\\'6B\\'2D\\'5A\\'79\\'32\\'2F\\'61\\'38\\'4D\\'6E\\'2B\\'62\\'56\\'63\\'33\\'78\\'5A\\'61\\'"
          "53;" },
    };
    struct swap *s = hidden(VALUE);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_spelled(s, texts[i][0], texts[i][1]);
    swap_free(s);
}

/* However the stream is cut, nothing that @in has of the value comes; as much comes as came. */
static void
check_nothing_left(struct swap *s, const char *in)
{
    size_t n = strlen(in);

    for (size_t a = 0; a <= n; a += a % 5 + 1) {
        struct buf out = BUF_INIT(4096);
        size_t nothing = 0;
        assert_int_equal(swap_feed(s, in, a, false, &out), 0);
        assert_int_equal(out.n + swap_held(s), a);
        assert_int_equal(swap_feed(s, in + a, n - a, true, &out), 0);
        assert_int_equal(out.n, n);
        assert_int_equal(swap_seen(s), 1);
        for (size_t i = 0; i < n; i++)
            nothing += out.p[i] == 'A';
        if (nothing + 40 < n)
            fail_msg("%s: %.*s", in, (int)out.n, (const char *)out.p);
        buf_free(&out);
    }
}

static const char *const beneath[] = {
    /* percent thrice */
    "v: %252573%25256B%25252D%252541%252562%252531%25252F%252578%252539%252"
    "551%252577%25252B%252572%252554%252579%252537%252575%252549%25256F%252"
    "550",
    /* percent of percent */
    "v: %25%37%33%25%36%42%25%32%44%25%34%31%25%36%32%25%33%31%25%32%46%25%"
    "37%38%25%33%39%25%35%31%25%37%37%25%32%42%25%37%32%25%35%34%25%37%39%2"
    "5%33%37%25%37%35%25%34%39%25%36%46%25%35%30",
    /* json in json in json */
    "v: \\\"[\\\\\\\\u0073\\\\\\\\u006b\\\\\\\\u002d\\\\\\\\u0041\\\\\\\\u0062\\\\\\\\u0031\\\\\\\\u002f\\"
    "\\\\\\u0078\\\\\\\\u0039\\\\\\\\u0051\\\\\\\\u0077\\\\\\\\u002b\\\\\\\\u0072\\\\\\\\u0054\\\\\\\\u007"
    "9\\\\\\\\u0037\\\\\\\\u0075\\\\\\\\u0049\\\\\\\\u006f\\\\\\\\u0050]\\\"",
    /* json in percent */
    "v: %5C%75%30%30%37%33%5C%75%30%30%36%62%5C%75%30%30%32%64%5C%75%30%30%"
    "34%31%5C%75%30%30%36%32%5C%75%30%30%33%31%5C%75%30%30%32%66%5C%75%30%3"
    "0%37%38%5C%75%30%30%33%39%5C%75%30%30%35%31%5C%75%30%30%37%37%5C%75%30"
    "%30%32%62%5C%75%30%30%37%32%5C%75%30%30%35%34%5C%75%30%30%37%39%5C%75%"
    "30%30%33%37%5C%75%30%30%37%35%5C%75%30%30%34%39%5C%75%30%30%36%66%5C%7"
    "5%30%30%35%30",
    /* html of html */
    "v: &amp;#115;&amp;#107;&amp;#45;&amp;#65;&amp;#98;&amp;#49;&amp;#47;&a"
    "mp;#120;&amp;#57;&amp;#81;&amp;#119;&amp;#43;&amp;#114;&amp;#84;&amp;#"
    "121;&amp;#55;&amp;#117;&amp;#73;&amp;#111;&amp;#80;",
    /* html of json */
    "v: &#92;u0073&#92;u006b&#92;u002d&#92;u0041&#92;u0062&#92;u0031&#92;u0"
    "02f&#92;u0078&#92;u0039&#92;u0051&#92;u0077&#92;u002b&#92;u0072&#92;u0"
    "054&#92;u0079&#92;u0037&#92;u0075&#92;u0049&#92;u006f&#92;u0050",
    /* html in json */
    "v: \\u0026#115;\\u0026#107;\\u0026#45;\\u0026#65;\\u0026#98;\\u0026#49;\\u002"
    "6#47;\\u0026#120;\\u0026#57;\\u0026#81;\\u0026#119;\\u0026#43;\\u0026#114;\\u"
    "0026#84;\\u0026#121;\\u0026#55;\\u0026#117;\\u0026#73;\\u0026#111;\\u0026#80"
    ";",
    /* octal in a string */
    "v: \\\\163\\\\153\\\\055\\\\101\\\\142\\\\061\\\\057\\\\170\\\\071\\\\121\\\\167\\\\053\\\\162\\\\"
    "124\\\\171\\\\067\\\\165\\\\111\\\\157\\\\120",
    /* braces in a string */
    "v: \\\\\\u{73}\\\\\\u{6b}\\\\\\u{2d}\\\\\\u{41}\\\\\\u{62}\\\\\\u{31}\\\\\\u{2f}\\\\\\u{78}\\\\\\"
    "u{39}\\\\\\u{51}\\\\\\u{77}\\\\\\u{2b}\\\\\\u{72}\\\\\\u{54}\\\\\\u{79}\\\\\\u{37}\\\\\\u{75}\\"
    "\\\\u{49}\\\\\\u{6f}\\\\\\u{50}",
    /* base64 of base64 */
    "v: YzJzdFFXSXhMM2c1VVhjcmNsUjVOM1ZKYjFBPQ==",
    /* base64 of base64 of more */
    "v: eGRYWnpheTFCWWpFdmVEbFJkeXR5VkhrM2RVbHZVQ0U9",
    /* base64 thrice */
    "v: WXpKemRGRlhTWGhNTTJjMVZWaGpjbU5zVWpWT00xWktZakZCUFE9PQ==",
    /* base64 of UTF-16 */
    "v: cwBrAC0AQQBiADEALwB4ADkAUQB3ACsAcgBUAHkANwB1AEkAbwBQAA==",
    /* base64 of UTF-16, other */
    "v: AHMAawAtAEEAYgAxAC8AeAA5AFEAdwArAHIAVAB5ADcAdQBJAG8AUA==",
    /* base64url of UTF-16 */
    "v: _wD-AHMAawAtAEEAYgAxAC8AeAA5AFEAdwArAHIAVAB5ADcAdQBJAG8AUAA=",
    /* base64 of UTF-32 */
    "v: cwAAAGsAAAAtAAAAQQAAAGIAAAAxAAAALwAAAHgAAAA5AAAAUQAAAHcAAAArAAAAcgA"
    "AAFQAAAB5AAAANwAAAHUAAABJAAAAbwAAAFAAAAA=",
    /* hex of UTF-16 */
    "v: 73006b002d004100620031002f0078003900510077002b007200540079003700750"
    "049006f005000",
    /* base64 of percent */
    "v: JTczJTZCJTJEJTQxJTYyJTMxJTJGJTc4JTM5JTUxJTc3JTJCJTcyJTU0JTc5JTM3JTc"
    "1JTQ5JTZGJTUw",
    /* base64 of json */
    "v: XHUwMDczXHUwMDZiXHUwMDJkXHUwMDQxXHUwMDYyXHUwMDMxXHUwMDJmXHUwMDc4XHU"
    "wMDM5XHUwMDUxXHUwMDc3XHUwMDJiXHUwMDcyXHUwMDU0XHUwMDc5XHUwMDM3XHUwMDc1X"
    "HUwMDQ5XHUwMDZmXHUwMDUw",
    /* hex of base64 */
    "v: 63327374515749784c33673555586372636c52354e33564a6231413d",
    /* base64 of hex */
    "v: NzM2YjJkNDE2MjMxMmY3ODM5NTE3NzJiNzI1NDc5Mzc3NTQ5NmY1MA==",
    /* hex of hex */
    "v: 3733366232643431363233313266373833393531373732623732353437393337373"
    "5343936663530",
    /* percent of base64 of base64 */
    "v: YzJzdFFXSXhMM2c1VVhjcmNsUjVOM1ZKYjFBPQ%3D%3D",
    /* base32 */
    "v: ONVS2QLCGEXXQOKRO4VXEVDZG52US32Q",
    /* base32 with more */
    "v: ovzwk4r2onvs2qlcgexxqokro4vxevdzg52us32qee======",
    /* base64 of base32 */
    "v: T05WUzJRTENHRVhYUU9LUk80VlhFVkRaRzUyVVMzMlE=",
    /* numbers */
    "v: [115, 107, 45, 65, 98, 49, 47, 120, 57, 81, 119, 43, 114, 84, 121, "
    "55, 117, 73, 111, 80]",
    /* numbers in json */
    "v: {\"type\":\"Buffer\",\"data\":[115,107,45,65,98,49,47,120,57,81,119,43,11"
    "4,84,121,55,117,73,111,80]}",
    /* numbers in hexadecimal */
    "v: 0x73, 0x6B, 0x2D, 0x41, 0x62, 0x31, 0x2F, 0x78, 0x39, 0x51, 0x77, 0"
    "x2B, 0x72, 0x54, 0x79, 0x37, 0x75, 0x49, 0x6F, 0x50",
    /* numbers in Go */
    "v: 115 107 45 65 98 49 47 120 57 81 119 43 114 84 121 55 117 73 111 80",
    /* quoted-printable of base64 */
    "v: YzJzdFFXSXhMM2c1VVhjcmNsUjVOM1ZKYjFBPQ=3D=3D",
    /* UTF-7 */
    "v: +AHMAawAtAEEAYgAxAC8AeAA5AFEAdwArAHIAVAB5ADcAdQBJAG8AUA-",
    /* in hexadecimal, of base64, by pairs */
    "v: "
    "63:32:73:74:51:57:49:78:4c:33:67:35:55:58:63:72:63:6c:52:35:4e:33:56:4"
    "a:62:31:41:3d",
    /* pairs of escapes */
    "v: "
    "3d:37:33:3d:36:42:3d:32:44:3d:34:31:3d:36:32:3d:33:31:3d:32:46:3d:37:3"
    "8:3d:33:39:3d:35:31:3d:37:37:3d:32:42:3d:37:32:3d:35:34:3d:37:39:3d:33"
    ":37:3d:37:35:3d:34:39:3d:36:46:3d:35:30",
    /* behind letters of the other case */
    "v: "
    "xxJ5HFMUZSKFGEGR2FLBMFCT2LKJHTIVSYIVLEIWSHGUZFKUZTGJIQ====",
    /* pairs in octal */
    "v: "
    "\\067\\063\\072\\066\\142\\072\\062\\144\\072\\064\\061\\072\\066\\062\\072\\063\\061\\0"
    "72\\062\\146\\072\\067\\070\\072\\063\\071\\072\\065\\061\\072\\067\\067\\072\\062\\142"
    "\\072\\067\\062\\072\\065\\064\\072\\067\\071\\072\\063\\067\\072\\067\\065\\072\\064\\0"
    "71\\072\\066\\146\\072\\065\\060",
    /* octal, a blank behind it */
    "v: "
    "\\075\\067\\063\\075\\066\\102\\075\\062\\104\\075\\064\\061\\075\\066\\062\\075\\063\\0"
    "61\\075\\062\\106\\075\\067\\070\\075\\063\\071\\075\\065\\061\\075\\067\\067\\075\\062"
    "\\102\\075\\067\\062\\075\\065\\064\\075\\067\\071\\075\\063\\067\\075\\067\\065\\075\\0"
    "64\\071\\075\\066\\106\\075\\065\\060 b",
    /* numbers behind letters */
    "v: "
    "q0x73, 0x6b, 0x2d, 0x41, 0x62, 0x31, 0x2f, 0x78, 0x39, 0x51, 0x77, 0x2"
    "b, 0x72, 0x54, 0x79, 0x37, 0x75, 0x49, 0x6f, 0x50",
    /* in capitals, in small letters, and so in base64 */
    "v: SK-AB1/X9QW+RTY7UIOP",
    "v: sk-ab1/x9qw+rty7uiop",
    "v: U0stQUIxL1g5UVcrUlRZN1VJT1A=",
};

/* One coding within the other, and those that nothing of the same length can be put into. */
static void
test_beneath(void **state)
{
    struct swap *s = hidden(VALUE), *other = hidden(OTHER);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(beneath); i++) {
        struct buf out = BUF_INIT(4096);
        size_t n = strlen(beneath[i]);
        check_nothing_left(s, beneath[i]);
        assert_int_equal(swap_feed(other, beneath[i], n, true, &out), 0);     /* it was the value that was found */
        assert_memory_equal(out.p, beneath[i], n);
        assert_int_equal(swap_seen(other), 0);
        buf_free(&out);
    }
    swap_free(s);
    swap_free(other);
}

/* What waits follows from the text alone, also of what is beneath codings, and all of a string that is read. */
static void
test_beneath_tells_nothing(void **state)
{
    static const char text[] = "YzJzdFFXSXhMM2c1VVhjcmNsUjVOM1ZKYjFBPQ== 115,107,45,65,98 ONVS2QLCGEXXQOKRO4VXEVDZG52US32 "
                               "%2573%256b%252d%2541%2562%2531 \\u{73}\\u{6b}\\u{2d}";
    struct swap *one = hidden(VALUE), *two = hidden(OTHER);
    struct buf out = BUF_INIT(4096);

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        assert_int_equal(swap_feed(one, text + i, 1, false, &out), 0);
        assert_int_equal(swap_feed(two, text + i, 1, false, &out), 0);
        if (swap_seen(one) != 0)        /* the first is whole: it is gone, and nothing can be compared */
            break;
        assert_int_equal(swap_held(one), swap_held(two));
    }
    buf_free(&out);
    swap_free(one);
    swap_free(two);
}

/* Pairs of digits that come slowly, with letters right before them. Of what is out already nothing can be taken back, but
 * what is still held does not follow it. */
static void
test_hidden_pairs(void **state)
{
    static const char in[] = "v A73:6b:2d:41:62:31:2f:78:39:51:77:2b:72:54:79:37:75:49:6f:50;";

    (void)state;
    for (size_t step = 1; step < sizeof(in); step += 3) {
        struct swap *s = hidden(VALUE);
        struct buf out = BUF_INIT(4096);
        for (size_t at = 0; at < sizeof(in) - 1; at += step)
            assert_int_equal(swap_feed(s, in + at, step < sizeof(in) - 1 - at ? step : sizeof(in) - 1 - at, false, &out), 0);
        assert_int_equal(swap_feed(s, "", 0, true, &out), 0);
        assert_int_equal(out.n, sizeof(in) - 1);
        assert_int_equal(swap_seen(s), 1);
        assert_null(memmem(out.p, out.n, ":6b:2d:41", 9));
        buf_free(&out);
        swap_free(s);
    }
}

/* Strings without an end, of which as much is held back as ever is: what is found in them is found, and no more is kept. */
static void
test_beneath_in_a_long_string(void **state)
{
    static const char in[] = "YzJzdFFXSXhMM2c1VVhjcmNsUjVOM1ZKYjFBPQ==";       /* in base64 twice */
    static char text[8192];

    (void)state;
    for (size_t at = 0; at < 1200; at += 37) {
        struct swap *s = hidden(VALUE);
        struct buf out = BUF_INIT(2 * sizeof(text));
        memset(text, 'q', sizeof(text));
        memcpy(text + at * 4, in, sizeof(in) - 1);
        for (size_t i = 0; i < sizeof(text); i += 64) {
            assert_int_equal(swap_feed(s, text + i, 64, false, &out), 0);
            assert_true(swap_held(s) <= 2 * (10 * (sizeof(VALUE) - 1) + 64));
        }
        assert_int_equal(swap_feed(s, "", 0, true, &out), 0);
        assert_int_equal(out.n, sizeof(text));
        assert_int_equal(swap_seen(s), 1);
        assert_null(memmem(out.p, out.n, in + 4, 8));
        buf_free(&out);
        swap_free(s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden_spellings), cmocka_unit_test(test_beneath), cmocka_unit_test(test_hidden_pairs),
        cmocka_unit_test(test_beneath_tells_nothing), cmocka_unit_test(test_beneath_in_a_long_string),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
