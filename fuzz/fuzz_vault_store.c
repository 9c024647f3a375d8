/* vault/store_file and vault/binding: what is read lies within the bytes that were given, and what a description or a
 * binding says survives being written and read again */
#include "fuzz.h"

#include <string.h>

#include "vault/store_file.h"

static void
check_meta(struct str text)
{
    static struct store_meta m, again;
    static uint8_t room[STORE_META_MAX + 4096];
    struct buf out = BUF_INIT_IN(room, sizeof(room));

    if (store_meta_parse(text, &m, NULL) < 0)
        return;
    FUZZ_ASSERT(store_name_valid(str_of(m.name)) && strlen(m.id) == 32);
    FUZZ_ASSERT(store_meta_text(&m, &out) == 0);
    FUZZ_ASSERT(store_meta_parse((struct str){ (const char *)out.p, out.n }, &again, NULL) == 0);
    FUZZ_ASSERT(memcmp(&m, &again, sizeof(m)) == 0);
}

static void
check_binding(struct str text)
{
    static struct binding b, again;
    static uint8_t room[4 * BINDING_TEXT_MAX];
    struct buf out = BUF_INIT_IN(room, sizeof(room));

    if (binding_parse(text, &b, NULL) < 0)
        return;
    FUZZ_ASSERT(b.n_hosts > 0 && b.places != 0 && b.n_ports > 0 && b.methods.n > 0);
    FUZZ_ASSERT(binding_text(&b, &out) == 0 && out.n <= BINDING_TEXT_MAX);
    FUZZ_ASSERT(binding_parse((struct str){ (const char *)out.p, out.n }, &again, NULL) == 0);
    FUZZ_ASSERT(memcmp(&b, &again, sizeof(b)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct store_file file;
    static uint8_t room[STORE_FILE_MAX];
    struct buf out = BUF_INIT_IN(room, sizeof(room));
    struct str text = { (const char *)data, n };

    check_meta(text);
    check_binding(text);
    if (n > STORE_FILE_MAX || store_file_parse(data, n, &file, NULL) < 0)
        return 0;
    store_file_header(&out, file.generation, (uint32_t)file.n);
    for (size_t i = 0; i < file.n; i++) {
        const struct store_record *r = &file.records[i];
        FUZZ_ASSERT((const uint8_t *)r->meta.p >= data && r->sealed + r->sealed_n <= data + n);
        FUZZ_ASSERT(r->sealed_n >= SEAL_TAG);
        check_meta(r->meta);
        store_file_record(&out, r);
    }
    /* one form only: what is written from it is what was read */
    FUZZ_ASSERT(buf_ok(&out) && out.n == file.covered && memcmp(out.p, data, out.n) == 0);
    FUZZ_ASSERT(file.covered + SEAL_MAC == n && file.mac == data + file.covered);
    return 0;
}
