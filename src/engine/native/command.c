/* engine/native/command.c: limits of one command: a cgroup of its own below the sandbox's */
#include <stdlib.h>

#include "engine/native/native.h"
#include "wall/cgroup_command.h"
#include "wire/msg.h"

_Static_assert(SANDBOX_JOINS == CGROUP_HIERARCHIES && SANDBOX_JOINS == MSG_JOINS_MAX, "a file to join by for each");

struct sandbox_command {
    struct sandbox_command *next;
    struct cgroup cgroup;
    bool over;                  /* it has ended; something that it left behind may be in there */
};

int
native_command_begin(struct sandbox *base, const struct sandbox_command_limits *limits, struct sandbox_command **out,
                     int joins[SANDBOX_JOINS], size_t *n, struct err *err)
{
    const struct cgroup_limits all = { .memory = limits->memory, .sockets = limits->memory,
                                       .cpu_milli = limits->cpu_milli, .pids = limits->pids };
    struct native *sb = native_of(base);
    struct sandbox_command *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (cgroup_command_make(&sb->cgroup, ++sb->n_commands, &all, &c->cgroup, err) < 0) {
        free(c);
        return -1;
    }
    *n = 0;
    for (size_t i = 0; i < CGROUP_HIERARCHIES; i++)
        if (c->cgroup.tasks[i] >= 0)
            joins[(*n)++] = c->cgroup.tasks[i];
    c->next = sb->commands;
    sb->commands = *out = c;
    return 0;
}

void
native_command_sent(struct sandbox *base, struct sandbox_command *c)
{
    (void)base;
    cgroup_command_sent(&c->cgroup);
}

void
native_command_look(struct sandbox *base, struct sandbox_command *c, struct sandbox_command_end *out)
{
    struct cgroup_usage usage;
    struct cgroup_met met;

    (void)base;
    cgroup_read(&c->cgroup, &usage);
    cgroup_met(&c->cgroup, &met);
    *out = (struct sandbox_command_end){ .oom_kills = usage.oom_kills, .own_memory = met.memory, .own_pids = met.pids };
}

void
native_commands_tend(struct native *sb)
{
    struct sandbox_command **at = &sb->commands;

    while (*at != NULL) {
        struct sandbox_command *c = *at;
        if (c->over && cgroup_destroy(&c->cgroup)) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}

void
native_command_end(struct sandbox *base, struct sandbox_command *c)
{
    c->over = true;
    native_commands_tend(native_of(base));
}

void
native_commands_lower(const struct native *sb, uint64_t cpu_milli)
{
    for (struct sandbox_command *c = sb->commands; c != NULL; c = c->next)
        cgroup_command_lower(&c->cgroup, cpu_milli);
}

void
native_commands_free(struct native *sb)
{
    for (struct sandbox_command *c = sb->commands; c != NULL; c = c->next)
        c->over = true;
    native_commands_tend(sb);
    for (struct sandbox_command *c = sb->commands, *next; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    sb->commands = NULL;
}
