/* adapters/docker/boxes.c: what there is, and containers: make, list, look, pause, end (docker.h) */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "adapters/docker/docker.h"
#include "base/cleanup.h"
#include "wire/json_text.h"

#define UNSTARTED_IDLE_S 60     /* of a container that is removed when it ends, and nobody waits for that */

/* --- the service -------------------------------------------------------------------------------------------------- */

static void
put_service(struct visit *r)
{
    visit_put(r, "Api-Version", DOCKER_API);
    visit_put(r, "Ostype", "linux");
    visit_put(r, "Docker-Experimental", "false");
}

void
docker_ping(struct visit *r)
{
    if (!docker_version_well(r))
        return;
    put_service(r);
    visit_text(r, ADAPT_TEXT, "OK");
}

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "unknown"
#endif

void
docker_version(struct visit *r)
{
    if (!docker_version_well(r))
        return;
    put_service(r);
    visit_json(r, HTTP_OK, json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:[{s:s, s:s}]}", "Version", CLOCHE_VERSION,
                                     "ApiVersion", DOCKER_API, "MinAPIVersion", "1.24", "Os", "linux", "Arch", ARCH,
                                     "Platform", "Name", "cloche", "Components", "Name", "cloche", "Version",
                                     CLOCHE_VERSION));
}

void
docker_info(struct visit *r)
{
    if (docker_version_well(r))
        visit_json(r, HTTP_OK, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:[s, s, s], s:s, s:{}}", "ID",
                                         "cloche", "Name", "cloche", "ServerVersion", CLOCHE_VERSION, "OSType", "linux",
                                         "Architecture", ARCH, "OperatingSystem", "cloche", "Driver", "cloche", "NCPU",
                                         0, "MemTotal", 0, "SecurityOptions", "name=seccomp", "name=rootless",
                                         "name=no-new-privileges", "DefaultRuntime", "cloche", "Runtimes"));
}

/* --- images: the daemon's processes that clients speak to do not look into its store ------------------------------ */

void
docker_images(struct visit *r)
{
    docker_refuse(r, HTTP_NOT_OFFERED, "%s", "images are listed by whoever keeps them: cloche image ls");
}

void
docker_image(struct visit *r)
{
    docker_refuse(r, HTTP_NOT_OFFERED, "what is known of an image is told by whoever keeps it: cloche image ls --json "
                  "(%.255s)", r->rest);
}

void
docker_pull(struct visit *r)
{
    char image[256], tag[128], text[512];
    bool bad = false;
    const char *i = visit_query(r, "fromImage", image, sizeof(image), &bad);
    const char *t = visit_query(r, "tag", tag, sizeof(tag), &bad);

    if (bad || i == NULL)
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "images come into the store by cloche image pull, import and build");
    else {
        snprintf(text, sizeof(text), "%s%s%s", i, t == NULL || t[0] == '\0' ? "" : strncmp(t, "sha256:", 7) == 0
                 ? "@" : ":", t != NULL ? t : "");
        docker_refuse(r, HTTP_NOT_OFFERED, "no client makes this daemon fetch anything: cloche image pull %.400s",
                      text);
    }
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void
on_made(struct visit *r, const struct edge_box *box)
{
    struct docked *d = docked_know(box);

    if (d == NULL) {
        visit_no_memory(r);
        return;
    }
    d->body = json_incref(r->json);
    d->searched = true;
    visit_told(r);
    visit_json(r, HTTP_CREATED, json_pack("{s:s, s:[]}", "Id", box->id, "Warnings"));
}

static const struct visit_answers made = { .box = on_made };

