/* match/hook_url and webhook/event: a URL's parts are of it and its host is canonical; a status is one */
#include "fuzz.h"

#include <string.h>

#include "match/hook_url.h"
#include "webhook/webhook.h"

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
    int status;

    if (n > 4096)
        return 0;
    try_url((struct str){ (const char *)data, n });
    status = webhook_status((const char *)data, n);
    FUZZ_ASSERT(status == -1 || status == 0 || (status >= 100 && status <= 599));
    FUZZ_ASSERT(status != 0 || memchr(data, '\n', n) == NULL);
    return 0;
}
