/* engine/native/led.c: see led.h */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/dirents.h"
#include "base/io.h"
#include "engine/native/expand.h"
#include "engine/native/led_priv.h"
#include "engine/native/plan_real.h"
#include "match/git_config_add.h"
#include "match/git_shape.h"
#include "match/path.h"
#include "wall/mnt.h"

#define INCLUDES_MAX 1024       /* files read for one repository */
#define INCLUDE_DEPTH 10        /* as git */
#define TEXT_MAX (64u << 20)    /* bytes of configuration that are read for one folder; more is refused */
#define WORDS_MAX 64            /* of a command line */

struct led *
led_new(int fd, const char *host, const struct policy *p, led_put *put, void *ctx, struct err *err)
{
    const char *other = p->home_of_owner != NULL ? p->home_of_owner(host) : NULL;
    struct led *l = calloc(1, sizeof(*l));

    if (l != NULL)
        *l = (struct led){ .fd = fd, .host = host, .home = p->home, .first_home = p->home, .names = &p->protect,
                           .put = put, .ctx = ctx, .said = BUF_INIT(GIT_CONFIG_MAX) };
    if (l == NULL || (other != NULL && (l->other_home = strdup(other)) == NULL)) {
        led_free(l);
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
        return NULL;
    }
    return l;
}

void
led_free(struct led *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_seen; i++)
        free(l->seen[i]);
    for (size_t i = 0; i < l->n_everywhere; i++)
        free(l->everywhere[i].value);
    buf_free(&l->said);
    free(l->seen);
    free(l->more.v);
    free(l->other_home);
    free(l);
}

/* --- places that a configuration names */

/* "*" as a section's second part: any subsection, or none. A name "*": any. */
static const struct {
    const char *section, *name;
    enum led_meaning meaning;
} keys[] = {
    { "include", "path", MEANS_INCLUDE }, { "includeif", "path", MEANS_INCLUDE },
    { "core", "hookspath", MEANS_HOOKS }, { "init", "templatedir", MEANS_HOOKS },
    { "core", "attributesfile", MEANS_FILE },
    { "core", "fsmonitor", MEANS_PROGRAM }, { "core", "sshcommand", MEANS_PROGRAM },
    { "core", "editor", MEANS_PROGRAM }, { "core", "pager", MEANS_PROGRAM }, { "core", "askpass", MEANS_PROGRAM },
    { "core", "gitproxy", MEANS_PROGRAM }, { "core", "alternaterefscommand", MEANS_PROGRAM },
    { "sequence", "editor", MEANS_PROGRAM }, { "interactive", "difffilter", MEANS_PROGRAM },
    { "diff", "external", MEANS_PROGRAM }, { "diff", "command", MEANS_PROGRAM }, { "diff", "textconv", MEANS_PROGRAM },
    { "merge", "driver", MEANS_PROGRAM }, { "filter", "clean", MEANS_PROGRAM }, { "filter", "smudge", MEANS_PROGRAM },
    { "filter", "process", MEANS_PROGRAM }, { "gpg", "program", MEANS_PROGRAM },
    { "gpg", "defaultkeycommand", MEANS_PROGRAM }, { "credential", "helper", MEANS_PROGRAM },
    { "uploadpack", "packobjectshook", MEANS_PROGRAM }, { "remote", "uploadpack", MEANS_PROGRAM },
    { "remote", "receivepack", MEANS_PROGRAM }, { "trailer", "command", MEANS_PROGRAM },
    { "trailer", "cmd", MEANS_PROGRAM }, { "mergetool", "cmd", MEANS_PROGRAM }, { "mergetool", "path", MEANS_PROGRAM },
    { "difftool", "cmd", MEANS_PROGRAM }, { "difftool", "path", MEANS_PROGRAM }, { "pager", "*", MEANS_PROGRAM },
    { "alias", "*", MEANS_PROGRAM }, { "hook", "command", MEANS_PROGRAM }, { "submodule", "update", MEANS_PROGRAM },
    { "gc", "recentobjectshook", MEANS_PROGRAM }, { "browser", "cmd", MEANS_PROGRAM },
    { "browser", "path", MEANS_PROGRAM }, { "man", "cmd", MEANS_PROGRAM }, { "man", "path", MEANS_PROGRAM },
    { "guitool", "cmd", MEANS_PROGRAM }, { "tar", "command", MEANS_PROGRAM }, { "lfs", "path", MEANS_PROGRAM },
    { "lfs", "clean", MEANS_PROGRAM }, { "lfs", "smudge", MEANS_PROGRAM }, { "imap", "tunnel", MEANS_PROGRAM },
    { "sendemail", "sendmailcmd", MEANS_PROGRAM }, { "sendemail", "smtpserver", MEANS_PROGRAM },
};

