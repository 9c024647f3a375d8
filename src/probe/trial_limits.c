/* probe/trial_limits.c: over each limit, on purpose
 *
 * The limits are those of a sandbox that prove makes for this: small, so that going over them costs little. Each trial
 * goes on for a good while after the limit, and says how far it came.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/attack.h"

#define CHUNK     ((size_t)1 << 20)
#define PIDS_MAX  4096
#define FILES_MAX 40000
#define DATAGRAM_SOCKETS 4096

static void
sleep_ms(long ms)
{
    const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

enum outcome
trial_limit_control(struct attempt *a)
{
    pid_t pid = fork();

    if (pid < 0)
        return outcome_of(a, SUCCEEDED, "no process to be had: %s", strerror(errno));
    if (pid == 0)
        _exit(7);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return a->scratch[0] != '\0' ? outcome_of(a, BLOCKED, "a child ran, a folder was made")
                                 : outcome_of(a, SUCCEEDED, "nothing is writable here");
}

enum outcome
trial_limit_pids(struct attempt *a)
{
    static pid_t pids[PIDS_MAX];
    size_t n = 0, most = a->p->limit_pids;

    if (most == 0 || most * 3 > PIDS_MAX)
        return outcome_of(a, NOT_APPLICABLE, "no such limit");
    while (n < most * 3) {
        pid_t pid = fork();

        if (pid < 0)
            break;
        if (pid == 0)
            for (;;)
                pause();
        pids[n++] = pid;
    }
    for (size_t i = 0; i < n; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return outcome_of(a, n > most ? SUCCEEDED : BLOCKED, "%zu children at a time, where %zu processes are the limit", n,
                      most);
}

/* Fill @path up to @most bytes. */
static uint64_t
fill(const char *path, uint64_t most)
{
    static char chunk[CHUNK];
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    uint64_t at = 0;

    memset(chunk, 'x', sizeof(chunk));
    while (fd >= 0 && at < most) {
        ssize_t n = write(fd, chunk, sizeof(chunk));

        if (n <= 0)
            break;
        at += (uint64_t)n;
    }
    return at;
}

enum outcome
trial_limit_disk(struct attempt *a)
{
    const char *const places[] = { "/tmp", "/dev/shm", "/var/tmp", "/run", getenv("HOME"), "." };
    uint64_t most = a->p->limit_disk, sum = 0;
    size_t n = ARRAY_LEN(places);
    char path[6][300];

    if (most == 0)
        return outcome_of(a, NOT_APPLICABLE, "no such limit");
    for (size_t i = 0; i < n; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/.cloche-fill", places[i] != NULL ? places[i] : "/tmp");
        sum += fill(path[i], most + 4 * CHUNK);
    }
    for (size_t i = 0; i < n; i++)
        unlink(path[i]);
    return outcome_of(a, sum > most ? SUCCEEDED : BLOCKED, "%llu bytes in all, where %llu are the limit",
                      (unsigned long long)sum, (unsigned long long)most);
}

enum outcome
trial_limit_inodes(struct attempt *a)
{
    size_t most = a->p->limit_disk / 4096 + 1024, made = 0;
    char path[300];

    if (a->p->limit_disk == 0 || most * 2 > FILES_MAX)
        return outcome_of(a, NOT_APPLICABLE, "no such limit");
    for (; made < most * 2; made++) {
        snprintf(path, sizeof(path), "%s/%zu", a->scratch, made);
        if (mknod(path, S_IFREG | 0600, 0) < 0)
            break;
    }
    for (size_t i = 0; i < made; i++) {
        snprintf(path, sizeof(path), "%s/%zu", a->scratch, i);
        unlink(path);
    }
    return outcome_of(a, made > most ? SUCCEEDED : BLOCKED, "%zu empty files, where %zu have room", made, most);
}

enum outcome
trial_limit_nofile(struct attempt *a)
{
    uint64_t most = a->p->limit_nofile, n = 0;

    if (most == 0)
        return outcome_of(a, NOT_APPLICABLE, "no such limit");
    while (n < most * 2 && fcntl(0, F_DUPFD_CLOEXEC, 0) >= 0)
        n++;
    return outcome_of(a, n >= most ? SUCCEEDED : BLOCKED, "%llu more descriptors, where %llu files are the limit",
                      (unsigned long long)n, (unsigned long long)most);
}

enum outcome
trial_limit_raise(struct attempt *a)
{
    static const struct { const char *name; int which; } limits[] = {
        { "core", RLIMIT_CORE }, { "nofile", RLIMIT_NOFILE }, { "nproc", RLIMIT_NPROC }, { "memlock", RLIMIT_MEMLOCK },
        { "msgqueue", RLIMIT_MSGQUEUE },
    };

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r, now;

        if (getrlimit(limits[i].which, &r) < 0 || r.rlim_max == RLIM_INFINITY)
            continue;
        r.rlim_max++;
        /* of core files "yes" is said, and nothing happens */
        if (setrlimit(limits[i].which, &r) == 0 && getrlimit(limits[i].which, &now) == 0 && now.rlim_max >= r.rlim_max)
            return outcome_of(a, SUCCEEDED, "RLIMIT_%s goes up", limits[i].name);
    }
    return outcome_of(a, BLOCKED, "none goes up");
}

