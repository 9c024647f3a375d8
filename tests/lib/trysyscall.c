/* tests/lib/trysyscall.c: what does the kernel, or the wall in front of it, answer to each system call?
 *
 *   trysyscall sweep ENTRY [SKIP,...]          every number from 0 to 1023, all arguments -1: ENTRY NUMBER RESULT
 *   trysyscall call ENTRY NUMBER [ARG...]      one call; ARG is a number (decimal, 0x…, -1) or @ for a zeroed page,
 *                                              @N for a page that begins with the 32-bit number N
 *
 * ENTRY is native, x32 (x86-64 entry with bit 30 set) or i386 (int 0x80). RESULT is ok, an errno name or number, a
 * signal (SIGSYS), `exits`, or `timeout`. Each call is made in a child of its own: with -1 for every argument
 * pointers fault, descriptors are bad and flags are invalid, so that nothing happens even where all is allowed, but
 * for vhangup(2) as root (SKIP it there). Static, so that it runs in any root.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"

#define NUMBERS   1024
#define X32_BIT   0x40000000L
#define I386_MSGGET 399
#define TIMEOUT_S 2

#if defined(MAP_32BIT)
#define LOW_MAP MAP_32BIT
#else
#define LOW_MAP 0
#endif

enum entry { NATIVE, X32, I386 };

/* Inline, never through libc's syscall(): after vfork() no function may return in the child. */
static inline __attribute__((always_inline)) long
enter(enum entry how, long nr, const long a[6])
{
#if defined(__x86_64__)
    long ret;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];

    if (how == I386) {
        __asm__ volatile("int $0x80"
                         : "=a"(ret)
                         : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
                         : "memory", "r8", "r9", "r10", "r11");
        return (long)(int)ret;
    }
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(how == X32 ? nr | X32_BIT : nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "memory", "rcx", "r11");
    return ret;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];

    (void)how;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

static const struct {
    int value;
    const char *name;
} names[] = {
    { EPERM, "EPERM" },   { ENOENT, "ENOENT" }, { ESRCH, "ESRCH" },   { EINTR, "EINTR" },   { EBADF, "EBADF" },
    { ECHILD, "ECHILD" }, { EACCES, "EACCES" }, { EFAULT, "EFAULT" }, { EINVAL, "EINVAL" }, { ENOTTY, "ENOTTY" },
    { ENOSYS, "ENOSYS" }, { EAGAIN, "EAGAIN" }, { ENOMEM, "ENOMEM" }, { EAFNOSUPPORT, "EAFNOSUPPORT" },
    { EPROTONOSUPPORT, "EPROTONOSUPPORT" },     { EOPNOTSUPP, "EOPNOTSUPP" },
    { ENOPROTOOPT, "ENOPROTOOPT" },
};

static void
print_errno(int value)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].value == value) {
            printf("%s\n", names[i].name);
            return;
        }
    printf("errno%d\n", value);
}

/* The child: exit status 0 for success, the errno otherwise; 255 is what exit(-1) itself leaves. */
static _Noreturn void
child(enum entry how, long nr, const long args[6])
{
    long ret = enter(how, nr, args);

    _exit(ret >= 0 || ret < -4095 ? 0 : (int)-ret);
}

static void
try_one(enum entry how, long nr, const long args[6])
{
    const struct timespec limit = { .tv_sec = TIMEOUT_S };
    bool timed_out = false;
    sigset_t chld;
    int status;
    pid_t pid;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        child(how, nr, args);
    if (pid < 0) {
        perror("trysyscall: fork");
        exit(125);
    }
    while (waitpid(pid, &status, WNOHANG) == 0)
        if (sigtimedwait(&chld, NULL, &limit) < 0 && errno == EAGAIN) {
            timed_out = true;
            kill(pid, SIGKILL);
        }
    if (timed_out)
        printf("timeout\n");
    else if (WIFSIGNALED(status))
        printf("SIG%s\n", sigabbrev_np(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 0)
        printf("ok\n");
    else if (WEXITSTATUS(status) == 255)
        printf("exits\n");
    else
        print_errno(WEXITSTATUS(status));
}

static bool
skipped(const char *list, long nr)
{
    const char *p = list;

    while (p != NULL && *p != '\0') {
        const char *comma = strchr(p, ',');
        size_t n = comma != NULL ? (size_t)(comma - p) : strlen(p);
        uint64_t v;

        if (!str_parse_u64((struct str){ .p = p, .n = n }, NUMBERS, &v)) {
            fprintf(stderr, "trysyscall: bad list \"%s\"\n", list);
            exit(125);
        }
        if ((long)v == nr)
            return true;
        p = comma != NULL ? comma + 1 : NULL;
    }
    return false;
}

static int
sweep(enum entry how, const char *entry, const char *skip)
{
    static const long all[6] = { -1, -1, -1, -1, -1, -1 };
    static const long no_flags[6] = { -1, 0, -1, -1, -1, -1 };

    for (long nr = 0; nr < NUMBERS; nr++) {
        /* with every flag set msgget(2) would make a queue that outlives us */
        bool msgget = how == I386 ? nr == I386_MSGGET : nr == SYS_msgget;

        if (skipped(skip, nr))
            continue;
        printf("%s\t%ld\t", entry, nr);
        try_one(how, nr, msgget ? no_flags : all);
    }
    return 0;
}

/* decimal, 0x… or, for -1, "-1" */
static uint64_t
number(const char *text)
{
    struct str s = str_of(text);
    uint64_t v = 0;

    if (strcmp(text, "-1") == 0)
        return UINT64_MAX;
    if (str_starts(s, STR_LIT("0x")) ? !str_parse_hex((struct str){ .p = s.p + 2, .n = s.n - 2 }, UINT64_MAX, &v)
                                     : !str_parse_u64(s, UINT64_MAX, &v)) {
        fprintf(stderr, "trysyscall: bad number \"%s\"\n", text);
        exit(125);
    }
    return v;
}

static long
argument(const char *text)
{
    uint32_t first = 0;
    void *page;

    if (text[0] != '@')
        return (long)number(text);
    /* below 4 GiB, so that the same address is good through int 0x80 */
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | LOW_MAP, -1, 0);
    if (page == MAP_FAILED)
        exit(125);
    if (text[1] != '\0')
        first = (uint32_t)number(text + 1);
    memcpy(page, &first, sizeof(first));
    return (long)page;
}

int
main(int argc, char **argv)
{
    const struct rlimit none = { 0, 0 };
    long args[6] = { 0 };
    enum entry how;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    setrlimit(RLIMIT_CORE, &none);
    if (argc < 3)
        return 125;
    how = strcmp(argv[2], "x32") == 0 ? X32 : strcmp(argv[2], "i386") == 0 ? I386 : NATIVE;
#if !defined(__x86_64__)
    if (how != NATIVE)
        return 125;
#endif
    if (strcmp(argv[1], "sweep") == 0)
        return sweep(how, argv[2], argc > 3 ? argv[3] : NULL);
    if (strcmp(argv[1], "call") != 0 || argc < 4 || argc > 10)
        return 125;
    for (int i = 4; i < argc; i++)
        args[i - 4] = argument(argv[i]);
    try_one(how, argument(argv[3]), args);
    return 0;
}
