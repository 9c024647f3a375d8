/* engine/native/launch.h: the child's way from clone to the guest */
#ifndef CLOCHE_ENGINE_NATIVE_LAUNCH_H
#define CLOCHE_ENGINE_NATIVE_LAUNCH_H

#include "base/err.h"
#include "engine/native/plan.h"
#include "wall/rlimit.h"

struct launch {
    struct native_plan *plan;   /* the child's copy; what GO_MAPPED brings is put into it */
    struct rlimit_plan rlimits;
    int go;         /* seqpacket socket: GO_MAPPED, then GO_ENTER with descriptors; its end when the parent is gone */
    int status;     /* write end: a struct err when something failed; closed by exec */
    int transport;  /* becomes fd 3 */
};

/* What the parent says. The child builds its root between the two, while the parent makes the cgroup. */
#define GO_MAPPED 'm'           /* the id maps are written; a descriptor: the /proc that the parent made */
#define GO_ENTER  'e'           /* first descriptor: the guest's executable; the others: `tasks` files to join */
#define GO_LISTENERS 'n'        /* from the child: what wall/capture.h opened, in its order */
#define GO_MEMORY 's'           /* from the child, before those: its tmpfs; what sockmem_open() gave */
#define GO_OWN    'c'           /* from the child, between these: the files of plan->own, in their order */
#define GO_FDS_MAX 40

/* One message with at most GO_FDS_MAX descriptors. launch_hear waits for @what and returns how many came into @fds
 * (O_CLOEXEC); -1 with @err for anything else, and when the other side is gone. */
int launch_hear(int go, char what, int fds[GO_FDS_MAX], struct err *err);
int launch_say(int go, char what, const int *fds, size_t n, struct err *err);

/* Parts of that way, for a child that has its walls made by others (native.h: struct native_way). To die with the
 * parent, and to wait for it. */
int launch_first_steps(const struct launch *l, struct err *err);
/* The root file system and, beside it, the network; what the parent has of both goes to it. */
int launch_surroundings(const struct launch *l, struct err *err);
/* @job by root, where what is made is to belong to the sandbox's user: as that user, as far as files go. */
int launch_as_user(const struct launch *l, int (*job)(const struct launch *l, struct err *err), struct err *err);
/* The guest's executable, when the parent is done with its part; joins the cgroups. */
int launch_meet_parent(const struct launch *l, struct err *err);
_Noreturn void launch_give_up(int status, const struct err *err);

/* Never returns. */
_Noreturn void launch_child(const struct launch *l);

/* The guest's executable as a sealed memfd (CVE-2019-5736: nothing inside can write what runs outside of it).
 * Returns an fd or -1. */
int launch_guest_image(struct err *err);

#endif
