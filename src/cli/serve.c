/* cli/serve.c: cloche serve: flags, configuration, then the launcher */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/serve.h"
#include "cli/state.h"

static int
usage(void)
{
    printf("usage: cloche serve [flags]\n\n"
           "Keep sandboxes for other programs: create them, run commands in them, move files, over HTTP.\n"
           "Only the user who started it (and root) may connect. SIGTERM ends it, and all its sandboxes.\n\n"
           "  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n  %-32s %s\n\n"
           "docs/daemon.md, docs/openapi.yaml\n",
           "--listen unix:PATH", "the socket (default: api.sock in the state folder)",
           "--state-dir DIR", "where the records are kept",
           "--config FILE", "YAML with these flags as keys, without the dashes",
           "--settings FILE", "a policy's settings file, below what each sandbox asks for",
           "--max-sandboxes N", "at once (256)",
           "--idle-timeout TIME", "of sandboxes that name none: ended when nothing ran for so long (none)",
           "--max-lifetime TIME", "of sandboxes that name none (none)");
    return 0;
}

static int
defaults(struct serve_plan *plan, struct err *err)
{
    char folder[PATH_MAX];

    plan->max_sandboxes = 256;
    if (state_dir_path(folder, err) < 0)
        return -1;
    return snprintf(plan->state, sizeof(plan->state), "%s/serve", folder) < (int)sizeof(plan->state)
               ? 0 : err_set(err, ERR_USAGE, "serve.path", "the state folder's path is too long");
}

/* "--name=value" or "--name value": how many words, -1 with @err. */
static int
flag(int argc, char **argv, int i, char name[64], const char **value, struct err *err)
{
    const char *eq = strchr(argv[i], '=');
    size_t n = eq != NULL ? (size_t)(eq - argv[i]) : strlen(argv[i]);

    snprintf(name, 64, "%.*s", (int)(n < 63 ? n : 63), argv[i]);
    if (strncmp(name, "--", 2) != 0 || (!serve_known(name + 2) && strcmp(name, "--config") != 0)) {
        err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
        return err_hint(err, "`cloche serve --help` lists the flags");
    }
    *value = eq != NULL ? eq + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    if (*value == NULL)
        return err_set(err, ERR_USAGE, "cli.flag-value", "%s needs a value", name);
    return eq != NULL ? 1 : 2;
}

static int
read_flags(struct serve_plan *plan, int argc, char **argv, struct err *err)
{
    const char *value;
    char name[64];
    int n;

    /* the file first: flags have the last word */
    for (int i = 1; i < argc; i += n) {
        n = flag(argc, argv, i, name, &value, err);
        if (n < 0 || (strcmp(name, "--config") == 0 && serve_config(plan, value, err) < 0))
            return -1;
    }
    for (int i = 1; i < argc; i += n) {
        n = flag(argc, argv, i, name, &value, err);
        if (n < 0 || (strcmp(name, "--config") != 0 && serve_set(plan, name + 2, name, value, err) < 0))
            return -1;
    }
    if (plan->socket[0] == '\0' &&
        snprintf(plan->socket, sizeof(plan->socket), "%s/api.sock", plan->state) >= (int)sizeof(plan->socket))
        return err_set(err, ERR_USAGE, "serve.path", "the socket's path is too long");
    return 0;
}

int
cmd_serve(int argc, char **argv)
{
    static struct serve_plan plan;
    struct err err = ERR_INIT;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return usage();
    if (defaults(&plan, &err) < 0 || read_flags(&plan, argc, argv, &err) < 0 || launcher_run(&plan, &err) < 0)
        return cli_fail(&err, false);
    return 0;
}
