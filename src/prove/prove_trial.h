/* prove/prove_trial.h: between prove_trial.c and those that prepare a trial, and look at it from outside */
#ifndef CLOCHE_PROVE_PROVE_TRIAL_H
#define CLOCHE_PROVE_PROVE_TRIAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "prove/prove.h"

#define TRIAL_README   "a project of cloche prove\n"
#define TRIAL_README_N ((off_t)sizeof(TRIAL_README) - 1)

/* Files @dir/linked, linked-too and linked-last with a second name in @project, and sockets @project/door (a stream)
 * and @project/post (datagrams); @doors are the caller's. @owner of the files, (uid_t)-1: us. 0 or -1 with @err. */
int trial_outside_prepare(const char *dir, const char *project, uid_t owner, int doors[2], struct err *err);

/* prove/prove_trial_plant.c: what is put on the host for a trial to find. */
struct plant {
    const struct bait *bait;
    uid_t owner;                /* (uid_t)-1: us */
    struct err *err;
};

/* The folders of @name below @base, then, but where it ends with a '/', a file with @size bytes at @data. All of these:
 * 0 or -1 with @p->err. */
int plant_file(const struct plant *p, const char *base, const char *name, const void *data, size_t size, mode_t mode);

/* A file of BAIT_TOKEN_SIZE bytes: the run's name, "C" (closed in every view) or "O" (open in the host's), the place.
 * Modes let everybody read, and write where that is asked for: the wall alone shall stand between. */
int plant_token(const struct plant *p, const char *base, const char *name, char kind, mode_t mode);

/* Tokens at the places of a home that are closed, and at some that are not. */
int plant_home(const struct plant *p, const char *home);

/* What probe/trial_project.c looks for. */
int plant_project(const struct plant *p, const char *project);

/* Folders that are shut, links and the like: in @project, and some in @beside; files in them hold tokens. */
int trial_corners_prepare(const struct plant *p, const char *dir, const char *project, const char *beside);

/* For root, in the process that becomes a run: @dir/beside is @dir/elsewhere too, in a mount namespace of its own.
 * Where no mount is to be had, nothing. */
void trial_corners_mount(const char *dir);

/* Whoever removes them must be able to search the folders that are shut. */
void trial_corners_open(const char *beside);

/* For root, in the process that becomes a run: @dir/hosts is the host's table of names, in a mount namespace of its
 * own. Where no mount is to be had, nothing. */
#define TRIAL_HOSTS "hosts"
void trial_outside_names(const char *dir);

/* In the process that becomes a run: precedence, as far as we may take it (root may). None of it is to come through. */
void trial_outside_precedence(void);

/* Are these among the reasons of the run's @report: a ClientHello with another name, an encrypted one, one without? */
bool trial_outside_hello(const json_t *report, char *detail, size_t n);

/* Was @dir/linked or linked-too changed; with @last, @dir/linked-last? @detail, of @n bytes, says it. */
bool trial_outside_written(const char *dir, bool last, char *detail, size_t n);

/* The configuration of the project's own repository; and whether that is another now. */
#define TRIAL_CONFIG "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\thooksPath = husky\n" \
                     "\tattributesFile = led-attributes\n[include]\n\tpath = ../included-config\n" \
                     "[filter \"x\"]\n\tclean = ./led-filter %f\n"
bool trial_outside_configured(const char *project, char *detail, size_t n);

/* Is @project, as prove_trial.c made it, another now: by what the trial of a copy does? */
bool trial_outside_changed(const char *project, char *detail, size_t n);

/* Is there a process called @name? It is ended then. */
bool trial_outside_left(const char *name, char *detail, size_t n);

/* With which rights runs the process @name (cloche-egress, cloche-vault) that is a child of @run? While it starts it
 * has its caller's. With @memory it must have a bound on that. */
struct service_rights {
    bool seen, confined;
    char detail[240];
};
void trial_outside_service(pid_t run, const char *name, bool memory, struct service_rights *r);

/* All were seen: @project/egress-seen tells the trial, which waits for that. */
void trial_outside_seen(const char *project);

/* A call that cloche-egress, or else cloche-vault, does not need, and that the filter of @pid lets through; NULL where
 * there is none, or where filters are not shown (prove/prove_filter.c). */
const char *trial_filter_lets(pid_t pid, bool egress);

#endif
