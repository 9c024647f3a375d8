/* proto/edge_limits.c: see edge_limits.h */
#include "proto/edge_limits.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"

#define MEMORY_MIN (4UL << 20)
#define MEMORY_MAX (1UL << 50)
#define CPU_MIN    10U              /* thousandths of one */
#define CPU_MAX    (1024U * 1000)
#define PIDS_MIN   2U
#define PIDS_MAX   4194304U

enum unit { SIZE, PROCESSORS, COUNT, TIME };

static bool
parse(enum unit unit, const json_t *v, uint64_t min, uint64_t max, uint64_t *out)
{
    char number[40];
    const char *text = json_string_value(v);
    bool ok = false;

    if (json_is_integer(v))
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(number, sizeof(number), "%.6g", json_real_value(v));
    if (json_is_number(v))
        text = number;
    if (text == NULL || (json_is_string(v) && strlen(text) != json_string_length(v)))
        return false;
    switch (unit) {
    case SIZE: ok = str_parse_size(str_of(text), max, out); break;
    case PROCESSORS: ok = str_parse_milli(str_of(text), max, out); break;
    case COUNT: ok = str_parse_u64(str_of(text), max, out); break;
    case TIME: ok = str_parse_duration_ms(str_of(text), max, out); break;
    }
    return ok && *out >= min;
}

const char *
edge_limits(const json_t *limits, struct edge_op *op)
{
    uint64_t memory = 0, cpus = 0, pids = 0, ms = 0, output = 0;
    const struct { const char *name; enum unit unit; uint64_t min, max, *out; const char *what; } rows[] = {
        { "memory", SIZE, MEMORY_MIN, MEMORY_MAX, &memory, "limits.memory is a size from 4m, such as \"64m\"" },
        { "cpus", PROCESSORS, CPU_MIN, CPU_MAX, &cpus, "limits.cpus is a number from 0.01, such as 0.5" },
        { "pids", COUNT, PIDS_MIN, PIDS_MAX, &pids, "limits.pids is a number of processes from 2" },
        { "time", TIME, 1, EDGE_TIME_MAX_MS, &ms, "limits.time is a time up to 24h, such as \"10s\"" },
        { "output", SIZE, 1, MEMORY_MAX, &output, "limits.output is a size from 1, such as \"64k\"" },
    };
    size_t known = 0;

    if (limits == NULL)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const json_t *v = json_object_get(limits, rows[i].name);
        known += v != NULL;
        if (v != NULL && !parse(rows[i].unit, v, rows[i].min, rows[i].max, rows[i].out))
            return rows[i].what;
    }
    if (!json_is_object(limits) || json_object_size(limits) != known)
        return "limits is an object of memory, cpus, pids, time and output";
    if (ms > 0 && op->timeout_ms > 0)
        return "a command's time is said twice: in limits, and beside it";
    if (output > 0 && (op->flags & (OP_PTY | OP_BACKGROUND)) != 0)
        return "limits.output is not for a terminal or the background: nothing of their output is cut";
    op->flags |= OP_LIMITS;
    op->timed = ms > 0;
    op->timeout_ms = ms > 0 ? ms : op->timeout_ms;
    op->memory = memory;
    op->cpu_milli = (uint32_t)cpus;
    op->pids = (uint32_t)pids;
    op->output = output;
    return NULL;
}

static json_t *
reached(const char *name, const char *of)
{
    return json_pack("{s:o, s:s, s:s}", "code", json_sprintf("limits.reached.%s", name), "limit", name, "of", of);
}

json_t *
edge_limit_reached(uint8_t flags)
{
    if ((flags & EDGE_OWN_MEMORY) != 0)
        return reached("memory", "command");
    if ((flags & EDGE_OOM) != 0)
        return reached("memory", "sandbox");
    if ((flags & EDGE_TIMED_OUT) != 0)
        return reached("time", "command");
    return (flags & EDGE_OWN_PIDS) != 0 ? reached("pids", "command") : json_null();
}
