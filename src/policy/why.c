/* policy/why.c: see why.h */
#include "policy/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"
#include "policy/judge.h"

bool
why_op_parse(const char *name, enum why_op *out)
{
    static const char *const names[] = { [WHY_READ] = "read", [WHY_WRITE] = "write", [WHY_EXEC] = "exec" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
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

/* Closed by a rule about reading. */
static void
why_closed(const struct policy *p, const struct judged *j, const struct place *place, struct why *out)
{
    if (j->read_why == READ_CREDENTIAL) {
        answer(out, false, "credential-place", j->read_rule, NULL);
        why_say(out, "%s is a place for credentials, closed unless it is named", j->read_rule->value);
        snprintf(out->flag, sizeof(out->flag), "--allow-read %s", j->read_rule->value);
        return;
    }
    if (j->read_why == READ_DEVICE) {
        answer(out, false, "host-device", NULL, &p->mode.from);
        why_say(out, "in mode light a command opens no device of the host's, and no terminal but its own");
        snprintf(out->flag, sizeof(out->flag), "--mode standard");
        return;
    }
    answer(out, false, "deny-read", j->read_rule, NULL);
    why_say(out, "the rule \"%s\" closes it", j->read_rule->written);
    snprintf(out->flag, sizeof(out->flag), "--allow-read %s", place->host);
}

static void
why_absent(const struct policy *p, const char *path, const char *access, struct why *out)
{
    answer(out, false, "not-shown", NULL, &p->view.from);
    why_say(out, "%s is not in the sandbox", path);
    snprintf(out->flag, sizeof(out->flag), "--bind %s%s", path, access);
}

static void
why_read(const struct policy *p, const struct place *place, const struct judged *j, const char *path, enum why_op op,
         struct why *out)
{
    if (j->read_why == READ_ABSENT) {
        why_absent(p, path, "", out);
        return;
    }
    if (!j->read) {
        why_closed(p, j, place, out);
        return;
    }
    if (j->read_why == READ_REOPENED) {
        answer(out, true, "allow-read", j->read_rule, NULL);
        why_say(out, "the rule \"%s\" re-opens it", j->read_rule->written);
        return;
    }
    if (place->kind == PLACE_KERNEL && op == WHY_EXEC) {
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

static void
why_read_only(const struct policy *p, const struct place *place, struct why *out)
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

static void
why_writable(const struct policy *p, const struct place *place, const struct judged *j, struct why *out)
{
    if (j->write_rule != NULL) {
        answer(out, true, "allow-write", j->write_rule, NULL);
    } else {
        answer(out, true, "writable", NULL, place->from != NULL ? place->from : &p->view.from);
        if (place->from == &p->workspace.from)
            snprintf(out->rule, sizeof(out->rule), "%s", p->workspace.dir);
        else if (place->bind != NULL)
            snprintf(out->rule, sizeof(out->rule), "%s", place->bind->source);
    }
    if (place->kind == PLACE_OWN)
        why_say(out, "%s is the sandbox's own", place->inside);
    else
        why_say(out, place->copy ? "writes go to a copy (cloche diff)" : "it is writable");
}

static void
why_write(const struct policy *p, const struct place *place, const struct judged *j, const char *path, struct why *out)
{
    switch (j->write_why) {
    case WRITE_ABSENT:
        why_absent(p, path, ":rw", out);
        break;
    case WRITE_CLOSED:
        why_closed(p, j, place, out);
        if (j->read_why == READ_DEVICE)
            break;
        /* allow-read would let it be read, no more */
        out->flag[0] = '\0';
        if (p->view.v == VIEW_HOST)
            snprintf(out->flag, sizeof(out->flag), "--allow-write %s", place->host);
        break;
    case WRITE_DEVICE:
        answer(out, true, "device", NULL, &p->view.from);
        why_say(out, "it is one of the sandbox's devices");
        break;
    case WRITE_READ_ONLY:
        why_read_only(p, place, out);
        break;
    case WRITE_REOPENED:
        answer(out, false, "read-only", j->write_rule, NULL);
        why_say(out, "the rule \"%s\" re-opens it for reading only", j->write_rule->written);
        if (p->view.v == VIEW_HOST)
            snprintf(out->flag, sizeof(out->flag), "--allow-write %s", place->host);
        break;
    case WRITE_DENIED:
        answer(out, false, "deny-write", j->write_rule, NULL);
        why_say(out, "the rule \"%s\" keeps it read-only", j->write_rule->written);
        break;
    case WRITE_PROTECTED:
        answer(out, false, "protected-name", j->write_rule, NULL);
        why_say(out, "%s is run or obeyed outside the sandbox, so it stays as it is", j->write_rule->value);
        if (strcmp(j->write_rule->value, ".git/config") == 0)
            snprintf(out->flag, sizeof(out->flag), "--allow-git-config");
        break;
    case WRITE_OPENED:
        why_writable(p, place, j, out);
        break;
    }
}

void
policy_why_place(const struct policy *p, const struct place *place, const char *path, enum why_op op,
                 why_exists *exists, struct why *out)
{
    struct judged judged;

    memset(out, 0, sizeof(*out));
    snprintf(out->inside, sizeof(out->inside), "%s", place->inside);
    policy_judge(p, place, exists, &judged);
    if (op == WHY_WRITE)
        why_write(p, place, &judged, path, out);
    else
        why_read(p, place, &judged, path, op, out);
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
    policy_why_place(p, &place, normal, op, exists, out);
    return 0;
}
