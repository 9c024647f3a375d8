/* prove/prove_trial_outside.c: what a trial is judged by from outside (see prove_trial.h)
 *
 * Inside nobody can tell whether a write reached the host's file or a copy of it, nor whether a process outlives the
 * sandbox, nor with which rights cloche-egress runs that decides over the network.
 */
#include "prove/prove_trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kernel.h"
#include "base/str.h"
#include "program/json.h"
#include "wall/own_id.h"
#include "wall/service.h"

#define STATUS_MAX ((size_t)64 * 1024)
#define PATH_ROOM  256

static const char linked_text[] = "a file with a name outside\n";
/* The first is written to, of the second all else is changed; of the third the name inside goes
 * (probe/trial_corners.c), and the others are changed in one way each (probe/trial_state.c). */
static const char *const linked[] = { "linked", "linked-too", "linked-last", "linked-cut", "linked-mode",
                                      "linked-times", "linked-attribute" };
#define LINKED_LAST 2
#define LINKED_TIME 1000000000

static int
link_one(const char *dir, const char *project, const char *name, uid_t owner, struct err *err)
{
    const struct timespec times[2] = { { .tv_sec = LINKED_TIME }, { .tv_sec = LINKED_TIME } };
    char outside[PATH_ROOM], inside[PATH_ROOM];

    snprintf(outside, sizeof(outside), "%s/%s", dir, name);
    snprintf(inside, sizeof(inside), "%s/%s", project, name);
    cleanup_close int fd = open(outside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 || io_write_full(fd, linked_text, sizeof(linked_text) - 1) < 0 ||
        (owner != (uid_t)-1 && fchown(fd, owner, owner) < 0) || fchmod(fd, 0644) < 0 || futimens(fd, times) < 0)
        return err_sys(err, errno, "prove.trial", "%s", outside);
    /* a file system without hard links has none to write through */
    (void)!link(outside, inside);
    return 0;
}

static int
to_be_linked(const char *dir, const char *project, uid_t owner, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(linked); i++)
        if (link_one(dir, project, linked[i], owner, err) < 0)
            return -1;
    return 0;
}

/* Somebody of the host listens in the project, or has a box for letters there. */
static int
door(const char *project, const char *name, int type, int *out, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", project, name);
    cleanup_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    if (n < 0 || (size_t)n >= sizeof(at.sun_path))
        return err_set(err, ERR_LIMIT, "prove.trial", "%s is too long for a socket", project);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || (type == SOCK_STREAM && listen(fd, 8) < 0) ||
        chmod(at.sun_path, 0666) < 0)
        return err_sys(err, errno, "prove.trial", "listen at %s", at.sun_path);
    *out = take_fd(&fd);
    return 0;
}

int
trial_outside_prepare(const char *dir, const char *project, uid_t owner, int doors[2], struct err *err)
{
    return to_be_linked(dir, project, owner, err) < 0 || door(project, "door", SOCK_STREAM, &doors[0], err) < 0
               ? -1 : door(project, "post", SOCK_DGRAM, &doors[1], err);
}

void
trial_outside_names(const char *dir)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof(path), "%s/" TRIAL_HOSTS, dir);
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
        (void)!mount(path, "/etc/hosts", NULL, MS_BIND, NULL);
}

void
trial_outside_precedence(void)
{
    const struct rlimit more = { 5, 5 };

    (void)io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "-5");
    (void)!setrlimit(RLIMIT_RTPRIO, &more);
    (void)!setrlimit(RLIMIT_NICE, &more);
    (void)!setpriority(PRIO_PROCESS, 0, -1);
}

/* Is all but the content of the second as it was made? */
static bool
kept_as_it_was(const char *path)
{
    struct statx sx;
    char value[8];

    return kernel_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &sx) == 0 &&
           (sx.stx_mode & 07777) == 0644 && sx.stx_mtime.tv_sec == LINKED_TIME &&
           (sx.stx_attributes & STATX_ATTR_NODUMP) == 0 && lgetxattr(path, "user.prove", value, sizeof(value)) < 0;
}

static bool
has_its_text(const char *path)
{
    cleanup_buf struct buf text = BUF_INIT(4096);

    return io_read_file(AT_FDCWD, path, &text) == 0 && text.n == sizeof(linked_text) - 1 &&
           memcmp(text.p, linked_text, text.n) == 0;
}

