/* program/caller.c: see caller.h */
#include "program/caller.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "engine/engine.h"
#include "match/path.h"
#include "program/state.h"

static uint64_t
memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* Where the vault keeps its store (vault/store_disk.c) when that is not ~/.local/share/cloche. */
static const char *
store_folder(void)
{
    static char folder[PATH_MAX];
    const char *data = getenv("XDG_DATA_HOME");

    if (data != NULL && data[0] == '/')
        return snprintf(folder, sizeof(folder), "%s/cloche", data) < (int)sizeof(folder) ? folder : NULL;
    return geteuid() == 0 ? "/var/lib/cloche" : NULL;
}

/* For a caller without HOME (a service, a CI job): places for credentials are below it all the same. From the file
 * alone, since a static program cannot ask the system's other sources. */
static const char *
home_of(uid_t uid, char home[PATH_MAX])
{
    cleanup_file FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry;
    size_t n;

    while (file != NULL && (entry = fgetpwent(file)) != NULL)
        if (entry->pw_uid == uid && entry->pw_dir[0] == '/')
            return path_normalise(str_of(entry->pw_dir), STR_LIT(""), false, home, PATH_MAX, &n) == PATH_OK
                       ? home : NULL;
    return NULL;
}

static const char *
home_of_owner(const char *path)
{
    static char home[PATH_MAX];
    struct stat st;

    return stat(path, &st) == 0 && st.st_uid != geteuid() ? home_of(st.st_uid, home) : NULL;
}

/* Where HOME goes up again by "..", perhaps behind a link, it is the real place that counts. */
static const char *
home_of_variable(void)
{
    static char real[PATH_MAX];
    const char *home = getenv("HOME");

    if (home == NULL || home[0] != '/')
        return NULL;
    return strstr(home, "/..") != NULL && realpath(home, real) != NULL ? real : home;
}

/* How the names of the caller's variables begin: over a hundred are asked for, and few are there. */
static bool beginnings[512];

static bool *
beginning_of(const char *name)
{
    unsigned sum = 0;

    for (size_t i = 0; i < 5 && name[i] != '\0' && name[i] != '='; i++)
        sum = sum * 5 + (unsigned char)name[i];
    return &beginnings[sum % ARRAY_LEN(beginnings)];
}

static const char *
variable(const char *name)
{
    return *beginning_of(name) ? getenv(name) : NULL;
}

int
cli_host(struct policy_host *host, struct err *err)
{
    static char cwd[PATH_MAX], state[PATH_MAX], account[PATH_MAX];
    const char *home = home_of_variable();

    if (getcwd(cwd, sizeof(cwd)) == NULL)
        return err_sys(err, errno, "cli.cwd", "the working directory");
    if (cwd[0] != '/')
        return err_set(err, ERR_SYSTEM, "cli.cwd", "the working directory is not reachable from the root");
    host->cwd = cwd;
    host->account_home = home_of(geteuid(), account);
    host->home = home != NULL ? home : host->account_home;
    host->home_of_owner = geteuid() == 0 ? home_of_owner : NULL;
    for (char **v = environ; v != NULL && *v != NULL; v++)
        *beginning_of(*v) = true;
    host->variable = variable;
    host->uid = geteuid();
    host->state = state_dir_path(state, NULL) == 0 ? state : NULL;
    host->store = store_folder();
    host->kept_home = NULL;
    host->protect = NULL;
    host->memory_total = memory_total();
    host->engines = engine_names();
    return 0;
}
