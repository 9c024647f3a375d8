/* workspace/journal.c: see journal.h */
#include "workspace/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "workspace/quote.h"

#define MODE_MAX 0177777    /* type and permission bits */

static const char *const kinds[] = { "new", "over", "remove", "mode" };

void
journal_free(struct journal *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->v[i].path);
    free(j->v);
    *j = (struct journal)JOURNAL_INIT;
}

static int
workspace_journal_add(struct journal *j, const struct step *step, char *path)
{
    if (j->n == j->cap) {
        size_t cap = j->cap > 0 ? j->cap * 2 : 64;
        struct step *grown = reallocarray(j->v, cap, sizeof(*grown));
        if (grown == NULL)
            return -1;
        j->v = grown;
        j->cap = cap;
    }
    j->v[j->n] = *step;
    j->v[j->n++].path = path;
    return 0;
}

int
journal_add(struct journal *j, const struct step *step, const char *path, struct err *err)
{
    char *copy = strdup(path);

    if (copy == NULL || workspace_journal_add(j, step, copy) < 0) {
        free(copy);
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    }
    return 0;
}

int
journal_format(const struct journal *j, bool steps, struct buf *out)
{
    size_t n = steps ? j->n : 0;

    buf_printf(out, "cloche-apply 1 %s %s\n", j->in_project ? "project" : "state", j->stage);
    for (size_t i = 0; i < n; i++) {
        const struct step *s = &j->v[i];
        buf_printf(out, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 " %u %u ", kinds[s->kind], s->slot, s->new_ino,
                   s->old_ino,
                   (unsigned)s->old_mode, (unsigned)s->new_mode);
        quote_encode(out, str_of(s->path));
        buf_puts(out, "\n");
    }
    return buf_printf(out, "end %zu\n", n);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* Cut the next word, ended by @by, off @text. */
static bool
word(struct str *text, char by, struct str *out)
{
    const char *end = text->n > 0 ? memchr(text->p, by, text->n) : NULL;

    if (end == NULL || end == text->p)
        return false;
    *out = (struct str){ .p = text->p, .n = (size_t)(end - text->p) };
    *text = (struct str){ .p = end + 1, .n = text->n - out->n - 1 };
    return true;
}

static bool
number(struct str *text, uint64_t max, uint64_t *out)
{
    struct str w;

    return word(text, ' ', &w) && str_parse_u64(w, max, out);
}

/* A path below the project: relative, no empty, "." or ".." component. */
static bool
path_sound(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (path[n] == '\0')
            return true;
        path += n + 1;
    }
}

static bool
parse_step(struct str line, struct journal *out)
{
    cleanup_buf struct buf path = BUF_INIT(PATH_MAX);
    uint64_t slot, old_mode, new_mode;
    struct step step = { .kind = STEP_NEW };
    struct str kind;
    size_t k = 0;

    if (!word(&line, ' ', &kind))
        return false;
    while (k < ARRAY_LEN(kinds) && !str_eq_c(kind, kinds[k]))
        k++;
    if (k == ARRAY_LEN(kinds) || !number(&line, UINT32_MAX, &slot) ||
        !number(&line, UINT64_MAX, &step.new_ino) || !number(&line, UINT64_MAX, &step.old_ino) ||
        !number(&line, MODE_MAX, &old_mode) || !number(&line, MODE_MAX, &new_mode) || quote_decode(&path, line) < 0 ||
        buf_nul(&path) < 0 || !path_sound((const char *)path.p))
        return false;
    step.kind = (enum step_kind)k;
    step.slot = (uint32_t)slot;
    step.old_mode = (mode_t)old_mode;
    step.new_mode = (mode_t)new_mode;
    return journal_add(out, &step, (const char *)path.p, NULL) == 0;
}

static bool
parse_header(struct str line, struct journal *out)
{
    struct str magic, version, place;

    if (!word(&line, ' ', &magic) || !str_eq_c(magic, "cloche-apply") || !word(&line, ' ', &version) ||
        !str_eq_c(version, "1") || !word(&line, ' ', &place) ||
        (!str_eq_c(place, "project") && !str_eq_c(place, "state")) || line.n == 0 || line.n >= sizeof(out->stage))
        return false;
    for (size_t i = 0; i < line.n; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", line.p[i]) == NULL || line.p[i] == '\0')
            return false;
    memcpy(out->stage, line.p, line.n);
    out->stage[line.n] = '\0';
    out->in_project = str_eq_c(place, "project");
    return strcmp(out->stage, ".") != 0 && strcmp(out->stage, "..") != 0;
}

static bool
parse_lines(struct str text, struct journal *out)
{
    struct str line;
    uint64_t count;

    if (!word(&text, '\n', &line) || !parse_header(line, out))
        return false;
    while (word(&text, '\n', &line)) {
        if (str_starts(line, STR_LIT("end "))) {
            line = (struct str){ .p = line.p + 4, .n = line.n - 4 };
            return text.n == 0 && str_parse_u64(line, UINT64_MAX, &count) && count == out->n;
        }
        if (!parse_step(line, out))
            return false;
    }
    return false;
}

bool
journal_parse(const char *text, size_t n, struct journal *out)
{
    *out = (struct journal)JOURNAL_INIT;
    if (parse_lines((struct str){ .p = text, .n = n }, out))
        return true;
    journal_free(out);
    return false;
}

/* --- the file --------------------------------------------------------------------------------------------------- */

int
journal_write(int state_dir, const struct journal *j, bool steps, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(JOURNAL_MAX);

    if (journal_format(j, steps, &text) < 0)
        return err_set(err, ERR_LIMIT, "workspace.apply.journal", "the journal of this apply would be too large");
    cleanup_close int fd = openat(state_dir, JOURNAL_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                  0600);
    if (fd < 0 || io_write_full(fd, text.p, text.n) < 0 || fsync(fd) < 0 ||
        renameat(state_dir, JOURNAL_FILE ".new", state_dir, JOURNAL_FILE) < 0 || fsync(state_dir) < 0)
        return err_sys(err, errno, "workspace.apply.journal", "cannot write the journal");
    return 0;
}

int
journal_read(int state_dir, struct journal *out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(JOURNAL_MAX);
    cleanup_close int fd = openat(state_dir, JOURNAL_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || io_read_all(fd, &text) < 0)
        return err_sys(err, errno, "workspace.apply.journal", "cannot read the journal of an interrupted apply");
    if (!journal_parse((const char *)text.p, text.n, out))
        return err_set(err, ERR_PROTOCOL, "workspace.apply.journal", "the journal of an interrupted apply is damaged");
    return 1;
}

int
journal_remove(int state_dir, struct err *err)
{
    if (unlinkat(state_dir, JOURNAL_FILE, 0) < 0 && errno != ENOENT)
        return err_sys(err, errno, "workspace.apply.journal", "cannot remove the journal");
    return 0;
}
