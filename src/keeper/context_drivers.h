/* keeper/context_drivers.h: the programs that run a context's code, inside ours: each a text, ended by a NUL */
#ifndef CLOCHE_KEEPER_CONTEXT_DRIVERS_H
#define CLOCHE_KEEPER_CONTEXT_DRIVERS_H

extern const char context_python[], context_node[], context_shell[];

#endif
