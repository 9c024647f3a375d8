/* cli/main.c: the verbs of `cloche`, and the entry under the name `srt` */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "cli/cli.h"
#include "launcher/maker.h"
#include "launcher/serve.h"
#include "program/core.h"
#include "program/say.h"
#include "program/words.h"
#include "prove/prove.h"
#include "run/starter.h"

static int unknown_verb(const char *word);
static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    { "run", cmd_run, "run a command in a sandbox" },
    { "code", cmd_code, "run a Python, JavaScript or shell file in a sandbox" },
    { "shell", cmd_shell, "an interactive shell in a sandbox" },
    { "agent", cmd_agent, "a coding agent in a sandbox, with its own home, in this project" },
    { "diff", cmd_diff, "what a copy-on-write run changed" },
    { "apply", cmd_apply, "apply what a copy-on-write run changed" },
    { "discard", cmd_discard, "discard what a copy-on-write run changed" },
    { "policy", cmd_policy, "check a settings file, show the effective policy" },
    { "why", cmd_why, "why a path or host is allowed or denied" },
    { "net", cmd_net, "show and change what a run may reach on the network" },
    { "approvals", cmd_approvals, "decide about waiting connections and agents' operations" },
    { "audit", cmd_audit, "read and check the record of what was done and decided" },
    { "gate", cmd_gate, "which operations of agents you are asked about" },
    { "doctor", cmd_doctor, "what this host can enforce, and how to fix the rest" },
    { "image", cmd_image, "systems that sandboxes have instead of the host's" },
    { "secret", cmd_secret, "secrets that sandboxes may use but never see" },
    { "signer", cmd_signer, "keys that sign transactions for agents, who never see them" },
    { "serve", cmd_serve, "run sandboxes for other programs, over HTTP" },
    { "mcp", cmd_mcp, "tools that run code in sandboxes, for MCP clients" },
    { "ps", cmd_ps, "the daemon's sandboxes, and what runs in them" },
    { "top", cmd_top, "the same, updated continuously" },
    { "events", cmd_events, "events of the daemon's sandboxes" },
    { "logs", cmd_logs, "what was run in one of the daemon's sandboxes, and its output" },
    { "watch", cmd_watch, "changes in the workspace of one of the daemon's sandboxes" },
    { "exec", cmd_exec, "run a command in one of the daemon's sandboxes" },
    { "ports", cmd_ports, "expose ports of the daemon's sandboxes" },
    { "attach", cmd_attach, "open one of the daemon's sandboxes in your editor" },
    { "console", cmd_console, "see all of the daemon's sandboxes in a browser, and decide what waits for you" },
    { "desktop", cmd_desktop, "look at the desktop of one of the daemon's sandboxes, or sit at it" },
    { "kill", cmd_kill, "end sandboxes of the daemon" },
    { "token", cmd_token, "credentials for clients of the daemon" },
    { "volume", cmd_volume, "durable workspaces of the daemon" },
    { "fork", cmd_fork, "new sandboxes of the daemon with another one's files" },
    { "snapshot", cmd_snapshot, "keep the files of one of the daemon's sandboxes as a template" },
    { "template", cmd_template, "templates of the daemon" },
    { "config", cmd_config, "check and show the daemon's configuration" },
    { "prove", cmd_prove, "attack the wall from inside and report" },
    { "srt", cmd_srt, "run a command as Anthropic's sandbox-runtime would" },
    { "help", cmd_help, "this text" },
    { "version", cmd_version, "the version" },
};

#define N_VERBS ARRAY_LEN(verbs)

