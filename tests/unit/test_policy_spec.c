/* policy/spec: every row is whole, and says what it should wherever the table is walked
 *
 * A key that is added is tried here without being named, unless its value has a form of its own: then `examples` has a
 * row for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "policy/describe.h"
#include "policy/spec.h"
#include "policy/within.h"
#include "policy_fixture.h"

/* Values of keys whose kind does not say what one looks like, each another one: in JSON and, where there is a flag, behind it. @other is
 * shown as @json is, and is another value: what a description leaves out. @more gives more, where @json does not. */
static const struct example { const char *key, *json, *flag, *other, *more; } examples[] = {
    { "engine", "\"native\"", "native", NULL, NULL },
    { "fallback.url", "\"https://example.org/help\"", NULL, NULL, NULL },
    { "workspace", "\"/srv/a:ro\"", "/srv/a:ro", NULL, NULL },
    { "workdir", "\"/workspace/x\"", "/workspace/x", NULL, NULL },
    { "binds", "[\"/srv/b:/b:rw\"]", "/srv/b:/b:rw", NULL, NULL },
    { "runtime", "\"crun\"", "crun", NULL, NULL },
    { "image", "\"python:3.12\"", "python:3.12", NULL, NULL },
    { "container-prefix", "\"team_a-\"", "team_a-", NULL, NULL },
    { "preset", "\"ci\"", "ci", NULL, NULL },
    { "network.parent-proxy.http", "\"http://u:one@p.example.org:3128\"", NULL, "\"http://u:two@p.example.org:3128\"", NULL },
    { "network.parent-proxy.https", "\"http://u:one@p.example.org:3128\"", NULL, "\"http://u:two@p.example.org:3128\"", NULL },
    { "network.parent-proxy.no-proxy", "\"x.example.org\"", NULL, NULL, NULL },
    { "secrets", "[\"K=github\"]", "K=github", NULL, NULL },
    { "secret-files", "[{\"path\": \"/run/f\", \"text\": \"a ${K}\"}]", NULL, "[{\"path\": \"/run/f\", \"text\": \"b ${K}\"}]", NULL },
    { "env", "{\"A\": \"1\"}", "A=1", "{\"A\": \"2\"}", "{\"A\": null}" },
    { "user", "\"1001:1001\"", "1001:1001", NULL, NULL },
    { "hostname", "\"elsewhere\"", "elsewhere", NULL, NULL },
    { "apparmor", "\"a-profile\"", "a-profile", NULL, NULL },
    { "selinux", "\"u:r:t:s0\"", "u:r:t:s0", NULL, NULL },
    { "workspace", "\"/srv/b:ro\"", NULL, NULL, NULL },
    { "workspace", "\"/srv/b:rw\"", NULL, NULL, NULL },
    { "binds", "[\"/srv/c:/b:rw\"]", NULL, NULL, NULL },
    { "binds", "[\"/srv/b:/c:rw\"]", NULL, NULL, NULL },
    { "binds", "[\"/srv/b:/b:ro\"]", NULL, NULL, NULL },
    { "secrets", "[\"K\"]", NULL, NULL, NULL },
    { "secrets", "[{\"name\": \"K\", \"env\": \"E\"}]", NULL, NULL, NULL },
    { "secrets", "[{\"name\": \"K\", \"add\": \"X: {}\"}]", NULL, NULL, NULL },
    { "secret-files", "[{\"path\": \"/run/g\", \"text\": \"a ${K}\"}]", NULL, NULL, NULL },
    { "secret-files", "[\"/run/f=K\"]", NULL, NULL, NULL },
    { "user", "\"1001:1002\"", NULL, NULL, NULL },
};

/* What a policy below a ceiling may say as it likes, and keys of which more is less: they close something. Both are
 * decisions: whoever makes one names it here too. */
static const char *const gives_nothing[] = { "settings", "fallback.url", "workdir", "hostname" };
static const char *const closes[] = {
    "mode", "boundary", "audit", "contents", "filesystem.deny-read", "filesystem.deny-write", "filesystem.deny-hard-links", "filesystem.protect",
    "filesystem.protect-depth", "credentials", "read-only-root", "network.deny", "env-deny", "syscalls.deny",
    "network.open-tls", "network.refuse-opaque", "network.refuse-moving-paths", "network.strip-headers",
};

