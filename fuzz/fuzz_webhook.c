/* match/hook_url and post/answer: a URL's parts are of it and its host is canonical; a status is one, and an answer's
 * body is in it */
#include "fuzz.h"

#include <string.h>

#include "match/hook_url.h"
#include "post/post.h"

static void
try_url(struct str text)
{
    struct hook_url url;
    struct host again;
    const char *why;

    if (!hook_url(text, &url, &why)) {
        FUZZ_ASSERT(why != NULL);
        return;
    }
    FUZZ_ASSERT(url.port > 0 && url.host.n > 0 && (url.path.n == 0 || url.path.p[0] == '/'));
    FUZZ_ASSERT(url.authority.p >= text.p && url.path.p + url.path.n == text.p + text.n);
    /* nothing of it ends a line of the request that it becomes part of */
    for (size_t i = 0; i < text.n; i++)
        FUZZ_ASSERT(text.p[i] > ' ' && text.p[i] < 0x7f);
    FUZZ_ASSERT(host_canonical((struct str){ url.host.name, url.host.n }, &again) == HOST_OK && again.n == url.host.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct post_answer a;
    int status, r;

    if (n > 4096)
        return 0;
    try_url((struct str){ (const char *)data, n });
    status = post_status((const char *)data, n);
    FUZZ_ASSERT(status == -1 || status == 0 || (status >= 100 && status <= 599));
    FUZZ_ASSERT(status != 0 || memchr(data, '\n', n) == NULL);
    r = post_answer((const char *)data, n, &a);
    FUZZ_ASSERT(r <= 0 || (a.status == status && status > 0 && a.body.p > (const char *)data &&
                           a.body.p + a.body.n <= (const char *)data + n && a.after_s <= 24 * 3600));
    FUZZ_ASSERT(r != 0 || n < POST_ANSWER_MAX || a.body.p != NULL);
    return 0;
}
