/* library/library.c: see include/cloche/cloche.h */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "client/api_client.h"
#include "cloche/cloche.h"

struct cloche {
    struct api api;
    unsigned timeout_s;
};

_Static_assert(sizeof(((struct cloche_error *)0)->code) == ERR_CODE_MAX + 1, "an error's code fits");
_Static_assert(sizeof(((struct cloche_error *)0)->message) == ERR_MSG_MAX + 1, "its message too");
_Static_assert(sizeof(((struct cloche_error *)0)->hint) == ERR_HINT_MAX + 1, "and what to do");

static void
drop(json_t **o)
{
    json_decref(*o);
}
#define cleanup_json __attribute__((cleanup(drop)))

/* Hand @err over. Returns -1. */
static int
tell(const struct err *err, struct cloche_error *error)
{
    if (error != NULL) {
        memcpy(error->code, err->code, sizeof(error->code));
        memcpy(error->message, err->msg, sizeof(error->message));
        memcpy(error->hint, err->hint, sizeof(error->hint));
    }
    return -1;
}

static int
no_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

const char *
cloche_version(void)
{
    return CLOCHE_VERSION;
}

struct cloche *
cloche_open(const char *socket, const char *token, struct cloche_error *error)
{
    struct err err = ERR_INIT;
    struct cloche *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        no_memory(&err);
    } else if (api_open(&c->api, socket, token, &err) == 0) {
        c->timeout_s = CLOCHE_TIMEOUT_S;
        return c;
    }
    free(c);
    tell(&err, error);
    return NULL;
}

void
cloche_close(struct cloche *c)
{
    if (c != NULL)
        explicit_bzero(c, sizeof(*c));
    free(c);
}

void
cloche_set_timeout(struct cloche *c, unsigned seconds)
{
    c->timeout_s = seconds;
}

/* --- any route ---------------------------------------------------------------------------------------------------- */

/* Whether @call can be asked. Its time begins. */
static int
begin(const struct cloche *c, struct api_call *call, struct err *err)
{
    if (strpbrk(call->path, " \r\n\t#") != NULL || call->path[0] != '/')
        return err_set(err, ERR_USAGE, "api.request", "\"%s\" is no path of a request", call->path);
    call->until_ms = c->timeout_s != 0 ? clock_ms() + c->timeout_s * 1000ULL : 0;
    return 0;
}

static int
keep(void *ctx, const void *p, size_t n)
{
    return buf_append(ctx, p, n);
}

/* The whole body, and a zero behind it, in @out. */
static int
ask_whole(const struct cloche *c, struct api_call *call, struct buf *out, struct err *err)
{
    call->fn = keep;
    call->ctx = out;
    if (begin(c, call, err) < 0 || (api_call(&c->api, call, err) < 0 && buf_ok(out)))
        return -1;
    return buf_nul(out) == 0 ? 0 : err_set(err, ERR_LIMIT, "api.answer", "the answer has more than the caller takes");
}

static struct api_call
of_text(const char *method, const char *path, const char *accept, const char *body)
{
    return (struct api_call){
        .method = method, .path = path, .accept = accept, .type = "application/json",
        .body = { body, body != NULL ? strlen(body) : 0 },
    };
}

char *
cloche_ask(const struct cloche *c, const char *method, const char *path, const char *body, struct cloche_error *error)
{
    cleanup_buf struct buf out = BUF_INIT(API_ANSWER_MAX);
    struct api_call call = of_text(method, path, "application/json", body);
    struct err err = ERR_INIT;
    char *text = NULL;

    if (ask_whole(c, &call, &out, &err) == 0) {
        text = strdup((const char *)out.p);
        if (text == NULL)
            no_memory(&err);
        explicit_bzero(out.p, out.n);       /* it may have been a token */
    }
    if (text == NULL)
        tell(&err, error);
    return text;
}

struct feed {
    cloche_event_fn *fn;
    void *ctx;
    int said;                   /* by @fn, last */
};

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    struct feed *f = ctx;

    (void)id;
    f->said = f->fn(f->ctx, name, data, n);
    return f->said;
}

int
cloche_events(const struct cloche *c, const char *method, const char *path, const char *body, cloche_event_fn *fn,
              void *ctx, struct cloche_error *error)
{
    struct feed f = { .fn = fn, .ctx = ctx };
    struct api_call call = of_text(method, path, "text/event-stream", body);
    struct err err = ERR_INIT;
    int r;

    if (begin(c, &call, &err) < 0)
        return tell(&err, error);
    r = api_call_events(&c->api, &call, on_event, &f, &err);
    if (r == 0 || f.said > 0)
        return r;
    if (f.said < 0)         /* it would look like a failure without a reason */
        err_set(&err, ERR_USAGE, "api.request", "the function of events returned %d: what ends a stream is above 0",
                f.said);
    return tell(&err, error);
}

