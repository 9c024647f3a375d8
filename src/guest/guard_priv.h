/* guest/guard_priv.h: what the name guard's files share
 *
 *   guard.c           one notification: receive, look at the caller, dispatch, answer; denials
 *   guard_caller.c    the caller: memory (each byte copied once), directories, umask
 *   guard_seen.c      what is kept of callers that come again and again
 *   guard_near.c      a descriptor is passed without waking another processor (guard_near.h)
 *   guard_walk.c      a path to a place: the parent directory's descriptor and the last name
 *   guard_rules.c     a place to a verdict; guard_rules_init.c: the plan to its tables; guard_rules_move.c: moved ones
 *   guard_open.c      open with O_CREAT, or for writing
 *   guard_names.c     mkdir, mknod, symlink, link
 *   guard_rename.c    rename
 *   guard_git.c       what may come to a name where git might look; guard_git_copy.c: a judged copy takes a name
 *   guard_git_calls.c the same for a trapped call; guard_git_later.c: what is written in place, judged when complete
 *   guard_git_lock.c  a lock that git renames into place
 *   guard_git_own.c   no link where git itself writes
 *   guard_git_top.c   the repository that git takes stays the one that it takes
 *   guard_git_move.c  work trees stay in the project when repositories are moved
 *   guard_api.c       the guest's own file requests
 *   guard_modify.c    truncate, chmod, chown, xattrs, times
 *   guard_remove.c    unlink, rmdir
 *   guard_object.c    an object that was reached without its directory; where something lies, as text
 *   guard_after.c     what was done is judged once more
 *   guard_bind.c      does a name belong to the socket that was bound by it?
 *   guard_sock.c      connect, bind, socketpair
 *   guard_alias.c     has a file names (hard links) outside of the writable trees?
 *   guard_copy.c      such a file is copied before it is changed
 *   guard_worker.c    what may block, in a process of its own
 *
 * Functions answer as system calls do in the kernel: a value >= 0 or a negated errno.
 */
#ifndef CLOCHE_GUEST_GUARD_PRIV_H
#define CLOCHE_GUEST_GUARD_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/str.h"
#include "guest/guard.h"
#include "guest/guard_lock.h"
#include "guest/guard_near.h"
#include "guest/guard_sys.h"

#define WALK_LINKS_MAX   40                     /* as the kernel */
#define WALK_REST_MAX    (4 * PATH_MAX)         /* what is left to walk, symlinks expanded */
#define DENIALS_MAX      64                     /* different ones between two reports */
#define TERMINALS_MAX    64                     /* terminals of mode light that programs made */
#define WORKERS_MAX      64
#define OWN_SOCKETS_MAX  128                    /* sockets bound by the sandbox itself in the host's trees */
#define SEEN_MAX         16
#define RECENT_MAX       16                     /* callers of late, who become seen ones when they come again */
#define UMASK_CALLS_MAX  8                      /* threads that may not have come out of umask() yet */
#define LATER_MAX        16                     /* files that are written in place at one time */
#define OWN_DEVS_MAX     4                      /* file systems that end with the sandbox */
#define FREE_DIRS_MAX    8                      /* directories known to lie outside everything protected */

/* An answer that was given already, or that a worker will give. */
#define ANSWERED         INT_MIN

/* Set-user-ID, set-group-ID, sticky: a file with one of the first two runs with the rights of the folder's owner, for
 * whoever starts it on the host. No file gets one. A directory's set-group-ID makes shared folders. */
#define MODE_SPECIAL     (S_ISUID | S_ISGID | S_ISVTX)

enum place_kind {
    PLACE_FREE,
    PLACE_INTERIOR,     /* an ancestor of a protected path: may only be a plain directory, and stays where it is */
    PLACE_PROTECTED,    /* a protected path itself, or below one */
};

#define RULE_TEXT_MAX (2 * PATH_MAX)