/* Close @path, and where links lead from it. */
int
led_close(struct led *l, const char *path, struct err *err)
{
    char written[PATH_MAX];
    size_t n;

    /* as it is written: a link on the way is a name that could be made anew */
    if (path_normalise(str_of(path), STR_LIT("/"), false, written, sizeof(written), &n) == PATH_OK &&
        l->put(l->ctx, written, LED_NAME, err) != 0)
        return -1;
    return led_follow(l, path, true, err);
}

static bool
is_interpreter(struct str word)
{
    static const char *const names[] = { "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node",
        "deno", "bun", "perl", "ruby", "php", "lua", "env", "exec", "source", ".", "nice", "time", "sudo" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (str_eq_c(word, names[i]) ||
            (word.n > n && str_ends(word, str_of(names[i])) && word.p[word.n - n - 1] == '/'))
            return true;
    }
    return false;
}

/* Cut the next word off the command line @s, as a shell would in the simplest of cases. */
static struct str
cut_word(struct str *s)
{
    static const char between[] = " \t\n\"'`;|&(){}<>$=";
    size_t at = 0, end;

    while (at < s->n && memchr(between, s->p[at], sizeof(between) - 1) != NULL)
        at++;
    for (end = at; end < s->n && memchr(between, s->p[end], sizeof(between) - 1) == NULL;)
        end++;
    struct str word = { s->p + at, end - at };
    *s = (struct str){ s->p + end, s->n - end };
    return word;
}

/* Words of a command line that may name a program in the folder: the first, what stands behind an interpreter, and
 * whatever is a program (or, once there was an interpreter, a file). */
static int
close_program(struct led *l, struct str value, struct err *err)
{
    bool expected = true, any_file = false, first = true;

    if (value.n > 0 && value.p[0] == '!')
        value = (struct str){ value.p + 1, value.n - 1 };
    for (int i = 0; i < WORDS_MAX; i++, first = false) {
        struct str word = cut_word(&value);
        char path[PATH_MAX];
        struct stat st;
        bool there;

        if (word.n == 0)
            return 0;
        if (is_interpreter(word)) {
            expected = any_file = true;
            continue;
        }
        if (word.p[0] == '-' || (first && memchr(word.p, '/', word.n) == NULL) ||
            !git_config_path(word, l->home, l->top, path, sizeof(path))) {
            expected = false;
            continue;
        }
        there = stat(path, &st) == 0;
        if (!there ? expected : S_ISREG(st.st_mode) && (expected || any_file || (st.st_mode & 0111) != 0)) {
            if (led_close(l, path, err) < 0)
                return -1;
        }
        expected = false;
    }
    return 0;
}

static int
close_value(struct led *l, enum led_meaning meaning, struct str value, struct err *err)
{
    char path[PATH_MAX];

    if (meaning == MEANS_PROGRAM)
        return close_program(l, value, err);
    return git_config_path(value, l->home, l->top, path, sizeof(path)) ? led_close(l, path, err) : 0;
}

/* --- files */

