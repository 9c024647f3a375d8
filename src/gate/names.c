/* gate/names.c: see names.h */
#include "gate/names.h"

#include <string.h>

static const char *const risks[GATE_RISKS] = {
    [GATE_LOW] = "LOW", [GATE_MEDIUM] = "MEDIUM", [GATE_HIGH] = "HIGH", [GATE_CRITICAL] = "CRITICAL",
};

const char *
gate_risk_name(enum gate_risk risk)
{
    return risks[risk];
}

bool
gate_risk_parse(const char *name, enum gate_risk *out)
{
    for (int i = 0; i < GATE_RISKS; i++) {
        if (strcmp(risks[i], name) == 0) {
            *out = (enum gate_risk)i;
            return true;
        }
    }
    return false;
}

bool
gate_tool_well(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-");

    return n > 0 && n <= GATE_NAME_MAX && name[n] == '\0';
}
