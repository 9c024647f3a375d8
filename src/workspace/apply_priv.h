/* workspace/apply_priv.h: what the files of apply share */
#ifndef CLOCHE_WORKSPACE_APPLY_PRIV_H
#define CLOCHE_WORKSPACE_APPLY_PRIV_H

#include "workspace/apply.h"

#define APPLY_SYNC_EACH 128     /* changes up to which files are synced one by one */

/* stage.c: new content, copied out of the upper layer */
struct stage {
    int fd;                         /* the stage directory */
    int upper;                      /* upper/ */
    const struct diff_input *in;
    const struct changes *c;
    const struct apply_plan *plan;
    uint32_t uid, gid;              /* of the project */
    bool chown;                     /* we are root: files are given to the project's owner */
    bool sync_each;                 /* each file by itself, not the whole file system at the end */
    struct stage_link *links;       /* inodes with several names, sorted */
    size_t n_links;
};

int stage_open(struct stage *s, const struct diff_input *in, const struct changes *c, const struct apply_plan *plan,
               int fd, struct err *err);
void stage_close(struct stage *s);
/* Build change @i, with all below it that is applied, as nSLOT. Fills @step's new_ino and new_mode. */
int stage_build(struct stage *s, size_t i, struct step *step, struct err *err);

/* The moves of an apply, and the folders in which they are made. */
struct moves {
    const struct journal *j;
    int stage, project;
    /* what follows is not there when an interrupted apply is undone */
    const struct changes *c;
    const enum fate *fate;          /* per change */
    const size_t *change_of;        /* per step */
    int *fd;                        /* per change: the folder, kept open; -1 */
    unsigned *seen, round;          /* per change: looked at in this round */
    size_t room;                    /* folders that may still be kept open */
    size_t bad;                     /* the folder that is not what it was, or CHANGE_NOT */
    bool is_git;                    /* it is a repository now */
};

/* commit.c: moving between stage and project */
void slot_name(char out[16], char letter, uint32_t slot);
/* Do the steps in order. On failure undoes those done. */
int commit_steps(struct moves *m, struct err *err);
/* Undo, in reverse order, those of the first @n steps that were done. */
int undo_steps(const struct moves *m, size_t n, struct err *err);

/* moves.c: which folders are where they were
 *
 * A change was judged by its path, and by what lies around it. Another sandbox that may write to the project can move a
 * folder, or change what is around it, until what is to be moved there is moved; from then on its guard sees that. So
 * each folder is looked at once more after that, through a descriptor, and by that one the moves in it are undone. */
int moves_open(struct moves *m, struct err *err);
void moves_close(struct moves *m);
/* The folder of change @i was found as *@found: is it the one that was judged? It is *@dir, and kept open if there is
 * room (*@found is -1 then). 0, or -1 with errno (ESTALE: another). */
int moves_keep(struct moves *m, size_t i, int *found, int *dir);
/* Whether the folder of change @i, open as @dir, and those above it are where they were, and no repositories that they
 * were not judged as: now that something was moved there, or (all) at the end. */
bool moves_stand(struct moves *m, size_t i, int dir);
bool moves_all_stand(struct moves *m);
/* Whether what came out of the folder @dir by step @i may go back there. */
bool moves_may_return(const struct moves *m, size_t i, int dir);

#endif
