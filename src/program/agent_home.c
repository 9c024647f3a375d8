/* program/agent_home.c: see agent_home.h */
#include "program/agent_home.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "program/state.h"

#define FOLDER "agents"

int
agent_home_path(const char *name, char out[PATH_MAX], struct err *err)
{
    char state[PATH_MAX];

    if (state_dir_path(state, err) < 0)
        return -1;
    if (snprintf(out, PATH_MAX, "%s/" FOLDER "/%s/home", state, name) >= PATH_MAX)
        return err_set(err, ERR_LIMIT, "agent.home", "the path of the state folder is too long");
    return 0;
}

/* The folder @name in @at, which is made. */
static int
enter(int at, const char *name, struct err *err)
{
    cleanup_close int fd = -1;

    if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "agent.home", "make the folder %s of the agent's home", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        err_sys(err, errno, "agent.home", "the folder %s of the agent's home", name);
        return err_hint(err, "`cloche agent show NAME` says where it is; look at it, and move it away");
    }
    return take_fd(&fd);
}

int
agent_home_open(const char *name, struct err *err)
{
    cleanup_close int all = state_own_open(FOLDER, "agent.home", err), own = all < 0 ? -1 : enter(all, name, err);

    return own < 0 ? -1 : enter(own, "home", err);
}

/* The folder that holds the last name of @relative, made; *@last is that name. */
static int
enter_all(int home, const char *relative, const char **last, struct err *err)
{
    cleanup_close int at = fcntl(home, F_DUPFD_CLOEXEC, 0);
    const char *slash;

    while (at >= 0 && (slash = strchr(relative, '/')) != NULL) {
        char name[NAME_MAX + 1];
        int next;
        if ((size_t)(slash - relative) > NAME_MAX)
            return err_set(err, ERR_LIMIT, "agent.home", "%s: a name is too long", relative);
        snprintf(name, sizeof(name), "%.*s", (int)(slash - relative), relative);
        next = enter(at, name, err);
        close_fd(&at);
        if (next < 0)
            return -1;
        at = next;
        relative = slash + 1;
    }
    *last = relative;
    return at < 0 ? err_sys(err, errno, "agent.home", "the agent's home") : take_fd(&at);
}

int
agent_home_place(int home, const char *relative, bool folder, struct err *err)
{
    const char *name;
    cleanup_close int at = enter_all(home, relative, &name, err), fd = -1;
    struct stat st;

    if (at < 0)
        return -1;
    if (folder)
        return (fd = enter(at, name, err)) < 0 ? -1 : 0;
    fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno == EEXIST && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)))
        return 0;
    err_set(err, ERR_DENIED, "agent.home", "%s in the agent's home is no file, and yours would be shown there",
            relative);
    return err_hint(err, "`cloche agent show NAME` says where it is; look at it, and move it away");
}

static bool
is_empty(int at, const char *name)
{
    struct stat st;

    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

void
agent_home_unplace(int home, const char *relative)
{
    const char *name;
    cleanup_close int at = enter_all(home, relative, &name, NULL);

    if (at >= 0 && is_empty(at, name))
        (void)unlinkat(at, name, 0);
}

int
agent_home_seed(int home, const char *relative, const char *text, struct err *err)
{
    const char *name;
    cleanup_close int at = enter_all(home, relative, &name, err), fd = -1;

    if (at < 0)
        return -1;
    fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return 0;
    if (fd < 0 || io_write_full(fd, text, strlen(text)) < 0)
        return err_sys(err, errno, "agent.home", "write %s in the agent's home", relative);
    return 0;
}
