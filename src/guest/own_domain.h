/* guest/own_domain.h: a Landlock domain of the command's own, in mode light
 *
 * The guest and its commands have one domain from the launcher. Within it a command gets one more, for what the guest
 * may do and it may not: signal the guest, and open the host's devices. Terminals are the reason: the guest makes them
 * for its commands, and which of the host's they are no rule can say that was made before. So a command opens of the
 * devices those that lead to nobody else, and the terminal that it was given; what it was handed is open already. The
 * guest's environment is the paths of what is in the root folder, each opened with all that is in it, but for /dev.
 */
#ifndef CLOCHE_GUEST_OWN_DOMAIN_H
#define CLOCHE_GUEST_OWN_DOMAIN_H

/* Make it. @terminal: the command's own, or -1. *@out is -1 where the kernel has no Landlock: there the launcher has
 * refused mode light. No allocation: fit for a clone child. 0, or -1 with errno. */
int own_domain_make(int terminal, int *out);

/* The same for a command that may look at the working directory, and do nothing else (look.h): -1 where the kernel has
 * no Landlock. */
int own_domain_look(int *out);

/* Enter what was made, and close it. 0, or -1 with errno. */
int own_domain_enter(int ruleset);

#endif
