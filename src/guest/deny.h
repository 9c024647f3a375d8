/* guest/deny.h: the system calls that the policy takes from commands (syscalls.deny)
 *
 * A filter of each command's own, on top of all others and inherited by what it starts. The guest itself, which runs
 * nothing of theirs, keeps what it needs: that is why this is not a part of the filter around everything.
 */
#ifndef CLOCHE_GUEST_DENY_H
#define CLOCHE_GUEST_DENY_H

#include <stdint.h>

/* @n numbers, be16 each, at most MSG_DENIED_MAX: what deny_enter() will close. */
void deny_setup(const uint8_t *numbers, uint16_t n);

/* In the child, last before execve: closed from here on. No allocation. 0, or -1 with errno. */
int deny_enter(void);

#endif
