/* warden/deed.c: what a question would do, as a tool and its parameters: for rules, for people, and as a digest
 *
 * The digest is of more than people are shown: of the whole question, so that nothing of it can be another one. Of the
 * bytes of a file a question has the hash and the first ones; where they are too many for the front to collect, the
 * first ones and a random hash, so that what is approved is that one request. What is not in a question at all are the
 * bytes of a command's standard input. Both are told apart, by the parameters `content_unseen` and `stdin`.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "proto/edge_write.h"
#include "warden/approvals.h"

#define DIGEST_OF "cloche-gate-1"
#define CODE_MAX  (2 * EDGE_OP_MAX)

void
caller_of(const struct who *who, char out[EDGE_CALLER_MAX + 1])
{
    if (who->role == EDGE_KEY)
        snprintf(out, EDGE_CALLER_MAX + 1, "key:%s", who->box);
    else if (who->id[0] == '\0')
        snprintf(out, EDGE_CALLER_MAX + 1, "%s", who->role == EDGE_OPERATOR ? "owner" : "nobody");
    else
        snprintf(out, EDGE_CALLER_MAX + 1, "%s:%s", edge_role_name(who->role), who->id);
}

static void
owner_of(void *ctx, const struct edge_box *r)
{
    char *owner = ctx;

    snprintf(owner, EDGE_ID + 1, "%s", r->owner);
}

/* Whose token made the sandbox @id; "" the daemon's owner, or there is none. */
static void
find_owner(struct warden *w, const char *id, char owner[EDGE_ID + 1])
{
    const struct box *b = box_of_id(w, id);

    owner[0] = '\0';
    if (b != NULL)
        owner_of(owner, &b->r);
    else
        (void)state_find(w->state, id, owner_of, owner, NULL);
}

bool
is_own_key(struct warden *w, const char *caller, const struct who *who)
{
    char owner[EDGE_ID + 1];

    if (strncmp(caller, "key:", 4) != 0 || who->id[0] == '\0')
        return false;
    find_owner(w, caller + 4, owner);
    return strcmp(owner, who->id) == 0;
}

void
principal_of(struct warden *w, const struct who *who, char out[EDGE_CALLER_MAX + 1])
{
    const struct token *t;
    char owner[EDGE_ID + 1];

    caller_of(who, out);
    if (who->role != EDGE_KEY)
        return;
    find_owner(w, who->box, owner);
    t = token_of(w, owner);
    if (owner[0] != '\0' && (t == NULL || t->r.role == EDGE_AGENT))
        snprintf(out, EDGE_CALLER_MAX + 1, "%s:%s", edge_role_name(EDGE_AGENT), owner);
}

void
deed_free(struct deed *d)
{
    json_decref(d->params);
    free(d->text);
    d->params = NULL;
    d->text = NULL;
}

/* Each with its length before it: no two lists of parts are the same bytes. */
static void
deed_add(struct sha256 *h, const void *p, size_t n)
{
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
    sha256_add(h, length, sizeof(length));
    if (n > 0)
        sha256_add(h, p, n);
}

static void
place_of(void *ctx, const struct edge_box *r)
{
    struct place_room *room = ctx;
    struct str at = edge_line(r->facts, "workspace");

    snprintf(room->root, sizeof(room->root), "%.*s", (int)at.n, at.n > 0 ? at.p : "");
    snprintf(room->name, sizeof(room->name), "%s", r->name);
}

struct gate_place
deed_place(const struct warden *w, const char *box, struct place_room *room)
{
    const struct box *b = box[0] != '\0' ? box_of_id(w, box) : NULL;

    room->root[0] = room->name[0] = '\0';
    if (b != NULL)
        place_of(room, &b->r);
    else if (box[0] != '\0')
        (void)state_find(w->state, box, place_of, room, NULL);      /* a stopped one */
    return (struct gate_place){ .root = room->root, .id = box, .name = room->name };
}

static int
deed_begin(const struct warden *w, const char *tool, const char *box, bool call, json_t *params, struct deed *out,
           struct err *err)
{
    struct place_room room;
    struct gate_place at = deed_place(w, box, &room);