struct rules {
    /* Directories that rules_below() found free. Nothing moves but by our hand, so they stay so until a directory is
     * renamed; the descriptors keep their numbers from being given to others. */
    struct { int fd; struct ident id; } free_dirs[FREE_DIRS_MAX];
    size_t n_free_dirs, next_free_dir;
    /* rules_below()'s last answer: a call asks it about the same directory again (rename) */
    struct { bool valid; struct ident id; enum place_kind kind; const char *rule; char text[RULE_TEXT_MAX]; } below;
    char text[RULE_TEXT_MAX];   /* "ROOT/PATH" of the last answer */
    /* rules_path()'s last answer */
    struct { bool valid; struct ident id; size_t n; char text[PATH_MAX]; } path;
    struct { int fd; char *path; struct ident id; bool keeps; } *roots;     /* @keeps: it is @id for ever */
    size_t n_roots;
    struct name_dir *dirs;
    size_t n_dirs;
    /* of the root that is being looked at: 0 not known, else enum now + 1 */
    struct { size_t root; uint8_t *dirs; } looked;
    struct name_entry *entries;
    size_t n_entries;
    uint32_t *table;            /* open addressing by hash; entry index + 1, 0 is empty */
    size_t table_mask;
};

/* A thread that calls again and again: its /proc entries, kept open. They belong to the thread, not to its number:
 * when it is gone they show nothing, whoever has the number then (guard_seen.c). */
struct seen {
    pid_t tid;                  /* 0: free */
    int dir;                    /* /proc/TID, O_PATH */
    int status;
    int pidfd;                  /* of the thread; -1 where the kernel has them for processes only */
    int cwd;                    /* O_PATH of the working directory that it had last; -1: none that can be told again */
    struct ident cwd_id;
    uint64_t cwd_mount;
    bool umask_known;
    mode_t umask;
    bool makes_new;             /* the last file that it opened to be made if need be was not there */
};

/* A thread whose umask() goes on: it may or may not be done. */
struct umask_call {
    pid_t tid;
    int dir;                    /* /proc/TID, O_PATH */
    mode_t mask;
};

struct own_socket {
    int fd;                     /* O_PATH: pins the inode, so that its number is not reused */
    struct ident id;
};

/* A file that is written in place and gets its name when it is complete (guard_git_later.c). */
struct later {
    int dir;                    /* O_PATH */
    int file;                   /* for reading; it has no name */
    char name[NAME_MAX + 1];
};

struct denial_slot {
    uint32_t count;
    const char *op;
    char *target, *rule;
};

struct guard {
    uint32_t flags;
    struct rules rules;
    char **sockets;
    size_t n_sockets;
    char **socket_trees;
    size_t n_socket_trees;
    char **trees;
    size_t n_trees;
    struct aliases *aliases;    /* guard_alias.c; NULL: hard links are nobody's business */
    int proc;                   /* /proc, O_PATH */
    dev_t proc_dev;
    int fds;                    /* /proc/self/fd, O_PATH */
    int home;                   /* our own working directory, O_PATH */
    int lent;                   /* the caller's, as long as this call is served; -1 */
    bool stands;                /* in that one instead of @home: to be asked again */
    int root;                   /* the root directory, O_PATH; the callers' is the same (the filter refuses chroot) */
    pid_t pid;
    uid_t uid;
    gid_t gid;
    mode_t own_umask;           /* ours, but while something is made for a caller */
    dev_t own_devs[OWN_DEVS_MAX];
    size_t n_own_devs;
    bool privileged;            /* we may look into anyone: ids must be compared */
    bool no_vm_readv;           /* the sandbox's filter refuses it: use /proc/PID/mem */
    struct seen seen[SEEN_MAX]; /* callers that came more than once of late */
    size_t next_seen;
    pid_t recent[RECENT_MAX];
    size_t next_recent;
    struct umask_call umask_calls[UMASK_CALLS_MAX];
    size_t n_umask_calls;
    bool umask_untold;          /* no umask can be remembered (guard_seen.c) */
    struct near near;
    dev_t plain_devs[OWN_DEVS_MAX];     /* of guarded trees, which are held: not procfs */
    size_t n_plain_devs;
    int terminals[TERMINALS_MAX];       /* O_PATH: those that callers made (guard_device.c) */
    size_t n_terminals;
    bool no_fchmodat2;          /* the kernel has none, or something forbids it */
    pid_t workers[WORKERS_MAX];
    size_t n_workers;
    struct own_socket own_sockets[OWN_SOCKETS_MAX];
    size_t n_own_sockets, next_own_socket;
    int bind_watch;             /* inotify, of directories in which a socket is bound (guard_bind.c) */
    bool asked_whole;           /* git_is_whole() of the name that guard_check() was asked about last */
    struct own_lock locks[LOCKS_MAX];
    size_t n_locks;
    struct held held[HELD_MAX];
    size_t n_held;
    struct later later[LATER_MAX];
    size_t n_later;
    struct denial_slot denials[DENIALS_MAX];
    size_t n_denials;
    uint32_t more_denials;
    struct denial_slot taken;   /* what guard_next_denial() lent out */
    char rest[2][WALK_REST_MAX];/* guard_walk.c */
};

