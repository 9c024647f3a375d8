/* egress/tls_hello: a verdict never changes with more bytes, a prefix of what is good is never bad, and an accepted
 * name is a name; how the message is cut into records does not matter */
#include "fuzz.h"

#include <string.h>

#include "egress/tls_hello.h"

static void
check_hello(const uint8_t *data, size_t n, const struct tls_hello *hello)
{
    struct tls_hello again;
    struct host host;

    FUZZ_ASSERT(hello->consumed > 0 && hello->consumed <= n && hello->consumed <= TLS_HELLO_MAX);
    FUZZ_ASSERT(hello->version_max >= 0x0300 && hello->version_max <= 0x0304);
    FUZZ_ASSERT(hello->has_sni == (hello->sni_n > 0) && hello->sni[hello->sni_n] == '\0');
    FUZZ_ASSERT(hello->has_alpn == (hello->n_alpn > 0) && hello->alpn_bytes <= TLS_HELLO_ALPN_BYTES);
    if (hello->has_sni) {
        FUZZ_ASSERT(host_canonical((struct str){ hello->sni, hello->sni_n }, &host) == HOST_OK && !host.is_ip);
        FUZZ_ASSERT(host.n == hello->sni_n && memcmp(host.name, hello->sni, host.n) == 0);
    }
    FUZZ_ASSERT(tls_hello_parse(data, hello->consumed, &again) == TLS_HELLO_OK);
    FUZZ_ASSERT(memcmp(&again, hello, sizeof(again)) == 0);
}

/* The message of the accepted hello in other records, unless that takes more of them than are permitted. */
static void
check_recut(const uint8_t *data, const struct tls_hello *hello, size_t step)
{
    static uint8_t message[TLS_HELLO_MAX], wire[2 * TLS_HELLO_MAX];
    struct tls_hello again;
    size_t n = 0, at = 0;

    for (size_t i = 0; i < hello->consumed;) {
        size_t length = (size_t)data[i + 3] << 8 | data[i + 4];
        memcpy(message + n, data + i + 5, length);
        n += length;
        i += 5 + length;
    }
    if ((n + step - 1) / step > TLS_HELLO_RECORDS_MAX || n + 5 * ((n + step - 1) / step) > TLS_HELLO_MAX)
        return;
    for (size_t i = 0; i < n; i += step) {
        size_t part = n - i < step ? n - i : step;
        const uint8_t head[5] = { 22, 3, 1, (uint8_t)(part >> 8), (uint8_t)part };
        memcpy(wire + at, head, sizeof(head));
        memcpy(wire + at + 5, message + i, part);
        at += 5 + part;
    }
    FUZZ_ASSERT(tls_hello_parse(wire, at, &again) == TLS_HELLO_OK);
    FUZZ_ASSERT(again.consumed == at);
    again.consumed = hello->consumed;
    FUZZ_ASSERT(memcmp(&again, hello, sizeof(again)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tls_hello hello, part;
    enum tls_hello_status status = tls_hello_parse(data, n, &hello);
    size_t stride = n / 64 + 1;

    FUZZ_ASSERT(strcmp(tls_hello_word(status), "tls-unknown") != 0);
    if (status == TLS_HELLO_OK) {
        check_hello(data, n, &hello);
        for (size_t step = 1; step <= 16384; step *= 3)
            check_recut(data, &hello, step);
    }
    for (size_t cut = 0; cut < n; cut += stride) {
        enum tls_hello_status early = tls_hello_parse(data, cut, &part);
        if (early != TLS_HELLO_MORE)
            FUZZ_ASSERT(early == status);
        else if (status == TLS_HELLO_OK)
            FUZZ_ASSERT(cut < hello.consumed);
    }
    return 0;
}
