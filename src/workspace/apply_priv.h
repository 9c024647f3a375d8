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

/* commit.c: moving between stage and project */
void slot_name(char out[16], char letter, uint32_t slot);
/* Do the steps in order. On failure undoes those done. */
int commit_steps(const struct journal *j, int stage, int project, const struct changes *c, const size_t *change_of,
                 struct err *err);
/* Undo, in reverse order, those of the first @n steps that were done. */
int undo_steps(const struct journal *j, size_t n, int stage, int project, struct err *err);

#endif