/* One trapped call. */
struct call {
    struct guard *g;
    int listener;
    uint64_t id;
    pid_t tid;
    int nr;
    uint64_t args[6];
    const char *op;             /* for reports */
    pid_t tgid;                 /* 0: not looked at yet */
    bool umask_read;
    mode_t umask;
    int cwd;                    /* -1: not opened yet */
    bool cwd_lent;              /* @cwd is its seen caller's, no procfs, and @cwd_st is what it is */
    struct stat cwd_st;
    bool looked;                /* something was read since caller_waits() said yes */
};

/* Where a path leads: the directory that we hold, and the last name in it (never looked up yet). */
struct place {
    int dir;                    /* O_PATH */
    bool borrowed;              /* @dir is the call's, not ours to close */
    struct stat dir_st;
    bool on_proc;
    bool git_whole;             /* when the name was judged: git_is_whole() */
    bool at_once;               /* the kernel walked the path as it is, without a magic link: it would do so again */
    size_t name_n;              /* without a '/' behind it */
    char name[PATH_MAX + 1];    /* with a '/' behind it when the path had one; "/" alone is the root directory. Last:
                                 * what is before it is zeroed (place_init) */
};

/* What is filled before it is read, and not zeroed first (-ftrivial-auto-var-init), for that would be dear: only names
 * and paths, which end with a NUL. */
#if defined(__has_attribute) && __has_attribute(uninitialized)
#define unfilled __attribute__((uninitialized))
#else
#define unfilled
#endif

static inline void
place_init(struct place *p)
{
    memset(p, 0, offsetof(struct place, name));
    p->dir = -1;
    p->name[0] = '\0';
}

#define PLACE_INIT { .dir = -1 }
#define cleanup_place __attribute__((cleanup(place_close)))
void place_close(struct place *p);
/* The name without a '/' behind it, in @room. */
const char *place_name(const struct place *p, char room[PATH_MAX + 1]);

/* --- guard_caller.c */

/* Who calls? 0, or -EPERM for a caller that is not one of ours to serve. */
int caller_look(struct call *c);
/* Is the notification still the same call (the thread alive and waiting)? Ask after looking, before acting. */
bool caller_waits(struct call *c);
/* The same; not asked again when nothing was read from the caller since the last time. */
bool caller_still_waits(struct call *c);
/* Copy a string (at most PATH_MAX with its NUL) or exactly @n bytes. 0, -EFAULT, -ENAMETOOLONG, -EPERM. */
int caller_string(struct call *c, uint64_t addr, char out[PATH_MAX]);
int caller_bytes(struct call *c, uint64_t addr, void *out, size_t n);
/* Write exactly @n bytes into the caller's memory. 0, -EFAULT, -EPERM. */
int caller_put(struct call *c, uint64_t addr, const void *p, size_t n);
/* Two strings with one system call, if that finds both. False: ask for each, for the right error in the right order. */
bool caller_strings(struct call *c, uint64_t a, char out_a[PATH_MAX], uint64_t b, char out_b[PATH_MAX]);
/* A string of an xattr name's length: -ERANGE when longer than @room - 1. */
int caller_short_string(struct call *c, uint64_t addr, char *out, size_t room);
/* umask and thread group: read once. 0 or -EPERM. */
int caller_status(struct call *c);
/* The umask alone, which may be known. */
int caller_umask(struct call *c);
/* Around making something for it: its umask, which is known, is ours. */
void caller_umask_begin(const struct call *c);
void caller_umask_end(const struct call *c);
/* O_PATH of the caller's working directory (AT_FDCWD) or descriptor; in @owned when the caller of this function is
 * to close it, else -1 (it lives as long as @c). Negative: -EBADF, -EPERM. */
