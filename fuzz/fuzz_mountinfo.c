/* engine/native/mountinfo: whatever the table of mounts says, pieces of it are strings within it, and there is an end
 */
#include "fuzz.h"

#include <string.h>

#include "engine/native/mountinfo.h"

static int
inside(const char *s, const char *text, size_t n)
{
    return s >= text && s <= text + n && strlen(s) <= (size_t)(text + n - s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), *at = text;
    struct mount_line line;
    size_t lines = 0;

    if (text == NULL)
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    n = strlen(text);
    while (mountinfo_next(&at, &line)) {
        FUZZ_ASSERT(inside(line.device, text, n) && inside(line.root, text, n) && inside(line.point, text, n));
        FUZZ_ASSERT(inside(line.type, text, n) && at >= line.type && ++lines <= n);
    }
    FUZZ_ASSERT(at == text + n);
    free(text);
    return 0;
}