void
docker_create(struct visit *r)
{
    struct edge_create c = { .flags = EDGE_FLEETING, .workspace = "", .volume = "", .language = "", .base = "" };
    cleanup_buf struct buf labels = BUF_INIT(EDGE_LABELS_MAX);
    cleanup_free char *text = NULL;
    char name[EDGE_NAME_MAX + 1];
    struct docker_want w;
    struct docker_no no;
    bool bad = false;

    if (!docker_version_well(r))
        return;
    c.name = visit_query(r, "name", name, sizeof(name), &bad);
    if (c.name == NULL)
        c.name = "";
    if (bad || !edge_maybe_name(c.name)) {
        docker_refuse(r, HTTP_BAD_REQUEST, "a name has letters, digits and ._-, and at most %s", "63 of them");
    } else if (r->body.n > DOCKED_BODY_MAX) {
        docker_refuse(r, HTTP_TOO_LARGE, "a container is made with at most %s", "64 KiB");
    } else if (!docker_want(r->json, &w, &no)) {
        docker_no(r, &no);
    } else {
        text = json_object_size(w.policy) > 0 ? json_dumps(w.policy, JSON_COMPACT | JSON_DIGITS) : NULL;
        json_decref(w.policy);
        c.policy = text != NULL ? text : "";
        c.idle_s = w.remove ? UNSTARTED_IDLE_S : 0;
        if (!docker_labels(r->json, &w, &labels, &no)) {
            docker_no(r, &no);
        } else if (!edge_labels_well((const char *)labels.p)) {
            docker_refuse(r, HTTP_BAD_REQUEST, "%s", "labels have names of letters, digits and ._/-, at most 63 bytes, "
                          "and values of at most 255 bytes without control characters; together 4096 bytes");
        } else {
            c.labels = (const char *)labels.p;
            visit_create(r, &c, &made);
        }
    }
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

static void
inspect(struct visit *r, struct docked *d)
{
    visit_json(r, HTTP_OK, docker_inspect_json(d));
}

void
docker_inspect(struct visit *r)
{
    docker_with(r, r->path_id, inspect);
}

static void
remove_it(struct visit *r, struct docked *d)
{
    if ((docked_runs(d) || d->paused) && !r->of_docker->force)
        docker_refuse(r, HTTP_CONFLICT, "You cannot remove a running container %.64s. Stop the container before "
                      "attempting removal or force remove", d->id);
    else
        docker_delete(r);
}

void
docker_remove(struct visit *r)
{
    struct docker *k = docker_of(r);

    if (k == NULL)
        return;
    k->force = docker_flag(r, "force", false);
    if (docker_flag(r, "link", false))
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "containers have no links here");
    else
        docker_with(r, r->path_id, remove_it);
}

static void
on_done(struct visit *r, const struct edge_box *box)
{
    (void)docked_know(box);
    visit_empty(r, HTTP_NO_CONTENT);
}

static const struct visit_answers done = { .box = on_done };

static void
pause_it(struct visit *r, struct docked *d)
{
    if (d->paused)
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is already paused", d->id);
    else if (!docked_runs(d))
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is not running", d->id);
    else
        VISIT_ASK(r, EDGE_ASK_PAUSE, &done, .id = d->id);
}

void
docker_pause(struct visit *r)
{
    docker_with(r, r->path_id, pause_it);
}

static void
unpause_it(struct visit *r, struct docked *d)
{
    if (!d->paused)
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is not paused", d->id);
    else
        VISIT_ASK(r, EDGE_ASK_RESUME, &done, .id = d->id);
}