int caller_dir(struct call *c, int dirfd, int *owned);
void caller_done(struct call *c);
/* A duplicate of the caller's descriptor: the same open file. Negative: -EBADF, -EPERM. */
int caller_fd(struct call *c, int fd);
/* "TID/" + @name below /proc. */
int caller_proc_open(struct call *c, const char *name, int flags);
/* The number of the caller's controlling terminal as /proc has it; 0: none. */
unsigned caller_tty(struct call *c);

/* --- guard_device.c */

/* Whether what @st is of is a device that @c may not have: of mode light, where the devices are the host's. */
bool device_closed(struct call *c, const struct stat *st);
/* /dev/tty means the caller's terminal: opened by its number. */
int device_open_tty(struct call *c, int flags);
/* @fd, of which @st is, is about to be handed over: whoever makes a terminal may open its other end. */
void device_note(struct guard *g, int fd, const struct stat *st);
void device_forget_all(struct guard *g);

/* --- guard_bind.c */

#define BIND_STEPS_MAX 54           /* names in the path of a socket's address */

struct bind_step {
    int in;                     /* O_PATH */
    char name[NAME_MAX + 1];    /* a directory in it */
    struct ident id;
    int watch;                  /* of that directory; -1 where nothing inside can move it */
};

struct bind_watch {
    int name;                   /* watch of the directory in which the name comes; -1: it cannot be told what comes */
    size_t n;
    struct bind_step steps[BIND_STEPS_MAX];
};

/* Before a socket is bound by @path, from @cwd if that is not from the top, at the place @at. */
void bind_watch_begin(struct guard *g, struct bind_watch *w, int cwd, const char *path, const struct place *at);
/* Whether what is at @at is what was bound: the name came once, and nothing on the way moved. */
bool bind_watch_told_once(struct guard *g, const struct bind_watch *w, const struct place *at);
void bind_watch_end(struct guard *g, struct bind_watch *w);
/* guard_sock.c: the tree of the host that @dir (-1: unknown) lies in, or NULL. */
const char *socket_tree_of(const struct guard *g, int dir);

/* --- guard_seen.c */

/* What is kept of this caller; NULL. */
struct seen *seen_of(const struct call *c);
/* A call begins: whoever comes again is kept. */
void seen_note(struct call *c);
/* What is kept of it does not hold any more; what the call has borrowed becomes its own. */
void seen_forget(struct call *c, struct seen *s);
void seen_forget_all(struct guard *g);
/* In a worker, which has closed everything. */
void seen_drop(struct guard *g);
/* The working directory, if it is the one that is held: the call borrows it. */
bool seen_cwd(struct call *c, struct seen *s);
/* The thread's own descriptor, which stays its own; -1. */
int seen_pidfd(struct seen *s);
/* The umask, if it is known. */
bool seen_umask(struct call *c, struct seen *s);
/* It was read: @before is what seen_umask_settled() said before that. */
bool seen_umask_settled(struct call *c);
void seen_umask_is(struct call *c, bool before);
/* umask(2) and unshare(2): go on in the kernel. */
int call_umask(struct call *c);
int call_unshare(struct call *c);

/* --- guard_walk.c */

/* Walk to the parent of @path. 0 or a negated errno. */
int walk_parent(struct call *c, int dirfd, const char *path, struct place *out);
/* Walk to the parent of @path, which is the parent of @as when both are said alike: then @out borrows that. */
int walk_parent_as(struct call *c, int dirfd, const char *path, int as_dirfd, const char *as_path,
                   const struct place *as, struct place *out);
