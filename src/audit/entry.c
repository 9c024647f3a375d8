/* audit/entry.c: an entry from its parts to the body of its line */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "audit/chain.h"
#include "base/array.h"

#define N(a) ARRAY_LEN(a)

static const char *const type_names[AUDIT_TYPES] = {
    [AUDIT_MODE_TRANSITION] = "sandbox_mode_transition",
    [AUDIT_SECRET_OUTBOUND] = "secret_token_replacement_outbound",
    [AUDIT_SECRET_INBOUND] = "secret_sanitization_inbound",
    [AUDIT_CAPABILITY] = "privileged_capability_invocation",
    [AUDIT_POLICY_DECISION] = "policy_decision",
    [AUDIT_SIGNING_SUBMITTED] = "signing_request_submitted",
    [AUDIT_SIGNING_REJECTED] = "signing_request_rejected",
    [AUDIT_SIGNING_APPROVED] = "signing_request_approved",
    [AUDIT_FALLBACK] = "plugin_fallback_attempt",
    [AUDIT_KILL_SWITCH] = "security_kill_switch",
    [AUDIT_LIFECYCLE] = "sandbox_lifecycle",
    [AUDIT_FETCH_ERROR] = "fetch_proxy_error",
};

static const char *const severity_names[AUDIT_SEVERITIES] = { "info", "warn", "error", "critical" };

static bool
index_of(struct str name, const char *const *names, size_t n, size_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq_c(name, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *
audit_type_name(enum audit_type type)
{
    return (size_t)type < N(type_names) ? type_names[type] : "?";
}

const char *
audit_severity_name(enum audit_severity severity)
{
    return (size_t)severity < N(severity_names) ? severity_names[severity] : "?";
}

bool
audit_type_parse(struct str name, enum audit_type *out)
{
    size_t i;

    if (!index_of(name, type_names, N(type_names), &i))
        return false;
    *out = (enum audit_type)i;
    return true;
}

bool
audit_severity_parse(struct str name, enum audit_severity *out)
{
    size_t i;

    if (!index_of(name, severity_names, N(severity_names), &i))
        return false;
    *out = (enum audit_severity)i;
    return true;
}

/* --- putting one together ----------------------------------------------------------------------------------------- */

static void
audit_entry_put(struct audit_entry *e, const struct audit_meta *m)
{
    if (e->n_meta == AUDIT_META_MAX)
        e->full = true;
    else
        e->meta[e->n_meta++] = *m;
}

void
audit_put(struct audit_entry *e, const char *key, struct str text)
{
    audit_entry_put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_STRING, .text = text });
}

void
audit_put_cstr(struct audit_entry *e, const char *key, const char *text)
{
    if (text != NULL)
        audit_put(e, key, str_of(text));
    else
        audit_entry_put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_NULL });
}

void
audit_put_number(struct audit_entry *e, const char *key, int64_t number)
{
    audit_entry_put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_NUMBER, .number = number });
}

void
audit_put_bool(struct audit_entry *e, const char *key, bool truth)
{
    audit_entry_put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_BOOL, .number = truth });
}

static void
entry_begin(struct audit_entry *out, enum audit_type type, const char *sandbox, const char *summary)
{
    *out = (struct audit_entry){ .type = type, .severity = AUDIT_INFO, .summary = str_of(summary),
                                 .sandbox = str_of(sandbox) };
}

void
audit_lifecycle(struct audit_entry *out, const char *sandbox, const char *event, const char *summary)
{
    entry_begin(out, AUDIT_LIFECYCLE, sandbox, summary);
    audit_put_cstr(out, "event", event);
}

void
audit_policy_decision(struct audit_entry *out, const char *sandbox, const char *decision, const char *reason,
                      const char *summary)
{
    entry_begin(out, AUDIT_POLICY_DECISION, sandbox, summary);
    audit_put_cstr(out, "decision", decision);
    if (reason != NULL)
        audit_put_cstr(out, "reason", reason);
}

void
audit_capability(struct audit_entry *out, const char *sandbox, const char *capability, const char *summary)
{
    entry_begin(out, AUDIT_CAPABILITY, sandbox, summary);
    audit_put_cstr(out, "capability", capability);
}

/* --- its body ----------------------------------------------------------------------------------------------------- */

static bool
key_fits(const char *key)
{
    size_t n = 0;

    while (key != NULL && ((key[n] >= 'a' && key[n] <= 'z') || (key[n] >= 'A' && key[n] <= 'Z') ||
                           (key[n] >= '0' && key[n] <= '9') || key[n] == '_'))
        n++;
    return n > 0 && n <= AUDIT_KEY_MAX && key[n] == '\0';
}

