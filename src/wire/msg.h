/* wire/msg.h: the messages of the guest protocol, and their payloads
 *
 * Shared by the guest (src/guest, musl, inside the sandbox) and the host side (guest/client.h). Encoding and
 * decoding are pure; what decoding hands out is borrowed from the frame. Layouts, order and meaning:
 * docs/guest-protocol.md. Every number is big endian; every string is a wire_cstr.
 */
#ifndef CLOCHE_WIRE_MSG_H
#define CLOCHE_WIRE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/frame.h"

#define GUEST_PROTOCOL_VERSION 1
#define GUEST_TRANSPORT_FD 3            /* where the guest finds its end of the transport */

/* Ceilings. A frame above its own is refused before its payload is read. */
#define MSG_DATA_MAX    65536           /* bytes of one data frame (stdin, stdout, file contents) */
#define MSG_PATH_MAX    4096            /* bytes of one path */
#define MSG_STRING_MAX  131071          /* one argument or environment entry: the kernel's own MAX_ARG_STRLEN */
#define MSG_STRINGS_MAX 131072          /* arguments of one exec; and environment entries */
#define MSG_EXEC_MAX    (4 * 1024 * 1024)
#define MSG_RLIMITS_MAX 16
#define MSG_GUARD_MAX   (1024 * 1024)   /* the name guard's plan inside SETUP */
#define MSG_DENIED_MAX  512             /* system calls that no command may make, in SETUP */
#define MSG_SETUP_MAX   (MSG_GUARD_MAX + 2 * MSG_PATH_MAX)
#define MSG_LABEL_MAX   256             /* names of operations in DENIED */
#define MSG_EXECS_MAX   128             /* commands at once; one more is EXEC_FAILED with EAGAIN */
#define MSG_FILES_MAX   32              /* file requests at once; one more is FILE_ERROR with EAGAIN */
#define MSG_WATCHES_MAX 16              /* directories that are watched at once, beside those */
#define MSG_WATCH_DIRS_MAX 4096         /* below one of them, that one with them */
#define MSG_NAME_MAX    255             /* bytes of one component of a path */
#define MSG_CHANGE_MAX  (2 + 2 * (MSG_PATH_MAX + 5))    /* payload of FILE_CHANGE */
#define MSG_WATCH_WINDOW_MIN (4 * MSG_CHANGE_MAX)       /* of the credit of a FILE_WATCH */
#define MSG_WATCH_WINDOW_MAX (1024 * 1024)

enum msg_type {
    /* host to guest */
    MSG_SETUP = 0x01,           /* once, first */
    MSG_EXEC = 0x02,            /* channel: a fresh one */
    MSG_STDIN = 0x03,
    MSG_STDIN_CLOSE = 0x04,
    MSG_WINDOW = 0x05,          /* the host may receive that much more output */
    MSG_RESIZE = 0x06,
    MSG_SIGNAL = 0x07,
    MSG_KILL_ALL = 0x08,
    MSG_CONNECT = 0x09,         /* channel: as of EXEC, and used as that of one from there on */
    MSG_FILE_READ = 0x10,       /* channel: a fresh request id, apart from the execs' */
    MSG_FILE_WRITE = 0x11,
    MSG_FILE_CHUNK = 0x12,
    MSG_FILE_END = 0x13,
    MSG_FILE_CANCEL = 0x14,
    MSG_FILE_LIST = 0x15,
    MSG_FILE_STAT = 0x16,
    MSG_FILE_REMOVE = 0x17,
    MSG_FILE_MKDIR = 0x18,
    MSG_FILE_RENAME = 0x19,
    MSG_FILE_WATCH = 0x1a,      /* until it is cancelled, or FILE_ERROR says why it ended */
    MSG_FILE_MORE = 0x1b,       /* the host may receive that much more of FILE_CHANGE */

