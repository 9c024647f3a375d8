/* adapters/docker/files.c: files of a container as archives, and its processes (docker.h)
 *
 * Both are made, and read, by programs inside: `tar`, `stat` and `ps` of the sandbox's system, as its user. So a client
 * reaches there what the sandbox itself does, and nothing here reads an archive.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapters/docker/docker.h"
#include "base/cleanup.h"
#include "wire/json_text.h"

#define SAID_MAX   (64UL * 1024)
#define GO_DIR     (1ULL << 31)         /* of Go's os.FileMode, as the API has it */
#define GO_SYMLINK (1ULL << 27)

static char path_room[EDGE_PATH_MAX + 1];

/* The path of the query, absolute; without slashes and dots at its end. NULL: said. */
static char *
path_of(struct visit *r)
{
    bool bad = false;
    const char *path = visit_query(r, "path", path_room + 1, sizeof(path_room) - 1, &bad);
    size_t n;

    if (bad || path == NULL || path[0] == '\0' || strstr(path, "/../") != NULL) {
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "path is a path in the container, of at most 4095 bytes, without ..");
        return NULL;
    }
    path_room[0] = '/';
    for (n = strlen(path); n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')); n--)
        path_room[n] = '\0';
    return path[0] == '/' ? path_room + 1 : path_room;
}

static void
exec(struct visit *r, const char *const *words, const struct visit_answers *answers,
     const struct visit_op_answers *said, bool input)
{
    static struct edge_op op;

    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.flags = input ? OP_STDIN : 0;
    op.path = "/";
    for (; words[op.n_argv] != NULL; op.n_argv++)
        op.argv[op.n_argv] = words[op.n_argv];
    visit_op(r, r->of_docker->id, &op, answers, said);
}

static void
on_said(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    visit_keep(r, is_err ? &r->err_out : &r->out, is_err ? &r->cut_err : &r->cut_out, p, n);
}

static void
on_failed(struct visit *r, const struct err *err)
{
    if (visit_answered(r))
        visit_break(r);
    else
        visit_err(r, err);
}

static const struct visit_answers plain = { .no = on_failed };

/* What the program that failed wrote. */
static void
refuse_said(struct visit *r, unsigned status)
{
    char text[256];
    int n = (int)(r->err_out.n < 200 ? r->err_out.n : 200);

    snprintf(text, sizeof(text), "%.*s", n, r->err_out.n > 0 ? (const char *)r->err_out.p : "");
    text[strcspn(text, "\r\n")] = '\0';
    docker_refuse(r, status, "%s", text[0] != '\0' ? text : "the program inside failed");
}

/* --- what a path is ----------------------------------------------------------------------------------------------- */

static bool
numbers_of(const char *said, uint64_t *mode, uint64_t *size, uint64_t *seconds)
{
    size_t a = strcspn(said, " "), b = a + 1 + strcspn(said + a + (said[a] != '\0'), " ");
    const char *at[] = { said, said + a + 1, said + b + 1 };

    return said[a] == ' ' && said[b] == ' ' && str_parse_hex((struct str){ at[0], a }, UINT32_MAX, mode) &&
           str_parse_u64((struct str){ at[1], b - a - 1 }, INT64_MAX, size) &&
           str_parse_u64((struct str){ at[2], strcspn(at[2], " ") }, INT64_MAX, seconds);
}

/* "MODE SIZE SECONDS 'NAME' -> 'TARGET'", as `stat` says it, into the header of a stat; false: it says other things. */
static bool
stat_header(const char *said, const char *path, char room[ADAPT_PUT_MAX + 1])
{
    uint64_t mode, size, seconds, go;
    const char *arrow = strstr(said, "' -> '"), *name = strrchr(path, '/');
    char target[128] = "", time[32];
    cleanup_free char *text = NULL;
    json_t *all, *coded;
    time_t t;
    struct tm tm;
    bool well;

    if (!numbers_of(said, &mode, &size, &seconds))
        return false;
    if (arrow != NULL)
        snprintf(target, sizeof(target), "%.*s", (int)strcspn(arrow + 6, "'\n"), arrow + 6);
    go = (mode & 0777) | (S_ISDIR(mode) ? GO_DIR : 0) | (S_ISLNK(mode) ? GO_SYMLINK : 0);
    t = (time_t)seconds;
    if (gmtime_r(&t, &tm) == NULL || strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return false;
    name = name == NULL ? path : name[1] == '\0' ? "/" : name + 1;
    all = json_pack("{s:s%, s:I, s:I, s:s, s:s}", "name", name, strnlen(name, 60), "size", (json_int_t)size, "mode",
                    (json_int_t)go, "mtime", time, "linkTarget", strlen(target) < 60 ? target : "");
    text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    coded = text != NULL ? json_of_base64((const uint8_t *)text, strlen(text)) : NULL;
    well = coded != NULL && json_string_length(coded) < ADAPT_PUT_MAX - 32;
    if (well)
        snprintf(room, ADAPT_PUT_MAX + 1, "%s", json_string_value(coded));
    json_decref(all);
    json_decref(coded);
    return well;
}

static void
on_archived(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)ms;
    if (flags != 0 || code != 0)
        visit_break(r);
    else
        visit_close(r);
}

