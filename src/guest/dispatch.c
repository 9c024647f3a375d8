/* guest/dispatch.c: what the host may say, and when */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "guest/deny.h"
#include "guest/guard_link.h"
#include "guest/guest.h"

static int
on_setup(void *ctx, const struct frame *f)
{
    struct guest *g = ctx;
    struct msg_setup m;

    if (f->channel != 0 || !msg_get_setup(f, &m) || m.version != GUEST_PROTOCOL_VERSION)
        return -1;
    g->light = (m.flags & MSG_SETUP_LIGHT) != 0;
    /* Without a pid namespace, orphans would go to the host's init and out of our sight; and the guest must outlive its
     * host by a moment, since nobody else ends what runs here (it sees the end of its transport, also when it was
     * stopped). */
    if (g->light && (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0) < 0))
        return -1;
    /* The commands' own Landlock domain needs it (child.c), and the launcher did it already. */
    if (g->light && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    /* "Kill all" is kill(-1) unless light: only process 1 of a namespace may mean it. */
    if (!g->light && !g->pid1)
        return -1;
    g->memory_limit = m.memory_limit;
    g->pids_limit = m.pids_limit;
    g->sample_ms = m.sample_ms;
    memcpy(g->root_path, m.root, strlen(m.root) + 1);
    /* Opened before any command runs: what the path names later is the commands' choice. */
    if (m.root[0] != '\0')
        g->root = openat(AT_FDCWD, m.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (m.root[0] != '\0' && g->root < 0)
        return -1;
    deny_setup(m.denied, m.n_denied);
    if (guard_link_setup(g, m.guard, m.guard_n) < 0)
        return -1;
    g->gate.state = GUEST_READY;
    return 0;
}

#define HANDLER(name, function)                         \
    static int name(void *ctx, const struct frame *f)   \
    {                                                   \
        return function((struct guest *)ctx, f);        \
    }
HANDLER(on_exec, exec_on_exec)
HANDLER(on_connect, connect_on_connect)
HANDLER(on_stdin, relay_on_stdin)
HANDLER(on_stdin_close, relay_on_stdin_close)
HANDLER(on_window, relay_on_window)
HANDLER(on_resize, relay_on_resize)
HANDLER(on_signal, reap_on_signal)
HANDLER(on_kill_all, reap_on_kill_all)
HANDLER(on_file, files_on_request)
HANDLER(on_file_chunk, files_on_chunk)
HANDLER(on_file_end, files_on_end)
HANDLER(on_file_cancel, files_on_cancel)
HANDLER(on_file_more, changes_on_more)
#undef HANDLER

#define READY GUEST_READY
#define EXEC_MIN (24 + 5 + 4 + 5 + 4)
#define FILE_MIN (21 + 5 + 5)
#define FILE_MAX (21 + 2 * (MSG_PATH_MAX + 5))

static const struct msg_rule guest_rules[] = {
    /* type              once   flags  permitted      shortest   longest         handler */
    { MSG_SETUP,         true,  0,     GUEST_FRESH,   30,        MSG_SETUP_MAX,  on_setup },
    { MSG_EXEC,          false, 0,     READY,         EXEC_MIN,  MSG_EXEC_MAX,   on_exec },
    { MSG_STDIN,         false, 0,     READY,         1,         MSG_DATA_MAX,   on_stdin },
    { MSG_STDIN_CLOSE,   false, 0,     READY,         0,         0,              on_stdin_close },
    { MSG_WINDOW,        false, 0,     READY,         5,         5,              on_window },
    { MSG_RESIZE,        false, 0,     READY,         4,         4,              on_resize },
    { MSG_SIGNAL,        false, 0,     READY,         5,         5,              on_signal },
    { MSG_KILL_ALL,      false, 0,     READY,         4,         4,              on_kill_all },
    { MSG_CONNECT,       false, 0,     READY,         6,         6,              on_connect },
    { MSG_FILE_READ,     false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_WRITE,    false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_CHUNK,    false, 0,     READY,         1,         MSG_DATA_MAX,   on_file_chunk },
    { MSG_FILE_END,      false, 0,     READY,         0,         0,              on_file_end },
    { MSG_FILE_CANCEL,   false, 0,     READY,         0,         0,              on_file_cancel },
    { MSG_FILE_LIST,     false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_STAT,     false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_REMOVE,   false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_MKDIR,    false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_RENAME,   false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_WATCH,    false, 0,     READY,         FILE_MIN,  FILE_MAX,       on_file },
    { MSG_FILE_MORE,     false, 0,     READY,         4,         4,              on_file_more },
};

void
guest_gate_init(struct msg_gate *gate)
{
    *gate = (struct msg_gate){ .rules = guest_rules, .n_rules = ARRAY_LEN(guest_rules),
                               .state = GUEST_FRESH };
}

int
guest_dispatch(struct guest *g, int *code)
{
    struct link *l = &g->link;

    for (;;) {
        enum msg_verdict v;
        struct frame f;
        size_t need;
        int rc;

        if (l->in_at == l->in.n)
            return 0;
        rc = msg_next(&g->gate, l->in.p + l->in_at, l->in.n - l->in_at, &f, &need, &v);
        if (rc == 0)
            return 0;
        if (rc > 0)
            v = msg_dispatch(&g->gate, &f, g);
        if (rc < 0 || v != MSG_OK) {
            *code = buf_ok(&l->out) ? GUEST_EXIT_PROTOCOL : GUEST_EXIT_SYSTEM;
            return -1;
        }
        l->in_at += need;
    }
}
