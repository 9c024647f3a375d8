/* probe/attack.h: one attack
 *
 * Each function runs in a fresh child that is thrown away, and says what happened: BLOCKED is the wall's answer, as
 * is the death of the child by the filter. SUCCEEDED means that what was wanted was had, or, for a kernel
 * interface, that the kernel's own code was reached. Every attack is harmless where it succeeds: permission is
 * tested with arguments that the kernel refuses after it has checked the permission, or with changes to what they
 * already are; what is made is removed.
 */
#ifndef CLOCHE_PROBE_ATTACK_H
#define CLOCHE_PROBE_ATTACK_H

#include "probe/catalog.h"
#include "probe/probe.h"

enum outcome {
    BLOCKED,
    SUCCEEDED,
    NOT_APPLICABLE,     /* there is nothing here to attack; the detail says what is missing */
};

struct attempt {
    const struct probe *p;
    char scratch[256];          /* an own directory; "" when nothing is writable */
    char detail[256];
};

typedef enum outcome attack_fn(struct attempt *a);

#define DECLARE_ATTACK(fn, id, wall, promised, unless, requirement, title) attack_fn attack_##fn;
ATTACKS(DECLARE_ATTACK)
#undef DECLARE_ATTACK

/* A trial (TRIALS) is written as the attack that it is: BLOCKED is right. */
#define DECLARE_TRIAL(fn, id, stage, wall, requirement, title) attack_fn trial_##fn;
TRIALS(DECLARE_TRIAL)
#undef DECLARE_TRIAL

/* Say @fmt and return @o. */
enum outcome outcome_of(struct attempt *a, enum outcome o, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* @rc of a call named @what: >= 0 is success. A refusal (EPERM, EACCES, ENOSYS, EROFS, ...) is blocked. */
enum outcome judge(struct attempt *a, const char *what, long rc);

/* As judge, for a call whose permission check comes before its arguments': any errno but EPERM, EACCES, ENOSYS means
 * that the kernel's code was reached. */
enum outcome judge_reached(struct attempt *a, const char *what, long rc);

/* Open @path with @flags and close it. */
enum outcome try_open(struct attempt *a, const char *path, int flags);

/* Run the rows until one does not hold. */
enum outcome first_hole(struct attempt *a, enum outcome (*const rows[])(struct attempt *), size_t n);

/* --bare only: a mount namespace of its own, so that mounts made by the attack are nobody else's. */
void own_mounts(const struct attempt *a);

/* Try to make a set-user-ID file in @folder ("": nowhere is writable). */
enum outcome make_set_id(struct attempt *a, const char *folder);

/* Nothing to attack: inside, that is the wall's doing; bare, the host just has none. */
enum outcome absent(struct attempt *a, const char *what);

/* Whether the process outside can be told apart here: false when its number is another process's. */
bool host_process_here(const struct attempt *a);

/* The guest inside a sandbox; bare, the process that stands for it. 0 when there is none. */
pid_t first_process(const struct attempt *a);

/* The path of @name in the project; NULL when it is too long. */
char *in_project(const struct attempt *a, const char *name, char out[1024]);
/* Make each folder that @path, in the project, names before a '/'. */
void make_folders(const struct attempt *a, char *path);

#endif
