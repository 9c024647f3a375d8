/* engine/native/rules.c: see engine/rules.h */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/led.h"
#include "engine/native/native.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "match/path.h"

#define LINKS_MAX 40

struct native_rules {
    struct engine_rules base;
    struct native_plan plan;
};

/* A led_put: as a protected name, for policy_judge(). */
static int
add_led(void *ctx, const char *path, enum led_kind kind, struct err *err)
{
    struct native_plan *plan = ctx;
    struct policy_list *list = &plan->real.led;

    if (kind != LED_NAME && kind != LED_PLACE)
        return 0;
    /* doubled at each power of two */
    if ((list->n & (list->n - 1)) == 0) {
        struct policy_entry *bigger =
            (struct policy_entry *)(void *)plan_room(plan, (2 * list->n + 1) * sizeof(*bigger));
        if (bigger == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        if (list->n > 0)
            memcpy(bigger, list->v, list->n * sizeof(*bigger));
        list->v = bigger;
    }
    char *value = plan_printf(plan, "%s", path);
    if (value == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    list->v[list->n++] = (struct policy_entry){ .value = value, .written = value, .literal = true,
                                                .from = { .kind = ORIGIN_BUILTIN } };
    return 0;
}

/* What protected places in the writable folder @path lead to. What cannot be told a run says. */
static int
find_led(struct native_plan *plan, const char *path, struct err *err)
{
    const struct policy *p = &plan->real;
    cleanup_close int fd = path != NULL ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct err why = ERR_INIT;

    if (fd < 0)
        return 0;
    cleanup_led struct led *led = led_new(fd, path, p, add_led, plan, err);
    if (led == NULL)
        return -1;
    (void)led_find(led, plan_git_watched(p), (unsigned)p->protect_depth.v - 1, &why);
    return 0;
}

static int
find_all_led(struct native_plan *plan, struct err *err)
{
    const struct policy *p = &plan->real;

    if (p->workspace.kind == WORKSPACE_RW && find_led(plan, p->workspace.dir, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++)
        if (p->binds[i].writable && find_led(plan, p->binds[i].source, err) < 0)
            return -1;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (find_led(plan, p->allow_write.v[i].value, err) < 0)
            return -1;
    return 0;
}

/* The first link on the way to @path, as the sandbox sees it: where its name ends, and what it says; 0: none. */
static size_t
first_link(const struct policy *p, const char *path, char link[PATH_MAX])
{
    char prefix[PATH_MAX];
    struct place place;

    for (size_t n = 1; path[n - 1] != '\0'; n++) {
        ssize_t target;
        if (path[n] != '/' && path[n] != '\0')
            continue;
        memcpy(prefix, path, n);
        prefix[n] = '\0';
        policy_place_inside(p, prefix, &place);
        if ((place.kind != PLACE_HOST && place.kind != PLACE_SYSTEM) || place.host[0] == '\0')
            continue;
        target = readlink(place.host, link, PATH_MAX - 1);
        if (target <= 0)
            continue;
        link[target] = '\0';
        return n;
    }
    return 0;
}

/* Whether the folder that holds the first @n bytes of the path can be gone through: a mask shows no link, Landlock
 * forbids none. */
static bool
folder_is_open(const struct policy *p, const char *path, size_t n)
{
    char folder[PATH_MAX];
    struct judged judged;
    struct place place;

    if (p->mode.v == MODE_LIGHT)
        return true;
    while (n > 1 && path[n - 1] != '/')
        n--;
    n -= n > 1;
    memcpy(folder, path, n);
    folder[n] = '\0';
    policy_place_inside(p, folder, &place);
    policy_judge(p, &place, NULL, &judged);
    return judged.read;
}

/* @text, absolute, without "." and "..": above the root is the root, as the kernel has it. */
static bool
flatten(const char *text, char out[POLICY_PATH_MAX])
{
    size_t n = 0;

    for (const char *at = text + strspn(text, "/"); *at != '\0'; at += strspn(at, "/")) {
        size_t length = strcspn(at, "/");
        if (length == 2 && memcmp(at, "..", 2) == 0) {
            while (n > 0 && out[--n] != '/')
                ;
        } else if (length > 1 || at[0] != '.') {
            if (n + length + 2 > POLICY_PATH_MAX)
                return false;
            out[n++] = '/';
            memcpy(out + n, at, length);
            n += length;
        }
        at += length;
    }
    if (n == 0)
        out[n++] = '/';
    out[n] = '\0';
    return true;
}

static bool
follow(const struct policy *p, char path[POLICY_PATH_MAX])
{
    char link[PATH_MAX], next[2 * PATH_MAX];
    size_t end;

    for (int i = 0; i < LINKS_MAX; i++) {
        end = first_link(p, path, link);
        if (end == 0 || !folder_is_open(p, path, end))
            return true;
        if (link[0] == '/')
            snprintf(next, sizeof(next), "%s%s", link, path + end);
        else
            snprintf(next, sizeof(next), "%.*s/../%s%s", (int)end, path, link, path + end);
        if (!flatten(next, path))
            return false;
    }
    return false;
}

static bool
place_of(const struct engine_rules *rules, const char *path, struct place *out)
{
    const struct policy *p = rules->policy;
    struct str text = str_of(path), base = str_of(p->cwd);
    char normal[POLICY_PATH_MAX], real[PATH_MAX];
    bool relative = path[0] != '/';
    size_t n;

    if (path[0] == '~' && p->home != NULL && (path[1] == '\0' || path[1] == '/')) {
        base = str_of(p->home);
        text = str_of(path + 1 + strspn(path + 1, "/"));
        if (text.n == 0)
            text = STR_LIT(".");
    }
    if (path_normalise(text, base, false, normal, sizeof(normal), &n) != PATH_OK || !plan_real_future(normal, real))
        return false;
    /* under a private root an absolute path is the sandbox's name first, a relative one the host's */
    if (p->view.v == VIEW_HOST || !relative)
        policy_place_inside(p, normal, out);
    if (p->view.v == VIEW_PRIVATE && (relative || out->kind == PLACE_ABSENT))
        policy_place(p, real, relative, out);
    if (out->inside[0] == '\0')
        return true;
    memcpy(normal, out->inside, strlen(out->inside) + 1);
    if (!follow(p, normal))
        return false;
    policy_place_inside(p, normal, out);
    return true;
}

static void
free_rules(struct engine_rules *base)
{
    struct native_rules *rules = (struct native_rules *)base;

    plan_free(&rules->plan);
    free(rules);
}

int
native_rules(const struct policy *p, struct engine_rules **out, struct err *err)
{
    struct native_rules *rules = calloc(1, sizeof(*rules));

    if (rules == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    rules->base = (struct engine_rules){ .policy = &rules->plan.real, .place = place_of, .free = free_rules };
    plan_init(&rules->plan);
    if (plan_rules(&rules->plan, p, err) < 0 || find_all_led(&rules->plan, err) < 0) {
        free_rules(&rules->base);
        return -1;
    }
    *out = &rules->base;
    return 0;
}