bool
trial_outside_written(const char *dir, bool last, char *detail, size_t n)
{
    char path[PATH_ROOM];
    bool same = true;

    for (size_t i = 0; i < ARRAY_LEN(linked) && same; i++) {
        if ((i == LINKED_LAST) != last)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, linked[i]);
        same = has_its_text(path) && (i == 0 || kept_as_it_was(path));
    }
    snprintf(detail, n, "%s %s", path, same ? "is as it was" : "was changed through its name in the project");
    return !same;
}

bool
trial_outside_changed(const char *project, char *detail, size_t n)
{
    struct stat read_me, made, moded, gone;
    cleanup_close int at = open(project, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *what = NULL;

    if (fstatat(at, "README", &read_me, AT_SYMLINK_NOFOLLOW) < 0 || read_me.st_size != TRIAL_README_N)
        what = "README was written to";
    else if (fstatat(at, "fresh", &made, AT_SYMLINK_NOFOLLOW) == 0)
        what = "a folder was made";
    else if (fstatat(at, "closed/file", &moded, AT_SYMLINK_NOFOLLOW) < 0 || (moded.st_mode & 07777) != 0644)
        what = "a mode was changed";
    else if (fstatat(at, ".gitmodules", &gone, AT_SYMLINK_NOFOLLOW) < 0)
        what = "a file was removed";
    snprintf(detail, n, "%s", what != NULL ? what : "the project is as it was");
    return what != NULL;
}

bool
trial_outside_configured(const char *project, char *detail, size_t n)
{
    cleanup_buf struct buf text = BUF_INIT(STATUS_MAX);
    char path[PATH_ROOM];
    bool same;

    snprintf(path, sizeof(path), "%s/.git/config", project);
    same = io_read_file(AT_FDCWD, path, &text) == 0 && buf_nul(&text) == 0 &&
           strcmp((const char *)text.p, TRIAL_CONFIG) == 0;
    snprintf(detail, n, "%s", same ? "they stay as they are" : ".git/config is another");
    return !same;
}

bool
trial_outside_hello(const json_t *report, char *detail, size_t n)
{
    static const char *const reasons[] = { "tls-name-mismatch", "tls-ech", "tls-no-name" };
    const json_t *denied;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(reasons); k++) {
        bool found = false;

        json_array_foreach(json_object_get(report, "denied"), i, denied)
            found = found || strcmp(json_text(denied, "rule"), reasons[k]) == 0;
        if (found)
            continue;
        snprintf(detail, n, "nothing was refused for %s", reasons[k]);
        return false;
    }
    snprintf(detail, n, "another name, an encrypted one and none are refused");
    return true;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static bool
status_of(const char *pid, struct buf *out)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    return io_read_file(AT_FDCWD, path, out) == 0 && buf_nul(out) == 0;
}

/* The value in the line @name ("\nName:\t"), up to its end. */
static struct str
line_of(const struct buf *status, const char *name)
{
    const char *at = strstr((const char *)status->p, name);

    if (at == NULL)
        return (struct str){ "", 0 };
    at += strlen(name);
    return (struct str){ at, strcspn(at, "\n") };
}

static bool
is_named(const struct buf *status, struct str name)
{
    const char *text = (const char *)status->p;

    return strncmp(text, "Name:\t", 6) == 0 && str_eq((struct str){ text + 6, strcspn(text + 6, "\n") }, name);
}

/* The next process of /proc with this name; its number, or 0 after the last. */
static pid_t
next_named(DIR *proc, struct str name, struct buf *status)
{
    struct dirent *e;
    uint64_t pid;

    while (proc != NULL && (e = readdir(proc)) != NULL) {
        if (!str_parse_u64(str_of(e->d_name), 1 << 30, &pid))
            continue;
        buf_reset(status);
        if (status_of(e->d_name, status) && is_named(status, name))
            return (pid_t)pid;
    }
    return 0;
}

bool
trial_outside_left(const char *name, char *detail, size_t n)
{
    cleanup_buf struct buf status = BUF_INIT(STATUS_MAX);
    cleanup_dir DIR *proc = opendir("/proc");
    pid_t pid = next_named(proc, str_of(name), &status);

    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        snprintf(detail, n, "process %d of it goes on after its end", (int)pid);
    } else {
        snprintf(detail, n, proc != NULL ? "nothing of it goes on" : "/proc cannot be read");
    }
    return pid > 0 || proc == NULL;
}

static bool
zero(struct str set)
{
    for (size_t i = 0; i < set.n; i++)
        if (set.p[i] != '0')
            return false;
    return set.n > 0;
}

