/* imager/containerfile: what is found is an image's name, once; what is refused says why */
#include "fuzz.h"

#include <string.h>

#include "imager/containerfile.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const args[] = { "A=b", "VERSION=1", NULL };
    static struct base_list list;
    struct err err = ERR_INIT;

    if (containerfile_bases((struct str){ (const char *)data, n }, args, &list, &err) < 0) {
        FUZZ_ASSERT(strncmp(err.code, "containerfile.", 14) == 0);
        return 0;
    }
    FUZZ_ASSERT(list.n <= BASES_MAX);
    for (size_t i = 0; i < list.n; i++) {
        struct image_ref ref;
        char name[IMAGE_REF_MAX + 1];

        FUZZ_ASSERT(image_ref_parse(str_of(list.v[i]), &ref) == NULL);
        image_ref_name(&ref, name);
        FUZZ_ASSERT(strcmp(name, list.v[i]) == 0);
        for (size_t k = 0; k < i; k++)
            FUZZ_ASSERT(strcmp(list.v[k], list.v[i]) != 0);
    }
    return 0;
}