    /* guest to host */
    MSG_HELLO = 0x81,           /* once, first */
    MSG_STARTED = 0x82,         /* pid; of CONNECT 0: it is connected */
    MSG_EXEC_FAILED = 0x83,     /* the exec's last message */
    MSG_STDOUT = 0x84,
    MSG_STDERR = 0x85,
    MSG_STDIN_WINDOW = 0x86,    /* the guest may receive that much more stdin */
    MSG_EXIT = 0x87,            /* the exec's last message */
    MSG_DENIED = 0x88,
    MSG_NOTICE = 0x89,
    MSG_FILE_OK = 0x90,         /* the request's last message */
    MSG_FILE_ERROR = 0x91,      /* the request's last message */
    MSG_FILE_DATA = 0x92,
    MSG_FILE_INFO = 0x93,       /* FILE_STAT's answer, and its last message */
    MSG_FILE_ENTRIES = 0x94,
    MSG_FILE_CHANGE = 0x95,     /* of FILE_WATCH */
};

/* What a peer knows of a process that ended before it could say why: the guest's own exit codes. */
enum guest_exit {
    GUEST_EXIT_DONE = 0,        /* the transport reached its end */
    GUEST_EXIT_SETUP = 2,       /* started wrongly: no transport at fd 3 ... */
    GUEST_EXIT_PROTOCOL = 3,    /* the host sent what is not permitted */
    GUEST_EXIT_SYSTEM = 4,      /* out of memory, transport broken */
    GUEST_EXIT_WORKDIR = 5,     /* started by a runtime: the working directory is not there */
};

#define MSG_HELLO_PID1 0x01             /* struct msg_hello.flags: the guest is process 1 of its pid namespace */

#define MSG_HELLO_SIZE 7                /* of its payload */

struct msg_hello {
    uint16_t version;
    uint8_t flags;
    uint32_t pid;
};

#define MSG_SETUP_LIGHT 0x01            /* no pid namespace: be a subreaper, and reach descendants only */

struct msg_setup {
    uint16_t version;
    uint8_t flags;
    uint64_t memory_limit;      /* bytes that all processes together may hold; 0: no watchdog */
    uint32_t pids_limit;        /* processes and threads together; 0: not watched */
    uint32_t sample_ms;         /* how often the watchdog looks */
    const char *root;           /* absolute: where file requests live; "": file requests are refused */
    const uint8_t *denied;      /* numbers of system calls that commands may not make, be16 each; NULL when none */
    uint16_t n_denied;
    const uint8_t *guard;       /* the name guard's plan, opaque here (guest/guard.h); NULL when empty */
    uint32_t guard_n;
};

enum exec_stdio {
    EXEC_STDIO_FDS = 0,         /* three descriptors came along (SCM_RIGHTS): no relay */
    EXEC_STDIO_STREAM = 1,      /* pipes, relayed as STDIN, STDOUT, STDERR frames */
    EXEC_STDIO_PTY = 2,         /* one terminal, relayed as STDIN and STDOUT frames */
    EXEC_STDIO_SOCKET = 3,      /* of CONNECT: a connection, relayed likewise; never in an EXEC */
};

#define MSG_EXEC_QUIET 0x01             /* no STARTED; a waiting HELLO goes out with the next message */
#define MSG_EXEC_NO_STDIN 0x02          /* STREAM only: stdin is /dev/null */
#define MSG_EXEC_NO_GUARD 0x04          /* the name guard does not apply to this command */
#define MSG_EXEC_LAST 0x08              /* when it has ended and its EXIT is sent, the guest ends too */
#define MSG_EXEC_JOIN(n) ((n) << 4)     /* STREAM and PTY: 1 to 3 descriptors came along, files of cgroups to join by:
                                         * the command is in them before anything of it runs */
#define MSG_EXEC_JOINS(flags) (((flags) >> 4) & MSG_JOINS_MAX)
#define MSG_JOINS_MAX 3
#define MSG_EXEC_LOOK 0x80              /* with NO_GUARD: it may look at its working directory, and nothing else */
#define MSG_EXEC_NOTE 0x40              /* STREAM: one more descriptor came along, which it has as its stderr: a file */
#define MSG_KEEP UINT32_MAX             /* umask, uid, gid: as the guest's */

