/* a file of runtimes.d: what is taken is a language with whole commands */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena *arena = arena_new(1024);
    const char *words[LANGUAGE_ARGV_MAX + 1];
    struct err err = ERR_INIT;
    struct language l;

    if (arena == NULL || n > RUNTIME_FILE_MAX)
        abort();
    if (runtime_parse(arena, "own.yaml", "own", (struct str){ (const char *)data, n }, &l, &err) == 0) {
        language_words(&l, "/f", words);
        if (l.program == NULL || strcmp(words[0], l.program) != 0 || l.argv[0] == NULL || strchr(l.file, '/') != NULL)
            abort();
    } else if (err.code[0] == '\0') {
        abort();
    }
    arena_free(arena);
    return 0;
}