static int
cmd_help(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], "help") == 0 && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0 &&
        strcmp(argv[1], "help") != 0) {
        char flag[] = "--help";
        char *words[] = { argv[1], flag, NULL };
        for (size_t i = 0; i < N_VERBS; i++)
            if (strcmp(verbs[i].name, argv[1]) == 0)
                return verbs[i].run(2, words);
        return unknown_verb(argv[1]);
    }
    printf("cloche " CLOCHE_VERSION ": a bell jar for software agents\n\n"
           "usage: cloche VERB [flags] ...\n\n");
    for (size_t i = 0; i < N_VERBS; i++)
        printf("  %-10s  %s\n", verbs[i].name, verbs[i].help);
    printf("\n"
           "  cloche run -- python3 untrusted.py               nothing of the host but its programs\n"
           "  cloche run --workspace . -- npm test             with this folder at /workspace\n"
           "  cloche run --workspace .:cow -- agent            then: cloche diff, cloche apply, cloche discard\n"
           "  cloche VERB --help                               the verb's flags\n");
    return 0;
}

static int
cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
#ifdef __GLIBC__
    printf("cloche " CLOCHE_VERSION " (glibc)\n");
#else
    printf("cloche " CLOCHE_VERSION " (musl)\n");
#endif
    return 0;
}

static int
unknown_verb(const char *word)
{
    const char *known[N_VERBS], *nearest;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < N_VERBS; i++)
        known[i] = verbs[i].name;
    nearest = cli_nearest(word, known, N_VERBS);
    err_set(&err, ERR_USAGE, "cli.unknown-verb", "unknown verb \"%s\"", word);
    if (nearest != NULL)
        err_hint(&err, "did you mean `cloche %s`? `cloche help` lists the verbs", nearest);
    else
        err_hint(&err, "`cloche help` lists the verbs; to run a command: cloche run -- %s", word);
    return cli_fail(&err, false);
}

/* A descriptor 0, 1 or 2 that is closed would be taken by the first thing that we open, and handed to the command as
 * its own (sudo and ssh do the same). */
static int
standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_NOCTTY); /* checksrc: no O_CLOEXEC, 0-2 are for the command too */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -1;
    return close(fd);
}

/* What -z relro asks for: after relocation read-only. glibc does it at the start, musl in dynamic programs only. */
static int
protect_relocated(void)
{
#ifndef __GLIBC__
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *segments = (const void *)(__ehdr_start + header->e_phoff);

    for (size_t i = 0; i < header->e_phnum; i++) {
        uintptr_t mask = ~((uintptr_t)getpagesize() - 1), begin = (uintptr_t)__ehdr_start + segments[i].p_vaddr;
        uintptr_t from = begin & mask, end = (begin + segments[i].p_memsz) & mask;

        if (segments[i].p_type == PT_GNU_RELRO && mprotect((void *)from, end - from, PROT_READ) < 0)
            return -1;
    }
#endif
    return 0;
}

static int
dispatch(int argc, char **argv)
{
    const char *name = argc > 0 && argv[0] != NULL ? strrchr(argv[0], '/') : NULL;

    name = name != NULL ? name + 1 : argc > 0 && argv[0] != NULL ? argv[0] : "cloche";
    if (strcmp(name, "srt") == 0)
        return cmd_srt(argc, argv);
    if (strcmp(name, "cloche-maker") == 0)      /* who starts them */
        return maker_main(argc, argv);
    if (strcmp(name, KEEPER_VACANT) == 0)       /* to be the keeper of one sandbox of the daemon's */
        return keeper_main(argc, argv);
    if (strcmp(name, "cloche-starter") == 0)    /* who starts its cloche-egress anew */
        return starter_main(argc, argv);
    if (argc < 2) {
        cmd_help(argc, argv);
        return EXIT_REFUSED;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cmd_help(argc, argv);
    if (strcmp(argv[1], "--version") == 0)
        return cmd_version(argc, argv);
    for (size_t i = 0; i < N_VERBS; i++)
        if (strcmp(verbs[i].name, argv[1]) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    return unknown_verb(argv[1]);
}

int
main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    int code;

    if (protect_relocated() < 0 || standard_descriptors() < 0)
        return EXIT_REFUSED;
    core_none();
    code = dispatch(argc, argv);
    /* an answer that did not reach its reader is no answer; whoever refused has said so already */
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code == EXIT_REFUSED)
        return code;
    err_sys(&err, errno, "cli.output", "cannot write to standard output");
    return cli_fail(&err, false);
}
