/* gate/tank.c: how much searching one who asks may have others wait for (see gate.h)
 *
 * The limit of one verdict does not bound many of them, and who judges does nothing else meanwhile. Who has used up
 * their own share is judged without searching, which is the stricter way, and costs nobody else anything.
 */
#include "gate/gate.h"

uint32_t
gate_tank_at(struct gate_tank *t, uint64_t now_ms)
{
    uint64_t ms = now_ms - t->at_ms, way = GATE_FUEL_SAVED - t->fuel;

    /* what is less than one step is not lost: the time stays until it is one */
    if (t->at_ms == 0 || ms >= way * 1000 / GATE_FUEL_SECOND + 1) {
        t->fuel = GATE_FUEL_SAVED;
        t->at_ms = now_ms;
    } else if (ms * GATE_FUEL_SECOND >= 1000) {
        t->fuel += (uint32_t)(ms * GATE_FUEL_SECOND / 1000);
        t->at_ms = now_ms;
    }
    return t->fuel < GATE_FUEL ? t->fuel : GATE_FUEL;
}

void
gate_tank_take(struct gate_tank *t, uint32_t cost)
{
    t->fuel -= cost < t->fuel ? cost : t->fuel;
}
