/* cli/approvals_daemon.c: see approvals_daemon.h */
#include "cli/approvals_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/mcp.h"
#include "program/json.h"
#include "workspace/quote.h"

#define ID         32
#define SHORT_ID   8
#define OTHERS_MAX 32       /* daemons of `cloche mcp` that are asked */
#define CURSOR_MAX 64       /* of what a daemon says as "next" */
#define PAGES_MAX  16       /* of a list; a daemon has two of what waits */

/* One page of them behind @next, which becomes where it goes on, or "". */
static int
add_page(const struct api *api, char next[CURSOR_MAX + 1], json_t *out, struct err *err)
{
    char path[64 + CURSOR_MAX];
    json_t *answer = NULL;
    int r;

    snprintf(path, sizeof(path), "/v1/approvals?state=pending&after=%s", next);
    if (api_ask(api, "GET", path, NULL, &answer, err) < 0)
        return -1;
    snprintf(next, CURSOR_MAX + 1, "%s", json_text(answer, "next"));
    r = json_array_extend(out, json_object_get(answer, "approvals"));
    json_decref(answer);
    if (r == 0 && next[strspn(next, "0123456789abcdef-")] == '\0')
        return 0;
    return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon's answer is not a list of approvals");
}

/* Of one daemon; where none runs that is nothing, unless @must. */
static int
pending_of(const struct api *api, bool must, json_t **out, struct err *err)
{
    char next[CURSOR_MAX + 1] = "";
    struct err why = ERR_INIT;
    size_t pages = 0;

    *out = json_array();
    do {
        if (add_page(api, next, *out, &why) == 0)
            continue;
        if (!must && err_is(&why, "api.down"))
            return 0;
        json_decref(*out);
        *out = NULL;
        *err = why;
        return -1;
    } while (next[0] != '\0' && ++pages < PAGES_MAX);
    return 0;
}

int
gate_pending(const struct api *api, bool must, json_t **out, struct err *err)
{
    static struct api others[OTHERS_MAX];
    size_t n;

    if (pending_of(api, must, out, err) < 0)
        return -1;
    n = must || api->token[0] != '\0' ? 0 : mcp_daemons(others, OTHERS_MAX);
    for (size_t i = 0; i < n; i++) {
        json_t *more = NULL;
        if (pending_of(&others[i], false, &more, &(struct err)ERR_INIT) == 0)
            json_array_extend(*out, more);
        json_decref(more);
    }
    return 0;
}

/* --- for people --------------------------------------------------------------------------------------------------- */

/* Each line of it on one of its own: as it is where that is harmless, in quotes with escapes where it is not. */
static void
print_text(const char *text)
{
    for (const char *end; *text != '\0'; text = *end == '\n' ? end + 1 : end) {
        cleanup_buf struct buf line = BUF_INIT(4 * 1024 * 1024);
        end = strchrnul(text, '\n');
        if (quote_harmless((struct str){ text, (size_t)(end - text) }))
            printf("    %.*s\n", (int)(end - text), text);
        else if (quote_name(&line, "", (struct str){ text, (size_t)(end - text) }) == 0)
            printf("    %.*s\n", (int)line.n, (const char *)line.p);
    }
}

static void
print_word(const char *label, const char *text)
{
    cleanup_buf struct buf line = BUF_INIT(64 * 1024);

    if (text[0] != '\0' && quote_name(&line, "", str_of(text)) == 0)
        printf("  %-9s %.*s\n", label, (int)line.n, (const char *)line.p);
}

static void
print_params(const json_t *params)
{
    const char *code = json_string_value(json_object_get(params, "code"));
    json_t *rest = json_copy((json_t *)(uintptr_t)params);
    char *text;

    if (code != NULL) {
        print_text(code);
        json_object_del(rest, "code");
    }
    text = json_object_size(rest) > 0 ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text != NULL)
        print_text(text);
    free(text);
    json_decref(rest);
}

