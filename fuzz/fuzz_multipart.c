/* wire/multipart.c: what is taken of a form lies in it, in order, holds no boundary, and is read the same when it is
 * written again
 *
 * Input: the Content-Type, a line feed, and the body.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/multipart.h"

static void
form(const char *type, struct str body)
{
    static struct multipart_part part;
    struct multipart m;
    const char *at = body.p;
    int got;

    if (multipart_begin(&m, type, body) != NULL)
        return;
    FUZZ_ASSERT(m.line_n > 4 && m.line_n <= MULTIPART_BOUNDARY + 4 && memcmp(m.line, "\r\n--", 4) == 0);
    while ((got = multipart_next(&m, &part)) > 0) {
        FUZZ_ASSERT(part.content.p >= at && part.content.p + part.content.n <= body.p + body.n);
        FUZZ_ASSERT(memmem(part.content.p, part.content.n, m.line, m.line_n) == NULL);
        FUZZ_ASSERT(strlen(part.name) <= MULTIPART_TEXT && strlen(part.file) <= MULTIPART_TEXT);
        FUZZ_ASSERT(part.is_file || part.file[0] == '\0');
        at = part.content.p + part.content.n;
    }
    FUZZ_ASSERT((got < 0) == (m.fault != NULL) && multipart_next(&m, &part) == got);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *end = memchr(data, '\n', n);
    cleanup_free char *type = NULL, *body = NULL;
    size_t head;

    if (n == 0 || end == NULL)
        return 0;
    head = (size_t)(end - data);
    /* copies of their own size: what is read behind them is seen */
    type = strndup((const char *)data, head);
    body = malloc(n - head);
    if (type == NULL || body == NULL)
        return 0;
    memcpy(body, end + 1, n - head - 1);
    form(type, (struct str){ body, n - head - 1 });
    return 0;
}
