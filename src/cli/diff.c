/* cli/diff.c: cloche diff */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/cow_common.h"
#include "program/say.h"
#include "program/verb.h"
#include "workspace/patch.h"
#include "workspace/quote.h"

#define STAT_WIDTH 40       /* columns of the longest bar */

struct diff_options {
    bool json, stat, name_only, list;
};

/* --- the list of states ----------------------------------------------------------------------------------------- */

static void
print_state(const struct cow_info *s)
{
    cleanup_buf struct buf name = BUF_INIT(65536);
    char when[32] = "";
    struct tm tm;

    if (localtime_r(&s->created.tv_sec, &tm) != NULL)
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    if (s->project != NULL)
        quote_name(&name, "", str_of(s->project));
    else
        buf_puts(&name, s->busy ? "(being made)" : "(damaged: discard it)");
    printf("%.12s  %s  %.*s%s%s\n", s->id, when, (int)name.n, (const char *)name.p, s->busy ? "  [running]" : "",
           s->interrupted ? "  [apply interrupted]" : "");
}

static int
list_states(bool json, struct err *err)
{
    struct cow_info *list;
    ssize_t n = cow_list(&list, err);

    if (n < 0)
        return -1;
    json_t *array = json ? json_array() : NULL;
    for (ssize_t i = 0; i < n; i++) {
        struct cow_info *s = &list[i];
        if (!json) {
            print_state(s);
            continue;
        }
        struct cow_state state = { .project = s->project, .created = s->created };
        json_t *row = json_object();
        memcpy(state.id, s->id, sizeof(state.id));
        cow_json_state(row, &state);
        json_object_set_new(row, "running", json_boolean(s->busy));
        json_object_set_new(row, "interrupted", json_boolean(s->interrupted));
        json_array_append_new(array, row);
    }
    cow_list_free(list, (size_t)n);
    if (json)
        return cli_json_print(json_pack("{s:i, s:o}", "version", 1, "states", array), err);
    if (n == 0)
        fprintf(stderr, "cloche: there are no copy-on-write states\n");
    return cli_flush(err);
}

/* --- one state -------------------------------------------------------------------------------------------------- */

static void
print_notes(const struct changes *c)
{
    cleanup_buf struct buf name = BUF_INIT(65536);

    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i)) {
        for (unsigned flag = 1; flag != 0 && flag <= c->v[i].flags; flag <<= 1) {
            if ((c->v[i].flags & flag) == 0 || cow_quoted(c, i, &name) < 0)
                continue;
            fprintf(stderr, "cloche: note: %s: %s\n", (const char *)name.p, cow_reason(flag));
        }
    }
}

static int
print_names(const struct changes *c)
{
    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i))
        cow_print_change(c, i);
    return 0;
}

struct stat_row {
    size_t i;
    struct patch_count count;
};

static void
print_bar(const struct patch_count *n, uint64_t most, bool colour)
{
    uint64_t scale = most > STAT_WIDTH ? most : STAT_WIDTH;
    int plus = (int)(n->added * STAT_WIDTH / scale), minus = (int)(n->removed * STAT_WIDTH / scale);

    plus += plus == 0 && n->added > 0;
    minus += minus == 0 && n->removed > 0;
    printf("%s%.*s%s%.*s%s", colour ? "\033[32m" : "", plus, "+++++++++++++++++++++++++++++++++++++++++",
           colour ? "\033[31m" : "",
           minus, "-----------------------------------------", colour ? "\033[m" : "");
}

static void
print_stat_rows(const struct changes *c, const struct stat_row *rows, size_t n)
{
    cleanup_buf struct buf name = BUF_INIT(65536);
    bool colour = cli_colour(STDOUT_FILENO);
    uint64_t added = 0, removed = 0, most = 0;

    for (size_t k = 0; k < n; k++) {
        uint64_t lines = rows[k].count.added + rows[k].count.removed;
        most = lines > most ? lines : most;
    }
    for (size_t k = 0; k < n; k++) {
        const struct stat_row *r = &rows[k];
        if (cow_quoted(c, r->i, &name) < 0)
            continue;
        printf(" %c %-50s | ", cow_letter(&c->v[r->i]), (const char *)name.p);
        if (r->count.binary) {
            printf("binary");
        } else {
            printf("%llu ", (unsigned long long)(r->count.added + r->count.removed));
            print_bar(&r->count, most, colour);
        }
        putchar('\n');
        added += r->count.added;
        removed += r->count.removed;
    }
    printf(" %zu changed, %llu lines added, %llu removed\n", n, (unsigned long long)added, (unsigned long long)removed);
}

