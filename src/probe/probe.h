/* probe/probe.h: cloche-probe, the program that `cloche prove` runs inside a sandbox
 *
 *   cloche-probe posture   [options]     one JSON object: what this place looks like from inside
 *   cloche-probe activity  [options]     children, threads, execs, a terminal; then the posture as a grandchild sees it
 *   cloche-probe attacks   [options]     every attack of catalog.h in a fresh child; one JSON object
 *   cloche-probe project, limits, network, copy [options]     the trials of that stage, likewise
 *   cloche-probe here                    {}: the place is ready
 *   cloche-probe memory    [options]     takes more memory than --limit-memory, and says so if it lives
 *   cloche-probe time      [options]     sleeps for 10 s, and says so if it lives
 *   cloche-probe output    [options]     writes --limit-output bytes and then as many again
 *
 *   --bare              no wall is expected: attacks choose their harmless shape (own mount namespace first) and the
 *                       walks ask for permission instead of opening files
 *   --scratch DIR       where attacks put what they make (default: TMPDIR, /tmp ...)
 *   --no-walk           leave out the walk of the whole tree (half a second for each 100,000 files)
 *   --walk-s N          let that walk take up to N seconds (10)
 *   --host-pid N        a process outside, named by --host-name
 *   --tcp-port N        something listens on the host's 127.0.0.1:N
 *   --unix-path P       something listens on the host's unix socket P
 *   --unix-abstract N   the same with an abstract name
 *   --host-file P       a file of the host that anyone on the host may read and write
 *   --host-root D:I     device and inode of the host's /
 *   --exe-path P        cloche's own program file on the host
 *   --read P            say whether P can be read (repeatable)
 *   --write P           say whether P can be written or created (repeatable)
 *   --opened N,N,  --denied N,N,   numbers of system calls that the policy opens, and that it denies
 *   --mode NAME         light, standard or max: which column of the table of system calls counts
 *   --needles D:I,...   places of the host, by device and inode: the walk says where they can be read
 *
 * and for the trials:
 *   --private           the root is the sandbox's own: no token at all may be found; else those that are closed
 *   --project DIR       the project of prove's own, inside
 *   --home DIR          the home of prove's own, by its name on the host; places in it hold tokens
 *   --hidden DIR        what deny_read names, inside
 *   --token TEXT        what every token begins with; a closed one goes on with "C", others with "O"
 *   --leave NAME        how a process is called that is left behind
 *   --limit-NAME N      memory, pids, disk, nofile, output: the limits of this sandbox
 *   --own-address A     an address of the host's own, which a rule names
 *   --allowed HOST      a rule allows it; DENIED.HOST, where a deny rule stands, and others are not
 *
 * One static program without libraries: it must run where nothing is. What is given on its command line is known to
 * the sandbox already or harmless to know; prove makes fresh baits for every run.
 */
#ifndef CLOCHE_PROBE_PROBE_H
#define CLOCHE_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/catalog.h"
#include "probe/json.h"

#define PROBE_PATHS_MAX 256         /* --read and --write, each */
#define PROBE_NEEDLES_MAX 4096
#define PROBE_TOKEN_SIZE 64         /* of the file that holds one */

struct needle {
    uint64_t dev, ino;
};

struct probe {
    bool bare;
    bool no_walk;
    pid_t host_pid;                 /* 0: not given */
    const char *host_name;          /* its comm: another process may have the same number inside */
    pid_t guest_pid;                /* who started us: inside a sandbox, the guest */
    uint16_t tcp_port;
    const char *scratch;
    const char *unix_path, *unix_abstract, *host_file, *exe_path;
    uint64_t host_dev, host_ino;
    const char *read_paths[PROBE_PATHS_MAX];
    size_t n_read;
    const char *write_paths[PROBE_PATHS_MAX];
    size_t n_write;
    const char *mode;
    const char *opened, *denied;    /* numbers, each with a comma behind it; NULL: none */
    struct needle needles[PROBE_NEEDLES_MAX];   /* sorted */
    size_t n_needles;
    bool own_root;                  /* --private */
    const char *project, *home, *hidden, *token, *allowed, *leave, *own_address;
    uint64_t limit_memory, limit_pids, limit_disk, limit_nofile, limit_output;
    uint64_t walk_s;                /* 0: not given */
};

/* posture*.c: each puts its own keys into the open object. */
void posture_processes(const struct probe *p, struct jw *j);      /* every thread of every visible process */
void posture_descriptors(struct jw *j);
void posture_mounts(struct jw *j);
/* Can it be opened for reading? Nothing is read; of a folder something must be there; /dev/null counts as closed. */
bool posture_opens(const char *path);
void posture_tree(const struct probe *p, struct jw *j);           /* sockets, devices, setuid files, writable /proc */
void posture_network(struct jw *j);
void posture_paths(const struct probe *p, struct jw *j);          /* --read and --write */

/* Everything above as one object. 0 or -1. */
int posture_write(const struct probe *p, int fd);

/* activity.c: what programs do, before the posture is looked at again. 0, or -1 with a reason on stderr. */
int activity_run(const struct probe *p, int fd);

/* attack.c: those of @stage of catalog.h */
int attacks_write(const struct probe *p, enum trial_stage stage, int fd);

/* trial_limits.c: what ends with the sandbox. 0, or 1 when it lived on. */
int trial_memory(const struct probe *p);
int trial_memory_shared(const struct probe *p);
int trial_memory_sockets(const struct probe *p);
int trial_memory_datagrams(const struct probe *p);
int trial_time(const struct probe *p);
int trial_output(const struct probe *p);

/* util.c: small files, whole; cut at @n - 1 and NUL-terminated. Length or -1. */
ssize_t read_small(const char *path, char *out, size_t n);
/* The value of "Name:" in the text of a status file, copied up to the end of its line. */
bool field_of(const char *text, const char *name, char *out, size_t n);
bool all_digits(const char *s);
/* Whoever asks politely that this process ends is not heard. */
void ignore_ends(void);
/* A fresh directory that this process may write to, made in @first, or else in one of the usual places; "" when there
 * is none. */
void scratch_dir(const char *first, char *out, size_t n);

#endif
