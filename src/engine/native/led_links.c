/* engine/native/led_links.c: where links lead (see led.h) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirents.h"
#include "engine/native/expand.h"
#include "engine/native/led_priv.h"
#include "engine/native/plan_real.h"

#define LEVELS_MAX 8            /* protected directories in each other */
#define NESTED_MAX 48           /* ... and behind links: no path that leads further on can be opened (40 links) */
#define SEEN_MAX 4096           /* directories that were looked through */

struct telling {
    struct led *l;
    struct err *err;
    bool failed;
};

static bool
tell_link(void *ctx, const char *at)
{
    struct telling *t = ctx;

    t->failed = t->l->put(t->l->ctx, at, LED_NAME, t->err) != 0;
    return !t->failed;
}

/* 1: now @path is known; 0: it was, or there are too many. */
static int
remember(struct led *l, const char *path, struct err *err)
{
    char **bigger;

    for (size_t i = 0; i < l->n_seen; i++)
        if (strcmp(l->seen[i], path) == 0)
            return 0;
    if (l->n_seen == SEEN_MAX)
        return 0;
    bigger = reallocarray(l->seen, l->n_seen + 1, sizeof(*bigger));
    if (bigger == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    l->seen = bigger;
    if ((l->seen[l->n_seen] = strdup(path)) == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    l->n_seen++;
    return 1;
}

static int
look_below(struct led *l, const char *path, unsigned level, size_t *left, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dirents entries = { .fd = fd };
    const char *name;
    int rc = fd < 0 ? 0 : remember(l, path, err);

    if (rc <= 0)
        return rc;
    while ((name = dirents_next(&entries)) != NULL && (*left)-- > 0) {
        char below[PATH_MAX];
        struct stat st;
        int n = snprintf(below, sizeof(below), "%s/%s", path, name);
        uint8_t type = entries.type;

        if (n < 0 || (size_t)n >= sizeof(below))
            continue;
        if (type == DT_UNKNOWN && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            type = (uint8_t)IFTODT(st.st_mode);
        if ((type == DT_LNK && led_follow(l, below, false, err) < 0) ||
            (type == DT_DIR && level < LEVELS_MAX && led_look_below(l, below, level + 1, left, err) < 0))
            return -1;
    }
    return 0;
}

int
led_look_below(struct led *l, const char *path, unsigned level, size_t *left, struct err *err)
{
    int rc;

    if (l->nested_in == NESTED_MAX)
        return 0;
    l->nested_in++;
    rc = look_below(l, path, level, left, err);
    l->nested_in--;
    return rc;
}

int
led_follow(struct led *l, const char *path, bool itself, struct err *err)
{
    struct telling t = { .l = l, .err = err };
    bool around, leads;
    size_t left = LED_LISTED_MAX;
    char real[PATH_MAX];

    if (!plan_real_walk(path, real, tell_link, &t))
        return t.failed ? -1 : 0;
    around = expand_below(l->host, real) != NULL;
    leads = itself || strcmp(real, path) != 0;
    if (leads && (!around || itself) && l->put(l->ctx, real, around ? LED_TOP : LED_PLACE, err) != 0)
        return -1;
    return around || (!itself && expand_below(real, l->host) == NULL) ? 0 : led_look_below(l, real, 0, &left, err);
}

int
led_protected(struct led *l, const char *relative, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", strcmp(l->host, "/") == 0 ? "" : l->host, relative);

    return n > 0 && n < (int)sizeof(path) ? led_follow(l, path, false, err) : 0;
}
