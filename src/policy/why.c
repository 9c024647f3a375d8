/* policy/why.c: see why.h */
#include "policy/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "match/path.h"
#include "policy/internal.h"
#include "policy/place.h"

bool
why_op_parse(const char *name, enum why_op *out)
{
    static const char *const names[] = { [WHY_READ] = "read", [WHY_WRITE] = "write", [WHY_EXEC] = "exec" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum why_op)i;
            return true;
        }
    }
    return false;
}

/* The answer; @entry (may be NULL) is the rule that decided, @from (may be NULL) the origin when no rule did. */
static void
answer(struct why *out, bool allowed, const char *reason, const struct policy_entry *entry, const struct origin *from)
{
    out->allowed = allowed;
    out->reason = reason;
    out->flag[0] = '\0';
    if (entry != NULL) {
        snprintf(out->rule, sizeof(out->rule), "%s", entry->written);
        out->source = entry->from;
    } else if (from != NULL) {
        out->source = *from;
    }
}

void
why_say(struct why *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out->text, sizeof(out->text), fmt, ap);
    va_end(ap);
}

/* The entry of @list that covers the path most specifically, and how much of it. */
static const struct policy_entry *
deepest(const struct policy_list *list, const char *path, size_t *depth)
{
    const struct policy_entry *best = NULL;

    *depth = 0;
    for (size_t i = 0; i < list->n; i++) {
        size_t d;
        if (!path_covers(str_of(list->v[i].value), list->v[i].literal, str_of(path), &d))
            continue;
        if (best == NULL || d > *depth) {
            best = &list->v[i];
            *depth = d;
        }
    }
    return best;
}

/* deny-read < allow-read < a more specific deny-read; credential places are deny rules like any other. Under a private
 * root a tree that was shown by name is open, whatever wider rule closes its surroundings. */
static bool
read_closed(const struct policy *p, const struct place *place, struct why *out)
{
    const struct policy_entry *deny, *secret, *open;
    size_t deny_depth, secret_depth, open_depth;

    if (place->kind != PLACE_HOST)
        return false;
    deny = deepest(&p->deny_read, place->host, &deny_depth);
    secret = deepest(&p->credentials, place->host, &secret_depth);
    open = deepest(&p->allow_read, place->host, &open_depth);
    if (p->view.v == VIEW_PRIVATE) {
        secret = secret != NULL && secret_depth <= place->root_n ? NULL : secret;
        deny = deny != NULL && deny_depth <= place->root_n ? NULL : deny;
    }
    if (secret != NULL && (open == NULL || secret_depth > open_depth) && (deny == NULL || secret_depth >= deny_depth)) {
        answer(out, false, "credential-place", secret, NULL);
        why_say(out, "%s is a place for credentials, closed unless it is named", secret->value);
        snprintf(out->flag, sizeof(out->flag), "--allow-read %s", secret->value);
        return true;
    }
    if (deny != NULL && (open == NULL || deny_depth > open_depth)) {
        answer(out, false, "deny-read", deny, NULL);
        why_say(out, "the rule \"%s\" closes it", deny->written);
        snprintf(out->flag, sizeof(out->flag), "--allow-read %s", place->host);
        return true;
    }
    if (open != NULL && (deny != NULL || secret != NULL)) {
        answer(out, true, "allow-read", open, NULL);
        why_say(out, "the rule \"%s\" re-opens it", open->written);
    }
    return false;
}

