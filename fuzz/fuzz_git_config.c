/* match/git_config, match/git_index, match/git_shape: what is read of a configuration is whole and in bounds, and
 * nothing that a harmless text begins with hides what follows it
 *
 * Input: the first byte chooses, the rest is the text.
 */
#include "fuzz.h"

#include <string.h>

#include "base/array.h"
#include "match/git_config_add.h"
#include "match/git_index.h"
#include "match/git_shape.h"

static bool
inside(struct str s, const char *p, size_t n)
{
    return s.n == 0 || (s.p >= p && s.p + s.n <= p + n);
}

static void
reader(struct str text)
{
    struct git_config_reader r;
    struct git_config_entry e;
    size_t entries = 0;

    git_config_open(&r, text);
    while (git_config_next(&r, &e) > 0) {
        FUZZ_ASSERT(e.key.p == r.key && e.key.n <= GIT_CONFIG_KEY_MAX && strlen(r.key) == e.key.n);
        FUZZ_ASSERT(inside(e.section, r.key, e.key.n) && inside(e.subsection, r.key, e.key.n));
        FUZZ_ASSERT(e.name.n > 0 && e.name.p + e.name.n == r.key + e.key.n && e.name.p[-1] == '.');
        FUZZ_ASSERT(e.section.n + e.name.n + 1 + (e.has_subsection ? e.subsection.n + 1 : 0) == e.key.n);
        FUZZ_ASSERT(e.value.p == r.value && e.value.n <= GIT_CONFIG_VALUE_MAX && strlen(r.value) == e.value.n);
        FUZZ_ASSERT(e.has_value || e.value.n == 0);
        FUZZ_ASSERT(++entries <= text.n);
    }
    FUZZ_ASSERT(r.at <= text.n);
}

/* @text and then @more. */
static struct str
with(struct str text, struct str more)
{
    char *p = malloc(text.n + more.n);

    FUZZ_ASSERT(p != NULL);
    memcpy(p, text.p, text.n);
    memcpy(p + text.n, more.p, more.n);
    return (struct str){ p, text.n + more.n };
}

static void
judged(struct str text)
{
    struct git_config_fault fault;

    if (git_config_judge(text, 2, &fault) != 0) {
        FUZZ_ASSERT(strlen(fault.key) <= GIT_CONFIG_SAID_MAX);
        return;
    }
    struct str more = with(text, STR_LIT("\n\n[core]\n\tfsmonitor = x\n"));
    FUZZ_ASSERT(git_config_judge(more, 2, &fault) == -1 && strcmp(fault.key, "core.fsmonitor") == 0);
    free((void *)(uintptr_t)more.p);
}

static void
nothing_said(void *ctx, struct str key, bool kept)
{
    (void)ctx;
    (void)key;
    (void)kept;
}

/* What is appended of @text to its first half is harmless, and nothing is of a copy that is as it was. */
static void
added(struct str text)
{
    struct buf out = BUF_INIT(GIT_CONFIG_ADD_ROOM);
    struct str half = { text.p, text.n / 2 };
    const struct git_config_owner owner = { .now = half, .elsewhere = STR_LIT("") };

    if (git_config_add(half, text, &owner, &out, nothing_said, NULL) == 0)
        FUZZ_ASSERT(git_config_judge((struct str){ (const char *)out.p, out.n }, 0, NULL) == 0);
    buf_reset(&out);
    if (git_config_add(text, text, &owner, &out, nothing_said, NULL) == 0)
        FUZZ_ASSERT(out.n == 0);
    buf_free(&out);
}

static void
todo(struct str text)
{
    if (!git_todo_harmless(text))
        return;
    struct str more = with(text, STR_LIT("\nexec x\n"));
    FUZZ_ASSERT(!git_todo_harmless(more));
    free((void *)(uintptr_t)more.p);
}

static void
others(struct str text)
{
    static const char *const options[] = { "strategy", "opts", "apply-opt", "author-script", "msgnum", "bisect_names" };
    struct str target;

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (git_state_harmless(GIT_STATE_OPTION, str_of(options[i]), text, 0, NULL))
            FUZZ_ASSERT(memmem(text.p, text.n, "../x\n", 5) == NULL || i > 0);
    if (git_file_target(text, &target))
        FUZZ_ASSERT(target.n > 0 && inside(target, text.p, text.n) && memchr(target.p, '\n', target.n) == NULL);
    if (git_head_harmless(text))
        FUZZ_ASSERT(text.n > 4 && memchr(text.p, '\0', text.n) == NULL);
    enum git_state state = git_state_of(text);
    FUZZ_ASSERT((git_state_name(state) == NULL) == (state == GIT_STATE_NONE));
}

static void
paths(struct str text)
{
    size_t oid = text.n % 2 == 0 ? 20 : 32;

    if (git_index_harmless(text, oid))
        FUZZ_ASSERT(text.n >= 12 + oid && memcmp(text.p, "DIRC", 4) == 0 && text.p[7] >= 2 && text.p[7] <= 4);
    FUZZ_ASSERT(git_oid_bytes(text) == 20 || git_oid_bytes(text) == 32);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = { (const char *)data + 1, n - 1 };

    if (n == 0)
        return 0;
    switch (data[0] % 6) {
    case 0: reader(text); break;
    case 1: judged(text); break;
    case 2: todo(text); break;
    case 3: others(text); break;
    case 4: added(text); break;
    default: paths(text);
    }
    return 0;
}
