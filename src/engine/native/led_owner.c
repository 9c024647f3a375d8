/* engine/native/led_owner.c: what the owner has for all repositories (see led.h) */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/native/led_priv.h"
#include "engine/native/plan_real.h"
#include "match/git_config.h"
#include "match/git_config_add.h"

#define ENTRIES_MAX 1024        /* of the environment */

/* A protected name in the home that is a link, or lies behind one: start-up files are often kept in a repository. */
static int
look_at_home(struct led *l, struct err *err)
{
    for (size_t i = 0; l->home != NULL && i < l->names->n; i++) {
        char path[PATH_MAX], real[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s", l->home, l->names->v[i].value);

        if (n < 0 || n >= (int)sizeof(path) || !plan_real_walk(path, real, NULL, NULL) ||
            expand_below(real, l->host) == NULL || expand_below(path, l->host) != NULL)
            continue;
        if (led_close(l, path, err) < 0)
            return -1;
    }
    return 0;
}

/* The file that a variable of git's names in place of the usual one, which is read as well. */
static int
read_moved(struct led *l, const char *variable, struct err *err)
{
    const char *said = getenv(variable);
    char path[PATH_MAX], cwd[PATH_MAX];

    if (said == NULL || getcwd(cwd, sizeof(cwd)) == NULL ||
        !git_config_path(str_of(said), l->home, cwd, path, sizeof(path)))
        return 0;
    return led_close(l, path, err) < 0 ? -1 : led_read(l, path, 0, err);
}

static struct str
variable(const char *what, uint64_t i)
{
    char name[64];

    snprintf(name, sizeof(name), "GIT_CONFIG_%s_%" PRIu64, what, i);
    const char *said = getenv(name);
    return said != NULL ? str_of(said) : STR_LIT("");
}

/* The configuration that is in the environment itself (GIT_CONFIG_COUNT). */
static int
read_environment(struct led *l, struct err *err)
{
    const char *said = getenv("GIT_CONFIG_COUNT");
    cleanup_buf struct buf text = BUF_INIT(GIT_CONFIG_MAX);
    uint64_t n;

    if (said == NULL || !str_parse_u64(str_of(said), ENTRIES_MAX, &n))
        return 0;
    for (uint64_t i = 0; i < n; i++) {
        struct str key = variable("KEY", i), value = variable("VALUE", i);
        const char *first = key.n > 0 ? memchr(key.p, '.', key.n) : NULL, *last = strrchr(key.p, '.');

        if (first == NULL)
            continue;
        git_config_write(&text, &(struct git_config_entry){
            .section = { key.p, (size_t)(first - key.p) }, .has_subsection = last > first,
            .subsection = { first + 1, last > first ? (size_t)(last - first - 1) : 0 },
            .name = str_of(last + 1), .value = value, .has_value = true });
    }
    return text.n > 0 ? led_read_text(l, &text, "", 0, err) : 0;
}

/* What lies in the home that is looked at. */
static int
read_home(struct led *l, bool git, struct err *err)
{
    static const char *const files[] = { ".config/git/config", ".gitconfig" };
    char path[PATH_MAX];

    if (look_at_home(l, err) < 0)
        return -1;
    for (size_t i = 0; git && l->home != NULL && i < ARRAY_LEN(files); i++) {
        int n = snprintf(path, sizeof(path), "%s/%s", l->home, files[i]);
        if (n > 0 && n < (int)sizeof(path) && (led_follow(l, path, false, err) < 0 || led_read(l, path, 0, err) < 0))
            return -1;
    }
    return 0;
}

int
led_owner(struct led *l, bool git, struct err *err)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    int rc;

    l->of_owner = true;
    l->nested = false;
    l->n_files = 0;
    snprintf(l->top, sizeof(l->top), "%s", l->host);
    if (git && (led_read(l, "/etc/gitconfig", 0, err) < 0 ||
                (xdg != NULL && xdg[0] == '/' && led_read_below(l, xdg, "git/config", err) < 0) ||
                read_moved(l, "GIT_CONFIG_SYSTEM", err) < 0 || read_moved(l, "GIT_CONFIG_GLOBAL", err) < 0 ||
                read_environment(l, err) < 0))
        return -1;
    rc = read_home(l, git, err);
    if (rc < 0 || l->other_home == NULL)
        return rc;
    l->home = l->other_home;
    rc = read_home(l, git, err);
    l->home = l->first_home;
    return rc;
}