static void
why_read(const struct policy *p, const struct place *place, const char *path, enum why_op op, struct why *out)
{
    bool device_file = place->kind == PLACE_KERNEL && op == WHY_EXEC;

    if (place->kind == PLACE_ABSENT) {
        answer(out, false, "not-shown", NULL, &p->view.from);
        why_say(out, "%s is not in the sandbox", path);
        snprintf(out->flag, sizeof(out->flag), "--bind %s", path);
        return;
    }
    out->reason = NULL;
    if (read_closed(p, place, out) || out->reason != NULL)
        return;
    if (device_file) {
        answer(out, false, "no-exec", NULL, &p->view.from);
        why_say(out, "nothing in /proc and /dev can be executed");
        return;
    }
    answer(out, true, "shown", NULL, place->from != NULL ? place->from : &p->view.from);
    if (place->kind == PLACE_OWN)
        why_say(out, "%s is the sandbox's own", place->inside);
    else if (place->kind == PLACE_HOST && place->from == NULL)
        why_say(out, "the host's tree is readable");
    else if (place->kind == PLACE_HOST)
        why_say(out, "it is shown inside as %s", place->inside);
    else
        why_say(out, "the system is readable");
}

/* The write rule that opens @host in the host view: the deepest of allow-write, writable binds and the workspace. */
static bool
write_opened(const struct policy *p, const struct place *place, struct why *out)
{
    size_t depth;
    const struct policy_entry *entry = deepest(&p->allow_write, place->host, &depth);

    if (place->writable) {
        answer(out, true, "writable", NULL, place->from != NULL ? place->from : &p->view.from);
        if (place->from == &p->workspace.from)
            snprintf(out->rule, sizeof(out->rule), "%s", p->workspace.dir);
        else if (place->bind != NULL)
            snprintf(out->rule, sizeof(out->rule), "%s", place->bind->source);
        else if (entry != NULL)
            answer(out, true, "allow-write", entry, NULL);
        return true;
    }
    if (entry == NULL || p->view.v == VIEW_PRIVATE)
        return false;
    answer(out, true, "allow-write", entry, NULL);
    return true;
}

static void
write_refused(const struct policy *p, const struct place *place, struct why *out)
{
    answer(out, false, "read-only", NULL, place->from != NULL ? place->from : &p->view.from);
    if (place->kind == PLACE_SYSTEM || place->kind == PLACE_KERNEL) {
        why_say(out, "the system is read-only");
        return;
    }
    why_say(out, "it is shown read-only");
    if (p->view.v == VIEW_HOST)
        snprintf(out->flag, sizeof(out->flag), "--allow-write %s", place->host);
    else if (place->from == &p->workspace.from)
        snprintf(out->flag, sizeof(out->flag), "--workspace %s:rw", p->workspace.dir);
    else if (place->bind != NULL)
        snprintf(out->flag, sizeof(out->flag), "--bind %s:%s:rw", place->bind->source, place->bind->dest);
    else
        snprintf(out->flag, sizeof(out->flag), "--allow-write %s", place->host);
}

/* Bytes of place->host that name the writable tree around it. */
static size_t
tree_root(const struct policy *p, const struct place *place)
{
    size_t depth;

    if (place->from != NULL)
        return place->root_n;
    deepest(&p->allow_write, place->host, &depth);      /* a glob's match is a tree of its own */
    return depth;
}

/* Whether @name protects the path from the directory @at bytes into it: the names follow there, whole. */
static bool
names_follow(const char *path, size_t at, struct str name)
{
    return strlen(path) >= at + name.n && memcmp(path + at, name.p, name.n) == 0 &&
           (path[at + name.n] == '/' || path[at + name.n] == '\0');
}

/* The engine closes the names at the top of each writable tree, there or not, and those that exist deeper down, as
 * deep as protect-depth says. */
static const struct policy_entry *
protected_by(const struct policy *p, const struct place *place, why_exists *exists)
{
    size_t root = tree_root(p, place), dirs = 0;
    size_t at = root <= 1 ? 1 : root + 1;

    if (place->kind != PLACE_HOST || place->copy || strlen(place->host) <= root)
        return NULL;
    while (dirs < p->protect_depth.v) {
        const char *slash;
        for (size_t i = 0; i < p->protect.n; i++) {
            struct str name = str_of(p->protect.v[i].value);
            char object[PATH_TEXT_MAX + 1];
            if (!names_follow(place->host, at, name))
                continue;
            memcpy(object, place->host, at + name.n);
            object[at + name.n] = '\0';
            if (dirs == 0 || exists == NULL || exists(object))
                return &p->protect.v[i];
        }
        slash = strchr(place->host + at, '/');
        if (slash == NULL)
            return NULL;
        at = (size_t)(slash - place->host) + 1;
        dirs++;
    }
    return NULL;
}

