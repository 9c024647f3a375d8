/* workspace/journal.h: what an apply is about to do to the project, so that it can be undone
 *
 * A text file in the state's directory, replaced as a whole (write, fsync, rename). While it has steps, an apply was in
 * the middle of them: they are undone, in reverse order. Without steps only the stage has to be removed.
 *
 *     cloche-apply 1 state|project STAGE
 *     new|over|remove|mode SLOT NEW_INO OLD_INO OLD_MODE NEW_MODE PATH      (PATH as quote_encode writes it)
 *     end COUNT
 */
#ifndef CLOCHE_WORKSPACE_JOURNAL_H
#define CLOCHE_WORKSPACE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define JOURNAL_FILE "journal"
#define JOURNAL_MAX  (512UL * 1024 * 1024)

enum step_kind {
    STEP_NEW,       /* stage/nSLOT → PATH, where nothing was */
    STEP_OVER,      /* stage/nSLOT ↔ PATH; the old one ends as stage/nSLOT, or oSLOT where nothing can be exchanged */
    STEP_REMOVE,    /* PATH → stage/nSLOT */
    STEP_MODE,      /* chmod of the directory PATH */
};

struct step {
    enum step_kind kind;
    uint32_t slot;
    uint64_t new_ino, old_ino;      /* 0: none */
    mode_t old_mode, new_mode;      /* with type */
    char *path;                     /* owned */
};

struct journal {
    bool in_project;        /* the stage is a directory of the project's root, not of the state */
    char stage[64];         /* its name */
    struct step *v;
    size_t n, cap;
};

#define JOURNAL_INIT { .v = NULL }
#define cleanup_journal __attribute__((cleanup(journal_free)))

void journal_free(struct journal *j);
/* Append a step; @path is copied. */
int journal_add(struct journal *j, const struct step *step, const char *path, struct err *err);

/* With @steps false only the first and the last line. 0, or -1 with @err. */
int journal_write(int state_dir, const struct journal *j, bool steps, struct err *err);
/* 1: read, 0: there is none, -1 with @err. */
int journal_read(int state_dir, struct journal *out, struct err *err);
int journal_remove(int state_dir, struct err *err);

/* The parser alone (fuzzed). False when @text is not exactly what journal_format writes. */
bool journal_parse(const char *text, size_t n, struct journal *out);
int journal_format(const struct journal *j, bool steps, struct buf *out);

#endif
