/* a rule as a message: whatever comes, a rule is added whole or not at all, and its texts are its own */
#include "fuzz.h"

#include <string.h>

#include "egress/rule_wire.h"

static void
check_rule(const struct decide_rule *rule)
{
    FUZZ_ASSERT(rule->scope.n_methods <= DECIDE_METHODS_MAX);
    FUZZ_ASSERT(rule->scope.n_tools <= DECIDE_TOOLS_MAX);
    FUZZ_ASSERT(rule->has_scope == (rule->scope.n_methods > 0 || rule->scope.path.n > 0 || rule->scope.n_tools > 0));
    for (size_t i = 0; i < rule->scope.n_tools; i++)
        FUZZ_ASSERT(tool_is_pattern(rule->scope.tools[i]));
    FUZZ_ASSERT(memchr(rule->text.p, '\0', rule->text.n) == NULL && strlen(rule->from.name) < RULE_WIRE_MAX);
    for (size_t i = 0; i < rule->scope.n_methods; i++)
        FUZZ_ASSERT(rule->scope.methods[i].n > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_decide_rules struct decide_rules rules = DECIDE_RULES_INIT;
    struct err err = ERR_INIT;
    json_t *keep = json_array();

    if (rule_read((const char *)data, n, keep, &rules, &err) == 0) {
        FUZZ_ASSERT(rules.allow.n + rules.deny.n == 1 && json_array_size(keep) == 1);
        check_rule(rules.allow.n == 1 ? &rules.allow.v[0] : &rules.deny.v[0]);
    } else {
        FUZZ_ASSERT(rules.allow.n + rules.deny.n == 0 && json_array_size(keep) == 0 && err.code[0] != '\0');
    }
    json_decref(keep);
    return 0;
}