/* The same below a directory that is held already; @links counts symlinks over several walks. */
int walk_parent_from(struct call *c, int base, const char *path, int *links, struct place *out);
/* What @p names is a symbolic link that is to be followed: replace @p by where it leads. When it is one of /proc's
 * magic links there is no place: *@object becomes an O_PATH descriptor of the object itself. */
int walk_follow(struct call *c, struct place *p, int *links, int *object);
/* Walk to the object itself: follows the last name when @follow (or when '/' is behind it). *@object is -1 when the
 * place is what counts (the object may not exist). */
int walk_object(struct call *c, int dirfd, const char *path, bool follow, struct place *out, int *object);
/* An object on procfs that is ours, not the caller's: answers -EACCES. 0: no objection. */
int walk_refuse_own_proc(const struct guard *g, int fd);
bool walk_is_proc(int fd);
/* "/proc/self/fd/N" */
struct fd_path { char text[32]; };
struct fd_path fd_path(int fd);
/* Where @path leads, as the kernel would tell it, if there is no link on it: in @text, of 2 * PATH_MAX bytes. -1: it
 * cannot be told. *@base: the directory that @path is relative to. */
ssize_t walk_text(struct call *c, int dirfd, const char *path, char *text, int *base);

/* --- guard_rules*.c */

/* Names are compared without regard to ASCII case, whatever the file system does. */
static inline unsigned char
name_fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static inline uint32_t
name_hash(const char *p, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ name_fold(p[i])) * 16777619u;
    return h;
}

static inline bool
name_same(const char *name, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] == '\0' || name_fold(name[i]) != name_fold(p[i]))
            return false;
    return name[n] == '\0';
}

int rules_init(struct rules *r, const struct guard_plan *plan, struct err *err);
void rules_free(struct rules *r);
/* A directory was renamed. */
void rules_moved(struct rules *r);
/* Another call: what was found out for the one before is void. */
static inline void
rules_next_call(struct rules *r)
{
    r->below.valid = false;
    r->path.valid = false;
}
/* Where the directory @dir lies, as the kernel tells it; "" when it cannot. Valid until the next call of it. */
struct str rules_path(struct guard *g, int dir, const struct stat *dir_st);
/* Is this absolute path, with a '/' behind it, the one that the kernel would tell, if no link is on it? */
bool rules_path_is_plain(const char *path, size_t n);
/* Then it is where the directory lies. */
void rules_path_is(struct rules *r, const struct stat *dir_st, const char *path, size_t n);
/* What is @name in the directory @dir? *@rule says by which rule. Trailing '/' does not count. */
enum place_kind rules_place(struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n,
                            const char **rule);
/* Is @name in @dir a protected file over which one of the sandbox's own lies, now? */
bool rules_own(const struct guard *g, int dir, const struct stat *dir_st, const char *name, size_t name_n);
/* Is the directory @dir a protected one or below one? */
enum place_kind rules_below(struct guard *g, int dir, const char **rule);
/* Has nothing on this absolute path, as the kernel tells it, a name that is in any rule? Then no rule speaks of it. */
bool rules_no_name(const struct guard *g, struct str path);
/* Is the object (not a directory entry) a protected one under another name? By identity. */
bool rules_same_object(struct guard *g, const struct stat *st, const char **rule);
/* Would the directory @source be or bring something protected if it were put at (@dir_st, @name)? */
bool rules_brings(struct guard *g, int source, const struct stat *dir_st, const char *name, size_t name_n,
                  const char **rule);
/* Is @id a guarded root, or a directory on the way to one or to one of its named directories? */
bool rules_holds(struct guard *g, struct ident id, const char **rule);
/* 1: @id is the directory @fd or above it; 0: it is not; -1: cannot be told. */
int rules_on_the_way(int fd, struct ident id);

/* Names that a file system might take for another (case folding beyond ASCII, short names, streams): only once it is
 * made can it be told what it became. */
bool rules_ambiguous(const struct guard *g, const char *name, size_t name_n);
/* Is what now lies at @name also what a protected name (or one on the way to one) of the same directory finds? */
bool rules_aliased(struct guard *g, int dir, const struct stat *dir_st, const char *name, const char **rule);

