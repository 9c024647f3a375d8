/* engine/native/led_priv.h: what led.c and led_links.c share */
#ifndef CLOCHE_ENGINE_NATIVE_LED_PRIV_H
#define CLOCHE_ENGINE_NATIVE_LED_PRIV_H

#include <limits.h>
#include <stddef.h>

#include "engine/led.h"

#define LED_LISTED_MAX 4096         /* entries of one protected directory in which links are looked for */
#define LED_EVERYWHERE_MAX 1024     /* entries of the owner's that mean every repository; more are refused */

enum led_meaning {
    MEANS_HOOKS,                /* a directory of programs */
    MEANS_FILE,                 /* a file that git obeys; relative to the work tree's top */
    MEANS_INCLUDE,              /* ... relative to the file that names it */
    MEANS_PROGRAM,              /* a command line */
};

struct led {
    int fd;
    const char *host;
    const char *home;           /* that is looked at: one of these */
    const char *first_home;     /* of the caller */
    char *other_home;           /* of the folder's owner, if that is somebody else; or NULL */
    const struct policy_list *names;
    struct policy_list more;    /* led_names() */
    led_put *put;
    void *ctx;
    char top[PATH_MAX];         /* of the work tree that is read about */
    bool nested;                /* ... which lies in the folder */
    bool of_owner;              /* what is read is not a repository's */
    struct buf said;            /* led_said() */
    unsigned n_files;
    size_t n_text;
    struct { enum led_meaning meaning; char *value; } everywhere[LED_EVERYWHERE_MAX];
    size_t n_everywhere;
    char **seen;
    size_t n_seen;
    unsigned nested_in;         /* directories that are being looked through, each led to by the one before */
};

/* led.c. Close @path, and where links lead from it. */
int led_close(struct led *l, const char *path, struct err *err);
/* Read the configuration @path, which @depth others include; @dir/@name; one that is read already (@path: or ""). */
int led_read(struct led *l, const char *path, unsigned depth, struct err *err);
int led_read_below(struct led *l, const char *dir, const char *name, struct err *err);
int led_read_text(struct led *l, const struct buf *text, const char *path, unsigned depth, struct err *err);

/* led_links.c. Tell where @path leads. @itself: it is not protected anyhow. */
int led_follow(struct led *l, const char *path, bool itself, struct err *err);
/* ... and where the links in the directory @path lead, which is @level below one that was asked for. */
int led_look_below(struct led *l, const char *path, unsigned level, size_t *left, struct err *err);

#endif
