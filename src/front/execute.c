/* front/execute.c: POST /v1/execute: code in a sandbox of its own, which ends with it (docs/daemon.md)
 *
 * One question after the other: may it be done (as MCP's code_execute is asked about), the sandbox, its files, the
 * command. The sandbox is there for as long as the question that made it: that is withdrawn when the command has ended
 * or the client is gone, and the warden ends the sandbox when this process is gone (EDGE_ONCE). The code is standard
 * input; where the request has another one, an argument of the interpreter.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "front/collect.h"
#include "front/front.h"
#include "match/language.h"

#define IDLE_S     60               /* should nobody come back to it */
#define PARAMS_MAX (60UL * 1024)    /* longer ones the warden judges by the operations that they come to */
#define CODE       "execute.request"

/* --- the request -------------------------------------------------------------------------------------------------- */

static bool
is_known(struct request *r)
{
    static const char *const known[] = { "language", "code", "stdin", "files", "collect", "policy", "limits", "env",
                                         "timeout_ms", "encoding", NULL };
    const char *name = json_unknown(r->json, known);

    return name == NULL || reply_member(r, CODE, name, "known members: language, code, stdin, files, collect, policy, "
                                        "limits, env, timeout_ms, encoding");
}

/* The command as POST .../exec takes it; NULL: said. */
static json_t *
command_of(struct request *r)
{
    const json_t *code = json_object_get(r->json, "code"), *input = json_object_get(r->json, "stdin");
    const struct language *l = language_find(json_string_value(json_object_get(r->json, "language")));
    json_t *words = input != NULL ? json_pack("[s, s, O]", l->program, l->option, code) : json_array();

    for (size_t i = 0; input == NULL && l->argv[i] != NULL; i++)
        json_array_append_new(words, json_string(l->argv[i]));
    return json_pack("{s:o, s:O, s:O*, s:O*, s:O*}", "command", words, "stdin", input != NULL ? input : code, "env",
                     json_object_get(r->json, "env"), "timeout_ms", json_object_get(r->json, "timeout_ms"),
                     "encoding", json_object_get(r->json, "encoding"));
}

static bool
language_fits(struct request *r)
{
    const struct language *l = language_find(json_string_value(json_object_get(r->json, "language")));
    cleanup_buf struct buf names = BUF_INIT((LANGUAGES + LANGUAGES_MORE) * (LANGUAGE_TEXT_MAX + 2));

    if (l == NULL) {
        buf_puts(&names, "language is one of ");
        language_names(&names, ", ");
        return reply_unfit(r, CODE, buf_nul(&names) == 0 ? (const char *)names.p : "language is not known");
    }
    if (json_object_get(r->json, "stdin") != NULL && l->option == NULL)
        return reply_unfit(r, CODE, "stdin goes with python, javascript and shell; others read their code from there");
    return true;
}

/* Policy and limits, as the text of one policy. NULL: said. */
static char *
policy_of(struct request *r)
{
    json_t *policy = json_object_get(r->json, "policy"), *limits = json_object_get(r->json, "limits"), *both;
    char *text = NULL;

    if ((policy != NULL && !json_is_object(policy)) || (limits != NULL && !json_is_object(limits))) {
        reply_unfit(r, CODE, "policy is an object, as a settings file in JSON; limits is its member of that name");
        return NULL;
    }
    if (limits != NULL && json_object_get(policy, "limits") != NULL) {
        reply_unfit(r, CODE, "limits are said twice: in policy, and beside it");
        return NULL;
    }
    both = policy != NULL ? json_copy(policy) : json_object();
    if (limits != NULL)
        json_object_set(both, "limits", limits);
    text = json_object_size(both) > 0 ? json_dumps(both, JSON_COMPACT | JSON_DIGITS) : strdup("");
    json_decref(both);
    if (text == NULL)
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "try again", "out of memory");
    return text;
}

/* --- the way ------------------------------------------------------------------------------------------------------ */