static bool
is_stdio_device(const char *path)
{
    static const char *const devices[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/ptmx" };

    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
        if (strcmp(path, devices[i]) == 0)
            return true;
    return path_within(str_of(path), STR_LIT("/dev/pts"));
}

static void
why_write(const struct policy *p, const struct place *place, const char *path, why_exists *exists, struct why *out)
{
    const struct policy_entry *entry;
    size_t depth;

    if (place->kind == PLACE_ABSENT) {
        why_read(p, place, path, WHY_WRITE, out);
        snprintf(out->flag, sizeof(out->flag), "--bind %s:rw", path);
        return;
    }
    if (read_closed(p, place, out))
        return;
    if (is_stdio_device(place->inside)) {
        answer(out, true, "device", NULL, &p->view.from);
        why_say(out, "it is one of the sandbox's devices");
        return;
    }
    if (!write_opened(p, place, out)) {
        write_refused(p, place, out);
        return;
    }
    entry = place->kind == PLACE_HOST ? deepest(&p->deny_write, place->host, &depth) : NULL;
    if (entry != NULL) {
        answer(out, false, "deny-write", entry, NULL);
        why_say(out, "the rule \"%s\" keeps it read-only", entry->written);
        return;
    }
    entry = protected_by(p, place, exists);
    if (entry != NULL) {
        bool git_config = strcmp(entry->value, ".git/config") == 0;
        answer(out, false, "protected-name", entry, NULL);
        why_say(out, "%s is run or obeyed outside the sandbox, so it stays as it is", entry->value);
        if (git_config)
            snprintf(out->flag, sizeof(out->flag), "--allow-git-config");
        return;
    }
    if (place->kind == PLACE_OWN)
        why_say(out, "%s is the sandbox's own", place->inside);
    else
        why_say(out, place->copy ? "writes go to a copy (cloche diff)" : "it is writable");
}

int
policy_why_path(const struct policy *p, const char *path, enum why_op op, why_exists *exists, struct why *out,
                struct err *err)
{
    char normal[PATH_TEXT_MAX + 1], shown[SHOW_MAX];
    struct str text = str_of(path), base = str_of(p->cwd);
    struct place place;
    enum path_fault fault;
    size_t n;

    memset(out, 0, sizeof(*out));
    if (text.n > 0 && text.p[0] == '~' && p->home != NULL && (text.n == 1 || text.p[1] == '/')) {
        base = str_of(p->home);
        text = text.n <= 2 ? STR_LIT(".") : (struct str){ text.p + 2, text.n - 2 };
        while (text.n > 1 && text.p[0] == '/')
            text = (struct str){ text.p + 1, text.n - 1 };
    }
    fault = path_normalise(text, base, false, normal, sizeof(normal), &n);
    if (fault != PATH_OK)
        return err_set(err, ERR_USAGE, "policy.path", "path %s %s", show(str_of(path), shown), path_fault_text(fault));
    if (p->mode.v == MODE_OFF) {
        answer(out, true, "mode-off", NULL, &p->mode.from);
        why_say(out, "mode off closes nothing");
        snprintf(out->inside, sizeof(out->inside), "%s", normal);
        return 0;
    }
    policy_place(p, normal, path[0] != '/', &place);
    snprintf(out->inside, sizeof(out->inside), "%s", place.inside);
    if (op == WHY_WRITE)
        why_write(p, &place, normal, exists, out);
    else
        why_read(p, &place, normal, op, out);
    return 0;
}
