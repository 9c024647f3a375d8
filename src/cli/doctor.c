/* cli/doctor.c: `cloche doctor`: what this host can enforce, what not, why not, and what to do about it */
#include "cli/doctor.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "program/say.h"
#include "program/words.h"

enum { EXIT_STANDARD = 0, EXIT_ONLY_LIGHT = 1, EXIT_NOTHING = 2 };

const char *const doctor_not_here[] = {
    "UDP, incoming connections but to exposed ports of the daemon's sandboxes",
    "other engines: oci (crun, runc, runsc), docker, microvm, kubernetes, apple",
    "of the daemon: console, screens and browsers, signing",
    "freezing on cgroup v1 (processes are stopped instead), snapshots and forks of a running sandbox",
    NULL,
};

static void
usage(void)
{
    printf("usage: cloche doctor [--json]\n\n"
           "Tries every feature of this host that a sandbox is built from, as this user, and says what is enforced,\n"
           "what not, why, and what to do about it. Changes nothing.\n\n"
           "  --json   one JSON object\n\n"
           "Exit status: 0 mode standard can be built, 1 only mode light, 2 neither, 125 doctor itself failed.\n");
}

static int
examine(struct doctor *d, struct err *err)
{
    static const enum policy_mode modes[DOCTOR_MODES] = { MODE_LIGHT, MODE_STANDARD, MODE_MAX };

    memset(d, 0, sizeof(*d));
    if (engine_probe(NULL, &d->engine, err) < 0)
        return -1;
    host_facts_read(&d->host);
    doctor_find_programs(d->programs);
    doctor_find_helpers(d->helpers);
    for (size_t i = 0; i < DOCTOR_MODES; i++) {
        d->modes[i].mode = modes[i];
        d->modes[i].usable = engine_allows(&d->engine, modes[i], &d->modes[i].missing);
    }
    return 0;
}

int
cmd_doctor(int argc, char **argv)
{
    static struct doctor d;     /* large, and one is enough */
    struct err err = ERR_INIT;
    bool json = cli_asks_json(argc, argv, false);

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            continue;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        } else {
            err_set(&err, ERR_USAGE, "cli.unknown-flag", "doctor: unknown argument \"%s\"", argv[i]);
            err_hint(&err, "usage: cloche doctor [--json]");
            return cli_fail(&err, json);
        }
    }
    if (examine(&d, &err) < 0)
        return cli_fail(&err, json);
    if ((json ? doctor_print_json(&d) : doctor_print_text(&d)) < 0) {
        err_set(&err, ERR_SYSTEM, "cli.output", "doctor: the report cannot be written");
        return cli_fail(&err, false);
    }
    return d.engine.usable ? EXIT_STANDARD : d.engine.usable_light ? EXIT_ONLY_LIGHT : EXIT_NOTHING;
}
