/* cli/run.h: what `cloche agent` has of `cloche run` */
#ifndef CLOCHE_CLI_RUN_H
#define CLOCHE_CLI_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "policy/policy.h"
#include "program/verb.h"

#define RUN_EXIT_HELP "exit: the command's own; 128+n by signal n; 124 time limit; 125 cloche refused or failed; " \
                      "126, 127 as shells"

struct packages;

struct run_options {
    bool json, quiet, help, no_entrypoint;
    int pty;                    /* -1 decide by the terminal */
    const char *report;
    const char *toolchains;     /* program/toolchains.h; NULL: not said */
    const char *language;       /* code */
    struct packages *packages;  /* code; NULL: not said */
};

#define RUN_FLAGS 8 /* of run_flags, those that run has: the first is for that alone, two are not for others */
extern const struct verb_flag run_flags[];
/* The flags of a policy, for --help. */
void run_policy_help(FILE *to);
/* `cloche run`, called as @v: the flags in argv[1..], then the command. The exit code. */
int run_command(const struct verb *v, int argc, char **argv, const struct policy_host *host);

#endif
