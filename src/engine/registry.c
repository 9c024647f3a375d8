/* engine/registry.c: the engines of this program, a row each (see ops.h) */
#include "engine/docker/docker.h"
#include "engine/microvm/microvm.h"
#include "engine/native/native.h"
#include "engine/oci/oci.h"
#include "engine/ops.h"

const struct engine *const engine_registry[] = {
    &engine_native,
    &engine_oci,
    &engine_docker,
    &engine_microvm,
    NULL,
};
