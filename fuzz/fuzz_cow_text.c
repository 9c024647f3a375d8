/* the journal of an apply, names with any byte, links that stay inside: what is accepted comes back the same */
#include "fuzz.h"

#include <string.h>

#include "workspace/journal.h"
#include "workspace/protect.h"
#include "workspace/quote.h"

static void
check_journal(struct str text)
{
    struct journal j, again;
    struct buf out = BUF_INIT(1 << 22);

    if (!journal_parse(text.p, text.n, &j))
        return;
    for (size_t i = 0; i < j.n; i++) {
        const char *path = j.v[i].path;
        FUZZ_ASSERT(path[0] != '/' && path[0] != '\0' && strstr(path, "//") == NULL);
        FUZZ_ASSERT(strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 && strstr(path, "/../") == NULL);
    }
    FUZZ_ASSERT(strchr(j.stage, '/') == NULL && j.stage[0] != '\0');
    FUZZ_ASSERT(journal_format(&j, true, &out) == 0);
    FUZZ_ASSERT(journal_parse((char *)out.p, out.n, &again) && again.n == j.n);
    for (size_t i = 0; i < j.n; i++)
        FUZZ_ASSERT(strcmp(j.v[i].path, again.v[i].path) == 0 && j.v[i].kind == again.v[i].kind &&
                    j.v[i].new_ino == again.v[i].new_ino && j.v[i].old_mode == again.v[i].old_mode);
    journal_free(&j);
    journal_free(&again);
    buf_free(&out);
}

static void
check_names(struct str text)
{
    struct buf encoded = BUF_INIT(1 << 22), back = BUF_INIT(1 << 22), shown = BUF_INIT(1 << 22);

    /* a name holds no NUL */
    if (memchr(text.p, 0, text.n) != NULL)
        return;
    FUZZ_ASSERT(quote_encode(&encoded, text) == 0);
    FUZZ_ASSERT(quote_decode(&back, (struct str){ (char *)encoded.p, encoded.n }) == 0);
    FUZZ_ASSERT(back.n == text.n && memcmp(back.p, text.p, text.n) == 0);
    FUZZ_ASSERT(quote_name(&shown, "a/", text) == 0);
    FUZZ_ASSERT(quote_harmless((struct str){ (char *)shown.p, shown.n }));
    buf_free(&encoded);
    buf_free(&back);
    buf_free(&shown);
}

/* Where no component is a symlink, a link that is called safe never climbs above the project. */
static void
check_link(struct str target, size_t depth)
{
    long level = (long)depth;

    if (!protect_link_inside(target, depth))
        return;
    FUZZ_ASSERT(target.n > 0 && target.p[0] != '/');
    for (size_t i = 0, start = 0; i <= target.n; i++) {
        if (i < target.n && target.p[i] != '/')
            continue;
        struct str name = { target.p + start, i - start };
        if (str_eq(name, STR_LIT("..")))
            level--;
        else if (name.n > 0 && !str_eq(name, STR_LIT(".")))
            level++;
        FUZZ_ASSERT(level >= 0);
        start = i + 1;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const names[] = { ".git/hooks", ".vscode" };
    static const struct protect rules = { names, 2, names, 2 };
    struct str text = { n > 0 ? (const char *)data : "", n };

    check_journal(text);
    if (n == 0)
        return 0;
    check_names(text);
    check_link((struct str){ text.p + 1, n - 1 }, data[0] % 8);
    FUZZ_ASSERT(protect_test(&rules, text, data[0] % 2 == 0) <= PROTECT_AT);
    return 0;
}
