/* the name guard's plan: what is accepted encodes to the same bytes again, within its limits, with paths of the
 * promised shape; and its flags make a filter that ends
 *
 * Input: the encoded plan. */
#include "fuzz.h"

#include <string.h>

#include "guest/guard.h"

static void
relative(const char *p)
{
    FUZZ_ASSERT(p[0] != '\0' && p[0] != '/' && p[strlen(p) - 1] != '/' && strlen(p) <= GUARD_PATH_MAX);
    FUZZ_ASSERT(strstr(p, "//") == NULL && strcmp(p, "..") != 0 && strncmp(p, "../", 3) != 0);
    FUZZ_ASSERT(strstr(p, "/../") == NULL && strstr(p, "/./") == NULL);
}

static size_t
check(const struct guard_plan *plan)
{
    FUZZ_ASSERT((plan->flags & ~GUARD_FLAGS_ALL) == 0 && plan->n_roots <= GUARD_ROOTS_MAX);
    FUZZ_ASSERT(plan->n_sockets <= GUARD_PATHS_MAX && plan->n_socket_trees <= GUARD_PATHS_MAX &&
                plan->n_trees <= GUARD_PATHS_MAX);
    for (size_t i = 0; i < plan->n_roots; i++)
        FUZZ_ASSERT(plan->roots[i][0] == '/');
    for (size_t i = 0; i < plan->n_rules; i++) {
        relative(plan->rules[i].path);
        size_t in = guard_roots_next(&plan->rules[i].in, 0, GUARD_ROOTS_MAX);
        FUZZ_ASSERT(in < plan->n_roots && !(plan->rules[i].allow && plan->rules[i].own));
        while (in < plan->n_roots) {
            in = guard_roots_next(&plan->rules[i].in, in + 1, GUARD_ROOTS_MAX);
            FUZZ_ASSERT(in < plan->n_roots || in == GUARD_ROOTS_MAX);
        }
    }
    for (size_t i = 0; i < plan->n_sockets; i++)
        FUZZ_ASSERT(plan->sockets[i][0] == '/');
    FUZZ_ASSERT(plan->n_rules <= GUARD_RULES_MAX);
    return plan->n_rules;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_guard_plan struct guard_plan plan = GUARD_PLAN_INIT, again = GUARD_PLAN_INIT;
    struct buf wire = BUF_INIT(GUARD_WIRE_MAX);
    struct err err = ERR_INIT;
    struct guard_filter f;

    if (guard_plan_parse(data, n, &plan, &err) < 0) {
        FUZZ_ASSERT(err.code[0] != '\0' && err.msg[0] != '\0');
        return 0;
    }
    (void)check(&plan);
    FUZZ_ASSERT(guard_plan_emit(&plan, &wire, &err) == 0);
    /* repeated entries are kept once, so the bytes may be fewer; the plan is the same */
    FUZZ_ASSERT(wire.n <= n);
    FUZZ_ASSERT(guard_plan_parse(wire.p, wire.n, &again, &err) == 0);
    FUZZ_ASSERT(check(&again) == check(&plan) && again.n_roots == plan.n_roots);
    guard_filter_build(plan.flags, &f);
    FUZZ_ASSERT(f.n < GUARD_FILTER_MAX);
    buf_free(&wire);
    return 0;
}