/* Of whom cannot be looked into the files in /proc are root's, but for the folder itself (proc(5)). */
static bool
is_closed(const char *pid, struct str uid)
{
    struct stat st;
    char path[64];
    uint64_t own;

    snprintf(path, sizeof(path), "/proc/%s/status", pid);
    return str_parse_u64((struct str){ uid.p, strcspn(uid.p, "\t\n") }, UINT32_MAX, &own) && stat(path, &st) == 0 &&
           (own == 0 || st.st_uid != own);
}

/* "Max data size  SOFT  HARD  bytes": is the hard one a number, and at most @most? */
static bool
is_bounded(const char *pid, const char *name, uint64_t most)
{
    cleanup_buf struct buf text = BUF_INIT(STATUS_MAX);
    char path[64];
    const char *at;
    uint64_t v;

    snprintf(path, sizeof(path), "/proc/%s/limits", pid);
    if (io_read_file(AT_FDCWD, path, &text) < 0 || buf_nul(&text) < 0 ||
        (at = strstr((const char *)text.p, name)) == NULL)
        return false;
    at += strlen(name);
    at += strspn(at, " ");
    at += strcspn(at, " ");
    at += strspn(at, " ");
    return str_parse_u64((struct str){ at, strcspn(at, " ") }, UINT64_MAX, &v) && v <= most;
}

/* Who is root makes it a user that no other process has, if it has users to give. */
static bool
is_alone(struct str uid)
{
    uint32_t id = 0;

    return geteuid() != 0 || own_id(OWN_OF_SERVICE, 0, &id, NULL) < 0 || id == 0 ||
           !str_starts(uid, STR_LIT("65534\t"));
}

static void
note_rights(const char *pid, const struct buf *status, bool memory, struct service_rights *r)
{
    struct str groups = line_of(status, "\nGroups:\t");
    bool bounded = !memory || SERVICE_SANITIZED || is_bounded(pid, "Max data size", UINT64_MAX);
    const char *lets = NULL;
    bool closed, no_groups;
    uint64_t number;
    struct str uid = line_of(status, "\nUid:\t"), caps = line_of(status, "\nCapEff:\t");
    struct str no_new = line_of(status, "\nNoNewPrivs:\t"), filter = line_of(status, "\nSeccomp:\t");

    /* only root gives them up */
    no_groups = geteuid() != 0 || strspn(groups.p, " ") == groups.n;
    closed = is_closed(pid, uid) && is_bounded(pid, "Max core file size", 0);
    r->seen = true;
    r->confined = closed && bounded && no_groups && is_alone(uid) &&
                  (geteuid() != 0 || !str_starts(uid, STR_LIT("0\t"))) && zero(caps) &&
                  zero(line_of(status, "\nCapPrm:\t")) && str_eq_c(no_new, "1") &&
                  (str_eq_c(filter, "2") || SERVICE_SANITIZED);     /* which has none (wall/service_filter.c) */
    if (r->confined && str_parse_u64(str_of(pid), 1 << 30, &number))
        lets = trial_filter_lets((pid_t)number, memory);
    r->confined = r->confined && lets == NULL;
    snprintf(r->detail, sizeof(r->detail), "uid %.*s, groups %.*s, %s, memory %s, effective %.*s, no_new_privs %.*s, "
             "seccomp %.*s%s%s", (int)strcspn(uid.p, "\t\n"), uid.p, (int)groups.n, groups.p,
             closed ? "closed" : "can be looked into", bounded ? "bounded" : "without bound", (int)caps.n, caps.p,
             (int)no_new.n, no_new.p, (int)filter.n, filter.p, lets != NULL ? ", which lets through: " : "",
             lets != NULL ? lets : "");
}

void
trial_outside_service(pid_t run, const char *name, bool memory, struct service_rights *r)
{
    cleanup_buf struct buf status = BUF_INIT(STATUS_MAX);
    cleanup_buf struct buf children = BUF_INIT(STATUS_MAX);
    char path[PATH_ROOM], pid[16];
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)run, (int)run);
    if (io_read_file(AT_FDCWD, path, &children) < 0 || buf_nul(&children) < 0)
        return;
    for (at = (const char *)children.p; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        snprintf(pid, sizeof(pid), "%.*s", (int)strcspn(at, " "), at);
        buf_reset(&status);
        if (!status_of(pid, &status) || !is_named(&status, str_of(name)))
            continue;
        note_rights(pid, &status, memory, r);
        return;
    }
}

void
trial_outside_seen(const char *project)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof(path), "%s/egress-seen", project);
    close_fd(&(int){ open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644) });
}
