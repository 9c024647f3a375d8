/* gate/names.h: the words of the gate, for those who pass its verdicts on and judge nothing */
#ifndef CLOCHE_GATE_NAMES_H
#define CLOCHE_GATE_NAMES_H

#include <stdbool.h>

#define GATE_NAME_MAX 63            /* bytes of a rule's or a tool's name */
#define GATE_FILE_MAX (64 * 1024)   /* of a file with rules */

enum gate_risk { GATE_LOW, GATE_MEDIUM, GATE_HIGH, GATE_CRITICAL, GATE_RISKS };
const char *gate_risk_name(enum gate_risk risk);        /* "LOW" ... */
bool gate_risk_parse(const char *name, enum gate_risk *out);

/* A tool's name: letters, digits and "._:/-", at most GATE_NAME_MAX, not empty. */
bool gate_tool_well(const char *name);

#endif
