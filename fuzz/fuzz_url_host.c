/* hosts of URLs: what comes out is a rule for one host and port, which a URL of it gives again */
#include "fuzz.h"

#include <string.h>

#include "match/url_host.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char out[URL_HOST_MAX], url[URL_HOST_MAX + 16], again[URL_HOST_MAX];
    struct host_pattern pattern;

    if (!url_host((struct str){ (const char *)data, n }, out))
        return 0;
    FUZZ_ASSERT(host_pattern_cloche(str_of(out), &pattern) == HOST_OK);
    FUZZ_ASSERT(pattern.kind == HOST_EXACT && pattern.port != 0);
    snprintf(url, sizeof(url), "https://%s/", out);
    FUZZ_ASSERT(url_host(str_of(url), again) && strcmp(out, again) == 0);
    return 0;
}
