/* engine/native/plan_identity.c: whose commits they are
 *
 * Nothing of the owner's git configuration is shown in a private root, and without a name and a mail address git makes
 * no commit, or programs invent some. Both are in every commit of the owner's, so where a writable folder is a
 * repository they are told, and nothing else: as /etc/gitconfig, over which every other configuration prevails.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "engine/native/plan.h"
#include "match/git_config.h"
#include "policy/judge.h"

#define FILES_MAX 16            /* read for it, with what they include */
#define VALUE_MAX 255
#define PLACE     "/etc/gitconfig"

struct identity {
    const char *home;
    const char *repository;     /* ".git" of the folder */
    unsigned left;              /* files that may still be read */
    char name[VALUE_MAX + 1], email[VALUE_MAX + 1];
};

static void read_file(struct identity *id, const char *path);

/* Of git's conditions the one by folder, without patterns: "gitdir:~/work/". */
static bool
condition_holds(const struct identity *id, struct str condition)
{
    static const struct str gitdir = STR_LIT("gitdir:");
    char path[PATH_MAX];
    struct str value;

    if (!str_starts(condition, gitdir))
        return false;
    value = (struct str){ condition.p + gitdir.n, condition.n - gitdir.n };
    if (value.n == 0 || memchr(value.p, '*', value.n) != NULL ||
        (value.p[0] != '~' && value.p[0] != '/') || !git_config_path(value, id->home, "", path, sizeof(path)))
        return false;
    return value.p[value.n - 1] == '/' ? str_starts(str_of(id->repository), str_of(path))
                                       : strcmp(id->repository, path) == 0;
}

/* What can be said in one line between quotes. */
static void
take(char out[VALUE_MAX + 1], struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f || value.p[i] == '"' || value.p[i] == '\\')
            return;
    if (value.n > VALUE_MAX)
        return;
    memcpy(out, value.p, value.n);
    out[value.n] = '\0';
}

static void
take_entry(struct identity *id, const struct git_config_entry *e, const char *file)
{
    const char *slash = strrchr(file, '/');
    char path[PATH_MAX], base[PATH_MAX];

    snprintf(base, sizeof(base), "%.*s", slash != NULL ? (int)(slash - file) : 0, file);
    if (str_eq_c(e->key, "user.name"))
        take(id->name, e->value);
    else if (str_eq_c(e->key, "user.email"))
        take(id->email, e->value);
    else if (str_eq_c(e->name, "path") &&
             (str_eq_c(e->key, "include.path") ||
              (str_eq_c(e->section, "includeif") && condition_holds(id, e->subsection))) &&
             git_config_path(e->value, id->home, base, path, sizeof(path)))
        read_file(id, path);
}

static void
read_file(struct identity *id, const char *path)
{
    cleanup_buf struct buf text = BUF_INIT(GIT_CONFIG_MAX);
    cleanup_free struct git_config_reader *reader = NULL;
    struct git_config_entry e;

    if (id->left == 0 || io_read_regular(AT_FDCWD, path, &text) < 0)
        return;
    id->left--;
    reader = malloc(sizeof(*reader));
    if (reader == NULL)
        return;
    git_config_open(reader, (struct str){ (const char *)text.p, text.n });
    while (git_config_next(reader, &e) > 0)
        take_entry(id, &e, path);
}

/* In git's order: the last word counts. */
static void
read_owner(struct identity *id)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *moved = getenv("GIT_CONFIG_GLOBAL");
    char path[PATH_MAX];

    read_file(id, "/etc/gitconfig");
    if (moved != NULL) {
        read_file(id, moved);
        return;
    }
    if (xdg != NULL && xdg[0] == '/')
        snprintf(path, sizeof(path), "%s/git/config", xdg);
    else
        snprintf(path, sizeof(path), "%s/.config/git/config", id->home);
    read_file(id, path);
    snprintf(path, sizeof(path), "%s/.gitconfig", id->home);
    read_file(id, path);
}

/* Of the owner's folders: what cloche made for the sandbox (a volume) is whoever's that is, who is not told the owner's
 * name. */
static const struct plan_tree *
first_repository(const struct native_plan *plan)
{
    struct stat st;

    for (size_t i = 0; i < plan->n_trees; i++)
        if ((plan->trees[i].writable || plan->trees[i].cow) && plan->trees[i].is_dir &&
            !policy_gives(&plan->real, plan->trees[i].host) &&
            fstatat(plan->trees[i].fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
            return &plan->trees[i];
    return NULL;
}

/* Somebody gave a file there (--bind). */
static bool
is_taken(const struct native_plan *plan)
{
    for (size_t i = 0; i < plan->n_items; i++)
        if (strcmp(plan->items[i].dest, PLACE) == 0)
            return true;
    return false;
}

int
plan_identity(struct native_plan *plan, const struct policy *p, struct err *err)
{
    const struct plan_tree *tree = plan->light || p->view.v == VIEW_HOST ? NULL : first_repository(plan);
    struct identity id = { .home = p->home, .left = FILES_MAX };
    struct root_item *item;
    char *text;

    if (tree == NULL || p->home == NULL || is_taken(plan))
        return 0;
    id.repository = plan_printf(plan, "%s/.git", tree->host);
    if (id.repository == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    read_owner(&id);
    if (id.name[0] == '\0' && id.email[0] == '\0')
        return 0;
    text = plan_printf(plan, "[user]\n%s%s%s%s%s%s", id.name[0] != '\0' ? "\tname = \"" : "", id.name,
                       id.name[0] != '\0' ? "\"\n" : "", id.email[0] != '\0' ? "\temail = \"" : "", id.email,
                       id.email[0] != '\0' ? "\"\n" : "");
    item = text == NULL ? NULL : plan_item(plan, ROOT_FILE, text, PLACE, err);
    if (item == NULL)
        return text == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : -1;
    item->mode = 0644;
    item->size = strlen(text);
    return 0;
}
