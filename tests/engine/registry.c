/* tests/engine/registry.c: the engines of the program that the tests have one more for */
#include "engine/ops.h"

extern const struct engine engine_plain, engine_native;

const struct engine *const engine_registry[] = {
    &engine_plain,
    &engine_native,
    NULL,
};
