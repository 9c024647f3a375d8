/* gate: whatever rules say, they are refused or judge; whatever an agent sends, a verdict comes, and the same one
 * again; what is in the form that is judged is in no other form
 *
 * Input: the rules as YAML, a NUL, a tool's name, a NUL, parameters as JSON.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"

static void
judge(const struct gate *g, const char *tool, const json_t *params)
{
    struct gate_verdict a, b;

    gate_judge(g, tool, params, NULL, GATE_FUEL, &a);
    gate_judge(g, tool, params, NULL, GATE_FUEL, &b);
    FUZZ_ASSERT(a.ask == b.ask && a.risk == b.risk && a.timeout_s == b.timeout_s && a.rule == b.rule &&
                a.cost == b.cost && a.cost <= GATE_FUEL);
    FUZZ_ASSERT(a.risk < GATE_RISKS && a.timeout_s >= 1 && a.timeout_s <= GATE_TIMEOUT_MAX);
    FUZZ_ASSERT(!gate_is_off(g) || !a.ask);
}

static void
settle(const char *tool, json_t *params)
{
    const struct gate_place at = { .root = "/home/u/p", .id = "0a", .name = "n" };
    json_t *once;

    FUZZ_ASSERT(gate_settle(tool, params, &at));
    once = json_deep_copy(params);
    FUZZ_ASSERT(once != NULL && gate_settle(tool, params, &at) && json_equal(once, params));
    json_decref(once);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct gate *builtin;
    const uint8_t *tool = memchr(data, 0, n), *text;
    struct gate *g;
    char name[GATE_NAME_MAX + 1];
    json_t *params;

    if (builtin == NULL)
        builtin = gate_new("built-in", NULL, 0, NULL);
    FUZZ_ASSERT(builtin != NULL);
    if (tool == NULL || tool == data || (text = memchr(tool + 1, 0, n - (size_t)(tool + 1 - data))) == NULL ||
        (size_t)(text - tool) > sizeof(name))
        return 0;
    memcpy(name, tool + 1, (size_t)(text - tool));
    params = json_loadb((const char *)text + 1, n - (size_t)(text + 1 - data), JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(params) && gate_tool_well(name)) {
        settle(name, params);
        judge(builtin, name, params);
        g = gate_new("fuzz", data, (size_t)(tool - data), NULL);
        if (g != NULL)
            judge(g, name, params);
        gate_free(g);
    }
    json_decref(params);
    return 0;
}
