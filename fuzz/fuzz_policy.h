/* fuzz/fuzz_policy.h: what must hold for a policy, whatever text it came from */
#ifndef CLOCHE_FUZZ_FUZZ_POLICY_H
#define CLOCHE_FUZZ_FUZZ_POLICY_H

#include <string.h>

#include "base/array.h"
#include "egress/why_host.h"
#include "fuzz.h"
#include "policy/describe.h"
#include "policy/policy.h"
#include "policy/why.h"

static const struct policy_host fuzz_host = { .home = "/home/u", .cwd = "/home/u/app", .memory_total = 1 << 30,
                                             .engines = (const char *const[]){ "native", NULL } };

static inline void
check_paths(const struct policy_list *list)
{
    FUZZ_ASSERT(list->n <= POLICY_LIST_MAX + 8);
    for (size_t i = 0; i < list->n; i++) {
        const char *v = list->v[i].value;
        FUZZ_ASSERT(v[0] == '/' && strlen(v) < POLICY_PATH_MAX);
        FUZZ_ASSERT(strstr(v, "//") == NULL && strstr(v, "/../") == NULL);
        FUZZ_ASSERT(list->v[i].written != NULL);
    }
}

static inline int
check_row(void *ctx, const struct policy_row *row)
{
    size_t *rows = ctx;

    FUZZ_ASSERT(row->key != NULL && row->from != NULL);
    (*rows)++;
    return 0;
}

/* Nobody gets root, and max keeps its promises. */
static inline void
check_policy(const struct policy *p)
{
    static const char *const asked[] = { "~/.ssh/id", "/etc/passwd", "src/.git/hooks/x", "/workspace/a", "/" };
    struct err err = ERR_INIT;
    struct why why;
    size_t rows = 0;

    check_paths(&p->deny_read);
    check_paths(&p->allow_read);
    check_paths(&p->allow_write);
    check_paths(&p->deny_write);
    check_paths(&p->unix_sockets);
    FUZZ_ASSERT(p->user.uid > 0 && p->user.gid > 0);
    FUZZ_ASSERT(p->n_binds <= 256 + POLICY_LIST_MAX);
    for (size_t i = 0; i < p->n_binds; i++)
        FUZZ_ASSERT(p->binds[i].source[0] == '/' && p->binds[i].dest[0] == '/' && p->binds[i].dest[1] != '\0');
    FUZZ_ASSERT(p->workdir.p != NULL && p->workdir.p[0] == '/');
    FUZZ_ASSERT(p->network.v != NETWORK_ALLOWLIST || p->mode.v == MODE_STANDARD || p->mode.v == MODE_MAX);
    FUZZ_ASSERT(p->network.v == NETWORK_ALLOWLIST || p->srt || p->allow_domains.n + p->deny_domains.n == 0);
    if (p->mode.v == MODE_MAX) {
        FUZZ_ASSERT(p->network.v != NETWORK_HOST && p->view.v == VIEW_PRIVATE && p->read_only_root.v);
        FUZZ_ASSERT(p->limits.memory.v > 0 && p->limits.pids.v > 0 && p->limits.time_ms.v > 0);
    }
    FUZZ_ASSERT(policy_describe(p, check_row, &rows) == 0 && rows > 20);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        for (int op = WHY_READ; op <= WHY_EXEC; op++) {
            FUZZ_ASSERT(policy_why_path(p, asked[i], (enum why_op)op, NULL, &why, &err) == 0);
            FUZZ_ASSERT(why.reason != NULL && why.text[0] != '\0');
        }
    }
    FUZZ_ASSERT(egress_why_host(p, NULL, 0, "a.example.org:443", NULL, &why, &err) == 0);
    FUZZ_ASSERT(!why.allowed || p->network.v != NETWORK_NONE);
}

static inline int
fuzz_policy(const uint8_t *data, size_t n, enum policy_verb verb, enum policy_format format)
{
    struct err err = ERR_INIT;
    struct policy p;
    int r;

    if (policy_init(&p, MODE_STANDARD, verb, &fuzz_host, &err) < 0)
        return 0;
    r = policy_load_bytes(&p, "fuzz", data, n, format, &fuzz_host, &err);
    if (r == 0)
        r = policy_validate(&p, &err);
    if (r == 0)
        check_policy(&p);
    else
        FUZZ_ASSERT(err.kind != ERR_NONE && strncmp(err.code, "policy.", 7) == 0 && err.msg[0] != '\0');
    policy_free(&p);
    return 0;
}

#endif
