/* policy/arena.c: the memory of one policy
 *
 * A policy has some hundred small strings and lives until the command ends: they are carved from large pieces, so
 * that filling a preset costs one malloc and freeing it two calls.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/internal.h"

#define ARENA_ALIGN 16
#define ARENA_CHUNK (32 * 1024)

struct arena {
    struct arena *next;     /* older pieces */
    size_t used, cap;       /* of @bytes */
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

struct arena *
arena_new(size_t first)
{
    struct arena *a;
    size_t total;

    if (!size_add(sizeof(*a), first, &total))
        return NULL;
    a = malloc(total);
    if (a == NULL)
        return NULL;
    a->next = NULL;
    a->used = 0;
    a->cap = first;
    return a;
}

void
arena_free(struct arena *a)
{
    while (a != NULL) {
        struct arena *next = a->next;
        free(a);
        a = next;
    }
}

/* The head keeps its address (struct policy points to it): a full head hands its place on by a second piece behind. */
static unsigned char *
carve(struct arena *a, size_t n)
{
    unsigned char *p;

    if (n > a->cap - a->used)
        return NULL;
    p = a->bytes + a->used;
    a->used += n;
    return p;
}

void *
arena_raw(struct arena *a, size_t n)
{
    unsigned char *p;
    size_t rounded;

    if (!size_add(n, ARENA_ALIGN - 1, &rounded))
        return NULL;
    rounded &= ~(size_t)(ARENA_ALIGN - 1);
    p = carve(a, rounded);
    if (p == NULL && a->next != NULL)
        p = carve(a->next, rounded);
    if (p == NULL) {
        struct arena *more = arena_new(rounded > ARENA_CHUNK ? rounded : ARENA_CHUNK);
        if (more == NULL)
            return NULL;
        more->next = a->next;
        a->next = more;
        p = carve(more, rounded);
    }
    return p;
}

void *
arena_alloc(struct arena *a, size_t n)
{
    void *p = arena_raw(a, n);

    if (p != NULL)
        memset(p, 0, n);
    return p;
}

char *
arena_join(struct arena *a, struct str s, struct str t)
{
    size_t n;
    char *p;

    if (!size_add(s.n, t.n, &n) || !size_add(n, 1, &n))
        return NULL;
    p = arena_raw(a, n);
    if (p == NULL)
        return NULL;
    if (s.n > 0)
        memcpy(p, s.p, s.n);
    if (t.n > 0)
        memcpy(p + s.n, t.p, t.n);
    p[s.n + t.n] = '\0';
    return p;
}

char *
arena_copy(struct arena *a, struct str s)
{
    return arena_join(a, s, (struct str){ NULL, 0 });
}

int
policy_no_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "policy.no-memory", "no memory for the policy");
}