/* Who wrote the configuration says what is opened: to open some devices is enough to set them going. -1 with errno. */
static int
open_file(const char *path)
{
    cleanup_close int at = open(path, O_PATH | O_CLOEXEC);
    char self[32];
    struct stat st;

    if (at < 0 || fstat(at, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
    return open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Whether a command line can name anything in a repository at all. Of aliases, of which some have hundreds, few can. */
static bool
may_name_file(struct str line)
{
    struct str word;

    if (line.n > 0 && memchr(line.p, '/', line.n) != NULL)
        return true;
    while ((word = cut_word(&line)).n > 0)
        if (is_interpreter(word))
            return true;
    return false;
}

static bool
is_kept(const struct led *l, enum led_meaning meaning, struct str value)
{
    for (size_t i = 0; i < l->n_everywhere; i++)
        if (l->everywhere[i].meaning == meaning && str_eq_c(value, l->everywhere[i].value))
            return true;
    return false;
}

/* What the owner's configuration names by a relative path lies in each repository. An alias runs when it is called
 * for. */
static int
keep_for_all(struct led *l, const struct git_config_entry *e, enum led_meaning meaning, struct err *err)
{
    struct str value = e->value, rest = value, word = cut_word(&rest);
    char *kept;

    if (value.n == 0 || value.p[0] == '/' || value.p[0] == '~' ||
        (str_eq_c(e->section, "alias") && !may_name_file(value)) || is_kept(l, meaning, value))
        return 0;
    if (l->n_everywhere == LED_EVERYWHERE_MAX) {
        err_set(err, ERR_LIMIT, "wall.git.too-many", "your git configuration names more than %d programs and paths for "
                "every repository", LED_EVERYWHERE_MAX);
        return err_hint(err, "name them by absolute paths");
    }
    kept = l->everywhere[l->n_everywhere].value = strndup(value.p, value.n);
    l->everywhere[l->n_everywhere++].meaning = meaning;
    if (kept == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (meaning == MEANS_FILE || str_eq_c(e->section, "alias") ||
        (meaning == MEANS_PROGRAM && (word.n == 0 || word.p[0] == '/' || word.p[0] == '~' ||
                                      memchr(word.p, '/', word.n) == NULL)))
        return 0;
    return l->put(l->ctx, kept, LED_EVERYWHERE, err) != 0 ? -1 : 0;
}

static int
close_entry(struct led *l, const struct git_config_entry *e, const char *file, unsigned depth, struct err *err)
{
    char path[PATH_MAX], base[PATH_MAX];
    const char *slash = strrchr(file, '/');

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!str_eq_c(e->section, keys[i].section) || (keys[i].name[0] != '*' && !str_eq_c(e->name, keys[i].name)))
            continue;
        if (keys[i].meaning != MEANS_INCLUDE)
            return l->of_owner && keep_for_all(l, e, keys[i].meaning, err) < 0
                       ? -1 : close_value(l, keys[i].meaning, e->value, err);
        snprintf(base, sizeof(base), "%.*s", slash != NULL ? (int)(slash - file) : 0, file);
        if (!git_config_path(e->value, l->home, base, path, sizeof(path)))
            return 0;
        return led_close(l, path, err) < 0 ? -1 : led_read(l, path, depth + 1, err);
    }
    return 0;
}

/* Nobody can search the way to @path, but who runs inside could open it: refused at the top, closed further down. */
static int
shut_config(struct led *l, const char *path, struct err *err)
{
    char shut[PATH_MAX];

    if (!plan_real_shut(path, shut) || expand_below(shut, l->host) == NULL)
        return 0;
    if (l->nested)
        return l->put(l->ctx, shut, LED_PLACE, err) != 0 ? -1 : 0;
    err_set(err, ERR_POLICY, "wall.git.shut", "%s cannot be searched: what git would run cannot be told", shut);
    return err_hint(err, "chmod u+rx it: what runs inside could");
}

/* What begins with "~/" lies in each of the homes. */
static int
close_entry_for_each(struct led *l, const struct git_config_entry *e, const char *file, unsigned depth, struct err *err)
{
    const char *home = l->home;
    int rc = close_entry(l, e, file, depth, err);

    if (rc < 0 || l->other_home == NULL || e->value.n == 0 || memchr(e->value.p, '~', e->value.n) == NULL)
        return rc;
    l->home = home == l->other_home ? l->first_home : l->other_home;
    rc = close_entry(l, e, file, depth, err);
    l->home = home;
    return rc;
}

/* @path: the file that says so, or "". */
int
led_read_text(struct led *l, const struct buf *text, const char *path, unsigned depth, struct err *err)
{
    cleanup_free struct git_config_reader *reader = malloc(sizeof(*reader));
    struct git_config_entry e;

    if (reader == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    git_config_open(reader, (struct str){ (const char *)text->p, text->n });
    while (git_config_next(reader, &e) > 0) {
        if (!l->nested)
            git_config_write(&l->said, &e);
        if (close_entry_for_each(l, &e, path, depth, err) < 0)
            return -1;
    }
    return 0;
}

/* A file that is not there, or that git would not read to its end, says nothing more. */
int
led_read(struct led *l, const char *path, unsigned depth, struct err *err)
{
    cleanup_close int fd = open_file(path);
    cleanup_buf struct buf text = BUF_INIT(GIT_CONFIG_MAX);

    if (fd < 0 && errno == EACCES)
        return shut_config(l, path, err);
    if (fd < 0 && errno != EINVAL && !mnt_is_absent(errno))
        return err_sys(err, errno, "wall.expand.unseen", "%s", path);
    if (fd < 0 || depth > INCLUDE_DEPTH || l->n_files >= INCLUDES_MAX || io_read_all(fd, &text) < 0)
        return 0;
    l->n_files++;
    l->n_text += text.n;
    if (l->n_text > TEXT_MAX) {
        err_set(err, ERR_LIMIT, "wall.git.too-large", "%s has more than %u bytes of git configurations", l->host,
                TEXT_MAX);
        return err_hint(err, "give a smaller folder");
    }
    return led_read_text(l, &text, path, depth, err);
}

const struct buf *
led_said(const struct led *l)
{
    return &l->said;
}

int
led_read_below(struct led *l, const char *dir, const char *name, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    return n > 0 && n < (int)sizeof(path) ? led_read(l, path, 0, err) : 0;
}

/* One line of the small file @path (a `.git`, a commondir): where it leads, from @base. */
static bool
read_target(const char *path, bool dot_git, const char *base, char out[PATH_MAX])
{
    cleanup_close int fd = open_file(path);
    cleanup_buf struct buf text = BUF_INIT(GIT_HEAD_MAX);
    struct str whole, target;
    int n;

    if (fd < 0 || io_read_all(fd, &text) < 0)
        return false;
    whole = (struct str){ (const char *)text.p, text.n };
    if (!(dot_git ? git_file_target(whole, &target) : git_redirect_target(whole, &target)))
        return false;
    n = target.p[0] == '/' ? snprintf(out, PATH_MAX, "%.*s", (int)target.n, target.p)
                           : snprintf(out, PATH_MAX, "%s/%.*s", base, (int)target.n, target.p);
    return n > 0 && n < PATH_MAX;
}

/* --- repositories */

/* The part @name of the repository @dir, which may lie outside of the folder. */
static int
close_part(struct led *l, const char *dir, const char *name, struct err *err)
{
    char path[PATH_MAX];
    size_t left = LED_LISTED_MAX;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    if (n < 0 || n >= (int)sizeof(path))
        return 0;
    return led_follow(l, path, false, err) < 0 ? -1 : led_look_below(l, path, 0, &left, err);
}

/* What each of the work trees of the repository @dir has of its own: git there goes where that says. */
static int
read_worktrees(struct led *l, const char *dir, struct err *err)
{
    char path[PATH_MAX], one[PATH_MAX];
    cleanup_close int fd = snprintf(path, sizeof(path), "%s/worktrees", dir) < (int)sizeof(path)
                               ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct dirents names = { .fd = fd };
    const char *name;

    while (fd >= 0 && (name = dirents_next(&names)) != NULL)
        if (snprintf(one, sizeof(one), "%s/%s", path, name) < (int)sizeof(one) &&
            led_read_below(l, one, "config.worktree", err) < 0)
            return -1;
    return 0;
}

/* The repository of the work tree @l->top, whose `.git` is at @dot. */
static int
read_repository(struct led *l, const char *dot, bool directory, struct err *err)
{
    char dir[PATH_MAX], common[PATH_MAX], path[PATH_MAX + 16];

    l->n_files = 0;
    l->of_owner = false;
    for (size_t i = 0; i < l->n_everywhere; i++)
        if (close_value(l, l->everywhere[i].meaning, str_of(l->everywhere[i].value), err) < 0)
            return -1;
    if (directory ? snprintf(dir, sizeof(dir), "%s", dot) >= (int)sizeof(dir) : !read_target(dot, true, l->top, dir))
        return 0;
    snprintf(path, sizeof(path), "%s/commondir", dir);
    if (!read_target(path, false, dir, common))
        snprintf(common, sizeof(common), "%s", dir);
    if (led_read_below(l, common, "config", err) < 0 || led_read_below(l, dir, "config.worktree", err) < 0 ||
        (!l->nested && read_worktrees(l, common, err) < 0))
        return -1;
    /* git's own state, which is kept by its shape; where a link in place of a part leads is not */
    return close_part(l, common, "config", err) < 0 ? -1 : close_part(l, common, "hooks", err);
}

int
led_top(struct led *l, struct err *err)
{
    char dot[PATH_MAX + 8];
    struct stat st;
    char *slash;

    l->nested = false;
    snprintf(l->top, sizeof(l->top), "%s", l->host);
    for (;;) {
        snprintf(dot, sizeof(dot), "%s/.git", l->top);
        if (stat(dot, &st) == 0 || (slash = strrchr(l->top, '/')) == NULL || slash == l->top)
            break;
        *slash = '\0';
    }
    if (stat(dot, &st) == 0)
        return read_repository(l, dot, S_ISDIR(st.st_mode), err);
    snprintf(l->top, sizeof(l->top), "%s", l->host);
    return 0;
}

int
led_nested(struct led *l, const char *relative, struct err *err)
{
    const char *slash = strrchr(relative, '/');
    char dot[PATH_MAX];
    struct stat st;
    int n = snprintf(dot, sizeof(dot), "%s/%s", strcmp(l->host, "/") == 0 ? "" : l->host, relative);

    if (slash == NULL || n < 0 || n >= (int)sizeof(dot) || stat(dot, &st) < 0)
        return 0;
    l->nested = true;
    snprintf(l->top, sizeof(l->top), "%.*s", n - 5, dot);
    return read_repository(l, dot, S_ISDIR(st.st_mode), err);
}

/* --- a search of its own */

const struct policy_list *
led_names(struct led *l)
{
    static char dot_git[] = ".git";

    if (l->more.v != NULL)
        return &l->more;
    l->more = *l->names;
    l->more.v = calloc(l->names->n + 1, sizeof(*l->more.v));
    if (l->more.v == NULL)
        return NULL;
    for (size_t i = 0; i < l->names->n; i++)
        l->more.v[i] = l->names->v[i];
    l->more.v[l->more.n++] = (struct policy_entry){ .value = dot_git, .written = dot_git };
    return &l->more;
}

bool
led_is_repository(const struct led *l, const char *relative)
{
    const char *slash = strrchr(relative, '/');
    char inside[PATH_MAX];
    struct stat st;

    if (strcasecmp(slash != NULL ? slash + 1 : relative, ".git") != 0)
        return false;
    /* one that nobody may search is reported by this name as well, for what it hides */
    return snprintf(inside, sizeof(inside), "%s/.", relative) < (int)sizeof(inside) &&
           (fstatat(l->fd, inside, &st, 0) == 0 || errno == ENOTDIR);
}

bool
led_follows(const char *relative)
{
    return strcasestr(relative, "/.git/") != NULL;
}

static int
found(void *ctx, const char *relative, struct err *err)
{
    struct led *l = ctx;

    if (led_is_repository(l, relative))
        return led_nested(l, relative, err);
    return led_follows(relative) ? led_protected(l, relative, err) : 0;
}

int
led_find(struct led *l, bool git, unsigned depth, struct err *err)
{
    const struct policy_list *names = led_names(l);
    struct stat st;

    if (names == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (led_owner(l, git, err) < 0)
        return -1;
    for (size_t i = 0; i < l->names->n; i++)
        if (fstatat(l->fd, l->names->v[i].value, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            led_protected(l, l->names->v[i].value, err) < 0)
            return -1;
    if (!git)
        return 0;
    return led_top(l, err) < 0 ? -1 : expand_names(l->fd, names, depth, found, l, err);
}
