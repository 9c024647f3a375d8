/* warden/pass.c: calls of tools that were let through, and the operations that they are made of
 *
 * A call of MCP is judged as a whole, before it begins; what it comes to is asked by the front afterwards, under the
 * number of its pass. A pass is for what such a call needs and no more: one sandbox, where the call is to make one, and
 * one operation; for an action on a desktop, some commands in its one sandbox. What is in an operation is the front's:
 * the warden does not know what a language's code becomes. The files that a call brings along are known: what is
 * written is one of them, byte by byte, or judged by itself.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "warden/approvals.h"

/* A free one, or one whose operation has been asked, unless files are read after that. Where there is none somebody's
 * is lost: of a principal that has a quarter of them the oldest of its own, so that many calls of one do not take
 * others' from them. */
static struct pass *
place_for(struct approvals *q, const char *principal)
{
    struct pass *oldest = q->passes, *own = NULL, *spent = NULL;
    uint64_t now = clock_ms();
    size_t n = 0;

    for (size_t i = 0; i < PASSES_MAX; i++) {
        struct pass *p = &q->passes[i];
        if (p->number == 0 || now >= p->until_ms)
            return p;
        if (p->done && !p->wants && (spent == NULL || p->until_ms < spent->until_ms))
            spent = p;
        if (p->until_ms < oldest->until_ms)
            oldest = p;
        if (strcmp(p->principal, principal) != 0)
            continue;
        n++;
        if (own == NULL || p->until_ms < own->until_ms)
            own = p;
    }
    return spent != NULL ? spent : n >= PASSES_MAX / 4 ? own : oldest;
}

uint32_t
pass_new(struct warden *w, const struct deed *d)
{
    struct approvals *q = w->approvals;
    char principal[EDGE_CALLER_MAX + 1];
    struct pass *p;

    principal_of(w, &w->who, principal);
    p = place_for(q, principal);
    q->n_passes++;
    *p = pass_of(d);
    memcpy(p->principal, principal, sizeof(p->principal));
    p->number = EDGE_PASS | q->n_passes;
    p->proof = w->proof;
    p->front = w->asker.front;
    p->until_ms = clock_ms() + PASS_S * 1000UL;
    return p->number;
}

const json_t *
deed_file(const struct deed *d, size_t i)
{
    const json_t *files = strcmp(d->tool, "code_execute") == 0 ? json_object_get(d->params, "files") : NULL;

    return i < EDGE_GIVEN_MAX ? json_array_get(files, i) : NULL;
}

const json_t *
deed_wants(const struct deed *d, size_t i)
{
    const json_t *wants = strcmp(d->tool, "code_execute") == 0 ? json_object_get(d->params, "collect") : NULL;

    return i < EDGE_GIVEN_MAX ? json_array_get(wants, i) : NULL;
}

/* What it is judged by, as the write itself is (deed_make). False: it can be none. */
static bool
file_digest(const json_t *params, uint8_t out[SHA256_SIZE])
{
    cleanup_free char *text = json_is_object(params) ? json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (text == NULL)
        return false;
    sha256_of(text, strlen(text), out);
    return true;
}

struct pass
pass_of(const struct deed *d)
{
    struct pass p = { .network = json_is_true(json_object_get(d->params, "network_enabled")) };
    const json_t *file;

    p.wants = d->box[0] == '\0' && deed_wants(d, 0) != NULL;
    for (size_t i = 0; d->box[0] == '\0' && (file = deed_file(d, i)) != NULL; i++)
        if (file_digest(file, p.files[p.n_files]))
            p.n_files++;

    memcpy(p.tool, d->tool, strnlen(d->tool, GATE_NAME_MAX));
    memcpy(p.box, d->box, sizeof(p.box));
    return p;
}

bool
gate_pass(struct warden *w, const struct front_edge *e, uint32_t number, struct proof *out)
{
    struct approvals *q = w->approvals;

    for (size_t i = 0; i < PASSES_MAX; i++) {
        struct pass *p = &q->passes[i];
        if (p->number == number && &w->fronts[p->front] == e && clock_ms() < p->until_ms) {
            q->pass = p;
            *out = p->proof;
            return true;
        }
    }
    return false;
}