/* Whoever may has the run begin with more than everybody has (prove/prove_trial.c). */
enum outcome
trial_limit_precedence(struct attempt *a)
{
    struct rlimit nice = { 0, 0 }, real_time = { 0, 0 };
    cleanup_close int oom = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    char first = '0';

    (void)getrlimit(RLIMIT_NICE, &nice);
    (void)getrlimit(RLIMIT_RTPRIO, &real_time);
    if (oom >= 0 && read(oom, &first, 1) == 1 && first == '-')
        return outcome_of(a, SUCCEEDED, "spared when memory runs out");
    if (getpriority(PRIO_PROCESS, 0) < 0 || nice.rlim_max > 0 || real_time.rlim_max > 0)
        return outcome_of(a, SUCCEEDED, "nice %d, RLIMIT_NICE %lu, RLIMIT_RTPRIO %lu", getpriority(PRIO_PROCESS, 0),
                          (unsigned long)nice.rlim_max, (unsigned long)real_time.rlim_max);
    return outcome_of(a, BLOCKED, "nice %d, and no less", getpriority(PRIO_PROCESS, 0));
}

/* --- what ends with the sandbox ----------------------------------------------------------------------------------- */

static int
lived(void)
{
    static const char said[] = "lived\n";

    return write(STDOUT_FILENO, said, sizeof(said) - 1) == sizeof(said) - 1 ? 1 : 2;
}

/* Said first: what never began has not been ended by a limit. */
static void
trial_limits_begin(void)
{
    static const char said[] = "began\n";

    (void)!write(STDOUT_FILENO, said, sizeof(said) - 1);
}

/* Write to all of at[0..want); then who looks now and then is given the time. */
static void
fill_slowly(char *at, size_t want)
{
    for (size_t i = 0; i < want; i += CHUNK) {
        memset(at + i, 1, CHUNK);
        sleep_ms(1);
    }
    sleep_ms(1500);
}

int
trial_memory(const struct probe *p)
{
    size_t want = (size_t)p->limit_memory * 3;
    char *at = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    trial_limits_begin();
    if (at == MAP_FAILED)
        return 0;
    fill_slowly(at, want);
    return lived();
}

/* A memory file that nobody maps. False: there is none, or the kernel bounds it. */
static bool
fills_memory_file(const struct probe *p)
{
    static char chunk[CHUNK];
    cleanup_close int fd = (int)syscall(SYS_memfd_create, "fill", 0U);
    uint64_t at = 0;

    memset(chunk, 'x', sizeof(chunk));
    while (fd >= 0 && at < p->limit_memory * 3) {
        ssize_t n = write(fd, chunk, sizeof(chunk));

        if (n <= 0)
            break;
        at += (uint64_t)n;
        sleep_ms(1);
    }
    if (at <= p->limit_memory)
        return false;
    sleep_ms(1500);
    return true;
}

/* Memory that is a file without a name, in nobody's disk. */
int
trial_memory_shared(const struct probe *p)
{
    size_t want = (size_t)p->limit_memory * 3;
    char *at;

    trial_limits_begin();
    if (fills_memory_file(p))
        return lived();
    at = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    fill_slowly(at, want);
    return lived();
}

/* What was sent and nobody received. The kernel may refuse more instead: then it is bounded as well. */
int
trial_memory_sockets(const struct probe *p)
{
    static char chunk[65536];
    const int wide = 1 << 22;
    uint64_t sent = 0;
    int pair[2];

    trial_limits_begin();
    while (sent < p->limit_memory * 3 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        ssize_t n;

        (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &wide, sizeof(wide));
        while ((n = send(pair[0], chunk, sizeof(chunk), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
            sent += (uint64_t)n;
        sleep_ms(1);
    }
    sleep_ms(1500);
    return sent > p->limit_memory ? lived() : 0;
}

/* A socket that has sent itself what it does not read; -1 when there are no more. */
static int
filled(void)
{
    static char letter[60000];
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(own);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0 ||
        getsockname(fd, (struct sockaddr *)&own, &n) < 0)
        return fd;
    for (int i = 0; i < 4; i++)
        (void)sendto(fd, letter, sizeof(letter), MSG_DONTWAIT, (const struct sockaddr *)&own, sizeof(own));
    return fd;
}

/* What there is no room for is dropped: the kernel says how much lies there. */
int
trial_memory_datagrams(const struct probe *p)
{
    uint64_t held = 0;

    trial_limits_begin();
    for (int i = 0; i < DATAGRAM_SOCKETS && held < p->limit_memory * 3; i++) {
        uint32_t memory[SK_MEMINFO_VARS] = { 0 };
        socklen_t n = sizeof(memory);
        int fd = filled();      /* the end of the process closes it */

        if (fd < 0)
            break;
        if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &n) == 0)
            held += memory[SK_MEMINFO_RMEM_ALLOC];
        if (i % 64 == 0)
            sleep_ms(1);
    }
    sleep_ms(1500);
    return held > p->limit_memory ? lived() : 0;
}

int
trial_time(const struct probe *p)
{
    (void)p;
    /* whoever does not go when it is told to */
    ignore_ends();
    trial_limits_begin();
    sleep_ms(6000);
    return lived();
}

int
trial_output(const struct probe *p)
{
    static char chunk[4096];

    memset(chunk, 'o', sizeof(chunk));
    for (uint64_t at = 0; at < p->limit_output * 2; at += sizeof(chunk))
        if (write(STDOUT_FILENO, chunk, sizeof(chunk)) <= 0 || write(STDERR_FILENO, chunk, sizeof(chunk)) <= 0)
            return 0;
    return 0;
}
