/* guest/guard_git_calls.c: state that git executes, asked for a trapped call (see guard_git.h, guard_priv.h) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/guard_git.h"

static bool
is_watched(const struct call *c)
{
    return (c->g->flags & GUARD_GIT) != 0;
}

static struct str
name_of(const struct place *p)
{
    return (struct str){ p->name, p->name_n };
}

static bool
is_there(const struct place *p, struct stat *st)
{
    unfilled char name[PATH_MAX + 1];

    return fstatat(p->dir, place_name(p, name), st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
said(struct call *c, const struct place *p, int rc, const char *rule)
{
    return rc == EACCES ? deny(c, p, rule, EACCES) : -rc;
}

/* Asked before the name comes; what was found then is remembered for looking again. */
static void
note_whole(struct call *c, struct place *p)
{
    p->git_whole = git_is_whole(c->g, p->dir, &p->dir_st, name_of(p));
}

static int
make(struct call *c, struct place *p, enum git_arrival what)
{
    char rule[GIT_RULE_MAX] = "";
    note_whole(c, p);
    int rc = git_may_make(c->g, p->dir, &p->dir_st, name_of(p), what, rule);
    struct stat st;

    if (rc == 0)
        return 0;
    return is_there(p, &st) ? -EEXIST : said(c, p, rc, rule);
}

int
git_call_make(struct call *c, struct place *p, bool directory, bool regular)
{
    return !is_watched(c) ? 0
                          : make(c, p, directory ? GIT_ARRIVES_DIR : regular ? GIT_ARRIVES_FILE : GIT_ARRIVES_OTHER);
}

int
git_call_open(struct call *c, struct place *p, int flags)
{
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
    char rule[GIT_RULE_MAX] = "";
    struct stat st;
    int rc = 0;

    if (!is_watched(c))
        return 0;
    if (writes)
        rc = git_may_write(c->g, p->dir, &p->dir_st, name_of(p), rule);
    /* what concerns a file does not concern a link that leads on, or what is refused for its kind */
    if (rc != 0 && is_there(p, &st)) {
        if (!S_ISREG(st.st_mode) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
            return 0;
        return git_may_write_later(c->g, p->dir, &p->dir_st, name_of(p), true) ? GIT_CALL_LATER : said(c, p, rc, rule);
    }
    if ((flags & O_CREAT) == 0)
        return 0;
    note_whole(c, p);
    rc = git_may_make(c->g, p->dir, &p->dir_st, name_of(p), GIT_ARRIVES_FILE, rule);
    if (rc == 0 || is_there(p, &st))
        return 0;
    return writes && git_may_write_later(c->g, p->dir, &p->dir_st, name_of(p), false) ? GIT_CALL_LATER
                                                                                      : said(c, p, rc, rule);
}

int
git_call_write(struct call *c, const struct place *p)
{
    char rule[GIT_RULE_MAX] = "";

    return !is_watched(c) ? 0 : said(c, p, git_may_write(c->g, p->dir, &p->dir_st, name_of(p), rule), rule);
}

int
git_call_link_from(struct call *c, const struct place *p)
{
    char rule[GIT_RULE_MAX] = "";

    return !is_watched(c) ? 0 : said(c, p, git_may_link(c->g, p->dir, &p->dir_st, name_of(p), rule), rule);
}

int
git_call_link_to(struct call *c, struct place *p, bool regular)
{
    return !is_watched(c) ? 0 : make(c, p, regular ? GIT_ARRIVES_LINK : GIT_ARRIVES_OTHER);
}

int
git_call_object(struct call *c, int object)
{
    char rule[GIT_RULE_MAX] = "";
    int rc = is_watched(c) ? git_may_use_object(c->g, object, rule) : 0;

    if (rc == EACCES)
        deny_object(c, object, rule);
    return -rc;
}

int
git_call_leave(struct call *c, const struct place *p)
{
    struct stat st;

    return git_keeps(c->g, p->dir, &p->dir_st, name_of(p)) && is_there(p, &st)
               ? deny(c, p, "git state: what makes a folder the repository", EBUSY) : 0;
}

int
git_call_move(struct call *c, const struct place *p)
{
    /* only the guard that made such a copy, perhaps another sandbox's, gives it another name */
    if (is_watched(c) && git_state_in(STR_LIT(""), name_of(p)) == GIT_STATE_COPY &&
        !guard_is_own(c->g, p->dir_st.st_dev))
        return deny(c, p, "git state: judged copy", EACCES);
    return git_call_leave(c, p);
}

int
git_call_come(struct call *c, const struct place *from, const struct stat *st, struct place *to)
{
    unfilled char name[PATH_MAX + 1];
    char rule[GIT_RULE_MAX] = "";
    int rc;

    if (!is_watched(c))
        return 0;
    /* an empty directory gives way to another; what comes to HEAD at the top is judged below */
    if (!git_is_top_head(c->g, to->dir, &to->dir_st, name_of(to)) && (rc = git_call_leave(c, to)) < 0)
        return rc;
    note_whole(c, to);
    rc = git_may_rename(c->g, from->dir, place_name(from, name), st, to->dir, &to->dir_st, name_of(to), rule);
    return rc == GIT_BY_COPY ? GIT_CALL_COPY : said(c, to, rc, rule);
}

int
git_call_copy(struct call *c, const struct place *from, const struct place *to, unsigned flags)
{
    char rule[GIT_RULE_MAX] = "", from_name[PATH_MAX + 1], to_name[PATH_MAX + 1];

    if (from->name[from->name_n] == '/' || to->name[to->name_n] == '/')
        return -ENOTDIR;
    if (held_file(c->g, from) >= 0)
        return said(c, to, held_rename(c->g, from, to, flags, rule), rule);
    return said(c, to, git_rename_copy(c->g, from->dir, place_name(from, from_name), to->dir, &to->dir_st,
                                       place_name(to, to_name), flags, rule), rule);
}

int
git_call_made(struct call *c, const struct place *p, mode_t type)
{
    enum git_arrival what = S_ISDIR(type) ? GIT_ARRIVES_DIR : S_ISREG(type) ? GIT_ARRIVES_FILE : GIT_ARRIVES_OTHER;
    char rule[GIT_RULE_MAX] = "";

    return !is_watched(c)
               ? 0 : said(c, p, git_made(c->g, p->dir, &p->dir_st, name_of(p), what, p->git_whole, rule), rule);
}

int
git_call_opened(struct call *c, const struct place *p)
{
    char rule[GIT_RULE_MAX] = "";

    return !is_watched(c) ? 0 : said(c, p, git_opened(c->g, p->dir, &p->dir_st, name_of(p), rule), rule);
}

int
git_call_came(struct call *c, const struct place *from, const struct stat *st, const struct place *to)
{
    char rule[GIT_RULE_MAX] = "", from_name[PATH_MAX + 1], to_name[PATH_MAX + 1];

    if (!is_watched(c))
        return 0;
    return said(c, to, git_came(c->g, from->dir, place_name(from, from_name), st, to->dir, &to->dir_st,
                                place_name(to, to_name), to->git_whole, rule), rule);
}
