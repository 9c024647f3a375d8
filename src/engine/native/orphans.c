/* engine/native/orphans.c: what a sandbox in light mode leaves behind (see orphans.h) */
#include "engine/native/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"

#define TEXT_MAX (1 << 20)      /* of the list of children: some 130,000 */
#define ROUNDS   1000

/* The children of this process: each number is followed by a space (proc_tid_children(5)). */
static int
children(struct buf *text)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    return io_read_file(AT_FDCWD, path, text);
}

/* Takes the next number off @rest; false at its end. */
static bool
next_child(struct str *rest, pid_t *pid)
{
    while (rest->n > 0) {
        uint64_t n;
        size_t i = 0;
        struct str word;

        while (i < rest->n && rest->p[i] != ' ')
            i++;
        word = (struct str){ rest->p, i };
        i += i < rest->n ? 1 : 0;
        *rest = (struct str){ rest->p + i, rest->n - i };
        if (str_parse_u64(word, INT32_MAX, &n)) {
            *pid = (pid_t)n;
            return true;
        }
    }
    return false;
}

int
orphans_begin(pid_t **earlier, size_t *n, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
    struct str rest;
    pid_t pid;

    *earlier = NULL;
    *n = 0;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(err, errno, "wall.light.subreaper", "PR_SET_CHILD_SUBREAPER");
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
    if (children(&text) < 0 || text.n == 0)
        return 0;       /* where there is no list, orphans_kill finds none either */
    *earlier = calloc(text.n, sizeof(**earlier));       /* fewer numbers than bytes */
    if (*earlier == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (rest = (struct str){ (char *)text.p, text.n }; next_child(&rest, &pid); (*n)++)
        (*earlier)[*n] = pid;
    return 0;
}

static bool
is_earlier(const pid_t *earlier, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (earlier[i] == pid)
            return true;
    return false;
}

void
orphans_kill(const pid_t *earlier, size_t n, pid_t janitor)
{
    for (int round = 0; round < ROUNDS; round++) {
        cleanup_buf struct buf text = BUF_INIT(TEXT_MAX);
        struct str rest;
        bool any = false;
        pid_t pid;

        if (children(&text) < 0)
            return;
        for (rest = (struct str){ (char *)text.p, text.n }; next_child(&rest, &pid);) {
            if (pid == janitor || is_earlier(earlier, n, pid))
                continue;
            any = true;
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        if (!any)
            return;
    }
}
