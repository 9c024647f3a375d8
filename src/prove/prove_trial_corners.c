/* prove/prove_trial_corners.c: what a trial's project has that leads a rule astray (see prove_trial.h)
 *
 * Folders that nobody may search, links and files in the place of protected folders, a closed place that a mount shows
 * under another name: probe/trial_corners.c tries them.
 */
#include "prove/prove_trial.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "probe/places.h"

#define PATH_ROOM 256

static const char *const shut_folders[] = { SHUT_FOLDER, SHUT_FOLDER_TOO };

int
trial_corners_prepare(const struct plant *p, const char *dir, const char *project, const char *beside)
{
    static const char in_place[] = "a file in a folder's place\n";
    const struct plant ours = { p->bait, (uid_t)-1, p->err };
    char path[PATH_ROOM];

    for (size_t i = 0; i < ARRAY_LEN(shut_folders); i++) {
        snprintf(path, sizeof(path), "%s/token", shut_folders[i]);
        if (plant_token(p, beside, path, 'C', 0644) < 0)
            return -1;
        snprintf(path, sizeof(path), "%s/%s", beside, shut_folders[i]);
        if (chmod(path, 0) < 0)
            return err_sys(p->err, errno, "prove.trial", "%s", path);
    }
    if (plant_token(&ours, dir, "beside/token", 'C', 0644) < 0 ||
        plant_file(&ours, dir, "elsewhere/", "", 0, 0) < 0 || plant_file(p, project, "kept-codex/", "", 0, 0) < 0 ||
        plant_file(p, project, ".jj", in_place, sizeof(in_place) - 1, 0644) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/to-behind", beside);
    if (plant_token(p, beside, "behind/token", 'C', 0644) < 0 || symlink("behind", path) < 0)
        return err_sys(p->err, errno, "prove.trial", "%s", path);
    snprintf(path, sizeof(path), "%s/.codex", project);
    if (symlink("kept-codex", path) < 0 || (p->owner != (uid_t)-1 && lchown(path, p->owner, p->owner) < 0))
        return err_sys(p->err, errno, "prove.trial", "%s", path);
    return 0;
}

void
trial_corners_mount(const char *dir)
{
    char from[PATH_ROOM], to[PATH_ROOM];

    snprintf(from, sizeof(from), "%s/beside", dir);
    snprintf(to, sizeof(to), "%s/elsewhere", dir);
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0)
        (void)!mount(from, to, NULL, MS_BIND, NULL);
}

void
trial_corners_open(const char *beside)
{
    char path[PATH_ROOM];

    for (size_t i = 0; i < ARRAY_LEN(shut_folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", beside, shut_folders[i]);
        (void)!chmod(path, 0755);
    }
}