/* --- sandboxes ---------------------------------------------------------------------------------------------------- */

/* Whether one of its parts is "..": a proxy, or a reader, could take it for another path. */
static bool
leads_up(const char *path)
{
    for (; path != NULL; path = strchr(path, '/')) {
        path += strspn(path, "/");
        if (strncmp(path, "..", 2) == 0 && (path[2] == '/' || path[2] == '\0'))
            return true;
    }
    return false;
}

/* "/v1/sandboxes/WHICH@more" with @path, if there is one, behind it. */
static int
put_path(struct buf *out, const char *which, const char *more, const char *path, struct err *err)
{
    if (which[0] == '\0' || strcmp(which, ".") == 0 || strcmp(which, "..") == 0)
        return err_set(err, ERR_USAGE, "api.request", "\"%s\" is no id and no name of a sandbox", which);
    if (leads_up(path)) {
        err_set(err, ERR_DENIED, "files.path-escapes", "Path escapes workspace.");
        return err_hint(err, "use a path below the workspace, without \"..\"");
    }
    if (buf_puts(out, "/v1/sandboxes/") < 0 || api_escape(out, which) < 0 || buf_puts(out, more) < 0 ||
        (path != NULL && api_escape(out, path) < 0) || buf_nul(out) < 0)
        return err_set(err, ERR_USAGE, "api.request", "the path of the request is too long");
    return 0;
}

static json_t *
object_of(const char *text, struct err *err)
{
    json_error_t why;
    json_t *o = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : json_object();

    if (o == NULL || !json_is_object(o)) {
        json_decref(o);
        if (text == NULL)
            no_memory(err);
        else
            err_set(err, ERR_USAGE, "api.request", "the members are no JSON object");
        return NULL;
    }
    return o;
}

int
cloche_create(const struct cloche *c, const char *members, char id[33], struct cloche_error *error)
{
    struct api_call call = of_text("POST", "/v1/sandboxes", "application/json", members != NULL ? members : "{}");
    cleanup_buf struct buf out = BUF_INIT(API_ANSWER_MAX);
    struct err err = ERR_INIT;
    cleanup_json json_t *said = NULL;
    const char *its;

    if (ask_whole(c, &call, &out, &err) < 0)
        return tell(&err, error);
    said = json_loads((const char *)out.p, JSON_REJECT_DUPLICATES, NULL);
    explicit_bzero(out.p, out.n);           /* its key */
    its = json_string_value(json_object_get(said, "id"));
    if (its == NULL || strlen(its) != 32) {
        if (json_is_string(json_object_get(said, "approval")))
            err_set(&err, ERR_DENIED, "gate.waits", "somebody has to approve it first");
        else
            err_set(&err, ERR_PROTOCOL, "api.answer", "the daemon's answer has no id");
        return tell(&err, error);
    }
    memcpy(id, its, 33);
    return 0;
}

int
cloche_delete(const struct cloche *c, const char *sandbox, struct cloche_error *error)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX), out = BUF_INIT(API_ANSWER_MAX);
    struct err err = ERR_INIT;
    struct api_call call;

    if (put_path(&path, sandbox, "", NULL, &err) < 0)
        return tell(&err, error);
    call = of_text("DELETE", (const char *)path.p, "application/json", NULL);
    return ask_whole(c, &call, &out, &err) < 0 ? tell(&err, error) : 0;
}

/* --- commands ----------------------------------------------------------------------------------------------------- */

void
cloche_result_free(struct cloche_result *r)
{
    free(r->out);
    free(r->err);
    *r = (struct cloche_result){ .exit_code = -1 };
}

/* The bytes of the base64 @text, and a zero, for free(3). */
static int
bytes_of(const json_t *text, uint8_t **out, size_t *n, struct err *err)
{
    const char *p = json_string_value(text);
    size_t length = json_string_length(text);
    cleanup_buf struct buf buf = BUF_INIT(API_ANSWER_MAX);

    if (p == NULL || base64_get(&buf, p, length) < 0)
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon's answer has no output");
    *out = malloc(buf.n + 1);
    if (*out == NULL)
        return no_memory(err);
    if (buf.n > 0)
        memcpy(*out, buf.p, buf.n);
    (*out)[buf.n] = 0;
    *n = buf.n;
    return 0;
}

/* Ask for a command or code with @body, which it takes, and @members. */
static int
run(const struct cloche *c, const char *path, json_t *body, const char *members, struct cloche_result *out,
    struct err *err)
{
    static const char *const own[] = { "command", "language", "code", "encoding", "background" };
    cleanup_buf struct buf answer = BUF_INIT(API_ANSWER_MAX);
    cleanup_json json_t *asked = body, *more = object_of(members, err), *said = NULL;
    cleanup_free char *text = NULL;
    struct api_call call;

