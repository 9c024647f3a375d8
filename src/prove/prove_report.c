/* prove/prove_report.c: the proof for people (see prove.h) */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "program/say.h"
#include "prove/prove.h"

struct look {
    bool utf8, colour;
};

static const char *const walls[] = { "files", "namespaces", "privilege", "processes", "terminal", "kernel",
                                     "limits", "network" };

static void
put_mark(const struct look *look, enum check_state state)
{
    static const char *const utf8[] = { "✓", "✗", "○", "-" };
    static const char *const ascii[] = { "+", "x", "o", "-" };
    static const char *const colour[] = { "\033[32m", "\033[1;31m", "\033[33m", "\033[2m" };

    printf("  %s%s%s ", look->colour ? colour[state] : "", look->utf8 ? utf8[state] : ascii[state],
           look->colour ? "\033[0m" : "");
}

/* The same check before and after is one line, unless the two differ. */
static bool
repeats(const struct proof *p, size_t i)
{
    if (strcmp(p->checks[i].when, "after") != 0)
        return false;
    for (size_t k = 0; k < i; k++)
        if (strcmp(p->checks[k].id, p->checks[i].id) == 0 && p->checks[k].state == p->checks[i].state)
            return true;
    return false;
}

static bool
wall_is_empty(const struct proof *p, const char *wall)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->checks[i].wall, wall) == 0)
            return false;
    return true;
}

static void
print_proof(const struct look *look, const struct proof *p)
{
    const char *text;

    printf("%sMode %s%s%s\n", look->colour ? "\033[1m" : "", p->mode, look->colour ? "\033[0m" : "",
           p->bare ? " (no wall: measured against what mode standard holds)" : "");
    for (size_t w = 0; w < ARRAY_LEN(walls); w++) {
        if (wall_is_empty(p, walls[w]))
            continue;
        printf("\n %s\n", walls[w]);
        for (size_t i = 0; i < p->n; i++) {
            const struct check *c = &p->checks[i];

            if (strcmp(c->wall, walls[w]) != 0 || repeats(p, i))
                continue;
            put_mark(look, c->state);
            printf("%s%s\n", c->title, strcmp(c->when, "after") == 0 ? " (after activity)" : "");
            if (c->state != CHECK_HELD)
                printf("      %s  [%s, %s]\n", c->detail, c->id, c->requirement);
        }
    }
    printf("\n not promised in this mode\n");
    for (size_t i = 0; (text = prove_not_promised(p, i)) != NULL; i++)
        printf("  %s %s\n", look->utf8 ? "○" : "o", text);
    printf("\n %zu checks, %zu surprises\n\n", p->n, proof_count(p, CHECK_SURPRISE));
}

/* --bare: nothing is promised, so the words are others. */
static void
print_bare(const struct look *look, const struct proof *p)
{
    size_t real = 0;

    printf("Attacks without any wall, as uid %u: what a command can do on this host\n", (unsigned)geteuid());
    for (size_t w = 0; w < ARRAY_LEN(walls); w++) {
        printf("\n %s\n", walls[w]);
        for (size_t i = 0; i < p->n; i++) {
            const struct check *c = &p->checks[i];
            static const char *const words[] = { "refused by the host itself", "works", "works", "nothing to attack" };

            if (strcmp(c->wall, walls[w]) != 0)
                continue;
            real += c->state == CHECK_SURPRISE || c->state == CHECK_NOT_PROMISED;
            put_mark(look, c->state == CHECK_NOT_PROMISED ? CHECK_SURPRISE : c->state);
            printf("%s\n      %s: %s  [%s]\n", c->title, words[c->state], c->detail, c->id);
        }
    }
    printf("\n %zu attacks, %zu work here without a wall\n", p->n, real);
}

void
prove_print(const struct proofs *all)
{
    struct look look = { .utf8 = cli_utf8(), .colour = cli_colour(STDOUT_FILENO) };
    size_t checks = 0, surprises = 0;

    for (size_t i = 0; i < all->n; i++) {
        checks += all->v[i]->n;
        surprises += proof_count(all->v[i], CHECK_SURPRISE);
        if (all->bare)
            print_bare(&look, all->v[i]);
        else
            print_proof(&look, all->v[i]);
    }
    if (all->bare)
        return;
    for (size_t i = 0; i < all->n_skipped; i++)
        printf("Mode %s was not proven: %s\n", all->skipped[i], all->skipped_why[i]);
    printf("%zu checks, %zu surprises\n", checks, surprises);
}

const char *
prove_not_promised(const struct proof *p, size_t index)
{
    static const char *const always[] = {
        "the kernel is shared: a hole in it is a hole in the wall (`--boundary vm` gives it one of its own)",
        "what /proc says of the machine as a whole: processor, memory, disks, kernel version and configuration",
        "side channels of the hardware: timing, caches, speculation",
        "that the code inside does no harm inside: what the policy opens, it may use",
    };
    static const char *const light[] = {
        "light: the host's files can be read, but for credential places and what deny_read names",
        "light: the host's processes, mounts and network settings can be seen",
        "light: modes, owners and times of the caller's own files can be changed (Landlock does not cover them)",
    };
    const size_t n_always = ARRAY_LEN(always), n_light = ARRAY_LEN(light);

    index += p->own_kernel;     /* the first is not so there */
    if (index < n_always)
        return always[index];
    index -= n_always;
    if (p->policy->mode.v == MODE_LIGHT) {
        if (index < n_light)
            return light[index];
        index -= n_light;
    } else if (p->policy->view.v == VIEW_HOST) {
        if (index == 0)
            return "view host: the host's files can be read, but for credential places and what deny_read names";
        index--;
    }
    if (p->policy->network.v == NETWORK_HOST)
        return index == 0 ? "--network host: everything that this host can reach, its own 127.0.0.1 too" : NULL;
    return NULL;
}
