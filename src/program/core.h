/* program/core.h: no core file of cloche itself
 *
 * Its memory has the caller's environment and settings with passwords, and a core file lies where the caller is: in the
 * project, where what runs inside reads. Whoever asked for cores (ulimit -c) asked for the command's.
 */
#ifndef CLOCHE_PROGRAM_CORE_H
#define CLOCHE_PROGRAM_CORE_H

/* First of all: from now on neither a file nor a handler of the host's (core_pattern) gets one of this process, nor of
 * what it starts. */
void core_none(void);

/* In a command that runs without a wall: as the caller had it. */
void core_as_it_was(void);

#endif
