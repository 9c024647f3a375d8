/* cli/doctor.c: `cloche doctor`: what this host can enforce, what not, why not, and what to do about it */
#include "cli/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/cli.h"
#include "program/caller.h"
#include "program/verb.h"

enum { EXIT_STANDARD = 0, EXIT_ONLY_LIGHT = 1, EXIT_NOTHING = 2 };

const char *const doctor_not_here[] = {
    "UDP, incoming connections but to exposed ports of the daemon's sandboxes",
    "other engines: kubernetes, apple",
    "of the daemon: console, screens and browsers",
    "freezing on cgroup v1 (processes are stopped instead), forks with what runs in a sandbox",
    NULL,
};

/* Which engine makes a sandbox for which that boundary is all that is asked. */
static int
choose(struct doctor *d, struct err *err)
{
    struct policy_host host;

    if (cli_host(&host, err) < 0)
        return -1;
    for (unsigned i = 0; i < DOCTOR_BOUNDARIES; i++) {
        cleanup_policy struct policy p = { 0 };
        if (policy_init(&p, MODE_STANDARD, VERB_RUN, &host, err) < 0 ||
            policy_apply_flag(&p, "--boundary", policy_boundary_name((enum policy_boundary)i), &host, err) < 0)
            return -1;
        (void)engine_choose(&p, &d->boundaries[i], NULL);      /* its rows say why there is none */
    }
    return 0;
}

static int
examine(struct doctor *d, struct err *err)
{
    static const enum policy_mode modes[DOCTOR_MODES] = { MODE_LIGHT, MODE_STANDARD, MODE_MAX };

    memset(d, 0, sizeof(*d));
    if (engine_probe(NULL, &d->engine, err) < 0)
        return -1;
    host_facts_read(&d->host);
    if (doctor_find_engines(d, err) < 0 || choose(d, err) < 0)
        return -1;
    doctor_find_programs(d);
    doctor_find_helpers(d->helpers);
    for (size_t i = 0; i < DOCTOR_MODES; i++) {
        d->modes[i].mode = modes[i];
        d->modes[i].usable = engine_allows(&d->engine, modes[i], &d->modes[i].missing);
    }
    return 0;
}

struct options {
    bool json;
};

static int
report(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    static struct doctor d;     /* large, and one is enough */

    (void)w;
    if (examine(&d, err) < 0)
        return -1;
    if ((o->json ? doctor_print_json(&d) : doctor_print_text(&d)) < 0)
        return err_set(err, ERR_SYSTEM, "cli.output", "doctor: the report cannot be written");
    return d.engine.usable ? EXIT_STANDARD : d.engine.usable_light ? EXIT_ONLY_LIGHT : EXIT_NOTHING;
}

int
cmd_doctor(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[--json]", 0, 0, .run = report } };
    static const struct verb_flag flags[] = { { "--json", 0, NULL, "one JSON object", FLAG_ON(struct options, json) } };
    static const struct verb verb = {
        .name = "doctor", VERB_FORMS(forms), VERB_FLAGS(flags), .surplus = "cli.unknown-flag",
        .about = "Tries every feature of this host that a sandbox needs, as this user. Shows what is enforced, what "
                 "is\n"
                 "not, why, and how to fix it. Changes nothing.",
        .after = "Exit status: 0 mode standard can be built, 1 only mode light, 2 neither, 125 doctor itself failed.",
    };
    struct options o = { .json = false };

    return verb_main(&verb, &o, argc, argv);
}
