/* adapters/docker/exec.c: commands beside the main one (docker.h)
 *
 * The id of an exec begins with that of its sandbox, so whoever asks about it is judged as for that. What it is to
 * run is kept from its making to its start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "adapters/docker/docker.h"
#include "proto/edge_limits.h"
#include "wire/json_text.h"

/* --- making ------------------------------------------------------------------------------------------------------- */

static void
make_it(struct visit *r, struct docked *d)
{
    uint8_t random[(DOCKER_EXEC_ID - EDGE_ID) / 2];
    char id[DOCKER_EXEC_ID + 1];
    const char *oldest;

    if (!docked_runs(d) || d->paused) {
        docker_refuse(r, HTTP_CONFLICT, "Container %.64s is %s", d->id,
                      d->paused ? "paused, unpause the container before exec" : "not running");
        return;
    }
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        visit_no_memory(r);
        return;
    }
    memcpy(id, d->id, EDGE_ID);
    str_hex(random, sizeof(random), id + EDGE_ID);
    oldest = json_object_iter_key(json_object_iter(d->execs));
    if (json_object_size(d->execs) >= DOCKED_EXECS_MAX && oldest != NULL)
        json_object_del(d->execs, oldest);
    json_object_set_new(d->execs, id, json_pack("{s:O}", "made", r->json));
    visit_json(r, HTTP_CREATED, json_pack("{s:s}", "Id", id));
}

void
docker_exec(struct visit *r)
{
    struct docker_no no;

    if (!docker_want_exec(r->json, &no))
        docker_no(r, &no);
    else if (r->body.n > DOCKED_BODY_MAX)
        docker_refuse(r, HTTP_TOO_LARGE, "an exec is made with at most %s", "64 KiB");
    else
        docker_with(r, r->path_id, make_it);
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

static json_t *
exec_of(struct visit *r, const struct docked *d)
{
    json_t *exec = json_object_get(d->execs, r->of_docker->exec);

    if (exec == NULL)
        docker_refuse(r, HTTP_NOT_FOUND, "No such exec instance: %.64s", r->of_docker->exec);
    return exec;
}

static void
on_begun(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);
    json_t *exec = d != NULL ? json_object_get(d->execs, r->of_docker->exec) : NULL;

    r->of_docker->number = run->number;
    if (exec != NULL)
        json_object_set_new(exec, "number", json_integer((json_int_t)run->number));
}

static void
on_running(struct visit *r, uint64_t count)
{
    (void)count;
    if (r->of_docker->discard) {        /* detached */
        visit_empty(r, HTTP_OK);
        return;
    }
    docker_follow(r);
}

/* It may run: its client is answered before it does. */
static void
on_granted(struct visit *r)
{
    if (!r->of_docker->discard)
        docker_open_stream(r);
}

/* What cannot be run is said where its output would be, with the code that a shell has for it. */
static void
on_failed(struct visit *r, const struct err *err)
{
    struct docker *k = r->of_docker;
    struct docked *d = docked_find(k->id);
    json_t *exec = d != NULL ? json_object_get(d->execs, k->exec) : NULL;
    uint8_t head[DOCKER_FRAME];
    uint32_t code = edge_shells_code(err);
    char text[ERR_MSG_MAX + 4];

    if (exec != NULL)
        json_object_set_new(exec, "code", json_integer(code != 0 ? code : 126));
    if (k->discard || !visit_answered(r)) {
        visit_err(r, err);
        return;
    }
    snprintf(text, sizeof(text), "%s\r\n", err->msg);
    docker_frame(head, true, (uint32_t)strlen(text));
    if (!k->tty)
        visit_add(r, head, sizeof(head));
    visit_add(r, text, strlen(text));
    visit_close(r);
}

static const struct visit_answers plain = { .granted = on_granted, .no = on_failed };
static const struct visit_op_answers begins = { .run = on_begun, .done = on_running, .failed = on_failed };

static void
start_it(struct visit *r, struct docked *d)
{
    static struct edge_op op;
    json_t *exec = exec_of(r, d), *made = json_object_get(exec, "made");
    const json_t *cmd = json_object_get(made, "Cmd"), *env = json_object_get(made, "Env");
    struct docker *k = r->of_docker;
    const char *dir = json_cstr(json_object_get(made, "WorkingDir"));

    if (exec == NULL)
        return;
    if (json_object_get(exec, "number") != NULL) {
        docker_refuse(r, HTTP_CONFLICT, "exec %.64s has been started already", k->exec);
        return;
    }
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = dir != NULL ? dir : "";
    op.timeout_ms = EDGE_TIME_MAX_MS;
    k->tty = json_is_true(json_object_get(made, "Tty"));
    k->out = json_is_true(json_object_get(made, "AttachStdout"));
    k->err = json_is_true(json_object_get(made, "AttachStderr"));
    k->in = json_is_true(json_object_get(made, "AttachStdin"));
    op.flags = OP_BACKGROUND | (k->in ? OP_STDIN : 0);
    if (json_is_string(cmd))
        op.argv[op.n_argv++] = json_cstr(cmd);
    for (size_t i = 0; i < json_array_size(cmd) && op.n_argv < EDGE_WORDS_MAX; i++)
        op.argv[op.n_argv++] = json_cstr(json_array_get(cmd, i));
    for (size_t i = 0; i < json_array_size(env) && op.n_env < EDGE_WORDS_MAX; i++)
        op.env[op.n_env++] = json_cstr(json_array_get(env, i));
    for (size_t i = 0; i < op.n_env; i++) {
        if (strchr(op.env[i], '=') == NULL || op.env[i][0] == '=') {
            docker_refuse(r, HTTP_BAD_REQUEST, "%s", "Env is a list of NAME=VALUE");
            return;
        }
    }
    if (op.argv[0][0] == '\0' || json_array_size(cmd) >= EDGE_WORDS_MAX) {
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "Cmd is a list of at most 1023 words");
        return;
    }
    if (k->tty)
        docker_terminal(json_object_get(r->json, "ConsoleSize") != NULL ? r->json : made, &op);
    json_object_set_new(exec, "number", json_integer(0));
    visit_op(r, d->id, &op, &plain, &begins);
}