static bool
named(const char *const *keys, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static const struct example *
example_of(const struct policy_spec *s)
{
    for (size_t i = 0; i < N(examples); i++)
        if (strcmp(examples[i].key, s->key) == 0)
            return &examples[i];
    return NULL;
}

static const char *
entry_example(enum entry_kind kind)
{
    switch (kind) {
    case ENTRY_PATH:
    case ENTRY_LITERAL:
    case ENTRY_SOCKET:
        return "/srv/example";
    case ENTRY_NAMES:
        return ".example";
    case ENTRY_REGISTRY:
        return "npm";
    case ENTRY_WITH:
        return "curl";
    case ENTRY_ENGINE:
        return "native";
    case ENTRY_PUBLISH:
        return "8080:80";
    case ENTRY_PORT:
        return "11434";
    case ENTRY_ADDRESS:
        return "9.9.9.9";
    case ENTRY_FIELD:
        return "x-example";
    case ENTRY_CALL_ALLOW:
    case ENTRY_CALL_DENY:
        return "kcmp";
    case ENTRY_ENV_NAME:
        return "EXAMPLE";
    case ENTRY_HOST:
    case ENTRY_HOST_PLAIN:
    case ENTRY_HOST_SRT:
    case ENTRY_HOST_SRT_DENY:
        break;
    }
    return "a.example.org";
}

/* A value that @p does not have, in JSON, and as a flag's (NULL: none says that). */
static void
another_value(const struct policy *p, const struct policy_spec *s, char json[256], char flag[256])
{
    const struct example *e = example_of(s);
    unsigned long long v = policy_spec_value(p, s), n = v == s->min ? s->max : s->min;
    unsigned words = 0;
    bool quoted = true;

    switch (s->kind) {
    case SPEC_WORD:
        while (s->words[words] != NULL)
            words++;
        snprintf(flag, 256, "%s", s->words[(v + 1) % words]);
        break;
    case SPEC_NUMBER:
        if (s->unit == UNIT_MILLI)
            snprintf(flag, 256, "%llu.%03llu", n / 1000, n % 1000);
        else
            snprintf(flag, 256, "%llu%s", n, s->unit == UNIT_MS ? "ms" : "");
        quoted = s->unit != UNIT_COUNT;
        break;
    case SPEC_BOOL:
        snprintf(flag, 256, "%s", v != 0 ? "false" : "true");
        quoted = false;
        break;
    case SPEC_LIST:
        snprintf(flag, 256, "%s", entry_example(s->entry));
        snprintf(json, 256, "[\"%s\"]", flag);
        return;
    case SPEC_FLAG:
    case SPEC_TEXT:
    case SPEC_RECORDS:
    case SPEC_OWN:
        if (e == NULL)
            fail_msg("%s: it has a form of its own; give it a row of examples", s->key);
        snprintf(flag, 256, "%s", e->flag != NULL ? e->flag : "");
        snprintf(json, 256, "%s", e->json);
        return;
    }
    snprintf(json, 256, quoted ? "\"%s\"" : "%s", flag);
}

/* {"network": {"ask": VALUE}} */
static void
settings_with(const char *key, const char *json, char out[640])
{
    size_t n = 0, depth = 0;

    for (const char *end; (end = strchr(key, '.')) != NULL; key = end + 1, depth++)
        n += (size_t)snprintf(out + n, 640 - n, "{\"%.*s\": ", (int)(end - key), key);
    n += (size_t)snprintf(out + n, 640 - n, "{\"%s\": %s}", key, json);
    for (; depth > 0; depth--)
        n += (size_t)snprintf(out + n, 640 - n, "}");
}

/* What a key does beside its own value: the network is open by name in all of them, and somebody is asked. */
static void
begin(struct policy *p, const struct policy_spec *s)
{
    struct err err = ERR_INIT;

    assert_int_equal(policy_init(p, MODE_STANDARD, VERB_CODE, &caller, &err), 0);
    if ((s->traits & (SPEC_OPENS | SPEC_CLOSES)) != 0 || strcmp(s->key, "network.ask-timeout") == 0)
        assert_int_equal(policy_apply_flag(p, "--network", "allowlist", &caller, &err), 0);
    if (strcmp(s->key, "network.ask-timeout") == 0)
        assert_int_equal(policy_apply_flag(p, "--ask", NULL, &caller, &err), 0);
}

static void
read_settings(struct policy *p, const struct policy_spec *s, const char *json)
{
    struct err err = ERR_INIT;
    char text[640];

    settings_with(s->key, json, text);
    if (policy_load_bytes(p, "file", text, strlen(text), POLICY_JSON, &caller, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
}

/* Another value into the row, also into one that neither files nor flags can say. */
static void
change(struct policy *p, const struct policy_spec *s)
{
    char json[256], flag[256];
    struct policy_list *list;

    if (s->no_file == NULL) {
        another_value(p, s, json, flag);
        read_settings(p, s, json);
    } else if (s->kind == SPEC_BOOL) {
        ((struct policy_bool *)spec_at(p, s))->v = policy_spec_value(p, s) == 0;
    } else {
        assert_int_equal(s->kind, SPEC_LIST);
        list = spec_at(p, s);
        list->v[--list->n].from.kind = ORIGIN_FILE;     /* as if it had not been there */
    }
}

static int
add_row(void *ctx, const struct policy_row *row)
{
    return buf_printf(ctx, "%s=%s %llu %d\n", row->key, row->text != NULL ? row->text : "-", (unsigned long long)row->number,
                      row->truth);
}

static void
describe(const struct policy *p, struct buf *out)
{
    assert_int_equal(policy_describe(p, add_row, out), 0);
    assert_int_equal(buf_append(out, "", 1), 0);
}

static bool
same_digest(const struct policy *a, const struct policy *b)
{
    static const uint8_t key[POLICY_DIGEST_KEY] = { 1 };
    uint8_t x[SHA256_SIZE], y[SHA256_SIZE];

    policy_digest(a, key, x);
    policy_digest(b, key, y);
    return memcmp(x, y, sizeof(x)) == 0;
}

#define EACH(s) const struct policy_spec *s = policy_specs; s < policy_specs + policy_n_specs; s++

static void
rows_are_whole(void **state)
{
    (void)state;
    for (EACH(s)) {
        char words[128] = "";
        if (s->flag.help == NULL || s->flag.help[0] == '\0')
            fail_msg("%s: no help", s->key);
        if ((s->flag.name == NULL) != (s->no_flag != NULL))
            fail_msg("%s: a flag, or why there is none", s->key);
        if (s->kind == SPEC_RECORDS && (s->set == NULL || (s->item == NULL) == (s->read == NULL) || s->line == NULL ||
                                        s->covers == NULL || s->size == 0))
            fail_msg("%s: records want set, item (or read), line and covers", s->key);
        if (s->kind == SPEC_OWN && (s->set == NULL || s->show == NULL || s->within == NULL))
            fail_msg("%s: a value of its own wants set, show and within", s->key);
        for (size_t i = 0; s->kind == SPEC_WORD && s->words[i] != NULL; i++)
            snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", i > 0 ? "|" : "", s->words[i]);
        if (s->kind == SPEC_WORD && s->flag.name != NULL && strcmp(words, s->flag.value) != 0)
            fail_msg("%s: its flag says %s, not %s", s->key, s->flag.value, words);
        for (size_t i = 0; s->kind == SPEC_NUMBER && i < N_PROFILES; i++)
            if (s->preset[i] != HALF_OF_RAM && (s->preset[i] > s->max || (s->preset[i] < s->min && s->none == NULL)))
                fail_msg("%s: the default %zu is out of range", s->key, i);
        for (const struct policy_spec *other = policy_specs; other < s; other++)
            assert_string_not_equal(other->key, s->key);
        assert_ptr_equal(policy_spec_by_key(str_of(s->key)), s);
    }
}

/* Two policies that differ in one key have two digests and are shown as two, which differ in that key. */
static void
every_key_is_shown_and_counted(void **state)
{
    (void)state;
    for (EACH(s)) {
        cleanup_policy struct policy a = { .srt = false }, b = { .srt = false };
        cleanup_buf struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
        const char *p, *q;
        if (s->kind == SPEC_FLAG)
            continue;
        begin(&a, s);
        begin(&b, s);
        assert_true(same_digest(&a, &b));
        change(&b, s);
        describe(&a, &x);
        describe(&b, &y);
        for (p = (char *)x.p, q = (char *)y.p; *p != '\0' && *p == *q; p++, q++)
            continue;
        if (*p == *q)
            fail_msg("%s: another value is not shown", s->key);
        /* back to the beginning of the line; a list that has become shorter lacks its last line */
        while (q > (char *)y.p && q[-1] != '\n')
            q--, p--;
        if (strcmp(s->key, "mode") != 0 && strncmp(p, s->key, strlen(s->key)) != 0 && strncmp(q, s->key, strlen(s->key)) != 0)
            fail_msg("%s: what is shown first is %.40s", s->key, q);
        /* what is built in has the version in place of it */
        if (same_digest(&a, &b) && !(s->kind == SPEC_LIST && s->no_file != NULL))
            fail_msg("%s: another value has the same digest", s->key);
    }
}

static void
other_examples_count(void **state)
{
    (void)state;
    for (const struct example *e = examples; e < examples + N(examples); e++) {
        const struct policy_spec *s = policy_spec_by_key(str_of(e->key));
        assert_non_null(s);
        for (const struct example *f = examples; f < e; f++) {
            cleanup_policy struct policy a = { .srt = false }, b = { .srt = false };
            if (strcmp(e->key, f->key) != 0)
                continue;
            begin(&a, s);
            begin(&b, s);
            read_settings(&a, s, e->json);
            read_settings(&b, s, f->json);
            if (same_digest(&a, &b))
                fail_msg("%s: %s has the digest of %s", e->key, e->json, f->json);
        }
    }
}

static void
what_is_not_shown_counts(void **state)
{
    (void)state;
    for (EACH(s)) {
        cleanup_policy struct policy a = { .srt = false }, b = { .srt = false };
        cleanup_buf struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
        const struct example *e = example_of(s);
        if (s->hide == NULL && (e == NULL || e->other == NULL))
            continue;
        if (s->hide == NULL || e == NULL || e->other == NULL)
            fail_msg("%s: what hides something has two examples that are shown alike", s->key);
        begin(&a, s);
        begin(&b, s);
        read_settings(&a, s, e->json);
        read_settings(&b, s, e->other);
        describe(&a, &x);
        describe(&b, &y);
        assert_string_equal((char *)x.p, (char *)y.p);
        assert_true(policy_hides(&a));
        if (same_digest(&a, &b))
            fail_msg("%s: another value has the same digest", s->key);
    }
}

/* A flag and a settings file that say the same make the same policy. */
static void
flags_and_settings_agree(void **state)
{
    (void)state;
    for (EACH(s)) {
        cleanup_policy struct policy a = { .srt = false }, b = { .srt = false };
        struct err err = ERR_INIT;
        char json[256], flag[256];
        if (s->flag.name == NULL || s->no_file != NULL)
            continue;
        begin(&a, s);
        begin(&b, s);
        another_value(&a, s, json, flag);
        if (flag[0] == '\0')
            continue;
        read_settings(&a, s, json);
        if (policy_apply_flag(&b, s->flag.name, s->flag.value != NULL ? flag : NULL, &caller, &err) < 0)
            fail_msg("%s %s: %s", s->flag.name, flag, err.msg);
        if (!same_digest(&a, &b))
            fail_msg("%s %s is not %s: %s", s->flag.name, flag, s->key, json);
    }
}

/* The settings that SRT requires, and in them the key @srt. */
static void
srt_settings_with(const char *srt, const char *json, char out[2048])
{
    static const struct { const char *section, *required[3]; } sections[] = {
        { "network", { "allowedDomains", "deniedDomains", NULL } },
        { "filesystem", { "denyRead", "allowWrite", "denyWrite" } },
    };
    char member[640] = "";
    size_t n = (size_t)snprintf(out, 2048, "{");

    for (size_t i = 0; i < N(sections); i++) {
        size_t length = strlen(sections[i].section);
        bool here = strncmp(srt, sections[i].section, length) == 0 && srt[length] == '.';
        n += (size_t)snprintf(out + n, 2048 - n, "%s\"%s\": {", i > 0 ? ", " : "", sections[i].section);
        for (size_t j = 0, k = 0; j < 3 && sections[i].required[j] != NULL; j++)
            if (!here || strcmp(sections[i].required[j], srt + length + 1) != 0)
                n += (size_t)snprintf(out + n, 2048 - n, "%s\"%s\": []", k++ > 0 ? ", " : "", sections[i].required[j]);
        if (here) {     /* without the braces around it */
            settings_with(srt + length + 1, json, member);
            n += (size_t)snprintf(out + n, 2048 - n, ", %.*s", (int)strlen(member) - 2, member + 1);
        }
        n += (size_t)snprintf(out + n, 2048 - n, "}");
    }
    if (member[0] == '\0')
        n += (size_t)snprintf(out + n, 2048 - n, ", \"%s\": %s", srt, json);
    snprintf(out + n, 2048 - n, "}");
}

/* A key that SRT has too is read there as well. */
static void
srt_settings_say_it(void **state)
{
    size_t found = 0;

    (void)state;
    for (EACH(s)) {
        cleanup_policy struct policy p = { .srt = false };
        struct err err = ERR_INIT;
        char json[256], flag[256], text[2048];
        if (s->srt == NULL)
            continue;
        assert_int_equal(policy_init(&p, MODE_STANDARD, VERB_SRT, &caller, &err), 0);
        another_value(&p, s, json, flag);
        srt_settings_with(s->srt, json, text);
        if (policy_load_bytes(&p, "srt", text, strlen(text), POLICY_SRT, &caller, &err) < 0)
            fail_msg("%s: %s", text, err.msg);
        if (p.notes.n > 0)
            fail_msg("%s: %s", s->srt, p.notes.v[0].value);
        if (policy_spec_origin(&p, s)->kind != ORIGIN_FILE || policy_spec_value(&p, s) == (json[0] == 'f'))
            fail_msg("%s does not set %s", s->srt, s->key);
        found++;
    }
    assert_true(found > 10);
}

static uint64_t
amount(const struct policy *p, const struct policy_spec *s)
{
    uint64_t v = policy_spec_value(p, s);

    return v == 0 && spec_endless(s) ? UINT64_MAX : v;
}

/* Of each key: less than the ceiling is allowed, more is refused. Where neither of two values is less than the other,
 * both are. */
static void
ceilings_hold(void **state)
{
    (void)state;
    for (EACH(s)) {
        cleanup_policy struct policy a = { .srt = false }, b = { .srt = false };
        const struct example *e = example_of(s);
        bool up, down;
        if (s->kind == SPEC_FLAG)
            continue;
        begin(&a, s);
        begin(&b, s);
        if (e != NULL && e->more != NULL)
            read_settings(&b, s, e->more);
        else
            change(&b, s);
        if (strcmp(s->key, "mode") == 0)    /* of nothing but itself */
            b.read_only_root = a.read_only_root, b.ptrace = a.ptrace, b.limits = a.limits;
        up = policy_within(&a, &b, 0, NULL) == 0;
        down = policy_within(&b, &a, 0, NULL) == 0;
        if (policy_within(&b, &b, 0, NULL) < 0)
            fail_msg("%s: as much as the ceiling is refused", s->key);
        if (named(gives_nothing, N(gives_nothing), s->key)) {
            if (!up || !down)
                fail_msg("%s: it gives something", s->key);
            continue;
        }
        if (!up && !down && s->ceiling == CEILING_SAME)
            continue;
        if ((amount(&b, s) > amount(&a, s)) == named(closes, N(closes), s->key) ? !up || down : up || !down)
            fail_msg("%s: %s", s->key, up && down ? "more than the ceiling is allowed" : "what is more and what is less?");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(every_key_is_shown_and_counted),
        cmocka_unit_test(other_examples_count),
        cmocka_unit_test(what_is_not_shown_counts),
        cmocka_unit_test(flags_and_settings_agree),
        cmocka_unit_test(srt_settings_say_it),
        cmocka_unit_test(ceilings_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