static void
run(struct request *r)
{
    static struct edge_op op;

    /* what it borrowed from is as it was, but another request's may have been here since */
    buf_reset(&r->in);
    json_decref(r->list);
    r->list = NULL;
    if (exec_request(r, &op))
        exec_run(r, r->id, &op, wants_events(r));
}

static void
on_made(struct request *r, const struct edge_box *box)
{
    memcpy(r->id, box->id, sizeof(box->id));
    r->async = false;       /* an approval for what happens in a sandbox that is gone by then would be for nothing */
    execute_files_write(r, run);
}

static const struct answers made = { .box = on_made };

static void
make(struct request *r)
{
    struct edge_create create = { .flags = EDGE_FLEETING | EDGE_ONCE, .idle_s = IDLE_S, .name = "",
                                  .labels = "\nmade-by=execute\n", .policy = r->policy, .workspace = "",
                                  .volume = "", .language = r->language };

    ask_create(r, &create, &made);
    r->maker = r->ticket;
}

void
execute_over(struct request *r)
{
    if (r->maker != 0)
        ask_cancel(r, r->maker);
    r->maker = 0;
}

static void
on_verdict(struct request *r, const struct edge_verdict *v)
{
    struct err err = ERR_INIT;

    if (v->says == GATE_WAIT) {
        reply_waits(r, v);
    } else if (v->says == GATE_DENIED) {
        err_set(&err, ERR_DENIED, "gate.denied", "%s", v->reason[0] != '\0' ? v->reason : "nobody approved it in time");
        reply_err(r, &err);
    } else {
        make(r);
    }
}

static const struct answers judged = { .gate = on_verdict };

/* What somebody is asked about: the request, but for the form of its answer, with the language by its own name. Of its
 * files, what each is judged by. */
static json_t *
params_of(struct request *r, const struct language *l)
{
    json_t *params = json_copy(r->json), *files = r->files != NULL ? execute_files_params(r) : NULL;
    bool named = json_object_set_new(params, "language", json_string(l->name)) == 0;

    json_object_del(params, "encoding");
    if (named && (r->files == NULL || (files != NULL && json_object_set_new(params, "files", files) == 0)))
        return params;
    json_decref(params);
    return NULL;
}

static void
execute(struct request *r)
{
    const json_t *code = json_object_get(r->json, "code");
    const struct language *l;
    static struct edge_op op;
    cleanup_free char *text = NULL;
    json_t *params, *command;

    if (!json_is_object(r->json)) {
        reply_unfit(r, CODE, "the body is an object with language and code");
        return;
    }
    if (!is_known(r) || !language_fits(r))
        return;
    if (!json_is_string(code)) {
        reply_unfit(r, CODE, "code is a string");
        return;
    }
    l = language_find(json_string_value(json_object_get(r->json, "language")));
    r->language = l->parked != NULL ? l->name : "";     /* a row of cloche's own, which stays */
    r->policy = policy_of(r);
    r->files = json_incref(json_object_get(r->json, "files"));
    if (r->policy == NULL || !execute_files_well(r) || !collect_well(r, json_object_get(r->json, "collect")))
        return;
    params = params_of(r, l);
    text = json_dumps(params, JSON_COMPACT);
    command = command_of(r);
    json_decref(r->json);
    r->json = command;
    if (command == NULL || text == NULL)
        reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "memory", "try again", "out of memory");
    else if (!exec_request(r, &op) || !ask_words_fit(r, &op))
        ;       /* said: nothing is made, and nobody asked, for what is no command */
    else if (strlen(text) > PARAMS_MAX)
        make(r);
    else
        ask_gate(r, "", "code_execute", params, !r->async, &judged);
    json_decref(params);
}

const struct route execute_routes[] = {
    { "POST", "/v1/execute", execute, true, false },
};
const size_t execute_n_routes = ARRAY_LEN(execute_routes);