/* --- guard.c */

/* Note a denial. Returns -@error. */
int deny(struct call *c, const struct place *p, const char *rule, int error);
int deny_text(struct guard *g, const char *op, const char *target, const char *rule);
/* Judge @p for making something there that is not a plain directory (or is one, @directory).
 * 0: free; 1: refused if it would be made, and *@rule says why. */
bool judge_make(struct call *c, const struct place *p, bool directory, const char **rule);
/* @fd as one of the caller's descriptors: its number there, which is no answer yet. A negated errno; ANSWERED: nobody
 * waits any more. */
int add_fd(const struct call *c, int fd, bool cloexec);
/* Hand @fd (closed here) to the caller as its answer. ANSWERED or a negated errno. */
int answer_fd(struct call *c, int fd, bool cloexec);
/* The same in two steps, for a worker: the caller goes on when @fd is closed here. A FIFO's end that lived on in a
 * worker that has not been scheduled yet would be the other end of whoever opens it next. */
int answer_fd_closed(struct call *c, int fd, bool cloexec);
/* Answer with a value or a negated errno. */
void answer(const struct call *c, int result);
/* The kernel does the call itself. Only for calls that have nothing but numbers for arguments: what is in memory could
 * be another thing by then. */
void answer_go_on(const struct call *c);

/* --- the calls */

int call_open(struct call *c);
int call_make(struct call *c);          /* mkdir, mknod */
int call_symlink(struct call *c);
int call_link(struct call *c);
int call_rename(struct call *c);
int call_modify(struct call *c);
int call_bind(struct call *c);
int call_connect(struct call *c);
int call_socketpair(struct call *c);

/* guard_remove.c: unlinkat, for the caller */
int remove_name(struct call *c, int dirfd, const char *path, int flags);

/* guard_object.c: an object that was reached without its directory. Protected when its place can be found and is, or
 * cannot be found though it has one. */
bool object_protected(struct guard *g, int object, const char **rule);
void deny_object(struct call *c, int object, const char *rule);
/* The directory (the caller's to close) in which @object, which is none itself, lies now, and its name there; negative
 * when that cannot be told. @name is "" when it has no path at all. */
#define OBJECT_NAME_ROOM (NAME_MAX + 16)        /* with " (deleted)" */
int object_parent(const struct guard *g, int object, const struct stat *st, char name[OBJECT_NAME_ROOM]);
/* Where @fd lies, as text. Its length, cut at @room; -1. */
ssize_t fd_text(const struct guard *g, int fd, char *out, size_t room);
/* The same of a directory, for less. */
ssize_t dir_text(struct guard *g, int dir, char *out, size_t room);
/* The end of a call: back where we were. */
void text_done(struct guard *g);
bool read_only_mount(int object);
/* A read-only mount protects @object already, and the kernel's own answer (EROFS) is the better one. Never in light
 * mode, where no mount is ours. */
bool held_by_mount(const struct guard *g, int object);

/* --- guard_git_calls.c: state that git executes (guard_git.h), asked for a call. 0, or the refusal, which is noted.
 * What the kernel would refuse anyhow is not asked about. */

/* A new name at @p. */
int git_call_make(struct call *c, struct place *p, bool directory, bool regular);
/* @p is opened with @flags. GIT_CALL_LATER: by later_open(). */
#define GIT_CALL_LATER 2
int git_call_open(struct call *c, struct place *p, int flags);
/* The file at @p is changed, where it is, other than by opening it. */
int git_call_write(struct call *c, const struct place *p);
/* Linking: where the file is, and where it gets a name. */
int git_call_link_from(struct call *c, const struct place *p);
int git_call_link_to(struct call *c, struct place *p, bool regular);
/* An object that was reached without its directory is written to, or gets another name. */
int git_call_object(struct call *c, int object);
/* Removing what is at @p; renaming it away. */
int git_call_leave(struct call *c, const struct place *p);
int git_call_move(struct call *c, const struct place *p);
/* Was @made, in @dir, made under a name that the file system takes for one that git knows? */
bool git_aliased(const struct guard *g, int dir, const struct stat *dir_st, const struct stat *made);
/* What is at @from (@st) comes to @to. GIT_CALL_COPY: by git_call_copy(), instead of the rename. */
#define GIT_CALL_COPY 1
int git_call_come(struct call *c, const struct place *from, const struct stat *st, struct place *to);
/* @p was opened for writing; a name of that type was made there; something came from @from to @to: may it stay? */
int git_call_opened(struct call *c, const struct place *p);
int git_call_made(struct call *c, const struct place *p, mode_t type);
int git_call_came(struct call *c, const struct place *from, const struct stat *st, const struct place *to);
/* guard_git_copy.c: all of @file (for reading) is then all of @to. 0 or an errno. */
int git_copy_whole(int file, int to);
int git_call_copy(struct call *c, const struct place *from, const struct place *to, unsigned flags);

