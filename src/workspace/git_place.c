/* workspace/git_place.c: see git_place.h */
#include "workspace/git_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "workspace/tree.h"

unsigned
git_place_parts(int dir)
{
    static const char *const names[] = { "HEAD", "objects", "refs", "commondir" };
    unsigned parts = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (io_present(dir, names[i]))
            parts |= git_part_of(str_of(names[i]));
    return parts;
}

/* Whether core.worktree, where the configuration @text of the repository @dir has it, is reached without a symbolic
 * link: through one git would write wherever it leads. */
static bool
worktree_direct(int dir, struct str text, struct git_config_fault *fault)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
    cleanup_free struct git_config_reader *reader = malloc(sizeof(*reader));
    struct git_config_entry e;

    if (reader == NULL)
        return false;
    git_config_open(reader, text);
    while (git_config_next(reader, &e) > 0) {
        if (!str_eq_c(e.key, "core.worktree") || !e.has_value)
            continue;
        cleanup_close int fd = (int)syscall(SYS_openat2, dir, e.value.p, &how, sizeof(how));
        if (fd >= 0 || errno != ELOOP)
            continue;
        snprintf(fault->key, sizeof(fault->key), "core.worktree, through a symbolic link");
        return false;
    }
    return true;
}

size_t
git_place_oid(int dir)
{
    cleanup_buf struct buf text = BUF_INIT(GIT_PLACE_TEXT_MAX);
    cleanup_close int fd = tree_open_file(dir, "config", false);

    return fd >= 0 && io_read_all(fd, &text) == 0 ? git_oid_bytes((struct str){ (const char *)text.p, text.n }) : 0;
}

