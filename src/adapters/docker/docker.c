/* adapters/docker/docker.c: containers: which one a request is about, and how it is (docker.h) */
#include "adapters/docker/docker.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static struct docked *all;
static size_t n_all;

struct docker *
docker_of(struct visit *r)
{
    if (r->of_docker == NULL)
        r->of_docker = calloc(1, sizeof(*r->of_docker));
    if (r->of_docker == NULL)
        visit_no_memory(r);
    return r->of_docker;
}

/* --- refusals and queries ----------------------------------------------------------------------------------------- */

void
docker_refuse(struct visit *r, unsigned status, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    visit_refuse(r, status, status == HTTP_NOT_OFFERED ? "docker.not-offered" : status == HTTP_NOT_FOUND
                 ? "docker.not-found" : status == HTTP_FORBIDDEN ? "docker.wall" : "docker.request", "", text);
}

void
docker_no(struct visit *r, const struct docker_no *no)
{
    visit_refuse(r, no->status, no->status == HTTP_NOT_OFFERED ? "docker.not-offered" : no->status == HTTP_FORBIDDEN
                 ? "docker.wall" : "docker.request", no->hint, no->what);
}

bool
docker_flag(const struct visit *r, const char *key, bool usual)
{
    char room[8];
    bool bad = false;
    const char *v = visit_query(r, key, room, sizeof(room), &bad);

    if (v == NULL || bad)
        return usual;
    return strcmp(v, "0") != 0 && strcmp(v, "false") != 0 && strcmp(v, "False") != 0 && v[0] != '\0';
}

bool
docker_number(const struct visit *r, const char *key, uint64_t most, uint64_t *out)
{
    char room[24];
    bool bad = false;
    const char *v = visit_query(r, key, room, sizeof(room), &bad);

    return !bad && (v == NULL || v[0] == '\0' || str_parse_u64(str_of(v), most, out));
}

bool
docker_version_well(struct visit *r)
{
    char text[200];

    if (r->number == 0 || (r->number >= DOCKER_API_OLDEST && r->number <= DOCKER_API_MINOR))
        return true;
    snprintf(text, sizeof(text), "client version 1.%llu is too %s. %s supported API version is 1.%d",
             (unsigned long long)r->number, r->number > DOCKER_API_MINOR ? "new" : "old",
             r->number > DOCKER_API_MINOR ? "Maximum" : "Minimum",
             r->number > DOCKER_API_MINOR ? DOCKER_API_MINOR : DOCKER_API_OLDEST);
    docker_refuse(r, HTTP_BAD_REQUEST, "%s", text);
    return false;
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

struct docked *
docked_find(const char *id)
{
    for (struct docked *d = all; d != NULL; d = d->next)
        if (strcmp(d->id, id) == 0)
            return d;
    return NULL;
}

static void
docked_free(struct docked *d)
{
    json_decref(d->body);
    json_decref(d->execs);
    free(d->entrypoint);
    free(d->cmd);
    free(d->labels);
    free(d);
}

void
docked_forget(const char *id)
{
    for (struct docked **at = &all; *at != NULL; at = &(*at)->next) {
        struct docked *d = *at;
        if (strcmp(d->id, id) != 0)
            continue;
        *at = d->next;
        n_all--;
        docked_free(d);
        return;
    }
}

/* The newest is the first. The oldest goes, of which then no more is known than its sandbox tells. */
static struct docked *
docked_new(const char *id)
{
    struct docked *d = calloc(1, sizeof(*d)), *last = all;

    if (d == NULL)
        return NULL;
    snprintf(d->id, sizeof(d->id), "%s", id);
    d->execs = json_object();
    d->next = all;
    all = d;
    if (++n_all <= DOCKED_MAX)
        return d;
    while (last->next != NULL)
        last = last->next;
    docked_forget(last->id);
    return d;
}

/* A fact of its sandbox, owned; NULL: none. */
static void
take_line(char **into, const char *lines, const char *name)
{
    if (*into == NULL && edge_line(lines, name).p != NULL)
        *into = str_to_cstr(edge_line(lines, name));
}

struct docked *
docked_know(const struct edge_box *box)
{
    struct str image = edge_line(box->labels, "docker-image"), how = edge_line(box->labels, "docker-how");
    struct docked *d = image.p != NULL ? docked_find(box->id) : NULL;
    uint64_t signal = 0;

    if (image.p == NULL || image.n >= sizeof(d->image))
        return NULL;
    if (d == NULL)
        d = docked_new(box->id);
    if (d == NULL)
        return NULL;
    memcpy(d->image, image.p, image.n);
    d->image[image.n] = '\0';
    for (; how.n > 0 && (how.p[0] < '0' || how.p[0] > '9'); how.p++, how.n--) {
        d->tty = d->tty || how.p[0] == 't';
        d->stdin_open = d->stdin_open || how.p[0] == 'i';
        d->remove = d->remove || how.p[0] == 'r';
    }
    d->stop_signal = str_parse_u64(how, 31, &signal) && signal > 0 ? (uint8_t)signal : SIGTERM;
    snprintf(d->name, sizeof(d->name), "%s", box->name);
    d->created_ms = box->created_ms;
    d->paused = box->paused;
    take_line(&d->entrypoint, box->facts, "image_entrypoint");
    take_line(&d->cmd, box->facts, "image_cmd");
    if (d->labels == NULL)
        d->labels = strdup(box->labels);
    return d;
}

bool
docked_runs(const struct docked *d)
{
    return d->run != 0 && !d->ended;
}

uint32_t
docker_code(uint8_t flags, uint8_t code)
{
    return (flags & EDGE_TIMED_OUT) != 0 ? 124 : (flags & EDGE_SIGNALED) != 0 ? 128U + code : code;
}

void
docked_over(struct docked *d, const struct edge_run *run)
{
    d->bytes[0] = run->bytes[0];
    d->bytes[1] = run->bytes[1];
    d->begun_ms = run->begun_ms;
    if ((run->state & RUN_ENDED) == 0)
        return;
    d->ended = true;
    d->ended_ms = run->ended_ms;
    d->flags = run->flags;
    d->code = run->code;
}

/* --- how it is ---------------------------------------------------------------------------------------------------- */

bool
docker_lives(const struct edge_box *box)
{
    return box->state == BOX_READY || box->state == BOX_DEGRADED;
}

static void
go_on(struct visit *r)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d == NULL)
        docker_refuse(r, HTTP_NOT_FOUND, "No such container: %.64s", r->path_id);
    else
        r->of_docker->then(r, d);
}