void
docker_unpause(struct visit *r)
{
    docker_with(r, r->path_id, unpause_it);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static void list_on(struct visit *r, const char *after);

static const char *
shown_state(const struct docked *d)
{
    return d->paused ? "paused" : d->run == 0 ? "created" : d->ended ? "exited" : "running";
}

/* One of the values that a filter has is so. */
static bool
filter_says(const struct docked *d, const char *filter, const char *value)
{
    char name[EDGE_NAME_MAX + 1];
    const char *equals = strchr(value, '=');
    char key[EDGE_NAME_MAX + 1];
    struct str label;

    docker_display_name(d, name);
    if (strcmp(filter, "id") == 0)
        return strncmp(d->id, value, strlen(value)) == 0;
    if (strcmp(filter, "name") == 0)
        return strstr(name, value + (value[0] == '/')) != NULL;
    if (strcmp(filter, "status") == 0)
        return strcmp(shown_state(d), value) == 0;
    if (strcmp(filter, "ancestor") == 0)
        return strcmp(d->image, value) == 0;
    snprintf(key, sizeof(key), "%.*s", equals != NULL ? (int)(equals - value) : EDGE_NAME_MAX, value);
    label = edge_line(d->labels, key);
    return label.p != NULL && (equals == NULL || str_eq_c(label, equals + 1));
}

/* {"label": ["a=b"]}, or the older {"label": {"a=b": true}}: of the values of a filter one has to be so, but of labels
 * all. */
static bool
filters_let(const json_t *filters, const struct docked *d)
{
    const char *filter, *name;
    json_t *values, *v;

    json_object_foreach((json_t *)(uintptr_t)filters, filter, values) {
        size_t n = 0, yes = 0;
        for (size_t i = 0; i < json_array_size(values); i++, n++)
            yes += filter_says(d, filter, json_string_value(json_array_get(values, i)));
        json_object_foreach(values, name, v) {
            n++;
            yes += filter_says(d, filter, name);
        }
        if (n > 0 && (strcmp(filter, "label") == 0 ? yes < n : yes == 0))
            return false;
    }
    return true;
}

static bool
filters_well(const json_t *filters)
{
    const char *filter;
    json_t *values;

    json_object_foreach((json_t *)(uintptr_t)filters, filter, values) {
        if (strcmp(filter, "id") != 0 && strcmp(filter, "name") != 0 && strcmp(filter, "status") != 0 &&
            strcmp(filter, "ancestor") != 0 && strcmp(filter, "label") != 0)
            return false;
        for (size_t i = 0; i < json_array_size(values); i++)
            if (json_cstr(json_array_get(values, i)) == NULL)
                return false;
    }
    return filters == NULL || json_is_object(filters);
}

static void
tell_list(struct visit *r)
{
    json_t *out = json_array(), *filters = json_object_get(r->json, "filters");
    bool whole = r->of_docker->force || json_object_get(filters, "status") != NULL;

    for (size_t i = 0; i < json_array_size(r->list); i++) {
        const struct docked *d = docked_find(json_string_value(json_array_get(r->list, i)));
        if (d != NULL && (whole || docked_runs(d) || d->paused) && filters_let(filters, d) &&
            (r->of_docker->tail == 0 || json_array_size(out) < r->of_docker->tail))
            json_array_append_new(out, docker_item_json(d));
    }
    visit_json(r, HTTP_OK, out);
}

static void look_on(struct visit *r);

static void
on_looked(struct visit *r, uint64_t count)
{
    (void)count;
    r->of_docker->at++;
    look_on(r);
}

static struct docked *
looked_at(struct visit *r)
{
    return docked_find(json_string_value(json_array_get(r->list, r->of_docker->at)));
}

static void
on_run(struct visit *r, const struct edge_run *run)
{
    struct docked *d = looked_at(r);

    if (d == NULL || (run->state & RUN_CONTEXT) != 0 || (d->run != 0 && run->number != d->run))
        return;
    d->run = run->number;
    docked_over(d, run);
}

static void
on_no_run(struct visit *r, const struct err *err)
{
    (void)err;
    on_looked(r, 0);
}

static void
on_no_ask(struct visit *r, const struct err *err)
{
    on_no_run(r, err);
}

static const struct visit_answers asks = { .no = on_no_ask };
static const struct visit_op_answers looks = { .run = on_run, .done = on_looked, .failed = on_no_run };

/* False: it is none. -1 is no limit. */
static bool
limit_of(struct visit *r)
{
    char room[24];
    bool bad = false;
    const char *v = visit_query(r, "limit", room, sizeof(room), &bad);

    return (v != NULL && strcmp(v, "-1") == 0) || docker_number(r, "limit", 1000, &r->of_docker->tail);
}

/* How each is that may have changed. */
static void
look_on(struct visit *r)
{
    struct docker *k = r->of_docker;

    for (; k->at < json_array_size(r->list); k->at++) {
        struct docked *d = looked_at(r);
        bool search = d != NULL && d->run == 0 && d->body == NULL && !d->searched;
        if (d == NULL || d->paused || (!docked_runs(d) && !search))
            continue;
        d->searched = true;
        visit_run(r, d->id, &(struct edge_run_ask){ .what = search ? RUN_LIST : RUN_GET, .number = d->run, .role = "",
                                                    .text = "" }, &asks, &looks);
        return;
    }
    tell_list(r);
}

static void
on_item(struct visit *r, const struct edge_box *box)
{
    snprintf(r->id, sizeof(r->id), "%s", box->id);
    r->of_docker->last_ms = box->created_ms;
    if (docker_lives(box) && docked_know(box) != NULL)
        json_array_append_new(r->list, json_string(box->id));
}

static void
on_listed(struct visit *r, uint32_t count, bool more)
{
    char after[EDGE_CURSOR_MAX + 1];

    (void)count;
    if (more && json_array_size(r->list) < DOCKED_MAX / 2) {
        snprintf(after, sizeof(after), "%.32s-%llu", r->id, (unsigned long long)r->of_docker->last_ms);
        list_on(r, after);
    } else {
        look_on(r);
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
docker_list(struct visit *r)
{
    static char text[ADAPT_QUERY_MAX + 1];
    struct docker *k = docker_of(r);
    bool bad = false;
    const char *f = visit_query(r, "filters", text, sizeof(text), &bad);
    json_t *filters = f != NULL ? json_loads(f, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (k == NULL || !docker_version_well(r)) {
        json_decref(filters);
        return;
    }
    k->force = docker_flag(r, "all", false);
    r->json = json_pack("{s:o*}", "filters", filters);
    r->list = json_array();
    if (bad || (f != NULL && filters == NULL) || !filters_well(filters) || !limit_of(r))
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "a list takes all, limit, and filters: id, name, status, ancestor and "
                      "label");
    else if (docker_flag(r, "size", false))
        docker_refuse(r, HTTP_NOT_OFFERED, "%s", "sizes are told by GET /v1/sandboxes/{id}/usage");
    else
        list_on(r, "");
}