/* The same for a place that may be a worktree's, which has the configuration of the repository that holds it. */
static size_t
oid_around(int place)
{
    size_t oid = git_place_oid(place);
    cleanup_close int above = oid == 0 && io_present(place, "commondir")
                                  ? openat(place, "../..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (above >= 0)
        oid = git_place_oid(above);
    return oid > 0 ? oid : GIT_OID_BYTES;
}

/* Whether the file @name in @dir, which is @state, is harmless. */
static bool
file_harmless(int dir, const char *name, enum git_state state, size_t depth, struct git_config_fault *fault)
{
    cleanup_buf struct buf text = BUF_INIT(GIT_PLACE_TEXT(state));
    cleanup_close int fd = tree_open_file(dir, name, false);

    struct str whole;

    if (fd < 0 || io_read_all(fd, &text) < 0)
        return false;
    whole = (struct str){ (const char *)text.p, text.n };
    if (state == GIT_STATE_INDEX)
        return git_index_harmless(whole, oid_around(dir));
    return git_state_harmless(state, str_of(name), whole, depth, fault) &&
           (state != GIT_STATE_CONFIG || worktree_direct(dir, whole, fault));
}

/* Fill @o when the entry @name of @dir, whose own name is @above ("" for the repository), is an offence. */
static bool
offends(int dir, const char *above, const char *name, size_t depth, struct git_offence *o)
{
    struct stat st;

    *o = (struct git_offence){ .state = git_state_in(str_of(above), str_of(name)) };
    if (o->state == GIT_STATE_NONE || o->state == GIT_STATE_SAMPLE ||
        fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    snprintf(o->path, sizeof(o->path), "%s%s%s", above, above[0] != '\0' ? "/" : "", name);
    if (o->state == GIT_STATE_HOOKS || o->state == GIT_STATE_DIR)
        return !S_ISDIR(st.st_mode);
    if (!S_ISREG(st.st_mode))
        return true;
    return git_part_of(str_of(name)) == GIT_PART_COMMONDIR || !file_harmless(dir, name, o->state, depth, &o->fault);
}

/* The entries of the directory @name of repository @place. */
static int
search_below(int place, const char *name, size_t depth, bool (*told)(void *, const struct git_offence *), void *ctx)
{
    cleanup_close int dir = tree_open(place, name, O_RDONLY | O_DIRECTORY);
    struct tree_names names = { .n = 0 };
    struct git_offence o;
    int r = 0;

    if (dir < 0)
        return 0;       /* absent, or no directory: said by its own entry */
    if (tree_names_read(dir, &names) < 0) {
        o = (struct git_offence){ .state = GIT_STATE_HOOKS };
        snprintf(o.path, sizeof(o.path), "%s", name);
        return told(ctx, &o) ? 0 : -1;
    }
    for (size_t i = 0; i < names.n && r == 0; i++)
        if (offends(dir, name, names.v[i], depth, &o) && !told(ctx, &o))
            r = -1;
    tree_names_free(&names);
    return r;
}

/* --- links where git writes --- */

#define LEADS_DEPTH 64

struct leads {
    bool (*told)(void *ctx, const struct git_offence *o);
    void *ctx;
    size_t depth;
    struct git_offence o;       /* its path is of the entry that is looked at */
};

/* Loose objects: git makes them under other names, and only reads these. */
static bool
is_fan(struct str path)
{
    return path.n == strlen("objects/00") && str_starts(path, STR_LIT("objects/")) && str_hex_digit(path.p[8]) >= 0 &&
           str_hex_digit(path.p[9]) >= 0;
}

static bool
is_link(int dir, const char *name, uint8_t type)
{
    struct stat st;

    if (type != DT_UNKNOWN)
        return type == DT_LNK;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* What is below @fd, @at bytes of the path. A repository in there is searched for itself. */
static int
search_leads(struct leads *l, int fd, size_t at, unsigned level)
{
    struct dirents names = { .fd = fd };
    const char *name;

    while ((name = dirents_next(&names)) != NULL) {
        int n = snprintf(l->o.path + at, sizeof(l->o.path) - at, "%s%s", at > 0 ? "/" : "", name);
        size_t end = n > 0 ? at + (size_t)n : at;
        if (end >= sizeof(l->o.path) || !git_writes(str_of(l->o.path)))
            continue;
        if (is_link(fd, name, names.type)) {
            if (!l->told(l->ctx, &l->o))
                return -1;
        } else if (level == 0 && git_state_in(STR_LIT(""), str_of(name)) == GIT_STATE_INDEX) {
            struct git_offence o;
            if (offends(fd, "", name, l->depth, &o) && !l->told(l->ctx, &o))
                return -1;
        } else if (dirents_maybe_directory(&names) && level < LEADS_DEPTH && git_writes_below(str_of(l->o.path)) &&
                   !is_fan(str_of(l->o.path))) {
            cleanup_close int below = tree_open(fd, name, O_RDONLY | O_DIRECTORY);
            if (below >= 0 && !git_parts_place(git_place_parts(below)) && search_leads(l, below, end, level + 1) < 0)
                return -1;
        }
    }
    return 0;
}

int
git_place_search(int dir, size_t depth, bool (*told)(void *ctx, const struct git_offence *o), void *ctx)
{
    static const char *const own[] = { "config", "config.worktree", "commondir", "hooks", "MERGE_RR",
        "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches" };
    struct git_offence o;

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (offends(dir, "", own[i], depth, &o) && !told(ctx, &o))
            return -1;
        enum git_state state = git_state_in(STR_LIT(""), str_of(own[i]));
        if ((state == GIT_STATE_HOOKS || state == GIT_STATE_DIR) && search_below(dir, own[i], depth, told, ctx) < 0)
            return -1;
    }
    cleanup_close int fd = tree_open(dir, "", O_RDONLY | O_DIRECTORY);
    struct leads leads = { .told = told, .ctx = ctx, .depth = depth, .o = { .state = GIT_STATE_LEAD } };
    return fd >= 0 ? search_leads(&leads, fd, 0, 0) : 0;
}

static bool
keep_first(void *ctx, const struct git_offence *o)
{
    if (ctx != NULL)
        *(struct git_offence *)ctx = *o;
    return false;
}

bool
git_place_harmless(int dir, size_t depth, struct git_offence *o)
{
    return git_place_search(dir, depth, keep_first, o) == 0;
}