static void
on_looked(struct visit *r, uint64_t count)
{
    (void)count;
    go_on(r);
}

static void
on_main(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d != NULL)
        docked_over(d, run);
}

/* It is kept no more, or the sandbox says nothing: it runs no more. */
static void
on_no_main(struct visit *r, const struct err *err)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d != NULL && err_is(err, "exec.unknown")) {
        d->ended = true;
        d->code = SIGKILL;
        d->flags = EDGE_SIGNALED;
    }
    go_on(r);
}

static const struct visit_answers plain = { .no = visit_err };
static const struct visit_op_answers looks = { .run = on_main, .done = on_looked, .failed = on_no_main };

/* Of one that another process made: its oldest command is the main one. */
static void
on_candidate(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);

    if (d == NULL || (run->state & RUN_CONTEXT) != 0 || (d->run != 0 && d->run <= run->number))
        return;
    d->run = run->number;
    docked_over(d, run);
}

static const struct visit_op_answers searches = { .run = on_candidate, .done = on_looked, .failed = on_no_main };

static void
on_box(struct visit *r, const struct edge_box *box)
{
    struct docked *d = docker_lives(box) ? docked_know(box) : NULL;

    if (d == NULL) {
        docked_forget(box->id);
        docker_refuse(r, HTTP_NOT_FOUND, "No such container: %.64s", r->path_id);
        return;
    }
    snprintf(r->of_docker->id, sizeof(r->of_docker->id), "%s", box->id);
    if (docked_runs(d) && !d->paused) {
        visit_run(r, d->id, &(struct edge_run_ask){ .what = RUN_GET, .number = d->run, .role = "", .text = "" },
                  &plain, &looks);
    } else if (d->run == 0 && d->body == NULL && !d->searched && !d->paused) {
        d->searched = true;
        visit_run(r, d->id, &(struct edge_run_ask){ .what = RUN_LIST, .role = "", .text = "" }, &plain, &searches);
    } else {
        go_on(r);
    }
}

static void
on_no_box(struct visit *r, const struct err *err)
{
    if (err->kind == ERR_NOT_FOUND)
        docker_refuse(r, HTTP_NOT_FOUND, "No such container: %.64s", r->path_id);
    else
        visit_err(r, err);
}

static const struct visit_answers shown = { .box = on_box, .no = on_no_box };

/* --- which one it is ---------------------------------------------------------------------------------------------- */

static void list_on(struct visit *r, const char *after);

/* A name counts for more than the beginning of an id. */
static void
on_item(struct visit *r, const struct edge_box *box)
{
    struct docker *k = r->of_docker;
    char shown_name[EDGE_NAME_MAX + 1];
    const struct docked *d = docker_lives(box) ? docked_know(box) : NULL;
    bool exact = false, begins;

    snprintf(r->id, sizeof(r->id), "%s", box->id);
    k->last_ms = box->created_ms;
    if (d == NULL)
        return;
    docker_display_name(d, shown_name);
    exact = strcmp(shown_name, r->path_id) == 0;
    begins = strncmp(box->id, r->path_id, strlen(r->path_id)) == 0;
    if (!exact && (!begins || k->exact))
        return;
    k->matches = exact ? 1 : k->matches + 1;
    k->exact = exact;
    snprintf(k->id, sizeof(k->id), "%s", box->id);
}

static void
on_listed(struct visit *r, uint32_t count, bool more)
{
    struct docker *k = r->of_docker;
    char after[EDGE_CURSOR_MAX + 1];

    (void)count;
    if (more) {
        snprintf(after, sizeof(after), "%.32s-%llu", r->id, (unsigned long long)k->last_ms);
        list_on(r, after);
    } else if (k->matches == 1) {
        VISIT_ASK(r, EDGE_ASK_GET, &shown, .id = k->id);
    } else {
        docker_refuse(r, HTTP_NOT_FOUND, "%s: %.64s", k->matches == 0 ? "No such container"
                      : "several containers have an id that begins so", r->path_id);
    }
}

static const struct visit_answers listed = { .item = on_item, .end = on_listed };

static void
list_on(struct visit *r, const char *after)
{
    VISIT_ASK(r, EDGE_ASK_LIST, &listed, .limit = EDGE_LIST_MAX, .prefix = "", .label = "", .after = after,
              .workspace = "");
}

void
docker_with(struct visit *r, const char *name, void (*then)(struct visit *r, struct docked *d))
{
    struct docker *k = docker_of(r);

    if (k == NULL || !docker_version_well(r))
        return;
    k->then = then;
    if (edge_is_id(name))
        VISIT_ASK(r, EDGE_ASK_GET, &shown, .id = name);
    else if (!edge_name_well(name))
        docker_refuse(r, HTTP_NOT_FOUND, "No such container: %.64s", name);
    else
        list_on(r, "");
}