struct msg_rlimit {
    uint32_t resource;
    uint64_t soft, hard;
};

/* @count strings, already checked to be there. */
struct msg_strings {
    uint32_t count;
    const uint8_t *p;
    size_t n;
};

struct msg_exec {
    enum exec_stdio stdio;
    uint8_t flags;
    uint16_t rows, cols;        /* PTY */
    uint32_t umask, uid, gid;   /* or MSG_KEEP */
    uint32_t window;            /* bytes of stdout, and of stderr, that may be under way; 0: no such limit */
    struct msg_rlimit rlimits[MSG_RLIMITS_MAX];
    size_t n_rlimits;
    const char *cwd;            /* "" keeps the guest's */
    struct msg_strings argv;    /* at least one */
    struct msg_strings env;
};

enum exec_stage {
    EXEC_STAGE_SPAWN = 1,       /* no process, no memory, no descriptors */
    EXEC_STAGE_STDIO = 2,
    EXEC_STAGE_PTY = 3,
    EXEC_STAGE_CWD = 4,
    EXEC_STAGE_USER = 5,
    EXEC_STAGE_RLIMIT = 6,
    EXEC_STAGE_GUARD = 7,
    EXEC_STAGE_EXEC = 8,        /* execve: ENOENT is a shell's 127, EACCES its 126 */
    EXEC_STAGE_CONNECT = 9,     /* CONNECT's */
    EXEC_STAGE_INTERPRETER = 10,    /* execve: the file is there, what its `#!` line or ELF header names is not */
    EXEC_STAGE_JOIN = 11,       /* the cgroups of its own */
    EXEC_STAGE_LOOK = 12,       /* what only looks cannot be confined */
    EXEC_STAGE_DENY = 13,       /* the filter of the calls that the policy denies */
};

struct msg_exec_failed {
    uint32_t sys_errno;
    uint8_t stage;
};

struct msg_connect {
    uint16_t port;              /* from 1; of 127.0.0.1, or of ::1 where that one refuses */
    uint32_t window;            /* as of EXEC, never 0 */
};

#define MSG_EXIT_SIGNALED 0x01
#define MSG_EXIT_CORE 0x02

struct msg_exit {
    uint8_t flags;
    uint32_t status;            /* exit code, or signal number with MSG_EXIT_SIGNALED; of CONNECT 0, or what broke it */
    uint64_t utime_us, stime_us;/* of the command and what it waited for */
    uint64_t maxrss_bytes;
    uint64_t run_us;            /* wall clock, from its start to its end */
};

enum msg_stream { MSG_STREAM_OUT = 1, MSG_STREAM_ERR = 2 };

struct msg_window {
    uint8_t stream;
    uint32_t bytes;
};

#define MSG_STDIN_GONE 0x01             /* STDIN_WINDOW: the command closed its stdin; what comes is thrown away */
#define MSG_STDIN_WINDOW_START 65536    /* bytes of stdin that the host may send before the first STDIN_WINDOW */

struct msg_stdin_window {
    uint8_t flags;
    uint32_t bytes;
};

struct msg_resize {
    uint16_t rows, cols;
};

enum signal_target {
    SIGNAL_GROUP = 0,           /* the command's process group; of a terminal, the foreground one */
    SIGNAL_LEADER = 1,          /* the command itself */
};

struct msg_signal {
    uint32_t signo;
    uint8_t target;
};

enum notice_kind {
    NOTICE_MEMORY = 1,          /* the watchdog killed everything: @value bytes held, @limit allowed */
    NOTICE_GUARD = 2,           /* the guard could not be served and everything was killed: @value an errno */
    NOTICE_BLIND = 3,           /* the watchdog sees no processes and killed everything */
    NOTICE_PIDS = 4,            /* the watchdog killed everything: @value processes and threads, @limit allowed */
};

