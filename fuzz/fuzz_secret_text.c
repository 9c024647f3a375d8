/* policy/secret_text: what comes out is as long as what went in, but for names and escapes, never above its ceiling */
#include "fuzz.h"

#include <string.h>

#include "policy/secret_text.h"

struct seen { size_t names, in, out; };

/* Names that begin with "a" are known, and twice as long in the text as they are. */
static bool
look(void *ctx, struct str name, struct str *out)
{
    static char room[2 * 65536];
    struct seen *s = ctx;

    FUZZ_ASSERT(name.n > 0 && memchr(name.p, '}', name.n) == NULL && memchr(name.p, '\n', name.n) == NULL);
    if (name.p[0] != 'a' || 2 * name.n > sizeof(room))
        return false;
    memset(room, 'x', 2 * name.n);
    *out = (struct str){ room, 2 * name.n };
    s->names++;
    s->in += name.n + 3;
    s->out += 2 * name.n;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf out = BUF_INIT(SECRET_TEXT_MAX);
    struct str name = { "", 0 }, text = { (const char *)data, n };
    struct seen s = { 0, 0, 0 };
    enum secret_text result = secret_text_make(text, look, &s, &out, &name);

    if (result == SECRET_TEXT_OK || result == SECRET_TEXT_PLAIN) {
        size_t plain = out.n - s.out, in = n - s.in;
        FUZZ_ASSERT(out.n <= SECRET_TEXT_MAX && (result == SECRET_TEXT_OK) == (s.names > 0));
        FUZZ_ASSERT(in >= plain && (in - plain) * 2 <= in);     /* "$${" loses one of three */
    }
    if (result == SECRET_TEXT_UNKNOWN)
        FUZZ_ASSERT(name.n > 0 && name.p[0] != 'a');
    buf_free(&out);
    return 0;
}