    at.call = call;
    *out = (struct deed){ .tool = tool, .params = params };
    memcpy(out->box, box, strlen(box) + 1);
    if (params != NULL && gate_settle(tool, params, &at))
        out->text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
    if (out->text != NULL)
        return 0;
    deed_free(out);
    err_set(err, ERR_DENIED, "gate.text", "it holds text that is not UTF-8, which nobody can be asked about");
    return err_hint(err, "words, variables and paths of agents are UTF-8 without NUL");
}

static void
deed_digest(struct deed *d, const void *more, size_t n)
{
    uint8_t hash[SHA256_SIZE];
    struct sha256 h;

    sha256_init(&h);
    deed_add(&h, DIGEST_OF, sizeof(DIGEST_OF) - 1);
    deed_add(&h, d->tool, strlen(d->tool));
    deed_add(&h, d->box, strlen(d->box));
    deed_add(&h, d->text, strlen(d->text));
    deed_add(&h, more, n);
    sha256_end(&h, hash);
    sha256_text(hash, d->digest);
}

int
deed_make(const struct warden *w, const char *tool, const char *box, json_t *params, const void *more, size_t n,
          struct deed *out, struct err *err)
{
    if (deed_begin(w, tool, box, false, params, out, err) < 0)
        return -1;
    deed_digest(out, more, n);
    return 0;
}

int
deed_call(const struct warden *w, const char *tool, const char *box, json_t *params, struct deed *out, struct err *err)
{
    if (deed_begin(w, tool, box, true, params, out, err) < 0)
        return -1;
    deed_digest(out, "", 0);
    return 0;
}

