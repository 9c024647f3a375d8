/* prove/prove_trial_plant.c: what a trial finds: a project, a home full of credentials, tokens (see prove_trial.h) */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/places.h"
#include "prove/prove.h"
#include "prove/prove_trial.h"

static int
planted(const struct plant *p, int fd, const char *path, mode_t mode)
{
    if (fd < 0 || fchmod(fd, mode) < 0 || (p->owner != (uid_t)-1 && fchown(fd, p->owner, p->owner) < 0))
        return err_sys(p->err, errno, "prove.trial", "%s", path);
    return 0;
}

int
plant_file(const struct plant *p, const char *base, const char *name, const void *data, size_t size, mode_t mode)
{
    char path[512];
    size_t base_n = strlen(base) + 1;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", base, name) >= sizeof(path))
        return err_set(p->err, ERR_LIMIT, "prove.trial", "%s is too long", name);
    for (char *at = path + base_n; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        bool made = mkdir(path, 0755) == 0;
        cleanup_close int dir = made ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if ((made && planted(p, dir, path, 0755) < 0) || (!made && errno != EEXIST))
            return made ? -1 : err_sys(p->err, errno, "prove.trial", "%s", path);
        *at = '/';
    }
    if (path[strlen(path) - 1] == '/')
        return 0;
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && io_write_full(fd, data, size) < 0)
        return err_sys(p->err, errno, "prove.trial", "%s", path);
    return planted(p, fd, path, mode);
}

static void
token_text(const struct plant *p, const char *name, char kind, char text[BAIT_TOKEN_SIZE + 1])
{
    int n = snprintf(text, BAIT_TOKEN_SIZE + 1, "%s:%c:%s", p->bait->name, kind, name);

    for (; n < BAIT_TOKEN_SIZE; n++)
        text[n] = '.';
    text[BAIT_TOKEN_SIZE] = '\0';
}

int
plant_token(const struct plant *p, const char *base, const char *name, char kind, mode_t mode)
{
    char text[BAIT_TOKEN_SIZE + 1];

    token_text(p, name, kind, text);
    return plant_file(p, base, name, text, BAIT_TOKEN_SIZE, mode);
}

int
plant_home(const struct plant *p, const char *home)
{
    static const char *const open_[] = { ".config/app/settings", ".cache/app/data", "notes.txt", "Documents/letter" };

    for (size_t i = 0; i < ARRAY_LEN(closed_places); i++)
        if (plant_token(p, home, closed_places[i], 'C', 0644) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(open_); i++)
        if (plant_token(p, home, open_[i], 'O', 0666) < 0)
            return -1;
    return 0;
}

int
plant_project(const struct plant *p, const char *project)
{
    static const struct { const char *name, *text; } files[] = {
        { "README", TRIAL_README },
        { ".git/HEAD", "ref: refs/heads/main\n" },
        { ".git/config", TRIAL_CONFIG },
        { ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n" },
        { ".git/objects/", "" },
        { ".git/refs/heads/", "" },
        { ".git/info/exclude", "\n" },
        { "sub/.git/HEAD", "ref: refs/heads/main\n" },
        { "sub/.git/config", "[core]\n\tbare = false\n\thooksPath = husky\n" },
        /* as a clone may bring it: no repository that is the owner's */
        { "brought/inner/HEAD", "ref: refs/heads/main\n" },
        { "brought/inner/config", "[core]\n\tfsmonitor = touch ran\n" },
        { "brought/inner/objects/", "" },
        { "brought/inner/refs/", "" },
        { "sub/.git/hooks/post-checkout", "#!/bin/sh\nexit 0\n" },
        { "sub/.git/objects/", "" },
        { "sub/.git/refs/", "" },
        { ".bashrc", "# nothing\n" },
        { ".gitmodules", "\n" },
        { ".vscode/tasks.json", "{}\n" },
        { "closed/file", "denied for writing\n" },
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (plant_file(p, project, files[i].name, files[i].text, strlen(files[i].text), 0644) < 0)
            return -1;
    return 0;
}
