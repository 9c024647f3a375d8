/* keeper/keeper_hosts.c: the hosts of registries, while the rest is heard
 *
 * What is not known is asked by a process of its own (hosts/asker.h), and the message that wanted it is put aside. When
 * the answer is there it is handled again, from the beginning. What was read for it may have changed meanwhile: then
 * what is found is judged by that, and what is missing is asked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hosts/registry.h"
#include "keeper/keeper.h"

int
keeper_hosts_open(struct keeper_live *k, enum keeper_whose whose, struct policy *p, struct err *err)
{
    struct keeper_hosts *h = &k->hosts;
    int r;

    if (h->why_not[whose].kind != ERR_NONE) {
        *err = h->why_not[whose];
        return -1;
    }
    if (h->answers[whose] == NULL)
        h->answers[whose] = json_object();
    r = registry_recall(p, h->answers[whose], err);
    if (r > 0)
        return registry_apply(p, h->answers[whose], err);
    if (r == 0 && asker_start(&h->asker, p, h->answers[whose], ASKER_MS, err) == 0) {
        h->whose = whose;
        (void)err_set(err, ERR_SYSTEM, "cli.registry", "it is being asked");
    }
    return -1;
}

int
keeper_hosts_wait(struct keeper_live *k)
{
    struct keeper_hosts *h = &k->hosts;
    const struct frame *f = k->heard;
    uint8_t *copy = malloc(f->length);

    if (copy == NULL)
        return -1;
    memcpy(copy, f->payload, f->length);
    h->aside = *f;
    h->aside.payload = h->room = copy;
    k->gate.state = ST_ASKING;
    return 0;
}

void
keeper_hosts_turn(struct keeper_live *k)
{
    struct keeper_hosts *h = &k->hosts;
    struct err err = ERR_INIT;
    uint8_t *room = h->room;
    int r;

    if (h->asker.pid <= 0)
        return;
    (void)loop_forget(&k->loop, &h->heard);     /* it may be closed now */
    r = asker_hear(&h->asker, h->answers[h->whose], &err);
    if (r == 0)
        return;
    if (r < 0)
        h->why_not[h->whose] = err;
    h->room = NULL;
    k->gate.state = ST_FRESH;
    if (!keeper_hear(k, &h->aside))
        keeper_gone(k, "its message could not be read again");
    free(room);
}

void
keeper_hosts_drop(struct keeper_live *k)
{
    struct keeper_hosts *h = &k->hosts;

    if (h->asker.pid > 0)
        k->gate.state = ST_FRESH;
    (void)loop_forget(&k->loop, &h->heard);
    asker_stop(&h->asker);
    free(h->room);
    h->room = NULL;
}

void
keeper_hosts_free(struct keeper_live *k)
{
    keeper_hosts_drop(k);
    for (size_t i = 0; i < KEEPER_WHOSE; i++)
        json_decref(k->hosts.answers[i]);
}