/* The container that an exec's id begins with. */
static void
with_exec(struct visit *r, void (*then)(struct visit *r, struct docked *d))
{
    struct docker *k = docker_of(r);
    char box[EDGE_ID + 1];

    if (k == NULL)
        return;
    snprintf(k->exec, sizeof(k->exec), "%s", r->path_id);
    snprintf(box, sizeof(box), "%.32s", r->path_id);
    if (strlen(r->path_id) != DOCKER_EXEC_ID || !edge_is_id(box))
        docker_refuse(r, HTTP_NOT_FOUND, "No such exec instance: %.64s", r->path_id);
    else
        docker_with(r, box, then);
}

void
docker_exec_start(struct visit *r)
{
    if (docker_of(r) == NULL)
        return;
    r->of_docker->what = DOCKER_EXEC;
    r->of_docker->discard = json_is_true(json_object_get(r->json, "Detach"));
    with_exec(r, start_it);
}

/* --- how it is ---------------------------------------------------------------------------------------------------- */

static void
tell(struct visit *r, json_t *exec, bool running, json_t *code)
{
    json_t *made = json_object_get(exec, "made"), *cmd = json_object_get(made, "Cmd"), *args;
    const char *entry = json_is_string(cmd) ? json_string_value(cmd) : json_string_value(json_array_get(cmd, 0));

    args = json_is_array(cmd) ? json_copy(cmd) : json_array();
    (void)json_array_remove(args, 0);
    visit_json(r, HTTP_OK, json_pack("{s:s, s:s, s:b, s:O?, s:b, s:b, s:b, s:b, s:i, s:s, s:{s:b, s:s, s:o, s:b}}",
                                     "ID", r->of_docker->exec, "ContainerID", r->of_docker->id, "Running", running,
                                     "ExitCode", code, "OpenStdin", json_is_true(json_object_get(made, "AttachStdin")),
                                     "OpenStdout", 1, "OpenStderr", 1, "CanRemove", 0, "Pid", 0, "DetachKeys", "",
                                     "ProcessConfig", "tty", json_is_true(json_object_get(made, "Tty")), "entrypoint",
                                     entry != NULL ? entry : "", "arguments", args, "privileged", 0));
}

static void
on_state(struct visit *r, const struct edge_run *run)
{
    struct docked *d = docked_find(r->of_docker->id);
    json_t *exec = d != NULL ? json_object_get(d->execs, r->of_docker->exec) : NULL;

    if (exec != NULL && (run->state & RUN_ENDED) != 0)
        json_object_set_new(exec, "code", json_integer(docker_code(run->flags, run->code)));
}

static void
on_told(struct visit *r, uint64_t count)
{
    struct docked *d = docked_find(r->of_docker->id);
    json_t *exec = d != NULL ? exec_of(r, d) : NULL, *code = json_object_get(exec, "code");

    (void)count;
    if (exec != NULL)
        tell(r, exec, code == NULL, code);
}

static const struct visit_answers asks = { .no = visit_err };
static const struct visit_op_answers states = { .run = on_state, .done = on_told, .failed = visit_err };

static void
look(struct visit *r, struct docked *d)
{
    json_t *exec = exec_of(r, d), *code = json_object_get(exec, "code");
    json_int_t number = json_integer_value(json_object_get(exec, "number"));

    if (exec == NULL)
        return;
    if (code != NULL || number == 0)
        tell(r, exec, false, code);
    else
        visit_run(r, d->id, &(struct edge_run_ask){ .what = RUN_GET, .number = (uint64_t)number, .role = "",
                                                    .text = "" }, &asks, &states);
}

void
docker_exec_inspect(struct visit *r)
{
    with_exec(r, look);
}

static void
resize(struct visit *r, struct docked *d)
{
    json_t *exec = exec_of(r, d);
    json_int_t number = json_integer_value(json_object_get(exec, "number"));

    if (exec != NULL && number == 0)
        docker_refuse(r, HTTP_CONFLICT, "exec %.64s does not run", r->of_docker->exec);
    else if (exec != NULL)
        docker_size(r, (uint64_t)number);
}

void
docker_exec_resize(struct visit *r)
{
    with_exec(r, resize);
}