/* As the daemon makes them; where the call asked for a network, with names to reach and nothing else of its own. */
static bool
is_plain(const struct pass *p, const json_t *params)
{
    const json_t *policy = json_object_get(params, "policy"), *network = json_object_get(policy, "network");
    const char *mode = json_string_value(json_object_get(network, "mode"));

    if (json_object_get(params, "reattach") != NULL)    /* it may destroy another one */
        return false;
    if (policy == NULL)
        return true;
    if (json_object_size(policy) == 1 && json_is_string(network) && strcmp(json_string_value(network), "none") == 0)
        return true;    /* less than that */
    return p->network && json_object_size(policy) == 1 && mode != NULL && strcmp(mode, "allowlist") == 0;
}

void
passes_end(struct warden *w, const char *box)
{
    for (size_t i = 0; i < PASSES_MAX; i++)
        if (strcmp(w->approvals->passes[i].box, box) == 0)
            w->approvals->passes[i].number = 0;
}

static bool
is_to_make(const struct pass *p, const struct deed *d)
{
    return strcmp(d->tool, "sandbox_create") == 0 && strcmp(p->tool, "code_execute") == 0 && p->box[0] == '\0' &&
           !p->made && !p->done;
}

void
pass_made(struct pass *p, const struct deed *d)
{
    if (is_to_make(p, d))
        p->made = true;
}

/* One that the call brings along, byte by byte, before its code runs; each once. */
static bool
brings(struct pass *p, const struct deed *d)
{
    uint8_t digest[SHA256_SIZE];

    if (strcmp(d->tool, "code_write_file") != 0 || d->box[0] == '\0' || !p->made || p->done || p->n_files == 0 ||
        json_is_true(json_object_get(d->params, "content_unseen")) || !file_digest(d->params, digest))
        return false;
    for (size_t i = 0; i < p->n_files; i++) {
        if (memcmp(p->files[i], digest, SHA256_SIZE) == 0) {
            memset(p->files[i], 0, SHA256_SIZE);
            memcpy(p->box, d->box, sizeof(p->box));     /* the others, and the code, belong into the same one */
            return true;
        }
    }
    return false;
}

/* What its code left, in the sandbox where that ran. */
static bool
takes_back(const struct pass *p, const struct deed *d)
{
    return p->wants && p->done && p->box[0] != '\0' && strcmp(p->box, d->box) == 0 &&
           (strcmp(d->tool, "code_read_file") == 0 || strcmp(d->tool, "code_list_files") == 0);
}

/* One action on a desktop is some commands: whether there is a screen, what starts it, what is done. */
#define ACTS_MAX 512

static bool
drives(struct pass *p, const struct deed *d)
{
    return strcmp(p->tool, "computer") == 0 && strcmp(d->tool, "code_execute") == 0 && p->box[0] != '\0' &&
           strcmp(p->box, d->box) == 0 && p->acts++ < ACTS_MAX;
}

bool
pass_covers(struct pass *p, const struct deed *d)
{
    const char *needed = strcmp(p->tool, "code_install_package") == 0 ? "code_execute" : p->tool;

    if (strcmp(d->tool, "sandbox_create") == 0) {
        if (!is_to_make(p, d) || !is_plain(p, d->params))
            return false;
        p->made = true;
        return true;
    }
    if (brings(p, d) || takes_back(p, d) || drives(p, d))
        return true;
    if (p->done || strcmp(d->tool, needed) != 0 || d->box[0] == '\0' ||
        (p->box[0] == '\0' ? !p->made : strcmp(p->box, d->box) != 0))
        return false;
    p->done = true;
    memcpy(p->box, d->box, sizeof(p->box));
    if (p->wants)       /* the code takes its time: until that sandbox ends */
        p->until_ms = UINT64_MAX;
    return true;
}
