/* pass: what a call that was let through may be made of, as a front that was taken over would stretch it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "warden/approvals.h"

#define ONE "00000000000000000000000000000001"
#define TWO "00000000000000000000000000000002"

struct step { const char *tool, *box, *params; bool covered; };
#define PARTS 7

#define MAKE(params, covered) { "sandbox_create", "", params, covered }
#define RUN(box, covered)     { "code_execute", box, "{}", covered }
#define ALLOW "{\"policy\": {\"network\": {\"mode\": \"allowlist\", \"allow\": [\"a.org\"]}}}"
#define NONE  "{\"policy\": {\"network\": \"none\"}}"
#define HOST  "{\"policy\": {\"network\": {\"mode\": \"host\"}}}"
#define MORE  "{\"policy\": {\"network\": {\"mode\": \"allowlist\"}, \"limits\": {}}}"

#define FILE_A "{\"content_sha256\":\"aa\",\"content_unseen\":false,\"file_path\":\"a\"}"
#define FILE_B "{\"content_sha256\":\"bb\",\"content_unseen\":false,\"file_path\":\"b\"}"
#define FILE_C "{\"content_sha256\":\"aa\",\"content_unseen\":false,\"file_path\":\"b\"}"
#define UNSEEN "{\"content_unseen\":true,\"file_path\":\"a\"}"
#define BRINGS "{\"code\": \"x\", \"files\": [" FILE_A ", " FILE_B ", " UNSEEN "]}"
#define READ(box, covered) { "code_read_file", box, "{\"file_path\":\"x\"}", covered }
#define LIST(box, covered) { "code_list_files", box, "{\"path\":\".\"}", covered }
#define WRITE(box, params, covered) { "code_write_file", box, params, covered }

static const struct { struct step call, parts[PARTS]; } cases[] = {
    /* one sandbox and one command in it */
    { { "code_execute", "", "{\"code\": \"x\"}", true },
      { RUN(ONE, false), MAKE("{}", true), MAKE("{}", false), RUN(ONE, true), RUN(ONE, false) } },
    { { "code_execute", "", "{}", true }, { MAKE("{}", true), RUN(ONE, true), MAKE("{}", false), RUN(TWO, false) } },
    /* as the daemon makes them */
    { { "code_execute", "", "{}", true },
      { MAKE(ALLOW, false), MAKE(HOST, false), MAKE("{\"policy\": \"x\"}", false), MAKE("{}", true) } },
    { { "code_execute", "", "{}", true }, { MAKE("{\"reattach\": true}", false), MAKE("{\"idle_timeout\": 9}", true) } },
    { { "code_execute", "", "{\"network_enabled\": \"true\"}", true }, { MAKE(ALLOW, false) } },
    { { "code_execute", "", "{\"network_enabled\": false}", true }, { MAKE(ALLOW, false), MAKE(NONE, true) } },
    { { "code_execute", "", "{\"network_enabled\": true}", true },
      { MAKE(HOST, false), MAKE(MORE, false), MAKE(ALLOW, true), MAKE(ALLOW, false) } },
    /* the files that it brings along: those bytes at that path, each once, before its code, into one sandbox */
    { { "code_execute", "", BRINGS, true },
      { WRITE(ONE, FILE_A, false), MAKE("{}", true), WRITE(ONE, FILE_C, false), WRITE(ONE, FILE_A, true),
        WRITE(ONE, FILE_A, false), WRITE(TWO, FILE_B, true) } },
    { { "code_execute", "", BRINGS, true },
      { MAKE("{}", true), WRITE(ONE, UNSEEN, false), WRITE(ONE, FILE_B, true), RUN(TWO, false), RUN(ONE, true),
        WRITE(ONE, FILE_A, false) } },
    { { "code_execute", ONE, BRINGS, true }, { WRITE(ONE, FILE_A, false), RUN(ONE, true) } },
    { { "code_execute", "", "{\"files\": \"x\"}", true }, { MAKE("{}", true), WRITE(ONE, FILE_A, false), RUN(ONE, true) } },
    /* the files that it wants back, from where its code ran and afterwards */
    { { "code_execute", "", "{\"collect\": [\"x\"]}", true },
      { MAKE("{}", true), READ(ONE, false), RUN(ONE, true), LIST(ONE, true), READ(ONE, true), READ(TWO, false),
        RUN(ONE, false) } },
    { { "code_execute", "", "{}", true }, { MAKE("{}", true), RUN(ONE, true), READ(ONE, false), LIST(ONE, false) } },
    { { "code_execute", "", "{\"collect\": []}", true }, { MAKE("{}", true), RUN(ONE, true), READ(ONE, false) } },
    { { "code_execute", ONE, "{\"collect\": [\"x\"]}", true }, { RUN(ONE, true), READ(ONE, false) } },
    { { "create_sandbox", "", BRINGS, true }, { MAKE("{}", false), WRITE(ONE, FILE_A, false) } },
    /* the sandbox that it names */
    { { "code_execute", ONE, "{}", true }, { MAKE("{}", false), RUN(TWO, false), RUN(ONE, true), RUN(ONE, false) } },
    { { "code_execute", ONE, "{}", true },
      { { "code_write_file", ONE, "{}", false }, { "code_read_file", ONE, "{}", false },
        { "code_destroy_sandbox", ONE, "{}", false } } },
    { { "code_install_package", ONE, "{}", true }, { MAKE("{}", false), RUN(ONE, true), RUN(ONE, false) } },
    { { "code_read_file", ONE, "{}", true },
      { RUN(ONE, false), { "code_read_file", TWO, "{}", false }, { "code_read_file", ONE, "{}", true },
        { "code_read_file", ONE, "{}", false } } },
    { { "code_destroy_sandbox", ONE, "{}", true },
      { { "code_destroy_sandbox", ONE, "{}", true }, { "code_destroy_sandbox", ONE, "{}", false } } },
};

/* deed.c's needs the state. */
void
principal_of(struct warden *w, const struct who *who, char out[EDGE_CALLER_MAX + 1])
{
    (void)w;
    snprintf(out, EDGE_CALLER_MAX + 1, "agent:%s", who->id);
}

static struct deed
deed_of_step(const struct step *s)
{
    struct deed d = { .tool = s->tool, .params = json_loads(s->params, 0, NULL) };

    assert_non_null(d.params);
    memcpy(d.box, s->box, strlen(s->box) + 1);
    return d;
}

static void
test_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct deed call = deed_of_step(&cases[i].call);
        struct pass p = pass_of(&call);
        for (size_t k = 0; k < PARTS && cases[i].parts[k].tool != NULL; k++) {
            struct deed part = deed_of_step(&cases[i].parts[k]);
            if (pass_covers(&p, &part) != cases[i].parts[k].covered)
                fail_msg("case %zu, part %zu", i, k);
            json_decref(part.params);
        }
        json_decref(call.params);
    }
}

/* However many calls one of them begins, another's is not forgotten. */
static void
test_places(void **state)
{
    static struct approvals q;
    static struct warden w = { .approvals = &q };
    struct deed d = { .tool = "code_execute", .box = ONE };
    uint32_t number;

    (void)state;
    memcpy(w.who.id, TWO, sizeof(TWO));
    number = pass_new(&w, &d);
    memcpy(w.who.id, ONE, sizeof(ONE));
    for (size_t i = 0; i < 4UL * PASSES_MAX; i++)
        (void)pass_new(&w, &d);
    for (size_t i = 0; i < PASSES_MAX; i++)
        if (q.passes[i].number == number)
            return;
    fail();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_parts), cmocka_unit_test(test_places) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