    *out = (struct cloche_result){ .exit_code = -1 };
    if (more == NULL)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (json_object_get(more, own[i]) != NULL)
            return err_set(err, ERR_USAGE, "api.request", "the member %s is the call's own", own[i]);
    if (asked == NULL || json_object_update(asked, more) < 0 ||
        json_object_set_new(asked, "encoding", json_string("base64")) < 0 ||
        (text = json_dumps(asked, JSON_COMPACT)) == NULL)
        return err_set(err, ERR_USAGE, "api.request", "the words are no UTF-8, or there is no memory");
    call = of_text("POST", path, "application/json", text);
    if (ask_whole(c, &call, &answer, err) < 0)
        return -1;
    said = json_loads((const char *)answer.p, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_string(json_object_get(said, "approval")))
        return err_set(err, ERR_DENIED, "gate.waits", "somebody has to approve it first");
    if (bytes_of(json_object_get(said, "stdout"), &out->out, &out->out_n, err) < 0 ||
        bytes_of(json_object_get(said, "stderr"), &out->err, &out->err_n, err) < 0) {
        cloche_result_free(out);
        return -1;
    }
    if (json_is_integer(json_object_get(said, "exit_code")))
        out->exit_code = (int)json_integer_value(json_object_get(said, "exit_code"));
    out->signal = (int)json_integer_value(json_object_get(said, "signal"));
    out->timed_out = json_is_true(json_object_get(said, "timed_out"));
    out->oom_killed = json_is_true(json_object_get(said, "oom_killed"));
    out->out_truncated = json_is_true(json_object_get(said, "stdout_truncated"));
    out->err_truncated = json_is_true(json_object_get(said, "stderr_truncated"));
    out->duration_ms = (uint64_t)json_integer_value(json_object_get(said, "duration_ms"));
    return 0;
}

int
cloche_run(const struct cloche *c, const char *sandbox, const char *const argv[], const char *members,
           struct cloche_result *out, struct cloche_error *error)
{
    cleanup_buf struct buf path = BUF_INIT(API_PATH_MAX);
    struct err err = ERR_INIT;
    json_t *words = json_array();

    *out = (struct cloche_result){ .exit_code = -1 };
    for (size_t i = 0; argv[i] != NULL && words != NULL; i++)
        if (json_array_append_new(words, json_string(argv[i])) < 0) {
            json_decref(words);
            words = NULL;
        }
    if (put_path(&path, sandbox, "/exec", NULL, &err) < 0) {
        json_decref(words);
        return tell(&err, error);
    }
    words = words != NULL ? json_pack("{s:o}", "command", words) : NULL;
    return run(c, (const char *)path.p, words, members, out, &err) < 0 ? tell(&err, error) : 0;
}

int
cloche_execute(const struct cloche *c, const char *language, const char *code, const char *members,
               struct cloche_result *out, struct cloche_error *error)
{
    struct err err = ERR_INIT;

    return run(c, "/v1/execute", json_pack("{s:s, s:s}", "language", language, "code", code), members, out, &err) < 0
           ? tell(&err, error) : 0;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

int
cloche_write(const struct cloche *c, const char *sandbox, const char *path, const void *data, size_t n,
             struct cloche_error *error)
{
    cleanup_buf struct buf at = BUF_INIT(API_PATH_MAX), out = BUF_INIT(API_ANSWER_MAX);
    struct err err = ERR_INIT;
    struct api_call call = {
        .method = "PUT", .accept = "application/json", .type = "application/octet-stream", .body = { data, n },
    };

    if (put_path(&at, sandbox, "/files/", path, &err) < 0)
        return tell(&err, error);
    call.path = (const char *)at.p;
    return ask_whole(c, &call, &out, &err) < 0 ? tell(&err, error) : 0;
}

int
cloche_read(const struct cloche *c, const char *sandbox, const char *path, size_t most, uint8_t **data, size_t *n,
            struct cloche_error *error)
{
    cleanup_buf struct buf at = BUF_INIT(API_PATH_MAX);
    cleanup_buf struct buf out = BUF_INIT(most < SIZE_MAX ? most + 1 : SIZE_MAX);
    struct err err = ERR_INIT;
    struct api_call call = { .method = "GET", .accept = "*/*", .type = "application/octet-stream" };

    *data = NULL;
    *n = 0;
    if (put_path(&at, sandbox, "/files/", path, &err) < 0)
        return tell(&err, error);
    call.path = (const char *)at.p;
    if (ask_whole(c, &call, &out, &err) < 0)
        return tell(&err, error);
    *data = malloc(out.n + 1);
    if (*data == NULL) {
        no_memory(&err);
        return tell(&err, error);
    }
    memcpy(*data, out.p, out.n + 1);
    *n = out.n;
    return 0;
}