struct msg_notice {
    uint8_t kind;
    uint64_t value, limit;
};

struct msg_denied {
    uint32_t count;             /* since the last report of the same three */
    const char *op;             /* "create", "rename", "connect" ... */
    const char *target;         /* path */
    const char *rule;           /* the policy entry */
};

#define MSG_FILE_CREATE    0x01         /* WRITE */
#define MSG_FILE_EXCLUSIVE 0x02         /* WRITE: it must not exist; RENAME: the new name must not exist */
#define MSG_FILE_TRUNCATE  0x04         /* WRITE */
#define MSG_FILE_APPEND    0x08         /* WRITE */
#define MSG_FILE_PARENTS   0x10         /* WRITE, MKDIR: make missing directories (MKDIR: existing is fine) */
#define MSG_FILE_RECURSIVE 0x20         /* REMOVE; WATCH: directories below it too */
#define MSG_FILE_NOFOLLOW  0x40         /* STAT: of a symbolic link itself */

/* One shape for every request that names a file. */
struct msg_file {
    uint8_t flags;
    uint32_t mode;              /* WRITE (0666 when 0), MKDIR (0777 when 0); the umask applies */
    uint64_t offset;            /* READ */
    uint64_t length;            /* READ: at most; 0: to the end. WATCH: payload of FILE_CHANGE that may be under way */
    const char *path;
    const char *to;             /* RENAME */
};

enum file_code {
    FILE_CODE_ERRNO = 0,        /* see sys_errno */
    FILE_CODE_ESCAPES = 1,      /* "Path escapes workspace." */
    FILE_CODE_NO_ROOT = 2,      /* SETUP named no root */
    FILE_CODE_NOT_REGULAR = 3,  /* READ, WRITE of a FIFO, socket, device or directory */
    FILE_CODE_TOO_DEEP = 4,     /* REMOVE */
    FILE_CODE_CANCELLED = 5,
    FILE_CODE_WATCHES = 6,      /* WATCH: MSG_WATCHES_MAX are watched already */
    FILE_CODE_WATCH_DIRS = 7,   /* WATCH: more than MSG_WATCH_DIRS_MAX directories */
    FILE_CODE_WATCH_SYSTEM = 8, /* WATCH: a limit of the kernel's (fs.inotify) */
    FILE_CODE_WATCH_GONE = 9,   /* WATCH: the directory is not where it was */
};

struct msg_file_error {
    uint8_t code;
    uint32_t sys_errno;
};

/* FILE_INFO, and one entry of FILE_ENTRIES (then with a name). */
struct msg_file_info {
    uint32_t mode;              /* type and permission bits, as st_mode */
    uint32_t uid, gid, nlink;
    uint64_t size;
    uint64_t mtime_ns;
    const char *name;           /* one component; "" in FILE_INFO */
};

enum change_kind {
    CHANGE_WATCHING = 1,        /* first, and once: from here on everything is told */
    CHANGE_CREATED = 2,
    CHANGE_MODIFIED = 3,        /* contents or attributes */
    CHANGE_DELETED = 4,         /* or moved to where nobody watches */
    CHANGE_RENAMED = 5,
    CHANGE_UNWATCHED = 6,       /* a directory that may not be read: what happens in it is not told */
    CHANGE_OVERFLOW = 7,        /* something was missed: look again */
};

/* Paths are relative to the directory that is watched; "" with WATCHING and OVERFLOW. */
struct msg_change {
    uint8_t kind;
    bool directory;             /* not with WATCHING and OVERFLOW */
    const char *path;
    const char *from;           /* RENAMED: what it was called before; "" otherwise */
};

/* Encoders append one whole frame to @b: 0, or -1 with @b broken (a value above its ceiling, no room). */
int msg_put_setup(struct buf *b, const struct msg_setup *m);
/* @argv and @env are NULL-terminated; those of @m are not looked at. */
int msg_put_exec(struct buf *b, uint16_t channel, const struct msg_exec *m, const char *const *argv,
                 const char *const *env);