static int
print_stat(const struct cow_view *view, struct err *err)
{
    const struct changes *c = &view->changes;
    cleanup_free struct stat_row *rows = calloc(c->n + 1, sizeof(*rows));
    size_t n = 0;

    if (rows == NULL)
        return err_set(err, ERR_SYSTEM, "workspace.memory", "no memory");
    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i)) {
        if (cow_told_elsewhere(&c->v[i]))
            continue;
        rows[n].i = i;
        if (patch_count(&view->in, c, i, &rows[n].count, err) < 0)
            return -1;
        n++;
    }
    print_stat_rows(c, rows, n);
    return 0;
}

static int
print_patches(const struct cow_view *view, struct err *err)
{
    const struct patch_style style = { .colour = cli_colour(STDOUT_FILENO), .terminal = isatty(STDOUT_FILENO) != 0 };
    cleanup_buf struct buf text = BUF_INIT(PATCH_TEXT_MAX);
    const struct changes *c = &view->changes;

    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i)) {
        buf_reset(&text);
        if (patch_write(&view->in, c, i, &style, &text, err) < 0)
            return -1;
        if (text.n > 0)
            fwrite(text.p, 1, text.n, stdout);
    }
    return 0;
}

static int
print_json(const struct cow_view *view, bool stat, struct err *err)
{
    const struct changes *c = &view->changes;
    json_t *out = json_pack("{s:i}", "version", 1), *list = json_array();

    cow_json_state(out, &view->state);
    for (size_t i = change_next(c, 0); i != CHANGE_NOT; i = change_next(c, i)) {
        struct patch_count count;
        if (cow_told_elsewhere(&c->v[i]))
            continue;
        json_t *row = cow_json_change(c, i);
        if (stat && patch_count(&view->in, c, i, &count, err) < 0) {
            json_decref(row);
            json_decref(list);
            json_decref(out);
            return -1;
        }
        if (stat) {
            json_object_set_new(row, "binary", json_boolean(count.binary));
            json_object_set_new(row, "lines_added", json_integer((json_int_t)count.added));
            json_object_set_new(row, "lines_removed", json_integer((json_int_t)count.removed));
        }
        json_array_append_new(list, row);
    }
    json_object_set_new(out, "changes", list);
    json_t *marked = json_array();
    for (size_t i = 0; i < view->marks.n_names; i++)
        json_array_append_new(marked, cli_json_text(view->marks.names[i]));
    json_object_set_new(out, "marked", marked);
    json_object_set_new(out, "marked_count", json_integer((json_int_t)view->marks.n));
    return cli_json_print(out, err);
}

static int
show(const struct diff_options *o, const char *which, struct err *err)
{
    struct cow_view view = COW_VIEW_INIT;
    int r = cow_view_open(&view, which, err);

    if (r == 0 && o->json)
        r = print_json(&view, o->stat, err);
    else if (r == 0)
        r = o->name_only ? print_names(&view.changes) : o->stat ? print_stat(&view, err) : print_patches(&view, err);
    if (r == 0 && !o->json) {
        r = cli_flush(err);
        print_notes(&view.changes);
    }
    cow_view_close(&view);
    return r;
}

static int
diff(void *options, const struct verb_words *w, struct err *err)
{
    const struct diff_options *o = options;

    if (o->list && w->n > 0) {
        err_set(err, ERR_USAGE, "cli.operands", "one operand too many: %s", w->v[0]);
        return err_hint(err, "cloche diff --list shows the states of all projects");
    }
    if (o->stat && o->name_only)
        return err_set(err, ERR_USAGE, "cli.flags", "--stat and --name-only exclude each other");
    return (o->list ? list_states(o->json, err) : show(o, w->v[0], err)) < 0 ? -1 : COW_DONE;
}

int
cmd_diff(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[flags] [ID|DIR]", 0, 1, .run = diff } };
    static const struct verb_flag flags[] = {
        { "--json", 0, NULL, "one JSON object (with --stat: also counted lines)", FLAG_ON(struct diff_options, json) },
        { "--stat", 0, NULL, "files and numbers of lines", FLAG_ON(struct diff_options, stat) },
        { "--name-only", 0, NULL,
          "names only, with a letter: A added, M modified, D deleted, T type, R renamed",
          FLAG_ON(struct diff_options, name_only) },
        { "--list", 0, NULL, "the existing states, newest first", FLAG_ON(struct diff_options, list) },
    };
    static const struct verb verb = {
        .name = "diff", VERB_FORMS(forms), VERB_FLAGS(flags), .surplus = "cli.operands",
        .about = "What a copy-on-write run (cloche run --workspace DIR:cow) changed, as a patch.\n"
                 "Without ID or DIR: the newest run on the current directory.",
    };
    struct diff_options o = { false };

    return verb_main(&verb, &o, argc, argv);
}