static int
check(const struct audit_entry *e, struct err *err)
{
    if ((size_t)e->type >= AUDIT_TYPES || (size_t)e->severity >= AUDIT_SEVERITIES)
        return err_set(err, ERR_PROTOCOL, "audit.entry", "an entry of a type or severity that there is not");
    if (e->full || e->n_meta > AUDIT_META_MAX)
        return err_set(err, ERR_LIMIT, "audit.entry", "an entry with more than %d members", AUDIT_META_MAX);
    for (size_t i = 0; i < e->n_meta; i++) {
        if (!key_fits(e->meta[i].key))
            return err_set(err, ERR_PROTOCOL, "audit.entry", "\"%s\" is not a name for a member of an entry",
                           e->meta[i].key != NULL ? e->meta[i].key : "");
        for (size_t k = 0; k < i; k++)
            if (strcmp(e->meta[k].key, e->meta[i].key) == 0)
                return err_set(err, ERR_PROTOCOL, "audit.entry", "an entry says \"%s\" twice", e->meta[i].key);
    }
    return 0;
}

static void
put_str(struct buf *out, struct str text)
{
    buf_append(out, text.p, text.n);
}

static void
put_redacted(struct buf *out, struct str text, audit_redact_fn *redact, void *ctx)
{
    uint8_t room[512];
    cleanup_buf struct buf clean = BUF_INIT_IN(room, 16 * AUDIT_TEXT_MAX);

    if (redact != NULL && text.n > 0 && redact(ctx, text, &clean))
        /* what could not be made clean is not said at all */
        text = buf_ok(&clean) ? (struct str){ (const char *)clean.p, clean.n } : STR_LIT("[redacted]");
    if (audit_escape(text, AUDIT_TEXT_MAX, out) < 0)
        out->broken = true;
}

static void
put_time(struct buf *out, const struct timespec *when)
{
    static time_t second = -1;      /* entries come in crowds: the date is the one of the last one most of the time */
    static char date[32];
    struct timespec now = *when;
    char rest[9] = { '.', '0', '0', '0', '0', '0', '0', 'Z' };
    struct tm utc;

    if (now.tv_sec == 0 && now.tv_nsec == 0)
        clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
        second = now.tv_sec;
    }
    for (long us = now.tv_nsec / 1000, i = 6; i > 0; us /= 10, i--)
        rest[i] = (char)('0' + us % 10);
    buf_append(out, date, AUDIT_TIME_TEXT - 8);
    buf_append(out, rest, 8);
}

static void
put_word(struct buf *out, struct str before, struct str text)
{
    if (text.n == 0)
        return;
    put_str(out, before);
    if (audit_escape(text, AUDIT_TEXT_MAX, out) < 0)
        out->broken = true;
    put_str(out, STR_LIT("\""));
}

static void
put_number(struct buf *out, int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        digits[--at] = '-';
    buf_append(out, digits + at, sizeof(digits) - at);
}

static void
put_meta(struct buf *out, const struct audit_meta *m, audit_redact_fn *redact, void *ctx)
{
    put_str(out, STR_LIT("\""));
    put_str(out, str_of(m->key));
    put_str(out, STR_LIT("\":"));
    switch (m->kind) {
    case AUDIT_STRING:
        put_str(out, STR_LIT("\""));
        put_redacted(out, m->text, redact, ctx);
        put_str(out, STR_LIT("\""));
        break;
    case AUDIT_NUMBER:
        put_number(out, m->number);
        break;
    case AUDIT_BOOL:
        buf_puts(out, m->number != 0 ? "true" : "false");
        break;
    case AUDIT_NULL:
        buf_puts(out, "null");
        break;
    }
}

_Static_assert(AUDIT_META_MAX * (AUDIT_KEY_MAX + AUDIT_TEXT_MAX + 8) + 3 * (AUDIT_TEXT_MAX + 32) + 512 +
               AUDIT_SEAL_MAX < AUDIT_LINE_MAX, "every entry has room in a line");

int
audit_body(const struct audit_entry *e, audit_redact_fn *redact, void *ctx, struct buf *out, struct err *err)
{
    size_t before = out->n;

    if (check(e, err) < 0)
        return -1;
    put_str(out, STR_LIT(",\"timestamp\":\""));
    put_time(out, &e->when);
    put_str(out, STR_LIT("\",\"type\":\""));
    put_str(out, str_of(type_names[e->type]));
    put_str(out, STR_LIT("\",\"severity\":\""));
    put_str(out, str_of(severity_names[e->severity]));
    put_str(out, STR_LIT("\",\"summary\":\""));
    put_redacted(out, e->summary, redact, ctx);
    put_str(out, STR_LIT("\""));
    put_word(out, STR_LIT(",\"sandbox\":\""), e->sandbox);
    put_word(out, STR_LIT(",\"traceId\":\""), e->trace_id);
    for (size_t i = 0; i < e->n_meta; i++) {
        put_str(out, i == 0 ? STR_LIT(",\"metadata\":{") : STR_LIT(","));
        put_meta(out, &e->meta[i], redact, ctx);
    }
    if (e->n_meta > 0)
        put_str(out, STR_LIT("}"));
    if (buf_ok(out))
        return 0;
    out->n = before;
    out->broken = false;
    return err_set(err, ERR_LIMIT, "audit.full", "no room for one more entry");
}
