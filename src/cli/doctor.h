/* cli/doctor.h: between the files of `cloche doctor` */
#ifndef CLOCHE_CLI_DOCTOR_H
#define CLOCHE_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/host.h"
#include "match/language.h"
#include "program/helper.h"
#include "program/toolchains.h"

/* A program that `cloche code` starts, looked for where a private root has programs. */
struct doctor_program {
    const struct language *language;
    char path[256];             /* "" when not found */
    char version[32];           /* "3.11.2"; "" when it could not be asked */
    bool enough;
};

/* A program of cloche's own, looked for where cloche looks for it. */
struct doctor_helper {
    const char *folder, *name;  /* as helper_find() takes them */
    const char *needed_by;      /* what cannot be had without it */
    char path[4096];            /* "" when not found */
    char lacks[256];            /* the shared libraries without which it cannot start; "" none */
};

/* An engine; with one of the runtimes that it can have, where it needs one. */
struct doctor_engine {
    struct engine_report report;
    const char *runtime;        /* NULL: it needs none */
    char version[48];           /* as the runtime says it; "" when it could not be asked */
    struct engine_hole holes[ENGINE_HOLES_MAX];
    size_t n_holes;
    size_t missing;             /* of the report's features, for mode standard; n_features when usable */
};

#define DOCTOR_ENGINES 8
#define DOCTOR_HELPERS 12
#define DOCTOR_MODES 3
#define DOCTOR_BOUNDARIES 3

struct doctor {
    struct host_facts host;
    struct engine_report engine;
    struct doctor_engine engines[DOCTOR_ENGINES];       /* the first is @engine once more */
    size_t n_engines;
    struct doctor_program programs[LANGUAGES + LANGUAGES_MORE];
    size_t n_programs;
    struct toolchains toolchains;       /* of the caller's home */
    struct err runtimes;        /* why those of runtimes.d are not among them; code[0] "": they are */
    struct doctor_helper helpers[DOCTOR_HELPERS];
    struct {
        enum policy_mode mode;
        bool usable;
        size_t missing;         /* of the engine's features; n_features when usable */
    } modes[DOCTOR_MODES];      /* light, standard, max */
    struct engine_choice boundaries[DOCTOR_BOUNDARIES];     /* who would make a sandbox with each of these */
};

/* What this release does not have, said plainly; NULL-terminated. */
extern const char *const doctor_not_here[];

/* doctor_programs.c: start all at once, ask their versions, wait at most two seconds. */
void doctor_find_programs(struct doctor *d);
/* doctor_programs.c: every engine with every runtime, whose versions are asked in the same way. 0, or -1 with @err. */
int doctor_find_engines(struct doctor *d, struct err *err);
/* doctor_programs.c: where those that cloche starts are. */
void doctor_find_helpers(struct doctor_helper helpers[DOCTOR_HELPERS]);

/* doctor_text.c, doctor_json.c: to stdout. -1 when it cannot be written. */
int doctor_print_text(const struct doctor *d);
int doctor_print_json(const struct doctor *d);

#endif
