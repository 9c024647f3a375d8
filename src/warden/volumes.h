/* warden/volumes.h: what volumes.c and templates.c share: folders of the daemon's that outlive sandboxes */
#ifndef CLOCHE_WARDEN_VOLUMES_H
#define CLOCHE_WARDEN_VOLUMES_H

#include "warden/warden.h"

#define VOLUMES_MAX   1024          /* of all kinds */
#define VOLUMES_EACH  64            /* with one token; the owner has none */

struct volume {
    struct edge_volume r;           /* its name is owned */
    char *policy;                   /* of a template: of the sandbox whose files these were; owned, NULL none */
    bool making;                    /* a keeper copies into it: removed, but not to be swept yet */
    bool removed;                   /* nothing of it is to be left */
    uint64_t again_ms;              /* when to try that again */
};

struct volumes {
    struct volume v[VOLUMES_MAX];
    size_t n;
    uint64_t turn_ms, save_ms;      /* the last ones, on the monotonic clock */
    struct timer next;              /* the next turn that there is something to do in */
};

struct volume *volume_of_id(const struct warden *w, const char *id);
/* That @owner's of that kind and name which is not removed; NULL. */
struct volume *volume_of_name(const struct warden *w, const char *owner, enum volume_kind kind, const char *name);
/* One more, on record; as @removed until it is made. NULL with @err: there are too many. @policy may be NULL. */
struct volume *volume_new(struct warden *w, const struct edge_volume *r, const char *policy, bool removed,
                          struct err *err);
int volume_put(struct warden *w, const struct volume *v, struct err *err);     /* on record as it is now */
/* It is to be removed from now on. 0 or -1 with @err. */
int volume_remove(struct warden *w, struct volume *v, struct err *err);
bool volume_is_reached(const struct warden *w, const struct volume *v);     /* by who asks */
void volumes_tell_all(struct warden *w, enum volume_kind kind);             /* who asks: those that it reaches */

/* templates.c: whether one that is made now begins with it; whether its files may lie below those of one that has a
 * keeper; whether one that is known did begin with it, and may do so again. */
bool template_is_read(const struct warden *w, const char *id);
bool template_is_held(const struct warden *w, const char *id);
bool template_is_wanted(const struct warden *w, const char *id);

#endif
