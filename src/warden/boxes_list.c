/* warden/boxes_list.c: which sandboxes there are in memory: all in one list, and by the beginning of their ids */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "warden/approvals.h"
#include "warden/warden.h"

#define NOT_MADE_MAX 4096       /* above an error of any length */

/* Ids are random; a name may be asked for here too. */
static size_t
beginning(const char *id)
{
    size_t n = 0;

    for (size_t i = 0; i < 8 && id[i] != '\0'; i++)
        n = n * 31 + (unsigned char)id[i];
    return n % WARDEN_BY_ID;
}

struct box *
box_of_id(const struct warden *w, const char *id)
{
    struct box *b = w->by_id[beginning(id)];

    while (b != NULL && strcmp(b->r.id, id) != 0)
        b = b->id_next;
    return b;
}

size_t
box_count(const struct warden *w)
{
    return w->n_boxes - w->n_sweepers - pool_count(w);
}

static void
free_box(struct box *b)
{
    for (uint32_t i = 0; i < WARDEN_FRONTS; i++)
        box_forget_waiters(b, i);
    free(b->change.policy);
    packet_queue_clear(&b->out);
    loop_drop(&b->w->loop, &b->edge);
    free((void *)(uintptr_t)b->r.name);
    free((void *)(uintptr_t)b->r.labels);
    free((void *)(uintptr_t)b->r.policy);
    free((void *)(uintptr_t)b->r.facts);
    free((void *)(uintptr_t)b->r.detail);
    free((void *)(uintptr_t)b->r.workspace);
    free((void *)(uintptr_t)b->r.print);
    free((void *)(uintptr_t)b->r.how);
    free((void *)(uintptr_t)b->why);
    buf_free(&b->not_made);
    buf_free(&b->use);
    masks_free(&b->masks);
    explicit_bzero(b->more_key, sizeof(b->more_key));
    trial_free(b);
    call_free(b);
    free(b);
}

void
box_take_out(struct box *b)
{
    struct warden *w = b->w;
    bool had_volume = b->r.volume[0] != '\0' || b->r.base[0] != '\0', was_default = b->r.is_default;
    struct box **at = &w->boxes;

    if (had_volume)
        volumes_turn(w);        /* up to now it was used */
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    for (at = &w->by_id[beginning(b->r.id)]; *at != b;)
        at = &(*at)->id_next;
    *at = b->id_next;
    pool_leave(b);
    w->n_boxes--;
    w->n_sweepers -= b->sweeps;
    if (w->heard == b)
        w->heard = NULL;
    passes_end(w, b->r.id);
    free_box(b);
    if (had_volume)
        volumes_turn(w);
    if (was_default)
        epoch_next(&w->epochs->defaults);
}

/* In memory only. NULL: no memory. */
struct box *
box_new(struct warden *w, const struct edge_box *r)
{
    struct box *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->w = w;
    b->edge.fd = -1;
    b->keep_s = EDGE_KEEP_SAME;
    b->out = (struct packet_queue)PACKET_QUEUE_INIT(EDGE_QUEUE_MAX);
    b->not_made = (struct buf)BUF_INIT(NOT_MADE_MAX);
    b->use = (struct buf)BUF_INIT(edge_usage_MOST);
    b->asked_for_us = clock_us();
    b->r = *r;
    b->r.name = strdup(r->name);
    b->r.labels = strdup(r->labels);
    b->r.policy = strdup(r->policy);
    b->r.facts = strdup(r->facts);
    b->r.detail = strdup(r->detail);
    b->r.workspace = strdup(r->workspace);
    b->r.print = strdup(r->print);
    b->r.how = strdup(r->how);
    if (b->r.name == NULL || b->r.labels == NULL || b->r.policy == NULL || b->r.facts == NULL || b->r.detail == NULL ||
        b->r.workspace == NULL || b->r.print == NULL || b->r.how == NULL) {
        free_box(b);
        return NULL;
    }
    b->next = w->boxes;
    w->boxes = b;
    b->id_next = w->by_id[beginning(b->r.id)];
    w->by_id[beginning(b->r.id)] = b;
    w->n_boxes++;
    return b;
}
