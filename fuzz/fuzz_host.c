/* host names and patterns: canonical once is canonical for ever; a pattern matches only below its own suffix */
#include "fuzz.h"

#include <string.h>

#include "match/host.h"

static void
check_canonical(const struct host *host)
{
    struct host again;

    FUZZ_ASSERT(host->n > 0 && host->n <= HOST_NAME_MAX_LEN && host->name[host->n] == '\0');
    for (size_t i = 0; i < host->n; i++) {
        char c = host->name[i];
        FUZZ_ASSERT((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
                    (host->is_ip && c == ':'));
    }
    FUZZ_ASSERT(host_canonical((struct str){ host->name, host->n }, &again) == HOST_OK);
    FUZZ_ASSERT(again.n == host->n && memcmp(again.name, host->name, host->n) == 0 && again.is_ip == host->is_ip);
}

static void
check_match(const struct host_pattern *pattern, const struct host *host)
{
    if (!host_match(pattern, host, 443))
        return;
    FUZZ_ASSERT(pattern->port == 0 || pattern->port == 443);
    if (pattern->kind == HOST_ANY)
        return;
    FUZZ_ASSERT(host->n >= pattern->host.n);
    FUZZ_ASSERT(memcmp(host->name + host->n - pattern->host.n, pattern->host.name, pattern->host.n) == 0);
    if (pattern->kind == HOST_EXACT)
        FUZZ_ASSERT(host->n == pattern->host.n);
    else
        FUZZ_ASSERT(!host->is_ip && host->name[host->n - pattern->host.n - 1] == '.');
}

/* "PATTERN NUL HOST" */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *nul = n > 0 ? memchr(data, 0, n) : NULL;
    struct str text = { (const char *)data, nul != NULL ? (size_t)(nul - data) : n };
    struct str name = { (const char *)(nul != NULL ? nul + 1 : data), nul != NULL ? n - text.n - 1 : n };
    struct host_pattern ours, srt, deny;
    struct host host;
    bool is_host = host_canonical(name, &host) == HOST_OK;
    enum host_fault fault = host_pattern_cloche(text, &ours);

    FUZZ_ASSERT(host_fault_text(fault)[0] != '\0');
    if (is_host)
        check_canonical(&host);
    if (fault == HOST_OK) {
        check_canonical(&ours.host);
        if (is_host)
            check_match(&ours, &host);
    }
    if (host_pattern_srt(text, true, &deny) == HOST_OK && is_host)
        check_match(&deny, &host);
    if (host_pattern_srt(text, false, &srt) == HOST_OK) {
        FUZZ_ASSERT(srt.kind != HOST_ANY);
        /* whatever ours allows with one star, SRT's wider star allows too */
        if (fault == HOST_OK && ours.kind != HOST_ANY_DEPTH && is_host && host_match(&ours, &host, 443))
            FUZZ_ASSERT(host_match(&srt, &host, 443));
    }
    return 0;
}
