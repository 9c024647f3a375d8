/* run/planted.c: see planted.h */
#include "run/planted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "match/path.h"
#include "program/say.h"
#include "workspace/planted.h"
#include "workspace/quote.h"

#define WARNED 10               /* lines after a run */
#define AFTER_ENTRIES 500000    /* looked at after a run, in all its folders */
#define AFTER_US (500 * 1000)
#define ASKED_US (600UL * 1000 * 1000)

static json_t *
find_json(const char *dir, const struct planted_find *f)
{
    cleanup_buf struct buf path = BUF_INIT(65536);

    buf_printf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, f->path);
    json_t *name = buf_nul(&path) == 0 ? cli_json_text((const char *)path.p) : json_null();
    return json_pack("{s:o, s:s, s:s, s:o}", "path", name, "what", f->what, "runs", f->runs, "detail",
                     f->detail[0] != '\0' ? json_string(f->detail) : json_null());
}

static void
put_finds(json_t *array, const char *dir, const struct planted *p)
{
    for (size_t i = 0; i < p->n; i++)
        json_array_append_new(array, find_json(dir, &p->v[i]));
}

/* "/project/.envrc: direnv: run by ..." */
static void
print_find(FILE *to, const char *before, const char *dir, const struct planted_find *f)
{
    cleanup_buf struct buf path = BUF_INIT(65536), name = BUF_INIT(4 * 65536);

    buf_printf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, f->path);
    quote_name(&name, "", (struct str){ (const char *)path.p, path.n });
    fprintf(to, "%s%.*s: %s%s%s%s; run by %s\n", before, (int)name.n, (const char *)name.p, f->what,
            f->detail[0] != '\0' ? " (" : "", f->detail, f->detail[0] != '\0' ? ")" : "", f->runs);
}

/* --- cloche why --planted --- */

static int
open_folder(const char *folder, char real[PATH_TEXT_MAX + 1], struct err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    char link[64];

    if (fd < 0) {
        err_sys(err, errno, "cli.planted", "cannot search %s", folder);
        return err_hint(err, "cloche why --planted takes a folder of the host (default: the current one)");
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, PATH_TEXT_MAX);
    real[n > 0 ? n : 0] = '\0';
    return fd;
}

static int
show_json(const char *dir, const struct planted *p, struct err *err)
{
    json_t *list = json_array();

    put_finds(list, dir, p);
    return cli_json_print(json_pack("{s:i, s:o, s:o, s:I, s:b, s:I, s:f}", "version", 1, "folder", cli_json_text(dir),
                                    "planted", list, "more", (json_int_t)p->more, "complete", (int)p->complete,
                                    "entries", (json_int_t)p->entries, "ms", (double)p->us / 1000.0), err);
}

int
planted_show(const char *folder, bool json, struct err *err)
{
    cleanup_planted struct planted p = PLANTED_INIT;
    char dir[PATH_TEXT_MAX + 1];
    cleanup_close int fd = open_folder(folder, dir, err);
    const struct planted_input in = { .folder = fd, .max_us = ASKED_US };

    if (fd < 0 || planted_scan(&in, &p, err) < 0)
        return -1;
    int found = p.n > 0 || !p.complete;
    if (json)
        return show_json(dir, &p, err) < 0 ? -1 : found;
    for (size_t i = 0; i < p.n; i++)
        print_find(stdout, "", dir, &p.v[i]);
    if (cli_flush(err) < 0)
        return -1;
    if (p.more > 0)
        fprintf(stderr, "cloche: and %llu more\n", (unsigned long long)p.more);
    fprintf(stderr, "cloche: %zu found among %llu entries%s\n", p.n, (unsigned long long)p.entries,
            p.complete ? "" : "; not searched to the end (too deep, unreadable, or too long)");
    return found;
}

/* --- after a run --- */

static void
search_root(struct planted_roots *roots, const char *dir, const struct session_result *r, uint64_t left_entries,
            uint64_t left_us)
{
    struct planted_root *root = &roots->v[roots->n];
    struct err err = ERR_INIT;
    cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    const struct planted_input in = { .folder = fd, .since = &r->started, .max_entries = left_entries,
                                      .max_us = left_us };

    *root = (struct planted_root){ .dir = dir };
    if (fd < 0 && (errno == ENOTDIR || errno == ENOENT))    /* a file, or gone */
        return;
    if (fd >= 0 && planted_scan(&in, &root->p, &err) == 0)  /* without memory it is not complete */
        planted_path(dir, getenv("PATH"), &r->started, &root->p);
    roots->n++;
}

void
planted_after(const struct session *s, const struct session_result *r, struct planted_roots *out)
{
    const struct policy *p = s->policy;
    const char *dirs[ARRAY_LEN(out->v)];
    uint64_t entries = 0, us = 0;
    size_t n = 0;

    out->n = 0;
    if (!r->ran)
        return;
    if (p->workspace.kind == WORKSPACE_RW && p->workspace.dir != NULL)
        dirs[n++] = p->workspace.dir;
    for (size_t i = 0; i < p->n_binds && n < ARRAY_LEN(dirs); i++) {
        bool within = !p->binds[i].writable || p->binds[i].own;     /* of an agent's home nothing outside is a user */
        for (size_t k = 0; k < n; k++)
            within |= path_within(str_of(p->binds[i].source), str_of(dirs[k]));
        if (!within)
            dirs[n++] = p->binds[i].source;
    }
    for (size_t i = 0; i < n && entries < AFTER_ENTRIES && us < AFTER_US; i++) {
        size_t before = out->n;
        search_root(out, dirs[i], r, AFTER_ENTRIES - entries, AFTER_US - us);
        if (out->n > before) {
            entries += out->v[before].p.entries;
            us += out->v[before].p.us;
        }
    }
}

void
planted_roots_free(struct planted_roots *roots)
{
    for (size_t i = 0; i < roots->n; i++)
        planted_free(&roots->v[i].p);
    roots->n = 0;
}

void
planted_warn(const struct planted_roots *roots)
{
    size_t told = 0;
    uint64_t rest = 0;

    for (size_t i = 0; i < roots->n; i++) {
        const struct planted *p = &roots->v[i].p;
        for (size_t k = 0; k < p->n; k++) {
            if (told == 0)
                cli_warn("the run left files that other programs run:");
            if (told < WARNED)
                print_find(stderr, "  ", roots->v[i].dir, &p->v[k]);
            rest += told >= WARNED;
            told += told < WARNED;
        }
        rest += p->more;
        if (!p->complete)
            cli_warn("%s was not searched to its end for what other programs run; `cloche why --planted %s` does",
                     roots->v[i].dir, roots->v[i].dir);
    }
    if (rest > 0)
        fprintf(stderr, "  and %llu more: cloche why --planted\n", (unsigned long long)rest);
}

json_t *
planted_json(const struct planted_roots *roots)
{
    json_t *list = json_array();
    uint64_t more = 0, entries = 0, us = 0;
    bool complete = true;

    if (roots->n == 0) {
        json_decref(list);
        return NULL;
    }
    for (size_t i = 0; i < roots->n; i++) {
        const struct planted *p = &roots->v[i].p;
        put_finds(list, roots->v[i].dir, p);
        more += p->more;
        entries += p->entries;
        us += p->us;
        complete &= p->complete;
    }
    return json_pack("{s:o, s:I, s:b, s:I, s:f}", "found", list, "more", (json_int_t)more, "complete", (int)complete,
                     "entries", (json_int_t)entries, "ms", (double)us / 1000.0);
}
