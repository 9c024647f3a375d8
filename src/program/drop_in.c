/* program/drop_in.c: see drop_in.h */
#include "program/drop_in.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"

#define ENDING ".yaml"

/* @fd is root's, our own or @d's owner's, and nobody else can write to it. What is in the folder of a build may be its
 * group's too. */
static int
check_owner(const struct drop_in *d, int fd, const char *path, bool folder, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, d->read, "%s", path);
    if (!(folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
        return err_set(err, ERR_POLICY, d->read, "%s is no %s", path, folder ? "folder" : "file");
    if ((st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == d->owner) &&
        (st.st_mode & (d->owner != 0 ? 002 : 022)) == 0)
        return 0;
    err_set(err, ERR_DENIED, d->unsafe, "%s is another user's, or others can write to it", path);
    return err_hint(err, "chmod go-w %s; it has to belong to you or to root", path);
}

static int
take_file(const struct drop_in *d, int dir, const char *folder, const char *file, struct err *err)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    cleanup_buf struct buf text = BUF_INIT(d->max);
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    size_t length = strlen(file) - strlen(ENDING);

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    snprintf(name, sizeof(name), "%.*s", (int)length, file);
    if (fd < 0 && errno == ELOOP) {
        err_set(err, ERR_DENIED, d->unsafe, "%s is a link: where it leads somebody else may be able to write", path);
        return err_hint(err, "put the file itself there");
    }
    if (fd < 0)
        return err_sys(err, errno, d->read, "%s", path);
    if (check_owner(d, fd, path, false, err) < 0)
        return -1;
    if (io_read_all(fd, &text) < 0)
        return err_sys(err, errno, d->read, "%s (at most %zu bytes)", path, d->max);
    return d->take(d->ctx, path, name, (struct str){ (const char *)text.p, text.n }, err);
}

static int
is_one(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return e->d_name[0] != '.' && n > strlen(ENDING) && strcmp(e->d_name + n - strlen(ENDING), ENDING) == 0;
}

/* Each file *.yaml of @folder, in the order of names; a folder that is not there has none. 0 or -1 with @err. */
static int
drop_in_read(const struct drop_in *d, const char *folder, struct err *err)
{
    cleanup_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent **found = NULL;
    int n, result = 0;

    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : err_sys(err, errno, d->read, "%s", folder);
    if (check_owner(d, dir, folder, true, err) < 0)
        return -1;
    n = scandir(folder, &found, is_one, alphasort);
    if (n < 0)
        return err_sys(err, errno, d->read, "%s", folder);
    for (int i = 0; i < n; i++) {
        if (result == 0)
            result = take_file(d, dir, folder, found[i]->d_name, err);
        free(found[i]);
    }
    free(found);
    return result;
}

int
drop_in_came_with(const struct drop_in *d, const char *name, struct err *err)
{
    /* of a program in bin, of one in libexec/cloche, of one in a build folder */
    static const char *const places[] = { "../share/cloche", "../../share/cloche", "../../share" };
    char self[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct drop_in theirs = *d;
    struct stat st;

    if (n <= 0 || stat("/proc/self/exe", &st) < 0)
        return err_sys(err, errno, d->read, "/proc/self/exe");
    theirs.owner = st.st_uid;
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (snprintf(folder, sizeof(folder), "%s/%s/%s", self, places[i], name) < PATH_MAX &&
            realpath(folder, real) != NULL)
            return drop_in_read(&theirs, real, err);
    return 0;
}

int
drop_in_added(const struct drop_in *d, const char *name, const char *home, struct err *err)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "/etc/cloche/%s", name);
    if (drop_in_read(d, folder, err) < 0)
        return -1;
    return drop_in_own(name, home, folder) < 0 ? 0 : drop_in_read(d, folder, err);
}

int
drop_in_own(const char *name, const char *home, char out[PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME");
    int n = -1;

    if (config != NULL && config[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/cloche/%s", config, name);
    else if (home != NULL)
        n = snprintf(out, PATH_MAX, "%s/.config/cloche/%s", home, name);
    return n > 0 && n < PATH_MAX ? 0 : -1;
}