/* --- guard_after.c: what was done is judged once more. 0, or the refusal, which is noted. */

/* A name of that type was made at @p (refused: it is taken away again); @p was opened with @flags, perhaps made. */
int after_made(struct call *c, const struct place *p, mode_t type);
int after_opened(struct call *c, const struct place *p, int flags);
/* The new file @fd, made as @path without a question: does nobody ask about where it lies (@text, 2 * PATH_MAX bytes)
 * now? Else it is taken away, which is noted. */
bool after_unasked(struct call *c, int fd, const char *path, char *text);
/* Take away what is at @p; a directory that something was put in gets another name. */
void after_undo(const struct place *p, mode_t type);

/* --- guard_alias.c */

/* Whether @dev is a file system of the sandbox's own, which ends with it. */
bool guard_is_own(const struct guard *g, dev_t dev);
int alias_init(struct guard *g);
void alias_free(struct guard *g);
/* Has @object (O_PATH will do) names that are not in the writable trees? The first question about a file of several
 * names, or of one that is not where it was opened, walks through them. What cannot be told has. */
bool alias_outside(struct guard *g, int object);
/* Around a link that is made: there was a walk, so that the new name must be noted; @object is known to have no names
 * outside; it has one name more inside. */
bool alias_walked(const struct guard *g);
bool alias_known(struct guard *g, int object);
struct statx;
struct ident statx_ident(const struct statx *sx);
void alias_linked(struct guard *g, int object);

/* --- guard_copy.c */

/* Before what @name in @dir (or @at, or @object) is gets changed: when it has names outside it becomes a copy, of its
 * first @keep bytes. 0: it may be changed as it is; 1: the name is a copy now (in *@copy, O_PATH, for unshare_object);
 * or a negated errno (a denial is noted but by unshare_name). */
int unshare_name(struct guard *g, int dir, const char *name, uint64_t keep);
int unshare_place(struct call *c, const struct place *at, uint64_t keep);
int unshare_object(struct call *c, int object, uint64_t keep, int *copy);
/* Whether @fd, which was opened for writing at @at, is the file that was judged there: a sandbox of the same tree may
 * have renamed another one to that name. 0, or -EACCES (a denial is noted): it has names outside, or is protected. */
int unshare_opened(struct call *c, const struct place *at, int fd);

/* --- guard_git_later.c */

/* Open a file for writing that takes its name when it is complete: *@writer. 0 or a negated errno. */
int later_open(struct call *c, const struct place *p, int flags, mode_t mode, int *writer);
/* Give their names to those that nobody writes any more; forget the others too if @all. */
void later_settle(struct guard *g, bool all);

/* No writers: then a read lease can be had. */
bool later_is_closed(int file);

/* --- guard_worker.c */

/* Run @fn(@c, @a, @b, @n) in a child that may block; it returns the answer. @fds are those it needs. ANSWERED, or
 * -EAGAIN. The job is run again whenever it answers -EINTR and the caller has no signal to handle. */
typedef int worker_fn(struct call *c, const void *job);
int worker_start(struct call *c, const int *fds, size_t n_fds, worker_fn *fn, const void *job);
/* In a worker: it has waited, and answers now. Nothing may interrupt that. */
void worker_settle(void);

#endif
