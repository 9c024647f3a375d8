/* machine/config.c: see config.h */
#include "machine/config.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"

static const struct number { const char *key; size_t at, size; } numbers[] = {
    { "uid", offsetof(struct machine_config, uid), sizeof(uint32_t) },
    { "gid", offsetof(struct machine_config, gid), sizeof(uint32_t) },
    { "nproc", offsetof(struct machine_config, nproc), sizeof(uint64_t) },
    { "nofile", offsetof(struct machine_config, nofile), sizeof(uint64_t) },
    { "net", offsetof(struct machine_config, net), sizeof(uint64_t) },
    { "private_docker", offsetof(struct machine_config, docker), sizeof(uint64_t) },
    { "inodes", offsetof(struct machine_config, inodes), sizeof(uint64_t) },
};
static const struct { const char *key; size_t at; } texts[] = {
    { "ports", offsetof(struct machine_config, ports) },
    { "hostname", offsetof(struct machine_config, hostname) },
    { "guest", offsetof(struct machine_config, guest) },
    { "filter", offsetof(struct machine_config, filter) },
    { "workdir", offsetof(struct machine_config, workdir) },
};

void
machine_config_put(const struct machine_config *c, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uint64_t value = 0;     /* little-endian: the low bytes come first */
        memcpy(&value, (const char *)c + numbers[i].at, numbers[i].size);
        buf_printf(out, "%s %llu\n", numbers[i].key, (unsigned long long)value);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        buf_printf(out, "%s %s\n", texts[i].key, (const char *)c + texts[i].at);
}

static bool
take_number(struct machine_config *c, const struct number *number, struct str value)
{
    uint64_t max = number->size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX, n;

    if (!str_parse_u64(value, max, &n))
        return false;
    memcpy((char *)c + number->at, &n, number->size);
    return true;
}

static bool
take_line(struct machine_config *c, struct str key, struct str value)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (str_eq(key, str_of(numbers[i].key)))
            return take_number(c, &numbers[i], value);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        char *text = (char *)c + texts[i].at;
        if (!str_eq(key, str_of(texts[i].key)))
            continue;
        if (value.n > MACHINE_TEXT_MAX || memchr(value.p, '\0', value.n) != NULL)
            return false;
        memcpy(text, value.p, value.n);
        text[value.n] = '\0';
        return true;
    }
    return false;
}

bool
machine_config_read(struct str text, struct machine_config *out)
{
    memset(out, 0, sizeof(*out));
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n), *blank = memchr(text.p, ' ', text.n);

        if (end == NULL || blank == NULL || blank > end ||
            !take_line(out, (struct str){ text.p, (size_t)(blank - text.p) },
                       (struct str){ blank + 1, (size_t)(end - blank - 1) }))
            return false;
        text.n -= (size_t)(end + 1 - text.p);
        text.p = end + 1;
    }
    return true;
}