char *
deed_names(const char *text)
{
    json_t *params = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *names = json_array(), *one;
    const json_t *env = json_object_get(params, "env");
    const char *name;
    char *out = NULL;
    size_t i;
    bool well = names != NULL;

    json_array_foreach(env, i, one) {
        name = json_is_string(one) ? json_string_value(one) : "";
        well = well && json_array_append_new(names, json_stringn(name, strcspn(name, "="))) == 0;
    }
    json_object_foreach((json_t *)(uintptr_t)env, name, one)
        well = well && json_array_append_new(names, json_string(name)) == 0;
    if (well && (env == NULL || json_object_set(params, "env", names) == 0))
        out = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(names);
    json_decref(params);
    return out;
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static void
put_word(struct buf *b, const char *word)
{
    if (word[0] != '\0' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") ==
                           strlen(word)) {
        buf_puts(b, word);
        return;
    }
    buf_put_u8(b, '\'');
    for (const char *p = word; *p != '\0'; p++) {
        if (*p == '\'')
            buf_puts(b, "'\\''");
        else
            buf_put_u8(b, (uint8_t)*p);
    }
    buf_put_u8(b, '\'');
}

/* As a shell would be told it: the line itself where it is one for a shell. */
static json_t *
code_of(const struct edge_op *op)
{
    cleanup_buf struct buf b = BUF_INIT(CODE_MAX);

    if (op->n_argv == 3 && strcmp(op->argv[0], "/bin/sh") == 0 && strcmp(op->argv[1], "-c") == 0)
        return json_string(op->argv[2]);
    for (size_t i = 0; i < op->n_argv; i++) {
        if (i > 0)
            buf_put_u8(&b, ' ');
        put_word(&b, op->argv[i]);
    }
    return buf_nul(&b) == 0 ? json_string((const char *)b.p) : NULL;
}

static json_t *
words_of(const char *const *words, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(list, json_string(words[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Code that runs in a context is that code; a new one has none yet. NULL when some of it is no text. */
static json_t *
command_of(const struct edge_op *op)
{
    bool context = op->context != 0;
    json_t *code = !context ? code_of(op) : json_string(op->context == EDGE_CONTEXT_NEW ? "" : op->argv[1]);
    json_t *params = json_pack("{s:s, s:o, s:b}", "language", context ? op->argv[0] : "shell", "code", code, "stdin",
                               op->kind != OP_EXEC || (op->flags & OP_STDIN) != 0);

    if (params == NULL)
        return NULL;
    if (context)
        json_object_set_new(params, "context", op->context == EDGE_CONTEXT_NEW ? json_string("new")
                                               : json_sprintf("%llu", (unsigned long long)op->context));
    if (op->timeout_ms != 0)
        json_object_set_new(params, "timeout_ms", json_integer((json_int_t)op->timeout_ms));
    if ((op->flags & OP_BACKGROUND) != 0)
        json_object_set_new(params, "background", json_true());
    if ((op->path[0] != '\0' && json_object_set_new(params, "cwd", json_string(op->path)) < 0) ||
        (op->n_env > 0 && json_object_set_new(params, "env", words_of(op->env, op->n_env)) < 0)) {
        json_decref(params);
        return NULL;
    }
    return params;
}

static json_t *
file_of(const struct edge_op *op, const char *name)
{
    json_t *params = op->kind == OP_WRITE ? edge_write_params(op) : json_pack("{s:s}", name, op->path);

    if (params == NULL)
        return NULL;
    if (op->kind == OP_REMOVE)
        json_object_set_new(params, "recursive", json_boolean((op->flags & OP_RECURSIVE) != 0));
    return params;
}

static const char *
tool_of(const struct edge_op *op, json_t **params)
{
    if (op->n_argv > 0) {
        *params = command_of(op);
        return "code_execute";
    }
    *params = file_of(op, op->kind == OP_READ || op->kind == OP_WRITE || op->kind == OP_REMOVE ? "file_path" : "path");
    switch (op->kind) {
    case OP_READ: return "code_read_file";
    case OP_WRITE: return "code_write_file";
    case OP_LIST:
    case OP_STAT:
    case OP_WATCH: return "code_list_files";
    case OP_REMOVE: return "code_delete_file";
    case OP_MKDIR: return "code_make_folder";
    default: return "sandbox_operation";
    }
}

/* @more than @params is digested: the whole question. */
static int
deed_whole(const struct warden *w, const char *tool, const char *box, json_t *params, struct deed *out, struct err *err)
{
    struct wire_in all = ask_in(w->question);

    return deed_make(w, tool, box, params, all.p, all.n, out, err) < 0 ? -1 : 1;
}

int
deed_op(struct warden *w, const struct ask_op *m, struct deed *out, struct err *err)
{
    static struct edge_op op;       /* 16 KiB, and there is one thread */
    struct wire_in in = wire_in_of(m->op, m->n_op);
    const struct box *b = usable(w, m->id, NULL);
    const char *tool;
    json_t *params;

    /* of one that cannot be worked with its handler says so */
    if (b == NULL || b->r.paused || !edge_op_get(&in, &op) || op_is_wardens(op.kind))
        return 0;
    if (!edge_cwd_well(&op, err))       /* what is shown of it would be another folder */
        return -1;
    tool = tool_of(&op, &params);
    if (deed_whole(w, tool, b->r.id, params, out, err) < 0)
        return -1;
    out->once = op.kind == OP_WRITE && !op.content.whole;
    return 1;
}

/* --- sandboxes ---------------------------------------------------------------------------------------------------- */

/* NULL when some of it is no text. */
static json_t *
new_one(const struct edge_create *c, const char *text)
{
    json_t *params = json_pack("{s:s}", "name", c->name), *policy;
    int bad = 0;

    if (params == NULL)
        return NULL;
    if (c->workspace[0] != '\0')
        bad |= json_object_set_new(params, "workspace_key", json_string(c->workspace));
    if (c->volume[0] != '\0')
        bad |= json_object_set_new(params, "volume", json_string(c->volume));
    if (c->volume[0] != '\0' && c->keep_s != EDGE_KEEP_SAME)
        bad |= json_object_set_new(params, "retention", json_integer((json_int_t)c->keep_s));
    /* the one that is there is destroyed when it differs */
    if ((c->flags & EDGE_REATTACH) != 0)
        bad |= json_object_set_new(params, "reattach", json_true());
    if ((c->flags & EDGE_PERSISTS) != 0)
        bad |= json_object_set_new(params, "persistent", json_true());
    if (c->idle_s != 0)
        bad |= json_object_set_new(params, "idle_timeout", json_integer((json_int_t)c->idle_s));
    if (c->life_s != 0)
        bad |= json_object_set_new(params, "max_lifetime", json_integer((json_int_t)c->life_s));
    if (c->recovery.after_s == EDGE_RECOVER_NEVER)
        bad |= json_object_set_new(params, "recovery", json_false());
    else if (c->recovery.after_s != 0)
        bad |= json_object_set_new(params, "recovery", json_pack("{s:I, s:I, s:I}",
                                   "after", (json_int_t)c->recovery.after_s, "tries", (json_int_t)c->recovery.tries,
                                   "window", (json_int_t)c->recovery.window_s));
    if (c->base[0] != '\0')
        bad |= json_object_set_new(params, "template", json_string(c->base));
    if (text[0] != '\0') {
        /* what is no JSON is shown as it is, and refused by its keeper */
        policy = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        bad |= json_object_set_new(params, "policy", policy != NULL ? policy : json_string(text));
    }
    if (bad == 0)
        return params;
    json_decref(params);
    return NULL;
}

int
deed_create(struct warden *w, const struct edge_create *m, struct deed *out, struct err *err)
{
    const char *text = m->policy[0] == '\0' && m->base[0] != '\0' ? template_policy(w, m->base) : m->policy;

    return text == NULL ? 0         /* no such template: its handler says so */
                        : deed_whole(w, "sandbox_create", "", new_one(m, text), out, err);
}

/* More than it was made with, or has: as if it was made so. What people are shown grows with the time that it lived;
 * the digest is of what was asked, so that it can be asked for again. */
int
deed_life(struct warden *w, const struct ask_life *m, struct deed *out, struct err *err)
{
    const struct box *b = usable(w, m->id, NULL);
    const struct wire_in all = ask_in(w->question);
    const uint32_t life_s = b != NULL ? life_with(b, m->seconds) : 0;
    struct edge_create c = { .life_s = life_s };
    char empty[] = "";
    struct deed same;

    if (b == NULL || b->r.asked_s == 0 || life_s <= b->r.asked_s || life_s <= b->r.life_s)
        return 0;
    c.name = b->r.name;
    c.workspace = b->r.workspace;
    c.base = b->r.base;
    c.volume = b->r.volume;
    c.keep_s = EDGE_KEEP_SAME;
    c.idle_s = b->r.idle_s;
    c.flags = b->r.persists ? EDGE_PERSISTS : 0;
    if (deed_make(w, "sandbox_create", b->r.id, new_one(&c, b->r.policy), "", 0, out, err) < 0)
        return -1;
    same = *out;
    same.text = empty;
    deed_digest(&same, all.p, all.n);
    memcpy(out->digest, same.digest, sizeof(out->digest));
    return 1;
}

/* The files of one, kept by the daemon for others to begin with. */
int
deed_snapshot(struct warden *w, const struct ask_snapshot *m, struct deed *out, struct err *err)
{
    const struct box *b = usable(w, m->id, NULL);

    return b == NULL ? 0 : deed_whole(w, "sandbox_snapshot", b->r.id, json_pack("{s:s}", "name", m->name), out, err);
}

struct subject { struct warden *w; char id[EDGE_ID + 1]; };

static void
is_subject(void *ctx, const struct edge_box *r)
{
    struct subject *s = ctx;

    if (who_reaches(&s->w->who, r))
        memcpy(s->id, r->id, sizeof(s->id));
}

/* The sandbox that a question is about, living or stopped: its handler reaches both. That somebody asked for another's
 * is noted there. 1; 0: there is none; -1 with @err. */
static int
subject_of(struct warden *w, const char *name, char id[EDGE_ID + 1], struct err *err)
{
    const struct box *b = living(w, name);
    struct subject s = { .w = w, .id = "" };
    int r;

    if (b != NULL) {
        memcpy(id, b->r.id, sizeof(b->r.id));
        return 1;
    }
    r = name[0] != '\0' ? state_find(w->state, name, is_subject, &s, err)
                        : state_find_default(w->state, w->who.id, is_subject, &s, err);
    memcpy(id, s.id, sizeof(s.id));
    return r < 0 ? -1 : s.id[0] != '\0';
}

/* A question that names a sandbox and nothing else. */
static int
of_box(struct warden *w, const char *name, const char *tool, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    int r = subject_of(w, name, id, err);

    if (r <= 0)
        return r;
    return deed_make(w, tool, id, json_object(), "", 0, out, err) < 0 ? -1 : 1;
}

int
deed_delete(struct warden *w, const struct ask_box *m, struct deed *out, struct err *err)
{
    return of_box(w, m->id, "code_destroy_sandbox", out, err);
}

int
deed_recover(struct warden *w, const struct ask_box *m, struct deed *out, struct err *err)
{
    return of_box(w, m->id, "sandbox_recover", out, err);
}

int
deed_change(struct warden *w, const struct ask_change *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    json_t *policy;
    int r = subject_of(w, m->id, id, err);

    if (r <= 0)
        return r;
    policy = json_loads(m->policy, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    policy = json_pack("{s:o}", "policy", policy != NULL ? policy : json_string(m->policy));
    return deed_whole(w, "sandbox_policy", id, policy, out, err);
}

int
deed_expose(struct warden *w, const struct ask_expose *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    json_t *params;
    int r = subject_of(w, m->id, id, err);

    if (r <= 0)
        return r;
    params = json_pack("{s:i}", "port", (int)m->port);
    if (m->seconds > 0)
        json_object_set_new(params, "ttl", json_integer(m->seconds));
    if (m->name[0] != '\0')
        json_object_set_new(params, "name", json_string(m->name));
    return deed_whole(w, "expose_port", id, params, out, err);
}

int
deed_browser(struct warden *w, const struct ask_browser *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    int r = m->what != BROWSER_CONNECT ? subject_of(w, m->id, id, err) : 0;   /* without that there is no CONNECT */

    return r <= 0 ? r : deed_whole(w, "browser_control", id, json_object(), out, err);
}

int
deed_attach(struct warden *w, const struct ask_attach *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    int r = subject_of(w, m->id, id, err);

    if (r <= 0)
        return r;
    return deed_whole(w, m->screen ? "desktop_view" : "attach_editor", id,
                      json_pack("{s:s, s:i}", "mode", edge_attach_mode(m->screen, m->writes), "seconds",
                                (int)m->seconds), out, err);
}

int
deed_desktop(struct warden *w, const struct ask_desktop *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1];
    int r = w->who.role != EDGE_ATTACH ? subject_of(w, m->id, id, err) : 0;     /* asked by its ticket */

    return r <= 0 ? r : deed_whole(w, "desktop_view", id,
                                   json_pack("{s:s}", "mode", edge_attach_mode(true, m->control)), out, err);
}

/* A credential is a second voice: an operator that is judged must not be able to approve with one that it made. The
 * owner, who has the state folder, needs no such way. */
int
deed_token(struct warden *w, const struct ask_token *m, struct deed *out, struct err *err)
{
    json_t *params;

    if (m->what != TOKEN_MAKE || w->who.id[0] == '\0')
        return 0;
    params = json_pack("{s:s}", "role", edge_role_name((enum edge_role)m->role));
    if (m->text[0] != '\0')
        json_object_set_new(params, "name", json_string(m->text));
    if (m->seconds > 0)
        json_object_set_new(params, "expires", json_integer((json_int_t)m->seconds));
    return deed_whole(w, "token_create", "", params, out, err);
}

/* A ticket is a token that is not made yet. */
int
deed_console(struct warden *w, const struct ask_console *m, struct deed *out, struct err *err)
{
    json_t *params;

    if (w->who.id[0] == '\0')
        return 0;
    params = json_pack("{s:s, s:s, s:I}", "role", edge_role_name((enum edge_role)m->role), "name", "console",
                       "expires", (json_int_t)m->seconds);
    return deed_whole(w, "token_create", "", params, out, err);
}

/* So is a key of a sandbox that another one made: of what its own sandboxes' keys ask for it decides nothing anyway
 * (approval_may). */
int
deed_key(struct warden *w, const struct ask_key *m, struct deed *out, struct err *err)
{
    char id[EDGE_ID + 1], owner[EDGE_ID + 1];
    json_t *params;
    int r;

    if (w->who.role != EDGE_OPERATOR || w->who.id[0] == '\0')
        return 0;
    r = subject_of(w, m->id, id, err);
    if (r <= 0)
        return r;
    find_owner(w, id, owner);
    if (strcmp(owner, w->who.id) == 0)
        return 0;
    params = json_pack("{s:s}", "role", edge_role_name(EDGE_KEY));
    if (m->more)        /* the former ones stay good */
        json_object_set_new(params, "more", json_true());
    return deed_make(w, "token_create", id, params, "", 0, out, err) < 0 ? -1 : 1;
}