int msg_put_connect(struct buf *b, uint16_t channel, const struct msg_connect *m);
int msg_put_window(struct buf *b, uint16_t channel, const struct msg_window *m);
int msg_put_resize(struct buf *b, uint16_t channel, const struct msg_resize *m);
int msg_put_signal(struct buf *b, uint16_t channel, const struct msg_signal *m);
int msg_put_u32(struct buf *b, uint8_t type, uint16_t channel, uint32_t v);     /* KILL_ALL, STARTED */
int msg_put_u64(struct buf *b, uint8_t type, uint16_t channel, uint64_t v);     /* FILE_OK */
int msg_put_hello(struct buf *b, const struct msg_hello *m);
int msg_put_exec_failed(struct buf *b, uint16_t channel, const struct msg_exec_failed *m);
int msg_put_exit(struct buf *b, uint16_t channel, const struct msg_exit *m);
int msg_put_stdin_window(struct buf *b, uint16_t channel, const struct msg_stdin_window *m);
int msg_put_notice(struct buf *b, const struct msg_notice *m);
int msg_put_denied(struct buf *b, const struct msg_denied *m);
int msg_put_file(struct buf *b, uint8_t type, uint16_t request, const struct msg_file *m);
int msg_put_file_error(struct buf *b, uint16_t request, const struct msg_file_error *m);
int msg_put_file_info(struct buf *b, uint16_t request, const struct msg_file_info *m);
int msg_put_change(struct buf *b, uint16_t request, const struct msg_change *m);
/* One entry inside an open FILE_ENTRIES frame (frame_begin). */
int msg_put_entry(struct buf *b, const struct msg_file_info *m);

/* Decoders: true when the payload is exactly one such message with every value in its range. */
bool msg_get_setup(const struct frame *f, struct msg_setup *m);
bool msg_get_exec(const struct frame *f, struct msg_exec *m);
bool msg_get_connect(const struct frame *f, struct msg_connect *m);
bool msg_get_window(const struct frame *f, struct msg_window *m);
bool msg_get_resize(const struct frame *f, struct msg_resize *m);
bool msg_get_signal(const struct frame *f, struct msg_signal *m);
bool msg_get_u32(const struct frame *f, uint32_t *v);
bool msg_get_u64(const struct frame *f, uint64_t *v);
bool msg_get_hello(const struct frame *f, struct msg_hello *m);
bool msg_get_exec_failed(const struct frame *f, struct msg_exec_failed *m);
bool msg_get_exit(const struct frame *f, struct msg_exit *m);
bool msg_get_stdin_window(const struct frame *f, struct msg_stdin_window *m);
bool msg_get_notice(const struct frame *f, struct msg_notice *m);
bool msg_get_denied(const struct frame *f, struct msg_denied *m);
bool msg_get_file(const struct frame *f, struct msg_file *m);
bool msg_get_file_error(const struct frame *f, struct msg_file_error *m);
bool msg_get_file_info(const struct frame *f, struct msg_file_info *m);
/* The kind has the paths that it has and no other; each is msg_change_path(). */
bool msg_get_change(const struct frame *f, struct msg_change *m);
/* Components of 1 to MSG_NAME_MAX bytes with one slash between two, none of them `.` or `..`. */
bool msg_change_path(const char *path);
/* Walk FILE_ENTRIES: false at the end, or with @in->bad on a malformed entry. */
bool msg_next_entry(struct wire_in *in, struct msg_file_info *m);

/* The shape of a path in a file request: relative, or absolute at or below @root; no empty path, no `..` hop. True
 * with @rel pointing into @path at the part relative to the root ("." for the root itself). Pure: where the path
 * really leads is checked again where it is opened. */
bool msg_path_shape(const char *root, const char *path, const char **rel);

/* Point out[0..count) at the strings and put a NULL after them; @out has room for count + 1. */
void msg_strings_fill(const struct msg_strings *s, const char **out);

#endif