static void
on_archive(struct visit *r, bool is_err, const uint8_t *p, size_t n)
{
    if (!is_err)
        visit_add(r, p, n);
}

static const struct visit_op_answers archives = { .out = on_archive, .exit = on_archived, .failed = on_failed };

static void
on_stat(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    char header[ADAPT_PUT_MAX + 1], dir[EDGE_PATH_MAX + 1], *path = path_of(r), *slash;
    const char *words[] = { "tar", "-C", dir, "-cf", "-", "--", NULL, NULL };

    (void)ms;
    if (path == NULL)
        return;
    if (flags != 0 || code != 0) {
        refuse_said(r, HTTP_NOT_FOUND);
        return;
    }
    visit_keep(r, &r->out, &r->cut_out, (const uint8_t *)"", 1);        /* a NUL behind it */
    if (r->cut_out || !stat_header((const char *)r->out.p, path, header)) {
        docker_refuse(r, HTTP_INTERNAL, "%s", "the sandbox's stat says what it must not");
        return;
    }
    snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    words[6] = slash[1] != '\0' ? strrchr(path, '/') + 1 : ".";
    slash[slash == dir] = '\0';
    visit_put(r, "X-Docker-Container-Path-Stat", header);
    if (r->head_only) {
        visit_empty(r, HTTP_OK);
        return;
    }
    visit_stream_of(r, ADAPT_TAR);
    exec(r, words, &plain, &archives, false);
}

static const struct visit_op_answers stats = { .out = on_said, .exit = on_stat, .failed = on_failed };

static void
archive(struct visit *r, struct docked *d)
{
    const char *words[] = { "stat", "-c", "%f %s %Y %N", "--", path_of(r), NULL };

    if (words[4] != NULL && d->paused)
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is paused", d->id);
    else if (words[4] != NULL)
        exec(r, words, &plain, &stats, false);
}

void
docker_archive(struct visit *r)
{
    docker_with(r, r->path_id, archive);
}

/* --- bringing ----------------------------------------------------------------------------------------------------- */

static void
on_unpacked(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    (void)ms;
    if (flags != 0 || code != 0)
        refuse_said(r, HTTP_BAD_REQUEST);
    else
        visit_empty(r, HTTP_OK);
}

static const struct visit_op_answers unpacks = { .out = on_said, .exit = on_unpacked, .failed = on_failed };

static void
unpack(struct visit *r, struct docked *d)
{
    const char *words[] = { "tar", "-C", path_of(r), "-xf", "-", NULL };

    if (words[2] == NULL)
        return;
    if (d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is paused", d->id);
    } else if (!visit_input(r, r->out.n > 0 ? (const void *)r->out.p : "", r->out.n)) {
        docker_refuse(r, HTTP_TOO_LARGE, "an archive has at most %s", "10 MiB");
    } else {
        buf_free(&r->out);
        exec(r, words, &plain, &unpacks, true);
    }
}

void
docker_unpack(struct visit *r)
{
    visit_keep(r, &r->out, &r->cut_out, (const uint8_t *)r->body.p, r->body.n);     /* the body goes when we return */
    if (!r->cut_out)
        docker_with(r, r->path_id, unpack);
    else
        docker_refuse(r, HTTP_UNAVAILABLE, "%s", "there is no room for the archive now");
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

/* A line of `ps` in as many words as there are titles; the last one has the rest. */
static json_t *
line_words(char *line, size_t most)
{
    json_t *words = json_array();

    for (char *at = line + strspn(line, " "); *at != '\0';) {
        size_t n = json_array_size(words) + 1 < most ? strcspn(at, " ") : strlen(at);
        json_array_append_new(words, json_of_text((const uint8_t *)at, n));
        at += n;
        at += strspn(at, " ");
    }
    return words;
}

static void
on_ps(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    json_t *titles = NULL, *lines = json_array();
    char *at, *next;

    (void)ms;
    visit_keep(r, &r->out, &r->cut_out, (const uint8_t *)"", 1);
    if (flags != 0 || code != 0 || r->cut_out) {
        json_decref(lines);
        refuse_said(r, HTTP_INTERNAL);
        return;
    }
    for (at = (char *)r->out.p; at != NULL && *at != '\0'; at = next) {
        next = strchr(at, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (titles == NULL)
            titles = line_words(at, SIZE_MAX);
        else
            json_array_append_new(lines, line_words(at, json_array_size(titles)));
    }
    visit_json(r, HTTP_OK, json_pack("{s:o, s:o}", "Titles", titles != NULL ? titles : json_array(), "Processes",
                                     lines));
}

static const struct visit_op_answers lists = { .out = on_said, .exit = on_ps, .failed = on_failed };

static void
top(struct visit *r, struct docked *d)
{
    static const char *const words[] = { "ps", "-ef", NULL };

    if (docked_runs(d) && !d->paused)
        exec(r, words, &plain, &lists, false);
    else
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is not running", d->id);
}

void
docker_top(struct visit *r)
{
    char room[64];
    bool bad = false;
    const char *args = visit_query(r, "ps_args", room, sizeof(room), &bad);

    if (bad || (args != NULL && args[0] != '\0' && strcmp(args, "-ef") != 0))
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "ps_args: -ef, or none");
    else
        docker_with(r, r->path_id, top);
}
