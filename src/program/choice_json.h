/* program/choice_json.h: which engine makes a sandbox, and why not another one, as JSON */
#ifndef CLOCHE_PROGRAM_CHOICE_JSON_H
#define CLOCHE_PROGRAM_CHOICE_JSON_H

#include <jansson.h>

#include "engine/engine.h"

/* The members "runtime" and "boundary" of what is taken, and "considered", a list with each engine's reason, into
 * @object; with @engine "engine" too. Of a choice without rows: null, null and an empty list. */
void choice_json(const struct engine_choice *choice, bool engine, json_t *object);

#endif
