/* warden/edge.c: see edge.h */
#include "warden/edge.h"

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

int
edge_put_id(struct buf *b, const char *id)
{
    return wire_put_cstr(b, id, EDGE_ID);
}

bool
edge_get_id(struct wire_in *in, char out[EDGE_ID + 1], bool maybe)
{
    const char *id = wire_cstr(in, EDGE_ID, NULL);

    if (in->bad || !(edge_is_id(id) || (maybe && id[0] == '\0')))
        return false;
    memcpy(out, id, strlen(id) + 1);
    return true;
}

static const char *const roles[EDGE_ROLES] = {
    [EDGE_NOBODY] = "nobody", [EDGE_OPERATOR] = "operator", [EDGE_AGENT] = "agent", [EDGE_APPROVER] = "approver",
    [EDGE_AUDITOR] = "auditor", [EDGE_KEY] = "key",
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

int
edge_put_create(struct buf *b, const struct edge_create *c)
{
    buf_put_u8(b, c->flags);
    buf_put_be32(b, c->idle_s);
    buf_put_be32(b, c->life_s);
    edge_put_recovery(b, &c->recovery);
    wire_put_cstr(b, c->name, EDGE_NAME_MAX);
    wire_put_cstr(b, c->labels, EDGE_LABELS_MAX);
    wire_put_cstr(b, c->policy, EDGE_POLICY_MAX);
    wire_put_cstr(b, c->workspace, EDGE_WORKSPACE_MAX);
    wire_put_cstr(b, c->volume, EDGE_WORKSPACE_MAX);
    buf_put_be32(b, c->keep_s);
    packet_put_bytes(b, c->key, c->key != NULL ? EDGE_HASH : 0);
    return packet_put_bytes(b, c->body, c->body != NULL ? EDGE_HASH : 0);
}

bool
edge_get_create(struct wire_in *in, struct edge_create *c)
{
    size_t key, body;

    c->flags = wire_u8(in);
    c->idle_s = wire_be32(in);
    c->life_s = wire_be32(in);
    edge_get_recovery(in, &c->recovery);
    c->name = wire_cstr(in, EDGE_NAME_MAX, NULL);
    c->labels = wire_cstr(in, EDGE_LABELS_MAX, NULL);
    c->policy = wire_cstr(in, EDGE_POLICY_MAX, NULL);
    c->workspace = wire_cstr(in, EDGE_WORKSPACE_MAX, NULL);
    c->volume = wire_cstr(in, EDGE_WORKSPACE_MAX, NULL);
    c->keep_s = wire_be32(in);
    c->key = packet_get_bytes(in, EDGE_HASH, &key);
    c->body = packet_get_bytes(in, EDGE_HASH, &body);
    if (!wire_done(in) || (c->flags & ~(EDGE_DEFAULT | EDGE_REATTACH | EDGE_FLEETING)) != 0 ||
        !edge_labels_well(c->labels) || key != body || (key != 0 && key != EDGE_HASH) ||
        !edge_workspace_well(c->workspace) ||
        !edge_workspace_well(c->volume) || !edge_recovery_well(&c->recovery) ||
        ((c->flags & EDGE_REATTACH) != 0 && (c->workspace[0] == '\0' || (c->flags & EDGE_DEFAULT) != 0)) ||
        (c->name[0] != '\0' && (!edge_name_well(c->name) || edge_is_id(c->name))))
        return false;
    if (key == 0)
        c->key = c->body = NULL;
    return true;
}

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

int
edge_put_box(struct buf *b, const struct edge_box *box)
{
    edge_put_id(b, box->id);
    buf_put_u8(b, (uint8_t)box->state);
    buf_put_u8(b, (uint8_t)((box->paused ? 1 : 0) | (box->is_default ? 2 : 0)));
    buf_put_be64(b, box->created_ms);
    buf_put_be64(b, box->started_ms);
    buf_put_be64(b, box->ended_ms);
    buf_put_be64(b, box->used_ms);
    buf_put_be32(b, box->idle_s);
    buf_put_be32(b, box->life_s);
    edge_put_recovery(b, &box->recovery);
    edge_put_id(b, box->owner);
    wire_put_cstr(b, box->name, EDGE_NAME_MAX);
    wire_put_cstr(b, box->labels, EDGE_LABELS_MAX);
    wire_put_cstr(b, box->policy, EDGE_POLICY_MAX);
    wire_put_cstr(b, box->facts, EDGE_FACTS_MAX);
    wire_put_cstr(b, box->detail, EDGE_DETAIL_MAX);
    wire_put_cstr(b, box->workspace, EDGE_WORKSPACE_MAX);
    edge_put_id(b, box->volume);
    return wire_put_cstr(b, box->how, EDGE_HOW_MAX);
}

bool
edge_get_box(struct wire_in *in, struct edge_box *box)
{
    uint8_t state, flags;

    if (!edge_get_id(in, box->id, false))
        return false;
    state = wire_u8(in);
    flags = wire_u8(in);
    box->created_ms = wire_be64(in);
    box->started_ms = wire_be64(in);
    box->ended_ms = wire_be64(in);
    box->used_ms = wire_be64(in);
    box->idle_s = wire_be32(in);
    box->life_s = wire_be32(in);
    edge_get_recovery(in, &box->recovery);
    if (!edge_get_id(in, box->owner, true))
        return false;
    box->name = wire_cstr(in, EDGE_NAME_MAX, NULL);
    box->labels = wire_cstr(in, EDGE_LABELS_MAX, NULL);
    box->policy = wire_cstr(in, EDGE_POLICY_MAX, NULL);
    box->facts = wire_cstr(in, EDGE_FACTS_MAX, NULL);
    box->detail = wire_cstr(in, EDGE_DETAIL_MAX, NULL);
    box->workspace = wire_cstr(in, EDGE_WORKSPACE_MAX, NULL);
    if (!edge_get_id(in, box->volume, true))
        return false;
    box->how = wire_cstr(in, EDGE_HOW_MAX, NULL);
    box->print = "";
    if (in->bad || state >= BOX_STATES || flags > 3)
        return false;
    box->key[0] = '\0';
    box->state = (enum box_state)state;
    box->paused = (flags & 1) != 0;
    box->is_default = (flags & 2) != 0;
    return edge_labels_well(box->labels) && edge_workspace_well(box->workspace) && edge_labels_well(box->how);
}

int
edge_put_volume(struct buf *b, const struct edge_volume *v)
{
    edge_put_id(b, v->id);
    edge_put_id(b, v->owner);
    edge_put_id(b, v->box);
    buf_put_be64(b, v->created_ms);
    buf_put_be64(b, v->unused_ms);
    buf_put_be32(b, v->keep_s);
    return wire_put_cstr(b, v->name, EDGE_WORKSPACE_MAX);
}

bool
edge_get_volume(struct wire_in *in, struct edge_volume *v)
{
    if (!edge_get_id(in, v->id, false) || !edge_get_id(in, v->owner, true) || !edge_get_id(in, v->box, true))
        return false;
    v->created_ms = wire_be64(in);
    v->unused_ms = wire_be64(in);
    v->keep_s = wire_be32(in);
    v->name = wire_cstr(in, EDGE_WORKSPACE_MAX, NULL);
    return !in->bad && v->name[0] != '\0' && edge_workspace_well(v->name);
}

int
edge_put_token(struct buf *b, const struct edge_token *token)
{
    edge_put_id(b, token->id);
    buf_put_u8(b, (uint8_t)token->role);
    buf_put_be64(b, token->created_ms);
    buf_put_be64(b, token->expires_ms);
    return wire_put_cstr(b, token->name, EDGE_NAME_MAX);
}

bool
edge_get_token(struct wire_in *in, struct edge_token *token)
{
    const char *name;
    uint8_t role;

    if (!edge_get_id(in, token->id, false))
        return false;
    role = wire_u8(in);
    token->created_ms = wire_be64(in);
    token->expires_ms = wire_be64(in);
    name = wire_cstr(in, EDGE_NAME_MAX, NULL);
    if (in->bad || role == EDGE_NOBODY || role >= EDGE_KEY ||
        (name[0] != '\0' && !edge_name_well(name)))
        return false;
    memcpy(token->name, name, strlen(name) + 1);
    token->role = (enum edge_role)role;
    return true;
}

int
edge_put_event(struct buf *b, const struct edge_event *event)
{
    buf_put_be64(b, event->number);
    buf_put_be64(b, event->at_ms);
    edge_put_id(b, event->id);
    wire_put_cstr(b, event->type, ERR_CODE_MAX);
    return wire_put_cstr(b, event->detail, EDGE_DETAIL_MAX);
}

bool
edge_get_event(struct wire_in *in, struct edge_event *event)
{
    event->number = wire_be64(in);
    event->at_ms = wire_be64(in);
    event->id = wire_cstr(in, EDGE_ID, NULL);
    event->type = wire_cstr(in, ERR_CODE_MAX, NULL);
    event->detail = wire_cstr(in, EDGE_DETAIL_MAX, NULL);
    return !in->bad;
}

const char *
op_name(enum op_kind kind)
{
    static const char *const names[OP_KINDS] = {
        "none", "exec", "read", "write", "list", "stat", "remove", "mkdir", "connect", "watch",
    };

    return names[kind];
}

static void
put_words(struct buf *b, const char *const *words, size_t n)
{
    buf_put_be32(b, (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        wire_put_cstr(b, words[i], EDGE_OP_MAX);
}

static size_t
get_words(struct wire_in *in, const char *words[EDGE_WORDS_MAX + 1])
{
    uint32_t n = wire_be32(in);

    if (n > EDGE_WORDS_MAX)
        in->bad = true;
    for (uint32_t i = 0; !in->bad && i < n; i++)
        words[i] = wire_cstr(in, EDGE_OP_MAX, NULL);
    words[in->bad ? 0 : n] = NULL;
    return in->bad ? 0 : n;
}

static void
put_content(struct buf *b, const struct edge_content *c)
{
    buf_put_u8(b, c->whole);
    buf_put_be64(b, c->size);
    buf_append(b, c->sha256, sizeof(c->sha256));
    packet_put_bytes(b, c->head, c->n_head);
}

static bool
get_content(struct wire_in *in, struct edge_content *c)
{
    uint8_t whole = wire_u8(in);
    const uint8_t *hash;

    c->whole = whole == 1;
    c->size = wire_be64(in);
    hash = wire_bytes(in, sizeof(c->sha256));
    c->head = packet_get_bytes(in, EDGE_HEAD_MAX, &c->n_head);
    if (in->bad || whole > 1 || c->n_head > c->size)
        return false;
    memcpy(c->sha256, hash, sizeof(c->sha256));
    return true;
}

int
edge_put_op(struct buf *b, const struct edge_op *op)
{
    buf_put_u8(b, (uint8_t)op->kind);
    buf_put_u8(b, op->flags);
    buf_put_be32(b, op->mode);
    buf_put_be16(b, op->rows);
    buf_put_be16(b, op->cols);
    buf_put_be64(b, op->timeout_ms);
    buf_put_be64(b, op->offset);
    buf_put_be64(b, op->length);
    wire_put_cstr(b, op->path, EDGE_PATH_MAX);
    put_words(b, op->argv, op->n_argv);
    put_words(b, op->env, op->n_env);
    if (op->kind == OP_WRITE)
        put_content(b, &op->content);
    return buf_ok(b) ? 0 : -1;
}

static bool
flags_well(const struct edge_op *op)
{
    static const uint8_t may[OP_KINDS] = {
        [OP_EXEC] = OP_STDIN | OP_LIVE | OP_PTY | OP_BACKGROUND, [OP_WRITE] = OP_PARENTS | OP_EXCLUSIVE,
        [OP_REMOVE] = OP_RECURSIVE, [OP_MKDIR] = OP_PARENTS, [OP_WATCH] = OP_RECURSIVE,
    };
    bool pty = (op->flags & OP_PTY) != 0, live = (op->flags & OP_LIVE) != 0;
    bool behind = (op->flags & OP_BACKGROUND) != 0, input = (op->flags & OP_STDIN) != 0;

    return (op->flags & ~may[op->kind]) == 0 && !(live && behind) && (!live || input) &&
           (!pty || ((live || behind) && input)) && (op->rows != 0) == pty && (op->cols != 0) == pty;
}

bool
edge_get_op(struct wire_in *in, struct edge_op *op)
{
    uint8_t kind = wire_u8(in);

    op->flags = wire_u8(in);
    op->mode = wire_be32(in);
    op->rows = wire_be16(in);
    op->cols = wire_be16(in);
    op->timeout_ms = wire_be64(in);
    op->offset = wire_be64(in);
    op->length = wire_be64(in);
    op->path = wire_cstr(in, EDGE_PATH_MAX, NULL);
    op->n_argv = get_words(in, op->argv);
    op->n_env = get_words(in, op->env);
    op->content = (struct edge_content){ .whole = false };
    if (kind == OP_WRITE && !get_content(in, &op->content))
        return false;
    if (!wire_done(in) || kind == 0 || kind >= OP_KINDS || op->mode > 07777)
        return false;
    op->kind = (enum op_kind)kind;
    if (!flags_well(op))
        return false;
    for (size_t i = 0; i < op->n_env; i++)
        if (op->env[i][0] == '=' || strchr(op->env[i], '=') == NULL)
            return false;
    if (op->kind == OP_CONNECT && (op->offset == 0 || op->offset > UINT16_MAX || op->length != 0 ||
                                   !edge_is_id(op->path)))
        return false;
    return op->kind == OP_EXEC ? op->n_argv > 0 && op->argv[0][0] != '\0' : op->n_argv == 0 && op->n_env == 0;
}
