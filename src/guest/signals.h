/* guest/signals.h: the guest's signals
 *
 * Blocked everywhere but inside the loop's ppoll, so that a handler never runs in the middle of anything: it sets
 * a bit, and the loop looks.
 */
#ifndef CLOCHE_GUEST_SIGNALS_H
#define CLOCHE_GUEST_SIGNALS_H

#include <signal.h>
#include <stdint.h>

/* Default what the launcher's ancestors may have ignored, catch what the guest wants, block it. -1 with errno. */
int signals_init(void);
/* The mask for ppoll. */
const sigset_t *signals_open_mask(void);
/* Bits (1 << signo) that came since the last call. */
uint64_t signals_take(void);
/* In the child: the handlers are the guest's; the command starts with the defaults and nothing blocked. */
void signals_default(void);
void signals_unblock(void);

#endif
