/* proto/edge.c: see edge.h */
#include "proto/edge.h"

#include <string.h>

#include "base/str.h"

static const char *const states[BOX_STATES] = {
    [BOX_UNINITIALIZED] = "uninitialized", [BOX_INITIALIZING] = "initializing", [BOX_READY] = "ready",
    [BOX_DEGRADED] = "degraded", [BOX_STOPPING] = "stopping", [BOX_STOPPED] = "stopped",
    [BOX_RECOVERING] = "recovering",
};

bool
edge_word(const char *const *names, int from, int n, const char *name, int *out)
{
    for (int i = from; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *
box_state_name(enum box_state state)
{
    return states[state];
}

bool
box_state_parse(const char *name, enum box_state *out)
{
    int i;

    if (!edge_word(states, 0, BOX_STATES, name, &i))
        return false;
    *out = (enum box_state)i;
    return true;
}

#define HEX "0123456789abcdef"

bool
edge_is_id(const char *text)
{
    return strspn(text, HEX) == EDGE_ID && text[EDGE_ID] == '\0';
}

bool
edge_maybe_id(const char *text)
{
    return text[0] == '\0' || edge_is_id(text);
}

bool
edge_is_capability(const char *text)
{
    return strspn(text, HEX) == EDGE_CAPABILITY && text[EDGE_CAPABILITY] == '\0';
}

bool
edge_maybe_capability(const char *text)
{
    return text[0] == '\0' || edge_is_capability(text);
}

static const char *const roles[EDGE_ROLES] = {
    [EDGE_NOBODY] = "nobody", [EDGE_OPERATOR] = "operator", [EDGE_AGENT] = "agent", [EDGE_APPROVER] = "approver",
    [EDGE_AUDITOR] = "auditor", [EDGE_KEY] = "key", [EDGE_ATTACH] = "attach",
};

const char *
edge_role_name(enum edge_role role)
{
    return roles[role];
}

bool
edge_role_parse(const char *name, enum edge_role *out)
{
    int i;

    if (!edge_word(roles, EDGE_NOBODY + 1, EDGE_ROLES, name, &i))
        return false;
    *out = (enum edge_role)i;
    return true;
}

bool
edge_role_of_person(uint8_t role)
{
    return role == EDGE_OPERATOR || role == EDGE_APPROVER || role == EDGE_AUDITOR;
}

bool
edge_credential_well(enum edge_credential kind, const char *text)
{
    static const char prefix[] = "cloche_";
    size_t n = sizeof(prefix) - 1;

    if (strncmp(text, prefix, n) != 0)
        return false;
    text += n;
    for (int i = EDGE_NOBODY + 1; i < EDGE_ROLES; i++) {
        n = strlen(roles[i]);
        if ((kind == EDGE_BEARER || i == EDGE_KEY) && strncmp(text, roles[i], n) == 0 && text[n] == '_')
            return strspn(text + n + 1, HEX) == 64 && text[n + 65] == '\0';
    }
    return false;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool
edge_name_well(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n <= EDGE_NAME_MAX && strspn(name, LETTERS "._-") == n && strspn(name, LETTERS) > 0;
}

bool
edge_maybe_name(const char *name)
{
    return name[0] == '\0' || edge_name_well(name);
}

static bool
value_well(const char *p, size_t n)
{
    if (n > 255)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
            return false;
    return true;
}

bool
edge_workspace_well(const char *key)
{
    return value_well(key, strlen(key));
}

/* Whether the line of @n bytes at @line has a name that no line from @labels to it has. */
static bool
name_new(const char *labels, const char *line, size_t name)
{
    for (const char *at = labels + 1; at < line; at = strchr(at, '\n') + 1)
        if (strncmp(at, line, name + 1) == 0)
            return false;
    return true;
}

bool
edge_labels_well(const char *labels)
{
    if (labels[0] == '\0')
        return true;
    if (labels[0] != '\n')
        return false;
    for (const char *at = labels + 1, *end; *at != '\0'; at = end + 1) {
        size_t name = strspn(at, LETTERS "._/-");
        end = strchr(at, '\n');
        if (end == NULL || name == 0 || name > 63 || at[name] != '=' ||
            !value_well(at + name + 1, (size_t)(end - at) - name - 1) || !name_new(labels, at, name))
            return false;
    }
    return true;
}

struct str
edge_line(const char *lines, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strchr(lines, '\n'); at != NULL && at[1] != '\0'; at = strchr(at + 1, '\n'))
        if (strncmp(at + 1, name, n) == 0 && at[1 + n] == '=')
            return (struct str){ at + n + 2, strcspn(at + n + 2, "\n") };
    return (struct str){ NULL, 0 };
}

static bool
create_well(const struct edge_create *c)
{
    return (c->key == NULL) == (c->body == NULL) && edge_recovery_well(&c->recovery) &&
           ((c->flags & EDGE_REATTACH) == 0 || (c->workspace[0] != '\0' && (c->flags & EDGE_DEFAULT) == 0)) &&
           (c->name[0] == '\0' || (edge_name_well(c->name) && !edge_is_id(c->name)));
}
PROTO_SHAPE_WELL(edge_create, EDGE_CREATE_FIELDS, create_well)

bool
edge_cursor(const char *text, char id[EDGE_ID + 1], uint64_t *created_ms)
{
    if (strlen(text) < EDGE_ID)
        return false;
    memcpy(id, text, EDGE_ID);
    id[EDGE_ID] = '\0';
    *created_ms = 0;
    if (!edge_is_id(id) || text[EDGE_ID] == '\0')
        return edge_is_id(id);
    return text[EDGE_ID] == '-' && str_parse_u64(str_of(text + EDGE_ID + 1), INT64_MAX, created_ms);
}

bool
edge_maybe_cursor(const char *text)
{
    char id[EDGE_ID + 1];
    uint64_t created_ms;

    return text[0] == '\0' || edge_cursor(text, id, &created_ms);
}

static bool
edge_volume_name_well(const char *name)
{
    return name[0] != '\0' && edge_workspace_well(name);
}

PROTO_SHAPE(edge_only_id, EDGE_ONLY_ID)
PROTO_SHAPE(edge_number, EDGE_ONLY_NUMBER)
PROTO_SHAPE(edge_count, EDGE_ONLY_COUNT)
PROTO_SHAPE(edge_yes, EDGE_ONLY_YES)
PROTO_SHAPE(edge_why, EDGE_ONLY_WHY)
PROTO_SHAPE(edge_bytes, EDGE_ONLY_BYTES)
PROTO_SHAPE(edge_recovery, EDGE_RECOVERY_FIELDS)
PROTO_SHAPE(edge_box, EDGE_BOX_FIELDS)
PROTO_SHAPE(edge_volume, EDGE_VOLUME_FIELDS)
PROTO_SHAPE(edge_token, EDGE_TOKEN_FIELDS)
PROTO_SHAPE(edge_event, EDGE_EVENT_FIELDS)
PROTO_SHAPE(edge_port, EDGE_PORT_FIELDS)
PROTO_SHAPE(edge_attach, EDGE_ATTACH_FIELDS)
PROTO_SHAPE(edge_usage, EDGE_USAGE_FIELDS)
PROTO_SHAPE(edge_op_result, EDGE_OP_RESULT_FIELDS)

/* --- operations --------------------------------------------------------------------------------------------------- */

const char *
op_name(enum op_kind kind)
{
    static const char *const names[OP_KINDS] = {
        "none", "exec", "read", "write", "list", "stat", "remove", "mkdir", "connect", "watch", "attach_tunnel",
        "browser", "desktop",
    };

    return names[kind];
}

bool
op_is_wardens(enum op_kind kind)
{
    return kind == OP_CONNECT || kind == OP_ATTACH || kind == OP_BROWSER || kind == OP_DESKTOP;
}

const char *
edge_attach_mode(bool screen, bool writes)
{
    return screen ? (writes ? "control" : "view") : writes ? "write" : "inspect";
}

#define BASE64 LETTERS "+/="

bool
edge_attach_keys_well(const char *host, const char *user)
{
    static const char begin[] = "-----BEGIN OPENSSH PRIVATE KEY-----\n", end[] = "-----END OPENSSH PRIVATE KEY-----\n";
    static const char type[] = "ssh-ed25519 ";
    const char *at = host + sizeof(begin) - 1;

    if (strlen(host) > EDGE_ATTACH_KEY_MAX || strlen(user) > EDGE_ATTACH_KEY_MAX ||
        strncmp(host, begin, sizeof(begin) - 1) != 0 || strncmp(user, type, sizeof(type) - 1) != 0)
        return false;
    user += sizeof(type) - 1;
    at += strspn(at, BASE64 "\n");
    return strcmp(at, end) == 0 && at[-1] == '\n' && user[0] != '\0' && strspn(user, BASE64) == strlen(user);
}

static bool
flags_well(const struct edge_op *op)
{
    static const uint8_t may[OP_KINDS] = {
        [OP_EXEC] = OP_STDIN | OP_LIVE | OP_PTY | OP_BACKGROUND | OP_LIMITS, [OP_WRITE] = OP_PARENTS | OP_EXCLUSIVE,
        [OP_REMOVE] = OP_RECURSIVE, [OP_MKDIR] = OP_PARENTS, [OP_WATCH] = OP_RECURSIVE,
        [OP_ATTACH] = OP_WRITES, [OP_DESKTOP] = OP_WRITES,
    };
    bool pty = (op->flags & OP_PTY) != 0, live = (op->flags & OP_LIVE) != 0;
    bool behind = (op->flags & OP_BACKGROUND) != 0, input = (op->flags & OP_STDIN) != 0;

    if (op->kind == OP_ATTACH || op->kind == OP_DESKTOP)
        return (op->flags & ~OP_WRITES) == 0 && op->rows == 0 && op->cols == 0;
    return (op->flags & ~may[op->kind]) == 0 && !(live && behind) && (!live || input) &&
           (!pty || ((live || behind) && input)) && (op->rows != 0) == pty && (op->cols != 0) == pty;
}

/* A context is begun or called with words that are no command. */
static bool
context_well(const struct edge_op *op)
{
    if (op->context == 0)
        return true;
    if (op->kind != OP_EXEC)
        return false;
    if (op->context == EDGE_CONTEXT_NEW)
        return (op->flags & ~OP_LIMITS) == OP_BACKGROUND && op->n_argv == 1 && op->timeout_ms == 0;
    return op->flags == 0 && op->n_argv == 2 && op->n_env == 0 && op->path[0] == '\0';
}

static bool
op_well(const struct edge_op *op)
{
    if (!flags_well(op) || !context_well(op) || ((op->flags & OP_LIMITS) == 0 &&
                            ((op->memory | op->output | op->cpu_milli | op->pids) != 0 || op->timed)))
        return false;
    for (size_t i = 0; i < op->n_env; i++)
        if (op->env[i][0] == '=' || strchr(op->env[i], '=') == NULL)
            return false;
    if (op->kind == OP_CONNECT && (op->offset == 0 || op->offset > UINT16_MAX || op->length != 0 ||
                                   !edge_is_id(op->path)))
        return false;
    if (op->kind == OP_BROWSER && ((op->offset != BROWSER_START && op->offset != BROWSER_CONNECT) || op->length != 0 ||
                                   !edge_is_id(op->path)))
        return false;
    if (op->kind == OP_DESKTOP && (op->offset != 0 || op->length != 0 || !edge_is_id(op->path)))
        return false;
    if (op->kind == OP_ATTACH)
        return op->n_argv == 2 && op->n_env == 0 && op->timeout_ms > 0 && op->timeout_ms <= EDGE_ATTACH_FOR_MAX * 1000UL
               && edge_is_id(op->path) && edge_attach_keys_well(op->argv[0], op->argv[1]);
    return op->kind == OP_EXEC ? op->n_argv > 0 && op->argv[0][0] != '\0' : op->n_argv == 0 && op->n_env == 0;
}

static bool
op_writes(const void *m)
{
    const struct edge_op *op = m;

    return op->kind == OP_WRITE;
}

static bool
content_well(const struct edge_content *c)
{
    return c->n_head <= c->size;
}
PROTO_SHAPE_WELL(edge_content, EDGE_CONTENT_FIELDS, content_well)
PROTO_SHAPE_WELL(edge_op, EDGE_OP_FIELDS, op_well)

/* What is said of the watch as a whole names no path, and only what was renamed has a former one. */
static bool
change_well(const struct edge_change *c)
{
    return (c->kind == EDGE_CHANGE_NONE ||
            (c->path[0] == '\0') == (c->kind == EDGE_CHANGE_WATCHING || c->kind == EDGE_CHANGE_OVERFLOW)) &&
           (c->from[0] == '\0') == (c->kind != EDGE_CHANGE_RENAMED);
}
PROTO_SHAPE_WELL(edge_change, EDGE_CHANGE_FIELDS, change_well)

const char *
op_end_name(enum op_end result)
{
    static const char *const names[RESULTS] = {
        "ok", "nonzero", "signaled", "timed_out", "failed", "canceled", "refused",
    };

    return names[result];
}

uint32_t
edge_shells_code(const struct err *err)
{
    return err_is(err, "exec.not-found") || err_is(err, "exec.no-interpreter") ? 127
           : err_is(err, "exec.not-runnable") ? 126 : 0;
}

/* As they are sent, each behind its length. */
static size_t
words_bytes(const struct edge_op *op)
{
    size_t n = 0;

    for (size_t i = 0; i < op->n_argv; i++)
        n += strlen(op->argv[i]) + 4;
    for (size_t i = 0; i < op->n_env; i++)
        n += strlen(op->env[i]) + 4;
    return n;
}

bool
edge_words_fit(const struct edge_op *op, struct err *err)
{
    size_t words = words_bytes(op);

    if (words <= EDGE_WORDS_BYTES)
        return true;
    err_set(err, ERR_USAGE, "exec.too-long", "the words and variables of the command have %zu bytes; at most %d are "
            "taken", words, EDGE_WORDS_BYTES);
    err_hint(err, "give what is longer over stdin, or write it to a file (PUT .../files/...) and run that");
    return false;
}

bool
edge_cwd_well(const struct edge_op *op, struct err *err)
{
    const char *p = op->kind == OP_EXEC ? op->path : "";

    while (*p != '\0') {
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0) {
            err_set(err, ERR_USAGE, "exec.cwd", "cwd %.200s: `..` behind a symbolic link leads to another folder than "
                    "the text says", op->path);
            err_hint(err, "say the folder without it: from a slash on, or below the workspace");
            return false;
        }
        p += p[n] == '/' ? n + 1 : n;
    }
    return true;
}