void
gate_print(const json_t *a, bool whole)
{
    const json_t *params = json_object_get(a, "params");
    cleanup_buf struct buf caller = BUF_INIT(4096);
    const char *name = json_text(a, "caller_name");

    (void)quote_name(&caller, "", str_of(name[0] != '\0' ? name : json_text(a, "caller")));
    printf("%.8s  %s  %s  %.*s", json_text(a, "id"), json_text(a, "risk"), json_text(a, "tool"), (int)caller.n,
           caller.n > 0 ? (const char *)caller.p : "");
    if (strcmp(json_text(a, "state"), "pending") == 0)
        printf("  %lld s left\n", (long long)json_integer_value(json_object_get(a, "remaining_ms")) / 1000);
    else
        printf("  %s\n", json_text(a, "state"));
    if (json_is_object(params))
        print_params(params);
    else
        printf("    (too long for a list: show %.8s)\n", json_text(a, "id"));
    if (!whole)
        return;
    print_word("id", json_text(a, "id"));
    print_word("sandbox", json_text(a, "sandbox"));
    print_word("rule", json_text(a, "rule"));
    print_word("", json_text(a, "description"));
    print_word("sha256", json_text(a, "digest"));
    print_word("decided", json_text(a, "decided_by_name"));
    print_word("reason", json_text(a, "reason"));
}

/* --- one ---------------------------------------------------------------------------------------------------------- */

bool
gate_is_id(const char *id)
{
    size_t n = strspn(id, "0123456789abcdef");

    return n >= 4 && n <= ID && id[n] == '\0';
}

json_t *
gate_find(const struct api *api, const char *id, struct err *err)
{
    char path[64];
    json_t *list, *one, *found = NULL;
    size_t i, n = 0;

    if (strlen(id) == ID) {
        snprintf(path, sizeof(path), "/v1/approvals/%s", id);
        return api_ask(api, "GET", path, NULL, &found, err) == 0 ? found : NULL;
    }
    if (pending_of(api, true, &list, err) < 0)
        return NULL;
    json_array_foreach(list, i, one) {
        if (strncmp(json_text(one, "id"), id, strlen(id)) == 0) {
            found = one;
            n++;
        }
    }
    if (n == 1) {           /* whole, as lists may leave something out */
        snprintf(path, sizeof(path), "/v1/approvals/%.32s", json_text(found, "id"));
        if (api_ask(api, "GET", path, NULL, &found, err) < 0)
            n = 0;
    } else {
        err_set(err, ERR_NOT_FOUND, n == 0 ? "cli.approvals.gone" : "cli.approvals.id", n == 0
                ? "nothing that waits has the id %s" : "more than one that waits begins with %s", id);
    }
    json_decref(list);
    return n == 1 ? found : NULL;
}

/* Also where more than one would be meant: that is said. */
static bool
knows(const struct api *api, const char *id)
{
    struct err err = ERR_INIT;
    json_t *one = gate_find(api, id, &err);

    json_decref(one);
    return one != NULL || err_is(&err, "cli.approvals.id");
}

void
gate_seek(struct api *api, const char *id)
{
    static struct api others[OTHERS_MAX];
    size_t n = api->token[0] != '\0' || knows(api, id) ? 0 : mcp_daemons(others, OTHERS_MAX);

    for (size_t i = 0; i < n; i++) {
        if (knows(&others[i], id)) {
            *api = others[i];
            return;
        }
    }
}

int
gate_decide(const struct api *api, const char *id, const struct gate_decision *d, json_t **out, struct err *err)
{
    json_t *one = gate_find(api, id, err), *body;
    char path[80];
    uint64_t ms;
    int r;

    if (one == NULL)
        return -1;
    snprintf(path, sizeof(path), "/v1/approvals/%.32s/%s", json_text(one, "id"), d->approve ? "approve" : "deny");
    json_decref(one);
    body = json_object();
    if (d->approve)
        json_object_set_new(body, "scope", json_string(d->scope));
    if (d->reason != NULL && json_object_set_new(body, "reason", json_string(d->reason)) < 0) {
        json_decref(body);
        return err_set(err, ERR_USAGE, "cli.approvals.reason", "--reason is not UTF-8");
    }
    if (d->expires != NULL) {
        if (!str_parse_duration_ms(str_of(d->expires), 30UL * 86400 * 1000, &ms) || ms < 1000) {
            json_decref(body);
            return err_set(err, ERR_USAGE, "cli.approvals.expires", "--expires is a time such as 90s, 30m, 12h");
        }
        json_object_set_new(body, "expires", json_integer((json_int_t)(ms / 1000)));
    }
    r = api_ask(api, "POST", path, body, out, err);
    json_decref(body);
    return r;
}
