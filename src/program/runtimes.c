/* program/runtimes.c: see runtimes.h */
#include "program/runtimes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "program/caller.h"

#define SYSTEM_FOLDER "/etc/cloche/runtimes.d"
#define ENDING        ".yaml"
#define ARENA_FIRST   4096

void
runtimes_free(struct runtimes *r)
{
    arena_free(r->arena);
    *r = (struct runtimes){ .n = 0 };
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

/* @fd is root's or our own, and nobody else can write to it. */
static int
check_owner(int fd, const char *path, bool folder, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "runtime.read", "%s", path);
    if (!(folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
        return err_set(err, ERR_POLICY, "runtime.read", "%s is no %s", path, folder ? "folder" : "file");
    if ((st.st_uid == 0 || st.st_uid == geteuid()) && (st.st_mode & 022) == 0)
        return 0;
    err_set(err, ERR_DENIED, "runtime.unsafe", "%s is another user's, or others can write to it", path);
    return err_hint(err, "chmod go-w %s; it has to belong to you or to root", path);
}

static int
add_file(struct runtimes *r, int dir, const char *folder, const char *file, struct err *err)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    cleanup_buf struct buf text = BUF_INIT(RUNTIME_FILE_MAX);
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t length = strlen(file) - strlen(ENDING);

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    snprintf(name, sizeof(name), "%.*s", (int)length, file);
    if (fd < 0)
        return err_sys(err, errno, "runtime.read", "%s", path);
    if (check_owner(fd, path, false, err) < 0)
        return -1;
    if (io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "runtime.read", "%s (at most %d bytes)", path, RUNTIME_FILE_MAX);
    if (r->n == LANGUAGES_MORE)
        return err_set(err, ERR_LIMIT, "runtime.many", "%s: more than %d languages", path, LANGUAGES_MORE);
    if (runtime_parse(r->arena, path, name, (struct str){ (const char *)text.p, text.n }, &r->rows[r->n], err) < 0)
        return -1;
    if (language_in(r->rows, r->n, name) != NULL || language_in(r->rows, r->n, r->rows[r->n].alias) != NULL)
        return err_set(err, ERR_POLICY, "runtime.taken", "%s: another file has that name or alias", path);
    r->n++;
    return 0;
}

/* --- a folder ----------------------------------------------------------------------------------------------------- */

static int
is_runtime(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return e->d_name[0] != '.' && n > strlen(ENDING) && strcmp(e->d_name + n - strlen(ENDING), ENDING) == 0;
}

static int
add_folder(struct runtimes *r, const char *folder, struct err *err)
{
    cleanup_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **found = NULL;
    int n, result = 0;

    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
               ? 0 : err_sys(err, errno, "runtime.read", "%s", folder);
    if (check_owner(dir, folder, true, err) < 0)
        return -1;
    n = scandir(folder, &found, is_runtime, alphasort);
    if (n < 0)
        return err_sys(err, errno, "runtime.read", "%s", folder);
    for (int i = 0; i < n; i++) {
        if (result == 0)
            result = add_file(r, dir, folder, found[i]->d_name, err);
        free(found[i]);
    }
    free(found);
    return result;
}

static int
own_folder(char out[PATH_MAX], const char *home)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    int n = -1;

    if (config != NULL && config[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/cloche/runtimes.d", config);
    else if (home != NULL)
        n = snprintf(out, PATH_MAX, "%s/.config/cloche/runtimes.d", home);
    return n > 0 && n < PATH_MAX ? 0 : -1;
}

int
runtimes_load(struct runtimes *r, struct err *err)
{
    struct policy_host host;
    char own[PATH_MAX];

    *r = (struct runtimes){ .arena = arena_new(ARENA_FIRST) };
    if (r->arena == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (cli_host(&host, err) == 0 && add_folder(r, SYSTEM_FOLDER, err) == 0 &&
        (own_folder(own, host.home) < 0 || add_folder(r, own, err) == 0))
        return 0;
    runtimes_free(r);
    return -1;
}

const struct language *
runtimes_find(const char *name, struct err *err)
{
    static struct runtimes own;
    uint8_t room[256];
    cleanup_buf struct buf list = BUF_INIT_IN(room, LANGUAGES_MORE * (RUNTIME_NAME_MAX + 2) + sizeof(room));
    const struct language *found = language_find(name);

    if (found != NULL)
        return found;
    if (own.arena == NULL && runtimes_load(&own, err) < 0)
        return NULL;
    language_more(own.rows, own.n);
    found = language_find(name);
    if (found != NULL)
        return found;
    language_names(&list, ", ");
    if (buf_nul(&list) < 0)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    else if (name == NULL)
        err_set(err, ERR_USAGE, "cli.language", "which language? --language is one of %s", (const char *)list.p);
    else
        err_set(err, ERR_USAGE, "cli.language", "--language \"%s\" is not one of %s", name, (const char *)list.p);
    return NULL;
}
